# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentence and the fix for each cause that storage facts give for a value (facts/value_causes.py). Pure.

Facts have the cause and its values. The controller, and a change that failed on a host, write the sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..facts.value_causes import VERBATIM
from ..host.observation import UNKNOWN
from ..host.printable import name, quote
from . import mount_settings

_ROOTFLAGS = (
    "choose the entry that boots by default (grub2-set-default, bootctl set-default), or give those of this system the same"
    " rootflags= (grubby, /etc/default/grub, /etc/kernel/cmdline). Leave entries of snapshots and of other systems unchanged"
)
_ZFS_DROPS = "has ZFS flush no disk, or not replay its intent log"
_ZFS_MOUNT = "canmount is {canmount}, mountpoint is {mountpoint}"
#: Cause -> what is wrong, with the names of values in braces. Those of `source`, `by` and `value` are of the evidence.
SAYS: dict[str, str] = {
    "unread": "{error}",
    # Layers and stacks.
    "no_rule_for_layer": "no rule covers how it handles flushes",
    "bcache_state": "no rule covers the state {state} with the mode {mode}",
    "bcache_without_cache": "its state is {state}, and no cache device is listed below it",
    "loop_file_unread": "no mounted file system that stores data is known to hold its file: {error}",
    "loop_file_on": "no mounted file system that stores data is known to hold its file: it is stored on device {number}",
    "loop_devices": "the devices of the {fstype} that holds its file are unknown: {why}",
    "table_unread": "its table is unknown: {error}",
    "raid_level": "observed level {level}, expected one of linear and RAID 0, 1, 4, 5, 6 and 10",
    "no_raid_level": "it reports no level",
    "writecache": "before Linux {since} it can write to its origin without flushing it",
    "cache_feature": "no rule covers its feature {feature}",
    "table_form": "its table does not have the form of this target",
    "drbd_unread": "{error}",
    "drbd_no_disk": "no disk of this node is listed below it",
    "drbd_disk_state": "its disk on this node is {state}",
    "drbd_alone": "it is disconnected (StandAlone), and reports no protocol until it connects",
    "drbd_adjusted": "the settings that it gets at the next boot (drbdadm adjust) cannot be read: {error}",
    "not_understood": "{layer} is a {type} device: {why}",
    "nothing_below": "{layer} ({type}) lists no device below it: its disks are unknown",
    "no_block_device": "no block device has the number {number}",
    "no_device": "no device is known to which it writes",
    "nameless_device": "one device has no name",
    "stack": "{why}",
    "members_unread": "the devices of {device} are unknown: {error}",
    "no_member": "{target} also writes to {path}, which is no block device here",
    "journal_unread": "the device of the journal of {target} cannot be read: {error}",
    "superblock_unread": "it is unknown whether {target} has its journal on another device: {error}",
    # Disks.
    "raid_hides": "a RAID controller answers for the disks behind it",
    "controller_may_hide": "a RAID controller may answer in place of the disk",
    "bridge_hides": "a bridge answers for the disk behind it",
    "machine_hides": "the disks are those of another machine or layer",
    "card_hides": "whether the card has a cache is not read (EXT_CSD, CACHE_CTRL)",
    "no_program": "{error}",
    "udev_unread": "{error}",
    "no_control": "no interface here reads the cache of a {transport} disk of kind {kind}",
    "no_id": (
        "it has no WWN or serial number (one of zeros or the like names no disk), and nothing on it or in its path that could"
        " serve as a name"
    ),
    "same_id": "{disks} also has the name {id}",
    "no_claim": "the device does not report whether its cache survives a power cut",
    "rule_without_program": "the udev rule runs {programs}, which is not installed",
    "no_cache_rule": "there is no rule, or {unit} does not apply it after sleep: the default of the device applies",
    "mode_below_cache": "the kernel cache mode is weaker than the cache that the device reports",
    "no_scheduler": "no list of schedulers: {text}",
    "in_virtual_machine": "the tool of a controller is read only without a hypervisor",
    "raid_tools": "{why}",
    "raid_tool_unread": "{error}",
    "raid_volumes": "{program} lists {count} with the WWN or serial number of this disk",
    "raid_contradiction": "their reports differ",
    "no_raid_tool": "no tool of its controller is installed: expected one of {paths}",
    "no_known_raid_tool": "no tool is known for controllers of {driver}",
    "kind_pmem": "it may be persistent or plain memory: no rule distinguishes them",
    "kind_layer": "it is a layer over other devices",
    "kind_bridge": "it is behind a {transport} bridge",
    "kind_azure": "Azure has its temporary disk there; with azure-vm-utils udev reports which disk it is",
    "kind_volume": "{driver} does not show whether it is a disk or a RAID volume",
    "kind_machine": "it is unknown whether this is a virtual machine",
    "kind_container": "inside a container ({container}) it is unknown whether this is a virtual machine",
    "kind_no_pci": "its path leads to no PCI device",
    "kind_maker": "no maker of disks is known for {model}",
    "kind_no_rule": "no rule covers {model} at {place}",
    # Mounts, as they are.
    "jfs": "JFS never flushes a disk, and no option makes it",
    "no_rule": "there is no rule for {fstype}",
    "cifs": "this host cannot verify that the server has stored what it acknowledges",
    "overlay": "overlay writes to another file system",
    "overlay_volatile": "mounted with volatile: every sync is dropped",
    "raw": "no file system: it depends on how the database opens the device",
    "not_in_file": "the file has no {setting}",
    "option_value": "{spelled} has an unknown value; accepted: {accepted}",
    "nfs_hidden_option": "an option that is hidden may set how writes are handled when the server does not answer",
    "nfs_no_recovery": "neither hard nor soft is among its options",
    "zfs_parameter": "{name} is {value}: ZFS flushes no disk",
    "zfs_sync_disabled": "sync=disabled: a commit is acknowledged before it is stored",
    "zfs_sync": "observed sync {sync}, expected standard, always or disabled",
    # Mounts, at the next boot.
    "hidden_in": "it is mounted only in the namespace of {process}",
    "unmounted": "no fstab line and no mount unit mounts this device there at the next boot",
    "masked": "{source} masks the unit of this mount, and nothing mounts it at the next boot",
    "copies": "{names} have {tag}={value}",
    "on_access": "it is not mounted now; the first access mounts it with {setting} {value}",
    "two_lines": "/etc/fstab: lines {lines} both mount {target}",
    "other_unit": "{unit} mounts {holds} at {target}, not {device}",
    "quoted_options": (
        "{line}: observed options that mount(8) and systemd read differently; expected none with escapes or quotes"
    ),
    "broken_options": (
        "{line}: observed options with a newline or a backslash at the end, which systemd writes into a unit; expected none"
    ),
    "first_mode": "the initramfs mounts the root with data={mode}, and the kernel changes that in no remount",
    "xfs_refuses": "XFS refuses barrier and data= options since kernel 4.19: the next boot would fail",
    "ways_differ": "{ways}: what mounts first decides",
    "rootflags_differ": "{entries}: it is unknown which of these the next boot has",
    "no_command_line": "{entry}: nothing sets ${variable}, which has the kernel's command line",
    "other_system": "{entry}: the entry that boots by default starts another root or subvolume than this boot's",
    "zfs_parameter_at_boot": f"{{source}} {_ZFS_DROPS}",
    "zfs_entries_differ": f"{{dropping}} {_ZFS_DROPS}, {{keeping}} does not, and it is unknown which of them boots next",
    "zfs_other_root": f"{_ZFS_MOUNT}, and the boot loader names {{root}} as the root",
    "zfs_no_line": f"{_ZFS_MOUNT}: no line of /etc/fstab and no mount unit mounts it at {{target}}",
    "zfs_not_mounted": f"{_ZFS_MOUNT}: ZFS does not mount it at {{target}} automatically",
    # Other components, at the next boot.
    "sets_at_boot": "{by} sets it at each boot: {source}{act}",
    "may_set_at_boot": "{by} can set it at the next boot: {source}{act}",
    "others_unread": "what other components set at boot cannot be read: {why}",
    "generator": "{path} is a generator, and its units can set anything",
    "no_tuned_profile": "TuneD has no profile {profile}",
    "many_tuned_profiles": "{path}: observed {observed} names of profiles; expected at most {most}",
    # FUA.
    "fua_file_system": "{fstype} does not send FUA for direct writes",
    "fua_since": "kernel {kernel}: {fstype} sends FUA since {since}",
    "fua_journal": "data=journal turns direct writes into buffered ones",
    "fua_no_barrier": "without barriers nothing is sent",
    "fua_unknown": "the file system or its disks are unknown",
    "fua_blocked": "neither flush nor FUA passes through {layers}",
    "fua_more_writes": "{layers} makes more than one write of a write",
    "fua_no_disk": "no disk is known below it",
    "fua_unknown_disk": "one of its disks is unknown",
    "fua_disk": "{disk}: FUA {fua}, write cache {cache}",
}
#: Cause -> what an administrator does about it; others have the fix of their finding.
FIX: dict[str, str] = {
    "two_lines": "leave one of them",
    "ways_differ": "give each of them the same value of this option, and leave the other options unchanged",
    "rootflags_differ": _ROOTFLAGS,
    "no_command_line": (
        "mount the EFI system partition if GRUB's files are on it, or make the boot loader's configuration again"
        " (grub2-mkconfig)"
    ),
    "other_system": "choose the entry of this system (grub2-set-default, bootctl set-default)",
    "zfs_entries_differ": "remove zfs_nocacheflush, zil_nocacheflush and zil_replay_disable from all entries of the boot loader",
    "generator": "remove {path}",
    "rule_without_program": "install {programs}",
    "overlay": "put the data on a separate mount",
}
_COUNTS = {"none": "no volume", "one": "one volume", "several": "two volumes"}
_REMOVE = "remove the assignment from {source}, or set the wanted value there"
_REPLACE = "remove {source}, or replace it by one command that names the device and the value"


class Explained(NamedTuple):
    """The sentence for a cause, and what to do, '' for nothing in particular."""

    reason: str
    fix: str = ""

    def text(self) -> str:
        """Return both in one line."""
        return f"{self.reason}. Fix: {self.fix}" if self.fix else self.reason


class Sentences(NamedTuple):
    """The sentences of a closed list of causes, and the fixes of some."""

    says: Mapping[str, str]
    fixes: Mapping[str, str]

    def explain(self, cause: str, values: Mapping[str, Any], **more: str) -> Explained:
        """Return the sentence and the fix for a cause; `more`: what its evidence has."""
        inner = [self.explain(each["cause"], each["parameters"]) for each in values.get("why", ())]
        found = {**{key: name(value) for key, value in more.items()}, **dict(_shown(values, inner))}
        fix = self.fixes.get(cause, "").format(**found)
        return Explained(
            self.says[cause].format(**found),
            fix or "; ".join(dict.fromkeys(each.fix for each in inner if each.fix)),
        )


def explain(cause: str, values: Mapping[str, Any], **more: str) -> Explained:
    """Return the sentence and the fix for a cause of storage facts; `more`: what its evidence has."""
    return Sentences(SAYS, FIX).explain(cause, values, **more)


def why(evidence: Mapping[str, Any]) -> str:
    """Return the sentence of an observation, as read from a host or explained; '' without one."""
    if "parameters" in evidence:
        return str(of_evidence(evidence)["reason"])
    return evidence["reason"] or ""


def text(row: Mapping[str, Any]) -> str:
    """Return the sentence and the fix of a cause as facts have it."""
    return explain(row["cause"], row["parameters"]).text()


def _shown(values: Mapping[str, Any], inner: Iterable[Explained]) -> Iterator[tuple[str, str]]:
    """Yield each value as a sentence has it, and those that are made of several."""
    for key, value in values.items():
        if key == "why":
            yield key, "; ".join(each.reason for each in inner)
        elif isinstance(value, list):
            yield key, (" and " if key in ("lines", "names") else ", ").join(map(name, value))
        else:
            yield key, quote(value) if key in VERBATIM else name(value)
    if "act" in values:
        yield "act", f": {quote(values['act'])}" if values["act"] else ""
    if "count" in values:
        yield "count", _COUNTS[values["count"]]
    if "setting" in values:
        setting = values["setting"]
        yield "spelled", mount_settings.SPELLED.get(setting, name(setting))
        yield "accepted", mount_settings.ACCEPTED.get(setting, "a value that the kernel knows")
    if "sources" in values:
        rows = zip(*(map(name, values[key]) for key in ("observed", "sources", "targets")))
        yield "ways", ", ".join(f"{value} by {source} at {target}" for value, source, target in rows)
    if "options" in values:
        flags = zip(map(name, values["entries"]), map(name, values["options"]))
        yield "entries", "; ".join(f"{entry}: {option}" for entry, option in flags)


def of_evidence(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Return an observation with `reason` as a sentence, and `fix` if an administrator has to change another component.

    An error is shown in quotes.
    """
    rest = {key: evidence[key] for key in ("value", "source", "by", "cause") if key in evidence}
    if "cause" not in evidence:
        return {**rest, "reason": quote(evidence["reason"]) if evidence["reason"] else None}
    names = {key: str(evidence.get(key) or "") for key in ("source", "by", "value")}
    found = explain(evidence["cause"], evidence["parameters"], **names)
    if "precedence" in evidence:
        fix = (_REPLACE if evidence["value"] == UNKNOWN else _REMOVE).format(source=name(names["source"]))
        return {**rest, "reason": found.reason, "fix": fix}
    return {**rest, "reason": found.text()}
