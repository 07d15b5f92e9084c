# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Redaction of mount tables, fstab, mount units and the kernel's command line. Pure.

Only what is known to be harmless stays unchanged. The rest is dropped, or becomes a stand-in of
the same shape, so that a parser still sees a line of the same form.
"""

from __future__ import annotations

import re

from ..host.mount_api.options import FOR_PROGRAMS
from ..storage import boot_loader as boot_loader_file
from ..storage import fstab as fstab_file
from ..storage.shown_options import (
    HIDDEN,
    KEYS,
    OPTIONS,
    PATHS,
    PLAIN,
    PRIVATE,
    is_flag,
    split_login,
    without_login,
)
from .identities import Identities

FSTYPES = frozenset(
    "9p auto bcachefs bpf btrfs ceph cgroup cgroup2 cifs configfs debugfs devpts devtmpfs efivarfs erofs exfat"
    " ext2 ext3 ext4 f2fs fuse fuseblk fusectl gfs2 glusterfs hugetlbfs iso9660 jfs lustre mqueue nfs nfs4 none"
    " nsfs ntfs ntfs3 ocfs2 overlay proc pstore ramfs reiserfs securityfs selinuxfs smb3 squashfs swap sysfs tmpfs"
    " tracefs udf vfat virtiofs xfs zfs".split()
)
#: What a mount without a device is called in the mount table.
SOURCES = frozenset("none udev dev run shm systemd-1 cgroup cgroup2 rootfs host sys nodev".split())

#: What the kernel itself prints as an option is a word of its own.
_KERNEL_TYPE = re.compile(r"[a-z][a-z0-9_]{0,30}")
_KERNEL_FLAG = re.compile(r"[a-z][a-z0-9_.]{0,30}")
_PROPAGATION = re.compile(r"(?:shared|master|propagate_from):\d+|unbindable")
_SPACED = re.compile(r"([ \t]+)")
_UNIT_KEYS = ("Options", "SloppyOptions", "Type", "What", "Where", "Requires", "Requisite", "BindsTo")
_MODES = ("1", "s", "S", "-s", "-b")
#: Values of the kernel's command line that name units and modules.
_NAMED = re.compile(
    r"(?:systemd\.unit|module_blacklist|modprobe\.blacklist|rd\.driver\.blacklist|init)=[\w/.,@-]+"
)
_OURS = "# Managed by durable.dbhost"


def mountinfo(text: str, names: Identities) -> str:
    """Return /proc/self/mountinfo with stand-ins."""
    return "\n".join(_mountinfo_line(line, names) for line in text.split("\n"))


def _mountinfo_line(line: str, names: Identities) -> str:
    left, dash, right = line.partition(" - ")
    before, after = left.split(" "), right.split(" ")
    if not dash or len(before) < 6 or len(after) < 3:
        return names.of(line)
    number, parent, device, root, target, flags, *tags = before
    fstype, source, super_flags, *rest = after
    words = [
        *(_number(word, names) for word in (number, parent, device)),
        *(names.text(root), names.text(target), options(flags, names, True)),
        *(tag for tag in tags if _PROPAGATION.fullmatch(tag)),
        *(
            "-",
            fstype if _KERNEL_TYPE.fullmatch(fstype) else _fstype(fstype, names),
            _source(source, fstype, names),
            options(super_flags, names, True),
        ),
        *(names.of(word) for word in rest),
    ]
    return " ".join(words)


def fstab(text: str, names: Identities) -> str:
    """Return fstab, or a table of its form, with stand-ins. Of comments only our mark stays."""
    return "\n".join(_fstab_line(line, names) for line in text.split("\n"))


def crypttab(text: str, names: Identities) -> str:
    """Return crypttab with stand-ins: which device is opened by which name, and nothing of its key."""
    lines = (line.split() for line in text.split("\n"))
    entries = (fields for fields in lines if len(fields) > 1 and not fields[0].startswith("#"))
    return "".join(f"{names.text(name)} {_spec(spec, [], names)} none\n" for name, spec, *_rest in entries)


def _fstab_line(line: str, names: Identities) -> str:
    if line.startswith(fstab_file.MARK):
        return fstab_file.MARK
    words = _SPACED.split(line)
    first = 0 if words[0] else 2
    fields = words[first::2]
    if fields and fields[0].startswith("#"):
        return "".join([*words[:first], "#"])
    if len(fields) > 6 and fields[6].startswith("#"):
        return _fstab_line("".join(words[: first + 12]), names) + "#"
    values = [
        _FIELDS[min(place, len(_FIELDS) - 1)](field, fields, names) for place, field in enumerate(fields)
    ]
    words[first::2] = values
    return "".join(words)


def _spec(field: str, fields: list[str], names: Identities) -> str:
    tag, equals, value = fstab_file.unquoted(field).partition("=")
    quote = field[-1] if field != fstab_file.unquoted(field) else ""
    if equals and tag in ("UUID", "PARTUUID"):
        return f"{tag}={quote}{names.of(value)}{quote}"
    if equals and tag in ("LABEL", "PARTLABEL"):
        return f"{tag}={quote}{names.scrub(value)}{quote}"
    if equals and tag == "ID":
        return f"ID={names.link('by-id', value)}"
    return _source(field, fields[2] if len(fields) > 2 else "", names)


def _target(field: str, _fields: list[str], names: Identities) -> str:
    return names.text(field) if field.startswith("/") or field in ("none", "swap") else names.of(field)


def _fstypes(field: str, _fields: list[str], names: Identities) -> str:
    return ",".join(_fstype(word, names) for word in field.split(","))


def _options(field: str, _fields: list[str], names: Identities) -> str:
    return options(field, names)


def _digits(field: str, _fields: list[str], names: Identities) -> str:
    return field if re.fullmatch("[0-9]{1,3}", field) else names.of(field)


def _beyond(field: str, _fields: list[str], names: Identities) -> str:
    return names.of(field)


#: What is done with each field of an fstab line; the last stands for all that follow.
_FIELDS = (_spec, _target, _fstypes, _options, _digits, _digits, _beyond)


def options(text: str, names: Identities, by_kernel: bool = False) -> str:
    """Return mount options, without all values, and in fstab all flags, that are unknown."""
    return ",".join(option(word, names, by_kernel) for word in text.split(","))


def option(word: str, names: Identities, by_kernel: bool = False) -> str:
    """Return one mount option. Of a password not even the length is shown."""
    key, equals, value = word.partition("=")
    known = by_kernel and _KERNEL_FLAG.fullmatch(key)
    if not equals:
        return word if known or not word or is_flag(key) else _hidden(key)
    if (key in KEYS and PLAIN.fullmatch(value)) or (known and re.fullmatch(r"\d{1,7}", value)):
        return word
    if key in PATHS:
        return f"{key}={names.text(value)}"
    shown = key if known or key in PRIVATE or key in OPTIONS else _hidden(key)
    return f"{shown}={HIDDEN}"


def _hidden(key: str) -> str:
    """Return a stand-in for an option's name; one for programs alone stays one that no file system sees."""
    return f"{FOR_PROGRAMS[0]}{HIDDEN}" if key.startswith(FOR_PROGRAMS) else HIDDEN


def option_lines(text: str, names: Identities) -> str:
    """Return /proc/fs/ext4/*/options: an option in each line."""
    return "\n".join(option(line, names, True) for line in text.split("\n"))


_PLAIN_WORDS = ("ro", "rw", *boot_loader_file.REPAIR, *_MODES, "$kernelopts", "${kernelopts}")


def command_line(text: str, names: Identities) -> str:
    """Return the kernel's parameters for its root file system, and nothing else."""
    redacted = []
    for word in text.split():
        key, _equals, value = word.partition("=")
        if key == "root":
            redacted.append(f"root={_spec(value, [], names)}")
        elif key == "rootflags":
            redacted.append(f"rootflags={options(value, names)}")
        elif key == "rootfstype":
            redacted.append(f"rootfstype={_fstypes(value, [], names)}")
        elif word in _PLAIN_WORDS or _NAMED.fullmatch(word):
            redacted.append(word)
    return " ".join(redacted) + "\n"


def boot_loader(text: str, names: Identities) -> str:
    """Return a boot loader's configuration: its kernels' parameters for the root, and variables that contain them."""
    redacted = []
    for line in text.split("\n"):
        command, arguments = [*line.split(None, 1), "", ""][:2]
        grub = _of_menu(line, names)
        variable = re.fullmatch(r"""\s*(?:set\s+)?(kernelopts|default_kernelopts)=["']?(.*?)["']?""", line)
        if variable:
            redacted.append(f'{variable[1]}="{command_line(variable[2], names).rstrip()}"')
        else:
            known = re.fullmatch(r"linux(?:16|efi)?|module2?|options", command)
            redacted.append(f"{command} {command_line(arguments, names)}".rstrip() if known else grub)
    return "\n".join(redacted)


_BLOCK = re.compile(r"(?P<kind>menuentry|submenu|function)\s.*\{")
_CUSTOM = re.compile(r"source\s+\$\{?(?:config_directory|prefix)\}?/custom\.cfg")
_CHOICE = re.compile(r"""(?P<head>(?:set )?(?:default|saved_entry|next_entry))=["']?(?P<value>.*?)["']?""")
_QUOTED = re.compile(r"""(--id|\$\{?menuentry_id_option\}?)?\s*(?:'([^']*)'|"([^"]*)")""")
_NAMES_OF_ENTRIES = ("sort-key", "title")


def _of_menu(line: str, names: Identities) -> str:
    """Return a line that has a part in the choice of an entry, with stand-ins for titles, '' for another."""
    text = line.strip()
    block, choice = _BLOCK.fullmatch(text), _CHOICE.fullmatch(text)
    if text in ("}", "blscfg") or _CUSTOM.fullmatch(text):
        return text
    if block:
        words = [
            f"{'--id ' if found[1] else ''}'{names.of(found[2] or found[3] or '')}'"
            for found in _QUOTED.finditer(text)
        ]
        return " ".join((block["kind"], *(words if block["kind"] != "function" else ["f()"]), "{"))
    if choice:
        parts = choice["value"].split(">")
        is_plain = [re.fullmatch(r"\d*|\$\{?\w+\}?", part) for part in parts]
        chosen = ">".join(part if plain else names.of(part) for part, plain in zip(parts, is_plain))
        return (
            f'{choice["head"]}="{chosen}"'
            if choice["head"].startswith("set")
            else f"{choice['head']}={chosen}"
        )
    key, _blank, name = text.partition(" ")
    return f"{key} {names.of(name.strip())}" if key in _NAMES_OF_ENTRIES else ""


def loader_conf(text: str, names: Identities) -> str:
    """Return the default entry that systemd-boot's loader.conf or kernel-install's install.conf names."""
    lines = (line.strip() for line in text.split("\n"))
    return "\n".join(
        names.text(line) if re.match(r"default\s|BOOT_ROOT=|layout=", line) else "" for line in lines
    )


def unit(text: str, names: Identities) -> str:
    """Return the sections of a systemd unit and its settings about a mount, on a line each."""
    redacted = []
    for line in re.sub(r"\\\n", " ", text).split("\n"):
        key, equals, value = line.partition("=")
        name = key.strip()
        if not line.strip() or re.fullmatch(r"\[[A-Z][A-Za-z]*\]", line.strip()):
            redacted.append(line.strip())
        elif line.lstrip().startswith("["):
            redacted.append("[Other]")
        elif line.startswith(_OURS):
            redacted.append(_OURS)
        elif equals and name in _UNIT_KEYS:
            redacted.append(f"{name}={_setting(name, value.strip(), names)}")
    return "\n".join(redacted)


def _setting(name: str, value: str, names: Identities) -> str:
    if name == "Options":
        return options(value, names)
    if name == "Type":
        return _fstypes(value, [], names)
    return _spec(value, [], names) if name == "What" else names.text(value)


def _fstype(word: str, names: Identities) -> str:
    base = word.partition(".")[0]
    return word if word in FSTYPES or (base == "fuse" and PLAIN.fullmatch(word)) else names.of(word)


def _number(word: str, names: Identities) -> str:
    return word if re.fullmatch(r"\d+(:\d+)?", word) else names.of(word)


def _source(text: str, fstype: str, names: Identities) -> str:
    """Return what is mounted: a device or a path; of what another host exports only the path."""
    before, login, place = split_login(text)
    if login:
        found = names.of(place) if before not in ("", "//") else _source(f"{before}{place}", fstype, names)
        return f"{before}{HIDDEN}@{found[len(before) :] if before == '//' else found}"
    if text.startswith("//"):
        host, slash, path = text[2:].partition("/")
        return f"//{_hosts(host, names)}{slash}{names.text(path)}"
    if text.startswith("/"):
        return names.text(text)
    host, colon, path = text.partition(":/")
    if colon and not path.startswith("/"):
        return f"{_hosts(host, names)}{colon}{names.text(path)}"
    if fstype in ("zfs", "virtiofs", "9p"):
        return names.scrub(text)
    return text if text in (fstype, *SOURCES, *FSTYPES) else names.of(text)


def _hosts(text: str, names: Identities) -> str:
    return re.sub(r"[^,@:\[\]]+", lambda found: names.of(found.group()), text)


def hosts_in(text: str) -> list[str]:
    """Return the hosts that a mount table or fstab names."""
    # A password may hold a slash: the host is then found only without the login.
    both = text + "\n" + re.sub(r"\S+", lambda word: without_login(word.group()), text)
    found = re.findall(r"(?:^|[ \t])(?://([^/\s]+)/|([^/\s:#=]+(?::\d+)?):/)", both, re.M)
    words = (word for pair in found for part in pair for word in re.split(r"[,@\[\]]|:\d+", part))
    return [word for word in words if word not in ("", HIDDEN)]
