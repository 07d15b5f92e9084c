# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Defects planted in the fstab of a captured host: each is noticed, and none is made worse; what is right is not named."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.capture.recording import ReplayHost, loads
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.storage import fstab, mount_options
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.storage.mount_options import Target

from ..fakes.boot_texts import with_texts
from ..fakes.captured import captured
from ..fakes.runs import NOW, inputs
from ..fakes.small_host import SmallHost
from .test_device_names import know

#: By mount point, what the captured host's fstab mounts there: a new capture has other UUIDs.
SPECS = {
    entry.target: entry.spec
    for entry in fstab.parse(loads(captured("captures/default.json"))["calls"]["read"]["/etc/fstab"])
}
ROOT = SPECS["/"]
PG = SPECS["/srv/pgdata"]  # sda1, ext4
MS = SPECS["/srv/mssql"]  # sdc1, xfs
FB = SPECS["/srv/fbdata"]  # sdb, ext4
FC = SPECS["/srv/faircom"]  # vdc1, xfs
SOUND = f"""\
# /etc/fstab: static file system information.
{ROOT} / ext4 errors=remount-ro 0 1
{PG} /srv/pgdata ext4 defaults 0 2
{MS} /srv/mssql xfs defaults 0 2
{FB} /srv/fbdata ext4 defaults 0 2
{FC} /srv/faircom xfs defaults 0 2
"""
MANAGED = ["/srv/pgdata", "/srv/mssql"]
PG_LINE, FB_LINE = f"{PG} /srv/pgdata ext4 defaults 0 2\n", f"{FB} /srv/fbdata ext4 defaults 0 2\n"
#: A slip in its last digit but one.
NOBODY = f"{PG[:-2]}{'1' if PG[-2] == '0' else '0'}{PG[-1]}"


def host(text: str) -> ReplayHost:
    """Return the captured host with another fstab; what nobody asked of it is not there."""
    recording = loads(captured("captures/default.json"))
    recording["calls"]["read"]["/etc/fstab"] = text
    # A replay queries no kernel, and the tables cover this one.
    recording["calls"]["read"]["/proc/sys/kernel/osrelease"] = "6.12.5\n"
    recording["calls"].setdefault("locate", {})["/srv"] = ["/srv", 0o40755]
    return ReplayHost(recording, lenient=True)


def look(text: str) -> dict[str, Any]:
    return assess(inputs("strict", mounts=MANAGED), collect(host(text), NOW), NOW)


def rows(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return (setting, verdict, why and remedy) of what is said of the boot."""
    return [
        (row["setting"], row["verdict"], f"{row['why']}; {row['remedy']}")
        for row in found["settings"]
        if row["wanted_persisted"] == "known"
    ]


def faults(text: str) -> list[dict[str, Any]]:
    found = with_texts(collect(host(text), NOW)["boot_faults"])
    assert isinstance(found, list)
    return found


def with_line(line: str) -> str:
    return f"{SOUND}{line}\n"


def with_pg(line: str) -> str:
    return SOUND.replace(PG_LINE, f"{line}\n")


def with_fb(line: str) -> str:
    return SOUND.replace(FB_LINE, f"{line}\n")


STOPS = "the next boot stops: "
LEAVES = "the next boot leaves / read-only: "
#: The fstab; the setting of the row; what it says.
PLANTED = {
    "a slip in an option of ours": (
        with_pg(f"{PG} /srv/pgdata ext4 defualts 0 2"),
        "options",
        "mean defaults?",
    ),
    "and of another's": (with_fb(f"{FB} /srv/fbdata ext4 defualts 0 2"), "options", "line 5"),
    "barier=1 of ours": (with_pg(f"{PG} /srv/pgdata ext4 barier=1 0 2"), "options", "mean barrier=1?"),
    "barier=1 of another's": (with_fb(f"{FB} /srv/fbdata ext4 barier=1 0 2"), "options", STOPS),
    "noatmie on /": (SOUND.replace("errors=remount-ro", "noatmie"), "options", "mean noatime?"),
    "a value that is misspelt": (
        SOUND.replace("errors=remount-ro", "errors=remount_ro"),
        "options",
        "mean errors=remount-ro?",
    ),
    "an option of ext4 for XFS": (
        SOUND.replace("/srv/faircom xfs defaults", "/srv/faircom xfs nobarrier"),
        "options",
        "xfs does not know nobarrier",
    ),
    "data= for XFS": (
        SOUND.replace("/srv/faircom xfs defaults", "/srv/faircom xfs data=ordered"),
        "options",
        STOPS,
    ),
    "an option of XFS for ext4": (
        with_fb(f"{FB} /srv/fbdata ext4 inode64 0 2"),
        "options",
        "does not know inode64",
    ),
    "a word of two": (with_fb(f"{FB} /srv/fbdata ext4 noatime,no-dev 0 2"), "options", "mean nodev?"),
    "nofail misspelt": (with_fb(f"{FB} /srv/fbdata ext4 nofial 0 2"), "options", "mean nofail?"),
    "a full stop for a comma": (with_fb(f"{FB} /srv/fbdata ext4 noatime.nodev 0 2"), "options", STOPS),
    "a number that is none": (with_fb(f"{FB} /srv/fbdata ext4 commit=5s 0 2"), "options", "commit=5s"),
    "letters in capitals": (with_fb(f"{FB} /srv/fbdata ext4 NOATIME 0 2"), "options", "NOATIME"),
    "of tmpfs": (with_line("tmpfs /srv/tmp tmpfs siz=16M 0 0"), "options", "mean size=16M?"),
    "of vfat": (with_line(f"{ROOT} /boot/efi auto umsk=0077 0 1"), "options", "umsk"),
    "of overlay": (
        with_line("overlay /srv/over overlay lowerdir=/etc,noatmie 0 0"),
        "options",
        "it is unknown whether the next boot can mount /srv/over",
    ),
    "a missing UUID of ours": (
        with_pg(f"{NOBODY} /srv/pgdata ext4 defaults 0 2"),
        "source",
        f"mean {PG}?",
    ),
    "a missing UUID of another's": (with_fb(f"{NOBODY} /srv/fbdata ext4 defaults 0 2"), "source", STOPS),
    "an UUID in capitals": (
        with_fb(f"UUID={FB[5:].upper()} /srv/fbdata ext4 defaults 0 2"),
        "source",
        f"mean {FB}?",
    ),
    "a missing label": (with_line("LABEL=backup /srv/backup ext4 defaults 0 2"), "source", "LABEL=backup"),
    "a label misspelt": (SOUND.replace(ROOT, "LABEL=dbhost-rot"), "source", "mean LABEL=dbhost-root?"),
    "a missing PARTUUID": (
        with_line("PARTUUID=0-01 /srv/backup xfs defaults 0 2"),
        "source",
        "PARTUUID=0-01",
    ),
    "a missing PARTLABEL": (with_line('PARTLABEL="old data" /srv/b xfs defaults 0 0'), "fstab", "7 fields"),
    "a missing path": (with_line("/dev/sdz1 /srv/backup ext4 defaults 0 2"), "source", "/dev/sdz1"),
    "a missing volume": (with_line("/dev/mapper/vg-old /srv/old xfs defaults 0 2"), "source", "vg-old"),
    "a missing device of any type": (with_line("/dev/sdz1 /srv/old auto defaults 0 2"), "source", STOPS),
    "a tag misspelt": (with_fb(f"UIUD={FB[5:]} /srv/fbdata ext4 defaults 0 2"), "source", f"mean {FB}?"),
    "a tag in small letters": (
        with_fb(f"uuid={FB[5:]} /srv/fbdata ext4 defaults 0 2"),
        "source",
        f"mean {FB}?",
    ),
    "a device without its directory": (
        with_fb("sdb /srv/fbdata ext4 defaults 0 2"),
        "source",
        "no tag and no path",
    ),
    "a bind mount of nothing": (
        with_line("/srv/nothing /srv/b none bind 0 0"),
        "source",
        "the next boot mounts an empty directory at /srv/b: /srv/nothing",
    ),
    "an image that is gone": (with_line("/srv/disk.img /srv/b ext4 loop 0 0"), "source", "/srv/disk.img"),
    "another type, of ours": (with_pg(f"{PG} /srv/pgdata xfs defaults 0 2"), "type", "holds ext4, not xfs"),
    "another type, of another's": (with_fb(f"{FB} /srv/fbdata btrfs defaults 0 2"), "type", "mean ext4?"),
    "another type, of the root": (
        SOUND.replace("/ ext4", "/ btrfs"),
        "type",
        "it is unknown whether the next boot can mount /: ",
    ),
    "a missing path of the root": (
        SOUND.replace(ROOT, "/dev/sdz1"),
        "source",
        "it is unknown whether the next boot can mount /: /dev/sdz1",
    ),
    "a missing UUID of the root": (SOUND.replace(ROOT, "UUID=gone"), "source", LEAVES),
    "an older type": (with_fb(f"{FB} /srv/fbdata ext3 defaults 0 2"), "type", "holds ext4, not ext3"),
    "a type misspelt": (
        with_fb(f"{FB} /srv/fbdata etx4 defaults 0 2"),
        "type",
        "no file system is called etx4",
    ),
    "one without a device": (with_line("tmpfs /srv/tmp tmpsf size=16M 0 0"), "type", "mean tmpfs?"),
    "bind misspelt": (with_line("/srv/pgdata /srv/b none bnid 0 0"), "type", "mean bind?"),
    "bind left out": (
        with_line("/srv/pgdata /srv/b none defaults 0 0"),
        "type",
        "no file system without bind",
    ),
    "the root read-only": (
        SOUND.replace("errors=remount-ro", "ro,errors=remount-ro"),
        "read_only",
        "leaves / read-only",
    ),
    "ours read-only": (
        with_pg(f"{PG} /srv/pgdata ext4 ro 0 2"),
        "read_only",
        "does not mount /srv/pgdata for writing",
    ),
    "two lines for one of ours": (SOUND + PG_LINE, "duplicate", "line 3 and /etc/fstab line 7 both mount"),
    "two lines for another's": (with_line(f"{FC} /srv/fbdata xfs defaults 0 2"), "duplicate", "line 5 and"),
    "the first of two by hand alone": (
        with_fb(f"{FB} /srv/fbdata ext4 noauto 0 2\n{FC} /srv/fbdata xfs defaults 0 2"),
        "duplicate",
        "systemd takes the first alone",
    ),
    "a path that is spelt otherwise": (
        with_line(f"{FC} //srv//fbdata/ xfs defaults 0 2"),
        "duplicate",
        "both mount",
    ),
    "bind mounts that need each other": (
        with_line("/srv/a/x /srv/b none bind 0 0\n/srv/b/y /srv/a none bind 0 0"),
        "order",
        "lines 7, 8 wait for each other (/srv/b, /srv/a)",
    ),
    "requirements in a ring": (
        SOUND.replace(
            "/srv/fbdata ext4 defaults", "/srv/fbdata ext4 x-systemd.requires-mounts-for=/srv/faircom/x"
        ).replace("/srv/faircom xfs defaults", "/srv/faircom xfs x-systemd.requires=/srv/fbdata"),
        "order",
        "lines 5, 6 wait for each other (/srv/fbdata, /srv/faircom)",
    ),
    "an order in a ring": (
        SOUND.replace(
            "/srv/fbdata ext4 defaults", "/srv/fbdata ext4 x-systemd.after=srv-faircom.mount"
        ).replace("/srv/faircom xfs defaults", "/srv/faircom xfs x-systemd.after=srv-fbdata.mount"),
        "order",
        "leaves a mount out: ",
    ),
    "before one that is above": (
        with_fb(f"{FB} /srv/faircom/fb ext4 x-systemd.before=/srv/faircom 0 2"),
        "order",
        "lines 5, 6 wait for each other",
    ),
    "a service that is not there": (
        with_fb(f"{FB} /srv/fbdata ext4 x-systemd.requires=zfs-improt.service 0 2"),
        "requires",
        "the next boot stops or leaves / read-only: ",
    ),
    "a device that is not there": (
        with_fb(f"{FB} /srv/fbdata ext4 x-systemd.requires=/dev/disk/by-id/gone 0 2"),
        "requires",
        STOPS,
    ),
    "a NUL": (
        with_fb(f"{FB} /srv/fbdata ext4 defa\0ults 0 2"),
        "fstab",
        "line 5: observed a carriage return or a NUL",
    ),
    "the ends of lines of another system": (
        SOUND.replace("\n", "\r\n"),
        "fstab",
        "line 2: observed a carriage return",
    ),
    "a mark of the order of bytes before a comment": (
        f"\ufeff{SOUND}",
        "fstab",
        "line 1: observed a byte order mark",
    ),
    "and before a line": (
        f"\ufeff{SOUND.partition('#')[0]}{FB_LINE}",
        "fstab",
        "line 1: observed a byte order mark",
    ),
    "a letter that is no UTF-8": (with_fb(f"{FB} /srv/fb\udce4 ext4 defaults 0 2"), "letters", LEAVES),
    "a long line": (with_fb(f"{FB} /srv/fbdata ext4 defaults,{'x' * 5000} 0 2"), "fstab", "longer than 4095"),
    "a very long one": (
        with_fb(f"{FB} /srv/fbdata ext4 {'x,' * 5_000_000} 0 2"),
        "fstab",
        "longer than 4095",
    ),
    "too few fields": (with_line("/dev/sdb"), "fstab", "line 7: observed 1 field"),
    "too many": (
        with_fb(f"{FB} /srv/fbdata ext4 defaults, noatime 0 2"),
        "fstab",
        "line 5: observed 7 fields",
    ),
    "a blank in a mount point": (
        with_fb(f"{FB} /srv/fb data ext4 defaults 0 2"),
        "fstab",
        "line 5: observed 7 fields",
    ),
}


@pytest.mark.fact(69)
@pytest.mark.parametrize("name", PLANTED)
def test_each_defect_is_noticed_and_fails_the_run(name: str) -> None:
    text, setting, said = PLANTED[name]
    found = look(text)
    assert found["verdict"] in ("drifted", "unknown", "blocked")
    assert found["fails"]
    if setting == "fstab":
        assert found["verdict"] == "blocked" and said in "; ".join(found["why"])
        return
    told = [row for row in rows(found) if row[0] == setting]
    assert told and said in "; ".join(why for _setting, _verdict, why in told)
    assert all(verdict in ("drift_persisted", "unknown") for _setting, verdict, _why in told)
    assert any(re.search(r"line \d|lines \d", why) for _setting, _verdict, why in told)
    assert any(told[0][2] in reason for reason in found["why"])


@pytest.mark.parametrize("name", PLANTED)
def test_no_plan_makes_one_worse(name: str) -> None:
    text = PLANTED[name][0]
    wanted = [
        Target("/srv/pgdata", {"barrier": "on", "data_mode": "ordered", "atime": "noatime"}),
        Target("/srv/mssql", {"atime": "noatime"}),
    ]
    try:
        after = mount_options.plan(host(text), wanted).fstab_after
    except ChangeFailed:
        return  # Nothing is written.
    ours = ("/srv/pgdata", "/srv/mssql", "# durable.dbhost")
    kept = [line for line in text.split("\n") if not any(word in line for word in ours)]
    assert [line for line in after.split("\n") if not any(word in line for word in ours)] == kept
    before = {(fault["target"], fault["fault"], *fault["options"]) for fault in faults(text)}
    assert {(fault["target"], fault["fault"], *fault["options"]) for fault in faults(after)} <= before


#: What looks odd, and is right: a boot takes it.
RIGHT = {
    "as an installer writes it": "",
    "a comment": "#UUID=none /srv/x ext4 defualts 0 0",
    "an indented one, and a line of blanks": "  # x\n \t",
    "a comment behind all fields": f"{FC} /srv/faircom2 xfs defaults 0 2 # moved",
    "a swap space, and its word": "/dev/sdz2 none swap sw,pri=5 0 0",
    "a swap file": "/swapfile swap swap defaults 0 0",
    "tmpfs": "tmpfs /srv/tmp tmpfs size=50%,mode=1777,nosuid,nodev 0 0",
    "a path for one": "/ramdisk /srv/tmp tmpfs defaults 0 0",
    "any name for tmpfs": "none /srv/tmp tmpfs defaults 0 0",
    "the kernel's own": "proc /proc proc defaults,hidepid=2,gid=proc 0 0",
    "devpts": "devpts /srv/pts devpts gid=5,mode=620,ptmxmode=666 0 0",
    "a bind mount": "/srv/pgdata /var/lib/pg none bind 0 0",
    "a bind mount that names a type": "/srv/pgdata /var/lib/pg ext4 rw,bind 0 0",
    "one upon itself": "/srv /srv none bind,nodev 0 0",
    "mounted by the initramfs": f"{FC} /srv/early xfs x-initrd.mount,x-systemd.device-timeout=0 0 2",
    "of the hypervisor": "shared /srv/share 9p trans=virtio,version=9p2000.L,msize=262144,cache=none 0 0",
    "overlay": "overlay /srv/over overlay lowerdir=/srv/l,upperdir=/srv/u,workdir=/srv/w,redirect_dir=on 0 0",
    "escapes": f"{FC} /srv/two\\040words xfs defaults 0 2",
    "noauto of a device that is away": "/dev/sdz1 /media/usb auto noauto,user 0 0",
    "a drive without a disk": "/dev/sr0 /media/cdrom0 udf,iso9660 user,noauto 0 0",
    "nofail of a device that is away": "UUID=1111-2222 /media/backup vfat nofail,x-systemd.device-timeout=5s 0 0",
    "on the first access": "LABEL=archive /srv/archive ext4 x-systemd.automount 0 2",
    "discard": f"{FC} /srv/other xfs defaults,discard 0 2",
    "a share, and the file of its password": (
        "//files/share /srv/share cifs credentials=/root/.smb,vers=3.0,uid=1000,_netdev,nobrl,cache=loose 0 0"
    ),
    "NFS": "files:/export /srv/nfs nfs4 rw,hard,timeo=600,retrans=2,noresvport,nconnect=8,_netdev 0 0",
    "a label with quotes": 'LABEL="dbhost-root" /srv/again ext4 defaults 0 2',
    "ext4 for what is ext4, by its path": "/dev/sdb /srv/again ext4 acl,user_xattr,errors=continue,commit=30 0 2",
    "any type": "/dev/sdb /srv/again auto defaults 0 2",
    "a type by its program": "user@host:/x /srv/sshfs fuse.sshfs allow_other,IdentityFile=/root/.ssh/id,_netdev 0 0",
    "options of other programs": f"{FC} /srv/x xfs x-gvfs-show,X-mount.mkdir=0755,comment=systemd.automount 0 2",
    "two that a person mounts": "/dev/sdz1 /mnt auto noauto 0 0\n/dev/sdy1 /mnt auto noauto 0 0",
    "one in another": f"{FC} /srv/faircom/deep/er xfs defaults 0 2",
    "one after another": f"{FC} /srv/f xfs x-systemd.after=srv-fbdata.mount,x-systemd.requires-mounts-for=/srv/fbdata 0 2",
    "a device that another waits for": f"{FC} /srv/f xfs x-systemd.requires=/dev/disk/by-uuid/{FC.partition('=')[2]} 0 2",
    "no numbers at the end": f"{FC} /srv/f xfs defaults",
    "no options": f"{FC} /srv/f xfs",
    "the label of a partition, with blanks": "PARTLABEL=EFI\\040System /boot/efi vfat umask=0077,nofail 0 1",
    "a network's device": "UUID=aaaa /srv/iscsi ext4 _netdev 0 2",
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_not_named(name: str) -> None:
    found = look(with_line(RIGHT[name]))
    assert rows(found) == []
    assert not any("fstab" in why and "next boot" in why for why in found["why"]), found["why"]


def test_ours_is_named_also_where_the_boot_goes_on_without_it() -> None:
    text = with_pg(f"{NOBODY} /srv/pgdata ext4 nofail 0 2")
    ((setting, verdict, why),) = rows(look(text))
    assert (setting, verdict) == ("source", "drift_persisted")
    assert why.startswith("the next boot does not mount /srv/pgdata: ")


@pytest.mark.parametrize(
    ("line", "options", "boot"),
    [
        (f"{ROOT} / ext4 noatmie 0 1", ["noatmie"], "read_only"),
        (f"{PG} /srv/pgdata ext4 rw,barier=1,defaultz 0 2", ["barier=1", "defaultz"], "required"),
        (f"{FC} /srv/old xfs nobarrier 0 0", ["nobarrier"], "required"),
        (f"{FC} /srv/old xfs nobarrier,nofail 0 0", ["nobarrier"], "optional"),
        (f"{FC} /srv/old xfs nobarrier,noauto 0 0", ["nobarrier"], "optional"),
        (f"{FC} /srv/old xfs nobarrier,noauto,auto 0 0", ["nobarrier"], "required"),
        (f"{FC} /srv/old xfs nobarrier,_netdev 0 0", ["nobarrier"], "optional"),
        (f"{FC} /srv/old xfs nobarrier,x-systemd.automount 0 0", ["nobarrier"], "optional"),
        # mount(8) takes a comma that is written as an escape for one, systemd does not.
        (f"{PG} /srv/pgdata ext4 rw\\054barier=1 0 2", ["rw\\054barier=1", "barier=1"], "required"),
    ],
)
def test_whether_the_boot_stops_is_as_systemd_has_it(line: str, options: list[str], boot: str) -> None:
    (found,) = faults(f"# a comment\n{line}\n")
    assert (found["source"], found["options"], found["boot"]) == ("/etc/fstab line 2", options, boot)


STACKED = loads(captured("captures/stacked.json"))["calls"]["read"]["/etc/crypttab"]
CONTAINER = STACKED.split()[1].removeprefix("UUID=")
#: Below it: arrays are numbered again at each boot.
(ARRAY,) = (
    layer["below"][0]
    for mount in json.loads(captured("captures/stacked.facts.json"))["mounts"]
    if mount["target"] == "/srv/mssql"
    for layer in mount["stack"]
    if layer["type"] == "crypt"
)


def encrypted(crypttab: str | None, command_line: str = "") -> list[dict[str, Any]]:
    """Return the faults of the captured host whose /srv/mssql lies in LUKS over md."""
    recording = loads(captured("captures/stacked.json"))
    calls = recording["calls"]
    calls["exists"]["/etc/crypttab"] = crypttab is not None
    calls["read"]["/etc/crypttab"] = crypttab if crypttab != "error" else {"error": "/etc/crypttab: No way"}
    calls["read"]["/proc/cmdline"] += command_line
    found = with_texts(collect(ReplayHost(recording, lenient=True), NOW)["boot_faults"])
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize(
    ("crypttab", "said"),
    [
        (None, "no line of /etc/crypttab opens mssql, in which /srv/mssql is stored"),
        ("", "no line of /etc/crypttab opens mssql"),
        (f"# {STACKED}", "no line of /etc/crypttab opens mssql"),
        ("mssql\n", "no line of /etc/crypttab opens mssql"),
        ("other /dev/sda1 none\nmssql UUID=00aa none luks", "line 2 opens UUID=00aa as mssql"),
    ],
)
def test_a_container_below_a_mount_that_nothing_opens_stops_the_boot(crypttab: str | None, said: str) -> None:
    (found,) = encrypted(crypttab)
    assert (found["target"], found["boot"], found["state"]) == ("/srv/mssql", "required", "refused")
    assert found["fault"] == "container" and said in found["why"]
    assert f"UUID={CONTAINER}" in found["remedy"]


@pytest.mark.parametrize(
    ("crypttab", "command_line"),
    [
        (STACKED, ""),
        (f"mssql UUID={CONTAINER} /root/key luks,noauto", ""),
        (f"  another\tUUID={CONTAINER}", ""),
        (None, f" rd.luks.uuid={CONTAINER}"),
        (None, f" luks.uuid=luks-{CONTAINER}"),
        (None, f" rd.luks.name={CONTAINER}=mssql"),
        (None, f" cryptdevice=UUID={CONTAINER}:mssql"),
    ],
)
def test_one_that_is_opened_is_not_named(crypttab: str | None, command_line: str) -> None:
    assert encrypted(crypttab, command_line) == []


def test_one_that_is_opened_by_the_number_of_its_array_is_not_certain() -> None:
    (found,) = encrypted(f"mssql /dev/{ARRAY} none")
    assert (found["fault"], found["state"]) == ("name", "unknown")
    assert "an array that has no ARRAY line" in found["why"]
    assert found["remedy"].startswith(f"write UUID={CONTAINER} in place of /dev/{ARRAY} in /etc/crypttab")


def test_a_crypttab_that_cannot_be_read_is_unknown() -> None:
    (found,) = encrypted("error")
    assert (found["state"], found["why"].endswith('/etc/crypttab: No way"')) == ("unknown", True)


GRUB = "menuentry 'Debian' {\n\tlinux\t/vmlinuz root=%s ro quiet\n}\nmenuentry 'Repair' {\n\tlinux /vmlinuz %s single\n}\n"


@pytest.mark.parametrize(
    ("root", "repair", "found"),
    [
        ("UUID=root", "root=UUID=root", []),
        ("/dev/vda1", "root=UUID=gone", []),
        ("ZFS=rpool", "", []),
        (
            "UUID=gone",
            "root=UUID=root",
            ["root=UUID=gone, by which /boot/grub/grub.cfg line 2 mounts /, is missing"],
        ),
    ],
)
def test_a_boot_loader_none_of_whose_roots_is_there(root: str, repair: str, found: list[str]) -> None:
    machine = SmallHost()
    machine.files["/boot/grub/grub.cfg"] = GRUB % (root, repair)
    machine.files["/vmlinuz"] = "a kernel"
    faults = with_texts(collect(machine, NOW)["boot_faults"])
    said = [fault["why"].partition(", and")[0] for fault in faults if fault["fault"] == "source"]
    assert said == found


@pytest.mark.parametrize(
    ("initramfs", "copied", "root"),
    [
        (True, False, "UUID=now"),
        # The kernel itself finds no UUID.
        (False, False, "PARTUUID=part"),
        (True, True, "UUID=... of the file system that is mounted at / now (blkid)"),
    ],
)
def test_the_root_that_is_named_in_its_place_is_the_one_of_now(
    initramfs: bool, copied: bool, root: str
) -> None:
    """Not the name in its line of fstab: that may be as old as the boot loader's."""
    machine = SmallHost()
    text = GRUB % ("UUID=gone", "root=UUID=root")
    machine.files["/boot/grub/grub.cfg"] = text.replace("}", "\tinitrd /initrd\n}") if initramfs else text
    machine.files.update({"/vmlinuz": "a kernel", "/initrd": "an image"})
    held = {"ID_FS_UUID": "now", "ID_FS_TYPE": "ext4"}
    know(machine, "vda1", **held, ID_PART_ENTRY_UUID="part")
    know(machine, "sdb1", **(held if copied else {"ID_FS_UUID": "other"}))
    (fault,) = (
        each for each in with_texts(collect(machine, NOW)["boot_faults"]) if each["fault"] == "source"
    )
    assert (
        fault["remedy"]
        == f"set root={root} in the boot loader's entries (grubby, update-grub, grub2-mkconfig)"
    )


UNITS = "/etc/systemd/system"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"srv-maria.mount.d/mine.conf": "[Mount]\nOptions=defualts\n"},
            f"ext4 does not know defualts, which {UNITS}/srv-maria.mount.d/mine.conf names for /srv/maria",
        ),
        (
            {"srv-maria.mount": "[Mount]\nWhat=UUID=gone\nWhere=/srv/maria\nType=ext4\n"},
            f"UUID=gone, which {UNITS}/srv-maria.mount mounts at /srv/maria, is missing",
        ),
        (
            {
                "srv-own.mount": "[Mount]\nWhat=/dev/vdb\nWhere=/srv/own\nType=ext4\nOptions=noatmie\n",
                "local-fs.target.requires/srv-own.mount": f"-> {UNITS}/srv-own.mount",
            },
            f"ext4 does not know noatmie, which {UNITS}/srv-own.mount names for /srv/own",
        ),
    ],
)
def test_units_and_drop_ins_are_held_against_the_same(files: dict[str, str], said: str) -> None:
    machine = SmallHost()
    machine.files["/etc/fstab"] = machine.read("/etc/fstab").replace(",nofail", "")
    assert with_texts(collect(machine, NOW)["boot_faults"]) == []
    for name, text in files.items():
        put(machine, name, text)
    (found,) = with_texts(collect(machine, NOW)["boot_faults"])
    assert said in found["why"] and found["boot"] == "required"
    rows_of = [row for row in look_at(machine) if row["setting"] == found["fault"]]
    assert [row["verdict"] for row in rows_of] == ["drift_persisted"]


def put(machine: SmallHost, name: str, text: str) -> None:
    """Write a unit; a text that begins with an arrow is where a link leads."""
    if text.startswith("-> "):
        machine.links[f"{UNITS}/{name}"] = text[3:]
    else:
        machine.files[f"{UNITS}/{name}"] = text


#: A unit with a slip, and the entry that would have the boot require it.
OWN = ("srv-own.mount", "[Mount]\nWhat=/dev/vdb\nWhere=/srv/own\nType=ext4\nOptions=noatmie\n")
ENTRY = "local-fs.target.requires/srv-own.mount"


@pytest.mark.parametrize(
    "files",
    [
        [OWN],
        [(ENTRY, f"-> {UNITS}/srv-own.mount")],
        [OWN, (ENTRY, "")],
        [OWN, (ENTRY, "a file of its own")],
        [OWN, (ENTRY, "-> /dev/null")],
        [OWN, ("masked", ""), (ENTRY, f"-> {UNITS}/masked")],
        [("srv-maria.mount.d/mine.conf", "[Mount]\nOptions=noatime\n")],
    ],
)
def test_units_that_no_boot_requires_and_those_that_are_right_are_not_named(
    files: list[tuple[str, str]],
) -> None:
    machine = SmallHost()
    for name, text in files:
        put(machine, name, text)
    assert with_texts(collect(machine, NOW)["boot_faults"]) == []


def look_at(machine: SmallHost) -> list[dict[str, Any]]:
    found = assess(inputs("strict", mounts=["/srv/pgdata"]), collect(machine, NOW), NOW)["settings"]
    assert isinstance(found, list)
    return found


def test_a_unit_in_the_place_of_a_line_takes_its_faults_away() -> None:
    replaced = host(with_fb(f"{NOBODY} /srv/fbdata ext4 defaults 0 2"))
    unit = "/etc/systemd/system/srv-fbdata.mount"
    replaced._calls["exists"][unit] = True
    replaced._calls["resolve"][unit] = unit
    replaced._calls["read"][unit] = f"[Mount]\nWhat={FB}\nWhere=/srv/fbdata\nType=ext4\n"
    assert with_texts(collect(replaced, NOW)["boot_faults"]) == []


def test_a_line_without_udev_is_not_called_missing() -> None:
    """Without udev's database no device has a name but those that resolve."""
    blind = host(SOUND)
    key = '["udevadm", "info", "--export-db"]'
    blind._calls["run"][key] = [1, "", "no"]
    assert with_texts(collect(blind, NOW)["boot_faults"]) == []


def test_a_file_of_thousands_of_lines_is_read_in_time() -> None:
    """Each line is held against the others: compared with all others, or followed from each, they took minutes."""
    after = "nofail,x-systemd.after=/srv/many/{}"
    lines = [f"tmpfs /srv/many/{number} tmpfs {after.format(number + 1)} 0 0" for number in range(3000)]
    begun = time.process_time()
    assert faults(with_line("\n".join(lines))) == []
    assert time.process_time() - begun < 20


@pytest.mark.parametrize(
    ("line", "faults"),
    [
        ("/ btrfs errors=remount-ro", ["type"]),
        # What btrfs would take is refused by the one that is there.
        ("/ btrfs compress=zstd", ["options", "type"]),
    ],
)
def test_options_of_the_root_are_those_of_the_file_system_that_is_there(line: str, faults: list[str]) -> None:
    found = with_texts(collect(host(SOUND.replace("/ ext4 errors=remount-ro", line)), NOW)["boot_faults"])
    assert [fault["fault"] for fault in found] == faults
    assert all("ext4" in fault["why"] for fault in found)
