# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a commit becomes: the calls, the counts, and the verdict of both."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.measure import prove, scratch, trace
from ansible_collections.durable.dbhost.plugins.module_utils.measure.limits import Refused
from ansible_collections.durable.dbhost.plugins.module_utils.measure.patterns import BLOCK, PATTERNS, Log
from ansible_collections.durable.dbhost.plugins.module_utils.measure.prove import Limits, Observed
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fake_host import FakeHost
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.small_host import (
    SmallHost,
    Traced,
)

from .test_scratch import mount_of


def leaf(
    name: str = "sda", device: str = "enabled", kernel: str = "write back", fua: str = "supported"
) -> dict[str, Any]:
    """Return the facts of a disk, as far as they are read here."""
    return {
        "name": name,
        "fua": fua,
        "write_cache": {"device": device, "kernel": kernel, "volatile": "unknown"},
    }


def seen(flushes: int, fua: int | None, commits: int = 100, seconds: float = 1.0) -> Observed:
    """Return the counts of one disk."""
    return Observed(commits, seconds, {"sda": flushes}, None if fua is None else {"sda": fua}, "no blktrace")


QUIET = seen(0, 0, commits=0)


@pytest.mark.fact(17)
@pytest.mark.parametrize(
    ("counts", "disk", "word", "safety"),
    [
        (seen(100, 0), leaf(), "flush", "ok"),
        (seen(200, 0), leaf(), "flush", "ok"),
        (seen(100, None), leaf(), "flush", "ok"),
        (seen(0, 100), leaf(), "FUA", "ok"),
        (seen(1, 100), leaf(), "FUA", "ok"),
        (seen(100, 100), leaf(), "flush", "ok"),
        (seen(0, 0), leaf(), "neither", "at_risk"),
        (seen(0, None), leaf(), "unknown", "unknown"),
        (seen(50, None), leaf(), "unclear", "unknown"),
        (seen(50, 0), leaf(), "unclear", "unknown"),
        (seen(0, 50), leaf(), "unclear", "unknown"),
        # To these the kernel sends no FUA, so no trace is needed.
        (seen(0, None), leaf(fua="unsupported"), "neither", "at_risk"),
        (seen(0, None), leaf(kernel="write through"), "neither", "at_risk"),
        (seen(0, None), leaf(kernel="write through", device="disabled"), "neither", "ok"),
        (seen(0, None), leaf(kernel="write through", device="none"), "neither", "ok"),
        (seen(0, None), leaf(kernel="write through", device="unknown"), "neither", "unknown"),
        (seen(0, None), leaf(fua="unsupported", device="disabled"), "neither", "at_risk"),
        (seen(5, 5, commits=0), leaf(), "unknown", "unknown"),
    ],
)
def test_the_verdict_of_one_disk(counts: Observed, disk: dict[str, Any], word: str, safety: str) -> None:
    found = prove.assess(counts, QUIET, [disk], redundant=False)
    assert (found.word, found.safety) == (word, safety)
    assert found.why


def test_what_others_flush_is_not_taken_for_ours() -> None:
    busy = seen(100, 0, commits=0)
    assert prove.assess(seen(100, 0), busy, [leaf()], False).word == "unclear"
    assert prove.assess(seen(200, 0), busy, [leaf()], False).word == "flush"
    assert prove.assess(seen(0, 100), seen(0, 100, commits=0), [leaf()], False).word == "unclear"


def test_several_disks_each_need_a_flush_and_of_copies_each_needs_fua() -> None:
    leaves = [leaf("sda"), leaf("sdb")]
    quiet = Observed(0, 1.0, {"sda": 0, "sdb": 0}, {"sda": 0, "sdb": 0}, None)

    def word(flushes: tuple[int, int], fua: tuple[int, int], redundant: bool) -> str:
        counts = Observed(100, 1.0, dict(zip(("sda", "sdb"), flushes)), dict(zip(("sda", "sdb"), fua)), None)
        return prove.assess(counts, quiet, leaves, redundant).word

    assert word((100, 100), (0, 0), True) == "flush"
    assert word((100, 0), (0, 0), False) == "unclear"
    assert word((0, 0), (60, 40), False) == "FUA"
    assert word((0, 0), (100, 0), True) == "unclear"
    assert word((0, 0), (100, 100), True) == "FUA"
    assert word((0, 0), (0, 0), True) == "neither"


def test_only_issued_writes_with_fua_behind_the_w_are_counted() -> None:
    text = (
        "  8,0   Q WFS 8\n  8,0   D WFS 8\n  8,0   D FWFS 8\n8,0 D FWS 0\n8,0 D FN 0\n8,0 C WFS 8\n8,0 D WS 8\n"
        "8,16 D WFSM 8\n8,0 m N cfq\n\nnonsense\n"
    )
    assert trace.count(text) == {"8,0": 2, "8,16": 1}


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_each_pattern_writes_its_blocks(name: str, tmp_path: Path) -> None:
    place = os.open(tmp_path, os.O_RDONLY)
    made = scratch.create(place, "log")
    pattern = PATTERNS[name]
    scratch.fill(made, 0 if pattern.appends else 2 * BLOCK)
    log = Log(made, pattern)
    for slot, letter in enumerate(b"ab"):
        log.commit(bytes([letter]) * BLOCK, slot)
    assert os.pread(made, 3 * BLOCK, 0) == b"a" * BLOCK + b"b" * BLOCK
    log.commit(b"c" * BLOCK, 0)
    assert os.pread(made, 3 * BLOCK, 0) == b"c" * BLOCK + (b"" if pattern.appends else b"b" * BLOCK)
    log.close()
    os.close(made)
    os.close(place)


@pytest.mark.parametrize(
    ("name", "flags", "call", "then"),
    [
        ("direct_dsync", os.O_DIRECT | os.O_DSYNC, 0, ""),
        ("direct_fdatasync", os.O_DIRECT, 0, "fdatasync"),
        ("rwf_dsync", os.O_DIRECT, os.RWF_DSYNC, ""),
        ("osync", os.O_SYNC, 0, ""),
        ("dsync", os.O_DSYNC, 0, ""),
        ("append_fsync", os.O_APPEND, 0, "fsync"),
    ],
)
def test_each_pattern_makes_the_engine_s_calls(name: str, flags: int, call: int, then: str) -> None:
    pattern = PATTERNS[name]
    assert (pattern.flags, pattern.call_flags, pattern.then) == (flags, call, then)


def test_a_short_write_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = os.open(tmp_path, os.O_RDONLY)
    made = scratch.create(place, "log")
    log = Log(made, PATTERNS["dsync"])
    monkeypatch.setattr(os, "pwritev", lambda *_: 512)
    with pytest.raises(OSError, match="only 512 of 4096"):
        log.commit(bytes(BLOCK), 0)
    os.close(place)


class CountingHost(FakeHost):
    """Its disk counts one flush more each time that somebody looks: others use it."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.files["/sys/block/sda/stat"] = self.stat

    def stat(self) -> str:
        self.count += 1
        return " ".join(["0"] * 15 + [str(self.count), "0"])


def test_a_run_writes_counts_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prove, "WATCH", 0.01)
    place = {
        "target": str(tmp_path),
        "mount": mount_of(tmp_path),
        "fstype": "ext4",
        "stack": [{"type": "disk"}],
        "leaves": [leaf(fua="unsupported")],
    }
    limits = Limits(commits=20, seconds=5, rate=2000, size=1)
    rows = prove.run(CountingHost(), [place], list(PATTERNS), limits)
    assert [row["pattern"] for row in rows] == list(PATTERNS)
    assert {row["commits"] for row in rows} == {20}
    assert {row["flushes_per_commit"]["sda"] for row in rows} == {0.05}
    assert {(row["found"], row["safety"]) for row in rows} == {("neither", "at_risk")}
    assert rows[0]["fua_unknown"]
    assert "direct_dsync" in prove.table(rows)
    assert os.listdir(tmp_path) == []


def test_a_disk_that_counts_no_flushes_is_unobservable() -> None:
    host = Traced()
    host.mount_tracefs("")
    with pytest.raises(Unobservable, match="counts no flushes"):
        prove.watch(host, ["sda"], 1, lambda: 0)


def test_where_flushes_are_not_counted_each_disk_is_traced() -> None:
    host = Traced()

    def write() -> int:
        for disk in ("sda", "sda", "sdb"):
            host.change(["sync", f"/dev/{disk}"])
        return 3

    assert prove.watch(host, ["sda", "sdb"], 1, write).flushes == {"sda": 2, "sdb": 1}
    assert host.traces() == []


def test_a_trace_that_cannot_begin_says_why() -> None:
    host = FakeHost()
    host.files["/sys/block/sda/dev"] = "8:0\n"
    with pytest.raises(Unobservable, match="trace/enable"):
        trace.Trace(host, ["sda"], 1)
    host.files["/sys/block/sda/trace/enable"] = "1\n"
    with pytest.raises(Unobservable, match="another process traces this disk"):
        trace.Trace(host, ["sda"], 1)


def install(directory: Path, monkeypatch: pytest.MonkeyPatch, **programs: str) -> None:
    """Put programs on the path of commands, and no others of their names."""
    for name, text in programs.items():
        (directory / name).write_text(f"#!/bin/sh\n{text}\n")
        (directory / name).chmod(0o755)
    monkeypatch.setitem(trace.ENVIRONMENT, "PATH", f"{directory}:/usr/bin:/bin")


class TracedHost(FakeHost):
    """The kernel traces sda once blktrace has made a file."""

    def __init__(self, flag: Path) -> None:
        super().__init__()
        self.files["/sys/block/sda/dev"] = "8:0\n"
        self.files["/sys/block/sda/trace/enable"] = lambda: "1\n" if flag.exists() else "0\n"


def test_a_trace_is_begun_for_fua_and_flush_alone_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flag, asked = tmp_path / "flag", tmp_path / "asked"
    events = r"printf '8,0 D WFS 8\n8,0 D WFS 8\n'; exit 0"
    begin = f'echo "$*" > {asked}; touch {flag}; trap "{{ events }}" INT; while :; do sleep 0.05; done'
    install(
        tmp_path,
        monkeypatch,
        blktrace=begin.replace("{ events }", events.replace('"', "")),
        blkparse="exec cat",
    )
    running = trace.Trace(TracedHost(flag), ["sda"], 7)
    assert running.stop() == {"sda": 2}
    assert asked.read_text() == "-a flush -a fua -w 7 -o - -d /dev/sda\n"


def test_a_trace_that_lost_events_counts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flag = tmp_path / "flag"
    lost = (
        f"echo 'You have 3 dropped events' >&2; touch {flag}; trap 'exit 0' INT; while :; do sleep 0.05; done"
    )
    install(tmp_path, monkeypatch, blktrace=lost, blkparse="exec cat")
    running = trace.Trace(TracedHost(flag), ["sda"], 7)
    with pytest.raises(Unobservable, match="lost events"):
        running.stop()


def test_a_blktrace_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, blktrace="echo 'debugfs is not mounted' >&2; exit 1", blkparse="exec cat")
    with pytest.raises(Unobservable, match="debugfs is not mounted"):
        trace.Trace(TracedHost(tmp_path / "flag"), ["sda"], 7)


@pytest.mark.parametrize(("name", "value"), [("commits", 19), ("rate", 2001), ("seconds", 0), ("size", 65)])
def test_limits_are_held(name: str, value: int) -> None:
    row = {"commits": 100, "seconds": 10, "rate": 200, "size": 4}
    assert prove.limits_of(row) == Limits()
    with pytest.raises(Refused, match=name):
        prove.limits_of({**row, name: value})


def test_a_place_is_a_mount_whose_disks_are_known() -> None:
    host = SmallHost()
    places, patterns = prove.plan(host, ["/srv/pgdata"], ["dsync"])
    assert ([one["name"] for one in places[0]["leaves"]], patterns) == (["sda"], ["dsync"])
    with pytest.raises(Refused, match="nothing is mounted there"):
        prove.plan(host, ["/srv/nowhere"], ["dsync"])
    assert host.mutations == []
