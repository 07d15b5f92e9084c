# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small TPC-B on Firebird through isql, whose engine opens a scratch database without a server or socket. Pure.

Each client is a separate isql, with its own branch. It runs one block, in which each transaction is autonomous, so that
each commit waits for the disk (forced writes). The clock starts when all clients are connected.
"""

from __future__ import annotations

import re

#: Major version -> the engine's plugin. Without it isql could use a server on this host.
_ENGINES = {3: "Engine12", 4: "Engine13", 5: "Engine13"}
_VERSION = re.compile(r"LI-[VT](\d+)\.\d[\w.]*")
#: Variables of isql: its directory is the working directory, and so are its configuration and its locks.
VARIABLES = {
    "FIREBIRD": "/proc/self/cwd",
    "FIREBIRD_LOCK": "/proc/self/cwd",
    "FIREBIRD_TMP": "/proc/self/cwd",
    "HOME": "/proc/self/cwd",
}
#: Of the driver below: the line with its result.
RESULT = re.compile(r"^durable-firebird: (\d+) commits in ([\d.]+) s$", re.M)
_BRANCH, _TELLERS = 2000, 10

_TABLES = f"""
create database 'tpcb.fdb' page_size 8192;
create table branches (bid integer not null primary key, bbalance integer);
create table tellers (tid integer not null primary key, bid integer, tbalance integer);
create table accounts (aid integer not null primary key, bid integer, abalance integer, filler char(40));
create table history (tid integer, bid integer, aid integer, delta integer, mtime timestamp);
commit;
set term ^;
execute block as declare b integer = 1; declare n integer;
begin
  while (b <= {{clients}}) do begin
    insert into branches values (:b, 0);
    n = 1;
    while (n <= {_TELLERS}) do begin insert into tellers values ((:b - 1) * {_TELLERS} + :n, :b, 0); n = n + 1; end
    n = 1;
    while (n <= {_BRANCH}) do begin insert into accounts values ((:b - 1) * {_BRANCH} + :n, :b, 0, ''); n = n + 1; end
    b = b + 1;
  end
end^
commit^
set list on^
select mon$forced_writes as forced from mon$database^
"""
_CONNECT = """set list on; set term ^;
connect 'tpcb.fdb' user SYSDBA^
set transaction read committed record_version wait^
select 1 as ready from rdb$database^
"""
_BLOCK = f"""
execute block returns (commits integer) as
declare until_time timestamp; declare account integer; declare teller integer; declare delta integer; declare balance integer;
begin
  commits = 0;
  until_time = dateadd({{seconds}} second to cast('now' as timestamp));
  while (cast('now' as timestamp) < until_time) do begin
    account = {{client}} * {_BRANCH} + 1 + floor(rand() * {_BRANCH});
    teller = {{client}} * {_TELLERS} + 1 + floor(rand() * {_TELLERS});
    delta = floor(rand() * 10000) - 5000;
    in autonomous transaction do begin
      update accounts set abalance = abalance + :delta where aid = :account;
      select abalance from accounts where aid = :account into :balance;
      update tellers set tbalance = tbalance + :delta where tid = :teller;
      update branches set bbalance = bbalance + :delta where bid = {{client}} + 1;
      insert into history values (:teller, {{client}} + 1, :account, :delta, cast('now' as timestamp));
    end
    commits = commits + 1;
  end
  suspend;
end^
"""
#: The program that runs isql as the server's user: arguments are isql, its engine, the action, clients and seconds.
DRIVER = f"""
import subprocess, sys, time
isql, engine, action, clients, seconds = sys.argv[1:4] + [int(word) for word in sys.argv[4:]]
command = [isql, "-quiet", "-bail", "-nodbtriggers", "-user", "SYSDBA"]
pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0)
def until(process, name):
    found = b""
    while True:
        line = process.stdout.readline()
        if not line:
            sys.exit("isql: " + found.decode("utf-8", "replace")[-500:])
        found += line
        fields = line.split()
        if len(fields) == 2 and fields[0] == name:
            return int(fields[1])
if action == "prepare":
    with open("firebird.conf", "w") as file:
        file.write("ServerMode = Classic\\nProviders = " + engine + "\\n")
    process = subprocess.Popen(command, **pipes)
    process.stdin.write({_TABLES!r}.format(clients=clients).encode())
    process.stdin.close()
    if until(process, b"FORCED") != 1:
        sys.exit("the scratch database does not force writes")
    sys.exit(process.wait())
started = [subprocess.Popen(command, **pipes) for number in range(clients)]
for process in started:
    process.stdin.write({_CONNECT!r}.encode())
for process in started:
    until(process, b"READY")
began = time.monotonic()
for number, process in enumerate(started):
    process.stdin.write({_BLOCK!r}.format(client=number, seconds=seconds).encode())
commits = sum(until(process, b"COMMITS") for process in started)
lasted = time.monotonic() - began
for process in started:
    process.stdin.close()
    process.wait()
print(f"durable-firebird: {{commits}} commits in {{lasted:.3f}} s")
"""


def engine(version: str) -> str:
    """Return the plugin that is the engine of isql's version; '' for one that is too old or unknown."""
    found = _VERSION.search(version)
    return _ENGINES.get(int(found[1]), "") if found else ""


def argv(python: str, isql: str, plugin: str, action: str, clients: int, seconds: int) -> list[str]:
    """Return the command for an action: prepare or run."""
    return [python, "-I", "-c", DRIVER, isql, plugin, action, str(clients), str(seconds)]
