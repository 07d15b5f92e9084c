# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start of the rollback timer, before a run changes anything that could cost a host its connection or its boot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..enforce import our_files
from ..host import our_paths, program, systemd
from ..host.refusals import remedy
from ..host.seam import ChangeFailed, CommandFailed, Host, Unobservable
from ..ups.guard import lease
from . import installed, journal, put_back
from .journal import Journal, KeepingHost, Rows


def expect_possible(host: Host) -> None:
    """Raise ChangeFailed if no switch can be armed: systemd does not run, or others than root may change what it runs."""
    try:
        if not systemd.runs(host):
            raise ChangeFailed("it is a service of systemd, which does not run here")
        our_files.expect_roots(host, [our_paths.UNDO])
        journal.read(host)
    except (ChangeFailed, Unobservable) as error:
        raise ChangeFailed(
            f"the rollback timer cannot be armed: {error}; to go without one, set durable_undo_after to 0"
        ) from error


def arm(host: Host, code: Mapping[str, Any], steps: Iterable[Mapping[str, Any]], seconds: int) -> Host:
    """Return the host as the layers that are undone are to take it, once the switch waits.

    `code`, `steps`: as enforce/steps.py takes them. One that an earlier run left is taken over: the host goes back to
    where that run found it. Raises ChangeFailed and Unobservable, before anything else was changed.
    """
    try:
        _install(host, _journal(host, code, steps, seconds))
    except ChangeFailed as error:
        raise ChangeFailed(
            f"the rollback timer could not be armed, so nothing was changed that the next boot reads: {error}"
        ) from error
    return KeepingHost(host)


def _journal(
    host: Host, code: Mapping[str, Any], steps: Iterable[Mapping[str, Any]], seconds: int
) -> Journal:
    """Return the journal of a run that begins, with what an earlier one has left in it. Raises Unobservable."""
    found = journal.read(host) or Journal({})
    rows = {layer: list(originals) for layer, originals in found.rows.items()}
    guard = found.guard
    leased = _leased(host)
    for step in steps:
        layer = str(step["layer"])
        guard = guard or (layer, step["phase"]) == ("power_guard", "loosen")
        known = {_named(row) for row in rows.get(layer, ())}
        now = _as_now(host, code[layer], step["arguments"].get("targets") or [])
        rows.setdefault(layer, []).extend(
            {**row, "leased": True} if _named(row) in leased else row
            for row in now
            if _named(row) not in known
        )
    return found._replace(
        seconds=seconds, rows={name: originals for name, originals in rows.items() if originals}, guard=guard
    )


def _as_now(host: Host, layer: Any, rows: Rows) -> Rows:
    """Return what a layer reports of its targets, without those that it refuses: a step still changes the others."""
    if not hasattr(layer, "as_now"):
        return []
    try:
        return list(layer.as_now(host, rows))
    except (ChangeFailed, Unobservable, KeyError, TypeError, ValueError):
        # The step itself reports why.
        return [each for row in rows for each in _as_now(host, layer, [row])] if len(rows) > 1 else []


def _leased(host: Host) -> list[str]:
    """Return the mount points where a guard may have barriers off: a run that removes it leaves nothing that restores them."""
    try:
        found = lease.read(host)
    except Unobservable:
        return []  # Such a guard has barriers on.
    return [mount.target for mount in found.mounts] if found else []


def _named(row: Mapping[str, Any]) -> Any:
    return row.get("target") or row.get("disk")


def _make_directory(host: Host, path: str, mode: str) -> None:
    try:
        host.change(["install", "-d", "-m", mode, path])
    except CommandFailed as error:
        # `install` reports the mode that it cannot set, also if the file system is read-only.
        raise ChangeFailed(f"{path}: {error.text}; {remedy(error.text, path)}") from error


def _install(host: Host, wanted: Journal) -> None:
    _make_directory(host, our_paths.CONFIGURED, "0755")
    _make_directory(host, our_paths.UNDO, "0700")
    if host.exists(our_paths.UNDO_FIRED):
        host.remove_file(our_paths.UNDO_FIRED)
    journal.write(host, wanted)
    host.write_file(our_paths.UNDO_PROGRAM, program.build(put_back.__name__))
    host.write_file(our_paths.UNDO_UNIT, installed.unit(program.interpreter()).encode())
    # One reload for both: enable alone would have systemd read all units a second time.
    host.change(["systemctl", "--quiet", "enable", "--no-reload", our_paths.UNDO_SERVICE])
    host.change(["systemctl", "daemon-reload"])
    # The links of enable are to outlive a power cut, as the files do.
    host.sync(our_paths.UNDO, whole=True)
    # It returns when the program has read the journal.
    host.change(["systemctl", "restart", our_paths.UNDO_SERVICE])
