# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a real engine is to the proof: its packages, its scripts in the guest, its client, and its own server as judge."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from proof.checks import mounted
from proof.engine_writer import Client
from proof.errors import ProofError
from proof.sweep import Verdict
from proof.writer import Job

#: Whose files an image's server reads and writes here: no service's, and not root's, for the image is anybody's.
ACCOUNT = "nobody"

#: Seconds after which a server that does not end is taken for one that does not come up.
LIMIT = 60.0

#: The commits that a server has, as (client, number).
Rows = set[tuple[int, int]]


class Recovered(NamedTuple):
    """The commits that a server has after recovery, and what is wrong with its files or itself; "" for nothing."""

    rows: Rows
    complaint: str


class Ended(NamedTuple):
    """How a server or a tool ended: its exit code, and all that it said."""

    code: int
    said: str


@dataclass(frozen=True)
class Bench:
    """Where a server recovers: its files, as a cut left them, and an empty directory; both belong to ACCOUNT."""

    data: Path
    out: Path

    def run(self, argv: Sequence[str], given: str = "") -> Ended:
        """Run a program as ACCOUNT, which is all that it is: no other groups, and no environment but these words."""
        account = pwd.getpwnam(ACCOUNT)
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": str(self.out)}
        try:
            done = subprocess.run(
                argv,
                input=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                cwd=self.out,
                env=environment | {"FIREBIRD_LOCK": str(self.out), "FIREBIRD_TMP": str(self.out)},
                user=account.pw_uid,
                group=account.pw_gid,
                extra_groups=[],
                timeout=LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            said = (
                error.stdout
                if isinstance(error.stdout, str)
                else (error.stdout or b"").decode(errors="replace")
            )
            return Ended(-1, f"no end after {LIMIT:.0f} s: {said.strip()}")
        return Ended(done.returncode, done.stdout.strip())


@dataclass(frozen=True)
class Engine:
    """One real engine. Its files lie in the directory `name` below the mount point.

    Scripts are for `sh -eu` in the guest. `adopt` lets the server keep its files below the mount point ($1), makes them if
    they are not there, and starts it. `prepare` makes the table, once `adopt` is done. `ask` prints the commits of the
    seed $1 as `client,number`, a line each. `version` prints the server's version. `sync_off` turns the engine's own sync
    off, behind harden-db's back.
    `recover` lets this host's server recover files and asks it for the commits of a seed; ProofError: it cannot.
    `programs` are those that `recover` needs, each with its Debian package. `whole_pages`: it mends no page of which a
    power cut wrote a part, so the cuts of its cells keep or lose 4 KiB as one; `unproven` says so, or anything else that its
    cells leave open.
    """

    name: str
    packages: tuple[str, ...]
    programs: Mapping[str, str]
    adopt: str
    prepare: str
    ask: str
    version: str
    sync_off: str
    client: Client
    socket: str
    recover: Callable[[Bench, int], Recovered]
    whole_pages: bool = False
    unproven: str = ""


@dataclass(frozen=True)
class Server:
    """The judge of the commits of one run: the engine's own server recovers what a cut left, and is asked for them.

    It runs on this host, and needs root, for the image is mounted.
    """

    engine: Engine
    file_system: str
    job: Job

    def __call__(self, image: Path, counts: Sequence[int], scratch: Path) -> Verdict:
        """Recover a copy of the image, and count what is not there."""
        # the server's account has to get through to the mount point
        scratch.chmod(0o711)
        with mounted(image, scratch, self.file_system) as (target, said):
            if target is None:
                return Verdict(False, said, sum(counts), 0)
            rows, complaint = self.engine.recover(self._bench(target, scratch), self.job.seed)
        return Verdict(not complaint, complaint, len(absent(counts, rows)), 0)

    def _bench(self, target: Path, scratch: Path) -> Bench:
        data, out = target / self.engine.name, scratch / "server"
        if data.is_symlink() or not data.is_dir():
            raise ProofError(f"the image has no {self.engine.name} in /{self.engine.name}")
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        # -h: a link in the image is not followed out of it
        subprocess.run(["chown", "-hR", f"{ACCOUNT}:", str(out), str(data)], check=True)
        return Bench(data, out)


def absent(counts: Sequence[int], rows: Rows) -> Rows:
    """Return the acknowledged commits, as (client, number), that are not among a server's rows."""
    return {(client, number) for client, count in enumerate(counts) for number in range(count)} - rows


def rows_of(text: str, separator: str) -> Rows:
    """Return the commits that lines of `client<separator>number` tell of."""
    pairs = (line.split(separator) for line in text.splitlines() if line.strip())
    return {(int(client), int(number)) for client, number in pairs}
