# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine of layout `power`, its databases on a disk that loses what was not flushed, and its power.

The disk of the layout is exchanged for a volatile one when the machine starts: same serial, same file system. Its log holds
writes, flushes, acknowledgements and marks in one order, so that a power cut can be looked at anywhere in it.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.machine import Machine
from proof import exposure, log
from proof.checks import ext4
from proof.disk import VolatileDisk
from proof.log import Event, Kind
from proof.machine import FLUSH
from proof.postgresql import CLIENT, SOCKET
from proof.sweep import Cut, Files, Outcome, Run, rebuild, sweep
from proof.volatile import DROP
from proof.writer import Job
from support.power import NEVER

ROOT = Path(__file__).resolve().parents[2]
SERIAL, MOUNT = "SCSI0001", "/srv/db"
#: The disk of acknowledgements, as lab/layouts/power.sh knows it.
ACK_SERIAL = "POWERACK"
ACK = f"/dev/disk/by-id/virtio-{ACK_SERIAL}"
GUARD = "durable-dbhost-guard.service"
LEASE = "/etc/durable-dbhost/guard.json"
#: What the guard says when all that was written without barriers is on the medium.
FLUSHED = "flushed on"
#: Seconds of battery: plenty, and less than the driver calls low.
PLENTY, LOW = 3600, 60
#: Of each client, several times what a test waits for: with the pause no more than 100 in a second.
COMMITS = 30_000
#: Seconds that a client waits after each commit. Without barriers a quick machine would write all of them within seconds.
PAUSE = 0.01
#: Seconds that anything may take here: emulated at worst, beside another machine.
LIMIT = 120.0
_BARRIER = f"""
barrier() {{
    disk=$(basename "$(findmnt -no SOURCE {MOUNT})")
    if grep -qx nobarrier "/proc/fs/ext4/$disk/options"; then echo off; else echo on; fi
}}
"""
_UNTIL = """
end=$(($(date +%s) + {limit:.0f}))
until {condition}; do
    [ "$(date +%s)" -lt "$end" ] || {{ echo "not within {limit:.0f} s: {what}"; exit 1; }}
    sleep 0.3
done
"""


class Site:
    """The machine, its disk, and what happens to both."""

    def __init__(self, machine: Machine, directory: Path) -> None:
        self.machine = machine
        self.directory = directory
        self._served = ExitStack()
        self._disks: list[VolatileDisk] = []
        self._marks = 0
        self._jobs = 0

    @property
    def disk(self) -> VolatileDisk:
        """The disk as it is served now; each power cut makes another one of what is left."""
        return self._disks[-1]

    # Life

    def begin(self) -> None:
        """Boot the machine as the layout prepared it, over a volatile disk with the same content."""
        image = self.directory / "prepared.img"
        self._prepare(image)
        self._boot_over(image)
        for name in ("writer.py", "engine_writer.py"):
            self.machine.put(ROOT / "proof" / name, f"/root/{name}")

    def end(self) -> None:
        """Stop machine and disk."""
        self.machine.stop()
        self._served.close()

    def cut(self) -> Path:
        """Cut the power: all that was not flushed is lost. Return the image that is left; `boot_over` takes it."""
        self.machine.cut()
        return self._left(len(self.events()))

    def await_power_off(self, limit: float = 240.0, but_the_last: bool = False) -> Path:
        """Wait until the machine has switched itself off; return what is left on the disk: what was flushed by then.

        With `but_the_last` what the flushes at the very end saved is lost as well: those may be QEMU's own.
        """
        deadline = time.monotonic() + limit
        while self.machine.running:
            if time.monotonic() > deadline:
                raise LabError(
                    f"{self.machine.name} does not power off; its console: {self.machine.files.console}"
                )
            time.sleep(0.2)
        self.machine.stop()
        events = self.events()
        end = len(events)
        while but_the_last and end and events[end - 1].kind in (Kind.FLUSH, Kind.NOTE):
            end -= 1
        return self._left(end)

    def boot_over(self, image: Path) -> None:
        """Boot over an image, of a disk that was cut."""
        self._boot_over(image)

    # In the guest

    def sh(self, script: str, limit: float = LIMIT) -> str:
        """Run a script that has to succeed; return its output."""
        return self.machine.run(["sh", "-euc", script], timeout=limit).stdout.strip()

    def until(self, condition: str, what: str, limit: float = LIMIT) -> None:
        """Wait for a condition of the shell's."""
        self.sh(_BARRIER + _UNTIL.format(condition=condition, what=what, limit=limit), limit + 60.0)

    def barrier(self, then: str = ":") -> str:
        """Return the kernel's own word on the volume: on or off. At once after it `then` is run."""
        return self.sh(f"{_BARRIER}barrier\n{then}")

    def await_loosened(self) -> None:
        """Wait until barriers are off, and the guard has said so: a moment after it."""
        self.await_barrier("off")
        last = f"journalctl --no-pager --output=cat _SYSTEMD_UNIT={GUARD} | grep 'barriers are' | tail -n 1"
        self.until(f"{last} | grep -q off", "the guard says that barriers are off")

    def await_barrier(self, word: str, limit: float = LIMIT) -> None:
        """Wait for that word."""
        self.until(f'[ "$(barrier)" = {word} ]', f"barriers {word}", limit)

    def ups(self, status: str, runtime: int = PLENTY) -> None:
        """Have the UPS say this. Twice in one second the driver would not see."""
        self.sh(f"sleep 1.1; lab-ups '{status}' {runtime}")

    def await_ups(self, word: str) -> None:
        """Wait until upsd tells it."""
        told = "upsc lab@localhost ups.status 2> /dev/null"
        self.until(f'{told} | grep -qw "{word}"', f"the UPS says {word}")

    def mark(self, word: str) -> str:
        """Return the shell's command that writes a mark of its own into the log of the disk."""
        self._marks += 1
        return f"lab-mark '{self._marks} {word}'"

    def at(self, word: str) -> int:
        """Return where in the log the last mark with this word lies."""
        found = exposure.marks(self.events())
        return max(place for name, place in found.items() if name.partition(" ")[2] == word)

    def psql(self, statement: str) -> str:
        """Ask PostgreSQL."""
        return self.machine.run(
            ["psql", "-qAtX", "-h", SOCKET, "-U", "postgres", "-v", "ON_ERROR_STOP=1", "-c", statement]
        ).stdout.strip()

    def isql(self, statements: str) -> str:
        """Ask Firebird's server, by its own client."""
        return self.sh(
            f"echo {shlex.quote(statements)} | setpriv --reuid firebird --regid firebird --clear-groups env HOME=/tmp"
            " isql-fb -q -bail -user SYSDBA -password masterkey localhost:lab"
        )

    def mend(self) -> None:
        """Bring the power back, and start whatever a test has stopped."""
        self.sh("rm -f /etc/lab-ups; systemctl reset-failed; systemctl start nut-driver@lab nut-server")
        self.ups("OL")
        self.sh(f"systemctl start nut-monitor; [ ! -e {LEASE} ] || systemctl start {GUARD}")
        self.await_ups("OL")

    # The journal

    def cursor(self) -> str:
        """Return where the journal is now: a time, because journalctl 252 leaves out the first line after a cursor that
        it is asked for by what said it."""
        return self.sh("date +@%s.%6N")

    def journal(self, cursor: str, *options: str) -> list[dict[str, Any]]:
        """Return what was said since then, or, with a cursor of '', in all that the options choose."""
        after = [f"--since={cursor}"] if cursor else []
        self.machine.run(["journalctl", "--sync"])
        said = self.machine.run(["journalctl", "--no-pager", "--output=json", *after, *options]).stdout
        return [json.loads(line) for line in said.splitlines()]

    def guard(self, cursor: str) -> list[str]:
        """Return what the guard itself has said since then, and what ran after it."""
        unit = f"_SYSTEMD_UNIT={GUARD}"
        return [str(line.get("MESSAGE")) for line in self.journal(cursor, unit)]

    def await_guard(self, cursor: str, words: str, limit: float = LIMIT) -> None:
        """Wait until it says something with these words."""
        said = f"journalctl --no-pager --output=cat --since='{cursor}' _SYSTEMD_UNIT={GUARD}"
        self.until(f"{said} | grep -q '{words}'", f"the guard says {words!r}", limit)

    # Commits, and what a power cut makes of them

    def events(self) -> list[Event]:
        """Return the log of the disk so far."""
        return log.read(self.disk.directory).events

    @contextmanager
    def committing(self) -> Iterator[Job]:
        """Commit all the while as two clients, as an engine writes its log, each acknowledged in the disk's own log."""
        self._jobs += 1
        job = Job(
            f"{MOUNT}/commits",
            "direct_fdatasync",
            clients=2,
            commits=COMMITS,
            seed=self._jobs,
            ack=ACK,
            device=f"/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_{SERIAL}",
            pause=PAUSE,
        )
        words = shlex.quote(json.dumps(asdict(job)))
        # Once: blocks that have been written already are what an engine's log is made of.
        self.sh(f"[ -e {job.directory} ] || python3 /root/writer.py prepare {words}")
        begin = len(self.events())
        self._in_background("lab-writer", f"exec python3 /root/writer.py run {words}")
        try:
            self._await_acknowledgement(begin)
            yield job
        finally:
            self.machine.run(["systemctl", "stop", "lab-writer"], check=False)

    @contextmanager
    def inserting(self) -> Iterator[Job]:
        """Commit through PostgreSQL's own client all the while; a server that stops ends it."""
        self._jobs += 1
        job = Job(
            f"{MOUNT}/noise",
            "postgresql",
            clients=2,
            commits=COMMITS,
            seed=self._jobs,
            ack=ACK,
            socket=SOCKET,
            pause=PAUSE,
        )
        words = [shlex.quote(json.dumps(asdict(each))) for each in (job, CLIENT)]
        begin = len(self.events())
        self._in_background("lab-client", f"exec python3 /root/engine_writer.py {' '.join(words)}")
        try:
            self._await_acknowledgement(begin)
            yield job
        finally:
            if self.machine.running:
                self.machine.run(["systemctl", "stop", "lab-client"], check=False)

    def commits(self, job: Job, begin: int) -> list[exposure.Commit]:
        """Return the acknowledged commits of a job that began after that event."""
        return exposure.commits(exposure.only(self.events(), begin, len(self.events())), job)

    def cut_at(self, job: Job, begin: int, places: list[int]) -> list[Outcome]:
        """Return what cuts there leave: file system mended, and each acknowledged commit looked for."""
        events = exposure.only(self.events(), begin, len(self.events()))
        cuts = [Cut(place, DROP.name, 0) for place in places]
        judge = Files(ext4, job, f"/{Path(job.directory).name}")
        return list(sweep(Run(self.disk.base, events, job), cuts, judge, NEVER, look_at_all=True))

    def _in_background(self, unit: str, script: str) -> None:
        self.machine.run(["systemctl", "reset-failed", unit], check=False)
        self.machine.run(["systemd-run", "--quiet", "--collect", f"--unit={unit}", "sh", "-c", script])

    def _await_acknowledgement(self, begin: int) -> None:
        deadline = time.monotonic() + LIMIT
        while not any(map(exposure.is_acknowledgement, self.events()[begin:])):
            if time.monotonic() > deadline:
                raise LabError(f"nothing was committed within {LIMIT:.0f} s")
            time.sleep(0.5)

    def _left(self, end: int) -> Path:
        """Return an image of the disk as a cut after so many of its events leaves it."""
        told = [event for event in self.events() if event.kind is not Kind.ACK]
        image = self.directory / f"left-{len(self._disks)}.img"
        rebuild(Run(self.disk.base, told, Job("", "")), Cut(end - 1, DROP.name, 0), image, NEVER)
        self._served.close()
        return image

    def _prepare(self, image: Path) -> None:
        """Bring the machine back to what the layout prepared, powered off in order, and copy the volume's disk."""
        self.machine.renew()
        self.machine.copy_disk(SERIAL, image)

    def _boot_over(self, image: Path) -> None:
        disk = VolatileDisk.made(self.directory / f"disk-{len(self._disks)}", image, FLUSH)
        self._disks.append(disk)
        self._served.enter_context(disk.served_for(self.machine))
        self.machine.boot(disk.boot_disk(SERIAL, "scsi"), disk.ack_disk(ACK_SERIAL))
