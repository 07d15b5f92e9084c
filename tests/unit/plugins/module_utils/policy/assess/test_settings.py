# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each setting beside what is wanted: its verdict, and the phase in which it may change."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import NoProgram, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import verdicts
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess.plan import build, changes
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess.settings import (
    Boot,
    Setting,
    of_disk,
    of_layers,
    of_mount,
)
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect.guarantees import Disk
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import choose
from ansible_collections.durable.dbhost.plugins.module_utils.rows import FIX_READ_ERROR
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ...fakes.runs import (
    NOW,
    attested,
    enforce,
    look,
    settled,
    shipped,
)
from ...fakes.small_host import (
    BigHost,
    FakeDisk,
    FakeMount,
    SmallHost,
)


def row(
    kind: str,
    name: str,
    setting: str,
    profile: str = "strict",
    faults: tuple[dict[str, Any], ...] = (),
    **changes: Any,
) -> Setting:
    """Return one row for a disk or mount whose observed words were replaced by these; `faults` are those of its boot."""
    found = collect(BigHost(), NOW)[kind]
    (facts,) = [entry for entry in found if name in (entry.get("name"), entry.get("target"))]
    for path, word in changes.items():
        group, _dot, key = path.rpartition("__")
        (facts[group] if group else facts)[key] = word
    chosen, _pinned = choose(profile, shipped(), {}, {})
    boot = Boot("6.1.0-26-amd64", faults)
    rows = of_disk(facts, chosen) if kind == "disks" else of_mount(facts, chosen, boot)
    return next(row for row in rows if row.setting == setting)


@pytest.mark.parametrize("profile", ["strict", "disposable"])
@pytest.mark.parametrize(
    ("running", "persisted", "strict", "disposable"),
    [
        ("on", "on", ("ok", None), ("drift_running", "loosen")),
        ("on", "off", ("drift_persisted", "tighten"), ("drift_running", "loosen")),
        ("off", "on", ("drift_running", "tighten"), ("drift_persisted", "loosen")),
        ("off", "off", ("drift_running", "tighten"), ("ok", None)),
        ("unknown", "on", ("unknown", None), ("unknown", None)),
        ("unknown", "off", ("unknown", None), ("unknown", None)),
        ("on", "unknown", ("unknown", None), ("drift_running", "loosen")),
        ("off", "unknown", ("drift_running", "tighten"), ("unknown", None)),
        ("on", "unset", ("drift_persisted", None), ("drift_running", "loosen")),
        ("off", "unset", ("drift_running", "tighten"), ("drift_persisted", None)),
    ],
)
def test_barriers(profile: str, running: str, persisted: str, strict: Any, disposable: Any) -> None:
    found = row("mounts", "/srv/pgdata", "barrier", profile, barrier=running, persisted__barrier=persisted)
    assert (found.verdict, found.phase) == {"strict": strict, "disposable": disposable}[profile]
    assert bool(found.why and found.remedy) == (found.verdict != "ok")


@pytest.mark.parametrize(
    ("cache", "verdict", "loss"),
    [
        ("disabled", "drifted", "commits can be lost once a volatile cache is on, for example after a reset"),
        ("enabled", "at_risk", "acknowledged commits can be lost"),
    ],
)
def test_the_text_about_barriers_agrees_with_the_verdict(cache: str, verdict: str, loss: str) -> None:
    host = settled("strict")
    host.mounts["/srv/pgdata"].barrier = "off"
    for disk in host.disks.values():
        disk.cache = cache
    found = look(host)
    (barrier,) = [
        each for each in found["settings"] if (each["target"], each["setting"]) == ("/srv/pgdata", "barrier")
    ]
    assert found["verdict"] == verdict
    assert barrier["why"] == f"/srv/pgdata does not flush the disk: {loss}"


def test_a_reason_states_the_observed_value_once() -> None:
    found = row("mounts", "/srv/pgdata", "data_mode", "disposable")
    assert found.why == "data_mode is ordered"
    assert (
        verdicts.drift(found).reason
        == "/srv/pgdata: data_mode is ordered at the next boot, expected writeback"
    )


@pytest.mark.parametrize(
    ("running", "persisted", "verdict", "phase"),
    [
        ("ordered", "ordered", "ok", None),
        ("journal", "ordered", "ok", None),
        ("ordered", "journal", "ok", None),
        ("writeback", "ordered", "pending", None),
        ("writeback", "writeback", "drift_persisted", "tighten"),
        ("ordered", "writeback", "drift_persisted", "tighten"),
        # What runs is stricter than what is wanted, and stays: only the boot is mended.
        ("journal", "writeback", "drift_persisted", "tighten"),
        ("writeback", "unknown", "unknown", None),
        ("none", "none", "unknown", None),
        ("ordered", "none", "unknown", None),
    ],
)
def test_data_modes(running: str, persisted: str, verdict: str, phase: str | None) -> None:
    found = row("mounts", "/srv/pgdata", "data_mode", data_mode=running, persisted__data_mode=persisted)
    assert (found.verdict, found.phase) == (verdict, phase)


@pytest.mark.parametrize("named", [True, False])
def test_a_mode_that_the_boot_names_for_the_root_is_not_changed_below_it(named: bool) -> None:
    """The kernel would refuse the remount that makes the root writable."""
    seen = {"data_mode": "writeback", "persisted__data_mode": "writeback"}
    found = row("mounts", "/", "data_mode", **seen, options_boot=["data=writeback"] if named else [])
    assert (found.verdict, found.phase) == ("drift_persisted", None if named else "tighten")
    assert (
        "remove data=writeback from rootflags= and from the line of / in /etc/fstab" in found.remedy
    ) is named


@pytest.mark.parametrize("profile", ["strict", "flush"])
@pytest.mark.parametrize(
    ("device", "persisted", "strict", "flush"),
    [
        ("enabled", "enabled", ("drift_running", "tighten"), ("ok", None)),
        ("enabled", "disabled", ("drift_running", "tighten"), ("drift_persisted", "loosen")),
        ("enabled", "unset", ("drift_running", "tighten"), ("drift_persisted", "tighten")),
        ("disabled", "disabled", ("ok", None), ("drift_running", "loosen")),
        ("disabled", "enabled", ("drift_persisted", "tighten"), ("drift_running", "loosen")),
        ("disabled", "unset", ("drift_persisted", "tighten"), ("drift_running", "loosen")),
        ("unknown", "disabled", ("unknown", None), ("unknown", None)),
        ("disabled", "unknown", ("unknown", None), ("drift_running", "loosen")),
        ("none", "none", ("ok", None), ("ok", None)),
    ],
)
def test_write_caches(profile: str, device: str, persisted: str, strict: Any, flush: Any) -> None:
    words = {"write_cache__device": device, "write_cache__persisted": persisted}
    found = row("disks", "sda", "write_cache", profile, **words)
    assert (found.verdict, found.phase) == {"strict": strict, "flush": flush}[profile]


@pytest.mark.parametrize(
    ("name", "cache_mode", "device", "persisted", "verdict", "phase"),
    [
        ("sda", "write through", "enabled", "disabled", "drift_running", "raise"),
        ("vdb", "write through", "enabled", "disabled", "drift_running", "raise"),
        ("sda", "write through", "disabled", "disabled", "drift_running", "tighten"),
        ("sda", "write back", "disabled", "unset", "drift_persisted", "tighten"),
        ("sda", "write back", "disabled", "disabled", "ok", None),
        ("vdb", "write through", "disabled", "disabled", "ok", None),
        ("vdb", "write back", "disabled", "disabled", "ok", None),
        ("sda", "unknown", "disabled", "disabled", "unknown", None),
    ],
)
def test_the_kernel_cache_mode_is_never_weaker_than_the_device(
    name: str, cache_mode: str, device: str, persisted: str, verdict: str, phase: str | None
) -> None:
    words = {
        "write_cache__kernel": cache_mode,
        "write_cache__device": device,
        "write_cache__persisted": persisted,
    }
    found = row("disks", name, "kernel_cache_mode", **words)
    assert (found.verdict, found.phase) == (verdict, phase)


@pytest.mark.parametrize("change", [{"id": None}, {"switchable": "no"}])
def test_a_disk_that_no_layer_can_switch_is_drift_without_a_plan(change: dict[str, Any]) -> None:
    found = row("disks", "sda", "write_cache", **change)
    assert (found.verdict, found.phase) == ("drift_running", None)
    assert found.remedy


def test_a_setting_of_speed_never_is_one_of_safety() -> None:
    found = row("mounts", "/srv/pgdata", "atime", atime="relatime")
    assert (found.klass, found.phase, found.as_dict()["class"]) == ("performance", "tighten", "performance")


def test_a_word_that_xfs_refuses_is_drift_at_the_next_boot() -> None:
    found = row("mounts", "/srv/mssql", "barrier", persisted__barrier="refused")
    assert (found.verdict, found.phase) == ("drift_persisted", "tighten")
    assert "the next boot cannot mount /srv/mssql" in found.why


@pytest.mark.parametrize(
    ("name", "changes", "profile", "verdict"),
    [
        # virtio and NVMe: the kernel asks the device at each boot, and on is its power-on state.
        ("vdb", {"id": None}, "flush", "ok"),
        ("vdb", {"switchable": "no"}, "flush", "ok"),
        ("nvme0n1", {"id": None}, "flush", "ok"),
        ("vdb", {"id": None}, "strict", "drift_running"),
        ("vdb", {"id": None, "write_cache__device": "disabled"}, "strict", "drift_persisted"),
        ("vdb", {"id": None, "write_cache__device": "disabled"}, "flush", "drift_running"),
        ("vdb", {"id": None, "write_cache__persisted": "disabled"}, "flush", "drift_persisted"),
        ("vdb", {"id": None, "write_cache__persisted": "unknown"}, "flush", "unknown"),
        # What has a name is kept as it is to be.
        ("vdb", {}, "flush", "drift_persisted"),
        # A reset of these can turn on what was found off at the boot: only a pin makes the kernel flush then.
        ("sda", {"id": None}, "flush", "drift_persisted"),
        ("sdc", {"id": None}, "flush", "drift_persisted"),
    ],
)
def test_a_cache_that_is_to_be_on_needs_no_rule_where_none_can_be_kept(
    name: str, changes: dict[str, Any], profile: str, verdict: str
) -> None:
    found = row("disks", name, "write_cache", profile, **changes)
    assert found.verdict == verdict
    assert bool(found.remedy) == (verdict != "ok")
    if verdict == "ok":
        assert row("disks", name, "kernel_cache_mode", profile, **changes).verdict == "ok"
        lie = {**changes, "write_cache__kernel": "write through"}
        assert row("disks", name, "kernel_cache_mode", profile, **lie).verdict == "drift_running"


def test_a_virtio_disk_without_a_serial_number_passes_under_flush() -> None:
    host = SmallHost()
    host.disk("vdb").serial = ""
    given = {"mounts": ["/srv/maria"]}
    enforce(host, look(host, "flush", **given))
    found = look(host, "flush", **given)
    assert (found["verdict"], found["changes"]) == ("unverified", [])
    vouched = look(host, "flush", **given, attestations=[attested("host_honours_flush")])
    assert vouched["verdict"] == "attested"
    # Under strict it says how.
    found = look(host, "strict", **given)
    (cache,) = [row for row in found["settings"] if row["setting"] == "write_cache"]
    assert "serial number" in cache["remedy"]
    assert "QEMU or libvirt" in cache["remedy"]


@pytest.mark.parametrize("profile", ["strict", "flush"])
@pytest.mark.parametrize("page", [True, False])
def test_a_vmware_disk_without_a_name_says_how_to_give_it_one(page: bool, profile: str) -> None:
    host = SmallHost()
    port = "0000:03:00.0/host7/target7:0:0/7:0:0:0/block"
    disk = FakeDisk("sdx", "scsi", "", vendor="VMware", model="Virtual disk", driver="vmw_pvscsi", port=port)
    disk.caching_page = page
    disk.cache_mode = "write back" if page else "write through"
    host.add_disk(disk, "8:240")
    host.commands[("systemd-detect-virt",)] = "vmware\n"
    host.add_mount(FakeMount("/srv/x", "ext4", "8:240", "/dev/sdx", "sdx"))
    found = look(host, profile, mounts=["/srv/x"])
    rows = [row for row in found["settings"] if row["layer"] == "write_cache" and row["verdict"] != "ok"]
    assert rows
    for seen in rows:
        assert "disk.EnableUUID = TRUE" in seen["remedy"], seen
        # An attestation without an id would be refused.
        assert "attest" not in seen["remedy"], seen
        assert (
            "sdx has no id, so no setting can be persisted for it: it has no WWN or serial number"
            in seen["why"]
        )


@pytest.mark.parametrize("setting", ["barrier", "atime"])
def test_what_only_a_container_has_mounted_is_changed_there_and_not_here(setting: str) -> None:
    hidden = {
        "hidden_in": "process 77 (postgres)",
        "persisted__barrier": "unknown",
        "persisted__atime": "unknown",
    }
    found = row("mounts", "/srv/pgdata", setting, barrier="off", atime="relatime", **hidden)
    assert (found.verdict, found.phase) == ("drift_running", None)
    assert (
        found.remedy == "mount it by the host's /etc/fstab and pass it to process 77 (postgres) as a volume"
    )


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("barrier", "atime", "persist"),
    [
        ("off", "unknown", True),
        ("unknown", "relatime", True),
        ("off", "relatime", True),
        ("unset", "unset", False),
    ],
)
def test_a_line_is_ours_to_edit_if_any_setting_of_it_can_be_kept(
    barrier: str, atime: str, persist: bool, turned: bool
) -> None:
    seen = {"barrier": "off", "atime": "relatime", "persisted__barrier": barrier, "persisted__atime": atime}
    rows = [row("mounts", "/srv/pgdata", setting, **seen) for setting in ("barrier", "atime")]
    (target,) = build(rows[::-1] if turned else rows, False)["tighten"]["mount_options"]
    assert target["persist"] is persist


@pytest.mark.parametrize(
    ("seen", "reported"), [("unknown", None), ("unset", None), ("off", "off"), ("on", "on")]
)
def test_a_change_of_what_is_in_force_alone_promises_nothing_for_the_next_boot(
    seen: str, reported: str | None
) -> None:
    rows = [row("mounts", "/srv/pgdata", "barrier", barrier="off", persisted__barrier=seen)]
    (found,) = changes(build(rows, False), rows)
    assert (found["running"], found["persisted"], found["wanted"]) == ("off", reported, "on")


@pytest.mark.parametrize(
    ("name", "options", "phase"),
    [
        # What the run would write, the kernel would refuse: it is not promised.
        ("/srv/pgdata", ["nobarrier", "noatmie"], None),
        ("/srv/pgdata", ["nobarrier"], "tighten"),
        # The run takes these words out itself.
        ("/srv/pgdata", ["barrier=+0"], "tighten"),
        ("/srv/mssql", ["nobarrier", "inode64"], "tighten"),
        ("/srv/mssql", ["nobarrier", "inode46"], None),
    ],
)
def test_what_the_kernel_would_refuse_is_not_planned(
    name: str, options: list[str], phase: str | None
) -> None:
    persisted = "refused" if name == "/srv/mssql" else "off"
    words = [word for word in options if word in ("noatmie", "inode46", "barrier=+0", "nobarrier")]
    found = row(
        "mounts",
        name,
        "barrier",
        faults=(refusal(name, words),),
        persisted__barrier=persisted,
        options_boot=options,
    )
    assert (found.verdict, found.phase) == ("drift_persisted", phase)
    line = {"/srv/pgdata": 3, "/srv/mssql": 4}[name]
    mend = f"correct or remove {options[-1]} in /etc/fstab line {line}"
    assert found.remedy == ("run harden_db" if phase else mend)


def refusal(target: str, words: list[str], state: str = "refused") -> dict[str, Any]:
    """Return the fact that the kernel refuses options of a line, or that it is unknown whether it does."""
    return {"cause": "unknown_option", "target": target, "state": state, "options": words}


@pytest.mark.parametrize(
    ("word", "faults", "phase"),
    [
        # No table has it, and the kernel knows it.
        ("fresh_option", (), "tighten"),
        ("fresh_option", (refusal("/srv/maria", ["fresh_option"]),), "tighten"),
        ("fresh_option", (refusal("/srv/pgdata", ["fresh_option"], "unknown"),), None),
        # The table has it, and the kernel refuses it.
        ("nodelalloc", (refusal("/srv/pgdata", ["nodelalloc"]),), None),
        ("nodelalloc", (refusal("/srv/pgdata", ["nodelalloc"], "unknown"),), "tighten"),
        ("nodelalloc", (), "tighten"),
    ],
)
def test_the_kernel_s_answer_takes_precedence_over_the_table(
    word: str, faults: tuple[dict[str, Any], ...], phase: str | None
) -> None:
    options = ["nobarrier", word]
    found = row(
        "mounts", "/srv/pgdata", "barrier", faults=faults, persisted__barrier="off", options_boot=options
    )
    assert found.phase == phase
    assert (word in found.remedy) == (phase is None)


def test_what_only_another_namespace_sees_is_not_changed_from_here() -> None:
    seen = row("mounts", "/srv/pgdata", "barrier", barrier="off", hidden_in="process 7 (postgres)")
    assert (seen.verdict, seen.phase) == ("drift_running", None)
    assert seen.remedy == "mount it by the host's /etc/fstab and pass it to process 7 (postgres) as a volume"


def test_a_layer_over_a_cache_that_is_to_come_on_has_to_pass_flushes() -> None:
    """Of a disk whose cache and kernel cache mode are one switch the profile alone tells that it will cache."""
    storage = collect(SmallHost(), NOW)
    (disk,) = [disk for disk in storage["disks"] if disk["name"] == "vdb"]
    disk["write_cache"]["device"] = "disabled"
    layer = {
        "name": "dm-0",
        "label": "",
        "type": "lvm",
        "detail": "linear",
        "state": "",
        "cache_mode": "write through",
        "below": ["vdb"],
    }
    stack = [layer, {**layer, "name": "vdb", "type": "disk", "cache_mode": "", "below": []}]
    (mount,) = [{**mount, "stack": stack} for mount in storage["mounts"] if mount["target"] == "/srv/maria"]
    for profile, rows in (("flush", 1), ("strict", 0)):
        chosen, _pinned = choose(profile, shipped(), {}, {})
        assert len(of_layers([mount], [Disk(disk, chosen)], [])) == rows


def test_a_virtio_switch_that_is_read_only_is_left_to_the_hypervisor() -> None:
    host = SmallHost()
    host.modes[host.resolve("/sys/block/vdb/cache_type")] = 0o444
    found = look(host, "strict", mounts=["/srv/maria"])
    assert not found["plan"]["tighten"].get("write_cache")
    (row,) = [row for row in found["settings"] if row["setting"] == "write_cache"]
    assert "hypervisor" in row["remedy"]


def test_a_stricter_journal_needs_no_reboot() -> None:
    host = SmallHost()
    host.mounts["/srv/pgdata"].data = "journal"
    host.files["/etc/fstab"] = host.read("/etc/fstab").replace(
        "pgdata\text4\tdefaults", "pgdata\text4\tdata=writeback"
    )
    assert look(host, "strict", mounts=["/srv/pgdata"])["pending"] == []


def test_an_attestation_counts_where_the_tool_is_missing() -> None:
    host = SmallHost()
    host.commands[("hdparm", "-W", "/dev/sda")] = NoProgram("hdparm: No such file or directory")

    def row(*words: dict[str, str]) -> dict[str, str]:
        found = look(host, "protected", mounts=["/srv/pgdata"], attestations=list(words))
        return next(row for row in found["settings"] if row["setting"] == "write_cache")

    cure = "install hdparm, or attest power_loss_protection for serial:QEMU_HARDDISK_SATA0001"
    assert (row()["verdict"], row()["remedy"]) == ("unknown", cure)
    assert (row(attested())["verdict"], row(attested())["wanted_running"]) == ("ok", "attested")


VIRTIO = "vdb"


@pytest.mark.parametrize(
    ("setting", "changes", "remedy"),
    [
        ("kernel_cache_mode", {"write_cache__kernel_persisted": "unknown"}, FIX_READ_ERROR),
        ("write_cache", {"write_cache__persisted": "unknown"}, FIX_READ_ERROR),
        (
            "kernel_cache_mode",
            {"write_cache__device": "disabled", "write_cache__kernel": "write through"},
            "run harden_db",
        ),
    ],
)
def test_a_disk_that_a_run_switches_is_not_for_its_hypervisor(
    setting: str, changes: dict[str, str], remedy: str
) -> None:
    if "write_cache__kernel_persisted" in changes:
        unread = {"value": "unknown", "source": "x", "reason": "y"}
        changes = {**changes, "evidence__write_cache.kernel_persisted": unread}  # type: ignore[dict-item]
    found = row("disks", VIRTIO, setting, "flush", **changes)
    assert found.verdict != "ok"
    assert found.remedy == remedy


@pytest.mark.parametrize("target", ["/etc", "/sysroot", "/usr", "/etc/hosts"])
def test_a_mount_that_ostree_makes_gets_no_line_of_fstab(target: str) -> None:
    changes = {"target": target, "targets": [target, "/var"], "persisted__barrier": "unset"}
    changes["persisted__atime"] = "unset"
    found = row("mounts", "/srv/pgdata", "barrier", **changes)
    assert found.verdict == "drift_persisted"
    assert found.remedy.startswith(
        f"add no line for {target} to /etc/fstab: on an ostree host the initramfs mounts it"
    )
    changes["targets"] = ["/etcetera"]
    assert "add a line for" in row("mounts", "/srv/pgdata", "barrier", **changes).remedy


OTHERS = """\
91 30 0:46 / /srv/nine rw - 9p share rw,trans=virtio
92 30 0:47 / /srv/cifs rw - cifs //nas/db rw,vers=3.0
93 30 0:48 / /srv/fuse rw - fuse.sshfs x@y:/z rw
94 30 0:49 / /srv/ram rw - ramfs ramfs rw
95 30 0:50 / /srv/tmp rw - tmpfs tmpfs rw
"""


class OtherMounts(SmallHost):
    """A host with file systems that are on no block device."""

    def read(self, path: str) -> str:
        text = super().read(path)
        return text + OTHERS if path == "/proc/self/mountinfo" else text


@pytest.mark.parametrize("target", ["/srv/nine", "/srv/cifs", "/srv/fuse", "/srv/ram", "/srv/tmp"])
def test_data_on_no_block_device_has_to_move_and_nothing_was_unreadable(target: str) -> None:
    why = look(OtherMounts(), "strict", mounts=[target])["why"]
    assert why
    assert all("move the data" in each for each in why)
    assert FIX_READ_ERROR not in " ".join(why)


SYNC = {
    "mounted_sync": {
        **shipped()["flush"],
        "summary": "Each write waits.",
        "sync": "sync",
    }
}


def test_a_lost_sync_is_drift_and_a_run_restores_it() -> None:
    host = SmallHost()
    given: dict[str, Any] = {"own": SYNC, "attestations": [attested("host_honours_flush", "host")]}

    def sync_rows() -> list[dict[str, Any]]:
        found = look(host, "mounted_sync", **given)
        return [each for each in found["settings"] if each["setting"] == "sync"]

    assert {(each["verdict"], each["phase"]) for each in sync_rows()} == {("drift_running", "tighten")}
    enforce(host, look(host, "mounted_sync", **given))
    host.reboot()
    assert {each["verdict"] for each in sync_rows()} == {"ok"}
    # Somebody remounts one of them.
    host.mounts["/srv/pgdata"].apply("async")
    (lost,) = (each for each in sync_rows() if each["verdict"] != "ok")
    assert (lost["target"], lost["verdict"], lost["phase"]) == ("/srv/pgdata", "drift_running", "tighten")
    assert "is mounted async: writes without a sync call do not wait" in lost["why"]
    assert look(host, "mounted_sync", **given)["verdict"] == "drifted"


@pytest.mark.parametrize(
    ("line", "persisted"),
    [
        ("mount -o remount,async /srv/pgdata", "async"),
        ("mount -o remount,async,noatime /srv/mssql", "async"),
        # With device and mount point the options of fstab are not read.
        ("mount -o remount,commit=9 /dev/sda1 /srv/pgdata", "async"),
        ("for m in $(cat /etc/list); do mount -o remount,async $m; done", "unknown"),
        ("mount -o remount,sync /srv/pgdata", "sync"),
        ("mount -o remount,commit=9 /srv/pgdata", "sync"),
        ("mount -o remount,async /srv/other", "sync"),
    ],
)
def test_a_remount_at_boot_that_drops_sync_is_not_safe(line: str, persisted: str) -> None:
    host = SmallHost()
    given: dict[str, Any] = {"own": SYNC, "attestations": [attested("host_honours_flush", "host")]}
    enforce(host, look(host, "mounted_sync", **given))
    host.reboot()
    host.files["/etc/rc.local"] = f"#!/bin/sh\n{line}\n"
    host.modes["/etc/rc.local"] = 0o755
    rows = [each for each in look(host, "mounted_sync", **given)["settings"] if each["setting"] == "sync"]
    found = [each for each in rows if each["persisted"] != "sync"]
    assert {each["persisted"] for each in found} == ({persisted} - {"sync"})
    for each in found:
        assert (each["running"], each["verdict"] in ("drift_persisted", "unknown")) == ("sync", True)
        assert "/etc/rc.local line 2" in each["remedy"] and "/etc/rc.local line 2" in each["why"]


def test_sync_at_the_next_boot_is_unknown_if_a_source_cannot_be_read() -> None:
    host = SmallHost()
    given: dict[str, Any] = {"own": SYNC, "attestations": [attested("host_honours_flush", "host")]}
    enforce(host, look(host, "mounted_sync", **given))
    host.reboot()
    host.files["/etc/crontab"] = Unobservable("/etc/crontab: Input/output error")
    rows = [each for each in look(host, "mounted_sync", **given)["settings"] if each["setting"] == "sync"]
    assert {each["persisted"] for each in rows} == {"unknown"}


@pytest.mark.parametrize(
    ("options_boot", "persisted", "verdict"),
    [
        (["rw", "sync"], "noatime", "ok"),
        (["sync", "async"], "noatime", "drift_persisted"),
        (["defaults"], "noatime", "drift_persisted"),
        (None, "unset", "drift_persisted"),
        (None, "unknown", "unknown"),
    ],
)
def test_sync_at_the_next_boot_is_read_from_the_line_that_mounts(
    options_boot: list[str] | None, persisted: str, verdict: str
) -> None:
    found = collect(BigHost(), NOW)["mounts"]
    (facts,) = (each for each in found if each["target"] == "/srv/pgdata")
    facts.update(sync="yes", options_boot=options_boot)
    facts["persisted"]["atime"] = persisted
    profile = choose("strict", shipped(), {}, {"sync": "sync"})[0]
    (found_row,) = (
        each for each in of_mount(facts, profile, Boot("6.1.0-26-amd64", ())) if each.setting == "sync"
    )
    assert found_row.verdict == verdict


def test_without_the_key_nothing_is_assessed_about_sync() -> None:
    assert "sync" not in {each["setting"] for each in look(SmallHost())["settings"]}
