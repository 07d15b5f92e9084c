# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names by which a boot opens what lies below a mount: LUKS containers by crypttab or the kernel, physical volumes by LVM."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ..fakes.boot_texts import with_texts
from ..fakes.runs import NOW, look
from ..fakes.small_host import FakeDisk, SmallHost, dm
from .test_device_names import know

PG = "/srv/pgdata"
LUKS = {"ID_FS_UUID": "luks", "ID_FS_TYPE": "crypto_LUKS", "ID_FS_USAGE": "crypto"}
PV = {"ID_FS_UUID": "pv", "ID_FS_TYPE": "LVM2_member", "ID_FS_USAGE": "raid"}
LABEL = "crypt-dm-5"
CRYPT = "crypt aes-xts-plain64 :64:logon:x:y 0 8:32 32768"


def layered(table: str, maker: str, **held: str) -> SmallHost:
    """Return a host whose /srv/pgdata lies in a layer over the whole disk sdc."""
    host = SmallHost()
    host.add_disk(FakeDisk("sdc", "sata", "QEMU_HARDDISK_SATA0003"), "8:32")
    host.add_layer(dm("dm-5", maker, ("sdc",), "253:5", table))
    host.mounts[PG].source, host.mounts[PG].device = f"/dev/mapper/{maker.lower()}-dm-5", "253:5"
    host.files["/proc/fs/ext4/dm-5/options"] = host.mounts[PG].ext_options
    host.links["/dev/disk/by-uuid/pg"] = "/dev/dm-5"
    know(host, "dm-5", ID_FS_UUID="pg", ID_FS_TYPE="ext4", MAJOR="253", MINOR="5")
    know(host, "sdc", **held)
    host.links[f"/dev/disk/by-uuid/{held['ID_FS_UUID']}"] = "/dev/sdc"
    return host


def encrypted(line: str, command_line: str = "") -> SmallHost:
    """Return a host whose /srv/pgdata lies in LUKS on sdc."""
    host = layered(CRYPT, "CRYPT", **LUKS)
    host.files["/etc/crypttab"] = f"# name device key\n{line}"
    host.files["/proc/cmdline"] = f"root=UUID=root ro {command_line}\n"
    return host


def copy(host: SmallHost, **held: str) -> SmallHost:
    """Add a disk sdd with the same on it."""
    host.add_disk(FakeDisk("sdd", "sata", "QEMU_HARDDISK_SATA0004"), "8:48")
    know(host, "sdd", **held)
    return host


def faults(host: SmallHost) -> list[dict[str, Any]]:
    found = with_texts(collect(host, NOW)["boot_faults"])
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("name", [LABEL, "another"])
def test_a_container_named_by_this_boot_s_name_is_unknown_at_the_next(name: str) -> None:
    host = encrypted(f"{name} /dev/sdc none luks\n")
    (found,) = faults(host)
    assert (found["fault"], found["state"], found["boot"]) == ("name", "unknown", "optional")
    assert found["source"] == "/etc/crypttab line 2"
    assert found["why"].startswith(
        "/etc/crypttab line 2 opens crypt-dm-5, in which /srv/pgdata is stored, by /dev/sdc, a name that is valid for the"
        " current boot"
    )
    assert found["remedy"] == "write UUID=luks in place of /dev/sdc in /etc/crypttab line 2"
    report = look(host, "strict", mounts=[PG])
    (row,) = [each for each in report["settings"] if each["setting"] == "name"]
    assert (row["verdict"], report["fails"]) == ("unknown", True)
    host.files["/etc/crypttab"] = host.text("/etc/crypttab").replace("/dev/sdc", "UUID=luks")
    assert faults(host) == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"{LABEL} UUID=luks none luks", ""),
        (f"{LABEL} /dev/disk/by-uuid/luks none luks", ""),
        # The kernel's command line names it, and the line opens nothing then.
        (f"{LABEL} /dev/sdc none luks", "rd.luks.uuid=luks"),
        ("", "rd.luks.name=luks=crypt-dm-5"),
    ],
)
def test_stable_names_are_not_reported(line: str, words: str) -> None:
    assert faults(encrypted(line, words)) == []


@pytest.mark.parametrize("link", ["sdc", "sdd"])
@pytest.mark.parametrize(
    ("line", "words", "source"),
    [
        (f"{LABEL} UUID=luks none luks", "", "/etc/crypttab line 2"),
        (f"{LABEL} /dev/disk/by-uuid/luks none", "", "/etc/crypttab line 2"),
        ("", "rd.luks.uuid=luks", "the kernel's command line"),
    ],
)
def test_two_containers_with_one_uuid_are_copies(line: str, words: str, source: str, link: str) -> None:
    host = copy(encrypted(line, words), **LUKS)
    host.links["/dev/disk/by-uuid/luks"] = f"/dev/{link}"
    (found,) = faults(host)
    assert (found["fault"], found["state"], found["source"]) == ("copies", "unknown", source)
    assert f"sdc and sdd have UUID=luks, by which {source} opens crypt-dm-5" in found["why"]
    assert found["remedy"] == (
        "close sdd and give it another UUID (cryptsetup luksUUID --uuid $(uuidgen) /dev/sdd)"
    )


def test_a_temporary_name_is_replaced_by_a_uuid_that_the_copy_loses_first() -> None:
    host = copy(encrypted(f"{LABEL} /dev/sdc none luks\n"), **LUKS)
    (found,) = faults(host)
    assert found["fault"] == "name"
    assert found["remedy"] == (
        "close sdd and give it another UUID (cryptsetup luksUUID --uuid $(uuidgen) /dev/sdd), then name sdc by UUID=luks in"
        " /etc/crypttab line 2"
    )


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("/dev/urandom", "/dev/urandom"),
        ("/dev/random plain,cipher=aes-xts-plain64", "/dev/random"),
        ("/etc/key plain,swap", "swap"),
        ("none cipher=aes-xts-plain64,tmp=ext4,size=512", "tmp=ext4"),
    ],
)
def test_a_container_that_each_boot_opens_without_its_data_is_not_green(line: str, word: str) -> None:
    host = encrypted(f"{LABEL} /dev/disk/by-id/x {line}\n")
    host.links["/dev/disk/by-id/x"] = "/dev/sdc"
    (found,) = faults(host)
    assert (found["fault"], found["state"], found["boot"]) == ("container", "refused", "optional")
    assert found["why"] == (
        f"/etc/crypttab line 2 opens crypt-dm-5, in which /srv/pgdata is stored, with {word}: its data are lost at each boot"
    )
    report = look(host, "strict", mounts=[PG])
    (row,) = [each for each in report["settings"] if each["setting"] == "container"]
    assert (row["verdict"], report["fails"]) == ("drift_persisted", True)


@pytest.mark.parametrize("line", ["/etc/urandom luks", "none luks,tries=1,swapped", "- plain,tmpfs=1"])
def test_a_key_and_options_that_stay_are_not_reported(line: str) -> None:
    assert faults(encrypted(f"{LABEL} UUID=luks {line}\n")) == []


def test_a_line_about_another_device_opens_nothing_below() -> None:
    host = encrypted("other /dev/sdb none luks\n")
    (found,) = faults(host)
    assert (found["fault"], found["state"]) == ("container", "refused")
    assert found["remedy"] == (
        f'add "{LABEL} UUID=luks KEYFILE luks" to /etc/crypttab, with noauto too if another component opens it'
    )
    host.files["/etc/crypttab"] = f"{LABEL} /dev/sdb none luks\n"
    (found,) = faults(host)
    assert found["remedy"] == "write UUID=luks in place of /dev/sdb in /etc/crypttab line 1"
    plain = copy(encrypted("other /dev/sdb none luks\n"))
    know(plain, "sdc", ID_FS_UUID="")
    (found,) = faults(plain)
    assert found["remedy"] == (
        f"add a line for {LABEL} with its device, KEYFILE and the options that it has now (cryptsetup status) to /etc/crypttab"
    )
    host.files["/etc/crypttab"] = f"other /dev/sdb none luks\n{LABEL} UUID=luks none luks\n"
    assert faults(host) == []


@pytest.mark.parametrize("comment", ["# ", "#", "\t#"])
def test_a_comment_opens_nothing(comment: str) -> None:
    """A comment without a blank has a name and a device like a line."""
    (found,) = faults(encrypted(f"{comment}{LABEL} UUID=luks none luks\n"))
    assert (found["fault"], found["state"]) == ("container", "refused")


def test_another_container_or_a_file_system_with_the_uuid_is_no_copy() -> None:
    host = copy(encrypted(f"{LABEL} UUID=luks none luks\n"), **{**LUKS, "ID_FS_UUID": "else"})
    assert faults(host) == []
    know(host, "sdd", ID_FS_UUID="luks", ID_FS_TYPE="linux_raid_member")
    assert faults(host) == []


def test_a_copy_of_a_physical_volume_is_reported() -> None:
    host = layered("linear 8:32 0", "LVM", **PV)
    assert faults(host) == []
    copy(host, **{**PV, "ID_FS_UUID": "else"})
    assert faults(host) == []
    know(host, "sdd", **PV)
    (found,) = faults(host)
    assert (found["fault"], found["state"], found["boot"]) == ("copies", "unknown", "optional")
    assert (found["source"], found["target"]) == ("/dev/sdc", PG)
    assert found["why"].startswith("sdc and sdd are physical volumes with the UUID pv, in which /srv/pgdata")
    assert found["remedy"] == "close sdd and give it another UUID (vgimportclone /dev/sdd)"
    assert look(host, "strict", mounts=[PG])["fails"]
