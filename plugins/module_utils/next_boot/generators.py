# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd.generator(7): administrators' programs that create units at each boot."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..host.observation import Undecided
from ..host.seam import Host
from . import programs, unit_files
from .acts import Act
from .unit_files import Generator

BY = "generator"
#: What a generator names if its units can change a mount, disk or server. The text of one is not interpreted.
ACTS_ON = re.compile(
    r"mount|barrier|fstab|local-fs|\bdev/|hdparm|sdparm|nvme|write_cache|scheduler|read_ahead|mysql|maria|postgres|mssql"
    r"|firebird|faircom|ctree|tuned|LD_PRELOAD",
    re.I,
)


def acting(host: Host, targets: Iterable[str] = ()) -> Iterator[Generator]:
    """Yield those whose units can change what is managed here; `targets`: mount points. Raises Unobservable.

    A program, and a script in the place of a packaged one, can change anything.
    """
    targets = tuple(targets)
    for each in unit_files.generators(host):
        if each.is_masked:
            continue
        text = host.read(each.path)
        if not text.startswith("#!") or each.masks or _is_about(host, each.path, text, targets):
            yield each


def collect(host: Host) -> list[Act]:
    """Return nothing: what a generator's units set is unknown. Raises Unobservable for one that can set something."""
    for each in acting(host):
        raise Undecided("generator", path=each.path)
    return []


def _is_about(host: Host, path: str, text: str, targets: tuple[str, ...]) -> bool:
    """Return whether a script, or one of an administrator that it runs, names what is managed. Raises Unobservable."""
    below = (each.text for each in programs.scripts(host, path, path, packaged=False))
    return any(
        ACTS_ON.search(_without_comments(each)) or any(target in each for target in targets)
        for each in (text, *below)
    )


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("#"))
