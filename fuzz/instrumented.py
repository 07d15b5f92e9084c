# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One target under atheris, that is libFuzzer: `python -m fuzz.instrumented TARGET [option of libFuzzer ...]`.

Ends at the first input that brings the target down, and writes it beside the corpus.
"""

from __future__ import annotations

import random
import sys
import zlib

import atheris

# Not RegEx: what it puts in the place of a pattern lacks arguments that patterns take.
atheris.enabled_hooks.add("str")
with atheris.instrument_imports(include=["ansible_collections.durable.dbhost"]):
    import fuzz.targets
    from fuzz import limits, run
    from fuzz.mutate import mutate, stretch
    from fuzz.target import TARGETS, Target

assert fuzz.targets
#: Of so many inputs one is made long as well, and one changed by what is known to mislead parsers.
_LONG, _KNOWN = 200, 8
#: How much longer a parser takes here: each of its branches is counted.
_SLOWER = 4


def main() -> None:
    """Run until libFuzzer ends the process."""
    target = TARGETS[sys.argv.pop(1)]
    corpus = target.corpus()
    limits.SECONDS *= _SLOWER

    def parse(data: bytes) -> None:
        target.check(data)
        seed = zlib.crc32(data)
        if seed % _LONG == 0:
            _parse_long(target, stretch(data, random.Random(seed), run.LONGEST))

    def change(data: bytes, most: int, seed: int) -> bytes:
        if seed % _KNOWN == 0:
            return mutate(data, random.Random(seed), corpus, most)
        return bytes(atheris.Mutate(data, most))

    atheris.Setup(sys.argv, parse, custom_mutator=change)
    atheris.Fuzz()


def _parse_long(target: Target, data: bytes) -> None:
    """Parse what libFuzzer has not made, and cannot write down."""
    try:
        target.check(data)
    except BaseException:
        (run.directory_of(target) / f"{run.FOUND}Long").write_bytes(data)
        raise


main()
