# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The faircom layer: ctsrvr.cfg edited, every other byte left, restarted only when allowed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import Engines
from ansible_collections.durable.dbhost.plugins.module_utils.engines.faircom import observe as engine
from ansible_collections.durable.dbhost.plugins.module_utils.engines.faircom.apply import (
    ORIGINALS,
    SETTINGS,
    Target,
    apply,
    apply_release,
    plan,
    plan_release,
    target_of,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed

from ...fakes.fake_host import Killed
from ...fakes.vendor_host import (
    BOOT,
    CFG,
    CTSRVR_CFG,
    FAIRCOM_UNIT,
    STATUS,
    VendorHost,
    faircom,
    status,
    with_faircom,
)

NAME = "/opt/faircom"
ON = dict.fromkeys(("LOG_WRITETHRU", "TDATA_WRITETHRU", "TINDEX_WRITETHRU"), "on")
MARK = f"; durable.dbhost: managed; originals in {ORIGINALS}\n"
RESTART = ("change", "systemctl", "restart", "--", FAIRCOM_UNIT)
ODD = (
    "; Kept\tas it is \udcff\n\nSERVER_NAME  X\nlocal_directory ../data\n"
    "SUBSYSTEM EVENT X {\n  COMPATIBILITY LOG_WRITETHRU\n}\n"
    "Commit_Delay\t 20  \nCOMPATIBILITY SYNC_LOG\n;COMMIT_DELAY 3\nDELAYED_DURABILITY 1"
)


def run(host: VendorHost, wanted: dict[str, str], restart: bool = False) -> list[tuple[str, ...]]:
    """Plan and carry out; return (setting, when, before, after) of each change."""
    targets = [Target(NAME, wanted)]
    work = plan(host, targets, restart)
    if work.changes:
        apply(host, work, targets)
    return [change[1:] for change in work.changes]


def facts(host: VendorHost) -> dict[str, Any]:
    (found,) = Engines(host, (engine.NAME,)).instances()
    return found


def settings(host: VendorHost, which: str) -> dict[str, str]:
    return {name: row[which] for name, row in facts(host)["settings"].items()}


@pytest.mark.fact(32)
def test_options_are_added_and_nothing_else_changes() -> None:
    host = with_faircom()
    changes = run(host, {**ON, "COMMIT_DELAY": "1", "SYNC_LOG": "off"})
    assert changes == [(name, "persisted", "off", "on") for name in ON]
    added = "".join(f"{MARK}COMPATIBILITY {name}\n" for name in ON)
    assert host.read(CFG) == CTSRVR_CFG + added
    assert run(host, ON) == []


@pytest.mark.fact(31)
def test_an_odd_file_keeps_all_other_bytes() -> None:
    host = with_faircom(ODD)
    run(host, {"COMMIT_DELAY": "2", "SYNC_LOG": "off", "DELAYED_DURABILITY": "0", "LOG_WRITETHRU": "on"})
    assert host.read(CFG) == (
        "; Kept\tas it is \udcff\n\nSERVER_NAME  X\nlocal_directory ../data\n"
        "SUBSYSTEM EVENT X {\n  COMPATIBILITY LOG_WRITETHRU\n}\n"
        f"{MARK}Commit_Delay\t 2  \n;COMMIT_DELAY 3\n{MARK}DELAYED_DURABILITY 0\n{MARK}COMPATIBILITY LOG_WRITETHRU\n"
    )


def test_what_ran_is_known_until_the_restart() -> None:
    host = with_faircom(CTSRVR_CFG + "COMMIT_DELAY 20\n")
    run(host, {**ON, "COMMIT_DELAY": "1"})
    assert settings(host, "running")["COMMIT_DELAY"] == "20"
    assert facts(host)["pending_restart"] == [*ON, "COMMIT_DELAY"]


@pytest.mark.fact(33)
def test_a_restart_that_is_allowed_ends_in_what_was_wanted() -> None:
    host = with_faircom()
    changes = run(host, ON, restart=True)
    assert ("LOG_WRITETHRU", "running", "off", "on") in changes
    assert host.mutations[-1] == RESTART
    assert settings(host, "running") == settings(host, "persisted")
    assert facts(host)["pending_restart"] == []
    host.mutations.clear()
    assert run(host, ON, restart=True) == []
    assert host.mutations == []


def test_what_waits_already_is_only_restarted() -> None:
    host = with_faircom()
    run(host, ON)
    host.mutations.clear()
    assert {change[1] for change in run(host, ON, restart=True)} == {"running"}
    assert host.mutations == [RESTART]


def test_a_restart_that_does_not_help_is_said() -> None:
    host = with_faircom()
    host.deaf = True
    with pytest.raises(ChangeFailed, match=r"LOG_WRITETHRU \(running\): observed off, expected on"):
        run(host, ON, restart=True)


def test_what_systemd_does_not_manage_is_never_restarted() -> None:
    host = with_faircom()
    host.files["/proc/60/cgroup"] = "0::/\n"
    run(host, ON, restart=True)
    assert RESTART not in host.mutations


@pytest.mark.fact(32)
@pytest.mark.parametrize("version", ["V10.3.0.99999", "V10.3.1.21833(Build-140306)", "V9.3.27711", "nothing"])
def test_builds_whose_write_through_does_nothing_are_refused(version: str) -> None:
    host = with_faircom()
    host.write(STATUS, status(version, False), at=BOOT + 1001)
    with pytest.raises(ChangeFailed, match=r"expected V10\.3\.1\.21834"):
        run(host, ON)
    assert host.mutations == []
    # What takes harm away is done all the same.
    host.write(CFG, "LOCAL_DIRECTORY ../data\nDELAYED_DURABILITY 3\n", at=BOOT)
    assert run(host, {"DELAYED_DURABILITY": "0"})


@pytest.mark.parametrize(
    ("arrange", "message"),
    [
        (
            lambda host: host.files.update({"/opt/faircom/server/ctsrvr.set": ""}),
            "ctsrvr.set takes precedence, and is encrypted",
        ),
        (lambda host: host.write(CFG, "SUBSYSTEM X {\n", at=BOOT), "closed by a brace"),
        (lambda host: host.write(CFG, "LOCAL_DIRECTORY ../data\nX\0 1\n", at=BOOT), "NUL"),
        (lambda host: host.write(CFG, "\ufeffX 1\n", at=BOOT), "byte order mark"),
        (lambda host: host.write(CFG, "X 1\n" * 2**19, at=BOOT), "bytes"),
        (lambda host: host.end(60), "no such instance"),
    ],
    ids=["settings file", "unclosed", "nul", "mark", "huge", "gone"],
)
@pytest.mark.fact(31)
def test_what_cannot_be_understood_is_left_alone(arrange: Any, message: str) -> None:
    host = with_faircom()
    arrange(host)
    before = host.read(CFG)
    with pytest.raises(ChangeFailed, match=message):
        run(host, {"COMMIT_DELAY": "2"})
    assert host.mutations == []
    assert host.read(CFG) == before


def test_dos_line_ends_stay() -> None:
    host = with_faircom(CTSRVR_CFG.replace("\n", "\r\n"))
    run(host, {"COMMIT_DELAY": "2"})
    assert host.read(CFG).count("\r\n") == host.read(CFG).count("\n")


def test_a_server_without_a_file_is_told_so() -> None:
    host = with_faircom()
    del host.files[CFG]
    host.write("/opt/faircom/server/CTSTATUS.FCS", status(host.version, False), at=BOOT + 1001)
    with pytest.raises(ChangeFailed, match=r"observed no ctsrvr\.cfg"):
        run(host, ON)


@pytest.mark.parametrize("text", [CTSRVR_CFG, ODD + "\n", "LOCAL_DIRECTORY ../data\r\nCOMMIT_DELAY 4\r\n"])
def test_release_puts_the_words_back(text: str) -> None:
    host = with_faircom(text)
    before = settings(host, "persisted")
    run(host, {**ON, "COMMIT_DELAY": "1", "SYNC_LOG": "off", "DELAYED_DURABILITY": "0"})
    run(host, {"COMMIT_DELAY": "2"})
    work = plan_release(host)
    assert work.changes
    apply_release(host, work)
    assert settings(host, "persisted") == before
    assert "durable" not in host.read(CFG)
    if "SYNC_LOG" not in text:
        assert host.read(CFG) == text
    assert sorted(host.read(CFG).split("\n")) == sorted(text.split("\n"))
    assert not host.exists(ORIGINALS)
    assert plan_release(host).changes == ()


def test_release_of_a_file_that_is_gone_forgets() -> None:
    host = with_faircom()
    run(host, ON)
    del host.files[CFG]
    work = plan_release(host)
    assert {change.after for change in work.changes} == {"forgotten"}
    apply_release(host, work)
    assert not host.exists(ORIGINALS)


@pytest.mark.parametrize("step", range(1, 5))
def test_killed_anywhere_a_second_run_ends_it_and_release_knows_the_originals(step: int) -> None:
    host = with_faircom()
    host.stop_at = step
    with pytest.raises(Killed):
        run(host, ON, restart=True)
    host.stop_at = 0
    run(host, ON, restart=True)
    assert settings(host, "running")["LOG_WRITETHRU"] == "on"
    apply_release(host, plan_release(host))
    assert host.read(CFG) == CTSRVR_CFG


def test_a_target_of_a_plan() -> None:
    row = {"instance": NAME, "settings": {"COMMIT_DELAY": 2, "SYNC_LOG": None}}
    assert target_of(row) == Target(NAME, {"COMMIT_DELAY": "2"})
    assert set(SETTINGS) == {*engine.OPTIONS, *engine.KEYWORDS}


def test_an_instance_that_is_not_understood_does_not_stop_the_others() -> None:
    host = with_faircom()
    host.start(replace(faircom(), pid=61, exe="/srv/two/server/faircom", cwd="/srv/two/server"))
    cfg = CFG.replace("/opt/faircom", "/srv/two")
    host.write(cfg, "SUBSYSTEM X {\n", at=BOOT)
    name = next(f["name"] for f in Engines(host, (engine.NAME,)).instances() if f["config"] == cfg)
    targets = [Target(name, {"COMMIT_DELAY": "2"}), Target(NAME, {"COMMIT_DELAY": "2"})]
    work = plan(host, targets)
    apply(host, work, targets)
    assert "COMMIT_DELAY 2" in host.read(CFG)
    assert list(work.failures) == [name]
    with pytest.raises(ChangeFailed, match="no such instance"):
        plan(host, [*targets, Target("none", {"COMMIT_DELAY": "3"})])


def test_a_write_that_fails_does_not_delay_the_restart_of_others() -> None:
    host = with_faircom()
    own = "0::/system.slice/faircom@two.service\n"
    host.start(replace(faircom(), pid=61, exe="/srv/two/server/faircom", cwd="/srv/two/server", cgroup=own))
    cfg = CFG.replace("/opt/faircom", "/srv/two")
    host.write(cfg, CTSRVR_CFG, at=BOOT)
    found = {f["config"]: f["name"] for f in Engines(host, (engine.NAME,)).instances()}
    targets = [Target(found[cfg], {"COMMIT_DELAY": "2"}), Target(found[CFG], {"COMMIT_DELAY": "2"})]
    work = plan(host, targets, restart=True)
    write = host.write_file

    def refuses(path: str, *given: Any, **named: Any) -> None:
        if path == cfg:
            raise ChangeFailed(f"{path}: No space left on device")
        write(path, *given, **named)

    host.write_file = refuses  # type: ignore[method-assign]
    with pytest.raises(ChangeFailed, match=f"{cfg}: No space left on device$"):
        apply(host, work, targets)
    assert "COMMIT_DELAY 2" in host.read(CFG)
    assert host.mutations.count(RESTART) == 1


@pytest.mark.parametrize("path", [CFG, CFG.rpartition("/")[0], "/opt"])
def test_a_file_that_somebody_else_may_change_is_left(path: str) -> None:
    host = with_faircom()
    host.uids[path] = 1000
    with pytest.raises(ChangeFailed, match="1000"):
        run(host, ON)
    assert host.mutations == []


def test_a_link_to_a_file_is_left() -> None:
    host = with_faircom()
    host.files["/etc/some.conf"] = host.files.pop(CFG)
    host.links[CFG] = "/etc/some.conf"
    with pytest.raises(ChangeFailed, match="observed a link"):
        run(host, ON)
    assert host.mutations == []


def test_its_file_is_written_as_the_server_s_user() -> None:
    host = with_faircom()
    host.uids.update({CFG.rpartition("/")[0]: 26, CFG: 26})
    run(host, ON)
    assert host.written_as[CFG] == 26
    apply_release(host, plan_release(host))
    assert host.read(CFG) == CTSRVR_CFG
    assert host.written_as[CFG] == 26


def test_a_server_that_ends_after_its_restart_is_a_failure() -> None:
    host = with_faircom()
    host.files[f"/lib/systemd/system/{FAIRCOM_UNIT}"] = ""
    host.ends = 1
    with pytest.raises(ChangeFailed, match="faircom /opt/faircom: not running after a restart"):
        run(host, ON, restart=True)


def test_what_takes_flushes_away_is_taken_out_and_put_back_as_it_was() -> None:
    before = CTSRVR_CFG + "Compatibility no_flush_dir\nsuppress_log_sync Yes\n"
    host = with_faircom(before)
    run(host, {"NO_FLUSH_DIR": "off", "SUPPRESS_LOG_SYNC": "NO"})
    kept = settings(host, "persisted")
    assert (kept["NO_FLUSH_DIR"], kept["SUPPRESS_LOG_SYNC"]) == ("off", "NO")
    apply_release(host, plan_release(host))
    assert "suppress_log_sync Yes\n" in host.read(CFG)
    assert "COMPATIBILITY NO_FLUSH_DIR\n" in host.read(CFG)
