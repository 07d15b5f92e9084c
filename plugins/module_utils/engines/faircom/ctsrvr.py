# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Editing of FairCom DB's ctsrvr.cfg: bytes of other settings stay unchanged.

FairCom's Database Administrator's Guide, "FairCom DB Configuration File": pairs of a keyword, in
any case, and a value without quotes, separated by white space. `;` starts a comment line; behind a
value it may be part of it (`PLUGIN name;library`). A block `SUBSYSTEM NAME { ... }` is left alone,
and since V11.5 a `;` before SUBSYSTEM comments the whole block out.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from ...host.textfile import (
    Line,
    Malformed,
    Setting,
    conflict,
    insert,
    plain,
    refusal,
    remove,
    replace,
    split,
)

SIGN = ";"
_COMPATIBILITY = "COMPATIBILITY"
_WORD = re.compile(r"[A-Za-z0-9_.]+")
_PAIR = re.compile(
    r"[ \t]*(?P<name>[^ \t\r\n]+)[ \t]+(?P<value>[^ \t\r\n](?:[^\r\n]*[^ \t\r\n])?)[ \t]*\r?\n?"
)
_BLOCK = re.compile(r"[ \t]*(?P<comment>;[; \t]*)?SUBSYSTEM(?=[ \t{\r\n]|$)(?P<rest>.*)", re.I | re.S)
_ODD = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)")

#: Keyword -> its default. The value is the beginning of the files' names: a number and .FCS follow.
_LOGS = {"LOG_EVEN": "L", "LOG_ODD": "L", "START_EVEN": "S", "START_ODD": "S"}
#: Copies of the logs: nowhere unless set.
_MIRRORS = ("LOG_EVEN_MIRROR", "LOG_ODD_MIRROR", "START_EVEN_MIRROR", "START_ODD_MIRROR")
_LOCAL = "LOCAL_DIRECTORY"
#: The least similarity of a slip and a known name, by difflib; and the longest name that is compared.
_ALIKE, _LONGEST = 0.8, 40


class Place(NamedTuple):
    """Where a keyword puts files: an absolute directory, or '' with the reason why it is unknown."""

    keyword: str
    directory: str
    reason: str | None = None


def parse(text: str, file: str = "ctsrvr.cfg") -> list[Line]:
    """Return the lines of a ctsrvr.cfg; `kind` is `setting` or `other`, names are in capitals.

    Raises Malformed for an unclosed SUBSYSTEM, a stray brace, a keyword whose value is not on its
    line (FairCom takes the next word, wherever it stands) or a comment behind a value.
    """
    raws = split(text, file)
    lines: list[Line] = []
    while len(lines) < len(raws):
        number, raw = len(lines) + 1, raws[len(lines)]
        block = _BLOCK.fullmatch(raw)
        if block and (not block["comment"] or block["rest"].rstrip().endswith("{")):
            end = _end_of_block(raws, number, bool(block["comment"]), file)
            lines += [Line(row + 1, raws[row]) for row in range(number - 1, end)]
        elif not raw.strip() or raw.lstrip().startswith(SIGN):
            lines.append(Line(number, raw))
        else:
            lines.append(_setting(number, raw, file))
    return lines


def find(lines: Sequence[Line], keyword: str, file: str = "ctsrvr.cfg") -> list[Setting]:
    """Return every value of a keyword, in order."""
    return [Setting(line.value, file, line.number) for line in _of(lines, keyword)]


def value(lines: Sequence[Line], keyword: str, file: str = "ctsrvr.cfg") -> Setting | None:
    """Return the one value of a keyword, or None if it is not set.

    Raises Malformed when it is set twice and differently: FairCom does not say which one counts.
    """
    found = _of(lines, keyword)
    if len({line.value for line in found}) > 1:
        raise conflict(file, keyword.upper(), found)
    return Setting(found[-1].value, file, found[-1].number) if found else None


def compatibility(lines: Sequence[Line], file: str = "ctsrvr.cfg") -> dict[str, Setting]:
    """Return the COMPATIBILITY flags that are set, in capitals, and where each one last stands."""
    return {(setting.value or "").upper(): setting for setting in find(lines, _COMPATIBILITY, file)}


def slips(lines: Sequence[Line], keywords: Collection[str], flags: Collection[str]) -> Iterator[str]:
    """Yield the misspelt names of keywords and of COMPATIBILITY flags, with the known name that is nearest.

    A name that begins with a known one and `_` is another keyword of FairCom's, for example COMMIT_DELAY_USEC.
    """
    keywords = (*keywords, _COMPATIBILITY, _LOCAL, *_LOGS, *_MIRRORS)
    for line in lines:
        if line.kind != "setting":
            continue
        is_flag = line.name == _COMPATIBILITY
        observed, known = (str(line.value).upper(), tuple(flags)) if is_flag else (line.name, keywords)
        if (
            len(observed) > _LONGEST
            or observed in known
            or observed.startswith(tuple(f"{k}_" for k in known))
        ):
            continue
        near = difflib.get_close_matches(observed, known, 1, _ALIKE)
        if near:
            kind = f"flag {_COMPATIBILITY}" if is_flag else "keyword"
            yield f"line {line.number}: unknown {kind} {observed} (did you mean {near[0]}?)"


def set_keyword(text: str, keyword: str, wanted: str, note: str) -> str:
    """Return the text with a keyword at a value wherever it stands, or appended.

    Text that already says so is returned as it is.
    """
    keyword, wanted = _word(keyword).upper(), _writable(wanted)
    if keyword in (_COMPATIBILITY, "SUBSYSTEM"):
        raise ValueError(f"{keyword} is no keyword with one value: it may stand many times")
    lines = parse(text)
    found = _of(lines, keyword)
    if not found:
        return insert(lines, len(lines), f"{keyword} {wanted}", SIGN, note)
    wrong = [(line, line.start, line.end, wanted) for line in found if line.value != wanted]
    return replace(lines, wrong, SIGN, note)


def unset_keyword(text: str, keyword: str) -> str:
    """Return the text without a keyword: its default counts."""
    if keyword.upper() == _COMPATIBILITY:
        raise ValueError("COMPATIBILITY is unset by its flag: remove_compatibility")
    lines = parse(text)
    return remove(lines, _of(lines, keyword), SIGN)


def add_compatibility(text: str, flag: str, note: str) -> str:
    """Return the text with a COMPATIBILITY flag, after the others or at the end."""
    lines = parse(text)
    if _word(flag).upper() in compatibility(lines):
        return text
    others = _of(lines, _COMPATIBILITY)
    row = others[-1].number if others else len(lines)
    return insert(lines, row, f"{_COMPATIBILITY} {flag.upper()}", SIGN, note)


def remove_compatibility(text: str, flag: str) -> str:
    """Return the text without a COMPATIBILITY flag."""
    lines = parse(text)
    doomed = [line for line in _of(lines, _COMPATIBILITY) if (line.value or "").upper() == flag.upper()]
    return remove(lines, doomed, SIGN)


def log_places(lines: Sequence[Line], working_directory: str) -> list[Place]:
    """Return the directories of transaction logs, start files and their mirrors, and LOCAL_DIRECTORY.

    A name that is not absolute is attached to LOCAL_DIRECTORY, which is the server's working
    directory unless set.
    """
    local = _place(lines, _LOCAL, "", working_directory)
    base = local.directory
    places = [local]
    for keyword in (*_LOGS, *_MIRRORS):
        if keyword in _MIRRORS and not find(lines, keyword):
            continue
        place = _place(lines, keyword, _LOGS.get(keyword, ""), base)
        places.append(place if place.directory or place.reason else place._replace(reason=local.reason))
    return places


def log_names(lines: Sequence[Line]) -> set[str]:
    """Return how the names of transaction logs begin; a number and .FCS follow."""
    names = [setting.value for keyword in ("LOG_EVEN", "LOG_ODD") for setting in find(lines, keyword)]
    return {posixpath.basename(name) for name in (_LOGS["LOG_EVEN"], *filter(None, names))}


def _setting(number: int, raw: str, file: str) -> Line:
    match = _PAIR.fullmatch(raw)
    if not match or not _WORD.fullmatch(match["name"]):
        raise refusal(file, number, raw, "a keyword and its value on one line")
    if _ODD.search(raw):
        raise refusal(file, number, raw, "text without control characters")
    if re.search(r"[ \t];", match["value"]):
        raise refusal(file, number, raw, "comments on lines of their own")
    if match["name"].upper() == _COMPATIBILITY and not _WORD.fullmatch(match["value"]):
        raise refusal(file, number, raw, "one flag behind COMPATIBILITY")
    return Line(
        number,
        raw,
        "setting",
        "",
        match["name"].upper(),
        match["value"],
        match.start("value"),
        match.end("value"),
    )


def _end_of_block(raws: Sequence[str], number: int, commented: bool, file: str) -> int:
    """Return the number of the line that closes the SUBSYSTEM of line `number`."""
    depth, opened = 0, False
    for row in range(number - 1, len(raws)):
        words = raws[row].strip()
        if commented:
            words = words.lstrip("; \t")
        elif words.startswith(SIGN):
            continue
        depth += words.count("{") - words.count("}")
        opened = opened or "{" in words
        if opened and depth <= 0:
            if depth or words.rpartition("}")[2].strip():
                raise refusal(
                    file, row + 1, raws[row], "a brace that closes the SUBSYSTEM and nothing behind it"
                )
            return row + 1
        if not opened and row >= number and words:
            raise refusal(file, row + 1, raws[row], f"the opening brace of the SUBSYSTEM of line {number}")
    raise refusal(file, number, raws[number - 1], "a SUBSYSTEM that is closed by a brace", "close it")


def _place(lines: Sequence[Line], keyword: str, default: str, base: str) -> Place:
    try:
        setting = value(lines, keyword)
    except Malformed as error:
        return Place(keyword, "", str(error))
    path_named = (setting.value if setting else None) or default
    if re.search(r"[%$]", path_named):
        return Place(keyword, "", f"{keyword} {path_named}: an environment variable of the server's decides")
    if "\\" in path_named or re.match(r"[A-Za-z]:", path_named):
        return Place(keyword, "", f"{keyword} {path_named}: no path of this system")
    if not path_named.startswith("/") and not base:
        return Place(keyword, "")
    path = posixpath.join(base, path_named)
    return Place(keyword, posixpath.normpath(path if keyword == _LOCAL else posixpath.dirname(path)))


def _of(lines: Sequence[Line], keyword: str) -> list[Line]:
    return [line for line in lines if line.kind == "setting" and line.name == keyword.upper()]


def _word(word: str) -> str:
    if not _WORD.fullmatch(word):
        raise ValueError(f"observed {word!r}; expected one word of letters, digits and underscores")
    return word


def _writable(wanted: str) -> str:
    value = plain(wanted, "value")
    if not value or value != value.strip() or re.search(r"[ \t];|[{}]", value) or value.startswith(SIGN):
        raise ValueError(
            f"value: observed {value!r}; expected text without a comment, a brace or outer white space"
        )
    return value
