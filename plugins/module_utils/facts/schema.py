# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts that classes of facts consist of, and the checks derived from these classes. Pure.

A fact is one field of a TypedDict: `name: Annotated[TYPE, CHECK, EVIDENCE, "Documentation."]`. A field without a check that is
no TypedDict, or list of one, may have any value. Optional fields are in a base class with `total=False`, each with When.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from ..host.observation import UNKNOWN
from . import value_causes

#: A shape knows what fits it, and says what is wrong with what does not.
Shape = Union["Leaf", "Rows", "Fields"]


class When(NamedTuple):
    """The condition on which a module returns a field, for its documentation. Fields that are not required have one."""

    condition: str


class Sample(NamedTuple):
    """An example of a value, for the documentation."""

    value: Any


class Evidenced(NamedTuple):
    """A mark of fields of which `evidence`, of the mapping that holds all, has value, source and reason."""


EVIDENCED = Evidenced()


class Leaf:
    """A test of one value; `wanted` names what passes; `allowed`: all values, if they are few."""

    def __init__(self, fits: Callable[[Any], bool], wanted: str, allowed: tuple[str, ...] = ()) -> None:
        self.fits = fits
        self.wanted = wanted
        self.allowed = allowed

    def misfits(self, where: str, value: Any) -> Iterator[str]:
        """Yield what is wrong with a value at that place, in one line."""
        if not self.fits(value):
            yield f"{where}: observed {shown(value)}; expected {self.wanted}"


class Rows:
    """A list whose items have one shape."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape

    def fits(self, value: Any) -> bool:
        """Return whether it is one. Nearly all are, and then no message is made."""
        return isinstance(value, list) and all(map(self._shape.fits, value))

    def misfits(self, where: str, value: Any) -> Iterator[str]:
        """Yield what is wrong with it, each fault in one line."""
        if not isinstance(value, list):
            yield f"{where}: observed {shown(value)}; expected a list"
            return
        for number, item in enumerate(value):
            if not self._shape.fits(item):
                yield from self._shape.misfits(f"{where}[{number}]", item)


class Fields:
    """A mapping with these fields, each with its shape, and perhaps others."""

    def __init__(self, shapes: Mapping[str, Shape]) -> None:
        self._shapes = shapes
        self._tests = [(name, shape.fits) for name, shape in shapes.items()]

    def fits(self, value: Any) -> bool:
        """Return whether it is one."""
        if not isinstance(value, dict):
            return False
        for name, fits in self._tests:  # noqa: SIM110 - a generator would be one more frame for each mapping
            if name not in value or not fits(value[name]):
                return False
        return True

    def misfits(self, where: str, value: Any) -> Iterator[str]:
        """Yield what is wrong with it, each fault in one line."""
        if not isinstance(value, dict):
            yield f"{where}: observed {shown(value)}; expected a mapping"
            return
        for name, shape in self._shapes.items():
            if name not in value:
                yield f"{where}.{name}: observed nothing; expected it"
            elif not shape.fits(value[name]):
                yield from shape.misfits(f"{where}.{name}", value[name])


def one_of(*allowed: str) -> Leaf:
    """Return the test for one of these texts."""
    return Leaf(
        lambda value: isinstance(value, str) and value in allowed, f"one of {', '.join(allowed)}", allowed
    )


def pattern(regex: str, wanted: str, *others: Any) -> Leaf:
    """Return the test for a text that matches as a whole, or one of the other values."""
    found = re.compile(regex)
    return Leaf(
        lambda value: (isinstance(value, str) and bool(found.fullmatch(value))) or value in others, wanted
    )


def each(item: Leaf, wanted: str) -> Leaf:
    """Return the test for a list of values that pass one test."""
    return Leaf(lambda value: isinstance(value, list) and all(map(item.fits, value)), wanted)


def values(item: Leaf, wanted: str) -> Leaf:
    """Return the test for a mapping to values that pass one test."""
    return Leaf(lambda value: isinstance(value, dict) and all(map(item.fits, value.values())), wanted)


def or_none(item: Leaf) -> Leaf:
    """Return the test for null, or what passes a test."""
    return Leaf(lambda value: value is None or item.fits(value), f"{item.wanted}, or null", item.allowed)


def or_unknown(item: Leaf) -> Leaf:
    """Return the test for `unknown`, or what passes a test."""
    return Leaf(lambda value: value == UNKNOWN or item.fits(value), f"{item.wanted}, or {UNKNOWN}")


TEXT = Leaf(lambda value: isinstance(value, str), "text")
NAME = Leaf(lambda value: isinstance(value, str) and value not in ("", UNKNOWN), "a name")
#: As a name, and may be `unknown`.
WORD = Leaf(lambda value: isinstance(value, str) and value != "", "a word")
ANY = Leaf(lambda _value: True, "a value")
MAPPING = Leaf(lambda value: isinstance(value, dict), "a mapping")
NAMES = each(NAME, "a list of names")
TEXTS = each(TEXT, "a list of text")
PATH = pattern(r"/.*", "an absolute path")
PATHS = each(PATH, "a list of absolute paths")
DEVICE = pattern(r"\d+:\d+", "a device number", UNKNOWN)
YES_NO = one_of("yes", "no")
YES_NO_UNKNOWN = one_of("yes", "no", UNKNOWN)
ON_OFF_UNKNOWN = one_of("on", "off", UNKNOWN)
#: True is 1 to Python. Beyond 64 bits, and for what is not finite, arithmetic fails.
NUMBER = Leaf(
    lambda value: isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 2**64,
    "a number of 64 bits",
)
SECONDS = Leaf(
    lambda value: NUMBER.fits(value) or value in ("infinity", UNKNOWN), f"seconds, infinity or {UNKNOWN}"
)


def evidence(fits_cause: Callable[[Any, Any], bool]) -> Leaf:
    """Return the test for one observation, as `evidence` has it; `fits_cause`: whether a cause and its values are known."""
    return Leaf(
        lambda value: (
            isinstance(value, dict)
            and "value" in value
            and "reason" in value
            and isinstance(value.get("source"), str)
            and all(value.get(key) is None or isinstance(value[key], str) for key in ("reason", "by"))
            and value.get("precedence", "theirs") == "theirs"
            and ("cause" not in value or fits_cause(value["cause"], value.get("parameters")))
        ),
        "value, source and reason",
    )


EVIDENCE = evidence(value_causes.fits)
OBSERVATIONS = values(EVIDENCE, f"a mapping to {EVIDENCE.wanted}")


class Fact(NamedTuple):
    """One field of a class of facts: its type without null, its check and its documentation.

    `returned`: the condition on which it is returned, '' for one that is required.
    """

    name: str
    type: Any
    check: Leaf | None
    evidenced: bool
    paragraphs: tuple[str, ...]
    is_required: bool
    returned: str
    samples: tuple[Any, ...]

    @property
    def rows(self) -> Any:
        """The class of the mapping that this is, or of the rows of this list; None for another type."""
        inner = get_args(self.type)[0] if get_origin(self.type) is list else self.type
        return inner if hasattr(inner, "__required_keys__") else None

    @property
    def is_mapping(self) -> bool:
        """Whether it is one mapping with typed fields, which no check of the field replaces."""
        return self.check is None and self.rows is not None and self.rows is self.type


def facts_of(cls: Any) -> list[Fact]:
    """Return the fields of a TypedDict class."""
    hints = get_type_hints(cls, include_extras=True)
    return [_fact(name, hint, name in cls.__required_keys__) for name, hint in hints.items()]


def _fact(name: str, hint: Any, is_required: bool) -> Fact:
    kind, *notes = (hint.__origin__, *hint.__metadata__) if get_origin(hint) is Annotated else (hint,)
    if get_origin(kind) is Union and type(None) in get_args(kind):
        # pylint: disable-next=unidiomatic-typecheck
        kind = Union[tuple(each for each in get_args(kind) if each is not type(None))]
    # The last one is the field's own: others are those of the alias of its type.
    checks = [note for note in notes if isinstance(note, Leaf)]
    return Fact(
        name,
        kind,
        checks[-1] if checks else None,
        EVIDENCED in notes,
        tuple(note for note in notes if isinstance(note, str)),
        is_required,
        next((note.condition for note in notes if isinstance(note, When)), ""),
        tuple(note.value for note in notes if isinstance(note, Sample)),
    )


def check_of(cls: Any) -> Fields:
    """Return the check that follows from the required fields of a TypedDict class."""
    return Fields(_shapes(cls))


def check_of_optional(cls: Any, names: Collection[str]) -> Fields:
    """Return the check that follows from the optional fields with these names, here and one mapping deeper."""
    return Fields(_shapes(cls, names))


def _shapes(cls: Any, optional: Collection[str] | None = None) -> dict[str, Shape]:
    """Return the checks of the required fields of a class, or of these optional ones."""
    shapes: dict[str, Shape] = {}
    found = facts_of(cls)
    for fact in found:
        if _is_chosen(fact, optional):
            shape = _shape(fact)
        else:
            inner = _shapes(fact.rows, optional) if optional is not None and fact.is_mapping else None
            shape = Fields(inner) if inner else None
        if shape:
            shapes[fact.name] = shape
    if any(fact.name == "evidence" and fact.check is None for fact in found):
        evidenced = _evidenced(found, optional)
        if evidenced:
            shapes["evidence"] = Fields(dict.fromkeys(evidenced, EVIDENCE))
    return shapes


def _is_chosen(fact: Fact, optional: Collection[str] | None) -> bool:
    return fact.is_required if optional is None else not fact.is_required and fact.name in optional


def _shape(fact: Fact) -> Shape | None:
    if fact.check or not fact.rows:
        return fact.check
    inner = _shapes(fact.rows)
    if not inner:
        return None
    return Fields(inner) if fact.is_mapping else Rows(Fields(inner))


def _evidenced(found: Iterable[Fact], optional: Collection[str] | None, path: str = "") -> list[str]:
    """Return the fields of which there is evidence, with a dot where they lie deeper."""
    fields = []
    for fact in found:
        if fact.evidenced and _is_chosen(fact, optional):
            fields.append(f"{path}{fact.name}")
        elif fact.is_mapping and not path:
            fields += _evidenced(facts_of(fact.rows), optional, f"{fact.name}.")
    return fields


def shown(value: Any) -> str:
    """Return a value as Python writes it, the middle left out of what is very long."""
    shown = reprlib.Repr()
    shown.maxstring = shown.maxother = 300
    shown.maxlist = shown.maxdict = 20
    return shown.repr(value)
