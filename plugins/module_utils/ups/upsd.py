# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What NUT's upsd says of a UPS, by its own protocol: "Network protocol information" in NUT's
developer guide. Every answer is hostile until it has been parsed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..host.seam import Host, Unobservable

PORT = 3493
#: A name that needs no quotes in a question.
_NAME = re.compile(r"[A-Za-z0-9_.:+-]{1,128}", re.ASCII)
_SYSTEM = re.compile(r"(?P<ups>[^@]+)(?:@(?:\[(?P<six>[^]]+)\]|(?P<host>[^:\[\]]+))(?::(?P<port>\d{1,5}))?)?")
_VARIABLE = re.compile(r'VAR (?P<ups>\S+) (?P<name>[A-Za-z0-9_.-]+) "(?P<value>(?:[^"\\]|\\.)*)"', re.S)
_REFUSED = re.compile(r"ERR [A-Z0-9-]{1,40}", re.ASCII)
_LOGINS = re.compile(r"NUMLOGINS (?P<ups>\S+) (?P<count>\d{1,6})", re.ASCII)
#: Characters of an answer that an error shows. The settings of a driver, passwords too, are in quotes.
_MOST_SHOWN = 60


class System(NamedTuple):
    """Where a UPS is queried: its name there, and the address and port of its upsd."""

    ups: str
    address: str
    port: int


class Answer(NamedTuple):
    """What upsd says of one UPS.

    `variables` is {name: value}, None where it did not tell them; `word` is then upsd's own (DATA-STALE),
    or '' if its answer has none. `logins` is how many clients draw power from the UPS, by
    their own word, or None. `reason` says why something is missing.
    """

    variables: dict[str, str] | None
    logins: int | None
    word: str = ""
    reason: str | None = None


def system(text: str) -> System:
    """Return where `ups@host:port` of a MONITOR line is queried. Raises Unobservable."""
    found = _SYSTEM.fullmatch(text)
    if not found or not _NAME.fullmatch(found["ups"]):
        raise Unobservable(f"{text!r}: expected ups, ups@host or ups@host:port")
    port = int(found["port"] or PORT)
    if not 0 < port < 65536:
        raise Unobservable(f"{text!r}: expected a port below 65536")
    return System(found["ups"], found["six"] or found["host"] or "localhost", port)


def ask(host: Host, system: System) -> Answer:
    """Return what upsd says of a UPS. Never raises: what is unknown has a reason."""
    questions = [f"LIST VAR {system.ups}\n".encode("ascii"), f"GET NUMLOGINS {system.ups}\n".encode("ascii")]
    try:
        listed, counted = host.ask(system.address, system.port, questions, is_whole)
    except Unobservable as error:
        return Answer(None, None, "", f"upsd: {error}")
    logins = _logins(_text(counted), system.ups)
    try:
        return Answer(variables(_text(listed), system.ups), logins)
    except Refused as error:
        return Answer(None, logins, str(error), f"upsd of {system.address} says {error}")
    except Unobservable as error:
        return Answer(None, logins, "", f"upsd of {system.address}: {error}")


class Refused(Unobservable):
    """upsd has no data of a UPS; the message is its own error, such as DATA-STALE."""


def is_whole(received: bytearray) -> bool:
    """Return whether an answer is complete: one line, or a list with its end."""
    if not received.endswith(b"\n"):
        return False
    if not received.startswith(b"BEGIN LIST "):
        return True
    last = received.rfind(b"\n", 0, len(received) - 1) + 1
    return last > 0 and received.startswith(b"END LIST ", last)


def variables(text: str, ups: str) -> dict[str, str]:
    """Return {name: value} of an answer to LIST VAR.

    Raises Refused for what upsd gives instead of a list, and Unobservable for what is neither.
    """
    lines = text.rstrip("\n").split("\n")
    if _REFUSED.fullmatch(lines[0]):
        raise Refused(lines[0][len("ERR ") :])
    if lines[0] != f"BEGIN LIST VAR {ups}" or lines[-1] != f"END LIST VAR {ups}":
        raise _odd(lines[0], f"BEGIN LIST VAR {ups}")
    found: dict[str, str] = {}
    for line in lines[1:-1]:
        variable = _VARIABLE.fullmatch(line)
        if not variable or variable["ups"] != ups:
            raise _odd(line, f'VAR {ups} name "value"')
        if variable["name"] in found:
            raise _odd(line, "each variable once")
        found[variable["name"]] = re.sub(r"\\(.)", r"\1", variable["value"])
    return found


def _logins(text: str, ups: str) -> int | None:
    found = _LOGINS.fullmatch(text.rstrip("\n"))
    return int(found["count"]) if found and found["ups"] == ups else None


def _text(received: bytes) -> str:
    return received.decode("utf-8", "surrogateescape")


def _odd(line: str, wanted: str) -> Unobservable:
    shown = line.partition('"')[0][:_MOST_SHOWN]
    return Unobservable(f"observed {shown!r}, expected {wanted}")
