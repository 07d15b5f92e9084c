# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a machine: measures the time of the storage facts, or of the same queries by plain tools.

    python3 guest.py COMMAND [ARGUMENT...]

Needs no Ansible, and module_utils beside it below ansible_collections. Prints JSON.
"""

from __future__ import annotations

import cProfile
import glob
import json
import os
import platform
import pstats
import resource
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import READ_TIMEOUT, Host, Result
from ansible_collections.durable.dbhost.plugins.module_utils.storage import collect as storage
from ansible_collections.durable.dbhost.plugins.module_utils.storage import disks
from ansible_collections.durable.dbhost.plugins.module_utils.storage.caches import CONTROLS

NOW = "2026-01-01T00:00:00Z"
#: As many as the facts ask at a time.
AT_A_TIME = "8"
#: What a disk's facts read, apart from the device's own answer.
ATTRIBUTES = (
    "device/model",
    "device/vendor",
    "queue/fua",
    "queue/read_ahead_kb",
    "queue/rotational",
    "queue/scheduler",
    "queue/write_cache",
)
#: Functions of Python that wait for a command or make the kernel do something -> what that is.
PARTS = (
    ("fork_exec", "starting commands"),
    ("poll", "waiting for commands"),
    ("waitpid", "waiting for commands"),
    ("posix.read", "reading what commands said"),
    ("lstat", "following links"),
    ("readlink", "following links"),
    ("io.open", "opening and reading files"),
    ("_io.", "opening and reading files"),
    ("codecs", "opening and reading files"),
    ("listdir", "opening and reading files"),
)


class Counting(Host):
    """The machine, and what was asked of it."""

    def __init__(self) -> None:
        self.commands: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self._lock = threading.Lock()

    def _count(self, call: str, command: str = "") -> None:
        with self._lock:
            self.calls[call] += 1
            if command:
                self.commands[command] += 1

    def run(self, argv: list[str], timeout: float = READ_TIMEOUT) -> Result:
        self._count("run", argv[0])
        return super().run(argv, timeout)

    def read(self, path: str) -> str:
        self._count("read")
        return super().read(path)

    def resolve(self, path: str) -> str:
        self._count("resolve")
        return super().resolve(path)

    def exists(self, path: str) -> bool:
        self._count("exists")
        return super().exists(path)

    def names(self, path: str) -> list[str]:
        self._count("names")
        return super().names(path)


class Serial:
    """Stands for a pool of threads where a profile should see all of the work."""

    def __init__(self, max_workers: int) -> None:
        pass

    def __enter__(self) -> Serial:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        return map(function, items)


def timed(act: Callable[[], Any]) -> dict[str, float]:
    """Return the wall time and the CPU time, its own and its children's, that a call took."""
    before, started = _cpu(), time.monotonic()
    act()
    wall, after = time.monotonic() - started, _cpu()
    return {"wall": wall, "own": after[0] - before[0], "children": after[1] - before[1]}


def _cpu() -> tuple[float, float]:
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime, children.ru_utime + children.ru_stime


def luns() -> list[str]:
    """Return the kernel names of scsi_debug's disks."""
    found = []
    for path in glob.glob("/sys/class/scsi_host/host*/proc_name"):
        with open(path, encoding="ascii") as handle:
            if handle.read().strip() == "scsi_debug":
                number = path.split("/")[4][len("host") :]
                found += [block.rpartition("/")[2] for block in glob.glob(_BLOCKS.format(number))]
    return sorted(found)


_BLOCKS = "/sys/class/scsi_device/{}:*/device/block/*"


def facts(*paths: str) -> dict[str, Any]:
    """Take the facts once; return them, with what they cost."""
    host = Counting()
    found: dict[str, Any] = {}
    cost: dict[str, Any] = dict(timed(lambda: found.update(storage.collect(host, NOW, paths))))
    cost["commands"], cost["calls"] = dict(host.commands), dict(host.calls)
    return {"cost": cost, "facts": found, "luns": luns()}


def bare() -> dict[str, Any]:
    """Ask the bare tools what the facts ask of scsi_debug's disks and of udev."""
    names = luns()
    devices = "".join(f"/dev/{name}\n" for name in names)
    sdparm = ["sdparm", "--quiet", "--readonly", "--get", "WCE=1", "-H"]
    xargs = ["xargs", "--no-run-if-empty", "--max-args=1"]
    attributes = [f"/sys/block/{name}/{attribute}" for name in names for attribute in ATTRIBUTES]
    return {
        "udevadm": timed(lambda: _quiet(["udevadm", "info", "--export-db"])),
        "cat": timed(lambda: _quiet(["cat", "/proc/self/mountinfo", *attributes])),
        "sdparm": timed(lambda: _quiet([*xargs, *sdparm], devices)),
        "sdparm at a time": timed(lambda: _quiet([*xargs, f"--max-procs={AT_A_TIME}", *sdparm], devices)),
    }


def bare_mounts(*numbers: str) -> dict[str, Any]:
    """Ask the bare tools what the facts ask of mounts, by the device's number."""
    tables = ["/proc/self/mountinfo", "/proc/filesystems", "/etc/fstab"]
    options = [f"/proc/fs/ext4/{os.path.basename(_device(number))}/options" for number in numbers]
    devices = "".join(f"/dev/block/{number}\n" for number in numbers)
    xargs = ["xargs", "--no-run-if-empty", "--max-args=1"]
    dumpe2fs = ["dumpe2fs", "-h"]
    return {
        "dmsetup": timed(lambda: _quiet(["dmsetup", "table"])),
        "cat": timed(lambda: _quiet(["cat", *tables, *options])),
        "dumpe2fs": timed(lambda: _quiet([*xargs, *dumpe2fs], devices)),
        "dumpe2fs at a time": timed(lambda: _quiet([*xargs, f"--max-procs={AT_A_TIME}", *dumpe2fs], devices)),
    }


def _device(number: str) -> str:
    return os.path.realpath(f"/sys/dev/block/{number}")


def _quiet(argv: list[str], text: str = "") -> None:
    subprocess.run(argv, input=text.encode(), capture_output=True, check=True)


def whole(limit: str, *arguments: str) -> dict[str, Any]:
    """Run this program in a process of its own; add how long that lived, or that it did not end.

    Its output goes to a file: whoever holds a pipe would keep it open.
    """
    started = time.monotonic()
    with open("whole.json", "w+b") as output, open("whole.err", "wb") as errors:
        child = subprocess.Popen(
            [sys.executable, __file__, *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=errors
        )
        try:
            code = child.wait(float(limit))
        except subprocess.TimeoutExpired:
            child.kill()
            return {"process": None, "stopped_in": _where(child.pid)}
        lived = time.monotonic() - started
        output.seek(0)
        return {"process": lived, "code": code, **json.loads(output.read())}


def _where(pid: int) -> str:
    """Return the state of a process and the kernel function in which it waits."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as status, open(f"/proc/{pid}/wchan") as channel:
            state = next(line.split(None, 1)[1].strip() for line in status if line.startswith("State:"))
            return f"{state}, {channel.read().strip() or '?'}"
    except OSError as error:
        return str(error)


def profile() -> dict[str, Any]:
    """Take the facts in one thread under a profiler; return where the time went."""
    storage.ThreadPoolExecutor = disks.ThreadPoolExecutor = Serial  # type: ignore
    profiler = cProfile.Profile()
    cost = timed(lambda: profiler.runcall(storage.collect, Host(), NOW))
    table: dict[Any, Any] = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    parts: Counter[str] = Counter()
    functions = []
    for (path, _line, name), (_primitive, calls, own, cumulative, _callers) in table.items():
        parts[_part(path, name)] += own
        if "module_utils" in path:
            functions.append((f"{os.path.basename(path)}:{name}", calls, own, cumulative))
    functions.sort(key=lambda row: -row[3])
    return {"cost": cost, "parts": dict(parts), "functions": functions[:40]}


def _part(path: str, name: str) -> str:
    for sign, part in PARTS:
        if sign in name or (sign == "codecs" and sign in path):
            return part
    return "Python: this collection" if "module_utils" in path else "Python: its library"


def versions() -> dict[str, str]:
    """Return the versions of what was measured."""
    said = {
        "sdparm": subprocess.run(["sdparm", "--version"], capture_output=True, text=True, check=False),
        "e2fsprogs": subprocess.run(["dumpe2fs", "-V"], capture_output=True, text=True, check=False),
        "udev": subprocess.run(["udevadm", "--version"], capture_output=True, text=True, check=False),
    }
    lines = {name: (done.stdout + done.stderr).strip().splitlines() for name, done in said.items()}
    found = {name: texts[0] if texts else "" for name, texts in lines.items()}
    return {"kernel": platform.release(), "python": platform.python_version(), **found}


COMMANDS: dict[str, Callable[..., Any]] = {
    "facts": facts,
    "bare": bare,
    "bare-mounts": bare_mounts,
    "whole": whole,
    "profile": profile,
    "versions": versions,
    "limit": lambda: READ_TIMEOUT,
    "controls": lambda: sorted(CONTROLS),
    "luns": luns,
}

if __name__ == "__main__":
    json.dump(COMMANDS[sys.argv[1]](*sys.argv[2:]), sys.stdout, default=str)
