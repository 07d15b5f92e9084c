# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever happens to the power, to whoever watches it, or to the guard: barriers are back, and nothing is exposed.

Commits go on all the while. The log of the disk tells which of them a power cut would take at any moment, and the disk
is rebuilt at some of them.
"""

from __future__ import annotations

import pytest
from support.site import FLUSHED, GUARD, LIMIT, Site

from proof import exposure
from proof.log import Event, Kind

QUIET = 10.0
#: What happens -> what does it, and how long the guard, or systemd, may take to notice.
EVENTS = {
    "upsd has gone": ("systemctl stop nut-server", LIMIT),
    "upsmon is killed": ("systemctl kill --signal=KILL nut-monitor", LIMIT),
    "the battery wants replacing": ("sleep 1.1; lab-ups 'OL RB' 3600", LIMIT),
    "the guard is killed": (f"kill -KILL $(systemctl show -P MainPID {GUARD})", LIMIT),
    "the guard is stopped": (f"systemctl stop {GUARD}", LIMIT),
    # systemd's watchdog waits 20 s.
    "the guard hangs": (f"kill -STOP $(systemctl show -P MainPID {GUARD})", 2 * LIMIT),
}


def flushes(events: list[Event], begin: int, end: int) -> list[int]:
    """Return where the disk was flushed after one event and up to another."""
    return [event.sequence for event in events[begin + 1 : end + 1] if event.kind is Kind.FLUSH]


def expect_nothing_lost(site: Site, found: list[exposure.Commit], since: int, end: int) -> None:
    """No commit is exposed at any event from `since` to `end`, and there are some to be lost."""
    assert [each for each in found if since < each.acknowledged <= end], "nothing was committed afterwards"
    bad = [
        each
        for each in found
        if each.acknowledged <= end and (each.durable is None or each.durable > max(since, each.acknowledged))
    ]
    assert not bad, f"{len(bad)} acknowledged commits are exposed after the flush, as {bad[0]}"


def test_on_battery_barriers_and_a_flush_come_first(loose: Site) -> None:
    cursor = loose.cursor()
    begin = len(loose.events())
    with loose.committing() as job:
        # Edited and told in one go: the mark is the moment of the event.
        loose.sh(f"sleep 1.1; {loose.mark('event')}; lab-ups 'OB DISCHRG' 3600")
        loose.await_guard(cursor, FLUSHED)
        loose.sh(loose.mark("told"))
        assert loose.barrier() == "on"
        loose.sh(f"sleep 2; {loose.mark('end')}")
    event, told, end = loose.at("event"), loose.at("told"), loose.at("end")
    found = loose.commits(job, begin)
    first = flushes(loose.events(), event, told)[0]
    exposed = {name: exposure.exposed(found, at) for name, at in (("event", event), ("flush", first - 1))}
    print(f"exposed at the event: {exposed['event']}, just before the flush: {exposed['flush']}")
    assert exposed["flush"] >= exposed["event"] > 0
    assert exposure.exposed(found, first) == 0
    expect_nothing_lost(loose, found, first, end)
    # Until then nobody flushed it: before the event as well.
    assert not flushes(loose.events(), min(each.acknowledged for each in found), event)

    # The same by rebuilding the disk: before the flush that many are gone, after it none.
    before, after, later = loose.cut_at(job, begin, [first - 1, first, end])
    assert (before.missing, after.missing, later.missing) == (exposed["flush"], 0, 0)
    assert after.clean and later.clean, f"{after.said} {later.said}"

    # In the journal the same: barriers, then the flush.
    said = loose.guard(cursor)
    barriers = next(place for place, line in enumerate(said) if "barriers are on" in line)
    flushed = next(place for place, line in enumerate(said) if FLUSHED in line)
    assert barriers < flushed
    # Before them is nothing but why.
    assert all(
        "tightening" in line or "monitor" in line or "status_online" in line for line in said[:barriers]
    ), said


def test_the_power_is_back_and_barriers_go_after_the_quiet_time_and_not_before(loose: Site) -> None:
    loose.ups("OB DISCHRG")
    loose.await_barrier("on")
    cursor = loose.cursor()
    back = float(loose.sh("sleep 1.1; cut -d' ' -f1 /proc/uptime; lab-ups OL 3600"))
    loose.await_guard(cursor, "barriers are off")
    assert loose.barrier() == "off"
    off = next(
        line
        for line in loose.journal(cursor, f"_SYSTEMD_UNIT={GUARD}")
        if "barriers are off" in line["MESSAGE"]
    )
    waited = int(off["__MONOTONIC_TIMESTAMP"]) / 1e6 - back
    print(f"loosened {waited:.1f} s after the power was back")
    assert waited >= QUIET


@pytest.mark.parametrize("what", EVENTS)
def test_barriers_are_back_and_a_power_cut_takes_nothing(loose: Site, what: str) -> None:
    act, limit = EVENTS[what]
    cursor = loose.cursor()
    begin = len(loose.events())
    with loose.committing() as job:
        loose.sh(f"{loose.mark('event')}; {act}")
        loose.await_guard(cursor, FLUSHED, limit)
        # The kernel's own word, and the disk's, in one go: a guard that was started again may loosen again soon.
        seen = loose.barrier(f"{loose.mark('told')}; sleep 1; {loose.mark('end')}")
    assert seen == "on"
    event, told, end = loose.at("event"), loose.at("told"), loose.at("end")
    found = loose.commits(job, begin)
    assert exposure.exposed(found, event) > 0, "nothing was exposed before: this shows nothing"
    expect_nothing_lost(loose, found, told, end)
    (cut,) = loose.cut_at(job, begin, [end])
    assert (cut.lost, cut.clean) == (False, True), cut.said
    assert cut.acknowledged > 0
