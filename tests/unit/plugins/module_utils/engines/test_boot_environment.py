# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Environment generators set variables of all servers at the next boot."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines import causes
from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import Engines
from ansible_collections.durable.dbhost.plugins.module_utils.host import boot_environment
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Unobservable

from ..fakes.fake_firebird import FakeDatabase, FirebirdHost
from ..fakes.fake_host import FakeHost
from ..fakes.fake_mariadb import DROP_IN, MariaHost
from ..fakes.fake_postgresql import FakePostgresql
from ..fakes.fake_proc import FakeProcess, ProcHost
from ..fakes.vendor_host import with_faircom, with_mssql

ETC, LOCAL = boot_environment.DIRECTORIES
SCRIPT = f"{ETC}/50-db"
PRELOAD = "/usr/lib/x86_64-linux-gnu/libeatmydata.so"
PROGRAM = "\x7fELF\x02"


def with_generator(host: Any, text: str, path: str = SCRIPT, mode: int = 0o755) -> Any:
    host.files[path] = text
    host.modes[path] = mode
    return host


def maria(running: bool = True) -> MariaHost:
    host = MariaHost(running=running)
    host.files[DROP_IN] = "[mysqld]\nloose_sync_binlog = 1\n"
    host.variables["sync_binlog"] = "1"
    command = "{ path=/usr/sbin/mariadbd ; argv[]=/usr/sbin/mariadbd $MYSQLD_OPTS ; ignore_errors=no ; start_time=[n/a] }"
    host.units[host.unit].update(ExecStart=command, MainPID=str(host.process.pid) if running else "0")
    return host


def firebird() -> FirebirdHost:
    host = FirebirdHost(
        FakeProcess(50, "/opt/firebird/bin/firebird", cgroup="0::/system.slice/firebird.service\n"),
        a=FakeDatabase(),
    )
    host.files.update({"/opt/firebird/bin/firebird": "", "/opt/firebird/firebird.conf": ""})
    host.files["/opt/firebird/databases.conf"] = "a = /data/a.fdb\n"
    host.units = {"firebird.service": {"ExecStart": ""}}
    return host


def told(host: ProcHost, engine: str = "mariadb") -> dict[str, Any]:
    (facts,) = map(causes.of_instance, Engines(host, (engine,)).instances())
    assert host.mutations == []
    assert "observation" not in facts["evidence"], facts["evidence"]
    return facts


@pytest.mark.parametrize(
    ("engine", "host"),
    [
        ("mariadb", maria()),
        ("mariadb", maria(running=False)),
        ("postgresql", FakePostgresql()),
        ("mssql", with_mssql()),
        ("faircom", with_faircom()),
        ("firebird", firebird()),
    ],
)
def test_a_program_makes_what_the_next_start_gives_unknown_and_no_other_fact(
    engine: str, host: ProcHost
) -> None:
    before = told(host, engine)
    after = told(with_generator(host, PROGRAM), engine)
    assert {row["persisted"] for row in after["settings"].values()} <= {"unknown"}
    assert all(SCRIPT in row["reason"] for row in after["settings"].values())
    assert all("system.conf.d" in row["reason"] for row in after["settings"].values())
    loaded = after["evidence"].get("next_preloads", {"value": "none", "reason": ""})
    if engine == "firebird":
        assert loaded["value"] == "unknown" and SCRIPT in loaded["reason"]
    own = ["settings", "evidence", "pending_restart", *(["writes"] if before["state"] == "stopped" else [])]
    assert {key: value for key, value in after.items() if key not in own} == {
        key: value for key, value in before.items() if key not in own
    }
    assert [row["running"] for row in after["settings"].values()] == [
        row["running"] for row in before["settings"].values()
    ]


@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/sh\necho FOO=bar\n",
        "#!/usr/bin/env bash\n# Of all services\n\nprintf 'FOO=bar baz\\n'\necho \"A=1 2\" # x\n",
        "#!/bin/sh\n",
        "",
    ],
)
def test_a_script_that_sets_other_variables_changes_nothing(text: str) -> None:
    before = told(maria())
    assert told(with_generator(maria(), text)) == before
    assert before["settings"]["sync_binlog"]["persisted"] == "1"


@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/sh\necho MYSQLD_OPTS=--sync-binlog=0\n",
        "#!/bin/sh\nprintf 'MYSQLD_OPTS=--sync-binlog=0\\n'\n",
        "#!/bin/sh\necho MYSQL_HOME=/srv/own\n",
    ],
)
def test_a_variable_of_the_server_is_reported_with_file_and_line(text: str) -> None:
    found = told(with_generator(maria(), text))["settings"]["sync_binlog"]
    assert found["persisted"] == "unknown"
    assert f"{SCRIPT} line 2 sets MYSQL" in found["reason"]
    host = with_generator(maria(), text)
    host.manager += " MYSQL_HOME=/srv/own MYSQLD_OPTS=--sync-binlog=0"
    assert "from the next boot on" not in (told(host)["settings"]["sync_binlog"]["reason"] or "")


@pytest.mark.fact(81)
def test_a_preload_of_a_script_acts_at_the_next_start() -> None:
    host = with_generator(maria(), f"#!/bin/sh\necho A=b\necho LD_PRELOAD={PRELOAD}\n")
    host.files[PRELOAD] = ""
    coming = told(host)["evidence"]["next_preloads"]
    assert (coming["value"], coming["source"]) == (PRELOAD, f"{SCRIPT} line 3")


@pytest.mark.parametrize(
    "line",
    [
        "echo A=$B",
        "echo A=`date`",
        "echo 'A=\"b\"'",
        "echo A=b C=d",
        "echo -n A=b",
        "echo A=b; echo C=d",
        "echo A=b > /dev/null",
        "printf 'A=%s\\n' b",
        "printf 'A=b'",
        "[ -e /x ] && echo A=b",
        "exec /opt/variables",
        "cat /etc/variables",
        "exit 0",
    ],
)
def test_a_script_of_anything_but_literal_lines_is_not_understood(line: str) -> None:
    host = with_generator(FakeHost(), f"#!/bin/sh\necho X=y\n{line}\n")
    with pytest.raises(Unobservable, match=f"^{SCRIPT} line 3: an environment generator"):
        boot_environment.read(host)


def test_another_interpreter_is_not_understood() -> None:
    with pytest.raises(Unobservable, match=f"^{SCRIPT}: an environment generator"):
        boot_environment.read(with_generator(FakeHost(), "#!/usr/bin/python3\necho A=b\n"))


def test_masks_packages_and_what_cannot_be_executed_count_as_nothing() -> None:
    host = with_generator(FakeHost(), PROGRAM, mode=0o644)
    with_generator(host, PROGRAM, "/usr/lib/systemd/system-environment-generators/snapd-env-generator")
    host.links[f"{ETC}/gone"] = "/nowhere"
    host.links[f"{ETC}/packaged"] = "/usr/lib/systemd/system-environment-generators/snapd-env-generator"
    host.files["/dev/null"] = ""
    for name in ("linked", "empty"):
        with_generator(host, PROGRAM, f"{LOCAL}/{name}")
    host.links[f"{ETC}/linked"] = "/dev/null"
    host.files[f"{ETC}/empty"] = ""
    assert boot_environment.read(host) == {}
    # One that cannot be executed hides none of its name.
    with_generator(host, PROGRAM, f"{LOCAL}/50-db")
    with pytest.raises(Unobservable, match=f"^{LOCAL}/50-db"):
        boot_environment.read(host)


def test_the_last_one_counts_and_generators_come_after_default_environment() -> None:
    host = with_generator(FakeHost(), "#!/bin/sh\necho A=1\n", f"{LOCAL}/90-a")
    with_generator(host, "#!/bin/sh\necho A=2\necho B=2\n")
    host.files["/etc/systemd/system.conf"] = "[Manager]\nDefaultEnvironment=A=3 B=3 C=3\n"
    assert boot_environment.read(host) == {
        "A": ("1", f"{LOCAL}/90-a line 2"),
        "B": ("2", f"{SCRIPT} line 3"),
        "C": ("3", "/etc/systemd/system.conf line 2"),
    }


def test_a_directory_of_very_many_names_is_refused() -> None:
    host = FakeHost()
    for number in range(20001):
        host.files[f"{ETC}/{number}"] = ""
    with pytest.raises(Unobservable, match="more than"):
        boot_environment.read(host)


def test_a_real_program_is_not_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot_environment, "DIRECTORIES", (str(tmp_path),))
    (tmp_path / "masked").symlink_to("/dev/null")
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe", 0o755)
    (tmp_path / "directory").mkdir()
    assert "A" not in boot_environment.read(Host())
    (tmp_path / "program").write_bytes(b"\x7fELF\x02\0\xff")
    (tmp_path / "program").chmod(0o755)
    with pytest.raises(Unobservable, match="an environment generator"):
        boot_environment.read(Host())


@pytest.mark.parametrize("engine", [maria, FakePostgresql])
def test_a_generator_of_units_can_start_a_server_in_any_way(engine: Any) -> None:
    name = "mariadb" if engine is maria else "postgresql"
    path = "/etc/systemd/system-generators/site"
    harmless = told(with_generator(engine(), "#!/bin/sh\necho hello > $1/x\n", path), name)
    assert {row["persisted"] for row in harmless["settings"].values()} != {"unknown"}
    after = told(with_generator(engine(), "#!/bin/sh\nmkdir $1/postgresql@15-main.service.d\n", path), name)
    assert {row["persisted"] for row in after["settings"].values()} <= {"unknown"}
    assert all(path in row["reason"] for row in after["settings"].values() if row["reason"])


def test_a_drop_in_of_a_template_that_nothing_starts_changes_nothing() -> None:
    host = maria()
    before = told(host)
    for unit, counts in (("other@.service", False), ("other.service", True)):
        host.files[f"/etc/systemd/system/{unit}.d/site.conf"] = (
            "[Service]\nExecStartPost=/usr/bin/mariadb -e 'SET GLOBAL sync_binlog=0'\n"
        )
        changed = told(host)["settings"]["sync_binlog"] != before["settings"]["sync_binlog"]
        assert changed == counts
