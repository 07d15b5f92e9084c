# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PostgreSQL: where its clusters are."""

from __future__ import annotations

import posixpath
import re

from ..host import Host
from ..observation import unknown
from ..paths import normal
from .instance import Instance, of_mains
from .processes import Process, Processes

NAME = "postgresql"
PROGRAMS = ("postgres", "postmaster", "edb-postgres")
UNITS = re.compile(r"postgresql(-[0-9][^/@]*)?(@.+)?\.service")
_CONFIG = "postgresql.conf"
_ETC = "/etc/postgresql"
_DEBIAN_TOOL = "/usr/bin/pg_ctlcluster"
_DEBIAN = re.compile(rf"{_ETC}/(?P<version>[^/]+)/(?P<cluster>[^/]+)/postgresql\.conf")
#: How a server that serves one client, or has one duty, calls itself: its postmaster is gone where
#: such a one has no parent of its kind.
_CHILD = re.compile(r"(?:edb-)?postgres: ")


def find(host: Host, processes: Processes) -> list[Instance]:
    """Return the clusters that run: each has one postmaster."""
    mains = processes.mains(PROGRAMS)
    found = of_mains(NAME, processes, mains, lambda main: _instance(processes, main))
    return [instance for instance in found if instance.name]


def installed(host: Host, units: list[str]) -> list[Instance]:
    """Return the clusters that could be started, whether or not they run.

    Debian keeps one configuration for each under /etc; elsewhere units tell.
    """
    configs = clusters(host)
    found = [
        Instance(NAME, name, config=f"{_ETC}/{name}/{_CONFIG}", unit=unit) for name, unit in configs.items()
    ]
    why = unknown("systemd", "it does not run, and its unit tells where its data lies only to itself")
    # Where Debian's tools are, this unit starts nothing itself, and is there without any server.
    umbrella = "postgresql.service" if host.exists(_DEBIAN_TOOL) else None
    others = (unit for unit in units if unit not in configs.values() and unit != umbrella)
    return [*found, *(Instance(NAME, unit, unit=unit, evidence=(("config", why),)) for unit in others)]


def clusters(host: Host) -> dict[str, str]:
    """Return {`version/cluster`: unit} of the clusters that Debian's tools know."""
    found = {}
    for version in host.names(_ETC) if host.exists(_ETC) else ():
        if not host.exists(f"/usr/lib/postgresql/{version}/bin/postgres"):
            continue  # The package is gone, its configuration was left.
        for name in host.names(f"{_ETC}/{version}"):
            if host.exists(f"{_ETC}/{version}/{name}/{_CONFIG}"):
                found[f"{version}/{name}"] = f"postgresql@{version}-{name}.service"
    return found


def _instance(processes: Processes, main: Process) -> Instance:
    argv = processes.argv(main)
    if _CHILD.match(argv[0]):
        return Instance(NAME, "")
    # A postmaster's working directory is its data directory, wherever -D points.
    data = processes.directory(main)
    base = _option(argv, "-D") or processes.environment(main, ["PGDATA"]).get("PGDATA") or data
    config = _setting(argv, "config_file") or posixpath.join(base, _CONFIG)
    config = normal(posixpath.join(data, config))
    debian = _DEBIAN.fullmatch(config)
    return Instance(
        engine=NAME,
        name=f"{debian['version']}/{debian['cluster']}" if debian else data,
        processes=processes.family(main, PROGRAMS),
        config=config,
        directories=(data,),
    )


def _option(argv: list[str], option: str) -> str | None:
    """Return the last value of a short option, in one word or in two."""
    found = None
    for index, word in enumerate(argv[1:], 1):
        if word == option and index + 1 < len(argv):
            found = argv[index + 1]
        elif word.startswith(option) and word != option:
            found = word[len(option) :]
    return found


def _setting(argv: list[str], name: str) -> str | None:
    """Return the last value of a parameter: `-c name=value`, `-cname=value` or `--name=value`."""
    found = None
    for index, word in enumerate(argv[1:], 1):
        if word.startswith("--"):
            said = word[2:]
        elif word.startswith("-c"):
            said = word[2:] or (argv[index + 1] if index + 1 < len(argv) else "")
        else:
            continue
        key, equals, value = said.partition("=")
        if equals and key.strip().replace("-", "_") == name:
            found = value
    return found
