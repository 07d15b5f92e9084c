# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The parts of the page about what commits cost: the price, and the choice for SQL Server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proof import choice, price
from proof.plot import Bar, bars
from proof.tables import table

CHOICE_WORDS = """\
For each device the policy is asked which way it chooses. It is given what the guest's kernel said of the disk, in the words of
the facts; no SQL Server was there for harden-db to find. With `host_honours_fua` attested its choice has to be the cheapest
of the ways that were shown to be safe there; ways within {tolerance:g} of each other are alike. A virtual disk only claims FUA,
and a cell that was shown is what such an attestation would rest upon; without it forced flush is chosen, which is safe,
at its price. Costs are flushes and writes for each commit of one client, as the kernel sent them. 0/0 is never chosen, though
where the cache is off it is safe on this rig: the files here were written in full and synced before, and blocks that were only
allocated lose their commits with it. Its cost stands here so that nobody takes it for an offer.
"""
CHOICE_HEAD = (
    "setting",
    "FUA",
    "forced flush",
    "chosen, attested",
    "chosen, not attested",
    "against FUA",
    "0/0, refused",
)
PRICE_WORDS = """\
FairCom DB's way of committing (a log with O_SYNC, COMMIT_DELAY 1 ms, one writer for all that wait), on the model of one
disk that was fixed beforehand, in `proof/mechanics.py`: {drive}.
Measured: how many commits share a sync, and what the disk is told for each. Derived: commits for each second, from the
model's time for exactly that. The disk and the delay of these runs were {scale:g} times slower, so that the emulated
processor counts for less; its share stands in the last column, and "as it ran" is the rate with it.
Published: FairCom's "Linux Performance and Safety Advisory". Nothing is fitted to it.
"""
WHY_WORDS = """\
Why they differ. Two things make a rate: what one sync takes, which the row of one client tells, and how many commits share it.

{lines}
- The clients here do nothing but commit, so most of them meet at one of the next syncs. Published clients ran whole
  transactions; what else they did is not known.
- With O_SYNC ext4 may commit the file's times through its journal, which is another place to write in: writes and
  flushes of a sync tell. The published server's kernel, its disk and the places of its files are not known.
- A lone client faster than 1,000 commits for each second cannot have waited a delay of 1 ms each time, as it does here.
- With the cache on and without barriers this disk hardly works, and derived is what it would allow. Published is what that
  server did: its processor, its network and its clients are not in the model.
- Seeks are the average one, however near; the disk writes nothing back while idle; one request is served at a time.
"""
DELAY_WORDS = """\
Commit delay, with {clients} clients; without one each client syncs for itself. Published: a small delay beats none in every
combination, and with the cache on a long one slows things down.
"""
SQL_WORDS = """\
SQL Server's ways of writing, on the same disk, its commits gathered by one log writer without a delay. Gain and
requests are against forced flush on the same device. Published: {published} with FUA in TPC-C, and about half the I/O
traffic. With noise each client leaves one block of its data files in the cache for each commit: a flush waits for those
too, a FUA write does not. A real disk would write them in its own time, which is not modelled. Only `nbd` passes FUA on;
QEMU's SCSI disk makes a write and a full flush of it, so it is not in this table. What storage the published servers
had is not known: hardly a single rotating disk, on which one place to write costs about the same by either way.
"""
TABLE_HEAD = (
    "cache",
    "barrier",
    "clients",
    "commits a sync",
    "commits a flush",
    "writes a sync",
    "flushes a sync",
    "FUA a sync",
    "sync, ms",
    "derived",
    "published",
    "derived / published",
    "as it ran",
    "emulation",
)
DELAY_HEAD = ("cache", "barrier", "no delay", "1 ms", "20 ms")
WAYS_HEAD = (
    "way",
    "device",
    "noise",
    "clients",
    "commits a sync",
    "writes a sync",
    "flushes a sync",
    "sync, ms",
    "derived",
    "gain",
    "requests",
    "emulation",
)


def of_price(cost: Mapping[str, Any]) -> list[str]:
    """Return the part of the page about the price; nothing where nothing was recorded."""
    if not cost:
        return []
    some = next(iter(cost.values()))
    drive = (
        "{rpm:g} rpm, a seek of {seek:g} s, {rate:.0f} bytes a second, a cache of {cache} bytes, {command:g} s for a command"
    ).format(**some["drive"])
    ratios = " and ".join(f"{ratio:.2f} ({name})" for name, ratio in price.PUBLISHED_RATIOS.items())
    lines = "\n".join(f"- {line}" for line in price.deviations(cost))
    return [
        "## The price\n",
        PRICE_WORDS.format(drive=drive, scale=some["scale"]),
        table(TABLE_HEAD, [_table_row(row) for row in price.table(cost)]),
        "![Derived and published rates](price.svg)\n",
        WHY_WORDS.format(lines=lines),
        DELAY_WORDS.format(clients=price.DELAY_CLIENTS),
        table(DELAY_HEAD, [_delay_row(row) for row in price.delays(cost)]),
        SQL_WORDS.format(published=ratios),
        table(WAYS_HEAD, [_way_row(row) for row in price.ways(cost)]),
    ]


def of_choices(choices: Sequence[choice.Choice]) -> list[str]:
    """Return the part of the page about the choice for SQL Server; nothing where no device has both ways."""
    if not choices:
        return []
    return [
        "### What is chosen for SQL Server\n",
        CHOICE_WORDS.format(tolerance=choice.TOLERANCE),
        table(CHOICE_HEAD, [_choice_row(each) for each in choices]),
    ]


def _table_row(row: Mapping[str, Any]) -> list[str]:
    flush = row["commits_per_flush"]
    return [
        row["cache"],
        row["barrier"],
        str(row["clients"]),
        f"{row['commits_per_sync']:.1f}",
        "no flush" if flush is None else f"{flush:.1f}",
        *(f"{row[name]:.1f}" for name in ("writes_per_sync", "flushes_per_sync", "fua_per_sync")),
        f"{1000 * row['sync_seconds']:.1f}",
        f"{row['derived']:.0f}",
        str(row["published"]),
        f"{row['ratio']:.2f}",
        f"{row['as_it_ran']:.0f}",
        f"{row['emulation']:.0%}",
    ]


def _delay_row(row: Mapping[str, Any]) -> list[str]:
    return [row["cache"], row["barrier"], *(f"{rate:.0f}" for rate in row["rates"].values())]


def _way_row(row: Mapping[str, Any]) -> list[str]:
    return [
        row["way"],
        row["device"],
        str(row["noise"]),
        str(row["clients"]),
        *(f"{row[name]:.1f}" for name in ("commits_per_sync", "writes_per_sync", "flushes_per_sync")),
        f"{1000 * row['sync_seconds']:.1f}",
        f"{row['derived']:.0f}",
        f"{row['gain']:.2f}",
        f"{row['traffic']:.2f}",
        f"{row['emulation']:.0%}",
    ]


def _choice_row(each: choice.Choice) -> list[str]:
    return [
        each.setting,
        *(_cost(each.costs[way]) for way in choice.WAYS),
        choice.WAYS.get(each.chosen, each.chosen),
        choice.WAYS.get(each.unattested, each.unattested),
        "; ".join(each.against) or "nothing",
        _cost(each.refused),
    ]


def _cost(cost: tuple[float, float] | None) -> str:
    return f"{cost[0]:.2f} flushes, {cost[1]:.2f} writes" if cost else "not safe"


def plot(cost: Mapping[str, Any]) -> str:
    """Draw derived rates above published ones. The scale is that of the published: what is beyond is cut, and says so."""
    rows, most = list[Bar](), 1.2 * max(max(rates) for rates in price.PUBLISHED.values())
    for row in price.table(cost):
        label = f"cache {row['cache']}, barrier {row['barrier']}, {row['clients']} clients"
        word = f"{row['derived']:.0f}" + (" (bar is cut)" if row["derived"] > most else "")
        rows.append(Bar(f"{label}: derived", row["derived"], word, "safe"))
        rows.append(Bar("published", row["published"], str(row["published"])))
    return bars("Commits for each second", rows, most)
