# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a benchmark. It is refused before anything is written if it cannot be measured."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ..enforce import one_run
from ..facts.classes import DiskFacts
from ..host.seam import Host, Unobservable
from . import fio, grouped, transactions, variants
from .limits import Refused, chosen, number
from .targets import Place, find
from .variants import Variant

#: How commits can be written.
PATTERNS = (*fio.WORDS, grouped.PATTERN)
#: The most that commit at the same time: as many as in FairCom's published table.
CLIENTS = 80
#: The most commits in a second that a run may be limited to.
MOST = 1_000_000
#: Numbers of clients if the user names none: those of the published table for transactions.
_FEW, _PUBLISHED = (1, 4, 16), (1, 10, 20, 40, 80)


class Way(NamedTuple):
    """How commits are written; `delay` in milliseconds, where one log gathers the commits of all clients."""

    pattern: str
    delay: int | None = None

    @property
    def is_load(self) -> bool:
        """Return whether a database server commits."""
        return self.pattern in transactions.LOADS


class Plan(NamedTuple):
    """What is measured on some mounts at the same time; `size` is MiB for each client, `rate` that of each mount.

    `looked_at`: the number of enforce/one_run.py when the host was collected. `servers`: load -> its server.
    `repeats`: how often each measurement is repeated, for the spread.
    """

    places: list[Place]
    ways: list[Way]
    clients: list[int]
    variants: list[Variant]
    seconds: int
    size: int
    rate: int
    looked_at: int | None = None
    servers: Mapping[str, transactions.Server] = MappingProxyType({})
    repeats: int = 1

    @property
    def runs(self) -> int:
        """Return how often it is measured."""
        # Transactions are measured on one mount after the other.
        ways = sum(len(self.places) if way.is_load else 1 for way in self.ways)
        return ways * len(self.clients) * len(self.variants) * self.repeats

    def files(self, way: Way, clients: int) -> int:
        """Return how many files so many clients write to on each mount."""
        if way.is_load:
            return 0
        return clients if way.delay is None else 1

    @property
    def targets(self) -> list[str]:
        """Return the mount points."""
        return [place["target"] for place in self.places]

    @property
    def leaves(self) -> list[DiskFacts]:
        """Return the disks below the mounts, each once."""
        return variants.leaves_of(self.places)

    @property
    def tried(self) -> list[str]:
        """Return the kinds of settings that are changed for a while."""
        return list(dict.fromkeys(variant.setting for variant in self.variants if variant.setting))


def plan(host: Host, row: Mapping[str, Any]) -> Plan:
    """Return the plan that the module's options ask for; reads only. Raises Refused."""
    looked_at = one_run.last_run(host)
    loads = _some("transactions", row, transactions.LOADS)
    ways = [*(_ways(host, row) if row["patterns"] or not loads else []), *map(Way, loads)]
    places = _places(host, row["mounts"])
    requested = row["clients"] if row["clients"] is not None else _PUBLISHED if loads else _FEW
    clients = [number("clients", count, 1, CLIENTS) for count in requested]
    if not clients:
        raise Refused("clients: observed none; expected at least one number")
    made = Plan(
        places=places,
        ways=ways,
        clients=sorted(set(clients)),
        variants=variants.plan(
            host,
            places,
            _some("schedulers", row, variants.SCHEDULERS),
            _some("mount_options", row, variants.MOUNT_OPTIONS),
            _some("write_caches", row, variants.WRITE_CACHES),
        ),
        seconds=number("seconds", row["seconds"], 2, 60),
        size=number("size", row["size"], 1, 64),
        rate=number("rate", row["rate"], 64, MOST),
        looked_at=looked_at,
        servers=transactions.find(host, loads, [place["target"] for place in places]),
        repeats=number("runs", row["runs"], 1, 9),
    )
    most = number("minutes", row["minutes"], 1, 60) * 60
    if made.runs * made.seconds > most:
        raise Refused(
            f"{made.runs} runs of {made.seconds} s: observed {made.runs * made.seconds} s, expected at most {most}:"
            " measure less, or allow more minutes"
        )
    return made


def _ways(host: Host, row: Mapping[str, Any]) -> list[Way]:
    """Return the ways to write. Raises Refused, also without the program that writes so."""
    patterns = chosen("patterns", row["patterns"], PATTERNS)
    expect_fio(host, [pattern for pattern in patterns if pattern in fio.WORDS])
    delays = [
        number("commit_delays", delay, grouped.NO_DELAY, grouped.LONGEST) for delay in row["commit_delays"]
    ]
    if grouped.PATTERN in patterns and not delays:
        raise Refused("commit_delays: observed none; expected at least one number")
    return [
        Way(pattern, delay)
        for pattern in patterns
        for delay in (dict.fromkeys(delays) if pattern == grouped.PATTERN else (None,))
    ]


def _places(host: Host, mounts: Sequence[str]) -> list[Place]:
    """Return the facts of the mounts. Raises Refused, also for two mount points of one file system."""
    if not mounts:
        raise Refused("mounts: observed none; expected at least one mount point")
    places = find(host, mounts)
    by_device: dict[str, str] = {}
    for place in places:
        other = by_device.setdefault(place["device"], place["target"])
        if other != place["target"]:
            raise Refused(
                f"mounts: observed {other} and {place['target']} of one file system; expected one of the two"
            )
    return places


def _some(name: str, row: Mapping[str, Any], known: Collection[str]) -> list[str]:
    return chosen(name, row[name], known) if row[name] else []


def expect_fio(host: Host, patterns: Sequence[str]) -> None:
    """Raise Refused unless fio is there and has each pattern, of which none may be named."""
    version = _fio_version(host) if patterns else None
    if patterns and not version:
        raise Refused(
            "fio: not found; expected fio 3 on this host: install it, measure another host, or ask for the pattern"
            f" {grouped.PATTERN} alone"
        )
    _expect_words(host, version or "", patterns)


def _fio_version(host: Host) -> str | None:
    try:
        result = host.run(["fio", "--version"])
    except Unobservable:
        return None
    return result.stdout.strip() if result.rc == 0 and result.stdout.startswith("fio-") else None


def _expect_words(host: Host, version: str, patterns: Sequence[str]) -> None:
    """Raise Refused where this fio knows no O_DSYNC: until 2020 its option `sync` was yes or no."""
    wanting = [pattern for pattern in patterns if fio.DSYNC in fio.WORDS[pattern]]
    if wanting and "dsync" not in host.run(["fio", "--cmdhelp=sync"]).stdout.split():
        raise Refused(
            f"patterns: observed {version}, which knows no O_DSYNC; expected a newer one, such as 3.33: install that,"
            f" or measure without {', '.join(wanting)}"
        )
