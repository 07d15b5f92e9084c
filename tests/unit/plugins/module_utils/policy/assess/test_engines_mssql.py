# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SQL Server's two safe ways, and what the vendor's article on FUA says of each combination."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql import rules as mssql
from ansible_collections.durable.dbhost.plugins.module_utils.engines.rules import Subject
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess.facts_check import explained
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.report import with_outcomes
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import choose
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ...fakes.runs import (
    NOW,
    attested,
    enforce,
    expect_cures,
    inputs,
)
from ...fakes.small_host import BOOT_ID, SmallHost
from .test_engines import instance, row

CU18 = "16.0.4185.3"
FUA_OF_HOST = {**attested("host_honours_fua"), "target": "host"}


def words(flag3979: str, flag3982: str, through: str, alternate: str) -> dict[str, str]:
    return {
        "traceflag3979": flag3979,
        "traceflag3982": flag3982,
        "writethrough": through,
        "alternatewritethrough": alternate,
    }


DEFAULT = words("off", "off", "1", "1")


def server(
    runs: dict[str, str] | None = None, kept: dict[str, str] | None = None, **given: Any
) -> dict[str, Any]:
    """Return SQL Server on /srv/mssql, an XFS of its own."""
    runs = DEFAULT if runs is None else runs
    kept = runs if kept is None else kept
    settings = {
        name: {"running": word, "persisted": kept[name], "source": "x", "reason": None, "from": None}
        for name, word in runs.items()
    }
    return instance(
        "mssql", **{"version": CU18, "directories": ["/srv/mssql"], "settings": settings, **given}
    )


def machine(fua: bool) -> SmallHost:
    """Return a host whose disk below /srv/mssql takes FUA, or does not."""
    host = SmallHost()
    disk = host.disk("sdb")
    disk.fua = "1" if fua else "0"
    return host


def judged(found: dict[str, Any], host: SmallHost | None = None, **given: Any) -> dict[str, Any]:
    engines = {"boot_id": BOOT_ID, "time": NOW, "engines": [found], "unattributed": [], "writers": []}
    given = {"mounts": ["/srv/mssql"], "profile": "flush", **given}
    return expect_cures(assess(inputs(**given), collect(host or machine(fua=False), NOW), NOW, engines))


def planned(found: dict[str, Any]) -> dict[str, Any]:
    """Return {phase: settings} of what a run would set."""
    return {
        phase: layers["mssql"][0]["settings"] for phase, layers in found["plan"].items() if "mssql" in layers
    }


#: The article's five installations, and what its tables of safe settings make of their neighbours: which
#: combinations keep commits whatever the disk is (safe), which only when every cache below does (direct).
INSTALLATIONS = [
    # fua, 3979, 3982, writethrough, alternatewritethrough, safe, what a run sets
    pytest.param(True, ("on", "off", "1", "0"), True, {}, id="safe, fastest: FUA"),
    pytest.param(False, ("off", "on", "1", "1"), True, {}, id="safe, best grouping: forced flush"),
    pytest.param(False, ("off", "off", "1", "1"), True, {}, id="the default: forced flush"),
    pytest.param(
        False, ("on", "off", "1", "1"), True, {"tighten": {"traceflag3979": "off"}}, id="safe, midrange"
    ),
    pytest.param(
        False,
        ("on", "off", "1", "0"),
        True,
        {"tighten": {"traceflag3979": "off", "alternatewritethrough": "1"}},
        id="safe, slowest",
    ),
    pytest.param(
        False,
        ("on", "off", "0", "0"),
        False,
        {"tighten": {"traceflag3979": "off", "writethrough": "1", "alternatewritethrough": "1"}},
        id="O_DIRECT alone, no FUA below",
    ),
    pytest.param(
        True,
        ("on", "off", "0", "0"),
        False,
        {"tighten": {"writethrough": "1"}},
        id="O_DIRECT alone, FUA below",
    ),
    pytest.param(
        True,
        ("off", "off", "1", "1"),
        True,
        {"loosen": {"traceflag3979": "on", "alternatewritethrough": "0"}},
        id="forced flush where FUA would do",
    ),
    pytest.param(
        True,
        ("off", "on", "1", "1"),
        True,
        {"loosen": {"traceflag3979": "on", "traceflag3982": "off", "alternatewritethrough": "0"}},
        id="forced flush by its flag where FUA would do",
    ),
    pytest.param(
        False, ("off", "off", "0", "1"), False, {"tighten": {"writethrough": "1"}}, id="no write-through"
    ),
    pytest.param(
        False,
        ("off", "off", "0", "0"),
        False,
        {"tighten": {"writethrough": "1", "alternatewritethrough": "1"}},
        id="neither, with forced flush",
    ),
    pytest.param(
        False, ("off", "off", "1", "0"), True, {"tighten": {"alternatewritethrough": "1"}}, id="O_DSYNC alone"
    ),
]


@pytest.mark.fact(26)
@pytest.mark.fact(28)
@pytest.mark.parametrize(("fua", "seen", "safe", "wanted"), INSTALLATIONS)
def test_the_articles_installations(
    fua: bool, seen: tuple[str, str, str, str], safe: bool, wanted: dict[str, Any]
) -> None:
    """A run that is allowed to restart ends in one of the two ways, and only what loses is a risk."""
    found = judged(server(words(*seen)), machine(fua), attestations=[FUA_OF_HOST])
    assert (found["verdict"] != "at_risk") == safe, found["why"]
    assert any("mssql main can be lost" in why for why in found["why"]) == (not safe)
    assert planned(found) == wanted


@pytest.mark.fact(26)
@pytest.mark.parametrize(
    ("arrange", "given", "why"),
    [
        (lambda host: None, {"version": "14.0.3025.33"}, "2017 CU6"),
        (lambda host: None, {"version": "unknown"}, "2017 CU6"),
        (lambda host: setattr(host.disk("sdb"), "fua", "0"), {}, "FUA unsupported"),
        (lambda host: host.files.update({"/proc/sys/kernel/osrelease": "4.17.0\n"}), {}, "4.17.0"),
        (lambda host: None, {"directories": ["/srv/mssql", "/srv/pgdata"]}, "sda"),
        (
            lambda host: None,
            {"files": [{"directory": "/x", "device": "8:1", "opened": "direct", "count": 1}]},
            "sda",
        ),
        (lambda host: None, {"files": [{"directory": "/x", "device": "99:1", "count": 1}]}, "99:1"),
        (lambda host: None, {"directories": []}, "location of its files is unknown"),
        (
            lambda host: None,
            {"evidence": {"files": {"value": "partial", "source": "x", "reason": "64 of 70 processes"}}},
            "64 of 70",
        ),
        (
            lambda host: None,
            {"evidence": {"configuration": {"value": "unknown", "source": "x", "reason": "torn"}}},
            "torn",
        ),
        (
            lambda host: None,
            {"evidence": {"directories": {"value": "unknown", "source": "x", "reason": "a disk hangs"}}},
            "a disk hangs",
        ),
        (lambda host: None, {"state": "stopped", "pids": []}, "which files it will open"),
    ],
    ids=[
        "CU5",
        "no version",
        "no fua",
        "kernel",
        "directory",
        "file",
        "device",
        "nowhere",
        "partial",
        "torn",
        "links",
        "stopped",
    ],
)
def test_what_speaks_against_fua(arrange: Any, given: dict[str, Any], why: str) -> None:
    host = machine(fua=True)
    arrange(host)
    found = server(words("on", "off", "1", "0"), **given)
    storage = explained(collect(host, NOW))
    assert any(why in reason for reason in mssql.against_fua(found, storage, lambda disk: True))
    wanted = mssql.rules(Subject(found, _flush(), storage, lambda disk: True), {})
    assert {name: rule.value for name, rule in wanted.items()} == {
        "traceflag3979": "off",
        "writethrough": "1",
        "alternatewritethrough": "1",
    }


def _flush() -> Any:
    given = inputs("flush")
    return choose(given.profile, given.shipped, given.own, None)[0]


@pytest.mark.fact(26)
def test_2017_cu6_is_the_first_that_may_go_the_fua_way() -> None:
    storage = collect(machine(fua=True), NOW)
    for version, fits in (("14.0.3025.34", True), ("14.0.3025.33", False), ("14.0.3025", False)):
        assert (not mssql.against_fua(server(version=version), storage, lambda disk: True)) == fits


@pytest.mark.fact(61)
@pytest.mark.parametrize(
    ("version", "verdict", "word"),
    [
        ("14.0.3025.33", "at_risk", "14.0.3025.33 flushes nothing"),
        ("14.0.1000.169", "at_risk", "update it to 2017 CU6"),
        # Too short to tell CU5 from CU6.
        ("14.0.3025", "unknown", "its version is unknown (it was not reported)"),
        ("unknown", "unknown", "make its log of errors readable"),
        ("14.0.3025.34", "durable", None),
        ("15.0.2000.5", "durable", None),
    ],
)
def test_builds_before_2017_cu6_flush_nothing(version: str, verdict: str, word: str | None) -> None:
    """No setting makes up for it, so nothing below may become less strict either."""
    host = machine(fua=False)
    host.disk("sdb").cache = "disabled"
    found = judged(server(version=version), host)
    assert ("write_cache" in found["plan"]["loosen"]) == (word is None)
    enforce(host, judged(server(), host))
    found = judged(server(version=version), host)
    assert found["verdict"] == verdict, found["why"]
    if word is not None:
        assert any("mssql main" in why and word in why for why in found["why"])
    assert any("DBCC CHECKDB" in check for check in found["exposed"]) == (verdict == "at_risk")


OPEN_DIRECT = {
    "value": "no",
    "source": "x",
    "reason": None,
    "cause": "opened_as",
    "parameters": {"path": "/data/master.mdf", "opened": "direct"},
}
NOT_TOLD = {"value": "unknown", "source": "x", "reason": None, "cause": "no_database_open", "parameters": {}}


@pytest.mark.fact(46)
@pytest.mark.parametrize(
    ("seen", "runs", "verdict"),
    [
        (OPEN_DIRECT, words("on", "off", "1", "0"), "at_risk"),
        (OPEN_DIRECT, words("off", "off", "1", "0"), "at_risk"),
        (NOT_TOLD, words("on", "off", "1", "0"), "unknown"),
        ({}, words("on", "off", "1", "0"), "unknown"),
        # Without write-through none is asked for: that is what is wrong then.
        (OPEN_DIRECT, words("on", "off", "0", "0"), None),
        # Forced flush needs no O_DSYNC.
        (OPEN_DIRECT, words("off", "on", "1", "1"), None),
        (NOT_TOLD, words("off", "off", "1", "1"), None),
    ],
)
def test_what_rests_on_o_dsync_is_open_with_it(
    seen: dict[str, Any], runs: dict[str, str], verdict: str | None
) -> None:
    """Settings that look right are worth what its files are really open with."""
    found = judged(server(runs, evidence={"write_through": seen}), machine(fua=True))
    loses = "at_risk" if runs["writethrough"] == "0" else verdict
    assert (found["verdict"] == "at_risk") == (loses == "at_risk"), found["why"]
    lines = [why for why in found["why"] if "O_DSYNC" in why]
    assert bool(lines) == (verdict is not None)
    assert all("mssql main" in why for why in lines)
    if verdict == "at_risk":
        assert any("/data/master.mdf is open direct" in why for why in lines)


@pytest.mark.parametrize("seen", [OPEN_DIRECT, NOT_TOLD, {}])
def test_no_cache_is_turned_on_below_files_that_are_not_written_through(seen: dict[str, Any]) -> None:
    """Also where a restart, which is allowed, mends a setting: it may open its files as before."""
    host = machine(fua=True)
    host.disk("sdb").cache = "disabled"
    runs = words("on", "on", "1", "0")
    given = server(runs, evidence={"write_through": seen})
    alike = {"host": host, "attestations": [FUA_OF_HOST], "allow": ["restart_engines"]}
    assert "write_cache" not in judged(given, **alike)["plan"]["loosen"]
    assert "write_cache" in judged(server(runs), **alike)["plan"]["loosen"]


def test_of_a_stopped_server_no_open_file_is_asked() -> None:
    kept = words("on", "off", "1", "0")
    found = judged(
        server(dict.fromkeys(kept, "stopped"), kept, state="stopped", evidence={"write_through": {}})
    )
    assert not any("O_DSYNC" in why for why in found["why"])


@pytest.mark.fact(61)
@pytest.mark.parametrize("version", ["14.0.3025.33", "unknown"])
def test_a_stopped_build_that_will_flush_nothing_is_not_well(version: str) -> None:
    kept = dict.fromkeys(DEFAULT, "stopped")
    found = judged(server(kept, DEFAULT, version=version, state="stopped", pids=[]))
    assert found["verdict"] == "unknown"
    assert any(version in why or "version is unknown" in why for why in found["why"])


@pytest.mark.fact(61)
@pytest.mark.parametrize("version", ["14.0.3025.33", "unknown"])
def test_where_loss_is_accepted_its_build_does_not_matter(version: str) -> None:
    engines = {"time": NOW, "engines": [server(version=version)], "unattributed": [], "writers": []}
    given = inputs("disposable", mounts=["/srv/mssql"], accept_data_loss=True)
    found = assess(given, collect(machine(fua=False), NOW), NOW, engines)
    assert not any("version" in why for why in found["why"])


@pytest.mark.fact(26)
def test_ext4_and_data_journal() -> None:
    """The direct writes of data=journal are buffered ones; ext4 as it comes is well from 5.6."""
    host = SmallHost()
    host.disk("sda").fua = "1"
    found = server(directories=["/srv/pgdata"])
    assert mssql.against_fua(found, collect(host, NOW), lambda disk: True) == []
    host.mounts["/srv/pgdata"].data = "journal"
    (why,) = mssql.against_fua(found, explained(collect(host, NOW)), lambda disk: True)
    assert "data=journal" in why


@pytest.mark.parametrize(("cache", "fits"), [("disabled", False), ("none", True)])
def test_without_fua_a_cache_that_is_only_switched_off_is_not_enough(cache: str, fits: bool) -> None:
    """It may come on, in this very run too."""
    host = SmallHost()
    vars(host.disk("vdb")).update(cache="disabled", cache_mode="write through", fua="0")
    storage = collect(host, NOW)
    (disk,) = [disk for disk in storage["disks"] if disk["name"] == "vdb"]
    disk["write_cache"]["device"] = cache
    found = mssql.against_fua(server(directories=["/srv/maria"]), storage, lambda disk: True)
    why = "vdb (/srv/maria) does not take FUA, and its cache is only switched off"
    assert found == ([] if fits else [why])


@pytest.mark.fact(26)
def test_a_disk_that_only_claims_to_take_fua_has_to_be_attested() -> None:
    host = machine(fua=True)
    storage = collect(host, NOW)
    (why,) = mssql.against_fua(server(), storage, lambda disk: False)
    assert "attest host_honours_fua for " in why
    assert "(check" not in why
    storage["platform"] = "hyperv"
    (why,) = mssql.against_fua(server(), storage, lambda disk: False)
    assert "WriteCacheAndFUAEnabled" in why
    assert mssql.against_fua(server(), storage, lambda disk: True) == []


def test_moving_the_data_to_a_disk_without_fua_flips_the_settings_and_names_the_disk() -> None:
    host = machine(fua=True)
    good = words("on", "off", "1", "0")
    assert planned(judged(server(good), host, attestations=[FUA_OF_HOST])) == {}
    moved = judged(
        server(good, directories=["/srv/mssql", "/srv/maria"]),
        host,
        mounts=["/srv/mssql", "/srv/maria"],
        attestations=[FUA_OF_HOST],
    )
    assert planned(moved) == {"tighten": {"traceflag3979": "off", "alternatewritethrough": "1"}}
    assert "vdb" in row(moved, "traceflag3979")["why"]


@pytest.mark.fact(28)
@pytest.mark.parametrize(
    ("version", "alternate", "warned"),
    [
        ("16.0.4185.2", "1", True),
        ("16.0.1000.6", "1", True),
        (CU18, "1", False),
        ("16.0.4185.2", "0", False),
        ("15.0.4123.1", "1", False),
        ("17.0.1000.7", "1", False),
        ("unknown", "1", True),
        ("unknown", "0", False),
    ],
)
def test_2022_before_cu18_has_a_race(version: str, alternate: str, warned: bool) -> None:
    found = judged(server({**DEFAULT, "alternatewritethrough": alternate}, version=version))
    assert any("CU18" in warning for warning in found["warnings"]) == warned


@pytest.mark.fact(26)
@pytest.mark.parametrize("profile", ["strict", "flush"])
@pytest.mark.parametrize("cache_mode", ["write back", "write through"])
def test_a_cache_that_is_only_switched_off_is_no_fua(profile: str, cache_mode: str) -> None:
    """It comes on at a reset, or in the same run: the server would be set one way, and back by the next run."""
    host = machine(fua=False)
    host.disk("sdb").cache, host.disk("sdb").cache_mode = "disabled", cache_mode
    for _run in range(2):
        found = judged(server(), host, profile=profile)
        assert planned(found) == {}
        enforce(host, found)
    fua = server(words("on", "off", "1", "0"))
    assert "sdb" in row(judged(fua, host, profile=profile), "traceflag3979")["why"]


@pytest.mark.fact(28)
def test_slips_are_warnings() -> None:
    given = server()
    assert not any("did you mean" in warning for warning in judged(given)["warnings"])
    given["evidence"]["slips"] = {"value": "seen", "source": "x", "reason": "unknown key a (did you mean b?)"}
    (warning,) = [text for text in judged(given)["warnings"] if "did you mean" in text]
    assert warning.startswith('mssql main: "unknown key a (did you mean b?)": SQL Server ignores it; correct')


@pytest.mark.fact(26)
def test_a_disk_without_a_cache_needs_no_fua() -> None:
    storage = collect(machine(fua=False), NOW)
    (disk,) = [disk for disk in storage["disks"] if disk["name"] == "sdb"]
    disk["write_cache"]["device"] = "none"
    (mount,) = [mount for mount in storage["mounts"] if mount["target"] == "/srv/mssql"]
    mount["fua_path"] = "yes"
    assert mssql.against_fua(server(), storage, lambda disk: True) == []


@pytest.mark.fact(28)
@pytest.mark.parametrize("fua", [True, False])
def test_a_contradiction_does_not_keep_write_through_away(fua: bool) -> None:
    """The layer refuses to leave both flags on: so the one that has to go goes in the same step."""
    found = judged(server(words("on", "on", "0", "0")), machine(fua), attestations=[FUA_OF_HOST])
    wanted = planned(found)["tighten"]
    assert wanted["writethrough"] == "1"
    assert wanted["traceflag3982" if fua else "traceflag3979"] == "off"


@pytest.mark.fact(28)
@pytest.mark.parametrize(("fua", "flag"), [(True, "traceflag3982"), (False, "traceflag3979")])
def test_a_flag_on_the_command_line_does_not_keep_write_through_away(fua: bool, flag: str) -> None:
    """mssql-conf does not reach it, and the layer would refuse the whole step."""
    given = server(words("on", "on", "0", "0"))
    given["settings"][flag]["held"] = {"fix": "remove_trace_flag", "parameters": {"flag": flag[-4:]}}
    found = judged(given, machine(fua), attestations=[FUA_OF_HOST])
    wanted = planned(found)["tighten"]
    assert wanted["writethrough"] == "1"
    assert flag not in wanted
    assert f"remove -T{flag[-4:]} from ExecStart=" in row(found, flag)["remedy"]


@pytest.mark.fact(26)
def test_two_flags_that_contradict_each_other() -> None:
    found = judged(server(words("on", "on", "1", "0")), machine(fua=True), attestations=[FUA_OF_HOST])
    assert any("contradict" in warning for warning in found["warnings"])
    assert any(
        warning.endswith("; run mssql-conf traceflag 3982 off, then restart it")
        for warning in found["warnings"]
    )
    # Without FUA only flushes keep commits: the flag that takes them away has to go.
    found = judged(server(words("on", "on", "1", "0")), machine(fua=False))
    assert any(
        warning.endswith("; run mssql-conf traceflag 3979 off, then restart it")
        for warning in found["warnings"]
    )
    found = judged(server(words("on", "on", "1", "0")), machine(fua=True), attestations=[FUA_OF_HOST])
    assert row(found, "traceflag3982")["verdict"] == "drift_persisted"
    assert not any("contradict" in warning for warning in judged(server())["warnings"])


@pytest.mark.fact(28)
@pytest.mark.parametrize(
    ("runs", "risky"),
    [
        (words("on", "off", "0", "0"), True),
        (words("off", "on", "0", "1"), True),
        (words("on", "off", "false", "0"), True),
        (words("off", "off", "false", "1"), False),
        (words("on", "off", "unknown", "unknown"), False),
        (words("on", "off", "1", "0"), False),
    ],
)
def test_what_is_a_risk(runs: dict[str, str], risky: bool) -> None:
    """A protected cache does not make 0/0 safe: fresh extents were never written to the journal."""
    protected = attested("power_loss_protection")
    found = judged(server(runs), attestations=[{**protected, "target": "serial:QEMU_HARDDISK_SATA0002"}])
    assert (found["verdict"] == "at_risk") == risky
    assert any("DBCC CHECKDB" in check for check in found["exposed"]) == risky
    if "false" in runs.values():
        assert row(found, "writethrough")["verdict"].startswith("drift")


def test_the_fix_of_writes_that_nothing_flushes_sets_forced_flush() -> None:
    assert mssql.NOTHING_FLUSHES.fix == (
        "run mssql-conf set control.writethrough 1, mssql-conf set control.alternatewritethrough 1 and mssql-conf traceflag"
        " 3979 off, then restart it (through its cluster, if any)"
    )


@pytest.mark.fact(28)
@pytest.mark.parametrize(("runs", "turned_on"), [("0", False), ("unknown", False), ("1", True)])
def test_no_cache_is_turned_on_before_write_through_runs(runs: str, turned_on: bool) -> None:
    """Its file is right, and counts from the next start."""
    host = machine(fua=False)
    host.disk("sdb").cache = "disabled"
    found = judged(server({**DEFAULT, "writethrough": runs}, DEFAULT), host)
    assert ("write_cache" in found["plan"]["loosen"]) == turned_on


@pytest.mark.fact(28)
def test_of_a_stopped_server_nothing_is_a_risk_and_its_next_start_counts() -> None:
    kept = words("on", "off", "0", "0")
    found = judged(server(dict.fromkeys(kept, "stopped"), kept, state="stopped", pids=[]))
    assert found["verdict"] == "drifted"
    assert row(found, "writethrough")["verdict"] == "drift_persisted"


@pytest.mark.fact(29)
def test_a_trace_flag_that_waits_for_a_restart_is_pending() -> None:
    found = judged(server(words("on", "off", "1", "1"), DEFAULT))
    assert row(found, "traceflag3979")["verdict"] == "pending"
    assert [(wait["setting"], wait["needs"]) for wait in found["pending"]] == [("traceflag3979", "restart")]
    assert planned(found) == {}
    assert planned(judged(server(words("on", "off", "1", "1"), DEFAULT), allow=["restart_engines"])) == {
        "tighten": {"traceflag3979": "off"}
    }


@pytest.mark.fact(49)
def test_what_was_not_asked_is_said() -> None:
    asked = {
        "delayed_durability": {"value": "unknown", "source": "sys.databases", "reason": "it was not asked"}
    }
    found = judged(server(evidence=asked))
    assert any("DELAYED_DURABILITY is unknown" in warning for warning in found["warnings"])


@pytest.mark.fact(49)
def test_databases_that_the_login_cannot_see_have_their_fix() -> None:
    hidden = {"value": "unknown", "source": "sys.databases", "reason": None}
    evidence = {**hidden, "cause": "databases_hidden", "parameters": {}}
    found = judged(server(evidence={"delayed_durability": evidence}))
    (note,) = (each for each in found["notes"] if each["id"] == "note.mssql.delayed_durability")
    assert note["fix"].startswith("grant VIEW ANY DATABASE to the login")


@pytest.mark.fact(49)
@pytest.mark.parametrize(
    ("value", "at_risk", "note"),
    [("disabled", False, False), ("allowed", False, True), ("forced", True, False)],
)
def test_delayed_durability_of_its_databases(value: str, at_risk: bool, note: bool) -> None:
    asked = {"delayed_durability": {"value": value, "source": "sys.databases", "reason": None}}
    found = judged(server(evidence=asked))
    assert (found["verdict"] == "at_risk") is at_risk
    assert any("DELAYED_DURABILITY = FORCED" in why for why in found["why"]) is at_risk
    assert any("DELAYED_DURABILITY = ALLOWED" in warning for warning in found["warnings"]) is note


def test_where_loss_is_accepted_nothing_is_asked_of_it() -> None:
    engines = {
        "boot_id": BOOT_ID,
        "time": NOW,
        "engines": [server(words("on", "off", "0", "0"))],
        "unattributed": [],
        "writers": [],
    }
    given = inputs("disposable", mounts=["/srv/mssql"], accept_data_loss=True)
    found = assess(given, collect(machine(fua=False), NOW), NOW, engines)
    assert not [row for row in found["settings"] if row["layer"] == "mssql"]


#: Trace flags 3979 and 3982, writethrough, alternatewritethrough.
COMBINATIONS = list(itertools.product(("on", "off"), ("on", "off"), ("0", "1"), ("0", "1")))


@pytest.mark.fact(26)
@pytest.mark.fact(28)
@pytest.mark.parametrize("fua", [False, True], ids=["no FUA below", "FUA below"])
@pytest.mark.parametrize("seen", COMBINATIONS, ids="-".join)
def test_every_combination_ends_in_one_of_the_two_safe_ways(
    fua: bool, seen: tuple[str, str, str, str]
) -> None:
    """One run with its restart; only without write-through were commits at risk before it."""
    before = words(*seen)
    found = judged(server(before), machine(fua), attestations=[FUA_OF_HOST], allow=["restart_engines"])
    assert (found["verdict"] == "at_risk") == (before["writethrough"] == "0")
    after = {**before, **{name: word for done in planned(found).values() for name, word in done.items()}}
    flush = words("off", before["traceflag3982"], "1", "1")
    assert after == (words("on", "off", "1", "0") if fua else flush)
    assert planned(judged(server(after), machine(fua), attestations=[FUA_OF_HOST])) == {}


@pytest.mark.parametrize(
    ("name", "word", "means"),
    [
        ("alternatewritethrough", "0", "nothing is flushed after a write that is no FUA write"),
        ("alternatewritethrough", "2", "it is neither of the two that are safe"),
        ("writethrough", "0", "writes are not sent on to the disk, by any way"),
        ("traceflag3979", "on", "the server leaves flushing to FUA writes"),
    ],
)
@pytest.mark.parametrize("kept", [False, True], ids=["until a restart", "and kept"])
def test_each_word_says_what_it_means(kept: bool, name: str, word: str, means: str) -> None:
    seen = {**DEFAULT, name: word}
    found = judged(server(seen, seen if kept else DEFAULT))
    (row,) = [row for row in found["settings"] if row["setting"] == name]
    assert f"{means}; forced flush is right here (" in row["why"]


OWNER = "owner of /var/opt/mssql/mssql.conf"


def of_root(kept: dict[str, str]) -> dict[str, Any]:
    """Return SQL Server whose mssql.conf is root's, as the vendor's guide lists it."""
    found = server(kept)
    for seen in found["settings"].values():
        seen.update({"owner_of": OWNER, "owner": "0:0", "owner_wanted": "998:998"})
    return found


def test_a_plan_lists_the_owner_that_a_run_sets_once_and_first() -> None:
    found = judged(of_root(words("on", "off", "0", "0")))
    changes = [each for each in found["changes"] if each["layer"] == "mssql"]
    assert changes[0] == {
        "phase": "tighten",
        "layer": "mssql",
        "target": "main",
        "setting": OWNER,
        "running": "0:0",
        "persisted": "0:0",
        "wanted": "998:998",
    }
    assert [each["setting"] for each in changes[1:]] == [
        "traceflag3979",
        "writethrough",
        "alternatewritethrough",
    ]


def test_without_a_value_to_write_the_owner_is_left_unchanged() -> None:
    found = judged(of_root(DEFAULT))
    assert not [each for each in found["changes"] if each["layer"] == "mssql"]


@pytest.mark.parametrize(("after", "state"), [(of_root, "failed"), (server, "done")])
def test_the_report_reads_the_result_of_the_owner_from_the_host(after: Any, state: str) -> None:
    wrong = words("on", "off", "0", "0")
    before, now = judged(of_root(wrong)), judged(after(wrong))
    begun = {"begun": [["tighten", "mssql"]], "looked_only": False, "error": ""}
    found = with_outcomes({**now, **begun, "changes": before["changes"]})
    assert [each["state"] for each in found["changes"] if each["setting"] == OWNER] == [state]
