# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A real PostgreSQL: its cluster in the guest, and recovery by the server of the version that made the files.

The server runs in single-user mode: no socket, no other process.
"""

from __future__ import annotations

from pathlib import Path

from proof.engine import Bench, Engine, Recovered, rows_of
from proof.engine_writer import Client
from proof.errors import ProofError

VERSION = "15"
PROGRAM = "/usr/lib/postgresql/{version}/bin/postgres"
SOCKET = "/run/postgresql"
#: What the guest's server has, as far as recovery asks for at least as much.
SETTINGS = ("shared_buffers=16MB", "max_connections=20", "fsync=off", "log_min_messages=warning")
ADOPT = """
pg_dropcluster --stop 15 main 2> /dev/null || true
install -d -o postgres -g postgres -m 700 "$1/postgresql"
if [ -e "$1/postgresql/PG_VERSION" ]; then
    # pg_createcluster moves them to /etc; the machine that made this cluster is gone with its /etc
    for name in postgresql pg_hba pg_ident; do
        file="$1/postgresql/$name.conf"
        [ -e "$file" ] || install -o postgres -g postgres -m 600 /dev/null "$file"
    done
    echo "include_dir = 'conf.d'" >> "$1/postgresql/postgresql.conf"
fi
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
PREPARE = """
psql -qX -h /run/postgresql -U postgres -c 'create table commits (seed integer, client integer, number integer)' -c checkpoint
sync
"""
ASK = """
psql -qAtX -F , -h /run/postgresql -U postgres -c "select client, number from commits where seed = $1"
"""
SYNC_OFF = """
psql -qX -h /run/postgresql -U postgres -c 'alter system set fsync = off' -c 'select pg_reload_conf()' > /dev/null
sleep 2
[ "$(psql -qAtX -h /run/postgresql -U postgres -c 'show fsync')" = off ] || { echo "fsync stays on"; exit 1; }
"""
CLIENT = Client(
    ("psql", "-qAtX", "-v", "ON_ERROR_STOP=1", "-h", "{socket}", "-U", "postgres", "-d", "postgres"),
    "insert into commits values ({seed}, {client}, {number});\n\\echo done {number}\n",
)


def recover(bench: Bench, seed: int) -> Recovered:
    """Let the server replay its log, and copy out the commits of the seed."""
    program = _program(bench.data)
    config, rows = bench.out / "postgresql.conf", bench.out / "rows"
    config.write_text("")
    (bench.data / "postmaster.pid").unlink(missing_ok=True)
    words = [word for setting in SETTINGS for word in ("-c", setting)]
    argv = [program, "--single", "-D", str(bench.data), "-c", f"config_file={config}", *words, "postgres"]
    asked = f"COPY (SELECT client, number FROM commits WHERE seed = {seed}) TO '{rows}'\n"
    ended = bench.run(argv, asked)
    if ended.code or not rows.exists():
        return Recovered(set(), f"the server ended with {ended.code}: {ended.said[-1000:]}")
    return Recovered(rows_of(rows.read_text(), "\t"), "")


def _program(data: Path) -> str:
    """Return the server of the version that made the files."""
    try:
        version = (data / "PG_VERSION").read_text().strip()
    except OSError as error:
        raise ProofError(f"the image has no cluster in {data.name}: {error}") from error
    if not version.isdigit():
        raise ProofError(f"PG_VERSION: seen {version[:20]!r}, wanted a number: the image has no cluster")
    program = Path(PROGRAM.format(version=version))
    if not program.exists():
        raise ProofError(f"recovery needs PostgreSQL's own server: apt-get install postgresql-{version}")
    return str(program)


ENGINE = Engine(
    name="postgresql",
    packages=("postgresql",),
    programs={PROGRAM.format(version=VERSION): f"postgresql-{VERSION}"},
    adopt=ADOPT,
    prepare=PREPARE,
    ask=ASK,
    version="psql --version",
    sync_off=SYNC_OFF,
    client=CLIENT,
    socket=SOCKET,
    recover=recover,
)
