# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""FairCom DB's builds, and what its files leave open."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.faircom.builds import (
    WRITE_THROUGH,
    writes_through,
)
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ...fakes.runs import NOW, inputs
from ...fakes.small_host import BOOT_ID, SmallHost
from .test_engines import instance, judged, row


@pytest.mark.fact(32)
@pytest.mark.parametrize(
    ("version", "word"),
    [
        ("10.3.1.21834 build 140307", "yes"),
        ("10.3.1.21834", "yes"),
        ("10.3.1.21833", "no"),
        ("10.3.1 build 140307", "yes"),
        ("10.3.1 build 140306", "no"),
        ("10.3.1", "unknown"),
        ("10.3", "no"),
        ("10.4", "yes"),
        ("9.3.27711", "no"),
        ("11.0.0.1", "yes"),
        ("12.0.1.214 build 230103", "yes"),
        ("unknown", "unknown"),
        ("", "unknown"),
        ("12", "unknown"),
        ("9" * 400 + ".1", "unknown"),
    ],
)
def test_builds(version: str, word: str) -> None:
    assert writes_through(version) == word


@pytest.mark.fact(32)
@pytest.mark.parametrize("name", [*WRITE_THROUGH, "SYNC_LOG"])
def test_an_old_build_that_is_told_to_write_through_loses_commits(name: str) -> None:
    on = {**dict.fromkeys((*WRITE_THROUGH, "SYNC_LOG"), "off"), name: "on"}
    found = judged(
        instance("faircom", version="10.3.1.20000", running=on, persisted=on, config="/opt/x/ctsrvr.cfg")
    )
    assert found["verdict"] == "at_risk"
    assert any(f"{name} is on" in why and "V10.3.1.21834" in why for why in found["why"])
    # The risk and its cause are one fact, and have one fix.
    fix = (
        "update it to V10.3.1.21834 (build 140307) or later, and until then remove"
        f" COMPATIBILITY {name} from /opt/x/ctsrvr.cfg and restart it"
    )
    ids = ("risk.faircom.no_effect", "unknown.old_build")
    assert [each["fix"] for each in found["reasons"] if each["id"] in ids] == [fix, fix]
    assert any("ctvfyfil" in check for check in found["exposed"])


@pytest.mark.fact(32)
def test_an_old_build_of_which_nobody_knows_what_it_was_told_is_not_known() -> None:
    lost = dict.fromkeys((*WRITE_THROUGH, "SYNC_LOG"), "unknown")
    found = judged(instance("faircom", version="10.3.1.20000", running=lost, persisted=lost))
    assert found["verdict"] == "unknown"
    assert not any("can be lost" in why for why in found["why"])


@pytest.mark.fact(32)
@pytest.mark.parametrize("version", ["10.3.1.20000", "unknown"])
def test_write_through_is_never_asked_of_a_build_that_may_not_have_it(version: str) -> None:
    off = dict.fromkeys(WRITE_THROUGH, "off")
    found = judged(instance("faircom", version=version, running=off, persisted=off))
    assert found["verdict"] == "unknown"
    assert "faircom" not in found["plan"]["tighten"]
    assert any("V10.3.1.21834" in why for why in found["why"])


@pytest.mark.fact(32)
def test_what_takes_harm_away_is_done_on_every_build() -> None:
    harm = {"DELAYED_DURABILITY": "3"}
    found = judged(instance("faircom", version="unknown", running=harm, persisted=harm))
    assert found["plan"]["tighten"]["faircom"] == [
        {"instance": "main", "settings": {"DELAYED_DURABILITY": "0"}}
    ]


@pytest.mark.parametrize(
    ("field", "said", "word"),
    [
        (
            "slips",
            {"value": "seen", "reason": "line 3: unknown keyword COMIT_DELAY (did you mean COMMIT_DELAY?)"},
            "did you mean COMMIT_DELAY?",
        ),
        ("line_ends", {"value": "dos", "reason": "dos line ends, expected Unix's"}, "dos line ends"),
    ],
)
@pytest.mark.fact(32)
def test_what_the_file_should_not_say_is_a_warning(field: str, said: dict[str, Any], word: str) -> None:
    found = judged(instance("faircom", evidence={field: {"source": "/x.cfg:3", **said}}))
    assert any("/x.cfg:3" in warning and word in warning for warning in found["warnings"])
    assert found["verdict"] not in ("unknown", "at_risk")


@pytest.mark.fact(51)
def test_logs_that_lie_nobody_knows_where_are_not_safe() -> None:
    lost = {"value": "unknown", "source": "x", "reason": "LOG_EVEN: the command line says it"}
    found = judged(instance("faircom", evidence={"log_directories": lost}))
    assert found["verdict"] == "unknown"
    assert any("LOG_EVEN" in why for why in found["why"])


LATE = {
    "value": "no",
    "source": "x",
    "reason": None,
    "cause": "opened_as",
    "parameters": {"path": "/data/L0000001.FCS", "opened": "buffered"},
}
NOT_TOLD = {"value": "unknown", "source": "x", "reason": None, "cause": "no_log_open", "parameters": {}}


@pytest.mark.fact(32)
@pytest.mark.parametrize(
    ("seen", "runs", "verdict"),
    [
        (LATE, "on", "at_risk"),
        (NOT_TOLD, "on", "unknown"),
        ({}, "on", "unknown"),
        # Without the option each commit is flushed by a call of its own.
        (LATE, "off", None),
        (NOT_TOLD, "off", None),
    ],
)
def test_logs_that_are_to_be_written_through_are_open_so(
    seen: dict[str, Any], runs: str, verdict: str | None
) -> None:
    """The server's own word and its version may be as good as they like."""
    found = judged(instance("faircom", running={"LOG_WRITETHRU": runs}, evidence={"write_through": seen}))
    lines = [why for why in found["why"] if "with O_SYNC" in why or "without O_SYNC" in why]
    assert bool(lines) == (verdict is not None)
    assert verdict in (None, found["verdict"])
    if verdict == "at_risk":
        assert "LOG_WRITETHRU is on, and /data/L0000001.FCS is open buffered" in lines[0]
        assert any("ctvfyfil" in check for check in found["exposed"])


@pytest.mark.fact(32)
@pytest.mark.parametrize(
    ("version", "kind", "fix"),
    [
        ("12.0.1.214", "risk.faircom.not_synchronous", "restart the server"),
        (
            "10.3.1.20000",
            "risk.faircom.not_synchronous_old_build",
            "remove COMPATIBILITY LOG_WRITETHRU from /opt/x/ctsrvr.cfg and restart the server, or update it to"
            " V10.3.1.21834 (build 140307) or later",
        ),
    ],
)
def test_logs_that_are_not_open_so_have_a_fix_for_each_build(version: str, kind: str, fix: str) -> None:
    """A later build is to write through, and a run turns it on again."""
    given = instance(
        "faircom",
        version=version,
        config="/opt/x/ctsrvr.cfg",
        running={"LOG_WRITETHRU": "on"},
        evidence={"write_through": LATE},
    )
    (reason,) = [each for each in judged(given)["reasons"] if "is open buffered" in each["reason"]]
    assert (reason["id"], reason["fix"]) == (kind, fix)


@pytest.mark.fact(63)
@pytest.mark.parametrize(
    ("name", "word", "good"),
    [("NO_FLUSH_DIR", "on", "off"), ("SUPPRESS_LOG_SYNC", "YES", "NO"), ("SUPPRESS_LOG_FLUSH", "1", "NO")],
)
def test_what_takes_flushes_away_by_itself(name: str, word: str, good: str) -> None:
    found = judged(instance("faircom", running={name: word}, persisted={name: word}))
    assert found["verdict"] == "at_risk"
    assert found["plan"]["tighten"]["faircom"] == [{"instance": "main", "settings": {name: good}}]


@pytest.mark.fact(53)
@pytest.mark.fact(32)
def test_an_exposed_time_names_its_check() -> None:
    harm = {"NO_SYS_FLUSH_ON_CLOSE": "on"}
    found = judged(instance("faircom", running=harm, persisted=harm))
    assert found["verdict"] == "at_risk"
    assert any("ctvfyfil" in check for check in found["exposed"])
    assert row(found, "NO_SYS_FLUSH_ON_CLOSE")["verdict"] == "drift_persisted"


@pytest.mark.fact(32)
@pytest.mark.fact(53)
def test_damage_that_it_tells_of_names_its_check_and_no_verdict() -> None:
    seen = {"value": "seen", "source": "/data/CTSTATUS.FCS", "reason": "its recovery met error 96"}
    given, well = instance("faircom"), judged(instance("faircom"))
    given["evidence"]["damage"] = seen
    found = judged(given)
    assert [note for note in found["exposed"] if note not in well["exposed"]] == [
        'faircom main was damaged: "its recovery met error 96" (/data/CTSTATUS.FCS); unless it was repaired since, check it with'
        " ctvfyfil and ctvfyidx"
    ]
    assert found["verdict"] == well["verdict"]


@pytest.mark.fact(32)
@pytest.mark.fact(51)
@pytest.mark.parametrize(
    ("word", "warned"),
    [
        ("-1", False),
        ("0", False),
        ("1", False),
        ("11", False),
        ("100", False),
        ("101", True),
        ("9" * 400, True),
        ("soon", True),
    ],
)
def test_a_commit_delay_that_is_kept_loses_nothing_and_a_long_one_is_a_warning(
    word: str, warned: bool
) -> None:
    delay = {"COMMIT_DELAY": word}
    keep = {"overrides": {"commit_delay": "keep"}, "allow": ["restart_engines"]}
    for given in ({"running": delay, "persisted": delay}, {"running": delay}, {"persisted": delay}):
        found = judged(instance("faircom", **given), **keep)
        seen = row(found, "COMMIT_DELAY")
        assert (seen["verdict"], seen["phase"], seen["class"]) == ("ok", None, "performance")
        assert "faircom" not in found["plan"]["tighten"]
        assert any("COMMIT_DELAY" in warning for warning in found["warnings"]) == warned


def delayed(
    word: str, profile: str = "strict", rotates: bool = False, **given: Any
) -> tuple[dict[str, Any], Any]:
    """Return the row of a server with this delay, and what the plan sets of it."""
    delay = {"COMMIT_DELAY": word}
    host = SmallHost()
    host.disk("sda").rotational = "1" if rotates else "0"
    found = judged(
        instance("faircom", running=delay, persisted=delay, directories=["/srv/pgdata"]),
        profile=profile,
        host=host,
        **given,
    )
    assert not any(
        "COMMIT_DELAY is" in warning for warning in found["warnings"] if ", expected " not in warning
    )
    (target,) = found["plan"]["tighten"].get("faircom", [{"settings": {}}])
    return row(found, "COMMIT_DELAY"), target["settings"].get("COMMIT_DELAY")


@pytest.mark.fact(32)
@pytest.mark.fact(51)
@pytest.mark.parametrize("profile", ["strict", "flush", "protected"])
@pytest.mark.parametrize(
    ("word", "sets", "rotates"),
    [
        ("-1", "1", True),
        ("0", "1", True),
        # On a fast disk 1 ms costs one client half of its commits, and gains many clients several times theirs.
        ("-1", None, False),
        ("0", None, False),
        *(
            (word, sets, rotates)
            for rotates in (True, False)
            for word, sets in (
                ("1", None),
                ("5", None),
                ("10", None),
                ("11", "1"),
                ("500", "1"),
                ("soon", "1"),
            )
        ),
    ],
)
def test_a_full_profile_has_commits_wait_a_little(
    word: str, sets: str | None, rotates: bool, profile: str
) -> None:
    """On a disk that rotates a small delay beats none, and a large one; no value of it loses a commit."""
    seen, planned = delayed(word, profile, rotates)
    assert (planned, seen["class"]) == (sets, "performance")
    assert seen["verdict"] == ("drift_persisted" if sets else "ok")


@pytest.mark.fact(32)
def test_a_commit_delay_of_one_s_own() -> None:
    assert delayed("0", rotates=True, overrides={"commit_delay": 20})[1] == "20"
    assert delayed("1", overrides={"commit_delay": 20})[1] == "20"
    assert delayed("20", overrides={"commit_delay": 20})[0]["verdict"] == "ok"
    assert delayed("1", overrides={"commit_delay": -1})[1] == "-1"
    assert delayed("-1", "disposable", accept_data_loss=True, overrides={})[0]["verdict"] == "ok"


@pytest.mark.fact(51)
def test_a_commit_delay_puts_no_host_at_risk() -> None:
    good = judged(instance("faircom"))
    delay = {"COMMIT_DELAY": "-1"}
    found = judged(instance("faircom", running=delay, persisted=delay))
    assert (good["verdict"], found["verdict"]) != ("at_risk", "at_risk")
    assert found["verdict"] in (good["verdict"], "drifted")
    assert found["exposed"] == []


@pytest.mark.fact(32)
@pytest.mark.parametrize(
    ("profile", "path", "warned"),
    [
        ("flush", "/srv/mssql", True),
        ("flush", "/srv/pgdata", False),  # ext4
        ("strict", "/srv/mssql", False),  # no cache
        ("disposable", "/srv/mssql", False),  # promises nothing
    ],
)
def test_on_xfs_over_a_cache_it_may_be_told_too_early(profile: str, path: str, warned: bool) -> None:
    found = judged(instance("faircom", directories=[path]), profile=profile, mounts=[path])
    reported = [warning for warning in found["warnings"] if "XFS" in warning]
    assert len(reported) == warned
    assert all(f"faircom main: {path} is XFS" in warning for warning in reported)
    fixes = [each["fix"] for each in found["notes"] if each["id"] == "note.faircom.xfs"]
    assert fixes == warned * ["set durable_profile: strict, or move the data to ext4"]


@pytest.mark.fact(32)
def test_on_xfs_over_a_disk_without_a_cache_it_is_not() -> None:
    storage = collect(SmallHost(), NOW)
    (disk,) = [disk for disk in storage["disks"] if disk["name"] == "sdb"]
    disk["write_cache"]["volatile"] = "non_volatile"
    server = instance("faircom", directories=["/srv/mssql"])
    engines = {"boot_id": BOOT_ID, "time": NOW, "engines": [server], "unattributed": [], "writers": []}
    found = assess(inputs("flush", mounts=["/srv/mssql"]), storage, NOW, engines)
    assert not any("XFS" in warning for warning in found["warnings"])


def test_sync_log_is_an_option_of_its_own_that_takes_o_sync_away() -> None:
    found = row(judged(instance("faircom", persisted={"SYNC_LOG": "on"})), "SYNC_LOG")
    assert (found["verdict"], found["wanted_persisted"]) == ("drift_persisted", "off")
    assert "without O_SYNC" in found["why"]
