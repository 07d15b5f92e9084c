# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The closed list of causes in storage facts: why a value is unknown, or what set it. Data.

A host reports a cause by its keyword, with values; storage/causes.py has the sentence and the fix of each.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from .boot_causes import have

_LAYERS = {
    "no_rule_for_layer": "",
    "bcache_state": "state mode",
    "bcache_without_cache": "state",
    "loop_file_unread": "error",
    "loop_file_on": "number",
    "loop_devices": "fstype why{}",
    "table_unread": "error",
    "raid_level": "level",
    "no_raid_level": "",
    "writecache": "since",
    "cache_feature": "feature",
    "table_form": "",
    "drbd_unread": "error",
    "drbd_no_disk": "",
    "drbd_disk_state": "state",
    "drbd_alone": "",
    "drbd_adjusted": "error",
}
_STACKS = {
    "not_understood": "layer type why{}",
    "nothing_below": "layer type",
    "no_block_device": "number",
    "no_device": "",
    "nameless_device": "",
    "stack": "why{}",
    "members_unread": "device error",
    "no_member": "target path",
    "journal_unread": "target error",
    "superblock_unread": "target error",
}
_DISKS = {
    "raid_hides": "",
    "controller_may_hide": "",
    "bridge_hides": "",
    "machine_hides": "",
    "card_hides": "",
    "no_program": "error",
    "udev_unread": "error",
    "no_control": "transport kind",
    "no_id": "",
    "same_id": "id disks[]",
    "no_claim": "",
    "rule_without_program": "programs[]",
    "no_cache_rule": "unit",
    "mode_below_cache": "",
    "no_scheduler": "text",
    "in_virtual_machine": "",
    "raid_tools": "why{}",
    "raid_tool_unread": "error",
    "raid_volumes": "program count=none|one|several",
    "raid_contradiction": "",
    "no_raid_tool": "paths[]",
    "no_known_raid_tool": "driver",
}
_KINDS = {
    "kind_pmem": "",
    "kind_layer": "",
    "kind_bridge": "transport",
    "kind_azure": "",
    "kind_volume": "driver",
    "kind_machine": "",
    "kind_container": "container",
    "kind_no_pci": "",
    "kind_maker": "model",
    "kind_no_rule": "model place",
}
_MOUNTS = {
    "jfs": "",
    "no_rule": "fstype",
    "cifs": "",
    "overlay": "",
    "overlay_volatile": "",
    "raw": "",
    "not_in_file": "setting",
    "option_value": "setting",
    "nfs_hidden_option": "",
    "nfs_no_recovery": "",
    "zfs_parameter": "name value",
    "zfs_sync_disabled": "",
    "zfs_sync": "sync",
}
_NEXT_MOUNTS = {
    "hidden_in": "process",
    "unmounted": "",
    "masked": "",
    "copies": "names[] tag value",
    "on_access": "setting value",
    "two_lines": "lines[] target",
    "other_unit": "unit holds target device",
    "quoted_options": "line",
    "broken_options": "line",
    "first_mode": "mode",
    "xfs_refuses": "",
    "ways_differ": "observed[] sources[] targets[]",
    "rootflags_differ": "entries[] options[]",
    "no_command_line": "entry variable",
    "other_system": "entry",
    "zfs_parameter_at_boot": "",
    "zfs_entries_differ": "dropping keeping",
    "zfs_other_root": "canmount mountpoint root",
    "zfs_no_line": "canmount mountpoint target",
    "zfs_not_mounted": "canmount mountpoint target",
}
_OTHERS = {
    "sets_at_boot": "act",
    "may_set_at_boot": "act",
    "others_unread": "why{}",
    "generator": "path",
    "no_tuned_profile": "profile",
    "many_tuned_profiles": "path observed most",
    "unread": "error",
}
_FUA = {
    "fua_file_system": "fstype",
    "fua_since": "kernel fstype since",
    "fua_journal": "",
    "fua_no_barrier": "",
    "fua_unknown": "",
    "fua_blocked": "layers[]",
    "fua_more_writes": "layers[]",
    "fua_no_disk": "",
    "fua_unknown_disk": "",
    "fua_disk": "disk fua cache",
}
#: Cause -> the names of the values that it has, as in boot_causes.py; `name{}` is a list of causes.
VALUES: dict[str, tuple[str, ...]] = {
    cause: tuple(values.split())
    for causes in (_LAYERS, _STACKS, _DISKS, _KINDS, _MOUNTS, _NEXT_MOUNTS, _OTHERS, _FUA)
    for cause, values in causes.items()
}
#: Values that are the text of an error, of a file or of a program, as it was read.
VERBATIM = ("error", "text")


#: Causes of an observation: their sentences name its source, so none is a cause of another cause.
OF_EVIDENCE = ("masked", "zfs_parameter_at_boot", "sets_at_boot", "may_set_at_boot")
#: Causes in causes: `stack` has a layer's, that has those of a loop device, and these the text of an error.
_DEEPEST = 4


def fits(
    cause: object, parameters: object, depth: int = 1, known: Mapping[str, tuple[str, ...]] = VALUES
) -> bool:
    """Return whether a cause is a known one, with its values and no others; `depth`: of how many causes it is a part."""
    return (
        isinstance(cause, str)
        and cause in known
        and depth <= _DEEPEST
        and have(known[cause], parameters, functools.partial(is_cause, depth=depth + 1, known=known))
    )


def is_cause(value: object, depth: int = 1, known: Mapping[str, tuple[str, ...]] = VALUES) -> bool:
    """Return whether a mapping is a cause with its values, and not one of an observation alone."""
    return (
        isinstance(value, dict)
        and set(value) == {"cause", "parameters"}
        and value["cause"] not in OF_EVIDENCE
        and fits(value["cause"], value["parameters"], depth, known)
    )
