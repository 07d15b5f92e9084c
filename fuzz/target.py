# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A target: a parser, the exceptions that it may raise, and initial inputs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ansible_collections.durable.dbhost.plugins.module_utils.host import bounds
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import (
    Host,
    Located,
    Part,
    Result,
    Status,
)
from fuzz import ROOT, limits

CORPUS = ROOT / "fuzz/corpus"
FIXTURES = ROOT / "tests/fixtures"


class Target(NamedTuple):
    """One entry to parsers.

    `parse` takes what a host said, and raises AssertionError where the answer contradicts itself; `allowed` is
    what its documentation lets it raise. `seeds` are texts of the kind that it is made for.
    """

    name: str
    parse: Callable[[bytes], object]
    allowed: tuple[type[Exception], ...]
    seeds: tuple[bytes, ...]

    def check(self, data: bytes) -> None:
        """Parse within the bounds. Raises what the parser may not raise, and limits.Beyond."""
        try:
            limits.within(self.parse, data)
        except self.allowed:
            pass

    def corpus(self) -> list[bytes]:
        """Return the seeds, and the inputs that earlier runs found worth keeping."""
        return list(dict.fromkeys([*self.seeds, *kept(self.name)]))


#: All targets, by name.
TARGETS: dict[str, Target] = {}


def of_text(
    *allowed: type[Exception], seeds: Iterable[str | bytes]
) -> Callable[[Callable[[str], object]], Callable[[str], object]]:
    """Return a decorator that makes a target of a function of text, as Host.read gives it."""

    def register(parse: Callable[[str], object]) -> Callable[[str], object]:
        of_bytes(*allowed, seeds=seeds)(_named(parse))
        return parse

    return register


def of_bytes(
    *allowed: type[Exception], seeds: Iterable[str | bytes]
) -> Callable[[Callable[[bytes], object]], Callable[[bytes], object]]:
    """Return a decorator that makes a target of a function of bytes."""

    def register(parse: Callable[[bytes], object]) -> Callable[[bytes], object]:
        name = parse.__name__
        assert name not in TARGETS, name
        raw = tuple(
            seed.encode("utf-8", "surrogateescape") if isinstance(seed, str) else seed for seed in seeds
        )
        TARGETS[name] = Target(name, parse, allowed, raw)
        return parse

    return register


def _named(parse: Callable[[str], object]) -> Callable[[bytes], object]:
    def of_data(data: bytes) -> object:
        return parse(data.decode("utf-8", "surrogateescape"))

    of_data.__name__ = parse.__name__
    return of_data


def fixtures(*patterns: str) -> list[bytes]:
    """Return what real machines said, by the names of files in tests/fixtures."""
    found = [path for pattern in patterns for path in sorted(FIXTURES.glob(pattern))]
    assert found, patterns
    return [path.read_bytes() for path in found]


def kept(name: str) -> list[bytes]:
    """Return the inputs that are kept of a target."""
    path = CORPUS / f"{name}.json"
    return [text.encode("latin-1") for text in json.loads(path.read_text("ascii"))] if path.exists() else []


def keep(name: str, inputs: Sequence[bytes], directory: Path = CORPUS) -> None:
    """Write the inputs that are kept of a target: a byte is the letter of its number."""
    texts = sorted(data.decode("latin-1") for data in inputs)
    (directory / f"{name}.json").write_text(json.dumps(texts, indent=0) + "\n", "ascii")


class Says(Host):
    """A host on which every file, link and command says the same."""

    def __init__(self, text: str) -> None:
        self._text = text

    def read(self, path: str) -> str:
        return self._text

    def names(self, path: str) -> list[str]:
        return sorted(name for name in self._text.split("\n") if name and "/" not in name)[:20]

    def exists(self, path: str) -> bool:
        return True

    def link(self, path: str) -> str:
        return self._text.partition("\n")[0]

    def resolve(self, path: str) -> str:
        return path

    def run(self, argv: list[str], timeout: float = 0.0) -> Result:
        return Result(0, self._text, "")

    def locate(self, path: str, root: str = "", timeout: float = 0.0) -> Located:
        return Located(path, self._status())

    def read_part(
        self,
        path: str,
        root: str = "",
        limit: int = bounds.OUTPUT,
        at_end: bool = False,
        flush: bool = False,
        timeout: float = 0.0,
    ) -> Part | None:
        content = self._text.encode("utf-8", "surrogateescape")
        return Part(path, self._status(), content[-limit:] if at_end else content[:limit])

    def list_names(self, path: str, root: str = "", timeout: float = 0.0) -> list[str] | None:
        return self.names(path)

    def _status(self) -> Status:
        return Status(1, 1, 26, 26, 0o100644, len(self._text))

    def ask(self, *question: Any, **more: Any) -> list[bytes]:
        return [self._text.encode("utf-8", "surrogateescape")] * len(question[2])
