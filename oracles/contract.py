# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface of an oracle: a module of this package that compares our parser with a real program.

It has

    KNOWN: {class of disagreement: why it is let stand}
    prepare(directory: Path) -> Case

`prepare` runs once, as root, on the machine: it may write below `directory`, which is empty and
everybody may enter, and elsewhere on the machine what the program needs. It raises FileNotFoundError
where the program is missing. The case that it returns builds one hostile configuration from the
random numbers that it is given, and from nothing else, asks our reading and the program, and says how
they compare. It cleans up after itself: what one case leaves must not change the next.

Runs on Python 3.9 without any package, with module_utils as ansible_collections.durable.dbhost.plugins.module_utils.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

AGREED, DECLINED, DISAGREED = "agreed", "declined", "disagreed"


class Answer(NamedTuple):
    """How our reading and the program's compare in one case.

    `verdict` is AGREED; DECLINED where our reading says unknown or refuses, which is safe whatever the
    program says; or DISAGREED, with `seen`, the configuration and what each of them says of it, and
    `known`, a name of the module's KNOWN, '' for none.
    """

    verdict: str
    seen: str = ""
    known: str = ""


Case = Callable[[random.Random], Answer]

agreed = Answer(AGREED)
declined = Answer(DECLINED)


def disagreed(seen: str, known: str = "") -> Answer:
    """Return a disagreement: what was configured, what we say, what the program says."""
    return Answer(DISAGREED, seen, known)


def compare(configured: object, ours: object, theirs: object, known: str = "") -> Answer:
    """Return agreed where both say the same, else the disagreement in words."""
    if ours == theirs:
        return agreed
    return disagreed(f"configured {configured!r}\n  ours   {ours!r}\n  theirs {theirs!r}", known)


def mostly(numbers: random.Random, usual: Sequence[str], odd: Sequence[str], share: float = 0.08) -> str:
    """Return one of the usual words or, in a `share` of the cases, of the odd ones."""
    return numbers.choice(odd if numbers.random() < share else usual)
