# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""FairCom DB: what ctsrvr.cfg and CTSTATUS.FCS say, and what of it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines import causes
from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import Engines
from ansible_collections.durable.dbhost.plugins.module_utils.engines.faircom import observe as engine

from ...fakes.fake_proc import DSYNC, OTHER, RDWR, SYNC
from ...fakes.vendor_host import (
    BOOT,
    CFG,
    CTSRVR_CFG,
    FAIRCOM,
    FAIRCOM_UNIT,
    STATUS,
    VendorHost,
    faircom,
    status,
    with_faircom,
)

DEFAULTS = {
    **dict.fromkeys(engine.OPTIONS, "off"),
    "DELAYED_DURABILITY": "0",
    "SUPPRESS_LOG_FLUSH": "NO",
    "SUPPRESS_LOG_SYNC": "NO",
    "COMMIT_DELAY": "1",
}
ALL_ON = "LOCAL_DIRECTORY ../data\nCOMPATIBILITY LOG_WRITETHRU\ncompatibility tdata_writethru\nCOMPATIBILITY\tTINDEX_WRITETHRU\n"


def seen(host: VendorHost) -> dict[str, Any]:
    """Return the facts of the only instance; looking changes nothing."""
    (facts,) = map(causes.of_instance, Engines(host, (engine.NAME,)).instances())
    assert host.mutations == []
    assert "observation" not in facts["evidence"], facts["evidence"]
    return facts


def words(facts: dict[str, Any], which: str = "persisted") -> dict[str, str]:
    return {name: row[which] for name, row in facts["settings"].items()}


def reason(facts: dict[str, Any], name: str) -> str:
    return str(facts["settings"][name]["reason"])


@pytest.mark.fact(32)
def test_what_is_absent_is_the_default() -> None:
    facts = seen(with_faircom())
    assert words(facts) == words(facts, "running") == DEFAULTS
    assert (facts["name"], facts["version"]) == ("/opt/faircom", "12.0.1.214 build 230103")
    assert (facts["managed_by"], facts["stop_timeout"]) == ("systemd", "600")


@pytest.mark.fact(32)
def test_options_and_keywords() -> None:
    text = (
        ALL_ON
        + "commit_delay 5\nDELAYED_DURABILITY 2\nCOMPATIBILITY SYNC_LOG\nCOMPATIBILITY NO_SYS_FLUSH_ON_CLOSE\n"
        + "compatibility no_flush_dir\nSUPPRESS_LOG_FLUSH yes\nsuppress_log_sync Yes\n"
    )
    facts = seen(with_faircom(text, synchronous=True))
    expected = {
        **dict.fromkeys(DEFAULTS, "on"),
        "DELAYED_DURABILITY": "2",
        "SUPPRESS_LOG_FLUSH": "YES",
        "SUPPRESS_LOG_SYNC": "YES",
        "COMMIT_DELAY": "5",
    }
    assert words(facts) == words(facts, "running") == expected
    assert facts["settings"]["TDATA_WRITETHRU"]["from"] == f"{CFG}:3"
    assert facts["settings"]["COMMIT_DELAY"]["from"] == f"{CFG}:5"


@pytest.mark.fact(33)
@pytest.mark.parametrize("logged", ["on", "off"])
def test_the_servers_own_word_on_its_logs_counts(logged: str) -> None:
    """DELAYED_DURABILITY for one takes the option away without a change of the file."""
    facts = seen(with_faircom(ALL_ON, synchronous=logged == "on"))
    assert (words(facts)["LOG_WRITETHRU"], words(facts, "running")["LOG_WRITETHRU"]) == ("on", logged)
    assert facts["pending_restart"] == ([] if logged == "on" else ["LOG_WRITETHRU"])


@pytest.mark.fact(46)
@pytest.mark.parametrize(
    ("line", "files", "word", "why"),
    [
        ("", (("/data/L0000001.FCS", RDWR | SYNC, 31), ("/data/S0000000.FCS", RDWR, 31)), "yes", None),
        ("", (("/data/L0000002.FCS", RDWR, 31),), "no", "/data/L0000002.FCS is open buffered"),
        (
            "log_even /logs/X\n",
            (("/logs/X0000002.FCS", RDWR, 31),),
            "no",
            "/logs/X0000002.FCS is open buffered",
        ),
        ("LOG_ODD a+b\n", (("/data/a+b0000001.fcs", RDWR | DSYNC, 31),), "yes", None),
        ("", (("/data/xL0000002.FCS", RDWR, 31),), "unknown", "none of its transaction logs is open"),
    ],
)
def test_how_its_logs_are_open(line: str, files: Any, word: str, why: str | None) -> None:
    host = with_faircom(CTSRVR_CFG + line)
    host.start(replace(faircom(), files=files))
    found = seen(host)["evidence"]["write_through"]
    assert (found["value"], found["reason"]) == (word, why)


@pytest.mark.fact(33)
def test_what_its_log_says_of_recovery_and_damage_is_told() -> None:
    host = with_faircom()
    assert seen(host)["evidence"]["recovery"]["value"] == "no"
    assert "damage" not in seen(host)["evidence"]
    failed = "\nSat Jan 31 11:00:00 2026\n - User# 00001\tAutomatic recovery terminated with error: 571\n"
    host.write(STATUS, failed + status(host.version, synchronous=False), at=BOOT + 1001)
    assert seen(host)["evidence"]["damage"]["value"] == "seen"
    assert "indexes must be rebuilt" in seen(host)["evidence"]["damage"]["reason"]


@pytest.mark.fact(33)
def test_only_the_last_start_counts() -> None:
    host = with_faircom(ALL_ON)
    old, new = status("V11.0.0.1", synchronous=True), status(host.version, synchronous=False)
    host.write(STATUS, old + new, at=BOOT + 1001)
    facts = seen(host)
    assert words(facts, "running")["LOG_WRITETHRU"] == "off"
    assert facts["version"].startswith("12.0.1.214")


@pytest.mark.parametrize(
    ("text", "at", "why"),
    [
        (None, 0, "there is no /opt/faircom/server/CTSTATUS.FCS and no /opt/faircom/data/CTSTATUS.FCS"),
        ("nothing\n", 1001, "tells of no start"),
        (status("V12.0.1.214", True), 999, "older than the server"),
        (
            status("V12.0.1.214", True) + "\n - User# 00001\tServer shutdown completed\n",
            1001,
            "not yet operational",
        ),
        # It crashed, and comes up again.
        (status("V12.0.1.214", True) + "\n - User# 00001\tProcess ID: 60\n", 1001, "not yet operational"),
    ],
)
def test_without_its_word_the_logs_are_unknown(text: str | None, at: float, why: str) -> None:
    host = with_faircom(ALL_ON, synchronous=True)
    del host.files[STATUS]
    if text is not None:
        host.write(STATUS, text, at=BOOT + at)
    facts = seen(host)
    assert (words(facts)["LOG_WRITETHRU"], words(facts, "running")["LOG_WRITETHRU"]) == ("on", "unknown")
    assert why in reason(facts, "LOG_WRITETHRU")
    assert words(facts, "running")["TDATA_WRITETHRU"] == "on"
    assert facts["version"] == "unknown"


@pytest.mark.fact(31)
@pytest.mark.parametrize("where", ["/opt/faircom/config", "/opt/faircom/server"])
def test_an_encrypted_settings_file_goes_before_it(where: str) -> None:
    host = with_faircom(ALL_ON, synchronous=True)
    host.files[f"{where}/ctsrvr.set"] = "secret"
    facts = seen(host)
    assert set(words(facts).values()) == {"unknown"}
    assert words(facts, "running") == {**dict.fromkeys(DEFAULTS, "unknown"), "LOG_WRITETHRU": "on"}
    assert "the file may not be what runs" in reason(facts, "COMMIT_DELAY")
    assert f"{where}/ctsrvr.set" in reason(facts, "COMMIT_DELAY")


@pytest.mark.fact(31)
def test_the_command_line_goes_before_it() -> None:
    argv = ("commit_delay", "50", "COMPATIBILITY", "SYNC_LOG", "LOG_EVEN", "/log/L")
    facts = seen(with_faircom(argv=argv))
    lost = {name for name, word in words(facts).items() if word == "unknown"}
    assert lost == {"COMMIT_DELAY", "SYNC_LOG"}
    assert lost == {name for name, word in words(facts, "running").items() if word == "unknown"}
    assert "has COMPATIBILITY SYNC_LOG" in reason(facts, "SYNC_LOG")
    assert "LOG_EVEN" in facts["evidence"]["log_directories"]["reason"]


def test_what_was_changed_since_the_start_is_not_what_runs() -> None:
    host = with_faircom(synchronous=False)
    host.write(CFG, ALL_ON)
    facts = seen(host)
    assert words(facts)["TDATA_WRITETHRU"] == "on"
    assert words(facts, "running") == {**dict.fromkeys(DEFAULTS, "unknown"), "LOG_WRITETHRU": "off"}
    assert facts["pending_restart"] == ["LOG_WRITETHRU"]
    assert "changed after the process started" in reason(facts, "TDATA_WRITETHRU")


@pytest.mark.fact(31)
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SUBSYSTEM X {\n", "closed by a brace"),
        ("\ufeffCOMMIT_DELAY 1\n", "byte order mark"),
        ("COMMIT_DELAY\n", "a keyword and its value"),
        ("A\0 1\n", "NUL"),
        ("COMMIT_DELAY 1\nCOMMIT_DELAY 2\n", "different values"),
    ],
)
def test_what_cannot_be_understood_is_unknown(text: str, why: str) -> None:
    facts = seen(with_faircom(text))
    assert words(facts)["COMMIT_DELAY"] == words(facts, "running")["COMMIT_DELAY"] == "unknown"
    assert why in reason(facts, "COMMIT_DELAY")


def test_a_file_on_a_disk_that_hangs() -> None:
    host = with_faircom()
    host.hung = (CFG,)
    facts = seen(host)
    assert set(words(facts).values()) == {"unknown"}
    assert facts["evidence"]["log_directories"]["value"] == "unknown"


@pytest.mark.fact(51)
def test_the_places_of_its_logs() -> None:
    text = "LOCAL_DIRECTORY /data/fc\nLOG_EVEN /log/even/L\nLOG_ODD odd/L\nSTART_EVEN %HOME%/S\n"
    facts = seen(with_faircom(text))
    assert facts["directories"] == ["/opt/faircom/server", "/data/fc", "/log/even", "/data/fc/odd"]
    assert "START_EVEN" in facts["evidence"]["log_directories"]["reason"]


@pytest.mark.fact(51)
def test_the_command_lines_directory_goes_before_the_files() -> None:
    host = with_faircom("LOCAL_DIRECTORY /data/no\n", argv=("LOCAL_DIRECTORY", "/data/yes"))
    host.write("/data/yes/CTSTATUS.FCS", status(host.version, False), at=BOOT + 1001)
    facts = seen(host)
    assert facts["directories"] == ["/data/yes"]
    assert facts["version"].startswith("12.")


@pytest.mark.fact(32)
def test_a_slip_is_named() -> None:
    found = seen(with_faircom("X 1\nCOMPATIBILITY INDEX_WRITETHRU\n"))["evidence"]["slips"]
    assert found["source"] == CFG
    assert found["reason"] == (
        '"line 2: unknown flag COMPATIBILITY INDEX_WRITETHRU (did you mean TINDEX_WRITETHRU?)"'
    )
    assert "slips" not in seen(with_faircom(ALL_ON))["evidence"]
    many = "COMIT_DELAY 1\n" * 100
    assert len(seen(with_faircom(many))["evidence"]["slips"]["reason"]) == 1002


@pytest.mark.fact(31)
@pytest.mark.parametrize(
    ("text", "word"), [("X 1\r\nY 2\r\n", "dos"), ("X 1\r\nY 2\n", "mixed"), ("X 1\n", None)]
)
def test_line_ends_are_told(text: str, word: str | None) -> None:
    said = seen(with_faircom(text))["evidence"].get("line_ends")
    assert (said and said["value"]) == word


def test_a_server_without_a_file_has_its_defaults() -> None:
    host = with_faircom()
    del host.files[CFG]
    host.write("/opt/faircom/server/CTSTATUS.FCS", status(host.version, False), at=BOOT + 1001)
    facts = seen(host)
    assert words(facts) == words(facts, "running") == DEFAULTS


@pytest.mark.parametrize("denied", ["cmdline", "cwd"])
def test_a_server_that_cannot_be_looked_into_is_unknown(denied: str) -> None:
    host = with_faircom()
    host.deny(60, denied)
    facts = seen(host)
    assert set(words(facts).values()) == {"unknown"}


def stopped(exec_start: str) -> VendorHost:
    host = VendorHost()
    host.files.update({f"/lib/systemd/system/{FAIRCOM_UNIT}": "", CFG: CTSRVR_CFG})
    host.write(STATUS, status("V10.3.1.21834(Build-140307)", True), at=BOOT - 500)
    host.units[FAIRCOM_UNIT] = {
        "ActiveState": "inactive",
        "WorkingDirectory": "/opt/faircom/server",
        "ExecStart": f"{{ path={exec_start.split()[0]} ; argv[]={exec_start} ; ignore_errors=no ; }}",
    }
    return host


def test_a_stopped_one_is_known_by_its_unit() -> None:
    """Under the same name as when it runs."""
    facts = seen(stopped(FAIRCOM))
    assert (facts["name"], facts["unit"], facts["state"]) == ("/opt/faircom", FAIRCOM_UNIT, "stopped")
    assert (facts["config"], facts["version"]) == (CFG, "10.3.1.21834 build 140307")
    assert words(facts) == DEFAULTS
    assert set(words(facts, "running").values()) == {"stopped"}


def test_a_stopped_one_with_a_configuration_of_its_own() -> None:
    facts = seen(stopped(f"{FAIRCOM} CTSRVR_CFG /etc/fc.cfg"))
    assert (facts["name"], facts["config"]) == ("/etc/fc.cfg", "/etc/fc.cfg")
    assert "No such file" in reason(facts, "COMMIT_DELAY")


def test_a_unit_that_tells_nothing() -> None:
    facts = seen(stopped("/usr/local/bin/start.sh"))
    assert set(words(facts).values()) == {"unknown"}
    assert facts["config"] is None


def test_a_unit_of_which_systemd_says_nothing() -> None:
    host = stopped(FAIRCOM)
    host.units.clear()
    assert set(words(seen(host)).values()) == {"unknown"}


def test_in_a_container_its_own_files_are_read() -> None:
    mountinfo = "50 40 0:99 / / rw - overlay overlay rw\n"
    host = VendorHost(faircom(namespace=OTHER, pid_namespace="1", mountinfo=mountinfo, root="/merged"))
    host.files[f"/proc/60/root{CFG}"] = ALL_ON
    host.write(CFG, "not for us")
    host.write(f"/proc/60/root{STATUS}", status(host.version, True), at=BOOT + 1001)
    facts = seen(host)
    assert facts["managed_by"] == "container"
    assert words(facts, "running")["TDATA_WRITETHRU"] == words(facts, "running")["LOG_WRITETHRU"] == "on"


def test_the_running_one_and_its_unit_are_one_instance() -> None:
    host = stopped(FAIRCOM)
    host.start(faircom())
    assert seen(host)["state"] == "running"
