# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TLP and laptop-mode-tools, which set schedulers and write caches of disks as they start and as the power source changes."""

from __future__ import annotations

import re

from ..host.boot_files import existing, text_of
from ..host.seam import Host
from .acts import Act
from .starts import Starts

TLP, LAPTOP_MODE = "TLP", "laptop-mode-tools"
BY = f"{TLP}, {LAPTOP_MODE}"
#: The last file that sets a key counts.
_DEFAULT_TLP, _TLP_DIRECTORY, _TLP = "/etc/default/tlp", "/etc/tlp.d", "/etc/tlp.conf"
_OF_LAPTOP_MODE = "/etc/laptop-mode/laptop-mode.conf"
_LINE = re.compile(r"\s*(?P<key>[A-Z][A-Z0-9_]*)=(?P<value>\"[^\"]*\"|'[^']*'|[^\s#]*)\s*(?:#.*)?")
_CACHES = tuple(f"{mode}_HD_WRITECACHE" for mode in ("NOLM_AC", "NOLM_BATT", "LM"))


def collect(host: Host, starts: Starts) -> list[Act]:
    """Return what they set, if they start at boot. Raises Unobservable."""
    values: dict[str, tuple[str, str]] = {}
    for path in (_DEFAULT_TLP, *existing(host, _TLP_DIRECTORY, ".conf"), _TLP):
        values.update(parse(text_of(host, path), path))
    found = starts.of_unit(_of_tlp(values), ("tlp.service",))
    values = parse(text_of(host, _OF_LAPTOP_MODE), _OF_LAPTOP_MODE)
    return [*found, *starts.of_unit(_of_laptop_mode(values), ("laptop-mode.service",))]


def parse(text: str, path: str) -> dict[str, tuple[str, str]]:
    """Return {key: its last value, and file and line} of a file of variables."""
    found = {}
    for row, line in enumerate(text.split("\n"), 1):
        match = _LINE.fullmatch(line)
        if match:
            found[match["key"]] = (match["value"].strip("\"'"), f"{path} line {row}")
    return found


def _of_tlp(values: dict[str, tuple[str, str]]) -> list[Act]:
    """Return the schedulers, one for each device of a list that it names by kernel name or by link."""
    schedulers, source = values.get("DISK_IOSCHED", ("", ""))
    devices = values.get("DISK_DEVICES", ("", ""))[0].split()
    found = []
    for number, scheduler in enumerate(schedulers.split()):
        if scheduler != "keep":
            # Without the list it has devices of its own.
            device = devices[number] if number < len(devices) else "*"
            place = f"/dev/disk/by-id/{device}" if "-" in device else f"/sys/block/{device}"
            line = f"echo {scheduler} > {place}/queue/scheduler"
            found.append(Act(TLP, source, "script", (line, line), False))
    return found


def _of_laptop_mode(values: dict[str, tuple[str, str]]) -> list[Act]:
    """Return the write caches: which of them is set depends on the power source."""
    if values.get("CONTROL_HD_WRITECACHE", ("0", ""))[0] == "0":
        return []
    pairs = [values.get(key, ("1", values["CONTROL_HD_WRITECACHE"][1])) for key in _CACHES]
    commands = [(("hdparm", f"-W{value}", "/dev/*"), source) for value, source in pairs]
    return [Act(LAPTOP_MODE, source, "command", words, False) for words, source in commands]
