# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state that the guard publishes, and which parts of it can be trusted."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ...facts.classes import GuardedMount, GuardFacts, LeaseFacts
from ...host import json_text
from ...host.mountinfo import Mount, parse_mountinfo, visible
from ...host.observation import UNKNOWN
from ...host.our_paths import LEASE, STATE
from ...host.seam import Host, Unobservable
from ...storage.blockstack import Blocks
from ...storage.filesystems import EXT, FileSystems
from . import lease
from .lease import Lease

SCHEMA = 1
#: Nothing of a guard is there.
ABSENT = "absent"
#: All conditions are met, but not for long enough yet.
WAITING = "waiting"
#: Barriers are off.
LOOSE = "loose"
#: Barriers are on, because something is not as it must be.
TIGHT = "tight"
#: Barriers could not be brought back, or no flush could be counted.
FAILED = "failed"
#: There is a lease, and nobody guards it.
STOPPED = "stopped"
#: A guard that runs, whatever it does with the barriers.
RUNNING = (WAITING, LOOSE, TIGHT)
_STATES = (WAITING, LOOSE, TIGHT, FAILED, STOPPED)
#: Seconds without a sign after which a guard is not trusted any more; it gives one every few seconds, and
#: one that tightens gives none meanwhile.
_SILENT = 60.0


class Below(NamedTuple):
    """What lay below a mount point: its file system's device (`major:minor`) and the disks, '' and none
    if that was not read yet."""

    device: str = ""
    disks: tuple[str, ...] = ()


class Record(NamedTuple):
    """What the guard wrote last.

    `boot`, `pid` and `start` say which process it was, `beat` when, in seconds since the boot. `since` is
    when the state began, ISO, UTC. `quiet` are the seconds that are left to wait, None where it does not
    wait. `kept` is what it looks after: {mount point: what lay below it}.
    """

    boot: str
    pid: int
    start: int
    beat: float
    state: str
    reason: str
    since: str
    quiet: int | None
    kept: dict[str, Below]

    def render(self) -> str:
        """Return the file's text."""
        kept = {target: below._asdict() for target, below in self.kept.items()}
        return json.dumps({"schema": SCHEMA, **self._asdict(), "kept": kept}) + "\n"


def read(host: Host) -> GuardFacts:
    """Return the facts of the guard. Nothing here raises: what cannot be read is `unknown`.

    {state, reason, since, quiet, lease, mounts: [{target, barrier}]}; `lease` is None if there is
    none, else what it allows, its mounts by mount point alone. `barrier` is the kernel's own word.
    """
    try:
        allowed = lease.read(host)
    except Unobservable as error:
        return _facts(host, UNKNOWN, str(error), None, None)
    try:
        record = last(host)
    except Unobservable as error:
        return _facts(host, UNKNOWN, str(error), None, allowed)
    if record is None:
        if allowed is None:
            return _facts(host, ABSENT, "there is no lease", None, None)
        return _facts(host, STOPPED, f"{LEASE} is there, and no guard has run since the boot", None, allowed)
    state, reason = _trusted(host, record, allowed)
    return _facts(host, state, reason, record, allowed)


def identity(host: Host, pid: int) -> tuple[str, int]:
    """Return the boot's id, and when a process began in that boot, in the kernel's ticks.

    Raises Unobservable if there is no such process.
    """
    boot = host.read("/proc/sys/kernel/random/boot_id").strip()
    path = f"/proc/{pid}/stat"
    # The name of a program may hold anything, brackets too: the last one ends it.
    fields = host.read(path).rpartition(")")[2].split()
    try:
        if fields[0] in ("Z", "X"):
            raise Unobservable(f"{path}: it has ended")
        return boot, int(fields[19])
    except (ValueError, IndexError):
        raise Unobservable(f"{path}: not of the form that proc(5) describes") from None


def uptime(host: Host) -> float:
    """Return the seconds since the boot, those asleep too. Raises Unobservable."""
    text = host.read("/proc/uptime")
    try:
        return float(text.split()[0])
    except (ValueError, IndexError):
        raise Unobservable(f"/proc/uptime: observed {text!r}, expected seconds") from None


def parse(text: str) -> Record:
    """Return what a text says. Raises ValueError."""
    try:
        found = json_text.loads(text)
    except ValueError:
        raise ValueError("not JSON") from None
    if not isinstance(found, dict) or found.pop("schema", None) != SCHEMA:
        raise ValueError(f"not a state of schema {SCHEMA}")
    if set(found) != set(Record._fields):
        raise ValueError(f"expected the fields {', '.join(Record._fields)}")
    texts = [found[name] for name in ("boot", "state", "reason", "since")]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a text of it is none")
    numbers = [found[name] for name in ("pid", "start", "beat", "quiet") if found[name] is not None]
    if len(numbers) < 3 or not all(_is_number(number) for number in numbers):
        raise ValueError("a number of it is none")
    if found["state"] not in _STATES:
        raise ValueError(f"state: observed {found['state']!r}, expected one of {', '.join(_STATES)}")
    return Record(**{**found, "kept": _below(found["kept"])})


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _below(found: Any) -> dict[str, Below]:
    if not isinstance(found, dict):
        raise ValueError("kept: expected a device and disks for each mount point")
    kept = {}
    for target, below in found.items():
        disks = below.get("disks") if isinstance(below, dict) else None
        device = below.get("device") if isinstance(below, dict) else None
        if not isinstance(disks, list) or not all(isinstance(text, str) for text in (device, *disks)):
            raise ValueError(f"kept: observed {below!r} below {target}, expected a device and disks")
        if any(not name or "/" in name or name.startswith(".") for name in disks):
            raise ValueError(f"kept: observed {disks!r} below {target}, expected names of disks")
        kept[target] = Below(str(device), tuple(disks))
    return kept


def barriers(host: Host, targets: tuple[str, ...]) -> list[GuardedMount]:
    """Return the kernel's own word on each mount point: on, off or unknown."""
    try:
        mounted = {
            mount.target: mount for mount in visible(parse_mountinfo(host.read("/proc/self/mountinfo")))
        }
    except (Unobservable, ValueError):
        mounted = {}
    systems = FileSystems(host, Blocks(host))
    return [{"target": target, "barrier": _barrier(systems, mounted.get(target))} for target in targets]


def _barrier(systems: FileSystems, mount: Mount | None) -> str:
    if mount is None or mount.fstype not in EXT:
        return UNKNOWN
    return systems.running(mount)["barrier"].value


def last(host: Host) -> Record | None:
    """Return what the guard wrote last, None where it wrote nothing. Raises Unobservable."""
    if not host.exists(STATE):
        return None
    text = host.read(STATE)
    try:
        return parse(text)
    except ValueError as error:
        raise Unobservable(f"{STATE}: {error}") from None


def _trusted(host: Host, record: Record, allowed: Lease | None) -> tuple[str, str]:
    """Return the state that the guard is in, as far as that is sure, and why."""
    try:
        boot = host.read("/proc/sys/kernel/random/boot_id").strip()
        if boot != record.boot:
            return UNKNOWN, f"{STATE} is of another boot"
        age = uptime(host) - record.beat
    except Unobservable as error:
        return UNKNOWN, str(error)
    if record.state == FAILED:
        # Whoever wrote it may have ended since: what was not flushed is not flushed by that.
        return FAILED, record.reason
    try:
        runs = identity(host, record.pid)[1] == record.start
    except Unobservable:
        runs = False
    if record.state == LOOSE and not runs:
        return (
            FAILED,
            f"its process {record.pid} has ended while barriers were off, and no flush was counted since",
        )
    if record.state == STOPPED or not runs:
        if allowed is None:
            return ABSENT, "there is no lease, and the guard has stopped"
        reason = record.reason if record.state == STOPPED else f"its process {record.pid} has ended"
        return STOPPED, reason
    if not 0 <= age <= _SILENT:
        return UNKNOWN, f"the guard said {record.state} {age:.0f} s ago, and nothing since"
    return record.state, record.reason


def _facts(host: Host, state: str, reason: str, record: Record | None, allowed: Lease | None) -> GuardFacts:
    named = [mount.target for mount in allowed.mounts] if allowed else []
    targets = tuple(dict.fromkeys((*named, *(record.kept if record else ()))))
    return {
        "state": state,
        "reason": reason,
        "since": record.since if record else None,
        "quiet": record.quiet if record and state == WAITING else None,
        "lease": _lease(allowed) if allowed else None,
        "mounts": barriers(host, targets),
    }


def _lease(allowed: Lease) -> LeaseFacts:
    return {
        "schema": lease.SCHEMA,
        "mounts": [mount.target for mount in allowed.mounts],
        "issued": allowed.issued,
        "expires": allowed.expires,
        "quiet": allowed.quiet,
        "needed": dict(allowed.needed),
        "test_ups": allowed.test_ups,
        "units": list(allowed.units),
    }
