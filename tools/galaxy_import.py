# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""galaxy_import.py TARBALL: check a built collection with galaxy-importer.

The importer ends well with warnings and errors in its log; here each of them is a failure.
It does not run ansible-lint here: that checks the checkout, under the collection's name and with more rules.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys


def complaints(log: str) -> list[str]:
    """Return the lines of the importer's log that complain."""
    return re.findall(r"^(?:WARNING|ERROR|CRITICAL): .*$", log, re.M)


def main(tarball: str) -> int:
    """Run the importer and check its log."""
    importer = subprocess.run(
        [sys.executable, "-m", "galaxy_importer.main", tarball],
        env={**os.environ, "GALAXY_IMPORTER_RUN_ANSIBLE_LINT": "false"},
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
