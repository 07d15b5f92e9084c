# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel and initramfs that the boot loader loads. The texts are written after those that grub-mkconfig and kernel-install make.

No lab machine has a boot loader: none of this was booted.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Status, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.storage import boot_images
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ..fakes.boot_texts import with_texts
from ..fakes.fake_host import FakeHost
from ..fakes.runs import NOW, inputs
from ..fakes.small_host import SmallHost

CFG = "/boot/grub/grub.cfg"
GRUB = """\
set default="0"
menuentry 'Debian' {
\tlinux\t%(top)s/vmlinuz-6.1 root=/dev/mapper/vg-root ro quiet $vt_handoff
\tinitrd\t%(top)s/initrd.img-6.1
}
menuentry 'Debian (recovery mode)' {
\tlinux\t%(top)s/vmlinuz-gone root=/dev/mapper/vg-root ro single
\tinitrd\t%(top)s/initrd.img-gone
}
menuentry 'Debian, with the kernel of before' {
\tlinux\t%(top)s/vmlinuz-5.10 root=/dev/mapper/vg-root ro quiet
\tinitrd\t%(top)s/initrd.img-5.10
}
"""
BLS = "title Fedora\nlinux %(top)s/vmlinuz-6.1\ninitrd %(top)s/initrd.img-6.1 $tuned_initrd\noptions root=UUID=a ro $kernelopts\n"
BOOT = ("/boot/vmlinuz-6.1", "/boot/initrd.img-6.1", "/boot/vmlinuz-5.10", "/boot/initrd.img-5.10")
BOOTED = 1000.0
PATH = "/boot/initrd.img-6.1"
LISTED = "bin\nsbin/lvm\nusr/sbin/cryptsetup\nusr/sbin/mdadm\n"


class BootHost(FakeHost):
    """A host with these files below /boot, of `ages` in seconds since the epoch."""

    def __init__(self, text: str, files: tuple[str, ...] = BOOT, cfg: str = CFG) -> None:
        super().__init__()
        self.ages: dict[str, float] = {}
        self.files.update(dict.fromkeys(files, "an image"))
        self.files.update({cfg: text, "/proc/stat": f"cpu 1\nbtime {BOOTED:.0f}\n"})
        self.files["/proc/sys/kernel/osrelease"] = "6.1\n"

    def status(self, path: str) -> Status:
        return super().status(path)._replace(modified=self.ages.get(path, 0.0))


#: A device of each layer that an initramfs has to open.
DEVICES = {
    "LUKS": ("dm-0", {"DM_UUID": "CRYPT-LUKS2-abc"}),
    "LVM": ("dm-1", {"DM_UUID": "LVM-abc"}),
    "md": ("md0", {"MD_LEVEL": "raid1"}),
}


def look(host: FakeHost, *layers: str) -> list[tuple[str, str]]:
    """The problems of a host whose root lies on these layers, each on the next; without any on a disk."""
    return [(problem["state"], problem["why"]) for problem in problems(host, *layers)]


def problems(host: FakeHost, *layers: str) -> list[dict[str, Any]]:
    """The same with what to do."""
    names = [DEVICES[layer][0] for layer in layers] or ["sda"]
    for upper, lower in zip(names, names[1:]):
        host.files[f"/sys/class/block/{upper}/slaves/{lower}/size"] = "1"
    found = boot_images.problems(host, names[0], dict(DEVICES.values()))
    of_root = {"target": "/", "fstype": "ext4", "options": []}
    return with_texts([{**of_root, **problem._asdict()} for problem in found])


@pytest.mark.parametrize("top", ["/boot", "", "/@/boot", "/@rootfs/boot", "/BOOT/debian@"])
@pytest.mark.parametrize("quote", ["", '"', "'"])
def test_paths_begin_where_the_file_system_of_the_boot_loader_does(top: str, quote: str) -> None:
    text = re.sub(r"(%\(top\)s\S+)", lambda found: f"{quote}{found[1]}{quote}", GRUB)
    assert look(BootHost(text % {"top": top})) == []


@pytest.mark.parametrize(
    ("top", "directory", "files"),
    [
        ("", "/boot", BOOT),
        ("/0123/6.1", "/efi", ("/efi/0123/6.1/vmlinuz-6.1", "/efi/0123/6.1/initrd.img-6.1")),
    ],
)
def test_entries_of_the_specification_begin_above_their_directory(
    top: str, directory: str, files: tuple[str, ...]
) -> None:
    cfg = f"{directory}/loader/entries/one.conf"
    assert look(BootHost(BLS % {"top": top}, files, cfg)) == []
    assert look(BootHost(BLS % {"top": top}, files[:1], cfg)) == [
        (
            "refused",
            f"{top}/initrd.img-6.1, which the entry at {cfg} loads, is missing, and of the boot loader's entries all others"
            " lack a file too",
        )
    ]


@pytest.mark.parametrize("gone", [0, 1])
def test_what_the_first_entry_lacks_may_stop_the_boot(gone: int) -> None:
    ((state, why),) = look(BootHost(GRUB % {"top": "/boot"}, tuple(set(BOOT) - {BOOT[gone]})))
    assert (state, why) == (
        "unknown",
        f"{BOOT[gone]}, which the entry at {CFG} line 3 loads, is missing, and of the boot loader's entries another one has"
        " all of its files",
    )


def test_a_kernel_is_installed_and_an_initramfs_made_again() -> None:
    """An entry that is made without its initramfs may boot nothing."""
    (kernel,), (initramfs,) = (
        problems(BootHost(GRUB % {"top": "/boot"}, tuple(set(BOOT) - {path}))) for path in BOOT[:2]
    )
    assert (
        kernel["remedy"]
        == "install that kernel again, or run update-grub or grub2-mkconfig, so that no entry names it"
    )
    assert (
        initramfs["remedy"]
        == "install that kernel again, or run update-initramfs -c -k 6.1 or dracut --kver 6.1"
    )


@pytest.mark.parametrize(
    ("path", "release"),
    [
        ("/boot/initramfs-5.14.0-362.el9.x86_64.img", "5.14.0-362.el9.x86_64"),
        ("/0123abcd/6.5.6-300.fc39.x86_64/initrd", "6.5.6-300.fc39.x86_64"),
        ("/boot/initrd.img-6.1.0-13-a b", "'6.1.0-13-a b'"),
        ("/boot/initramfs-linux.img", "RELEASE"),
    ],
)
def test_the_image_that_boots_is_made_and_no_other(path: str, release: str) -> None:
    values = {"file": path, "layer": "md", "programs": ["mdadm"], "release": boot_images._release(path)}
    of_root = {"source": CFG, "target": "/", "fstype": "ext4", "options": []}
    (fault,) = with_texts([{**of_root, "cause": "initramfs_lacks", "parameters": values}])
    assert fault["remedy"].endswith(f"run update-initramfs -u -k {release} or dracut -f --kver {release}")


def test_what_all_lack_stops_it() -> None:
    assert [state for state, _why in look(BootHost(GRUB % {"top": "/boot"}, BOOT[:1]))] == ["refused"]


def test_an_older_kernel_that_is_gone_is_no_matter() -> None:
    assert look(BootHost(GRUB % {"top": "/boot"}, BOOT[:2])) == []


@pytest.mark.parametrize("path", ["(hd0,gpt2)/vmlinuz", "${kernel}", "$prefix/vmlinuz"])
def test_a_path_of_which_nobody_can_tell_where_it_begins_is_not_judged(path: str) -> None:
    assert look(BootHost(f"menuentry 'x' {{\n linux {path} root=/dev/sda1\n}}\n")) == []


def test_without_a_boot_loader_nothing_is_said() -> None:
    assert look(BootHost("", (), "/nothing"), "LUKS") == []


def changed(listed: str | None = LISTED, program: str = "lsinitramfs", age: float = BOOTED + 1) -> BootHost:
    """A host whose initramfs was made again after it booted."""
    host = BootHost(GRUB % {"top": "/boot"})
    host.ages[PATH] = age
    if listed is not None:
        host.commands[(program, PATH)] = listed if program == "lsinitramfs" else as_lsinitrd(listed)
    return host


def as_lsinitrd(listed: str) -> str:
    """The same as lsinitrd of dracut prints it: its arguments and modules have names of programs, too."""
    rows = "".join(
        f"-rwxr-xr-x   1 root     root       123456 Sep  5  2022 {name}\n" for name in listed.splitlines()
    )
    return f"""Image: {PATH}: 34M
========================================================================
Version: dracut-057-13.git20220816.el9

Arguments: --kver '6.1' -f --add 'lvm crypt' --install '/usr/sbin/cryptsetup /sbin/lvm mdadm'

dracut modules:
bash
lvm
mdadm
========================================================================
drwxr-xr-x  12 root     root            0 Sep  5  2022 .
drwxr-xr-x   2 root     root            0 Sep  5  2022 etc/lvm
{rows}lrwxrwxrwx   1 root     root            7 Sep  5  2022 bin -> usr/bin/lvm
========================================================================
"""


@pytest.mark.parametrize("program", ["lsinitramfs", "lsinitrd"])
@pytest.mark.parametrize(
    ("layer", "program_of_it"), [("LUKS", "cryptsetup"), ("LVM", "lvm"), ("md", "mdadm")]
)
def test_a_new_initramfs_has_what_opens_the_root(program: str, layer: str, program_of_it: str) -> None:
    assert look(changed(program=program), "LUKS", "LVM", "md") == []
    without = "".join(line for line in LISTED.splitlines(keepends=True) if program_of_it not in line)
    ((state, why),) = look(changed(without, program), "LUKS", "LVM", "md")
    assert state == "refused" and f"has no {program_of_it}" in why and why.endswith(f"/ is on {layer}")
    (problem,) = problems(changed(without, program), "LUKS", "LVM", "md")
    package, module = {
        "LUKS": ("cryptsetup-initramfs", "crypt"),
        "LVM": ("lvm2", "lvm"),
        "md": ("mdadm", "mdraid"),
    }[layer]
    assert problem["remedy"] == (
        f"install {package} (dracut: module {module}), then run update-initramfs -u -k 6.1 or dracut -f --kver 6.1"
    )


def test_a_link_in_an_initramfs_counts_by_its_own_name() -> None:
    listing = as_lsinitrd("").replace("bin -> usr/bin/lvm", "usr/sbin/lvm -> ../bin/tool")
    host = changed(None)
    host.commands[("lsinitrd", PATH)] = listing
    assert look(host, "LVM") == []


def test_the_entry_that_boots_by_default_is_assessed() -> None:
    """By its name in the environment of GRUB, and the newest of the specification."""
    text = (GRUB % {"top": "/boot"}).replace("kernel of before'", "kernel of before' --id old")
    host = BootHost(text.replace('"0"', '"${saved_entry}"'), BOOT[:2])
    assert look(host) == []
    host.files["/boot/grub/grubenv"] = "saved_entry=old\n"
    ((state, why),) = look(host)
    assert state == "unknown" and why.startswith("/boot/vmlinuz-5.10, which the entry at")
    entries = "/boot/loader/entries"
    host = BootHost("linux /vmlinuz-553.8.1\n", (), f"{entries}/el-553.8.1.conf")
    host.files[f"{entries}/el-553.16.1.conf"] = "linux /vmlinuz-553.16.1\n"
    host.files["/boot/vmlinuz-553.8.1"] = ""
    ((state, why),) = look(host)
    assert why.startswith("/vmlinuz-553.16.1, which the entry at")


def test_one_that_this_boot_came_from_is_not_listed() -> None:
    assert look(changed(None, age=BOOTED - 1), "LUKS") == []


def test_one_of_another_kernel_is_however_old() -> None:
    host = changed("bin\n", age=BOOTED - 1)
    host.files["/proc/sys/kernel/osrelease"] = "6.5\n"
    assert [state for state, _why in look(host, "LVM")] == ["refused"]


def test_a_root_on_a_plain_disk_needs_no_list() -> None:
    assert look(changed(None)) == []


def test_one_that_nobody_lists_is_unknown() -> None:
    with pytest.raises(Unobservable, match="lsinitramfs"):
        look(changed(None), "LUKS")


def test_layers_are_those_at_and_below_the_root() -> None:
    host = FakeHost()
    block = "/sys/class/block"
    for upper, lower in (("dm-1", "dm-0"), ("dm-0", "md0"), ("md0", "sda2"), ("md0", "sdb2")):
        host.files[f"{block}/{upper}/slaves/{lower}/size"] = "1"
    for name in ("sda2", "sdb2"):
        host.links[f"{block}/{name}"] = f"/sys/devices/{name[:3]}/{name}"
        host.files[f"/sys/devices/{name[:3]}/{name}/partition"] = "2"
    said = {
        "dm-1": {"DM_UUID": "LVM-abc"},
        "dm-0": {"DM_UUID": "CRYPT-LUKS2-abc"},
        "md0": {"MD_LEVEL": "raid1"},
        "dm-9": {"DM_UUID": "mpath-abc"},
    }
    assert boot_images.layers_below(host, "dm-1", said) == ["LVM", "LUKS", "md"]
    assert boot_images.layers_below(host, "md0", said) == ["md"]
    assert boot_images.layers_below(host, "sda2", said) == []
    assert boot_images.layers_below(host, "dm-9", said) == []


@pytest.mark.parametrize(
    ("files", "verdict", "why"),
    [
        (BOOT, None, ""),
        (BOOT[:1], "drift_persisted", "the next boot stops: /boot/initrd.img-6.1"),
        (BOOT[1:], "unknown", "it is unknown whether the next boot can mount /: /boot/vmlinuz-6.1"),
    ],
)
def test_it_is_a_row_of_the_root(files: tuple[str, ...], verdict: str | None, why: str) -> None:
    machine = SmallHost()
    machine.files[CFG] = GRUB.replace("root=/dev/mapper/vg-root", "root=/dev/vda1") % {"top": "/boot"}
    machine.files.update(dict.fromkeys(files, "an image"))
    found: list[dict[str, Any]] = assess(
        inputs("strict", mounts=["/srv/pgdata"]), collect(machine, NOW), NOW
    )["settings"]
    rows = [row for row in found if row["setting"] == "initramfs"]
    assert [row["verdict"] for row in rows] == ([verdict] if verdict else [])
    assert all(row["why"].startswith(why) and row["target"] == "/" for row in rows)
