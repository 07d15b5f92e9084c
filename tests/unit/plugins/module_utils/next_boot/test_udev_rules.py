# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of udev: which files count, how lines are read, and what they set for a device."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.next_boot import udev_rules
from ansible_collections.durable.dbhost.plugins.module_utils.next_boot.udev_rules import Device, Token

from ..fakes.fake_host import FakeHost

ETC, LOCAL, USR = "/etc/udev/rules.d", "/usr/local/lib/udev/rules.d", "/usr/lib/udev/rules.d"
DISK = "/sys/devices/pci0000:00/0000:00:1f.2/host0/target0:0:0/0:0:0:0/block/sda"
SCSI = DISK[: -len("/block/sda")]


def host(**rule_files: str) -> FakeHost:
    """Return a host with a SCSI disk, and rule files by their names in /etc."""
    found = FakeHost()
    found.files.update(
        {
            f"{DISK}/uevent": "",
            f"{DISK}/queue/write_cache": "write back\n",
            f"{DISK}/queue/rotational": "1\n",
            f"{SCSI}/uevent": "",
            f"{SCSI}/model": "QEMU HARDDISK   \n",
            f"{SCSI}/vendor": "QEMU    \n",
            "/sys/devices/pci0000:00/0000:00:1f.2/uevent": "",
            **{f"{ETC}/{name}.rules": text for name, text in rule_files.items()},
        }
    )
    found.links.update(
        {
            "/sys/class/block/sda": DISK,
            f"{DISK}/subsystem": "/sys/class/block",
            f"{SCSI}/subsystem": "/sys/bus/scsi",
            f"{SCSI}/driver": "/sys/bus/scsi/drivers/sd",
            "/sys/devices/pci0000:00/0000:00:1f.2/driver": "/sys/bus/pci/drivers/ahci",
        }
    )
    return found


PROPERTIES = {
    "DEVNAME": "/dev/sda",
    "DEVTYPE": "disk",
    "SUBSYSTEM": "block",
    "ID_SERIAL": "0QEMU_one",
    "DEVLINKS": "/dev/disk/by-id/scsi-0QEMU_one /dev/disk/by-uuid/1111-2222",
    "MAJOR": "8",
    "MINOR": "0",
}


def answer(line: str) -> str:
    machine = host()
    (rule,) = udev_rules.parse(line, "x.rules")
    return udev_rules.match(rule, Device.of_block(machine, "sda", PROPERTIES))


def assigned(text: str, **more: str) -> list[tuple[str, str, str | None, bool]]:
    machine = host()
    device = Device.of_block(machine, "sda", {**PROPERTIES, **more})
    found = udev_rules.assignments(udev_rules.parse(text, "x.rules"), device)
    return [(each.key, each.name, each.value, each.is_certain) for each in found]


def test_files_are_read_by_name_and_the_strongest_directory_has_each_name() -> None:
    machine = host(**{"60-b": 'KERNEL=="b"\n'})
    machine.files[f"{USR}/60-b.rules"] = "weak\n"
    machine.files[f"{LOCAL}/10-a.rules"] = "a\n"
    machine.files[f"{USR}/99-z.rules"] = "z\n"
    machine.files[f"{USR}/.hidden.rules"] = machine.files[f"{USR}/notes.txt"] = "no\n"
    assert udev_rules.files(machine) == [f"{LOCAL}/10-a.rules", f"{ETC}/60-b.rules", f"{USR}/99-z.rules"]


def test_run_is_empty_at_the_start_of_a_boot() -> None:
    machine = host()
    machine.files["/run/udev/rules.d/60-b.rules"] = "x\n"
    assert udev_rules.files(machine) == []


@pytest.mark.parametrize("how", ["null", "empty", "nowhere"])
def test_a_masked_file_is_not_read_and_is_named(how: str) -> None:
    machine = host()
    name = "60-persistent-storage.rules"
    machine.files[f"{USR}/{name}"] = "x\n"
    assert not udev_rules.masked(machine, name)
    if how == "empty":
        machine.files[f"{ETC}/{name}"] = ""
    else:
        machine.links[f"{ETC}/{name}"] = "/dev/null" if how == "null" else "/gone"
    assert udev_rules.files(machine) == []
    assert udev_rules.masked(machine, name) == f"{ETC}/{name}"


def test_a_file_that_cannot_be_read_is_not_passed_over() -> None:
    machine = host()

    def refuse() -> str:
        raise Unobservable("Input/output error")

    machine.files[f"{ETC}/60-b.rules"] = refuse
    with pytest.raises(Unobservable):
        udev_rules.files(machine)


def test_lines_continue_behind_comments_and_each_has_its_row() -> None:
    text = '# a \\\nKERNEL=="sda", \\\n  # between \\\n  MODE="0600"\n\n \t\nKERNEL=="b"\n'
    found = udev_rules.parse(text, "/etc/x.rules")
    assert [rule.source for rule in found] == ["/etc/x.rules line 3", "/etc/x.rules line 7"]
    assert found[0].tokens == (Token("KERNEL", "", "==", "sda"), Token("MODE", "", "=", "0600"))


def test_a_line_that_udev_drops_for_its_length_is_dropped() -> None:
    assert udev_rules.parse(f'ENV{{A}}="{"x" * 16384}"', "x") == []


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ('ATTR{queue/write_cache}="write through"', [Token("ATTR", "queue/write_cache", "=", "write through")]),
        ('KERNEL == "a" , MODE:="1"', [Token("KERNEL", "", "==", "a"), Token("MODE", "", ":=", "1")]),
        (r'ENV{A}="say \"x\" \d"', [Token("ENV", "A", "=", r'say "x" \d')]),
        (r'ENV{A}=e"a\tb"', [Token("ENV", "A", "=", "a\tb")]),
        ('ATTR{model}==i"qemu"', [Token("ATTR", "model", "==", "qemu", True)]),
        ('SYMLINK+="a b" OPTIONS+="link_priority=5"', [
            Token("SYMLINK", "", "+=", "a b"), Token("OPTIONS", "", "+=", "link_priority=5")
        ]),
    ],
)  # fmt: skip
def test_tokens(text: str, tokens: list[Token]) -> None:
    (rule,) = udev_rules.parse(text, "x")
    assert (list(rule.tokens), rule.is_odd) == (tokens, False)


@pytest.mark.parametrize("text", ['KERNEL="sda"', 'NONSENSE=="x"', 'KERNEL=="sda', "KERNEL==sda", "KERNEL"])
def test_a_line_that_udev_may_drop_matches_at_most_perhaps(text: str) -> None:
    (rule,) = udev_rules.parse(f'SUBSYSTEM=="block", {text}', "x")
    assert rule.is_odd
    assert udev_rules.match(rule, Device.of_block(host(), "sda", PROPERTIES)) in ("maybe", "no")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('KERNEL=="sd*"', "yes"),
        ('KERNEL=="sd[b-z]"', "no"),
        ('KERNEL=="sd[^b-z]"', "yes"),
        ('KERNEL!="sda"', "no"),
        ('KERNEL=="vd*|sd?"', "yes"),
        ('KERNEL=="SDA"', "no"),
        ('KERNEL==i"SDA"', "yes"),
        ('ACTION=="add|change"', "yes"),
        ('ACTION=="remove"', "no"),
        ('SUBSYSTEM=="block", ENV{DEVTYPE}=="disk"', "yes"),
        ('SUBSYSTEM=="block", ENV{DEVTYPE}=="partition"', "no"),
        ('ENV{ID_SERIAL}=="?*"', "yes"),
        ('ENV{NOTHING}==""', "yes"),
        ('ENV{NOTHING}!="?*"', "yes"),
        ('ATTR{queue/write_cache}=="write back"', "yes"),
        ('ATTR{queue/rotational}=="0"', "no"),
        ('ATTR{missing}=="0"', "no"),
        ('ATTR{missing}!="0"', "maybe"),
        ('ATTRS{model}=="QEMU HARDDISK"', "yes"),
        ('ATTRS{model}=="QEMU*", ATTRS{vendor}=="QEMU"', "yes"),
        ('DRIVERS=="sd"', "yes"),
        ('DRIVERS=="ahci"', "yes"),
        # One parent has to meet both.
        ('DRIVERS=="ahci", ATTRS{vendor}=="QEMU"', "no"),
        ('SUBSYSTEMS=="scsi", KERNELS=="0:0:0:0"', "yes"),
        ('SUBSYSTEMS=="usb"', "no"),
        ('SYMLINK=="disk/by-id/scsi-*"', "yes"),
        ('SYMLINK=="disk/by-id/nvme-*"', "no"),
        ('TEST=="queue/rotational"', "yes"),
        ('TEST!="queue/rotational"', "no"),
        ('TEST=="/nothing"', "no"),
        ('TEST{0200}=="queue/rotational"', "maybe"),
        ('PROGRAM="/bin/true"', "maybe"),
        ('PROGRAM="/bin/true", KERNEL=="vda"', "no"),
        ('IMPORT{program}="x"', "maybe"),
        ('TAG=="systemd"', "maybe"),
        ('DEVPATH=="/devices/pci*"', "yes"),
        ('DEVPATH!="/devices/virtual*"', "yes"),
    ],
)
def test_a_rule_matches_does_not_or_may(line: str, said: str) -> None:
    assert answer(line) == said


def test_what_a_rule_sets_counts_below_it() -> None:
    text = (
        'KERNEL=="sda", ENV{MINE}="1", SYMLINK+="mine"\n'
        'ENV{MINE}=="1", ATTR{queue/write_cache}="write through"\n'
        'SYMLINK=="mine", MODE="0600"\n'
    )
    assert assigned(text) == [
        ("ENV", "MINE", "1", True),
        ("SYMLINK", "", "mine", True),
        ("ATTR", "queue/write_cache", "write through", True),
        ("MODE", "", "0600", True),
    ]


def test_what_may_match_is_not_certain_and_sets_no_property_for_others() -> None:
    text = 'PROGRAM="/x", ENV{MINE}="1"\nENV{MINE}=="1", MODE="0600"\n'
    assert assigned(text) == [("ENV", "MINE", "1", False)]


def test_a_jump_passes_over_what_is_before_its_label() -> None:
    text = 'KERNEL=="sda", GOTO="end"\nMODE="0600"\nLABEL="end", OWNER="a"\n'
    assert assigned(text) == [("OWNER", "", "a", True)]
    assert assigned(text, DEVNAME="/dev/sdb") == [("MODE", "", "0600", True), ("OWNER", "", "a", True)]


def test_after_a_jump_that_may_be_made_nothing_is_certain_up_to_its_label() -> None:
    text = 'PROGRAM="/x", GOTO="end"\nMODE="0600"\nLABEL="end"\nOWNER="a"\n'
    assert assigned(text) == [("MODE", "", "0600", False), ("OWNER", "", "a", True)]


def test_a_jump_ends_with_its_file() -> None:
    rules = [
        *udev_rules.parse('KERNEL=="sda", GOTO="gone"\nOWNER="b"\n', "a.rules"),
        *udev_rules.parse('MODE="0600"', "b.rules"),
    ]
    found = udev_rules.assignments(rules, Device.of_block(host(), "sda", PROPERTIES))
    assert [each.key for each in found] == ["MODE"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("disk/%k", "disk/sda"),
        ("$kernel-$env{ID_SERIAL}", "sda-0QEMU_one"),
        ("%E{DEVTYPE} $$ %%", "disk $ %"),
        ("$attr{queue/rotational}:%s{queue/rotational}", "1:1"),
        ("%M:%m", "8:0"),
        ("%c", None),
        ("$result", None),
        ("$attr{none}", None),
    ],
)
def test_substitutions(value: str, said: str | None) -> None:
    assert udev_rules.expand(value, Device.of_block(host(), "sda", PROPERTIES)) == said


def test_rules_of_packages_are_told_from_others() -> None:
    machine = host(**{"60-b": 'KERNEL=="b"\n'})
    machine.files[f"{USR}/70-c.rules"] = 'KERNEL=="c"\n'
    machine.files[f"{LOCAL}/80-d.rules"] = 'KERNEL=="d"\n'
    assert [rule.is_packaged for rule in udev_rules.read(machine)] == [False, True, False]
