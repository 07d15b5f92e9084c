# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit_mounts layer: drop-ins by which servers start only after their file systems are mounted.

A drop-in with RequiresMountsFor= (systemd.unit(5)) has the unit require the mounts of a path, and wait for them: also
one with `nofail` or `noauto`, of which a boot does not wait.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..enforce import file_diff
from ..enforce.arguments import Arguments
from ..enforce.change import Change, verify
from ..host import systemd, units
from ..host.our_paths import UNIT_MOUNTS
from ..host.seam import ChangeFailed, Host, Unobservable
from ..storage.mount_units import unit_name

_ETC = "/etc/systemd/system"
_HEADER = "# Managed by durable.dbhost. playbooks/release_db.yml takes it away.\n"
SETTING = "requires_mounts"
_UNIT = re.compile(r"[A-Za-z0-9:_.\\@-]{1,247}\.service")
_PATH = re.compile(r"/[^\0-\x1f\x7f\udc80-\udcff]+")
#: Within quotes a backslash takes the next letter as it is; a percent sign begins a specifier.
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "%": "%%"})
_TARGET = {
    "unit": {"type": "str", "required": True},
    "mounts": {"type": "list", "elements": "str", "required": True},
}
ARGUMENTS = Arguments(_TARGET)


class Target(NamedTuple):
    """A service, and the mount points without which it is not to start."""

    unit: str
    mounts: tuple[str, ...]


class Work(NamedTuple):
    """What there is to do, and the text of each drop-in that it takes."""

    changes: tuple[Change, ...]
    drop_ins: dict[str, str]


class Release(NamedTuple):
    """What release changes, and the drop-ins that go."""

    changes: tuple[Change, ...]
    drop_ins: tuple[str, ...]


def target_of(row: dict[str, Any]) -> Target:
    """Return a target of what the module, or a plan, says of it."""
    return Target(str(row["unit"]), tuple(sorted({str(path) for path in row["mounts"]})))


def drop_in(unit: str) -> str:
    """Return the path of our drop-in for a service."""
    return f"{_ETC}/{unit}.d/{UNIT_MOUNTS}"


def render(mounts: tuple[str, ...]) -> str:
    """Return the text of our drop-in."""
    lines = "".join(f'RequiresMountsFor="{path.translate(_ESCAPED)}"\n' for path in mounts)
    return f"{_HEADER}[Unit]\n{lines}"


def plan(host: Host, targets: list[Target]) -> Work:
    """Return the work after which the services require their mounts; reads only.

    Raises ChangeFailed, before anything changes, for a name that is no service's or a path that no unit can name, where
    systemd does not know the service, and if another program's file has its name.
    """
    for target in targets:
        _expect_usable(target)
    shown, why = units.show(host, [target.unit for target in targets])
    if why:
        raise ChangeFailed(
            f"systemd could not be asked: {why}; expected its units; run again when it answers"
        )
    changes: list[Change] = []
    drop_ins = {}
    for target in targets:
        unit = shown.get(target.unit)
        if unit is None or unit.load != "loaded":
            observed = unit.load if unit else "nothing"
            raise ChangeFailed(f"{target.unit}: observed {observed}, expected a unit that systemd has loaded")
        text, wanted = render(target.mounts), ", ".join(target.mounts)
        before = _read(host, drop_in(target.unit))
        if before != text:
            drop_ins[target.unit] = text
            changes.append(Change(target.unit, SETTING, "persisted", "other" if before else "unset", wanted))
        held = [path for path in target.mounts if unit_name(path) in unit.mounts]
        if len(held) < len(target.mounts) or unit.stale:
            now = ", ".join(held) or "none"
            changes.append(
                Change(target.unit, SETTING, "running", "not reloaded" if unit.stale else now, wanted)
            )
    return Work(tuple(changes), drop_ins)


def apply(host: Host, work: Work, targets: list[Target]) -> None:
    """Write the drop-ins, have systemd read them, and read back what it makes of them. Raises ChangeFailed.

    No server is restarted: its next start waits for its mounts.
    """
    for unit, text in work.drop_ins.items():
        host.write_file(drop_in(unit), text.encode())
    host.change(["systemctl", "daemon-reload"])
    verify(plan(host, targets).changes)


def edits(host: Host, work: Work | Release) -> Iterable[file_diff.Edit]:
    """Return the files that a plan changes."""
    if isinstance(work, Release):
        return file_diff.of_root(host, dict.fromkeys(work.drop_ins))
    return file_diff.of_root(host, {drop_in(unit): text for unit, text in work.drop_ins.items()})


def plan_release(host: Host) -> Release:
    """Return what release changes; reads only. Raises ChangeFailed."""
    try:
        names = host.names(_ETC) if host.exists(_ETC) else []
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
    paths = [f"{_ETC}/{name}/{UNIT_MOUNTS}" for name in names if name.endswith(".service.d")]
    found = tuple(path for path in paths if host.exists(path))
    return Release(tuple(Change(path, "drop_in", "persisted", "present", "absent") for path in found), found)


def apply_release(host: Host, work: Release) -> None:
    """Take the drop-ins away. Raises ChangeFailed."""
    for path in work.drop_ins:
        host.remove_file(path)
        host.change(["rmdir", "--ignore-fail-on-non-empty", posixpath.dirname(path)])
    if systemd.runs(host):
        host.change(["systemctl", "daemon-reload"])


def _expect_usable(target: Target) -> None:
    if not _UNIT.fullmatch(target.unit):
        raise ChangeFailed(
            f"{target.unit}: observed no name of a service; expected one that ends in .service"
        )
    wrong = [path for path in target.mounts if not _PATH.fullmatch(path)]
    if wrong or not target.mounts:
        raise ChangeFailed(
            f"{target.unit}: observed mount points {wrong!r}; expected one or more absolute paths that a line of a unit can name"
        )


def _read(host: Host, path: str) -> str:
    """Return our drop-in's text, '' if there is none. Raises ChangeFailed for another program's."""
    if not host.exists(path):
        return ""
    try:
        text = host.read(path)
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
    if not text.startswith(_HEADER):
        raise ChangeFailed(
            f"{path}: observed a file that is not ours; expected none of that name; move it away"
        )
    return text
