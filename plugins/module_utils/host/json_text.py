# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON that another user wrote. Python's own parser accepts more than JSON and fails in several ways."""

from __future__ import annotations

import json
import math
from typing import Any

from . import bounds


def loads(text: str) -> Any:
    """Return the value of a JSON text.

    Raises ValueError for what is none, for what is nested too deep, and for numbers that are none, infinite or longer than
    64 bits.
    """
    try:
        return json.loads(text, parse_int=_whole, parse_float=_finite, parse_constant=_finite)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _whole(word: str) -> int:
    if len(word) > bounds.DIGITS:
        raise ValueError(f"observed {word[:40]}; expected a number of at most {bounds.DIGITS} digits")
    return int(word)


def _finite(word: str) -> float:
    number = float(word)
    if not math.isfinite(number):
        raise ValueError(f"observed {word[:40]}; expected a number")
    return number
