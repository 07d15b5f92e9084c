# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The writes of a running server: from the events that blkparse prints to the verdict. No real SQL Server ran here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.measure import server_trace, trace
from ansible_collections.durable.dbhost.plugins.module_utils.measure.limits import Refused
from ansible_collections.durable.dbhost.plugins.module_utils.measure.server_trace import Counts
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fake_host import FakeHost

from .test_prove import TracedHost, install, leaf

SERVER, KERNEL, OTHER = 501, 77, 900


def fua(at: float, sector: int = 8, thread: int = SERVER) -> str:
    """Return one write with FUA, from its queue to its end."""
    return (
        event(at, "Q", "WFS", sector, 8, thread)
        + event(at + 0.001, "D", "WFS", sector, 8, KERNEL)
        + (event(at + 0.002, "C", "WFS", sector, 8, 0))
    )


def plain(at: float, sector: int = 8, thread: int = SERVER, asks: str = "WS") -> str:
    """Return one synchronous write without FUA; `asks`: its direction when it is queued."""
    return (
        event(at, "Q", asks, sector, 8, thread)
        + event(at + 0.001, "D", "WS", sector, 8, KERNEL)
        + (event(at + 0.002, "C", "WS", sector, 8, 0))
    )


def flush(at: float, thread: int = KERNEL) -> str:
    """Return one flush."""
    return event(at, "Q", "FWS", 0, 0, thread) + event(at + 0.0001, "D", "FF", 0, 0, KERNEL)


def event(
    at: float, action: str, direction: str, sector: int, sectors: int, thread: int, disk: str = "8,0"
) -> str:
    """Return one line of blkparse."""
    nanoseconds = round(at * 1e9)
    fields = (nanoseconds // 10**9, nanoseconds % 10**9, disk, action, direction, sector, sectors, thread)
    return " ".join(map(str, fields)) + "\n"


def counts(text: str) -> Counts:
    """Return the counts of a disk on which thread SERVER writes."""
    return server_trace.of_disk(list(server_trace.events(text)), {SERVER})


def test_other_lines_are_skipped_and_events_are_in_order_of_time() -> None:
    text = event(2, "D", "FF", 0, 0, 1) + "CPU0 (8,0):\n1 x 8,0 D WS 8 8 1\n\n" + event(1, "Q", "WS", 8, 8, 1)
    assert [found.time for found in server_trace.events(text)] == [1.0, 2.0]


@pytest.mark.fact(17)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (fua(1), Counts(1, 1, 0, 0)),
        (plain(1) + flush(1.01), Counts(1, 0, 1, 1)),
        # The file system asked for FUA, the disk was sent a write and a flush.
        (plain(1, asks="WFS") + flush(1.01), Counts(1, 0, 1, 1)),
        (plain(1), Counts(1, 0, 0, 0)),
        # A flush that was issued before the write ended does not cover it, nor does one much later.
        (flush(1.0005) + plain(1), Counts(1, 0, 0, 1)),
        (plain(1) + flush(2.1), Counts(1, 0, 0, 1)),
        # One flush for two writes, and the same sector twice.
        (plain(1) + plain(1.1, 16) + flush(1.2), Counts(2, 0, 2, 1)),
        (plain(1) + flush(1.01) + plain(5), Counts(2, 0, 1, 1)),
        # Writes of others are not counted.
        (fua(1, thread=OTHER), Counts()),
        # Without its end nothing shows that a flush covers it.
        (event(1, "Q", "WS", 8, 8, SERVER) + flush(1.1), Counts(1, 0, 0, 1)),
        # A flush with data is not one without.
        (plain(1) + event(1.1, "D", "FWS", 64, 8, KERNEL), Counts(1, 0, 0, 0)),
    ],
)
def test_the_writes_of_one_disk(text: str, expected: Counts) -> None:
    assert counts(text) == expected


@pytest.mark.fact(17)
@pytest.mark.parametrize(
    ("found", "foreign", "disk", "word", "safety"),
    [
        (Counts(100, 100, 0, 0), [], leaf(), "FUA", "ok"),
        (Counts(100, 90, 0, 0), ["other"], leaf(), "FUA", "ok"),
        (Counts(100, 0, 100, 30), [], leaf(), "flush", "ok"),
        (Counts(100, 0, 100, 30), ["other"], leaf(), "flush", "unknown"),
        (Counts(100, 50, 45, 45), [], leaf(), "flush", "ok"),
        (Counts(100, 40, 20, 5), [], leaf(), "unclear", "unknown"),
        (Counts(100, 0, 5, 5), [], leaf(), "neither", "at_risk"),
        (Counts(100, 0, 0, 0), [], leaf(kernel="write through", device="disabled"), "neither", "ok"),
        (Counts(100, 0, 0, 0), [], leaf(kernel="write through"), "neither", "at_risk"),
        (Counts(19, 19, 0, 0), [], leaf(), "unknown", "unknown"),
    ],
)
def test_the_verdict(found: Counts, foreign: list[str], disk: dict[str, Any], word: str, safety: str) -> None:
    verdict = server_trace.assess({"sda": found}, [disk], foreign, "sqlservr")
    assert (verdict.word, verdict.safety) == (word, safety)
    assert verdict.why


@pytest.mark.parametrize(
    ("of_sda", "of_sdb", "word", "safety"),
    [
        (Counts(950, 950, 0, 0), Counts(50, 0, 0, 0), "neither", "at_risk"),
        (Counts(950, 0, 950, 9), Counts(50, 0, 20, 9), "unclear", "unknown"),
        (Counts(950, 950, 0, 0), Counts(50, 0, 50, 9), "FUA", "ok"),
        # Too few to assess them apart.
        (Counts(950, 950, 0, 0), Counts(19, 0, 0, 0), "FUA", "ok"),
        (Counts(15, 15, 0, 0), Counts(15, 15, 0, 0), "FUA", "ok"),
        (Counts(15, 15, 0, 0), Counts(15, 0, 0, 0), "unclear", "unknown"),
    ],
)
def test_the_writes_to_one_disk_do_not_hide_those_to_another(
    of_sda: Counts, of_sdb: Counts, word: str, safety: str
) -> None:
    leaves = [leaf(), {**leaf(), "name": "sdb"}]
    verdict = server_trace.assess({"sda": of_sda, "sdb": of_sdb}, leaves, [], "sqlservr")
    assert (verdict.word, verdict.safety) == (word, safety)
    if safety != "ok":
        assert verdict.why.startswith("sdb: ") == (of_sda.writes >= 20)


@pytest.mark.parametrize("name", ["", "../x", "-a", "a b", "x" * 65, "a\n"])
def test_another_name_than_that_of_a_program_is_refused(name: str) -> None:
    with pytest.raises(Refused, match=r"observe: observed .* expected the file name"):
        server_trace.expect_name(name)
    assert server_trace.expect_name(None) is None
    assert server_trace.expect_name("sqlservr") == "sqlservr"


def add_process(host: FakeHost, pid: int, program: str, parent: int = 1) -> None:
    """Let a process run."""
    host.files[f"/proc/{pid}/stat"] = f"{pid} ({program}) S {parent} " + "0 " * 17 + "100 0\n"
    host.files[f"/proc/{pid}/task/{pid}/comm"] = f"{program}\n"
    if parent != 2:
        host.links[f"/proc/{pid}/exe"] = f"/usr/bin/{program}"


@pytest.fixture
def traced(tmp_path: Path) -> TracedHost:
    """Return a host on which a server, another program and a kernel thread run, and whose disk can be traced."""
    host = TracedHost(tmp_path / "flag")
    add_process(host, 1, "init", 0)
    add_process(host, SERVER, "sqlservr")
    add_process(host, OTHER, "other")
    add_process(host, KERNEL, "kworker", 2)
    return host


PLACE: dict[str, Any] = {"target": "/var/opt/mssql", "fstype": "xfs", "leaves": [leaf()]}


def observed(directory: Path, monkeypatch: pytest.MonkeyPatch, host: FakeHost, text: str) -> dict[str, Any]:
    """Return the row of a trace with these events."""
    (directory / "events").write_text(text)
    begin = f'echo "$*" > {directory}/requested; touch {directory}/flag; cat {directory}/events'
    install(
        directory,
        monkeypatch,
        blktrace=f"{begin}; trap 'exit 0' INT; while :; do sleep 0.05; done",
        blkparse=f'echo "$*" > {directory}/parsed; exec cat',
    )
    (row,) = server_trace.run(host, [PLACE], "sqlservr", 0)  # type: ignore[list-item]
    return dict(row)


def test_a_server_is_observed_and_nothing_is_written(
    traced: TracedHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "".join(plain(at, 8 * at) + flush(at + 0.01) for at in range(1, 31))
    row = observed(tmp_path, monkeypatch, traced, text)
    assert (row["found"], row["safety"], row["commits"]) == ("flush", "ok", 30)
    assert (row["flushes_per_commit"], row["fua_per_commit"]) == ({"sda": 1.0}, {"sda": 0.0})
    assert (row["pattern"], row["words"]) == ("observed", "synchronous writes of sqlservr")
    assert (tmp_path / "requested").read_text() == "-a sync -a flush -a fua -w 30 -o - -d /dev/sda\n"
    assert "%T %t %D %a %d %S %n %p" in (tmp_path / "parsed").read_text()
    assert traced.mutations == []


@pytest.mark.parametrize(("thread", "safety"), [(OTHER, "unknown"), (12345, "unknown"), (KERNEL, "ok")])
def test_flushes_of_another_program_are_not_taken_for_the_server_s(
    thread: int, safety: str, traced: TracedHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "".join(plain(at, 8 * at) + flush(at + 0.01, thread) for at in range(1, 31))
    row = observed(tmp_path, monkeypatch, traced, text)
    assert (row["found"], row["safety"]) == ("flush", safety)


@pytest.mark.parametrize(
    ("foreign", "safety"),
    [
        ((1, "Q", "WS", 4096, 8, OTHER), "unknown"),
        ((1, "Q", "WSM", 4096, 8, OTHER), "unknown"),
        ((1, "Q", "WF", 4096, 8, OTHER), "unknown"),
        # Nobody waits for these, and they are not another program's, or on another disk.
        ((1, "Q", "W", 4096, 8, OTHER), "ok"),
        ((1, "Q", "RS", 4096, 8, OTHER), "ok"),
        ((1, "Q", "WS", 4096, 8, KERNEL), "ok"),
        ((1, "C", "WS", 4096, 8, OTHER), "ok"),
        ((1, "Q", "WS", 4096, 8, OTHER, "8,16"), "ok"),
    ],
)
def test_flushes_of_a_kernel_thread_may_be_those_of_another_program(
    foreign: tuple[Any, ...], safety: str, traced: TracedHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = "".join(plain(1 + number / 25, 8 * number) for number in range(100))
    flushes = "".join(flush(1.01 + number / 5) for number in range(22))
    row = observed(tmp_path, monkeypatch, traced, writes + flushes + event(*foreign))
    assert (row["found"], row["safety"], row["commits"]) == ("flush", safety, 100)
    assert ("flush them (other): stop them" in row["why"]) is (safety == "unknown")


def test_with_fua_other_programs_do_not_matter(
    traced: TracedHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "".join(fua(at, 8 * at) for at in range(1, 31)) + plain(2.5, 4096, OTHER)
    row = observed(tmp_path, monkeypatch, traced, text)
    assert (row["found"], row["safety"]) == ("FUA", "ok")


def test_a_program_that_does_not_run_is_refused(traced: TracedHost) -> None:
    with pytest.raises(Refused, match="no process runs postgres"):
        server_trace.run(traced, [PLACE], "postgres", 1)  # type: ignore[list-item]


def test_without_blktrace_a_server_cannot_be_observed(
    traced: TracedHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(trace.ENVIRONMENT, "PATH", str(tmp_path))
    with pytest.raises(Unobservable, match="install blktrace"):
        server_trace.run(traced, [PLACE], "sqlservr", 1)  # type: ignore[list-item]
