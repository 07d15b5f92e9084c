# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program of the rollback timer: waits until no run has changed the host for the set time, and restores the host.

    undo.pyz

Files go back in the reverse order of their changes, so that each boot on the way is one that the run itself passed through. What
runs is only made safer again: barriers on, caches off, a guard's lease withdrawn. Exit code 0 if it is done or
nothing had to be done, 1 if it must be tried again, 2 if the journal cannot be read.
"""

from __future__ import annotations

import contextlib
import json
import os
import posixpath
import socket
import sys
import time
from collections.abc import Callable

from ..enforce import one_run
from ..enforce.bring import bring
from ..host import our_paths, systemd
from ..host.mountinfo import parse_mountinfo
from ..host.printable import line
from ..host.seam import ChangeFailed, Host, Unobservable, expect_root
from ..storage import mount_options, mount_trial, write_cache
from ..ups.guard import apply as power_guard
from ..ups.guard import state as guard_state
from . import installed, journal
from .journal import Entry, Journal, KeepingHost

#: In the safe order: barriers are on and flushed before a cache goes off.
_LAYERS = {"mount_options": mount_options, "write_cache": write_cache}
_UNITS = "/etc/systemd/system/"
#: Seconds between two checks whether a run still changes the host.
_PAUSE = 2.0


def main() -> int:
    """Wait, and restore; return the exit code."""
    os.umask(0o022)
    host = Host()
    try:
        expect_root(host)
        found = journal.read(host)
    except Unobservable as error:
        _say(str(error))
        return 2
    if found is None:
        return 0
    # After a boot the lock has no file yet. A server's user can fill /run before it is needed.
    with contextlib.suppress(ChangeFailed):
        host.make_lock(our_paths.LOCK)
    _tell_systemd("READY=1")
    while True:
        wait(host, found.seconds)
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        try:
            # A server's user can fill /run with files of that server: this must not keep the host from going back.
            with one_run.hold(host, "the rollback timer", now, ["undo"], is_text_needed=False):
                return put_back(host, now)
        except ChangeFailed as error:
            _say(str(error))


def wait(
    host: Host,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Return when no run has changed the host for so many seconds: they count again while one does."""
    until = clock() + seconds
    while clock() < until:
        sleep(_PAUSE)
        if one_run.last_run(host) == one_run.CHANGING:
            until = clock() + seconds


def put_back(host: Host, now: str) -> int:
    """Put the host back to where the run found it; return the exit code. Killed at any point, it goes on from there."""
    try:
        found = journal.read(host)
        if found is None:
            return 0
        _make_writable(host)
        failures = _withdraw_guard(host, found) + _tighten(KeepingHost(host), found)
        # The journal no longer has the files of an earlier attempt.
        back, left = installed.attempts(host)
        while entries := (journal.read(host) or Journal({})).entries:
            why = _restore(host, entries[-1])
            (left if why else back).append(why or entries[-1].path)
            _report(host, now, back, left)
            journal.write(host, found._replace(entries=entries[:-1]))
        back += _restore_root(host, found)
        mount_trial.clear(host)
        if systemd.runs(host):
            host.change(["systemctl", "daemon-reload"])
        _report(host, now, back, [*failures, *left])
        installed.remove(host, is_stopped=True)
        _leave_emergency(host)
    except (ChangeFailed, Unobservable) as error:
        _say(str(error))
        return 1
    _say(installed.switch_of(host).said)
    return 0


def _report(host: Host, now: str, back: list[str], failures: list[str]) -> None:
    """Write which files were restored, and why others were not. Raises ChangeFailed."""
    report = {
        "time": now,
        "put_back": list(dict.fromkeys(back)),
        "failures": list(dict.fromkeys(failures)),
    }
    host.write_file(our_paths.UNDO_FIRED, f"{json.dumps(report)}\n".encode(), mode=0o600)


def _withdraw_guard(host: Host, found: Journal) -> list[str]:
    """Permanently remove the guard that the run has installed or given a lease: its files are not restored with the others."""
    if not found.guard:
        return []
    try:
        power_guard.apply_release(host, power_guard.plan_release(host))
    except (ChangeFailed, Unobservable) as error:
        return [str(error)]
    except Exception as error:  # The files that the boot reads still go back.
        return [_unexpected("power_guard", error)]
    return []


def _tighten(host: Host, found: Journal) -> list[str]:
    """Make what runs as safe as it was; return what could not be. Nothing that is safer than it was is made less safe."""
    failures: list[str] = []
    for name, layer in _LAYERS.items():
        # One by one: after a boot that failed some are not there.
        for row in found.rows.get(name, ()):
            try:
                is_left_alone = (
                    row.get("leased") and guard_state.read(host)["state"] not in guard_state.RUNNING
                )
                # The guard that had barriers off at the start is gone.
                wanted = {**row, "barrier": "on"} if is_left_alone else row
                failures += bring(host, layer, {"targets": [wanted], "state": "present"}, False).failures
            except Exception as error:  # The files that the boot reads still go back.
                failures.append(_unexpected(name, error))
    return failures


def _unexpected(layer: str, error: Exception) -> str:
    return f"{layer}: {type(error).__name__}: {error}"


def _restore(host: Host, entry: Entry) -> str | None:
    """Put one file back; return why it is left as it is. Raises ChangeFailed where it must be tried again."""
    observed = journal.content_of(host, entry.path)
    if observed == entry.before:
        return None
    if observed != entry.after:
        return f"{entry.path}: another program changed it since, so it was left as it is"
    if entry.before is not None:
        host.write_file(entry.path, entry.before.encode("utf-8", "surrogateescape"), mode=entry.mode)
        return None
    directory, name = posixpath.split(entry.path)
    if entry.path == f"{_UNITS}{name}" and systemd.runs(host):
        host.change(["systemctl", "--quiet", "disable", "--no-reload", name])
    host.remove_file(entry.path)
    if entry.path.startswith(_UNITS) and directory.endswith(".d"):
        host.change(["rmdir", "--ignore-fail-on-non-empty", directory])
    return None


def _restore_root(host: Host, found: Journal) -> list[str]:
    """Put the default data= of the root's superblock back, which a run sets before fstab; say so. Raises ChangeFailed."""
    modes = [str(row["root_mode"]) for row in found.rows.get("mount_options", ()) if row.get("root_mode")]
    for mode in modes:
        mount_options.set_root_mode(host, mode)
    return [f"data={mode} in the superblock of /" for mode in modes]


def _make_writable(host: Host) -> None:
    """Make the root writable where a boot has failed before it was. Raises ChangeFailed, Unobservable."""
    mounts = [mount for mount in parse_mountinfo(host.read("/proc/self/mountinfo")) if mount.target == "/"]
    if mounts and "ro" in mounts[-1].super_options:
        host.make_mount_writable(mounts[-1])


def _leave_emergency(host: Host) -> None:
    """Let a boot go on that has ended in emergency mode. Raises ChangeFailed."""
    if not systemd.runs(host):
        return
    if host.run(["systemctl", "is-active", "emergency.target"]).stdout.strip() == "active":
        host.change(["systemctl", "--no-block", "default"])


def _tell_systemd(text: str) -> None:
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
            link.connect(address.replace("@", "\0", 1) if address.startswith("@") else address)
            link.sendall(text.encode("ascii"))


def _say(text: str) -> None:
    sys.stdout.write(f"{line(text)}\n")
    sys.stdout.flush()
