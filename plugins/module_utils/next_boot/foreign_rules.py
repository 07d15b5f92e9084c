# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The effect of others' udev rules on one disk: before ours, after ours, and for related devices."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ..host import our_paths, udev
from ..host.seam import Host, Unobservable
from . import programs, udev_rules
from .acts import Act, mentioned

BY = "udev rule"
_OUR_NAME = posixpath.basename(our_paths.CACHE_RULES)
_ATTRIBUTE = re.compile(r"(?:^|/)(?:write_cache|cache_type|scheduler|read_ahead_kb)$")
#: Of ZFS's module, which no disk has.
_PARAMETER = re.compile(r"parameters/z(?:fs|il)_nocacheflush")
#: What our rules ask for besides the name of the disk.
_CONDITIONS = ("DEVTYPE", "ID_BUS")
#: Debian's, which applies hdparm.conf and nothing else.
_HDPARM = re.compile(r"/(?:usr/)?lib/udev/hdparm\b")


#: A rule's own device, as its programs are given it.
_OWN_DEVICE = re.compile(
    r"%[a-zA-Z]|\$(?:name|devnode|kernel|number|devpath|id|root|sys|links|tempnode|env\{)"
)


class Rules(NamedTuple):
    """The rules that can matter, and whether one of them applies hdparm.conf."""

    rules: tuple[udev_rules.Rule, ...]
    applies_hdparm_conf: bool


class Found(NamedTuple):
    """What rules do with one disk, in order.

    `before` and `after` our file; `runs_before` and `runs_after`: commands, which run after all rules. `around`: for
    partitions and other devices of the disk. `lost`: the file and line by which our rules match the disk no more.
    `deaf`: the line by which our own commands are not run. `reached`: the lines that are about the disk.
    """

    before: list[Act]
    after: list[Act]
    runs_before: list[Act]
    runs_after: list[Act]
    lost: str = ""
    deaf: str = ""
    reached: tuple[str, ...] = ()


def read(host: Host) -> Rules:
    """Return the rules of others that can matter here. Raises Unobservable."""
    files: dict[str, list[udev_rules.Rule]] = {}
    for rule in udev_rules.read(host):
        if posixpath.basename(rule.path) not in udev_rules.OURS:
            files.setdefault(rule.path, []).append(rule)
    persisted = (
        rules for rules in files.values() if not rules[0].is_packaged or any(map(_can_matter, rules))
    )
    every = tuple(rule for rules in persisted for rule in rules)
    hdparm = any(
        token.key == "RUN" and _HDPARM.search(token.value) for rule in every for token in rule.tokens
    )
    # A rule of a package that only runs it is in `every` as well.
    return Rules(every, hdparm)


def of_disk(
    host: Host,
    rules: Rules,
    name: str,
    properties: Mapping[str, str],
    action: str,
    known: str | None,
    peers: Iterable[str] = (),
) -> Found:
    """Return what rules do with a disk at an event; `known` is the name by which our rules match it.

    `peers`: other kernel names that it can have at the next boot.
    """
    device = udev_rules.Device.of_block(host, name, properties, action)
    device.peers = tuple(peers)
    found = Found([], [], [], [])
    ours = _asked(known)
    for step in _steps(host, rules.rules, device):
        rule, key = step.rule, step.key
        found = found._replace(reached=(*found.reached, rule.source))
        is_before = posixpath.basename(rule.path) < _OUR_NAME
        if key == "ENV" and is_before and not rule.is_packaged and step.name in (*ours, *_CONDITIONS):
            value = properties.get(step.name, "") if step.name in _CONDITIONS else ours[step.name]
            if step.value != value:
                found = found._replace(lost=rule.source)
            elif step.is_certain:
                found = found._replace(lost="")
        if key == "RUN" and step.op in ("=", ":=") and step.is_certain:
            found.runs_before.clear()
            found.runs_after.clear()
        if key == "RUN" and (step.op == ":=" if is_before else step.op in ("=", ":=")):
            found = found._replace(deaf=rule.source)
        runs = key in ("RUN", "PROGRAM", "IMPORT")
        acts = _acts(host, step, device)
        target = (
            (found.runs_before if is_before else found.runs_after)
            if runs and key == "RUN"
            else (found.before if is_before else found.after)
        )
        target += acts
    return found


def around(
    host: Host, rules: Rules, name: str, properties: Mapping[str, str], address: str, number: str
) -> list[Act]:
    """Return what rules do with the other devices of a disk, in an order that is unknown to ours."""
    found: list[Act] = []
    for device in _neighbours(host, name, properties, address, number):
        for step in _steps(host, rules.rules, device):
            found += [act._replace(is_certain=False) for act in _acts(host, step, device)]
    return found


def of_others(host: Host, rules: Rules) -> list[tuple[udev_rules.Rule, list[Act]]]:
    """Return what rules of administrators do with mounts and disks at events of any device, by rule.

    No device is compared: a rule that matches none of this boot's can match one of the next. What a rule does with its own
    device is left out. Raises Unobservable.
    """
    found = []
    for rule in rules.rules:
        acts: list[Act] = []
        for token in () if rule.is_packaged else rule.tokens:
            if token.key == "ATTR" and not token.is_match and _PARAMETER.fullmatch(token.name):
                words = (f"/sys/module/zfs/{token.name}", token.value)
                acts.append(Act(BY, rule.source, "write", words))
            is_other = token.key == "ATTR" and not token.is_match and token.name.startswith("[")
            if not is_other and not (token.is_program and not _OWN_DEVICE.search(token.value)):
                continue
            step = udev_rules.Assignment(rule, token.key, token.name, token.op, token.value, False)
            acts += (
                _of_program(host, step, token.value)
                if not is_other
                else _acts(host, step, udev_rules.Device(host, "/", {}))
            )
        found.append((rule, [act._replace(is_certain=False) for act in acts]))
    return found


def _neighbours(
    host: Host, name: str, properties: Mapping[str, str], address: str, number: str
) -> Iterator[udev_rules.Device]:
    whole = host.resolve(f"/sys/class/block/{name}")
    for part in host.names(whole) if host.exists(whole) else ():
        if part.startswith(name) and host.exists(f"{whole}/{part}/partition"):
            reported = {**properties, "DEVTYPE": "partition", "DEVNAME": f"/dev/{part}", "SUBSYSTEM": "block"}
            yield udev_rules.Device(host, f"{whole}/{part}", reported)
    if address:
        device = host.resolve(f"{whole}/device")
        yield udev_rules.Device(host, device, {"SUBSYSTEM": "scsi", "DEVTYPE": "scsi_device"})
        place = host.resolve(f"{whole}/device/scsi_disk/{address}")
        yield udev_rules.Device(host, place, {"SUBSYSTEM": "scsi_disk"})
    if number:
        yield udev_rules.Device(host, host.resolve(f"/sys/class/bdi/{number}"), {"SUBSYSTEM": "bdi"})
    controller = re.match(r"nvme\d+(?=n)", name)
    if controller:
        reported = {"SUBSYSTEM": "nvme", "DEVNAME": f"/dev/{controller[0]}"}
        yield udev_rules.Device(host, host.resolve(f"/sys/class/nvme/{controller[0]}"), reported)


def _steps(
    host: Host, rules: Iterable[udev_rules.Rule], device: udev_rules.Device
) -> Iterator[udev_rules.Assignment]:
    """Yield what rules assign, and programs that they run as a condition."""
    rules = tuple(rules)
    for rule in rules:
        for token in filter(_is_condition, rule.tokens):
            others = tuple(each for each in rule.tokens if each.is_match and not _is_condition(each))
            if udev_rules.match(rule._replace(tokens=others), device) != udev_rules.NO:
                value = udev_rules.expand(token.value, device)
                yield udev_rules.Assignment(rule, token.key, token.name, token.op, value, False)
    yield from udev_rules.assignments(rules, device)


def _is_condition(token: udev_rules.Token) -> bool:
    is_run = token.key == "PROGRAM" or (token.key == "IMPORT" and token.name == "program")
    return is_run and bool(mentioned(token.value))


def _acts(host: Host, step: udev_rules.Assignment, device: udev_rules.Device) -> list[Act]:
    """Return what one assignment sets."""
    source = step.rule.source
    if step.key == "ATTR" and _ATTRIBUTE.search(step.name):
        other = re.match(r"\[(?P<subsystem>\w+)/(?P<name>[^\]/]+)\]/?(?P<attribute>.+)", step.name)
        if other:
            path = f"/sys/class/{other['subsystem']}/{other['name']}/{other['attribute']}"
        elif step.name.startswith("["):
            return []
        else:
            path = posixpath.normpath(f"{device.path}/{step.name}")
        value = step.value if step.value is not None else "$"
        return [Act(BY, source, "write", (path, value), step.is_certain and step.value is not None)]
    if step.key not in ("RUN", "PROGRAM", "IMPORT") or step.name == "builtin":
        return []
    if step.value is None:
        return _unclear(step)
    if _HDPARM.match(step.value):
        return []
    found = _of_program(host, step, step.value)
    return found if step.is_certain else [act._replace(is_certain=False) for act in found]


def _of_program(host: Host, step: udev_rules.Assignment, command: str) -> list[Act]:
    """Return what a program does that a rule runs, with the scripts that it runs."""
    is_packaged = step.rule.is_packaged
    command = command if is_packaged else udev_rules.command(command)
    return programs.of_words(host, command, step.rule.source, BY, packaged=not is_packaged)


def _unclear(step: udev_rules.Assignment) -> list[Act]:
    raw = " ".join(token.value for token in step.rule.tokens if token.key == step.key)
    return [Act(BY, step.rule.source, "script", (raw, raw), False)] if mentioned(raw) else []


def _asked(known: str | None) -> dict[str, str]:
    """Return the property, and its value, by which our rules match a disk."""
    kind, _colon, value = (known or "").partition(":")
    return {udev.PROPERTIES[kind]: value} if kind in udev.PROPERTIES else {}


def _can_matter(rule: udev_rules.Rule) -> bool:
    return any(
        (token.key == "ATTR" and not token.is_match and _ATTRIBUTE.search(token.name))
        or (
            token.key in ("RUN", "PROGRAM", "IMPORT")
            and (mentioned(token.value) or _HDPARM.search(token.value))
        )
        for token in rule.tokens
    )


__all__ = ["BY", "Found", "Rules", "Unobservable", "around", "of_disk", "read"]
