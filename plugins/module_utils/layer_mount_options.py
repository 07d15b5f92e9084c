# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mount_options layer: barrier, data= and atime of mounted file systems, live and in fstab."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import fstab, mount_trial, mountwords, originals
from .disks import Disks
from .flush import flush_mount, owe, takes_flushes
from .host import ChangeFailed, Host, Unobservable
from .layer import Change, each, verify
from .mountinfo import Mount
from .mounts import Mounts
from .observation import UNKNOWN
from .settings import satisfies

FSTAB = fstab.PATH
_NOTE = f"the next line's options are managed; originals in {originals.PATH}"
#: What a target can name.
ALL_SETTINGS = ("barrier", "data_mode", "atime")
#: Changed by a remount. data= is not: the kernel refuses, so it waits for the next mount.
_LIVE = ("barrier", "atime")
#: Superblock flags that a remount sets anew: what is not named again is taken away.
_KEPT_FLAGS = ("ro", "sync", "dirsync", "lazytime", "mand")


class Target(NamedTuple):
    """A mount point and the settings wanted there; `persist` says whether fstab is ours to edit."""

    target: str
    wanted: dict[str, str]
    persist: bool = True


def target_of(row: dict[str, Any]) -> Target:
    """Return a target of what the module, or a plan, says of it: settings that are None are not wanted."""
    wanted = {name: str(row[name]) for name in ALL_SETTINGS if row.get(name) is not None}
    return Target(str(row["target"]), wanted, bool(row["persist"]))


class Work(NamedTuple):
    """What there is to do, and all that doing it needs."""

    changes: tuple[Change, ...]
    facts: dict[str, dict[str, Any]]
    mounts: dict[str, Mount]
    fstab_before: str
    fstab_after: str
    edited: dict[str, tuple[str, ...]]


def plan(host: Host, targets: list[Target]) -> Work:
    """Return the work that brings the targets to their settings; reads only.

    Raises ChangeFailed when a target is not mounted, has a file system without a rule, or when
    fstab cannot be parsed.
    """
    reader = Mounts(host)
    if reader.fstab_error:
        raise ChangeFailed(reader.fstab_error)
    groups = {mount.target: group for group in reader.superblocks() for mount in group}
    text = host.read(FSTAB) if host.exists(FSTAB) else ""
    work = Work((), {}, {}, text, text, {})
    for target in targets:
        group = groups.get(target.target)
        if group is None:
            raise ChangeFailed(f"{target.target}: nothing is mounted there; wanted a mounted file system")
        work = _plan_one(work, target, group, reader)
    return work


def apply(host: Host, work: Work, targets: list[Target]) -> None:
    """Do the work, safest part first, and read it back. Raises ChangeFailed."""
    live = {change.target: {} for change in work.changes}  # type: dict[str, dict[str, str]]
    for change in work.changes:
        if change.when == "running":
            live[change.target][change.setting] = change.after
    tightened = [t for t, wanted in live.items() if wanted and wanted.get("barrier") != "off"]
    loosened = [t for t, wanted in live.items() if wanted.get("barrier") == "off"]
    try:
        each(tightened, lambda target: _remount(host, work, target, live[target]))
    finally:
        # Also when one mount refused: the others keep their state at the next boot.
        _write_fstab(host, work)
    each(loosened, lambda target: _remount(host, work, target, live[target]))
    verify(plan(host, targets).changes)


def release(host: Host) -> tuple[tuple[Change, ...], str]:
    """Return what release changes, and the fstab that it leaves; reads only.

    Our words give way to the original ones; words that others added since stay. Raises
    ChangeFailed.
    """
    text = host.read(FSTAB) if host.exists(FSTAB) else ""
    changes = []
    for target, before in originals.load(host).items():
        try:
            found = fstab.find(fstab.parse(text), target)
        except fstab.MalformedFstab as error:
            raise ChangeFailed(str(error)) from error
        entry = next((entry for entry in found if fstab.is_marked(text, entry)), None)
        if entry is None:
            changes.append(Change(target, "originals", "persisted", before, "forgotten"))
            continue
        restored = mountwords.restore(entry.options, tuple(before.split(",")))
        restored = mountwords.drop(restored, mountwords.REFUSED_BY.get(entry.fstype, ()))
        text = fstab.set_options(text, entry, restored, None)
        changes.append(Change(target, "options", "persisted", ",".join(entry.options), ",".join(restored)))
    return tuple(changes), text


def apply_release(host: Host, text: str) -> None:
    """Write the released fstab, once the kernel has tried its lines, and forget the originals."""
    before = _read(host) if host.exists(FSTAB) else ""
    if text != before:
        old = {entry.target: entry.options for entry in fstab.parse(before)}
        changed = [entry for entry in fstab.parse(text) if entry.options != old[entry.target]]
        for fstype, options in dict.fromkeys((entry.fstype, entry.options) for entry in changed):
            mount_trial.try_options(host, fstype, options, True)
        _replace_fstab(host, text)
    originals.save(host, {})


def _plan_one(work: Work, target: Target, group: list[Mount], reader: Mounts) -> Work:
    facts = reader.collect(group)
    fstype, name = facts["fstype"], facts["target"]
    allowed = mountwords.SETTINGS_OF.get(fstype, ())
    # "barrier on" asks nothing of XFS that it would not do: it only cleans the line.
    asked = {s: v for s, v in target.wanted.items() if s in allowed or (s, v) == ("barrier", "on")}
    if set(target.wanted) - set(asked) or fstype not in mountwords.SETTINGS_OF:
        raise ChangeFailed(
            f"{name}: seen {fstype}, wanted {target.wanted}; this file system takes"
            f" {', '.join(allowed) or 'none of these settings'}"
        )
    if "data_mode" in asked and "/" in facts["targets"]:
        raise ChangeFailed("/: data= in fstab's root line would stop the boot; use tune2fs -o journal_data_*")
    changes = [
        Change(name, setting, "running", facts[setting], value)
        for setting, value in asked.items()
        if setting in _LIVE and setting in allowed and facts[setting] != value
    ]
    text, edited = work.fstab_after, dict(work.edited)
    # What cannot be read cannot be checked either: it stays, and stays unknown.
    stale = {
        setting: value
        for setting, value in asked.items()
        if facts["persisted"][setting] != UNKNOWN
        and not satisfies(setting, facts["persisted"][setting], value)
    }
    if stale and target.persist:
        line = reader.entry(group)
        if line is None:
            raise ChangeFailed(f"{name}: no fstab line of its own to edit; add one, by UUID")
        # Earlier edits of this plan may have moved it.
        entry = next(e for e in fstab.parse(text) if (e.spec, e.target) == (line.spec, line.target))
        changes += [
            Change(name, setting, "persisted", facts["persisted"][setting], value)
            for setting, value in stale.items()
        ]
        options = mountwords.drop(entry.options, mountwords.REFUSED_BY.get(fstype, ()))
        options = mountwords.replace(options, {s: v for s, v in stale.items() if s in allowed})
        text = fstab.set_options(text, entry, options, _NOTE)
        edited[entry.target] = options
    return Work(
        (*work.changes, *changes),
        {**work.facts, name: facts},
        {**work.mounts, name: group[0]},
        work.fstab_before,
        text,
        edited,
    )


def _remount(host: Host, work: Work, target: str, wanted: dict[str, str]) -> None:
    mount, facts = work.mounts[target], work.facts[target]
    # Without --options-source=disable, mount(8) adds what fstab says and drops what it does not:
    # a read-only, nodev mount would come back writable. So every flag in force is named again.
    flags = mountwords.drop(mount.options, ["atime"])
    atime = wanted.get("atime", facts["atime"])
    if "barrier" not in wanted:
        # A bind remount changes this mount alone and leaves the file system's own options be.
        _mount(host, mount, ["remount", "bind", *flags, atime])
        return
    if mount.read_only_by_itself:
        raise ChangeFailed(
            f"{target}: mounted read-only over a writable file system; a remount would make all of it"
            " read-only: mount it writable somewhere, then run again"
        )
    kept = [flag for flag in _KEPT_FLAGS if flag in mount.super_options and flag not in flags]
    if "ro" in kept:
        flags = tuple(flag for flag in flags if flag != "rw")
    options = ["remount", *flags, *kept, atime, mountwords.spell("barrier", wanted["barrier"])]
    if wanted["barrier"] == "off":
        _mount(host, mount, options)
        return
    flushed = (
        [] if facts["disks"] == UNKNOWN else [name for name in facts["disks"] if takes_flushes(host, name)]
    )
    for name in flushed:
        owe(host, name)
    _mount(host, mount, options)
    if facts["disks"] == UNKNOWN:
        raise ChangeFailed(
            f"{target}: barriers are on again, but no flush could be counted:"
            f" {facts['evidence']['disks']['reason']}"
        )
    flush_mount(host, target, flushed)
    _expect_nothing_cached(host, target, [name for name in facts["disks"] if name not in flushed])


def _mount(host: Host, mount: Mount, options: list[str]) -> None:
    words = ",".join(options)
    host.change(["mount", "-o", words, "--options-source=disable", mount.source, mount.target])


def _expect_nothing_cached(host: Host, target: str, names: list[str]) -> None:
    """Require of disks that take no flush that they need none, by their own word."""
    if not names:
        return
    reader = Disks(host)
    for name in names:
        seen = reader.collect(name)["write_cache"]["device"]
        if seen not in ("disabled", "none"):
            raise ChangeFailed(
                f"{target}: barriers are on again, but the kernel believes that {name} caches nothing and"
                f" sends it no flush, while its cache is {seen}: raise the belief (write_cache, state keep)"
            )


def _write_fstab(host: Host, work: Work) -> None:
    if work.fstab_after == work.fstab_before:
        return
    before = {entry.target: entry for entry in fstab.parse(work.fstab_before)}
    for fstype, options, journal in dict.fromkeys(_trials(work)):
        mount_trial.try_options(host, fstype, options, journal)
    kept = {target: text for target, text in originals.load(host).items() if target in before}
    for target in work.edited:
        # A line without our mark is somebody's new one, whatever we knew of an older.
        if target not in kept or not fstab.is_marked(work.fstab_before, before[target]):
            kept[target] = ",".join(before[target].options)
    originals.save(host, kept)
    if _read(host) != work.fstab_before:
        raise ChangeFailed(f"{FSTAB}: somebody else changed it meanwhile; run again")
    _replace_fstab(host, work.fstab_after)


def _trials(work: Work) -> list[tuple[str, tuple[str, ...], bool]]:
    """Return the file system, options and journal of each line that changes."""
    of_target = {target: facts for facts in work.facts.values() for target in facts["targets"]}
    return [
        (of_target[target]["fstype"], options, of_target[target]["data_mode"] != "none")
        for target, options in work.edited.items()
    ]


def _replace_fstab(host: Host, text: str) -> None:
    host.write_file(FSTAB, text.encode("utf-8", "surrogateescape"))
    if host.exists("/run/systemd/system"):
        # Else systemd would mount by the old line until the next boot.
        host.change(["systemctl", "daemon-reload"])


def _read(host: Host) -> str:
    try:
        return host.read(FSTAB)
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
