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
    """One observed value, its source, and the reason when the value is `unknown`.

    `by`: the component that sets the value last. `fix`: what an administrator changes if it is not ours to set.
    """

    value: str
    source: str
    reason: str | None = None
    by: str | None = None
    fix: str | None = None

    def as_dict(self) -> dict[str, str | None]:
        """Return the fields as JSON takes them; `by` and `fix` only if there are any."""
        return {
            key: text for key, text in self._asdict().items() if text is not None or key not in ("by", "fix")
        }


def unknown(source: str, reason: str) -> Observation:
    """Return what stands for a value that could not be read."""
    return Observation(UNKNOWN, source, reason)


def observe(source: str, read: Callable[[], str]) -> Observation:
    """Return what `read` gives; a failure to read or to understand becomes `unknown`."""
    try:
        return Observation(read(), source)
    except (Unobservable, ValueError) as error:
        return unknown(source, str(error))
