# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that pg_ctl(1), and Debian's pg_ctlcluster(1), pass to the postmaster."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from ...host import bounded_read
from ...host.paths import normal
from ...host.seam import Host, Unobservable
from ...host.textfile import Malformed, without_content
from ...host.units import Unit, expect_flushing
from ..next_start import NextStart
from . import conf

#: Options of pg_ctl, alone or behind others that take no value; long ones may be cut short.
_OPTIONS = re.compile(r"(?:-[swWcS]*o|--o[a-z]*(?:=|$))(?P<value>.*)", re.S)
_PROGRAM = re.compile(r"-[swWcS]*p(?P<value>.*)", re.S)
_DATA = re.compile(r"(?:-[swWcS]*D|--pg[a-z]*(?:=|$))(?P<value>.*)", re.S)
#: What a shell replaces by something else.
_REPLACED = re.compile(r"[$`\\]")
_OTHER_PROGRAM = "its pg_ctl starts another program (-p): remove that, then run again"
#: pg_ctlcluster's own words in a unit: neither options for the server nor for pg_ctl.
_PLAIN = re.compile(r"--skip-systemctl-redirect|--stdlog|-f|--force|[^-\s]\S*")


def of_options(words: Iterable[str], where: str) -> list[str]:
    """Return what the options of a pg_ctl give to the server: it passes the value of -o to a shell.

    Raises Malformed, Unobservable.
    """
    rest = iter(words)
    options = []
    for word in rest:
        named = _OPTIONS.fullmatch(word)
        if named:
            options.append(named["value"] or next(rest, ""))
        elif _PROGRAM.fullmatch(word):
            raise Unobservable(f"{where}: {_OTHER_PROGRAM}")
    return shell_words(" ".join(options), where)


def start(_host: Host, unit: Unit, given: NextStart) -> NextStart:
    """Return what a unit's `pg_ctl start` gives to the postmaster. Raises Unobservable.

    systemd prints no quotes: all behind -o counts as the server's. What of that is pg_ctl's own sets nothing.
    """
    words = list(given.words)
    first = next((place for place, word in enumerate(words) if _OPTIONS.fullmatch(word)), len(words))
    options = (_OPTIONS.sub(lambda found: found["value"], word) for word in words[first:])
    tail = [word for word in options if word]
    # Behind -o it may as well be the server's port.
    if any(not value.isdigit() for value in _values(_PROGRAM, words)):
        raise Unobservable(f"{unit.name}: {_OTHER_PROGRAM}")
    data = next((normal(path) for path in _values(_DATA, words)), given.variables.get("PGDATA"))
    try:
        return NextStart(tuple(shell_words(" ".join(tail), unit.name)), {"PGDATA": data} if data else {})
    except Malformed as error:
        raise Unobservable(without_content(error)) from None


def start_of_debian(host: Host, unit: Unit, given: NextStart) -> NextStart:
    """Return what a unit's pg_ctlcluster gives to the postmaster in addition to pg_ctl.conf: nothing.

    Raises Unobservable where the unit has it give more, or where its file `environment` takes the server's
    flushes away: that is all of its environment.
    """
    more = [word for word in given.words if not _PLAIN.fullmatch(word)]
    if more:
        raise Unobservable(
            f"{unit.name}: it gives more options to pg_ctlcluster ({' '.join(more)[:80]}): remove them, set"
            " their values in postgresql.conf, then run again"
        )
    names = re.match(r"postgresql@(?P<version>[^-]+)-(?P<cluster>.+)\.service", unit.name)
    if names:
        path = f"/etc/postgresql/{names['version']}/{names['cluster']}/environment"
        expect_flushing(path, _preloaded(host, path))
    return NextStart((), {"PGDATA": None})


def _preloaded(host: Host, path: str) -> str:
    try:
        found = conf.get(conf.parse(bounded_read.read(host, path) or "", path), "ld_preload", path)
    except Malformed as error:
        raise Unobservable(without_content(error)) from None
    return (found.value if found else None) or ""


def _values(pattern: re.Pattern[str], words: Sequence[str]) -> list[str]:
    """Return the values of an option, in the same argument or in the next one."""
    found = ((pattern.fullmatch(word), behind) for word, behind in zip(words, (*words[1:], "")))
    return [match["value"] or behind for match, behind in found if match]


def shell_words(text: str, where: str) -> list[str]:
    """Return the arguments that a shell makes of options. Raises Malformed, Unobservable for what it replaces."""
    if _REPLACED.search(text):
        raise Unobservable(
            f"{where}: a shell replaces something in the server's options: write them out, then run again"
        )
    try:
        return shlex.split(text)
    except ValueError as error:
        raise Malformed(where, repr(text[:80]), f"closed quotes ({error})") from error
