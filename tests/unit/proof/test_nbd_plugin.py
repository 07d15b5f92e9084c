# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plugin in a real nbdkit: what is answered is in the log, in one order, and can be cut anywhere."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proof import log, needs
from proof.disk import VolatileDisk
from proof.errors import ProofError
from proof.images import Image, copy_sparse
from proof.log import SECTOR, Kind
from proof.mechanics import Mechanics
from proof.volatile import DROP, KEEP, Disk

SIZE = 1 << 20
pytestmark = pytest.mark.skipif(
    not shutil.which("nbdkit") or needs.PLUGIN in needs.missing().values(),
    reason="needs nbdkit and its plugin for Python",
)


@pytest.fixture
def disk(tmp_path: Path) -> VolatileDisk:
    """Return a disk that is not served yet."""
    return a_disk(tmp_path)


def a_disk(directory: Path, flush: float = 0.0) -> VolatileDisk:
    """Make an empty disk."""
    base = directory / "empty.img"
    base.touch()
    with base.open("r+b") as file:
        file.truncate(SIZE)
    return VolatileDisk.made(directory / "disk", base, flush)


def events(disk: VolatileDisk) -> list[log.Event]:
    """Return what the disk was told, without who came."""
    return [event for event in log.read(disk.directory).events if event.kind is not Kind.NOTE]


def test_writes_flushes_fua_and_acknowledgements_have_one_order(disk: VolatileDisk) -> None:
    """Two connections, one log."""
    with disk:
        data, ack = nbd.Client(disk.socket, "disk"), nbd.Client(disk.socket, "ack")
        data.write(0, b"a" * 512)
        data.flush()
        ack.write(0, b"1" * 512)
        data.write(4096, b"b" * 1024, fua=True)
        ack.write(512, b"2" * 512)
        data.zero(8192, 4096, fua=True)
        data.trim(0, 512)
        ack.flush()
        assert data.read(0, 512) == bytes(512)
        assert data.read(4096, 1024) == b"b" * 1024
        assert ack.read(512, 512) == b"2" * 512
    seen = [(e.kind, e.offset, e.length, e.fua, bytes(e.data[:1])) for e in events(disk)]
    assert seen == [
        (Kind.WRITE, 0, 512, False, b"a"),
        (Kind.FLUSH, 0, 0, False, b""),
        (Kind.ACK, 0, 512, False, b"1"),
        (Kind.WRITE, 4096, 1024, True, b"b"),
        (Kind.ACK, 512, 512, False, b"2"),
        (Kind.ZERO, 8192, 4096, True, b""),
        (Kind.TRIM, 0, 512, False, b""),
    ]


def test_the_disk_says_that_it_has_a_cache_and_knows_fua(disk: VolatileDisk) -> None:
    """Without these flags a client would send neither; a second connection is not promised anything."""
    with disk:
        client = nbd.Client(disk.socket, "disk")
        assert client.size == SIZE
        assert client.flags & nbd.SENDS_FLUSH
        assert client.flags & nbd.SENDS_FUA
        assert client.flags & nbd.SENDS_TRIM
        assert not client.flags & nbd.MULTI_CONN
        assert nbd.Client(disk.socket, "ack").size == 1 << 20
        with pytest.raises(nbd.Refused):
            nbd.Client(disk.socket, "other")


def test_what_was_answered_is_in_the_log_of_a_killed_process(disk: VolatileDisk) -> None:
    """Killed in the middle: every answered write is there, and the log is whole."""
    with disk:
        client = nbd.Client(disk.socket, "disk")
        for number in range(200):
            client.write(number * 512, bytes([number]) * 512)
        disk.stop()
    read = log.read(disk.directory)
    assert not read.torn
    assert [e.data[0] for e in read.events if e.kind is Kind.WRITE] == list(range(200))


def test_a_flush_counts_at_its_end(tmp_path: Path) -> None:
    """An acknowledgement that comes meanwhile is before it in the log, also on a computer that is busy; a write waits."""
    with a_disk(tmp_path, flush=1.5) as disk:
        data, ack = nbd.Client(disk.socket, "disk"), nbd.Client(disk.socket, "ack")
        for make_durable in (data.flush, lambda: data.write(512, b"f" * 512, fua=True)):
            data.write(0, b"a" * 512)
            with ThreadPoolExecutor(1) as pool:
                started = time.monotonic()
                waiting = pool.submit(make_durable)
                time.sleep(0.1)
                ack.write(0, b"1" * 512)
                waiting.result()
                assert time.monotonic() - started >= 1.5
    kinds = [event.kind for event in events(disk)]
    assert kinds == [Kind.WRITE, Kind.ACK, Kind.FLUSH, Kind.WRITE, Kind.ACK, Kind.WRITE]


def test_a_slowed_disk_takes_the_time_of_the_model(tmp_path: Path) -> None:
    """So many times over: little for a cached write, a seek and half a turn for a flush and a FUA write."""
    a_disk(tmp_path)
    disk = VolatileDisk(tmp_path / "disk", slow=20)
    model, took, wanted = Mechanics(), list[float](), list[float]()
    with disk:
        client = nbd.Client(disk.socket, "disk")
        requests = (
            (lambda: client.write(0, b"a" * 512), (Kind.WRITE, 0, 512, False)),
            (client.flush, (Kind.FLUSH, 0, 0, False)),
            (lambda: client.write(512, b"b" * 512, fua=True), (Kind.WRITE, 512, 512, True)),
            (client.flush, (Kind.FLUSH, 0, 0, False)),
        )
        for ask, words in requests:
            started = time.monotonic()
            ask()
            took.append(time.monotonic() - started)
            wanted.append(20 * model.take(*words))
    assert wanted[1] > 0.2 and wanted[2] > 0.15 and wanted[0] == wanted[3] < 0.01
    assert all(seen >= meant for seen, meant in zip(took, wanted, strict=True))
    assert took[0] < wanted[1]
    assert [event.kind for event in events(disk)] == [Kind.WRITE, Kind.FLUSH, Kind.WRITE, Kind.FLUSH]


def test_a_disk_has_one_way_of_taking_its_time(tmp_path: Path) -> None:
    """Not both."""
    a_disk(tmp_path)
    disk = VolatileDisk(tmp_path / "disk", flush=0.1, slow=2)
    with pytest.raises(ProofError, match="both flush and slow"), disk:
        pass


@pytest.mark.skipif(not shutil.which("qemu-io"), reason="needs qemu-io")
@pytest.mark.parametrize(("mode", "fua"), [("writeback", False), ("writethrough", True)])
def test_qemu_passes_a_write_on_as_fua_where_the_cache_is_off(
    disk: VolatileDisk, mode: str, fua: bool
) -> None:
    """What a guest's switch of its disk's cache comes down to in QEMU's block layer; no flush takes its place."""
    with disk:
        argv = ["qemu-io", "-f", "raw", "-t", mode, "-c", "write 0 4096", str(disk.boot_disk("D").nbd)]
        subprocess.run(argv, check=True, capture_output=True)
    first = events(disk)[0]
    assert (first.kind, first.length, first.fua) == (Kind.WRITE, 4096, fua)


def test_an_nbdkit_that_ended_by_itself_is_told(disk: VolatileDisk) -> None:
    """Its log would look like a power cut."""
    with pytest.raises(ProofError, match="nbdkit ended before it was stopped"), disk:
        assert disk._process is not None
        disk._process.kill()
        disk._process.wait()


def test_a_log_is_not_overwritten(disk: VolatileDisk) -> None:
    """A second start on the same directory is refused, with nbdkit's own words."""
    with disk:
        pass
    with pytest.raises(ProofError, match="File exists"), disk:
        pass


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 1 << 32))
def test_the_replayed_log_is_what_a_simple_disk_would_hold(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """A client that keeps books by itself: the newest data, and what it flushed."""
    disk = a_disk(tmp_path_factory.mktemp("replay"))
    with disk:
        client = nbd.Client(disk.socket, "disk")
        newest, durable = _work(client, random.Random(seed))
        assert client.read(0, SIZE) == newest
        disk.stop()
    image, cache = _replayed(disk)
    with image.at_cut(cache.cut(DROP, 0)) as path:
        assert path.read_bytes() == durable
    with image.at_cut(cache.cut(KEEP, 0)) as path:
        assert path.read_bytes() == newest
    image.close()


def _work(client: nbd.Client, chance: random.Random) -> tuple[bytearray, bytearray]:
    """Send random requests; return what should be newest and what durable."""
    newest, durable = bytearray(SIZE), bytearray(SIZE)
    for _ in range(120):
        sector = chance.randrange(64)
        offset, length = sector * SECTOR, chance.randrange(1, 17) * SECTOR
        fua = chance.random() < 0.2
        action = chance.choice(["write", "write", "write", "zero", "trim", "flush"])
        if action == "flush":
            client.flush()
            durable = bytearray(newest)
        else:
            data = chance.randbytes(length) if action == "write" else bytes(length)
            if action == "write":
                client.write(offset, data, fua)
            elif action == "zero":
                client.zero(offset, length, fua)
            else:
                client.trim(offset, length, fua)
            newest[offset : offset + length] = data
            if fua:
                durable[offset : offset + length] = data
    return newest, durable


def _replayed(disk: VolatileDisk) -> tuple[Image, Disk]:
    path = disk.directory / "cut.img"
    copy_sparse(disk.base, path)
    image, cache = Image(path), Disk()
    for event in log.read(disk.directory).events:
        image.make_durable(cache.apply(event))
    return image, cache
