# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which mount options the kernel of the next boot refuses.

The running kernel is queried, once for each type of file system. The tables (known_options.py) decide if it cannot be
queried, and together with its response if the next boot starts another kernel.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

from ..host.kernel_version import version
from ..host.mount_api.options import for_file_system, split
from ..host.observation import UNKNOWN
from ..host.seam import Host, Unobservable
from . import boot_loader, known_options

KNOWN, REFUSED = "known", "refused"
#: Types that no program of their own mounts: the kernel gets the options as they are written.
_QUERIED = frozenset(
    (*known_options.KNOWN, *"erofs f2fs hfs hfsplus iso9660 jfs nilfs2 squashfs udf".split())
)
#: The release in the path of a kernel: vmlinuz-6.1.0-18-amd64, or 6.1.0-18-amd64/linux.
_RELEASE = re.compile(r"(?:^|[/-])(\d+\.\d+[^/]*)")


class Releases(NamedTuple):
    """The kernel that runs and the one that the next boot starts."""

    running: str
    boots: str

    @property
    def is_same(self) -> bool:
        """Return whether both know the same options: updates of one version add and remove none."""
        return version(self.running) == version(self.boots)


class Options:
    """The options that the next boot's kernel knows, for some pairs of a type and its options as fstab has them."""

    def __init__(self, releases: Releases, refused: dict[str, dict[str, str] | None]) -> None:
        self.releases, self._refused = releases, refused

    def state(self, fstype: str, option: str, shown: Collection[str] = ()) -> str:
        """Return known, refused, or unknown for an option; `shown`: those that /proc/mounts has for this file system now.

        Of several types the one that knows the option counts.
        """
        if option in shown and self.releases.is_same:
            return KNOWN
        found = {self._of_type(each, option) for each in types_of(fstype)}
        return KNOWN if KNOWN in found or not found else REFUSED if found == {REFUSED} else UNKNOWN

    def is_queried(self, fstype: str) -> bool:
        """Return whether the running kernel responded for a type of file system."""
        return self._refused.get(fstype) is not None

    def _of_type(self, fstype: str, option: str) -> str:
        if known_options.is_general(option):
            return KNOWN
        words = for_file_system([option])
        if not words:
            return REFUSED  # mount(8) takes it without this value.
        refused = self._refused.get(fstype)
        if refused is None:
            return self._by_table(fstype, option)
        is_taken = not any(word in refused for word in words)
        if is_taken and words != [option]:
            return UNKNOWN  # Releases of mount(8) differ in whether the kernel gets the quotes.
        if self.releases.is_same:
            return KNOWN if is_taken else REFUSED
        return self._by_both(fstype, option, is_taken)

    def _by_table(self, fstype: str, option: str) -> str:
        boots = self.releases.boots
        if option not in known_options.unknown_to(fstype, [option], boots):
            return KNOWN
        return REFUSED if known_options.is_certain(fstype, option, boots) else UNKNOWN

    def _by_both(self, fstype: str, option: str, is_taken: bool) -> str:
        """Return what the table says of the next kernel, if the running one shows that the table can be relied on."""
        running, boots = (
            option not in known_options.unknown_to(fstype, [option], release) for release in self.releases
        )
        is_certain = fstype in known_options.KNOWN and all(
            known_options.is_certain(fstype, option, release) for release in self.releases
        )
        if is_taken and boots and (is_certain or running):
            return KNOWN
        if is_certain and running == is_taken:
            return KNOWN if boots else REFUSED
        return UNKNOWN


def types_of(fstype: str) -> list[str]:
    """Return the types that fstab names; none for `auto` and for types whose options nothing here knows."""
    found = list(known_options.KNOWN) if fstype == "auto" else fstype.split(",")
    return found if set(found) <= _QUERIED else []


def query(host: Host, pairs: Iterable[tuple[str, Iterable[str]]]) -> Options:
    """Query the running kernel for pairs of a type and its options; nothing is loaded or mounted. Raises Unobservable."""
    requested: dict[str, dict[str, None]] = {}
    for fstype, options in pairs:
        for each in types_of(fstype):
            words = (word for word in split(",".join(options)) if not known_options.is_general(word))
            requested.setdefault(each, {}).update(dict.fromkeys(words))
    running = host.read("/proc/sys/kernel/osrelease").strip()
    refused = {
        fstype: host.refused_mount_options(fstype, list(named))
        for fstype, named in requested.items()
        if named
    }
    return Options(Releases(running, _next_release(host, running)), refused)


def _next_release(host: Host, running: str) -> str:
    """Return the release of the kernel that the boot loader starts by default; the running one if that is unknown."""
    try:
        kernels = [entry.kernel for entry in boot_loader.entries(host)]
    except Unobservable:
        return running
    found = _RELEASE.search(kernels[0]) if kernels else None
    return found[1] if found else running
