# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Image mode, transactional roots and a read-only /usr. Rebuilt from their documents; no such host ran."""

from __future__ import annotations

import ast
import copy
import re
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.facts import boot_causes
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import root_image as fixes
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.storage import root_image
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ..fakes.captured import COLLECTION
from ..fakes.fake_host import FakeHost
from ..fakes.runs import NOW, inputs, settled
from ..policy.test_catalogue import faulty

PG = ["/srv/pgdata"]
UUID = "5fd49e99-6297-4880-92ef-dc7d08f8f0d3"
CHECKSUM = "0a1b2c" * 10
#: What changes the boot of other hosts.
FOREIGN = re.compile(
    r"update-initramfs|\bdracut\b|grub2?-mkconfig|update-grub|grubby|grub2-set-default|/etc/kernel/cmdline"
)
ENTRY = "/boot/loader/entries/ostree-2.conf"
#: Values of texts that are no names.
VALUES = {"how": "-u", "force": "--force "}
DEFAULT = ("btrfs", "subvolume", "get-default", "/")


def host(mounts: str, cmdline: str = f"root=UUID={UUID} ro", **files: str) -> FakeHost:
    found = FakeHost()
    found.files.update({"/proc/self/mountinfo": mounts, "/proc/cmdline": f"{cmdline}\n"})
    found.files.update({path.replace("__", "/"): text for path, text in files.items()})
    return found


def ostree(serial: str = "0", boot: str = "1") -> str:
    """Return a command line of a deployment."""
    return f"root=UUID={UUID} rw ostree=/ostree/boot.{boot}/fedora/{CHECKSUM}/{serial}"


PLAIN = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
COREOS = (
    "22 1 8:4 /ostree/deploy/fedora/deploy/0 / rw - xfs /dev/sda4 rw\n"
    "23 22 8:4 /ostree/deploy/fedora/deploy/0/usr /usr ro - xfs /dev/sda4 rw\n"
    "24 22 8:4 / /sysroot ro - xfs /dev/sda4 rw\n"
)
MICROOS = "22 1 0:30 /@/.snapshots/7/snapshot / ro - btrfs /dev/sda3 ro\n"
SLES = MICROOS.replace(" ro -", " rw -").replace("sda3 ro", "sda3 rw")
READ_ONLY = f"{PLAIN}23 22 8:2 / /usr ro - ext4 /dev/sda2 ro\n"


def answer(number: int) -> str:
    return f"ID 280 gen 90 top level 266 path @/.snapshots/{number}/snapshot\n"


def read(found: FakeHost, default: str | None = None) -> tuple[str, str]:
    if default is not None:
        found.commands[DEFAULT] = default
    facts = root_image.read(found)
    assert found.mutations == []
    return facts


def test_a_root_without_an_image_boots_again() -> None:
    assert read(host(PLAIN)) == ("none", "same")
    assert read(host(READ_ONLY)) == ("read_only", "same")


@pytest.mark.parametrize(
    ("entry", "staged", "word"),
    [
        (ostree(), False, "same"),
        # The directories alternate with each change of the boot loader's entries.
        (ostree(boot="0.1"), False, "same"),
        (ostree(serial="1"), False, "other"),
        (f"root=UUID={UUID} ro", False, "other"),
        # ostree-finalize-staged writes its entry at the shutdown.
        (ostree(), True, "other"),
    ],
)
def test_the_next_deployment_is_that_of_the_entry_or_a_staged_one(
    entry: str, staged: bool, word: str
) -> None:
    found = host(COREOS, ostree())
    found.files[ENTRY] = (
        f"title Fedora CoreOS\nversion 2\nlinux /ostree/vmlinuz\ninitrd /ostree/initramfs.img\noptions {entry}\n"
    )
    if staged:
        found.files["/run/ostree/staged-deployment"] = ""
    assert read(found) == ("ostree", word)


@pytest.mark.parametrize(("mounts", "kind"), [(MICROOS, "transactional"), (SLES, "none")])
@pytest.mark.parametrize(("number", "word"), [(7, "same"), (8, "other")])
def test_the_next_snapshot_is_the_default_subvolume(mounts: str, kind: str, number: int, word: str) -> None:
    found = host(mounts)
    found.files["/usr/sbin/transactional-update"] = ""
    assert read(found, answer(number)) == (kind, word)


def test_a_snapshot_that_the_entry_names_is_compared_with_the_entries() -> None:
    found = host(MICROOS, f"root=UUID={UUID} rootflags=subvol=@/.snapshots/7/snapshot")
    assert read(found) == ("read_only", "same")


@pytest.mark.parametrize("said", ["", "ID 5 (FS_TREE)\n"])
def test_a_default_that_is_not_understood_is_unknown(said: str) -> None:
    assert read(host(MICROOS), said)[1] == "unknown"


def test_a_default_that_cannot_be_read_is_unknown() -> None:
    assert read(host(MICROOS))[1] == "unknown"


def storage(**given: str) -> dict[str, Any]:
    return {**copy.deepcopy(collect(settled("strict", mounts=PG), NOW)), **given}


@pytest.mark.parametrize(
    ("word", "kind"), [("other", "unknown.next_root"), ("unknown", "unknown.next_root.unread")]
)
def test_what_another_root_persists_is_unknown(word: str, kind: str) -> None:
    before = assess(inputs(mounts=PG), storage(), NOW)
    assert before["verdict"] in ("durable", "attested", "unverified")
    found = assess(inputs(mounts=PG), storage(next_root=word), NOW)
    assert found["verdict"] == "unknown"
    assert [each["id"] for each in found["reasons"] if each["verdict"] == "unknown"] == [kind]


def texts() -> list[str]:
    """Return all texts of the product that name a command of the boot, values in them as X."""
    found = []
    for path in sorted((COLLECTION / "plugins/module_utils").rglob("*.py")):
        if path.name == "root_image.py" or path.parent.name in ("capture", "next_boot"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inner = {
            id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
        }
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if id(node) in inner | docs:
                continue
            if isinstance(node, ast.JoinedStr):
                parts = [
                    part.value if isinstance(part, ast.Constant) else VALUES.get(ast.unparse(part.value), "X")
                    for part in node.values
                ]
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return [text for text in found if FOREIGN.search(text) and " " in text]


@pytest.mark.parametrize("kind", ["ostree", "transactional", "read_only"])
def test_no_fix_names_a_command_that_is_for_other_hosts(kind: str) -> None:
    every = texts()
    assert len(every) >= 8
    for text in every:
        assert not FOREIGN.search(fixes.fix(text, kind)), text
    assert [fixes.fix(text, "none") for text in every] == every


@pytest.mark.parametrize(
    ("kind", "text", "fixed"),
    [
        (
            "ostree",
            "remove nobarrier from rootflags= of /boot/loader/entries/ostree-1.conf line 5",
            "remove nobarrier from rootflags= of /boot/loader/entries/ostree-1.conf line 5"
            " (rpm-ostree kargs, bootc: kargs.d of the image)",
        ),
        (
            "transactional",
            "install hdparm on this host",
            "install with transactional-update pkg install hdparm on this host",
        ),
        ("ostree", "install that kernel again", "install that kernel again"),
        (
            "transactional",
            "update-initramfs -u -k 6.4.0-1 or dracut --force --kver 6.4.0-1, then run again",
            "transactional-update initrd and reboot, then run again",
        ),
    ],
)
def test_a_fix_names_what_changes_the_boot_of_its_root(kind: str, text: str, fixed: str) -> None:
    assert fixes.fix(text, kind) == fixed


@pytest.mark.parametrize("kind", ["ostree", "transactional", "read_only"])
def test_the_report_of_an_image_has_its_own_fixes(kind: str) -> None:
    whys = {}
    for cause in boot_causes.FAULT_OF:
        (whys[cause],) = [
            f"{each['reason']} {each['fix']}"
            for each in assess(inputs(mounts=PG), {**faulty(cause), "root_image": kind}, NOW)["reasons"]
            if each["id"] == f"boot.{cause}"
        ]
    assert [cause for cause, why in whys.items() if FOREIGN.search(why)] == []
    plain = [assess(inputs(mounts=PG), faulty(cause), NOW)["why"] for cause in boot_causes.FAULT_OF]
    assert any(FOREIGN.search(" ".join(why)) for why in plain)


def test_an_unreadable_command_line_leaves_the_next_root_unknown() -> None:
    found = host(PLAIN)
    del found.files["/proc/cmdline"]
    assert read(found) == ("none", "unknown")
