# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare what was said of the next boot with the running values after it. Pure.

`said` is what guest.assess returns before the boot, `truth` what truth.look returns after it, and `normal` both of the
machine with nothing planted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from oracles.boot.saboteurs import AREAS, HOST, Planted
from oracles.contract import AGREED, DECLINED, DISAGREED

#: A value that differs, if it is safe or was said to be unsafe; one of speed alone; a harmless item that changed what is said.
SAFE_SIDE, SPEED, FALSE_ALARM = "safe side", "speed", "false alarm"
#: A saboteur that changed nothing, which is no fault of a prediction; a harmless item that did harm, which is one of the data.
NO_EFFECT, HARMFUL = "no effect", "harmful"
#: What is said of a value that cannot be predicted.
#: What is said of a unit that systemd has to read again; and the engine of each program.
_STALE = "has changed since systemd read it"
_ENGINE_OF = {"postgres": "postgresql"}
_DECLINES = ("unknown", "unset", "refused", "missing")
#: (layer, setting) -> the safe values, from the manuals of kernel and servers. A setting that is not here is one of speed.
_SAFE: dict[tuple[str, str], tuple[str, ...]] = {
    ("mount_options", "barrier"): ("on",),
    ("mount_options", "data_mode"): ("ordered", "journal", "none"),
    ("write_cache", "write_cache"): ("disabled",),
    ("write_cache", "kernel_cache_mode"): ("write back",),
    ("postgresql", "fsync"): ("on",),
    ("postgresql", "full_page_writes"): ("on",),
    ("postgresql", "synchronous_commit"): ("on", "local", "remote_write", "remote_apply"),
    ("postgresql", "wal_sync_method"): ("fdatasync", "fsync", "open_datasync", "open_sync"),
    ("postgresql", "data_sync_retry"): ("off",),
    ("mariadb", "innodb_flush_log_at_trx_commit"): ("1", "3"),
    ("mariadb", "sync_binlog"): ("1",),
    ("mariadb", "innodb_doublewrite"): ("ON",),
    ("mariadb", "innodb_flush_method"): ("O_DIRECT", "fsync", "O_DSYNC"),
}
_ENGINES = ("postgresql", "mariadb")
_AREA_OF = {
    "mount_options": "mount",
    "write_cache": "disk",
    "io_scheduler": "disk",
    **{engine: engine for engine in _ENGINES},
}
_GOOD = ("durable", "attested")
#: What a reason has that is about the next boot or start.
_LATER = re.compile(r"\b(boot|start)(s|ed)?\b|/etc/|/usr/|preload")


class Normal(NamedTuple):
    """The machine with nothing planted: what is said of it, and its running values after a boot."""

    said: Mapping[str, Any]
    truth: Mapping[str, Any]


class Boot(NamedTuple):
    """How a boot ended: `truth` is None if the machine did not come up, for the reason `why`."""

    truth: Mapping[str, Any] | None
    why: str = ""


class Finding(NamedTuple):
    """One comparison: its class, and in words what was said and what is so."""

    kind: str
    text: str = ""


def compare(said: Mapping[str, Any], boot: Boot, planted: Sequence[Planted], normal: Normal) -> list[Finding]:
    """Return all comparisons of one round."""
    new = _new_problems(said, normal.said)
    found = list(_false_alarms(said, planted, normal))
    if boot.truth is None:
        words = ["next boot", "at boot", *_paths(planted)]
        return [*found, _loss(f"the machine did not boot: {boot.why}", new, words)]
    values = list(_values(said, boot.truth, normal))
    if not planted:
        # Nobody else set it: what we persist does not come into effect.
        values = [each._replace(kind=DISAGREED) if each.kind == SPEED else each for each in values]
    found += values
    found += _losses(boot.truth, planted, normal, new)
    return [*found, *_effects(boot.truth, planted, normal)]


def after(said: Mapping[str, Any], planted: Sequence[Planted]) -> list[Finding]:
    """Return what is wrong with an assessment after a boot, if only harmless items were planted, or nothing."""
    if said["verdict"] in _GOOD:
        return []
    text = f"{said['verdict']} after the boot: {'; '.join(said['why'])}"
    names = ", ".join(item.saboteur.name for item in planted)
    return [Finding(FALSE_ALARM, f"{names}: {text}") if planted else Finding(DISAGREED, text)]


def is_sound(truth: Mapping[str, Any], normal: Mapping[str, Any]) -> bool:
    """Tell whether a booted machine has all of its mounts, writable, and all of its servers."""
    return not [*_lost_mounts(truth, normal), *_lost_engines(truth, normal)]


def _effects(truth: Mapping[str, Any], planted: Sequence[Planted], normal: Normal) -> Iterator[Finding]:
    """Yield the items that did another thing than their entry says.

    An item for what is not managed is harmless to what is.
    """
    managed = " ".join(row["target"] for row in normal.said["settings"]).split()
    own = {
        name: {
            target: was
            for target, was in normal.truth[name].items()
            if any(target == each or (name == "disks" and target in each) for each in managed)
        }
        for name in ("disks", "mounts")
    }
    changed = _changes(truth, {**normal.truth, **own})
    for item in planted:
        areas = AREAS if item.saboteur.area == HOST or item.saboteur.alone else (item.saboteur.area,)
        texts = [text for area in areas for text in changed.get(area, ())]
        if item.saboteur.harmless and texts:
            yield Finding(HARMFUL, f"{item.saboteur.name}: {'; '.join(texts)}")
        elif not item.saboteur.harmless and not texts:
            yield Finding(NO_EFFECT, item.saboteur.name)


def _changes(truth: Mapping[str, Any], normal: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return {area: what is another value than with nothing planted}."""
    found: dict[str, list[str]] = {}
    for area, name in (("disk", "disks"), ("mount", "mounts")):
        for target, was in normal[name].items():
            now = truth[name].get(target, {})
            # A kernel name may be another one at each boot, and readahead of a mount is that of its disk.
            fields = [
                field
                for field in was
                if field not in ("name", "device") and (area, field) != ("mount", "readahead")
            ]
            found.setdefault(area, []).extend(
                f"{target} {field} is {now.get(field)}" for field in fields if now.get(field) != was[field]
            )
    for engine in _ENGINES:
        was, now = normal["engines"][engine], truth["engines"][engine]
        names = [name for layer, name in _SAFE if layer == engine and name in was]
        found[engine] = [f"{name} is {now.get(name)}" for name in names if now.get(name) != was[name]]
        roles = [words for words in now.get("roles", ()) if words.partition("=")[0] in names]
        found[engine] += roles if engine == "postgresql" else []
    for each in truth["preloads"]:
        found[_ENGINE_OF.get(each, "mariadb")].append(f"{each} has a preloaded library")
    return {area: texts for area, texts in found.items() if texts}


def _values(said: Mapping[str, Any], truth: Mapping[str, Any], normal: Normal) -> Iterator[Finding]:
    rows = {_key(row): row for row in said["settings"]}
    for key in dict.fromkeys((*map(_key, normal.said["settings"]), *rows)):
        actual = _actual(key, truth)
        if actual is None:
            continue
        row = rows.get(key)
        persisted = row["persisted"] if row else "missing"
        what = f"{' '.join(key)}: said {persisted}, is {actual}"
        if persisted in _DECLINES:
            # A setting that is not reported on a host that is called durable is said to be safe.
            is_hidden = row is None and said["verdict"] in _GOOD and not _is_safe(key, actual, truth)
            yield Finding(DISAGREED if is_hidden else DECLINED, what)
        elif persisted == actual:
            yield Finding(AGREED, what)
        elif (key[0], key[2]) not in _SAFE:
            yield Finding(SPEED, what)
        elif _was_safe(key, persisted) and not _is_safe(key, actual, truth, persisted):
            yield Finding(DISAGREED, what)
        else:
            yield Finding(SAFE_SIDE, what)
    yield from _roles(said, truth)


def _roles(said: Mapping[str, Any], truth: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what is said of settings of PostgreSQL's roles and databases, which no server setting shows."""
    reported = {
        (row["setting"], row["persisted"]) for row in said["settings"] if row["layer"] == "postgresql"
    }
    for words in truth["engines"]["postgresql"].get("roles", ()):
        name, _equals, value = words.partition("=")
        safe = _SAFE.get(("postgresql", name))
        if safe and value not in safe:
            is_said = (name, value) in reported
            yield Finding(AGREED if is_said else DISAGREED, f"postgresql role: {words} is not reported")


def _losses(
    truth: Mapping[str, Any], planted: Sequence[Planted], normal: Normal, new: Sequence[str]
) -> Iterator[Finding]:
    paths = _paths(planted)
    for target, why in _lost_mounts(truth, normal.truth):
        unit = f"{target.strip('/').replace('/', '-')}.mount"
        yield _loss(f"{target} {why}", new, [target, unit, "next boot", *paths])
    for engine in _lost_engines(truth, normal.truth):
        yield _loss(f"{engine} does not run", new, [engine, "next boot", *paths])
    for program in truth["preloads"]:
        if program not in normal.truth["preloads"]:
            found = _loss(f"{program} has libeatmydata loaded", new, ["preload", "eatmydata", *paths])
            # Until systemd has read the unit again the report says that nothing of the server's next start is known.
            stale = [
                text for text in new if _STALE in text and text.startswith(_ENGINE_OF.get(program, "mariadb"))
            ]
            yield found._replace(kind=DECLINED) if found.kind == DISAGREED and stale else found


def _lost_mounts(truth: Mapping[str, Any], normal: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for target, before in normal["mounts"].items():
        now = truth["mounts"].get(target)
        if now is None:
            yield target, "is not mounted"
        elif now["uuid"] != before["uuid"] or (now["serial"] != before["serial"]):
            yield target, f"is another file system, {now['uuid']} on {now['serial']}"
        elif now["access"] != before["access"]:
            yield target, "is read-only"


def _lost_engines(truth: Mapping[str, Any], normal: Mapping[str, Any]) -> list[str]:
    return [name for name in _ENGINES if normal["engines"][name] and not truth["engines"][name]]


def _loss(what: str, new: Sequence[str], words: Iterable[str]) -> Finding:
    words = list(words)
    named = next((text for text in new if any(word in text for word in words)), "")
    return (
        Finding(AGREED, f"{what}; named: {named}")
        if named
        else Finding(DISAGREED, f"{what}, and was not named")
    )


def _false_alarms(said: Mapping[str, Any], planted: Sequence[Planted], normal: Normal) -> Iterator[Finding]:
    """Yield each harmless item for which something else is said than without it."""
    before = {_key(row): row for row in normal.said["settings"]}
    changed: dict[str, list[str]] = {}
    # What names a file of another item is not about the harmless one.
    others = _paths(item for item in planted if not item.saboteur.harmless)
    for row in said["settings"]:
        was = before.get(_key(row))
        area = _AREA_OF.get(row["layer"], "mount")
        if was is None:
            # A mount of the round before is still there.
            is_changed = row["verdict"] not in ("ok", "drift_running")
        else:
            # What is running is left of the round before.
            is_changed = row["persisted"] != was["persisted"] or (
                row["running"] == was["running"] and row["verdict"] != was["verdict"]
            )
        # The reason of a row can be the running value: then only the evidence names what sets the persisted one.
        if is_changed and not any(path in _problem(row) for path in others):
            text = f"{' '.join(_key(row))}: {row['persisted']}, {row['verdict']}: {row['why']}"
            changed.setdefault(area, []).append(text)
    why = [text for text in said["why"] if text not in normal.said["why"]]
    all_harmless = all(item.saboteur.harmless for item in planted)
    for item in planted:
        if item.saboteur.harmless:
            areas = AREAS if item.saboteur.area == HOST else (item.saboteur.area,)
            texts = [text for area in areas for text in changed.get(area, ())]
            texts += [text for text in why if any(path in text for path in item.paths)]
            if all_harmless and not any(changed.values()):
                # What is still running of the round before is said in rows.
                texts += [text for text in why if not _is_of_running(text, said)]
            if texts:
                yield Finding(FALSE_ALARM, f"{item.saboteur.name}: {'; '.join(dict.fromkeys(texts))}")


def _is_of_running(text: str, said: Mapping[str, Any]) -> bool:
    return any(row["verdict"] == "drift_running" for row in said["settings"]) and "boot" not in text


def _new_problems(said: Mapping[str, Any], normal: Mapping[str, Any]) -> list[str]:
    """Return what is said of the next boot or start to be wrong, or cannot be read, and was not without the saboteurs.

    What is wrong now is left of the round before, and names nothing.
    """
    known = {_problem(row) for row in normal["settings"]}
    found = [_problem(row) for row in said["settings"] if row["verdict"] not in ("ok", "drift_running")]
    found += [text for text in said["why"] if text not in normal["why"] and _LATER.search(text)]
    return [text for text in found if text not in known]


def _problem(row: Mapping[str, Any]) -> str:
    return f"{' '.join(_key(row))} {row['persisted']} {row['why']} {row['remedy']} {row['evidence'].get('persisted')}"


def _key(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["layer"], row["target"], row["setting"]


def _actual(key: tuple[str, str, str], truth: Mapping[str, Any]) -> str | None:
    """Return the running value of a row's setting, None for a setting that the reader does not read."""
    layer, target, setting = key
    if layer == "mount_options":
        found = truth["mounts"].get(target, {})
    elif layer in ("write_cache", "io_scheduler"):
        found = next((disk for serial, disk in truth["disks"].items() if serial in target), {})
    elif layer in _ENGINES and " " not in target:
        found = truth["engines"][layer]
    else:
        found = {}
    value = found.get(setting)
    return None if value is None else str(value)


def _was_safe(key: tuple[str, str, str], value: str) -> bool:
    layer, _target, setting = key
    return value in _SAFE[layer, setting] or (setting == "kernel_cache_mode" and value == "write through")


def _is_safe(key: tuple[str, str, str], value: str, truth: Mapping[str, Any], said: str = "") -> bool:
    layer, target, setting = key
    if setting == "kernel_cache_mode" and value == "write through":
        # Without a cache nothing must be flushed, unless it was said that the kernel flushes.
        cache = _actual((layer, target, "write_cache"), truth)
        return cache == "disabled" and said != "write back"
    safe = _SAFE.get((layer, setting))
    return safe is None or value in safe


def _paths(planted: Iterable[Planted]) -> list[str]:
    return [path for item in planted for path in item.paths]
