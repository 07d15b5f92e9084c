# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`python3 -m lab.vhost CONFIG.json`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lab.errors import LabError
from lab.vhost.config import load
from lab.vhost.server import Server


def main() -> int:
    """Serve until told to end; 1 if that cannot begin."""
    parser = argparse.ArgumentParser(
        prog="python3 -m lab.vhost", description="Serve the disks of one machine."
    )
    parser.add_argument("config", type=Path, help="the configuration, a JSON file")
    try:
        Server(load(parser.parse_args().config)).run()
    except (LabError, OSError) as error:
        print(f"lab.vhost: {error}", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
