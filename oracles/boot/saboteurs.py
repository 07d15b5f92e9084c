# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The saboteurs of saboteurs.yml: read, chosen by a seed, and filled in for one machine. Pure, except `load`."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

FILE = Path(__file__).with_name("saboteurs.yml")
#: One of each is planted in one round, and each is about layers of its own. `host` is about all of them, and is planted alone.
AREAS = ("disk", "mount", "postgresql", "mariadb")
HOST = "host"
#: Part of the rounds with one saboteur that is planted alone; with harmless items only; of the items in all other rounds.
ALONE, ALL_HARMLESS, HARMLESS = 0.2, 0.15, 0.35
_PLACEHOLDER = re.compile(r"@([a-z_]+)@")
_KEYS = {"name", "area", "harmless", "alone", "about", "files", "programs", "links", "run", "undo", "late"}


class Saboteur(NamedTuple):
    """What acts at the next boot, or looks as if it did.

    `files` are {path: text}; `programs` likewise, of files that can be run; `links` {path: target}. `run` is a script that
    plants more, `undo` one that takes away what is not below guest.ROOTS. `about` chooses what it can be about: {field of a
    subject: value}. `alone`: it may stop the boot, or it is about the whole host. `late`: it acts after the boot has settled.
    """

    name: str
    area: str
    harmless: bool = False
    alone: bool = False
    about: Mapping[str, str] = {}
    files: Mapping[str, str] = {}
    programs: Mapping[str, str] = {}
    links: Mapping[str, str] = {}
    run: str = ""
    undo: str = ""
    late: bool = False


class Planted(NamedTuple):
    """A saboteur with its subject, and without placeholders: what guest.plant takes."""

    saboteur: Saboteur
    subject: Mapping[str, str]
    files: dict[str, str]
    programs: dict[str, str]
    links: dict[str, str]
    run: str
    undo: str

    @property
    def paths(self) -> set[str]:
        """All paths that it writes."""
        return {*self.files, *self.programs, *self.links}

    def as_dict(self) -> dict[str, Any]:
        """Return what the machine needs to plant it."""
        return {"files": self.files, "programs": self.programs, "links": self.links, "run": self.run}

    def text(self) -> str:
        """Return it for a reader: its name, its subject and what it plants."""
        about = {"disk": self.subject["serial"], "mount": self.subject["mount"]}.get(
            self.saboteur.area, self.saboteur.area
        )
        kind = "harmless" if self.saboteur.harmless else "saboteur"
        lines = [f"{kind} {self.saboteur.name!r} for {about}"]
        lines += [f"  {path}: {text.strip()!r}" for path, text in {**self.files, **self.programs}.items()]
        lines += [f"  {path} -> {target}" for path, target in self.links.items()]
        lines += [f"  run: {self.run.strip()!r}"] if self.run else []
        return "\n".join(lines)


def load(path: Path = FILE) -> list[Saboteur]:
    """Return all saboteurs. Raises ValueError for an entry that is malformed."""
    found = [_read(entry) for entry in yaml.safe_load(path.read_text())]
    names = [each.name for each in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"two saboteurs have the name {', '.join(sorted(twice))}")
    return found


def fill(text: str, subject: Mapping[str, str]) -> str:
    """Return a text with each @placeholder@ replaced. Raises KeyError for one that the subject does not have."""
    return _PLACEHOLDER.sub(lambda match: subject[match[1]], text)


def planted(saboteur: Saboteur, subject: Mapping[str, str]) -> Planted:
    """Return a saboteur that is about one subject. Raises KeyError."""

    def filled(texts: Mapping[str, str]) -> dict[str, str]:
        return {fill(path, subject): fill(text, subject) for path, text in texts.items()}

    return Planted(
        saboteur,
        subject,
        filled(saboteur.files),
        filled(saboteur.programs),
        filled(saboteur.links),
        fill(saboteur.run, subject),
        fill(saboteur.undo, subject),
    )


def subjects_of(saboteur: Saboteur, subjects: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Return the subjects that a saboteur can be about."""
    return [
        each for each in subjects if all(each.get(name) == value for name, value in saboteur.about.items())
    ]


def choose(
    numbers: random.Random, every: Iterable[Saboteur], subjects: Mapping[str, Sequence[Mapping[str, str]]]
) -> list[Planted]:
    """Return the items of one round. `subjects` are {area: what its saboteurs can be about}."""
    every = list(every)
    if numbers.random() < ALONE:
        one = numbers.choice([each for each in every if each.alone])
        return [_about_one(numbers, one, subjects)]
    share = 1.0 if numbers.random() < ALL_HARMLESS else HARMLESS
    found: list[Planted] = []
    taken: set[str] = set()
    for area in AREAS:
        is_harmless = numbers.random() < share
        suited = [
            each for each in every if each.area == area and not each.alone and each.harmless == is_harmless
        ]
        item = _about_one(numbers, numbers.choice(suited), subjects)
        # A second one would replace the file of the first one.
        if not taken & item.paths:
            found.append(item)
            taken |= item.paths
    return found


def packed(
    every: Iterable[Saboteur], subjects: Mapping[str, Sequence[Mapping[str, str]]]
) -> Iterator[list[Planted]]:
    """Yield rounds that plant each of some saboteurs once: harmless items and others apart, up to one for each area."""
    every = list(every)
    left = [first(each, subjects) for each in every if not each.alone]
    for is_harmless in (False, True):
        waiting = [item for item in left if item.saboteur.harmless == is_harmless]
        while waiting:
            found: list[Planted] = []
            for item in waiting:
                areas, paths = (
                    {each.saboteur.area for each in found},
                    {path for each in found for path in each.paths},
                )
                if item.saboteur.area not in areas and not paths & item.paths:
                    found.append(item)
            waiting = [item for item in waiting if item not in found]
            yield found
    yield from ([first(each, subjects)] for each in every if each.alone)


def first(saboteur: Saboteur, subjects: Mapping[str, Sequence[Mapping[str, str]]]) -> Planted:
    """Return a saboteur that is about the first subject that suits it."""
    return planted(saboteur, subjects_of(saboteur, subjects[saboteur.area])[0])


def _about_one(
    numbers: random.Random, saboteur: Saboteur, subjects: Mapping[str, Sequence[Mapping[str, str]]]
) -> Planted:
    return planted(saboteur, numbers.choice(subjects_of(saboteur, subjects[saboteur.area])))


def _read(entry: Any) -> Saboteur:
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str):
        raise ValueError(f"{entry!r} is no saboteur; it needs a name")
    if unknown := {str(key) for key in entry} - _KEYS:
        raise ValueError(f"{name}: unknown keys {', '.join(sorted(unknown))}")
    if entry.get("area") not in (*AREAS, HOST):
        raise ValueError(f"{name}: area is {entry.get('area')!r}; must be one of {', '.join((*AREAS, HOST))}")
    if entry["area"] == HOST and not entry.get("alone"):
        raise ValueError(f"{name}: a saboteur of the whole host must be alone")
    if not any(entry.get(what) for what in ("files", "programs", "links", "run")):
        raise ValueError(f"{name}: plants nothing")
    return Saboteur(**entry)
