# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that run at a server's next start or at boot: of its unit, of other units, scripts, cron and udev rules.

Scripts that they name are read, and those that a script names; of scripts of packages below those the ones that are
executed. Each text has its file and line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import partial

from ..host import (
    boot_scripts,
    bounded_read,
    named_by,
    script_chain,
    shell_lines,
    unit_lines,
    unit_names,
)
from ..host.foreign import ACCOUNT, Identity
from ..host.observation import Undecided
from ..host.processes import FIRST_PERSON, breaks_fsync
from ..host.seam import NO_FILE, Host, Unobservable
from ..host.system_conf import Line, text_of
from ..host.textfile import LIMIT
from ..host.units import Unit
from ..next_boot import command_lines, programs
from ..next_boot.files import PACKAGED
from . import udev_commands
from .others import Text

#: What a unit runs but its reload, and the server itself.
_EXEC = re.compile(r"Exec(?:Condition|StartPre|Start|StartPost|Stop|StopPost)")
#: Unit types of which a command after the start runs once the server is ready.
_READY = ("notify", "notify-reload", "forking")
#: Characters of a text, and those that it has in common with the next one of a longer line.
_LONGEST, _COMMON = 4096, 512
#: Paths that a command of a login names, and that are opened with its rights.
_MOST_OF_LOGINS = 16
#: Scripts above a line in which each path can be a script.
_NAMED = 2
#: A program that loads such a library.
_EATMYDATA = "eatmydata"
#: Nothing there is a script.
_KERNEL = ("/dev/", "/proc/", "/sys/")


class Commands:
    """The commands of one host; those that are not of a server's unit are read once."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._elsewhere: list[Text] | None = None
        #: Patterns of units that udev rules, the kernel's command line and scripts name.
        self._started: set[str] = set()

    def of_server(self, unit: Unit | str | None) -> list[Text]:
        """Return what runs with the start of a server, those of its unit first. Raises Unobservable.

        `unit`: its name alone if systemd does not describe it.
        """
        names = (unit.name, *unit.names) if isinstance(unit, Unit) else (unit,)
        own = tuple(dict.fromkeys(filter(None, names)))
        texts = self._of_unit(own, is_server=True) if own else []
        return [*texts, *(text for text in self._others() if not _is_of(text, own))]

    def may_start(self, unit: Unit, programs: Iterable[str], units: re.Pattern[str]) -> bool:
        """Return whether a script or command at boot, a udev rule or the kernel's command line may start a unit, or runs one of
        these programs; `units`: names of the engine's own ones, which start other servers. Raises Unobservable."""
        own = tuple(dict.fromkeys((unit.name, *unit.names)))
        texts = [text for text in self._others() if not units.fullmatch(text.by.rpartition(" of ")[2])]
        # Nothing starts a masked unit.
        names = () if "masked" in (unit.load, unit.enabled) else own
        if any(fnmatchcase(name, pattern) for name in names for pattern in self._started):
            return True
        stems = "|".join(re.escape(name.rpartition(".")[0]) for name in names) or "(?!)"
        runs = re.compile(
            rf"(?:^|[\s/;|&('\"@:+!-])(?:{'|'.join(map(re.escape, programs))})(?=[\s;|&)'\"]|$)"
            rf"|(?:\bservice\s+|\binvoke-rc\.d\s+|/init\.d/)(?:{stems})\s+(?:re)?start\b"
        )
        return any(runs.search(text.text) for text in texts)

    def of_starter(self, path: str, unit: Unit | str | None) -> list[Text]:
        """Return an undocumented script that starts a server, the command of its unit, and the scripts that they name.

        Raises Unobservable, also for what makes fsync do nothing.
        """
        texts = self._followed(Text(path, path, path))
        if isinstance(unit, Unit):
            texts += self._followed(Text(unit.argv[:_LONGEST], f"ExecStart of {unit.name}", unit.name))
        for text in texts:
            parts = re.split(r"[\s=:;&|'\"]+", text.text)
            wrong = next((part for part in parts if breaks_fsync(part) or part.endswith(_EATMYDATA)), None)
            if wrong:
                raise Undecided("disables_fsync", place=text.source, text=wrong[:_LONGEST])
        return texts

    def _of_unit(self, names: tuple[str, ...], is_server: bool) -> list[Text]:
        lines = unit_lines.lines(self.host, names)
        ready = any(line.key == "Type" and line.value in _READY for line in lines)
        starts = [line for line in lines if line.key == "ExecStart"]
        found: list[Text] = []
        for line in lines:
            # How the first one starts the server is for next_start.py to read.
            if not _EXEC.fullmatch(line.key) or (is_server and line is next(iter(starts), None)):
                continue
            is_direct = is_server and ready and line.key == "ExecStartPost" and len(line.value) <= _LONGEST
            by = f"{line.key} of {names[0]}"
            for piece in _pieces(line.value):
                found += self._followed(Text(piece, line.source, by, is_direct, is_server))
        return (
            [*found, *self._variables(lines, names[0])] if any("$" in text.text for text in found) else found
        )

    def _variables(self, lines: list[Line], unit: str) -> Iterator[Text]:
        """Yield the variables of a unit: its commands may execute what one has in it. Raises Unobservable."""
        for line in lines:
            by = f"{line.key} of {unit}"
            if line.key == "Environment":
                yield from (Text(piece, line.source, by) for piece in _pieces(line.value))
            path = line.value.lstrip("-") if line.key == "EnvironmentFile" else ""
            if path.startswith("/") and not re.search(r"[*?\[]", path):
                yield from _of_script(text_of(self.host, path), path, by)

    def _others(self) -> list[Text]:
        if self._elsewhere is None:
            rules = udev_commands.read(self.host)
            at_boot = list(self._at_boot())
            # What a script gives to systemctl may be a unit.
            words = (word for text in at_boot if "systemctl" in text.text for word in text.text.split())
            started = {
                *rules.units,
                *command_lines.wants(self.host),
                *(unit_names.with_kind(word.strip("'\";&|()")) for word in words),
            }
            self._started = started
            found: list[Text] = []
            for name in unit_lines.of_administrators(self.host, started):
                found += self._of_unit((name,), is_server=False)
            of_rules = (each for text in rules.texts for each in self._followed(text))
            self._elsewhere = [*found, *at_boot, *of_rules]
        return self._elsewhere

    def _at_boot(self) -> Iterator[Text]:
        for path, by in boot_scripts.scripts(self.host):
            for text in _of_script(text_of(self.host, path), path, by):
                yield from self._followed(text)
        for command in boot_scripts.commands(boot_scripts.tables(self.host)):
            for piece in _pieces(command.text):
                text = Text(piece, command.source, boot_scripts.CRON)
                yield from self._followed(text, self._owner(command))

    def _owner(self, command: boot_scripts.Command) -> Identity | None:
        """Return who named the paths in a command of cron: the owner of its table, None for root. Raises Unobservable."""
        if command.is_roots:
            return None
        table = self.host.read_part(command.table, limit=1)
        return Identity(table.status.user, ACCOUNT, ()) if table and table.status.user else None

    def _followed(self, text: Text, owner: Identity | None = None) -> list[Text]:
        """Return a command with the lines of the scripts that it names. Raises Unobservable.

        `owner`: who named them, None for root. What a login cannot read, or what is too long, sets nothing of a server.
        """
        found = [text]
        named, begin, whole = (
            partial(self._named, owner),
            partial(self._begin, owner),
            partial(self._whole, owner),
        )
        most = _MOST_OF_LOGINS if _is_person(owner) else script_chain.MOST_PATHS
        try:
            for each in script_chain.follow(text.text, text.source, named, begin, whole, most):
                found += _of_script(each.text, each.path, text.by, each.run_by)
        except Unobservable:
            if not _is_person(owner):
                raise
        return found

    def _named(self, owner: Identity | None, line: str, depth: int) -> list[str]:
        """Return the paths in a line that can be scripts; `depth`: the number of scripts above it.

        Scripts of packages name many others, so of those below them the ones count that are executed.
        """
        paths = shell_lines.paths(line)
        if depth < _NAMED or owner is not None:
            return paths
        return [
            path
            for path in paths
            if not self.host.resolve(path).startswith(PACKAGED) or programs.runs(path, line)
        ]

    def _begin(self, owner: Identity | None, path: str) -> str:
        """Return how a file begins, '' for a directory and what is not there. Raises Unobservable, not for what a login
        cannot read."""
        if path.startswith(_KERNEL):
            return ""
        if owner is None:
            real = self.host.resolve(path)
            is_there = self.host.exists(real)
        else:
            with named_by.one(self.host, owner):
                where = self.host.locate(path)
            real, is_there = where.path, where.status is not None
        if real.startswith(_KERNEL) or not is_there:
            return ""
        with named_by.one(self.host, owner):
            try:
                begin = self.host.read_part(path, limit=_LONGEST)
            except Unobservable as error:
                if NO_FILE in str(error) or _is_person(owner):
                    return ""
                raise
        return begin.text if begin else ""

    def _whole(self, owner: Identity | None, path: str, place: str) -> str:
        with named_by.one(self.host, owner):
            text = bounded_read.read(self.host, path) or ""
        if len(text) > LIMIT:
            if _is_person(owner):
                return ""
            raise Unobservable(f"{path}, which {place} runs, is longer than {LIMIT} bytes: make it shorter")
        return text


def _of_script(text: str, path: str, by: str, runs: str = "") -> Iterator[Text]:
    """Yield the lines of a script, without comments; continued lines are one."""
    for row, line in shell_lines.lines(text):
        source = f"{path} line {row}"
        for piece in _pieces(line):
            yield Text(piece, f"{source}, run by {runs}" if runs else source, by)


def _pieces(text: str) -> list[str]:
    """Return a text, or the pieces of a long one: what it sets is searched for in each."""
    ends = max(1, len(text) - _COMMON)
    return [text[start : start + _LONGEST] for start in range(0, ends, _LONGEST - _COMMON)]


def _is_person(owner: Identity | None) -> bool:
    return owner is not None and owner.user >= FIRST_PERSON


def _is_of(text: Text, names: tuple[str, ...]) -> bool:
    """Return whether a text is of a server's own unit, which was read as that."""
    return any(text.by.endswith(f" of {name}") for name in names)
