# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DRBD: a local disk, and copies of it on other nodes.

Asked is drbdsetup, whose JSON leaves defaults out (drbd-utils, user/v9/drbdsetup.c; drbd.conf(5): protocol C, disk-flushes
and md-flushes on); where the kernel has version 8.4 it knows no JSON, and prints text (drbd_84.py).

What its configuration makes of it later is what `drbdadm --dry-run adjust` would change; that prints a password too,
which goes no further.

After a power cut this node has what its own disk has; what its peers have counts when one of them takes
over. With protocol A a write is acknowledged before any peer has it, so a take-over loses commits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, partial
from typing import Any, NamedTuple

from ..facts.classes import MountFacts
from ..host import json_text
from ..host.observation import Because
from ..host.seam import Host, Result, Unobservable
from . import drbd_84, flush_passthrough

SHOW = ["drbdsetup", "show", "--json"]
STATUS = ["drbdsetup", "status", "--json"]
#: Prints the commands that would bring a resource, whose name is added, to its configuration.
ADJUST = ["drbdadm", "--dry-run", "adjust"]
_NAME = re.compile(r"[A-Za-z0-9][\w.+-]{0,99}")
#: What it says where it speaks for version 8.4.
_NO_JSON = "'--json'"
#: Words of a layer's state: what a take-over loses, and what a power cut does over a disk that caches.
NO_COPY, NO_COPY_LATER = "protocol A", "protocol A once adjusted"
UNFLUSHED = (
    *("disk-flushes no", "md-flushes no", "write-ordering drain", "write-ordering none"),
    *("disk-flushes no once adjusted", "md-flushes no once adjusted"),
)


class Volume(NamedTuple):
    """One DRBD device on this node: the device files below it, its settings, and why it is unknown whether it flushes."""

    below: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    cause: Because | None = None


class Drbd:
    """The DRBD devices of one host, read once."""

    def __init__(self, host: Host) -> None:
        self._found: dict[int, Volume] = {}
        self._error = f"{' '.join(SHOW)}: no entry for it"
        try:
            self._found = dict(_volumes(host, *_asked(host)))
        except (Unobservable, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            self._error = f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else str(error)

    def volume(self, minor: int) -> Volume:
        """Return the device of a minor number; without a rule it has its reason."""
        return self._found.get(minor, Volume(cause=Because("drbd_unread", {"error": self._error})))


def behind(mount: MountFacts) -> Iterator[str]:
    """Yield the DRBD devices below a mount of which not each peer has all data, as text."""
    for layer in mount["stack"]:
        for word in layer["state"].split(", ") if layer["type"] == "drbd" else ():
            current, of, rest = word.partition(" of ")
            if of and current != rest.split(" ")[0]:
                yield f"{layer['name']} (DRBD): {word}"


def unflushed(mount: MountFacts) -> list[tuple[flush_passthrough.FlushLayer, str]]:
    """Return the DRBD devices below a mount that are set not to flush, and by which settings."""
    said = {
        layer["name"]: ", ".join(word for word in layer["state"].split(", ") if word in UNFLUSHED)
        for layer in mount["stack"]
        if layer["type"] == "drbd"
    }
    return [
        (layer, said[layer.name])
        for layer in flush_passthrough.with_cache_mode(mount)
        if said.get(layer.name)
    ]


def by_option(said: str) -> bool:
    """Return whether options have a device flush nothing: a write ordering alone can result from the devices below it."""
    return "-flushes no" in said


def _asked(host: Host) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return what is configured, and what is going on."""
    answer = host.run(SHOW)
    if answer.rc != 0 and _NO_JSON in answer.stderr:
        shown, states = (_said(argv, host.run(argv)) for argv in (drbd_84.SHOW, drbd_84.STATUS))
        return drbd_84.shown(shown), drbd_84.states(states)
    return _list(_said(SHOW, answer)), _list(_said(STATUS, host.run(STATUS)))


def _said(argv: list[str], answer: Result) -> str:
    if answer.rc != 0:
        raise Unobservable(f"{' '.join(argv)}: exit {answer.rc}: {' '.join(answer.stderr.split())}")
    return answer.stdout


def _list(text: str) -> list[dict[str, Any]]:
    found = json_text.loads(text)
    if not isinstance(found, list):
        raise ValueError("drbdsetup gives no list")
    return found


def _volumes(
    host: Host, shown: list[dict[str, Any]], states: list[dict[str, Any]]
) -> Iterator[tuple[int, Volume]]:
    by_name = {state["name"]: state for state in states}
    # A resource is adjusted whole, however many volumes it has.
    to_adjust = cache(partial(_to_adjust, host))
    for resource in shown:
        state = by_name.get(resource["resource"], {})
        disks = {device["minor"]: device["disk-state"] for device in state.get("devices", ())}
        for volume in resource["_this_host"]["volumes"]:
            minor = int(volume["device_minor"])
            found = _volume(resource, volume, state, disks.get(minor, "of unknown state"))
            if not found.cause:
                try:
                    found = _with_later(found, minor, to_adjust(str(resource["resource"])))
                except Unobservable as error:
                    found = Volume(found.below, cause=Because("drbd_adjusted", {"error": str(error)}))
            yield minor, found


def _to_adjust(host: Host, name: str) -> list[list[str]]:
    """Return the arguments of each command that would apply its configuration to a resource. Raises Unobservable."""
    if not _NAME.fullmatch(name):
        raise Unobservable(f"{name[:40]!r} is no name of a resource")
    argv = [*ADJUST, name]
    return [line.split() for line in _said(argv, host.run(argv)).split("\n")]


def _with_later(found: Volume, minor: int, commands: list[list[str]]) -> Volume:
    """Add what the device will be by its configuration."""
    options = {word for command in commands for word in command if word.startswith("--protocol=")}
    later = [NO_COPY_LATER] if "--protocol=A" in options else []
    of_disk = {word for command in commands if command[2:3] == [str(minor)] for word in command}
    later += [
        f"{name} no once adjusted" for name in ("disk-flushes", "md-flushes") if f"--{name}=no" in of_disk
    ]
    return Volume(found.below, (*found.words, *later))


def _volume(
    resource: dict[str, Any], volume: dict[str, Any], state: dict[str, Any], disk_state: str
) -> Volume:
    options = volume.get("disk", {})
    # Before there was a key of its own, the path and the options shared one, and the last one stayed.
    backing = volume.get("backing-disk") or (options if str(options).startswith("/") else None)
    meta = str(volume.get("meta-disk", "internal"))
    below = tuple(filter(None, (backing, meta if meta.startswith("/") else None)))
    if backing is None:
        return Volume(below, cause=Because("drbd_no_disk"))
    if disk_state != "UpToDate":
        return Volume(below, cause=Because("drbd_disk_state", {"state": disk_state}))
    options = options if isinstance(options, dict) else {}
    peers = resource.get("connections", ())
    if peers is None:
        return Volume(below, cause=Because("drbd_alone"))
    protocols = {str(peer.get("net", {}).get("protocol", "C")) for peer in peers}
    words = (
        *(f"protocol {protocol}" for protocol in sorted(protocols)),
        f"write-ordering {state['write-ordering']}",
        *(f"{name} no" for name in ("disk-flushes", "md-flushes") if options.get(name) in (False, "no")),
        *([f"{_current(state, volume['volume_nr'])} of {len(peers)} peers up to date"] if peers else []),
    )
    return Volume(below, words)


def _current(state: dict[str, Any], number: int) -> int:
    """Return how many peers have all of a volume."""
    copies = (copy for peer in state["connections"] for copy in peer.get("peer_devices", ()))
    return sum((copy["volume"], copy["peer-disk-state"]) == (number, "UpToDate") for copy in copies)
