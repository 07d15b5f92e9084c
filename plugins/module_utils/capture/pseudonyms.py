# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pseudonyms for strings that identify one machine: serial numbers, WWNs, UUIDs, host names. Pure.

A stand-in has the shape of its original: digits stay digits, letters letters, and what stands between
them stays. It is made from a running number and not from the original, so it reveals nothing of it.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator

#: Shorter strings, and strings that paths and parsers consist of, are replaced only if it is known
#: that they name something: elsewhere they would be mistaken for a name.
_SHORTEST = 4
#: How unit names, udev and mountinfo write a character that is special to them.
_ESCAPE = re.compile(r"\\x[0-9A-Fa-f]{2}|\\[0-3][0-7]{2}|.", re.S)
#: device-mapper doubles the dash of a name, unit names escape it.
_DASH = r"(?:--|-|\\x2d)"
_BLANK = r"(?:[ _]+|(?:\\x20|\\040)+)"
_BEFORE = r"(?:(?<![0-9a-z])|(?<=\\x[0-9a-f][0-9a-f])|(?<=\\[0-3][0-7][0-7]))"
_AFTER = r"(?![0-9a-z])"
_PATTERNS = (
    # A UUID.
    rf"{_BEFORE}[0-9a-f]{{8}}(?:{_DASH}[0-9a-f]{{4}}){{3}}{_DASH}[0-9a-f]{{12}}{_AFTER}",
    # A UUID as md writes it.
    rf"{_BEFORE}[0-9a-f]{{8}}(?::[0-9a-f]{{8}}){{3}}{_AFTER}",
    # A UUID of LVM.
    rf"{_BEFORE}[0-9a-z]{{6}}(?:{_DASH}[0-9a-z]{{4}}){{5}}{_DASH}[0-9a-z]{{6}}{_AFTER}",
    # A WWN, a UUID without dashes, a container: also with the partition that kpartx appends.
    rf"(?:{_BEFORE}|(?<=0x))[0-9a-f]{{16,}}(?:{_AFTER}|(?=p[0-9]+{_AFTER}))",
)
#: What names one machine in the kernel's own paths: numbers of Hyper-V, WWNs of ports.
_IN_PATHS = re.compile("|".join([*_PATTERNS[:2], rf"(?<=0x)[0-9a-f]{{16,}}{_AFTER}"]), re.I)
_STRANGE_LETTERS = "äéîøũñ"


class Collision(ValueError):
    """Stand-ins and the text around them spell a string that must not appear: take another salt."""


class Pseudonyms:
    """Hands out stand-ins: the same for the same word, different for different ones.

    `unchanged` is text that must stay as it is. Learn all strings before requesting the first
    stand-in, so that none of them becomes the stand-in of another.
    """

    def __init__(self, unchanged: str, salt: int = 0) -> None:
        self._unchanged = unchanged.lower()
        self._salt = salt
        self._secrets: set[str] = set()
        self._forms: set[str] = set()
        self._hosts: set[str] = set()
        self._stand_ins: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._given: set[str] = set()
        self._compiled: tuple[re.Pattern[str], re.Pattern[str] | None] | None = None
        self._keys: re.Pattern[str] | None = None

    def learn(self, word: str) -> None:
        """Note a word that names one device or file system, to be replaced wherever it stands."""
        if len(_key(word)) >= _SHORTEST and word.lower() not in self._unchanged:
            self._secrets.add(_key(word))
            self._forms.add(word)
            self._compiled = self._keys = None

    def learn_host(self, name: str) -> None:
        """Note a host name, to be replaced if it is a separate word."""
        short = name.partition(".")[0]
        # The first number of an address is no name.
        for word in (name, "" if short.isdigit() else short):
            if len(word) >= _SHORTEST - 1 and word.lower() not in self._unchanged:
                self._hosts.add(word)
                self._compiled = None

    def of(self, word: str) -> str:
        """Return the stand-in for the whole of a word that names something."""
        key = _key(word)
        if not key or (len(key) >= 2 * _SHORTEST and key in self._given and key not in self._secrets):
            return word
        if key not in self._stand_ins:
            self._stand_ins[key] = self._new(key)
        return _fill(word, self._stand_ins[key])

    def scrub(self, text: str) -> str:
        """Return a text with a stand-in for everything in it that is known, or looks, to name
        something. Raises Collision."""
        pattern, never = self._compiled or self._compile()
        done = pattern.sub(lambda found: self._unless_common(found.group()), text)
        if never and never.search(done):
            raise Collision(self._salt)
        return done

    def kernel(self, path: str) -> str:
        """Return a path of /proc or /sys, where only numbers of their own kind name anything."""
        return _IN_PATHS.sub(lambda found: self._unless_common(found.group()), path)

    def _unless_common(self, word: str) -> str:
        return word if word.lower() in self._unchanged else self.of(word)

    def _compile(self) -> tuple[re.Pattern[str], re.Pattern[str] | None]:
        never = _any_of(self._forms)
        hosts = _any_of(self._hosts)
        patterns = [never, f"{_BEFORE}{hosts}{_AFTER}" if hosts else "", *_PATTERNS]
        pattern = re.compile("|".join(filter(None, patterns)), re.I)
        self._compiled = pattern, re.compile(never, re.I) if never else None
        return self._compiled

    def _new(self, key: str) -> str:
        # Counted for each shape, so that a new word changes few of the others' stand-ins.
        shape = "".join("9" if char.isdigit() else "a" for char in key)
        number = self._counts[shape]
        self._counts[shape] += 1
        # There are few very short strings: after many tries a stand-in grows.
        attempts = (
            _stand_in(key + "0" * (attempt // 50), f"{shape}.{self._salt}.{number}.{attempt}")
            for attempt in range(1000)
        )
        for found in attempts:
            if found != key and found not in self._given and not self._betrays(found):
                self._given.add(found)
                return found
        raise Collision(self._salt)

    def _betrays(self, stand_in: str) -> bool:
        if self._keys is None:
            self._keys = re.compile(_any_of(self._secrets) or "(?!)")
        return bool(self._keys.search(stand_in))


def _pieces(word: str) -> Iterator[tuple[str, bool]]:
    """Yield the characters of a word, an escaped one as a whole, and whether to replace it."""
    for found in _ESCAPE.finditer(word):
        piece = found.group()
        yield piece, len(piece) == 1 and (piece.isalnum() or not piece.isascii())


def _key(word: str) -> str:
    """Return what makes a word that word, however it is punctuated and capitalized."""
    return "".join(piece.lower() if piece.isascii() else piece for piece, counts in _pieces(word) if counts)


def _fill(word: str, stand_in: str) -> str:
    """Return a word with the characters of its stand-in in their places."""
    left = iter(stand_in)
    filled = []
    for piece, counts in _pieces(word):
        char = next(left) if counts else piece
        filled.append(char.upper() if counts and piece.isascii() and piece.isupper() else char)
    return "".join([*filled, *left])


def _stand_in(key: str, seed: str) -> str:
    """Return a word of the shape of `key`."""
    letters = "abcdef" if re.fullmatch("[0-9a-f]+", key) else "abcdefghijklmnopqrstuvwxyz"
    return "".join(_char(old, byte, letters) for old, byte in zip(key, _bytes(seed)))


def _char(old: str, byte: int, letters: str) -> str:
    if old.isascii():
        alphabet = "0123456789" if old.isdigit() else letters
    elif "\udc80" <= old <= "\udcff":
        # A byte that is no text stays one.
        return chr(0xDC80 + byte % 128)
    else:
        alphabet = _STRANGE_LETTERS
    return alphabet[byte % len(alphabet)]


def _bytes(seed: str) -> Iterator[int]:
    block = 0
    while True:
        yield from hashlib.sha256(f"{seed}.{block}".encode("ascii")).digest()
        block += 1


class _Tree(dict[str, "_Tree"]):
    """Patterns of characters and what may follow each; an empty one where a word ends."""


def _any_of(strings: Iterable[str]) -> str:
    """Return a pattern for any of these strings, the longest first; empty without strings.

    Strings that begin alike share a branch: a host may have thousands of disks.
    """
    tree = _Tree()
    for word in strings:
        node = tree
        # udev makes one underscore of many blanks.
        for piece, _counts in _pieces(re.sub("[ _]+", "_", word)):
            node = node.setdefault(_piece_pattern(piece), _Tree())
        node[""] = _Tree()
    return _branches(tree)


def _branches(tree: _Tree) -> str:
    trunk = ""
    while len(tree) == 1:
        ((piece, tree),) = tree.items()
        if not piece:
            return trunk
        trunk += piece
    choices = "|".join(piece + _branches(below) for piece, below in sorted(tree.items()) if piece)
    return f"{trunk}(?:{choices}){'?' if '' in tree else ''}" if tree else trunk


def _piece_pattern(piece: str) -> str:
    if piece == "-":
        return _DASH
    if piece in (" ", "_"):
        return _BLANK
    return re.escape(piece.lower() if piece.isascii() else piece)
