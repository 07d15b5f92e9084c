# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""galaxy_import.py TARBALL: let galaxy-importer judge a built collection.

The importer ends well with warnings and errors in its log; here each of them is a failure,
except what is listed in TOLERATED.
"""

from __future__ import annotations

import re
import subprocess
import sys

TOLERATED = (
    # The importer unpacks under a placeholder's name; ansible-lint of the checkout finds them.
    "Failed to find durable.dbhost.",
)


def complaints(log: str) -> list[str]:
    """Return the lines of the importer's log that complain, less the tolerated ones."""
    lines = re.findall(r"^(?:WARNING|ERROR|CRITICAL): .*$", log, re.M)
    return [line for line in lines if not any(reason in line for reason in TOLERATED)]


def main(tarball: str) -> int:
    """Run the importer and judge its log."""
    importer = subprocess.run(
        [sys.executable, "-m", "galaxy_importer.main", tarball],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print(importer.stdout)
    found = complaints(importer.stdout)
    for line in found:
        print(f"galaxy-importer complains: {line}")
    return 1 if importer.returncode or found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
