# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every bound on a host's use of time, memory and bytes, and the reason for each value.

A user who may start a process, or owns a file that is read here, can try to use all memory and all time. Above
a bound a thing is `unknown`, and names the user: there is no crash, and never a value from a
part of the input. All that is read on a host is bounded so that a module stays below 200 MB.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

MIB = 2**20

# One answer of a host.
#: Bytes that a file or a command may say. The longest honest ones, the kernel's tables and systemd's properties of
#: all units on a host with thousands of containers, have one or two MiB. As text they take up to four times as much.
OUTPUT = 4 * MIB
#: Names in one directory: each link or file in it is read.
NAMES = 20_000
#: Files that a search returns: each is read.
FOUND = 5000
#: Bytes that a trace of a disk may write, which only a measurement takes.
TRACE = 64 * MIB
#: Bytes that a daemon may answer to one question.
DAEMON_OUTPUT = MIB
#: Bytes of memory that a reading command may take. It is address space: what clients map and never touch as well.
MEMORY = 1024 * MIB
#: Characters of a path, as in the kernel (PATH_MAX), and of a sentence that names one.
PATH = 4096
#: Digits and sign of a number: what has 64 bits has no more. Beyond it arithmetic may fail, and int() takes the square of
#: their count.
DIGITS = 20
#: Characters of a command line that is read. A process can make its own as long as it likes.
COMMAND_LINE = 128 * 1024

# One configuration, over all its files.
#: Bytes of one file. The largest that vendors ship has some 50 KiB.
FILE = MIB
#: Bytes of all of them, and lines: each is many times its own bytes once it is understood.
CONFIGURATION = 2 * MIB
LINES = 50_000
#: Files: one that includes itself twice would be read for ever.
FILES = 1000
#: Profiles of TuneD that are loaded, and that one includes: each is searched for in every directory. People have two or three.
PROFILES = 100

# One instance of an engine.
#: Bytes of SQL Server's log of errors: the version and the start-up parameters stand at its beginning.
ERROR_LOG = MIB // 4
#: Bytes of FairCom's log of its states: its end has the last start unless very much was logged since.
STATUS_LOG = 4 * MIB
#: Processes that are read. A server with a process for each client may have thousands, which open the same files.
PROCESSES = 64
#: Open files that are read, and characters of their paths: a server with a file for each table has as many.
OPEN_FILES, OPEN_PATHS = 100_000, 8 * MIB
#: Rows of directories in which it has files open. Servers keep a directory for each database.
ROWS = 2000
#: Open files that may be databases of Firebird's, and files in a directory that is searched for them.
DATABASES = 2000
#: Bytes of all its facts: some 300 for each database of Firebird's.
INSTANCE = MIB
#: Seconds of commands for one, and for all.
PATIENCE, PATIENCE_FOR_ALL = 120.0, 900.0

# One user, or one container.
#: Instances of one engine, and processes of Firebird's, which may have one for each client.
INSTANCES_OF_ONE, CLIENTS = 64, 1000
#: Processes that look like an engine and are none, each reported in a separate row; and of how many users and engines.
STRAYS_OF_ONE, STRAYS = 5, 40

# One host.
#: Instances that are read.
INSTANCES = 256
#: Processes. A large server has some thousands.
ALL_PROCESSES = 100_000
#: Characters of the path of a program that runs, and of all longer ones together.
PROGRAM, LONG_PROGRAMS = 256, 4 * MIB
#: Mounts in one namespace, and in those of all engines together, and characters of their tables: of the system's services,
#: and again of all users and containers, of which each may have a quarter. A node of Kubernetes has some thousands of
#: mounts.
MOUNTS, MOUNT_TABLES = 20_000, 8 * MIB
#: Mounts of one file system in other namespaces that are reported, because they read differently from here.
VIEWS = 1000
#: Open files of a process that is no engine's, and rows of such processes.
OPEN_FILES_OF_OTHERS, WRITERS = 1000, 200
#: Directories to which links in a database's directory lead.
LINKS = 1000
#: Bytes of a module's answer, and values in it. The facts of a host with 100 disks and 10 instances have 0.5 MiB.
ANSWER, VALUES = 4 * MIB, 150_000

# The controller.
#: Disks, and mounts, of one host: each is held against others. The largest have some thousands.
DEVICES = 10_000
#: Faults of facts that are reported, of which people read the first.
FAULTS = 100
#: Bytes of memory that a process of Ansible's may take for one answer of one host, above what it had before.
ROOM = 64 * MIB


def size(value: Any) -> int:
    """Return how many bytes facts take as JSON, at most, also once they were made printable."""
    if isinstance(value, str):
        if value.isascii() and value.isprintable():
            return 2 + len(value) + value.count("\\") + value.count('"')
        # What is written out for people has up to three letters where JSON has two, a newline; and five for these, which
        # are one or two.
        return 2 + len(json.dumps(value)) * 3 // 2 + 4 * sum(map(value.count, "\b\f\x7f"))
    if isinstance(value, dict):
        return 2 + sum(size(key) + size(inner) + 4 for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return 2 + sum(size(inner) + 2 for inner in value)
    return 24


def too_large(facts: Mapping[str, object]) -> str | None:
    """Return why facts are no answer, with what fills them, or None where a controller takes them."""
    used = size(facts)
    why = f"some {used} bytes" if used > 2 * ANSWER else too_much(json.dumps(facts))
    if why is None:
        return None
    largest = max(facts, key=lambda name: size(facts[name]))
    return f"its answer would be too large ({why}, most of it {largest}); expected {ANSWER // MIB} MiB and {VALUES} values"


def too_much(*texts: str) -> str | None:
    """Return why a host's output is no answer, before it is parsed, or None if it may be one."""
    letters = sum(map(len, texts))
    if letters > ANSWER:
        return f"observed {letters} bytes"
    values = sum(text.count(sign) for text in texts for sign in ",[{")
    return f"observed {values} values" if values > VALUES else None


def refused(why: str) -> str:
    """Return the message about a host whose answer was refused."""
    return (
        f"its answer was refused: {why}; expected at most {ANSWER // MIB} MiB and {VALUES} values, more than modules give:"
        " see what runs as root there, or in the name of the user who logs in"
    )


def short(text: str, most: int = 300) -> str:
    """Return a text that people read, the middle left out of a very long one."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"
