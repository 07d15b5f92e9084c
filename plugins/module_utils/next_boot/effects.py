# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The effect of one act on a disk or mount, and of all acts of a boot. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..host.observation import UNKNOWN
from . import acts
from .acts import CACHE, MODE, READAHEAD, SCHEDULER, WRITE_BACK, WRITE_THROUGH, Act, Device

UNSET = "unset"
_ON, _OFF = "enabled", "disabled"


class Value(NamedTuple):
    """The value of a setting so far, and the act that set it, None for this collection or the kernel.

    `is_late`: our own rule cannot take precedence over the act.
    """

    value: str
    act: Act | None = None
    is_late: bool = False


class State(NamedTuple):
    """The settings of a disk at some moment of a boot. `is_forced`: queue/write_cache was written, and nothing else
    raises the mode again (kernel 6.12)."""

    cache: Value = Value(UNSET)
    mode: Value = Value(UNSET)
    scheduler: Value = Value(UNSET)
    readahead: Value = Value(UNSET)
    is_forced: bool = False

    def of(self, setting: str) -> Value:
        """Return the value of a setting."""
        return {CACHE: self.cache, MODE: self.mode, SCHEDULER: self.scheduler, READAHEAD: self.readahead}[
            setting
        ]

    def put(self, setting: str, value: Value) -> State:
        """Return the state with the value of one setting replaced."""
        if setting == CACHE:
            return self._replace(cache=value)
        if setting == MODE:
            return self._replace(mode=value)
        return self._replace(scheduler=value) if setting == SCHEDULER else self._replace(readahead=value)

    def but(self, setting: str, value: str, act: Act, is_late: bool) -> State:
        """Return the state after an act; the same value from another component changes nothing."""
        if self.of(setting).value == value:
            return self
        return self.put(setting, Value(value if act.is_certain else UNKNOWN, act, is_late))


def after(state: State, act: Act, device: Device, is_late: bool) -> State:
    """Return the state of a disk after an act; the names in it are those that the disk has when it acts."""
    if act.kind == "write":
        attribute = device.attribute(act.words[0])
        if not attribute:
            attribute, act = device.may_be(act.words[0]), act._replace(is_certain=False)
        return after_write(state, attribute, act.words[1], act, device, is_late) if attribute else state
    if act.kind == "command":
        return _after_command(state, act, device, is_late)
    if act.kind == "script" and acts.is_about(act.words[0], device):
        for setting in acts.mentioned(act.words[-1]):
            # A statement of the same value changes nothing, for any device.
            same = setting in _OF_DISKS and acts.stated(act.words[-1], setting) == state.of(setting).value
            if setting in _OF_DISKS and not same:
                state = state.but(setting, UNKNOWN, act, is_late)
            # Also by a write of the same mode.
            state = _reset(state, act, is_late) if setting == MODE else state
    return state


_OF_DISKS = (CACHE, MODE, SCHEDULER, READAHEAD)


def after_write(state: State, attribute: str, value: str, act: Act, device: Device, is_late: bool) -> State:
    """Return the state of a disk after a write to one of its attributes in /sys."""
    value = value.strip()
    if attribute == "write_cache":
        return _after_mode(state, value, act, device, is_late)
    if attribute == "cache_type":
        return _after_cache_type(state, value, act, device, is_late)
    if attribute == "scheduler":
        name = acts.scheduler(value)
        return state.but(SCHEDULER, name, act, is_late) if name else state
    return _after_readahead(state, value, act, is_late)


def _after_mode(state: State, value: str, act: Act, device: Device, is_late: bool) -> State:
    if not value.startswith((WRITE_BACK, WRITE_THROUGH, "none")):
        return state  # The kernel refuses it.
    forced = not value.startswith(WRITE_BACK)
    # Without a pin, virtio's mode is its cache's.
    state = state.but(MODE, WRITE_THROUGH if forced else WRITE_BACK, act, is_late)
    return _reset(state._replace(is_forced=forced), act, is_late)


def _after_cache_type(state: State, value: str, act: Act, device: Device, is_late: bool) -> State:
    is_temporary = value.startswith("temporary ")
    word = value[len("temporary ") :] if is_temporary else value
    cache = {WRITE_BACK: _ON, "write back, no read (daft)": _ON, WRITE_THROUGH: _OFF, "none": _OFF}.get(word)
    if cache is None or (is_temporary and device.control == "virtio"):
        return state
    if not is_temporary:
        state = state.but(CACHE, cache, act, is_late)
    if not (state.is_forced and cache == _ON):
        state = state.but(MODE, WRITE_BACK if cache == _ON else WRITE_THROUGH, act, is_late)
    return _reset(state, act, is_late)


def _reset(state: State, act: Act, is_late: bool) -> State:
    """Return the state after a change of the cache mode, which resets the readahead on some kernels (7.2)."""
    return state if state.readahead.value == UNSET else state.but(READAHEAD, UNKNOWN, act, is_late)


def _after_readahead(state: State, value: str, act: Act, is_late: bool) -> State:
    # TuneD: ">4096" only raises what is there.
    relative = re.fullmatch(r"([<>])\s*(\d{1,9})", value)
    # Without a rule the kernel's own choice is there, which is less than what a profile raises it to.
    before = (
        "0" if relative and relative[1] == ">" and state.readahead.value == UNSET else state.readahead.value
    )
    if relative and before.isdigit():
        value = str((max if relative[1] == ">" else min)(int(relative[2]), int(before)))
    return state.but(READAHEAD, acts.number(value), act, is_late)


def _after_command(state: State, act: Act, device: Device, is_late: bool) -> State:
    name, words = act.words[0], act.words[1:]
    if not any(device.is_named(word) for word in words if word.startswith("/dev/")):
        return state
    line = " ".join(words)
    if name == "hdparm":
        if device.control == "scsi":
            act = act._replace(is_certain=False)  # Only some SCSI disks pass ATA commands on.
        return _after_hdparm(state, line, act, is_late) if device.control in ("sata", "scsi") else state
    if name == "blockdev":
        sectors = re.search(r"--setra[ =](\S+)", line)
        kib = str(int(sectors[1]) // 2) if sectors and acts.number(sectors[1]) != UNKNOWN else UNKNOWN
        return state.but(READAHEAD, kib, act, is_late) if sectors else state
    read, controls = _COMMANDS.get(name, (_nothing, ()))
    cache = read(line) if device.control in controls else None
    return state.but(CACHE, cache, act, is_late) if cache else state


def _after_hdparm(state: State, line: str, act: Act, is_late: bool) -> State:
    cache = re.search(r"(?:^|\s)-[a-zA-Z]*W\s?(\d)", line)
    if cache:
        state = state.but(CACHE, {"0": _OFF, "1": _ON}.get(cache[1], UNKNOWN), act, is_late)
    sectors = re.search(r"(?:^|\s)-[q ]*a\s?(\d{1,9})", line)
    if sectors:
        state = state.but(READAHEAD, str(int(sectors[1]) // 2), act, is_late)
    return state


_SET, _CLEAR = r"(?:^|\s)(?:--set|-[a-zA-Z]*s)[ =]?", r"(?:^|\s)(?:--clear|-[a-zA-Z]*c)[ =]?"


def _of_sdparm(line: str) -> str | None:
    """Return what sdparm makes of the cache, None if it only reads."""
    if re.search(rf"{_CLEAR}\S*\bWCE\b(?!=)|{_SET}\S*\bWCE=0\b", line):
        return _OFF
    if re.search(rf"{_SET}\S*\bWCE\b(?:=1\b|(?!=))", line):
        return _ON
    # A field can be named by numbers as well.
    return (
        UNKNOWN if re.search(rf"(?:{_SET}|{_CLEAR})\S*(?:WCE|\d[:,]\d)|(?:--defaults|-D)\b", line) else None
    )


def _of_nvme(line: str) -> str | None:
    if re.search(r"^admin-passthru\b.*\s(?:--opcode|-[oO])[ =]?(?:0x0*)?9\b", line):
        return UNKNOWN  # Set Features.
    if not line.startswith("set-feature") or not re.search(r"(?:--feature-id|-f)[ =]?(?:0x0?)?6\b", line):
        return None
    value = re.search(r"(?:--value|-v)[ =]?(?:0x)?0*([01])\b", line)
    return {"0": _OFF, "1": _ON}[value[1]] if value else UNKNOWN


def _nothing(_line: str) -> str | None:
    return None


#: Program -> what it makes of the cache, and of which disks.
_COMMANDS: dict[str, tuple[Callable[[str], str | None], tuple[str, ...]]] = {
    "sdparm": (_of_sdparm, ("sata", "scsi")),
    "nvme": (_of_nvme, ("nvme",)),
}


def last(state: State, groups: Iterable[list[Act]], device: Device) -> State:
    """Return the state after components whose order among each other is unknown; each group is one file, in order."""
    result = state
    blank = State(Value("?"), Value("?"), Value("?"), Value("?"))
    ends = [(_through(state, group, device), _through(blank, group, device)) for group in groups]
    for setting in _OF_DISKS:
        # Also those that set again what is there: another one may come after them, or before.
        found = [end.of(setting) for end, alone in ends if alone.of(setting) != blank.of(setting)]
        changed = [value for value in found if value != state.of(setting)]
        if not changed:
            continue
        value = changed[0]
        if len({each.value for each in found}) > 1 and value.act:
            value = Value(UNKNOWN, value.act._replace(is_certain=False), True)
        result = result.put(setting, value)
    return result


def _through(state: State, group: list[Act], device: Device) -> State:
    for act in group:
        state = _after_by_name(state, act, device)
    return state


def _after_by_name(state: State, act: Act, device: Device) -> State:
    """Return the state of a disk after an act of a file, which has the names of this boot.

    An act that names disks by kernel name may reach another one at the next boot. What it sets is unknown then, for each
    disk that can have the name, unless it does the same with all of them.
    """
    if act.is_resolved:
        return after(state, act, device, True)
    found, *others = [after(state, act, each, True) for each in device.under_each_name()]
    differing = [each for each in others if each != found]
    act = act._replace(is_certain=False)
    for setting in _OF_DISKS if differing else ():
        if any(each.of(setting) != state.of(setting) for each in (found, *differing)):
            found = found.put(setting, Value(UNKNOWN, act, True))
    return found
