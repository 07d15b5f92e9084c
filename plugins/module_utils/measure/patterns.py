# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The calls by which database engines write a commit to their log, with the engines of each."""

from __future__ import annotations

import mmap
import os
from typing import NamedTuple

from . import scratch

#: Bytes of one commit, and the alignment that direct writes want: a page, whatever the disk's sector.
BLOCK = 4096


class Pattern(NamedTuple):
    """Flags of open(2), the flags of pwritev2(2), the call that follows, and whether the file grows."""

    meaning: str
    flags: int
    call_flags: int = 0
    then: str = ""
    appends: bool = False


PATTERNS = {
    "direct_dsync": Pattern("O_DIRECT|O_DSYNC: SQL Server's FUA path", os.O_DIRECT | os.O_DSYNC),
    "direct_fdatasync": Pattern(
        "O_DIRECT, fdatasync: SQL Server's forced flush", os.O_DIRECT, then="fdatasync"
    ),
    "rwf_dsync": Pattern("O_DIRECT, RWF_DSYNC with each write", os.O_DIRECT, call_flags=os.RWF_DSYNC),
    "osync": Pattern("O_SYNC: FairCom DB's LOG_WRITETHRU", os.O_SYNC),
    "dsync": Pattern("O_DSYNC: Firebird's forced writes", os.O_DSYNC),
    "append_fsync": Pattern("a log that grows, fsync", os.O_APPEND, then="fsync", appends=True),
}
_SYNCS = {"fsync": os.fsync, "fdatasync": os.fdatasync}


class Log:
    """A file that commits are written to as one pattern says."""

    def __init__(self, descriptor: int, pattern: Pattern) -> None:
        """`descriptor`: the file, written in full before unless it is to grow. Raises OSError."""
        self._pattern = pattern
        self._file = scratch.reopen(descriptor, os.O_WRONLY | pattern.flags)
        # Direct writes want aligned memory, and a mapping begins at a page.
        self._memory = mmap.mmap(-1, BLOCK)

    def commit(self, data: bytes, slot: int) -> None:
        """Write a block, and return once it is durable as far as the kernel says. Raises OSError.

        A file that grows begins again with slot 0.
        """
        self._memory[:] = data
        if self._pattern.appends:
            if slot == 0:
                os.ftruncate(self._file, 0)
            done = os.write(self._file, self._memory)
        else:
            done = os.pwritev(self._file, [self._memory], slot * BLOCK, self._pattern.call_flags)
        if done != BLOCK:
            raise OSError(f"only {done} of {BLOCK} bytes were written")
        if self._pattern.then:
            _SYNCS[self._pattern.then](self._file)

    def close(self) -> None:
        """Give the file and the memory back."""
        os.close(self._file)
        self._memory.close()
