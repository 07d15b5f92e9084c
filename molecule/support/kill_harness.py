# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a lab machine: bring it to a profile, and die before the n-th change to it.

    python3 -m durable.kill_harness enforce PROFILE NOW [KILL_BEFORE]
    python3 -m durable.kill_harness learn NOW PROFILE...
    python3 -m durable.kill_harness points START GOAL NOW
    python3 -m durable.kill_harness again START GOAL NOW
    python3 -m durable.kill_harness undone START GOAL NOW [FIRST]
    python3 -m durable.kill_harness restore PROFILE

The same policy and layers that the playbook runs, in the plan's order, without Ansible. The n-th
call that would change the machine never happens: the process kills itself, as an operator, the
OOM killer or a lost connection would. What is printed is one JSON object a line.

`enforce` is one such run. `learn` brings the machine to each profile in turn, as it is after a boot, and
keeps what it is then; `restore` goes back to that. `again` goes back to START for each n, lets a run to GOAL die
there, and tells the truth of the machine; the last run comes to its end. `points` tells the same without making n - 1
changes again: a run from START dies before each change, and a copy of its process, forked the moment before, waits
until the machine was looked at, makes that change, and dies before the next. Between two changes a run holds nothing
that the kernel takes back at its death, so what is looked at is what it leaves. One more run goes through without a stop.
`undone` is `again` with runs that arm the rollback timer first; the switch puts the machine back after each. Who
judges all that is elsewhere.

A profile's inputs are in PROFILE.json: `inputs`, as the inventory says, and `power`: the facts of a UPS. These are a
stand-in (there is no UPS here), except those of the guard: they are the machine's own.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout, suppress
from functools import partial
from itertools import count
from typing import Any, NoReturn

from . import catalog, truth_script
from . import kill_state as state
from .host import our_paths
from .host.mountinfo import Mount
from .host.our_paths import TRIAL
from .host.seam import ChangeFailed, Host, Unobservable
from .policy.assess.plan import STEPS
from .policy.expect.inputs import Inputs
from .policy.show.assessment import assess
from .storage import collect as storage
from .storage import io_scheduler, mount_options, write_cache
from .undo import installed, put_back
from .undo.arm import arm
from .ups.guard import apply as power_guard
from .ups.guard import state as guard_state

LAYERS: dict[str, Any] = {
    "mount_options": mount_options,
    "write_cache": write_cache,
    "io_scheduler": io_scheduler,
    "power_guard": power_guard,
}
_KEPT = "/root/kill-states.json"
#: Seconds that the switch waits: longer than a death takes, so that it is let go by hand.
_WAIT = 900
Told = dict[str, Any]


class MortalHost(Host):
    """The machine, until the change before which this process dies. Each change is told, and the death."""

    def __init__(self, kill_before: int) -> None:
        self.kill_before = kill_before
        self.made: list[str] = []

    def _mortal(self, name: str, act: Callable[[], None]) -> None:
        if self._dies_here():
            _tell({"killed_before": name, "pid": os.getpid()})
            os.kill(os.getpid(), signal.SIGKILL)
        act()
        self.made.append(name)
        _tell({"made": name})

    def _dies_here(self) -> bool:
        return len(self.made) + 1 == self.kill_before

    def change(self, argv: list[str], *more: Any, **options: Any) -> None:
        self._mortal(" ".join(argv), lambda: super(MortalHost, self).change(argv, *more, **options))

    def write_attribute(self, path: str, value: str) -> None:
        self._mortal(f"{value} > {path}", lambda: super(MortalHost, self).write_attribute(path, value))

    def write_file(self, path: str, content: bytes, mode: int = 0o644, owner: int = 0) -> None:
        write = partial(super().write_file, path, content, mode, owner)
        self._mortal(f"write {path}", write)

    def remove_file(self, path: str, owner: int = 0) -> None:
        self._mortal(f"remove {path}", lambda: super(MortalHost, self).remove_file(path, owner))

    def give_file(self, path: str, *more: Any, **given: Any) -> None:
        self._mortal(f"chown {path}", lambda: super(MortalHost, self).give_file(path, *more, **given))

    def set_mount_options(self, mount: Mount, options: Sequence[str], *more: Any, **given: Any) -> None:
        set_options = partial(super().set_mount_options, mount, options, *more, **given)
        self._mortal(f"remount {','.join(options)} {mount.target}", set_options)

    def set_mount_atime(self, mount: Mount, atime: str, *more: Any, **given: Any) -> None:
        set_atime = partial(super().set_mount_atime, mount, atime, *more, **given)
        self._mortal(f"remount {atime} {mount.target}", set_atime)

    def make_mount_writable(self, mount: Mount, *more: Any, **given: Any) -> None:
        self._mortal(
            f"remount rw {mount.target}", partial(super().make_mount_writable, mount, *more, **given)
        )


class CopiedHost(MortalHost):
    """The machine; before each change this process dies, and a copy of it goes on once it may."""

    def __init__(self, may_go_on: int) -> None:
        super().__init__(kill_before=0)
        self.may_go_on = may_go_on

    def _dies_here(self) -> bool:
        if os.fork():
            return True
        if not os.read(self.may_go_on, 1):
            # Nobody is left who would look at the machine.
            os._exit(1)
        return False


def enforce(
    profile: str, now: str, host: MortalHost, found: dict[str, Any] | None = None, is_armed: bool = False
) -> None:
    """Assess, enforce, assess again; tell what was made, and how it ended. `found`: the first assessment, if known.

    `is_armed`: whether the rollback timer is armed before.
    """
    try:
        make(found or _assess(host, profile, now), host, is_armed)
    except (ChangeFailed, Unobservable) as error:
        _tell({"failed": str(error)})
        return
    _tell({"ended": {"made": host.made, **_judged(host, profile, now)}})


def make(found: dict[str, Any], host: MortalHost, is_armed: bool = False) -> None:
    """Make the changes that an assessment has found. Raises ChangeFailed and Unobservable."""
    undone = arm(host, LAYERS, found["steps"], _WAIT) if is_armed else host
    for phase, layer in STEPS:
        if layer in found["plan"][phase]:
            taker = undone if catalog.LAYERS[layer].undone else host
            _apply(taker, LAYERS[layer], found["plan"][phase][layer], found["lease"])


def _judged(host: Host, profile: str, now: str) -> Told:
    """Return what an assessment says of the machine now."""
    found = _assess(host, profile, now)
    return {field: found[field] for field in ("verdict", "changes", "pending", "why")}


def _assess(host: Host, profile: str, now: str) -> dict[str, Any]:
    with open(f"/root/{profile}.json", encoding="utf-8") as handle:
        given = json.load(handle)
    seen = storage.collect(host, now)
    power = None
    # The playbook, too, asks for power where the profile rests on it, or a guard may be there.
    if profile == "ups" or seen["leased"] != "no":
        power = {**given["power"], "boot_id": seen["boot_id"], "time": now, "guard": guard_state.read(host)}
    return assess(Inputs(**given["inputs"]), seen, now, None, power)


def _apply(host: Host, layer: Any, rows: list[Any], lease: dict[str, Any] | None) -> None:
    """Call a layer as its module does; the guard without a mount is one that is taken away."""
    targets = [layer.target_of(row) for row in rows]
    if layer is power_guard and not targets:
        layer.apply_release(host, layer.plan_release(host))
        return
    terms = {}
    if layer is power_guard:
        terms = {name: value for name, value in (lease or {}).items() if name != "mounts"}
    layer.apply(host, layer.plan(host, targets, **terms), targets)


def learn(now: str, profiles: list[str]) -> Iterator[Told]:
    """Bring the machine to each profile, boot its mounts again, and keep what it is then."""
    kept: dict[str, Any] = {}
    for profile in profiles:
        first = _in_child(partial(enforce, profile, now, MortalHost(0)))
        state.mount_as_at_boot()
        second = _judged(Host(), profile, now)
        kept[profile] = {"arrived": state.keep()}
        kept[profile]["start"] = state.keep_loose() if profile == "ups" else kept[profile]["arrived"]
        yield {"profile": profile, "first": first[-1], "second": second, "truth": truth_script.look()}
        with open(_KEPT, "w", encoding="utf-8") as handle:
            json.dump(kept, handle)


def points(start: str, goal: str, now: str) -> Iterator[Told]:
    """Yield the truth after each death on the way, and after a run without a stop; then that of the next mounts."""
    kept = _kept()
    wanted = kept[start]["start"]
    state.restore(wanted)
    found = _assess(Host(), goal, now)
    number = 0
    for number, point in enumerate(_deaths_of_one(partial(make, found)), 1):
        yield {"number": number, **point}
    state.forget_systemd()
    state.restore(wanted)
    yield {"number": number + 1, **_left_by(partial(enforce, goal, now, MortalHost(0), found), _as_left)}
    state.mount_as_at_boot()
    yield {"booted": truth_script.look(), "differs": state.difference(kept[goal]["arrived"])}


def anew(start: str, goal: str, now: str) -> Iterator[Told]:
    """Yield the truth after each death on the way, and after the run that ended: one run from the start for each."""
    yield from _deaths(_kept()[start]["start"], partial(enforce, goal, now), goal, now, _as_left)


def _as_left() -> Told:
    return {"truth": truth_script.look(), "owed": state.owed()}


def undone(start: str, goal: str, now: str, first: str = "1") -> Iterator[Told]:
    """Yield the truth after each death on the way, and after the run that ended, once the switch has put the machine back.

    `first`: before which change the first of them dies.
    `code`: the exit code of its program; `differs`: the files that are not as they were, except its own and those of a trial,
    which no boot reads; `state`, `said`: the switch's.
    """
    wanted = _kept()[start]["start"]
    run = partial(enforce, goal, now, is_armed=True)
    yield from _deaths(wanted, run, goal, now, partial(_as_put_back, wanted, now), int(first))


def _as_put_back(wanted: state.State, now: str) -> Told:
    """Let the switch do now what it does when it has waited, in a process of its own."""
    state.stop(our_paths.UNDO_SERVICE)
    told = _in_child(lambda: _tell({"code": _put_back(now)}))
    state.forget_systemd()
    state.settle()
    return {
        "code": told[-1].get("code"),
        "differs": [
            path
            for path in state.files_that_differ(wanted)
            if path != our_paths.LOCK and "undo" not in path and TRIAL not in path
        ],
        **installed.switch_of(Host())._asdict(),
        "truth": truth_script.look(),
    }


def _put_back(now: str) -> int:
    with redirect_stdout(sys.stderr):
        return put_back.put_back(Host(), now)


def _deaths(
    wanted: state.State,
    run: Callable[..., None],
    goal: str,
    now: str,
    look: Callable[[], Told],
    first: int = 1,
) -> Iterator[Told]:
    """Bring the machine back, let a run die before the n-th change, and yield what it left; for each n until one has ended."""
    seen = None
    found: dict[str, Any] = {}
    for number in count(first):
        state.restore(wanted, seen)
        # The machine is what it was, so this is too; and it takes longer than all the rest.
        found = found or _assess(Host(), goal, now)
        point = {"number": number, **_left_by(partial(run, MortalHost(number), found), look)}
        yield point
        if "killed_before" not in point:
            return
        seen = point["truth"]


def _left_by(run: Callable[[], None], look: Callable[[], Told]) -> Told:
    """Let a run die or end, and return what it left."""
    began = time.monotonic()
    told = _in_child(run)
    made = [line["made"] for line in told if "made" in line]
    if any(name.startswith("systemctl") for name in made):
        state.forget_systemd()
    return _seen(began, told[-1], made, look)


def _deaths_of_one(run: Callable[[MortalHost], None]) -> Iterator[Told]:
    """Let a run die before each change, and its copy go on; yield what each death left."""
    reader, writer = os.pipe()
    waiting, go_on = os.pipe()
    if os.fork() == 0:
        os.close(go_on)
        _act(partial(run, CopiedHost(waiting)), writer)
    os.close(writer)
    os.close(waiting)
    made: list[str] = []
    began = time.monotonic()
    with open(reader, encoding="utf-8") as lines, open(go_on, "wb", buffering=0) as let_go:
        for told in map(json.loads, lines):
            if "failed" in told:
                raise state.NotAsItWas(f"the run that dies before each change: {told['failed']}")
            made += [told["made"]] if "made" in told else []
            if "killed_before" in told:
                _wait_for_end(told["pid"])
                yield _seen(began, told, made, _as_left)
                began = time.monotonic()
                let_go.write(b".")


def _wait_for_end(pid: int) -> None:
    """Wait until a process has ended, which need not be a child of this one."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        select.select([descriptor], [], [])
        os.close(descriptor)


def _seen(began: float, told: Told, made: list[str], look: Callable[[], Told]) -> Told:
    state.settle()
    left = look()
    return {**told, "made": [*made], "seconds": round(time.monotonic() - began, 2), **left}


def _kept() -> dict[str, Any]:
    with open(_KEPT, encoding="utf-8") as handle:
        found: dict[str, Any] = json.load(handle)
    return found


def _in_child(act: Callable[[], None]) -> list[Told]:
    """Let a process of its own act and, it may be, die; return what it told, in order."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _act(act, writer)
    os.close(writer)
    with open(reader, encoding="utf-8") as handle:
        told = [json.loads(line) for line in handle]
    os.waitpid(child, 0)
    return told


def _act(act: Callable[[], None], writer: int) -> NoReturn:
    """Act in a process of its own, which tells by this descriptor, and end it."""
    os.dup2(writer, 1)
    try:
        act()
    except BaseException as error:
        _tell({"failed": f"{type(error).__name__}: {error}"})
    finally:
        os._exit(0)


def _tell(told: Told) -> None:
    # Straight to the descriptor: nothing waits in a buffer when this process dies.
    os.write(1, (json.dumps(told) + "\n").encode("utf-8"))


def main(command: str, *words: str) -> None:
    """Run one of the commands."""
    if command == "enforce":
        profile, now, kill_before = (*words, "0")[:3]
        enforce(profile, now, MortalHost(int(kill_before)))
        return
    if command == "restore":
        state.restore(_kept()[words[0]]["start"])
        return
    ways = {"points": points, "again": anew, "undone": undone}
    told = learn(words[0], list(words[1:])) if command == "learn" else ways[command](*words)
    for line in told:
        _tell(line)


if __name__ == "__main__":
    main(*sys.argv[1:])
