# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rootflags= of the next boot: what each entry of the boot loader says, held against this boot."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.storage import boot_loader

from ..fakes.fake_host import FakeHost

NOW = "BOOT_IMAGE=/vmlinuz-6.1 root=UUID=aaaa ro rootflags=commit=9,barrier=1 quiet\n"
LINE = "root=UUID=aaaa ro rootflags=commit=9,barrier=1 quiet $vt_handoff"
GRUB_CFG = """
set default="${saved_entry}"
password_pbkdf2 root grub.pbkdf2.sha512.10000.0123
menuentry 'Debian' --class debian {
\tinsmod ext2
\tlinux\t/boot/vmlinuz-6.1 %s
\tinitrd\t/boot/initrd.img-6.1
}
menuentry 'Debian (recovery mode)' {
\tlinux\t/boot/vmlinuz-6.1 root=UUID=aaaa ro single
}
menuentry 'Another system' {
\tlinux\t/boot/vmlinuz-5.4 root=UUID=bbbb ro rootflags=barrier=0
}
"""


def host(files: dict[str, str]) -> FakeHost:
    """A host whose boot had rootflags, and these files."""
    found = FakeHost()
    found.files["/proc/cmdline"] = NOW
    found.files.update(files)
    return found


def of_the_next(files: dict[str, str]) -> boot_loader.Rootflags:
    """What the next boot of a host with these files has."""
    return boot_loader.of_the_next(host(files))


def test_without_a_boot_loader_they_are_those_of_this_boot() -> None:
    assert of_the_next({}) == (("commit=9", "barrier=1"), "rootflags of this boot")


def test_entries_that_agree_are_those_of_the_next_boot() -> None:
    """Neither an entry for repairs nor that of another system has a say."""
    found = of_the_next({"/boot/grub/grub.cfg": GRUB_CFG % LINE})
    assert found == (("commit=9", "barrier=1"), "rootflags of the boot loader")


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        (LINE.replace("barrier=1", "barrier=0"), "seen rootflags=commit=9,barrier=0"),
        ("root=UUID=aaaa ro quiet", "seen no rootflags"),
        (f"{LINE} rootflags=nobarrier", "seen rootflags=nobarrier"),
        ("root=/dev/vda1 ro rootflags=barrier=0", "seen rootflags=barrier=0"),
    ],
)
def test_an_entry_that_differs_makes_the_next_boot_unknown(line: str, seen: str) -> None:
    with pytest.raises(Unobservable, match=r"^/boot/grub/grub\.cfg line 6: ") as caught:
        of_the_next({"/boot/grub/grub.cfg": GRUB_CFG % line})
    assert seen in str(caught.value)
    assert "at this boot rootflags=commit=9,barrier=1" in str(caught.value)


@pytest.mark.parametrize("directory", boot_loader.ENTRIES)
def test_entries_of_the_boot_loader_specification_are_read(directory: str) -> None:
    path = f"{directory}/debian-6.1.conf"
    said = f"title Debian\nversion 6.1\noptions {LINE}\nlinux /vmlinuz\n"
    assert of_the_next({path: said}).source == "rootflags of the boot loader"
    with pytest.raises(Unobservable, match=f"{path} line 3: seen rootflags=nobarrier"):
        of_the_next({path: said.replace("commit=9,barrier=1", "nobarrier")})


@pytest.mark.parametrize("spelled", ["$kernelopts", "${kernelopts}"])
@pytest.mark.parametrize("name", ["/boot/grub2/grubenv", "/boot/grub2/grub.cfg"])
def test_options_in_a_variable_are_filled_in(spelled: str, name: str) -> None:
    entry = {"/boot/loader/entries/el8.conf": f"options {spelled} $tuned_params\n"}
    wanted = "root=UUID=aaaa ro rootflags=commit=9,barrier=1"
    said = {
        "/boot/grub2/grubenv": f"kernelopts={wanted}\n",
        "/boot/grub2/grub.cfg": f'set kernelopts="{wanted}"\n',
    }
    assert of_the_next({**entry, name: said[name]}).source == "rootflags of the boot loader"
    with pytest.raises(Unobservable, match="seen rootflags=commit=9,nobarrier"):
        of_the_next({**entry, name: said[name].replace("barrier=1", "nobarrier")})


def test_a_configuration_that_cannot_be_read_is_unknown() -> None:
    found = host({"/boot/grub/grub.cfg/is-a-directory": ""})
    with pytest.raises(Unobservable, match=r"/boot/grub/grub\.cfg: Is a directory"):
        boot_loader.of_the_next(found)
