# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a release: what was removed and restored on each host, what changes later, and what is next. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...catalog import ENGINES, is_engine
from ...engines.judges import JUDGES
from ...host.printable import Lines, line, lines, name
from ...storage.mount_settings import fold
from .page import HEIGHT, names, wrap_rows

#: Layers whose running values stay until the next boot, and their name on the page.
_BOOT = {"write_cache": "write cache", "io_scheduler": "I/O scheduler", "mount_options": "mount options"}
#: Parts of a release that take effect at once, and their name on the page.
_NOW = {
    "watch": "watch timer",
    "power_guard": "UPS guard",
    "power": "UPS monitor",
    "unit_mounts": "mounts that servers require",
}
_REREADS = {engine.name: engine.rereads for engine in ENGINES}
#: A setting in a database file that no server has open: it takes effect at once.
_AT_ONCE = "forced_writes"
#: Lines that one text of a host may have. A cause ends with its fix, of which a part can do harm.
_MOST, _MOST_OF_CAUSE = 3, 40
_INDENT = " " * 12


class Released(NamedTuple):
    """The result of a release on a host, or its prediction.

    `changes`: {layer: its changes, each as a Change}, of layers without a failure; `error`: why the host is not released,
    '' if it is; `pinned`: whether it has a durable_profile.
    """

    host: str
    changes: Mapping[str, Iterable[Mapping[str, str]]]
    error: str = ""
    pinned: bool = True


def render(hosts: Iterable[Released], is_check: bool) -> Lines:
    """Return the page, of HEIGHT lines at most: hosts that are not released, hosts with a warning, and the others.

    Hosts with the same text are one group. `is_check`: whether nothing was changed, in check mode. After a release, nothing
    but this page has the causes and the warnings: it has all of them, with any number of lines.
    """
    groups: dict[tuple[str, ...], list[Released]] = {}
    for each in hosts:
        groups.setdefault(tuple(_texts(each, is_check)), []).append(each)
    found = sorted(groups.items(), key=lambda group: _rank(group[0], group[1][0]))
    rows: list[str] = []
    for number, (texts, members) in enumerate(found):
        group = list(_group(texts, members, is_check))
        rest = found[number:]
        is_needed = not is_check and (bool(members[0].error) or _warns(texts))
        if not is_needed and len(rows) + len(group) > HEIGHT - (len(rest) > 1):
            left = [each for _texts_of, others in rest for each in others]
            failed = sum(bool(each.error) for each in left)
            warned = sum(len(others) for whys, others in rest if _warns(whys))
            rows = [
                *rows,
                f"and {len(left)} more hosts ({failed} not released, {warned} with warnings)"
                + (": run again with --limit for their pages" if is_check else ""),
            ]
            break
        rows += group
    return lines(rows)


def _group(texts: Iterable[str], members: list[Released], is_check: bool) -> Iterator[str]:
    hosts = [each.host for each in members]
    state = "would be released" if is_check else "released"
    yield from wrap_rows(f"{'not released' if members[0].error else state}  {names(hosts)}", _INDENT, 1)
    for text in texts:
        yield from wrap_rows(f"  {text}", _INDENT, _MOST_OF_CAUSE if text.startswith("cause") else _MOST)
    pinned = [each.host for each in members if each.pinned]
    if pinned and not members[0].error and not is_check:
        next_step = f"delete durable_profile for {names(pinned)}; otherwise the next run manages"
        yield from wrap_rows(
            f"  next      {next_step} {'it' if len(pinned) == 1 else 'them'} again", _INDENT, 2
        )


def _texts(found: Released, is_check: bool) -> Iterator[str]:
    """Yield the texts of the page about a host."""
    if found.error:
        yield f"cause     {line(found.error)}"
    every = [(layer, change) for layer, changes in found.changes.items() for change in changes]
    if not every and not found.error:
        yield "nothing to remove or to restore"
    warnings: dict[str, list[str]] = {}
    for layer, change in every:
        if why := _loss(layer, change):
            warnings.setdefault(_warning(layer, change, why, is_check), []).append(_of(change))
    for warning, targets in warnings.items():
        yield f"warning   {names(targets)}: {warning}"
    yield from _changes(every, is_check)
    yield from _when(change for change in every if change[1]["after"] != "forgotten")


def _changes(every: Sequence[tuple[str, Mapping[str, str]]], is_check: bool) -> Iterator[str]:
    """Yield the removed files, the restored settings, and those that are left unchanged."""
    removed = dict.fromkeys(_of(change) for _layer, change in every if _is_file(change))
    restored = [(layer, change) for layer, change in every if _is_restored(change)]
    if removed:
        yield f"{'remove ' if is_check else 'removed'}   {', '.join(removed)}"
    for text in _restored(restored):
        yield f"{'restore ' if is_check else 'restored'}  {text}"
    left = dict.fromkeys(_of(change) for _layer, change in every if change["after"] == "forgotten")
    if left:
        yield f"left      unchanged, because the setting is gone or was changed since: {', '.join(left)}"


def _when(changes: Iterable[tuple[str, Mapping[str, str]]]) -> Iterator[str]:
    """Yield what is in effect at once, and what stays until a reboot or a restart."""
    later = list(changes)
    at_once = [f"{_of(change)} {_AT_ONCE}" for _layer, change in later if change["setting"] == _AT_ONCE]
    layers = {layer for layer, change in later if change["setting"] != _AT_ONCE}
    now = [*(name for layer, name in _NOW.items() if layer in layers), *at_once]
    if now:
        yield f"in effect at once: {', '.join(now)}"
    boot = [name for layer, name in _BOOT.items() if layer in layers]
    if boot:
        yield f"unchanged until reboot: {', '.join(boot)}"
    servers: dict[str, dict[str, None]] = {}
    for layer, change in sorted(later, key=lambda row: row[0]):
        if is_engine(layer) and change["setting"] != _AT_ONCE:
            # The target can also be a file that servers share.
            is_server = not change["target"].startswith("/")
            server = f"{layer} {_of(change)}" if is_server and change["target"] != layer else layer
            servers.setdefault(_REREADS[layer], {})[server] = None
    for event, found in servers.items():
        named = [server for server in found if not any(other.startswith(f"{server} ") for other in found)]
        yield f"unchanged until {event}: {', '.join(named)}"


def _restored(changes: Iterable[tuple[str, Mapping[str, str]]]) -> Iterator[str]:
    """Yield the restored settings: the lines of /etc/fstab as a number, and each other one."""
    mounts, others = 0, []
    for layer, change in changes:
        if layer == "mount_options" and change["setting"] == "options":
            mounts += 1
        else:
            others.append(f"{_of(change)}: {name(line(change['setting']))} {name(line(change['after']))}")
    if mounts:
        yield f"/etc/fstab: {mounts} mount{'s' * (mounts > 1)}"
    if others:
        yield "; ".join(others)


def _of(change: Mapping[str, str]) -> str:
    """Return the target of a change as a name that a host gave."""
    return name(line(change["target"]))


def _is_file(change: Mapping[str, str]) -> bool:
    """Return whether a whole file is removed."""
    return (change["before"], change["after"]) == ("present", "absent") and change["setting"] != "include"


def _is_restored(change: Mapping[str, str]) -> bool:
    """Return whether a setting gets an original value; one that is unset is removed with its file."""
    return not _is_file(change) and change["after"] not in ("unset", "forgotten")


def _loss(layer: str, change: Mapping[str, str]) -> str:
    """Return the restored value with which commits can be lost, '' for none.

    A value of an engine that may not flush counts as one that does not.
    """
    if layer == "mount_options":
        before, after = (change[side].split(",") for side in ("before", "after"))
        options = [option for option in after if fold([option]).get("barrier", "on") != "on"]
        is_off = fold(after).get("barrier", "on") != "on" and fold(before) != fold(after)
        return ", ".join(options) if is_off else ""
    if not is_engine(layer) or not _is_restored(change) or change["before"] == change["after"]:
        return ""
    loses = change["after"] != "absent" and JUDGES[layer].can_lose(change["setting"], change["after"])
    return f"{change['setting']} {change['after']}" if loses else ""


def _warning(layer: str, change: Mapping[str, str], why: str, is_check: bool) -> str:
    verb = "would be restored" if is_check else "is restored"
    shown = name(line(why))
    if layer == "mount_options":
        return f"{shown} {verb}; commits can be lost after the next boot; fix: delete {shown} from /etc/fstab"
    when = "from now on" if change["setting"] == _AT_ONCE else "when the server uses it"
    return f"{shown} {verb}; commits can be lost {when}"


def _warns(texts: Iterable[str]) -> bool:
    return any(text.startswith("warning") for text in texts)


def _rank(texts: Iterable[str], first: Released) -> int:
    return 0 if first.error else 1 if _warns(texts) else 2
