# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of a disk after all udev rules, before any other component acts. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ..host.observation import UNKNOWN
from . import acts, effects, foreign_rules
from .acts import WRITE_BACK, Act, Device
from .effects import UNSET, State, Value

#: What our rules set.
_OURS = (acts.CACHE, acts.SCHEDULER, acts.READAHEAD)
_STATES = ("enabled", "disabled")


def after_udev(
    state: State, found: foreign_rules.Found, device: Device, own: Mapping[str, str], control: str | None
) -> State:
    """Return the state of a disk after udev's rules and their commands; `own`: what ours set."""
    for act in found.before:
        state = effects.after(state, act, device, False)
    state = _without_ours(state, own, found.lost) if found.lost else _with_ours(state, own, control)
    for act in (*found.after, *found.runs_before):
        state = effects.after(state, act, device, True)
    if control in ("sata", "nvme"):
        # Our command is run after them; all else of ours is set before any command.
        state = state._replace(cache=state.cache._replace(is_late=False))
        state = _after_our_command(state, found, own)
    for act in found.runs_after:
        state = effects.after(state, act, device, True)
    return state


def _with_ours(state: State, own: Mapping[str, str], control: str | None) -> State:
    """Return the state after the values that our rules write."""
    cache = own.get(acts.CACHE, UNSET)
    if cache in _STATES:
        mode = acts.WRITE_THROUGH if control == "virtio" and cache == "disabled" else WRITE_BACK
        state = state._replace(mode=Value(mode), is_forced=False)
        if control not in ("sata", "nvme"):
            state = state._replace(cache=Value(cache))
    for setting in (acts.SCHEDULER, acts.READAHEAD):
        if own.get(setting, UNSET) != UNSET:
            state = state.put(setting, Value(own[setting]))
    return state


def _after_our_command(state: State, found: foreign_rules.Found, own: Mapping[str, str]) -> State:
    cache = own.get(acts.CACHE, UNSET)
    if cache not in _STATES or found.lost:
        return state
    if found.deaf:
        lost = Act(foreign_rules.BY, found.deaf, "script", ("commands of other rules are not run",), False)
        return state._replace(cache=Value(UNKNOWN, lost, True))
    return state._replace(cache=Value(cache))


def _without_ours(state: State, own: Mapping[str, str], source: str) -> State:
    """Return the state if a rule of another owner changes the name by which ours match the disk."""
    why = "it changes the name by which our rule finds the disk"
    act = Act(foreign_rules.BY, source, "script", (why,), False)
    for setting in _OURS:
        nothing = (UNSET, UNKNOWN, *(("none",) if setting == acts.CACHE else ()))
        if own.get(setting, UNSET) not in nothing:
            state = state.put(setting, Value(UNKNOWN, act, True))
    return state


def agreed(first: State, second: State) -> State:
    """Return a disk's state after its first event, unknown if a later event changes it."""
    result = first
    for setting in (*_OURS, acts.MODE):
        one, other = first.of(setting), second.of(setting)
        if one.value != other.value:
            act = other.act or one.act
            value = Value(UNKNOWN, act._replace(is_certain=False), other.is_late) if act else other
            result = result.put(setting, value)
    return result
