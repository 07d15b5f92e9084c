# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NUT's upsmon.conf, parsed as upsmon parses it. Edits leave the bytes of other lines unchanged.

upsmon.conf(5), and NUT's parseconf. A line is tokens between white space. A token may be in double
quotes; a backslash takes the next character as it is, and joins lines before a newline. `#` starts a
comment, `=` is a separate token, and characters outside of ASCII are dropped. Names of directives are
capitals. The last line of a name counts, except MONITOR: one for each system, and which of two counts
depends on whether upsmon started or reloaded.

This file contains passwords: no error shows more of a line than the name that it begins with.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ..host.textfile import Line, Malformed, Setting, insert, line_ends, plain, remove, replace, split

SIGN = "#"
FILE = "upsmon.conf"

#: Directives with one value, and those with more: how many words a line of them needs behind its name.
ONE_VALUE = (
    "SHUTDOWNCMD",
    "SHUTDOWNEXIT",
    "POWERDOWNFLAG",
    "NOTIFYCMD",
    "POLLFREQ",
    "POLLFREQALERT",
    "POLLFAIL_LOG_THROTTLE_MAX",
    "OFFDURATION",
    "OBLBDURATION",
    "OVERDURATION",
    "ALARMCRITICAL",
    "HOSTSYNC",
    "DEADTIME",
    "MINSUPPLIES",
    "RBWARNTIME",
    "NOCOMMWARNTIME",
    "FINALDELAY",
    "RUN_AS_USER",
    "CERTPATH",
    "CERTFILE",
    "CERTVERIFY",
    "FORCESSL",
    "DEBUG_MIN",
)
_WORDS = {"MONITOR": "system, power value, user, password and type"}
_MORE = {"NOTIFYMSG": 2, "NOTIFYFLAG": 2, "CERTIDENT": 2, "CERTHOST": 4, "MONITOR": 5}

#: What upsmon knows to tell, in every release from 2.7 on.
EVENTS = (
    "ONLINE",
    "ONBATT",
    "LOWBATT",
    "FSD",
    "COMMOK",
    "COMMBAD",
    "SHUTDOWN",
    "REPLBATT",
    "NOCOMM",
    "NOPARENT",
)
FLAGS = ("SYSLOG", "WALL", "EXEC", "IGNORE")
#: What upsmon does with an event that no NOTIFYFLAG names.
DEFAULT_FLAGS = ("SYSLOG", "WALL")

_WHITE = " \t\n\v\f\r"
_MOST_WORDS = 32
_LONGEST_WORD = 512
_EVENT = re.compile(r"[A-Z_]+")
_BARE = re.compile(r"[A-Za-z0-9_@.:,/+-]+")


class Directive(NamedTuple):
    """One logical line: its text, where it begins, its tokens as upsmon reads them, and their places.

    `line.number` counts logical lines, `row` those of the file, both from 1. `words` is empty for
    comments and blank lines. `spans` bound the tokens in `line.raw` as they are written, with their quotes.
    """

    line: Line
    row: int
    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]

    @property
    def name(self) -> str:
        """The first word, or ''."""
        return self.words[0] if self.words else ""


class Monitor(NamedTuple):
    """A MONITOR line without its password. `type` is primary or secondary, `word` what the file says.

    A release before 2.8 takes the word `primary` for a secondary: it knows `master` alone.
    """

    system: str
    power_value: int
    user: str
    type: str
    word: str
    row: int


def parse(text: str, file: str = FILE) -> list[Directive]:
    """Return the logical lines of an upsmon.conf.

    Raises Malformed for a quote that is not closed on its line (upsmon would go on to the next quote,
    wherever it stands), for a `#` in quotes without a backslash (releases read it differently), and for a
    file that ends in a backslash alone.
    """
    split(text, file)  # Refuses what is no text.
    found: list[Directive] = []
    place, row = 0, 1
    while place < len(text):
        words, spans, end = _logical_line(text, place, file, row)
        raw = text[place:end]
        kind = "setting" if words else "other"
        line = Line(len(found) + 1, raw, kind, "", words[0] if words else "")
        found.append(Directive(line, row, words, spans))
        place, row = end, row + raw.count("\n")
    return found


def render(directives: Sequence[Directive]) -> str:
    """Return the text of parsed lines: the very text that was parsed."""
    return "".join(each.line.raw for each in directives)


def complaints(directives: Sequence[Directive], file: str = FILE) -> list[str]:
    """Return what upsmon could not use: directives it does not know, and those with too few values."""
    complaints_found = []
    for each in directives:
        if not each.words or each.name.upper() == "DEBUG_MIN":
            continue
        needed = _MORE.get(each.name, 1 if each.name in ONE_VALUE else 0)
        place = f"{file} line {each.row}"
        if not needed:
            wanted = "one of upsmon.conf(5), in capitals"
            complaints_found.append(
                f"{place}: observed a directive that upsmon does not know; expected {wanted}"
            )
        elif len(each.words) <= needed:
            observed = f"{each.name} with {len(each.words) - 1} values"
            complaints_found.append(f"{place}: observed {observed}; expected {_WORDS.get(each.name, needed)}")
    return complaints_found


def value(directives: Sequence[Directive], name: str, file: str = FILE) -> Setting | None:
    """Return the value of a directive that counts, or None if it is not set."""
    found = _of(directives, name)
    return Setting(found[-1].words[1], file, found[-1].row) if found else None


def number(word: str) -> int | None:
    """Return a plain decimal number, or None: upsmon takes what atoi(3) makes of anything else."""
    return int(word) if re.fullmatch(r"[0-9]{1,9}", word) else None


def monitors(directives: Sequence[Directive], file: str = FILE) -> list[Monitor]:
    """Return the systems that upsmon watches, in the file's order.

    Raises Malformed for a power value that is no number, and for a system with two lines that differ.
    """
    found: dict[str, Monitor] = {}
    first_words: dict[str, tuple[str, ...]] = {}
    for each in _of(directives, "MONITOR"):
        system, power, user, _password, word = each.words[1:6]
        worth = number(power)
        if worth is None:
            raise _refused(file, each.row, "a MONITOR whose power value is no number", "0 or more")
        if first_words.setdefault(system, each.words[:6]) != each.words[:6]:
            raise _refused(
                file, each.row, "a second MONITOR of a system that differs", "one line for each system"
            )
        kind = "primary" if word.lower() in ("primary", "master") else "secondary"
        found.setdefault(system, Monitor(system, worth, user, kind, word, each.row))
    return list(found.values())


def flags(directives: Sequence[Directive], event: str) -> tuple[str, ...]:
    """Return what upsmon does at an event, of FLAGS in the file's order; without a line, its default."""
    value = flag_word(directives, event)
    if value is None:
        return DEFAULT_FLAGS
    return tuple(word for word in value.split("+") if word in FLAGS)


def flag_word(directives: Sequence[Directive], event: str) -> str | None:
    """Return the flags of an event as they are written, None if no line names it."""
    found = [each for each in _of(directives, "NOTIFYFLAG") if each.words[1].upper() == event.upper()]
    return found[-1].words[2] if found else None


def flagged(directives: Sequence[Directive]) -> list[str]:
    """Return the events that a NOTIFYFLAG names, in capitals: newer releases know more than EVENTS."""
    return list(dict.fromkeys(each.words[1].upper() for each in _of(directives, "NOTIFYFLAG")))


def set_value(text: str, name: str, wanted: str, note: str) -> str:
    """Return the text with a directive at a value wherever it stands, or appended.

    Text that already says so is returned as it is. Raises Malformed, and ValueError for what cannot be
    written.
    """
    if name not in ONE_VALUE:
        raise ValueError(f"{name}: no directive with one value")
    directives = parse(text)
    found = _of(directives, name)
    if not found:
        return _added(text, f"{name} {encode(wanted)}", note)
    wrong = [_spaced(each.line, *each.spans[1], encode(wanted)) for each in found if each.words[1] != wanted]
    return replace(_lines(directives), wrong, SIGN, note)


def unset(text: str, name: str) -> str:
    """Return the text without a directive of one value: upsmon's default counts. Raises Malformed."""
    if name not in ONE_VALUE:
        raise ValueError(f"{name}: no directive with one value")
    directives = parse(text)
    return remove(_lines(directives), [each.line for each in _of(directives, name)], SIGN)


def set_flags(text: str, event: str, wanted: Sequence[str], note: str) -> str:
    """Return the text with an event's NOTIFYFLAG at these flags, in their order.

    `event` is in capitals. Raises Malformed, and ValueError for what cannot be written.
    """
    if not _EVENT.fullmatch(event):
        raise ValueError(f"event: observed {event!r}; expected one word in capitals")
    directives = parse(text)
    found = [each for each in _of(directives, "NOTIFYFLAG") if each.words[1].upper() == event]
    flags = "+".join(wanted)
    written = encode(flags)
    if not found:
        return _added(text, f"NOTIFYFLAG {event} {written}", note)
    wrong = [_spaced(each.line, *each.spans[2], written) for each in found if each.words[2] != flags]
    return replace(_lines(directives), wrong, SIGN, note)


def unset_flags(text: str, event: str) -> str:
    """Return the text without the NOTIFYFLAG lines of an event: its default counts. Raises Malformed."""
    directives = parse(text)
    doomed = [each.line for each in _of(directives, "NOTIFYFLAG") if each.words[1].upper() == event.upper()]
    return remove(_lines(directives), doomed, SIGN)


def monitor_words(text: str, system: str) -> tuple[str, ...] | None:
    """Return the values of a system's MONITOR, the password among them, or None. Raises Malformed."""
    found = [each for each in _of(parse(text), "MONITOR") if each.words[1] == system]
    return found[-1].words[1:6] if found else None


def set_monitor(text: str, words: Sequence[str], note: str) -> str:
    """Return the text with a system's MONITOR at these values: system, power value, user, password, type.

    Raises Malformed, and ValueError for what cannot be written.
    """
    if len(words) != _MORE["MONITOR"]:
        raise ValueError("MONITOR: expected system, power value, user, password and type")
    body = " ".join(["MONITOR", *(encode(word) for word in words)])
    directives = parse(text)
    found = [each for each in _of(directives, "MONITOR") if each.words[1] == words[0]]
    if not found:
        return _added(text, body, note)
    wrong = [
        _spaced(each.line, each.spans[0][0], each.spans[5][1], body)
        for each in found
        if each.words[1:6] != tuple(words)
    ]
    return replace(_lines(directives), wrong, SIGN, note)


def remove_monitor(text: str, system: str) -> str:
    """Return the text without a system's MONITOR. Raises Malformed."""
    directives = parse(text)
    doomed = [each.line for each in _of(directives, "MONITOR") if each.words[1] == system]
    return remove(_lines(directives), doomed, SIGN)


def encode(word: str) -> str:
    """Return a word as it is written: bare where that reads the same, else in quotes.

    Raises ValueError for characters that upsmon drops, and for a word that it would cut off. The message
    does not show the word: it may be a password.
    """
    try:
        plain(word, "value")
    except ValueError:
        raise ValueError(
            "value: observed control characters; expected text on one line without them"
        ) from None
    if not word.isascii() or len(word) > _LONGEST_WORD:
        raise ValueError(
            f"value: expected ASCII text of at most {_LONGEST_WORD} characters: upsmon drops the rest"
        )
    if _BARE.fullmatch(word):
        return word
    return '"' + re.sub(r'([#\\"])', r"\\\1", word) + '"'


def _of(directives: Sequence[Directive], name: str) -> list[Directive]:
    """Return the lines of a directive that have the values that it needs: upsmon ignores others."""
    return [each for each in directives if each.name == name and len(each.words) > _MORE.get(name, 1)]


def _lines(directives: Sequence[Directive]) -> list[Line]:
    return [each.line for each in directives]


def _added(text: str, body: str, note: str) -> str:
    """Return the text with a line at its end. A backslash there would take our line end for its own."""
    if text and not text.endswith("\n"):
        text += "\r\n" if line_ends(text) == "dos" else "\n"
    lines = _lines(parse(text))
    if len(parse(f"{text}{SIGN}")) == len(lines) > 0:
        lines = _lines(parse(f"{text}\n"))
    return insert(lines, len(lines), body, SIGN, note)


def _spaced(line: Line, start: int, end: int, written: str) -> tuple[Line, int, int, str]:
    """Return a change of a part of a line: tokens need no white space between them, what is written does."""
    before = "" if start == 0 or line.raw[start - 1] in _WHITE else " "
    behind = "" if line.raw[end : end + 1] in ("", SIGN, *_WHITE) else " "
    return line, start, end, f"{before}{written}{behind}"


def _logical_line(
    text: str, start: int, file: str, row: int
) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...], int]:
    """Return the tokens of the line that begins at `start`, their places in it, and where it ends.

    These are the states of NUT's parseconf.
    """
    words: list[str] = []
    spans: list[tuple[int, int]] = []
    place = start
    while place < len(text) and text[place] != "\n":
        char, begin = text[place], place
        if char == SIGN:
            newline = text.find("\n", place)
            place = newline if newline >= 0 else len(text)
            break
        if char in _WHITE:
            place += 1
            continue
        if char == "=":
            characters, place = ["="], place + 1
        else:
            characters, place = (_quoted if char == '"' else _bare)(text, place)
        if place < 0:
            wanted = "quotes that end on their line, and a # in them behind a backslash"
            raise _refused(file, row, _shown(words), wanted)
        printable = "".join(char for char in characters if " " <= char <= "\x7f")
        is_cut = char not in '="' and place == len(text)
        if is_cut and not printable:
            raise _refused(
                file, row, "a last line that goes on behind the file's end", "a line behind the backslash"
            )
        # At the end of a file upsmon passes over a bare word that is the only one of its line.
        if len(words) < _MOST_WORDS and not (is_cut and not words):
            words.append(printable[:_LONGEST_WORD])
            spans.append((begin - start, place - start))
    return tuple(words), tuple(spans), min(place + 1, len(text))


def _quoted(raw: str, start: int) -> tuple[list[str], int]:
    """Return the characters between quotes and where the token ends, or -1 if that is unknown."""
    characters: list[str] = []
    place = start + 1
    while place < len(raw):
        char = raw[place]
        if char == '"':
            return characters, place + 1
        if char in "#\n":
            break
        if char == "\\" and place + 1 < len(raw):
            place += 1
            char = raw[place]
        characters.append(char)
        place += 1
    return characters, -1


def _bare(raw: str, start: int) -> tuple[list[str], int]:
    """Return the characters of a word without quotes, and where it ends."""
    characters: list[str] = []
    place = start
    while place < len(raw):
        char = raw[place]
        if char in _WHITE or char in "#=":
            break
        if char == "\\":
            place += 1
            char = raw[place] if place < len(raw) else ""
        characters.append(char)
        place += 1
    return characters, min(place, len(raw))


def _shown(words: Sequence[str]) -> str:
    """Return how a line begins, if that is a name of upsmon's: any other text may be a password."""
    name = words[0] if words else ""
    return (
        f"{name} with a quote that cannot be read"
        if name in (*ONE_VALUE, *_MORE)
        else "a quote that cannot be read"
    )


def _refused(file: str, row: int, observed: str, wanted: str) -> Malformed:
    return Malformed(f"{file} line {row}", observed, f"{wanted}; fix that line, then run again")
