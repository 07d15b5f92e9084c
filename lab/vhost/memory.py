# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The guest's memory, as its master shared it."""

from __future__ import annotations

import mmap
from dataclasses import dataclass

from lab.errors import LabError
from lab.vhost.image import Image


@dataclass(frozen=True, slots=True)
class Region:
    """One range of guest memory, named twice: by guest physical and by the master's own virtual addresses."""

    guest: int
    size: int
    user: int
    offset: int


class Memory:
    """All regions. A view of guest memory keeps its mapping alive, so a master may go while one is in use."""

    def __init__(self, regions: list[Region], descriptors: list[int], image: Image) -> None:
        """Map each region from its file; before all lies the image. LabError: a file does not hold what its region claims."""
        if len(regions) != len(descriptors):
            raise LabError(f"the memory table has {len(regions)} regions and {len(descriptors)} files")
        views = [_mapped(region, file) for region, file in zip(regions, descriptors, strict=True)]
        pairs = list(zip(regions, views, strict=True))
        self._guest = [(region.guest, region.guest + region.size, view) for region, view in pairs]
        self._user = [(region.user, region.user + region.size, view) for region, view in pairs]
        self._first = min((region.guest for region in regions), default=0)
        self._image = image

    def view(self, address: int, length: int) -> memoryview:
        """Return memory at a guest physical address: what descriptors hold."""
        for start, end, view in self._guest:
            if start <= address and address + length <= end:
                at = address - start
                return view[at : at + length]
        raise _outside("guest", address, length, self._guest)

    def readable(self, address: int, length: int) -> memoryview:
        """Return what a device is to read: guest memory, or a copy from the image."""
        data = self._image.read(address, length) if address + length <= self._first else None
        return self.view(address, length) if data is None else memoryview(data)

    def user_view(self, address: int, length: int) -> memoryview:
        """Return memory at an address of the master: what ring addresses are."""
        for start, end, view in self._user:
            if start <= address and address + length <= end:
                at = address - start
                return view[at : at + length]
        raise _outside("user", address, length, self._user)


def _mapped(region: Region, file: int) -> memoryview:
    """Map from a page's start: the offset itself need not be one."""
    skipped = region.offset % mmap.ALLOCATIONGRANULARITY
    try:
        mapping = mmap.mmap(file, region.size + skipped, offset=region.offset - skipped)
    except (OSError, ValueError, OverflowError) as error:
        raise LabError(
            f"cannot map {region.size} bytes at {region.offset} of guest memory: {error}"
        ) from error
    return memoryview(mapping)[skipped:]


def _outside(kind: str, address: int, length: int, ranges: list[tuple[int, int, memoryview]]) -> LabError:
    there = ", ".join(f"{start:#x}-{end:#x}" for start, end, _ in ranges)
    return LabError(f"{length} bytes at the {kind} address {address:#x} are not in guest memory ({there})")
