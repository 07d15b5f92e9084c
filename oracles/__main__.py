# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare our parsers of configuration files with the real programs, and predictions of the next boot with real boots.

    python3 -m oracles [--count 5000] [--minutes 45] [--seed N] [NAME...]

On one machine of the lab, with Debian's own programs. Exit code 1 when they disagree in a way that
has no name. A case is made again from its seed: --seed N --count 1. `boot` runs only if it is named, on a machine of
its own; its count is of boots.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence

from lab import layout, watch
from lab.machine import Machine
from lab.progress import say
from oracles import rig
from oracles.boot import rig as boot

MACHINE, BOOT = "oracles", "boot"
_FIRST_SEEDS = 10**9


def main(argv: list[str]) -> int:
    """Bring the machine up, ask all that were named, print, and end it."""
    parser = argparse.ArgumentParser(prog="python3 -m oracles", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join((*rig.NAMES, BOOT)))
    parser.add_argument("--count", type=int, help="cases of each, 5000; boots, 300")
    parser.add_argument("--minutes", type=float, help="longest for each, 45; for boots 180")
    parser.add_argument("--seed", type=int, default=random.randrange(_FIRST_SEEDS), help="of the first case")
    parser.add_argument("--release", default="bookworm")
    parser.add_argument("--short", action="store_true", help="boot: the fixed rounds of `make test`")
    parser.add_argument(
        "--plant",
        action="append",
        metavar="NAME+NAME",
        help="boot: one round with these saboteurs; again for more",
    )
    parser.add_argument(
        "--each", metavar="WORD", help="boot: one round for each saboteur with this in its name"
    )
    arguments = parser.parse_args(argv)
    watch.own()
    names = arguments.names or list(rig.NAMES)
    if unknown := set(names) - {*rig.NAMES, BOOT}:
        parser.error(
            f"no such oracle: {', '.join(sorted(unknown))}; there are {', '.join((*rig.NAMES, BOOT))}"
        )
    others = [name for name in names if name != BOOT]
    is_well = _read_cases(others, arguments) if others else True
    return 0 if (_boots(arguments) if BOOT in names else True) and is_well else 1


def _read_cases(names: Sequence[str], arguments: argparse.Namespace) -> bool:
    """Ask the oracles that read files; return whether all of them are well."""
    count, minutes = arguments.count or 5000, arguments.minutes or 45.0
    machine = Machine(MACHINE)
    machine.up(layout.load(rig.ROOT / "oracles/layout.yml"), arguments.release)
    try:
        rig.install(machine)
        all_well = True
        for name in names:
            say(f"{name}: from seed {arguments.seed}")
            found = rig.ask(machine, name, arguments.seed, count, minutes * 60)
            text, well = rig.report(name, found)
            print(text, flush=True)
            all_well = all_well and well
        return all_well
    finally:
        machine.down()


def _boots(arguments: argparse.Namespace) -> bool:
    """Run rounds of the boot oracle; return whether they are well."""
    limit = (arguments.minutes or 180.0) * 60
    machine = boot.machine(arguments.release)
    try:
        chain = boot.Chain(machine)
        chain.prepare()
        if arguments.short:
            rounds = boot.named(chain, boot.SHORT)
        elif arguments.plant:
            rounds = boot.named(chain, arguments.plant)
        elif arguments.each is not None:
            rounds = boot.each(chain, arguments.each)
        else:
            say(f"boot: from seed {arguments.seed}")
            rounds = boot.chosen(chain, arguments.seed, arguments.count or 300)
        text, is_well = boot.run(chain, rounds, limit)
        print(text, flush=True)
        return is_well
    finally:
        machine.down()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
