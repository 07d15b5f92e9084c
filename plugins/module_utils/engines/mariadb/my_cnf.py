# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""my.cnf of MariaDB and MySQL with its includes, read only.

"Configuring MariaDB with Option Files" and MySQL's manual, 6.2.2.2 "Using Option Files"; where they
say nothing, what mysys does when it reads such a file. All options of all groups that a server
reads are one list, in the order of the files: the last of a name counts, whatever its group.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Iterator, Sequence

from ...host.textfile import (
    MOST_FILES,
    Effective,
    Line,
    Malformed,
    Names,
    Read,
    Setting,
    byte_order,
    refusal,
    settled,
    split,
)

#: What servers are built to read, in this order; those that are not there are passed over.
MAINS = ("/etc/my.cnf", "/etc/mysql/my.cnf")
_BLANKS = " \t\n\v\f\r"
#: Bytes of a line with its newline that fit the server's buffer; it reads the rest as a line of its own.
_LONGEST = 4094
#: Includes within includes; the server passes over deeper ones with a warning.
_DEEPEST = 10
_DIRECTIVE = re.compile(
    rf"[{_BLANKS}]*![{_BLANKS}]*(?P<name>includedir|include)(?=[{_BLANKS}])(?P<path>.*)", re.S
)
_ESCAPE = re.compile(r"\\([ntrbs\"'\\])")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "s": " ", '"': '"', "'": "'", "\\": "\\"}
_PREFIX = re.compile(r"(?P<word>skip|disable|enable|loose|maximum|autoset)_(?P<rest>.+)")
#: Prefixes that some options have, that are the value itself for others, and that servers refuse for the rest.
_ODD_PREFIXES = ("maximum", "autoset")
#: Options that are no abbreviation of a longer name.
_OWN_NAMES = ("debug", "innodb", "log")
#: What is a file's name, if it is not switched off.
_LOG_BIN = "log_bin"
#: Letters of a file whose lines stay in memory.
_SMALL = 16384
#: Options whose own name begins with one of the prefixes.
_WHOLE_NAMES = frozenset(
    "skip_bdb skip_character_set_client_handshake skip_external_locking skip_grant_tables skip_host_cache"
    " skip_name_resolve skip_networking skip_parallel_replication skip_replication skip_replica_start"
    " skip_safemalloc skip_show_database skip_slave_start skip_stack_trace skip_symlink".split()
)


def parse(text: str, file: str = "my.cnf") -> list[Line]:
    """Return the lines of a file; `kind` is `group`, `setting`, `include`, `includedir` or `other`.

    Group names are in small letters; option names have underscores and keep their case and prefixes;
    a value is None where the option stands alone. Raises Malformed where the server would not start
    or would read something else than an editor shows: an option before any group, a group without
    its bracket, a directive without a path, a line over its buffer.
    """
    return list(_parsed(text, file) if len(text) <= _SMALL else _parse(text, file))


def _parse(text: str, file: str) -> tuple[Line, ...]:
    lines: list[Line] = []
    group: str | None = None
    for number, raw in enumerate(split(text, file), start=1):
        if len(raw.encode("utf-8", "surrogateescape")) > _LONGEST:
            raise refusal(file, number, raw, f"lines of at most {_LONGEST} bytes", "shorten it")
        line = _line(number, raw, file)
        if line.kind == "group":
            group = line.section
        elif line.kind == "setting" and group is None:
            raise refusal(file, number, raw, "a [group] before the first option")
        lines.append(line._replace(section=group or ""))
    return tuple(lines)


#: Each question about a server reads all of its files.
_parsed = functools.lru_cache(maxsize=64)(_parse)


def groups(flavour: str, version: str, suffix: str = "") -> list[str]:
    """Return the groups that a server reads, for `mariadb` or `mysql` and a version like 10.11.6-MariaDB.

    `suffix` is its --defaults-group-suffix. Raises ValueError for a version that is none.
    """
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    if not match or flavour not in ("mariadb", "mysql"):
        raise ValueError(
            f"observed {flavour!r} {version!r}; expected mariadb or mysql and a version like 10.11.6"
        )
    major, minor = match[1], f"{match[1]}.{match[2]}"
    found = ["mysqld", "server", f"mysqld-{minor}"]
    if flavour == "mariadb":
        found += ["mariadb", f"mariadb-{minor}", "client-server", "galera"]
        if tuple(int(part or 0) for part in match.groups()) >= (10, 4, 6):
            found += ["mariadbd", f"mariadbd-{minor}"]
        if int(major) > 10:
            found += [f"mariadb-{major}", f"mariadbd-{major}"]
    return found + [f"{name}{suffix}".lower() for name in found if suffix]


def effective(
    read: Read, names: Names, mains: Sequence[str], flavour: str, version: str, suffix: str = ""
) -> Effective:
    """Return what counts for a server in its main files and all that they include.

    `read` gives None for a file that the server would not read: absent, or writable for everyone.
    Names are as `option` gives them. Raises Malformed where the server would not start, or where it
    unknown what it reads.
    """
    wanted = set(groups(flavour, version, suffix))
    files: list[str] = []
    pairs: list[tuple[str, Setting]] = []
    for path, line in lines(read, names, mains, flavour, files):
        if line.section in wanted:
            name, value = option(line.name, line.value)
            pairs.append((name, Setting(value, path, line.number)))
    return settled(pairs, files)


def lines(
    read: Read, names: Names, mains: Sequence[str], flavour: str = "mariadb", files: list[str] | None = None
) -> Iterator[tuple[str, Line]]:
    """Yield (file, line) of all options in main files and all that they include; add their paths to `files`.

    Raises Malformed as `effective` does.
    """
    found = files if files is not None else []
    for main in mains:
        for path, line in _read(main, read, names, found, flavour, 0):
            if line.kind == "setting":
                yield path, line


def option(name: str, value: str | None) -> tuple[str, str | None]:
    """Return the option that a name with prefixes means, and its value.

    loose_x is x; skip_x and disable_x are x at 0, enable_x is x at 1, each the other way round
    if it is given the value 0. Of several prefixes the last one before the name counts. A
    name with several meanings in `may_mean` is unchanged: maximum_x, autoset_x, and capital letters.
    """
    name, word = name.replace("-", "_"), ""
    match = _PREFIX.fullmatch(name)
    while match and name not in _WHOLE_NAMES:
        name, word = match["rest"], match["word"]
        match = _PREFIX.fullmatch(name)
    if word in _ODD_PREFIXES:
        return f"{word}_{name}", value
    if word in ("", "loose"):
        # A log whose files are called 0 is not one that is switched off.
        return name, f"./{value}" if name == _LOG_BIN and value in ("0", "1") else value
    turns_on = (word == "enable") is (value != "0")
    return name, "1" if turns_on else "0"


def may_mean(written: str, name: str, in_full: bool = False) -> bool:
    """Return whether an option, as `option` names it, may mean the one of another name.

    Some versions take names in any letter case, and any beginning that is like no other option's
    (`in_full`: this one does not); what maximum_ does, depends on the option.
    """
    if written == name:
        return False
    bare = written.lower()
    if bare != written or bare.startswith(_ODD_PREFIXES):
        bare = option(bare, None)[0]
        for word in _ODD_PREFIXES:
            bare = bare[len(word) + 1 :] if bare.startswith(f"{word}_") else bare
    is_short = bool(bare) and name.startswith(bare) and bare not in _OWN_NAMES
    return bare == name or (is_short and not in_full)


def is_option_file(name: str) -> bool:
    """Return whether !includedir reads a file of this name: by what follows its last dot."""
    return name.endswith(".cnf")


def boolean(value: str | None) -> str:
    """Return `on` or `off`; an option alone is on. Raises ValueError: servers differ over other values."""
    word = "1" if value is None else value.lower()
    if word in ("1", "on", "true"):
        return "on"
    if word in ("0", "off", "false"):
        return "off"
    raise ValueError(f"observed {word[:80]!r}; expected ON or OFF")


def _line(number: int, raw: str, file: str) -> Line:
    words = raw.lstrip(_BLANKS)
    if not words or words[0] in "#;":
        return Line(number, raw)
    if words[0] == "!":
        return _directive(number, raw, file)
    if words[0] == "[":
        name, bracket, _rest = words[1:].partition("]")
        if not bracket:
            raise refusal(file, number, raw, "a group's name and ]")
        return Line(number, raw, "group", name.rstrip(_BLANKS).lower())
    return _option(number, raw, file)


def _directive(number: int, raw: str, file: str) -> Line:
    """Return the line of an include; the server ignores other directives after `!`.

    It cuts off the line's last character for the newline, even if there is none.
    """
    match = _DIRECTIVE.fullmatch(raw)
    if not match:
        return Line(number, raw)
    path = match["path"][:-1].strip(_BLANKS)
    if not path:
        raise refusal(file, number, raw, f"!{match['name']} and a path")
    return Line(number, raw, match["name"], value=path)


def _option(number: int, raw: str, file: str) -> Line:
    text = raw[: _end_comment(raw)].rstrip(_BLANKS)
    start = len(raw) - len(raw.lstrip(_BLANKS))
    head, equals, rest = text[start:].partition("=")
    name = head.rstrip(_BLANKS).replace("-", "_")
    if not name:
        raise refusal(file, number, raw, "an option's name before the equals sign")
    if not equals:
        return Line(number, raw, "setting", name=name, start=len(text), end=len(text))
    first = len(text) - len(rest.lstrip(_BLANKS))
    return Line(number, raw, "setting", name=name, value=_unquoted(text[first:]), start=first, end=len(text))


def _end_comment(raw: str) -> int:
    """Return where the comment behind an option starts: the first # outside quotes."""
    quote, escaped = "", False
    for position, char in enumerate(raw):
        if char in "'\"" and not escaped:
            quote = char if not quote else "" if quote == char else quote
        if not quote and char == "#":
            return position
        escaped = bool(quote) and char == "\\" and not escaped
    return len(raw)


def _unquoted(text: str) -> str:
    """Return a value without the quotes around it and with its escapes; other backslashes stay."""
    if len(text) > 1 and text[0] in "'\"" and text[0] == text[-1]:
        text = text[1:-1]
    return _ESCAPE.sub(lambda match: _ESCAPES[match[1]], text)


def _read(
    path: str, read: Read, names: Names, files: list[str], flavour: str, depth: int
) -> list[tuple[str, Line]]:
    """Return (file, line) of a file and, in place, of those that it includes; add their paths to `files`."""
    if len(files) >= MOST_FILES:
        raise Malformed(path, f"more than {MOST_FILES} included files", "fewer")
    text = read(path)
    if text is None:
        return []
    files.append(path)
    found: list[tuple[str, Line]] = []
    for line in parse(text, path):
        found.append((path, line))
        if line.kind in ("include", "includedir") and depth < _DEEPEST:
            for included in _included(line, path, names, flavour):
                found += _read(included, read, names, files, flavour, depth + 1)
    return found


def _included(line: Line, file: str, names: Names, flavour: str) -> list[str]:
    """Return the paths that a directive names."""
    path = line.value or ""
    if not path.startswith("/"):
        raise refusal(
            file, line.number, line.raw, "an absolute path; others start where the server was started"
        )
    if line.kind == "include":
        return [path]
    found = names(path)
    if found is None:
        raise refusal(file, line.number, line.raw, f"a directory that is there ({path} is not)")
    read = [name for name in byte_order(found) if is_option_file(name)]
    # What follows the first dot counts for older ones.
    if flavour == "mysql" and any(name.count(".") > 1 for name in read):
        wanted = f"names with one dot in {path}, as versions of MySQL differ over more"
        raise refusal(file, line.number, line.raw, wanted, "rename them")
    return [posixpath.join(path, name) for name in read]
