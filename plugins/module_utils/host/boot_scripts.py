# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scripts and commands that run at each boot: rc.local, SysV scripts by systemd-sysv-generator(8), cloud-init's, and cron's
@reboot; and those that run later: cron's other lines, jobs of at(1), and scripts of the network, sleep and initramfs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from . import shell_lines, units
from .boot_files import existing, text_of
from .seam import Host, TooLong
from .system_conf import names_in

ROOT = "root"
RC_LOCAL, SYSV, CLOUD_INIT, CRON = "rc.local", "SysV script", "cloud-init", "cron"
NETWORK, INITRAMFS, SLEEP, AT = "network script", "initramfs script", "sleep script", "at"
_RC_LOCAL = ("/etc/rc.local", "/etc/rc.d/rc.local", "/etc/init.d/boot.local", "/etc/init.d/after.local")
_SYSV = ("/etc/init.d", "/etc/rc.d/init.d")
_LEVELS = tuple(f"{base}/rc{level}.d" for base in ("/etc", "/etc/rc.d") for level in "2345S")
#: cloud-init runs each program there at each boot, unless this file is there.
_CLOUD, _NO_CLOUD = "/var/lib/cloud/scripts/per-boot", "/etc/cloud/cloud-init.disabled"
_START = re.compile(r"S\d\d(?P<name>.+)")
_EXECUTABLE, _SHEBANG = 0o111, "#!"
#: Tables whose commands follow the name of a user, and the directories of the users' own tables.
_TABLE, _TABLES = "/etc/crontab", "/etc/cron.d"
_TABLES_OF_USERS = ("/var/spool/cron/crontabs", "/var/spool/cron/tabs", "/var/spool/cron")
_REBOOT = re.compile(r"\s*@reboot\s+(?P<command>.*)")
#: Another time, of five fields or by a name: crontab(5).
_LATER = re.compile(r"\s*(?:@(?!reboot)[a-z]\S*|-?[\d*]\S*(?:\s+[\w*]\S*){4})\s+(?P<command>.*)", re.ASCII)
#: anacrontab(5): period, delay in minutes, the job's name, and the command, which root runs.
_ANACRONTAB, _JOB = "/etc/anacrontab", re.compile(r"\s*(?:\d+|@\w+)\s+\d+\s+\S+\s+(?P<command>.*)", re.ASCII)
#: Directories whose scripts root runs again and again, and those whose scripts it runs as a network interface comes up.
_PERIODS = tuple(f"/etc/cron.{period}" for period in ("hourly", "daily", "weekly", "monthly"))
#: Those of initramfs-tools(7) that an administrator adds: they act once the next initramfs is made.
_INITRAMFS = tuple(
    f"/etc/initramfs-tools/scripts/{phase}"
    for phase in "init-top init-premount local-top local-block local-premount local-bottom init-bottom".split()
)
_NETWORK = (
    "/etc/NetworkManager/dispatcher.d",
    "/etc/NetworkManager/dispatcher.d/pre-up.d",
    "/etc/NetworkManager/dispatcher.d/no-wait.d",
    *(
        f"/etc/networkd-dispatcher/{state}.d"
        for state in ("carrier", "configuring", "configured", "degraded", "routable")
    ),
    "/etc/network/if-pre-up.d",
    "/etc/network/if-up.d",
)
#: Files that dhclient-script(8) sources as it gets an address, and those of its directories.
_DHCP = tuple(f"/etc/dhcp/dhclient-{phase}-hooks" for phase in ("enter", "exit"))
#: interfaces(5): commands of an interface that comes up, and patterns of its other files.
_INTERFACES, _UP = "/etc/network/interfaces", re.compile(r"(?:pre-|post-)?up\s+(?P<command>.*)")
_SOURCE = re.compile(r"source(?P<directory>-directory)?\s+(?P<pattern>.*)")
#: systemd-suspend.service(8), and the jobs of at(1): atd runs each as the user who owns its file.
_SLEEPS = ("/usr/lib/systemd/system-sleep", "/lib/systemd/system-sleep")
_JOBS = ("/var/spool/cron/atjobs", "/var/spool/at", "/var/spool/atjobs")
#: Debian's cron reads files with such names alone (its README); with -l in this file, which has its arguments, others too.
_NAME, _ARGUMENTS = re.compile(r"[\w-]+", re.ASCII), "/etc/default/cron"
_LONG_NAMES = re.compile(r"(?m)^(?!\s*#).*\s?-\w*l")
#: Programs of Debian's cron and of cronie, and what the latter passes over in /etc/cron.d (its database.c).
_DEBIANS, _CRONIES = ("/usr/sbin/cron",), ("/usr/sbin/crond", "/usr/sbin/cronie")
_BACKUP = re.compile(r"#.*|.*(?:~|\.rpm(?:save|orig|new))")


class Command(NamedTuple):
    """A line of a table of cron: what it runs, its file and line, the user as whom, and the table."""

    text: str
    source: str
    user: str
    table: str

    @property
    def is_roots(self) -> bool:
        """Whether root runs it. What sudo(8) allows to another user is unknown."""
        return self.user == ROOT


class Table(NamedTuple):
    """A table of cron, and whether its commands follow the name of a user; else its own name is the user."""

    path: str
    text: str
    has_users: bool


def scripts(host: Host) -> list[tuple[str, str]]:
    """Return path and component of each script that a boot runs. Raises Unobservable."""
    there = (path for path in _RC_LOCAL if host.exists(path))
    found = [(path, RC_LOCAL) for path in there if host.mode(path) & _EXECUTABLE]
    found += ((path, SYSV) for path in _sysv(host))
    cloud = existing(host, _CLOUD) if not host.exists(_NO_CLOUD) else []
    return [*found, *((path, CLOUD_INIT) for path in cloud if _script(host, path))]


def _script(host: Host, path: str) -> str:
    """Return the text of an executable file that begins as a script does, '' for any other. Raises Unobservable."""
    if not host.exists(host.resolve(path)) or not host.mode(path) & _EXECUTABLE:
        return ""
    try:
        text = text_of(host, path)
    except TooLong:
        return ""
    return text if text.startswith(_SHEBANG) else ""


def tables(host: Host) -> list[Table]:
    """Return the tables of cron with their texts. Raises Unobservable."""
    paths = (path for directory in _TABLES_OF_USERS for path in existing(host, directory))
    found = [Table(path, text_of(host, path), True) for path in (_TABLE, *_tables(host))]
    return [*found, *(Table(path, text_of(host, path), False) for path in paths)]


def commands(of_cron: Iterable[Table]) -> list[Command]:
    """Return what cron runs at a boot."""
    return [command for table in of_cron for command in parse_table(table.text, table.path, table.has_users)]


def later(host: Host, of_cron: Iterable[Table]) -> list[Command]:
    """Return what root runs at other times than a boot, by cron's tables and by anacron's. Raises Unobservable."""
    found = [
        each for table in of_cron for each in parse_table(table.text, table.path, table.has_users, _LATER)
    ]
    found += (
        each._replace(user=ROOT) for each in parse_table(text_of(host, _ANACRONTAB), _ANACRONTAB, False, _JOB)
    )
    return [each for each in found if each.is_roots]


def later_scripts(host: Host) -> list[tuple[str, str, str]]:
    """Return path, component and text of each script that root runs at other times, as the network comes up, around a sleep, or
    in the initramfs.

    Raises Unobservable.
    """
    found = [(path, CRON) for directory in _PERIODS for path in existing(host, directory)]
    found += ((path, NETWORK) for directory in _NETWORK for path in existing(host, directory))
    found += ((path, INITRAMFS) for directory in _INITRAMFS for path in existing(host, directory))
    found += (
        (path, SLEEP)
        for directory in dict.fromkeys(map(host.resolve, _SLEEPS))
        for path in existing(host, directory)
    )
    found += (
        (path, AT) for directory in _JOBS for path in existing(host, directory) if _is_roots(host, path)
    )
    read = [(path, by, _script(host, path)) for path, by in found]
    sourced = (path for base in _DHCP for path in (base, *existing(host, f"{base}.d")))
    read += ((path, NETWORK, text_of(host, path)) for path in sourced)
    return [each for each in read if each[2]]


def of_interfaces(host: Host) -> list[Command]:
    """Return what ifupdown runs as an interface comes up. Raises Unobservable."""
    found: list[Command] = []
    paths = dict.fromkeys((_INTERFACES, *existing(host, f"{_INTERFACES}.d")))
    waiting = list(paths)
    for path in waiting:
        for row, line in shell_lines.lines(text_of(host, path)):
            up, source = _UP.fullmatch(line), _SOURCE.fullmatch(line)
            if up:
                found.append(Command(up["command"], f"{path} line {row}", ROOT, path))
            more = _sourced(host, path, source) if source else ()
            waiting += (each for each in more if each not in paths)
            paths.update(dict.fromkeys(more))
    return found


def _sourced(host: Host, path: str, source: re.Match[str]) -> list[str]:
    """Return the files that a line of interfaces(5) in the file `path` names by a pattern. Raises Unobservable."""
    pattern = f"{source['pattern']}/*" if source["directory"] else source["pattern"]
    directory, name = posixpath.split(posixpath.join(posixpath.dirname(path), pattern))
    # By one name each, so that files that name each other have an end.
    real = host.resolve(posixpath.normpath(directory))
    return [each for each in existing(host, real) if fnmatchcase(posixpath.basename(each), name)]


def parse_table(text: str, path: str, has_users: bool, when: re.Pattern[str] = _REBOOT) -> Iterator[Command]:
    """Yield the lines of a table that run as the host starts, or at the times that `when` matches."""
    for row, line in enumerate(text.split("\n"), 1):
        found = when.fullmatch(line)
        if found:
            command, user = found["command"], posixpath.basename(path)
            if has_users:
                user, command = (*command.split(None, 1), "")[:2]
            yield Command(command.strip(), f"{path} line {row}", user, path)


def _tables(host: Host) -> list[str]:
    """Return the files in cron's directory of tables that it reads. Raises Unobservable."""
    paths = [path for path in existing(host, _TABLES) if not _BACKUP.fullmatch(posixpath.basename(path))]
    if all(_NAME.fullmatch(posixpath.basename(path)) for path in paths):
        return paths
    is_debians = any(map(host.exists, _DEBIANS)) and not any(map(host.exists, _CRONIES))
    if not is_debians or _LONG_NAMES.search(text_of(host, _ARGUMENTS)):
        return paths
    return [path for path in paths if _NAME.fullmatch(posixpath.basename(path))]


def _sysv(host: Host) -> list[str]:
    """Return the scripts that are executable, linked in a run level, and without a native unit."""
    links = (name for directory in _LEVELS for name in names_in(host, directory))
    started = (_START.fullmatch(name) for name in links)
    names = dict.fromkeys(each["name"] for each in started if each)
    found = []
    for name in names:
        if _has_unit(host, name):
            continue
        paths = (f"{directory}/{name}" for directory in _SYSV)
        # A link may have outlived its script.
        there = (path for path in paths if host.exists(host.resolve(path)))
        found += [path for path in there if host.mode(path) & _EXECUTABLE][:1]
    return found


def _has_unit(host: Host, name: str) -> bool:
    """Return whether a file that outlives a boot has the script's unit: its own, an alias or a mask."""
    unit = f"{name[: -len('.sh')] if name.endswith('.sh') else name}.service"
    return any(host.exists(f"{base}/{unit}") for base in units.DIRECTORIES if not base.startswith("/run/"))


def _is_roots(host: Host, path: str) -> bool:
    """Return whether root owns a file. Raises Unobservable."""
    status = host.locate(path).status if host.exists(host.resolve(path)) else None
    return status is not None and status.user == 0
