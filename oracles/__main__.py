# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hold our reading of configuration files against the programs that they are for.

    python3 -m oracles [--count 5000] [--minutes 45] [--seed N] [NAME...]

On one machine of the lab, with Debian's own programs. Exit code 1 when they disagree in a way that
has no name. A case is made again from its seed: --seed N --count 1.
"""

from __future__ import annotations

import argparse
import random
import sys

from lab import layout
from lab.machine import Machine
from lab.progress import say
from oracles import rig

MACHINE = "oracles"
_FIRST_SEEDS = 10**9


def main(argv: list[str]) -> int:
    """Bring the machine up, ask all that were named, print, and end it."""
    parser = argparse.ArgumentParser(prog="python3 -m oracles", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(rig.NAMES))
    parser.add_argument("--count", type=int, default=5000, help="cases of each")
    parser.add_argument("--minutes", type=float, default=45.0, help="longest for each")
    parser.add_argument("--seed", type=int, default=random.randrange(_FIRST_SEEDS), help="of the first case")
    parser.add_argument("--release", default="bookworm")
    arguments = parser.parse_args(argv)
    names = arguments.names or list(rig.NAMES)
    if unknown := set(names) - set(rig.NAMES):
        parser.error(f"no such oracle: {', '.join(sorted(unknown))}; there are {', '.join(rig.NAMES)}")
    machine = Machine(MACHINE)
    machine.up(layout.load(rig.ROOT / "oracles/layout.yml"), arguments.release)
    try:
        rig.install(machine)
        all_well = True
        for name in names:
            say(f"{name}: from seed {arguments.seed}")
            found = rig.ask(machine, name, arguments.seed, arguments.count, arguments.minutes * 60)
            text, well = rig.report(name, found)
            print(text, flush=True)
            all_well = all_well and well
        return 0 if all_well else 1
    finally:
        machine.down()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
