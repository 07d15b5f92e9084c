# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel and initramfs that the boot loader loads: whether the files exist, and whether the initramfs can open the root.

An initramfs that this boot came from has shown that it can. A newer one is listed by its own maker's program: lsinitramfs(8)
of Debian's initramfs-tools, lsinitrd(1) of dracut.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..host import processes
from ..host.seam import Host, Unobservable
from . import boot_loader
from .boot_loader import Entry

#: What may lie between the root and its disks -> by which of these programs an initramfs opens it.
_OPENED_BY = {"LUKS": ("cryptsetup", "systemd-cryptsetup"), "LVM": ("lvm",), "md": ("mdadm",)}
#: The release in the name of a kernel or an initramfs, or of the directory that it is in.
_RELEASE = re.compile(r"(?:^|[-/])(\d+\.\d[^/]*?)(?:\.img)?(?:/[^/]*)?$")
#: How the number begins by which device mapper knows the owner of a device (DM_UUID).
_OWNED = {"CRYPT-": "LUKS", "LVM-": "LVM"}
_LISTED_BY = ("lsinitramfs", "lsinitrd")
#: A file in the listing of lsinitrd, which says much else first: arguments and modules of dracut.
_ATTRIBUTES = re.compile(r"[-bclps][-rwxsStT]{9}[.+@]?\s")
_TIMEOUT = 30.0
#: Kernels and what unpacks them may be named with the partition that they lie on; which directory that is remains unknown.
_ELSEWHERE = re.compile(r"^\(|\$|%")


class Problem(NamedTuple):
    """What is wrong with an image: the place that names it, and a cause of boot_causes.py; `state` is refused or unknown."""

    source: str
    state: str
    cause: str
    parameters: dict[str, Any]


def problems(host: Host, name: str | None, properties: Mapping[str, Mapping[str, str]]) -> Iterator[Problem]:
    """Yield what keeps the entry that boots by default from starting this system. Raises Unobservable.

    `name`: the kernel's name of the device that the root is on, None if that is no block device; `properties`: {kernel
    name: what udev knows of it}.
    """
    entries = boot_loader.entries(host)
    if not entries:
        return
    lost = [_missing(host, entry) for entry in entries]
    if lost[0]:
        file, rest = lost[0], "none" if all(lost) else "some"
        is_kernel = file == entries[0].kernel
        yield Problem(
            entries[0].source,
            "refused" if all(lost) else "unknown",
            # Without its initramfs no entry may boot a kernel.
            "no_kernel" if is_kernel else "no_initramfs",
            {"file": file, "rest": rest, **({} if is_kernel else {"release": _release(file)})},
        )
        return
    layers = layers_below(host, name, properties) if name else []
    for path in filter(None, (_found(host, path, entries[0]) for path in entries[0].initramfs)):
        lacking = _lacking(host, path, layers)
        for layer, programs in lacking.items():
            values = {"file": path, "layer": layer, "programs": list(programs), "release": _release(path)}
            yield Problem(entries[0].source, "refused", "initramfs_lacks", values)


def _release(path: str) -> str:
    """Return the release that the name of a kernel or an initramfs has, '' without one."""
    found = _RELEASE.search(path)
    return found[1] if found else ""


def layers_below(host: Host, name: str, properties: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return which of LUKS, LVM and md a block device and those below it are, by its kernel's name.

    `properties`: {kernel name: what udev knows of it}. Raises Unobservable.
    """
    found: dict[str, None] = {}
    waiting, observed = [name], set()
    while waiting:
        name = waiting.pop()
        if name in observed:
            continue
        observed.add(name)
        known = properties.get(name, {})
        owner = next(
            (layer for word, layer in _OWNED.items() if known.get("DM_UUID", "").startswith(word)), ""
        )
        if owner or "MD_LEVEL" in known:
            found[owner or "md"] = None
        path = f"/sys/class/block/{name}"
        if host.exists(f"{path}/partition"):
            waiting.append(posixpath.basename(posixpath.dirname(host.resolve(path))))
        elif host.exists(f"{path}/slaves"):
            waiting += host.names(f"{path}/slaves")
    return list(found)


def _missing(host: Host, entry: Entry) -> str:
    """Return the first file of an entry that is not there, '' where all are."""
    paths = [path for path in (entry.kernel, *entry.initramfs) if path and not _ELSEWHERE.search(path)]
    return next((path for path in paths if not _found(host, path, entry)), "")


def _found(host: Host, path: str, entry: Entry) -> str:
    """Return where a file is that the boot loader names from the top of its file system, '' if it is missing.

    That may be the root's, one of its subvolumes', /boot or the EFI system partition.
    """
    name = posixpath.basename(path)
    tops = ("", "/boot", entry.top)
    candidates = [*(f"{top}{path}" for top in tops), f"/boot/{name}"]
    return next((each for each in candidates if host.exists(each)), "")


def _lacking(host: Host, path: str, layers: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return {layer: programs} of those that an initramfs cannot open, {} for one that this boot came from.

    Raises Unobservable for another one that no program lists.
    """
    needed = {layer: _OPENED_BY[layer] for layer in layers}
    if not needed or _was_used(host, path):
        return {}
    there = {posixpath.basename(file) for file in _listed(host, path)}
    return {layer: programs for layer, programs in needed.items() if not there & set(programs)}


def _was_used(host: Host, path: str) -> bool:
    """Return whether this boot came from an initramfs: it is no newer, and that of this kernel if its name has one."""
    release = host.read("/proc/sys/kernel/osrelease").strip()
    is_of_release = release in path or not re.search("[0-9]", posixpath.basename(path))
    status = host.locate(path).status
    return bool(is_of_release and status and status.modified <= processes.booted(host))


def _listed(host: Host, path: str) -> list[str]:
    """Return the files in an initramfs. Raises Unobservable."""
    failed = ""
    for program in _LISTED_BY:
        try:
            reported = host.run([program, path], _TIMEOUT)
        except Unobservable as error:
            failed = failed or str(error)
            continue
        files = _files(program, reported.stdout)
        if reported.rc == 0 and files:
            return files
        failed = f"{program} {path}: {reported.stderr.strip()[:200] or 'it lists no file'}"
    raise Unobservable(failed)


def _files(program: str, listing: str) -> list[str]:
    """Return the files that a program lists: lsinitrd has their attributes in front."""
    if program == "lsinitramfs":
        return listing.splitlines()
    files = (line.partition(" -> ")[0].split() for line in listing.splitlines() if _ATTRIBUTES.match(line))
    return [words[-1] for words in files]
