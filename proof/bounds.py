# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How sure a count makes: exact bounds for a share, from a number of losses in a number of trials."""

from __future__ import annotations

import math
from collections.abc import Callable

CONFIDENCE = 0.95


def upper(losses: int, trials: int, confidence: float = CONFIDENCE) -> float:
    """Return the largest share that still gives so few losses with a probability of 1 - confidence.

    One-sided, for "at most". For no loss it is 1 - (1 - confidence) ** (1 / trials), about 3 / trials.
    """
    _check(losses, trials)
    if losses == trials:
        return 1.0
    if losses == 0:
        return -math.expm1(math.log1p(-confidence) / trials)
    return _solve(lambda share: _at_most(losses, trials, share), 1 - confidence)


def lower(losses: int, trials: int, confidence: float = CONFIDENCE) -> float:
    """Return the smallest share that still gives so many losses with a probability of 1 - confidence."""
    _check(losses, trials)
    return 1.0 - upper(trials - losses, trials, confidence)


def interval(losses: int, trials: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the two-sided interval of Clopper and Pearson."""
    each = (1 + confidence) / 2
    low = lower(losses, trials, each) if losses else 0.0
    return low, upper(losses, trials, each) if losses < trials else 1.0


def _check(losses: int, trials: int) -> None:
    if not 0 <= losses <= trials or not trials:
        raise ValueError(f"{losses} of {trials} is no share")


def _at_most(losses: int, trials: int, share: float) -> float:
    """Return the probability of at most so many losses."""
    logs = (
        math.lgamma(trials + 1)
        - math.lgamma(count + 1)
        - math.lgamma(trials - count + 1)
        + count * math.log(share)
        + (trials - count) * math.log1p(-share)
        for count in range(losses + 1)
    )
    return math.fsum(math.exp(value) for value in logs)


def _solve(falling: Callable[[float], float], value: float) -> float:
    """Return where a falling function of a share has a value, by halving."""
    low, high = 0.0, 1.0
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return high
        if falling(middle) > value:
            low = middle
        else:
            high = middle
