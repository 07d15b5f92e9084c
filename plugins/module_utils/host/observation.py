# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A value, its source, or the reason why it could not be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypedDict

from .seam import Unobservable

UNKNOWN = "unknown"
#: Stands for a missing entry of evidence or settings.
NOTHING: Mapping[str, Any] = MappingProxyType({})


class Because(NamedTuple):
    """Why a value is unknown, or what made it: a keyword of facts/value_causes.py and its parameters."""

    cause: str
    parameters: Mapping[str, Any] = MappingProxyType({})

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        return {"cause": self.cause, "parameters": dict(self.parameters)}

    def __str__(self) -> str:
        """Return the keyword and the values, for messages that a host writes."""
        rows = {
            name: value if isinstance(value, list) else [value] for name, value in self.parameters.items()
        }
        shown = (
            f"{name}: {', '.join(str(Because(**each)) if isinstance(each, dict) else str(each) for each in row)}"
            for name, row in rows.items()
        )
        return f"{self.cause} ({'; '.join(shown)})" if rows else self.cause


class Undecided(Unobservable):
    """A value is unknown, for a cause that has a keyword."""

    def __init__(self, cause: str, /, **values: Any) -> None:
        self.because = Because(cause, values)
        super().__init__(str(self.because))


class _OfStorage(TypedDict, total=False):
    by: str
    precedence: str
    cause: str
    parameters: dict[str, Any]


class Evidence(_OfStorage):
    """One observation as JSON has it.

    `reason`: the error with which a value could not be read. Storage facts may have `cause` and `parameters` in its place, and
    `by` and `precedence` of a value at the next boot.
    """

    #: Text; null for the id of a disk without one; of a UPS's settings also a number.
    value: Any
    source: str
    reason: str | None


class Observation(NamedTuple):
    """One observed value, its source, and the reason or cause when the value is `unknown`.

    `by`: the component that sets the value last. `precedence`: `theirs` if no rule of ours can take precedence over it.
    """

    value: str
    source: str
    reason: str | None = None
    because: Because | None = None
    by: str | None = None
    precedence: str | None = None

    def as_dict(self) -> Evidence:
        """Return the fields as JSON takes them."""
        found: Evidence = {"value": self.value, "source": self.source, "reason": self.reason}
        if self.because is not None:
            found["cause"], found["parameters"] = self.because.cause, dict(self.because.parameters)
        if self.by is not None:
            found["by"] = self.by
        if self.precedence is not None:
            found["precedence"] = self.precedence
        return found


def unknown(source: str, why: str | Because) -> Observation:
    """Return the observation of a value that could not be read, with the text of an error or a cause."""
    if isinstance(why, Because):
        return Observation(UNKNOWN, source, because=why)
    return Observation(UNKNOWN, source, why)


def caused(value: str, source: str, cause: str, /, **values: Any) -> Observation:
    """Return a value with the cause that made it so."""
    return Observation(value, source, because=Because(cause, values))


def unread(source: str, error: Exception) -> Observation:
    """Return the observation of a value that could not be read or understood, with the cause or the text of the error."""
    return unknown(source, why_of(error))


def why_of(error: Exception) -> str | Because:
    """Return the cause of an error, or the text of one without a cause."""
    return error.because if isinstance(error, Undecided) else str(error)


def because_of(error: Exception, cause: str = "unread", **values: Any) -> Because:
    """Return the cause of an error; of one without a cause its text, as the value `error` of this cause."""
    return error.because if isinstance(error, Undecided) else Because(cause, {**values, "error": str(error)})


def observe(source: str, read: Callable[[], str]) -> Observation:
    """Return what `read` gives; a failure to read or to understand becomes `unknown`."""
    try:
        return Observation(read(), source)
    except (Unobservable, ValueError) as error:
        return unread(source, error)
