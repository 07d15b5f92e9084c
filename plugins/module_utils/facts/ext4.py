# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ext4 itself says of its barriers and journal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .kernels import version
from .mountwords import fold

#: tune2fs -o NAME -> the mount option that it stands for (tune2fs(8)).
_DEFAULTS = {
    "journal_data": "data=journal",
    "journal_data_ordered": "data=ordered",
    "journal_data_writeback": "data=writeback",
    "nobarrier": "nobarrier",
}
#: Default data= of a superblock -> options that the kernel then refuses, in the mount or in the remount
#: that makes the root writable.
_REFUSED_WITH = {
    "ordered": ("journal_async_commit",),
    "journal": ("delalloc", "dioread_nolock"),
}


#: From this kernel on a remount does not turn delayed allocation off; some older ones have that by an update.
_KEEPS_DELALLOC = (6, 13)


class Superblock(NamedTuple):
    """What the superblock makes a mount do: the default options, and where the journal is.

    `journal` is internal, external or none. Which device an external one is on, the superblock
    knows only as of the day it was made. `uuid` is '' where dumpe2fs names none.
    """

    options: tuple[str, ...]
    journal: str
    uuid: str = ""


def parse_running(text: str) -> dict[str, str]:
    """Return the settings in force, of /proc/fs/ext4/<device>/options.

    This file tells the whole truth; /proc/mounts hides what the superblock's defaults set.
    """
    return fold(text.split())


def parse_superblock(text: str) -> Superblock:
    """Return what `dumpe2fs -h` says. Raises ValueError when it does not name its features."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, separator, value = line.partition(":")
        if separator:
            fields.setdefault(name.strip(), value.strip())
    if "Filesystem features" not in fields:
        raise ValueError("dumpe2fs named no file system features")
    names = fields.get("Default mount options", "").split()
    defaults = [_DEFAULTS[name] for name in names if name in _DEFAULTS]
    # tune2fs -E mount_opts=...: kept as one text, applied after the defaults.
    extended = [option for option in fields.get("Mount options", "").split(",") if option]
    uuid = fields.get("Filesystem UUID", "").lower()
    if "has_journal" not in fields["Filesystem features"].split():
        return Superblock((*defaults, *extended), "none", uuid)
    is_external = int(fields.get("Journal device", "0"), 16) != 0
    return Superblock((*defaults, *extended), "external" if is_external else "internal", uuid)


def persisted(superblock: Superblock, options: tuple[str, ...]) -> dict[str, str]:
    """Return the settings that the next mount will have: kernel, then superblock, then options."""
    built_in = {"barrier": "on"}
    if superblock.journal != "none":
        built_in["data_mode"] = "ordered"
    return {**built_in, **fold(superblock.options), **fold(options)}


def refused_with(mode: str, options: Iterable[str]) -> list[str]:
    """Return the options that the kernel refuses together with a data mode."""
    return [option for option in options if option in _REFUSED_WITH.get(mode, ())]


def refused_at_boot(mode: str, first: Iterable[str], line: Iterable[str], release: str) -> list[str]:
    """Return the options of the root's line that the kernel refuses in the remount that makes the root writable.

    `mode` is the data mode of that boot, `first` the options with which the initramfs mounts the root, `release`
    the kernel's. With data=journal there is no delayed allocation to be turned off.
    """
    if mode == "journal" or version(release) < _KEEPS_DELALLOC or _delays(first) == "nodelalloc":
        return []
    return ["nodelalloc"] if _delays(line) == "nodelalloc" else []


def _delays(options: Iterable[str]) -> str:
    """Return the last word on delayed allocation."""
    words = [option for option in options if option in ("delalloc", "nodelalloc")]
    return words[-1] if words else "delalloc"


def tune2fs_name(option: str) -> str | None:
    """Return what tune2fs -o calls the default that a mount option stands for, None where it has none."""
    return next((name for name, meant in _DEFAULTS.items() if meant == option), None)
