# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The closed list of causes for which the next boot mounts nothing, or another file system. Data.

A host reports a cause by its keyword, with values; the catalogue (storage/boot_findings.py) has the sentence and the fix of each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

#: Setting of the report -> its causes -> the names of the values that each has, in a text; `name[]` is a list of texts, and
#: `name=a|b` is one of these keywords.
_CAUSES: dict[str, dict[str, str]] = {
    "letters": {"encoding": ""},
    "options": {
        "unknown_option": "type wrong[] near[]",
        "unsure_option.other_kernel": "type release running wrong[] near[]",
        "unsure_option.quotes": "type release wrong[] near[]",
        "unsure_option": "type release wrong[] near[]",
        "suspect_option": "type wrong[] near[]",
    },
    "type": {
        "no_bind": "wrong[] near[]",
        "holds_luks": "spec",
        "holds_lvm": "spec",
        "holds_raid": "spec",
        "holds_swap": "spec",
        "other_type": "spec holds near[]",
        "unknown_type": "near[]",
    },
    "source": {
        "no_device": "spec near[]",
        "no_path": "spec near[]",
        "no_tag": "spec near[]",
        "no_root": "spec tag value",
    },
    "read_only": {"read_only": ""},
    "requires": {
        "no_requirement": "unit",
        "no_unit": "unit waiting",
        "no_unit.link": "unit waiting",
        "masked_requirement": "unit waiting",
        "changed_unit": "unit waiting changed",
        "failed_unit": "unit waiting state result",
        "condition": "condition waiting",
        "unread.requirements": "error",
    },
    "duplicate": {"duplicate": "first second"},
    "order": {"order": "lines[] targets[]"},
    "container": {
        "container_unread": "container error",
        "other_container": "spec container device name",
        "new_contents": "container word",
        "no_container": "container label uuid",
        "no_container.no_uuid": "container label",
    },
    "initramfs": {
        "no_kernel": "file rest=none|some",
        "no_initramfs": "file rest=none|some release",
        "initramfs_lacks": "file layer=LUKS|LVM|md programs[] release",
        "unread.images": "error",
    },
    "masked": {"masked_mount": "path unit", "masked_unit": "path unit", "unread.masks": "error"},
    "link": {
        "claimed_name": "rule path other link device",
        "lost_name": "rule path key link",
        "hidden_device": "rule path assignment device",
        "unread.links": "error",
    },
    "rules": {
        "masked_rules": "path rules device",
        "replaced_rules": "path rules device",
        "unread.rules": "error",
    },
    "driver": {
        "blocked_module": "module of=driver|file_system device place text",
        "blocked_module.command_line": "module of=driver|file_system device place text",
        "unread.modules": "error",
    },
    "start": {
        "no_default_target": "starts=unit|missing|nothing|shell unit",
        "other_target": "starts=unit|missing|nothing|shell unit",
        "masks_unit": "word key unit",
        "no_fstab": "word key",
        "other_root": "word key",
        "overlay_root": "word",
        "other_init": "word key unit",
        "one_command": "word key",
        "preload": "word key",
        "extra_mount": "spec key covers=mount|files",
        "credential": "word key unit",
        "given_credential": "unit",
        "unread.credentials": "error",
        "unread.target": "error",
        "unread.command_line": "error",
    },
    "generator": {
        "masked_generator": "path",
        "foreign_generator": "path",
        "replaced_generator": "path masks",
        "unread.generators": "error",
    },
    "name": {
        "temporary_name": "spec because=boot|number|no_array_line|other_host stable",
        "temporary_name.copied": "spec because=boot|number|no_array_line|other_host others[] holds device uuid",
        "temporary_name.no_uuid": "spec because=boot|number|no_array_line|other_host device",
        "temporary_root": "spec because=boot|number|no_array_line|other_host stable",
        "temporary_root.no_initramfs": "spec because=boot|number|no_array_line|other_host",
        "temporary_container": "spec because=boot|number|no_array_line|other_host container stable",
        "temporary_container.copied": "spec because=boot|number|no_array_line|other_host container others[] holds device uuid",
        "temporary_container.no_uuid": "spec because=boot|number|no_array_line|other_host container device",
    },
    "copies": {
        "copies": "spec names[] tag value device stable",
        "copies.no_name": "names[] tag value others[] holds",
        "copied_container": "spec names[] tag value container device stable",
        "copied_container.no_name": "names[] tag value container others[] holds",
        "copied_volume": "names[] uuid others[] holds",
        "no_line": "names[] uuid device stable",
        "no_line.no_name": "names[] uuid others[] holds",
    },
}
#: Cause -> the setting of the report that it belongs to.
FAULT_OF: dict[str, str] = {cause: fault for fault, causes in _CAUSES.items() for cause in causes}
#: Cause -> the values that it has, as in _CAUSES.
VALUES: dict[str, tuple[str, ...]] = {
    cause: tuple(values.split()) for causes in _CAUSES.values() for cause, values in causes.items()
}
#: What can be wrong with a line.
FAULTS = tuple(_CAUSES)


def fits(cause: object, values: object) -> bool:
    """Return whether a cause is one of these, with its values and no others."""
    return isinstance(cause, str) and cause in VALUES and have(VALUES[cause], values)


def have(specs: Iterable[str], values: object, is_cause: Callable[[object], bool] = bool) -> bool:
    """Return whether values are those of specs, and no others; `is_cause`: what an item of `name{}` is."""
    found = {re.split(r"[=\[{]", spec)[0]: spec for spec in specs}
    return (
        isinstance(values, dict)
        and set(values) == set(found)
        and all(_fits(spec, values[name], is_cause) for name, spec in found.items())
    )


def _fits(spec: str, value: object, is_cause: Callable[[object], bool]) -> bool:
    if spec.endswith("{}"):
        return isinstance(value, list) and all(map(is_cause, value))
    if spec.endswith("[]"):
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    keywords = spec.partition("=")[2]
    return isinstance(value, str) and (not keywords or value in keywords.split("|"))
