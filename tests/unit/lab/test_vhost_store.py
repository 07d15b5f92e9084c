# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stores: files, and overlays whose map outlives the server."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.vhost.overlay import BLOCK, Overlay
from lab.vhost.store import File
from tests.unit.lab.vhost_master import ROOT, Bench, Disk

SIZE = 40 * BLOCK - 512


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Return a base that ends in the middle of a block."""
    path = tmp_path / "base"
    path.write_bytes(random.Random(1).randbytes(SIZE))
    return path


def overlay(base: Path) -> Overlay:
    """Open an overlay over it."""
    return Overlay(base, base.with_name("top"), base.with_name("map"))


def read(store: Overlay | File, offset: int, *sizes: int) -> bytes:
    """Read into buffers of these sizes."""
    views = [memoryview(bytearray(size)) for size in sizes]
    store.read(offset, views)
    return b"".join(views)


def test_an_overlay_is_what_a_plain_file_would_be(base: Path) -> None:
    """Random requests, opened again between; the base stays as it is."""
    chance, expected, before = random.Random(7), bytearray(base.read_bytes()), base.read_bytes()
    for _ in range(4):
        store = overlay(base)
        for _ in range(150):
            start, end = sorted(chance.randrange(SIZE // 512 + 1) * 512 for _ in range(2))
            middle = chance.randrange(start, end + 1)
            action = chance.choice(("read", "read", "write", "small", "zero", "discard"))
            if action == "read":
                assert read(store, start, middle - start, end - middle) == expected[start:end]
                continue
            end = min(end, start + 1024) if action == "small" else end
            data = chance.randbytes(end - start) if action in ("write", "small") else bytes(end - start)
            if action == "zero":
                store.zero(start, end - start, False)
            elif action == "discard":
                store.discard(start, end - start)
            else:
                store.write(start, [memoryview(data)[:700], memoryview(data)[700:]], True)
            expected[start:end] = data
        assert read(store, 0, SIZE) == expected
        store.flush()
        store.close()
    assert base.read_bytes() == before


def test_untouched_blocks_take_no_space(base: Path) -> None:
    """The top file stays sparse."""
    store = overlay(base)
    store.write(10 * BLOCK, [memoryview(bytes(BLOCK))], False)
    store.close()
    assert base.with_name("top").stat().st_blocks * 512 <= 4 * BLOCK
    assert base.with_name("map").read_bytes().count(1) == 1


def test_parts_that_do_not_fit_together_are_refused(base: Path) -> None:
    """A top file without its map, and one of another size."""
    overlay(base).close()
    base.with_name("map").rename(base.with_name("away"))
    with pytest.raises(LabError, match="both or neither"):
        overlay(base)
    base.with_name("away").rename(base.with_name("map"))
    os.truncate(base.with_name("top"), SIZE - 512)
    with pytest.raises(LabError, match="wants"):
        overlay(base)


def test_a_file_of_odd_size_is_no_disk(tmp_path: Path) -> None:
    """Nor is an empty one."""
    path = tmp_path / "odd"
    for size in (0, 700):
        path.write_bytes(bytes(size))
        with pytest.raises(LabError, match="whole sectors"):
            File(path)


def test_a_file_that_shrank_reads_as_zeros(tmp_path: Path) -> None:
    """Over several buffers, too."""
    path = tmp_path / "disk"
    path.write_bytes(b"x" * 4096)
    store = File(path)
    os.truncate(path, 1000)
    assert read(store, 512, 100, 600, 600) == b"x" * 488 + bytes(812)
    store.zero(0, 512, False)
    store.discard(512, 0)
    assert read(store, 0, 1000) == bytes(512) + b"x" * 488
    store.close()


def test_an_overlay_survives_the_death_of_its_server(base: Path, tmp_path: Path) -> None:
    """Killed in the middle, served again: what was answered is there, over the base."""
    store = {"type": "overlay", "base": str(base), "top": str(tmp_path / "top"), "map": str(tmp_path / "map")}
    bench = Bench(tmp_path, {"serial": "ONE", "bus": "virtio", "store": store})
    process = subprocess.Popen([sys.executable, "-m", "lab.vhost", str(bench.config)], cwd=ROOT)
    try:
        disk = Disk(_appeared(bench.socket("control")).with_name("ONE.sock"))
        for sector in range(1, 300, 7):
            disk.write(sector, bytes([sector % 251]) * 512)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    expected = bytearray(base.read_bytes())
    for sector in range(1, 300, 7):
        expected[sector * 512 : sector * 512 + 512] = bytes([sector % 251]) * 512
    with bench.served():
        again = Disk(bench.socket("ONE"))
        got = b"".join(again.read(at // 512, min(BLOCK, SIZE - at)) for at in range(0, SIZE, BLOCK))
        again.close()
    assert got == expected


def _appeared(path: Path) -> Path:
    deadline = time.monotonic() + 10
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return path
