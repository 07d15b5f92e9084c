# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One recovery for all images that recovery cannot tell apart.

Recovery of a file system neither reads nor writes the content of a file that was written in full, and made durable, before
the run: such a file does not move, and journals hold metadata. The rest of an image is its frame. Of thousands of
cuts most have a frame that an earlier cut had; it is recovered, checked and read once.

In the image of a frame each sector of a judged file holds a tag, its own number, and other content is a hole. Who reads a
file there reads tags, and what the cut left in those sectors is put in their place: so a tag also shows that the
file still lies where it did. That nothing depends on content is tried all the time: sweep.py judges a share of the cuts
by their whole image too, and the two must agree.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from proof.checks import Check, Checked
from proof.images import Image, copy_sparse
from proof.log import SECTOR, Event, Kind
from proof.volatile import Kept, Piece, joined

_TAG = struct.Struct("<8sQ")
_MAGIC = b"DBHFRAME"
_ZEROS = bytes(SECTOR)


class Layout(NamedTuple):
    """Sectors of content, and those of them that belong to files which are judged."""

    content: frozenset[int]
    judged: frozenset[int]


class Text(NamedTuple):
    """A file as it was read from a frame: `tags` says at which byte the content of which sector belongs.

    `runs` are (byte of the file, first sector, sectors) of what lies in one piece.
    """

    raw: bytes
    tags: dict[int, int]
    runs: list[tuple[int, int, int]]

    def filled(self, read: Callable[[int, int], bytes], kept: Mapping[int, Event]) -> bytes:
        """Return the file with its content: what a cut kept of the cache, or what was durable."""
        if not self.tags:
            return self.raw
        content = bytearray(self.raw)
        for offset, sector, count in self.runs:
            content[offset : offset + count * SECTOR] = read(sector * SECTOR, count * SECTOR)
        for sector, event in kept.items():
            offset = self.tags.get(sector, -1)
            if offset >= 0:
                content[offset : offset + SECTOR] = _data(sector, event)
        return bytes(content[: len(self.raw)])


class Recovered(NamedTuple):
    """What recovery of one frame gave."""

    clean: bool
    said: str
    files: dict[str, Text | None]


class Frames:
    """The frames of one run, from one place of its log on, and what their recovery gave."""

    def __init__(self, check: Check, paths: Sequence[str], layout: Layout) -> None:
        """Take the check, the files to read, and where content lies."""
        self.check, self.paths, self.layout = check, paths, layout
        self.known: dict[int, Recovered] = {}
        self._texts: dict[bytes, Text] = {}
        self._ranges = _ranges(layout.content)

    def image(self, whole: Path, path: Path) -> Image:
        """Make the image of a frame from that of a whole disk."""
        copy_sparse(whole, path, self._ranges)
        image = Image(path)
        image.make_durable(
            Piece(sector * SECTOR, SECTOR, memoryview(_tag(sector))) for sector in self.layout.judged
        )
        return image

    def recover(self, key: int, image: Path, scratch: Path) -> None:
        """Recover the frame that has this key."""
        checked = self.check(image, self.paths, scratch)
        files = {path: None if raw is None else self._text(raw) for path, raw in checked.files.items()}
        self.known[key] = Recovered(checked.clean, checked.said, files)

    def _text(self, raw: bytes) -> Text:
        """Return a text, the same one for the same bytes: most frames differ in one file of many."""
        if raw not in self._texts:
            tags = _tags(raw)
            self._texts[raw] = Text(raw, tags, list(_runs(tags)))
        return self._texts[raw]


class Frame:
    """The frame at one place of the log after another. Its key is a sum over its sectors, so a change costs what changed."""

    def __init__(self, frames: Frames, whole: Image, path: Path) -> None:
        """Begin with what is durable in a whole image, which the caller goes on to keep up to date."""
        self._frames, self._whole = frames, whole
        self._image = frames.image(whole.path, path)
        self._key = 0
        self._durable: dict[int, int] = {}
        self._digests: dict[tuple[int, int], int] = {}

    def make_durable(self, pieces: Iterable[Piece]) -> None:
        """Take what the disk has made durable."""
        content = self._frames.layout.content
        for piece in pieces:
            first, count = piece.offset // SECTOR, piece.length // SECTOR
            if first in content and all(sector in content for sector in range(first, first + count)):
                continue
            for sector in range(first, first + count):
                if sector not in content:
                    self._put(sector, piece)

    def recovered(self, kept: Sequence[Kept], scratch: Path) -> tuple[Checked, bool]:
        """Return what recovery gives after a cut that keeps these sectors, and whether this frame was known."""
        layout = self._frames.layout
        own = [one for one in kept if one[0] not in layout.content]
        key = self._key_with(own)
        is_known = key in self._frames.known
        if not is_known:
            with self._image.at_cut(joined(own)) as path:
                self._frames.recover(key, path, scratch)
        found = self._frames.known[key]
        over = {sector: event for sector, event in kept if sector in layout.judged}
        files = {path: text and text.filled(self._whole.read, over) for path, text in found.files.items()}
        return Checked(found.clean, found.said, files), is_known

    def close(self) -> None:
        """Close its image."""
        self._image.close()

    def _put(self, sector: int, piece: Piece) -> None:
        at = sector * SECTOR - piece.offset
        data = None if piece.data is None else piece.data[at : at + SECTOR]
        self._image.make_durable([Piece(sector * SECTOR, SECTOR, data)])
        digest = _digest(sector, _ZEROS if data is None else data)
        self._key += digest - self._durable.get(sector, 0)
        self._durable[sector] = digest

    def _key_with(self, own: Iterable[Kept]) -> int:
        """Return the key of the frame with these sectors over it: a tight loop, for thousands may be kept."""
        key, digests, durable = self._key, self._digests, self._durable
        for sector, event in own:
            name = sector, event.sequence
            digest = digests.get(name)
            if digest is None:
                digest = digests[name] = _digest(sector, _data(sector, event))
            key += digest - durable.get(sector, 0)
        return key


def _digest(sector: int, data: bytes | memoryview) -> int:
    """Return what a sector with this content adds to a key: sums of so wide numbers do not meet by chance."""
    return int.from_bytes(
        blake2b(data, digest_size=16, salt=sector.to_bytes(16, "little")).digest(), "little"
    )


def _data(sector: int, event: Event) -> bytes | memoryview:
    if event.kind is not Kind.WRITE:
        return _ZEROS
    at = sector * SECTOR - event.offset
    return event.data[at : at + SECTOR]


def _tag(sector: int) -> bytes:
    return _TAG.pack(_MAGIC, sector).ljust(SECTOR, b"\0")


def _tags(raw: bytes) -> dict[int, int]:
    """Return {sector: byte of the file} of the tags in a file."""
    found: dict[int, int] = {}
    at = raw.find(_MAGIC)
    while at >= 0:
        if at % SECTOR == 0 and at + _TAG.size <= len(raw):
            sector = _TAG.unpack_from(raw, at)[1]
            if raw[at : at + SECTOR] == _tag(sector)[: len(raw) - at]:
                found[sector] = at
        at = raw.find(_MAGIC, at + 1)
    return found


def _runs(tags: Mapping[int, int]) -> Iterator[tuple[int, int, int]]:
    begin, first, count = 0, 0, 0
    for sector, offset in tags.items():
        if count and (sector, offset) == (first + count, begin + count * SECTOR):
            count += 1
            continue
        if count:
            yield begin, first, count
        begin, first, count = offset, sector, 1
    if count:
        yield begin, first, count


def _ranges(sectors: Iterable[int]) -> list[tuple[int, int]]:
    """Return the ranges, in bytes and in their order, that sectors make."""
    found: list[tuple[int, int]] = []
    for sector in sorted(sectors):
        begin = sector * SECTOR
        if found and found[-1][1] == begin:
            found[-1] = (found[-1][0], begin + SECTOR)
        else:
            found.append((begin, begin + SECTOR))
    return found
