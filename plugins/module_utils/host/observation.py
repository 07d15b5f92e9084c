# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A value, where it was read, and why it could not be: nothing is known without a source."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .seam import Unobservable

UNKNOWN = "unknown"


class Observation(NamedTuple):
    """One observed value: its word, its source, and the reason when the word is `unknown`."""

    value: str
    source: str
    reason: str | None = None

    def as_dict(self) -> dict[str, str | None]:
        """Return the three fields as JSON takes them."""
        return self._asdict()


def unknown(source: str, reason: str) -> Observation:
    """Return what stands for a value that could not be read."""
    return Observation(UNKNOWN, source, reason)


def observe(source: str, read: Callable[[], str]) -> Observation:
    """Return what `read` gives; a failure to read or to understand becomes `unknown`."""
    try:
        return Observation(read(), source)
    except (Unobservable, ValueError) as error:
        return unknown(source, str(error))
