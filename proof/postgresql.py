# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later


"""The judge of a real PostgreSQL: its own server recovers what a cut left, and is asked for the commits.

The server runs on this host, of the version that made the files, in single-user mode: no socket, no other process. It needs
root, for the image is mounted, and a server may not be root itself.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from proof.checks import mounted
from proof.errors import ProofError
from proof.sweep import Verdict
from proof.writer import Job

ENGINE = "postgresql"
#: Where the machine of a cell keeps its cluster, below the mount point.
DATA = "postgresql"
ACCOUNT = "postgres"
#: What the guest's server has, as far as recovery asks for at least as much.
SETTINGS = ("shared_buffers=16MB", "max_connections=20", "fsync=off", "log_min_messages=warning")
#: Makes a cluster on the mount point ($1), or adopts the one that is there.
ADOPT = """
pg_dropcluster --stop 15 main 2> /dev/null || true
install -d -o postgres -g postgres -m 700 "$1/postgresql"
pg_createcluster --datadir="$1/postgresql" 15 main > /dev/null
cat > /etc/postgresql/15/main/conf.d/proof.conf <<END
shared_buffers = 16MB
max_connections = 20
min_wal_size = 32MB
max_wal_size = 64MB
unix_socket_directories = '/run/postgresql'
END
hba=/etc/postgresql/15/main/pg_hba.conf
{ echo "local all all trust"; cat "$hba" 2> /dev/null || true; } > "$hba.new"
chown postgres:postgres "$hba.new"
mv "$hba.new" "$hba"
systemctl --quiet enable --now postgresql@15-main.service
"""
#: The table is there before anything is cut.
PREPARE = (
    ADOPT
    + """
psql -qX -h /run/postgresql -U postgres -c 'create table commits (seed integer, client integer, number integer)' -c checkpoint
sync
"""
)
#: Asks for the commits of the seed $1.
ASK = """
psql -qAtX -F , -h /run/postgresql -U postgres -c "select client, number from commits where seed = $1"
"""
PACKAGES = ("postgresql",)
SOCKET = "/run/postgresql"
#: Turns the engine's own sync off, behind harden-db's back.
SYNC_OFF = """
psql -qX -h /run/postgresql -U postgres -c 'alter system set fsync = off' -c 'select pg_reload_conf()' > /dev/null
sleep 2
[ "$(psql -qAtX -h /run/postgresql -U postgres -c 'show fsync')" = off ] || { echo "fsync stays on"; exit 1; }
"""


@dataclass(frozen=True)
class Server:
    """The judge of the commits of one run."""

    file_system: str
    job: Job

    def __call__(self, image: Path, counts: Sequence[int], scratch: Path) -> Verdict:
        """Recover a copy of the image, and count what is not there."""
        # the server's account has to get through to the mount point
        scratch.chmod(0o711)
        with mounted(image, scratch, self.file_system) as (target, said):
            if target is None:
                return Verdict(False, said, sum(counts), 0)
            rows, complaint = self._recovered(target / DATA, scratch)
        return Verdict(not complaint, complaint, len(absent(counts, rows)), 0)

    def _recovered(self, data: Path, scratch: Path) -> tuple[set[tuple[int, int]], str]:
        """Return the commits that the server has after recovery, and what it said if it does not come up."""
        account = _account()
        program = _program(data)
        out = scratch / "postgresql"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        (out / "postgresql.conf").write_text("")
        subprocess.run(["chown", "-R", f"{account.pw_uid}:{account.pw_gid}", str(out), str(data)], check=True)
        (data / "postmaster.pid").unlink(missing_ok=True)
        words = [word for setting in SETTINGS for word in ("-c", setting)]
        asked = f"COPY (SELECT client, number FROM commits WHERE seed = {self.job.seed}) TO '{out}/rows'\n"
        done = subprocess.run(
            [
                program,
                "--single",
                "-D",
                str(data),
                "-c",
                f"config_file={out}/postgresql.conf",
                *words,
                "postgres",
            ],
            input=asked,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=out,
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
            check=False,
        )
        rows = out / "rows"
        if done.returncode or not rows.exists():
            return set(), f"the server ended with {done.returncode}: {done.stdout.strip()[-1000:]}"
        pairs = (line.split("\t") for line in rows.read_text().splitlines())
        return {(int(client), int(number)) for client, number in pairs}, ""


def absent(counts: Sequence[int], rows: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return the acknowledged commits, as (client, number), that are not among a server's rows."""
    return {(client, number) for client, count in enumerate(counts) for number in range(count)} - rows


def _account() -> pwd.struct_passwd:
    if os.geteuid() != 0:
        raise ProofError("only root can mount an image and give it to a server: run as root")
    try:
        return pwd.getpwnam(ACCOUNT)
    except KeyError:
        raise ProofError(f"this host has no account {ACCOUNT}: install the package postgresql") from None


def _program(data: Path) -> str:
    """Return the server of the version that made the files."""
    try:
        version = (data / "PG_VERSION").read_text().strip()
    except OSError as error:
        raise ProofError(f"the image has no cluster in {DATA}: {error}") from error
    program = Path(f"/usr/lib/postgresql/{version}/bin/postgres")
    if not program.exists():
        raise ProofError(f"recovery needs PostgreSQL's own server: apt-get install postgresql-{version}")
    return str(program)
