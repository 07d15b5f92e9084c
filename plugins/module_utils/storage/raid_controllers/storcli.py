# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MegaRAID and PERC, by the JSON of storcli and perccli."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from ...host import json_text
from ...host.observation import UNKNOWN
from . import volume
from .volume import Ask, Volume

DRIVERS = ("megaraid_sas",)
PROGRAMS = (
    "/opt/MegaRAID/storcli/storcli64",
    "/opt/MegaRAID/storcli/storcli",
    "/opt/MegaRAID/perccli/perccli64",
    "/opt/MegaRAID/perccli/perccli",
    "/usr/sbin/storcli64",
    "/usr/sbin/storcli",
    "/usr/sbin/perccli64",
    "/usr/sbin/perccli",
)
#: Without a log file in the directory where it runs.
_END = ("J", "nolog")
QUESTIONS = (
    ("/call/vall", "show", "all", *_END),
    ("/call", "show", "all", *_END),
    ("/call/bbu", "show", "all", *_END),
    ("/call/cv", "show", "all", *_END),
)

#: Read ahead (R, NR, Ra), write policy, direct or cached: as in RWBD, and in RAWBD, which writes back always. FWB is
#: PERC's word for AWB.
_CACHE = re.compile(r"(?:NR|Ra?)?(?P<write>AWB|FWB|WB|WT)[DC]?")
_WRITES = {
    "WB": volume.WRITE_BACK,
    "AWB": volume.ALWAYS_WRITE_BACK,
    "FWB": volume.ALWAYS_WRITE_BACK,
    "WT": volume.WRITE_THROUGH,
}
_DRIVES = {"enabled": volume.ENABLED, "disabled": volume.DISABLED}
#: Of a battery, CacheVault or HPE's Energy Pack, in small letters.
_STATES = {
    "optimal": volume.GOOD,
    "charging": volume.CHARGING,
    "learning": volume.CHARGING,
    "learn cycle active": volume.CHARGING,
    "degraded": volume.FAILED,
    "failed": volume.FAILED,
    "non operational": volume.FAILED,
    "critical": volume.FAILED,
    "missing": volume.MISSING,
    "absent": volume.MISSING,
    "not present": volume.MISSING,
}
#: What HwCfg calls it, in small letters: HPE's MR controllers share the server's Energy Pack.
_KINDS = ("bbu", "energy pack")
#: What must be No of a good one -> what it is where it is Yes, the worst first.
_FLAGS = {
    "Battery Pack Missing": volume.MISSING,
    "Battery Replacement required": volume.FAILED,
    "Replacement required": volume.FAILED,
    "Pack is about to fail & should be replaced": volume.FAILED,
    "Remaining Capacity Low": volume.FAILED,
    "No space to cache offload": volume.FAILED,
    "Learn Cycle Active": volume.CHARGING,
}
_BACKUP_SECTIONS = ("Cachevault_Info", "Firmware_Status", "BBU_Info", "BBU_Firmware_Status")
#: Here the state is called Status.
_PACK_SECTIONS = ("Energy Pack Info", "Energy_Pack_Info")


def volumes(ask: Ask) -> list[Volume]:
    """Return the volumes of all controllers. Raises Unobservable, ValueError."""
    # It ends with an error for each controller that has no battery, or no CacheVault.
    return parse(*(ask(*question, any_exit=True) for question in QUESTIONS))


def parse(text: str, *others: str) -> list[Volume]:
    """Return the volumes in the answer about all volumes; `others` tell of the controllers. Raises ValueError."""
    backups: dict[str, list[dict[str, Any]]] = {}
    for answer in others:
        for controller, data in _controllers(answer):
            backups.setdefault(controller, []).append(data)
    return [
        found
        for controller, data in _controllers(text)
        for found in _volumes(controller, data, _backup(backups.get(controller, [])))
    ]


def _controllers(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (number, response) of each controller that answered."""
    whole = json_text.loads(text)
    rows = whole.get("Controllers") if isinstance(whole, dict) else None
    if not isinstance(rows, list):
        raise ValueError("observed no list of controllers in its JSON; expected one")
    for row in rows:
        status, data = (_mapping(_mapping(row).get(key)) for key in ("Command Status", "Response Data"))
        if status.get("Status") == "Success":
            yield str(status.get("Controller")), data


def _volumes(controller: str, data: dict[str, Any], backup: str) -> Iterator[Volume]:
    for key, rows in data.items():
        number = re.fullmatch(r"/c\d+/v(\d+)", key)
        if number:
            shown = _mapping(rows[0] if isinstance(rows, list) and len(rows) == 1 else None)
            properties = _mapping(data.get(f"VD{number[1]} Properties"))
            yield Volume(
                name=f"/c{controller}/v{number[1]}",
                id=volume.normal_id(str(properties.get("SCSI NAA Id", ""))),
                write_policy=_write_policy(shown, properties),
                backup=backup,
                drive_caches=_DRIVES.get(str(properties.get("Disk Cache Policy")).lower(), UNKNOWN),
            )


def _write_policy(shown: dict[str, Any], properties: dict[str, Any]) -> str:
    """Return the policy in force, unknown if it is set to always write back and differs now."""
    found = _CACHE.fullmatch(str(shown.get("Cache")))
    policy = _WRITES[found["write"]] if found else UNKNOWN
    wanted = str(properties.get("Write Cache(initial setting)", "")).lower()
    forced = wanted.startswith(("always", "force", "awb", "fwb"))
    return UNKNOWN if forced and policy != volume.ALWAYS_WRITE_BACK else policy


def _backup(answers: Iterable[dict[str, Any]]) -> str:
    """Return the state of the battery or CacheVault of one controller, of all that its answers say of it."""
    answers = list(answers)
    reported = list(
        _said(row for data in answers for section in _BACKUP_SECTIONS for row in _rows(data.get(section)))
    )
    packs = (row for data in answers for section in _PACK_SECTIONS for row in _rows(data.get(section)))
    states = {value for key, value in reported if key in ("State", "Battery State")}
    states |= {value for key, value in _said(packs) if key in ("State", "Status")}
    if not states:
        return volume.MISSING if _present(answers) == {"absent"} else UNKNOWN
    flags = {found for key, value in reported for found in [_flag(key, value)] if found}
    found = {_STATES.get(state.lower(), UNKNOWN) for state in states} | flags
    order = (volume.MISSING, volume.FAILED, UNKNOWN, volume.CHARGING, volume.GOOD)
    return next(word for word in order if word in found)


def _present(answers: Iterable[dict[str, Any]]) -> set[str]:
    """Return what the controllers say of whether there is a battery or an Energy Pack, in small letters."""
    rows = (_mapping(data.get("HwCfg")) for data in answers)
    return {
        str(value).strip().lower()
        for row in rows
        for key, value in row.items()
        if key.strip().lower() in _KINDS
    }


def _flag(key: str, value: str) -> str | None:
    """Return what a flag makes of a battery, None for one that is well and for what is no flag."""
    if key not in _FLAGS or value == "No":
        return None
    return _FLAGS[key] if value == "Yes" else UNKNOWN


def _said(rows: Iterable[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield (property, value): a row has one of them, or the summary of all."""
    for row in rows:
        pairs = [(row["Property"], row.get("Value"))] if "Property" in row else list(row.items())
        yield from ((str(key).strip(), str(value).strip()) for key, value in pairs)


def _rows(section: Any) -> list[dict[str, Any]]:
    return [_mapping(row) for row in section] if isinstance(section, list) else []


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
