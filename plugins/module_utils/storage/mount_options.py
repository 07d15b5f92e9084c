# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mount_options layer: barrier, data=, atime and sync of mounted file systems, live and in fstab."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..enforce import file_diff, originals
from ..enforce.arguments import Arguments
from ..enforce.change import Change, each, verify
from ..facts.classes import MountFacts
from ..host import systemd
from ..host.mountinfo import Mount
from ..host.observation import UNKNOWN
from ..host.printable import line
from ..host.seam import ChangeFailed, Host, Unobservable
from . import boot_loader, causes, fstab, mount_settings, mount_trial, mount_units
from .flush import flush_mount, owe, takes_flushes
from .mount_trial import Image
from .mounts import Mounts, Persisted, Superblock
from .remount import expect_nothing_cached, set_barrier
from .shown_options import as_written

FSTAB = fstab.PATH
#: Among the originals, what the superblock of / said of data= (a mount point begins with a slash).
_ROOT_MODE = "superblock of /: data="
_NOTE = f"the next line's options are managed; originals in {originals.PATH}"
#: What a target can name.
ALL_SETTINGS = ("barrier", "data_mode", "atime", "sync")
#: Changed by a remount. data= is not: the kernel refuses, so it waits for the next mount.
_LIVE = ("barrier", "atime", "sync")

_SETTING_WORDS = {
    "barrier": {"type": "str", "choices": ["on", "off"]},
    "data_mode": {"type": "str", "choices": ["ordered", "journal", "writeback"]},
    "atime": {"type": "str", "choices": ["noatime", "relatime", "strictatime"]},
    "sync": {"type": "str", "choices": list(mount_settings.SYNCS)},
}
_TARGET = {
    "target": {"type": "str", "required": True},
    "persist": {"type": "bool", "default": True},
    **_SETTING_WORDS,
}
ARGUMENTS = Arguments(_TARGET)


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
    """What there is to do, and all that doing it needs.

    `edited` and `drop_ins` are new options by mount point, of fstab's lines and of mount units; `images`
    says on what each of them is tried. `warnings`: what could not be read of the next boot.
    """

    changes: tuple[Change, ...]
    facts: dict[str, MountFacts]
    mounts: dict[str, Mount]
    fstab_before: str
    fstab_after: str
    edited: dict[str, tuple[str, ...]]
    drop_ins: dict[str, tuple[str, ...]]
    images: dict[str, Image]
    root_mode: str | None = None
    warnings: tuple[str, ...] = ()


class Release(NamedTuple):
    """What release changes, the fstab that it leaves, the drop-ins that go, and the superblock's
    mode for the root, None if it is left unchanged."""

    changes: tuple[Change, ...]
    fstab: str
    drop_ins: tuple[str, ...]
    root_mode: str | None


def plan(host: Host, targets: list[Target]) -> Work:
    """Return the work that brings the targets to their settings; reads only.

    Raises ChangeFailed when a target is not mounted, has a file system without a rule, or when
    fstab cannot be parsed.
    """
    reader = Mounts(host)
    if reader.fstab_error:
        raise ChangeFailed(f"{reader.fstab_error}; correct that line, then run again")
    here = [found for found in reader.superblocks() if found.hidden_in is None]
    # As in the facts.
    superblocks = {line(mount.target): found for found in here for mount in found.mounts}
    text = host.read(FSTAB) if host.exists(FSTAB) else ""
    work = Work((), {}, {}, text, text, {}, {}, {})
    for target in targets:
        found = superblocks.get(line(target.target))
        if found is None:
            raise ChangeFailed(
                f"{target.target}: {reader.absent(target.target)}; expected a mounted file system"
            )
        work = _plan_one(work, target, found, reader)
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
        _persist(host, work)
    each(loosened, lambda target: _remount(host, work, target, live[target]))
    verify(plan(host, targets).changes)


def edits(host: Host, work: Work | Release) -> Iterator[file_diff.Edit]:
    """Return the files that a plan changes."""
    files: dict[str, str | bytes | None] = {}
    if isinstance(work, Release):
        files = {FSTAB: work.fstab, **dict.fromkeys(work.drop_ins)}
    else:
        yield file_diff.Edit(FSTAB, work.fstab_before, work.fstab_after, fstab.is_private)
        files = {
            mount_units.drop_in(name): mount_units.render(found) for name, found in work.drop_ins.items()
        }
    for edit in file_diff.of_root(host, files):
        yield edit._replace(is_private=fstab.is_private)


def as_now(host: Host, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return targets that bring the mounts of others back to what is in force now, live and never less safe.

    `root_mode` of one is what the superblock of / says of data=, where its target changes that. Raises as `plan` does.
    """
    targets = [target_of({"persist": True, **row}) for row in rows]
    work = plan(host, targets)
    modes = {change.target: change.before for change in work.changes if change.setting == "data_mode"}
    found = []
    for name, facts in work.facts.items():
        now = {setting: mount_settings.running(facts, setting) for setting in _LIVE}
        if not any((change.target, change.setting) == (name, "sync") for change in work.changes):
            del now["sync"]
        row = {setting: value for setting, value in now.items() if _comes_back(setting, value)}
        if work.root_mode and "/" in facts["targets"]:
            row["root_mode"] = modes[name]
        found.append({"target": name, "persist": False, **row})
    return found


def plan_release(host: Host) -> Release:
    """Return what release changes; reads only.

    The originals replace our options; options that others added since stay. Raises
    ChangeFailed.
    """
    text = host.read(FSTAB) if host.exists(FSTAB) else ""
    changes = []
    remaining = originals.load(host)
    root_mode = remaining.pop(_ROOT_MODE, None)
    if root_mode:
        changes.append(Change("/", "data_mode", "persisted", "ours", root_mode))
    for target, before in remaining.items():
        try:
            found = fstab.find(fstab.parse(text), target)
        except fstab.MalformedFstab as error:
            raise ChangeFailed(f"{error}; correct that line, then run again") from error
        entry = next((entry for entry in found if fstab.is_marked(text, entry)), None)
        if entry is None:
            changes.append(
                Change(target, "originals", "persisted", as_written(before.split(",")), "forgotten")
            )
            continue
        restored = mount_settings.restore(entry.options, tuple(before.split(",")))
        restored = _writable(mount_settings.drop(restored, mount_settings.REFUSED_BY.get(entry.fstype, ())))
        text = fstab.set_options(text, entry, restored, None)
        changes.append(
            Change(target, "options", "persisted", as_written(entry.options), as_written(restored))
        )
    drop_ins = tuple(mount_units.ours(host))
    changes += [Change(path, "drop_in", "persisted", "present", "absent") for path in drop_ins]
    if mount_trial.is_left(host):
        changes.append(Change(mount_trial.DIRECTORY, "trial", "persisted", "present", "absent"))
    return Release(tuple(changes), text, drop_ins, root_mode)


def apply_release(host: Host, work: Release) -> None:
    """Write what is released, once the kernel has tried it, and forget the originals. Raises ChangeFailed."""
    before = _read(host) if host.exists(FSTAB) else ""
    for image, options in _release_trials(host, before, work):
        mount_trial.try_options(host, image, options)
    if work.root_mode:
        set_root_mode(host, work.root_mode)
    if work.fstab != before:
        host.write_file(FSTAB, work.fstab.encode("utf-8", "surrogateescape"))
    for path in work.drop_ins:
        host.remove_file(path)
        host.change(["rmdir", "--ignore-fail-on-non-empty", posixpath.dirname(path)])
    _tell_systemd(host)
    originals.save(host, {})
    mount_trial.clear(host)


def _plan_one(work: Work, target: Target, superblock: Superblock, reader: Mounts) -> Work:
    group, facts = superblock.mounts, reader.collect(superblock)
    fstype, name = facts["fstype"], facts["target"]
    allowed = mount_settings.SETTINGS_OF.get(fstype, ())
    # "barrier on" asks nothing of XFS that it would not do: it only cleans the line.
    requested = {s: v for s, v in target.wanted.items() if s in allowed or (s, v) == ("barrier", "on")}
    if set(target.wanted) - set(requested) or fstype not in mount_settings.SETTINGS_OF:
        raise ChangeFailed(
            f"{name}: observed {fstype}, expected {target.wanted}; this file system takes"
            f" {', '.join(allowed) or 'none of these settings'}"
        )
    changes = [
        Change(name, setting, "running", mount_settings.running(facts, setting), value)
        for setting, value in requested.items()
        if setting in _LIVE and setting in allowed and mount_settings.running(facts, setting) != value
    ]
    # What cannot be read cannot be checked either: it stays, and stays unknown, which is not well.
    warnings = [
        f"{name}: {setting} at the next boot: unknown ({_why_unknown(facts, setting)}); expected {value}, and left as it is"
        for setting, value in requested.items()
        if target.persist and mount_settings.persisted(facts, setting) == UNKNOWN
    ]
    stale = {
        setting: value
        for setting, value in requested.items()
        if mount_settings.persisted(facts, setting) != UNKNOWN
        and not mount_settings.satisfies(setting, mount_settings.persisted(facts, setting), value)
    }
    planned = work._replace(
        changes=(*work.changes, *changes),
        warnings=(*work.warnings, *warnings),
        facts={**work.facts, name: facts},
        mounts={**work.mounts, name: group[0]},
    )
    return _plan_boot(planned, group, facts, stale, reader) if stale and target.persist else planned


def _why_unknown(facts: MountFacts, setting: str) -> str:
    return causes.why(facts["evidence"][f"persisted.{mount_settings.read_with(facts, setting)}"])


def _plan_boot(
    work: Work, group: list[Mount], facts: MountFacts, stale: dict[str, str], reader: Mounts
) -> Work:
    """Add what the next boot needs: other options in fstab, or a drop-in over a mount unit."""
    name, fstype = facts["target"], facts["fstype"]
    if "/" in facts["targets"] and "data_mode" in stale:
        mode = stale["data_mode"]
        work = _plan_root(work, facts, mode, _image(reader, group, fstype))
        stale = {setting: value for setting, value in stale.items() if setting != "data_mode"}
        if not stale:
            return work
    ways = reader.boot(group)
    if not ways or ways[0].place == "rootflags":
        raise ChangeFailed(f"{name}: no line of fstab mounts it; add one, by a UUID that no other device has")
    changes = [
        Change(name, setting, "persisted", mount_settings.persisted(facts, setting), value)
        for setting, value in stale.items()
    ]
    words = {s: v for s, v in stale.items() if s in mount_settings.SETTINGS_OF.get(fstype, ())}
    work = work._replace(changes=(*work.changes, *changes))
    for way in ways:
        # What mounts it elsewhere has to agree, but on the atime, which each mount has of its own.
        own = words if way is ways[0] else {s: v for s, v in words.items() if s != "atime"}
        work = _plan_way(work, way, own, _image(reader, group, fstype))
    return work


def _plan_way(work: Work, way: Persisted, words: dict[str, str], image: Image) -> Work:
    """Add other options for one fstab line, or a drop-in over one mount unit."""
    if way.place == "command_line":
        return work  # It is not ours to edit: the value stays unknown.
    work = work._replace(images={**work.images, way.target: image})
    if way.place == "unit":
        options = _changed(way.options, words, image.fstype)
        if options == way.options:
            return work
        return work._replace(drop_ins={**work.drop_ins, way.target: options})
    # Earlier edits of this plan may have moved it.
    (entry,) = fstab.find(fstab.parse(work.fstab_after), way.target)
    options = _changed(entry.options, words, image.fstype)
    if options == entry.options:
        return work
    return work._replace(
        fstab_after=fstab.set_options(work.fstab_after, entry, options, _NOTE),
        edited={**work.edited, entry.target: options},
    )


def _images(reader: Mounts) -> dict[str, Image]:
    """Return on what the options of each mount point are tried."""
    here = [found.mounts for found in reader.superblocks() if found.hidden_in is None]
    return {mount.target: _image(reader, group, group[0].fstype) for group in here for mount in group}


def _image(reader: Mounts, group: list[Mount], fstype: str) -> Image:
    """Return what an image must be like to replace a mounted file system in a trial."""
    found, _why = reader.filesystems.superblock(group[0])
    is_root = "/" in (mount.target for mount in group)
    return Image(
        fstype,
        found is None or found.journal != "none",
        found.options if found else (),
        boot_loader.for_a_trial(reader.host) if is_root else None,
    )


def _plan_root(work: Work, facts: MountFacts, mode: str, image: Image) -> Work:
    """Add a superblock default for the root: in its fstab line, data= would stop the boot."""
    if "data_mode" in mount_settings.fold(facts["options_boot"] or ()):
        raise ChangeFailed("/: rootflags= or fstab's line of / names data=: remove it there, then run again")
    change = Change("/", "data_mode", "persisted", facts["persisted"]["data_mode"], mode)
    return work._replace(changes=(*work.changes, change), root_mode=mode, images={**work.images, "/": image})


def _comes_back(setting: str, seen: str) -> bool:
    """Return whether a setting is one to bring back: atime as it was, and barriers that were on."""
    return (setting, seen) != ("barrier", "off") and seen in _SETTING_WORDS[setting]["choices"]


def set_root_mode(host: Host, mode: str) -> None:
    """Set the root's default journal mode in its superblock; tune2fs does that while it is mounted. Raises ChangeFailed."""
    word = {"journal": "journal_data", "none": "^journal_data_ordered"}.get(mode, f"journal_data_{mode}")
    host.change(["tune2fs", "-o", word, _root_device(host)])


def _root_device(host: Host) -> str:
    roots = [
        found.mounts[0] for found in Mounts(host).superblocks() if "/" in (m.target for m in found.mounts)
    ]
    if not roots:
        raise ChangeFailed("/: not in the mount table")
    return f"/dev/block/{roots[0].device}"


def _changed(options: tuple[str, ...], words: dict[str, str], fstype: str) -> tuple[str, ...]:
    left = mount_settings.drop(options, mount_settings.REFUSED_BY.get(fstype, ()))
    return _writable(mount_settings.replace(left, words, fstype))


def _writable(options: tuple[str, ...]) -> tuple[str, ...]:
    """Return the options. Raises ChangeFailed where they end in a backslash: it would take in the unit's next line."""
    if options[-1].endswith("\\"):
        raise ChangeFailed(
            f"observed options that would be written as {as_written(options)}; expected no backslash at the end: remove it"
        )
    return options


def _remount(host: Host, work: Work, target: str, wanted: dict[str, str]) -> None:
    mount, facts = work.mounts[target], work.facts[target]
    if wanted.get("barrier") == "on":
        _tighten(host, mount, facts)
    elif "barrier" in wanted:
        set_barrier(host, mount, "off")
    if "atime" in wanted:
        host.set_mount_atime(mount, wanted["atime"])
    if "sync" in wanted:
        host.set_mount_options(mount, [wanted["sync"]])


def _tighten(host: Host, mount: Mount, facts: MountFacts) -> None:
    """Turn barriers on, and flush what was written without them. Raises ChangeFailed."""
    target = facts["target"]
    flushed = [name for name in facts["disks_seen"] if takes_flushes(host, name)]
    for name in flushed:
        owe(host, name)
    set_barrier(host, mount, "on")
    flush_mount(host, mount, flushed)
    if facts["disks"] == UNKNOWN:
        raise ChangeFailed(
            f"{target}: barriers are on again, but a flush could be counted on {', '.join(flushed) or 'no disk'}"
            f" only: {causes.why(facts['evidence']['disks'])}"
        )
    expect_nothing_cached(host, target, [name for name in facts["disks_seen"] if name not in flushed])


def _persist(host: Host, work: Work) -> None:
    """Write what the next boot reads, once the kernel has tried all of it. Raises ChangeFailed."""
    for image, options in _trials(work):
        mount_trial.try_options(host, image, options)
    if work.root_mode:
        _keep_root_mode(host, work)
        set_root_mode(host, work.root_mode)
    if work.fstab_after != work.fstab_before:
        _write_fstab(host, work)
    for target, options in work.drop_ins.items():
        text = mount_units.render(options).encode("utf-8", "surrogateescape")
        host.write_file(mount_units.drop_in(target), text)
    if work.fstab_after != work.fstab_before or work.drop_ins:
        _tell_systemd(host)


def _keep_root_mode(host: Host, work: Work) -> None:
    remaining = originals.load(host)
    if _ROOT_MODE not in remaining:
        before = next(c.before for c in work.changes if (c.target, c.setting) == ("/", "data_mode"))
        originals.save(host, {**remaining, _ROOT_MODE: before})


def _write_fstab(host: Host, work: Work) -> None:
    before = {entry.target: entry for entry in fstab.parse(work.fstab_before)}
    remaining = {
        target: text
        for target, text in originals.load(host).items()
        if target in before or target == _ROOT_MODE
    }
    for target in work.edited:
        # A line without our mark is somebody's new one, whatever we knew of an older.
        if target not in remaining or not fstab.is_marked(work.fstab_before, before[target]):
            remaining[target] = ",".join(before[target].options)
    originals.save(host, remaining)
    if _read(host) != work.fstab_before:
        raise ChangeFailed(f"{FSTAB}: another process changed it meanwhile; run again")
    host.write_file(FSTAB, work.fstab_after.encode("utf-8", "surrogateescape"))


def _trials(work: Work) -> list[tuple[Image, tuple[str, ...]]]:
    """Return the image and the options of each line or drop-in that changes, and of the root's boots."""
    changed = {**work.edited, **work.drop_ins}
    found = [(work.images[target], options) for target, options in changed.items()]
    if work.root_mode:
        found += _root_trials(work.images["/"], work.root_mode, (work.fstab_before, work.fstab_after))
    return list(dict.fromkeys(found))


def _release_trials(host: Host, before: str, work: Release) -> list[tuple[Image, tuple[str, ...]]]:
    """Return the image and the options of each line that a release changes, and of the root's boots."""
    old = {entry.target: entry.options for entry in fstab.parse(before)}
    changed = [entry for entry in fstab.parse(work.fstab) if entry.options != old[entry.target]]
    images = _images(Mounts(host)) if changed or work.root_mode else {}
    found = [(images.get(entry.target, Image(entry.fstype)), entry.options) for entry in changed]
    if work.root_mode:
        found += _root_trials(images["/"], work.root_mode, (before, work.fstab))
    return list(dict.fromkeys(found))


def _root_trials(image: Image, mode: str, tables: Iterable[str]) -> list[tuple[Image, tuple[str, ...]]]:
    """Return the boots of the root with another default: a run can be killed before it writes fstab."""
    others = [option for option in image.defaults if not option.startswith("data=")]
    image = image._replace(defaults=(*others, f"data={mode}"))
    return [(image, options) for text in tables for options in _root_line(text) or [()]]


def _root_line(text: str) -> list[tuple[str, ...]]:
    return [entry.options for entry in fstab.find(fstab.parse(text), "/")]


def _tell_systemd(host: Host) -> None:
    if systemd.runs(host):
        # Else systemd would mount by the old words until the next boot.
        host.change(["systemctl", "daemon-reload"])


def _read(host: Host) -> str:
    try:
        return host.read(FSTAB)
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
