# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Command lines and shell scripts of other components as acts. Pure.

A literal command outside every condition is certain. Everything else that mentions a setting is a script whose result is
unknown.
"""

from __future__ import annotations

import re
import shlex

from ..host import shell_lines
from .acts import Act, mentioned

#: Programs that run another one with the words behind their own options.
_WRAPPERS = frozenset(
    "env nohup nice ionice sudo exec command setsid time timeout systemd-run stdbuf chroot".split()
)
_SHELLS = frozenset("sh bash dash ksh zsh".split())
_PRINTS = frozenset("echo printf logger wall".split())
#: Words that begin and end what is done on a condition only.
_BEGIN = re.compile(r"^(?:if|for|while|until|case|select)\b")
_END = re.compile(r"^(?:fi|done|esac)\b")
_FUNCTION = re.compile(r"^(?:function\s+)?[\w-]+\s*\(\s*\)\s*\{?|^\{")
#: The end of a script, before its last line or on a condition.
_EXIT = re.compile(r"exit(?:\s+\d+)?$")
_ENDS = re.compile(r"(?:^|[\s;&|{(])(?:exit|return)\b")
#: A script that the first command that fails ends, and commands that do not fail.
_ON_ERROR = re.compile(r"#!\s*\S+\s+-\w*e")
_SET_E = re.compile(r"set\s+-(?:\w*e|o\s+errexit)")
_NEVER_FAILS = re.compile(
    r"(?:echo|printf|true|:|export|set|exec)(?:\s|$)|\w+=\S*$|.*\|\|\s*(?:true|:|/bin/true)$"
)
_DOCUMENT = re.compile(r"(?<![<\d(])<<-?\s*['\"\\]?(?P<word>[A-Za-z_]\w*)")
#: A variable that is set to a plain word, or in turn to those of a list; and its use.
_VARIABLE = re.compile(
    r"(?m)(?:(?:^|[;\s])(?P<name>[A-Za-z_]\w*)=|\bfor\s+(?P<each>\w+)\s+in\s+)"
    r"(?P<value>'[^'\n]*'|\"[^\"$`\n]*\"|[^\s'\"`$;|&]+)"
)
_USE = re.compile(r"['\"]?\$\{?([A-Za-z_]\w*)\}?['\"]?")
_SHEBANG = re.compile(r"#!\s*\S*/(?:env\s+)?(?:ba|da|k|z)?sh\b")
_VALUE = r"""(?P<value>'[^']*'|"[^"$`]*"|[^\s'"$`|;&<>]+(?:\s+[^\s'"$`|;&<>]+)*)"""
_TO = r"(?:>>?|\|\s*(?:/(?:usr/)?bin/)?(?:sudo\s+)?tee\s+(?:-a\s+)?)"
_ECHO = re.compile(
    rf"^(?:/(?:usr/)?bin/)?(?:echo|printf)\s+(?:-[ne]+\s+)?{_VALUE}\s*{_TO}\s*"
    r"""(?P<path>['"]?/[^\s'";|&]+['"]?)(?:\s*>\s*/dev/null)?(?:\s+2>&1)?$"""
)
_TRUE = re.compile(r"\s*\|\|\s*(?:true|:|/bin/true)\s*$")
_REDIRECTION = re.compile(r"\s*(?:[12&]?>>?\s*(?:/dev/null|&[12])|2>&1)\s*")
_ASSIGNMENT = re.compile(r"^\w+=\S*$")
#: Letters of options of the wrappers that take a word: nice -n 5, timeout 10, ionice -c 3.
_NUMBER = re.compile(r"^-?\d+[smhd]?$")


def of_script(text: str, path: str, by: str, first: int = 1) -> list[Act]:
    """Return what a shell script does; `first` is the number of its first line. Lines that set nothing are left out."""
    if text.startswith("#!") and not _SHEBANG.match(text):
        # Another language: that a setting is named is all that is known.
        return [Act(by, f"{path} line 1", "script", (text, text), False)] if mentioned(text) else []
    script = _Script(text, by)
    for row, line in shell_lines.lines(text):
        if script.ends_in(line, f"{path} line {first + row - 1}" if first else path):
            break
    return script.acts


class _Script:
    """A shell script, read up to a line: its acts, and what holds for the commands that follow."""

    def __init__(self, text: str, by: str) -> None:
        self.text, self.by = text, by
        self.acts: list[Act] = []
        #: How many conditions, loops, functions, groups and subshells are open.
        self.depth = 0
        #: The word that ends the here-document, and the quote, that are open; '' for none.
        self.until, self.quote = "", ""
        #: Whether a command before can have ended the script.
        self.may_have_ended, self.ends_on_error = False, bool(_ON_ERROR.match(text))

    def ends_in(self, line: str, source: str) -> bool:
        """Add the acts of a line, and tell whether the script ends there for certain."""
        document = "" if self.until else _document(line)
        if self.until or document:
            # What reads a here-document is unknown.
            self._add_unclear(line, source)
            self.until = document or ("" if line.strip() == self.until else self.until)
            return False
        # A part of an argument of several lines is no command.
        before, self.quote = self.quote, _quote_after(line, self.quote)
        is_quoted = bool(before or self.quote)
        for part in (re.sub(r"^(?:then|do|else)\b\s*", "", each) for each in _parts(line)):
            # A subshell, a group and a job in the background do not end the script.
            bare = _bare(part)
            if not bare or part in ("then", "do", "else"):
                closed = part.count(")") + part.count("}")
                self.depth = max(0, self.depth - closed) + part.count("(") + part.count("{")
            elif _END.match(part):
                self.depth = max(0, self.depth - 1)
            elif _BEGIN.match(part) or _FUNCTION.match(part):
                self.depth += 1
                self._add_unclear(part, source)
            elif self.depth == 0 and part == bare and not is_quoted and _EXIT.match(part):
                return True
            else:
                self._add_command(part, bare, source, is_quoted)
        return False

    def _add_unclear(self, line: str, source: str) -> None:
        self.acts += _unclear(line, self.text, source, self.by)

    def _add_command(self, part: str, bare: str, source: str, is_quoted: bool) -> None:
        """Add the acts of a command; `bare` is it without the signs around it."""
        self.depth += part.startswith("(") and not part.rstrip("& ").endswith(")")
        is_certain = not self.depth and part == bare and not (self.may_have_ended or is_quoted)
        acts = of_line(bare, source, self.by, self.text)
        if not acts and "$" in bare:
            acts = _unclear(_expanded(bare, self.text), self.text, source, self.by)
        self.acts += [act._replace(is_certain=is_certain and act.is_certain) for act in acts]
        self.ends_on_error = self.ends_on_error or bool(_SET_E.match(part))
        fails = self.ends_on_error and not _NEVER_FAILS.match(part)
        self.may_have_ended = self.may_have_ended or bool(_ENDS.search(part)) or fails


def _document(line: str) -> str:
    """Return the word that ends the here-document that a line begins, '' if it begins none."""
    found = _DOCUMENT.search(line)
    return found["word"] if found else ""


def _bare(part: str) -> str:
    """Return a command without the signs of a subshell, a group or a job in the background around it."""
    bare = re.sub(r"^(?:\(|\{\s)+\s*", "", part.strip(" \t&")).strip(" \t&(")
    while bare and bare[-1] in ")}" and bare.count({")": "(", "}": "{"}[bare[-1]]) < bare.count(bare[-1]):
        bare = bare[:-1].rstrip(" \t&")
    return "" if bare == "{" else bare


def _expanded(part: str, text: str) -> str:
    """Return a command with the values of variables that its script sets literally, and the lists of its loops."""
    values = {
        found["name"] or found["each"]: found["value"].strip("'\"") for found in _VARIABLE.finditer(text)
    }
    return _USE.sub(lambda found: values.get(found[1], found[0]), part)


def _quote_after(line: str, quote: str) -> str:
    """Return the quote that is open after a line, '' for none; `quote` is open before it."""
    for char in line:
        if quote or char in "'\"":
            quote = "" if char == quote else quote or char
    return quote


def of_line(line: str, source: str, by: str, whole: str = "") -> list[Act]:
    """Return what one simple command of a shell does; `whole` is the script that it is part of."""
    line = _TRUE.sub("", line.strip())
    written = _ECHO.match(line)
    if written:
        path = written["path"].strip("'\"")
        if re.search(r"[$`\\]", f"{path}{written['value']}"):
            return _unclear(line, whole or line, source, by)
        return _written(path, written["value"].strip("'\""), source, by)
    if re.search(r"&&|\|\||\|", line) or re.search(r"[$`]", line):
        return _unclear(line, whole or line, source, by)
    try:
        words = shlex.split(_REDIRECTION.sub(" ", line).rstrip("& "), comments=True)
    except ValueError:
        return _unclear(line, whole or line, source, by)
    if ">" in words and words[0] in _PRINTS:
        # To a file below a directory that was named before.
        return _unclear(line, whole or line, source, by)
    return of_words(words, source, by, whole or line)


def of_words(words: list[str], source: str, by: str, whole: str = "") -> list[Act]:
    """Return what a command does, by its arguments."""
    words = _unwrapped(words)
    if not words:
        return []
    name = words[0].rpartition("/")[2]
    if is_shell(words):
        letters = [word for word in words[1:] if word.startswith("-")]
        rest = [word for word in words[1:] if not word.startswith("-")]
        if any("c" in word for word in letters) and rest:
            return [act._replace(source=source) for act in of_script(rest[0], source, by, 0)]
        return []
    if name in ("hdparm", "sdparm", "nvme", "blockdev", "mount", "umount", "zfs"):
        return [Act(by, source, "command", (name, *words[1:]))]
    # What is only printed sets nothing.
    line = " ".join(words)
    return [] if name in _PRINTS else _unclear(line, whole or line, source, by)


def is_shell(words: list[str]) -> bool:
    """Return whether a command starts a shell."""
    return bool(words) and words[0].rpartition("/")[2] in _SHELLS


def _written(path: str, value: str, source: str, by: str) -> list[Act]:
    return [Act(by, source, "write", (path, value))] if path.startswith("/sys/") else []


def _unclear(line: str, whole: str, source: str, by: str) -> list[Act]:
    """Return an act whose result is unknown, if a line mentions a setting. Devices may be named elsewhere in the script."""
    if not mentioned(line):
        return []
    # A line that names its devices is about no other.
    text = line if re.search(r"/dev/(?!null)|/sys/", line) and "$" not in line else f"{line}\n{whole}"
    return [Act(by, source, "script", (text, line), False)]


def _unwrapped(words: list[str]) -> list[str]:
    while words and (words[0].rpartition("/")[2] in _WRAPPERS or _ASSIGNMENT.match(words[0])):
        words = words[1:]
        while words and (words[0].startswith("-") or _NUMBER.match(words[0])):
            words = words[1:]
    return words


def _parts(line: str) -> list[str]:
    """Return the commands of a line, parted at semicolons outside quotes."""
    parts, quote, now = [], "", ""
    for char in line:
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == ";":
            parts.append(now.strip())
            now = ""
            continue
        now += char
    return [part for part in (*parts, now.strip()) if part]
