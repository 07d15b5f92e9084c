# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that run with the next start of a server, or at a boot: of its unit, of other units, scripts, cron and udev rules.

Scripts that they name are read, and those that a script names, no further. Each text has its file and line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..host import boot_scripts, bounded_read, named_by, shell_lines, unit_lines, unit_names
from ..host.foreign import ACCOUNT, Identity
from ..host.processes import FIRST_PERSON
from ..host.seam import NO_FILE, Host, Unobservable
from ..host.system_conf import Line, text_of
from ..host.textfile import LIMIT
from ..host.units import Unit
from . import udev_commands
from .others import Text

#: What a unit runs but its reload, and the server itself.
_EXEC = re.compile(r"Exec(?:Condition|StartPre|Start|StartPost|Stop|StopPost)")
#: Unit types of which a command after the start runs once the server is ready.
_READY = ("notify", "notify-reload", "forking")
#: Texts longer than that are no command.
_LONGEST = 4096


class Commands:
    """The commands of one host; those that are not of a server's unit are read once."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._elsewhere: list[Text] | None = None

    def of_server(self, unit: Unit | str | None) -> list[Text]:
        """Return what runs with the start of a server, those of its unit first. Raises Unobservable.

        `unit`: its name alone if systemd does not describe it.
        """
        names = (unit.name, *unit.names) if isinstance(unit, Unit) else (unit,)
        own = tuple(dict.fromkeys(filter(None, names)))
        texts = self._of_unit(own, is_server=True) if own else []
        return [*texts, *(text for text in self._others() if not _is_of(text, own))]

    def _of_unit(self, names: tuple[str, ...], is_server: bool) -> list[Text]:
        lines = unit_lines.lines(self.host, names)
        ready = any(line.key == "Type" and line.value in _READY for line in lines)
        starts = [line for line in lines if line.key == "ExecStart"]
        found: list[Text] = []
        for line in lines:
            # How the first one starts the server is for next_start.py to read.
            if not _EXEC.fullmatch(line.key) or (is_server and line is next(iter(starts), None)):
                continue
            is_direct = is_server and ready and line.key == "ExecStartPost"
            by = f"{line.key} of {names[0]}"
            found += self._followed(Text(line.value[:_LONGEST], line.source, by, is_direct, is_server))
        return (
            [*found, *self._variables(lines, names[0])] if any("$" in text.text for text in found) else found
        )

    def _variables(self, lines: list[Line], unit: str) -> Iterator[Text]:
        """Yield the variables of a unit: its commands may execute what one has in it. Raises Unobservable."""
        for line in lines:
            by = f"{line.key} of {unit}"
            if line.key == "Environment":
                yield Text(line.value[:_LONGEST], line.source, by)
            path = line.value.lstrip("-") if line.key == "EnvironmentFile" else ""
            if path.startswith("/") and not re.search(r"[*?\[]", path):
                yield from _of_script(text_of(self.host, path), path, by)

    def _others(self) -> list[Text]:
        if self._elsewhere is None:
            rules = udev_commands.read(self.host)
            at_boot = list(self._at_boot())
            # What a script gives to systemctl may be a unit.
            words = (word for text in at_boot if "systemctl" in text.text for word in text.text.split())
            started = {*rules.units, *(unit_names.with_kind(word.strip("'\";&|()")) for word in words)}
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
        for command in boot_scripts.commands(self.host):
            text = Text(command.text[:_LONGEST], command.source, boot_scripts.CRON)
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
        read: set[str] = set()
        found, waiting = [text], [(path, text, 0) for path in shell_lines.paths(text.text)]
        while waiting and len(read) < shell_lines.MOST:
            path, at, depth = waiting.pop(0)
            if path in read:
                continue
            read.add(path)
            try:
                script = self._script(path, at, owner)
            except Unobservable:
                if owner is None or owner.user < FIRST_PERSON:
                    raise
                continue
            lines = list(_of_script(script, path, at.by, at.source))
            found += lines
            if depth == 0:
                waiting += [(inner, line, 1) for line in lines for inner in shell_lines.paths(line.text)]
        return found

    def _script(self, path: str, at: Text, owner: Identity | None) -> str:
        """Return the text of a script, '' for a program, a directory and what is not there. Raises Unobservable."""
        real = self.host.resolve(path)
        if real.startswith(("/dev/", "/proc/", "/sys/")) or not self.host.exists(real):
            return ""
        with named_by.one(self.host, owner):
            try:
                begin = self.host.read_part(path, limit=_LONGEST)
            except Unobservable as error:
                if NO_FILE in str(error):
                    return ""
                raise
            if begin is None or not shell_lines.is_script(begin.text, path, at.text):
                return ""
            text = bounded_read.read(self.host, path) or ""
        if len(text) > LIMIT:
            raise Unobservable(
                f"{path}, which {at.source} runs, is longer than {LIMIT} bytes: make it shorter"
            )
        return text


def _of_script(text: str, path: str, by: str, runs: str = "") -> Iterator[Text]:
    """Yield the lines of a script, without comments; continued lines are one."""
    for row, line in shell_lines.lines(text):
        source = f"{path} line {row}"
        yield Text(line[:_LONGEST], f"{source}, run by {runs}" if runs else source, by)


def _is_of(text: Text, names: tuple[str, ...]) -> bool:
    """Tell whether a text is of a server's own unit, which was read as that."""
    return any(text.by.endswith(f" of {name}") for name in names)
