# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a lab machine: bring it to a profile, and die before the n-th change to it.

    python3 -m durable.kill_harness enforce PROFILE NOW [KILL_BEFORE]
    python3 -m durable.kill_harness learn NOW PROFILE...
    python3 -m durable.kill_harness points START GOAL NOW
    python3 -m durable.kill_harness undone START GOAL NOW [FIRST]
    python3 -m durable.kill_harness restore PROFILE

The same policy and layers that the playbook runs, in the plan's order, without Ansible. The n-th
call that would change the machine never happens: the process kills itself, as an operator, the
OOM killer or a lost connection would. What is printed is one JSON object a line.

`enforce` is one such run. `learn` brings the machine to each profile in turn, as it is after a boot, and
keeps what it is then; `restore` goes back to that. `points` goes back to START for each n, lets a run to
GOAL die there, and tells the truth of the machine; the last run comes to its end. `undone` does so with runs that arm
the dead man's switch first, and lets it put the machine back after each. Who judges that is elsewhere.

A profile's inputs are in PROFILE.json: `inputs`, as the inventory says, and `power`: the facts of a UPS. These are a
stand-in (there is no UPS here), but for those of the guard: they are the machine's own.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import partial
from itertools import count
from typing import Any

from . import catalog, truth_script
from . import kill_state as state
from .host import our_paths
from .host.our_paths import TRIAL
from .host.seam import ChangeFailed, Host, Unobservable
from .policy.assessment import assess
from .policy.inputs import Inputs
from .policy.plan import STEPS
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
    """The machine, until the change before which this process dies. `tell` hears of each change and of the death."""

    def __init__(self, kill_before: int, tell: Callable[[Told], None]) -> None:
        self.kill_before = kill_before
        self.tell = tell
        self.made: list[str] = []

    def _mortal(self, name: str, act: Callable[[], None]) -> None:
        if len(self.made) + 1 == self.kill_before:
            self.tell({"killed_before": name})
            os.kill(os.getpid(), signal.SIGKILL)
        act()
        self.made.append(name)
        self.tell({"made": name})

    def change(self, argv: list[str], *more: Any, **options: Any) -> None:
        self._mortal(" ".join(argv), lambda: super(MortalHost, self).change(argv, *more, **options))

    def write_attribute(self, path: str, value: str) -> None:
        self._mortal(f"{value} > {path}", lambda: super(MortalHost, self).write_attribute(path, value))

    def write_file(self, path: str, content: bytes, mode: int = 0o644, owner: int = 0) -> None:
        write = partial(super().write_file, path, content, mode, owner)
        self._mortal(f"write {path}", write)

    def remove_file(self, path: str, owner: int = 0) -> None:
        self._mortal(f"remove {path}", lambda: super(MortalHost, self).remove_file(path, owner))


def enforce(
    profile: str,
    now: str,
    kill_before: int,
    tell: Callable[[Told], None],
    found: dict[str, Any] | None = None,
    is_armed: bool = False,
) -> None:
    """Assess, enforce, assess again; tell what was made, and how it ended. `found`: the first assessment, if known.

    `is_armed`: whether the dead man's switch is armed before.
    """
    host = MortalHost(kill_before, tell)
    found = found or _assess(host, profile, now)
    undone = arm(host, LAYERS, found["steps"], _WAIT) if is_armed else host
    for phase, layer in STEPS:
        if layer in found["plan"][phase]:
            try:
                taker = undone if catalog.LAYERS[layer].undone else host
                _apply(taker, LAYERS[layer], found["plan"][phase][layer], found["lease"])
            except (ChangeFailed, Unobservable) as error:
                tell({"failed": f"{phase} {layer}: {error}"})
                return
    tell({"ended": {"made": host.made, **_judged(host, profile, now)}})


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
    """Bring the machine to each profile, boot its mounts anew, and keep what it is then."""
    kept: dict[str, Any] = {}
    for profile in profiles:
        first = _in_child(partial(enforce, profile, now, 0, _tell))
        state.mount_as_at_boot()
        second = _judged(Host(), profile, now)
        kept[profile] = {"arrived": state.keep()}
        kept[profile]["start"] = state.keep_loose() if profile == "ups" else kept[profile]["arrived"]
        yield {"profile": profile, "first": first[-1], "second": second, "truth": truth_script.look()}
        with open(_KEPT, "w", encoding="utf-8") as handle:
            json.dump(kept, handle)


def points(start: str, goal: str, now: str) -> Iterator[Told]:
    """Yield the truth after each death on the way, and after the run that ended."""
    kept = _kept()
    yield from _deaths(kept[start]["start"], partial(enforce, goal), goal, now, _as_left)
    state.mount_as_at_boot()
    yield {"booted": truth_script.look(), "differs": state.difference(kept[goal]["arrived"])}


def _as_left() -> Told:
    return {"truth": truth_script.look(), "owed": state.owed()}


def undone(start: str, goal: str, now: str, first: str = "1") -> Iterator[Told]:
    """Yield the truth after each death on the way, and after the run that ended, once the switch has put the machine back.

    `first`: before which change the first of them dies.
    `code`: the exit code of its program; `differs`: the files that are not as they were, but for its own and those of a trial,
    which no boot reads; `state`, `said`: the switch's.
    """
    wanted = _kept()[start]["start"]
    run = partial(enforce, goal, is_armed=True)
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
            path for path in state.files_that_differ(wanted) if "undo" not in path and TRIAL not in path
        ],
        **installed.look(Host())._asdict(),
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
    told: list[Told] = []
    found: dict[str, Any] = {}
    for number in count(first):
        if told and "killed_before" not in told[-1]:
            return
        began = time.monotonic()
        state.restore(wanted, seen)
        # The machine is what it was, so this is too; and it takes longer than all the rest.
        found = found or _assess(Host(), goal, now)
        told = _in_child(partial(run, now, number, _tell, found))
        made = [line["made"] for line in told if "made" in line]
        if any(name.startswith("systemctl") for name in made):
            state.forget_systemd()
        state.settle()
        left = look()
        seen = left["truth"]
        seconds = round(time.monotonic() - began, 2)
        yield {"number": number, **told[-1], "made": made, "seconds": seconds, **left}


def _kept() -> dict[str, Any]:
    with open(_KEPT, encoding="utf-8") as handle:
        found: dict[str, Any] = json.load(handle)
    return found


def _in_child(act: Callable[[], None]) -> list[Told]:
    """Let a process of its own act and, it may be, die; return what it told, in order."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writer, 1)
        try:
            act()
        except BaseException as error:
            _tell({"failed": f"{type(error).__name__}: {error}"})
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as handle:
        told = [json.loads(line) for line in handle]
    os.waitpid(child, 0)
    return told


def _tell(told: Told) -> None:
    # Straight to the descriptor: nothing waits in a buffer when this process dies.
    os.write(1, (json.dumps(told) + "\n").encode("utf-8"))


def main(command: str, *words: str) -> None:
    """Run one of the commands."""
    if command == "enforce":
        profile, now, kill_before = (*words, "0")[:3]
        enforce(profile, now, int(kill_before), _tell)
        return
    if command == "restore":
        state.restore(_kept()[words[0]]["start"])
        return
    ways = {"points": points, "undone": undone}
    told = learn(words[0], list(words[1:])) if command == "learn" else ways[command](*words)
    for line in told:
        _tell(line)


if __name__ == "__main__":
    main(*sys.argv[1:])
