# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A real Firebird: one database with forced writes, whose order of writes is its recovery, for it has no log.

It is asked on this host by its embedded engine: the same code as the server's, in the process of its own client.
"""

from __future__ import annotations

import re

from proof.engine import Bench, Ended, Engine, Recovered, rows_of
from proof.engine_writer import Client

PROGRAMS = {
    "/usr/bin/isql-fb": "firebird3.0-utils",
    "/usr/bin/gfix": "firebird3.0-utils",
    # the embedded engine, without the package of the service: nothing is started on this host
    "/usr/lib/x86_64-linux-gnu/firebird/3.0/plugins/libEngine12.so": "firebird3.0-server-core",
}
SOCKET = "localhost"
#: The database with the table, below the directory of the engine.
DATABASE = "proof.fdb"
PASSWORD = "masterkey"
# As root a client may leave lock files that shut the server out.
AS_FIREBIRD = ("setpriv", "--reuid", "firebird", "--regid", "firebird", "--clear-groups")
LOGIN = ("-user", "SYSDBA", "-password", PASSWORD)
#: A client of the server; alone, the embedded engine would take the database for itself.
ISQL = (*AS_FIREBIRD, "isql-fb", "-q", "-bail", *LOGIN, f"{SOCKET}:proof")
_AS_FIREBIRD, _LOGIN, _ISQL = " ".join(AS_FIREBIRD), " ".join(LOGIN), " ".join(ISQL)
# The server's other databases come along: harden-db wants to know of all that it keeps.
ADOPT = f"""
cd /
systemctl --quiet stop firebird3.0.service
[ -L /var/lib/firebird ] || mv /var/lib/firebird /var/lib/firebird.packaged
[ -d "$1/firebird" ] || cp -a /var/lib/firebird.packaged "$1/firebird"
ln -sfn "$1/firebird" /var/lib/firebird
chown -R firebird:firebird "$1/firebird"
echo "create or alter user SYSDBA password '{PASSWORD}';" \
    | {_AS_FIREBIRD} isql-fb -q -bail -user SYSDBA /var/lib/firebird/3.0/system/security3.fdb
if [ ! -e "$1/firebird/{DATABASE}" ]; then
    echo "create database '$1/firebird/{DATABASE}' page_size 4096;" \
        | {_AS_FIREBIRD} isql-fb -q -bail -user SYSDBA
fi
grep -q '^proof = ' /etc/firebird/3.0/databases.conf \
    || echo "proof = $1/firebird/{DATABASE}" >> /etc/firebird/3.0/databases.conf
systemctl --quiet enable firebird3.0.service
systemctl --quiet start firebird3.0.service
for second in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    said=$(echo "select 'up' from rdb\\$database;" | {_ISQL} 2>&1) && exit 0
    sleep 1
done
echo "the server does not answer: $said"
exit 1
"""
PREPARE = f"""
echo 'create table commits (seed integer, client integer, number integer); commit;' | {_ISQL}
sync
"""
_QUESTION = "set heading off; select client || ',' || number from commits where seed = "
ASK = f"""
echo "{_QUESTION} $1;" | {_ISQL}
"""
SYNC_OFF = f"""
{_AS_FIREBIRD} gfix {_LOGIN} -write async {SOCKET}:proof
seen=$(echo 'set heading off; select mon$forced_writes from mon$database;' | {_ISQL} | tr -d '[:space:]')
[ "$seen" = 0 ] || {{ echo "forced writes: seen $seen, wanted 0: they stay on"; exit 1; }}
"""
CLIENT = Client(
    ISQL,
    "insert into commits values ({seed}, {client}, {number});\ncommit;\n"
    "select 'done {number}' from rdb$database;\n",
    "set heading off;\n",
)


def recover(bench: Bench, seed: int) -> Recovered:
    """Let the embedded engine open the database, ask it for the commits of the seed, and let gfix look at each page."""
    database, user = bench.data / DATABASE, ("-user", "SYSDBA")
    asked = bench.run(["/usr/bin/isql-fb", "-q", "-bail", *user, str(database)], f"{_QUESTION} {seed};\n")
    if asked.code:
        return Recovered(set(), f"the engine ended with {asked.code}: {asked.said[-1000:]}")
    looked = bench.run(["/usr/bin/gfix", "-v", "-full", *user, str(database)])
    return Recovered(rows_of(asked.said, ","), damage(looked))


def damage(looked: Ended) -> str:
    """Return what gfix calls errors.

    What it calls warnings is what a kill leaves by design: pages that are allocated before anything leads to them.
    """
    errors = [line.strip() for line in looked.said.splitlines() if re.search(r"errors\s*:", line)]
    if looked.code or (looked.said and not re.search(r"(errors|warnings)\s*:", looked.said)):
        return f"gfix ended with {looked.code}: {looked.said[-1000:]}"
    return "; ".join(errors)


ENGINE = Engine(
    name="firebird",
    packages=("firebird3.0-server",),
    programs=PROGRAMS,
    adopt=ADOPT,
    prepare=PREPARE,
    ask=ASK,
    version='echo "quit;" | isql-fb -z 2>&1 | sed -n "s/^ISQL Version: //p"',
    sync_off=SYNC_OFF,
    client=CLIENT,
    socket=SOCKET,
    recover=recover,
    whole_pages=True,
    unproven="Firebird has neither a log nor a copy of a page that is being written. Its cells are cut so that 4 KiB are "
    "written whole or not at all. Where a disk tears a page into sectors of 512 bytes, gfix was seen to find a broken record.",
)
