# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fail for each function of the plugins that has more branches than MOST.

radon counts conditions of expressions and of comprehensions too, which ruff's C901 leaves out.
"""

from __future__ import annotations

import sys

from radon.complexity import cc_visit
from venvs import ROOT

MOST = 20


def too_complex(text: str) -> list[tuple[int, str, int]]:
    """Return line, name and complexity of each function of a source that is above MOST."""
    found = ((block.lineno, block.fullname, block.complexity) for block in cc_visit(text))
    return [each for each in found if each[2] > MOST]


def main() -> int:
    """Show the functions."""
    failed = False
    for path in sorted((ROOT / "plugins").rglob("*.py")):
        for line, name, complexity in too_complex(path.read_text(encoding="utf-8")):
            failed = True
            where = f"{path.relative_to(ROOT)}:{line}"
            print(
                f"{where}: {name} has complexity {complexity}; permitted are {MOST}. Fix: split it by meaning"
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
