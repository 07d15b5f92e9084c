# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the product reads of GRUB's entries before a reboot is the kernel's command line after it.

The tests run in this order, and each continues from the state that the one before it left.
"""

from __future__ import annotations

import json

import pytest
from support.devices import sh

from lab.machine import Machine

#: Prints the command lines of which the next boot's is one, each with its place.
PREDICT = """
import json
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host
from ansible_collections.durable.dbhost.plugins.module_utils.storage import boot_loader
print(json.dumps(boot_loader.command_lines(Host())))
"""
ENTRIES = "/boot/loader/entries"
#: Sets `first` to the entry that kernel-install made, without its suffix, and `id` to its name.
FIRST = f"first=$(ls {ENTRIES}/*-amd64.conf); first=${{first%.conf}}; id=${{first##*/}};"
#: Sets a variable of GRUB's environment.
SET = "grub-editenv /boot/grub/grubenv set"
#: kernel-install of the same kernel, with the initramfs that dracut made before: emulated, it takes minutes.
INSTALL = (
    "version=$(uname -r); cp /boot/*/$version/initrd /boot/*/$version/linux /root/;"
    " kernel-install add $version /root/linux /root/initrd"
)


def predicted(machine: Machine) -> list[tuple[str, str]]:
    """Return the command lines that may be next, each with its place."""
    argv = ["env", "PYTHONPATH=/root/code", "python3", "-c", PREDICT]
    return [(line, at) for line, at in json.loads(machine.run(argv).stdout)]


def booted(machine: Machine) -> str:
    """Return the command line of this boot, without the word that GRUB adds."""
    words = sh(machine, "cat /proc/cmdline").split()
    return " ".join(word for word in words if not word.startswith("BOOT_IMAGE="))


def assert_predicted(machine: Machine) -> str:
    """Require one predicted line, and that the next boot has it; return that line."""
    ((line, at),) = predicted(machine)
    machine.reboot()
    assert (booted(machine), at) == (" ".join(line.split()), at)
    return line


def test_grub_starts_the_entry_that_kernel_install_made(machine: Machine) -> None:
    ((line, at),) = predicted(machine)
    assert at.startswith(ENTRIES)
    assert booted(machine) == " ".join(line.split())
    assert "lab.from=env" in line
    assert "systemd.machine_id=" in line


def copy(edit: str, suffix: str) -> str:
    """Return the script that adds a copy of the first entry, edited by sed."""
    return f"{FIRST} sed '{edit}' $first.conf > $first{suffix}.conf;"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param(
            'old=$(grub-editenv /boot/grub/grubenv list | sed -n "s/^kernelopts=//p");'
            f' {SET} "kernelopts=$old rootflags=noatime lab.env=2"',
            "lab.env=2",
            id="kernelopts",
        ),
        pytest.param(
            "printf '# lab.comment=1\\n$kernelopts lab.cmdline=1\\n' > /etc/kernel/cmdline; " + INSTALL,
            "lab.cmdline=1",
            id="kernel-install",
        ),
        pytest.param(
            copy("s/^options.*/& lab.entry=new/; s/^title.*/title Newer/", ".1"), "lab.entry=new", id="newer"
        ),
        # Its name begins with the machine ID: GRUB takes one that begins with digits as a number.
        pytest.param(f"{FIRST} {SET} saved_entry=$id", "lab.cmdline=1", id="saved_entry"),
        pytest.param(
            f'{FIRST} {SET} "saved_entry=$(sed -n "s/^title *//p" $first.conf)"',
            "lab.cmdline=1",
            id="saved title",
        ),
        pytest.param(f"{SET} next_entry=Newer", "lab.entry=new", id="next_entry"),
        pytest.param("true", "lab.cmdline=1", id="after next_entry"),
        pytest.param("grub-editenv /boot/grub/grubenv unset kernelopts", "lab.from=cfg", id="no kernelopts"),
    ],
)
def test_the_predicted_command_line_boots(machine: Machine, script: str, expected: str) -> None:
    sh(machine, script)
    assert expected in assert_predicted(machine).split()


@pytest.mark.parametrize(
    ("edit", "saved"),
    [
        pytest.param("s/^options.*/&\\noptions lab.second=1/", "$id.2", id="two lines of options"),
        pytest.param("s/^options.*/& lab.a=$lab_b,c lab.d=${lab_b}/", "$id.2", id="variables"),
        pytest.param('s/^options.*/& "lab.quoted=a  b"/', "$id.2", id="quotes"),
        pytest.param("/^title/d; $s/$/\\n\\ntitle Late/", "Late", id="a title behind an empty line"),
    ],
)
def test_an_entry_made_by_hand_is_read_as_grub_reads_it(machine: Machine, edit: str, saved: str) -> None:
    sh(machine, f"{copy(edit, '.2')} {SET} lab_b=1; {SET} saved_entry={saved}")
    assert_predicted(machine)
