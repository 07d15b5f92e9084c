# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host whose processes are made of dicts: /proc as proc(5) describes it, and systemd's word."""

from __future__ import annotations

import posixpath
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import (
    READ_TIMEOUT,
    Result,
    Unobservable,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host.unit_names import scopes

from .fake_host import STATUS, FakeHost, Tree

BOOT_ID = "11111111-2222-3333-4444-555555555555"
OURS, PRIVATE, OTHER = "4026531841", "4026532999", "4026533111"
#: What this machine has mounted, by mount id: the root, and two disks for databases.
MOUNTINFO = """\
22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
23 22 0:21 / /proc rw - proc proc rw
24 22 0:6 / /dev rw - devtmpfs devtmpfs rw
25 22 0:25 / /tmp rw - tmpfs tmpfs rw
31 22 8:17 / /data rw - ext4 /dev/sdb1 rw
32 22 8:33 / /log rw - xfs /dev/sdc1 rw
"""
DIRECT, DSYNC, SYNC, RDWR, WRONLY = 0o40000, 0o10000, 0o4010000, 0o2, 0o1
DENIED = "Permission denied"


@dataclass
class FakeProcess:
    """One process. `files`: (path, flags, mount id) of its open files, from descriptor 3."""

    pid: int
    exe: str
    argv: tuple[str, ...] = ()
    ppid: int = 1
    name: str = ""
    state: str = "S"
    ticks: int = 1000
    namespace: str = OURS
    pid_namespace: str = "4026531836"
    root: str = "/"
    cwd: str = "/"
    cgroup: str = "0::/system.slice/some.service\n"
    environment: Mapping[str, str] = field(default_factory=dict)
    files: tuple[tuple[str, int, int], ...] = ()
    mountinfo: str = MOUNTINFO
    maps: str = ""
    uid: int = 26

    def text(self) -> dict[str, str]:
        """Return the files below /proc/PID."""
        name = self.name or posixpath.basename(self.exe).partition(" ")[0][:15]
        numbers = " ".join(["0"] * 17)
        return {
            "stat": f"{self.pid} ({name}) {self.state} {self.ppid} {numbers} {self.ticks} 0 0\n",
            "cmdline": "".join(f"{word}\0" for word in self.argv or (self.exe,)),
            "environ": "".join(f"{key}={value}\0" for key, value in self.environment.items()),
            "cgroup": self.cgroup,
            "mountinfo": self.mountinfo,
            "maps": self.maps,
            "status": f"Name:\tx\nUid:\t0\t{self.uid}\t0\t0\nGid:\t0\t{self.uid}\t0\t0\nGroups:\t{self.uid} \n",
            **{
                # Kernel 5.10 has these three lines; later ones say more.
                f"fdinfo/{number}": f"pos:\t0\nflags:\t0{flags | 0o2100000:o}\nmnt_id:\t{mount}\n"
                for number, (_path, flags, mount) in enumerate(self.files, 3)
            },
        }

    def magic(self) -> dict[str, str]:
        """Return the links below /proc/PID."""
        return {
            "exe": self.exe,
            "cwd": self.cwd,
            "root": self.root,
            "ns/mnt": f"mnt:[{self.namespace}]",
            "ns/pid": f"pid:[{self.pid_namespace}]",
            "fd/0": "/dev/null",
            "fd/2": "/var/log/words.log",
            **{f"fd/{number}": path for number, (path, _flags, _mount) in enumerate(self.files, 3)},
        }


def as_user(uid: int, gid: int, groups: str = "--init-groups") -> list[str]:
    """Return the beginning of a command that runs as a user."""
    return ["setpriv", f"--reuid={uid}", f"--regid={gid}", groups, "--no-new-privs", "--"]


class ProcHost(FakeHost):
    """The machine. `magic`: links of /proc, which lead nowhere else; `units`: name -> properties.

    `machine` is what uname says; `looked` are the paths of /proc that were looked at, in order; at the
    look of number `end_at` (from 1) the process `ending` ends.
    """

    def __init__(self, *processes: FakeProcess) -> None:
        self.magic = Tree()
        super().__init__()
        self.machine = "x86_64"
        #: When the clock that systemd noted was at the boot, in seconds since the epoch.
        self.noted_boot = 1700000000.0
        self.units: dict[str, dict[str, str]] = {}
        #: What systemd itself hands on to all services.
        self.manager = "LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin"
        self.looked: list[str] = []
        self.end_at, self.ending = 0, 0
        self.files.update(
            {
                "/proc/cmdline": "root=/dev/vda1 ro quiet\n",
                "/proc/stat": "cpu 1 2 3\nbtime 1700000000\nprocesses 9\n",
                "/proc/self/mountinfo": MOUNTINFO,
                # As in a container without the capability that keeps others from tracing a command.
                "/proc/self/status": "Name:\tpython3\nCapPrm:\t00000000a80425fb\n",
                "/proc/sys/kernel/random/boot_id": f"{BOOT_ID}\n",
            }
        )
        self.magic["/proc/self/ns/mnt"] = f"mnt:[{OURS}]"
        self.magic["/proc/self/ns/pid"] = "pid:[4026531836]"
        self.start(FakeProcess(1, "/usr/lib/systemd/systemd", ppid=0, cgroup="0::/init.scope\n"))
        for process in processes:
            self.start(process)

    def start(self, process: FakeProcess) -> None:
        """Start a process."""
        base = f"/proc/{process.pid}"
        self.files.update({f"{base}/{name}": text for name, text in process.text().items()})
        self.magic.update({f"{base}/{name}": target for name, target in process.magic().items()})

    def end(self, pid: int) -> None:
        """End a process."""
        for tree in (self.files, self.magic):
            for path in [path for path in tree if path.startswith(f"/proc/{pid}/")]:
                del tree[path]

    def deny(self, pid: int, *names: str) -> None:
        """Let this process not look at parts of another one. `fd` is the whole directory."""
        for name in names:
            path = f"/proc/{pid}/{name}"
            tree = self.files if path in self.files else self.magic
            tree[path] = Unobservable(f"{path}: {DENIED}")

    def read(self, path: str) -> str:
        self._look(path)
        return super().read(path)

    def names(self, path: str) -> list[str]:
        self._look(path)
        if isinstance(self.magic.get(path), Exception):
            raise self.magic[path]
        return super().names(path)

    def exists(self, path: str) -> bool:
        return path in self.magic or super().exists(path)

    def link(self, path: str) -> str:
        self._look(path)
        if isinstance(self.magic.get(path), Exception):
            raise self.magic[path]
        return self.magic[path] if path in self.magic else super().link(path)

    def run(self, argv: list[str], timeout: float = READ_TIMEOUT) -> Result:
        if argv[:2] == ["env", "TZ=UTC"]:
            argv = argv[2:]
        if (
            tuple(argv) in self.commands
            or argv[:3] == STATUS
            or argv[0]
            not in (
                "uname",
                "systemctl",
                "stat",
                "cat",
                "grep",
                "head",
            )
        ):
            return super().run(argv, timeout)
        self.asked.append(tuple(argv))
        if argv == ["uname", "-m"]:
            return Result(0, f"{self.machine}\n", "")
        if argv[0] == "systemctl":
            return self._systemctl(argv)
        if argv[0] == "stat":
            there = [path for path in argv[3:] if self.exists(path)]
            return Result(0 if len(there) == len(argv[3:]) else 1, "".join(f"{path}\0" for path in there), "")
        try:
            text = self.read(argv[-1])
        except Unobservable as error:
            return Result(2, "", f"{argv[0]}: {error}\n")
        return _grep(argv, text) if argv[0] == "grep" else Result(0, text, "")

    def _systemctl(self, argv: list[str]) -> Result:
        if not self.units:
            return Result(1, "", "System has not been booted with systemd\n")
        if argv[1:] == ["show", "--property=Environment"]:
            return Result(0, f"Environment={self.manager}\n", "")
        if "--" not in argv:
            said = started_at(self.noted_boot).items()
            return Result(0, "".join(f"{k.replace('InactiveExit', 'Userspace')}={v}\n" for k, v in said), "")
        asked = argv[argv.index("--") + 1 :]
        blocks = []
        for name in asked:
            said = {"Id": name, "Names": name, "LoadState": "loaded", "ActiveState": "active"}
            said.update(started_at(self.noted_boot))
            # As after a daemon-reload.
            said["DropInPaths"] = " ".join(self._drop_ins(name))
            said.update(self.units.get(name, {"LoadState": "not-found"}))
            blocks.append("".join(f"{key}={value}\n" for key, value in said.items()))
        return Result(0, "\n".join(blocks), "")

    def _drop_ins(self, unit: str) -> list[str]:
        places = tuple(f"/systemd/system/{scope}.d" for scope in scopes(unit))
        paths = (*self.files, *self.links)
        return [path for path in paths if path.endswith(".conf") and posixpath.dirname(path).endswith(places)]

    def _look(self, path: str) -> None:
        if path.startswith("/proc/"):
            self.looked.append(path)
            if len(self.looked) == self.end_at:
                self.end(self.ending)

    def _children(self, path: str) -> set[str]:
        return super()._children(path) | self.magic.children(path.rstrip("/"))


def started_at(boot: float, up: int = 1) -> dict[str, str]:
    """Return what systemd notes of a unit that started so many seconds after the boot."""
    wall = time.strftime("%a %Y-%m-%d %H:%M:%S UTC", time.gmtime(boot + up))
    return {"InactiveExitTimestamp": wall, "InactiveExitTimestampMonotonic": str(up * 1000000)}


def _grep(argv: list[str], text: str) -> Result:
    """As `grep -zaE` with a pattern, or `grep -aF` with words, one in a line."""
    if argv[1] == "-zaE":
        found = [entry for entry in text.split("\0") if re.search(argv[2], entry)]
        return Result(0 if found else 1, "".join(f"{entry}\0" for entry in found), "")
    assert argv[1] == "-aF"
    found = [line for line in text.split("\n") if any(word in line for word in argv[2].split("\n"))]
    return Result(0 if found else 1, "".join(f"{line}\n" for line in found), "")
