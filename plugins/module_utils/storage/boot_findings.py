# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of findings about the next boot: one for each cause of boot_causes.py, boot.CAUSE. Data.

Values have the names of boot_causes.py. The policy adds `source`, `target`, `fstype` and `options` of the fact, and `meant`,
`make`, `apart`, `package` and `module`, which it writes from values.
"""

from __future__ import annotations

from ..host.observation import UNKNOWN
from ..rows import FIX_READ_ERROR, Kind

_ENTRIES = "the boot loader's entry (grubby --remove-args, /etc/default/grub and update-grub, or /etc/kernel/cmdline)"
_UNSURE = (
    "whether {type} of kernel {release} takes {options}, which {source} names for {target}, is unknown: "
)
_CORRECT = "correct or remove {wrong} in {source}{meant}"
_NAMED = ", which {source} names for {target}"
_MISSING = "{spec}, which {source} mounts at {target}, is missing: "
_CORRECT_LINE = "correct {source}{meant}, or add nofail if no database has files on {target}"
_WAITS = "{source} has {waiting} wait for {unit}, and "
_RULE_PATH = "remove that assignment from {path}"
_BLOCKED = "the next boot does not load the module {module}, {of}, by {place}: {text}"
_BY = "{source} mounts {target} by {spec}, {because}"
_OPENS = "{source} opens {container}, in which {target} is stored, by {spec}, {because}"
_WRITE = "write {stable} in place of {spec} in {source}"
_WRITE_OWN = "write {stable}, a name of {device} alone, in place of {spec} in {source}"
_EITHER = "{names} have {tag}={value}, by which {source} mounts {target}: the next boot can mount any of them"
_OPENS_EITHER = (
    "{names} have {tag}={value}, by which {source} opens {container}, in which {target} is stored: the next boot can open any"
    " of them"
)
_BY_UUID = "{apart}, then name {device} by UUID={uuid} in {source}"
_NO_LINE = "no line of {source} mounts it, and {names} have UUID={uuid}: a line by that can mount any of them"
_CLUSTER = ", or set the options in the cluster manager that mounts it"
_READABLE = "correct the error, or remove the file"

#: Cause -> what is wrong and what to do.
_TEXTS: dict[str, tuple[str, str]] = {
    "encoding": (
        "{source} has bytes that are not UTF-8, and systemd takes no unit with such",
        "write them in UTF-8 in {source}",
    ),
    "unknown_option": (f"{{type}} does not know {{options}}{_NAMED}", _CORRECT),
    "unsure_option": (
        f"{_UNSURE}the running kernel cannot be queried for it, and no table here covers that release",
        _CORRECT,
    ),
    "unsure_option.other_kernel": (f"{_UNSURE}the running kernel is {{running}}", _CORRECT),
    "unsure_option.quotes": (f"{_UNSURE}releases of mount(8) differ in how they read quotes", _CORRECT),
    "suspect_option": (f"it is unknown whether {{type}} takes {{options}}{_NAMED}", _CORRECT),
    "refused_combination": (f"the kernel {{does}} {{options}}{_NAMED}", "remove {options} from {source}"),
    "no_bind": (f"none is no file system without bind{_NAMED}", _CORRECT),
    "holds_luks": (
        f"{{spec}} holds a LUKS container, no file system{_NAMED}",
        "name the device in the container, /dev/mapper/NAME, in {source}",
    ),
    "holds_lvm": (
        f"{{spec}} holds a physical volume of LVM, no file system{_NAMED}",
        "name the logical volume, /dev/GROUP/VOLUME, in {source}",
    ),
    "holds_raid": (
        f"{{spec}} holds a member of an md array, no file system{_NAMED}",
        "name the file system of the array, by UUID, in {source}",
    ),
    "holds_swap": (
        f"{{spec}} holds swap space, no file system{_NAMED}",
        "name a device with a file system in {source}, or set its type to swap",
    ),
    "other_type": (f"{{spec}} holds {{holds}}, not {{fstype}}{_NAMED}", "correct {source}{meant}"),
    "unknown_type": (f"no file system is called {{fstype}}{_NAMED}", "correct {source}{meant}"),
    "no_device": (f"{_MISSING}no device is called so", _CORRECT_LINE),
    "no_path": (f"{_MISSING}nothing is there", _CORRECT_LINE),
    "no_tag": (f"{_MISSING}it is no tag and no path", _CORRECT_LINE),
    "no_root": (
        "root={spec}, by which {source} mounts /, is missing, and no other entry of the boot loader names one that is there",
        "set root={root} in the boot loader's entries (grubby, update-grub, grub2-mkconfig)",
    ),
    "read_only": (
        "{source} mounts {target} read-only (ro), and it is mounted for writing now",
        "remove ro from the options in {source}",
    ),
    "no_requirement": (
        "{source} has {target} require {unit} (x-systemd.requires), and that is missing",
        "correct or remove x-systemd.requires={unit} in {source}",
    ),
    "no_unit": (f"{_WAITS}that unit has no file", "remove {unit} from {source}"),
    "no_unit.link": (f"{_WAITS}that unit has no file", "remove {source}"),
    "masked_requirement": (f"{_WAITS}that unit is masked", "run {unmask}"),
    "changed_unit": (
        f"{_WAITS}{{changed}} was changed after this boot",
        "have {source} want {unit} instead of requiring it (Wants=, WantedBy=)",
    ),
    "failed_unit": (
        f"{_WAITS}at this boot systemd reports for it ActiveState={{state}}, Result={{result}}",
        "correct what journalctl -b -u {unit} shows, or have {source} want {unit} instead of requiring it (Wants=, WantedBy=)",
    ),
    "condition": ("{source} starts {waiting} only if {condition} holds", "remove {condition} from {source}"),
    "duplicate": (
        "{first} and {second} both mount {target}: systemd takes the first alone, mount -a both",
        "delete the one of {first} and {second} that does not name what is mounted at {target} now (findmnt), {second} if both"
        " do",
    ),
    "order": (
        "/etc/fstab lines {lines} wait for each other ({targets}), and systemd leaves one of them out",
        "remove the x-systemd option or the bind mount that closes the ring from one of /etc/fstab lines {lines}",
    ),
    "container_unread": (
        "what opens {container}, in which {target} is stored, is unknown: {error}",
        FIX_READ_ERROR,
    ),
    "other_container": (
        "{source} opens {spec} as {container}, in which {target} is stored, and that is not {device}, on which it is now",
        "write {name} in place of {spec} in {source}",
    ),
    "new_contents": (
        "{source} opens {container}, in which {target} is stored, with {word}: its data are lost at each boot",
        "move the data of {target} to a device with a key that stays",
    ),
    "no_container": (
        "no line of {source} opens {container}, in which {target} is stored",
        'add "{label} UUID={uuid} KEYFILE luks" to {source}, with noauto too if another component opens it',
    ),
    "no_container.no_uuid": (
        "no line of {source} opens {container}, in which {target} is stored",
        # Opened with other options a plain container shows other bytes.
        "add a line for {label} with its device, KEYFILE and the options that it has now (cryptsetup status) to {source}",
    ),
    "no_kernel": (
        "{file}, which the entry at {source} loads, is missing, and of the boot loader's entries {rest}",
        "install that kernel again, or run update-grub or grub2-mkconfig, so that no entry names it",
    ),
    "no_initramfs": (
        "{file}, which the entry at {source} loads, is missing, and of the boot loader's entries {rest}",
        "install that kernel again, or run update-initramfs -c -k {release} or dracut --kver {release}",
    ),
    "initramfs_lacks": (
        "{file}, which the next boot may load for the first time, has no {programs}, and / is on {layer}",
        "install {package} (dracut: module {module}), then run update-initramfs -u -k {release} or dracut -f --kver {release}",
    ),
    "masked_mount": ("{path} masks {unit}, by which {source} is mounted at {target}", "run {unmask}"),
    "masked_unit": ("{path} masks {unit}, without which a boot does not make its mounts", "run {unmask}"),
    "claimed_name": (
        "{rule} gives {other} the name {link}, by which {source} mounts {device} at {target}",
        "remove that SYMLINK from {path}",
    ),
    "lost_name": (
        "{rule} sets {key}, and {source} mounts {target} by the name that udev makes of it ({link})",
        _RULE_PATH,
    ),
    "hidden_device": (
        "{rule} sets {assignment} for {device}, so systemd does not find the device that {source} mounts at {target}",
        _RULE_PATH,
    ),
    "masked_rules": (
        "{path} masks the rules {rules}, by which {device}, that {source} mounts at {target}, gets its name or its unit",
        "remove {path}",
    ),
    "replaced_rules": (
        "{path} replaces the rules {rules}, by which {device}, that {source} mounts at {target}, gets its name or its unit",
        "move what {path} adds to a file of another name, then remove {path}",
    ),
    "blocked_module": (
        _BLOCKED,
        "remove that line from {place}, then run update-initramfs -u or dracut -f",
    ),
    "blocked_module.command_line": (_BLOCKED, f"remove that word from {_ENTRIES}"),
    "no_default_target": (
        "{source} has the next boot start {starts}: no database is started",
        "run systemctl set-default multi-user.target",
    ),
    "other_target": (
        "{source} has the next boot start {starts}: no database is started",
        f"remove systemd.unit=, init= and options for repairs from {_ENTRIES}",
    ),
    "masks_unit": ("{source}: {word} masks {unit}", ""),
    "no_fstab": ("{source}: {word} has the next boot make no mount of fstab", ""),
    "other_root": ("{source}: {word} has the next boot use another root, or stop before it", ""),
    "overlay_root": (
        "{source}: {word} has the next boot mount an overlay over / and, without recurse=0, over each mount of fstab",
        'write overlayroot="" in {source}',
    ),
    "other_init": ("{source}: {word} has the next boot start {unit} instead of systemd", ""),
    "one_command": ("{source}: {word} has the next boot run one command, and power off", ""),
    "preload": ("{source}: {word} has systemd load a library into each program", ""),
    "extra_mount": ("{source}: {key} mounts {spec} at {target}, {covers}", ""),
    "credential": (
        "{source}: {word} gives the next boot the credential {unit}, which can change each mount, disk and server",
        "",
    ),
    "given_credential": (
        "firmware, hypervisor or boot loader give each boot the credential {unit} ({source}), which can change each mount, disk"
        " and server",
        "remove {unit} from the credentials of the virtual machine (SMBIOS strings, fw_cfg) or of the EFI system partition"
        " (loader/credentials), and put its contents in files of this host",
    ),
    "masked_generator": (
        "{path} masks systemd-fstab-generator, and nothing makes units of /etc/fstab",
        "remove {path}",
    ),
    "foreign_generator": (
        "{path} is a generator of units that no package of the distribution has in its directory: the units that it makes at"
        " the next boot can change each mount, disk and server",
        "copy the units that it makes, and the links to them, from /run/systemd/generator to /etc/systemd/system, then remove"
        " {path}",
    ),
    "replaced_generator": (
        "{path} is a generator in the place of {masks} that no package of the distribution has in its directory: the units"
        " that it makes at the next boot can change each mount, disk and server",
        "restore {masks} from its package, then remove {path}",
    ),
    "temporary_name": (_BY, _WRITE),
    "temporary_name.copied": (_BY, _BY_UUID),
    "temporary_name.no_uuid": (
        _BY,
        "give {device} a file system with a UUID, and name it by that in {source}",
    ),
    "temporary_root": (
        _BY,
        "have the boot loader's entries name the root root={stable} (update-grub, grub2-mkconfig, grubby)",
    ),
    "temporary_root.no_initramfs": (
        _BY,
        "add an initramfs to the boot loader's entries, and name the root by its UUID",
    ),
    "temporary_container": (_OPENS, _WRITE),
    "temporary_container.copied": (_OPENS, _BY_UUID),
    "temporary_container.no_uuid": (_OPENS, "name {device} by a UUID in {source}"),
    "copies": (_EITHER, _WRITE_OWN),
    "copies.no_name": (_EITHER, "{apart}"),
    "copied_container": (_OPENS_EITHER, _WRITE_OWN),
    "copied_container.no_name": (_OPENS_EITHER, "{apart}"),
    "copied_volume": (
        "{names} are physical volumes with the UUID {uuid}, in which {target} is stored: LVM activates any of them, or none",
        "{apart}",
    ),
    "no_line": (
        _NO_LINE,
        f"add a line for {{target}} to {{source}}, by {{stable}}, a name of {{device}} alone{_CLUSTER}",
    ),
    "no_line.no_name": (
        _NO_LINE,
        f"{{apart}}, then add a line for {{target}} to {{source}}, by UUID{_CLUSTER}",
    ),
    "unread.images": (
        "what the boot loader loads cannot be read: {error}",
        "make it readable, or reboot at the console",
    ),
    "unread.masks": ("units of systemd cannot be read: {error}", _READABLE),
    "unread.links": ("the names that rules of udev make cannot be read: {error}", _READABLE),
    "unread.rules": ("packaged rules of udev cannot be read: {error}", _READABLE),
    "unread.modules": ("which modules the next boot loads cannot be read: {error}", _READABLE),
    "unread.target": ("the target of the boot cannot be read: {error}", _READABLE),
    "unread.command_line": ("the kernel's command line cannot be read: {error}", _READABLE),
    "unread.credentials": ("the credentials of the boot cannot be read: {error}", _READABLE),
    "unread.requirements": ("the units that the mounts wait for cannot be read: {error}", _READABLE),
    "unread.generators": ("the generators of units cannot be read: {error}", _READABLE),
}
_REMOVE_KEY = f"remove {{key}} from {_ENTRIES}"
#: Causes of which a host never knows more than that it may be so.
_UNKNOWN = ("unsure_option", "suspect_option", "unread", "duplicate", "copies", "copied", "temporary")
KINDS = {
    cause: Kind(
        f"boot.{cause}", UNKNOWN if cause.startswith(_UNKNOWN) else "drifted", says, fix or _REMOVE_KEY
    )
    for cause, (says, fix) in _TEXTS.items()
}

#: Value -> its keywords -> how the sentence has them.
PHRASES = {
    "because": {
        "boot": "a name that is valid for the current boot only",
        "number": "a name that is valid for the current boot only: it is another device's if one is added or removed",
        "no_array_line": "the number of an array that has no ARRAY line in mdadm.conf: it is 127 after the host's name changes",
        "other_host": "the name of an array of another host name: without an ARRAY line in mdadm.conf it changes at a boot",
    },
    "rest": {"none": "all others lack a file too", "some": "another one has all of its files"},
    "of": {"driver": "the driver of {device}", "file_system": "the file system of {target}"},
    "covers": {
        "mount": "where fstab, a unit or a person mounts another file system",
        "files": "where files are now",
    },
    "starts": {
        "unit": "{unit}",
        "missing": "{unit}, which is not there",
        "nothing": "nothing",
        "shell": "a shell",
    },
}
#: Layer -> the package for initramfs-tools that opens it, and the module of dracut.
PACKAGES = {
    "LUKS": ("cryptsetup-initramfs", "crypt"),
    "LVM": ("lvm2", "lvm"),
    "md": ("mdadm", "mdraid"),
}
#: What a device holds -> the command that gives it another UUID while it is not mounted.
NEW_UUID = {
    **dict.fromkeys(("ext2", "ext3", "ext4"), "tune2fs -U random"),
    "xfs": "xfs_admin -U generate",
    "btrfs": "btrfstune -u",
    "crypto_LUKS": "cryptsetup luksUUID --uuid $(uuidgen)",
    "LVM2_member": "vgimportclone",
}
#: Those that are closed in place of being unmounted: what is in them is mounted.
CONTAINERS = ("crypto_LUKS", "LVM2_member")
