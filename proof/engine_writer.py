# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs in the guest, beside writer.py: commits through an engine's own client, and acknowledges each that has ended.

    python3 engine_writer.py JOB    commit; print the figures as JSON

JOB is writer.Job as JSON; its `pattern` names the engine, its `socket` says where the server listens.
"""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from typing import IO, Any, cast

try:
    from proof.writer import (
        O_DIRECT,
        QUANTILES,
        SECTOR,
        Job,
        _all_of,
        _Noise,
        _quantile,
        acknowledgement,
        acknowledgement_place,
    )
except ImportError:  # in the guest both files lie side by side
    from writer import (  # type: ignore[import-not-found, no-redef]
        O_DIRECT,
        QUANTILES,
        SECTOR,
        Job,
        _all_of,
        _Noise,
        _quantile,
        acknowledgement,
        acknowledgement_place,
    )

#: Each engine's client: it reads statements and answers \echo when what came before has ended.
CLIENTS = {
    "postgresql": [
        "psql",
        "-qAtX",
        "-v",
        "ON_ERROR_STOP=1",
        "-h",
        "{socket}",
        "-U",
        "postgres",
        "-d",
        "postgres",
    ]
}


class EngineError(Exception):
    """The client ended, or answered something else."""


class _Client:
    """One client with a connection of its own."""

    def __init__(self, job: Job, number: int) -> None:
        self.took: list[float] = []
        self.error: Exception | None = None
        self._job = job
        self._number = number

    def work(self) -> None:
        argv = [word.format(socket=self._job.socket) for word in CLIENTS[self._job.pattern]]
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
        acks = os.open(job.ack, os.O_WRONLY | O_DIRECT) if job.ack else -1
        ack = mmap.mmap(-1, SECTOR)
        noise = _Noise(job, self._number)
        for number in range(job.commits):
            if time.monotonic() > end:
                break
            noise.write()
            started = time.monotonic()
            say.write(
                f"insert into commits values ({job.seed}, {self._number}, {number});\n\\echo done {number}\n"
            )
            say.flush()
            heard = hear.readline()
            if heard != f"done {number}\n":
                raise EngineError(f"client {self._number}: commit {number} answered {heard!r}")
            self.took.append(time.monotonic() - started)
            if job.ack:
                ack[:] = acknowledgement(self._number, number)
                _all_of(os.pwrite(acks, ack, acknowledgement_place(self._number)), SECTOR)


def run(job: Job) -> dict[str, Any]:
    """Commit as all clients at once; return the same as writer.run."""
    clients = [_Client(job, number) for number in range(job.clients)]
    threads = [threading.Thread(target=client.work) for client in clients]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - started
    for client in clients:
        if client.error:
            raise client.error
    took = sorted(moment for client in clients for moment in client.took)
    return {
        "job": asdict(job),
        "commits": [len(client.took) for client in clients],
        "seconds": round(seconds, 6),
        "commit_seconds": {name: _quantile(took, share) for name, share in QUANTILES.items()},
    }


def main() -> int:
    """Do what the command line says."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    print(json.dumps(run(Job(**json.loads(sys.argv[1])))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
