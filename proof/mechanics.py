# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long a rotating disk takes for what it is told: a pure model, by constants that were fixed before anything was measured.

The same model makes the disk of the price runs slow (nbd_plugin.py) and derives commits for each second (price.py).

    a write into the cache    one command
    a FUA write               one command, and its own sectors go to the medium; so does each write while the cache is off,
                              for QEMU passes it on as a FUA write
    a flush                   one command, and all that waits in the cache goes to the medium
    sectors to the medium     for each track among them: seek and half a turn; where the head is on that track already a
                              whole turn, for what follows has just passed by. Then the transfer.

A track is what passes below the head in one turn. The disk serves one request at a time. Not modelled: seeks by their
distance, several heads, and writing back while idle, which makes later flushes cheaper.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from proof.log import SECTOR, Kind


@dataclass(frozen=True)
class Drive:
    """The constants: seconds and bytes.

    `rpm`, `seek`, `rate` and `cache` are those that the maker states of a common disk of the years of the published
    table, Seagate's Barracuda 7200.14 (ST2000DM001): 7,200 rpm, average seek 8.5 ms, 156 MB/s, 64 MB. `command` is
    stated nowhere: an assumption, of the order of what a SATA command takes. A flush of an empty cache costs that.
    """

    rpm: float = 7200.0
    seek: float = 0.0085
    rate: float = 156e6
    cache: int = 64 << 20
    command: float = 0.0001

    @property
    def turn(self) -> float:
        """Return the seconds of one turn."""
        return 60.0 / self.rpm

    @property
    def track(self) -> int:
        """Return the sectors of one track."""
        return int(self.rate * self.turn) // SECTOR


class Mechanics:
    """A disk at work. `moves` counts how often the head had to find a track, or to wait for it to come round."""

    def __init__(self, drive: Drive | None = None) -> None:
        """Begin with an empty cache and a head that is on no track."""
        self.drive = drive or Drive()
        self.moves = 0
        self._waiting = set[int]()
        self._head = -1

    def take(self, kind: Kind, offset: int = 0, length: int = 0, fua: bool = False) -> float:
        """Return the seconds that one request takes, and remember what it leaves behind. Notes take none."""
        sectors = range(offset // SECTOR, -(-(offset + length) // SECTOR))
        if kind is Kind.FLUSH:
            return self.drive.command + self._write_back()
        if kind is Kind.TRIM:
            self._waiting.difference_update(sectors)
            return self.drive.command
        if kind not in (Kind.WRITE, Kind.ZERO):
            return 0.0
        if fua:
            self._waiting.difference_update(sectors)
            return self.drive.command + self._to_medium(set(sectors))
        self._waiting.update(sectors)
        is_full = len(self._waiting) * SECTOR > self.drive.cache
        return self.drive.command + (self._write_back() if is_full else 0.0)

    def _write_back(self) -> float:
        waiting, self._waiting = self._waiting, set()
        return self._to_medium(waiting)

    def _to_medium(self, sectors: AbstractSet[int]) -> float:
        """Write sectors in one sweep of the head: its own track first, then from the first track to the last."""
        drive, seconds = self.drive, len(sectors) * SECTOR / self.drive.rate
        tracks = {sector // drive.track for sector in sectors}
        for track in sorted(tracks, key=lambda track: (track != self._head, track)):
            seconds += drive.turn if track == self._head else drive.seek + drive.turn / 2
            self._head = track
        self.moves += len(tracks)
        return seconds
