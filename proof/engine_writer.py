# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs in the guest, beside writer.py: commits through an engine's own client, and acknowledges each that has ended.

    python3 engine_writer.py JOB CLIENT    commit; print the figures as JSON

JOB is writer.Job as JSON; its `socket` says where the server listens. CLIENT is a Client as JSON.
"""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import IO, Any, cast

try:
    from proof import writer
except ImportError:  # in the guest both files lie side by side
    import writer  # type: ignore[import-not-found, no-redef]


@dataclass(frozen=True)
class Client:
    """An engine's own client: its words, where {socket} is the job's; what it is told at first, and for each commit.

    `commit` is one transaction, then what makes the client answer `done {number}` once that has ended. {seed}, {client} and
    {number} say which commit it is. The client ends at the first error. Blank lines and blanks around do not count.
    """

    argv: tuple[str, ...]
    commit: str
    begin: str = ""


class EngineError(Exception):
    """The client ended, or answered something else."""


class _Connection:
    """One client with a connection of its own."""

    def __init__(self, job: writer.Job, client: Client, number: int) -> None:
        self.took: list[float] = []
        self.error: Exception | None = None
        self._job = job
        self._client = client
        self._number = number

    def work(self) -> None:
        argv = [word.format(socket=self._job.socket) for word in self._client.argv]
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        try:
            self._work(cast("IO[str]", process.stdin), cast("IO[str]", process.stdout))
        except (OSError, EngineError) as error:
            self.error = error
        finally:
            process.kill()
            process.wait()

    def _work(self, say: IO[str], hear: IO[str]) -> None:
        job, end = self._job, time.monotonic() + (self._job.seconds or 1e9)
        acks = os.open(job.ack, os.O_WRONLY | writer.O_DIRECT) if job.ack else -1
        ack = mmap.mmap(-1, writer.SECTOR)
        noise = writer.Noise(job, self._number)
        say.write(self._client.begin)
        for number in range(job.commits):
            if time.monotonic() > end:
                break
            noise.write()
            started = time.monotonic()
            say.write(self._client.commit.format(seed=job.seed, client=self._number, number=number))
            say.flush()
            heard = _line(hear)
            if heard != f"done {number}":
                raise EngineError(f"client {self._number}: commit {number} answered {heard!r}")
            self.took.append(time.monotonic() - started)
            if job.ack:
                ack[:] = writer.acknowledgement(self._number, number)
                writer.all_of(os.pwrite(acks, ack, writer.acknowledgement_place(self._number)), writer.SECTOR)
            if job.pause:
                time.sleep(job.pause)


def _line(hear: IO[str]) -> str:
    """Return the next line that says something, without the blanks around it; "" at the end."""
    for line in hear:
        if line.strip():
            return line.strip()
    return ""


def run(job: writer.Job, client: Client) -> dict[str, Any]:
    """Commit as all clients at once; return the same as writer.run."""
    figures: dict[str, Any] = writer.at_once(
        job, [_Connection(job, client, number) for number in range(job.clients)]
    )
    return figures


def main() -> int:
    """Do what the command line says."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    job, client = (json.loads(word) for word in sys.argv[1:])
    print(json.dumps(run(writer.Job(**job), Client(**client))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
