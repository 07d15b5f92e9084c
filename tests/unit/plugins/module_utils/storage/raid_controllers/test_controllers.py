# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tool is asked, what it is asked, and what a host with a RAID volume is called by what it answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.capture.recording import (
    RecordingHost,
    ReplayHost,
)
from ansible_collections.durable.dbhost.plugins.module_utils.capture.redaction import WITHHELD, redact
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Result, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.storage.disks import Disks
from ansible_collections.durable.dbhost.plugins.module_utils.storage.raid_controllers import (
    arcconf,
    controllers,
    ssacli,
    storcli,
)

from ...fakes.captured import captured
from ...fakes.runs import NOW, attested, look
from ...fakes.sentences import sentence
from ...fakes.small_host import FakeDisk, FakeMount, SmallHost

STORCLI = "/opt/MegaRAID/storcli/storcli64"
WWN = "0x600605b000000000aaaa000000000000"
ON_IT = {"mounts": ["/srv/raid"]}
MEGARAID = {"vendor": "AVAGO", "model": "MR9361-8i", "driver": "megaraid_sas"}
SLOT = "0000:03:00.0/host7/target7:{channel}:0/7:{channel}:0:0/block"
#: driver -> (channel of its volumes, WWN of the one in its listing).
ANSWERS = {
    "storcli": {
        (STORCLI, *question): captured(f"raid/storcli_{name}.json")
        for question, name in zip(storcli.QUESTIONS, ("vall", "call", "bbu", "cv"))
    },
    "ssacli": {("/usr/sbin/ssacli", *ssacli.QUESTION): captured("raid/ssacli_p410i.txt")},
    "arcconf": {
        ("/usr/Arcconf/arcconf", "getconfig", "1", "al", "nologs"): captured("raid/arcconf_aacraid.txt")
    },
}


def with_volume(
    tool: str = "storcli",
    driver: str = "megaraid_sas",
    channel: int = 2,
    change: Callable[[str], str] = str,
    **make: str,
) -> SmallHost:
    """Return a host with a RAID volume under /srv/raid, and a tool that answers as in its listing."""
    host = SmallHost()
    found: dict[str, Any] = {
        **MEGARAID,
        "driver": driver,
        "wwn": WWN,
        "port": SLOT.format(channel=channel),
        **make,
    }
    host.add_disk(FakeDisk("sdr", "scsi", found.pop("serial", "3600605b"), rotational="1", **found), "8:240")
    mount = FakeMount("/srv/raid", "ext4", "8:240", "/dev/sdr", "sdr", atime="noatime")
    host.add_mount(mount, "UUID=raid /srv/raid ext4 noatime 0 2\n")
    host.links["/dev/disk/by-uuid/raid"] = "/dev/sdr"
    for argv, answer in ANSWERS[tool].items():
        host.files[argv[0]] = "ELF"
        host.commands[argv] = change(answer)
    return host


def raid_of(host: SmallHost) -> Any:
    return Disks(host).collect("sdr")["raid"]


def asked_of(host: SmallHost) -> set[str]:
    tools = {program for tool in controllers.TOOLS for program in tool.PROGRAMS}
    return {argv[0] for argv in host.asked if argv[0] in tools}


@pytest.mark.parametrize(
    ("tool", "driver", "channel", "make"),
    [
        ("storcli", "megaraid_sas", 2, {}),
        ("ssacli", "hpsa", 1, {"wwn": "0x600508b10000000000000000000000a1"}),
        ("ssacli", "smartpqi", 1, {"wwn": "0x600508b10000000000000000000000a1"}),
        # Older ones have no WWN; udev has the number as the serial's short form.
        ("arcconf", "aacraid", 0, {"wwn": "", "serial": "SAdaptec_DATA_DE170000"}),
    ],
)
def test_a_volume_is_known_by_its_wwn_or_serial_number(
    tool: str, driver: str, channel: int, make: dict[str, str]
) -> None:
    host = with_volume(tool, driver, channel, **make)
    if tool == "arcconf":
        host.disk("sdr").shown = {"ID_SERIAL_SHORT": "DE170000"}
    facts = Disks(host).collect("sdr")
    words = {key: facts["raid"][key] for key in ("write_policy", "backup", "drive_caches")}
    assert words == {"write_policy": "write_back", "backup": "good", "drive_caches": "disabled"}
    assert facts["write_cache"]["volatile"] == "non_volatile"
    assert (facts["write_cache"]["device"], facts["switchable"]) == ("unknown", "no")
    assert facts["evidence"]["raid"]["source"] == next(iter(ANSWERS[tool]))[0]


@pytest.mark.parametrize(
    ("arrange", "reason"),
    [
        (lambda h: vars(h.disk("sdr")).update(wwn="0x600605b0ffffffff"), "no volume with the WWN"),
        (lambda h: h.files.data.pop(STORCLI), "no tool of its controller is installed"),
        (lambda h: h.commands.update({("systemd-detect-virt",): "kvm\n"}), "hypervisor"),
        (lambda h: vars(h.disk("sda")).update(wwn=WWN), "no volume with the WWN"),
        (
            lambda h: vars(h.disk("sdr")).update(driver="3w-9xxx"),
            "no tool is known for controllers of 3w-9xxx",
        ),
    ],
)
def test_what_is_not_known_for_certain_is_unknown_with_its_reason(
    arrange: Callable[[SmallHost], object], reason: str
) -> None:
    host = with_volume()
    arrange(host)
    if "3w" in reason:
        host = with_volume(driver="3w-9xxx")
    facts = Disks(host).collect("sdr")
    assert set(facts["raid"].values()) == {None, "unknown"}
    assert facts["write_cache"]["volatile"] == "unknown"
    assert reason in sentence(facts, "raid")


PERCCLI = "/opt/MegaRAID/perccli/perccli64"


@pytest.mark.parametrize(
    ("said", "known"), [(str, True), (lambda text: text.replace("RWBD", "RAWBD"), False)]
)
def test_two_tools_have_to_agree(said: Callable[[str], str], known: bool) -> None:
    host = with_volume()
    for argv, answer in ANSWERS["storcli"].items():
        host.commands[(PERCCLI, *argv[1:])] = said(answer)
    host.files[PERCCLI] = "ELF"
    assert (raid_of(host)["volume"] == "/c0/v0") is known
    assert asked_of(host) == {STORCLI, PERCCLI}


def test_a_tool_that_is_there_and_fails_does_not_hide_the_other() -> None:
    host = with_volume()
    host.files[PERCCLI] = "ELF"
    assert raid_of(host)["volume"] == "/c0/v0"


def test_two_volumes_with_one_wwn_are_none() -> None:
    host = with_volume(change=lambda text: text.replace("aaaa000000000001", "aaaa000000000000"))
    assert raid_of(host)["volume"] is None


@pytest.mark.parametrize(
    "answer",
    ["garbage", "", Unobservable(f"{STORCLI}: no answer within 60 s"), Result(1, "", "Segmentation fault")],
)
def test_a_tool_that_gives_no_answer_is_a_reason_and_no_crash(answer: Any) -> None:
    host = with_volume()
    host.commands[(STORCLI, *storcli.QUESTIONS[0])] = answer
    facts = Disks(host).collect("sdr")
    assert facts["raid"]["volume"] is None
    assert STORCLI in sentence(facts, "raid")


def test_a_program_that_others_may_change_is_not_run() -> None:
    host = with_volume()
    host.uids[STORCLI] = 1000
    facts = Disks(host).collect("sdr")
    assert "may be changed by others than root" in sentence(facts, "raid")
    assert asked_of(host) == set()


def test_a_tool_is_asked_only_where_its_controller_is_and_once_for_all_volumes() -> None:
    host = with_volume()
    for name in (*ssacli.PROGRAMS, *arcconf.PROGRAMS):
        host.files[name] = "ELF"
    more = FakeDisk(
        "sds",
        "scsi",
        "3600605c",
        wwn=f"{WWN[:-1]}1",
        port=SLOT.format(channel=2).replace("7:2:0:0", "7:2:1:0"),
        **MEGARAID,
    )
    host.add_disk(more, "65:0")
    reader = Disks(host)
    assert [reader.collect(name)["raid"]["volume"] for name in ("sdr", "sds")] == ["/c0/v0", "/c0/v1"]
    assert asked_of(host) == {STORCLI}
    assert len([argv for argv in host.asked if argv[0] == STORCLI]) == len(storcli.QUESTIONS)


def test_without_a_raid_volume_no_tool_is_asked() -> None:
    host = SmallHost()
    for name in (*storcli.PROGRAMS, *ssacli.PROGRAMS, *arcconf.PROGRAMS):
        host.files[name] = "ELF"
    reader = Disks(host)
    assert {reader.collect(name)["raid"] for name in host.disks} == {None}
    assert asked_of(host) == set()


def test_every_question_only_reads() -> None:
    host = with_volume()
    raid_of(host)
    asked = [question[1] for question in storcli.QUESTIONS]
    assert asked == ["show"] * 4
    assert ssacli.QUESTION[2] == "show"
    assert {argv[2] for argv in host.asked if argv[0] == STORCLI} == {"show"}


def test_a_recording_holds_what_was_asked_and_what_is_shown_withholds_the_answer() -> None:
    """A tool names serial numbers and the host: what it said is for its owner."""
    host = with_volume()
    recorder = RecordingHost(host)
    collect(recorder, NOW)
    recording = {
        "schema": 1,
        "kernel": "6.1",
        "release": "x",
        "taken": NOW,
        "command": ["storage_facts"],
        "calls": recorder.calls,
    }
    assert Disks(ReplayHost(recording)).collect("sdr") == Disks(host).collect("sdr")
    shown = redact(recording)
    assert "SK00000000" in str(recording)
    assert "SK00000000" not in str(shown)
    facts = Disks(ReplayHost(shown)).collect("sdr")
    assert facts["raid"]["volume"] is None
    assert WITHHELD in sentence(facts, "raid")


def swap(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new)


ALWAYS, FAILED = swap('"RWBD"', '"RAWBD"'), swap('"Optimal"', '"Failed"')


THROUGH = "set /c0/v0 to write through (storcli: set wrcache=wt, ssacli: modify caching=disable)"
EXPOSED = f"{THROUGH}, or replace its battery or capacitor"
DRIVES_OFF = "disable the caches of the disks of /c0/v0 (storcli: set pdcache=off, ssacli: modify drivewritecache=disable)"


@pytest.mark.parametrize(
    ("change", "verdict", "state", "cure"),
    [
        (str, "durable", "met", ""),
        # Fell back to write through: safe, only slow.
        (lambda text: FAILED(text.replace('"RWBD"', '"RWTD"')), "durable", "met", ""),
        (FAILED, "blocked", "unmet", f"replace the battery or capacitor, or {THROUGH}"),
        (
            swap('"Optimal"', '"Learning"'),
            "blocked",
            "unmet",
            "run again when the battery or capacitor has charged",
        ),
        (
            swap('"Optimal"', '"Odd"'),
            "blocked",
            "unmet",
            f"make its controller report the battery or capacitor, or {THROUGH}",
        ),
        (
            ALWAYS,
            "blocked",
            "unmet",
            "set /c0/v0 to write back with a good battery only (storcli: set wrcache=wb, ssacli: modify"
            " nobatterywritecache=disable)",
        ),
        (lambda text: ALWAYS(FAILED(text)), "at_risk", "unmet", EXPOSED),
        (lambda text: ALWAYS(text.replace('"Optimal"', '"Learning"')), "at_risk", "unmet", EXPOSED),
        (
            swap('"Disk Cache Policy" : "Disabled"', '"Disk Cache Policy" : "Enabled"'),
            "blocked",
            "unmet",
            DRIVES_OFF,
        ),
        (
            swap('"Disk Cache Policy" : "Disabled"', '"Disk Cache Policy" : "Disk\'s Default"'),
            "blocked",
            "unmet",
            DRIVES_OFF,
        ),
    ],
)
def test_the_profile_protected_goes_by_what_the_controller_says(
    change: Callable[[str], str], verdict: str, state: str, cure: str
) -> None:
    found = look(with_volume(change=change), "protected", **ON_IT)
    assert found["verdict"] == verdict, found["why"]
    (need,) = (need for need in found["requirements"] if need["name"] == "cache_non_volatile")
    assert need["state"] == state
    assert not any(found["plan"].values())
    if verdict != "durable":
        (row,) = (row for row in found["settings"] if row["setting"] == "write_cache")
        assert row["verdict"] in ("drift_running", "unknown")
        assert row["remedy"] == cure
        assert any(need["why"] in why for why in found["why"])
        # While it loses writes no attestation counts, and none is offered.
        attest = "" if cure == EXPOSED else f", or attest power_loss_protection for {row['target']}"
        kind = "requirement.raid_volume.exposed" if cure == EXPOSED else "requirement.raid_volume"
        assert (need["id"], need["remedy"]) == (kind, f"{cure}{attest}")


@pytest.mark.parametrize("profile", ["strict", "flush", "protected"])
def test_a_cache_that_is_kept_is_as_good_as_none_for_every_profile(profile: str) -> None:
    found = look(with_volume(), profile, **ON_IT)
    assert found["verdict"] == "durable", found["why"]
    assert "write policy write_back, battery or capacitor good" in found["requirements"][0]["evidence"]


@pytest.mark.parametrize("profile", ["strict", "flush"])
def test_elsewhere_a_failed_battery_is_drift(profile: str) -> None:
    found = look(with_volume(change=FAILED), profile, **ON_IT)
    assert found["verdict"] == "drifted", found["why"]


@pytest.mark.parametrize("profile", ["strict", "flush", "protected"])
def test_nobodys_word_holds_against_a_controller_that_loses_commits_now(profile: str) -> None:
    words = [attested("power_loss_protection", f"wwn:{WWN}"), attested("host_honours_flush")]
    given = {**ON_IT, "attestations": words}
    found = look(with_volume(change=lambda text: ALWAYS(FAILED(text))), profile, **given)
    assert found["verdict"] == "at_risk"
    assert not [need for need in found["requirements"] if need["state"] == "attested"]
    # What the controller cannot know of its disks, or does not tell, somebody may know better.
    on = swap('"Disk Cache Policy" : "Disabled"', '"Disk Cache Policy" : "Enabled"')
    assert look(with_volume(change=on), profile, **given)["verdict"] == "attested"


REPORTED = {
    "failed": FAILED,
    "learning": swap('"Optimal"', '"Learning"'),
    "always": ALWAYS,
    "drives": swap('"Disk Cache Policy" : "Disabled"', '"Disk Cache Policy" : "Enabled"'),
}


@pytest.mark.parametrize("profile", ["strict", "flush"])
@pytest.mark.parametrize("change", REPORTED)
def test_what_a_controller_reports_overrides_an_attestation_for_the_host(profile: str, change: str) -> None:
    words = [attested("host_honours_flush"), attested("host_honours_fua")]
    found = look(with_volume(change=REPORTED[change]), profile, **ON_IT, attestations=words)
    assert found["verdict"] == "drifted", found["why"]
    assert not [need for need in found["requirements"] if need["state"] == "attested"]
    (need,) = (need for need in found["requirements"] if need["name"] in ("device_obeys", "flush_honoured"))
    assert need["state"] == "unverified"
    assert "this overrides host_honours_flush for host, attested by A. Person until" in need["evidence"]
    assert f"attest power_loss_protection for wwn:{WWN}" in need["remedy"]


@pytest.mark.parametrize("change", REPORTED)
def test_an_attestation_of_that_volume_alone_counts_against_it(change: str) -> None:
    words = [attested("host_honours_flush", f"wwn:{WWN}")]
    found = look(with_volume(change=REPORTED[change]), "flush", **ON_IT, attestations=words)
    assert found["verdict"] == "attested", found["why"]


def test_an_override_rests_on_no_attestation_for_the_host_against_a_failed_battery() -> None:
    given = {
        **ON_IT,
        "overrides": {"write_cache": "enabled"},
        "attestations": [attested("host_honours_flush")],
    }
    for change, state in ((FAILED, "unmet"), (lambda text: ALWAYS(FAILED(text)), "unmet"), (str, "attested")):
        found = look(with_volume(change=change), "strict", **given)
        (need,) = (need for need in found["requirements"] if need["name"] == "override_attested")
        assert need["state"] == state


def test_without_a_tool_a_volume_is_attested_as_before() -> None:
    host = with_volume()
    host.files.data.pop(STORCLI)
    assert look(host, "protected", **ON_IT)["verdict"] == "blocked"
    words = [attested("power_loss_protection", f"wwn:{WWN}")]
    assert look(host, "protected", **ON_IT, attestations=words)["verdict"] == "attested"
