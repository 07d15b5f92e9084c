# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host whose users want all memory: of the modules that look at it, and of the controller.

As root, `python -m tests.unit.plugins.module_utils.fakes.hostile_host [ATTACK...]` is such a host in namespaces of its own,
whose only processes are the attacker's, and prints the peaks of memory: of what collects the facts of the engines and
of the storage, and of what holds them against a profile and makes the report.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tests.unit.conftest  # noqa: F401  # pylint: disable=unused-import
from ansible_collections.durable.dbhost.plugins.module_utils.engines import collect as engines
from ansible_collections.durable.dbhost.plugins.module_utils.host import bounds
from ansible_collections.durable.dbhost.plugins.module_utils.host.printable import printable
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect.inputs import Inputs
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.page import HEIGHT, render
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.report import details, with_outcomes
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.results import assess_answer
from ansible_collections.durable.dbhost.plugins.module_utils.storage import collect as storage

from .runs import NOW, shipped

ROOT = Path(__file__).resolve().parents[5]
#: On a file system in memory that nobody else sees.
TOP = Path("/mnt")
PERSON = 4242
MIB = 2**20
#: Where the answers are kept.
FILES = {name: TOP / f"{name}.json" for name in ("engines", "storage")}
#: How much of each attack there is.
SCALE = float(os.environ.get("SCALE", "1"))


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
        for link in range(int(20000 * SCALE)):
            (data / "pg_tblspc" / f"{link:06}{'x' * 240}").symlink_to("/")
        start("postgres", data)


def crowd() -> None:
    """Fifteen hundred servers of one user, and one of the system's."""
    data = home("crowd")
    (data / "postgresql.conf").write_text("")
    for _number in range(int(1500 * SCALE)):
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
            os.open(where / f"{file:05}{'f' * 240}", os.O_RDWR | os.O_CREAT)
            for file in range(int(4000 * SCALE))
        )
        start("postgres", data, files=files)
        for file in files:
            os.close(file)


def arguments() -> None:
    """Very many servers that name a configuration of very many letters on their command line."""
    data = home("data")
    (data / "postgresql.conf").write_text("")
    for _number in range(int(1000 * SCALE)):
        start("postgres", data, arguments=("-c", f"config_file=/{'c' * 100_000}"))


def programs() -> None:
    """Very many processes whose program has a path as long as the kernel takes."""
    for number in range(40):
        where = deep(home(f"d{number}"), 3900)
        for name in range(int(100 * SCALE)):
            start(f"p{name}", where)


def mounts() -> None:
    """Very many namespaces, each full of mounts."""
    where = deep(home("mounts"), 2000)
    shutil.copy("/bin/sleep", TOP / "postgres")
    count = int(400 * SCALE)
    again = f"while [ $i -lt {count} ]; do mount -n --bind {where} {where}; i=$((i+1)); done"
    script = f"i=0; {again}; exec {TOP}/postgres 600"
    for _number in range(40):
        subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", script])
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and len(_called("postgres")) < 40:
        time.sleep(0.5)


def _called(name: str) -> list[str]:
    """Return the processes that are called so."""
    return [path for path in os.listdir("/proc") if path.isdigit() and _comm(path) == name]


def _comm(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


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


def collected(what: str) -> None:
    """Collect the facts as their module does, and keep them in a file."""
    # Nobody waits here for what only takes time; without bounds all memory of the machine that tests would go.
    bounds.PATIENCE = 20.0
    resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))
    if what == "engines":
        facts = engines.collect(Host(), NOW)
    else:
        facts = storage.collect(Host(), NOW, json.loads(FILES["engines"].read_text())["paths"])
    facts = printable(facts)
    assert bounds.too_large(facts) is None
    FILES[what].write_text(json.dumps(facts))


def judged(_what: str) -> None:
    """Hold the facts against a profile as the controller does, and make the report."""
    facts = {f"durable_{what}": json.loads(FILES[what].read_text()) for what in FILES}
    inputs = Inputs(profile="strict", shipped=shipped(), rate=True)
    found = assess_answer(inputs, NOW, {"ansible_facts": facts})
    outcome = {"host": "bad", "was": found["verdict"], "error": "", "looked_only": True, "begun": []}
    report = with_outcomes({**found, **outcome})
    assert len(render([report]).splitlines()) <= HEIGHT
    FILES["engines"].with_name("report").write_text(details([report]))
    FILES["engines"].with_name("report.json").write_text(json.dumps(report))


STEPS: dict[str, Callable[[str], None]] = {"engines": collected, "storage": collected, "judge": judged}


def step(name: str) -> int:
    """Take one step in a process of its own, and return its peak in MiB."""
    argv = [sys.executable, "-m", __spec__.name if __spec__ else "", "step", name]
    done = subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return int(done.stdout)


def take(name: str) -> None:
    """Take a step, and print the peak of this process in MiB: it is not that of who has started it."""
    STEPS[name](name)
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = next(int(line.split()[1]) for line in status.split("\n") if line.startswith("VmHWM"))
    print(peak // 1024)


def hostile(attack: str) -> dict[str, Any]:
    """Be such a host, and return what came of it."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2g,mode=755", "none", str(TOP)], check=True)
    open_still()
    ATTACKS[attack]()
    time.sleep(0.5)
    began = time.monotonic()
    peaks = {name: step(name) for name in STEPS}
    facts = json.loads(FILES["engines"].read_text())
    return {
        "peaks": peaks,
        "seconds": round(time.monotonic() - began, 1),
        "bytes": {name: path.stat().st_size for name, path in FILES.items()},
        "pids": sorted(pid for each in facts["engines"] for pid in each["pids"][:1]),
        "unattributed": [row["why"] for row in facts["unattributed"]],
        "report": FILES["engines"].with_name("report").read_text(),
    }


def told(attack: str, scale: float = 1.0) -> dict[str, Any]:
    """Return what came of an attack. Its processes end with their namespace."""
    argv = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    argv += [sys.executable, "-m", __spec__.name if __spec__ else __name__, "be", attack]
    environment = {**os.environ, "SCALE": str(scale)}
    done = subprocess.run(argv, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True, timeout=600)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main(words: list[str]) -> None:
    """Take a step, be the host, or tell the peaks of attacks."""
    if words[:1] == ["step"]:
        take(words[1])
    elif words[:1] == ["be"]:
        print(json.dumps(hostile(words[1])))
    else:
        print(f"{'attack':12} {'engines':>8} {'storage':>8} {'judge':>6} MiB {'answer':>9} bytes")
        for attack in words or ATTACKS:
            found = told(attack)
            peaks, size = found["peaks"], found["bytes"]["engines"]
            line = f"{attack:12} {peaks['engines']:8} {peaks['storage']:8} {peaks['judge']:6} {size:19}"
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
