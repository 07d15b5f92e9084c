# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How an engine is assessed. What is specific to one engine is in engines/<name>/rules.py, as its `JUDGE`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from .. import catalog
from ..facts.engines import InstanceFacts, RefusalFacts, SettingFixFacts
from ..facts.storage import DiskFacts, StorageFacts
from ..host.observation import NOTHING, UNKNOWN
from ..profiles import Profile
from ..rows import Kind, Reason, Setting
from . import findings, fixes
from .rule import Rule, Rules

#: Whether a disk honours FUA: it is physical, or an attestation covers it.
Honoured = Callable[[DiskFacts], bool]


#: Spellings of one value in configuration files, and that of the rules.
_SAME = (("on", "yes", "true", "1", "ON", "YES"), ("off", "no", "false", "0", "OFF", "NO"))


def product(instance: InstanceFacts) -> str:
    """Return the name of an instance's product: its flavour if that is known, otherwise its engine."""
    flavour = instance.get("flavour")
    return str(instance["engine"] if flavour in (None, UNKNOWN) else flavour)


def titled(instance: InstanceFacts) -> str:
    """Return the product and the name of an instance for messages: MySQL is of the engine mariadb. A name that repeats the
    product is left out."""
    kind, name = product(instance), str(instance["name"])
    return kind if name in (kind, instance["engine"]) else f"{kind} {name}"


class Subject(NamedTuple):
    """One instance as it is assessed: its facts, its profile, `durable_storage`."""

    instance: InstanceFacts
    profile: Profile
    storage: StorageFacts
    honoured: Honoured

    @property
    def label(self) -> str:
        """Return it as people know it."""
        return f"{self.instance['engine']} {self.instance['name']}"

    @property
    def title(self) -> str:
        """Return it for messages."""
        return titled(self.instance)

    def shown(self, found: Iterable[Reason]) -> Iterator[Reason]:
        """Yield reasons whose text has the title. Targets and fixes have the label, as variables do."""
        for each in found:
            observed = tuple(
                (key, self.title if value == self.label else value) for key, value in each.observed
            )
            yield each._replace(reason=each.reason.replace(self.label, self.title), observed=observed)

    def reason(self, field: str) -> str:
        """Return why a fact of it is unknown."""
        return self.instance["evidence"].get(field, NOTHING).get("reason") or "it was not reported"

    def running(self, name: str) -> str:
        """Return the word of a setting with which it runs."""
        return str(self.instance["settings"].get(name, NOTHING).get("running", UNKNOWN))

    def values(self, name: str) -> set[str]:
        """Return the values of a setting now and at the next start, as far as they are known."""
        persisted = self.instance["settings"].get(name, NOTHING).get("persisted", UNKNOWN)
        return {self.running(name), str(persisted)} - {UNKNOWN, "stopped"}


#: What an engine finds of an instance.
Finds = Callable[[Subject], Iterable[Reason]]


def _nothing(_subject: Subject) -> tuple[()]:
    return ()


class Judge(NamedTuple):
    """The rules by which an engine is assessed; except `full`, only those that it has.

    `full`, `relaxed`: {engine, or flavour of it: rules}, where commits have to survive, and where losing the last ones
    is accepted (as `full` where left out). `rules` makes of these the rules of one instance. `rows`: in place of a row for each
    rule, rows of its databases. `defects`: ways in which a running one loses commits that no setting corrects; `risks`: those of
    several settings together, which `loses` names. `unknowns`: what is not understood; `warnings`: what is right and should be
    known. `kinds`: the catalogue of all that these find; `settings`: those of its rows that `full` does not name.
    `lies_anywhere`: databases may lie outside of every configured directory; `how_to_find`: what to do if none is known.
    `fix_texts`: the sentences of its settings' fixes; `refusal_texts`: those of why no run sets one.
    `largest_page`: bytes of the largest page that it writes without a second copy, 0 if it repairs torn pages, and
    `torn_page`: the fix.
    """

    full: dict[str, Rules]
    relaxed: dict[str, Rules] = {}  # noqa: RUF012
    rules: Callable[[Subject, Rules], Rules] = lambda _subject, wanted: wanted
    rows: Callable[[Subject, Rules], Iterator[Setting]] | None = None
    defects: Finds = _nothing
    risks: Finds = _nothing
    unknowns: Finds = _nothing
    warnings: Finds = _nothing
    kinds: tuple[Kind, ...] = ()
    settings: tuple[str, ...] = ()
    loses: tuple[str, ...] = ()
    lies_anywhere: bool = False
    fix_texts: Mapping[str, str] = fixes.FIXES
    refusal_texts: Mapping[str, str] = fixes.REFUSALS
    how_to_find: str = "start it, or name its data directory in its configuration, then run again"
    largest_page: int = 0
    torn_page: str = ""

    def fix(self, found: SettingFixFacts | None) -> str | None:
        """Return the sentence of a fix of its settings, None without one."""
        return fixes.text(found, self.fix_texts) if found else None

    def refusal(self, found: RefusalFacts) -> str:
        """Return the sentence of why no run sets a setting."""
        return fixes.refusal_text(found, self.refusal_texts)

    def strict(self, instance: InstanceFacts) -> Rules:
        """Return the rules of an instance where commits have to survive, whatever its storage."""
        return self.full[catalog.kind(instance)]

    def can_lose(self, setting: str, value: str) -> bool:
        """Return whether acknowledged commits can be lost with a value of a setting, as a configuration file spells it.

        A setting that `full` does not name can lose them at 0.
        """
        found = [rules[setting] for rules in self.full.values() if setting in rules]
        if not found:
            return setting in self.settings and value == "0"
        spellings = next((same for same in _SAME if value.lower() in same), (value,))
        return any(each.loses and not any(map(each.allows, spellings)) for each in found)

    def wanted(self, subject: Subject) -> Rules:
        """Return the rules of an instance under its profile."""
        found = self.strict(subject.instance)
        if subject.profile.wanted("engines") != "full":
            found = self.relaxed.get(catalog.kind(subject.instance), found)
        return self.rules(subject, {name: rule.against(subject.values(name)) for name, rule in found.items()})


class Build(NamedTuple):
    """What an engine's builds do only from one on, and how to see what one does.

    `first`: that build; `before`: what holds of earlier ones; `see`: how its version becomes known. `opened`: what rests on
    the flags with which files are open, and which; `look`: what to do where those are unknown.
    """

    first: str
    before: str
    see: str
    opened: str
    look: str

    @property
    def update(self) -> str:
        """Return what to do about an earlier one."""
        return f"update it to {self.first} or later"

    def unknowns(self, subject: Subject, works: str, relies: bool, update: str = "") -> Iterator[Reason]:
        """Yield what of an instance's version and open files prevents any guarantee.

        `works`: whether its build does it; `relies`: whether nothing but those flags brings its writes to the disk; `update`:
        what to do about one that does not, if there is more to do.
        """
        if not subject.profile.promises_durability:
            return
        instance, label = subject.instance, subject.label
        if works == "no":
            yield findings.OLD_BUILD.found(
                label,
                engine=label,
                version=instance["version"],
                first=self.first,
                before=self.before,
                update=update or self.update,
            )
        if works == UNKNOWN:
            why = subject.reason("version")
            yield findings.BUILD.found(
                label, engine=label, cause=why, first=self.first, before=self.before, see=self.see
            )
        values = instance["evidence"].get("write_through", NOTHING)
        if relies and values.get("value") not in ("yes", "no"):
            why = subject.reason("write_through")
            yield findings.OPEN_FLAGS.found(
                label, engine=label, opened=self.opened, cause=why, look=self.look
            )


def judge(running: str, persisted: str, runs: bool, persists: bool, live: bool) -> str:
    """Return the verdict on a setting; `runs`, `persists`: whether its values now and at the next start are accepted."""
    if running != UNKNOWN and not runs:
        if live:
            return "drift_running"
        if persisted != UNKNOWN:
            return "pending" if persists else "drift_persisted"
    if persisted != UNKNOWN and not persists:
        return "drift_persisted"
    return UNKNOWN if UNKNOWN in (running, persisted) else "ok"


def why_of(
    verdict: str, name: str, running: str, persisted: str, rule: Rule, values: Mapping[str, Any]
) -> str:
    """Return the text of a setting's verdict; for `drift_running` the meaning of the value alone."""
    if verdict == "ok":
        return "as wanted"
    if verdict == UNKNOWN:
        return values["reason"] or f"{name} could not be read"
    if verdict == "drift_running":
        return rule.meaning(running)
    if verdict == "pending":
        return f"the server runs with {running} until it is restarted: {rule.meaning(running)}"
    place = f" ({values['from']})" if values.get("from") else ""
    return f"at its next start {name} will be {persisted}{place}: {rule.meaning(persisted)}"
