# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory's variables of a host, and whether their values are valid. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...profiles import BadInput, Profile, Refusal, as_list, choose, near
from ...rows import FAIL_ON, VERDICTS
from . import variable_names as names

#: Seconds after which a host rolls back automatically; the minimum leaves time to boot.
UNDO_AFTER, _LEAST_UNDO, _MOST_UNDO = 900, 60, 86400
#: Seconds after which a run gives up a host that does not answer, with minimum and maximum. It is shorter than UNDO_AFTER,
#: because the rollback timers of the other hosts of a batch run meanwhile.
TIME_LIMIT, _LEAST_LIMIT, _MOST_LIMIT = 600, 10, 86400
#: Permissions that durable_allow may give.
PERMISSIONS = ("restart_engines", "reboot", "alter_system")


class Inputs(NamedTuple):
    """The inventory's variables of one host, as written; read by `assess`.

    `ups` is `durable_ups` without the password of its monitor; `names` are those of all variables of the
    host, to find a misspelt one. `unreadable` has each variable that Ansible cannot read, with its error; its value here is
    the default. `benchmark` is the text of its stored benchmark, '' for none and None for an unreadable one.
    """

    profile: Any = None
    shipped: Any = None
    own: Any = None
    overrides: Any = None
    attestations: Any = None
    mounts: Any = None
    databases: Any = None
    mount_profiles: Any = None
    ignore: Any = None
    accept: Any = None
    allow: Any = ()
    layers: Any = None
    accept_data_loss: Any = False
    undo_after: Any = UNDO_AFTER
    time_limit: Any = TIME_LIMIT
    fail_on: Any = FAIL_ON
    ups: Any = None
    rate: bool = False
    names: Any = ()
    unreadable: Sequence[tuple[str, str]] = ()
    benchmark: str | None = ""

    def check(self) -> None:
        """Refuse unknown values. Raises BadInput."""
        wrong = list(self._errors())
        if wrong:
            raise BadInput(*wrong)

    def _errors(self) -> Iterator[str]:
        """Yield the errors of each variable that is read alone."""
        yield from (error for _name, error in self.unreadable)
        yield from names.unknown(self.names)
        for name, value, accepted in (
            ("durable_allow", self.allow, PERMISSIONS),
            ("durable_fail_on", self.fail_on, VERDICTS),
        ):
            given = value if isinstance(value, (list, tuple)) else ()
            if value is not given or any(each not in accepted for each in given):
                unknown = next((each for each in given if each not in accepted), value)
                problem = f"{name}: observed {value!r}; expected a list of {', '.join(accepted)}"
                question = near(unknown, accepted) if unknown not in accepted else ""
                yield Refusal(problem, as_list(name, value), question)
        if not isinstance(self.accept_data_loss, bool):
            # Ansible passes -e name=value as text.
            text = isinstance(self.accept_data_loss, str)
            yield Refusal(
                f"durable_accept_data_loss: observed {'the text ' if text else ''}{self.accept_data_loss!r}; expected true or"
                " false, without quotes",
                """on the command line use -e '{"durable_accept_data_loss": true}'""" if text else "",
            )
        if not undo_is_valid(self.undo_after):
            yield (
                f"durable_undo_after: observed {self.undo_after!r}; expected whole seconds from {_LEAST_UNDO} to {_MOST_UNDO}, "
                "or 0 for no rollback timer"
            )
        if not time_limit_is_valid(self.time_limit):
            yield (
                f"durable_time_limit: observed {self.time_limit!r}; expected whole seconds from {_LEAST_LIMIT} to {_MOST_LIMIT}, "
                "or 0 for no limit"
            )

    def chosen(self) -> tuple[Profile, Profile] | None:
        """Return the pinned profile, with its overrides and without, or None. Raises BadInput."""
        if self.profile is None:
            return None
        return choose(self.profile, self.shipped, self.own, self.overrides)

    def fails(self, verdict: str) -> bool:
        """Return whether a verdict fails its host; always, if the input is invalid."""
        try:
            self.check()
        except BadInput:
            return True
        return verdict in self.fail_on


def undo_is_valid(seconds: Any) -> bool:
    """Return whether a value is one for `durable_undo_after`."""
    return _is_seconds(seconds, _LEAST_UNDO, _MOST_UNDO)


def time_limit_is_valid(seconds: Any) -> bool:
    """Return whether a value is one for `durable_time_limit`."""
    return _is_seconds(seconds, _LEAST_LIMIT, _MOST_LIMIT)


def _is_seconds(given: Any, least: int, most: int) -> bool:
    """Return whether a value is 0, or whole seconds within limits."""
    return isinstance(given, int) and not isinstance(given, bool) and (given == 0 or least <= given <= most)
