# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Queries of the tools of RAID controllers, each once, and the volume behind a block device."""

from __future__ import annotations

import threading
from collections.abc import Collection
from types import ModuleType
from typing import NamedTuple

from ...facts.classes import RaidFacts
from ...host import trusted_path
from ...host.observation import UNKNOWN, Because, Observation, because_of, caused
from ...host.seam import Host, Unobservable
from . import arcconf, ssacli, storcli
from .volume import Volume

TOOLS: tuple[ModuleType, ...] = (storcli, ssacli, arcconf)
#: Seconds that a tool may take: it asks each disk behind its controllers.
_TIMEOUT = 60.0


class Found(NamedTuple):
    """The volume that a block device is, or None; by which tool it is known, or why it is not."""

    volume: Volume | None
    seen: Observation


class Controllers:
    """The RAID controllers of one host."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._lock = threading.Lock()
        self._asked: dict[str, list[Volume] | Unobservable] = {}

    def find(self, driver: str, ids: Collection[str]) -> Found:
        """Return the volume with one of these ids (`volume.normal_id`) behind a driver's controller.

        Every installed tool for that driver's controllers is run. Two volumes that fit are none, nor is one
        about which two tools differ.
        """
        fitting, causes = self._fitting(driver, ids)
        states = {each[2:] for volumes in fitting.values() for each in volumes}
        if len(states) > 1:
            causes.append(Because("raid_contradiction"))
        if len(states) == 1 and all(len(volumes) < 2 for volumes in fitting.values()):
            program = next(program for program, volumes in fitting.items() if volumes)
            return Found(fitting[program][0], Observation(fitting[program][0].name, program))
        source = "the controller's tool"
        if causes:
            return Found(None, caused(UNKNOWN, source, "raid_tools", why=[each.as_dict() for each in causes]))
        wanted = [path for tool in TOOLS if driver in tool.DRIVERS for path in tool.PROGRAMS]
        if wanted:
            return Found(None, caused(UNKNOWN, source, "no_raid_tool", paths=wanted))
        return Found(None, caused(UNKNOWN, source, "no_known_raid_tool", driver=driver or UNKNOWN))

    def _fitting(self, driver: str, ids: Collection[str]) -> tuple[dict[str, list[Volume]], list[Because]]:
        """Return {program: volumes with one of these ids}, and what each program reports."""
        fitting: dict[str, list[Volume]] = {}
        causes = []
        for program, tool in self._programs(driver):
            try:
                fitting[program] = [each for each in self._ask(program, tool) if each.id and each.id in ids]
                count = {0: "none", 1: "one"}.get(len(fitting[program]), "several")
                causes.append(Because("raid_volumes", {"program": program, "count": count}))
            except Unobservable as error:
                causes.append(because_of(error, "raid_tool_unread"))
        return fitting, causes

    def _programs(self, driver: str) -> list[tuple[str, ModuleType]]:
        """Return each program that is there for a driver's controllers."""
        known = [(path, tool) for tool in TOOLS if driver in tool.DRIVERS for path in tool.PROGRAMS]
        return [(path, tool) for path, tool in known if self._host.exists(path)]

    def _ask(self, program: str, tool: ModuleType) -> list[Volume]:
        """Return what a program says of all volumes; it is run once. Raises Unobservable."""
        with self._lock:
            if program not in self._asked:
                self._asked[program] = self._volumes(program, tool)
            reported = self._asked[program]
        if isinstance(reported, Unobservable):
            raise reported
        return reported

    def _volumes(self, program: str, tool: ModuleType) -> list[Volume] | Unobservable:
        def ask(*arguments: str, any_exit: bool = False) -> str:
            result = self._host.run([program, *arguments], _TIMEOUT)
            if result.rc != 0 and not any_exit:
                reported = " ".join((result.stderr or result.stdout).split())[:200]
                raise Unobservable(f"{program} {' '.join(arguments)}: exit {result.rc}: {reported}")
            return result.stdout

        try:
            trusted_path.expect_program(self._host, program)
            return list(tool.volumes(ask))
        except Unobservable as error:
            return error
        except ValueError as error:
            return Unobservable(f"{program}: {error}")


def facts(found: Found) -> RaidFacts:
    """Return the facts `raid` of one volume, each `unknown` where it was not found."""
    if found.volume is None:
        return {"volume": None, "write_policy": UNKNOWN, "backup": UNKNOWN, "drive_caches": UNKNOWN}
    return {
        "volume": found.volume.name,
        "write_policy": found.volume.write_policy,
        "backup": found.volume.backup,
        "drive_caches": found.volume.drive_caches,
    }
