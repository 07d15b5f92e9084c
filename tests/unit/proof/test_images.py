# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images: a cut is laid over and taken back, and a step costs what changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proof.checks import scratch_directory
from proof.errors import ProofError
from proof.images import Image, Twin, copy_sparse
from proof.volatile import Piece

SIZE = 64 << 10
PIECES = st.lists(
    st.builds(
        lambda offset, data: Piece(offset, len(data), memoryview(data)),
        st.integers(0, 4096),
        st.binary(min_size=1, max_size=600),
    ),
    max_size=6,
)


def an_image(path: Path, size: int = SIZE) -> Image:
    """Make an empty image."""
    path.unlink(missing_ok=True)
    path.touch()
    with path.open("r+b") as file:
        file.truncate(size)
    return Image(path)


@settings(deadline=None)
@given(PIECES, PIECES)
def test_a_cut_is_taken_back(
    tmp_path_factory: pytest.TempPathFactory, durable: list[Piece], cut: list[Piece]
) -> None:
    """Pieces may overlap: they are taken back in the opposite order."""
    image = an_image(tmp_path_factory.getbasetemp() / "cut.img")
    image.make_durable(durable)
    before = image.path.read_bytes()
    expected = bytearray(before)
    for piece in cut:
        expected[piece.offset : piece.offset + piece.length] = piece.data or b""
    with image.at_cut(cut) as path:
        assert path.read_bytes() == expected
    assert image.path.read_bytes() == before
    image.close()


def test_a_cut_is_taken_back_after_an_error(tmp_path: Path) -> None:
    """The next cut must not inherit from this one."""
    image = an_image(tmp_path / "cut.img")
    with pytest.raises(RuntimeError), image.at_cut([Piece(0, 3, memoryview(b"abc"))]):
        raise RuntimeError
    assert image.path.read_bytes() == bytes(SIZE)


def test_zeros_are_written_without_their_bytes(tmp_path: Path) -> None:
    """More than one step of them."""
    size = 3 << 20
    image = an_image(tmp_path / "cut.img", size)
    image.make_durable([Piece(0, size, memoryview(b"x" * size)), Piece(5, size - 10, None)])
    assert image.path.read_bytes() == b"xxxxx" + bytes(size - 10) + b"xxxxx"


def test_the_cost_is_what_changes_not_the_size(tmp_path: Path) -> None:
    """A thousand cuts of 4 KiB on a disk of a tebibyte."""
    image = an_image(tmp_path / "cut.img", 1 << 40)
    for number in range(1000):
        with image.at_cut([Piece(number << 20, 4096, memoryview(b"x" * 4096))]):
            pass
    assert image.written == 2 * 1000 * 4096


def test_an_image_that_is_too_short_is_told(tmp_path: Path) -> None:
    """It is not the disk of this log."""
    image = an_image(tmp_path / "cut.img")
    with pytest.raises(ProofError, match="ends before"), image.at_cut([Piece(SIZE, 1, memoryview(b"x"))]):
        pass


@pytest.fixture
def memory() -> Iterator[Path]:
    """Where the images of a sweep lie."""
    with scratch_directory() as name:
        yield Path(name)


def test_a_twin_is_renewed_whatever_was_done_to_it(memory: Path) -> None:
    """Bytes that another wrote over, beside, and where the source has a hole; and what the source has got since."""
    source, path = memory / "a", memory / "b"
    with source.open("wb") as file:
        file.write(b"begin")
        file.truncate(64 << 20)
    path.write_bytes(b"old" * (1 << 20))
    twin = Twin(source, path)
    twin.renew()
    assert path.read_bytes() == source.read_bytes()
    with path.open("r+b") as file:
        file.write(b"other")
        file.seek(40 << 20)
        file.write(b"in a hole")
    with source.open("r+b") as file:
        file.seek(50 << 20)
        file.write(b"new")
    twin.renew()
    assert path.read_bytes() == source.read_bytes()
    assert path.stat().st_blocks == source.stat().st_blocks


def test_a_copy_has_the_same_bytes_and_holes(tmp_path: Path) -> None:
    """Data at the begin, in the middle; a hole at the end."""
    source, target = tmp_path / "a", tmp_path / "b"
    with source.open("wb") as file:
        file.write(b"begin")
        file.seek(10 << 20)
        file.write(b"middle")
        file.truncate(1 << 30)
    target.write_bytes(b"old" * 100)
    copy_sparse(source, target)
    assert target.stat().st_size == 1 << 30
    assert target.stat().st_blocks <= source.stat().st_blocks + 8
    with target.open("rb") as file:
        assert file.read(5) == b"begin"
        file.seek(10 << 20)
        assert file.read(6) == b"middle"
