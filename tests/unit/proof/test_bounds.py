# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bounds, against values that are in tables and against their own definition."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proof import bounds


@pytest.mark.parametrize(
    ("losses", "trials", "expected"),
    [
        # Clopper and Pearson, 95 %, from printed tables.
        (0, 10, (0.0, 0.3085)),
        (1, 10, (0.0025, 0.4450)),
        (5, 10, (0.1871, 0.8129)),
        (10, 10, (0.6915, 1.0)),
        (2, 100, (0.0024, 0.0704)),
    ],
)
def test_the_interval_is_that_of_the_tables(losses: int, trials: int, expected: tuple[float, float]) -> None:
    """To four places."""
    assert bounds.interval(losses, trials) == pytest.approx(expected, abs=6e-5)


def test_no_loss_in_a_thousand_cuts() -> None:
    """The rule of three, exactly."""
    assert bounds.upper(0, 1000) == pytest.approx(1 - 0.05 ** (1 / 1000), rel=1e-12)
    assert bounds.upper(0, 1000) == pytest.approx(3 / 1000, rel=0.01)


@settings(deadline=None)
@given(st.integers(1, 400), st.data())
def test_the_bound_is_where_the_binomial_says(trials: int, data: st.DataObject) -> None:
    """With that share, so few losses have a probability of 5 %."""
    losses = data.draw(st.integers(0, trials - 1))
    share = bounds.upper(losses, trials)
    few = sum(math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(losses + 1))
    assert few == pytest.approx(0.05, rel=1e-6)
    assert bounds.lower(trials - losses, trials) == pytest.approx(1 - share)
    low, high = bounds.interval(losses, trials)
    assert low <= losses / trials <= high


@pytest.mark.parametrize(("losses", "trials"), [(0, 0), (2, 1), (-1, 5)])
def test_what_is_no_share_is_refused(losses: int, trials: int) -> None:
    """A cell without cuts has no bound."""
    with pytest.raises(ValueError, match="is no share"):
        bounds.upper(losses, trials)
