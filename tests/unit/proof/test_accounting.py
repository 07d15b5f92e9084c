# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Flushes and FUA writes, as three witnesses tell them."""

from __future__ import annotations

import pytest

from proof.accounting import Counted, Minimum, deviation, minimum, of_log, of_stat, of_trace
from proof.cells import Setting
from proof.errors import ProofError
from proof.log import Event, Kind

BEFORE = "  10 0 80 5  100 0 800 9 0 4 5 0 0 0 0  7 3\n"
AFTER = "  11 0 88 5  350 0 2800 9 0 4 5 0 0 0 0  257 30\n"
#: As the kernel prints it, with its header.
TRACE = """# tracer: nop
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
         python3-1234    [001] .....   100.000001: block_rq_issue: 8,16 WFS 512 () 2048 + 1 [python3]
     kworker/1:1H-77     [001] .....   100.000002: block_rq_issue: 8,16 FF 0 () 0 + 0 [kworker/1:1H]
         python3-1234    [000] .....   100.000003: block_rq_issue: 8,16 WS 4096 () 4096 + 8 [python3]
         python3-1234    [000] .....   100.000004: block_rq_issue: 8,16 FWFSM 4096 () 4096 + 8 [jbd2/sdb-8]
         python3-1234    [000] .....   100.000005: block_rq_issue: 8,16 RA 4096 () 4096 + 8 [python3]
         python3-1234    [000] .....   100.000006: block_rq_issue: 8,16 DS 4096 () 4096 + 8 [python3]
         python3-1234    [000] .....   100.000007: block_rq_issue: 8,0 WFS 512 () 2048 + 1 [python3]
"""


@pytest.mark.fact(17)
def test_flushes_are_field_16_of_stat() -> None:
    """Counted from 1; writes are field 5."""
    assert of_stat(BEFORE, AFTER) == Counted(writes=250, flushes=250, fua=0)
    with pytest.raises(ProofError, match="stat has 11 fields"):
        of_stat("1 2 3 4 5 6 7 8 9 10 11", AFTER)


def test_the_trace_tells_flushes_writes_and_fua_of_one_disk() -> None:
    """A flush alone, a flush before a write, a FUA write; no reads, no discards, no other disk."""
    assert of_trace(TRACE, "8:16") == Counted(writes=3, flushes=2, fua=2)
    assert of_trace(TRACE, "8:0") == Counted(writes=1, flushes=0, fua=1)
    assert of_trace(TRACE, "8:1") == of_trace("", "8:16") == Counted(0, 0, 0)


def test_the_log_tells_what_arrived() -> None:
    """Zeros and acknowledgements are no writes."""
    kinds = [
        (Kind.WRITE, True),
        (Kind.WRITE, False),
        (Kind.FLUSH, False),
        (Kind.ACK, False),
        (Kind.ZERO, True),
    ]
    assert of_log(Event(n, kind, fua=fua) for n, (kind, fua) in enumerate(kinds)) == Counted(2, 1, 1)


def test_figures_are_for_each_commit() -> None:
    """None without a commit."""
    assert Counted(200, 100, 50).per_commit(100) == {"writes": 2.0, "flushes": 1.0, "fua": 0.5}
    assert Counted(1, 1, 1).per_commit(0) == {}


@pytest.mark.fact(16)
@pytest.mark.fact(17)
@pytest.mark.parametrize(
    ("setting", "workload", "wanted"),
    [
        (Setting("flush", "virtio", "ext4"), "direct_dsync", Minimum(1.0, 0.0)),
        (Setting("flush", "scsi-fua", "xfs"), "direct_dsync", Minimum(0.0, 1.0)),
        (Setting("defaults", "nbd", "xfs"), "rwf_dsync", Minimum(0.0, 1.0)),
        (Setting("flush", "scsi-fua", "xfs"), "direct_fdatasync", Minimum(1.0, None)),
        (Setting("protected", "sata", "ext4"), "append_fsync", Minimum(2.0, 0.0)),
        (Setting("strict", "virtio", "ext4"), "direct_dsync", Minimum(0.0, 0.0)),
        (Setting("strict", "sata", "ext4"), "direct_dsync", Minimum(None, None)),
        (Setting("flush", "virtio", "ext4"), "osync", Minimum(None, None)),
    ],
)
def test_the_minimum_follows_device_and_workload(setting: Setting, workload: str, wanted: Minimum) -> None:
    """FUA where the kernel has it; a pinned cache mode flushes a cache that is off, and nothing is claimed of it."""
    assert minimum(setting, workload) == wanted


@pytest.mark.parametrize(
    ("flushes", "clients", "wanted", "said"),
    [
        (100, 1, 1.0, ""),
        (102, 1, 1.0, ""),
        (103, 1, 1.0, "1 clients: seen 1.030 flushes for each commit, wanted 1.00"),
        (97, 1, 1.0, "seen 0.970"),
        (60, 4, 1.0, ""),
        (103, 4, 1.0, "wanted at most 1.00"),
        (3, 1, 0.0, "seen 0.030"),
        (500, 1, None, ""),
    ],
)
def test_a_deviation_is_told(flushes: int, clients: int, wanted: float | None, said: str) -> None:
    """One client has the minimum, more at most that."""
    told = deviation(Counted(0, flushes, 0), 100, Minimum(wanted, None), clients)
    assert told.startswith(said) if said.startswith("1") else said in told
    assert bool(told) == bool(said)


def test_what_a_journal_commits_by_itself_is_allowed_for() -> None:
    """Two flushes each five seconds, begun ones too."""
    counted = Counted(0, 1024, 0)
    assert deviation(counted, 1000, Minimum(1.0, None), 1)
    assert not deviation(counted, 1000, Minimum(1.0, None), 1, seconds=9)
    assert deviation(Counted(0, 1025, 0), 1000, Minimum(1.0, None), 1, seconds=9)
