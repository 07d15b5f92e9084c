# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd itself makes of unit files: it loads them in a trial run and prints each unit."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

PROGRAM = "/lib/systemd/systemd"
#: From 257 on with a real arrow, whatever the locale.
_UNIT = re.compile(r"^\t(?:->|→) Unit (.*):$")
#: Seconds; a trial takes a few hundredths.
_LIMIT = 60
#: It refuses a trial run as root.
_NOBODY = 65534


def mounts(paths: Sequence[Path], names: Iterable[str], wanted: Path) -> dict[str, dict[str, str]]:
    """Return {name: {field: value}} of the mount units that load, from unit paths, the strongest first.

    Fields are as systemd prints them: Where, What, Options and the like. A unit that has no file of its
    own, is masked, or cannot be used is left out. `wanted` is an empty directory for a unit that asks for
    them. The names are those of mount points where nothing is mounted: else systemd would print the mount.
    """
    target = wanted / "oracle.target"
    wants = "".join(f"Wants={name}\n" for name in names)
    target.write_text(f"[Unit]\nDefaultDependencies=no\n{wants}", "utf-8", "surrogateescape")
    found = subprocess.run(
        [PROGRAM, "--test", "--system", f"--unit={target.name}"],
        user=_NOBODY,
        group=_NOBODY,
        extra_groups=[],
        env={
            "PATH": os.environ["PATH"],
            "SYSTEMD_LOG_LEVEL": "err",
            "SYSTEMD_LOG_TARGET": "console",
            "SYSTEMD_UNIT_PATH": ":".join(map(str, (*paths, wanted))),
            "SYSTEMD_GENERATOR_PATH": "",
            "SYSTEMD_ENVIRONMENT_GENERATOR_PATH": "",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_LIMIT,
        check=True,
    )
    return _read(found.stdout.decode("utf-8", "surrogateescape"))


def _read(text: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    fields: dict[str, str] = {}
    for line in text.split("\n"):
        heading = _UNIT.match(line)
        if heading:
            fields = found.setdefault(heading[1], {})
        elif not line.startswith("\t\t"):
            fields = {}
        else:
            name, _colon, value = line.strip("\t").partition(": ")
            fields.setdefault(name, value)
    return {
        name: fields
        for name, fields in found.items()
        if name.endswith(".mount") and fields.get("Unit Load State") == "loaded" and "Where" in fields
    }
