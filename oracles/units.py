# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our reading of mount units and their drop-ins against systemd's."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.storage import mount_units
from oracles import systemd
from oracles.contract import Answer, Case, compare, declined

KNOWN: dict[str, str] = {}

#: The unit paths that we read, the strongest first, and what systemd makes of fstab among them.
_GENERATED = "/run/systemd/generator"
_PATHS = (
    "/etc/systemd/system.control",
    "/etc/systemd/system",
    _GENERATED,
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
)
_TARGETS = (
    "/srv/a",
    "/srv/a-b",
    "/srv/a/b/c",
    "/srv/ö",
    "/srv/.x",
    "/srv/a b",
    "/srv/a\\b",
    "/srv/a_b:c",
    "/srv/~",
)
_LINES = (
    *(
        "Options=barrier=0",
        "Options=barrier=1,noatime",
        "Options=",
        "Options = nobarrier",
        "  Options=barrier",
        "options=ro",
    ),
    *(
        "Options=rw,barrier=0",
        "Options=defaults",
        "Type=ext4",
        "Type=xfs",
        "What=/dev/sdz1",
        "What=UUID=1-2",
        "Type=",
        "What=",
    ),
    *(
        "Options=noatime,barrier=1",
        "Options=relatime",
        "SloppyOptions=yes",
        "DirectoryMode=0700",
        "LazyUnmount=no",
    ),
)
_ODD_LINES = (
    *(
        "Options=barrier=0\\",
        "Options=barrier=0\\\\",
        "Options=barrier=0\\\\\\",
        "Options=\\",
        "Options=rw \\",
        "Options=a\\ ",
        "\\",
    ),
    *(
        "# comment",
        "; comment",
        "# comment \\",
        "  # Options=ro\\",
        ";\\",
        "",
        "   ",
        "=x",
        "Options",
        "Options=a=b",
        "x=Options=y",
    ),
    *(
        "[Mount]",
        "[Unit]",
        "[mount]",
        "[Mount] ",
        " [Mount]",
        "[Mount",
        "[]",
        "[X-Mount]",
        "[Mount]x",
        "[Mou\\",
        "Opt\\",
        "ions=ro",
    ),
    *(
        "Options=a%%b",
        "Options=%h",
        "Options=%",
        "Options=a,,b",
        "Options= a , b ",
        'Options="nobarrier"',
        "Options='ro'",
    ),
    *(
        "Options=ö",
        "Options=\udcff",
        "\ufeffOptions=ro",
        "Options=a\rOptions=nobarrier",
        "Options=a\0b",
        "Options=a\tb",
        "Options=a\vb",
    ),
    *(
        "Options=a\x0cb",
        ".include /etc/x",
        "What=%t",
        "Options=nobarrier # no comment",
        "\vOptions=ro",
        "\u00a0Options=ro",
        "Options:ro",
    ),
)
_NAMES = ("10.conf", "50-a.conf", "Z.conf", "a.conf", "zz.conf", "50-a.conf", "zz.conf")
_ODD_NAMES = (".hidden.conf", "b.confx", "c.CONF", ".conf", "ö.conf", "d.conf~", "\udcff.conf", "e f.conf")


class Seen(NamedTuple):
    """What a mount unit comes to."""

    what: str
    fstype: str
    options: tuple[str, ...]


class Tree(Host):
    """The machine, except the unit paths: these lie below a directory."""

    def __init__(self, top: Path) -> None:
        """Name the directory."""
        self.top = top

    def below(self, path: str) -> Path:
        """Return where a path of the machine lies."""
        return Path(f"{self.top}{path}")

    def read(self, path: str) -> str:
        """Read a unit."""
        return super().read(str(self.below(path)))

    def names(self, path: str) -> list[str]:
        """List a directory."""
        return super().names(str(self.below(path)))

    def exists(self, path: str) -> bool:
        """Tell whether a unit is there."""
        return super().exists(str(self.below(path)))

    def resolve(self, path: str) -> str:
        """Follow links."""
        found = super().resolve(str(self.below(path)))
        return found[len(str(self.top)) :] if found.startswith(f"{self.top}/") else found


def prepare(directory: Path) -> Case:
    """Return a case that asks both about one mount point."""
    tree = Tree(directory / "tree")
    wanted = directory / "wanted"
    wanted.mkdir()

    def case(numbers: random.Random) -> Answer:
        shutil.rmtree(tree.top, ignore_errors=True)
        for path in _PATHS:
            tree.below(path).mkdir(parents=True)
        target, in_fstab = numbers.choice(_TARGETS), numbers.random() < 0.3
        configured = _build(numbers, tree, target, in_fstab)
        try:
            ours = _ours(tree, target, in_fstab)
        except Unobservable:
            return declined
        name = mount_units.unit_name(target)
        theirs = systemd.mounts([tree.below(path) for path in _PATHS], [name], wanted).get(name)
        return compare((target, configured), ours, theirs and _theirs(theirs))

    return case


_FROM_FSTAB = Seen("/dev/generated", "ext4", ("rw", "barrier=1"))


def _ours(tree: Tree, target: str, in_fstab: bool) -> Seen | None:
    found = mount_units.find(tree, target, in_fstab)
    made = _FROM_FSTAB if in_fstab else None
    if found is None:
        return made
    if not found.is_unit:
        return made and made._replace(options=found.options)
    # A masked unit says nothing.
    return Seen(found.what, found.fstype, found.options) if found.options else None


def _theirs(unit: dict[str, str]) -> Seen:
    options = tuple(word.strip() for word in unit.get("Options", "").split(",") if word.strip())
    what, fstype = (unit[field].replace("n/a", "") for field in ("What", "File System Type"))
    return Seen(what, fstype, ("defaults",) if options in ((), ("n/a",)) else options)


def _build(numbers: random.Random, tree: Tree, target: str, in_fstab: bool) -> list[tuple[str, str]]:
    """Write units and drop-ins; return their paths and texts."""
    name = mount_units.unit_name(target)
    written: list[tuple[str, str]] = []

    def write(path: str, text: str) -> None:
        file = tree.below(path)
        file.parent.mkdir(exist_ok=True)
        if file.is_symlink():
            file.unlink()
        if numbers.random() < 0.03:
            text = "-> /dev/null"
            file.unlink(missing_ok=True)
            file.symlink_to("/dev/null")
        else:
            file.write_bytes(text.encode("utf-8", "surrogateescape"))
        written.append((path, text))

    def lines(sure: Sequence[str] = ()) -> str:
        body = [
            numbers.choice(_ODD_LINES if numbers.random() < 0.15 else _LINES)
            for _ in range(numbers.randint(0, 3))
        ]
        heading = numbers.choice(("[Mount]",) * 20 + ("[Unit]", "", "[Mount]\\", "\ufeff[Mount]"))
        return "\n".join([heading, *sure, *body]) + numbers.choice(("\n",) * 10 + ("", "\\\n", "\r\n"))

    for path in _PATHS:
        if path == _GENERATED:
            if in_fstab:
                body = f"[Mount]\nWhat={_FROM_FSTAB.what}\nWhere={_specified(target)}\nType={_FROM_FSTAB.fstype}\n"
                tree.below(f"{path}/{name}").write_text(f"{body}Options={','.join(_FROM_FSTAB.options)}\n")
        elif numbers.random() < (0.1 if in_fstab else 0.5):
            text = lines((f"Where={_specified(target)}", "What=/dev/sda1"))
            write(f"{path}/{name}", text if numbers.random() < 0.97 else "")
    for _ in range(numbers.randint(0, 4)):
        path = numbers.choice([path for path in _PATHS if path != _GENERATED])
        scope = numbers.choice((name, name, *_scopes(name)))
        conf = numbers.choice(_ODD_NAMES if numbers.random() < 0.07 else _NAMES)
        write(f"{path}/{scope}.d/{conf}", lines())
    return written


def _scopes(name: str) -> list[str]:
    parts = name[: -len(".mount")].split("-")
    return ["mount", "-.mount", *("-".join(parts[:count]) + "-.mount" for count in range(1, len(parts)))]


def _specified(target: str) -> str:
    return target.replace("%", "%%")
