# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A small vhost-user master: guest memory, rings and eventfds as a machine has them, and a server for it."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import select
import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab.vhost.config import load
from lab.vhost.server import Server
from lab.vhost.store import File

ROOT = Path(__file__).parents[3]
GUEST, USER, SKIPPED = 0x10000000, 0x7F0000000000, 4096
SIZE = 4 << 20
RING = 16
NEXT, WRITE, INDIRECT = 1, 2, 4
LIMIT = 10.0
HEADER = struct.Struct("<III")
VERSION_1, PROTOCOL = 1 << 32, 1 << 30


class Gone(Exception):
    """The server closed the connection."""


class Master:
    """One machine's end of one device, with its rings running."""

    def __init__(self, path: Path, queues: int, refused: int = 0) -> None:
        """Connect and set everything up; the features `refused` are not taken."""
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LIMIT)
        self.socket.connect(str(path))
        file = os.memfd_create("guest")
        os.ftruncate(file, SIZE + SKIPPED)
        self.memory = memoryview(mmap.mmap(file, SIZE, offset=SKIPPED))
        self._free = 0
        self.ask(3)
        self.features = self.number(1)
        self.ask(16, struct.pack("<Q", self.number(15)))
        alive, self._requests = os.pipe()
        self.ask(21, files=[self._requests])
        os.close(self._requests)
        self.alive = alive
        self.ask(2, struct.pack("<Q", (self.features | PROTOCOL) & ~refused))
        self.ask(5, struct.pack("<IIQQQQ", 1, 0, GUEST, SIZE, USER, SKIPPED), [file])
        os.close(file)
        self.queues = [Queue(self, index) for index in range(queues)]

    def allocate(self, size: int) -> int:
        """Return a place in guest memory, relative to its start."""
        at = self._free
        self._free += -(-size // 16) * 16
        assert self._free <= SIZE
        return at

    def send(self, code: int, payload: bytes = b"", files: list[int] | None = None, flags: int = 1) -> None:
        """Send a message."""
        socket.send_fds(self.socket, [HEADER.pack(code, flags, len(payload)) + payload], files or [])

    def receive(self) -> bytes:
        """Return the payload of a reply."""
        try:
            header = self.socket.recv(12, socket.MSG_WAITALL)
        except ConnectionError as error:
            raise Gone from error
        if not header:
            raise Gone
        _, flags, size = HEADER.unpack(header)
        assert flags == 5
        return self.socket.recv(size, socket.MSG_WAITALL)

    def ask(self, code: int, payload: bytes = b"", files: list[int] | None = None) -> None:
        """Send a message that has to succeed."""
        assert self.status(code, payload, files) == 0

    def status(self, code: int, payload: bytes = b"", files: list[int] | None = None) -> int:
        """Return how the server took a message: 0 is well."""
        self.send(code, payload, files, 1 | 8)
        return int.from_bytes(self.receive(), "little")

    def number(self, code: int) -> int:
        """Return the number that a message asks for."""
        self.send(code)
        return int.from_bytes(self.receive(), "little")

    def config(self, offset: int, size: int) -> bytes:
        """Read the configuration space."""
        self.send(24, struct.pack("<III", offset, size, 0) + bytes(size))
        return self.receive()[12:]

    def set_config(self, offset: int, data: bytes) -> int:
        """Write into the configuration space; 0 is well."""
        return self.status(25, struct.pack("<III", offset, len(data), 0) + data)

    def close(self) -> None:
        """Be gone, as a killed machine is."""
        self.socket.close()
        os.close(self.alive)
        for queue in self.queues:
            os.close(queue.kick)
            os.close(queue.call)


class Queue:
    """One ring, from the driver's side."""

    def __init__(self, master: Master, index: int) -> None:
        """Lay it out and let it run."""
        self._master = master
        self.index = index
        self.table = master.allocate(16 * RING)
        self.avail = master.allocate(6 + 2 * RING)
        self.used = master.allocate(6 + 8 * RING)
        self.kick, self.call = os.eventfd(0), os.eventfd(0, os.EFD_NONBLOCK)
        self._added = self._seen = 0
        self._rooms: dict[int, tuple[list[int], list[int]]] = {}
        master.ask(13, struct.pack("<Q", index), [self.call])
        master.ask(8, struct.pack("<II", index, RING))
        master.ask(10, struct.pack("<II", index, 0))
        places = (USER + self.table, USER + self.used, USER + self.avail, 0)
        master.ask(9, struct.pack("<IIQQQQ", index, 0, *places))
        master.ask(12, struct.pack("<Q", index), [self.kick])
        master.ask(18, struct.pack("<II", index, 1))

    def add(self, readable: list[bytes], room: list[int], indirect: bool = False) -> int:
        """Offer a request; return its head."""
        words, places = [], []
        for data in readable:
            at = self._master.allocate(len(data))
            self._master.memory[at : at + len(data)] = data
            words.append((GUEST + at, len(data), 0))
        for size in room:
            places.append(self._master.allocate(size))
            words.append((GUEST + places[-1], size, WRITE))
        return self.add_raw(words, (places, room), indirect)

    def add_raw(
        self,
        words: list[tuple[int, int, int]],
        room: tuple[list[int], list[int]] = ([], []),
        indirect: bool = False,
    ) -> int:
        """Offer a chain of these descriptors: address, length and flags of each."""
        head = 5  # requests are one at a time, or indirect
        table, first = self.table, head
        if indirect:
            table, first = self._master.allocate(16 * len(words)), 0
            head = self._added % RING
            self.put(
                self.table + 16 * head, struct.pack("<QIHH", GUEST + table, 16 * len(words), INDIRECT, 0)
            )
        for number, (address, length, flags) in enumerate(words):
            more = NEXT if number + 1 < len(words) else 0
            index = first + number
            self.put(table + 16 * index, struct.pack("<QIHH", address, length, flags | more, index + 1))
        self._rooms[head] = room
        self.offer(head)
        return head

    def offer(self, head: int) -> None:
        """Make a chain available and kick."""
        self.put(self.avail + 4 + 2 * (self._added % RING), struct.pack("<H", head))
        self._added += 1
        self.put(self.avail + 2, struct.pack("<H", self._added & 0xFFFF))
        os.eventfd_write(self.kick, 1)

    def put(self, at: int, data: bytes) -> None:
        """Write into guest memory."""
        self._master.memory[at : at + len(data)] = data

    def is_done(self) -> bool:
        """Tell whether something was given back that was not waited for yet."""
        return (
            int.from_bytes(self._master.memory[self.used + 2 : self.used + 4], "little")
            != self._seen & 0xFFFF
        )

    def wait(self) -> tuple[int, int, list[bytes]]:
        """Return the head of the next request given back, how much was written, and its buffers."""
        while not self.is_done():
            assert select.select([self.call], [], [], LIMIT)[0], "no notification came"
            os.eventfd_read(self.call)
        at = self.used + 4 + 8 * (self._seen % RING)
        head, written = struct.unpack("<II", self._master.memory[at : at + 8])
        self._seen += 1
        places, sizes = self._rooms.pop(head)
        memory = self._master.memory
        return (
            head,
            written,
            [bytes(memory[place : place + size]) for place, size in zip(places, sizes, strict=True)],
        )

    def request(self, readable: list[bytes], room: list[int], indirect: bool = False) -> list[bytes]:
        """Offer a request and return its buffers."""
        head = self.add(readable, room, indirect)
        seen, _, buffers = self.wait()
        assert seen == head
        return buffers


class Disk(Master):
    """A virtio disk."""

    def __init__(self, path: Path, refused: int = 0) -> None:
        """Its one ring."""
        super().__init__(path, 1, refused)

    def do(self, kind: int, sector: int = 0, data: bytes = b"", room: int = 0) -> tuple[int, bytes]:
        """Carry out one request; return its status and data."""
        self._free = 4096
        header = struct.pack("<IIQ", kind, 0, sector)
        buffers = self.queues[0].request(
            [header, *([data] if data else [])], [*([room] if room else []), 1], True
        )
        return buffers[-1][0], b"".join(buffers[:-1])

    def write(self, sector: int, data: bytes) -> None:
        """Write, which has to succeed."""
        assert self.do(1, sector, data)[0] == 0

    def read(self, sector: int, size: int) -> bytes:
        """Read, which has to succeed."""
        status, data = self.do(0, sector, room=size)
        assert status == 0
        return data

    def flush(self) -> None:
        """Flush, which has to succeed."""
        assert self.do(4)[0] == 0


class Scsi(Master):
    """A SCSI controller."""

    def __init__(self, path: Path) -> None:
        """Its three rings, with a buffer for an event."""
        super().__init__(path, 3)
        self.queues[1].add([], [16])

    def command(
        self, cdb: bytes, data: bytes = b"", room: int = 0, target: int = 0, lun: int = 0
    ) -> tuple[int, int, bytes, bytes]:
        """Carry out one command; return response, status, sense data and data."""
        self._free = 4096
        self.start(cdb, data, room, target, lun)
        return self.answer()

    def start(self, cdb: bytes, data: bytes = b"", room: int = 0, target: int = 0, lun: int = 0) -> None:
        """Offer one command."""
        header = bytes((1, target, 0x40, lun)).ljust(8, b"\0") + bytes(8 + 3) + cdb.ljust(32, b"\0")
        self.queues[2].add([header, *([data] if data else [])], [108, *([room] if room else [])], True)

    def answer(self) -> tuple[int, int, bytes, bytes]:
        """Return response, status, sense data and data of the next command given back."""
        head, *rest = self.queues[2].wait()[2]
        size, left, _, status, response, sense = struct.unpack("<IIHBB96s", head)
        data = b"".join(rest)
        return response, status, sense[:size], data[: len(data) - left]

    def good(self, cdb: bytes, data: bytes = b"", room: int = 0, target: int = 0) -> bytes:
        """Carry out a command that has to succeed; return its data."""
        response, status, sense, got = self.command(cdb, data, room, target)
        assert (response, status, sense) == (0, 0, b"")
        return got

    def sense(self, cdb: bytes, data: bytes = b"", room: int = 0, lun: int = 0) -> tuple[int, int, int]:
        """Carry out a command that has to fail; return key, code and qualifier."""
        response, status, sense, _ = self.command(cdb, data, room, lun=lun)
        assert (response, status, len(sense)) == (0, 2, 18)
        return sense[2], sense[12], sense[13]


def full() -> File:
    """Return a store whose writes fail: a factory for configurations."""
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(1 << 20)
        store = File(Path(file.name))
    os.dup2(os.open("/dev/full", os.O_RDWR), store._file)
    return store


class Bench:
    """A server in a thread, with its control socket."""

    def __init__(self, directory: Path, *disks: dict[str, Any]) -> None:
        """Disks without a store get a file of 1 MiB."""
        self.directory = directory
        for disk in disks:
            disk.setdefault("store", self.file(disk["serial"]))
            if disk["bus"] == "virtio":
                disk["socket"] = str(self.socket(disk["serial"]))
        config = {
            "control": str(self.socket("control")),
            "scsi": str(self.socket("scsi")),
            "disks": list(disks),
        }
        self.config = directory / "config.json"
        self.config.write_text(json.dumps(config))

    def socket(self, name: str) -> Path:
        """Return the path of a socket."""
        return self.directory / f"{name}.sock"

    def file(self, serial: str, size: int = 1 << 20) -> dict[str, str]:
        """Make a file and return the store of it."""
        path = self.directory / f"{serial}.img"
        path.touch()
        os.truncate(path, size)
        return {"type": "file", "path": str(path)}

    @contextlib.contextmanager
    def served(self) -> Iterator[Bench]:
        """Serve the disks."""
        server = Server(load(self.config))
        thread = threading.Thread(target=server.loop.run)
        thread.start()
        try:
            yield self
        finally:
            self.tell("quit")
            thread.join(LIMIT)
            server.close()

    def answer(self, line: str) -> Any:
        """Send a line to the control socket and return the answer."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(LIMIT)
            connection.connect(str(self.socket("control")))
            connection.sendall(line.encode() + b"\n")
            with connection.makefile() as lines:
                return json.loads(lines.readline())

    def tell(self, command: str, **words: Any) -> Any:
        """Give a command that has to succeed."""
        answer = self.answer(json.dumps({"command": command, **words}))
        assert "return" in answer, answer
        return answer["return"]

    def refusal(self, command: str, **words: Any) -> str:
        """Give a command that must be refused; return why."""
        return str(self.answer(json.dumps({"command": command, **words}))["error"])
