# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The costs of a profile: from the stored benchmark of the host if that still fits, else from published rates if all its
disks rotate. Pure.

The benchmark is a file on the controller, and of any form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Any, NamedTuple

from ...host import json_text
from ...host.printable import line
from ...profiles import Profile

#: Days after which a benchmark is not used: firmware, kernel and free space have changed.
OLD = 90
#: From FairCom's "Linux Performance and Safety Advisory": ext4 data=ordered, COMMIT_DELAY 1, one disk that rotates;
#: commits a second with 1 and with 80 clients, by (write cache, barrier).
PUBLISHED = {
    ("disabled", "on"): (76, 600),
    ("disabled", "off"): (76, 592),
    ("enabled", "on"): (79, 586),
    ("enabled", "off"): (1358, 3980),
}
#: Exceptions of reading a file of any form.
NO_BENCHMARK = (ValueError, TypeError, KeyError, AttributeError, OverflowError)


class Rates(NamedTuple):
    """The range of a profile's commits per second on one mount, and of their ratio to the settings at that time.

    `server`: the version of the measured server, None for plain commits.
    """

    profile: str
    mount: str
    server: str | None
    rate: tuple[float, float]
    share: tuple[float, float]


class Measured(NamedTuple):
    """A stored benchmark: its day, the disks below each mount, the rates, and whether these are implausible."""

    day: date
    disks: dict[str, list[Any]]
    rates: list[Rates]
    is_doubted: bool


def of(
    profiles: Iterable[Profile], benchmark: str | None, storage: Mapping[str, Any], today: str
) -> tuple[dict[str, str], str]:
    """Return {profile: its costs as text}, and a remark on their source.

    `benchmark`: the text of the stored benchmark, '' for none, None if unreadable. `today`: an ISO 8601 date.
    """
    profiles = list(profiles)
    # The table is of one kind of disk.
    fits = {(disk["kind"], disk["rotational"]) for disk in storage["disks"]} == {("physical", "yes")}
    published = {profile.name: _published(profile) for profile in profiles if fits}
    if benchmark == "":
        return (
            published,
            "no benchmark of this host is stored; durable.dbhost.benchmark measures its own disks",
        )
    try:
        found = parse(benchmark or "")
        why = _unfit(found, storage, date.fromisoformat(today))
    except NO_BENCHMARK:
        found, why = None, "it cannot be read"
    if found is None or why:
        return published, f"the stored benchmark of this host is not used: {why}; measure again"
    return {**published, **_own(found, {profile.name for profile in profiles})}, ""


def unfit(benchmark: str, storage: Mapping[str, Any], today: str) -> str | None:
    """Return why a benchmark does not fit the host, None if it fits. Raises one of NO_BENCHMARK."""
    return _unfit(parse(benchmark), storage, date.fromisoformat(today))


def parse(text: str) -> Measured:
    """Return a benchmark from the file of the playbook. Raises one of NO_BENCHMARK."""
    parsed = json_text.loads(text)
    return Measured(
        date.fromisoformat(parsed["time"][:10]),
        {str(mount): list(ids) for mount, ids in parsed["disks"].items()},
        [rates for price in parsed["prices"] for rates in _rates(price)],
        bool(parsed["doubts"]),
    )


def _rates(price: Mapping[str, Any]) -> Iterator[Rates]:
    by_server: dict[str | None, list[tuple[float, float]]] = {}
    for rate in price["rates"]:
        by_server.setdefault(rate.get("server"), []).append((float(rate["rate"]), float(rate["of_now"])))
    for server, found in by_server.items():
        rates, shares = zip(*found)
        yield Rates(
            str(price["profile"]),
            str(price["mount"]),
            None if server is None else str(server),
            (min(rates), max(rates)),
            (min(shares), max(shares)),
        )


def _unfit(found: Measured, storage: Mapping[str, Any], today: date) -> str | None:
    """Return why a benchmark does not fit the host, None if it fits."""
    age = (today - found.day).days
    if age > OLD:
        return f"it is of {found.day}, {age} days ago, and {OLD} are the most"
    if age < -1:
        return f"it is of {found.day}, which is to come"
    if found.is_doubted:
        return "its rates are not plausible"
    now = _disks(storage)
    for mount, ids in found.disks.items():
        if None in ids or sorted(map(str, ids)) != now.get(mount):
            return f"other disks were below {line(mount)} then"
    return None if found.rates else "it has priced no profile"


def _disks(storage: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the ids of the disks below each mount point."""
    ids = {disk["name"]: str(disk["id"]) for disk in storage["disks"]}
    return {
        target: sorted(ids.get(name, "") for name in mount["disks"])
        for mount in storage["mounts"]
        if isinstance(mount["disks"], list)
        for target in mount["targets"]
    }


def _own(found: Measured, wanted: set[str]) -> dict[str, str]:
    """Return the costs of each profile in a benchmark."""
    texts: dict[str, list[str]] = {}
    for rates in found.rates:
        if rates.profile in wanted:
            least, most = rates.rate
            share = f"{rates.share[0]:.2f} to {rates.share[1]:.2f} times those of then"
            texts.setdefault(rates.profile, []).append(
                f"{least:,.0f} to {most:,.0f} {_unit(rates.server)} on {line(rates.mount)}, {share}"
            )
    return {
        name: f"{name} costs, by this host's own benchmark of {found.day}: {'; '.join(parts)}"
        for name, parts in texts.items()
    }


def _unit(server: str | None) -> str:
    return "commits/s" if server is None else f"transactions/s of {line(server)}"


def _published(profile: Profile) -> str:
    """Return the costs of a profile from FairCom's table. With a UPS, the guard disables barriers."""
    barrier = "off" if profile.rests_on == "ups" else profile.barrier
    rates = PUBLISHED.get((profile.write_cache, barrier))
    if rates is None:
        return f"{profile.name}: no cost is known, because it leaves settings unchanged"
    return (
        f"{profile.name}: about {rates[0]:,} commits/s with 1 client, {rates[1]:,} with 80 (published by FairCom for one"
        " rotating disk; not measured here)"
    )
