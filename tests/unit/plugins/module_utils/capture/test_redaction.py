# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole recording: what has no rule is withheld, and names are replaced in questions and answers alike."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.capture import redaction
from ansible_collections.durable.dbhost.plugins.module_utils.capture.recording import CALLS, SCHEMA, dumps
from ansible_collections.durable.dbhost.plugins.module_utils.capture.redaction import WITHHELD, redact

UUID = "f0f6079e-faa6-54a8-a78c-1592123fa797"
UDEVADM = json.dumps(["udevadm", "info", "--export-db"])


def recording(**calls: dict[str, Any]) -> dict[str, Any]:
    header = {
        "schema": SCHEMA,
        "command": ["storage_facts"],
        "kernel": "6.1",
        "release": "Debian",
        "taken": "2026",
    }
    return {**header, "calls": {**{call: {} for call in CALLS}, **calls}}


def udev(**properties: str) -> dict[str, Any]:
    lines = {"SUBSYSTEM": "block", "DEVNAME": "/dev/sda", "DEVTYPE": "disk", **properties}
    return {UDEVADM: [0, "".join(f"E: {key}={value}\n" for key, value in lines.items()), ""]}


@pytest.mark.parametrize(
    ("tag", "kept"),
    [("OracleCloud.com\n", "OracleCloud.com\n"), ("DB-HALL-7/112\n", "\n"), ("\n", "\n")],
)
def test_an_asset_tag_is_kept_only_where_a_whole_platform_has_it(tag: str, kept: str) -> None:
    path = "/sys/class/dmi/id/chassis_asset_tag"
    assert redact(recording(read={path: tag}))["calls"]["read"] == {path: kept}


@pytest.mark.parametrize(
    "path",
    [
        "/etc/shadow",
        "/etc/hunter2",
        "/proc/12/cmdline",
        "/proc/12/environ",
        "/sys/class/dmi/id/product_serial",
        "/sys/class/net/eth0/address",
        "/sys/block/sda/device/vpd_pg80",
        "/sys/block/sda/device/inquiry",
        "/etc/systemd/network/a.network",
        "/etc/udev/udev.conf",
        "/etc/udev/hwdb.d/50-other.hwdb",
        "/etc/fstab.d/x",
        "/etc/tuned/bootcmdline",
        "",
    ],
)
def test_a_file_without_a_rule_is_withheld(path: str) -> None:
    found = redact(recording(read={path: "hunter2 secret"}))
    ((_path, answer),) = found["calls"]["read"].items()
    assert answer["error"].endswith(WITHHELD)
    assert "secret" not in dumps(found)


@pytest.mark.parametrize(
    "path", ["/home", "/etc", "/sys/class/net", "/srv", "/var/lib/mysql", "/sys/class/dmi/id"]
)
def test_a_directory_without_a_rule_is_withheld(path: str) -> None:
    found = redact(recording(names={path: ["hunter2"]}))
    assert found["calls"]["names"][path]["error"].endswith(WITHHELD)


@pytest.mark.parametrize(
    "argv",
    [
        ["cat", "/etc/shadow"],
        ["udevadm", "info", "/dev/sda"],
        ["hdparm", "-I", "/dev/sda"],
        ["dmsetup"],
        ["x"],
    ],
)
def test_a_command_without_a_rule_is_withheld(argv: list[str]) -> None:
    found = redact(recording(run={json.dumps(argv): [0, "hunter2", "hunter2"]}))
    ((key, answer),) = found["calls"]["run"].items()
    assert json.loads(key) == argv
    assert answer["error"].endswith(WITHHELD)


def test_units_of_others_are_not_listed() -> None:
    names = [
        "hunter2.service",
        "srv-a.mount",
        "srv-a.mount.d",
        "multi-user.target.wants",
        "durable-dbhost-resume.service",
    ]
    found = redact(recording(names={"/etc/systemd/system": names}))
    assert found["calls"]["names"]["/etc/systemd/system"] == sorted(names[1:])


def test_where_databases_paths_lead_is_kept_with_stand_ins() -> None:
    path = f"/srv/{UUID}/pg"
    found = redact(
        recording(
            read={"/etc/fstab": f"UUID={UUID} / ext4 defaults 0 0\n"},
            locate={
                path: [f"/data/{UUID}", 0o40755],
                "/srv/none": ["/srv/none", None],
                "/x": {"error": path},
            },
            linked_directories={path: [f"/log/{UUID}"]},
        )
    )["calls"]
    assert UUID not in dumps(found)
    ((asked, answer),) = [item for item in found["locate"].items() if item[0].endswith("/pg")]
    assert answer == [asked.replace("/srv/", "/data/")[: -len("/pg")], 0o40755]
    assert found["locate"]["/srv/none"] == ["/srv/none", None]
    assert found["linked_directories"][asked] == [answer[0].replace("/data/", "/log/")]


def test_questions_and_answers_get_the_same_stand_ins() -> None:
    link = f"/dev/disk/by-uuid/{UUID}"
    found = redact(
        recording(
            read={
                "/etc/fstab": f"UUID={UUID} /srv/{UUID} ext4 defaults 0 0\n",
                f"/sys/fs/btrfs/{UUID}/features/raid56": "0\n",
                "/sys/block/sda/serial": "SN1234  \n",
            },
            resolve={link: "/dev/sda", "/dev/disk/by-id/ata-SN1234-part1": "/dev/sda1"},
            exists={"/etc/systemd/system/srv-" + UUID.replace("-", r"\x2d") + ".mount": False},
            names={"/dev/disk/by-uuid": [UUID, "1234-ABCD"], "/dev/mapper": [f"luks-{UUID}"]},
            link={"/dev/mapper/x": f"../disk/luks-{UUID}"},
            run=udev(ID_SERIAL="SN1234", ID_SERIAL_SHORT="SN1234", ID_FS_UUID=UUID),
        )
    )
    text = dumps(found)
    assert UUID not in text
    assert UUID.replace("-", r"\\x2d") not in text
    assert "SN1234" not in text
    calls = found["calls"]
    spec = calls["read"]["/etc/fstab"].partition(" ")[0]
    stand_in = spec.partition("=")[2]
    assert calls["resolve"][f"/dev/disk/by-uuid/{stand_in}"] == "/dev/sda"
    assert f"/srv/{stand_in} ext4" in calls["read"]["/etc/fstab"]
    assert f"/sys/fs/btrfs/{stand_in}/features/raid56" in calls["read"]
    assert calls["names"]["/dev/mapper"] == [f"luks-{stand_in}"]
    assert stand_in in calls["names"]["/dev/disk/by-uuid"]
    assert calls["link"]["/dev/mapper/x"].endswith(stand_in)
    assert "srv-" + stand_in.replace("-", r"\x2d") + ".mount" in next(iter(calls["exists"]))
    serial = calls["read"]["/sys/block/sda/serial"]
    assert serial.endswith("  \n")
    assert f"/dev/disk/by-id/ata-{serial.strip()}-part1" in calls["resolve"]


@pytest.mark.parametrize(
    "serial", ["1", "0", "sda", "sda1", "disk", "block", "ordered", "proc", "ext4", "254", "none"]
)
def test_a_serial_that_is_a_common_word_wrecks_nothing(serial: str) -> None:
    plain = {
        "/proc/self/mountinfo": "30 1 254:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,data=ordered\n",
        "/sys/block/sda/queue/write_cache": "write back\n",
        "/proc/fs/ext4/sda1/options": "rw\ndata=ordered\nbarrier\n",
        "/proc/filesystems": "nodev\tproc\n\text4\n",
    }
    made = recording(
        read={**plain, "/sys/block/sda/serial": serial},
        names={"/sys/block": ["sda"]},
        resolve={"/sys/class/block/sda1": "/sys/devices/pci0000:00/block/sda/sda1", "/dev/root": "/dev/sda1"},
        run=udev(ID_SERIAL=serial, ID_SERIAL_SHORT=serial),
    )
    found = redact(made)["calls"]
    assert {path: found["read"][path] for path in plain} == plain
    assert found["names"] == {"/sys/block": ["sda"]}
    assert found["resolve"] == made["calls"]["resolve"]
    stand_in = found["read"]["/sys/block/sda/serial"]
    assert stand_in != serial
    assert f"ID_SERIAL={stand_in}\nE: ID_SERIAL_SHORT={stand_in}\n" in found["run"][UDEVADM][1]


def test_host_names_go_where_they_are_words() -> None:
    made = recording(
        read={
            "/etc/fstab": "db-host1.example.com:/e /srv/db-host1 nfs a 0 0\n/dev/mapper/db--host1-r / ext4 a 0 0\n"
        },
        exists={"/srv/db-host1/x": True},
    )
    text = dumps(redact(made, ["db-host1.example.com"]))
    assert "host1" not in text
    assert dumps(redact(made, ["srv", "dev", "ext4", "e"])).count("/srv/") == 2


def test_what_went_wrong_keeps_its_words() -> None:
    error = {"error": f"/dev/disk/by-uuid/{UUID}: Permission denied"}
    found = redact(recording(read={"/etc/fstab": error}, run={'["hdparm", "-W", "/dev/sda"]': error}))
    for call in ("read", "run"):
        ((_key, answer),) = found["calls"][call].items()
        assert answer["error"].endswith(": Permission denied")
        assert UUID not in answer["error"]


def test_bytes_that_are_no_text_survive() -> None:
    made = recording(read={"/etc/fstab": "/dev/sda1 /srv/caf\udce9 ext4 defaults 0 0\n"})
    assert redact(made) == made


def test_it_is_the_same_each_time_and_tells_nothing_of_the_words() -> None:
    one, other = (recording(run=udev(ID_SERIAL=serial)) for serial in ("SN1234", "XX9876"))
    assert redact(one) == redact(one) == redact(other)


def test_the_numbers_that_hyper_v_gives_all_machines_stay() -> None:
    path = f"/sys/devices/LNX/VMBUS:00/f8b3781a-1e82-4818-a1c3-63d806ec15bb/{UUID}/host0/block/sda"
    found = redact(recording(resolve={"/sys/block/sda": path}))["calls"]["resolve"]["/sys/block/sda"]
    assert "/f8b3781a-1e82-4818-a1c3-63d806ec15bb/" in found
    assert UUID not in found


def test_processes_that_were_passed_over_are_left_out() -> None:
    here, there = "mnt:[1]", "mnt:[2]"
    made = recording(
        names={"/proc": ["1", "20", "300", "fb", "self"]},
        link={"/proc/self/ns/mnt": here, "/proc/1/ns/mnt": here, "/proc/20/ns/mnt": there, "/dev": "x"},
        read={"/proc/20/comm": "mysqld\n"},
    )
    found = redact(made)["calls"]
    # Process 300 was listed and not asked: a replay that asks is to fail.
    assert found["names"] == {"/proc": ["20", "300", "self"]}
    assert found["link"] == {"/proc/self/ns/mnt": here, "/proc/20/ns/mnt": there, "/dev": "x"}


def test_no_stand_ins_no_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    def collide(self: Any) -> None:
        raise redaction.Collision(0)

    monkeypatch.setattr(redaction.Redactor, "redact", collide)
    with pytest.raises(ValueError, match="no stand-ins"):
        redact(recording())
