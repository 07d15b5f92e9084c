# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether facts can be assessed: their age, their boot and their schema. Pure."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Any, Union

from ...facts.engines import EnginesFacts
from ...facts.schema import EVIDENCE
from ...facts.storage import StorageFacts
from ...facts.ups import PowerFacts
from ...host.observation import UNKNOWN
from ...host.printable import name
from ...storage import causes
from . import facts_schema

Collected = Union[StorageFacts, EnginesFacts, PowerFacts]
#: Replaces durable_engines if engines were not collected.
NO_ENGINES: EnginesFacts = {
    "boot_id": "",
    "time": "",
    "paths": [],
    "stop_timeouts": [],
    "engines": [],
    "unattributed": [],
    "writers": [],
}
#: Facts older than this, by the controller's clock, come from a fact cache of an earlier run.
_MAX_AGE = datetime.timedelta(hours=1)
#: No facts are older: a clock without a battery starts in 1970.
_FIRST = datetime.datetime(2026, 1, 1)
_SET_CLOCK = "set it by `timedatectl set-ntp true` or `chronyc makestep`"
_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)Z", re.ASCII)


def check(storage: StorageFacts, engines: EnginesFacts | None, power: PowerFacts | None, now: str) -> None:
    """Refuse facts that cannot be assessed; None: not collected. Raises ValueError."""
    collected: list[Collected] = [facts for facts in (storage, engines, power) if facts]
    for facts in collected:
        _check_age(facts, now)
    _check_boot(collected)
    _check_shape(storage, engines or NO_ENGINES, power)


def _check_age(facts: Collected, now: str) -> None:
    collected_at, here = (_time(text) for text in (facts.get("time"), now))
    for whose, clock, text in (("host", collected_at, facts["time"]), ("controller", here, now)):
        if clock < _FIRST:
            raise ValueError(
                f"the clock of the {whose} is wrong: it says {text}, which is before this collection existed; {_SET_CLOCK},"
                " then run again"
            )
    if abs(here - collected_at) > _MAX_AGE:
        raise ValueError(
            f"the facts are of {facts['time']}, the controller's clock says {now}: a clock is wrong, or they are of an older"
            f" run; compare `date -u` on both, {_SET_CLOCK} on the wrong one, then run again"
        )


def _check_boot(collected: Sequence[Collected]) -> None:
    """Refuse facts of several boots: values of one boot need not hold in another."""
    boots = [facts.get("boot_id") for facts in collected]
    are_known = all(isinstance(boot, str) and boot not in ("", UNKNOWN) for boot in boots)
    if not are_known or len(set(boots)) != 1:
        named = ", ".join(sorted({name(str(boot)) for boot in boots}))
        raise ValueError(
            f"the facts are of more than one boot, or do not say of which ({named}): the host was restarted"
            " during the collection; run again"
        )


def _check_shape(storage: StorageFacts, engines: EnginesFacts, power: PowerFacts | None) -> None:
    found = facts_schema.faults(storage, engines, power)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise ValueError(
            f"the facts cannot be read: {found[0]}{more}; collect them again with this version of the collection,"
            " and send a capture (docs/capture.md) when they come back so"
        )


def _time(text: Any) -> datetime.datetime:
    found = _TIME.fullmatch(text) if isinstance(text, str) else None
    if not found:
        raise ValueError(f"the facts are of no time: observed {text!r}; collect them again in this run")
    # strptime loads the names of days from the locale, once in each process that Ansible starts for a host.
    year, month, day, hour, minute, second = map(int, found.groups())
    return datetime.datetime(year, month, day, hour, minute, second)


def explained(storage: StorageFacts) -> StorageFacts:
    """Return storage facts with the sentences of their evidence."""
    found: dict[str, Any] = {**storage}
    for rows in ("disks", "mounts"):
        found[rows] = [
            # Evidence that no check of a response covers may be malformed: it is left out.
            {
                **each,
                "evidence": {
                    key: causes.of_evidence(row)
                    for key, row in each["evidence"].items()
                    if EVIDENCE.fits(row)
                },
            }
            for each in found[rows]
        ]
    return found  # type: ignore[return-value]
