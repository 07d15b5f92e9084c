# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A real MariaDB, with its binary log: InnoDB and that log agree at each commit, and so have to after a cut.

The server that recovers is this host's, started as a server is: a server in bootstrap mode does not ask the binary log
about transactions that were prepared. It listens nowhere but at a socket in a directory of its own, and it ends by itself.
"""

from __future__ import annotations

from proof.engine import Bench, Engine, Recovered, rows_of
from proof.engine_writer import Client

PROGRAM = "/usr/sbin/mariadbd"
SOCKET = "/run/mysqld/mysqld.sock"
#: Both servers: small, so that little is copied; a log of another size would be made anew before recovery.
SIZES = ("innodb_buffer_pool_size = 16M", "innodb_log_file_size = 8M")
#: What only costs time on a copy: waiting for the disk, and what serves the next start or an administrator.
QUICK = (
    "--innodb-flush-method=nosync",
    "--innodb-fast-shutdown=3",
    "--innodb-buffer-pool-dump-at-shutdown=OFF",
    "--innodb-buffer-pool-load-at-startup=OFF",
    "--performance-schema=OFF",
)
# The name of the binary log is relative: its index then leads to the same files on this host.
ADOPT = f"""
systemctl --quiet stop mariadb.service
install -d -o mysql -g mysql -m 700 "$1/mariadb"
cat > /etc/mysql/mariadb.conf.d/60-proof.cnf <<END
[mariadbd]
datadir = $1/mariadb
log_bin = binlog
{chr(10).join(SIZES)}
END
if [ ! -e "$1/mariadb/ibdata1" ]; then
    mariadb-install-db --user=mysql --datadir="$1/mariadb" --skip-test-db > /run/proof-mariadb 2>&1 \\
        || {{ tail -n 20 /run/proof-mariadb; exit 1; }}
fi
systemctl --quiet enable mariadb.service
systemctl --quiet start mariadb.service || {{ journalctl --unit mariadb.service --lines 20 --output cat; exit 1; }}
"""
PREPARE = """
mariadb -u root <<END
create database proof;
create table proof.commits (seed integer, client integer, number integer) engine = InnoDB;
END
sync
"""
ASK = """
mariadb -u root --batch --skip-column-names \
    -e "select concat(client, ',', number) from proof.commits where seed = $1"
"""
# With 0 the server writes its log at intervals, whatever is committed meanwhile; sync_binlog = 0 leaves the other log to
# the kernel. The interval is made longer than a run, so that each cut falls into one.
SYNC_OFF = """
mariadb -u root -e 'set global innodb_flush_log_at_timeout = 2700;
    set global innodb_flush_log_at_trx_commit = 0; set global sync_binlog = 0'
seen=$(mariadb -u root --batch --skip-column-names \
    -e "select concat(@@global.innodb_flush_log_at_trx_commit, ' ', @@global.sync_binlog)")
[ "$seen" = "0 0" ] || { echo "seen $seen, wanted 0 0: the log is still flushed"; exit 1; }
"""
CLIENT = Client(
    ("mariadb", "--socket={socket}", "-u", "root", "--batch", "--unbuffered", "--skip-column-names", "proof"),
    "insert into commits values ({seed}, {client}, {number});\nselect 'done {number}';\n",
)


def recover(bench: Bench, seed: int) -> Recovered:
    """Let the server replay its log and ask its binary log, and write out the commits of the seed."""
    rows, script = bench.out / "rows", bench.out / "ask.sql"
    question = f"select client, number into outfile '{rows}' from proof.commits where seed = {seed}"
    # A statement that fails would end the script, and then nothing would end the server.
    handler = "declare continue handler for sqlexception begin end"
    script.write_text(f"begin not atomic {handler}; {question}; end;\nshutdown;\n")
    places = (f"--datadir={bench.data}", f"--socket={bench.out}/socket", f"--pid-file={bench.out}/pid")
    sizes = (f"--{size.replace(' ', '')}" for size in SIZES)
    listens = ("--skip-networking", "--log-bin=binlog", f"--tmpdir={bench.out}", f"--init-file={script}")
    ended = bench.run([PROGRAM, "--no-defaults", *places, *sizes, *listens, *QUICK])
    if ended.code or not rows.exists():
        return Recovered(set(), f"the server ended with {ended.code}: {ended.said[-1000:]}")
    return Recovered(rows_of(rows.read_text(), "\t"), "")


ENGINE = Engine(
    name="mariadb",
    packages=("mariadb-server",),
    # without the package of the service: nothing is started on this host
    programs={PROGRAM: "mariadb-server-core"},
    adopt=ADOPT,
    prepare=PREPARE,
    ask=ASK,
    version="mariadbd --version",
    sync_off=SYNC_OFF,
    client=CLIENT,
    socket=SOCKET,
    recover=recover,
)
