# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Print the running values of this machine, as JSON, by serial number and mount point.

Runs on the machine. It shares no code with the collection, and reads as little as possible through udev and systemd: the
saboteurs change what these say.
"""

from __future__ import annotations

import glob
import json
import os
import re
import subprocess
import sys
from typing import Any

_SERIAL = re.compile(r"(SCSI|VIRT)\d+")
#: PostgreSQL -> what asks it; MariaDB likewise. Both answer `name TAB value`.
_POSTGRESQL = "select name, setting from pg_settings"
_ROLES = "select unnest(setconfig) from pg_db_role_setting"
_MARIADB = "show global variables"
#: Libraries that take flushes away.
_PRELOADS = ("libeatmydata",)


def look() -> dict[str, Any]:
    """Return {disks: {serial: ...}, mounts: {target: ...}, engines: {engine: ...}, root: rw or ro}."""
    mounts = _mounts()
    return {
        "disks": _disks(),
        "mounts": mounts,
        "root": mounts.get("/", {}).get("access", "unknown"),
        "engines": {"postgresql": _postgresql(), "mariadb": _mariadb()},
        "preloads": _preloads(),
    }


def _disks() -> dict[str, dict[str, str]]:
    found = {}
    for name in sorted(os.listdir("/sys/block")):
        serial = _serial(name)
        if serial:
            queue = f"/sys/block/{name}/queue"
            chosen = re.search(r"\[(.+)\]", _text(f"{queue}/scheduler"))
            found[serial] = {
                "name": name,
                "write_cache": "enabled" if _caches(name) else "disabled",
                "kernel_cache_mode": _text(f"{queue}/write_cache"),
                "scheduler": chosen[1] if chosen else "",
                "readahead": _text(f"{queue}/read_ahead_kb"),
            }
    return found


def _serial(name: str) -> str:
    """Return a disk's serial number from the device itself, '' for a disk that is not the lab's."""
    if name.startswith("vd"):
        words = _text(f"/sys/block/{name}/serial")
    elif name.startswith("sd"):
        words = _bytes(f"/sys/block/{name}/device/vpd_pg80")[4:].decode("ascii", "replace").strip("\0 ")
    else:
        return ""
    return words if _SERIAL.fullmatch(words) else ""


def _caches(name: str) -> bool:
    """Tell whether the device's write cache is on. A device that does not answer counts as one that caches."""
    if name.startswith("vd"):
        return _text(f"/sys/block/{name}/cache_type") != "write through"
    return "0x00" not in _run("sdparm", "-q", "-r", "--get", "WCE=1", "-H", f"/dev/{name}")


def _mounts() -> dict[str, dict[str, str]]:
    found = {}
    for line in _text("/proc/self/mountinfo").splitlines():
        before, _dash, after = line.partition(" - ")
        number, root, target, options = before.split()[2:6]
        fstype, _source, super_options = after.split()[:3]
        if fstype not in ("ext2", "ext3", "ext4", "xfs") or root != "/":
            continue
        name = os.path.basename(os.path.realpath(f"/sys/dev/block/{number}"))
        kernel = _text(f"/proc/fs/ext4/{name}/options").split()
        words = [*options.split(","), *super_options.split(",")]
        # The last one of several on one mount point is visible.
        found[target] = {
            "uuid": _run("blkid", "-p", "-s", "UUID", "-o", "value", f"/dev/{name}"),
            "fstype": fstype,
            "device": name,
            "serial": _serial(name),
            "access": "ro" if "ro" in words else "rw",
            "barrier": "off" if "nobarrier" in kernel or "nobarrier" in words else "on",
            "data_mode": next((word[5:] for word in kernel if word.startswith("data=")), "none"),
            "atime": _atime(options.split(",")),
            "readahead": _text(f"/sys/block/{name}/queue/read_ahead_kb"),
        }
    return found


def _atime(options: list[str]) -> str:
    return next((word for word in ("noatime", "relatime") if word in options), "strictatime")


def _postgresql() -> dict[str, Any]:
    """Return the settings of the cluster, and `roles`: those of roles and databases; empty if it does not answer."""
    ask = [
        "setpriv",
        "--reuid",
        "postgres",
        "--regid",
        "postgres",
        "--init-groups",
        "psql",
        "-qAtX",
        "-F",
        "\t",
        "-c",
    ]
    found: dict[str, Any] = _pairs(_run(*ask, _POSTGRESQL))
    if found:
        found["roles"] = _run(*ask, _ROLES).splitlines()
    return found


def _mariadb() -> dict[str, Any]:
    return _pairs(_run("mariadb", "-N", "-B", "-e", _MARIADB))


def _preloads() -> list[str]:
    """Return the database servers' programs that have a library loaded that takes flushes away."""
    found = set()
    for path in glob.glob("/proc/[0-9]*/maps"):
        program = os.path.basename(_link(f"{os.path.dirname(path)}/exe"))
        if program in ("postgres", "mariadbd", "mysqld") and any(word in _text(path) for word in _PRELOADS):
            found.add(program)
    return sorted(found)


def _pairs(text: str) -> dict[str, Any]:
    return {name: value for name, tab, value in (line.partition("\t") for line in text.splitlines()) if tab}


def _text(path: str) -> str:
    return _bytes(path).decode("utf-8", "replace").strip()


def _bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as handle:
            return handle.read()
    except OSError:
        return b""


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _run(*argv: str) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


if __name__ == "__main__":
    json.dump(look(), sys.stdout)
