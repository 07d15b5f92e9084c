# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our reading of upsmon.conf against upsmon's own, which says what it took when it is asked for its flag (-K)."""

from __future__ import annotations

import os
import random
import re
import subprocess
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ansible_collections.durable.dbhost.plugins.module_utils.host.textfile import Malformed
from ansible_collections.durable.dbhost.plugins.module_utils.ups import upsmon_conf
from oracles.contract import Answer, Case, agreed, compare, declined, mostly

KNOWN: dict[str, str] = {}

#: The program itself; what is in the path may be a script of Debian's around it.
PROGRAMS = ("/lib/nut/upsmon", "/sbin/upsmon")
#: It refuses to say anything where another one runs, which it knows by a file in /run/nut: here it sees none.
_ALONE = (
    "unshare",
    "--mount",
    "sh",
    "-ec",
    '! test -d /run/nut || mount -t tmpfs none /run/nut; exec "$@"',
    "sh",
)
_RUNS = "A previous upsmon instance is already running"
_LIMIT = 60
_UPS = re.compile(r"^UPS: (.*) \((?:monitoring only|(primary|secondary)\) \(power value (\d+))\)$", re.M)
_FLAG = re.compile(r"^Using power down flag file (.*)$", re.M)
_LINE = re.compile(r"upsmon\.conf line \d+: invalid directive")
_FATAL = "Unable to use old-style MONITOR line"

_SYSTEMS = (
    "ups@localhost",
    "other@host",
    "a@b:3493",
    "'x@y'",
    '"q r@s"',
    "back\\\\slash@h",
    "e\\=f@h",
    "l@localhost",
    '"l@m"',
)
_FLAGS = (
    "/etc/killpower",
    '"/etc/kill power"',
    "/etc/kill\\ power",
    "/etc/k\\\\p",
    '"/etc/a\\"b"',
    "/etc/a=b",
    "'/etc/c'",
    '"/etc/d#e"',
)
_ODD_FLAGS = (
    '"/etc/d\\#e"',
    "/etc/f#g",
    "/etc/h\\#i",
    '""',
    "/etc/ö",
    '"/etc/\t"',
    "/etc/j\\",
    '"/etc/k"l',
    '"/etc/m\\nn"',
    "/etc/o\x01p",
)
_WORDS = (
    "u",
    "pass",
    '"p q"',
    'p\\"w',
    "x\\\\",
    '""',
    "=",
    "a=b",
    "#",
    '"#"',
    "ö",
    '"',
    "\\",
    "''",
    '"a"b',
    'c"d"',
    "e" * 600,
    "\v",
)
_TYPES = ("primary", "secondary", "master", "slave", "PRIMARY", "Master", "other", '"primary"')
_VALUES = ("0", "1", "2", "01", '"1"', "3")
_OTHERS = (
    *(
        "MINSUPPLIES 1",
        "FINALDELAY 5",
        'SHUTDOWNCMD "/sbin/shutdown -h +0"',
        "SHUTDOWNCMD",
        "POLLFREQ 5 6",
        "NOTIFYCMD /x",
        "DEADTIME",
    ),
    *(
        "NOTIFYFLAG ONLINE SYSLOG+EXEC",
        "NOTIFYFLAG ONLINE",
        'NOTIFYMSG ONBATT "on %s"',
        "NOTIFYMSG ONBATT",
        "RUN_AS_USER nut",
        "CERTPATH /x",
    ),
    *(
        "bogus",
        "Bogus 1",
        "monitor a@b 1 u p primary",
        "MONITOR",
        "MONITOR a@b",
        "powerdownflag /x",
        '"POWERDOWNFLAG" /etc/quoted',
        "= x",
    ),
    *(
        "POWERDOWNFLAG=/etc/equals",
        "POWERDOWNFLAG = /etc/spaced",
        "# POWERDOWNFLAG /x",
        "#\\",
        "\\",
        "\\# x",
        "POWERDOWN\\\nFLAG /etc/joined",
    ),
    *(
        "DEBUG_MIN 0",
        "HOSTSYNC 15 # comment",
        "RBWARNTIME 1#2",
        "CERTHOST a b 1 1",
        "CERTIDENT a b",
        " ".join(["MONITOR"] * 40),
    ),
)
_ENDS = ("\n",) * 14 + ("\\\n", "\r\n", "", "\n\n", " \\\n", "\n \t", "#c\n", "\0\n")


class Seen(NamedTuple):
    """What upsmon takes: systems with type and power value, the flag's file, and how many lines it cannot use."""

    systems: tuple[tuple[str, str, int], ...]
    flag: str | None
    refused: int


def prepare(directory: Path) -> Case:
    """Return a case that asks both about one upsmon.conf."""
    program = next((path for path in PROGRAMS if os.path.exists(path)), None) or _missing()
    path = directory / "upsmon.conf"

    def case(numbers: random.Random) -> Answer:
        text = build(numbers)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        path.chmod(0o644)
        try:
            ours = _ours(text)
        except Malformed:
            return declined
        theirs = _theirs(program, directory)
        # With such a line it does not start at all: we say that it cannot be used.
        return agreed if theirs is None and ours.refused else compare(text, ours, theirs)

    return case


def _missing() -> str:
    raise FileNotFoundError(f"none of {', '.join(PROGRAMS)}")


def build(numbers: random.Random) -> str:
    """Return a hostile upsmon.conf."""
    one = partial(mostly, numbers)

    def line() -> str:
        kind = numbers.random()
        gap = one((" ",), ("\t", "  ", "\v", "\f", " \\\n "), 0.05)
        if kind < 0.4:
            words = ["MONITOR", one(_SYSTEMS, _WORDS, 0.05), one(_VALUES, ("-1", "x", "1x", ""), 0.04)]
            words += [one(_WORDS[:4], _WORDS, 0.2), one(_WORDS[:4], _WORDS, 0.2), one(_TYPES, _WORDS, 0.03)]
            return gap.join(words[: numbers.randint(2, 6)] if numbers.random() < 0.05 else words)
        if kind < 0.65:
            return f"POWERDOWNFLAG{gap}{one(_FLAGS, _ODD_FLAGS, 0.3)}"
        return one(_OTHERS, _WORDS, 0.1)

    return "".join(line() + numbers.choice(_ENDS) for _ in range(numbers.randint(1, 4)))


def _ours(text: str) -> Seen:
    directives = upsmon_conf.parse(text)
    systems = tuple(
        (each.system, each.type if each.power_value else "", each.power_value)
        for each in upsmon_conf.monitors(directives)
    )
    flag = upsmon_conf.value(directives, "POWERDOWNFLAG")
    return Seen(systems, flag.value if flag else None, len(upsmon_conf.complaints(directives)))


def _theirs(program: str, directory: Path) -> Seen | None:
    """Return what upsmon takes, None where it does not start."""
    found = subprocess.run(
        [*_ALONE, program, "-K"],
        env={**os.environ, "NUT_CONFPATH": str(directory)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_LIMIT,
        check=False,
    )
    said = found.stdout.decode("utf-8", "surrogateescape")
    assert _RUNS not in said, said
    if _FATAL in said:
        return None
    systems = tuple((name, kind, int(value or 0)) for name, kind, value in _UPS.findall(said))
    flags = _FLAG.findall(said)
    return Seen(systems, flags[-1] if flags else None, len(_LINE.findall(said)))
