# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The udev rules of the next boot: files, lines, and their assignments for one device (udev(7)).

A rule matches, does not match, or may match: a rule that runs a program, or reads a value that is not there now, may match.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from ..host import our_paths
from ..host.seam import Host, Unobservable

#: Directories that outlive a boot, the strongest first; /run/udev/rules.d is empty at the start of a boot.
DIRECTORIES = (
    "/etc/udev/rules.d",
    "/usr/local/lib/udev/rules.d",
    "/usr/lib/udev/rules.d",
    "/lib/udev/rules.d",
)
#: Directories in which only packages of the distribution have files.
PACKAGED = ("/usr/lib/", "/lib/")
#: The names of our files.
OURS = frozenset(
    posixpath.basename(path)
    for path in (
        *(our_paths.CACHE_RULES, our_paths.SCHEDULER_RULES),
        *(our_paths.FORMER_CACHE_RULES, our_paths.FORMER_SCHEDULER_RULES),
    )
)
#: A program without a directory, which is in udev's own.
_BARE, _PROGRAMS = re.compile(r"[\w.-]+(?:\s|$)"), "/usr/lib/udev"
#: Bytes of a line with its continuations: udev drops a longer one.
_LONGEST = 16384
TOKEN = re.compile(
    r"""(?P<key>[A-Z]+)(?:\{(?P<name>[^}]*)\})?\s*(?P<op>==|!=|\+=|-=|:=|=)\s*(?P<prefix>[ei]{0,2})"(?P<value>(?:[^"\\]|\\.)*)"[\s,]*""",
    re.S,
)
#: Keys that every operator but == and != assigns, and those that can be both.
_MATCHES = frozenset(
    "ACTION DEVPATH KERNEL KERNELS SUBSYSTEM SUBSYSTEMS DRIVER DRIVERS ATTRS TAGS CONST TEST RESULT PROGRAM".split()
)
_KEYS = _MATCHES | frozenset(
    "NAME SYMLINK ATTR SYSCTL ENV TAG IMPORT OWNER GROUP MODE SECLABEL RUN LABEL GOTO OPTIONS".split()
)
#: Keys that are compared with a device or one of its parents; all of one rule must match the same one.
_OF_PARENTS = {
    "KERNELS": "KERNEL",
    "SUBSYSTEMS": "SUBSYSTEM",
    "DRIVERS": "DRIVER",
    "ATTRS": "ATTR",
    "TAGS": "TAG",
}
YES, NO, MAYBE = "yes", "no", "maybe"
#: udev's substitutions: a word after a dollar, or a letter after a percent sign.
_SUBSTITUTION = re.compile(
    r"\$\$|%%|\$(?P<word>[a-z]+)(?:\{(?P<in_word>[^}]*)\})?|%(?P<letter>[a-zA-Z])(?:\{(?P<in_letter>[^}]*)\})?"
)
_LETTERS = {
    "k": "kernel",
    "n": "number",
    "p": "devpath",
    "N": "devnode",
    "E": "env",
    "s": "attr",
    "r": "root",
    "S": "sys",
    "M": "major",
    "m": "minor",
    "b": "id",
    "c": "result",
    "P": "parent",
    "D": "name",
    "L": "links",
}
_GLOB = re.compile(r"[*?\[|]")
_NEVER = re.compile("(?!)")


class Token(NamedTuple):
    """One `KEY{name} op "value"` of a rule; `fold`: it matches letters of either case."""

    key: str
    name: str
    op: str
    value: str
    fold: bool = False

    @property
    def is_match(self) -> bool:
        """Return whether it is a condition. PROGRAM, IMPORT and TEST are one with any operator."""
        return self.op in ("==", "!=") or self.key in ("PROGRAM", "IMPORT", "TEST")

    @property
    def is_program(self) -> bool:
        """Return whether it runs a program: RUN{builtin} and IMPORT{db} do not."""
        is_condition = self.key == "PROGRAM" or (self.key, self.name) == ("IMPORT", "program")
        return is_condition or (self.key == "RUN" and self.name in ("", "program") and not self.is_match)


class Rule(NamedTuple):
    """One line of a rule file; `is_odd`: a part of it is not understood here, and udev may drop the line."""

    path: str
    row: int
    tokens: tuple[Token, ...]
    is_odd: bool = False

    @property
    def source(self) -> str:
        """File and line, for people."""
        return f"{self.path} line {self.row}"

    @property
    def is_packaged(self) -> bool:
        """Return whether the file is in a directory of the distribution's packages."""
        return self.path.startswith(PACKAGED)


class Assignment(NamedTuple):
    """What a rule sets for a device: key, name in braces, operator and value; None if the value cannot be expanded here.

    `is_certain`: the rule matches; False if it may match.
    """

    rule: Rule
    key: str
    name: str
    op: str
    value: str | None
    is_certain: bool


class Device:
    """A device as rules match it: `path` in /sys, `properties` of udev's database, and the event's action."""

    def __init__(self, host: Host, path: str, properties: Mapping[str, str], action: str = "add") -> None:
        self.host, self.path, self.action = host, path, action
        self.properties = dict(properties)
        self.links = set(properties.get("DEVLINKS", "").split())
        #: Other kernel names that the device can have at the next boot.
        self.peers: tuple[str, ...] = ()
        self._attributes: dict[str, str | None] = {}

    @classmethod
    def of_block(cls, host: Host, name: str, properties: Mapping[str, str], action: str = "add") -> Device:
        """Return a block device by its kernel name."""
        return cls(host, host.resolve(f"/sys/class/block/{name}"), properties, action)

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        devname = self.properties.get("DEVNAME", "")
        return devname[len("/dev/") :].replace("/", "!") if devname else posixpath.basename(self.path)

    def attribute(self, name: str, path: str = "") -> str | None:
        """Return an attribute in /sys without white space at its end, None if it cannot be read."""
        place = posixpath.normpath(f"{path or self.path}/{name}")
        if place not in self._attributes:
            try:
                text: str | None = self.host.read(place)
            except Unobservable:
                # udev takes the last part of a link (`device/driver`) for the value.
                text = posixpath.basename(self.linked(place)) or None
            self._attributes[place] = text.rstrip(" \t\r\n") if text else text
        return self._attributes[place]

    def linked(self, path: str) -> str:
        """Return where a link in /sys leads, '' without one."""
        try:
            return self.host.link(path)
        except Unobservable:
            return ""

    def parents(self) -> Iterator[str]:
        """Yield the paths of the device and of the devices above it."""
        path = self.path
        while path.startswith("/sys/") and path.count("/") > 2:
            if path == self.path or self.host.exists(f"{path}/uevent"):
                yield path
            path = posixpath.dirname(path)


def command(value: str) -> str:
    """Return what a rule has run, with the directory of its program."""
    return f"{_PROGRAMS}/{value}" if _BARE.match(value) else value


def masked(host: Host, name: str) -> str:
    """Return the path by which a rule file is masked (a link to /dev/null or an empty file), '' if it is not.

    Raises Unobservable.
    """
    path = _first(host, name)
    return path if path and _is_masked(host, path) else ""


def files(host: Host) -> list[str]:
    """Return the rule files that udev reads at a boot, in its order: by name, the strongest directory's. Raises Unobservable."""
    found: dict[str, str] = {}
    for directory in DIRECTORIES:
        for name in host.names(directory) if host.exists(directory) else ():
            if name.endswith(".rules") and not name.startswith("."):
                found.setdefault(name, f"{directory}/{name}")
    order = sorted(found, key=lambda name: name.encode("utf-8", "surrogateescape"))
    return [found[name] for name in order if not _is_masked(host, found[name])]


def read(host: Host, only: Iterable[str] | None = None) -> list[Rule]:
    """Return all rules in the order in which udev applies them; `only`: of these files. Raises Unobservable."""
    return [rule for path in (files(host) if only is None else only) for rule in parse(host.read(path), path)]


def parse(text: str, path: str) -> list[Rule]:
    """Return the rules of a file. Comments, blank lines and lines that are too long are left out, as udev does."""
    found = []
    parts: list[str] = []
    for row, raw in enumerate(text.split("\n"), 1):
        line = raw.strip(" \t\r\v\f")
        # A comment between the parts of a line ends nothing, whatever it ends with.
        if line.startswith("#"):
            continue
        if line.endswith("\\"):
            parts.append(line[:-1])
            continue
        whole = "".join((*parts, line)).strip()
        if whole and len(whole.encode("utf-8", "surrogateescape")) < _LONGEST:
            found.append(_rule(whole, path, row - len(parts)))
        parts = []
    return found


def assignments(rules: Iterable[Rule], device: Device) -> list[Assignment]:
    """Return what rules set for a device, in order; properties and links that a rule sets count for the rules below it.

    The properties of udev's database are those of the end of the last event: a rule that asks whether one is missing is
    answered by that.
    """
    found: list[Assignment] = []
    #: The label up to which rules are passed over, and the labels up to which they may be.
    past, perhaps = "", set[str]()
    where = ""
    for rule in rules:
        if rule.path != where:
            # A label is looked for in the same file alone.
            past, where = "", rule.path
            perhaps.clear()
        labels = {token.value for token in rule.tokens if token.key == "LABEL"}
        perhaps -= labels
        if past and past not in labels:
            continue
        past = ""
        answer = match(rule, device)
        if answer == NO:
            continue
        is_certain = answer == YES and not perhaps
        for token in (each for each in rule.tokens if not each.is_match and each.key != "LABEL"):
            if token.key == "GOTO":
                past = token.value if is_certain else past
                perhaps |= set() if is_certain else {token.value}
                continue
            value = expand(token.value, device)
            found.append(Assignment(rule, token.key, token.name, token.op, value, is_certain))
            _apply(device, token, value, is_certain)
    return found


def match(rule: Rule, device: Device) -> str:
    """Return yes, no or maybe: whether the conditions of a rule hold for a device."""
    own = [token for token in rule.tokens if token.is_match and token.key not in _OF_PARENTS]
    above = [token for token in rule.tokens if token.is_match and token.key in _OF_PARENTS]
    answers = [_matches(token, device) for token in own]
    if above and NO not in answers:
        answers.append(_match_parents(above, device))
    if NO in answers:
        return NO
    return MAYBE if rule.is_odd or MAYBE in answers else YES


def expand(text: str, device: Device) -> str | None:
    """Return a value with udev's substitutions made, None if one cannot be made here."""
    parts, end = [], 0
    for found in _SUBSTITUTION.finditer(text):
        parts.append(text[end : found.start()])
        end = found.end()
        if found[0] in ("$$", "%%"):
            parts.append(found[0][0])
            continue
        word = found["word"] or _LETTERS.get(found["letter"], "")
        value = _substituted(word, found["in_word"] or found["in_letter"] or "", device)
        if value is None:
            return None
        parts.append(value)
    return "".join((*parts, text[end:]))


def _substituted(word: str, name: str, device: Device) -> str | None:
    reported = device.properties
    plain = {
        "kernel": device.kernel,
        "number": (re.search(r"\d*$", device.kernel) or [""])[0],
        "devpath": device.path[len("/sys") :],
        "devnode": reported.get("DEVNAME"),
        "major": reported.get("MAJOR"),
        "minor": reported.get("MINOR"),
        "root": "/dev",
        "sys": "/sys",
        "name": device.kernel,
    }
    if word == "env":
        return reported.get(name, "")
    if word == "attr":
        return device.attribute(name)
    return plain.get(word)


def _apply(device: Device, token: Token, value: str | None, is_certain: bool) -> None:
    """Make the device what the rules below meet."""
    if token.key == "ENV" and value is not None and is_certain:
        before = device.properties.get(token.name, "")
        device.properties[token.name] = f"{before} {value}".strip() if token.op == "+=" else value
    if token.key == "SYMLINK" and value is not None and token.op in ("=", "+=", ":="):
        device.links |= {f"/dev/{link}" for link in value.split()}


def _matches(token: Token, device: Device) -> str:
    """Return yes, no or maybe for a condition on the device itself."""
    if token.key in ("PROGRAM", "RESULT", "IMPORT"):
        return MAYBE
    if token.key == "TEST":
        return _is_there(token, device)
    if token.key in ("SYSCTL", "CONST", "TAG"):
        return MAYBE
    if token.key == "SYMLINK":
        found = [_is_like(token, link[len("/dev/") :]) for link in device.links]
        return _answer(any(found) == (token.op == "=="))
    value = {
        "ACTION": device.action,
        "DEVPATH": device.path[len("/sys") :],
        "SUBSYSTEM": device.properties.get("SUBSYSTEM") or _subsystem(device, device.path),
        "DRIVER": posixpath.basename(device.linked(f"{device.path}/driver")),
        "ENV": device.properties.get(token.name, ""),
    }.get(token.key)
    if token.key in ("KERNEL", "NAME"):
        return _compare_name(token, device)
    if token.key == "ATTR":
        return _of_attribute(token, device, device.path)
    return MAYBE if value is None else _compare(token, value)


def _match_parents(tokens: list[Token], device: Device) -> str:
    """Return yes if one of the device and its parents meets all conditions, maybe if one may."""
    best = NO
    for path in device.parents():
        answers = [_of_parent(token, device, path) for token in tokens]
        if NO not in answers:
            if MAYBE not in answers:
                return YES
            best = MAYBE
    return best


def _of_parent(token: Token, device: Device, path: str) -> str:
    key = _OF_PARENTS[token.key]
    if key == "ATTR":
        return _of_attribute(token, device, path)
    if key == "TAG":
        return MAYBE
    if key == "KERNEL" and path == device.path:
        return _compare_name(token, device)
    value = {
        "KERNEL": posixpath.basename(path),
        "SUBSYSTEM": _subsystem(device, path),
        "DRIVER": posixpath.basename(device.linked(f"{path}/driver")),
    }[key]
    return _compare(token, value)


def _subsystem(device: Device, path: str) -> str:
    return posixpath.basename(device.linked(f"{path}/subsystem"))


def _of_attribute(token: Token, device: Device, path: str) -> str:
    if "[" in token.name or "*" in token.name or "$" in token.name or "%" in token.name:
        return MAYBE
    value = device.attribute(token.name, path)
    if value is None:
        # Releases differ over != on what is not there.
        return NO if token.op == "==" else MAYBE
    return _compare(token, value)


def _is_there(token: Token, device: Device) -> str:
    value = expand(token.value, device)
    if value is None or token.name or _GLOB.search(value):
        return MAYBE
    path = value if value.startswith("/") else f"{device.path}/{value}"
    return _answer(device.host.exists(path) == (token.op != "!="))


def _compare(token: Token, value: str) -> str:
    return _answer(_is_like(token, value) == (token.op == "=="))


def _compare_name(token: Token, device: Device) -> str:
    """Compare each kernel name that the device can have: maybe if the answer depends on which."""
    found = {_compare(token, name) for name in (device.kernel, *device.peers)}
    return found.pop() if len(found) == 1 else MAYBE


def _is_like(token: Token, value: str) -> bool:
    """Return whether a value is like one of a pattern's alternatives."""
    text, pattern = (value.lower(), token.value.lower()) if token.fold else (value, token.value)
    return any(_glob(each).fullmatch(text) for each in pattern.split("|"))


@lru_cache(maxsize=4096)
def _glob(pattern: str) -> re.Pattern[str]:
    # fnmatch(3) takes ^ for ! in brackets, too.
    try:
        return re.compile(fnmatch.translate(pattern.replace("[^", "[!")))
    except re.error:
        return _NEVER  # A range from z to a, which older releases of Python hand on to re.


def _answer(is_so: bool) -> str:
    return YES if is_so else NO


def _rule(line: str, path: str, row: int) -> Rule:
    tokens, end, is_odd = [], 0, False
    line = line.lstrip(", \t")
    while end < len(line):
        found = TOKEN.match(line, end)
        if not found:
            is_odd = True
            break
        tokens.append(_token(found))
        end = found.end()
    is_odd = is_odd or any(token.key not in _KEYS for token in tokens)
    is_odd = is_odd or any(
        token.key in _MATCHES - {"PROGRAM", "TEST"} and not token.is_match for token in tokens
    )
    return Rule(path, row, tuple(tokens), is_odd)


def _token(found: re.Match[str]) -> Token:
    # Without e"" a backslash escapes a quotation mark alone.
    value = found["value"].replace('\\"', '"')
    if "e" in found["prefix"]:
        value = value.encode("latin-1", "backslashreplace").decode("unicode_escape", "replace")
    return Token(found["key"], found["name"] or "", found["op"], value, "i" in found["prefix"])


def _first(host: Host, name: str) -> str:
    paths = (f"{directory}/{name}" for directory in DIRECTORIES)
    return next((path for path in paths if host.exists(path)), "")


def _is_masked(host: Host, path: str) -> bool:
    if host.resolve(path) == "/dev/null" or path.startswith(PACKAGED):
        return host.resolve(path) == "/dev/null"  # A package's empty file masks nothing.
    try:
        return not host.read(path)
    except Unobservable:
        # A link to nothing is passed over as a mask is; a file that is there must be readable.
        if host.exists(host.resolve(path)):
            raise
        return True
