# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd says of services."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Result, Status, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.host.units import (
    listed,
    parse,
    seconds,
    show,
    variables,
)

from ..fakes.fake_proc import ProcHost

ETC, LIB, RUN = "/etc/systemd/system", "/lib/systemd/system", "/run/systemd"
SHOWN = """\
Id=mariadb.service
Names=mariadb.service mysql.service mysqld.service
LoadState=loaded
ActiveState=active
UnitFileState=enabled
TimeoutStopUSec=15min
WorkingDirectory=/srv/x
ExecStart={ path=/usr/sbin/mariadbd ; argv[]=/usr/sbin/mariadbd $MYSQLD_OPTS ; ignore_errors=no ; start_time=[n/a] }
ExecStart={ path=/second ; argv[]=/second ; ignore_errors=no ; start_time=[n/a] }

Id=other.service
LoadState=not-found
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1min 30s", "90"),
        ("30min", "1800"),
        ("infinity", "infinity"),
        ("0", "0"),
        ("1.500ms", "0.0015"),
        ("1min 1.000500s", "61.0005"),
        ("1d 2h 3min", "93780"),
        ("5us", "0.000005"),
    ],
)
def test_time_spans(text: str, expected: str) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize(
    "text", ["", "90", "1 min", "-1s", "[not set]", "1min, 3s", "infinity 1s", "\u0661s x"]
)
def test_what_is_no_time_span(text: str) -> None:
    with pytest.raises(ValueError, match="not a time span"):
        seconds(text)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_systemd_prints_the_spans_that_are_read() -> None:
    spans = ["90.5s", "1.5ms", "400d", "1month 3w", "2y", "12345678us"]
    argv = ["systemd-analyze", "timespan", *spans]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    micro = [int(number) for number in re.findall(r"(?:μs|us): (\d+)", said)]
    human = re.findall(r"Human: (.+)", said)
    assert [float(seconds(text)) for text in human] == [number / 1e6 for number in micro]


@given(st.integers(0, 10**9))
def test_whole_seconds_stay_whole(number: int) -> None:
    minutes, rest = divmod(number, 60)
    assert seconds(f"{minutes}min {rest}s") == str(number)


def test_what_show_prints() -> None:
    first, second = parse(SHOWN)
    assert (first.name, first.names[1], first.load, first.active, first.enabled) == (
        "mariadb.service",
        "mysql.service",
        "loaded",
        "active",
        "enabled",
    )
    assert (first.program, first.argv) == ("/usr/sbin/mariadbd", "/usr/sbin/mariadbd $MYSQLD_OPTS")
    assert (first.stop_timeout.value, first.directory) == ("900", "/srv/x")
    assert (second.load, second.program, second.stop_timeout.value) == ("not-found", "", "unknown")


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ({"UnitFileState": "enabled"}, "yes"),
        ({"UnitFileState": "enabled", "ActiveState": "inactive"}, "yes"),
        ({"UnitFileState": "disabled", "ActiveState": "inactive"}, "no"),
        ({"UnitFileState": "disabled", "ActiveState": "failed"}, "no"),
        ({"UnitFileState": "disabled", "ActiveState": "activating"}, "unknown"),
        ({"UnitFileState": "disabled", "ActiveState": "active"}, "unknown"),
        ({"LoadState": "masked", "ActiveState": "inactive"}, "no"),
        ({"UnitFileState": "masked-runtime", "ActiveState": "inactive"}, "unknown"),
        ({"UnitFileState": "enabled-runtime", "ActiveState": "inactive"}, "unknown"),
        ({"UnitFileState": "static", "ActiveState": "inactive"}, "unknown"),
        ({"UnitFileState": "generated", "ActiveState": "inactive"}, "unknown"),
        ({"ActiveState": "inactive"}, "unknown"),
        ({"UnitFileState": "disabled", "ActiveState": "inactive", "WantedBy": "app.service"}, "yes"),
        ({"UnitFileState": "disabled", "ActiveState": "inactive", "RequiredBy": "app.service"}, "yes"),
        ({"UnitFileState": "disabled", "ActiveState": "inactive", "TriggeredBy": "fb.socket"}, "yes"),
        ({"UnitFileState": "disabled", "ActiveState": "inactive", "BoundBy": "app.service"}, "yes"),
        ({"UnitFileState": "disabled", "ActiveState": "inactive", "UpheldBy": "app.target"}, "yes"),
    ],
)
def test_what_the_next_boot_starts(said: dict[str, str], word: str) -> None:
    host = ProcHost()
    host.units["a.service"] = said
    found, _why = show(host, ["a.service"])
    assert found["a.service"].starts_at_boot == word


def test_one_call_for_all_units_and_none_for_none() -> None:
    host = ProcHost()
    host.units["a.service"] = {"TimeoutStopUSec": "30min", "Names": "a.service alias.service"}
    found, why = show(host, ["b.service", "a.service", "a.service"])
    assert why is None
    assert found["alias.service"].stop_timeout.value == "1800"
    assert found["b.service"].load == "not-found"
    assert [argv[-2:] for argv in host.asked] == [("a.service", "b.service")]
    assert show(host, []) == ({}, None)
    assert len(host.asked) == 1


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (Unobservable("systemctl: No such file or directory"), "systemctl: No such file or directory"),
        (Result(1, "", "Failed to connect\nto bus\n"), "systemctl: Failed to connect to bus"),
        (
            # Of systemd 252 in a container.
            Result(
                1,
                "",
                "System has not been booted with systemd as init system (PID 1). Can't operate.\n"
                "Failed to connect to bus: Host is down\n",
            ),
            "this host has not been booted with systemd, and nothing else says what starts and stops its services",
        ),
    ],
)
def test_where_systemd_does_not_answer_that_is_the_reason(said: Exception | Result, why: str) -> None:
    host = ProcHost()
    host.run = lambda argv, timeout=0.0: said if isinstance(said, Result) else _raise(said)  # type: ignore[method-assign]
    assert show(host, ["a.service"]) == ({}, why)


def test_services_that_have_a_file_or_are_started() -> None:
    host = ProcHost()
    assert listed(host) == []
    for path in (
        f"{LIB}/mariadb.service",
        f"{LIB}/postgresql@.service",
        f"{LIB}/mariadb.socket",
        f"{LIB}/mariadb.service.d/x.conf",
        f"{ETC}/mssql-server.service",
        f"{RUN}/system/made.service",
    ):
        host.files[path] = "[Unit]\n"
    host.links.update(
        {
            f"{ETC}/mysql.service": f"{LIB}/mariadb.service",
            f"{ETC}/multi-user.target.wants/mariadb.service": f"{LIB}/mariadb.service",
            f"{RUN}/generator/postgresql.service.wants/postgresql@15-main.service": f"{LIB}/postgresql@.service",
            # Masked: installed, and not to be started.
            f"{ETC}/firebird.service": "/dev/null",
        }
    )
    assert listed(host) == [
        "firebird.service",
        "made.service",
        "mariadb.service",
        "mssql-server.service",
        "postgresql@15-main.service",
    ]


def _raise(error: Exception) -> Result:
    raise error


class Loaded(ProcHost):
    """A machine whose systemd has loaded a unit with two drop-ins, 20 s after the boot; one of them is masked.

    udev has set the times of /dev/null since, so systemd reports a change.
    """

    UNIT, ALL, MASKED = f"{LIB}/a@.service", f"{LIB}/service.d/all.conf", f"{ETC}/a@.service.d/site.conf"
    AT = 1700000020.0

    def __init__(self) -> None:
        super().__init__()
        self.changed: dict[str, float] = {"/dev/null": self.AT + 5}
        self.files.update({"/dev/null": "", self.UNIT: "[Service]\n", self.ALL: "[Service]\n"})
        self.files["/proc/uptime"] = "100.00 150.00\n"
        self.links[self.MASKED] = "/dev/null"
        self.units["a@1.service"] = {
            "Names": "a@1.service alias.service",
            "FragmentPath": self.UNIT,
            "DropInPaths": f"{self.ALL} {self.MASKED}",
            "NeedDaemonReload": "yes",
        }
        self.commands["date", "+%s.%N"] = "1700000100.0\n"
        self.load_at("20000000")

    def load_at(self, microseconds: str) -> None:
        """Set when systemd last loaded its units, since the boot."""
        argv = ("systemctl", "show", "--property=UnitsLoadFinishTimestampMonotonic")
        self.commands[argv] = f"UnitsLoadFinishTimestampMonotonic={microseconds}\n"

    def is_stale(self) -> bool:
        """Tell what is reported of the unit."""
        return show(self, ["a@1.service"])[0]["a@1.service"].stale

    def status(self, path: str) -> Status:
        return super().status(path)._replace(changed=self.changed.get(path, 1.0))


def test_a_masked_drop_in_alone_is_no_change_of_a_unit() -> None:
    """udev sets the times of /dev/null at each boot."""
    host = Loaded()
    assert not host.is_stale()
    host.changed["/dev/null"] = 1.0
    assert not host.is_stale()


@pytest.mark.parametrize("path", [Loaded.UNIT, Loaded.ALL, "/etc/init.d/a"])
def test_a_file_that_was_changed_after_systemd_loaded_it(path: str) -> None:
    host = Loaded()
    host.files["/etc/init.d/a"] = "#!/bin/sh\n"
    host.units["a@1.service"]["SourcePath"] = "/etc/init.d/a"
    assert not host.is_stale()
    host.changed[path] = host.AT + 1
    assert host.is_stale()


@pytest.mark.parametrize("path", [Loaded.UNIT, Loaded.ALL, "/proc/uptime"])
def test_a_file_that_is_gone_is_a_change(path: str) -> None:
    host = Loaded()
    del host.files[path]
    assert host.is_stale()


@pytest.mark.parametrize(
    "path",
    [
        f"{ETC}/a@1.service.d/new.conf",
        f"{ETC}/a@.service.d/new.conf",
        f"{ETC}/service.d/new.conf",
        f"{ETC}/alias.service.d/new.conf",
        f"{RUN}/system/a@1.service.d/new.conf",
        f"{ETC}.control/a@1.service.d/new.conf",
        # It hides one that is loaded.
        f"{ETC}/service.d/all.conf",
        # A unit file in a stronger directory, and that of an instance.
        f"{ETC}/a@.service",
        f"{LIB}/a@1.service",
    ],
)
def test_a_file_that_systemd_has_not_loaded_is_a_change_that_it_does_not_report(path: str) -> None:
    """systemd 252 looks only into directories that it found at its last load: the host was green before such a boot."""
    host = Loaded()
    host.units["a@1.service"]["NeedDaemonReload"] = "no"
    assert not host.is_stale()
    host.files[path] = "[Service]\nExecStart=\n"
    assert host.is_stale()


@pytest.mark.parametrize(
    ("text", "stale"),
    [
        ("[Service]\nNice=5\nLimitNOFILE=65536\nCPUWeight=200\n", False),
        # What reads the commands of a start reads them from the files.
        ("[Service]\nExecStartPost=/bin/true\nExecStartPre=\n", False),
        ("[Service]\nEnvironment=LANG=C.UTF-8 LC_ALL=C TZ=UTC\n", False),
        ("[Service]\nEnvironment=\n", True),
        ("[Service]\nEnvironment=LANG=C MYSQLD_OPTS=--sync-binlog=0\n", True),
        ("[Service]\nExecStopPost=/bin/x\n", True),
        ("[Unit]\nDescription=Cluster\nExecStartPost=/bin/x\n[Install]\nWantedBy=x.target\n", False),
        ("# [Service]\n# ExecStart=\n", False),
        ("[Service]\nNice=5\nEnvironment=LD_PRELOAD=/x\n", True),
        ("[Service]\nTimeoutStopSec=5\n", True),
        ("[Service]\nUser=root\n", True),
        ("[Unit]\nConditionPathExists=/x\n", True),
        ("ExecStart=\n", True),
    ],
)
def test_a_new_drop_in_counts_if_it_may_change_the_start(text: str, stale: bool) -> None:
    for reported in ("yes", "no"):
        host = Loaded()
        host.units["a@1.service"]["NeedDaemonReload"] = reported
        host.files[f"{ETC}/a@1.service.d/new.conf"] = text
        assert host.is_stale() == stale


@pytest.mark.parametrize(
    "path",
    [
        f"{ETC}/a@1.service.d/new.conf.bak",
        f"{ETC}/a@2.service.d/new.conf",
        f"{ETC}/b.service.d/new.conf",
        f"{LIB}/a@.service.d/site.conf",
        f"{RUN}/generator.late/a@1.service",
    ],
)
def test_a_file_that_the_unit_does_not_use_is_no_change(path: str) -> None:
    host = Loaded()
    if path.endswith("a@1.service"):
        host.units["a@1.service"]["FragmentPath"] = host.UNIT.replace("a@", "a@1")
        host.files[f"{LIB}/a@1.service"] = "[Service]\n"
    host.files[path] = "[Service]\nExecStart=\n"
    assert not host.is_stale()


def test_a_link_of_lib_is_no_other_directory() -> None:
    host = Loaded()
    host.links["/lib"] = "/usr/lib"
    host.files[host.ALL] = "[Service]\nUser=root\n"
    for path in (host.UNIT, host.ALL):
        host.files[f"/usr{path}"] = host.files.pop(path)
    assert not host.is_stale()


def test_a_unit_that_is_masked_from_the_next_boot_on_has_changed() -> None:
    host = Loaded()
    host.links[f"{ETC}/a@1.service"] = "/dev/null"
    assert host.is_stale()


@pytest.mark.parametrize("said", ["", "n/a"])
def test_a_unit_may_have_changed_where_systemd_reports_no_load(said: str) -> None:
    host = Loaded()
    host.load_at(said)
    assert host.is_stale()


def test_files_of_an_environment_are_read_up_to_a_bound() -> None:
    host = ProcHost()
    host.files["/etc/default/x"] = "A=1\n" + "# x\n" * 20_000
    (unit,) = parse("Id=a.service\n" + "EnvironmentFiles=/etc/default/x (ignore_errors=no)\n" * 2)
    assert variables(host, unit, {"A"}) == {"A": "1"}
    (unit,) = parse("Id=a.service\n" + "EnvironmentFiles=/etc/default/x (ignore_errors=no)\n" * 3)
    with pytest.raises(Unobservable, match=r"/etc/default/x: with it .* more than 50000 lines"):
        variables(host, unit, {"A"})
    host.files["/etc/default/x"] = "A=1\0\n"
    with pytest.raises(Unobservable, match="NUL"):
        variables(host, unit, {"A"})
