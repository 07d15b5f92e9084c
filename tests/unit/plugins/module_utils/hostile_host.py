# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host whose users want all of its memory: what it answers, and the peak that the answer took.

Run as root, `python hostile_host.py ATTACK [FILE]` makes namespaces of its own, whose only processes are the
attacker's, and prints one JSON object: `peak` in MiB of the process that collected, `bytes` of the answer,
`seconds`, and what the answer says. FILE receives the answer itself. Without a name it tells them all.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

#: On a file system in memory that nobody else sees.
TOP = Path("/mnt")
PERSON = 4242
MIB = 2**20
NOW = "2026-01-31T12:00:00Z"


def start(
    program: str,
    where: Path,
    user: int = PERSON,
    arguments: tuple[str, ...] = (),
    files: tuple[int, ...] = (),
    environment: dict[str, str] | None = None,
) -> None:
    """Start a process that is called so, in a directory, with files open, and does nothing for ten minutes."""
    path, argv = where / program, ["600"]
    # sleep(1) takes no words but numbers; a shell that waits for what never comes takes any.
    if arguments:
        argv, files = ["-c", "read never <&3", *arguments], (*files, STILL)
    if not path.exists():
        shutil.copy(shutil.which("sh" if arguments else "sleep") or "", path)
    os.set_inheritable(STILL, bool(arguments))
    subprocess.Popen(
        [str(path), *argv],
        cwd=where,
        user=user,
        group=user,
        extra_groups=[],
        pass_fds=files,
        env=environment or {},
        start_new_session=True,
    )


#: Where a pipe is open that never says anything.
STILL = 3


def open_still() -> None:
    """Open that pipe."""
    reader, _writer = os.pipe()
    os.dup2(reader, STILL)


def home(name: str, user: int = PERSON) -> Path:
    """Return a directory of a user's."""
    path = TOP / name
    path.mkdir(parents=True)
    os.chown(path, user, user)
    return path


def includes(line: str, names: str) -> None:
    """Eight servers, each with twelve included files of a mebibyte."""
    for number in range(8):
        data = home(f"data{number}")
        text = line * (MIB // len(line))
        lines = ""
        for part in range(12):
            (data / f"part{part}.conf").write_text(text)
            lines += f"include '{data}/part{part}.conf'\n"
        (data / "postgresql.conf").write_text(lines)
        start(names, data)


def below() -> None:
    """Eight servers whose configuration is as large as it may be."""
    for number in range(8):
        data = home(f"data{number}")
        (data / "postgresql.conf").write_text(f"include '{data}/part0.conf'\ninclude '{data}/part1.conf'\n")
        for part in range(2):
            lines = (f"ab{part}{row:06} = '\u20ac\U0001f600{row:06}'\n" for row in range(24_990))
            (data / f"part{part}.conf").write_text("".join(lines))
        start("postgres", data)


def deep(base: Path, length: int) -> Path:
    """Return a directory whose path has about so many characters."""
    path = base
    while len(str(path)) < length:
        path = path / ("d" * min(200, max(1, length - len(str(path)))))
    path.mkdir(parents=True)
    return path


def tablespaces() -> None:
    """Eight servers with links to very many table spaces."""
    for number in range(8):
        data = home(f"data{number}")
        (data / "postgresql.conf").write_text("")
        (data / "pg_tblspc").mkdir()
        for link in range(20000):
            (data / "pg_tblspc" / f"{link:06}{'x' * 240}").symlink_to("/")
        start("postgres", data)


def crowd() -> None:
    """Fifteen hundred servers of one user, and one of the system's."""
    data = home("crowd")
    (data / "postgresql.conf").write_text("")
    for _number in range(1500):
        start("postgres", data)
    own = home("own", 26)
    (own / "postgresql.conf").write_text("")
    start("postgres", own, 26)


def opened() -> None:
    """Eight servers with very many open files of very long names."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
    for number in range(8):
        data = home(f"data{number}")
        (data / "postgresql.conf").write_text("")
        where = deep(data, 3800)
        files = tuple(
            os.open(where / f"{file:05}{'f' * 240}", os.O_RDWR | os.O_CREAT) for file in range(4000)
        )
        start("postgres", data, files=files)
        for file in files:
            os.close(file)


def arguments() -> None:
    """Very many servers that name a configuration of very many letters on their command line."""
    data = home("data")
    (data / "postgresql.conf").write_text("")
    for _number in range(1000):
        start("postgres", data, arguments=("-c", f"config_file=/{'c' * 100_000}"))


def programs() -> None:
    """Very many processes whose program has a path as long as the kernel takes."""
    for number in range(40):
        where = deep(home(f"d{number}"), 3900)
        for name in range(100):
            start(f"p{name}", where)


def mounts() -> None:
    """Very many namespaces, each full of mounts."""
    where = deep(home("mounts"), 2000)
    shutil.copy("/bin/sleep", TOP / "postgres")
    script = f"i=0; while [ $i -lt 400 ]; do mount -n --bind {where} {where}; i=$((i+1)); done; exec {TOP}/postgres 600"
    for _number in range(40):
        subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", script])
    time.sleep(20)


def my_cnf() -> None:
    """Eight servers of MariaDB, each with a hundred included option files."""
    text = "[mysqld]\n" + "a=b\n" * (MIB // 4 - 20)
    for number in range(8):
        data = home(f"data{number}")
        for part in range(12):
            (data / f"part{part}.cnf").write_text(text)
        (data / "my.cnf").write_text(f"!includedir {data}\n")
        start("mariadbd", data, environment={"MARIADB_HOME": str(data)})


def databases() -> None:
    """Eight servers of Firebird with aliases without number."""
    for number in range(8):
        data = home(f"data{number}")
        (data / "firebird.conf").write_text("")
        text = "".join(f"a{alias}=/x/{alias}\n" for alias in range(MIB // 20))
        (data / "databases.conf").write_text(text)
        start("firebird", data, environment={"FIREBIRD": str(data)})


ATTACKS: dict[str, Callable[[], None]] = {
    "settings": lambda: includes("a=b\n", "postgres"),
    "lines": lambda: includes("\n", "postgres"),
    "words": lambda: includes("a = '" + "\u20ac" * 50 + "\U0001f600'\n", "postgres"),
    "below": below,
    "tablespaces": tablespaces,
    "crowd": crowd,
    "opened": opened,
    "arguments": arguments,
    "programs": programs,
    "mounts": mounts,
    "my_cnf": my_cnf,
    "databases": databases,
}


def collect(file: str) -> None:
    """Collect the facts as the module does, and print what that took."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[4]))
    import tests.unit.conftest  # noqa: F401
    from ansible_collections.durable.dbhost.plugins.module_utils import bounds
    from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import collect
    from ansible_collections.durable.dbhost.plugins.module_utils.host import Host
    from ansible_collections.durable.dbhost.plugins.module_utils.observation import printable

    # Not of the machine that tests: without bounds it would all be taken.
    resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))
    # Nobody waits here for what only takes time.
    bounds.PATIENCE = 5.0
    began = time.monotonic()
    facts = printable(collect(Host(), NOW))
    text = json.dumps(facts)
    if file:
        Path(file).write_text(text)
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) for line in status.split("\n") if line.startswith("VmHWM"))
    said = {
        "peak": peak // 1024,
        "bytes": len(text),
        "seconds": round(time.monotonic() - began, 1),
        "instances": len(facts["engines"]),
        "unattributed": [row["why"] for row in facts["unattributed"]][:3],
        "known": sum(
            row["persisted"] not in ("unknown", None)
            for each in facts["engines"]
            for row in each["settings"].values()
        ),
    }
    print(json.dumps(said))


@contextlib.contextmanager
def hostile(attack: str) -> Iterator[None]:
    """Be such a host, until the end."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2g,mode=755", "none", str(TOP)], check=True)
    open_still()
    ATTACKS[attack]()
    time.sleep(0.5)
    yield


def told(attack: str, file: str = "") -> dict[str, Any]:
    """Return what a run of an attack printed. The processes end with their namespace."""
    argv = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    argv += [sys.executable, __file__, attack, file]
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=True, timeout=600)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main(words: list[str]) -> None:
    """Be the host, collect from it, or tell of all attacks."""
    if words[:1] == ["collect"]:
        collect(words[1])
    elif words and os.getpid() == 1:
        with hostile(words[0]):
            subprocess.run([sys.executable, __file__, "collect", *(words[1:] or [""])], check=True)
    else:
        for attack in words or ATTACKS:
            print(attack, json.dumps(told(attack)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
