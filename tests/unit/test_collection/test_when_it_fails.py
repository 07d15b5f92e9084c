# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run says when something fails in its middle: each error is made, and docs/evidence/failures.md has its text."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any
from unittest import mock

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.enforce import steps
from ansible_collections.durable.dbhost.plugins.module_utils.engines.faircom import apply as faircom
from ansible_collections.durable.dbhost.plugins.module_utils.host import our_paths, seam
from ansible_collections.durable.dbhost.plugins.module_utils.host.refusals import remedy
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, CommandFailed
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect.inputs import UNDO_AFTER
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.results import conclude, failure
from ansible_collections.durable.dbhost.plugins.module_utils.undo.arm import arm
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fake_host import FakeHost
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.runs import LAYERS
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.small_host import BigHost
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.undo_host import UndoHost
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.vendor_host import (
    CFG,
    VendorHost,
    with_faircom,
)

from .test_docs import table

SDA = "serial:QEMU_HARDDISK_SATA0001"
ROWS: dict[str, list[dict[str, Any]]] = {
    "mount_options": [{"target": "/srv/pgdata", "barrier": "on", "atime": "noatime"}],
    "write_cache": [{"disk": SDA, "state": "disabled"}],
    "io_scheduler": [{"device": SDA, "scheduler": "mq-deadline"}],
}
CODE = {**LAYERS, "faircom": faircom}


class Refuses(FakeHost):
    """A stand-in of which some paths are refused, with an error of the kernel's, by the seam's own code; `tools`: {last
    argument: what a program says that refuses}."""

    refused: Mapping[str, int] = MappingProxyType({})
    tools: Mapping[str, str] = MappingProxyType({})

    def write_file(self, path: str, content: bytes, mode: int = 0o644, owner: int = 0) -> None:
        self._refuse(seam, "_replace", path, lambda: seam.Host.write_file(self, path, content, mode))
        super().write_file(path, content, mode, owner)

    def write_attribute(self, path: str, value: str) -> None:
        self._refuse(os, "open", path, lambda: seam.Host.write_attribute(self, path, value))
        super().write_attribute(path, value)

    def on_change(self, argv: list[str]) -> None:
        if argv[-1] in self.tools and argv[0] != "sync":
            raise CommandFailed(argv, 5, self.tools[argv[-1]])
        super().on_change(argv)

    def on_options(self, target: str, options: Sequence[str]) -> None:
        if target in self.tools:
            why = f"{target}: {','.join(options)}: {self.tools[target]}"
            raise ChangeFailed(f"{why}; {remedy(why)}")
        super().on_options(target, options)

    def _refuse(self, module: Any, call: str, path: str, act: Callable[[], None]) -> None:
        if path in self.refused:
            error = OSError(self.refused[path], os.strerror(self.refused[path]))
            with (
                mock.patch.object(module, call, side_effect=error),
                mock.patch.object(os.path, "ismount", "/".__eq__),
            ):
                act()


class Refusing(Refuses, UndoHost):
    """A small host with barriers off and caches on."""

    def __init__(self, refused: dict[str, int] | None = None, tools: dict[str, str] | None = None) -> None:
        super().__init__()
        self.mounts["/srv/pgdata"].barrier = "off"
        self.refused, self.tools = refused or {}, tools or {}


class BigRefusing(Refusing, BigHost):
    """The same with SAS and NVMe disks."""


class VendorRefusing(Refuses, VendorHost):
    """A host with a database server."""


def step(host: FakeHost, layer: str, *targets: dict[str, Any]) -> str:
    """Return what a step that fails says, as the action has it."""
    plan = [
        {
            "phase": "tighten",
            "layer": layer,
            "class": "safety",
            "arguments": {"targets": list(targets) or ROWS[layer], "state": "present"},
        }
    ]
    (taken,) = steps.take(host, CODE, plan, {}, foretell=False)
    (why,) = taken.outcome.failures
    return f"tighten {layer}: {why}"


def unarmed(host: UndoHost) -> str:
    """Return what is said where the rollback timer cannot be armed."""
    with pytest.raises(ChangeFailed) as error:
        arm(host, LAYERS, [], 600)
    return str(error.value)


def deaf() -> UndoHost:
    """Return a host with a disk that says yes, and does not follow."""
    host = Refusing()
    host.disks["sda"].obeys = False
    return host


def pulled(before: bool) -> UndoHost:
    """Return a host whose disk is pulled before a step, or in its middle."""
    host = Refusing(tools={} if before else {"/dev/sda": "/dev/sda: No such file or directory"})
    if before:
        host.unplug("sda")
    else:
        host.after_mutation = lambda: host.unplug("sda") if "sda" in host.disks else None
    return host


def lost(state: str, seconds: int, last: dict[str, str] | None = None) -> str:
    """Return what is said of a host that did not answer again after its steps, or only once it had gone back."""
    looked = {"verdict": "unreachable", "warnings": [], "notes": [], "why": [], "reasons": [], "fails": True}
    found = {**looked, **{key: [] for key in ("plan", "changes", "files", "exposed")}}
    looks = [{"assessment": found}, {"assessment": found, "switch": last}]
    error = "lost the host: No route to host" if state == "unknown" else None
    report = conclude(looks, {"switch": state, "undo_after": seconds, "error": error}, {}, False)
    assert report["undone"] is bool(last)
    return str(report["error"])


FSTAB = "/etc/fstab"
SCHEDULER = "/sys/block/sda/queue/scheduler"
#: As hdparm and nvme say it.
ABORTED = "HDIO_DRIVE_CMD(setcache) failed: Input/output error"
FIRED = {"state": "fired", "said": "at 2026-01-31T12:10:00Z it restored /etc/fstab"}
#: Failure, as the table has it -> what is said.
SAID: dict[str, Callable[[], str]] = {
    "disk full": lambda: step(Refusing({FSTAB: errno.ENOSPC}), "mount_options"),
    "disk full before the first change": lambda: unarmed(Refusing({our_paths.UNDO_JOURNAL: errno.ENOSPC})),
    "read-only root": lambda: step(Refusing({FSTAB: errno.EROFS}), "mount_options"),
    "immutable file": lambda: step(Refusing({FSTAB: errno.EPERM}), "mount_options"),
    "device that refuses": lambda: step(Refusing(tools={"/dev/sda": ABORTED}), "write_cache"),
    "kernel that refuses": lambda: step(Refusing({SCHEDULER: errno.EINVAL}), "io_scheduler"),
    "device that says yes and does not follow": lambda: step(deaf(), "write_cache"),
    "disk gone": lambda: step(pulled(before=True), "write_cache"),
    "disk gone in the middle": lambda: step(pulled(before=False), "write_cache"),
    "sshd gone during the steps": lambda: lost("unknown", UNDO_AFTER),
    "sshd gone, and no switch": lambda: lost("unknown", 0),
    "sshd gone after the steps": lambda: lost("armed", UNDO_AFTER),
    "sshd back after the switch": lambda: lost("armed", UNDO_AFTER, FIRED),
}


@pytest.mark.parametrize(
    ("name", "cells"),
    [(row[0], row[1:]) for row in table("docs/evidence/failures.md", "failure | the run says")],
)
def test_the_page_has_what_a_run_says(name: str, cells: list[str]) -> None:
    said = SAID[name]()
    assert said.startswith(cells[0])
    assert [cell for cell in cells if cell not in said] == [], said
    report = {"verdict": "at_risk", "fails": True, "error": said, "why": [], "reasons": []}
    assert cells[0][:100] in str(failure(report))


def test_the_page_has_every_failure() -> None:
    assert [row[0] for row in table("docs/evidence/failures.md", "failure | the run says")] == list(SAID)


SAS, NVME, VIRTIO = "wwn:0x5000c500a1b2c3d4", "nvme:eui.0025385", "serial:VIRT0001"
CACHE_TYPE = "/sys/block/sdc/device/scsi_disk/0:0:0:0/cache_type"
OFF = {"state": "disabled"}


def engine() -> FakeHost:
    """Return a host whose server's file cannot be written."""
    host = with_faircom()
    host.__class__ = VendorRefusing
    vars(host)["refused"] = {CFG: errno.EROFS}
    return host


@pytest.mark.parametrize(
    ("host", "layer", "target", "said", "left"),
    [
        (
            lambda: Refusing({our_paths.CACHE_RULES: errno.ENOSPC}),
            *("write_cache", {"disk": SDA, **OFF}, "No space left on device: not changed; free space on / "),
            f"not done: {SDA} write_cache (persisted): observed unset, expected disabled",
        ),
        (
            lambda: BigRefusing({CACHE_TYPE: errno.EIO}),
            *(
                "write_cache",
                {"disk": SAS, **OFF},
                f"{CACHE_TYPE}: writing 'write through': Input/output error;",
            ),
            f"not done: {SAS} write_cache (running): observed enabled, expected disabled",
        ),
        (
            lambda: BigRefusing(tools={"--value=0": "NVMe status: Feature Not Changeable(0x10e)"}),
            *(
                "write_cache",
                {"disk": NVME, **OFF},
                "exit 5: NVMe status: Feature Not Changeable(0x10e); fix the cause that",
            ),
            f"not done: {NVME} write_cache (running): observed enabled, expected disabled",
        ),
        (
            lambda: Refusing({"/sys/block/vdb/cache_type": errno.ENODEV}),
            *("write_cache", {"disk": VIRTIO, **OFF}, "No such device; the device is not there any more"),
            f"not done: {VIRTIO} write_cache (running): observed enabled, expected disabled",
        ),
        (
            lambda: Refusing(tools={"/srv/pgdata": "Input/output error"}),
            *("mount_options", {"target": "/srv/pgdata", "barrier": "on"}, "the disk answers with an error"),
            "not done: /srv/pgdata barrier (running): observed off, expected on",
        ),
        (
            lambda: Refusing(
                tools={"/dev/block/254:1": "tune2fs: Read-only file system while trying to open it"}
            ),
            *(
                "mount_options",
                {"target": "/", "data_mode": "journal"},
                "says why that file system is read-only",
            ),
            "not done: / data_mode (persisted): observed ordered, expected journal",
        ),
        (
            engine,
            *("faircom", {"instance": "/opt/faircom", "settings": {"COMMIT_DELAY": "2"}}),
            f"{CFG}: Read-only file system: not changed; the kernel log (dmesg) says why / is read-only",
            "not done: /opt/faircom COMMIT_DELAY (persisted): observed",
        ),
    ],
)
def test_each_layer_that_meets_a_failure_says_what_it_saw_and_did_and_what_to_do(
    host: Callable[[], FakeHost], layer: str, target: dict[str, Any], said: str, left: str
) -> None:
    told = step(host(), layer, target)
    assert said in told
    assert left in told
    assert "then run again; " in told
