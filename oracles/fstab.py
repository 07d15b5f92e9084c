# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our reading of fstab against libmount's (findmnt) and systemd's (systemd-fstab-generator, and what systemd
makes of the units that it writes)."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ansible_collections.durable.dbhost.plugins.module_utils.host.mount_api.options import split
from ansible_collections.durable.dbhost.plugins.module_utils.storage import fstab, mount_settings
from oracles import systemd
from oracles.contract import Answer, Case, agreed, declined, disagreed, mostly

KNOWN: dict[str, str] = {}


class Line(NamedTuple):
    """What a program reads of one line: its device's path, its type, and {setting: value} of its options."""

    device: str
    fstype: str
    settings: dict[str, str]


GENERATOR = "/lib/systemd/system-generators/systemd-fstab-generator"
_LIMIT = 60
#: Mount points of which systemd makes no unit, or of which it prints what is mounted.
_NO_UNIT = ("/", "/usr")

#: What most lines are made of, and what few are.
_SPECS = (
    "/dev/sda1",
    "/dev/mapper/a-b",
    "UUID=0a1b-2c3d",
    'UUID="0a1b-2c3d"',
    "UUID='0a1b'",
    "LABEL=a\\040b",
    "PARTUUID=1-2",
)
_ODD_SPECS = (
    *(
        'LABEL="a b"',
        "PARTLABEL=p",
        "ID=wwn-1",
        "server:/export",
        "//smb/share",
        "none",
        "tmpfs",
        "/srv/bound",
    ),
    *(
        '"/dev/sdb1"',
        "/dev/sd\\141",
        "uuid=1",
        "UUID=",
        'UUID="',
        "/dev/disk/by-id/x\\x2dy",
        "LABEL=a\\",
        "LABEL=ö",
    ),
)
_TARGETS = (
    "/srv/a",
    "/srv/a/",
    "/srv//b",
    "/srv/c\\040d",
    "/srv/e\\011f",
    "/srv/g-h",
    "/srv/./i",
    "/srv/j\\134k",
    "/",
    "/usr",
)
_ODD_TARGETS = (
    *(
        "none",
        "swap",
        "/srv/l\\\\m",
        "srv/n",
        "/srv/ö",
        "/srv/o#p",
        "/srv/\\043",
        '"/srv/q"',
        "/srv/..r",
        "/srv/s%t",
    ),
    *("/srv/a\\", "/srv/u\\12v", "/srv/\\303\\251", "/srv/w\\012x", "/srv/w\\134", "/.", "//", "/srv/\\400"),
)
_TYPES = ("ext4", "ext4", "ext4", "xfs", "auto", "ext3,ext4", "btrfs")
_ODD_TYPES = ("nfs", "none", "EXT4", "ext\\064", "swap", "tmpfs", '"ext4"', "ext4\\")
_OPTIONS = (
    *(
        "defaults",
        "noatime",
        "barrier=0",
        "barrier=1",
        "nobarrier",
        "barrier",
        "data=journal",
        "data=writeback",
        "rw",
    ),
    *(
        "ro",
        "nofail",
        "noauto",
        "x-systemd.requires=a\\x2db.mount",
        "x-systemd.automount",
        "_netdev",
        "bind",
        "commit=5",
    ),
    *(
        "x-a=%h",
        "%%",
        "%",
        "barrier=00",
        "barrier=0x0",
        "barrier=+0",
        "barrier=2",
        "relatime",
        "Barrier=0",
        "sync",
    ),
)
_ODD_OPTIONS = (
    *(
        "barrier\\075\\060",
        "noatime\\054barrier=0",
        "barrier=0\\054",
        "x\\134",
        "y\\",
        "\\\\",
        "a\\040b",
        'context="a,b"',
    ),
    *(
        "noatime\\012Options=barrier=0",
        "\\043",
        "'nobarrier'",
        '"nobarrier"',
        "bar\\x72ier=0",
        "subvol=ö",
        "#c",
        "",
    ),
    *(
        'context="a,barrier=1,b"',
        "x-systemd.makefs",
        "x-systemd.growfs",
        "user=a",
        "data=",
        "comment=systemd.automount",
    ),
)
_NUMBERS = ("0", "1", "2")
_ODD_NUMBERS = ("-1", "00", "x", "0x1", "1.5", "#", "+1", "9" * 12, "")
_BETWEEN = ("\t", "  ", " \t ", "\v", "\f", "\r", "\u00a0")
_ODD_LINES = (
    "",
    "# a comment",
    " # another",
    "\t",
    "   ",
    "word",
    "two words",
    "\\",
    "#\\",
    "/dev/sda1 /srv/z ext4 \\",
    "\r",
)
_ODD_ENDS = ("\r\n", "\n\n", "\\\n", "")


def build(numbers: random.Random) -> str:
    """Return a hostile fstab: most of each line is as it should be."""
    one = partial(mostly, numbers)

    def line() -> str:
        if numbers.random() < 0.1:
            return numbers.choice(_ODD_LINES)
        fields = [one(_SPECS, _ODD_SPECS), one(_TARGETS, _ODD_TARGETS), one(_TYPES, _ODD_TYPES)]
        fields.append(",".join(one(_OPTIONS, _ODD_OPTIONS, 0.15) for _ in range(numbers.randint(1, 3))))
        fields += [one(_NUMBERS, _ODD_NUMBERS, 0.03) for _ in range(numbers.randint(0, 2))]
        fields += [numbers.choice(("# note", "#note", "3", "note"))] if numbers.random() < 0.05 else []
        if numbers.random() < 0.05:
            fields = fields[: numbers.randint(1, 3)]
        return one(("",), (" ", "\t", "\v")) + "".join(
            field + one((" ",), _BETWEEN, 0.05) for field in fields
        )

    return "".join(line() + one(("\n",), _ODD_ENDS, 0.04) for _ in range(numbers.randint(1, 3)))


def prepare(directory: Path) -> Case:
    """Return a case that asks all three about one fstab."""
    path = directory / "fstab"

    def case(numbers: random.Random) -> Answer:
        text = build(numbers)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        try:
            entries = fstab.parse(text)
        except fstab.MalformedFstab:
            return declined
        wrong = [
            *_against("findmnt", entries, _findmnt(path)),
            *_against("systemd", entries, _systemd(directory, path)),
        ]
        if wrong:
            return disagreed("\n  ".join([repr(text), *(why for _known, why in wrong)]), _common(wrong))
        return agreed if any(fstab.ambiguity(entry) is None for entry in entries) else declined

    return case


def _common(wrong: list[tuple[str, str]]) -> str:
    """Return the class that all these disagreements are of, '' where there is none."""
    classes = {known for known, _why in wrong}
    return classes.pop() if len(classes) == 1 else ""


def _against(who: str, entries: list[fstab.Entry], theirs: dict[str, Line]) -> list[tuple[str, str]]:
    """Return (class, what differs) of a program's lines and ours, by mount point."""
    ours: dict[str, list[fstab.Entry]] = {}
    for entry in entries:
        ours.setdefault(_plain(entry.target), []).append(entry)
    wrong = [("", f"{who} alone mounts {target!r}: {theirs[target]}") for target in set(theirs) - set(ours)]
    for target, found in ours.items():
        if len(found) > 1 or fstab.ambiguity(found[0]) or (who == "systemd" and _has_no_unit(found[0])):
            continue
        entry = found[0]
        mine = Line(fstab.device_path(entry.spec), entry.fstype, mount_settings.fold(entry.options))
        if theirs.get(target) != mine:
            wrong.append(("", f"{target!r}: {who} {theirs.get(target)}, ours {mine}"))
    return wrong


def _has_no_unit(entry: fstab.Entry) -> bool:
    return entry.target in _NO_UNIT or "/" not in entry.target or entry.fstype == "swap"


def _plain(target: str) -> str:
    is_path = "/" in target
    return "/" + "/".join(part for part in target.split("/") if part not in ("", ".")) if is_path else target


def _findmnt(path: Path) -> dict[str, Line]:
    argv = ["findmnt", f"--tab-file={path}", "--list", "--json", "--output=SOURCE,TARGET,FSTYPE,OPTIONS"]
    said = subprocess.run(argv, capture_output=True, timeout=_LIMIT, check=False).stdout
    rows = json.loads(said.decode("utf-8", "surrogateescape"))["filesystems"] if said else []
    found: dict[str, Line] = {}
    for row in rows:
        options = mount_settings.fold(split(row["options"] or ""))
        found[_plain(row["target"])] = Line(fstab.device_path(row["source"]), row["fstype"], options)
    return found


def _systemd(directory: Path, path: Path) -> dict[str, Line]:
    made = [directory / name for name in ("normal", "early", "late", "wanted")]
    for each in made:
        shutil.rmtree(each, ignore_errors=True)
        each.mkdir()
    subprocess.run(
        [GENERATOR, *made[:3]],
        env={"SYSTEMD_FSTAB": str(path), "SYSTEMD_LOG_LEVEL": "emerg", "SYSTEMD_PROC_CMDLINE": ""},
        cwd="/",
        capture_output=True,
        timeout=_LIMIT,
        check=False,
    )
    names = [os.fsdecode(unit.name) for unit in made[0].glob("*.mount")]
    units = systemd.mounts(made[:1], names, made[3])
    return {
        _plain(unit["Where"]): Line(
            unit["What"],
            unit["File System Type"].replace("n/a", "auto"),
            mount_settings.fold(split(unit["Options"])),
        )
        for name, unit in units.items()
        if name in names and name not in ("-.mount", "usr.mount")
    }
