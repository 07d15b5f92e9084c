# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The package mirror: that of the build host's own apt configuration."""

from __future__ import annotations

import subprocess
from pathlib import Path

HONOURED = ("Acquire::http::", "Acquire::https::", "Acquire::Retries", "Acquire::ForceIPv4")


def mirror() -> str | None:
    """Return the URI of this Debian host's main archive; None leaves it to mmdebstrap."""
    host = dict(
        line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line
    )
    if host.get("ID", "").strip('"') != "debian":
        return None
    return main_archive(
        _output(
            "apt-get",
            "indextargets",
            "--no-release-info",
            "--format",
            "$(CREATED_BY) $(COMPONENT) $(RELEASE) $(REPO_URI)",
        ),
        host.get("VERSION_CODENAME", "").strip('"'),
    )


def main_archive(targets: str, codename: str) -> str | None:
    """Pick the archive that holds `codename` itself from lines of apt-get indextargets."""
    for line in targets.splitlines():
        created_by, component, release, uri = [*line.split(), "", "", "", ""][:4]
        if (created_by, component, release) == ("Packages", "main", codename):
            return uri.rstrip("/")
    return None


def apt_options() -> list[str]:
    """Return the host's proxy, certificate and retry settings as lines of apt.conf."""
    lines = _output("apt-config", "dump").splitlines()
    return [line for line in lines if line.startswith(HONOURED) and not line.endswith('"";')]


def _output(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout
