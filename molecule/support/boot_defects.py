# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Defects of the files that decide on a boot: how each is planted, what a check says of it, what the boot comes to.

The machine is layout `mounts`, with what support/boot_ground.py adds. Managed are /srv/journaled (ext4) and /srv/xfslog
(XFS), foreign are /srv/foreign (ext4), /srv/foreignxfs, /srv/vault (ext4 in LUKS) and
/srv/tmpfs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from .boot_ground import BOOTS, CRYPTTAB, FSTAB, READ_ONLY, STOPS, STOPS_OR_READ_ONLY, WITHOUT

#: {path: text} of what is planted; of the sound machine those of fstab and crypttab.
Files = Mapping[str, str]
Plant = Callable[[Files], dict[str, str]]


class Defect(NamedTuple):
    """`setting` is that of the report's row that tells of it, `said` words of the row's reason or remedy: FILE where the
    whole file is refused, SOUND where nothing is to be said. `boot` is what the next one comes to; `mounts` are mount points
    that it should have, beside those of the sound machine."""

    plant: Plant
    setting: str
    said: str
    boot: str = STOPS
    mounts: tuple[str, ...] = ()


FILE, SOUND = "fstab", ""
UNITS = "/etc/systemd/system"


def edit(mount: str, **fields: str | Callable[[str], str]) -> Plant:
    """Change fields of a mount point's line: `spec`, `target`, `fstype`, `options`, by a text or a function of what is there."""

    def plant(files: Files) -> dict[str, str]:
        lines = files[FSTAB].split("\n")
        (row,) = (
            number for number, line in enumerate(lines) if line.split()[1:2] == [mount] and line[0] != "#"
        )
        words = dict(zip(("spec", "target", "fstype", "options", "dump", "pass"), lines[row].split()))
        for name, new in fields.items():
            words[name] = new if isinstance(new, str) else new(words[name])
        lines[row] = " ".join(words.values())
        return {FSTAB: "\n".join(lines)}

    return plant


def add(*lines: str) -> Plant:
    """Write lines at the end of fstab; {/srv/x} in one is what the line of that mount point has for a device."""

    def plant(files: Files) -> dict[str, str]:
        specs = {words[1]: words[0] for words in map(str.split, files[FSTAB].splitlines()) if len(words) > 3}
        added = "".join(f"{line}\n" for line in lines)
        for target, spec in specs.items():
            added = added.replace(f"{{{target}}}", spec)
        return {FSTAB: files[FSTAB] + added}

    return plant


def whole(path: str, change: Callable[[str], str]) -> Plant:
    """Change a whole file."""
    return lambda files: {path: change(files[path])}


def unit(name: str, text: str, link: str = "") -> Plant:
    """Write a unit or a drop-in, and a link to it where `link` names one: an entry of a .requires directory."""
    return lambda files: {f"{UNITS}/{name}": text, **({f"{UNITS}/{link}": f"../{name}"} if link else {})}


def more(options: str) -> Callable[[str], str]:
    """Return what puts options behind those of a line."""
    return lambda said: f"{said},{options}"


def slip(spec: str) -> str:
    """Return a device with another last digit but one."""
    return f"{spec[:-2]}{'1' if spec[-2] == '0' else '0'}{spec[-1]}"


def capitals(spec: str) -> str:
    """Return a tag with a value in capitals."""
    tag, _equals, value = spec.partition("=")
    return f"{tag}={value.upper()}"


def another_tag(tag: str) -> Callable[[str], str]:
    """Return what gives a device another tag."""
    return lambda spec: f"{tag}={spec.partition('=')[2]}"


OPTIONS: dict[str, Defect] = {
    "a slip in an option": Defect(edit("/srv/foreign", options="defualts"), "options", "mean defaults?"),
    "in one of ours": Defect(edit("/srv/journaled", options=more("barier=1")), "options", "mean barrier=1?"),
    "in one of ours on XFS": Defect(edit("/srv/xfslog", options=more("noatmie")), "options", "mean noatime?"),
    "barier=1": Defect(edit("/srv/foreign", options="barier=1"), "options", "mean barrier=1?"),
    "nobarrier on XFS": Defect(
        edit("/srv/foreignxfs", options="nobarrier"), "options", "xfs does not know nobarrier"
    ),
    "data= on XFS": Defect(edit("/srv/foreignxfs", options="data=ordered"), "options", "xfs does not know"),
    "an option of XFS": Defect(edit("/srv/foreign", options="inode64"), "options", "does not know inode64"),
    "a word of two": Defect(edit("/srv/foreign", options="noatime,no-dev"), "options", "mean nodev?"),
    "nofail misspelt": Defect(edit("/srv/foreign", options="nofial"), "options", "mean nofail?"),
    "a full stop for a comma": Defect(
        edit("/srv/foreign", options="noatime.nodev"), "options", "noatime.nodev"
    ),
    "a number that is none": Defect(edit("/srv/foreign", options="commit=5s"), "options", "commit=5s"),
    "letters in capitals": Defect(edit("/srv/foreign", options="NOATIME"), "options", "NOATIME"),
    "of tmpfs": Defect(edit("/srv/tmpfs", options="siz=16M"), "options", "mean size=16M?"),
    "of overlay": Defect(
        add("overlay /srv/new overlay lowerdir=/etc:/usr,noatmie 0 0"), "options", "whether overlay takes"
    ),
    "two that contradict each other": Defect(
        edit("/srv/foreign", options="data=ordered,journal_async_commit"), "options", "journal_async_commit"
    ),
}
SOURCES: dict[str, Defect] = {
    "a missing UUID": Defect(edit("/srv/foreign", spec=slip), "source", "mean UUID="),
    "a missing UUID of ours": Defect(edit("/srv/journaled", spec=slip), "source", "mean UUID="),
    "a UUID in capitals": Defect(edit("/srv/foreign", spec=capitals), "source", "mean UUID="),
    "a missing label": Defect(add("LABEL=backup /srv/new ext4 defaults 0 2"), "source", "LABEL=backup"),
    "a label misspelt": Defect(edit("/srv/foreign", spec="LABEL=foriegn"), "source", "mean LABEL=foreign?"),
    "a missing PARTUUID": Defect(add("PARTUUID=0-01 /srv/new xfs defaults 0 0"), "source", "PARTUUID=0-01"),
    "a partition's label misspelt": Defect(
        edit("/srv/foreign", spec="PARTLABEL=foreign\\040prat"), "source", "mean PARTLABEL=foreign"
    ),
    "a missing path": Defect(add("/dev/sdz1 /srv/new ext4 defaults 0 2"), "source", "/dev/sdz1"),
    "a missing volume": Defect(add("/dev/mapper/vg-old /srv/new xfs defaults 0 0"), "source", "vg-old"),
    "a missing device of any type": Defect(
        add("/dev/sdz1 /srv/new auto defaults 0 0"), "source", "/dev/sdz1"
    ),
    "a tag misspelt": Defect(edit("/srv/foreign", spec=another_tag("UIUD")), "source", "mean UUID="),
    "a tag in small letters": Defect(edit("/srv/foreign", spec=another_tag("uuid")), "source", "mean UUID="),
    "a device without its directory": Defect(
        edit("/srv/foreign", spec="sdi1"), "source", "no tag and no path"
    ),
    "a bind mount of nothing": Defect(
        add("/srv/nothing /srv/new none bind 0 0"), "source", "/srv/nothing", BOOTS, ("/srv/new",)
    ),
    "an image that is gone": Defect(add("/srv/disk.img /srv/new ext4 loop 0 0"), "source", "/srv/disk.img"),
}
TYPES: dict[str, Defect] = {
    "another type": Defect(edit("/srv/foreign", fstype="btrfs"), "type", "mean ext4?"),
    "another type, of ours": Defect(edit("/srv/journaled", fstype="xfs"), "type", "holds ext4, not xfs"),
    "another type, of ours on XFS": Defect(
        edit("/srv/xfslog", fstype="ext4", options="defaults"), "type", "holds xfs"
    ),
    "an older type": Defect(edit("/srv/foreign", fstype="ext3"), "type", "holds ext4, not ext3"),
    "a type misspelt": Defect(edit("/srv/foreign", fstype="etx4"), "type", "no file system is called etx4"),
    "one without a device": Defect(edit("/srv/tmpfs", fstype="tmpsf"), "type", "mean tmpfs?"),
    "bind misspelt": Defect(add("/srv/bound /srv/new none bnid 0 0"), "type", "mean bind?"),
    "bind left out": Defect(add("/srv/bound /srv/new none defaults 0 0"), "type", "without bind"),
}
OTHERS: dict[str, Defect] = {
    "ours read-only": Defect(edit("/srv/journaled", options=more("ro")), "read_only", "for writing", WITHOUT),
    "two lines for one of ours": Defect(
        add("{/srv/journaled} /srv/journaled ext4 noatime 0 2"), "duplicate", "both mount", BOOTS
    ),
    "two lines for one mount point": Defect(
        add("{/srv/foreignxfs} /srv/foreign xfs defaults 0 0"), "duplicate", "both mount", BOOTS
    ),
    "a path that is spelt otherwise": Defect(
        add("{/srv/foreignxfs} //srv//foreign/ xfs defaults 0 0"), "duplicate", "both mount", BOOTS
    ),
    "bind mounts that need each other": Defect(
        add("/srv/a/x /srv/b none bind 0 0", "/srv/b/y /srv/a none bind 0 0"),
        "order",
        "wait for each other",
        WITHOUT,
        ("/srv/a", "/srv/b"),
    ),
    "requirements in a ring": Defect(
        lambda files: edit("/srv/foreignxfs", options="x-systemd.requires=/srv/foreign")(
            edit("/srv/foreign", options="x-systemd.requires-mounts-for=/srv/foreignxfs/x")(files)
        ),
        "order",
        "wait for each other",
        WITHOUT,
    ),
    "an order in a ring": Defect(
        lambda files: edit("/srv/foreignxfs", options="x-systemd.after=srv-foreign.mount")(
            edit("/srv/foreign", options="x-systemd.after=srv-foreignxfs.mount")(files)
        ),
        "order",
        "wait for each other",
        WITHOUT,
    ),
    "before one that is above": Defect(
        add("tmpfs /srv/foreign/in tmpfs x-systemd.before=/srv/foreign 0 0"),
        "order",
        "wait for each other",
        WITHOUT,
        ("/srv/foreign/in",),
    ),
    "a service that is not there": Defect(
        edit("/srv/foreign", options="x-systemd.requires=zfs-improt.service"),
        "requires",
        "zfs-improt.service",
        STOPS_OR_READ_ONLY,
    ),
    "a device that is not there": Defect(
        edit("/srv/foreign", options="x-systemd.requires=/dev/disk/by-id/gone"), "requires", "by-id/gone"
    ),
    "a letter that is no UTF-8": Defect(
        add("tmpfs /srv/n\udce4w tmpfs defaults 0 0"), "letters", "no UTF-8", READ_ONLY
    ),
}
FILES: dict[str, Defect] = {
    "a NUL": Defect(edit("/srv/foreign", options="defa\0ults"), FILE, "carriage return or a NUL"),
    "the ends of lines of another system": Defect(
        whole(FSTAB, lambda text: text.replace("\n", "\r\n")), FILE, "observed a carriage return", BOOTS
    ),
    "a byte order mark before a comment": Defect(
        whole(FSTAB, lambda text: f"\ufeff{text}"), FILE, "line 1: observed a byte order mark"
    ),
    "a byte order mark before a line": Defect(
        whole(FSTAB, lambda text: "\ufeff" + text[text.index("\nUUID") + 1 :]),
        FILE,
        "byte order mark",
        BOOTS,  # that line is the one of /
    ),
    "a long line": Defect(edit("/srv/foreign", options=f"defaults,{'x' * 5000}"), FILE, "longer than 4095"),
    "a line of 10 MB": Defect(
        edit("/srv/foreign", options="x," * 5_000_000), FILE, "/etc/fstab: longer than"
    ),
    "too few fields": Defect(add("/dev/sdb"), FILE, "observed 1 field", BOOTS),
    "too many": Defect(edit("/srv/foreign", options="defaults, noatime"), FILE, "observed 7 fields", BOOTS),
    "a blank in a mount point": Defect(
        edit("/srv/foreign", target="/srv/for eign"), FILE, "observed 7 fields"
    ),
}
ENCRYPTED: dict[str, Defect] = {
    "a container that nothing opens": Defect(whole(CRYPTTAB, lambda _text: ""), "container", "opens vault"),
    "one whose line is a comment": Defect(
        whole(CRYPTTAB, lambda text: f"# {text}"), "container", "opens vault"
    ),
    "another device of that name": Defect(
        whole(
            CRYPTTAB,
            lambda text: " ".join([text.split()[0], slip(text.split()[1]), *text.split()[2:]]) + "\n",
        ),
        "container",
        "as vault",
    ),
    "the container for what lies in it": Defect(
        lambda files: edit("/srv/vault", spec=files[CRYPTTAB].split()[1])(files), "type", "holds crypto_LUKS"
    ),
}
OF_UNITS: dict[str, Defect] = {
    "a drop-in": Defect(
        unit("srv-foreign.mount.d/mine.conf", "[Mount]\nOptions=defualts\n"), "options", "mine.conf names"
    ),
    "a unit in the place of a line": Defect(
        unit("srv-foreign.mount", "[Mount]\nWhat=UUID=gone\nWhere=/srv/foreign\nType=ext4\n"),
        "source",
        "UUID=gone",
    ),
    "a unit of its own": Defect(
        unit(
            "srv-new.mount",
            "[Mount]\nWhat=LABEL=gone\nWhere=/srv/new\nType=ext4\n",
            "local-fs.target.requires/srv-new.mount",
        ),
        "source",
        "LABEL=gone",
    ),
    "one that is masked": Defect(
        lambda files: {
            f"{UNITS}/srv-new.mount": "[Mount]\nWhat=LABEL=gone\nWhere=/srv/new\nType=ext4\n",
            f"{UNITS}/local-fs.target.requires/srv-new.mount": "/dev/null",
        },
        SOUND,
        "",
        BOOTS,
    ),
}
RULES, GENERATORS = "/etc/udev/rules.d", "/etc/systemd/system-generators"


def mask(path: str) -> Plant:
    """Mask a unit, a file of rules or a generator."""
    return lambda _files: {path: "/dev/null"}


def rule(text: str) -> Plant:
    """Write a rule of udev; {/srv/x} in it is the UUID by which fstab mounts that."""

    def plant(files: Files) -> dict[str, str]:
        made = text
        for words in map(str.split, files[FSTAB].splitlines()):
            if len(words) > 3:
                made = made.replace(f"{{{words[1]}}}", words[0].partition("=")[2])
        return {f"{RULES}/99-zz-mine.rules": f"{made}\n"}

    return plant


def failing(of: str) -> Plant:
    """Have a unit require a service that fails."""
    text = "[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\nExecStart=/bin/false\n"
    return unit("mine.service", text, f"{of}.requires/mine.service")


#: Files beside fstab that act at a boot (storage/boot_blockers.py).
BESIDE: dict[str, Defect] = {
    "a masked mount": Defect(mask(f"{UNITS}/srv-foreign.mount"), "masked", "systemctl unmask", READ_ONLY),
    "a masked mount of ours": Defect(
        mask(f"{UNITS}/srv-journaled.mount"), "masked", "systemctl unmask", READ_ONLY
    ),
    "a mask that no line needs": Defect(mask(f"{UNITS}/srv-nothing.mount"), SOUND, "", BOOTS),
    "a masked remount of /": Defect(
        mask(f"{UNITS}/systemd-remount-fs.service"), "masked", "systemctl unmask", READ_ONLY
    ),
    "a name that another device takes": Defect(
        rule(
            'ENV{ID_FS_UUID}=="{/srv/foreignxfs}", SYMLINK+="disk/by-uuid/{/srv/foreign}", OPTIONS+="link_priority=100"'
        ),
        "link",
        "99-zz-mine.rules line 1 gives",
    ),
    "a device that systemd passes over": Defect(
        rule('ENV{ID_FS_UUID}=="{/srv/foreign}", ENV{SYSTEMD_READY}="0"'), "link", "SYSTEMD_READY"
    ),
    "a device of ours that systemd passes over": Defect(
        rule('ENV{ID_FS_UUID}=="{/srv/journaled}", TAG-="systemd"'), "link", "TAG-=systemd"
    ),
    "a link of one's own": Defect(
        rule('ENV{ID_FS_UUID}=="{/srv/foreign}", SYMLINK+="mine"'), SOUND, "", BOOTS
    ),
    "masked rules of the names": Defect(
        mask(f"{RULES}/60-persistent-storage.rules"), "rules", "60-persistent-storage.rules"
    ),
    "a service of local-fs.target that fails": Defect(failing("local-fs.target"), "requires", "mine.service"),
    "a service of a mount that fails": Defect(failing("srv-journaled.mount"), "requires", "mine.service"),
    "a condition of a mount": Defect(
        unit("srv-journaled.mount.d/mine.conf", "[Unit]\nConditionPathExists=/gone\n"),
        "requires",
        "ConditionPathExists",
        WITHOUT,
    ),
    "a generator": Defect(
        lambda _files: {
            f"{GENERATORS}/mine": '#!/bin/sh\nmkdir "$1/srv-foreign.mount.d"\n'
            'printf "[Mount]\\nOptions=defualts\\n" > "$1/srv-foreign.mount.d/mine.conf"\n'
        },
        "generator",
        "system-generators/mine",
    ),
    "a generator that makes nothing": Defect(
        lambda _files: {f"{GENERATORS}/mine": "#!/bin/sh\nexit 0\n"}, SOUND, "", BOOTS
    ),
    "a masked generator of fstab": Defect(
        mask(f"{GENERATORS}/systemd-fstab-generator"), "generator", "masks", READ_ONLY
    ),
    "a default target for repairs": Defect(
        lambda _files: {f"{UNITS}/default.target": "/usr/lib/systemd/system/rescue.target"},
        "start",
        "rescue.target",
    ),
}
OF_ROOT: dict[str, Defect] = {
    "a slip on /": Defect(edit("/", options="noatmie"), "options", "mean noatime?", READ_ONLY),
    "/ read-only": Defect(edit("/", options=more("ro")), "read_only", "/ read-only", READ_ONLY),
    "a missing UUID of /": Defect(edit("/", spec=slip), "source", "mean UUID=", READ_ONLY),
    "a UUID of / in capitals": Defect(edit("/", spec=capitals), "source", "mean UUID=", READ_ONLY),
    "a missing label of /": Defect(edit("/", spec="LABEL=root"), "source", "LABEL=root", READ_ONLY),
    "a missing path of /": Defect(edit("/", spec="/dev/sdz1"), "source", "/dev/sdz1", BOOTS),
    "a tag of / misspelt": Defect(edit("/", spec=another_tag("UIUD")), "source", "mean UUID=", BOOTS),
    "another type of /": Defect(edit("/", fstype="btrfs"), "type", "not btrfs", BOOTS),
    "a type of / misspelt": Defect(edit("/", fstype="xsf"), "type", "called xsf", BOOTS),
    "two lines for /": Defect(add("{/} / auto defaults 0 0"), "duplicate", "both mount", BOOTS),
}
OF_EXT4_ROOT: dict[str, Defect] = {
    "a value of / misspelt": Defect(
        edit("/", options="errors=remount_ro"), "options", "mean errors=remount-ro?", READ_ONLY
    ),
    "another journal mode of /": Defect(
        edit("/", options=more("data=journal")), "options", "data=journal", READ_ONLY
    ),
}
OF_XFS_ROOT: dict[str, Defect] = {
    "errors= on / with XFS": Defect(
        edit("/", options="errors=remount-ro"), "options", "errors=remount-ro", READ_ONLY
    ),
    "nobarrier on / with XFS": Defect(edit("/", options="nobarrier"), "options", "nobarrier", READ_ONLY),
    "data= on / with XFS": Defect(edit("/", options="data=ordered"), "options", "data=ordered", READ_ONLY),
    "ext4 for / with XFS": Defect(edit("/", fstype="ext4"), "type", "holds xfs, not ext4", BOOTS),
}
ODD: dict[str, Defect] = {
    "as it is": Defect(add(), SOUND, "", BOOTS),
    "a missing UUID with nofail": Defect(add("UUID=1111-2222 /srv/new vfat nofail 0 0"), SOUND, "", BOOTS),
    "a slip with noauto": Defect(add("/dev/sdz1 /srv/new ext4 noauto,defualts 0 0"), SOUND, "", BOOTS),
    "a defect in a comment": Defect(add("  #UUID=none /srv/new ext4 defualts 0 0", " \t"), SOUND, "", BOOTS),
    "a label with quotes": Defect(edit("/srv/foreign", spec='LABEL="foreign"'), SOUND, "", BOOTS),
    "a partition's label with a blank": Defect(
        edit("/srv/foreign", spec="PARTLABEL=foreign\\040part"), SOUND, "", BOOTS
    ),
    "a comment behind all fields": Defect(
        add("tmpfs /srv/new tmpfs defaults 0 0 # moved"), SOUND, "", BOOTS, ("/srv/new",)
    ),
    "a blank, written as it should be": Defect(
        add("tmpfs /srv/new\\040one tmpfs defaults"), SOUND, "", BOOTS, ("/srv/new\\x20one",)
    ),
    "on the first access": Defect(
        add("LABEL=archive /srv/new ext4 x-systemd.automount 0 2"), SOUND, "", BOOTS
    ),
    "of the network": Defect(add("UUID=aaaa /srv/new ext4 _netdev 0 2"), SOUND, "", BOOTS),
    "a swap space that is away": Defect(add("/dev/sdz2 none swap sw,pri=5 0 0"), SOUND, "", BOOTS),
    "a bind mount upon itself": Defect(
        add("/srv/lower /srv/lower none bind,nodev 0 0"), SOUND, "", BOOTS, ("/srv/lower",)
    ),
    "any type": Defect(edit("/srv/foreign", fstype="auto"), SOUND, "", BOOTS),
    "one of two types": Defect(edit("/srv/foreign", fstype="ext4,xfs"), SOUND, "", BOOTS),
    "nofail behind fail": Defect(add("LABEL=archive /srv/new ext4 fail,nofail 0 2"), SOUND, "", BOOTS),
}
ON_EXT4 = {
    **OPTIONS,
    **SOURCES,
    **TYPES,
    **OTHERS,
    **FILES,
    **ENCRYPTED,
    **OF_UNITS,
    **BESIDE,
    **OF_ROOT,
    **OF_EXT4_ROOT,
    **ODD,
}
#: What may depend on the root: its own line, and what has the boot leave it read-only.
ON_XFS = {
    **OF_ROOT,
    **OF_XFS_ROOT,
    **FILES,
    **{name: OTHERS[name] for name in ("a service that is not there", "a letter that is no UTF-8")},
    **{name: OPTIONS[name] for name in ("a slip in an option", "nobarrier on XFS")},
    **{name: ODD[name] for name in ("as it is", "a missing UUID with nofail")},
}
