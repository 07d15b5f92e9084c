# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SQL Server: what mssql.conf and the log of errors say, and what of it runs."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.engines import causes
from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import Engines
from ansible_collections.durable.dbhost.plugins.module_utils.engines.instance import Instance
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql import observe as mssql
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql.rules import JUDGE
from ansible_collections.durable.dbhost.plugins.module_utils.host.process_context import Place
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Result

from ...fakes.fake_proc import DIRECT, DSYNC, OTHER, RDWR, SYNC
from ...fakes.vendor_host import (
    BOOT,
    CONF,
    ERRORLOG,
    MSSQL_UNIT,
    TOOL,
    VendorHost,
    errorlog,
    sqlservr,
    with_mssql,
)

DEFAULTS = {"traceflag3979": "off", "traceflag3982": "off", "writethrough": "1", "alternatewritethrough": "1"}


def seen(host: VendorHost) -> dict[str, Any]:
    """Return the facts of the only instance; looking changes nothing."""
    (facts,) = map(causes.of_instance, Engines(host, (mssql.NAME,)).instances())
    assert host.mutations == []
    assert "observation" not in facts["evidence"], facts["evidence"]
    return facts


def words(facts: dict[str, Any], which: str = "persisted") -> dict[str, str]:
    return {name: row[which] for name, row in facts["settings"].items()}


@pytest.mark.fact(27)
def test_what_is_absent_is_the_default() -> None:
    facts = seen(with_mssql())
    assert words(facts) == words(facts, "running") == DEFAULTS
    assert {row["from"] for row in facts["settings"].values()} == {None}
    assert (facts["version"], facts["managed_by"], facts["stop_timeout"]) == (
        "16.0.4185.3",
        "systemd",
        "1800",
    )
    assert facts["pending_restart"] == []


def test_what_is_told_as_persisted_is_on_the_disk() -> None:
    """mssql-conf does not flush its file; a run that was killed before it did must not find it done."""
    host = with_mssql("[control]\nalternatewritethrough = 0\n")
    seen(host)
    assert ("read", CONF, "flush") in host.questions
    host.unreadable[CONF] = "Input/output error"
    facts = seen(host)
    assert set(words(facts).values()) == {"unknown"}
    assert "Input/output error" in facts["settings"]["writethrough"]["reason"]


@pytest.mark.fact(46)
@pytest.mark.parametrize(
    ("files", "word", "why"),
    [
        ((("/data/master.mdf", RDWR | DIRECT | DSYNC, 31),), "yes", None),
        (
            (("/data/master.mdf", RDWR | DIRECT | DSYNC, 31), ("/data/a.LDF", RDWR | DIRECT, 31)),
            "no",
            "/data/a.LDF is open direct",
        ),
        ((("/data/b.ndf", RDWR, 31),), "no", "/data/b.ndf is open buffered"),
        ((("/data/tempdb_archive.mdf", RDWR, 31),), "no", "/data/tempdb_archive.mdf is open buffered"),
        # What is in them is not to outlive a start, or is no database's.
        (
            (
                ("/data/master.mdf", RDWR | SYNC, 31),
                ("/data/tempdb2.ndf", RDWR, 31),
                ("/data/errorlog", RDWR, 31),
            ),
            "yes",
            None,
        ),
        ((("/data/templog.ldf", RDWR | DSYNC, 31),), "unknown", "none of its databases' files is open"),
    ],
)
def test_how_its_databases_are_open(files: Any, word: str, why: str | None) -> None:
    host = with_mssql()
    host.start(replace(sqlservr(), files=files))
    found = seen(host)["evidence"]["write_through"]
    assert (found["value"], found["reason"]) == (word, why)


TEMPDB = ("/fast/tempdb.mdf", "/fast/tempdb2.ndf", "/fast/tempdb_mssql_3.ndf", "/fast/templog.ldf")


def with_open(*paths: str) -> dict[str, Any]:
    """Return what is told of a server that has these files open; each of them is there."""
    host = with_mssql()
    host.files.update(dict.fromkeys(paths, ""))
    host.files["/fast/lost+found/1"] = ""
    host.start(replace(sqlservr(), files=tuple((path, RDWR | DSYNC, 31) for path in paths)))
    return seen(host)


def test_tempdb_need_not_last() -> None:
    found = with_open("/data/master.mdf", *TEMPDB)
    assert found["temporary"] == ["/fast"]
    assert [row["example"] for row in found["files"]] == ["/data/master.mdf"]
    assert "/fast" not in found["directories"]


@pytest.mark.parametrize(
    "other",
    [
        "/fast/orders.mdf",
        "/fast/tempdb_archive.mdf",
        "/fast/tempdb.ldf",
        "/fast/templog.ldf.bak",
        "/fast/x/y",
    ],
)
def test_where_one_other_file_lies_tempdb_counts(other: str) -> None:
    host = with_mssql()
    host.files.update(dict.fromkeys((*TEMPDB, other), ""))
    host.start(replace(sqlservr(), files=tuple((path, RDWR | DSYNC, 31) for path in TEMPDB)))
    found = seen(host)
    assert found["temporary"] == []
    assert sum(row["count"] for row in found["files"]) == len(TEMPDB)


def test_a_directory_of_tempdb_that_cannot_be_looked_into_counts() -> None:
    host = with_mssql()
    host.files.update(dict.fromkeys(TEMPDB, ""))
    host.hung = ("/fast",)
    host.start(replace(sqlservr(), files=tuple((path, RDWR | DSYNC, 31) for path in TEMPDB)))
    assert seen(host)["temporary"] == []


def test_on_a_machine_whose_flags_are_not_known_nothing_is_said_of_them() -> None:
    host = with_mssql()
    host.commands["uname", "-m"] = Result(0, "mips64\n", "")
    found = seen(host)["evidence"]["write_through"]
    assert found["value"] == "unknown"
    assert "/data/master.mdf" in found["reason"]


def test_of_a_stopped_server_no_open_files_are_told() -> None:
    host = with_mssql()
    host.end(50)
    host.files[f"/lib/systemd/system/{MSSQL_UNIT}"] = ""
    assert "write_through" not in seen(host)["evidence"]


def test_without_a_file_all_is_default() -> None:
    host = with_mssql()
    del host.files[CONF]
    assert words(seen(host)) == DEFAULTS


@pytest.mark.parametrize("key", ["defaultdatadir", "errorlogfile"])
def test_a_place_that_is_named_twice_is_not_known(key: str) -> None:
    text = f"[filelocation]\n{key} = /data/a/x\n{key} = /data/b/x\n"
    found = seen(with_mssql(text))["evidence"]["directories"]
    assert (found["value"], found["source"]) == ("unknown", CONF)
    assert key in found["reason"]
    variable = {"defaultdatadir": "MSSQL_DATA_DIR", "errorlogfile": "MSSQL_ERROR_LOG_FILE"}[key]
    assert "directories" not in seen(with_mssql(text, environment={variable: "/data/c/x"}))["evidence"]


@pytest.mark.fact(29)
@pytest.mark.parametrize(
    ("text", "expected", "line"),
    [
        ("[traceflag]\ntraceflag0 = 3979\n", {"traceflag3979": "on"}, 2),
        # Found by value: whatever the number of the key, ten and more of them, and without a number.
        (
            "[traceflag]\n"
            + "".join(f"traceflag{i} = {i + 1}\n" for i in range(12))
            + "traceflag12 = 3979\n",
            {"traceflag3979": "on"},
            14,
        ),
        ("[traceflag]\ntraceflag = 3982\n", {"traceflag3982": "on"}, 2),
        ("[traceflag]\ntraceflag3979 = 1204\n", {}, None),
        ("[traceflag]\ntraceflag0 = 39790\n", {}, None),
        ("[control]\nwritethrough = 0\n", {"writethrough": "0"}, 2),
        ("[control]\nalternatewritethrough=0\n", {"alternatewritethrough": "0"}, 2),
        # No boolean: what SQL Server makes of these words is not documented.
        ("[control]\nwritethrough = false\n", {"writethrough": "false"}, 2),
        ("[control]\nwritethrough = true\n", {"writethrough": "true"}, 2),
        ("[control]\nwritethrough =\n", {"writethrough": "(empty)"}, 2),
        ("[control]\nwritethrough = 01\n", {"writethrough": "01"}, 2),
    ],
)
def test_settings_are_told_as_they_stand(text: str, expected: dict[str, str], line: int | None) -> None:
    facts = seen(with_mssql(text))
    assert words(facts) == words(facts, "running") == {**DEFAULTS, **expected}
    for name in expected:
        assert facts["settings"][name]["from"] == f"{CONF}:{line}"


@pytest.mark.parametrize(
    ("text", "lost", "reason"),
    [
        ("x = 1\n", set(DEFAULTS), "below a \\[section\\]"),
        ("\ufeff[control]\n", set(DEFAULTS), "byte order mark"),
        ("[control]\n\0\n", set(DEFAULTS), "NUL"),
        ("[control]\n" + "#" * 2**20, set(DEFAULTS), "bytes"),
        ("[control]\nwritethrough = 1\nwritethrough = 0\n", {"writethrough"}, "different"),
        ("[traceflag]\ntraceflag0 = on\n", {"traceflag3979", "traceflag3982"}, "number of one trace"),
    ],
    ids=["no section", "mark", "nul", "huge", "twice", "no number"],
)
def test_what_cannot_be_understood_is_unknown(text: str, lost: set[str], reason: str) -> None:
    facts = seen(with_mssql(text))
    for name, row in facts["settings"].items():
        assert (row["persisted"] == "unknown") == (row["running"] == "unknown") == (name in lost), name
        if name in lost:
            assert re.search(reason, row["reason"])


def test_a_directory_that_hangs_leaves_it_unknown_in_time() -> None:
    host = with_mssql()
    host.hung = (CONF, ERRORLOG)
    facts = seen(host)
    assert set(words(facts).values()) == {"unknown"}
    assert facts["version"] == "unknown"
    assert "no answer" in facts["evidence"]["version"]["reason"]


@pytest.mark.fact(27)
def test_what_was_changed_since_the_start_is_not_what_runs() -> None:
    host = with_mssql("[traceflag]\ntraceflag0 = 3979\n[control]\nalternatewritethrough = 0\n", "3979")
    host.write(CONF, "[control]\nalternatewritethrough = 1\n")
    facts = seen(host)
    assert words(facts) == DEFAULTS
    # The log lists the trace flags with which it began; of the rest nothing is known.
    assert words(facts, "running") == {
        "traceflag3979": "on",
        "traceflag3982": "off",
        "writethrough": "unknown",
        "alternatewritethrough": "unknown",
    }
    assert facts["pending_restart"] == ["traceflag3979"]
    assert "changed after the process started" in facts["settings"]["writethrough"]["reason"]


def test_flags_of_the_log_count_beside_the_file() -> None:
    """Somebody started it with more than the file has."""
    facts = seen(with_mssql("", "3982"))
    assert (words(facts)["traceflag3982"], words(facts, "running")["traceflag3982"]) == ("off", "on")


@pytest.mark.parametrize("argv", [("-T3979",), ("-T", "3979"), ("-x", "-T3979", "-T1")])
def test_a_flag_on_the_command_line_stays(argv: tuple[str, ...]) -> None:
    facts = seen(with_mssql(argv=argv))
    row = facts["settings"]["traceflag3979"]
    assert (row["running"], row["persisted"], row["from"]) == ("on", "on", "command line")
    fix = "remove -T3979 from ExecStart= (systemctl edit --full mssql-server), then restart it"
    assert JUDGE.fix(row["held"]) == fix
    assert words(seen(with_mssql(argv=("-T39791",)))) == DEFAULTS


@pytest.mark.fact(28)
def test_slips_of_the_file_and_of_the_command_line_are_told() -> None:
    facts = seen(with_mssql("[control]\nalternatewritethough = 0\n", argv=("-T8932",)))
    assert facts["evidence"]["slips"]["reason"] == (
        '"/var/opt/mssql/mssql.conf line 2: unknown key alternatewritethough (did you mean alternatewritethrough?);'
        ' command line: unknown trace flag 8932 (did you mean 3982?)"'
    )
    assert words(facts)["alternatewritethrough"] == "1"
    assert "slips" not in seen(with_mssql(argv=("-T3982",)))["evidence"]
    many = "".join(f"alternatewritethough{number} = 0\n" for number in range(2000))
    assert len(seen(with_mssql("[control]\n" + many))["evidence"]["slips"]["reason"]) == 1002


@pytest.mark.parametrize(
    ("first", "number", "name"),
    [
        (
            "Microsoft SQL Server 2022 (RTM-CU18) (KB5050771) - 16.0.4185.3 (X64) ",
            "16.0.4185.3",
            "SQL Server 2022 (RTM-CU18)",
        ),
        (
            "Microsoft SQL Server 2017 (RTM-CU13) (KB4466404) - 14.0.3048.4 (X64)",
            "14.0.3048.4",
            "SQL Server 2017",
        ),
        ("Microsoft SQL Server 2019 (RTM) - 15.0.2000.5 (X64)", "15.0.2000.5", "SQL Server 2019 (RTM)"),
    ],
)
def test_the_log_tells_the_version(first: str, number: str, name: str) -> None:
    host = with_mssql()
    host.write(ERRORLOG, errorlog(version=first), at=BOOT + 1001)
    facts = seen(host)
    assert facts["version"] == number
    assert name in facts["evidence"]["version"]["source"]


def test_a_log_of_an_earlier_start_tells_nothing() -> None:
    host = with_mssql("", "3979")
    host.times[ERRORLOG] = BOOT + 500
    facts = seen(host)
    assert facts["version"] == "unknown"
    assert "older than the running server" in facts["evidence"]["version"]["reason"]
    assert words(facts, "running")["traceflag3979"] == "off"


def test_a_log_that_is_not_there_or_says_nothing() -> None:
    host = with_mssql()
    del host.files[ERRORLOG]
    assert "no such log" in seen(host)["evidence"]["version"]["reason"]
    host.write(ERRORLOG, "gibberish\n")
    assert "names no version" in seen(host)["evidence"]["version"]["reason"]


@pytest.mark.parametrize("way", ["conf", "environment"])
def test_the_log_may_lie_elsewhere(way: str) -> None:
    there = "/data/log/errorlog"
    if way == "conf":
        host = with_mssql(f"[filelocation]\nerrorlogfile = {there}\n")
    else:
        host = with_mssql("[filelocation]\nerrorlogfile = /no\n", environment={"MSSQL_ERROR_LOG_FILE": there})
    del host.files[ERRORLOG]
    host.write(there, errorlog(), at=BOOT + 1001)
    assert seen(host)["version"] == "16.0.4185.3"


@pytest.mark.fact(49)
def test_directories_of_the_file_count_unless_the_environment_says_it() -> None:
    text = (
        "[filelocation]\ndefaultdatadir = /data/d\ndefaultbackupdir = /data/b\nmasterlogfile = /log/l/m.ldf\n"
    )
    facts = seen(with_mssql(text))
    assert facts["directories"] == ["/var/opt/mssql", "/data/b", "/data/d", "/log/l"]
    facts = seen(with_mssql(text, environment={"MSSQL_DATA_DIR": "/data/e"}))
    assert facts["directories"] == ["/var/opt/mssql", "/data/e", "/data/b", "/log/l"]


def test_a_stopped_one_has_its_next_start_alone() -> None:
    host = VendorHost()
    host.files.update(
        {TOOL: "", CONF: "[control]\nwritethrough = 0\n", f"/lib/systemd/system/{MSSQL_UNIT}": ""}
    )
    host.write(ERRORLOG, errorlog("3979"), at=BOOT - 5000)
    facts = seen(host)
    assert (facts["state"], facts["version"]) == ("stopped", "16.0.4185.3")
    assert words(facts) == {**DEFAULTS, "writethrough": "0"}
    assert set(words(facts, "running").values()) == {"stopped"}


def test_without_a_file_everything_is_the_default() -> None:
    host = with_mssql()
    del host.files[CONF]
    assert words(seen(host)) == words(seen(host), "running") == DEFAULTS


def test_in_a_container_its_own_files_are_read() -> None:
    mountinfo = "50 40 0:99 / / rw - overlay overlay rw\n"
    host = VendorHost(sqlservr(namespace=OTHER, pid_namespace="1", mountinfo=mountinfo, root="/merged"))
    host.files.update({f"/proc/50/root{CONF}": "[control]\nwritethrough = 0\n"})
    host.write(CONF, "not for us")
    host.write(f"/proc/50/root{ERRORLOG}", errorlog(), at=BOOT + 1001)
    facts = seen(host)
    assert (facts["managed_by"], facts["version"]) == ("container", "16.0.4185.3")
    assert words(facts, "running")["writethrough"] == "0"


UNSAFE = "[traceflag]\ntraceflag0 = 3979\n[control]\nwritethrough = 0\nalternatewritethrough = 0\n"


@pytest.mark.parametrize(
    ("target", "word"),
    [
        ("/etc/mssql/..data/mssql.conf", "0"),
        ("../../../../../etc/mssql/..data/mssql.conf", "0"),
        ("/etc/mssql/none.conf", "unknown"),
    ],
)
def test_in_a_container_a_link_leads_to_its_own_file_or_is_unknown(
    tmp_path: Path, target: str, word: str
) -> None:
    """Kubernetes hands configurations out so. Followed on the host it leads to nothing: writethrough 1, the default."""
    own = tmp_path / "etc/mssql/..data/mssql.conf"
    link = tmp_path / CONF[1:]
    for path in (own, link):
        path.parent.mkdir(parents=True)
    own.write_text(UNSAFE)
    link.symlink_to(target)
    place = Place("container", str(tmp_path), "/", "", "docker:1", None, {})
    rows = mssql.observe(Host(), Instance(mssql.NAME, mssql.NAME), place).settings
    flag = "on" if word == "0" else "unknown"
    assert (rows["writethrough"]["persisted"], rows["traceflag3979"]["persisted"]) == (word, flag)
    if word == "unknown":
        assert "leads to what is not there" in str(rows["writethrough"]["reason"])
    link.unlink()
    rows = mssql.observe(Host(), Instance(mssql.NAME, mssql.NAME), place).settings
    assert rows["writethrough"]["persisted"] == "1"


@pytest.mark.fact(49)
def test_delayed_durability_of_its_databases_was_not_asked() -> None:
    said = seen(with_mssql())["evidence"]["delayed_durability"]
    assert said["value"] == "unknown"
    assert "not queried" in said["reason"]


def test_the_logs_lines_may_have_blank_ones_between_and_times_before_them() -> None:
    text = (
        "2022-02-11 08:15:13.57 Server      Registry startup parameters: \n\n -T 3979\n\n -d /var/x\n\n"
        "2022-02-11 08:15:13.58 Server      done\n -T 3982\n"
        "2023-10-15 14:35:22.43 Server      Command Line Startup Parameters:\n"
        '2023-10-15 14:35:22.43 Server          -T "1800"\n'
    )
    assert mssql.parse_log(text)[2] == {3979, 1800}
    assert mssql.parse_log("nothing")[2] is None
    assert mssql.parse_log(errorlog())[2] == frozenset()


@given(st.text(st.characters(codec="utf-8")))
def test_any_text_is_read(text: str) -> None:
    mssql.parse_log(text)
    number, _name, flags = mssql.parse_log(text.replace("\n", " ") + "\n" + errorlog("3979"))
    assert (number, flags) == ("16.0.4185.3", {3979})


def test_a_line_of_the_log_that_is_made_to_be_searched_for_ever_is_not() -> None:
    begun = time.monotonic()
    number, _name, flags = mssql.parse_log(errorlog("3979") + f" -ab{' ' * 250_000}b\n" * 2)
    assert (number is None, flags) == (False, {3979})
    assert time.monotonic() - begun < 5


def test_very_many_trace_flags_are_soon_listed() -> None:
    """The log is the server's user's, who may write into it what he likes."""
    text = "Registry startup parameters:\n" + "".join(f"\t -T {number}\n" for number in range(120_000))
    began = time.process_time()
    _number, _name, flags = mssql.parse_log(text)
    assert flags is not None and len(flags) == 120_000
    assert time.process_time() - began < 5
