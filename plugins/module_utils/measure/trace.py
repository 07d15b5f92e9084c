# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The requests that the block layer sent to a disk: flushes and FUA writes, by blktrace(8).

A disk's `stat` counts flushes and no FUA writes; those only a trace shows.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from typing import IO

from ..host import bounds
from ..host.seam import ENVIRONMENT, Host, Unobservable

#: Only what carries one of the two flags is logged: on a busy disk, little.
_MASKS = ("-a", "flush", "-a", "fua")
_FORMAT = "%D %a %d %n\n"
#: Seconds that a trace may take to begin, and to end.
_PATIENCE = 20.0
_BEGINS = 1.0
#: "WFS": the F behind the W is FUA; in front of it stands a flush.
_FUA = re.compile(r"F?WF")


def count(text: str) -> dict[str, int]:
    """Return how many FUA writes each disk was sent, {`major,minor`: writes}, of what blkparse printed.

    Issued requests (action D) alone count: a request of a file system may have become a flush on the way.
    """
    found: dict[str, int] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 4 and words[1] == "D" and _FUA.match(words[2]):
            found[words[0]] = found.get(words[0], 0) + 1
    return found


class Trace:
    """A running trace of some disks. `stop` ends it and counts; one that is forgotten ends automatically."""

    def __init__(
        self,
        host: Host,
        names: Iterable[str],
        seconds: int,
        masks: Sequence[str] = _MASKS,
        line_format: str = _FORMAT,
    ) -> None:
        """Begin, and wait until the kernel traces all of them. Raises Unobservable with the reason.

        `masks` are blktrace's filters, `line_format` is blkparse's format of an event.
        """
        self._masks, self._format = tuple(masks), line_format
        self._names = {host.read(f"/sys/block/{name}/dev").strip().replace(":", ","): name for name in names}
        enabled = [f"/sys/block/{name}/trace/enable" for name in self._names.values()]
        for path in enabled:
            if host.read(path).strip() != "0":
                raise Unobservable(f"{path}: another process traces this disk already")
        self._children: list[subprocess.Popen[bytes]] = []
        self._output = os.memfd_create("blkparse")
        self._complaints = os.memfd_create("blktrace")
        try:
            self._start(seconds)
            deadline = time.monotonic() + _PATIENCE
            while not all(host.read(path).strip() == "1" for path in enabled):
                if self._children[0].poll() is not None or time.monotonic() > deadline:
                    raise Unobservable(f"blktrace did not begin: {self._complaint() or 'no reason given'}")
                time.sleep(0.05)
        except BaseException:
            self.abandon()
            raise
        # Set up and started are two steps, and nothing reports the second: a slow host takes its time.
        time.sleep(_BEGINS)

    def stop(self) -> dict[str, int]:
        """End the trace and return the FUA writes of each disk. Raises Unobservable."""
        found = count(self.text())
        return {name: found.get(number, 0) for number, name in self._names.items()}

    def text(self) -> str:
        """End the trace and return its events as blkparse printed them. Raises Unobservable."""
        try:
            # What was sent last is still on its way through the kernel's buffers.
            time.sleep(0.2)
            self._children[0].send_signal(signal.SIGINT)
            for child in self._children:
                child.wait(_PATIENCE)
            complaint = self._complaint()
            if "dropped" in complaint:
                raise Unobservable(f"blktrace lost events: {complaint}")
            if any(child.returncode not in (0, -signal.SIGINT) for child in self._children):
                raise Unobservable(f"blktrace: {complaint or 'failed without a word'}")
            return _content(self._output)
        except subprocess.TimeoutExpired as error:
            raise Unobservable(f"blktrace did not end within {_PATIENCE:g} s") from error
        finally:
            self.abandon()

    def abandon(self) -> None:
        """End what still runs, and give everything back. A second time does nothing."""
        for child in self._children:
            if child.poll() is None:
                child.terminate()
                try:
                    child.wait(_PATIENCE)
                except subprocess.TimeoutExpired:
                    child.kill()
        self._children = []
        for descriptor in (self._output, self._complaints):
            if descriptor >= 0:
                os.close(descriptor)
        self._output = self._complaints = -1

    def _start(self, seconds: int) -> None:
        devices = [word for name in self._names.values() for word in ("-d", f"/dev/{name.replace('!', '/')}")]
        tracing = self._popen(["blktrace", *self._masks, "-w", str(seconds), "-o", "-", *devices], None)
        self._popen(["blkparse", "-q", "-i", "-", "-f", self._format], tracing.stdout)
        if tracing.stdout:
            tracing.stdout.close()

    def _popen(self, argv: list[str], source: IO[bytes] | None) -> subprocess.Popen[bytes]:
        try:
            # Not run_command of AnsibleModule: it waits for the end, and this runs without Ansible.
            child = subprocess.Popen(  # pylint: disable=ansible-bad-function
                argv,
                stdin=source or subprocess.DEVNULL,
                stdout=self._output if source else subprocess.PIPE,
                stderr=self._complaints,
                cwd="/",
                env=ENVIRONMENT,
                start_new_session=True,
            )
        except OSError as error:
            raise Unobservable(f"{argv[0]}: {error.strerror}: install blktrace") from error
        self._children.append(child)
        try:
            resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (bounds.TRACE, bounds.TRACE))
        except OSError:
            pass  # It has ended; that is found out by whoever waits for it.
        return child

    def _complaint(self) -> str:
        return " ".join(_content(self._complaints).split())


def _content(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, size, 0).decode("utf-8", "replace")
