# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts for parsers: line ends of all kinds, lines that nobody wanted, files that include each other."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import strategies as st

#: What an editor of another system, a broken disk or an attacker leaves in any of these files.
HOSTILE = {
    "NUL": ("# a\0b\n", "NUL"),
    "byte order mark": ("\ufeff# first\n", "byte order mark"),
    "UTF-16": ("\udcff\udcfe#\0\n\0", "NUL"),
    "huge": ("#" + "x" * 2**20, "at most 1048576"),
    "huge in bytes": ("#" + "é" * 2**19, "at most 1048576"),
}
#: Bytes that are no text, and what only Python takes for the end of a line: they stay.
ODD = "# caf\udce9 \u2028 \x85"


def texts(lines: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return a strategy of texts of such lines, with all line ends, with and without a last one."""
    ended = st.tuples(lines, st.sampled_from(["\n", "\n", "\n", "\r\n"])).map("".join)
    return st.tuples(st.lists(ended, max_size=8).map("".join), st.just("") | lines).map("".join)


def without_marks(text: str, sign: str) -> list[str]:
    """Return the lines of a text except our comments, each with its line end."""
    return [
        line
        for line in re.findall(r"[^\n]*\n|[^\n]+", text)
        if not line.startswith(f"{sign} durable.dbhost: ")
    ]


def changed(before: str, after: str, sign: str) -> list[tuple[str, str]]:
    """Return the lines that differ, before and after, without our comments.

    A line end that an appended line made necessary is no difference; lines that were added are
    paired with ''.
    """
    new = without_marks(after, sign)
    endings = ("",) if before.endswith("\n") else ("", "\n", "\r\n")
    olds = [without_marks(before + ended, sign) for ended in endings]
    return min(([pair for pair in _paired(old, new) if pair[0] != pair[1]] for old in olds), key=len)


def _paired(old: Sequence[str], new: Sequence[str]) -> list[tuple[str, str]]:
    """Return lines side by side; what was inserted stands together."""
    more = len(new) - len(old)
    same = next(
        (row for row, pair in enumerate(zip(old, new)) if pair[0] != pair[1]), min(len(old), len(new))
    )
    inserted = [("", line) for line in new[same : same + max(more, 0)]]
    removed = [(line, "") for line in old[same : same - min(more, 0)]]
    rest = zip(old[same + len(removed) :], new[same + len(inserted) :])
    return [*inserted, *removed, *rest]


class Files(dict[str, str]):
    """A file system of texts: `read` and `names` as the parsers take them."""

    def read_file(self, path: str) -> str | None:
        """Return a text, or None."""
        return self.get(path)

    def names(self, path: str) -> list[str] | None:
        """Return the names of the files in a directory, not sorted, or None when there is none."""
        inside = [
            file[len(path.rstrip("/")) + 1 :] for file in self if file.startswith(path.rstrip("/") + "/")
        ]
        return [name for name in reversed(inside) if "/" not in name] or None
