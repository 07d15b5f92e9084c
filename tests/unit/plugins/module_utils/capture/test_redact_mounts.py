# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mount tables and fstab in a capture: the same form, nothing that is somebody's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.capture import redact_mounts as redact
from ansible_collections.durable.dbhost.plugins.module_utils.capture.identities import Identities
from ansible_collections.durable.dbhost.plugins.module_utils.host.mountinfo import parse_mountinfo
from ansible_collections.durable.dbhost.plugins.module_utils.storage import fstab as fstab_file
from ansible_collections.durable.dbhost.plugins.module_utils.storage import known_options, mount_units

from ..fakes.captured import captured

UUID = "f0f6079e-faa6-54a8-a78c-1592123fa797"


def names() -> Identities:
    return Identities("/dev/disk/by-id /etc/systemd/system")


def test_of_crypttab_only_names_and_devices_are_kept() -> None:
    kept = redact.crypttab(f"# my key\ndata UUID={UUID} /root/my.key luks,discard\nalone\n", names())
    name, device, key = kept.split()
    assert kept.count("\n") == 1 and key == "none" and name != ""
    assert device.startswith("UUID=") and UUID not in device and "my" not in kept


def test_a_captured_mount_table_loses_nothing() -> None:
    text = captured("mountinfo_bookworm.txt")
    assert redact.mountinfo(text, names()) == text


def test_a_captured_fstab_keeps_all_but_comments_and_uuids() -> None:
    text = captured("fstab_lab.txt")
    found = redact.fstab(text, names())
    before, after = fstab_file.parse(text), fstab_file.parse(found)
    assert [entry._replace(spec="") for entry in before] == [entry._replace(spec="") for entry in after]
    assert len({entry.spec for entry in after}) == len(before)
    assert not {entry.spec for entry in before} & {entry.spec for entry in after}
    assert {line for line in found.split("\n") if line.startswith("#")} == {"#"}


@pytest.mark.parametrize(
    "option",
    [
        "password=hunter2",
        "pass=hunter2",
        "credentials=/root/hunter2",
        "username=hunter2",
        "user=hunter2",
        "domain=hunter2",
        "addr=hunter2",
        "password==hunter2",
        "password=a,,hunter2!",
        "HUNTER2",
        'context="hunter2:b:c"',
        "barrier=hunter2!",
        "Hunter2=",
    ],
)
def test_secrets_among_options_go(option: str) -> None:
    line = f"//nas.example.com/share /mnt cifs rw,{option},noatime 0 0"
    table = f"30 1 0:99 / /mnt rw,{option},noatime shared:1 - cifs //nas.example.com/share rw,{option}"
    for found in (redact.fstab(line, names()), redact.mountinfo(table, names())):
        assert "nas.example" not in found
        assert ",noatime " in found
        assert "hunter2" not in found.lower()


@pytest.mark.parametrize(
    "option", ["hunter2", "hunter2=", "hunter2=a", "password=a,hunter2", "uid=0,x-hunter2.a=b"]
)
def test_an_option_of_fstab_that_nobody_knows_may_be_part_of_a_password(option: str) -> None:
    assert "hunter2" not in redact.options(option, names())
    assert "hunter2" in redact.options(option, names(), by_kernel=True) or "x-" in option


@pytest.mark.parametrize(
    "options",
    [
        "defaults",
        "rw,noatime,barrier=0,data=writeback,commit=30,errors=remount-ro,nofail",
        "rw,attr2,inode64,logbufs=8,logbsize=32k,noquota",
        "rw,logdev=/dev/sdd1,rtdev=/dev/mapper/vg-rt",
        "rw,compress=zstd:3,ssd,space_cache=v2,subvolid=256,subvol=/@data",
        "nobarrier,data=journal,journal_async_commit,x-systemd.device-timeout=10s",
        "lowerdir=/a:/b,upperdir=/c,workdir=/d,volatile",
    ],
)
def test_options_of_file_systems_stay(options: str) -> None:
    assert redact.options(options, names()) == options


@pytest.mark.parametrize(
    ("spec", "gone", "kept"),
    [
        (f"UUID={UUID}", UUID, "UUID="),
        ("PARTUUID=a1b2c3d4-01", "a1b2c3d4", "PARTUUID="),
        ("UUID=root", "root", "UUID="),
        (f'UUID="{UUID}"', UUID, 'UUID="'),
        ("ID=ata-MODEL_SN1234", "SN1234", "ID=ata-"),
        ("/dev/disk/by-id/ata-MODEL_SN1234-part1", "SN1234", "/dev/disk/by-id/ata-"),
        (f"/dev/disk/by-uuid/{UUID}", UUID, "/dev/disk/by-uuid/"),
        ("nas.example.com:/export", "nas", ":/export"),
        ("10.1.2.3:/export", "10.1.2.3", ":/export"),
        ("mon1,mon2:6789:/", "mon", ":/"),
        ("joe@nas:/home", "joe", ":/home"),
        ("remote:bucket", "remote", ":"),
        ("https://joe:hunter2@dav.example.com/x", "hunter2", "://"),
        ("//joe:hunter2@nas/share", "hunter2", "/share"),
        ("//joe:hun/ter2@nas/share", "ter2", "/share"),
        ("//joe:hun@ter2@nas/share", "ter2", "/share"),
        ("//joe:hun/ter2@nas/share", "nas", "/share"),
        ("https://joe:hun/ter2@dav.example.com/x", "ter2", "https://"),
        ("https://joe:hun/ter2@dav.example.com/x", "example", "https://"),
        ("joe:hun/ter2@nas:/home", "ter2", ":/home"),
        ("joe:hun:/ter2@nas:/home", "ter2", ":/home"),
        ("hunter2", "hunter2", ""),
        ("SECRET=hunter2", "hunter2", ""),
    ],
)
def test_what_is_mounted(spec: str, gone: str, kept: str) -> None:
    known = names()
    found = redact.fstab(f"{spec} /mnt nfs defaults 0 0", known)
    assert gone not in found
    assert kept in found
    assert redact.fstab(f"{spec} /mnt nfs defaults 0 0", known) == found


@pytest.mark.parametrize(
    "spec", ["LABEL=data", "/dev/sda1", "/dev/mapper/vg-lv", "/srv/image.img", "tmpfs", "none", "/dev/vg/lv"]
)
def test_what_names_no_single_machine_stays(spec: str) -> None:
    assert redact.fstab(f"{spec} /mnt ext4 defaults", names()).split(" ", maxsplit=1)[0] == spec


@pytest.mark.parametrize(
    ("fstype", "options"),
    [
        (
            "ext4",
            "barrier=0x0,journal_dev=0x801,usrjquota=mine,x-mine=secret,X-mine,comment=secret,offset=512",
        ),
        ("vfat", "umask=0077,codepage=437,shortname=winnt,iocharset=utf8,tz=UTC,uid=joe,nfs=stale_rw"),
        ("btrfs", "subvol=@joe,compress=zstd:3,discard=async,user_subvol_rm_allowed"),
        ("xfs", "logbsize=256k,dax=inode,logdev=/dev/joe"),
        ("ext4", "barier=1"),
    ],
)
def test_an_option_that_a_file_system_knows_is_one_that_it_knows_afterwards(
    fstype: str, options: str
) -> None:
    def unknown(text: str) -> int:
        return len(known_options.unknown_to(fstype, text.split(","), "6.1.0"))

    found = redact.options(options, names())
    assert unknown(found) == unknown(options)
    assert "secret" not in found


def test_a_comment_behind_a_line_is_emptied_and_stays_one() -> None:
    line = "/dev/sda1 /srv/pgdata ext4 defaults 0 2 "
    assert redact.fstab(f"{line}# the data of Jane", names()) == f"{line}#"


pieces = st.sampled_from([*"aA1/=,.:#\\ \t\r\0", "UUID=", "# durable.dbhost", "password=x", "ext4", "\udce9"])
lines = st.lists(pieces, max_size=20).map("".join)


@given(st.lists(lines).map("\n".join))
def test_an_fstab_parses_to_the_same_form_or_fails_in_the_same_line(text: str) -> None:
    def form(text: str) -> list[tuple[object, ...]] | str:
        try:
            found = fstab_file.parse(text)
        except fstab_file.MalformedFstab as error:
            return str(error).partition(": observed")[0]
        return [
            (e.row, e.target.startswith("/"), len(e.options), fstab_file.is_marked(text, e)) for e in found
        ]

    assert form(redact.fstab(text, names())) == form(text)


@given(st.lists(lines).map("\n".join))
def test_a_mount_table_parses_or_fails_as_before(text: str) -> None:
    def form(text: str) -> int | str:
        try:
            return len(parse_mountinfo(text))
        except ValueError:
            return "malformed"

    assert form(redact.mountinfo(text, names())) == form(text)


def test_what_the_kernel_was_told_of_other_things_goes() -> None:
    text = f"BOOT_IMAGE=/vmlinuz root=UUID={UUID} ro rootflags=data=journal,pass=x quiet ip=10.0.0.1 key=hunter2\n"
    known = names()
    stand_in = known.of(UUID)
    found = redact.command_line(text, known)
    assert found.startswith(f"root=UUID={stand_in} ro rootflags=data=journal,pass=")
    assert "pass=hidden" in found
    assert len(found.split()) == 3


def test_a_boot_loader_keeps_what_its_kernels_are_told_of_the_root() -> None:
    text = (
        "set superusers=\"hunter2\"\npassword_pbkdf2 hunter2 grub.pbkdf2.sha512.0123\nmenuentry 'hunter2' {\n"
        f"\tlinux\t/vmlinuz-hunter2 root=UUID={UUID} ro single rootflags=barrier=0 $kernelopts key=hunter2\n}}\n"
        f'kernelopts="root=UUID={UUID} ro rootflags=commit=9 key=hunter2"\noptions ro rootflags=nobarrier\n'
    )
    known = names()
    stand_in = known.of(UUID)
    found = redact.boot_loader(text, known)
    assert "hunter2" not in found
    assert len(found.split("\n")) == len(text.split("\n"))
    assert [line for line in found.split("\n") if line] == [
        f"menuentry '{known.of('hunter2')}' {{",
        f"linux root=UUID={stand_in} ro single rootflags=barrier=0 $kernelopts",
        "}",
        f'kernelopts="root=UUID={stand_in} ro rootflags=commit=9"',
        "options ro rootflags=nobarrier",
    ]


def test_a_boot_loader_keeps_which_entry_is_next_with_stand_ins() -> None:
    text = (
        'set default="${saved_entry}"\nsaved_entry=hunter2>hunter3\nnext_entry=\n'
        "submenu 'hunter2' --class hunter $menuentry_id_option 'hunter3' {\n\tmenuentry \"hunter3\" {\n\t}\n}\nblscfg\n"
        "  source ${config_directory}/custom.cfg\nsource $prefix/hunter2.cfg\n"
    )
    known = names()
    found = redact.boot_loader(text, known)
    assert "hunter" not in found
    two, three = known.of("hunter2"), known.of("hunter3")
    assert [line for line in found.split("\n") if line] == [
        'set default="${saved_entry}"',
        f"saved_entry={two}>{three}",
        "next_entry=",
        f"submenu '{two}' --id '{three}' {{",
        f"menuentry '{three}' {{",
        *("}", "}", "blscfg"),
        "source ${config_directory}/custom.cfg",
    ]


def test_a_unit_keeps_what_it_says_of_the_mount() -> None:
    text = (
        "# hunter2\n[Unit]\nDescription=hunter2\n[Mount]\nWhat=/dev/disk/by-id/ata-MODEL_SN1234\nWhere=/srv/a\n"
        "Type=ext4\nOptions=noatime,\\\n  password=hunter2\nEnvironment=A=hunter2\n[X-Other]\nOptions=hunter2\n"
    )
    known = names()
    found = redact.unit(text, known)
    assert "hunter2" not in found
    assert "SN1234" not in found
    assert "Where=/srv/a\nType=ext4\n" in found
    options = mount_units.split_options(mount_units.parse(found)["Options"])
    assert options[0] == "noatime"
    assert len(options) == 2


def test_hosts_that_a_table_names() -> None:
    text = (
        "nas.example.com:/export /mnt nfs rw 0 0\n//smb1/share /x cifs rw\n\nmon1,mon2:6789:/ /c ceph rw\n"
        "joe@box:/home /h fuse.sshfs rw\nUUID=a / ext4 rw\n9 1 0:9 / /srv/a:/b rw - nfs4 [fe80::1]:/e rw,lowerdir=/a:/b"
    )
    assert {"nas.example.com", "smb1", "mon1", "mon2", "joe", "box"} <= set(redact.hosts_in(text))
    assert not {"a", "/srv/a", "lowerdir=/a"} & set(redact.hosts_in(text))
