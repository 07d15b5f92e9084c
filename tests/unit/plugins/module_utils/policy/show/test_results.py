# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a host's answer to its report: the answer may be of any form, whoever is root there wrote it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.results import (
    assess_answer,
    cause,
    conclude,
    failure,
    limit_of_collection,
    wants_reboot,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ...fakes.runs import (
    NOW,
    inputs,
    look,
    settled,
)
from ...fakes.small_host import SmallHost

STRANGE: tuple[Any, ...] = (None, [], 17, "durable", [{}])


@pytest.mark.parametrize("form", STRANGE, ids=repr)
@pytest.mark.parametrize("part", ["durable_storage", "durable_engines", "durable_power", None])
def test_an_answer_of_another_form_is_no_facts(form: Any, part: str | None) -> None:
    """It costs its own host the verdict, and never the run."""
    # The other profiles ask nothing of a UPS.
    profile = "ups" if part == "durable_power" else "strict"
    host: SmallHost = settled(profile)
    facts: Any = {"durable_storage": collect(host, NOW), part: form} if part else form
    for failures in (*STRANGE, {part: form}):
        found = assess_answer(inputs(profile), NOW, {"ansible_facts": facts, "failures": failures})
        assert found["verdict"] == ("blocked" if part == "durable_power" else "unknown")


BEFORE = {
    "verdict": "at_risk",
    "plan": {"tighten": {}},
    "changes": [{"target": "/srv/pgdata"}],
    "files": ["/etc/fstab"],
    "exposed": ["pg_amcheck"],
    "warnings": [],
    "notes": [],
    "why": ["a", "b"],
    "reasons": [{"reason": "a"}, {"reason": "b"}],
    "fails": True,
}
AFTER = {
    "verdict": "durable",
    "plan": {},
    "changes": [],
    "files": [],
    "exposed": [],
    "warnings": ["slow disk"],
    "notes": [],
    "why": [],
    "reasons": [],
    "fails": False,
}


def looks(*found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return results of looks."""
    return [{"assessment": each, "error": None} for each in found]


@pytest.mark.fact(53)
def test_what_was_exposed_and_changed_stays_in_the_report_of_the_run_that_mends_it() -> None:
    found = conclude(
        looks(BEFORE, AFTER), {"begun": [["tighten", "mount_options"]], "error": None}, {}, False
    )
    assert (found["was"], found["verdict"], found["exposed"]) == ("at_risk", "durable", ["pg_amcheck"])
    assert (found["plan"], found["changes"], found["files"]) == (
        BEFORE["plan"],
        BEFORE["changes"],
        ["/etc/fstab"],
    )
    assert (found["begun"], found["error"], found["looked_only"]) == (
        [["tighten", "mount_options"]],
        None,
        False,
    )
    assert failure(found) is None


def test_without_a_change_the_first_assessment_is_the_last() -> None:
    skipped = {"skipped": True, "changed": False}
    found = conclude(looks(BEFORE), skipped, skipped, True)
    assert (found["verdict"], found["was"], found["begun"], found["error"]) == (
        "at_risk",
        "at_risk",
        [],
        None,
    )
    assert failure(found) == "at_risk: a (what to do, with 1 more, is in the report)"
    long = failure({**found, "reasons": [{"reason": "commits can be lost " * 40}]})
    assert long is not None
    assert len(long) < 250


@pytest.mark.parametrize(
    ("rebooted", "error"),
    [
        ({}, None),
        ({"skipped": True}, None),
        ({"rebooted": True, "changed": True}, None),
        (
            # As Ansible has it of a reboot that nobody has seen the end of.
            {"failed": True, "rebooted": True, "msg": "Timed out waiting for last boot time check"},
            "reboot: Timed out waiting for last boot time check",
        ),
        ({"unreachable": True, "msg": "gone"}, "reboot: gone"),
        ({"failed": True}, "reboot: failed"),
    ],
)
def test_a_reboot_that_failed_is_told(rebooted: dict[str, Any], error: str | None) -> None:
    found = conclude(looks(BEFORE, AFTER), {"error": "half"}, rebooted, False)
    assert found["error"] == ("half" if error is None else f"half; {error}")
    assert str(failure(found)).startswith(f"durable: {found['error']} (what to do")


@pytest.mark.parametrize(
    ("changed", "pending", "reboots"),
    [
        ([], [], False),
        (["/srv/pg data_mode"], [], False),
        # Of an earlier run: a boot did not bring it into effect, or is somebody's to make.
        ([], [("reboot", ["/srv/pg data_mode"])], False),
        (["/srv/other data_mode"], [("reboot", ["/srv/pg data_mode"])], False),
        # Another setting of the same target was changed.
        (["/srv/pg atime"], [("reboot", ["/srv/pg data_mode"])], False),
        (["wwn:1 scheduler"], [("reboot", ["wwn:1 write_cache"])], False),
        (["/srv/pg data_mode"], [("reboot", ["/srv/pg data_mode"])], True),
        (["/srv/pg data_mode"], [("restart", ["/srv/pg data_mode"])], False),
        # A layer, by the disks below it.
        (["wwn:2 write_cache"], [("reboot", ["wwn:1 write_cache", "wwn:2 write_cache"])], True),
    ],
)
def test_a_run_reboots_only_for_what_it_has_changed_and_where_it_may(
    changed: list[str], pending: list[tuple[str, list[str]]], reboots: bool
) -> None:
    found = {"pending": [{"needs": needs, "after": after} for needs, after in pending]}
    before = {"changes": [dict(zip(("target", "setting"), each.split())) for each in changed]}
    allowed = inputs("strict")._replace(allow=["reboot"])
    assert wants_reboot(allowed, found, before, {"error": None}) is reboots
    assert wants_reboot(inputs("strict"), found, before, {"error": None}) is False
    assert wants_reboot(allowed, found, before, {"error": "a step failed"}) is False
    assert wants_reboot(allowed, found, None, None) is False
    for refused in (5, None, "reboot"):
        assert wants_reboot(inputs("strict", allow=refused), found, before, {"error": None}) is False


def test_a_slower_setting_of_a_mount_that_waits_is_no_reason_for_a_reboot() -> None:
    """data= was written by an earlier run; this one changes what is read of atime, on the same mount."""
    host = SmallHost()
    host.mounts["/srv/pgdata"].data = "writeback"
    found = look(host, "strict", allow=["reboot"])
    changed = {(change["target"], change["setting"]) for change in found["changes"]}
    assert ("/srv/pgdata", "atime") in changed and ("/srv/pgdata", "data_mode") not in changed
    assert [row["after"] for row in found["pending"]] == [["/srv/pgdata data_mode"]]
    allowed = inputs("strict", allow=["reboot"])
    assert not wants_reboot(allowed, found, found, {"error": None})
    mode = {"target": "/srv/pgdata", "setting": "data_mode"}
    assert wants_reboot(allowed, found, {"changes": [mode]}, {"error": None})


def test_what_failed_outside_of_a_step_is_told() -> None:
    last = {"assessment": AFTER, "error": "timed out after 300 seconds"}
    found = conclude([*looks(BEFORE), last], {}, {}, False)
    assert (found["verdict"], found["error"]) == ("durable", "timed out after 300 seconds")
    found = conclude(looks(BEFORE, AFTER), {"unreachable": True, "msg": "gone"}, {}, False)
    assert found["error"] == "lost the host: gone"


def test_a_step_about_speed_that_failed_is_a_note_and_no_failure() -> None:
    slow = ["tighten io_scheduler: sda: the kernel refused bfq"]
    found = conclude(looks(BEFORE, AFTER), {"begun": [], "error": None, "slow": slow}, {}, False)
    assert (found["error"], failure(found)) == (None, None)
    assert found["warnings"] == ["slow disk", f"a step about speed alone failed: {slow[0]}"]


def test_what_the_switch_did_is_the_first_note() -> None:
    seen = looks(BEFORE, AFTER)
    seen[0]["switch"] = seen[1]["switch"] = switched("fired")
    found = conclude(seen, {"skipped": True}, {}, False)
    assert found["warnings"][0].startswith("the rollback timer of an earlier run has restored this host")
    assert found["warnings"][1:] == ["slow disk"]


@pytest.mark.parametrize(
    ("said", "is_ansibles"),
    [
        ("scp: write remote: No space left on device", True),
        (
            "Failed to transfer file to '/root/.ansible/x': [Errno 28] No space left on device: b'/tmp/x'",
            True,
        ),
        ("Failed to create temporary directory: mkdir: '/root/x': No space left on device", True),
        (
            "FileNotFoundError: [Errno 2] No usable temporary directory found in ['/tmp', '/var/tmp']",
            True,
        ),
        (
            "/run/durable-dbhost/lock: the lock of this host cannot be taken: No space left on device. Nothing was changed."
            " Fix: free space on /run (df -h, df -i), then run again",
            False,
        ),
        (
            "/etc/durable-dbhost/undo/journal.json: No space left on device: not changed; free space on /",
            False,
        ),
        ("install: cannot create directory: No space left on device; free space on /", False),
        # Also without a fix.
        ("/etc/fstab: No space left on device: not changed", False),
    ],
)
def test_a_full_disk_of_our_own_files_is_not_taken_for_one_of_ansible_s(said: str, is_ansibles: bool) -> None:
    assert (cause({"msg": said}) != said) is is_ansibles
    assert ("ansible_remote_tmp" in cause({"msg": said})) is is_ansibles


@pytest.mark.parametrize("error", ["No space left on device", "Read-only file system", "Permission denied"])
def test_the_error_of_a_file_system_is_on_the_page_too(error: str) -> None:
    said = cause({"msg": f"Failed to create temporary directory: mkdir: '/root/x': {error}"})
    assert said.startswith(f'Ansible cannot write its own files there: {error} ("Failed to create')


def switched(state: str) -> dict[str, str]:
    """Return a switch as a look tells it."""
    return {"state": state, "said": "its words"}


@pytest.mark.parametrize(
    ("first", "last", "done", "state", "is_error"),
    [
        ("none", "none", "armed", "none", False),
        ("armed", "none", "armed", "none", False),
        ("fired", "none", "armed", "fired", False),
        # What a run leaves of a switch takes back what it has changed.
        ("none", "armed", "armed", "armed", True),
        ("none", "fired", "armed", "fired", True),
        ("none", None, "armed", "armed", True),
        ("none", None, "unknown", "unknown", True),
        ("none", None, "none", "none", False),
        # It fired before this run, or between its check and its changes: this one armed none.
        ("fired", "fired", "none", "fired", False),
        ("fired", "fired", "armed", "fired", False),
        ("armed", "fired", "none", "fired", False),
        ("armed", "fired", "armed", "fired", True),
        ("broken", "broken", "none", "broken", False),
        # Nothing was changed.
        ("armed", "armed", None, "armed", False),
        ("broken", None, None, "broken", False),
        (None, None, None, "none", False),
    ],
)
def test_what_is_left_of_the_switch_is_told(
    first: str | None, last: str | None, done: str | None, state: str, is_error: bool
) -> None:
    seen = looks(BEFORE, AFTER)
    for each, reported in zip(seen, (first, last)):
        each["switch"] = switched(reported) if reported else None
    applied = {"switch": done, "undo_after": 600} if done else {"skipped": True}
    found = conclude(seen, applied, {}, False)
    assert found["switch"] == state
    assert found["undone"] is (is_error and state == "fired")
    assert (found["error"] is not None) is is_error
    said = [note for note in found["warnings"] if "rollback timer" in note]
    assert bool(said) is (state != "none" and not is_error)
    assert "{" not in str((found["error"], said))
    if state == "fired":
        assert ("of this run" if is_error else "of an earlier run") in str((found["error"], said))
    elif is_error and last is None:
        assert "600 s after the last change, or after a boot, it restores" in found["error"]


def test_in_a_check_the_switch_is_as_it_was_found() -> None:
    seen = [{"assessment": BEFORE, "switch": switched("armed")}, {"assessment": BEFORE, "switch": None}]
    found = conclude(seen, {"switch": "armed"}, {}, True)
    assert (found["switch"], found["error"]) == ("armed", None)
    assert "run again to keep what was changed" in found["warnings"][0]


@pytest.mark.parametrize(
    ("limit", "switch", "wanted"),
    [
        (600, "none", 600),
        (600, "armed", 600),
        (600, "unknown", 120),
        (30, "unknown", 30),
        (0, "unknown", 120),
    ],
)
def test_a_host_that_its_steps_lost_is_not_waited_for_as_long_again(
    limit: int, switch: str, wanted: int
) -> None:
    assert limit_of_collection(limit, {"switch": switch}) == wanted
    assert limit_of_collection(limit, None) == limit
