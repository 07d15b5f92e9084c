# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Barriers and journal of ext4, as /proc/fs/ext4 reports them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from ..host.kernel_version import version
from .mount_settings import fold

#: tune2fs -o NAME -> the mount option that it stands for (tune2fs(8)).
_DEFAULTS = {
    "journal_data": "data=journal",
    "journal_data_ordered": "data=ordered",
    "journal_data_writeback": "data=writeback",
    "nobarrier": "nobarrier",
}
#: Shows the superblock of a device, which follows: its bytes, because dumpe2fs prints label and last mount point
#: as they are, with the newlines in them.
SHOW = ("od", "-An", "-v", "-tx1", "-j1024", "-N1024")
SIZE = 1024
#: Where what lies in a superblock, and its bits (struct ext4_super_block of the kernel).
_MAGIC, _FEATURES, DEFAULTS, JOURNAL_DEVICE = 0x38, 0x5C, 0x100, 0xE4
_UUID, MOUNT_OPTIONS = slice(0x68, 0x78), slice(0x200, 0x240)
#: The fields that say what a mount becomes, the UUID aside.
MEANING = (slice(_MAGIC, _MAGIC + 2), *(slice(at, at + 4) for at in (_FEATURES, DEFAULTS, JOURNAL_DEVICE)))
_HAS_JOURNAL, _DIR_INDEX = 0x4, 0x20
_JOURNAL_MODE, _NOBARRIER = 0x60, 0x100
_JOURNAL_MODES = {0x20: "data=journal", 0x40: "data=ordered", 0x60: "data=writeback"}
#: Default data= of a superblock -> options that the kernel then refuses, in the mount or in the remount
#: that makes the root writable.
_REFUSED_WITH = {
    "ordered": ("journal_async_commit",),
    "journal": ("delalloc", "dioread_nolock", "dax", "dax=always"),
}


#: Options with which a file system is mounted without the journal that it has.
WITHOUT_JOURNAL = ("noload", "norecovery")
#: From this kernel on a remount does not turn delayed allocation off; some older ones have that by an update.
_KEEPS_DELALLOC = (6, 13)


class Superblock(NamedTuple):
    """What the superblock makes a mount do: the default options, and where the journal is.

    `journal` is internal, external or none. Which device an external one is on, the superblock
    knows only as of the day it was made. `uuid` is '' where it has none. `dir_index`: directories have an index.
    """

    options: tuple[str, ...]
    journal: str
    uuid: str = ""
    dir_index: bool = True


def parse_running(text: str) -> dict[str, str]:
    """Return the settings in force, of /proc/fs/ext4/<device>/options.

    This file has all mount options; /proc/mounts hides what the superblock's defaults set.
    """
    return fold(text.split())


def shown(superblock: bytes) -> str:
    """Return what SHOW says of the bytes of a superblock."""
    rows = (superblock[at : at + 16] for at in range(0, len(superblock), 16))
    return "".join("".join(f" {byte:02x}" for byte in row) + "\n" for row in rows)


def as_bytes(text: str) -> bytes:
    """Return the bytes of a superblock from what SHOW says. Raises ValueError for anything else."""
    raw = bytes.fromhex(text)
    if len(raw) != SIZE or raw[_MAGIC : _MAGIC + 2] != b"\x53\xef":
        raise ValueError("there is no ext2, ext3 or ext4 superblock")
    return raw


def parse_superblock(text: str) -> Superblock:
    """Return what SHOW says of a superblock. Raises ValueError if it is missing."""
    raw = as_bytes(text)
    features, defaults, device = (
        int.from_bytes(raw[at : at + 4], "little") for at in (_FEATURES, DEFAULTS, JOURNAL_DEVICE)
    )
    # tune2fs -E mount_opts=...: kept as one text, applied after the defaults.
    extended = raw[MOUNT_OPTIONS].partition(b"\0")[0].decode("utf-8", "surrogateescape")
    options = (
        *filter(None, [_JOURNAL_MODES.get(defaults & _JOURNAL_MODE)]),
        *(["nobarrier"] if defaults & _NOBARRIER else []),
        *(option for option in extended.split(",") if option),
    )
    number = UUID(bytes=raw[_UUID])
    journal = "none" if not features & _HAS_JOURNAL else "external" if device else "internal"
    return Superblock(options, journal, str(number) if number.int else "", bool(features & _DIR_INDEX))


def persisted(superblock: Superblock, options: tuple[str, ...]) -> dict[str, str]:
    """Return the settings that the next mount will have: kernel, then superblock, then options."""
    built_in = {"barrier": "on"}
    if superblock.journal != "none":
        built_in["data_mode"] = "ordered"
    found = {**built_in, **fold(superblock.options), **fold(options)}
    if set(WITHOUT_JOURNAL) & {*superblock.options, *options}:
        found.pop("data_mode", None)
    return found


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
    """Return what tune2fs -o calls the default of a mount option, None if it has no name for it."""
    return next((name for name, meant in _DEFAULTS.items() if meant == option), None)
