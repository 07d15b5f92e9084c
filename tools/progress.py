# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The results of the stages of a run, how long they take, and how long the rest will take.

Both are stored between runs, in tests/output/.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

#: Lines that say why a stage failed are cut to this.
WIDTH = 200


@dataclass
class Outcome:
    """The results of the stages; `failed` holds the lines that say why, `impossible` the reasons."""

    passed: list[str] = field(default_factory=list)
    failed: dict[str, list[str]] = field(default_factory=dict)
    impossible: dict[str, str] = field(default_factory=dict)
    not_reached: list[str] = field(default_factory=list)

    def summary(self) -> list[str]:
        """Return the lines with the results of the stages, the most important last."""
        return [
            *(f"  not run: {name}: {reason}" for name, reason in self.impossible.items()),
            *(f"  not reached: {name}" for name in self.not_reached),
            *self.failures(),
            f"{len(self.passed)} passed, {len(self.failed)} failed",
        ]

    def failures(self) -> list[str]:
        """Return the lines that say what failed, and why."""
        return [
            line
            for name, why in self.failed.items()
            for line in (f"  failed: {name}", *(f"    | {line[:WIDTH]}" for line in why))
        ]

    def save(self, path: Path) -> None:
        """Keep it for the next question."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Outcome:
        """Return the outcome of the last run; an empty one if none is stored."""
        return cls(**json.loads(path.read_text())) if path.exists() else cls()


class Times:
    """How many seconds each stage took when it last passed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seconds: dict[str, float] = json.loads(path.read_text()) if path.exists() else {}

    def note(self, name: str, seconds: float) -> None:
        """Keep how long a stage took."""
        self.seconds[name] = round(seconds, 1)
        self.path.write_text(json.dumps(self.seconds, indent=1, sort_keys=True) + "\n")

    def left(self, running: dict[str, float], waiting: list[str], together: int) -> str:
        """Say how long the rest will take: `running` holds for how many seconds each has run already.

        The time of stages that never passed here is unknown.
        """
        names = [*running, *waiting]
        known = [max(0, self.seconds[n] - running.get(n, 0)) for n in names if n in self.seconds]
        if not names or not known:
            return ""
        word = "about" if len(known) == len(names) else "more than"
        return f"{word} {in_words(spread(known, together))} left"


def spread(durations: Iterable[float], together: int) -> float:
    """Return how long all take, so many at a time, each started as soon as there is room."""
    busy = [0.0] * together
    for seconds in durations:
        busy[busy.index(min(busy))] += seconds
    return max(busy)


def in_words(seconds: float) -> str:
    """Return a duration for people."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
