# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a lab machine: keep all of it that a run could change, and put that back, without the collection's layers.

Files that are ours and fstab, write caches, mounts, the guard's service. What was put back is read again:
a machine that is not as it was raises NotAsItWas.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from typing import Any

from . import truth_script
from .host.our_paths import LEASE, RUNTIME, SERVICE
from .host.seam import Host
from .ups.guard import state as guard_state

#: Where files of ours can lie: by their names they are ours.
_PLACES = ("/etc", "/var/lib/durable-dbhost", "/run/durable-dbhost", "/usr/local/lib/durable-dbhost")
#: Where those of /etc are known to lie. All of it is looked through where a profile is learned and at the end of each way;
#: many times for each death that would take longer than the run.
_KNOWN = ("/etc/durable-dbhost", "/etc/systemd/system", "/etc/udev", *_PLACES[1:])
_NAME = "durable-dbhost"
_FSTAB = "/etc/fstab"
_OWED = "/run/durable-dbhost/flush-owed"
_DROP_IN = f"/run/systemd/system/{SERVICE}.d/stand-in.conf"
#: A process of the guard's service that leaves barriers alone, as the guard does that has them off.
_STAND_IN = """\
[Service]
Type=exec
WatchdogSec=0
ExecStart=
ExecStart=/bin/sleep infinity
"""
#: Options of /proc/mounts that mount(8) takes as they are; the others come by themselves.
_SPELLED = ("ro", "rw", "noatime", "relatime", "nobarrier", "data=ordered", "data=writeback", "data=journal")
#: What systemd has read last of units and fstab, if that is known.
_LOADED: list[dict[str, Any]] = []

State = dict[str, Any]


class NotAsItWas(Exception):
    """The machine could not be brought back; the message says in what it differs."""


def keep(places: tuple[str, ...] = _PLACES) -> State:
    """Return what this machine is, with the files in these places."""
    settle()
    return {"files": dict(_files(places)), "truth": truth_script.look(), "loose": False}


def keep_loose() -> State:
    """Take barriers away as the guard does, with a stand-in for its process; return what the machine is then.

    The guard itself does that only when a UPS is well, and there is none here. Its program, unit and lease are real,
    and so is what they do at the end of the service.
    """
    _end_guard()
    _restore_drop_in(True)
    _let_systemd_read()
    _run("systemctl", "start", SERVICE)
    _write_loose_state()
    for target in _leased():
        _run("mount", "-o", "remount,barrier=0", target)
    return {**keep(), "loose": True}


def restore(wanted: State, seen: dict[str, Any] | None = None) -> None:
    """Bring the machine back; `seen` is its truth now, where that is known. Raises NotAsItWas."""
    if _end_guard():
        seen = None  # Its end has put barriers back.
    _restore_files(wanted["files"])
    _restore_drop_in(wanted["loose"])
    _let_systemd_read()
    # A rule that came back acts on its disk first.
    settle()
    seen = seen or truth_script.look()
    for serial, disk in wanted["truth"]["disks"].items():
        if _without_counter(disk) != _without_counter(seen["disks"].get(serial, {})):
            _restore_cache(serial, disk)
    for target, mount in wanted["truth"]["mounts"].items():
        if mount != seen["mounts"].get(target):
            _restore_mount(target, mount, target in seen["mounts"])
    if wanted["truth"]["guard"]["runs"]:
        _run("systemctl", "start", SERVICE)
        if wanted["loose"]:
            _write_loose_state()
    differs = difference(wanted, _KNOWN)
    if differs:
        raise NotAsItWas("; ".join(differs))


def difference(wanted: State, places: tuple[str, ...] = _PLACES) -> list[str]:
    """Return, in words, in what this machine is another than `wanted`; nothing if in nothing."""
    seen = keep(places)
    found = [
        f"{path} is not as it was: {_in_words(wanted, path)} -> {_in_words(seen, path)}"
        for path in files_that_differ(wanted, seen)
    ]
    for part in ("disks", "mounts"):
        names = {*wanted["truth"][part], *seen["truth"][part]}
        for name in sorted(names):
            was, now = (_without_counter(each["truth"][part].get(name, {})) for each in (wanted, seen))
            found += [
                f"{name} {key}: {was.get(key)} -> {now.get(key)}"
                for key in {*was, *now}
                if was.get(key) != now.get(key)
            ]
    if wanted["truth"]["guard"] != seen["truth"]["guard"]:
        found.append(f"guard: {wanted['truth']['guard']} -> {seen['truth']['guard']}")
    loops = [
        name for name in os.listdir("/sys/block") if os.path.exists(f"/sys/block/{name}/loop/backing_file")
    ]
    return found + [f"{name} is in use" for name in loops]


def files_that_differ(wanted: State, seen: State | None = None) -> list[str]:
    """Return the files that are not as `wanted` has them; `seen`: what this machine is, where that is known."""
    was, now = _without_day(wanted["files"]), _without_day(seen["files"] if seen else dict(_files()))
    return sorted(path for path in {*was, *now} if was.get(path) != now.get(path))


def stop(unit: str) -> None:
    """Stop a unit, if it is there."""
    subprocess.run(["systemctl", "stop", unit], capture_output=True, check=False)


def mount_as_at_boot() -> None:
    """Mount again, from fstab, what lies below /srv: as the next boot does."""
    for target in truth_script.look()["mounts"]:
        _run("umount", target)
        _run("mount", target)


def settle() -> None:
    """Wait until udev has done what it was told of."""
    _run("udevadm", "settle")


def owed() -> list[str]:
    """Return the disks that a run has noted as owed a flush."""
    return sorted(os.listdir(_OWED)) if os.path.isdir(_OWED) else []


def _files(places: tuple[str, ...] = _KNOWN) -> Iterator[tuple[str, dict[str, Any]]]:
    yield _FSTAB, _content(_FSTAB)
    for place in places:
        for directory, _directories, names in os.walk(place):
            for name in names:
                path = os.path.join(directory, name)
                # What runs now says other things each time.
                if _NAME in path and not path.startswith(RUNTIME):
                    yield path, _content(path)


def _without_day(files: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the files with a lease that has no first day: one that is given after midnight has another than one before."""
    kept = files.get(LEASE)
    if kept is None:
        return files
    said = json.loads(base64.b64decode(kept["text"]))
    return {**files, LEASE: {**kept, "text": {name: said[name] for name in said if name != "issued"}}}


def _in_words(state: State, path: str) -> str:
    kept = state["files"].get(path)
    if kept is None or "link" in kept:
        return str(kept)
    return f"{kept['mode']:o} {base64.b64decode(kept['text'])[:1000]!r}"


def _content(path: str) -> dict[str, Any]:
    if os.path.islink(path):
        return {"link": os.readlink(path)}
    with open(path, "rb") as handle:
        text = base64.b64encode(handle.read()).decode("ascii")
    return {"mode": stat.S_IMODE(os.stat(path).st_mode), "text": text}


def _restore_files(wanted: dict[str, dict[str, Any]]) -> None:
    here = dict(_files())
    changed = [path for path in {*wanted, *here} if wanted.get(path) != here.get(path)]
    for path in changed:
        if path in here:
            os.unlink(path)
        if path in wanted:
            _write(path, wanted[path])
    shutil.rmtree(_OWED, ignore_errors=True)
    shutil.rmtree("/var/lib/durable-dbhost/trial", ignore_errors=True)


def _restore_drop_in(is_wanted: bool) -> None:
    if is_wanted:
        _write(_DROP_IN, {"mode": 0o644, "text": _encoded(_STAND_IN)})
    else:
        shutil.rmtree(os.path.dirname(_DROP_IN), ignore_errors=True)


def _let_systemd_read() -> None:
    """Let systemd read units and fstab, unless it has read these already: that takes longer than all the rest."""
    units = [path for path, _kept in _files() if path == _FSTAB or path.startswith("/etc/systemd/")]
    now = {path: _content(path) for path in [*units, *filter(os.path.exists, [_DROP_IN])]}
    if [now] != _LOADED:
        _run("systemctl", "daemon-reload")
        _LOADED[:] = [now]


def forget_systemd() -> None:
    """Somebody else has let systemd read files since."""
    _LOADED.clear()


def _write(path: str, kept: dict[str, Any]) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if "link" in kept:
        os.symlink(kept["link"], path)
        return
    with open(path, "wb") as handle:
        os.fchmod(handle.fileno(), kept["mode"])
        handle.write(base64.b64decode(kept["text"]))


def _restore_cache(serial: str, disk: dict[str, Any]) -> None:
    name, is_on = disk["name"], disk["cache"] == "on"
    word = "write back" if is_on else "write through"
    if serial.startswith("VIRT"):
        _attribute(f"/sys/block/{name}/cache_type", word)
        return
    if serial.startswith("NVME"):
        _run(
            "nvme",
            "set-feature",
            f"/dev/{name}",
            "--namespace-id=0xffffffff",
            "--feature-id=6",
            f"--value={is_on:d}",
        )
        return
    directory = f"/sys/block/{name}/device/scsi_disk"
    path = f"{directory}/{os.listdir(directory)[0]}/cache_type"
    if serial.startswith("SATA"):
        _run("hdparm", "-q", f"-W{is_on:d}", f"/dev/{name}")
        settle()
    else:
        _attribute(path, word)
    _attribute(path, f"temporary {disk['cache_mode']}")


def _restore_mount(target: str, mount: dict[str, Any], is_mounted: bool) -> None:
    """Mount it again: the journal's mode cannot be changed otherwise."""
    words = [word for word in mount["options"] if word in _SPELLED]
    if is_mounted:
        _run("umount", target)
    _run("mount", "-t", mount["fstype"], "-o", ",".join(words), f"/dev/{mount['source']}", target)


def _end_guard() -> bool:
    """End the guard; return whether there was one."""
    if not os.path.exists(RUNTIME) and not truth_script.guard_runs():
        return False
    # One that is not there, or ended badly, is to be ended too.
    stop(SERVICE)
    subprocess.run(["systemctl", "reset-failed", SERVICE], capture_output=True, check=False)
    shutil.rmtree(RUNTIME, ignore_errors=True)
    return True


def _leased() -> list[str]:
    return list(guard_state.read(Host())["lease"]["mounts"])


def _write_loose_state() -> None:
    """Say, as the guard does, that its process has barriers off; it says so every few seconds."""
    host = Host()
    pid = int(_run("systemctl", "show", "--property=MainPID", "--value", SERVICE))
    boot, start = guard_state.identity(host, pid)
    kept = {}
    for target in _leased():
        device = os.stat(target).st_dev
        number = f"{os.major(device)}:{os.minor(device)}"
        path = os.path.realpath(f"/sys/dev/block/{number}")
        disk = os.path.dirname(path) if os.path.exists(f"{path}/partition") else path
        kept[target] = guard_state.Below(number, (os.path.basename(disk),))
    beat = guard_state.uptime(host)
    since = "2026-01-01T00:00:00Z"
    record = guard_state.Record(boot, pid, start, beat, guard_state.LOOSE, "a stand-in", since, None, kept)
    _write(f"{RUNTIME}/state.json", {"mode": 0o644, "text": _encoded(record.render())})


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode("utf-8")).decode("ascii")


def _without_counter(disk: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in disk.items() if key != "flushes"}


def _attribute(path: str, value: str) -> None:
    with open(path, "w", encoding="ascii") as handle:
        handle.write(value)


def _run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotAsItWas(f"{' '.join(argv)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
