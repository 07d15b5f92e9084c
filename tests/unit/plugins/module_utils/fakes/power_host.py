# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts with a UPS on which all is well: NUT 2.7, NUT 2.8 and apcupsd.

Their texts are written after the documentation of NUT and apcupsd: nut.conf(5), upsmon.conf(5), NUT's
network protocol, apcupsd.conf(5), apcaccess(8), apccontrol(8).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ansible_collections.durable.dbhost.plugins.module_utils.facts import power_fixes
from ansible_collections.durable.dbhost.plugins.module_utils.host.our_paths import HOOK
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Status
from ansible_collections.durable.dbhost.plugins.module_utils.ups import apcupsd, findings
from ansible_collections.durable.dbhost.plugins.module_utils.ups.conditions import Condition

from .fake_proc import ProcHost

SECRET = "hunter2"
EVENTS = "ONLINE ONBATT LOWBATT FSD COMMOK COMMBAD SHUTDOWN REPLBATT NOCOMM NOPARENT".split()
#: What a UPS of NUT's says, as upsc shows it: usbhid-ups of 2.8, and of 2.7, which says less.
VARIABLES = {
    "battery.charge": "100",
    "battery.charge.low": "10",
    "battery.runtime": "2400",
    "battery.runtime.low": "900",
    "device.mfr": "Example",
    "device.model": 'Smart \\"Rack\\" \\#2',
    "device.type": "ups",
    "driver.flag.ignorelb": "enabled",
    "driver.name": "usbhid-ups",
    "driver.parameter.pollinterval": "2",
    "driver.parameter.snmp.password": SECRET,
    "driver.version": "2.8.0",
    "ups.load": "12",
    "ups.status": "OL CHRG",
}
NOT_OF_27 = ("device.mfr", "device.model", "driver.parameter.pollinterval")
STATUS = {
    "APC": "001,036,0868",
    "DATE": "2026-01-31 12:00:00 +0000",
    "HOSTNAME": "db1",
    "VERSION": "3.14.14 (31 May 2016) debian",
    "UPSNAME": "rack",
    "CABLE": "USB Cable",
    "DRIVER": "USB UPS Driver",
    "UPSMODE": "Stand Alone",
    "STARTTIME": "2026-01-31 10:00:00 +0000",
    "MODEL": "Smart-UPS 1500",
    "STATUS": "ONLINE ",
    "LOADPCT": "14.0 Percent",
    "BCHARGE": "100.0 Percent",
    "TIMELEFT": "46.5 Minutes",
    "MBATTCHG": "5 Percent",
    "MINTIMEL": "15 Minutes",
    "MAXTIME": "0 Seconds",
    "STATFLAG": "0x05000008",
    "END APC": "2026-01-31 12:00:01 +0000",
}
UPSMON = "/etc/nut/upsmon.conf"


class Upsd:
    """A stand-in for upsd. `variables`: UPS -> what it says; `answers`: question -> what is said instead."""

    def __init__(self, variables: Mapping[str, Mapping[str, str]], logins: int = 1) -> None:
        self.variables = {ups: dict(said) for ups, said in variables.items()}
        self.logins = logins
        self.answers: dict[str, str] = {}

    def __call__(self, question: bytes) -> bytes:
        asked = question.decode("ascii")
        assert asked.endswith("\n")
        words = asked.split()
        ups = words[-1]
        if asked.strip() in self.answers:
            return self.answers[asked.strip()].encode("utf-8", "surrogateescape")
        if ups not in self.variables:
            return b"ERR UNKNOWN-UPS\n"
        if words[:2] == ["GET", "NUMLOGINS"]:
            return f"NUMLOGINS {ups} {self.logins}\n".encode()
        assert words[:2] == ["LIST", "VAR"], asked
        lines = [f'VAR {ups} {name} "{value}"' for name, value in self.variables[ups].items()]
        return "\n".join([f"BEGIN LIST VAR {ups}", *lines, f"END LIST VAR {ups}\n"]).encode(
            "utf-8", "surrogateescape"
        )


class Nis:
    """A stand-in for apcupsd's network information server. `fields`: what it says."""

    def __init__(self, fields: Mapping[str, str] | None = None) -> None:
        self.fields = dict(STATUS if fields is None else fields)

    def __call__(self, question: bytes) -> bytes:
        assert question == b"\x00\x06status"
        records = [f"{name:<9}: {value}\n".encode() for name, value in self.fields.items()]
        return b"".join(len(record).to_bytes(2, "big") + record for record in records) + b"\0\0"


class PowerHost(ProcHost):
    """A host with a monitor. `upsd`, `nis`: its daemon."""

    upsd: Upsd
    nis: Nis

    def __init__(self, unit: str) -> None:
        super().__init__()
        self.units[unit] = {"ActiveState": "active", "UnitFileState": "enabled", "MainPID": "812"}
        self.files["/proc/sys/kernel/osrelease"] = "6.1.0-26-amd64\n"
        self.program("/sbin/shutdown")
        self.program(HOOK)
        # It began 900 s before now, and its files are older, except those of `changed`: path -> seconds ago.
        self.changed: dict[str, float] = {}
        self.files["/proc/812/stat"] = f"812 (upsmon) S {' '.join(['0'] * 18)} 10000 0\n"
        self.files["/proc/812/cgroup"] = f"0::/system.slice/{unit}\n"
        self.files["/proc/812/mountinfo"] = self.files["/proc/self/mountinfo"]
        self.magic["/proc/812/ns/mnt"] = self.magic["/proc/self/ns/mnt"]
        self.noted_boot = 4000.0
        self.files["/proc/uptime"] = "1000.00 1.00\n"
        self.commands[("date", "+%s.%N")] = "5000.0\n"

    def status(self, path: str) -> Status:
        """Tell also when a file was changed."""
        return super().status(path)._replace(changed=5000 - self.changed.get(path, 999))

    def program(self, path: str, text: str = "#!/bin/sh\n") -> None:
        """Put a program there."""
        self.files[path] = text
        self.modes[path] = 0o755

    def edit(self, path: str, before: str, after: str) -> None:
        """Change a text in a file, and have a monitor read it that reports settings."""
        assert before in self.files[path], f"{path} has no {before!r}"
        self.files[path] = self.files[path].replace(before, after)
        for name, field, unit in (("MINUTES", "MINTIMEL", "Minutes"), ("TIMEOUT", "MAXTIME", "Seconds")):
            value = re.search(rf"^{name} (\S+)$", self.files[path], re.MULTILINE)
            if value and self.nis:
                self.nis.fields[field] = f"{value[1]} {unit}"


def nut_28() -> PowerHost:
    """Return a host with NUT 2.8: primary of one UPS."""
    return _nut("primary", VARIABLES)


def nut_27() -> PowerHost:
    """Return a host with NUT 2.7: master of one UPS."""
    said = {name: value for name, value in VARIABLES.items() if name not in NOT_OF_27}
    return _nut("master", {**said, "driver.version": "2.7.4"})


def with_apcupsd() -> PowerHost:
    """Return a host with apcupsd, at the cable of its UPS."""
    host = PowerHost("apcupsd.service")
    host.files["/etc/default/apcupsd"] = "# Apply configuration\nISCONFIGURED=yes\n"
    host.files[apcupsd.CONF] = (
        "## apcupsd.conf v1.1 ##\n#UPSNAME\nUPSCABLE usb\nUPSTYPE usb\nDEVICE\nLOCKFILE /var/lock\n"
        "SCRIPTDIR /etc/apcupsd\nPWRFAILDIR /etc/apcupsd\nONBATTERYDELAY 6\nBATTERYLEVEL 5\nMINUTES 15\nTIMEOUT 0\n"
        "KILLDELAY 0\nNETSERVER on\nNISIP 127.0.0.1\nNISPORT 3551\n"
    )
    host.program(
        "/etc/apcupsd/apccontrol",
        'SHUTDOWN=/sbin/shutdown\ncase "$1" in\n    doshutdown)\n\t${SHUTDOWN} -h now\n    ;;\nesac\n',
    )
    host.program("/lib/systemd/system-shutdown/apcupsd_shutdown")
    for event in apcupsd.EVENTS:
        host.program(f"/etc/apcupsd/{event}", f'#!/bin/sh\nNOTIFYTYPE={event} {HOOK} "$@"\n')
    host.nis = Nis()
    host.daemons["127.0.0.1", 3551] = host.nis
    return host


def _nut(kind: str, variables: Mapping[str, str]) -> PowerHost:
    host = PowerHost("nut-monitor.service")
    host.files["/etc/nut/nut.conf"] = "# see nut.conf(5)\nMODE=standalone\n"
    flags = "".join(f"NOTIFYFLAG {event} SYSLOG+EXEC\n" for event in EVENTS)
    host.files[UPSMON] = (
        f"RUN_AS_USER nut\nMONITOR rack@localhost 1 upsmon {SECRET} {kind}\nMINSUPPLIES 1\n"
        f'SHUTDOWNCMD "/sbin/shutdown -h +0"\nNOTIFYCMD {HOOK}\nPOLLFREQ 5\nPOLLFREQALERT 5\nHOSTSYNC 15\n'
        f"DEADTIME 15\nPOWERDOWNFLAG /etc/killpower\nFINALDELAY 5\n{flags}"
    )
    host.program("/lib/systemd/system-shutdown/nutshutdown")
    host.upsd = Upsd({"rack": variables})
    host.daemons["localhost", 3493] = host.upsd
    return host


def fix_of(condition: Condition) -> str:
    """Return the sentence that the controller writes for a condition's fixes; the facts check accepts them."""
    fixes = [each.as_dict() for each in condition.fixes]
    assert all(map(power_fixes.fits, fixes))
    return findings.fix_text(fixes)
