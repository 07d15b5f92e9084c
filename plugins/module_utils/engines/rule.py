# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The expected value of one setting of an engine: the part of the rules that hosts use too. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

EARLY = "a commit is acknowledged before it is on disk"
_UNFLUSHED = "it is on, and what was written while it was off may not be on disk yet"


class Rule(NamedTuple):
    """What one setting must be.

    `accepts`: the accepted values, () for all. `value`: what a run sets.
    `means`: the meaning of any other value; `meanings`: of single ones, (value, its meaning).
    `weaker`: values less safe than `value`: to leave them is no loosening. `loses`: with another value, commits that were
    acknowledged can be lost. `live`: a running server takes a change of it. `phase`: loosen, where setting it
    waits until all that it rests on is true. `unless`: another setting
    and its values with which this one has no effect.
    """

    accepts: tuple[str, ...]
    value: str
    means: str
    loses: bool
    live: bool = True
    klass: str = "safety"
    phase: str = "tighten"
    unless: tuple[str, ...] = ()
    meanings: tuple[tuple[str, str], ...] = ()
    weaker: tuple[str, ...] = ()

    def allows(self, word: str) -> bool:
        """Return whether a word will do."""
        return word in self.accepts or not self.accepts

    def meaning(self, word: str) -> str:
        """Return what a word that will not do means."""
        return _UNFLUSHED if word == "unflushed" else dict(self.meanings).get(word, self.means)

    def against(self, values: set[str]) -> Rule:
        """Return the rule for a setting with these observed values: what is less safe is not loosened."""
        differing = {word for word in values if not self.allows(word)}
        return self._replace(phase="tighten") if differing and differing <= set(self.weaker) else self


def rule(words: str, means: str, loses: bool, **more: Any) -> Rule:
    """Return a rule; `words`: those that will do, the first of which a run sets."""
    accepts = tuple(words.split())
    return Rule(accepts, accepts[0], means, loses, **more)


#: {setting: rule}
Rules = dict[str, Rule]


def relaxed(
    rules: Rules, words: dict[str, str], weaker: Mapping[str, tuple[str, ...]] | None = None
) -> Rules:
    """Return rules where losing the last commits is accepted: `words` of some settings; `weaker` ones keep less still.

    What would corrupt stays.
    """
    return {
        name: rule._replace(
            accepts=(words[name],),
            value=words[name],
            means="a commit waits for the disk, which this profile does not ask for",
            klass="performance",
            phase="loosen",
            loses=False,
            weaker=(weaker or {}).get(name, ()),
        )
        if name in words
        else rule
        for name, rule in rules.items()
    }
