# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict of a host under each profile, and that no input gets past it."""

from __future__ import annotations

import copy
import datetime
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess, unobserved
from ansible_collections.durable.dbhost.plugins.module_utils.rows import VERDICTS, Reason
from ansible_collections.durable.dbhost.plugins.module_utils.storage import flush
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ...fakes.runs import (
    MOUNTS,
    NOW,
    PROFILES,
    attested,
    enforce,
    inputs,
    look,
    settled,
    shipped,
)
from ...fakes.small_host import BOOT_ID, BigHost, SmallHost
from ...fakes.told_power import power
from ..assess.test_engines import instance

PG, MARIA = ("/srv/pgdata",), ("/srv/maria",)
NO_PLAN = {"raise": {}, "tighten": {}, "loosen": {}}
Arrange = Callable[[SmallHost], Any]


def change(part: str, name: str, **values: Any) -> Arrange:
    """Return what changes a disk or a mount."""
    return lambda host: vars(getattr(host, part)[name]).update(values)


def without_hdparm(host: SmallHost) -> None:
    host.commands[("hdparm", "-W", "/dev/sda")] = Unobservable("hdparm: no answer within 10 s")


BARE = change("mounts", "/srv/pgdata", barrier="off")
LIE = change("disks", "sda", cache_mode="write through")


@pytest.mark.parametrize(
    ("profile", "mounts", "given_inputs", "verdict"),
    [
        ("strict", PG, {}, "durable"),
        ("strict", MARIA, {}, "unverified"),
        ("strict", MOUNTS, {}, "unverified"),
        ("strict", MOUNTS, {"attestations": [attested("host_honours_flush")]}, "attested"),
        ("strict", MARIA, {"attestations": [attested("host_honours_flush", "serial:VIRT0001")]}, "attested"),
        ("strict", MARIA, {"attestations": [attested("host_honours_flush", "serial:OTHER")]}, "unverified"),
        ("strict", MARIA, {"attestations": [attested("host_honours_fua")]}, "unverified"),
        ("flush", PG, {}, "durable"),
        ("flush", MARIA, {}, "unverified"),
        ("flush", MARIA, {"attestations": [attested("host_honours_flush")]}, "attested"),
        ("protected", PG, {}, "blocked"),
        ("protected", PG, {"attestations": [attested()]}, "attested"),
        ("protected", PG, {"attestations": [attested("host_honours_flush")]}, "blocked"),
        ("ups", PG, {}, "blocked"),
        ("ups", PG, {"attestations": [attested("ups_rehearsed")]}, "blocked"),
        ("disposable", PG, {}, "blocked"),
        ("disposable", PG, {"accept_data_loss": True}, "accepted_loss"),
    ],
)
def test_a_settled_host(profile: str, mounts: Any, given_inputs: dict[str, Any], verdict: str) -> None:
    host = settled(profile, mounts=mounts, **given_inputs)
    found = look(host, profile, mounts=mounts, **given_inputs)
    assert found["verdict"] == verdict
    assert found["changes"] == []


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("arrange", "verdicts"),
    [
        (lambda host: None, ["drifted", "drifted", "blocked", "blocked", "drifted"]),
        (BARE, ["at_risk", "at_risk", "at_risk", "at_risk", "drifted"]),
        (LIE, ["at_risk", "at_risk", "at_risk", "at_risk", "drifted"]),
        (without_hdparm, ["unknown", "unknown", "blocked", "blocked", "unknown"]),
        (
            lambda host: host.files.pop("/proc/fs/ext4/sda1/options"),
            ["unknown", "unknown", "blocked", "blocked", "unknown"],
        ),
        (lambda host: host.unplug("sda"), ["unknown", "unknown", "unknown", "blocked", "blocked"]),
        (
            change("mounts", "/srv/pgdata", journal=False),
            ["unknown", "unknown", "blocked", "blocked", "unknown"],
        ),
    ],
    ids=[
        "fresh",
        "no barriers",
        "cache mode is a lie",
        "cache unreadable",
        "barriers unreadable",
        "disk gone",
        "no journal",
    ],
)
def test_each_profile_in_each_state(profile: str, arrange: Arrange, verdicts: list[str]) -> None:
    host = SmallHost()
    arrange(host)
    found = look(host, profile, mounts=PG, accept_data_loss=True)
    assert found["verdict"] == verdicts[PROFILES.index(profile)], found["why"]


@pytest.mark.parametrize(
    ("arrange", "verdict", "why"),
    [
        (
            BARE,
            "at_risk",
            "commits since the last flush on sda can be lost: /srv/pgdata is mounted without barriers",
        ),
        (
            LIE,
            "at_risk",
            "commits since the last flush on sda can be lost: its kernel cache mode is write through",
        ),
        (
            lambda h: [BARE(h), change("disks", "sda", cache="disabled")(h)],
            "drifted",
            "/srv/pgdata: barrier is off, expected on: /srv/pgdata does not flush",
        ),
        (
            lambda h: [BARE(h), without_hdparm(h)],
            "at_risk",
            "commits since the last flush on sda can be lost",
        ),
        (
            change("mounts", "/srv/pgdata", data="writeback"),
            "drifted",
            "/srv/pgdata: data_mode is writeback, expected ordered: after a crash, files",
        ),
        (change("mounts", "/srv/pgdata", data="journal"), "drifted", ""),
        (
            change("mounts", "/srv/pgdata", sb_options=("nobarrier",)),
            "drifted",
            "/srv/pgdata: barrier is off at the next boot, expected on",
        ),
    ],
)
def test_the_reason_is_said_in_plain_words(arrange: Arrange, verdict: str, why: str) -> None:
    host = SmallHost()
    arrange(host)
    found = look(host, "strict", mounts=PG)
    assert found["verdict"] == verdict
    assert why in "\n".join(found["why"])


def test_a_risk_and_the_setting_that_it_comes_from_are_one_reason() -> None:
    """Without the risk, because its disk has no volatile cache or a waiver accepts it, the setting is the reason."""
    host = SmallHost()
    BARE(host)
    ids = {each["id"] for each in look(host, "strict", mounts=PG)["reasons"]}
    assert "risk.barrier_off" in ids and "setting.mount_options.barrier" not in ids
    entry = {
        "finding": "risk.barrier_off",
        "target": PG[0],
        "by": "dba",
        "reason": "test",
        "expires": "2026-12-31",
    }
    found = look(host, "strict", mounts=PG, accept=[entry], accept_data_loss=True)
    assert "setting.mount_options.barrier" in {each["id"] for each in found["reasons"]}
    change("disks", "sda", cache="disabled")(host)
    ids = {each["id"] for each in look(host, "strict", mounts=PG)["reasons"]}
    assert "risk.barrier_off" not in ids and "setting.mount_options.barrier" in ids


@pytest.mark.parametrize("profile", ["strict", "flush", "protected", "ups"])
@pytest.mark.parametrize(
    ("arrange", "loses"),
    [
        (BARE, True),
        (LIE, True),
        (change("mounts", "/srv/pgdata", data="journal"), False),
        (lambda host: None, False),
    ],
    ids=["no barriers", "cache mode forced to write through", "data=journal", "default"],
)
@pytest.mark.fact(4)
@pytest.mark.fact(18)
def test_what_sends_no_flush_loses_commits_however_a_database_syncs(
    profile: str, arrange: Arrange, loses: bool
) -> None:
    """Of 100 synchronous writes, nobarrier and the cache mode write through flush none; the defaults flush all."""
    host = SmallHost()
    arrange(host)
    assert (look(host, profile, mounts=PG)["verdict"] == "at_risk") is loses


@pytest.mark.parametrize(("cache", "verdict"), [("none", "durable"), ("enabled", "blocked")])
@pytest.mark.fact(24)
def test_only_a_device_that_reports_no_volatile_cache_needs_no_word_for_it(cache: str, verdict: str) -> None:
    """NVMe tells; SATA cannot: then an operator attests power-loss protection, with who, why and until when."""
    host = BigHost()
    host.disk("nvme0n1").cache = cache
    enforce(host, look(host, "protected", mounts=["/srv/firebird"]))
    host.reboot()
    assert look(host, "protected", mounts=["/srv/firebird"])["verdict"] == verdict
    reported = look(
        host, "protected", mounts=["/srv/firebird"], attestations=[attested(target=host.disk("nvme0n1").id)]
    )
    assert reported["verdict"] == ("durable" if cache == "none" else "attested")


def test_attested_power_loss_protection_takes_a_bare_mount_from_at_risk() -> None:
    host = SmallHost()
    BARE(host)
    assert look(host, "flush", mounts=PG, attestations=[attested()])["verdict"] == "drifted"


def test_what_a_run_that_was_killed_has_not_flushed_is_at_risk() -> None:
    host = settled("flush", mounts=PG)
    assert look(host, "flush", mounts=PG)["verdict"] == "durable"
    host.files[f"{flush.OWED}/sda"] = ""
    found = look(host, "flush", mounts=PG)
    assert (found["verdict"], found["why"][0]) == (
        "at_risk",
        "commits since the last flush on sda can be lost: a run ended before it flushed that disk; run harden_db",
    )
    (row,) = [row for row in found["settings"] if row["verdict"] != "ok"]
    assert (row["setting"], row["verdict"], row["phase"]) == ("flush", "drift_running", "raise")


def test_a_pending_flush_is_a_risk_with_any_state_of_the_cache() -> None:
    """What was written while the cache was on is no more stable once it is off."""
    host = settled("strict", mounts=PG)
    assert host.disk("sda").cache == "disabled"
    host.files[f"{flush.OWED}/sda"] = ""
    assert look(host, "strict", mounts=PG)["verdict"] == "at_risk"
    assert look(host, "strict", mounts=PG, attestations=[attested()])["verdict"] != "at_risk"


def test_without_barriers_over_disks_that_are_not_known_it_is_at_risk() -> None:
    host = settled("strict", mounts=PG)
    BARE(host)
    storage = collect(host, NOW)
    (mount,) = [mount for mount in storage["mounts"] if mount["target"] == "/srv/pgdata"]
    mount.update(disks="unknown")
    mount["evidence"]["disks"].update(value="unknown", reason="a layer that is not understood")
    found = assess(inputs("strict", mounts=PG), storage, NOW)
    assert found["verdict"] == "at_risk"
    assert "on disks that are unknown can be lost: /srv/pgdata is mounted without barriers" in found["why"][0]


def test_what_waits_for_the_next_mount_is_pending() -> None:
    host = settled("strict", mounts=PG)
    host.mounts["/srv/pgdata"].data = "writeback"
    found = look(host, "strict", mounts=PG)
    assert found["verdict"] == "pending"
    assert [(row["target"], row["setting"], row["needs"]) for row in found["pending"]] == [
        ("/srv/pgdata", "data_mode", "reboot")
    ]


def test_a_slow_setting_decides_no_verdict() -> None:
    host = settled("strict", mounts=PG)
    change("mounts", "/srv/pgdata", atime="relatime")(host)
    found = look(host, "strict", mounts=PG)
    assert (found["verdict"], found["fails"], found["why"]) == ("durable", False, [])
    assert [row["setting"] for row in found["changes"]] == ["atime"]
    assert any(note.startswith("/srv/pgdata: atime is ") for note in found["warnings"])


@pytest.mark.parametrize("target", ["serial:OTHER", "Host", "sda"])
def test_an_attestation_that_is_about_nothing_here_is_mentioned(target: str) -> None:
    word = attested("host_honours_flush", target)
    (note,) = [note for note in look(SmallHost(), attestations=[word])["warnings"] if "attestation" in note]
    assert note.startswith("the attestation of host_honours_flush by A. Person has no effect: no disk")
    assert f" has the id {target}; use host" in note
    assert note.endswith(
        "use host, serial:QEMU_HARDDISK_SATA0001, serial:VIRT0001, wwn:0x5000c500a1b2c3d4"
    ) or ("use host, " in note)
    # Also of a host without a profile, and of one without a mount to manage: there nothing rests on any, yet.
    for other in ({"profile": None}, {"mounts": []}):
        found = look(SmallHost(), attestations=[word], **other)
        assert found["verdict"] in ("not_managed", "not_applicable")
        assert [each["target"] for each in found["attestations"]] == [target]
        assert any(f" has the id {target}; use " in note for note in found["warnings"])
    for found in (attested("host_honours_flush"), attested()):
        assert not any("attestation" in note for note in look(SmallHost(), attestations=[found])["warnings"])


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    "arrange",
    [
        lambda host: None,
        BARE,
        LIE,
        without_hdparm,
        lambda host: [BARE(host), without_hdparm(host)],
        lambda host: host.unplug("sda"),
        change("mounts", "/srv/pgdata", data="writeback"),
        change("mounts", "/srv/pgdata", journal=False),
        change("mounts", "/srv/pgdata", sb_options=("nobarrier",)),
    ],
)
def test_the_first_reason_is_the_verdicts_and_each_has_its_remedy(profile: str, arrange: Arrange) -> None:
    """After a semicolon: of a risk, that of the setting that makes it."""
    host = SmallHost()
    arrange(host)
    found = look(host, profile, mounts=PG, accept_data_loss=True)
    words = {
        "at_risk": " can be lost",
        "blocked": "; | is withheld until ",
        "unknown": " is unknown: |not known|nothing is known|could not be read|no rule covers|no answer",
        "drifted": ", expected ",
        "pending": ", expected ",
    }
    if found["why"]:
        assert re.search(words.get(found["verdict"], ""), found["why"][0]), (found["verdict"], found["why"])
    for reason in found["why"]:
        assert re.search(r'[\w"]; \w', reason), reason


@pytest.mark.parametrize("level", range(8))
def test_the_worst_thing_that_is_true_is_the_verdict(level: int) -> None:
    """Each row adds one thing that is worse than all before."""
    host = settled("strict", mounts=MOUNTS)
    given_inputs: dict[str, Any] = {"mounts": PG}
    worse: list[tuple[str, Callable[[], Any]]] = [
        ("durable", lambda: None),
        (
            "attested",
            lambda: given_inputs.update(mounts=MOUNTS, attestations=[attested("host_honours_flush")]),
        ),
        ("unverified", lambda: given_inputs.pop("attestations")),
        ("pending", lambda: change("mounts", "/srv/pgdata", data="writeback")(host)),
        ("drifted", lambda: change("mounts", "/srv/pgdata", sb_options=("nobarrier",))(host)),
        ("unknown", lambda: host.files.pop("/proc/fs/ext4/vdb/options")),
        ("blocked", lambda: given_inputs.update(overrides={"write_cache": "enabled"})),
        ("at_risk", lambda: [BARE(host), change("disks", "sda", cache="enabled")(host)]),
    ]
    for _verdict, act in worse[: level + 1]:
        act()
    found = look(host, "strict", **given_inputs)
    assert found["verdict"] == worse[level][0], found["why"]
    order = [VERDICTS.index(verdict) for verdict, _act in worse]
    assert order == sorted(order, reverse=True)


@pytest.mark.parametrize(
    ("given_inputs", "message"),
    [
        ({"profile": "strikt"}, "durable_profile: observed 'strikt'; expected one of"),
        ({"own": {"strict": {}}}, "durable_profiles: observed strict, which this collection ships"),
        ({"own": ["x"]}, "durable_profiles: observed"),
        ({"overrides": {"barrier": False}}, "durable_overrides: barrier: observed the boolean False"),
        ({"overrides": {"barrier": "off"}}, "contradict each other"),
        ({"attestations": "me"}, "durable_attestations: observed 'me'; expected a list"),
        ({"attestations": [{**attested(), "expires": datetime.date(2026, 6, 1)}]}, "an unquoted date"),
        ({"attestations": [{**attested(), "expires": "2036-01-30"}]}, "at most"),
        ({"attestations": [attested("trust_me")]}, "expected one of power_loss_protection"),
        (
            {"mounts": ["srv/pgdata"]},
            r"durable_mounts\[0\]: observed 'srv/pgdata'; expected an absolute path",
        ),
        ({"mounts": "/srv/pgdata"}, "durable_mounts: observed '/srv/pgdata'; expected a list"),
        ({"mounts": ["/srv/pgdata", 7]}, r"durable_mounts\[1\]: observed 7; expected an absolute path"),
        ({"mounts": {"/srv/pgdata": 1}}, "durable_mounts: observed"),
        ({"databases": "pg"}, "durable_databases: observed 'pg'; expected a list"),
        ({"databases": ["pg"]}, r"durable_databases\[0\]: observed 'pg'; expected engine"),
        (
            {"databases": [{"engine": "oracle", "paths": ["/"]}]},
            r"durable_databases\[0\]: observed .* expected engine: one of mssql, .*, mysql, and paths: a list, for example"
            r" \{engine: postgresql, paths: \[/srv/pgdata\]\}; correct",
        ),
        ({"databases": [{"engine": "mssql"}]}, r"durable_databases\[0\]: no paths"),
        (
            {"databases": [{"engine": "mssql", "path": ["/"]}]},
            r"durable_databases\[0\]: observed 'path'; expected only engine and paths; .* Did you mean paths\?",
        ),
        (
            {"databases": [{"engine": "mssql", "paths": ["data"]}]},
            r"durable_databases\[0\].paths\[0\]: observed 'data'",
        ),
        (
            {"allow": "reboot"},
            "durable_allow: observed 'reboot'; expected a list of restart_engines, reboot",
        ),
        ({"allow": ["rebot"]}, "durable_allow: observed"),
        ({"allow": [{"reboot": True}]}, "durable_allow: observed"),
        ({"allow": None}, "durable_allow: observed None"),
        (
            {"accept_data_loss": "true"},
            "durable_accept_data_loss: observed the text 'true'; expected true or false, without quotes; on the command line"
            """ use -e '{"durable_accept_data_loss": true}'""",
        ),
        (
            {"accept_data_loss": 1},
            "durable_accept_data_loss: observed 1; expected true or false, without quotes; correct this value, then run again$",
        ),
        ({"accept_data_loss": None}, "durable_accept_data_loss: observed None"),
        (
            {"time_limit": 9},
            "durable_time_limit: observed 9; expected whole seconds from 10 to 86400, or 0 for no limit",
        ),
        ({"time_limit": True}, "durable_time_limit: observed True"),
    ],
)
@pytest.mark.parametrize("rate", [False, True])
def test_bad_input_blocks_the_host_and_nothing_is_planned(
    given_inputs: dict[str, Any], message: str, rate: bool
) -> None:
    found = look(SmallHost(), rate=rate, **given_inputs)
    assert found["verdict"] == "blocked"
    assert len(found["why"]) == 1
    assert re.search(message, found["why"][0]), found["why"]
    assert (found["plan"], found["changes"]) == (NO_PLAN, [])


@pytest.mark.parametrize(
    "given_inputs",
    [
        {"profile": "strikt"},
        {"own": ["x"]},
        {"overrides": {"barrier": "off"}},
        {"mounts": "/srv/pgdata"},
        {"databases": "pg"},
        {"mount_profiles": {"/srv/pgdata": "stritc"}},
        {"ignore": "x"},
        {"attestations": "me"},
        {"allow": ["rebot"]},
        {"layers": ["x"]},
        {"ups": {"quite": 1}},
        {"accept_data_loss": "yes"},
        {"mounts": 7, "databases": 7, "ignore": 7, "attestations": 7, "own": 7},
        {"unreadable": [["durable_profile", "durable_profile: 'x' is undefined"]], "profile": None},
        {
            "unreadable": [["durable_mount_profiles", "durable_mount_profiles: 'x' is undefined"]],
            "mounts": ["/"],
        },
    ],
)
def test_bad_input_hides_no_risk(given_inputs: dict[str, Any]) -> None:
    host = SmallHost()
    BARE(host)
    engines = {
        "boot_id": BOOT_ID,
        "time": NOW,
        "engines": [instance(directories=["/srv/pgdata"])],
        "unattributed": [],
        "writers": [],
    }
    before = assess(inputs("strict", mounts=PG), collect(host, NOW), NOW, engines)
    found = assess(
        inputs(**{"profile": "strict", "mounts": PG, **given_inputs}), collect(host, NOW), NOW, engines
    )
    assert (before["verdict"], found["verdict"]) == ("at_risk", "at_risk")
    assert (found["plan"], found["changes"], found["fails"]) == (NO_PLAN, [], True)
    assert any("/srv/pgdata is mounted without barriers" in why for why in found["why"])
    assert found["why"][-1].startswith("durable_")
    assert not any("; run harden_db" in why for why in found["why"])


def test_bad_input_of_the_shipped_profiles_blocks() -> None:
    host = SmallHost()
    BARE(host)
    assert look(host, "strict", mounts=PG, shipped="x")["verdict"] == "blocked"


def test_a_mount_that_has_vanished_keeps_no_other_from_being_mended() -> None:
    """A disk failed: the host was blocked, and the barriers elsewhere stayed off."""
    host = SmallHost()
    BARE(host)
    found = look(host, "strict", mounts=["/srv/pgdata", "/srv/nothing"])
    assert found["verdict"] == "at_risk"
    assert "mount_options" in found["plan"]["tighten"]
    assert not found["plan"]["loosen"]
    said = "durable_mounts: observed /srv/nothing: nothing is mounted there, expected one of /, /srv"
    assert any(why.startswith(said) and why.endswith("mount it, or correct the path") for why in found["why"])
    enforce(host, found)
    assert look(host, "strict", mounts=["/srv/pgdata", "/srv/nothing"])["verdict"] == "unknown"
    # Nothing is loosened as long as it is unknown what is missing.
    weaker = look(host, "disposable", mounts=["/srv/pgdata", "/srv/nothing"], accept_data_loss=True)
    assert not weaker["plan"]["loosen"]


@pytest.mark.parametrize("rate", [False, True])
def test_if_each_mount_has_vanished_the_host_is_unknown(rate: bool) -> None:
    for profile in ("strict", None):
        found = look(SmallHost(), profile, mounts=["/srv/nothing"], rate=rate)
        assert found["verdict"] == "unknown"
        assert "observed /srv/nothing" in found["why"][0]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            "99 30 0:77 / /srv rw - tmpfs tmpfs rw",
            "what is mounted there is hidden by tmpfs mounted over /srv: unmount that",
        ),
        (
            "99 31 0:77 / /srv/pgdata rw - tmpfs tmpfs rw",
            "what is mounted there is hidden by tmpfs mounted over /srv/pgdata: unmount that",
        ),
    ],
)
def test_a_mount_that_another_hides_is_unknown_with_its_name(line: str, why: str) -> None:
    host = SmallHost()
    host.files["/proc/self/mountinfo"] = f"{host.read('/proc/self/mountinfo')}{line}\n"
    found = look(host, mounts=["/srv/pgdata"])
    assert found["verdict"] == "unknown"
    assert found["why"][0].startswith(f"durable_mounts: observed /srv/pgdata: {why}, expected one of /")


@pytest.mark.parametrize("own", [["x"], {"ours": "x"}, {"ours": {}}, {1: {}}, "x"])
def test_bad_own_profiles_block_an_unpinned_host_too(own: Any) -> None:
    found = look(SmallHost(), None, own=own)
    assert found["verdict"] == "blocked"
    assert "rofile" in found["why"][0]


def test_a_malformed_fstab_blocks_by_line() -> None:
    host = SmallHost()
    host.files["/etc/fstab"] = "UUID=x /srv/pgdata\n"
    found = look(host)
    assert (found["verdict"], found["plan"]) == ("blocked", NO_PLAN)
    assert "/etc/fstab line 1: observed 2 fields; expected" in found["why"][0]


@pytest.mark.parametrize(
    ("time", "verdict"),
    [
        ("2026-01-31T11:00:00Z", "drifted"),
        ("2026-01-31T13:00:00Z", "drifted"),
        ("2026-01-31T10:59:59Z", "unknown"),
        ("2026-01-31T13:00:01Z", "unknown"),
        ("2025-01-31T12:00:00Z", "unknown"),
        ("yesterday", "unknown"),
        ("", "unknown"),
    ],
)
def test_facts_of_another_run_count_as_none(time: str, verdict: str) -> None:
    found = assess(inputs(), collect(SmallHost(), time), NOW)
    assert found["verdict"] == verdict
    assert (found["plan"] == NO_PLAN) == (verdict == "unknown")


@pytest.mark.parametrize(
    ("time", "now", "why"),
    [
        ("1970-01-01T00:05:00Z", NOW, "the clock of the host is wrong: it says 1970-01-01T00:05:00Z"),
        (NOW, "1970-01-01T00:05:00Z", "the clock of the controller is wrong: it says 1970-01-01T00:05:00Z"),
        # Both alike are no reason to trust either: attestations would not expire.
        ("1970-01-01T00:05:00Z", "1970-01-01T00:05:00Z", "the clock of the host is wrong"),
        (
            "2030-01-01T00:00:00Z",
            NOW,
            "a clock is wrong, or they are of an older run; compare `date -u` on both",
        ),
    ],
)
def test_a_clock_that_is_wrong_is_named_with_its_fix(time: str, now: str, why: str) -> None:
    (found,) = assess(inputs(), collect(SmallHost(), time), now)["why"]
    assert why in found
    assert "set it by `timedatectl set-ntp true` or `chronyc makestep`" in found
    assert "collect them" not in found


@pytest.mark.parametrize("boot", ["22222222-2222-3333-4444-555555555555", "unknown", "", None])
@pytest.mark.parametrize("other", ["engines", "power"])
def test_facts_of_two_boots_count_as_none(other: str, boot: str | None) -> None:
    storage = collect(SmallHost(), NOW)
    engines = {"boot_id": BOOT_ID, "time": NOW, "engines": [], "unattributed": [], "writers": []}
    others: dict[str, Any] = {"engines": engines, "power": power()}
    assert assess(inputs(), storage, NOW, **others)["verdict"] == "drifted"
    others[other] = {**others[other], "boot_id": boot}
    found = assess(inputs(), storage, NOW, **others)
    assert (found["verdict"], found["plan"]) == ("unknown", NO_PLAN)
    assert "the facts are of more than one boot" in found["why"][0]


def test_a_path_is_named_once_in_a_reason() -> None:
    facts = collect(SmallHost(), NOW)
    (mount,) = [each for each in facts["mounts"] if each["target"] == "/srv/pgdata"]
    mount["disks"] = "unknown"
    reason = {"value": "unknown", "source": "x", "reason": "/srv/pgdata: no answer within 10 s"}
    mount["evidence"]["disks"] = reason
    why = assess(inputs(mounts=["/srv/pgdata"]), facts, NOW)["why"]
    assert '/srv/pgdata: "/srv/pgdata: no answer within 10 s"; correct the error' in " ".join(why)


@pytest.mark.parametrize("boot", ["unknown", "", None])
def test_facts_that_do_not_say_of_which_boot_they_are_count_as_none(boot: str | None) -> None:
    assert assess(inputs(), {**collect(SmallHost(), NOW), "boot_id": boot}, NOW)["verdict"] == "unknown"


def test_an_unpinned_host_is_rated_and_not_touched() -> None:
    found = look(SmallHost(), None)
    assert (found["verdict"], found["profile"], found["plan"]) == ("not_managed", None, NO_PLAN)
    assert tuple(found["ratings"]) == PROFILES
    assert found["ratings"]["strict"]["verdict"] == "drifted"
    assert found["ratings"]["strict"]["changes"]


@pytest.mark.parametrize("profile", [None, "strict"])
def test_rating_looks_at_everything_when_nothing_is_listed(profile: str | None) -> None:
    found = look(SmallHost(), profile, mounts=None, rate=True)
    targets = {
        row["target"] for row in found["ratings"]["strict"]["changes"] if row["layer"] == "mount_options"
    }
    assert targets == {"/", *MOUNTS}


@pytest.mark.parametrize("nothing", [None, []])
def test_nothing_managed_is_not_durable(nothing: Any) -> None:
    found = look(SmallHost(), mounts=nothing, databases=nothing)
    assert (found["verdict"], found["plan"]) == ("not_applicable", NO_PLAN)
    assert "durable_mounts" in found["why"][0]


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/srv/pgdata/base", "/srv/pgdata"),
        ("/srv/pgdata/", "/srv/pgdata"),
        ("/srv/pgdata2", "/"),
        ("/srv//pgdata/base", "/srv/pgdata"),
        ("/srv/pgdata/../maria/x", "/srv/maria"),
        ("/srv/./maria/x", "/srv/maria"),
        ("/var/lib/x", "/"),
    ],
)
def test_a_database_path_manages_the_mount_that_holds_it(path: str, target: str) -> None:
    found = look(SmallHost(), mounts=None, databases=[{"engine": "postgresql", "paths": [path]}])
    rows = [row for row in found["settings"] if row["layer"] == "mount_options"]
    assert {row["target"] for row in rows} == {target}


def test_a_database_on_a_disk_that_hangs_is_nowhere() -> None:
    host, path = SmallHost(), "/srv/pgdata/base"
    host.hung = (path,)
    storage = collect(host, NOW, [path])
    found = assess(inputs(mounts=None, databases=[{"engine": "postgresql", "paths": [path]}]), storage, NOW)
    assert (found["verdict"], found["changes"]) == ("unknown", [])
    assert 'cannot be read: "/srv/pgdata/base: no answer within 10 s"' in found["why"][0]


@pytest.mark.parametrize("field", ["disks", "disks_seen"])
def test_a_file_system_over_no_disk_at_all_is_unknown(field: str) -> None:
    storage = collect(settled("strict", mounts=PG), NOW)
    next(mount for mount in storage["mounts"] if mount["target"] == "/srv/pgdata")[field] = []
    found = assess(inputs(mounts=PG), storage, NOW)
    assert found["verdict"] == "unknown"
    assert any(line.startswith("/srv/pgdata: no facts about the disks below it") for line in found["why"])


def test_all_errors_of_the_input_are_reported_at_once_each_with_what_is_accepted() -> None:
    wrong = {
        "profile": ("strcit", "durable_profile: observed 'strcit'", "Did you mean strict?"),
        "allow": (["rebot"], "durable_allow: observed ['rebot']", "Did you mean reboot?"),
        "overrides": (
            {"barier": "on", "atime": "never"},
            "durable_overrides: observed 'barier'",
            "Did you mean barrier?",
        ),
        "layers": (["disks"], "durable_layers: observed ['disks']", "storage"),
        "undo_after": (7, "durable_undo_after: observed 7", "60 to 86400"),
        "databases": ([{"engine": "postgres"}], "durable_databases[0]: observed", "Did you mean postgresql?"),
        "ignore": (
            [{}],
            "durable_ignore[0]: missing engine, by, reason, expires",
            "engine, by, reason, expires",
        ),
        "accept": (["x"], "durable_accept[0]: observed 'x'", "finding, target, by"),
        "ups": ({"quite": 7}, "durable_ups: ", "quiet"),
        "attestations": (
            [{}, attested("host_honours_fulsh")],
            "durable_attestations[1]: claim",
            "host_honours_flush?",
        ),
    }
    given = {name: value for name, (value, _says, _accepted) in wrong.items()}
    host = settled("flush", mounts=PG)
    BARE(host)
    found = assess(inputs(**{**given, "mounts": ["/srv/pgdat"]}), collect(host, NOW), NOW)
    refused = [each for each in found["reasons"] if each["id"] == "host.input"]
    assert all(each["fix"] for each in refused)
    said = [f"{each['reason']}; {each['fix']}" for each in refused]
    for _value, says, accepted in wrong.values():
        (row,) = [each for each in said if says in each]
        assert accepted in row
    assert "durable_overrides: atime: observed 'never'" in " ".join(said)
    assert (found["verdict"], found["changes"]) == ("blocked", [])


def test_beside_bad_input_a_wrong_mount_and_a_risk_are_reported_too() -> None:
    host = settled("flush", mounts=PG)
    BARE(host)
    given = inputs("strcit", mounts=["/srv/pgdat", "/srv/pgdata"], accept=["x"])
    found = assess(given, collect(host, NOW), NOW)
    assert [each["id"] for each in found["reasons"]] == [
        "risk.barrier_off",
        "host.input",
        "host.input",
        "unknown.path",
    ]
    assert found["verdict"] == "at_risk"
    assert found["reasons"][-1]["fix"].endswith("Did you mean /srv/pgdata?")


@pytest.mark.parametrize("verdict", ["unreachable", "unknown"])
def test_a_host_without_facts_is_not_lost(verdict: str) -> None:
    found = unobserved(inputs(), Reason("host.unreachable", verdict, "no route"))
    assert (found["verdict"], found["why"], found["plan"]) == (verdict, ["no route"], NO_PLAN)
    assert set(found) == set(look(SmallHost()))


@pytest.mark.parametrize(("target", "state"), [("/", "unmet"), ("/srv/pgdata", "met")])
def test_barriers_stay_on_where_more_than_a_database_lies(target: str, state: str) -> None:
    found = look(SmallHost(), "disposable", mounts=[target], accept_data_loss=True)
    (need,) = [need for need in found["requirements"] if need["name"] == "only_database_paths"]
    assert need["state"] == state
    assert ("loosen" in {row["phase"] for row in found["changes"]}) == (state == "met")


def test_barriers_stay_on_where_a_database_was_only_found() -> None:
    databases = [{"engine": "postgresql", "paths": ["/srv/pgdata/base"]}]
    found = look(SmallHost(), "disposable", mounts=None, databases=databases, accept_data_loss=True)
    assert found["verdict"] == "blocked"
    assert found["plan"]["loosen"] == {}


def test_what_is_withheld_is_one_reason_and_no_run_is_its_fix() -> None:
    found = look(settled("strict", mounts=PG), "disposable", mounts=PG)
    held = [each for each in found["reasons"] if "barrier" in each["reason"]]
    assert [each["id"] for each in held] == ["withheld.requirement"] * len(PG)
    assert "run harden_db" not in {each["fix"] for each in held}
    (row, *_others) = [row for row in found["settings"] if row["setting"] == "barrier"]
    assert row["verdict"] == "drift_running"


def test_tightening_is_planned_even_when_loosening_is_withheld() -> None:
    host = SmallHost()
    host.disk("sda").cache = "disabled"
    host.mounts["/srv/pgdata"].barrier = "off"
    found = look(host, "flush", mounts=(*PG, "/srv/maria"))
    assert found["plan"]["tighten"]["mount_options"][0]["barrier"] == "on"
    assert found["plan"]["loosen"] == {}
    assert "write_cache: enabled is withheld until the requirements are met" in "\n".join(found["why"])


@pytest.mark.parametrize("profile", PROFILES)
def test_an_attestation_that_has_expired_withholds_what_loosens_and_nothing_else(profile: str) -> None:
    over = {**attested(), "expires": "2026-01-30"}
    host = SmallHost()
    host.disk("sda").cache, host.disk("sda").cache_mode = "disabled", "write through"
    BARE(host)
    without = look(host, profile, mounts=PG, accept_data_loss=True)
    found = look(host, profile, mounts=PG, accept_data_loss=True, attestations=[over])
    assert found["plan"] == {**without["plan"], "loosen": {}}
    assert found["verdict"] == "blocked"
    (need,) = [need for need in found["requirements"] if need["name"] == "attestation_in_force"]
    assert (need["state"], need["remedy"]) == (
        "unmet",
        "check the claim, then set a later expires in durable_attestations[0], or delete it",
    )
    assert "durable_attestations[0]: power_loss_protection by A. Person expired on 2026-01-30" in "\n".join(
        found["why"]
    )
    assert found["attestations"] == []


def test_what_stood_on_an_expired_attestation_does_not_hold_any_more() -> None:
    host = settled("protected", mounts=PG, attestations=[attested()])
    assert look(host, "protected", mounts=PG, attestations=[attested()])["verdict"] == "attested"
    over = {**attested(), "expires": "2026-01-30"}
    found = look(host, "protected", mounts=PG, attestations=[over])
    unmet = {need["name"] for need in found["requirements"] if need["state"] == "unmet"}
    assert (found["verdict"], unmet) == ("blocked", {"cache_non_volatile", "attestation_in_force"})
    # Renewed in another place it is over and done with.
    assert look(host, "protected", mounts=PG, attestations=[over, attested()])["verdict"] == "attested"
    elsewhere = attested(target="serial:OTHER")
    assert look(host, "protected", mounts=PG, attestations=[over, elsewhere])["verdict"] == "blocked"


def test_a_weaker_override_needs_a_word() -> None:
    weaker = {"overrides": {"write_cache": "enabled"}, "mounts": PG}
    host = settled("strict", mounts=PG)
    refused = look(host, "strict", **weaker)
    assert (refused["verdict"], refused["plan"]["loosen"]) == ("blocked", {})
    allowed = look(host, "strict", **weaker, attestations=[attested()])
    assert "write_cache" in allowed["plan"]["loosen"]


def words(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every observed word of the facts."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in (
                "evidence",
                "time",
                "boot_id",
                "targets",
                "target",
                "name",
                "source",
                "device_number",
            ):
                yield from words(item, (*path, key))
    elif isinstance(value, list):
        if path[-1] == "disks" and len(path) > 1:
            yield path
        else:
            for index, item in enumerate(value):
                yield from words(item, (*path, index))
    elif isinstance(value, str):
        yield path


def replaced(storage: dict[str, Any], path: tuple[Any, ...], word: Any) -> dict[str, Any]:
    changed = copy.deepcopy(storage)
    part = changed
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = word
    return changed


STATES = {
    "fresh": SmallHost,
    "strict": lambda: settled("strict"),
    "flush": lambda: settled("flush"),
    "disposable": lambda: settled("disposable", accept_data_loss=True),
}
#: The words on which a promise of commits rests.
SAFETY = ("barrier", "data_mode", "kernel", "device")


@pytest.mark.every_python_alike
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("profile", PROFILES)
def test_unknown_never_improves_a_verdict(state: str, profile: str) -> None:
    storage = collect(STATES[state](), NOW)
    given_inputs = inputs(profile, accept_data_loss=True, attestations=[attested("host_honours_flush")])
    before = VERDICTS.index(assess(given_inputs, storage, NOW)["verdict"])
    for path in words(storage):
        found = assess(given_inputs, replaced(storage, path, "unknown"), NOW)["verdict"]
        # A risk that is no longer seen may become unknown, and nothing better.
        assert VERDICTS.index(found) <= max(before, VERDICTS.index("unknown")), path


@pytest.mark.parametrize("profile", ["strict", "flush"])
def test_without_a_word_that_it_rests_on_no_host_is_well(profile: str) -> None:
    storage = collect(settled(profile), NOW)
    managed = {"sda", "sdb", "vdb"}
    checked = 0
    for path in words(storage):
        part, index = path[0], path[1] if len(path) > 1 else None
        entry = storage[part][index] if part in ("disks", "mounts") else {}
        of_managed = entry.get("name") in managed or entry.get("target") in MOUNTS
        xfs = entry.get("fstype") == "xfs" and path[-1] == "data_mode"
        if (
            of_managed
            and not xfs
            and (
                (path[-1] in SAFETY and len(path) > 2 and path[-1] != "device")
                or path[-2:] == ("write_cache", "device")
            )
        ):
            checked += 1
            assert assess(inputs(profile), replaced(storage, path, "unknown"), NOW)["verdict"] == "unknown", (
                path
            )
    assert checked >= 3 * 2 + 2 * 4


@settings(max_examples=40)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda s: st.lists(s, max_size=2) | st.dictionaries(st.text(max_size=5), s, max_size=2),
    )
)
def test_nothing_that_a_user_writes_raises(value: Any) -> None:
    storage = collect(SmallHost(), NOW)
    for name in (
        "profile",
        "own",
        "overrides",
        "attestations",
        "mounts",
        "databases",
        "mount_profiles",
        "ignore",
        "allow",
        "accept_data_loss",
    ):
        found = assess(inputs()._replace(**{name: value}), storage, NOW)
        assert found["verdict"] in VERDICTS


def test_every_row_says_what_the_report_promises() -> None:
    fields = {
        "layer",
        "target",
        "setting",
        "class",
        "wanted_running",
        "wanted_persisted",
        "running",
        "persisted",
        "verdict",
        "phase",
        "evidence",
        "why",
        "remedy",
        "profile",
        "finding",
    }
    found = look(SmallHost())
    assert {frozenset(row) for row in found["settings"]} == {frozenset(fields)}
    drifting = [row for row in found["settings"] if row["verdict"] != "ok"]
    assert [row for row in drifting if not (row["why"] and row["remedy"])] == []
    assert {need["state"] for need in found["requirements"]} <= {"met", "attested", "unverified", "unmet"}
    assert shipped()["strict"]["rests_on"] == "device"


class TestFstabThatStopsTheBoot:
    """A line with an option that its file system does not know mounts nothing."""

    @pytest.mark.parametrize(
        ("pattern", "line", "said"),
        [
            (r"ext4\tnoatime|ext4\tdefaults\S*", "ext4\tnoatime,barier=1", "ext4 does not know barier=1"),
            (
                r"ext4\tnoatime|ext4\tdefaults\S*",
                "ext4\tnoatime,defaultz,nofail",
                "boot does not mount /srv/pgdata",
            ),
            (
                "/ ext4 errors=remount-ro",
                "/ ext4 noatmie",
                "the next boot leaves / read-only: ext4 does not know noatmie",
            ),
            ("xfs defaults", "xfs nobarrier", "the next boot stops: xfs does not know nobarrier"),
            ("^", "/dev/sdz /mnt ext4 noatmie 0 0\n", "/etc/fstab line 1 names for /mnt"),
        ],
    )
    def test_it_is_named_and_not_green(self, pattern: str, line: str, said: str) -> None:
        host = settled("strict", mounts=PG)
        host.files["/etc/fstab"] = re.sub(pattern, line, host.read("/etc/fstab"), count=1)
        found = look(host, "strict", mounts=PG)
        (row,) = [row for row in found["settings"] if row["setting"] == "options"]
        assert (found["verdict"], row["verdict"], row["phase"]) == ("drifted", "drift_persisted", None)
        assert said in row["why"]
        assert row["remedy"].startswith("correct or remove ")
        assert found["plan"] == NO_PLAN

    @pytest.mark.parametrize("option", ["nofail", "noauto"])
    def test_a_line_that_neither_boot_nor_database_needs_is_left_alone(self, option: str) -> None:
        host = settled("strict", mounts=PG)
        host.files["/etc/fstab"] = f"{host.read('/etc/fstab')}/dev/sdz /mnt xfs nobarrier,{option} 0 0\n"
        assert look(host, "strict", mounts=PG)["verdict"] == "durable"

    def test_a_unit_that_mounts_a_database_counts_as_a_line(self) -> None:
        host = settled("strict", mounts=PG)
        unit = "/etc/systemd/system/srv-pgdata.mount"
        host.files[unit] = "[Mount]\nWhat=/dev/sda1\nOptions=barrier=1,noatmie,noatime\n"
        found = look(host, "strict", mounts=PG)
        (row,) = [row for row in found["settings"] if row["setting"] == "options"]
        assert (found["verdict"], row["remedy"]) == (
            "drifted",
            f"correct or remove noatmie in {unit} (did you mean noatime?)",
        )

    def test_what_a_run_takes_out_of_a_line_of_xfs_is_named_once(self) -> None:
        host = settled("strict", mounts=("/srv/mssql",))
        host.files["/etc/fstab"] = re.sub(r"xfs \S+", "xfs nobarrier,inode64", host.read("/etc/fstab"))
        found = look(host, "strict", mounts=("/srv/mssql",))
        drifting = [row["setting"] for row in found["settings"] if row["verdict"] != "ok"]
        assert "options" not in drifting
        assert "barrier" in drifting
        assert found["plan"]["tighten"]["mount_options"]

    def test_what_a_run_takes_out_of_a_unit_of_xfs_is_named_once(self) -> None:
        host = settled("strict", mounts=("/srv/mssql",))
        unit = "/etc/systemd/system/srv-mssql.mount"
        host.files[unit] = "[Mount]\nWhat=/dev/sdb1\nOptions=nobarrier\n"
        found = look(host, "strict", mounts=("/srv/mssql",))
        assert "options" not in [row["setting"] for row in found["settings"]]

    def test_a_line_of_xfs_that_another_contradicts_is_nothing_that_a_run_mends(self) -> None:
        host = settled("strict", mounts=("/srv/mssql",))
        host.files["/etc/fstab"] += "/dev/sdb1 /mnt/copy xfs defaults,nofail 0 0\n"
        host.files["/etc/fstab"] = re.sub(r"mssql xfs \S+", "mssql xfs nobarrier", host.read("/etc/fstab"))
        found = look(host, "strict", mounts=("/srv/mssql",))
        assert "options" in [row["setting"] for row in found["settings"]]

    @pytest.mark.fact(54)
    @pytest.mark.parametrize("target", ["/srv/pgdata", "/"])
    def test_a_mode_that_the_line_is_refused_with_is_not_green(self, target: str) -> None:
        """The kernel refuses journal_async_commit with ordered data."""
        host = settled("strict", mounts=(target,))
        line = next(
            row for row in host.read("/etc/fstab").split("\n") if f"{target} " in row.replace("\t", " ")
        )
        fields = line.replace("\t", " ").split(" ")
        changed = " ".join([*fields[:3], f"{fields[3]},journal_async_commit", *fields[4:]])
        host.files["/etc/fstab"] = host.read("/etc/fstab").replace(line, changed)
        host.mounts[target].data = "writeback"
        found = look(host, "strict", mounts=(target,))
        (row,) = [row for row in found["settings"] if row["setting"] == "data_mode"]
        assert (row["verdict"], row["phase"]) == ("drift_persisted", None)
        assert "the next boot cannot mount" in row["why"]
        assert "remove journal_async_commit from /etc/fstab line" in row["remedy"]
        assert found["pending"] == []

    @pytest.mark.fact(7)
    @pytest.mark.parametrize(
        ("target", "release", "flags", "refused"),
        [
            ("/", "6.18.4", "", True),
            ("/", "6.18.4", "rootflags=nodelalloc", False),
            ("/", "6.1.0-26-amd64", "", False),
            # It is not remounted at boot.
            ("/srv/pgdata", "6.18.4", "", False),
        ],
    )
    def test_delayed_allocation_that_the_boots_remount_would_turn_off_is_not_green(
        self, target: str, release: str, flags: str, refused: bool
    ) -> None:
        host = settled("strict", mounts=(target,))
        host.files["/proc/sys/kernel/osrelease"] = f"{release}\n"
        host.files["/proc/cmdline"] = f"root=/dev/vda1 ro {flags}\n"
        host.files["/etc/fstab"] = re.sub(
            rf"(?m)(\s{target}\s+ext4\s+)", r"\1nodelalloc,", host.read("/etc/fstab")
        )
        found = look(host, "strict", mounts=(target,))
        (row,) = [row for row in found["settings"] if row["setting"] == "data_mode"]
        assert row["verdict"] == ("drift_persisted" if refused else "ok")
        if refused:
            assert row["why"] == (
                "the next boot cannot mount / for writing: the kernel makes / writable only without nodelalloc, which"
                " /etc/fstab line 3 names for /"
            )
            assert row["remedy"].startswith("remove nodelalloc from /etc/fstab line 3")
            assert (row["phase"], found["pending"]) == (None, [])

    @pytest.mark.fact(5)
    @pytest.mark.parametrize("keeps", [True, False])
    @pytest.mark.parametrize(
        ("superblock", "flags", "named", "refused"),
        [
            ((), "", "journal", True),
            (("data=journal",), "", "ordered", True),
            (("data=journal",), "rootflags=data=ordered", "journal", True),
            ((), "", "ordered", False),
            (("data=journal",), "", "journal", False),
            ((), "rootflags=data=journal", "journal", False),
        ],
    )
    def test_a_mode_of_the_roots_line_that_its_remount_would_have_to_change_is_not_green(
        self, superblock: tuple[str, ...], flags: str, named: str, refused: bool, keeps: bool
    ) -> None:
        host = settled("strict", mounts=("/",))
        host.mounts["/"].sb_options = superblock
        host.files["/proc/cmdline"] = f"root=/dev/vda1 ro {flags}\n"
        host.files["/etc/fstab"] = re.sub(
            r"(?m)(\s/\s+ext4\s+)", rf"\1data={named},", host.read("/etc/fstab")
        )
        overrides = {"data_mode": "keep"} if keeps else None
        found = look(host, "strict", mounts=("/",), overrides=overrides)
        (row,) = [row for row in found["settings"] if row["setting"] == "data_mode"]
        assert (row["verdict"], row["phase"]) == ("drift_persisted" if refused else "ok", None)
        if refused:
            assert row["persisted"] == "refused"
            assert f"the kernel makes / writable only without data={named}" in row["why"]
            assert row["remedy"].startswith(f"remove data={named} from /etc/fstab line 3")

    @pytest.mark.fact(5)
    @pytest.mark.fact(54)
    @pytest.mark.parametrize(
        ("target", "option", "effect"),
        [
            ("/", "data=journal", "leaves / read-only"),
            ("/", "journal_async_commit", "leaves / read-only"),
            ("/", "nodelalloc", "leaves / read-only"),
            ("/", "data=ordered", ""),
            ("/srv/pgdata", "journal_async_commit", "stops"),
            ("/srv/pgdata", "journal_async_commit,nofail", ""),
            ("/srv/pgdata", "data=journal", ""),
        ],
    )
    def test_what_the_kernel_refuses_where_no_database_lies_is_not_green_either(
        self, target: str, option: str, effect: str
    ) -> None:
        host = settled("strict", mounts=("/srv/mssql",))
        host.files["/proc/sys/kernel/osrelease"] = "6.18.4\n"
        host.files["/etc/fstab"] = re.sub(
            rf"(?m)(\s{target}\s+ext4\s+)", rf"\1{option},", host.read("/etc/fstab")
        )
        found = look(host, "strict", mounts=("/srv/mssql",))
        rows = [row for row in found["settings"] if row["target"] == target]
        assert [row["verdict"] for row in rows] == (["drift_persisted"] if effect else [])
        assert all(f"the next boot {effect}: the kernel " in row["why"] for row in rows)
        assert all(f"remove {option} from /etc/fstab line" in row["remedy"] for row in rows)

    @pytest.mark.fact(54)
    def test_a_mode_that_would_be_refused_is_not_planned(self) -> None:
        host = settled("strict", mounts=("/",))
        vars(host.mounts["/"]).update(data="writeback", sb_options=("data=writeback",))
        host.files["/etc/fstab"] = host.read("/etc/fstab").replace("/ ext4 ", "/ ext4 journal_async_commit,")
        found = look(host, "strict", mounts=("/",))
        (row,) = [row for row in found["settings"] if row["setting"] == "data_mode"]
        assert (row["verdict"], row["phase"], found["pending"]) == ("drift_persisted", None, [])
        assert "remove journal_async_commit from" in row["remedy"]


def test_bare_mount_over_an_unknown_stack_is_at_risk() -> None:
    """A bare mount on a disk whose cache is unknown is at_risk; on a stack that is unknown it is only `unknown`."""
    host = SmallHost()
    host.mounts["/srv/pgdata"].barrier = "off"
    host.links["/sys/dev/block/8:1"] = "/sys/devices/virtual/block/dm-0"
    host.files["/proc/fs/ext4/dm-0/options"] = host.files["/proc/fs/ext4/sda1/options"]
    assert look(host, "strict", mounts=["/srv/pgdata"])["verdict"] == "at_risk"


@pytest.mark.parametrize(
    ("mount", "line", "is_named"),
    [
        ({"flags": ("ro",)}, "defaults", True),
        ({"sb_flag": "ro"}, "defaults", True),
        ({"super_options": ("emergency_ro",)}, "defaults", True),
        ({}, "defaults", False),
        # As wanted.
        ({"flags": ("ro",)}, "ro", False),
    ],
)
def test_a_file_system_that_takes_no_writes_is_named(
    mount: dict[str, Any], line: str, is_named: bool
) -> None:
    """The kernel makes it read-only after an error, and all of its settings stay right."""
    host = SmallHost()
    vars(host.mounts["/srv/pgdata"]).update(mount)
    table = host.read("/etc/fstab")
    (found,) = (row for row in table.splitlines() if row.split()[1:2] == ["/srv/pgdata"])
    words = found.split()
    host.files["/etc/fstab"] = table.replace(found, " ".join([*words[:3], line, *words[4:]]))
    notes = [note for note in look(host, mounts=PG)["warnings"] if "is read-only" in note]
    assert [note.startswith("/srv/pgdata is read-only") for note in notes] == [True] * is_named
