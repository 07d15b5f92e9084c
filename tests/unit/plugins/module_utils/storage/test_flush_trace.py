# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flushes of a kernel before 5.5: traced, where it does not count them. The kernel is a stand-in."""

from __future__ import annotations

import os

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed
from ansible_collections.durable.dbhost.plugins.module_utils.storage import flush_trace
from ansible_collections.durable.dbhost.plugins.module_utils.storage.flush import (
    counted,
    flush_disk,
    is_owed,
    owe,
)

from ..fakes.fake_host import Killed
from ..fakes.small_host import Traced

#: Lines of block_rq_complete: of Linux 4.18 and 5.10; of 6.12, with a priority; and what is no flush of its own.
FLUSHES = """\
# tracer: nop
#           TASK-PID    CPU#  ||||   TIMESTAMP  FUNCTION
          <idle>-0     [000] d.h.   12.345678: block_rq_complete: 8,0 FF () 0 + 0 [0]
 my proc: x [0]-99     [001] ..s1   12.345679: block_rq_complete: 8,16 FF () 0 + 0 [0]
    kworker/0:1H-171   [000] .....  12.345680: block_rq_complete: 254,0 FF () 0 + 0 none,0,0 [0]
    kworker/0:1H-171   [000] .....  12.345681: block_rq_complete: 259,0 FFS () 18446744073709551615 + 0 be,0,4 [0]
"""
OTHERS = """\
          <idle>-0     [000] d.h.   12.345678: block_rq_complete: 8,0 FF () 0 + 0 [-5]
          <idle>-0     [000] d.h.   12.345678: block_rq_complete: 8,0 WFS () 2048 + 8 [0]
          <idle>-0     [000] d.h.   12.345678: block_rq_complete: 8,0 FWFS () 2048 + 8 [0]
          <idle>-0     [000] d.h.   12.345678: block_rq_complete: 8,0 R () 0 + 0 [0]
          <idle>-0     [000] d.h.   12.345678: block_rq_issue: 8,0 FF 0 () 0 + 0 [kworker/0:1H]
"""


def test_flushes_that_ended_well_are_counted_and_nothing_else() -> None:
    assert flush_trace.count(FLUSHES + OTHERS) == 4
    assert flush_trace.count(OTHERS) == 0
    assert flush_trace.count("") == 0


@pytest.mark.fact(68)
@pytest.mark.parametrize("place", flush_trace.PLACES)
def test_a_flush_is_traced_where_it_is_not_counted(place: str) -> None:
    """The filter names the disk by its number, 8:0 as 8 << 20; the trace is taken away, and the note settled."""
    host = Traced()
    host.mount_tracefs(place)
    owe(host, "sda")
    host.mutations.clear()
    flush_disk(host, "sda")
    trace = host.mutations[0][2]
    assert trace.startswith(f"{place}/instances/durable-dbhost-{os.getpid()}-")
    assert host.mutations[:5] == [
        ("change", "mkdir", trace),
        ("attribute", f"{trace}/events/block/block_rq_complete/filter", '(dev == 8388608) && rwbs ~ "FF*"'),
        ("attribute", f"{trace}/events/block/block_rq_complete/enable", "1"),
        ("change", "sync", "/dev/sda"),
        ("change", "rmdir", trace),
    ]
    assert (host.traces(), is_owed(host, "sda")) == ([], False)


@pytest.mark.parametrize("how", ["not sent", "refused"])
def test_a_flush_that_is_not_seen_in_the_trace_is_owed_on(how: str) -> None:
    host = Traced()
    owe(host, "sda")
    host.disk("sda").counts = how != "not sent"
    host.error = -5 if how == "refused" else 0
    with pytest.raises(ChangeFailed, match="sda: observed no flush counted during a sync"):
        flush_disk(host, "sda")
    assert (host.traces(), is_owed(host, "sda")) == ([], True)


def test_what_others_send_meanwhile_is_not_counted() -> None:
    host = Traced()
    host.disk("sda").counts = False
    with counted(host, "sda") as count:
        host.change(["sync", "/dev/sdb"])
        assert count() == 0
        host.disk("sda").counts = True
        host.beside = OTHERS
        host.change(["sync", "/dev/sda"])
        assert count() == 1


@pytest.mark.parametrize("attribute", ["filter", "enable"])
def test_tracing_that_is_refused_is_told_and_nothing_is_flushed(attribute: str) -> None:
    """As under lockdown, or a policy of SELinux."""

    class Refusing(Traced):
        def on_attribute(self, path: str, value: str) -> None:
            if path.endswith(attribute):
                raise ChangeFailed(f"{path}: writing {value!r}: Operation not permitted")
            super().on_attribute(path, value)

    host = Refusing()
    owe(host, "sda")
    with pytest.raises(
        ChangeFailed,
        match=r"sda: kernel 4\.18\.0-553\.el8_10\.x86_64 counts no flushes of disks, as Linux 5\.5 and later do, and they could"
        rf" not be traced: .*/{attribute}: writing .*: Operation not permitted",
    ):
        flush_disk(host, "sda")
    assert (host.traces(), is_owed(host, "sda")) == ([], True)
    assert ("change", "sync", "/dev/sda") not in host.mutations


def test_without_tracefs_the_message_says_how_it_is_mounted() -> None:
    host = Traced()
    host.mount_tracefs("")
    with pytest.raises(ChangeFailed, match="mount -t tracefs nodev /sys/kernel/tracing, then run again"):
        flush_disk(host, "sda")
    assert host.mutations == []


def test_a_device_without_a_number_is_not_traced() -> None:
    host = Traced()
    host.files[f"{host.disk('sda').sysfs}/dev"] = "none\n"
    with pytest.raises(
        ChangeFailed, match="/sys/block/sda/dev: observed 'none', expected the device's number"
    ):
        flush_disk(host, "sda")
    assert host.mutations == []


def test_what_a_killed_process_left_is_taken_away_and_nobody_else_s() -> None:
    host = Traced()
    host.stop_at = 5
    with pytest.raises(Killed):
        flush_disk(host, "sda")
    host.stop_at = 0
    (left,) = host.traces()
    # This process lives, as far as anybody can see; one of number 4194305 does not.
    host.files[f"{host.tracefs}/instances/durable-dbhost-4194305-1/trace"] = ""
    flush_disk(host, "sda")
    assert host.traces() == [left]
    del host.files[f"/proc/{os.getpid()}/comm"]
    flush_disk(host, "sda")
    assert host.traces() == []
    assert host.exists(f"{host.tracefs}/instances/somebodys")
