# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts with a monitor of a UPS, whose service remembers what its configuration was when it began."""

from __future__ import annotations

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Result, Status

from .fake_host import FakeHost
from .fake_proc import started_at

UPSMON = "/etc/nut/upsmon.conf"
NUT_CONF = "/etc/nut/nut.conf"
SECRET = "s3cret word"
TEXT = f"""\
# Network UPS Tools: example upsmon configuration
MONITOR rack@localhost 1 upsmon "{SECRET}" primary
MINSUPPLIES 1
SHUTDOWNCMD "/sbin/shutdown -h +0"
POLLFREQ 5
NOTIFYFLAG ONLINE IGNORE
NOTIFYFLAG ONBATT SYSLOG+WALL+EXEC
NOTIFYFLAG OVER SYSLOG
POWERDOWNFLAG /etc/killpower
"""


class MonitorHost(FakeHost):
    """A host with services of monitors; `dies` is one that does not stay up."""

    def __init__(self, services: tuple[str, ...]) -> None:
        super().__init__()
        self.services = dict.fromkeys(services, "active")
        self.began = dict.fromkeys(services, 100)
        self.pids = {name: 500 + number for number, name in enumerate(services)}
        self.changed: dict[str, int] = {}
        self.clock = 1000
        self.dies = False
        self.files["/proc/uptime"] = lambda: f"{self.clock}.00 1.00\n"
        self.commands[("date", "+%s.%N")] = lambda: f"{self.clock}.0\n"
        self.commands[("id", "--group", "--name", "--", "nut")] = "nut\n"
        for pid in self.pids.values():
            self.commands[("sleep", "1")] = ""
            self.files[f"/proc/{pid}/stat"] = lambda pid=pid: self._stat(pid)
            self.links[f"/proc/{pid}/ns/mnt"] = "mnt:[1]"
            self.files[f"/proc/{pid}/mountinfo"] = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        for name, pid in self.pids.items():
            self.files[f"/proc/{pid}/cgroup"] = f"0::/system.slice/{name}\n"
        self.links["/proc/self/ns/mnt"] = "mnt:[1]"

    def run(self, argv: list[str], timeout: float = 10.0) -> Result:
        if argv[:2] == ["env", "TZ=UTC"]:
            argv = argv[2:]
        if argv[:2] == ["systemctl", "show"]:
            names = argv[argv.index("--") + 1 :]
            return Result(0, "\n".join(self._shown(name) for name in names), "")
        return super().run(argv, timeout)

    def status(self, path: str) -> Status:
        return super().status(path)._replace(changed=float(self.changed.get(path, 0)))

    def write_file(self, path: str, content: bytes, mode: int = 0o644, owner: int = 0) -> None:
        if path not in self.files:
            self.modes[path] = mode
        super().write_file(path, content, mode, owner)
        self.clock += 1
        self.changed[path] = self.clock

    def on_change(self, argv: list[str]) -> None:
        if argv[:3] == ["systemctl", "restart", "--"]:
            self.clock += 1
            self.services[argv[3]] = "failed" if self.dies else "active"
            self.began[argv[3]] = self.clock
        elif argv[0] == "chmod":
            self.modes[argv[3]] = int(argv[1], 8)
        elif argv[0] not in ("chgrp", "rmdir"):
            raise ChangeFailed(f"{argv[0]}: No such file or directory")

    def _shown(self, name: str) -> str:
        state = self.services.get(name)
        main = self.pids.get(name, 0) if state == "active" else 0
        load, active = ("loaded", state) if state else ("not-found", "inactive")
        times = "".join(f"{key}={value}\n" for key, value in started_at(0.0).items())
        return f"Id={name}\nNames={name}\nLoadState={load}\nActiveState={active}\nMainPID={main}\n{times}"

    def _stat(self, pid: int) -> str:
        name = next(name for name, number in self.pids.items() if number == pid)
        return f"{pid} (upsmon) S {' '.join(['0'] * 18)} {self.began[name] * 100} 0\n"


class NutHost(MonitorHost):
    """A host with NUT: upsmon watches a UPS of its own."""

    def __init__(self, text: str = TEXT, mode: str = "standalone") -> None:
        super().__init__(("nut-monitor.service",))
        self.files[UPSMON] = text
        self.modes[UPSMON] = 0o640
        self.files[NUT_CONF] = f"# nut.conf\nMODE={mode}\n"
        self.files["/lib/systemd/system-shutdown/nutshutdown"] = "#!/bin/sh\n"
        self.modes["/lib/systemd/system-shutdown/nutshutdown"] = 0o755


class ApcHost(MonitorHost):
    """A host with apcupsd, and two event scripts of its package."""

    def __init__(self) -> None:
        super().__init__(("apcupsd.service",))
        self.files["/etc/apcupsd/apcupsd.conf"] = "## apcupsd.conf v1.1 ##\nUPSCABLE usb\n"
        for event in ("onbattery", "changeme"):
            self.files[f"/etc/apcupsd/{event}"] = f"#!/bin/sh\necho {event} | mail root\n"
            self.modes[f"/etc/apcupsd/{event}"] = 0o755
