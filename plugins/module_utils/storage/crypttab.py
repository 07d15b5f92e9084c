# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the next boot opens the encrypted device below a mount, by crypttab(5) or the kernel's command line.

The name in such a line has to lead to the same container at each boot, as that in a line of fstab has to (device_names.py).

An array of md needs no line of mdadm.conf: udev assembles what it finds, under another number at worst.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ..facts.classes import BootFaultFacts, LayerFacts, MountFacts
from ..host.observation import UNKNOWN
from ..host.seam import Host, Unobservable
from . import device_names
from .boot_faults import Devices

PATH = "/etc/crypttab"
#: Words of the kernel's command line by which an initramfs opens a container, up to its name or UUID.
_BY_KERNEL = re.compile(
    r"(?:^|\s)(?:(?:rd\.)?luks\.(?:uuid|name)=(?:luks-)?|cryptdevice=(?:UUID=)?)([^\s=:]+)"
)

#: crypttab(5): a key that differs at each boot, and options by which a boot makes what is in the container again.
_RENEWING = re.compile(r"/dev/(?:u?random|hwrng|hw_random)|swap|tmp(?:=.*)?")

_KERNEL = "the kernel's command line"


class Entry(NamedTuple):
    """One line: its row, the name that the opened device gets, the device that is opened, and `renews`: the key or option by
    which each boot opens it without its data, '' for none."""

    row: int
    name: str
    spec: str
    renews: str = ""


def parse(text: str) -> list[Entry]:
    """Return the lines of a crypttab; one without a device opens nothing."""
    rows = ((row, line.split()) for row, line in enumerate(text.split("\n")))
    lines = ((row, words) for row, words in rows if len(words) > 1 and not words[0].startswith("#"))
    return [Entry(row, words[0], words[1], _renews(words[2:4])) for row, words in lines]


def _renews(words: list[str]) -> str:
    """Return a random key, or the option that makes swap space or a new file system, of a line's key and options."""
    options = ",".join(words[1:]).split(",")
    return next((each for each in (*words[:1], *options) if _RENEWING.fullmatch(each)), "")


def faults(host: Host, mounts: Iterable[MountFacts], devices: Devices) -> list[BootFaultFacts]:
    """Return what is encrypted below mounts of the next boot and that nothing opens then, as boot_faults has them.

    `mounts` are facts. Never raises: where crypttab or the kernel's command line cannot be read it is unknown.
    """
    below = [
        (mount, layer)
        for mount in mounts
        if mount["boots"]
        for layer in mount["stack"]
        if layer["type"] == "crypt"
    ]
    if not below:
        return []
    try:
        entries = parse(host.read(PATH)) if host.exists(PATH) else []
        early = set(_BY_KERNEL.findall(host.read("/proc/cmdline")))
    except Unobservable as error:
        return [
            _fault(
                mount, PATH, UNKNOWN, "container_unread", {"container": _where(layer), "error": str(error)}
            )
            for mount, layer in below
        ]
    return [fault for mount, layer in below for fault in _of_layer(mount, layer, entries, early, devices)]


def _of_layer(
    mount: MountFacts, layer: LayerFacts, entries: list[Entry], early: set[str], devices: Devices
) -> Iterator[BootFaultFacts]:
    """Yield that nothing opens a layer's container at the next boot, or that what opens it may find another one."""
    container = layer["below"][0] if layer["below"] else ""
    uuid = devices.properties.get(container, {}).get("ID_FS_UUID", "")
    where = _where(layer)
    opened = [(entry, devices.find(entry.spec)) for entry in entries]
    named = next((entry for entry, _name in opened if entry.name == layer["label"]), None)
    # With a copy, the link of its UUID may lead to that.
    if named and uuid and device_names.tag_of(named.spec) == ("UUID", uuid):
        opened = [(named, container)]
    ours = next((entry for entry, name in opened if name == container), None)
    found = early & {uuid, container, layer["label"]} - {""}
    if found or ours:
        source = _KERNEL if ours is None or found else f"{PATH} line {ours.row + 1}"
        if ours and not found:
            yield from _renewed(mount, source, ours, where)
        spec = ours.spec if ours and not found else f"UUID={uuid}" if uuid in found else ""
        for cause, values in device_names.of_container(devices.host, devices, container, (spec, source)):
            named_values = {**values, "container": where}
            yield {**_fault(mount, source, UNKNOWN, cause, named_values), "boot": "optional"}
        return
    yield _unopened(mount, layer, named, uuid)


def _renewed(mount: MountFacts, source: str, entry: Entry, container: str) -> Iterator[BootFaultFacts]:
    """Yield that each boot makes a new container, with a random key, as `swap` or as `tmp`."""
    if entry.renews:
        values = {"container": container, "word": entry.renews}
        yield {**_fault(mount, source, "refused", "new_contents", values), "boot": "optional"}


def _unopened(mount: MountFacts, layer: LayerFacts, named: Entry | None, uuid: str) -> BootFaultFacts:
    """Return that no line opens a container; `named`: the line that has its name, and opens another one."""
    container = layer["below"][0] if layer["below"] else ""
    where = _where(layer)
    if named:
        by_uuid = f"UUID={uuid}" if uuid else f"a name of {container or 'the device'} alone"
        values = {"spec": named.spec, "container": where, "device": container, "name": by_uuid}
        return _fault(mount, f"{PATH} line {named.row + 1}", "refused", "other_container", values)
    values = {"container": where, "label": layer["label"] or "NAME"}
    if uuid:
        return _fault(mount, PATH, "refused", "no_container", {**values, "uuid": uuid})
    return _fault(mount, PATH, "refused", "no_container.no_uuid", values)


def _where(layer: LayerFacts) -> str:
    return str(layer["label"] or layer["name"])


def _fault(
    mount: MountFacts, source: str, state: str, cause: str, values: Mapping[str, str | list[str]]
) -> BootFaultFacts:
    return {
        "source": source,
        "target": mount["target"],
        "fstype": mount["fstype"],
        "boot": "required" if "required" in mount["boots"].values() else "optional",
        "cause": cause,
        "state": state,
        "parameters": {**values},
        "options": [],
    }
