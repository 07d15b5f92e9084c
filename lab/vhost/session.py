# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One master at one device: from its connection to its end."""

from __future__ import annotations

import os
import socket
import struct
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from lab.errors import LabError
from lab.vhost import protocol
from lab.vhost.device import Device, padded
from lab.vhost.image import Image
from lab.vhost.loop import Loop
from lab.vhost.memory import Memory
from lab.vhost.protocol import Code, Message, Stream
from lab.vhost.ring import Ring, Setup

BATCH = 256
#: struct ucred: process, user, group.
_PEER = struct.Struct("3i")


@dataclass
class Queue:
    """What is known of one ring, and the ring itself while it runs. -1: no such file."""

    setup: Setup = field(default_factory=Setup)
    kick: int = -1
    call: int = -1
    error: int = -1
    enabled: bool = False
    ring: Ring | None = None


class Session:
    """Answers a master, and hands the requests in its rings to the device."""

    def __init__(
        self, connection: socket.socket, device: Device, loop: Loop, ended: Callable[[Session], None]
    ) -> None:
        """Serve from now on; `ended` is called once, when the master is gone or has to go."""
        connection.setblocking(False)
        self.device = device
        self._connection = connection
        self._stream = Stream(connection)
        self._loop = loop
        self._ended = ended
        self._memory: Memory | None = None
        self._features = 0
        self._requests = -1
        self._queues = [Queue() for _ in range(device.queues)]
        self._is_open = True
        self._is_retired = False
        device.reset(0)
        loop.add(connection.fileno(), self._readable)

    def close(self) -> None:
        """End it: the master's kernel takes the device away."""
        if not self._is_open:
            return
        self._is_open = False
        self._loop.remove(self._connection.fileno())
        for index in range(len(self._queues)):
            self._stop(index)
            queue = self._queues[index]
            queue.kick, queue.call, queue.error = map(_closed, (queue.kick, queue.call, queue.error))
        self._requests = _closed(self._requests)
        self._stream.close()
        self._memory = None
        self._ended(self)

    def retire(self) -> None:
        """Let the master's kernel take the device away in order: what is asked fails, and nothing more is served.

        Linux does so when the file for requests to it is closed, and then closes the connection.
        """
        for index, queue in enumerate(self._queues):
            if queue.ring is not None:
                self._serve(queue.ring, index)
        self.device.abort()
        for index in range(len(self._queues)):
            self._stop(index)
        self._memory = None
        self._is_retired = True
        if self._requests < 0:
            self.close()
        self._requests = _closed(self._requests)

    def _readable(self) -> None:
        try:
            while self._is_open and (message := self._stream.receive()) is not None:
                self._take(message)
        except EOFError:
            self.close()
        except (LabError, OSError) as error:
            print(f"{self.device.name}: the master is sent away: {error}", file=sys.stderr)
            self.close()

    def _take(self, message: Message) -> None:
        """Carry out one message and answer it, if it wants an answer."""
        try:
            answer = self._carry_out(message)
        except (LabError, OSError) as error:
            if not message.flags & protocol.NEED_REPLY:
                raise
            text = f"{self.device.name}: {protocol.name(message.code)} is refused: {error}"
            print(text, file=sys.stderr)
            answer = None if message.code == Code.GET_CONFIG else protocol.NUMBER.pack(1)
        finally:
            for file in message.files:
                os.close(file)
        if answer is None and message.flags & protocol.NEED_REPLY:
            answer = protocol.NUMBER.pack(0)
        if answer is not None:
            self._stream.reply(message, answer)

    def _carry_out(self, message: Message) -> bytes | None:
        """Return the reply that a message has by its nature."""
        act = _ACTS.get(message.code)
        if act is None:
            raise LabError(f"unknown message {message.code}")
        return act(self, message)

    def _get_features(self, message: Message) -> bytes:
        return protocol.NUMBER.pack(self.device.features | protocol.PROTOCOL_FEATURES)

    def _set_features(self, message: Message) -> None:
        """Sent once by each driver that begins, so it stands for the reset that has no message."""
        features = message.unpack(protocol.NUMBER)[0]
        unknown = features & ~(self.device.features | protocol.PROTOCOL_FEATURES)
        if unknown:
            raise LabError(f"features {unknown:#x} were not offered")
        self._features = features
        self.device.reset(features)

    def _get_protocol_features(self, message: Message) -> bytes:
        return protocol.NUMBER.pack(protocol.REPLY_ACK | protocol.BACKEND_REQ | protocol.CONFIG_SPACE)

    def _get_queue_num(self, message: Message) -> bytes:
        return protocol.NUMBER.pack(self.device.queues)

    def _nothing(self, message: Message) -> None:
        """Owning is connecting, and the features of the protocol are used as they come."""

    def _set_memory(self, message: Message) -> None:
        for index in range(len(self._queues)):
            self._stop(index)
        self._memory = Memory(protocol.regions(message), message.files, Image(self._master()))
        for index in range(len(self._queues)):
            self._start(index)

    def _set_size(self, message: Message) -> None:
        index, size = message.unpack(protocol.PAIR)
        self._changed(index).setup.size = size

    def _set_base(self, message: Message) -> None:
        index, base = message.unpack(protocol.PAIR)
        self._changed(index).setup.base = base & 0xFFFF
        self._start(index)

    def _get_base(self, message: Message) -> bytes:
        """It ends the ring, too."""
        index = message.unpack(protocol.PAIR)[0]
        queue = self._changed(index)
        queue.kick = _closed(queue.kick)
        return protocol.PAIR.pack(index, queue.setup.base)

    def _set_addresses(self, message: Message) -> None:
        index, _, table, used, avail, _ = message.unpack(protocol.ADDRESSES)
        setup = self._changed(index).setup
        setup.table, setup.used, setup.avail = table, used, avail
        self._start(index)

    def _set_kick(self, message: Message) -> None:
        index, file = self._file(message)
        queue = self._changed(index)
        queue.kick = _closed(queue.kick, file)
        if not self._features & protocol.PROTOCOL_FEATURES:
            queue.enabled = True
        self._start(index)

    def _set_call(self, message: Message) -> None:
        index, file = self._file(message)
        if file >= 0:
            os.set_blocking(file, False)
        queue = self._queue(index)
        queue.call = _closed(queue.call, file)
        if queue.ring is not None:
            queue.ring.call = file

    def _set_error(self, message: Message) -> None:
        index, file = self._file(message)
        queue = self._queue(index)
        queue.error = _closed(queue.error, file)

    def _set_enable(self, message: Message) -> None:
        index, enabled = message.unpack(protocol.PAIR)
        self._changed(index).enabled = bool(enabled)
        self._start(index)

    def _set_requests(self, message: Message) -> None:
        """Nothing is ever sent there; that it is open tells the master's kernel that its device lives."""
        file = message.take_file()
        self._requests = _closed(self._requests, file)

    def _get_config(self, message: Message) -> bytes:
        offset, size, flags = protocol.CONFIG.unpack_from(message.payload.ljust(protocol.CONFIG.size, b"\0"))
        if len(message.payload) != protocol.CONFIG.size + size:
            raise LabError(f"{size} bytes of configuration space in a message of {len(message.payload)}")
        content = padded(self.device.config(), offset + size)[offset:]
        return protocol.CONFIG.pack(offset, size, flags) + content

    def _set_config(self, message: Message) -> None:
        offset, size, _ = protocol.CONFIG.unpack_from(message.payload.ljust(protocol.CONFIG.size, b"\0"))
        data = message.payload[protocol.CONFIG.size :]
        if len(data) != size:
            raise LabError(f"{size} bytes of configuration space in a message of {len(message.payload)}")
        self.device.set_config(offset, data)

    def _master(self) -> int:
        """Return the number of the process at the other end of the connection."""
        peer = self._connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        return int(_PEER.unpack(peer)[0])

    def _file(self, message: Message) -> tuple[int, int]:
        """Return the ring that a file is for, and the file, -1 for none."""
        word = message.unpack(protocol.NUMBER)[0]
        index = word & protocol.INDEX
        self._queue(index)
        return index, -1 if word & protocol.NO_FILE else message.take_file()

    def _queue(self, index: int) -> Queue:
        if index >= len(self._queues):
            raise LabError(f"ring {index} of a device with {len(self._queues)}")
        return self._queues[index]

    def _changed(self, index: int) -> Queue:
        """Return a ring that is to be changed: it stops, and goes on from there once it is complete."""
        queue = self._queue(index)
        self._stop(index)
        return queue

    def _start(self, index: int) -> None:
        queue = self._queue(index)
        setup = queue.setup
        if self._is_retired:
            return
        complete = setup.size and setup.table and setup.avail and setup.used and queue.kick >= 0
        if not complete or not queue.enabled or self._memory is None:
            return
        queue.ring = ring = Ring(setup, self._memory, self._loop.at_end)
        ring.call = queue.call
        self._loop.add(queue.kick, partial(self._kicked, queue, index))
        # What was offered before the kick was known is in there already.
        self._loop.soon(partial(self._serve, ring, index))

    def _stop(self, index: int) -> None:
        queue = self._queues[index]
        if queue.ring is None:
            return
        self._loop.remove(queue.kick)
        self.device.abandon()
        queue.ring.notify()
        queue.setup.base = queue.ring.base
        queue.ring.call = -1
        queue.ring = None

    def _kicked(self, queue: Queue, index: int) -> None:
        os.read(queue.kick, 8)
        if queue.ring is not None:
            self._serve(queue.ring, index)

    def _serve(self, ring: Ring, index: int) -> None:
        """Hand on what the ring offers, but not for ever: others have their turn."""
        if self._queues[index].ring is not ring:
            return
        handle, pop = self.device.handle, ring.pop
        try:
            ring.quiet()
            for _ in range(BATCH):
                chain = pop()
                if chain is None:
                    break
                handle(index, ring, chain)
            if ring.listen():
                self._loop.soon(partial(self._serve, ring, index))
        except Exception as error:  # one broken device must not take the others with it
            self._break(index, error)

    def _break(self, index: int, error: Exception) -> None:
        """Stop a ring for good. Its machine waits, as it would for a disk that hangs."""
        why = str(error) if isinstance(error, LabError) else traceback.format_exc().strip()
        print(f"{self.device.name}: ring {index} is stopped: {why}", file=sys.stderr)
        queue = self._queues[index]
        self._stop(index)
        queue.enabled = False
        if queue.error >= 0:
            os.write(queue.error, protocol.NUMBER.pack(1))


def _closed(file: int, other: int = -1) -> int:
    """Close a file that is replaced, and return the one that takes its place."""
    if file >= 0:
        os.close(file)
    return other


_ACTS: dict[int, Callable[[Session, Message], bytes | None]] = {
    Code.GET_FEATURES: Session._get_features,
    Code.SET_FEATURES: Session._set_features,
    Code.SET_OWNER: Session._nothing,
    Code.RESET_OWNER: Session._nothing,
    Code.SET_MEM_TABLE: Session._set_memory,
    Code.SET_VRING_NUM: Session._set_size,
    Code.SET_VRING_ADDR: Session._set_addresses,
    Code.SET_VRING_BASE: Session._set_base,
    Code.GET_VRING_BASE: Session._get_base,
    Code.SET_VRING_KICK: Session._set_kick,
    Code.SET_VRING_CALL: Session._set_call,
    Code.SET_VRING_ERR: Session._set_error,
    Code.GET_PROTOCOL_FEATURES: Session._get_protocol_features,
    Code.SET_PROTOCOL_FEATURES: Session._nothing,
    Code.GET_QUEUE_NUM: Session._get_queue_num,
    Code.SET_VRING_ENABLE: Session._set_enable,
    Code.SET_BACKEND_REQ_FD: Session._set_requests,
    Code.GET_CONFIG: Session._get_config,
    Code.SET_CONFIG: Session._set_config,
}
