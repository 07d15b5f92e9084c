# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which engines of a host are assessed, and why others are only listed: `durable_ignore`, and stopped ones. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ... import catalog
from ...attestations import expect_fields, expect_filled, expect_soon
from ...facts.engines import EnginesFacts, InstanceFacts
from ...host.observation import UNKNOWN
from ...profiles import BadInput, Refusal, gathered, near

#: Days after which ignoring an engine must be renewed.
LONGEST = 366
_FIELDS = ("engine", "by", "reason", "expires")
_CONTENTS = {
    "by": "the name of the person or team that decided it",
    "reason": "why the engine is not assessed",
}


class Ignored(NamedTuple):
    """One entry of `durable_ignore`: an engine, one instance or all (''), until `expires`; `where`: its place."""

    engine: str
    instance: str
    by: str
    reason: str
    expires: str
    where: str

    @property
    def about(self) -> str:
        """Return the engine with the instance."""
        return f"{self.engine} {self.instance}".rstrip()

    def fits(self, instance: InstanceFacts) -> bool:
        """Return whether it matches the engine of an instance of `durable_engines`, and its name if it has one."""
        names = (instance["engine"], catalog.kind(instance))
        return self.engine in names and (not self.instance or _is_alike(instance["name"], self.instance))

    def as_dict(self) -> dict[str, str]:
        """Return it for the report."""
        return {name: value for name, value in self._asdict().items() if name != "where"}


def _is_alike(name: str, written: str) -> bool:
    """Return whether a name is the written one, maybe with the suffix of engines/collect.py for duplicates."""
    return name == written or name.startswith(f"{written} (")


#: Prefixes of names that are not unique: of processes and chroots.
_BORROWED = re.compile(r"(?:\S+:\S+ )?process \d+(?: |$)|chroot ")
_IN_A_CONTAINER = re.compile(r"[a-z-]+:\S+ ")


def inherits(instance: InstanceFacts) -> str:
    """Return why another instance can get the name of this one, '' if none can."""
    name, namespace = instance["name"], instance["namespace"]
    if namespace == UNKNOWN:
        return "whether it runs in a container is unknown"
    if namespace == "container" and not _IN_A_CONTAINER.match(name):
        return "its control group does not name its container"
    if _BORROWED.match(name) or any(name.endswith(f" ({pid})") for pid in instance["pids"]):
        return "only its process tells it from others"
    return ""


def matches(entry: Ignored, instances: Iterable[InstanceFacts]) -> list[InstanceFacts]:
    """Return the instances that an entry ignores: all of its engine, or the one that it names, or none.

    A name that several instances have, or that another can get, matches none: the entry could apply to another server later.
    """
    found = [each for each in instances if entry.fits(each)]
    if not entry.instance:
        return found
    is_one = len(found) == 1 and found[0]["name"] == entry.instance and not inherits(found[0])
    return found if is_one else []


class Standing(NamedTuple):
    """The scope of an instance: `judged` is yes, or why it is only listed: stopped, or ignored; `reason`: the message."""

    instance: InstanceFacts
    judged: str
    reason: str

    @property
    def note(self) -> str:
        """Return it in one line, for the report."""
        return f"{self.instance['engine']} {self.instance['name']}: {self.reason}"


class Ignoring(NamedTuple):
    """The entries of `durable_ignore`: those in force, and expired ones, which have no effect."""

    entries: tuple[Ignored, ...] = ()
    expired: tuple[Ignored, ...] = ()


def read(value: Any, databases: Any, today: str) -> Ignoring:
    """Return the entries of `durable_ignore`; `today` is an ISO 8601 date. Raises BadInput."""
    if value is None:
        return Ignoring()
    if not isinstance(value, (list, tuple)):
        raise BadInput(f"durable_ignore: observed {value!r}; expected a list")
    named = set(engines_in(databases))
    found = gathered(
        functools.partial(_read, f"durable_ignore[{index}]", entry, named, today)
        for index, entry in enumerate(value)
    )
    return Ignoring(
        tuple(each for each in found if each.expires >= today),
        tuple(each for each in found if each.expires < today),
    )


def standings(
    engines: EnginesFacts | None, databases: Any, ignored: Iterable[Ignored] = ()
) -> list[Standing]:
    """Return the scope of each instance of `durable_engines`.

    An ignored instance is not assessed, nor a stopped one of systemd that the next boot does not start. But one whose engine
    `durable_databases` names is assessed.
    """
    named = {catalog.NAMES.get(name, name) for name in engines_in(databases)}
    instances = engines["engines"] if engines else []
    matched = [(entry, matches(entry, instances)) for entry in ignored]
    return [
        _standing(each, named, [entry for entry, found in matched if any(each is one for one in found)])
        for each in instances
    ]


def judged(found: Iterable[Standing]) -> list[InstanceFacts]:
    """Return the instances that are assessed."""
    return [each.instance for each in found if each.judged == "yes"]


def notes(found: Iterable[Standing], ignoring: Ignoring) -> Iterator[str]:
    """Yield the instances that are not assessed with the reason, and the entries of `durable_ignore` without effect."""
    here = list(found)
    yield from (each.note for each in here if each.judged != "yes")
    for each in ignoring.expired:
        yield f"{each.where}: {each.about} expired on {each.expires}: it is assessed again; set a later expires, or delete it"
    for each in ignoring.entries:
        if not matches(each, [one.instance for one in here]):
            yield _unmatched(each, [one.instance for one in here])


def _unmatched(entry: Ignored, instances: list[InstanceFacts]) -> str:
    """Return why an entry ignores nothing, and the names that are possible."""
    alike = [each for each in instances if entry.fits(each)]
    if len(alike) > 1:
        names = ", ".join(repr(each["name"]) for each in alike if not inherits(each))
        why = f"{len(alike)} instances can be meant, and it ignores none of them"
        fix = f"set instance to the whole name of one: {names}" if names else "delete the entry"
        return f"{entry.where}: {entry.about}: {why}. Fix: {fix}"
    if alike and alike[0]["name"] == entry.instance:
        why = f"another instance can come to have this name ({inherits(alike[0])}), so it ignores none"
        return f"{entry.where}: {entry.about}: {why}. Fix: stop that instance, or delete the entry"
    names = ", ".join(f"{each['engine']} {each['name']}" for each in instances) or "no engine"
    return f"{entry.where}: {entry.about} is not here (found: {names}). Fix: correct the entry, or delete it"


def engines_in(databases: Any) -> list[str]:
    """Return the engines that `durable_databases` names; malformed ones are refused elsewhere."""
    entries = databases if isinstance(databases, (list, tuple)) else ()
    return [str(entry["engine"]) for entry in entries if isinstance(entry, dict) and "engine" in entry]


def _standing(instance: InstanceFacts, named: set[str], ignored: Iterable[Ignored]) -> Standing:
    """Return the scope of an instance; `ignored`: the entries that match it."""
    entry = max(ignored, key=lambda each: each.expires, default=None)
    if entry:
        why = f"ignored by {entry.by} until {entry.expires}: {entry.reason}"
        return Standing(instance, "ignored", f"{why}: listed, not assessed")
    if instance["engine"] not in named and _is_idle(instance):
        why = f"it is stopped, and nothing starts it ({instance['unit']}): listed, not assessed"
        return Standing(instance, "stopped", f"{why}; name it in durable_databases to have it assessed")
    return Standing(instance, "yes", "")


def _is_idle(instance: InstanceFacts) -> bool:
    state = (instance["state"], instance["starts_at_boot"], instance["managed_by"])
    return state == ("stopped", "no", "systemd")


def _read(where: str, entry: Any, named: set[str], today: str) -> Ignored:
    expect_fields(where, entry, _FIELDS, ("instance",))
    found = Ignored(where=where, **{"instance": "", **{name: str(value) for name, value in entry.items()}})
    gathered(
        (
            functools.partial(expect_filled, where, entry, _CONTENTS),
            functools.partial(_expect_engine, where, found, named),
            functools.partial(expect_soon, where, f"ignoring {found.about}", found.expires, LONGEST, today),
        )
    )
    return found


def _expect_engine(where: str, found: Ignored, named: set[str]) -> None:
    if found.engine not in catalog.NAMES:
        raise BadInput(
            Refusal(
                f"{where}: engine: observed {found.engine!r}; expected one of {', '.join(catalog.NAMES)}",
                "",
                near(found.engine, catalog.NAMES),
            )
        )
    if not found.instance and named & {found.engine, catalog.NAMES[found.engine]}:
        raise BadInput(
            Refusal(
                f"{where}: observed {found.engine}, which durable_databases names: expected one or the other",
                "delete one of them, or name the instance that is ignored",
            )
        )
