# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a device may read that is not in the memory that its master shares."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator

import pytest

from lab.errors import LabError
from lab.vhost.image import Image
from lab.vhost.memory import Memory, Region

IMAGE, SIZE = 8192, 4096
SAID = b"in the image of the program"


@pytest.fixture
def image() -> ctypes.Array[ctypes.c_char]:
    """What lies before the shared memory, in the master: this process."""
    return ctypes.create_string_buffer(SAID, IMAGE)


@pytest.fixture
def memory(image: ctypes.Array[ctypes.c_char]) -> Iterator[Memory]:
    """Memory that is shared from the end of the image on."""
    file = os.memfd_create("guest")
    os.ftruncate(file, SIZE)
    region = Region(guest=IMAGE, size=SIZE, user=IMAGE, offset=0)
    yield Memory([region], [file], Image(os.getpid(), ctypes.addressof(image)))
    os.close(file)


def test_the_image_of_the_program_can_be_read(memory: Memory, image: ctypes.Array[ctypes.c_char]) -> None:
    assert bytes(memory.readable(0, len(SAID))) == SAID
    assert bytes(memory.readable(IMAGE - 512, 512)) == bytes(512)


def test_shared_memory_is_read_where_it_lies(memory: Memory) -> None:
    memory.view(IMAGE, 4)[:] = b"here"
    assert bytes(memory.readable(IMAGE, 4)) == b"here"


@pytest.mark.parametrize("address", [IMAGE - 1, IMAGE + SIZE - 1, 1 << 46])
def test_what_is_nowhere_is_told(memory: Memory, address: int) -> None:
    with pytest.raises(LabError, match="not in guest memory"):
        memory.readable(address, 2)


def test_nothing_is_written_into_the_image(memory: Memory) -> None:
    with pytest.raises(LabError, match="not in guest memory"):
        memory.view(0, 4)
