# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One target under atheris, that is libFuzzer: `python -m fuzz.instrumented TARGET [option of libFuzzer ...]`.

Ends at the first input that the target may not be brought down by, and writes it to -artifact_prefix.
"""

from __future__ import annotations

import random
import sys

import atheris

# Not RegEx: what it puts in the place of a pattern lacks arguments that patterns take.
atheris.enabled_hooks.add("str")
with atheris.instrument_imports(include=["ansible_collections.durable.dbhost"]):
    import fuzz.targets
    from fuzz import limits
    from fuzz.mutate import mutate, stretch
    from fuzz.target import TARGETS

assert fuzz.targets
#: Of so many inputs one is made long, and one changed by what is known to mislead parsers.
_LONG, _KNOWN = 200, 8
#: How much longer a parser takes here: each of its branches is counted.
_SLOWER = 4


def main() -> None:
    """Run until libFuzzer ends the process."""
    target = TARGETS[sys.argv.pop(1)]
    corpus = target.corpus()
    limits.SECONDS *= _SLOWER

    def change(data: bytes, most: int, seed: int) -> bytes:
        chance = random.Random(seed)
        if seed % _LONG == 0:
            return stretch(data, chance, most)
        if seed % _KNOWN == 0:
            return mutate(data, chance, corpus, most)
        return bytes(atheris.Mutate(data, most))

    atheris.Setup(sys.argv, target.check, custom_mutator=change)
    atheris.Fuzz()


main()
