# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a line of shell shuts the host down at once, option by option. Pure.

Sources: shutdown(8), halt(8), systemctl(1) and telinit(8) of systemd, shutdown(8) of sysvinit, and sh(1). A command that is
not understood is `unknown`: a name that contains `shutdown` shows nothing.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..host.observation import UNKNOWN
from .conditions import MET, UNMET

#: The result for a command that neither shuts down nor prevents what follows it.
IDLE = "idle"

#: Where distributions install these programs. A program of this name elsewhere is another one.
_DIRECTORIES = ("", "/sbin", "/usr/sbin", "/bin", "/usr/bin")
#: Commands that run the rest of the line as a command; their own options are not read.
_PREFIXES = ("exec", "command", "nohup", "sudo", "doas")
_SHELLS = ("sh", "bash", "dash")
_SEPARATORS = (";", "&&", "||", "&", "|")
#: Nested `sh -c` that are followed.
_DEPTH = 3
_EXPANDS = re.compile(r"[$`]")
_BLANK = re.compile(r"[ \t]*")
_OPERATOR = re.compile(r"&&|\|\||>>|>&|<&|&>|[;&|()<>\n]")
_PART = re.compile(r"'[^']*'|\"[^\"\\]*\"|\\.|[^'\"\\ \t;&|()<>\n]+")
_PLAIN = re.compile(rf"(?:{_PART.pattern})+")
_MINUTES = re.compile(r"\+?([0-9]{1,9})", re.ASCII)
_CLOCK = re.compile(r"[0-9]{1,2}:[0-9]{2}", re.ASCII)

#: Letters of shutdown(8): those that stop the machine, those without an effect, and what the others do instead.
_SHUTDOWN_STOPS, _SHUTDOWN_SILENT = "hHP", "afFn"
_SHUTDOWN_OTHER = {
    "k": "warns only",
    "r": "restarts the host",
    "K": "restarts the host",
    "c": "cancels a shutdown",
}
_SHUTDOWN_LONG = {
    "--halt": "",
    "--poweroff": "",
    "--no-wall": "",
    "--reboot": _SHUTDOWN_OTHER["r"],
    "--kexec": _SHUTDOWN_OTHER["K"],
    "--show": "shows only",
    "--help": "shows only",
}
_KILLS = "kills the servers instead of stopping them"
_HALT_LETTERS = {"p": "", "d": "", "n": "", "f": _KILLS, "w": "writes a record only", "i": "", "h": ""}
_HALT_LONG = {
    "--halt": "",
    "--poweroff": "",
    "--no-wtmp": "",
    "--no-sync": "",
    "--no-wall": "",
    "--force": _KILLS,
    "--wtmp-only": "writes a record only",
    "--reboot": "restarts the host",
    "--help": "shows only",
}
#: Verbs and targets of systemctl that stop the machine, and what others do instead.
_STOPS = ("poweroff", "halt")
_OTHER_VERBS = {
    **dict.fromkeys(("reboot", "kexec", "soft-reboot"), "restarts the host"),
    **dict.fromkeys(("suspend", "hibernate", "hybrid-sleep", "suspend-then-hibernate"), "suspends the host"),
}
_SYSTEMCTL_SILENT = (
    "-i",
    "--ignore-inhibitors",
    "--no-wall",
    "-q",
    "--quiet",
    "--no-block",
    "--no-ask-password",
)
_SYSTEMCTL_OTHER = {
    "-f": _KILLS,
    "--force": _KILLS,
    "--dry-run": "shows only",
    "--user": "stops a user's manager only",
    "--help": "shows only",
}


class Result(NamedTuple):
    """What a line does: met, unmet or unknown, and why in short.

    `seconds` is how long the machine waits before it begins, None if unknown.
    """

    state: str
    why: str = ""
    seconds: float | None = 0


def of_line(text: str, depth: int = 0) -> Result:
    """Return what a line does that a shell runs. `Result.state` is never IDLE."""
    found = _of_line(text, depth)
    return Result(UNMET, "it shuts nothing down") if found.state == IDLE else found


def of_lines(lines: Sequence[str]) -> Result:
    """Return what lines of a script do, one after the other."""
    found = (_of_line(line, 0) for line in lines)
    return next((each for each in found if each.state != IDLE), Result(UNMET, "it shuts nothing down"))


def _of_line(text: str, depth: int) -> Result:
    if depth > _DEPTH:
        return Result(UNKNOWN, "too many shells in each other", None)
    try:
        words = _without_redirections(_words(text))
    except ValueError as error:
        return Result(UNKNOWN, str(error), None)
    return _of_list(words, depth)


class _Word(NamedTuple):
    """A word of a line, or an operator of the shell; `is_glued` if no blank is before it."""

    text: str
    is_operator: bool = False
    is_glued: bool = False


def _words(text: str) -> list[_Word]:
    """Return the parts of a line, without its comment. Raises ValueError for what is not understood."""
    found: list[_Word] = []
    end = 0
    while end < len(text):
        start = _BLANK.match(text, end).end()  # type: ignore[union-attr]
        if start == len(text) or text[start] == "#":
            break
        match = _OPERATOR.match(text, start) or _PLAIN.match(text, start)
        if match is None:
            raise ValueError("its quotes are not closed")
        is_operator = match.re is _OPERATOR
        if not is_operator and any(
            part[0] not in "'\\" and _EXPANDS.search(part) for part in _PART.findall(match[0])
        ):
            raise ValueError("the shell inserts a value at a $ or `")
        word = match[0] if is_operator else _unquoted(match[0])
        found.append(_Word(word, is_operator, start == end))
        end = match.end()
    return found


def _unquoted(word: str) -> str:
    return "".join(
        part[1:-1] if part[0] in "'\"" else part[1:] if part[0] == "\\" else part
        for part in _PART.findall(word)
    )


def _without_redirections(words: Sequence[_Word]) -> list[_Word]:
    """Return the parts without redirections and their files. Raises ValueError for operators but separators."""
    found: list[_Word] = []
    follows = False
    for word in words:
        if follows and not word.is_operator:
            follows = False
        elif word.is_operator and set(word.text) & set("<>"):
            # A number that touches the sign is a descriptor, not an argument.
            if word.is_glued and found and found[-1].text.isdigit() and not found[-1].is_operator:
                found.pop()
            follows = True
        elif word.is_operator and word.text not in _SEPARATORS:
            raise ValueError("its parentheses or operators are not understood")
        else:
            found.append(word)
    return found


def _of_list(words: Sequence[_Word], depth: int) -> Result:
    """Return what a list of commands does: the first that is not idle decides."""
    before = ";"
    for command, after in _commands(words):
        found = _of_command(command, depth) if command else Result(IDLE)
        if found.state != IDLE:
            if before == ";":
                return found
            return Result(UNKNOWN, f"whether it runs depends on the command before it ({before})", None)
        # What follows a pipe runs; what follows && or || may not.
        before = after if after in ("&&", "||") else ";"
    return Result(IDLE)


def _commands(words: Sequence[_Word]) -> list[tuple[list[str], str]]:
    """Return (a command, the separator after it), `;` after the last one."""
    found: list[tuple[list[str], str]] = []
    current: list[str] = []
    for word in words:
        if word.is_operator:
            found.append((current, word.text))
            current = []
        else:
            current.append(word.text)
    return [*found, (current, ";")]


def _of_command(words: list[str], depth: int) -> Result:
    program, arguments = words[0], words[1:]
    name = posixpath.basename(program)
    if posixpath.dirname(program) not in _DIRECTORIES:
        return Result(UNKNOWN, f"what {program} does is unknown", None)
    if name in _PREFIXES:
        rest = arguments[1:] if arguments[:1] == ["-n"] else arguments
        if rest and not rest[0].startswith("-"):
            return _of_command(rest, depth)
    if name in _SHELLS and len(arguments) >= 2 and arguments[0] == "-c":
        return _of_line(arguments[1], depth + 1)
    if name in _PROGRAMS:
        return _PROGRAMS[name](arguments)
    return _CONSTANT.get(name) or Result(UNKNOWN, f"what {program} does is unknown", None)


def _of_shutdown(arguments: list[str]) -> Result:
    times = []
    skip = False
    for index, word in enumerate(arguments):
        if skip:
            skip = False
            continue
        if word.startswith("--"):
            other = _SHUTDOWN_LONG.get(word, UNKNOWN)
        elif word.startswith("-") and len(word) > 1:
            letters, skip, other = word[1:], False, ""
            if "t" in letters:  # A number of seconds between two signals: it delays nothing.
                letters, _t, number = letters.partition("t")
                skip = not number
            other = _of_letters(letters)
        else:
            times = arguments[index:]
            break
        if other == UNKNOWN:
            return Result(UNKNOWN, f"its option {word} is unknown", None)
        if other:
            return Result(UNMET, f"it {other} ({word})")
    # The words behind the time are the message, in which an option may stand as well.
    late = [word for word in times[1:] if word.startswith("-")]
    if late:
        again = _of_shutdown([*late, times[0]])
        if again.state != MET:
            return again
    return _of_time(times[0] if times else "")


def _of_letters(letters: str) -> str:
    for letter in letters:
        if letter in _SHUTDOWN_OTHER:
            return _SHUTDOWN_OTHER[letter]
        if letter not in _SHUTDOWN_STOPS + _SHUTDOWN_SILENT:
            return UNKNOWN
    return ""


def _of_time(time: str) -> Result:
    if not time:
        return Result(UNMET, "without a time it waits a minute", 60)
    if time == "now":
        return Result(MET)
    minutes = _MINUTES.fullmatch(time)
    if minutes:
        seconds = float(minutes[1]) * 60
        return (
            Result(UNMET, f"it waits {minutes[1].lstrip('0')} min ({time})", seconds)
            if seconds
            else Result(MET)
        )
    if _CLOCK.fullmatch(time):
        return Result(UNMET, f"it waits until {time}", None)
    return Result(UNKNOWN, f"{time!r} is not a known time", None)


def _of_halt(arguments: list[str]) -> Result:
    for word in arguments:
        if word.startswith("--"):
            others = [_HALT_LONG.get(word, UNKNOWN)]
        elif word.startswith("-") and len(word) > 1:
            others = [_HALT_LETTERS.get(letter, UNKNOWN) for letter in word[1:]]
        else:
            others = [UNKNOWN]
        for other in others:
            if other == UNKNOWN:
                return Result(UNKNOWN, f"its argument {word} is unknown", None)
            if other:
                return Result(UNMET, f"it {other} ({word})")
    return Result(MET)


def _of_init(arguments: list[str]) -> Result:
    if arguments == ["0"]:
        return Result(MET)
    if arguments == ["6"]:
        return Result(UNMET, "it restarts the host (6)")
    return Result(UNKNOWN, "its argument is not 0", None)


def _of_systemctl(arguments: list[str]) -> Result:
    verbs = []
    for word in arguments:
        if not word.startswith("-"):
            verbs.append(word)
        elif word in _SYSTEMCTL_OTHER or re.fullmatch("-f+", word):
            return Result(UNMET, f"it {_SYSTEMCTL_OTHER.get(word, _KILLS)} ({word})")
        elif word == "--when=now" or word.startswith(("--message=", "--check-inhibitors=")):
            continue
        elif word.startswith("--when="):
            return Result(UNMET, f"it waits ({word})", None)
        elif word not in _SYSTEMCTL_SILENT:
            return Result(UNKNOWN, f"its option {word} is unknown", None)
    if len(verbs) == 2 and verbs[0] in ("start", "isolate"):
        verbs = [verbs[1][: -len(".target")]] if verbs[1].endswith(".target") else verbs
    if len(verbs) == 1 and verbs[0] in _STOPS:
        return Result(MET)
    if len(verbs) == 1 and verbs[0] in _OTHER_VERBS:
        return Result(UNMET, f"it {_OTHER_VERBS[verbs[0]]}")
    return Result(UNKNOWN, "its verb is not poweroff", None)


_PROGRAMS: dict[str, Callable[[list[str]], Result]] = {
    "shutdown": _of_shutdown,
    "poweroff": _of_halt,
    "halt": _of_halt,
    "init": _of_init,
    "telinit": _of_init,
    "systemctl": _of_systemctl,
    "loginctl": _of_systemctl,
}
#: Commands that do the same with all arguments; IDLE end at once and change nothing about a shutdown.
_CONSTANT = {
    **dict.fromkeys(
        ("true", "false", ":", "echo", "printf", "logger", "wall", "sync", "touch"), Result(IDLE)
    ),
    "exit": Result(UNMET, "it ends before anything shuts down"),
    "sleep": Result(UNMET, "it waits first", None),
    "reboot": Result(UNMET, "it restarts the host"),
}
