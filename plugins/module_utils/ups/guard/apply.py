# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power_guard layer: the service that removes barriers while a UPS protects the host."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable
from typing import Any, NamedTuple

from ...enforce import file_diff, our_files
from ...enforce.arguments import Arguments
from ...enforce.change import Change, verify
from ...enforce.our_files import ABSENT, CURRENT
from ...host import our_paths, systemd
from ...host.observation import UNKNOWN
from ...host.seam import CHANGE_TIMEOUT, ChangeFailed, Host, Unobservable
from ...storage.blockstack import Blocks
from ...storage.filesystems import FileSystems
from . import lease, mount_keeper, service, state, unit
from .health import Clock
from .installed import MODES, files
from .lease import Lease
from .parallel import together

#: Seconds for systemctl: a disk that hangs holds up the guard, its end, and what tightens after that.
_STOP_TIMEOUT = 2 * CHANGE_TIMEOUT
#: Files of the monitors that may name the hook, which then stays.
_NAMING = (
    "/etc/nut/upsmon.conf",
    "/etc/ups/upsmon.conf",
    *(f"/etc/apcupsd/{event}" for event in ("onbattery", "offbattery", "commfailure", "commok", "changeme")),
)

_TARGET = {"mount": {"type": "str", "required": True}}
_TERMS = {
    "expires": {"type": "str", "default": ""},
    "quiet": {"type": "int", "default": 300},
    "needed": {
        "type": "dict",
        "options": {
            "durability": {"type": "float", "required": True},
            "clean_stop": {"type": "float", "required": True},
        },
    },
    "test_ups": {"type": "bool", "default": False},
    "units": {"type": "list", "elements": "str", "default": []},
}
ARGUMENTS = Arguments(_TARGET, shared=_TERMS, apart=False)


class Work(NamedTuple):
    """What there is to do: the lease to write, and the files that differ, {path: content}."""

    changes: tuple[Change, ...]
    lease: Lease
    files: dict[str, bytes]


class Release(NamedTuple):
    """What release removes; `warnings` say what it leaves, and why."""

    changes: tuple[Change, ...]
    files: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def target_of(row: dict[str, Any]) -> str:
    """Return a target, a mount point, of what the module, or a plan, says of it."""
    return str(row["mount"])


def plan(host: Host, targets: list[str], **terms: Any) -> Work:
    """Return the work that makes the guard look after these mount points, and no others; reads only.

    `terms`: expires, quiet, needed, test_ups and units, as a lease has them. Raises ChangeFailed, before
    anything changes, for a mount that cannot be loosened, or terms that are none.
    """
    if not systemd.runs(host):
        raise ChangeFailed("the guard is a service of systemd, which does not run here: leave barriers on")
    our_files.expect_roots(host, our_paths.UPS_WAY)
    before, reason = _lease(host)
    wanted = _wanted(host, targets, terms, before)
    content_of = files(wanted)
    changed = {
        path: content
        for path, content in content_of.items()
        if _state_of_file(host, path, content) != CURRENT
    }
    changes = [
        Change(
            path, posixpath.basename(path), "persisted", _state_of_file(host, path, content_of[path]), CURRENT
        )
        for path in changed
        if path != our_paths.LEASE
    ]
    changes += [Change(path, "mode", "persisted", "closed", "0755") for path in _closed(host)]
    if our_paths.LEASE in changed:
        before_text = _text_of(before) if before else reason or ABSENT
        changes.append(Change(our_paths.LEASE, "lease", "persisted", before_text, _text_of(wanted)))
    if not host.exists(unit.WANTED_BY):
        changes.append(Change(our_paths.SERVICE, "enabled", "persisted", "no", "yes"))
    now = state.read(host)
    if now["state"] not in state.RUNNING:
        changes.append(Change(our_paths.SERVICE, "state", "running", str(now["state"]), "running"))
    return Work(tuple(changes), wanted, changed)


def apply(host: Host, work: Work, targets: list[str]) -> None:
    """Do the work, with barriers on meanwhile, and read it back. Raises ChangeFailed."""
    _stop(host)
    for directory in _closed(host):
        host.change(["chmod", "0755", directory])
    our_files.write(host, work.files, MODES)
    # One reload for both: enable alone would have systemd read all units a second time.
    host.change(["systemctl", "--quiet", "enable", "--no-reload", our_paths.SERVICE])
    host.change(["systemctl", "daemon-reload"])
    host.change(["systemctl", "start", our_paths.SERVICE], _STOP_TIMEOUT)
    terms = {name: value for name, value in work.lease._asdict().items() if name not in ("mounts", "issued")}
    left = plan(host, targets, **terms).changes
    reason = state.read(host)["reason"]
    verify(
        change._replace(before=f"{change.before} ({reason})") if change.setting == "state" else change
        for change in left
    )


def edits(host: Host, work: Work | Release) -> Iterable[file_diff.Edit]:
    """Return the files that a plan changes."""
    if isinstance(work, Work):
        return file_diff.of_root(host, dict(work.files))
    # The directory of the running guard's state has no text.
    return file_diff.of_root(host, {path: None for path in work.files if path != our_paths.RUNTIME})


def plan_release(host: Host, **_terms: Any) -> Release:
    """Return what release removes; reads only. Raises Unobservable and ChangeFailed."""
    files = [path for path in (our_paths.LEASE, our_paths.UNIT, our_paths.PROGRAM) if host.exists(path)]
    warnings = []
    if host.exists(our_paths.HOOK):
        naming = [path for path in _NAMING if host.exists(path) and our_paths.HOOK in host.read(path)]
        if naming:
            warnings.append(
                f"{our_paths.HOOK} stays until role power has removed it from {', '.join(naming)}"
            )
        else:
            files.append(our_paths.HOOK)
    if host.exists(our_paths.RUNTIME):
        files.append(our_paths.RUNTIME)
    changes = [Change(path, posixpath.basename(path), "persisted", "present", ABSENT) for path in files]
    keepers = service.inherited(host, _nobody)
    off = [
        (target, barrier) for target, barrier in _barriers(keepers).items() if barrier not in ("on", "absent")
    ]
    changes += [Change(target, "barrier", "running", barrier, "on") for target, barrier in off]
    return Release(tuple(changes), tuple(files), tuple(warnings))


def apply_release(host: Host, work: Release) -> None:
    """Stop the guard, see that barriers are on and flushed, and only then remove it. Raises ChangeFailed."""
    _stop(host)
    if host.exists(our_paths.UNIT) and systemd.runs(host):
        host.change(["systemctl", "--quiet", "disable", "--no-reload", our_paths.SERVICE], _STOP_TIMEOUT)
        systemd.reset_failed(host, our_paths.SERVICE)
    for path in work.files:
        if path == our_paths.RUNTIME:
            host.change(["rm", "-rf", our_paths.RUNTIME])
        elif host.exists(path):
            host.remove_file(path)
    our_files.remove_directories(host, our_paths.UPS_WAY)
    if systemd.runs(host):
        host.change(["systemctl", "daemon-reload"])
    verify(plan_release(host).changes)


def _lease(host: Host) -> tuple[Lease | None, str]:
    """Return the lease that is there, and why it is none."""
    try:
        return lease.read(host), ""
    except Unobservable as error:
        return None, str(error)


def _wanted(host: Host, targets: list[str], terms: dict[str, Any], before: Lease | None) -> Lease:
    if not targets:
        raise ChangeFailed("targets: no mount point; state released removes the guard")
    systems = FileSystems(host, Blocks(host))
    uuids = {target: mount_keeper.find(host, systems, target)[1].uuid for target in targets}
    today = Clock().today()
    terms_of_lease = {
        "schema": lease.SCHEMA,
        "mounts": [{"target": target, "uuid": uuid} for target, uuid in sorted(uuids.items())],
        **terms,
        "issued": today,
        "units": sorted(set(terms["units"] or ())),
    }
    try:
        wanted = lease.parse(json.dumps(terms_of_lease))
    except (TypeError, ValueError) as error:
        raise ChangeFailed(f"the terms of the lease: {error}") from error
    if before is not None and before.over(today) is None:
        # The same lease keeps its first day.
        wanted = wanted._replace(issued=before.issued)
    over = wanted.over(today)
    if over:
        raise ChangeFailed(f"expires: {over}; attest again what it rests on")
    return wanted


def _state_of_file(host: Host, path: str, content: bytes) -> str:
    try:
        return our_files.state_of(host, path, content, MODES)
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error


def _closed(host: Host) -> list[str]:
    """Return the directories that the monitor's user cannot come through."""
    return [path for path in our_paths.UPS_WAY if host.exists(path) and host.mode(path) & 0o005 != 0o005]


def _text_of(found: Lease) -> str:
    mounts = ", ".join(f"{mount.target} ({mount.uuid})" for mount in found.mounts)
    needed = ", ".join(f"{name} {seconds:g} s" for name, seconds in sorted(found.needed.items()))
    return (
        f"{mounts} from {found.issued} to {found.expires}; quiet {found.quiet} s; {needed};"
        f" test driver {'counts' if found.test_ups else 'does not count'}; stops before"
        f" {', '.join(found.units) or 'nothing'}"
    )


def _stop(host: Host) -> None:
    """Stop the guard, and see that nothing is left without barriers or without a flush.

    Raises ChangeFailed: then everything is left in place, and the guard's own end tries again.
    """
    if host.exists(our_paths.UNIT) and systemd.runs(host):
        host.change(["systemctl", "--quiet", "stop", our_paths.SERVICE], _STOP_TIMEOUT)
    keepers = service.inherited(host, _nobody)
    left = state.read(host)["state"] in (state.FAILED, UNKNOWN)
    if left or any(barrier not in ("on", "absent") for barrier in _barriers(keepers).values()):
        failures = together(keepers, lambda target: keepers[target].tighten(), _STOP_TIMEOUT)
        if failures:
            raise ChangeFailed("; ".join(failures.values()))


def _nobody(_line: str) -> None:
    """The journal is the guard's: what went wrong here, the module says."""


def _barriers(keepers: dict[str, mount_keeper.Keeper]) -> dict[str, str]:
    return {target: found.barrier() for target, found in keepers.items()}
