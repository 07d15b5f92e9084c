# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a host to a recording and back to its facts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.capture import capture
from ansible_collections.durable.dbhost.plugins.module_utils.capture.recording import (
    SCHEMA,
    NotRecorded,
    RecordingHost,
    ReplayHost,
    dumps,
    loads,
)
from ansible_collections.durable.dbhost.plugins.module_utils.capture.redaction import WITHHELD, redactor
from ansible_collections.durable.dbhost.plugins.module_utils.facts import boot_causes
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.storage import (
    cache_rules,
    ext4,
    mount_units,
    scheduler_rules,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ..fakes.captured import captured
from ..fakes.fake_devices import FakeMount
from ..fakes.small_host import BigHost, SmallHost

NOW = "2026-01-31T12:00:00Z"
UUID = "f0f6079e-faa6-54a8-a78c-1592123fa797"
UDEVADM = ("udevadm", "info", "--export-db")


def tuned(host: SmallHost) -> None:
    host.files["/run/tuned/tuned.pid"] = "1\n"
    host.files["/etc/tuned/active_profile"] = "own\n"
    host.files["/etc/tuned/post_loaded_profile"] = "late\n"
    host.files["/usr/lib/tuned/late/tuned.conf"] = "[disk]\nreadahead=8192\n"
    host.files["/etc/tuned/own/tuned.conf"] = "[main]\ninclude=base\n[disk]\nelevator=none\n"
    host.files["/usr/lib/tuned/base/tuned.conf"] = "[main]\nsummary=x\n[mine]\ntype=disk\nreadahead=4096\n"


def ruled(host: SmallHost) -> None:
    cached = {host.disk(name).id: (kind, "disabled") for name, kind in (("sda", "sata"), ("vdb", "virtio"))}
    host.files[cache_rules.RULES_PATH] = cache_rules.render(cached)
    host.files[cache_rules.UNIT_PATH] = cache_rules.UNIT_TEXT
    for target in cache_rules._TARGETS:
        host.files[f"/etc/systemd/system/{target}.wants/{cache_rules.UNIT}"] = ""
    scheduled = {host.disk("vdb").id: {"scheduler": "none", "readahead": "256"}}
    host.files[scheduler_rules.RULES_PATH] = scheduler_rules.render(scheduled)


def in_units(host: SmallHost) -> None:
    host.files[mount_units.drop_in("/srv/pgdata")] = mount_units.render(("noatime", "barrier=1"))
    host.files["/etc/systemd/system/srv-mssql.mount"] = (
        "[Mount]\nWhat=/dev/disk/by-uuid/ms\nWhere=/srv/mssql\nOptions=nobarrier\n[Install]\nWantedBy=x\n"
    )
    host.files["/etc/systemd/system/local-fs.target.wants/srv-mssql.mount"] = ""


def in_namespaces(host: SmallHost) -> None:
    seen = "40 1 8:1 / /x rw,noatime - ext4 /dev/sda1 rw\n41 1 8:99 / /hidden rw - ext4 /dev/sdz9 rw\n"
    host.add_process(1, "4026531841", "init", seen)
    host.add_process(77, "4026532000", "mysqld", seen)


def by_uuid(host: SmallHost) -> None:
    host.add_mount(
        FakeMount(f"/srv/{UUID}", "ext4", "8:2", "/dev/sda2", "sda"),
        f"UUID={UUID} /srv/{UUID} ext4 defaults 0 2\n",
    )


def by_id(host: SmallHost) -> None:
    path = "/dev/disk/by-id/ata-QEMU_HARDDISK_SATA0002-part2"
    host.add_mount(
        FakeMount("/srv/x", "ext4", "8:18", "/dev/sdb2", "sdb"), f"{path} /srv/x ext4 noatime 0 2\n"
    )
    host.links[path] = "/dev/sdb2"


def alike(host: SmallHost) -> None:
    host.disk("sdb").serial = host.disk("sda").serial


def remote(host: SmallHost) -> None:
    host.files["/proc/filesystems"] += "nodev\tnfs4\nnodev\tcifs\n"
    mounts = host.files["/proc/self/mountinfo"]
    assert callable(mounts)
    host.files["/proc/self/mountinfo"] = lambda: (
        mounts() + "90 30 0:90 / /n rw - nfs4 nas.example.com:/x rw,vers=4.2,addr=10.9.8.7\n"
    )
    host.files["/etc/fstab"] += "//nas.example.com/y /m cifs credentials=/etc/cred,username=joe 0 0\n"


def slow(host: SmallHost) -> None:
    host.commands["hdparm", "-W", "/dev/sda"] = Unobservable("hdparm -W /dev/sda: no answer within 10 s")
    del host.files[f"{host.disk('vdb').sysfs}/queue/fua"]
    host.commands.pop((*ext4.SHOW, "/dev/block/8:1"))


def nothing(host: SmallHost) -> None:
    host.commands.clear()


HOSTS: dict[str, tuple[type[SmallHost], Callable[[SmallHost], None]]] = {
    "small": (SmallHost, lambda host: None),
    "big": (BigHost, lambda host: None),
    "tuned": (SmallHost, tuned),
    "with our rules": (SmallHost, ruled),
    "with mount units": (SmallHost, in_units),
    "with namespaces": (SmallHost, in_namespaces),
    "a UUID as a mount point": (SmallHost, by_uuid),
    "a link by id": (SmallHost, by_id),
    "two disks of one serial": (SmallHost, alike),
    "with remote file systems": (SmallHost, remote),
    "slow and incomplete": (SmallHost, slow),
    "without commands": (SmallHost, nothing),
}
PATHS = ["/srv/pgdata/base", "/srv/pgdata", "/none", "/dev/sda"]
each_host = pytest.mark.parametrize(("kind", "change"), HOSTS.values(), ids=HOSTS)


def made(kind: type[SmallHost], change: Callable[[SmallHost], None]) -> SmallHost:
    host = kind()
    change(host)
    return host


@each_host
def test_a_replay_gives_the_facts_of_the_host(
    kind: type[SmallHost], change: Callable[[SmallHost], None]
) -> None:
    host = made(kind, change)
    live = collect(host, NOW, PATHS)
    recorder = RecordingHost(host)
    collect(recorder, NOW, PATHS)
    header = {
        "schema": SCHEMA,
        "command": ["storage_facts", *PATHS],
        "kernel": "",
        "release": "",
        "taken": "",
    }
    names, redacted = redactor({**header, "calls": recorder.calls})
    again = capture.replay(loads(dumps(redacted)), NOW)

    def renamed(value: Any) -> Any:
        if isinstance(value, dict):
            return {renamed(key): renamed(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [renamed(inner) for inner in value]
        return names.names.text(value) if isinstance(value, str) else value

    if change not in (remote, by_id):  # where options, or the whole of a serial, are known by their place
        assert renamed(live) == again
    assert list(capture.differences(live, again, names)) == []
    assert len(live["disks"]) == len(again["disks"]) >= 4


@each_host
def test_a_capture_holds_all_that_the_facts_ask(
    kind: type[SmallHost], change: Callable[[SmallHost], None]
) -> None:
    host = made(kind, change)
    found = capture.capture(host, NOW, PATHS)
    assert WITHHELD not in dumps(found)
    assert (found["failed"], found["differs"]) == (None, [])
    assert (found["schema"], found["taken"], found["kernel"]) == (1, "2026-01-31", "6.1.0-26-amd64")
    assert host.mutations == []


@each_host
def test_nothing_names_the_host(kind: type[SmallHost], change: Callable[[SmallHost], None]) -> None:
    host = made(kind, change)
    host.files["/proc/sys/kernel/hostname"] = "dbserver7\n"
    host.files["/etc/fstab"] += "UUID=zz /srv/dbserver7 ext4 defaults 0 0\n"
    text = dumps(capture.capture(host, NOW, PATHS))
    gone = ["SATA000", "VIRT0001", "LABROOT", "a1b2c3d", "0025385", "11111111-2222", UUID, "dbserver7"]
    assert [word for word in [*gone, "nas.example", "10.9.8.7", "/etc/cred", "joe"] if word in text] == []


def test_the_release_is_named() -> None:
    host = SmallHost()
    host.files["/etc/os-release"] = 'NAME=x\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\n'
    assert capture.capture(host, NOW)["release"] == "Debian GNU/Linux 12 (bookworm)"


def test_the_captured_database_of_a_real_machine() -> None:
    host = SmallHost()
    host.commands[UDEVADM] = captured("udev_database.txt")
    found = capture.capture(host, NOW)
    assert found["differs"] == []
    assert [word for word in ("52:54:00", "eth0", "SCSI0001", "VIRT0001") if word in dumps(found)] == []


def test_a_host_that_cannot_be_observed_is_captured_up_to_there() -> None:
    host = SmallHost()
    del host.files["/proc/self/mountinfo"]
    found = capture.capture(host, NOW)
    assert (found["failed"], found["differs"]) == ("Unobservable", [])
    with pytest.raises(Unobservable, match="mountinfo: No such file"):
        capture.replay(found, NOW)


def test_an_error_in_our_own_code_is_captured_without_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(text: str) -> None:
        raise KeyError("hunter2")

    monkeypatch.setattr(ext4, "parse_superblock", fail)
    found = capture.capture(SmallHost(), NOW)
    assert found["failed"].startswith("KeyError at test_capture.py:")
    assert found["differs"] == []
    assert "hunter2" not in dumps(found)


def test_a_replay_that_comes_out_otherwise_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    real = capture.redactor

    def clumsy(*arguments: Any) -> Any:
        names, redacted = real(*arguments)
        redacted["calls"]["read"][f"{SmallHost().disk('sda').sysfs}/queue/rotational".replace("x", "x")] = (
            "1\n"
        )
        path = "/sys/block/sda/queue/rotational"
        redacted["calls"]["read"][path] = {"0\n": "1\n"}[redacted["calls"]["read"][path]]
        return names, redacted

    monkeypatch.setattr(capture, "redactor", clumsy)
    found = capture.capture(SmallHost(), NOW)["differs"]
    assert found == ["disks.0.evidence.rotational.value", "disks.0.rotational"]


def test_a_replay_that_asks_more_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    real = capture.redactor

    def clumsy(*arguments: Any) -> Any:
        names, redacted = real(*arguments)
        del redacted["calls"]["read"]["/proc/filesystems"]
        return names, redacted

    monkeypatch.setattr(capture, "redactor", clumsy)
    found = capture.capture(SmallHost(), NOW)
    assert found["failed"] is None
    assert "the replay failed: NotRecorded at recording.py" in found["differs"][-1]
    with pytest.raises(NotRecorded, match="/proc/filesystems"):
        capture.replay(found, NOW)


@pytest.mark.parametrize("serial", ["none", "0", "0000000000", "123456789"])
def test_a_serial_that_names_no_disk_has_a_stand_in_that_names_none(serial: str) -> None:
    host = SmallHost()
    host.disk("sda").serial = serial
    found = capture.capture(host, NOW)
    assert found["differs"] == []
    assert f'"{serial}"' not in str(found["calls"])
    assert capture.replay(found, NOW)["disks"][0]["id"] is None


@pytest.mark.parametrize("serial", ["1", "sda", "vda", "disk", "ID_SERIAL", "block", "rw"])
def test_a_serial_that_is_a_common_word(serial: str) -> None:
    host = SmallHost()
    host.disk("sda").serial = serial
    ruled(host)
    found = capture.capture(host, NOW)
    assert found["differs"] == []
    facts = capture.replay(found, NOW)
    assert facts["disks"][0]["name"] == "sda"
    assert facts["disks"][0]["id"] not in (None, f"serial:{serial}")
    assert facts["disks"][0]["write_cache"]["persisted"] == "disabled"


def test_passwords_in_fstab_go_and_the_line_stays() -> None:
    host = SmallHost()
    line = "//nas/y\t/m  cifs username=joe,password=hunter2,,3,noatime 0 0 \n"
    host.files["/etc/fstab"] += line
    found = capture.capture(host, NOW)
    assert "hunter2" not in dumps(found)
    text = found["calls"]["read"]["/etc/fstab"]
    assert text.endswith("/y\t/m  cifs username=hidden,password=hidden,,hidden,noatime 0 0 \n")


serials = st.text("abcdefXYZ0123456789_-.:", min_size=4, max_size=30)
uuids = st.uuids().map(str)


def renamed_host(found: list[str], uuid: str) -> SmallHost:
    """Return a host with these serial numbers and this UUID wherever one can be."""
    host = BigHost()
    for disk, serial in zip(list(host.disks.values()), found):
        disk.serial = serial
    host.disk("sda").wwn = f"0x{uuid.replace('-', '')[:16]}"
    target = f"/srv/{found[0]}"
    host.add_mount(
        FakeMount(target, "ext4", "8:3", "/dev/sda3", "sda"),
        f"UUID={uuid} {target} ext4 defaults 0 0\n/dev/disk/by-id/ata-{found[1]}-part1 /y xfs defaults 0 0\n",
    )
    host.files["/proc/cmdline"] = f"root=UUID={uuid} serial={found[2]}\n"
    host.files["/proc/sys/kernel/random/boot_id"] = f"{uuid}\n"
    return host


BASELINE = dumps(capture.capture(renamed_host(["q" * 9] * 4, UUID), NOW)).lower()


@settings(max_examples=20)
@given(found=st.lists(serials, min_size=4, max_size=4), uuid=uuids)
@example(found=["SN12", "SN123", "SN1234", "XSN12345"], uuid="0" * 8 + "-0000-4000-8000-" + "0" * 12)
@example(found=["aaaa", "aaaaa", "aaaaaa", "a-a-a-a"], uuid=UUID)
@example(found=["SAME", "SAME", "same", "Same"], uuid=UUID)
def test_no_serial_and_no_uuid_is_left(found: list[str], uuid: str) -> None:
    named = [serial for serial in found if sum(map(str.isalnum, serial)) >= 4]
    # One that the recording of another host holds as well tells nothing.
    assume(not any(serial.lower() in BASELINE for serial in found))
    taken = capture.capture(renamed_host(found, uuid), NOW)
    text = dumps(taken)
    assert [word for word in (*named, uuid, uuid.replace("-", "")[:16]) if word in text] == []
    assert taken["differs"] == []
    before = collect(renamed_host(found, uuid), NOW)["disks"]
    after = capture.replay(taken, NOW)["disks"]
    relations = [
        [one["serial"] == other["serial"] for one in before for other in before] for before in (before, after)
    ]
    assert relations[0] == relations[1]
    assert [disk["id"] is None for disk in before] == [disk["id"] is None for disk in after]


def test_a_recording_survives_its_file() -> None:
    host = SmallHost()
    host.files["/etc/fstab"] += "/dev/sda9 /srv/caf\udce9 ext4 defaults 0 0\n"
    found = capture.capture(host, NOW)
    assert loads(dumps(found)) == found
    assert json.loads(dumps(found)) == found
    assert collect(ReplayHost(loads(dumps(found))), NOW) == collect(ReplayHost(found), NOW)


def test_files_of_others_that_act_at_a_boot_keep_what_they_do_and_no_secret() -> None:
    """What a replay finds wrong with the next boot is what the host had."""
    host = SmallHost()
    host.files.update(
        {
            "/etc/udev/rules.d/10-mine.rules": '# hunter2\nKERNEL=="sda1", RUN+="/x hunter2", \\\nENV{SYSTEMD_READY}="0"\n',
            "/etc/modprobe.d/mine.conf": "# hunter2\nblacklist xfs\ninstall vfat /x hunter2\noptions a b=hunter2\n",
            "/sys/module/xfs/initstate": "live\n",
            "/etc/systemd/system-generators/mine": "#!/bin/sh\n# hunter2\nmount hunter2\n",
        }
    )
    host.modes["/etc/systemd/system-generators/mine"] = 0o755
    host.links["/etc/systemd/system/srv-pgdata.mount"] = "/dev/null"
    for name, target in (("sda1", "pg"), ("sdb1", "ms"), ("vda1", "root")):
        host.links[f"/dev/disk/by-uuid/{target}"] = f"/dev/{name}"
    found = capture.capture(host, NOW)
    assert found["differs"] == []
    assert "hunter2" not in json.dumps(found)
    faults = {boot_causes.FAULT_OF[fault["cause"]] for fault in capture.replay(found, NOW)["boot_faults"]}
    assert faults == {"masked", "link", "driver", "generator"}


def test_files_of_other_components_are_not_kept() -> None:
    """They act at boot, and may hold passwords: a capture names the facts that a replay gives differently."""
    host = SmallHost()
    host.add_mount(FakeMount("/srv/nas", "nfs4", "0:52", "nas:/export", "export", super_options=("hard",)))
    host.files["/etc/fstab"] += "nas:/export /srv/nas nfs defaults\n"
    host.files["/usr/share/initramfs-tools/scripts/init-bottom/overlayroot"] = "#!/bin/sh\n"
    secret = "hunter2"
    for path in (
        *("/etc/udev/rules.d/60-x.rules", "/etc/tmpfiles.d/x.conf", "/etc/sysfs.conf", "/etc/crontab"),
        *("/etc/cron.d/x", "/var/spool/cron/crontabs/root", "/etc/udisks2/x.conf", "/etc/hdparm.conf"),
        *("/etc/systemd/system/x.service", "/etc/systemd/system/x.service.d/y.conf", "/etc/smartd.conf"),
        *("/etc/rc.local", "/etc/overlayroot.conf", "/etc/overlayroot.local.conf"),
        *("/etc/nfsmount.conf", "/etc/nfsmount.conf.d/x.conf"),
        *("/etc/network/interfaces", "/etc/network/interfaces.d/x", "/usr/lib/systemd/system-sleep/x"),
        *("/etc/dhcp/dhclient-enter-hooks", "/etc/dhcp/dhclient-exit-hooks.d/x"),
        *("/var/spool/at/a0000101d0", "/var/spool/cron/atjobs/a0000101d0"),
    ):
        host.files[path] = f"# {secret}\n@reboot root /bin/x --password={secret}\n"
        host.modes[path] = 0o755
    found = capture.capture(host, NOW, PATHS)
    text = dumps(found)
    assert (secret in text, WITHHELD in text) == (False, False)
    assert (found["failed"], found["differs"]) == (None, [])
    host.files["/etc/rc.local"] = "#!/bin/sh\nhdparm -W1 /dev/sda\n"
    found = capture.capture(host, NOW, PATHS)
    assert "disks.0.write_cache.persisted" in found["differs"]
