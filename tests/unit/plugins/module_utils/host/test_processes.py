# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes of a host."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.host import bounds
from ansible_collections.durable.dbhost.plugins.module_utils.host.processes import (
    Processes,
    argv_of,
    booted_by_clock,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable

from ..fakes.fake_proc import FakeProcess, ProcHost

LIBRARY = "7f00-7f01 r-xp 00000000 08:01 77                         {}\n"


def only(process: FakeProcess) -> Processes:
    """Return the processes of a host that has one beside the first."""
    return Processes(ProcHost(process))


@given(st.text(st.characters(exclude_characters="\0"), max_size=15))
def test_a_process_may_call_itself_anything(name: str) -> None:
    found = only(FakeProcess(77, "/usr/bin/x", name=f"{name}) R 4 ("))
    assert (found.all[77].name, found.all[77].ppid) == (f"{name}) R 4 (", 1)


@pytest.mark.parametrize(
    ("exe", "program"),
    [
        ("/usr/sbin/mysqld", "mysqld"),
        # Upgraded while it ran: the file of that name is another one now.
        ("/usr/sbin/mysqld (deleted)", "mysqld"),
        ("/opt/my sqld/mysqld", "mysqld"),
        ("/opt/mysqld/python3", "python3"),
    ],
)
def test_what_runs_is_known_by_its_file(exe: str, program: str) -> None:
    assert only(FakeProcess(77, exe, ("mysqld",), name="mysqld")).all[77].program == program


def test_start_time() -> None:
    assert only(FakeProcess(77, "/x", ticks=12345)).all[77].started == 1700000123.45
    host = ProcHost(FakeProcess(77, "/x"))
    del host.files["/proc/stat"]
    assert Processes(host).all[77].started is None


class Busy(ProcHost):
    """A host that was booted at 1700000000, whose commands end late: each of `delays` is of one command, in seconds."""

    def __init__(self, *delays: float) -> None:
        super().__init__()
        self.delays, self.up = list(delays), 100.0
        # As the kernel cuts it.
        self.files["/proc/uptime"] = lambda: f"{int(self.up * 100) / 100:.2f} 150.00\n"
        self.commands[("date", "+%s.%N")] = self._date

    def _date(self) -> str:
        now = 1700000000 + self.up
        self.up += self.delays.pop(0)
        return f"{now:.9f}\n"


@pytest.mark.parametrize(
    ("delays", "error", "left"),
    [
        ((0.02, 9.0), 0.03, 1),
        # Less than a step of the time since the boot.
        ((0.009, 9.0), 0.01, 1),
        ((3.0, 0.02, 9.0), 0.03, 1),
        # The best of all of them.
        ((3.0, 2.0, 0.5, 4.0, 5.0, 0.0), 0.51, 1),
    ],
)
def test_a_late_command_does_not_move_the_time_of_the_boot(
    delays: tuple[float, ...], error: float, left: int
) -> None:
    host = Busy(*delays)
    assert 1700000000 - booted_by_clock(host) == pytest.approx(error, abs=0.001)
    assert len(host.delays) == left


@pytest.mark.parametrize("step", [-10.0, 10.0])
def test_a_clock_that_is_set_while_it_is_read_is_unknown(step: float) -> None:
    host = Busy(0.5, 0.6)
    date = host._date

    def stepped() -> str:
        return date() if len(host.delays) == 2 else f"{float(date()) + step:.9f}\n"

    host.commands[("date", "+%s.%N")] = stepped
    with pytest.raises(Unobservable, match="clock was set"):
        booted_by_clock(host)


@pytest.mark.parametrize("uptime", ["", "now\n"])
def test_an_unreadable_clock_is_unknown(uptime: str) -> None:
    host = Busy(0.0)
    host.files["/proc/uptime"] = uptime
    with pytest.raises(Unobservable, match="/proc/uptime"):
        booted_by_clock(host)
    host = Busy(0.0)
    host.commands[("date", "+%s.%N")] = "today"
    with pytest.raises(Unobservable, match="date"):
        booted_by_clock(host)


def test_parents_and_children() -> None:
    host = ProcHost(
        FakeProcess(9, "/usr/bin/sh"),
        FakeProcess(50, "/usr/bin/postgres", ppid=9),
        # Numbers are used again: a child may have the lower one.
        FakeProcess(8, "/usr/bin/postgres", ppid=50),
        FakeProcess(51, "/usr/bin/postgres", ppid=8),
        FakeProcess(52, "/usr/bin/cp", ppid=50),
        FakeProcess(60, "/usr/bin/postgres", ppid=1),
    )
    found = Processes(host)
    mains = found.mains(["postgres"])
    assert [main.pid for main in mains] == [50, 60]
    assert [process.pid for process in found.family(mains[0], ["postgres"])] == [50, 8, 51]
    assert [process.pid for process in found.ancestors(found.all[51])] == [8, 50, 9, 1]


def test_processes_that_name_each_other_as_parent_do_not_loop() -> None:
    host = ProcHost(
        FakeProcess(50, "/usr/bin/postgres", ppid=51), FakeProcess(51, "/usr/bin/postgres", ppid=50)
    )
    found = Processes(host)
    assert [process.pid for process in found.ancestors(found.all[50])] == [51, 50]
    assert [process.pid for process in found.family(found.all[50], ["postgres"])] == [50, 51]


@pytest.mark.parametrize("damage", ["gone", "empty", "zombie"])
def test_one_that_ends_is_no_error(damage: str) -> None:
    host = ProcHost(FakeProcess(77, "/usr/sbin/mysqld", state="Z" if damage == "zombie" else "S"))
    if damage == "gone":
        del host.files["/proc/77/stat"]
    if damage == "empty":
        host.files["/proc/77/stat"] = ""
    assert list(Processes(host).all) == [1]


@pytest.mark.parametrize(
    "text",
    [
        "77 (mysqld) S",
        f"77 (mysqld) S x{' 0' * 20}",
        f"77 (mysqld) S 1{' x' * 20}",
        f"77 (mysqld) S {'1' * 5000}{' 0' * 20}",
    ],
    ids=["short", "no parent", "no start", "no number of the kernel's"],
)
def test_what_is_not_understood_is_said(text: str) -> None:
    host = ProcHost(FakeProcess(77, "/usr/sbin/mysqld"))
    host.files["/proc/77/stat"] = text
    with pytest.raises(Unobservable, match="/proc/77/stat: not as"):
        Processes(host)


def test_where_others_are_hidden_nothing_is_known() -> None:
    """/proc may be mounted with hidepid: an engine of another user would not be seen."""
    host = ProcHost(FakeProcess(77, "/usr/sbin/mysqld"))
    host.end(1)
    with pytest.raises(Unobservable, match="only some of the processes: run as root"):
        Processes(host)


def test_without_permission_what_runs_is_unknown() -> None:
    host = ProcHost(FakeProcess(77, "/usr/sbin/mysqld"))
    host.deny(77, "exe")
    found = Processes(host).all[77]
    assert (found.exe, found.program, found.reason) == (None, "", "/proc/77/exe: Permission denied")


def test_arguments_are_read_with_a_time_limit() -> None:
    host = ProcHost(FakeProcess(77, "/x", ("/x", "", "-D", "/a\nb", "caf\udce9")))
    found = Processes(host)
    assert host.asked == []
    assert found.argv(found.all[77]) == ["/x", "", "-D", "/a\nb", "caf\udce9"]
    assert host.asked == [("cat", "/proc/77/cmdline")]
    host.end(77)
    with pytest.raises(Unobservable, match="No such file"):
        found.argv(found.all[77])


def test_of_an_environment_only_what_is_asked_for_is_read() -> None:
    environment = {"SA_PASSWORD": "secret", "PGDATA": "/a=b\nSA_PASSWORD=x", "MY_PGDATA": "/no"}
    host = ProcHost(FakeProcess(77, "/x", environment=environment))
    said = []
    host.run = lambda argv, timeout=0.0: said.append(ProcHost.run(host, argv)) or said[-1]  # type: ignore[func-returns-value,method-assign]
    found = Processes(host)
    assert found.environment(found.all[77], ["PGDATA", "OTHER"]) == {"PGDATA": "/a=b\nSA_PASSWORD=x"}
    assert found.environment(found.all[77], ["OTHER"]) == {}
    assert "secret" not in repr(said)


@pytest.mark.fact(50)
@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/usr/lib/x86_64-linux-gnu/libeatmydata.so.1.3.0", True),
        ("/opt/my lib/libeatmydata.so (deleted)", True),
        ("/usr/lib64/nosync/nosync.so", True),
        ("/data/nosync.ibd", False),
        ("/usr/lib/libc.so.6", False),
        ("/data/libeatmydata/table.ibd", False),
    ],
)
def test_libraries_that_break_fsync(path: str, found: bool) -> None:
    processes = only(
        FakeProcess(77, "/x", maps=LIBRARY.format(path) * 2 + LIBRARY.format("/usr/lib/libm.so"))
    )
    assert processes.preloads(processes.all[77]) == ([path] if found else [])


def test_paths_in_a_change_of_root_are_its_own() -> None:
    found = only(FakeProcess(77, "/jail/bin/x", root="/jail", cwd="/jail/data"))
    assert found.directory(found.all[77]) == "/data"
    assert found.program(found.all[77]) == "/bin/x"


def test_user() -> None:
    found = only(FakeProcess(77, "/x"))
    assert found.user(found.all[77]) == "26"


def test_a_thousand_processes_cost_two_looks_each() -> None:
    host = ProcHost(*(FakeProcess(pid, "/usr/bin/x") for pid in range(100, 1100)))
    Processes(host)
    assert len(host.looked) <= 2 * 1001 + 2
    assert re.findall("cat|grep", repr(host.asked)) == []


def test_a_command_line_that_has_no_end_is_not_looked_at() -> None:
    host = ProcHost(FakeProcess(50, "/x/mysqld", ("mysqld", f"--{'skip_' * 30_000}x")))
    with pytest.raises(Unobservable, match="/proc/50/cmdline: longer than"):
        argv_of(host, 50)


def test_very_many_children_take_no_time() -> None:
    """Held against each other they would take minutes."""
    found = Processes(ProcHost(FakeProcess(50, "/x/postgres")))
    main = found.all[50]
    found.all.update((pid, main._replace(pid=pid, ppid=50)) for pid in range(100, 40100))
    began = time.process_time()
    assert len(found.family(main, ["postgres"])) == 40001
    assert time.process_time() - began < 5


def test_more_processes_than_can_be_looked_at_are_told_with_whose_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounds, "ALL_PROCESSES", 1000)
    crowd = [FakeProcess(pid, "/x", uid=1000) for pid in range(100, 1200)]
    with pytest.raises(Unobservable, match="processes, most of them of user 1000; expected at most 1000"):
        Processes(ProcHost(*crowd))


def test_long_programs_are_not_known_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "LONG_PROGRAMS", 1000)
    long = [FakeProcess(pid, f"/{'d' * 400}/{pid}") for pid in (60, 61, 62)]
    found = Processes(ProcHost(*long, FakeProcess(63, f"/{'d' * 400}/60"), FakeProcess(64, "/x"))).all
    assert [found[pid].exe is None for pid in (60, 61, 62, 63, 64)] == [False, False, True, False, False]
    assert "more than 1000 letters" in str(found[62].reason)
