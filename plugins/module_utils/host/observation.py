# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A value, where it was read, and why it could not be: nothing is known without a source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypedDict

from .seam import Unobservable

UNKNOWN = "unknown"
#: Stands for a missing entry of evidence or settings.
NOTHING: Mapping[str, Any] = MappingProxyType({})


class _Setter(TypedDict, total=False):
    by: str
    fix: str


class Evidence(_Setter):
    """One observation as JSON has it; `by` and `fix` only if there are any."""

    #: Text; null for the id of a disk without one; of a UPS's settings also a number.
    value: Any
    source: str
    reason: str | None


class Observation(NamedTuple):
    """One observed value, its source, and the reason when the value is `unknown`.

    `by`: the component that sets the value last. `fix`: what an administrator changes if it is not ours to set.
    """

    value: str
    source: str
    reason: str | None = None
    by: str | None = None
    fix: str | None = None

    def as_dict(self) -> Evidence:
        """Return the fields as JSON takes them."""
        found: Evidence = {"value": self.value, "source": self.source, "reason": self.reason}
        if self.by is not None:
            found["by"] = self.by
        if self.fix is not None:
            found["fix"] = self.fix
        return found


def unknown(source: str, reason: str) -> Observation:
    """Return the observation of a value that could not be read."""
    return Observation(UNKNOWN, source, reason)


def observe(source: str, read: Callable[[], str]) -> Observation:
    """Return what `read` gives; a failure to read or to understand becomes `unknown`."""
    try:
        return Observation(read(), source)
    except (Unobservable, ValueError) as error:
        return unknown(source, str(error))
