# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What other components set at the next boot: each turns a false green red, and its harmless variants change nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.next_boot import effects, last, remounts
from ansible_collections.durable.dbhost.plugins.module_utils.next_boot.acts import Act, Device
from ansible_collections.durable.dbhost.plugins.module_utils.next_boot.effects import State, Value
from ansible_collections.durable.dbhost.plugins.module_utils.storage import (
    cache_rules,
    causes,
    scheduler_rules,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ..fakes.runs import NOW, enforce, look, settled
from ..fakes.sentences import sentence
from ..fakes.small_host import BigHost, FakeDisk, SmallHost

#: What a host has that was brought to `strict`: SATA and SCSI disks have their caches off and pinned.
DISKS = ("sda", "sdc", "nvme0n1", "vdb")
CONTROLS = {"sda": "sata", "sdc": "scsi", "nvme0n1": "nvme", "vdb": "virtio"}
ADD = 'ACTION=="add|change", SUBSYSTEM=="block"'
RC = "#!/bin/sh -e\n# at each boot\n"
UNIT = "/etc/systemd/system/tune.service"
WANTS = "/etc/systemd/system/multi-user.target.wants"
RULES, LATE_RULES = "/etc/udev/rules.d/70-site.rules", "/etc/udev/rules.d/zzz-site.rules"
GENERATOR = "/etc/systemd/system-generators/zz-site"


@pytest.fixture(autouse=True)
def names_stay(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Each disk is the only one of its driver, except the tests of kernel names: then a kernel name is its own."""
    if request.cls is not TestKernelNames:
        monkeypatch.setattr(last, "_peers", lambda *_: ())


@pytest.fixture(autouse=True)
def captures_have_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read of a boot is read with calls that a capture records."""

    def refuse(*_given: object, **_more: object) -> None:
        raise AssertionError("a capture does not record this call")

    for call in ("find_files", "list_names", "read_part"):
        monkeypatch.setattr(SmallHost, call, refuse)


def ready(state: str = "disabled", readahead: str = "512") -> BigHost:
    """Return a host whose four disks have their rules, and have been booted with them."""
    host = BigHost()
    rules = {host.disk(name).id: (CONTROLS[name], state) for name in DISKS}
    cache_rules.write(host, cache_rules.render(rules))
    schedule = {host.disk(name).id: {"scheduler": "none", "readahead": readahead} for name in DISKS}
    scheduler_rules.write(host, scheduler_rules.render(schedule))
    host.reboot()
    return host


def plant(host: SmallHost, files: dict[str, str]) -> None:
    """Write files of another component; those of rc.local can be executed."""
    for path, text in files.items():
        if text.startswith("-> "):
            host.links[path] = text[3:]
        else:
            host.files[path] = text
            host.modes[path] = 0o755 if "rc.local" in path or text.startswith("#!") else 0o644


def seen(host: SmallHost, disk: str) -> dict[str, Any]:
    """Return what the facts say of a disk's settings at the next boot, with the evidence of each."""
    (facts,) = [each for each in collect(host, NOW)["disks"] if each["name"] == disk]
    return {
        "cache": facts["write_cache"]["persisted"],
        "mode": facts["write_cache"].get("kernel_persisted", "ours"),
        "scheduler": facts["scheduler"]["persisted"],
        "readahead": facts["readahead"]["persisted"],
        "evidence": facts["evidence"],
    }


def values(host: SmallHost, disk: str) -> tuple[str, str, str, str]:
    """Return cache, mode, scheduler and readahead of a disk at the next boot."""
    found = seen(host, disk)
    return found["cache"], found["mode"], found["scheduler"], found["readahead"]


def udev(text: str, name: str = "60-theirs.rules", **more: str) -> dict[str, str]:
    return {f"/etc/udev/rules.d/{name}": text, **more}


def unit(line: str, **more: str) -> dict[str, str]:
    text = (
        f"[Unit]\nDescription=Tune\n[Service]\nType=oneshot\n{line}\n[Install]\nWantedBy=multi-user.target\n"
    )
    return {UNIT: text, f"{WANTS}/tune.service": f"-> {UNIT}", **more}


LATE = "zzz-theirs.rules"
TUNED = {
    "/etc/tuned/active_profile": "ours\n",
    f"{WANTS}/tuned.service": "-> /usr/lib/systemd/system/tuned.service",
}


def tuned(text: str) -> dict[str, str]:
    return {**TUNED, "/etc/tuned/profiles/ours/tuned.conf": text}


#: What reads sysfs.conf: Debian's package.
SYSFS = {"/etc/init.d/sysfsutils": "#!/bin/sh\n", "/etc/rc2.d/S01sysfsutils": "-> ../init.d/sysfsutils"}
SDA = ("disabled", "ours", "none", "512")
#: Name -> (files, disk, its cache, mode, scheduler and readahead at the next boot).
SABOTEURS: dict[str, tuple[dict[str, str], str, tuple[str, str, str, str]]] = {
    "udev: write through after ours": (
        udev(f'{ADD}, KERNEL=="sd*", ATTR{{queue/write_cache}}="write through"\n', LATE),
        "sda",
        ("disabled", "write through", "none", "unknown"),
    ),
    "udev: RUN of sdparm": (
        udev(f'{ADD}, KERNEL=="sdc", RUN+="/usr/bin/sdparm --set=WCE $devnode"\n'),
        "sdc",
        ("enabled", "ours", "none", "512"),
    ),
    "udev: RUN of hdparm after ours": (
        udev(f'{ADD}, KERNEL=="sda", RUN+="/sbin/hdparm -W1 $devnode"\n', LATE),
        "sda",
        ("enabled", "ours", "none", "512"),
    ),
    "udev: RUN of nvme": (
        udev('KERNEL=="nvme0n1", RUN+="/usr/sbin/nvme set-feature /dev/%k -f 6 -v 1"\n', LATE),
        "nvme0n1",
        ("enabled", "ours", "none", "512"),
    ),
    "udev: RUN of a shell": (
        udev('KERNEL=="sda", RUN+="/bin/sh -c \'echo write through > /sys/block/%k/queue/write_cache\'"\n'),
        "sda",
        ("disabled", "write through", "none", "unknown"),
    ),
    "udev: RUN of a script": (
        udev(
            'KERNEL=="sda", RUN+="/usr/local/bin/wce %k"\n',
            **{"/usr/local/bin/wce": "#!/bin/sh\nhdparm -W1 /dev/$1\n"},
        ),
        "sda",
        ("disabled", "ours", "none", "512"),
    ),
    "udev: RUN of a script after ours": (
        udev(
            'KERNEL=="sda", RUN+="/usr/local/bin/wce %k"\n',
            LATE,
            **{"/usr/local/bin/wce": "#!/bin/sh\nhdparm -W1 /dev/$1\n"},
        ),
        "sda",
        ("unknown", "ours", "none", "512"),
    ),
    "udev: PROGRAM": (
        udev('KERNEL=="sdc", PROGRAM=="/usr/bin/sdparm --set=WCE $devnode", ENV{X}="1"\n', LATE),
        "sdc",
        ("unknown", "ours", "none", "512"),
    ),
    "udev: a condition that cannot be evaluated": (
        udev('KERNEL=="sda", PROGRAM=="/bin/x", ATTR{queue/scheduler}="mq-deadline"\n', LATE),
        "sda",
        ("disabled", "ours", "unknown", "512"),
    ),
    "udev: a serial number of its own": (
        udev(f'{ADD}, KERNEL=="sda", ENV{{ID_SERIAL}}="mine"\n', "61-serial.rules"),
        "sda",
        ("unknown", "ours", "unknown", "unknown"),
    ),
    "udev: RUN is final": (
        udev(f'{ADD}, KERNEL=="sda", RUN:="/bin/true"\n'),
        "sda",
        ("unknown", "ours", "none", "512"),
    ),
    "udev: cache_type of the scsi_disk": (
        udev('SUBSYSTEM=="scsi_disk", ATTR{cache_type}="write back"\n'),
        "sdc",
        ("unknown", "ours", "none", "unknown"),
    ),
    "udev: readahead of the bdi": (
        udev('SUBSYSTEM=="bdi", ATTR{read_ahead_kb}="64"\n'),
        "sda",
        ("disabled", "ours", "none", "unknown"),
    ),
    "tuned: sysfs": (
        tuned("[sysfs]\n/sys/block/sd*/queue/write_cache=write through\n"),
        "sda",
        ("disabled", "write through", "none", "unknown"),
    ),
    "tuned: disk": (
        tuned("[disk]\ndevices=sda\nelevator=bfq\nreadahead=4096\n"),
        "sda",
        ("disabled", "ours", "bfq", "4096"),
    ),
    "tuned: script": (
        {
            **tuned("[script]\nscript=${i:PROFILE_DIR}/x.sh\n"),
            "/etc/tuned/profiles/ours/x.sh": "#!/bin/sh\nstart() {\n  hdparm -W1 /dev/sda\n}\n",
        },
        "sda",
        ("unknown", "ours", "none", "512"),
    ),
    "tmpfiles": (
        {"/etc/tmpfiles.d/x.conf": "# x\nw /sys/block/sd*/queue/scheduler - - - - mq-deadline\n"},
        "sda",
        ("disabled", "ours", "mq-deadline", "512"),
    ),
    "tmpfiles: two words": (
        {"/usr/lib/tmpfiles.d/x.conf": "w+ /sys/block/vdb/queue/write_cache - - - - write through\n"},
        "sda",
        SDA,
    ),
    "sysfs.conf": (
        {**SYSFS, "/etc/sysfs.conf": "# x\nblock/sda/queue/read_ahead_kb = 64\n"},
        "sda",
        ("disabled", "ours", "none", "64"),
    ),
    "sysfs.conf: a unit reads it": (
        {
            "/etc/sysfs.conf": "block/sda/queue/scheduler = bfq\n",
            "/usr/lib/systemd/system/sysfsutils.service": "[Service]\nExecStart=/usr/lib/sysfsutils/apply\n",
            f"{WANTS}/sysfsutils.service": "-> /usr/lib/systemd/system/sysfsutils.service",
        },
        "sda",
        ("disabled", "ours", "bfq", "512"),
    ),
    "sysfs.d": (
        {**SYSFS, "/etc/sysfs.d/x.conf": "block/sda/queue/scheduler = bfq\n"},
        "sda",
        ("disabled", "ours", "bfq", "512"),
    ),
    "rc.local": (
        {"/etc/rc.local": f"{RC}hdparm -W1 /dev/sda\nexit 0\n"},
        "sda",
        ("enabled", "ours", "none", "512"),
    ),
    "rc.local: a loop": (
        {"/etc/rc.local": f"{RC}for d in /dev/sd?; do\n  hdparm -W1 $d\ndone\n"},
        "sda",
        ("unknown", "ours", "none", "512"),
    ),
    "rc.local: setra": (
        {"/etc/rc.local": f"{RC}/sbin/blockdev --setra 256 /dev/sda\n"},
        "sda",
        ("disabled", "ours", "none", "128"),
    ),
    "rc.local: tee": (
        {"/etc/rc.local": f'{RC}echo "write through" | tee /sys/block/sda/queue/write_cache\n'},
        "sda",
        ("disabled", "write through", "none", "unknown"),
    ),
    "rc.local: another script": (
        {"/etc/rc.local": f"{RC}/root/t.sh\n", "/root/t.sh": "#!/bin/bash\nsdparm -s WCE=1 /dev/sdc\n"},
        "sdc",
        ("unknown", "ours", "none", "512"),
    ),
    "rc.local: run-parts": (
        {
            "/etc/rc.local": f"{RC}run-parts --report /etc/site-boot.d\n",
            "/etc/site-boot.d/10-tune": "#!/bin/sh\nsdparm -s WCE=1 /dev/sdc\n",
        },
        "sdc",
        ("unknown", "ours", "none", "512"),
    ),
    "rc.local: a loop over modes of the kernel": (
        {
            "/etc/rc.local": f"{RC}for d in sda vdb; do echo write through > /sys/block/$d/queue/write_cache; done\n"
        },
        "vdb",
        ("disabled", "ours", "none", "unknown"),
    ),
    "rc.local: a script in another language": (
        {
            "/etc/rc.local": f"{RC}/opt/t.py\n",
            "/opt/t.py": "#!/usr/bin/python3\nimport os\nos.system('hdparm -W1 /dev/sda')\n",
        },
        "sda",
        ("unknown", "ours", "none", "512"),
    ),
    "cron.d": (
        {"/etc/cron.d/x": "MAILTO=root\n@reboot root /sbin/hdparm -W 1 /dev/sda\n"},
        "sda",
        ("enabled", "ours", "none", "512"),
    ),
    "cron.d: a name with a dot, read by cronie": (
        {
            "/usr/sbin/cron": "ELF",
            "/usr/sbin/crond": "ELF",
            "/etc/cron.d/x.site": "@reboot root /sbin/hdparm -W1 /dev/sda\n",
        },
        "sda",
        ("enabled", "ours", "none", "512"),
    ),
    "cron.d: a name with a dot, with Debian's -l": (
        {
            "/usr/sbin/cron": "ELF",
            "/etc/default/cron": '# cron\nEXTRA_OPTS="-l"\n',
            "/etc/cron.d/x.site": "@reboot root /sbin/hdparm -W1 /dev/sda\n",
        },
        "sda",
        ("enabled", "ours", "none", "512"),
    ),
    "cron of a user": (
        {"/var/spool/cron/crontabs/root": "@reboot echo bfq > /sys/block/sda/queue/scheduler\n"},
        "sda",
        ("disabled", "ours", "bfq", "512"),
    ),
    "unit": (unit("ExecStart=/usr/bin/sdparm --set=WCE /dev/sdc"), "sdc", ("enabled", "ours", "none", "512")),
    "unit: a shell": (
        unit("ExecStart=-/bin/sh -c 'echo write through >/sys/block/nvme0n1/queue/write_cache'"),
        "nvme0n1",
        ("disabled", "write through", "none", "unknown"),
    ),
    "unit: a timer": (
        {
            UNIT: "[Service]\nExecStart=/sbin/hdparm -W1 /dev/sda\n",
            "/etc/systemd/system/tune.timer": "[Timer]\nOnBootSec=1min\n",
            "/etc/systemd/system/timers.target.wants/tune.timer": "-> /etc/systemd/system/tune.timer",
        },
        "sda",
        ("enabled", "ours", "none", "512"),
    ),
    "unit: asked for by another": (
        {
            UNIT: "[Service]\nExecStart=/sbin/hdparm -W1 /dev/sda\n",
            "/etc/systemd/system/a.service": "[Unit]\nWants=b.service tune.service\n[Service]\nExecStart=/bin/true\n",
        },
        "sda",
        ("enabled", "ours", "none", "512"),
    ),
    "unit: a drop-in of another service": (
        {
            "/usr/lib/systemd/system/ssh.service": "[Service]\nExecStart=/usr/sbin/sshd -D\n",
            f"{WANTS}/ssh.service": "-> /usr/lib/systemd/system/ssh.service",
            "/etc/systemd/system/ssh.service.d/x.conf": "[Service]\nExecStartPost=/sbin/hdparm -W1 /dev/sda\n",
        },
        "sda",
        ("enabled", "ours", "none", "512"),
    ),
    "unit: a socket": (
        {
            "/etc/systemd/system/tune.socket": "[Socket]\nListenStream=/run/t\nExecStartPost=/sbin/hdparm -W1 /dev/sda\n",
            "/etc/systemd/system/sockets.target.wants/tune.socket": "-> /etc/systemd/system/tune.socket",
        },
        "sda",
        ("enabled", "ours", "none", "512"),
    ),
    "unit: a drop-in of a packaged socket": (
        {
            "/usr/lib/systemd/system/ssh.socket": "[Socket]\nListenStream=22\n",
            "/usr/lib/systemd/system/sockets.target.wants/ssh.socket": "-> ../ssh.socket",
            "/etc/systemd/system/ssh.socket.d/x.conf": "[Socket]\nExecStartPre=/sbin/hdparm -W1 /dev/sda\n",
        },
        "sda",
        ("enabled", "ours", "none", "512"),
    ),
    "unit: a socket that a service names": (
        {
            "/etc/systemd/system/tune.socket": "[Socket]\nExecStartPost=/sbin/hdparm -W1 /dev/sda\n",
            "/etc/systemd/system/a.service": "[Service]\nSockets=tune.socket\nExecStart=/bin/true\n",
        },
        "sda",
        ("enabled", "ours", "none", "512"),
    ),
    "unit: on the kernel's command line": (
        {
            UNIT: "[Service]\nExecStart=/sbin/hdparm -W1 /dev/sda\n",
            "/proc/cmdline": 'root=UUID=root ro "systemd.wants=tune.service"\n',
        },
        "sda",
        ("enabled", "ours", "none", "512"),
    ),
    "unit: a condition": (
        unit("ExecStart=/sbin/hdparm -W1 /dev/sda\n[Unit]\nConditionPathExists=/etc/x"),
        "sda",
        ("unknown", "ours", "none", "512"),
    ),
    "unit: an instance": (
        {
            "/etc/systemd/system/wce@.service": "[Service]\nExecStart=/sbin/hdparm -W1 /dev/%i\n",
            f"{WANTS}/wce@sda.service": "-> /etc/systemd/system/wce@.service",
        },
        "sda",
        ("unknown", "ours", "none", "512"),
    ),
    "smartd": (
        {
            "/etc/smartd.conf": "DEFAULT -a\n/dev/sda -e wcache,on\n",
            f"{WANTS}/smartd.service": "-> /usr/lib/systemd/system/smartd.service",
        },
        "sda",
        ("enabled", "ours", "none", "512"),
    ),
    "smartd: another file": (
        {
            "/etc/default/smartmontools": '#smartd_opts="-c /etc/no"\nsmartd_opts="--interval=1800 -c /etc/disks.conf"\n',
            "/etc/disks.conf": "/dev/sda -e wcache,on\n",
            f"{WANTS}/smartd.service": "-> /usr/lib/systemd/system/smartd.service",
        },
        "sda",
        ("enabled", "ours", "none", "512"),
    ),
    "smartd: DEFAULT": (
        {
            "/etc/smartd.conf": "DEFAULT -e wcache,on\n/dev/sda -a\n",
            f"{WANTS}/smartd.service": "-> /usr/lib/systemd/system/smartd.service",
        },
        "sda",
        ("enabled", "ours", "none", "512"),
    ),
    "smartd: DEVICESCAN": (
        {
            "/etc/smartd.conf": "DEVICESCAN -a \\\n -e wcache,on\n",
            f"{WANTS}/smartmontools.service": "-> /usr/lib/systemd/system/smartmontools.service",
        },
        "sda",
        ("enabled", "ours", "none", "512"),
    ),
    "udisks2": (
        {
            "/usr/libexec/udisks2/udisksd": "",
            "/etc/udisks2/QEMU-HARDDISK-QEMU_HARDDISK_SATA0001.conf": "[ATA]\nWriteCacheEnabled=true\n",
        },
        "sda",
        ("enabled", "ours", "none", "512"),
    ),
    "two that disagree": (
        {
            "/etc/rc.local": f"{RC}echo bfq > /sys/block/sda/queue/scheduler\n",
            "/etc/tmpfiles.d/x.conf": "w /sys/block/sda/queue/scheduler - - - - mq-deadline\n",
        },
        "sda",
        ("disabled", "ours", "unknown", "512"),
    ),
    "one of two sets ours again": (
        {
            "/etc/rc.local": f"{RC}echo none > /sys/block/sda/queue/scheduler\n",
            "/etc/tmpfiles.d/x.conf": "w /sys/block/sda/queue/scheduler - - - - mq-deadline\n",
        },
        "sda",
        ("disabled", "ours", "unknown", "512"),
    ),
}


@pytest.mark.parametrize("name", SABOTEURS)
def test_persisted_is_what_the_last_component_sets(name: str) -> None:
    files, disk, wanted = SABOTEURS[name]
    host = ready()
    assert values(host, disk) == SDA
    plant(host, files)
    assert values(host, disk) == wanted


@pytest.mark.parametrize(
    "name", [name for name, (_files, _disk, wanted) in SABOTEURS.items() if wanted != SDA]
)
def test_the_evidence_names_component_and_line_and_the_fix_does(name: str) -> None:
    files, disk, _wanted = SABOTEURS[name]
    host = ready()
    plant(host, files)
    evidence = map(causes.of_evidence, seen(host, disk)["evidence"].values())
    rows = [row for row in evidence if row.get("fix")]
    assert rows
    for row in rows:
        assert " line " in row["source"], row
        assert row["source"] in row["fix"]
        assert row["source"] in row["reason"]
        assert row["by"] not in (None, "durable.dbhost", "kernel")


#: Name -> files that change nothing that is ours.
HARMLESS: dict[str, dict[str, str]] = {
    "udev: the same mode": udev(f'{ADD}, ATTR{{queue/scheduler}}="none"\n', LATE),
    "udev: before ours": udev(
        f'{ADD}, ATTR{{queue/write_cache}}="write through", ATTR{{queue/scheduler}}="bfq", ATTR{{queue/read_ahead_kb}}="8"\n'
    ),
    "udev: hdparm before ours": udev(f'{ADD}, KERNEL=="sda", RUN+="/sbin/hdparm -W1 $devnode"\n'),
    "udev: another disk": udev(f'{ADD}, KERNEL=="sdz", ATTR{{queue/write_cache}}="write through"\n', LATE),
    "udev: another serial": udev(f'{ADD}, ENV{{ID_SERIAL}}=="X", ATTR{{queue/scheduler}}="bfq"\n', LATE),
    "udev: passed over": udev('GOTO="end"\nKERNEL=="sd*", ATTR{queue/scheduler}="bfq"\nLABEL="end"\n', LATE),
    "udev: a comment": udev('# KERNEL=="sd*", ATTR{queue/scheduler}="bfq"\n', LATE),
    "udev: not at a boot": udev('ACTION=="remove", ATTR{queue/scheduler}="bfq"\n', LATE),
    "udev: masked": {
        "/etc/udev/rules.d/zzz-t.rules": "-> /dev/null",
        "/usr/lib/udev/rules.d/zzz-t.rules": f'{ADD}, ATTR{{queue/scheduler}}="bfq"\n',
    },
    "udev: hdparm that only reads": udev(f'{ADD}, RUN+="/sbin/hdparm -B 254 -S 0 $devnode"\n', LATE),
    "udev: the serial number it has": udev(
        f'{ADD}, KERNEL=="sda", ENV{{ID_SERIAL}}="QEMU_HARDDISK_SATA0001"\n', "61-x.rules"
    ),
    "udev: nvme of sda": udev(
        f'{ADD}, KERNEL=="sda", RUN+="/usr/sbin/nvme set-feature $devnode -f 6 -v 1"\n', LATE
    ),
    "tuned: another disk": tuned(
        "[disk]\ndevices=sdz\nelevator=bfq\n[sysfs]\n/sys/block/sdz/queue/write_cache=none\n"
    ),
    "tuned: not these": tuned("[disk]\ndevices=!sd*,!nvme*,!vd*\nelevator=bfq\n"),
    "tuned: by a property": tuned("[disk]\ndevices_udev_regex=ID_SERIAL=nothing\nelevator=bfq\n"),
    "tuned: the same": tuned("[disk]\nelevator=none\nreadahead=512\n"),
    "tuned: a script about something else": {
        **tuned("[script]\nscript=x.sh\n"),
        "/etc/tuned/profiles/ours/x.sh": "#!/bin/sh\nsysctl -w vm.swappiness=1\n",
    },
    "tuned: not started": {
        "/etc/tuned/active_profile": "ours\n",
        "/etc/tuned/profiles/ours/tuned.conf": "[disk]\nelevator=bfq\n",
    },
    "tuned: masked": {
        **tuned("[disk]\nelevator=bfq\n"),
        "/etc/systemd/system/tuned.service": "-> /dev/null",
    },
    "tmpfiles: another disk": {"/etc/tmpfiles.d/x.conf": "w /sys/block/sdz/queue/scheduler - - - - bfq\n"},
    "tmpfiles: only rights": {"/etc/tmpfiles.d/x.conf": "z /sys/block/sda/queue/scheduler 0644 - - - bfq\n"},
    "tmpfiles: a new file": {"/etc/tmpfiles.d/x.conf": "f /sys/block/sda/queue/scheduler - - - - bfq\n"},
    "tmpfiles: hidden": {
        "/etc/tmpfiles.d/x.conf": "",
        "/usr/lib/tmpfiles.d/x.conf": "w /sys/block/sda/queue/scheduler - - - - bfq\n",
    },
    "sysfs.conf: another disk": {
        **SYSFS,
        "/etc/sysfs.conf": "block/sdz/queue/scheduler = bfq\nmode block/sda/queue/x = 1\n",
    },
    "sysfs.conf: without the package": {"/etc/sysfs.conf": "block/sda/queue/scheduler = bfq\n"},
    "sysfs.conf: the package is disabled": {
        "/etc/init.d/sysfsutils": "#!/bin/sh\n",
        "/etc/rc2.d/K01sysfsutils": "-> ../init.d/sysfsutils",
        "/etc/sysfs.conf": "block/sda/queue/scheduler = bfq\n",
    },
    "rc.local: not executable": {"/etc/rc.d/rc.local": "#!/bin/sh\n"},
    "rc.local: the same": {
        "/etc/rc.local": f"{RC}hdparm -W0 /dev/sda || true\nexit 0\nhdparm -W1 /dev/sda\n"
    },
    "rc.local: run-parts, nothing that it runs": {
        "/etc/rc.local": f"{RC}run-parts /etc/site-boot.d; run-parts /etc/no.d\n",
        "/etc/site-boot.d/10-tune.sh": "sdparm -s WCE=1 /dev/sdc\n",
        "/etc/site-boot.d/10-tune~": "#!/bin/sh\nsdparm -s WCE=1 /dev/sdc\n",
        "/etc/site-boot.d/10-tune.dpkg-old": "#!/bin/sh\nsdparm -s WCE=1 /dev/sdc\n",
        "/etc/site-boot.d/.tune": "#!/bin/sh\nsdparm -s WCE=1 /dev/sdc\n",
    },
    "rc.local: another disk": {"/etc/rc.local": f"{RC}for d in /dev/sdy /dev/sdz; do hdparm -W1 $d; done\n"},
    "rc.local: it only reads": {
        "/etc/rc.local": f"{RC}hdparm -I /dev/sda > /var/log/hdparm\nsdparm --get=WCE /dev/sdc\n"
    },
    "rc.local: a word in a text": {
        "/etc/rc.local": f"{RC}logger 'hdparm is not run here'\n# hdparm -W1 /dev/sda\n"
    },
    "cron.d: a name that Debian's cron does not read": {
        "/usr/sbin/cron": "ELF",
        "/etc/default/cron": '# EXTRA_OPTS="-l"\nREAD_ENV="yes"\n',
        "/etc/cron.d/x.disabled": "@reboot root hdparm -W1 /dev/sda\n",
    },
    "cron.d: a name that no cron reads": {
        "/usr/sbin/crond": "ELF",
        "/etc/cron.d/x.rpmsave": "@reboot root hdparm -W1 /dev/sda\n",
        "/etc/cron.d/x~": "@reboot root hdparm -W1 /dev/sda\n",
    },
    "cron: another time": {"/etc/crontab": "0 3 * * * root hdparm -t /dev/sda\n"},
    "cron: a login's table": {"/var/spool/cron/crontabs/joe": "@reboot hdparm -W1 /dev/sda\n"},
    "cron: as another user": {"/etc/cron.d/x": "@reboot nobody hdparm -W1 /dev/sda\n"},
    "cron: a script of a login": {
        "/var/spool/cron/crontabs/joe": "@reboot sh /home/joe/x\n",
        "/home/joe/x": "hdparm -W1 /dev/sda\n",
    },
    "cron: something else": {"/etc/cron.d/x": "@reboot root /usr/local/bin/backup --all\n"},
    "unit: not enabled": {UNIT: "[Service]\nExecStart=/sbin/hdparm -W1 /dev/sda\n"},
    "unit: a socket that is not enabled": {
        "/etc/systemd/system/tune.socket": "[Socket]\nExecStartPost=/sbin/hdparm -W1 /dev/sda\n",
        "/etc/systemd/system/tune.service": "[Service]\nExecStart=/bin/true\n",
        f"{WANTS}/tune.service": "-> /etc/systemd/system/tune.service",
    },
    "unit: sections without commands": {
        "/etc/systemd/system/srv-x.mount": "[Mount]\nWhat=/dev/sdz1\nWhere=/srv/x\nExecStartPost=/sbin/hdparm -W1 /dev/sda\n",
        "/etc/systemd/system/local-fs.target.wants/srv-x.mount": "-> ../srv-x.mount",
        "/etc/systemd/system/dev-sdz2.swap": "[Swap]\nWhat=/dev/sdz2\nExecStartPre=/sbin/hdparm -W1 /dev/sda\n",
        "/etc/systemd/system/swap.target.wants/dev-sdz2.swap": "-> ../dev-sdz2.swap",
        "/etc/systemd/system/y.socket": "[Socket]\nListenStream=/run/y\n[Service]\nExecStart=/sbin/hdparm -W1 /dev/sda\n",
        "/etc/systemd/system/sockets.target.wants/y.socket": "-> ../y.socket",
    },
    "unit: another one on the kernel's command line": {
        UNIT: "[Service]\nExecStart=/sbin/hdparm -W1 /dev/sda\n",
        "/proc/cmdline": "root=UUID=root ro systemd.wants=other.service rd.systemd.wants=tune.service\n",
    },
    "unit: masked": {**unit("ExecStart=/sbin/hdparm -W1 /dev/sda"), UNIT: "-> /dev/null"},
    "unit: at shutdown": {
        UNIT: "[Service]\nExecStart=/sbin/hdparm -W1 /dev/sda\n",
        "/etc/systemd/system/shutdown.target.wants/tune.service": f"-> {UNIT}",
    },
    "unit: taken back": unit("ExecStart=/sbin/hdparm -W1 /dev/sda\nExecStart=\nExecStart=/bin/true"),
    "unit: another disk": unit("ExecStart=/sbin/hdparm -W1 /dev/sdz"),
    "unit: no shell reads it": unit("ExecStart=/bin/echo bfq > /sys/block/sda/queue/scheduler"),
    "SysV script: a script of a package": {
        "/etc/rc2.d/S20site": "-> ../init.d/site",
        "/etc/init.d/site": "#!/bin/sh\n/usr/lib/site/tune\n",
        "/usr/lib/site/tune": "#!/bin/sh\nhdparm -W1 /dev/sda\n",
    },
    "unit: a key in quotes": {
        **unit("ExecStart=/opt/attach 'x' '/dev/sdz' '/root/key' 'luks'"),
        "/root/key": "#!/bin/sh\nhdparm -W1 /dev/sda\n",
    },
    "unit: fstrim": unit("ExecStart=/sbin/fstrim --listed-in /etc/fstab --verbose"),
    "smartd: not started": {"/etc/smartd.conf": "/dev/sda -e wcache,on\n"},
    "smartd: off": {
        "/etc/smartd.conf": "/dev/sda -a -o on -S on\n/dev/sdz -e wcache,on\n",
        f"{WANTS}/smartd.service": "-> /usr/lib/systemd/system/smartd.service",
    },
    "udisks2: another drive": {
        "/usr/libexec/udisks2/udisksd": "",
        "/etc/udisks2/WDC-X-OTHER.conf": "[ATA]\nWriteCacheEnabled=true\n",
    },
    # Debian's rule runs before ours.
    "hdparm.conf": {
        "/usr/lib/udev/hdparm": "#!/bin/sh\n",
        "/usr/lib/udev/rules.d/85-hdparm.rules": f'{ADD}, KERNEL=="[sh]d[a-z]", RUN+="/usr/lib/udev/hdparm"\n',
        "/etc/hdparm.conf": "/dev/sda {\n write_cache = on\n}\n",
    },
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_sets_the_same_or_acts_elsewhere_changes_nothing(name: str) -> None:
    host = ready()
    before = {disk: values(host, disk) for disk in DISKS}
    plant(host, HARMLESS[name])
    if name.endswith("not executable"):
        host.modes["/etc/rc.d/rc.local"] = 0o644
        host.files["/etc/rc.d/rc.local"] = f"{RC}hdparm -W1 /dev/sda\n"
    assert {disk: values(host, disk) for disk in DISKS} == before


def test_a_disk_without_a_rule_of_ours_takes_what_others_set() -> None:
    """Our own rule would take precedence: there is no fix for an administrator, a run is enough."""
    host = BigHost()
    plant(
        host, udev(f'{ADD}, KERNEL=="sda", ATTR{{queue/scheduler}}="bfq", RUN+="/sbin/hdparm -W0 $devnode"\n')
    )
    found = seen(host, "sda")
    assert (found["cache"], found["scheduler"]) == ("disabled", "bfq")
    for field in ("write_cache.persisted", "scheduler.persisted"):
        row = found["evidence"][field]
        assert (row["by"], "precedence" in row) == ("udev rule", False)


def test_hdparm_conf_sets_the_cache_of_a_disk_without_a_rule_of_ours() -> None:
    host = BigHost()
    plant(host, {**HARMLESS["hdparm.conf"], "/etc/hdparm.conf": "/dev/sdb {\n write_cache = off\n}\n"})
    assert (seen(host, "sda")["cache"], seen(host, "sdb")["cache"]) == ("unset", "disabled")
    host.files["/etc/hdparm.conf"] = "quiet\nwrite_cache = off\n"
    assert seen(host, "sda")["cache"] == "disabled"


def test_ours_and_the_kernel_are_named_too() -> None:
    evidence = seen(ready(), "sda")["evidence"]
    assert evidence["write_cache.persisted"]["by"] == "durable.dbhost"
    assert seen(BigHost(), "sda")["evidence"]["scheduler.persisted"]["by"] == "kernel"


def test_virtio_and_nvme_are_raised_by_our_rule_where_they_cache() -> None:
    """They had no rule for the mode at all: a rule of another owner lowered it."""
    host = ready("enabled")
    lowered = udev(f'{ADD}, ATTR{{queue/write_cache}}="write through"\n')
    plant(host, lowered)
    assert {seen(host, disk)["mode"] for disk in DISKS} == {"ours"}
    bare = BigHost()
    plant(bare, lowered)
    assert {seen(bare, disk)["mode"] for disk in DISKS} == {"write through"}


@pytest.mark.parametrize(
    "path",
    [
        "/etc/udev/rules.d/60-x.rules",
        "/etc/tmpfiles.d/x.conf",
        "/etc/sysfs.conf",
        "/etc/rc.local",
        "/etc/crontab",
    ],
)
def test_what_cannot_be_read_is_unknown_with_its_reason(path: str) -> None:
    host = ready()
    host.files[path] = Unobservable(f"{path}: Input/output error")
    host.modes[path] = 0o755
    assert values(host, "sda")[::2] == ("unknown", "unknown")
    row = seen(host, "sda")["evidence"]["write_cache.persisted"]
    assert f'{path}: Input/output error"' in causes.of_evidence(row)["reason"]


def barrier(host: SmallHost, target: str = "/srv/pgdata") -> tuple[str, str, str | None]:
    """Return the barrier at the next boot, the component that sets it, and the fix."""
    (mount,) = [each for each in collect(host, NOW)["mounts"] if each["target"] == target]
    row = mount["evidence"]["persisted.barrier"]
    assert row["value"] == mount["persisted"]["barrier"]
    return row["value"], row["by"], causes.of_evidence(row).get("fix")


class TestMounts:
    """Barriers and atime of a mount, which remounts and TuneD change."""

    @pytest.mark.parametrize(
        ("files", "target", "wanted"),
        [
            (tuned("[mounts]\ndisable_barriers=force\n"), "/srv/pgdata", "off"),
            # virtio has no cache_type of a SCSI disk that TuneD would read.
            (tuned("[mounts]\ndisable_barriers=1\n"), "/srv/maria", "off"),
            ({"/etc/rc.local": f"{RC}mount -o remount,barrier=0 /srv/pgdata\n"}, "/srv/pgdata", "off"),
            ({"/etc/rc.local": f"{RC}mount -o remount,nobarrier /dev/sda1\n"}, "/srv/pgdata", "off"),
            (
                {"/etc/cron.d/x": "@reboot root mount -o remount,nobarrier /srv/pgdata\n"},
                "/srv/pgdata",
                "off",
            ),
            (unit("ExecStartPost=/bin/mount -o nobarrier,remount /srv/pgdata/"), "/srv/pgdata", "off"),
            (
                {"/etc/rc.local": f"{RC}for m in $(cat /etc/list); do mount -o remount,nobarrier $m; done\n"},
                "/srv/pgdata",
                "unknown",
            ),
            (
                {"/etc/rc.local": f"{RC}if true; then\nmount -o remount,nobarrier /srv/pgdata\nfi\n"},
                "/srv/pgdata",
                "unknown",
            ),
            *(
                ({"/etc/rc.local": f"{RC}mount -o remount,{options}\n"}, "/srv/pgdata", wanted)
                for options, wanted in {
                    # The kernel reads the number in several bases.
                    "barrier=00 /srv/pgdata": "unknown",
                    "barrier=0x0 /srv/pgdata": "unknown",
                    "nobarrier --target=/srv/pgdata": "off",
                    "nobarrier --source=/dev/sda1": "off",
                    "nobarrier --source /dev/sda1": "off",
                    "nobarrier /srv//pgdata": "off",
                    "nobarrier //srv/./pgdata/": "off",
                    # By a tag that no link in /dev shows here.
                    "nobarrier -L data": "unknown",
                    "nobarrier --label data": "unknown",
                    "nobarrier -U 1-2": "unknown",
                    "nobarrier --uuid=1-2": "unknown",
                }.items()
            ),
            ({"/etc/rc.local": f"{RC}umount /srv/pgdata\n"}, "/srv/pgdata", "unknown"),
            (unit("ExecStart=/bin/mount /dev/sdb1 /srv/pgdata"), "/srv/pgdata", "unknown"),
            (unit("ExecStart=/bin/mount -o barrier=0 /srv/pgdata"), "/srv/pgdata", "unknown"),
            ({RULES: 'RUN+="/bin/mount -o remount,barrier=0 /srv/pgdata"\n'}, "/srv/pgdata", "unknown"),
            (
                {
                    RULES: 'SUBSYSTEM=="net", RUN+="/usr/local/sbin/up /srv/pgdata"\n',
                    "/usr/local/sbin/up": '#!/bin/sh\nsystemd-run --on-active=2 mount -o remount,barrier=0 "$1"\n',
                },
                "/srv/pgdata",
                "unknown",
            ),
            (
                {
                    RULES: 'SUBSYSTEM=="net", TAG+="systemd", ENV{SYSTEMD_WANTS}+="tune.service"\n',
                    UNIT: "[Service]\nExecStart=/bin/mount -o remount,barrier=0 /srv/pgdata\n",
                },
                "/srv/pgdata",
                "off",
            ),
        ],
    )
    def test_barriers_at_the_next_boot(self, files: dict[str, str], target: str, wanted: str) -> None:
        host = SmallHost()
        assert barrier(host, target) == ("on", "fstab", None)
        plant(host, files)
        value, by, fix = barrier(host, target)
        assert (value, by != "fstab") == (wanted, True)
        assert fix and " line " in fix

    @pytest.mark.parametrize(
        "files",
        [
            tuned("[mounts]\ndisable_barriers=0\n"),
            # Over a SCSI or SATA disk whose kernel cache mode is write back TuneD leaves them on.
            tuned("[mounts]\ndisable_barriers=1\n"),
            {"/etc/rc.local": f"{RC}mount -o remount,barrier=0 /srv/other\n"},
            {"/etc/rc.local": f"{RC}mount -o remount,barrier=1 /srv/pgdata\n"},
            {"/etc/rc.local": f"{RC}mount -o barrier=0 /dev/sdz1 /srv/x\n"},
            {"/etc/rc.local": f"{RC}mount -o remount,nobarrier --target=/srv/other -t ext4\n"},
            {"/etc/rc.local": f"{RC}mount --options=remount,barrier=1 /srv/pgdata\n"},
            {"/etc/rc.local": f"{RC}for m in /srv/a /srv/b; do mount -o remount,nobarrier $m; done\n"},
            unit("ExecStart=/bin/mount -o remount,ro /boot"),
            {RULES: 'RUN+="/bin/mount -o remount,barrier=0 /srv/other"\n'},
            {"/etc/rc.local": f"{RC}mount /srv/pgdata\nmount /dev/sdz1 /srv/other\n"},
            {UNIT: "[Service]\nExecStart=/bin/mount -o remount,barrier=0 /srv/pgdata\n"},
            {GENERATOR: "#!/bin/sh\n# barrier=0\nln -s /etc/issue $1/hello\n"},
        ],
    )
    def test_what_leaves_them_changes_nothing(self, files: dict[str, str]) -> None:
        host = SmallHost()
        plant(host, files)
        assert barrier(host) == ("on", "fstab", None)

    def test_barriers_are_unknown_if_a_source_cannot_be_read(self) -> None:
        host = SmallHost()
        host.files["/etc/crontab"] = Unobservable("/etc/crontab: Input/output error")
        (mount,) = [each for each in collect(host, NOW)["mounts"] if each["target"] == "/srv/pgdata"]
        assert (mount["persisted"]["barrier"], mount["persisted"]["atime"]) == ("unknown", "unknown")
        assert "/etc/crontab: Input/output error" in sentence(mount, "persisted.barrier")

    @pytest.mark.parametrize("text", ["#!/bin/sh\necho barrier=0 > $1/x\n", "\udc7fELF\0"])
    def test_what_a_generator_makes_is_unknown(self, text: str) -> None:
        host = ready()
        plant(host, {GENERATOR: text})
        host.modes[GENERATOR] = 0o755
        (mount,) = [each for each in collect(host, NOW)["mounts"] if each["target"] == "/srv/pgdata"]
        assert (mount["persisted"]["barrier"], mount["persisted"]["atime"]) == ("unknown", "unknown")
        assert f"{GENERATOR} is a generator" in sentence(mount, "persisted.barrier")
        assert (seen(host, "sda")["cache"], seen(host, "sda")["scheduler"]) == ("unknown", "unknown")

    @pytest.mark.parametrize(("text", "wanted"), [("echo barrier=0 > $1/x\n", "unknown"), (":\n", "on")])
    def test_scripts_that_a_generator_runs_count(self, text: str, wanted: str) -> None:
        host = SmallHost()
        files = {"/opt/a": "#!/bin/sh\n. /opt/b\n", "/opt/b": text, "/usr/lib/x": "#!/bin/sh\nmount\n"}
        plant(host, {GENERATOR: '#!/bin/sh\n/opt/a "$1"\n/usr/lib/x\n', **files})
        (mount,) = [each for each in collect(host, NOW)["mounts"] if each["target"] == "/srv/pgdata"]
        assert mount["persisted"]["barrier"] == wanted

    def test_tuned_and_a_remount_that_disagree_are_unknown(self) -> None:
        host = SmallHost()
        plant(host, tuned("[mounts]\ndisable_barriers=force\n"))
        plant(host, {"/etc/rc.local": f"{RC}mount -o remount,barrier=1 /srv/pgdata\n"})
        assert barrier(host)[0] == "unknown"

    def test_a_remount_of_xfs_with_barrier_is_refused_and_changes_nothing(self) -> None:
        host = SmallHost()
        plant(host, {"/etc/rc.local": f"{RC}mount -o remount,nobarrier /srv/mssql\n"})
        assert barrier(host, "/srv/mssql")[0] == "on"


THERE = "remove the assignment from /etc/rc.local line 3, or set it to disabled there"
OURS = "/etc/tuned/profiles/ours/tuned.conf"
OTHER = f"select another profile (tuned-adm profile NAME), or remove the assignment from {OURS} line 2"
PACKAGED = "/usr/lib/udev/rules.d/zzz-vendor.rules"


class TestReport:
    """The report is red, names the file, and plans no step that cannot fix it."""

    def row(self, host: SmallHost, setting: str, target: str) -> dict[str, Any]:
        found = look(host, "strict")
        (row,) = [r for r in found["settings"] if (r["setting"], r["target"]) == (setting, target)]
        return {**row, "verdict_of_host": found["verdict"], "plan": found["plan"]}

    @pytest.mark.parametrize(
        ("files", "setting", "target", "persisted", "cure"),
        [
            (SABOTEURS["rc.local"][0], "write_cache", "serial:QEMU_HARDDISK_SATA0001", "enabled", THERE),
            (
                SABOTEURS["rc.local: a loop"][0],
                "write_cache",
                "serial:QEMU_HARDDISK_SATA0001",
                "unknown",
                "remove /etc/rc.local line 4, or replace it by one command that names the device and the value",
            ),
            (
                SABOTEURS["tuned: sysfs"][0],
                "kernel_cache_mode",
                "serial:QEMU_HARDDISK_SATA0001",
                "write through",
                OTHER,
            ),
            (tuned("[mounts]\ndisable_barriers=force\n"), "barrier", "/srv/pgdata", "off", OTHER),
            (
                {PACKAGED: 'KERNEL=="sda", RUN+="/sbin/hdparm -W1 /dev/sda"\n'},
                "write_cache",
                "serial:QEMU_HARDDISK_SATA0001",
                "enabled",
                f"remove the assignment from a copy of {PACKAGED} in /etc/udev/rules.d, or set it to disabled there",
            ),
        ],
    )
    def test_a_host_that_was_green_is_red_and_says_what_to_remove(
        self, files: dict[str, str], setting: str, target: str, persisted: str, cure: str
    ) -> None:
        host = settled("strict")
        before = self.row(host, setting, target)
        assert before["verdict"] == "ok"
        plant(host, files)
        row = self.row(host, setting, target)
        assert (row["persisted"], row["phase"]) == (persisted, None)
        assert row["verdict"] == ("unknown" if persisted == "unknown" else "drift_persisted")
        assert row["remedy"] == cure
        assert row["verdict_of_host"] != before["verdict_of_host"]

    def test_a_run_still_sets_what_is_in_force_and_writes_our_own_rule(self) -> None:
        host = SmallHost()
        plant(host, SABOTEURS["rc.local"][0])
        found = look(host, "strict")
        enforce(host, found)
        assert host.disk("sda").cache == "disabled"
        row = self.row(host, "write_cache", "serial:QEMU_HARDDISK_SATA0001")
        assert (row["running"], row["persisted"], row["verdict"]) == (
            "disabled",
            "enabled",
            "drift_persisted",
        )


def test_a_host_with_a_hundred_disks_and_many_rules_is_read_once() -> None:
    host = SmallHost()
    for number in range(100):
        host.add_disk(FakeDisk(f"sd{number}x", "sata", f"S{number}"), f"65:{number}")
    for number in range(150):
        host.files[f"/usr/lib/udev/rules.d/{number:03}-x.rules"] = 'KERNEL=="x", ENV{A}="1"\n' * 30
    reads: list[str] = []
    read = host.read
    host.read = lambda path: (reads.append(path), read(path))[1]  # type: ignore[method-assign]
    collect(host, NOW)
    rules = [path for path in reads if path.startswith("/usr/lib/udev")]
    assert len(rules) <= 2 * 150


REMOUNT = "mount -o remount,barrier=1 /srv/pgdata"


class TestOtherUsers:
    """What another user than root runs sets nothing for certain, so it hides no risk."""

    @pytest.mark.parametrize(
        ("files", "wanted"),
        [
            ({}, "off"),
            ({"/var/spool/cron/crontabs/joe": f"@reboot {REMOUNT}\n"}, "off"),
            ({"/etc/cron.d/x": f"@reboot nobody {REMOUNT}\n"}, "off"),
            ({"/var/spool/cron/crontabs/joe": f"@reboot sudo {REMOUNT}\n"}, "unknown"),
            (unit(f"User=nobody\nExecStart=/bin/{REMOUNT}"), "unknown"),
            (unit(f"User=root\nExecStart=/bin/{REMOUNT}"), "on"),
            ({"/var/spool/cron/crontabs/root": f"@reboot {REMOUNT}\n"}, "on"),
            ({"/etc/cron.d/x": f"@reboot root\t{REMOUNT}\n"}, "on"),
        ],
    )
    def test_a_mount_without_barriers_is_made_safe_by_root_alone(
        self, files: dict[str, str], wanted: str
    ) -> None:
        host = ready()
        fstab = str(host.files["/etc/fstab"])
        row = next(line.split() for line in fstab.split("\n") if "/srv/pgdata" in line.split())
        row[3] = "nobarrier"
        others = [line for line in fstab.split("\n") if "/srv/pgdata" not in line.split()]
        host.files["/etc/fstab"] = "\n".join((*others, " ".join(row), ""))
        plant(host, files)
        assert barrier(host)[0] == wanted

    @pytest.mark.parametrize(
        "lines",
        [
            "if [ ! -e /etc/site ]; then exit 0; fi\n{}",
            "test -e /etc/site || exit 0\n{}",
            "test -e /etc/site || return\n{}",
            "set -e\n/opt/site/start\n{}",
            "if true; then\n{}\nfi",
            "(\n{}\n) &",
            "( {} )",
            "cat <<END\n{}\nEND",
            "awk '\n{}\n'",
        ],
    )
    def test_a_command_that_may_not_run_hides_no_risk(self, lines: str) -> None:
        host = ready("enabled")
        plant(host, {"/etc/rc.local": f"#!/bin/sh\n{lines.format('hdparm -W0 /dev/sda')}\n"})
        assert seen(host, "sda")["cache"] != "disabled"

    def test_without_its_program_a_command_is_not_certain(self) -> None:
        host = ready("enabled")
        plant(host, {"/etc/rc.local": "#!/bin/sh\nhdparm -W0 /dev/sda\n"})
        assert seen(host, "sda")["cache"] == "disabled"
        for directory in ("/sbin", "/usr/sbin"):
            host.files.pop(f"{directory}/hdparm", None)
        assert seen(host, "sda")["cache"] == "unknown"


class TestShell:
    """However a script writes it, a command that can set something counts."""

    @pytest.mark.parametrize(
        "lines",
        [
            "cat > /etc/motd <<END\nWelcome\nEND\n{}",
            "V=$((1<<20))\n{}",
            "read x <<< 1\n{}",
            "(sleep 5; {}) &",
            "{{ sleep 5; {}; }}",
            "{} &",
            "(exit 1)\n{}",
            "awk '\nexit\n' /etc/motd\n{}",
            "echo 'a # b'; {}",
            "set -e\n{}",
        ],
    )
    def test_a_command_behind_others(self, lines: str) -> None:
        host = ready()
        text = lines.format("mount -o remount,nobarrier /srv/pgdata")
        plant(host, {"/etc/rc.local": f"#!/bin/sh\n{text}\n"})
        assert barrier(host)[0] in ("off", "unknown")

    def test_a_command_behind_the_end_of_a_here_document_is_certain(self) -> None:
        host = ready()
        text = "cat > /etc/motd <<END\nWelcome\nEND\nmount -o remount,nobarrier /srv/pgdata\n"
        plant(host, {"/etc/rc.local": f"#!/bin/sh\n{text}"})
        assert barrier(host)[0] == "off"

    @pytest.mark.parametrize(
        "line",
        [
            "cryptsetup open /dev/sdz x\nfor i in $(lsblk -ndo PATH); do hdparm -W1 $i; done",
            "T=hdparm\n$T -W1 /dev/sda",
            "A=cache_type; echo write back > /sys/class/scsi_disk/*/$A",
            "hdparm -W1 /dev/block/8:0",
            "hdparm -W1 /dev/sd{a,c}",
            "hdparm -W1 /dev/sd[^z]",
            "sg_wr_mode -c 8,4 /dev/sg0",
            "bash -x /root/t",
            "MODE=x /root/t.sh",
        ],
    )
    def test_a_disk_that_is_named_in_another_way(self, line: str) -> None:
        host = ready()
        plant(
            host,
            {"/etc/rc.local": f"#!/bin/sh\n{line}\n", "/root/t": "hdparm -W1 /dev/sda\n", "/root/t.sh": TUNE},
        )
        assert seen(host, "sda")["cache"] in ("enabled", "unknown")

    @pytest.mark.parametrize(
        ("line", "wanted"),
        [
            ("mount -a -o remount,nobarrier", "unknown"),
            ("mount -o remount,nobarrier --all", "unknown"),
            ("cd /srv; mount -o remount,nobarrier pgdata", "unknown"),
            ("cd /mnt; mount -o remount,nobarrier data", "on"),
            ("mount -o remount,nobarrier UUID=pg", "unknown"),
            ("O=remount,nobarrier; mount -o $O /srv/pgdata", "unknown"),
        ],
    )
    def test_a_mount_that_is_named_in_another_way(self, line: str, wanted: str) -> None:
        host = ready()
        plant(host, {"/etc/rc.local": f"#!/bin/sh\n{line}\n"})
        assert barrier(host)[0] == wanted


@pytest.mark.parametrize(
    ("place", "wanted"),
    [("UUID=pg", "off"), ("UUID=other", None), ("LABEL=pg", "unknown"), ("/dev/sda1", "off")],
)
def test_a_remount_by_uuid_is_about_the_mount_with_that_link(place: str, wanted: str | None) -> None:
    facts = {"targets": ["/srv/pgdata"], "fstype": "ext4", "persisted": {"barrier": "on"}}
    device = Device("sda1", links=frozenset({"/dev/disk/by-uuid/pg"}))
    act = Act("rc.local", "/etc/rc.local line 2", "command", ("mount", "-o", "remount,nobarrier", place))
    found = remounts.changes([[act]], facts, device, {})
    assert found.get("barrier", (None,))[0] == wanted


def test_a_pattern_matches_within_one_directory() -> None:
    """As a shell matches it: an asterisk is no slash."""
    device = Device("sda", "8:0")
    assert device.attribute("/sys/block/*/queue/write_cache") == "write_cache"
    assert device.attribute("/sys/block/*/write_cache") == ""


@pytest.mark.parametrize(("is_forced", "wanted"), [(True, "write through"), (False, "write back")])
def test_a_mode_that_was_forced_is_not_raised_by_another_file(is_forced: bool, wanted: str) -> None:
    """Kernel 6.12: after a write to queue/write_cache, cache_type no longer raises the mode."""
    before = State(cache=Value("enabled"), mode=Value("write through"), is_forced=is_forced)
    act = Act("tmpfiles.d", "/etc/tmpfiles.d/x.conf line 1", "write", ("", "temporary write back"))
    device = Device("sda", control="scsi")
    assert effects.after_write(before, "cache_type", act.words[1], act, device, True).mode.value == wanted


class TestStarted:
    """A service counts whatever starts it."""

    SERVICE = "[Service]\nExecStart=/sbin/hdparm -W1 /dev/sda\n"

    @pytest.mark.parametrize(
        "files",
        [
            {"/etc/systemd/system/multi-user.target.d/x.conf": "[Unit]\nWants=tune.service\n"},
            {"/etc/systemd/system/ssh.service.d/x.conf": "[Unit]\nWants=a.service \\\n tune.service\n"},
            {"/etc/rc.local": f"{RC}systemctl start tune\n"},
            {"/etc/cron.d/x": "@reboot root systemctl --no-block start tune\n"},
            {RULES: 'ACTION=="add", RUN+="/bin/systemctl start tune"\n'},
            {"/etc/systemd/system/ssh.service.d/x.conf": "[Service]\nExecStartPost=systemctl start tune\n"},
        ],
    )
    def test_by_a_drop_in_a_script_or_a_rule(self, files: dict[str, str]) -> None:
        host = ready()
        plant(host, {UNIT: self.SERVICE})
        assert seen(host, "sda")["cache"] == "disabled"
        plant(host, files)
        assert seen(host, "sda")["cache"] in ("enabled", "unknown")

    @pytest.mark.parametrize(
        "files",
        [
            {RULES: 'ENV{SYSTEMD_WANTS}+="tune@%k.service"\n'},
            {"/etc/systemd/system/multi-user.target.d/x.conf": "[Unit]\nWants=tune@sda.service\n"},
        ],
    )
    def test_of_a_template(self, files: dict[str, str]) -> None:
        host = ready()
        plant(host, {"/etc/systemd/system/tune@.service": self.SERVICE})
        assert seen(host, "sda")["cache"] == "disabled"
        plant(host, files)
        assert seen(host, "sda")["cache"] in ("enabled", "unknown")

    @pytest.mark.parametrize(
        "files",
        [
            {"/etc/systemd/system/ssh.service.d/x.conf": "[Unit]\nAfter=tune.service\n"},
            {"/etc/systemd/system/ssh.service.d/x.conf": "[Unit]\nWants=tune-more.service\n"},
            {"/etc/systemd/system/tune.service.d/x.conf": "[Unit]\nDescription=tune.service\n"},
            {"/etc/rc.local": f"{RC}# systemctl start tune\n"},
        ],
    )
    def test_not_by_what_names_it_only(self, files: dict[str, str]) -> None:
        host = ready()
        plant(host, {UNIT: self.SERVICE, **files})
        assert seen(host, "sda")["cache"] == "disabled"


@pytest.mark.parametrize(
    ("line", "disk", "cache"),
    [
        ("sdparm -qs WCE=1 /dev/sdc", "sdc", "enabled"),
        ("sdparm -qc WCE /dev/sdc", "sdc", "disabled"),
        ("sdparm --set=8:2:2=1 /dev/sdc", "sdc", "unknown"),
        ("sdparm -s 0x8,2,2=1 /dev/sdc", "sdc", "unknown"),
        ("sdparm --get=WCE /dev/sdc", "sdc", "disabled"),
        ("sdparm -p ca -i /dev/sdc", "sdc", "disabled"),
        ("smartctl -s wcache-sct,on,p /dev/sda", "sda", "unknown"),
        ("nvme set-feature /dev/ng0n1 -f 6 -v 1", "nvme0n1", "enabled"),
        ("nvme set-feature /dev/ng1n1 -f 6 -v 1", "nvme0n1", "disabled"),
        ("nvme admin-passthru /dev/nvme0 --opcode=0x09 --cdw10=6 --cdw11=1", "nvme0n1", "unknown"),
        ("for d in /dev/nvme*; do nvme admin-passthru $d -o 9; done", "nvme0n1", "unknown"),
        ("nvme admin-passthru /dev/nvme0 --opcode=0x06", "nvme0n1", "disabled"),
    ],
)
def test_other_spellings_of_a_command_count(line: str, disk: str, cache: str) -> None:
    host = ready()
    plant(host, {"/etc/rc.local": f"{RC}{line}\n"})
    assert seen(host, disk)["cache"] == cache


@pytest.mark.parametrize("word", ["write\\ through", "wri\\te' through'", "'write\\x20through'"])
def test_a_word_that_is_escaped_may_lower_the_mode(word: str) -> None:
    host = ready()
    plant(host, {"/etc/rc.local": f"{RC}echo -e {word} > /sys/block/sda/queue/write_cache\n"})
    assert seen(host, "sda")["mode"] == "unknown"


class TestPathsInSys:
    """Paths by which a component names an attribute of a disk."""

    @pytest.mark.parametrize(
        ("path", "mode"),
        [
            ("/sys/block/sda/./queue/write_cache", "write through"),
            ("/sys//block/sda/../sda/queue/write_cache", "write through"),
            ("/sys/class/block/sda1/../queue/write_cache", "unknown"),
            ("/sys/block/sda/device/block/sda/queue/write_cache", "unknown"),
            ("/sys/bus/scsi/devices/*/scsi_disk/*/cache_type", "unknown"),
            ("/sys/class/scsi_device/0:0:0:0/device/scsi_disk/0:0:0:0/cache_type", "unknown"),
            ("/sys/class/scsi_host/host0/device/target0:0:0/*/block/*/queue/write_cache", "unknown"),
            # Of other disks, and of none.
            ("/sys/class/block/sdz1/../queue/write_cache", "ours"),
            ("/sys/block/sdz/device/block/sdz/queue/write_cache", "ours"),
            ("/sys/bus/scsi/devices/9:0:0:0/scsi_disk/9:0:0:0/cache_type", "ours"),
            ("/sys/devices/system/cpu/cache_type", "ours"),
            ("/sys/class/nvme/nvme0/nvme0c0n1/queue/write_cache", "ours"),
            ("/sys/bus/scsi/devices/*/block/sdz/queue/write_cache", "ours"),
        ],
    )
    @pytest.mark.parametrize("by", ["tmpfiles", "tuned"])
    def test_the_mode_of_a_disk(self, by: str, path: str, mode: str) -> None:
        host = ready()
        line = f"w {path} - - - - write through\n"
        files = (
            {"/etc/tmpfiles.d/x.conf": line}
            if by == "tmpfiles"
            else tuned(f"[sysfs]\n{path}=write through\n")
        )
        plant(host, files)
        assert seen(host, "sda")["mode"] == mode

    @pytest.mark.parametrize("name", ["nvme0n1", "nvme0c0n1", "*"])
    def test_the_mode_of_a_disk_of_nvme(self, name: str) -> None:
        host = ready()
        plant(host, tuned(f"[sysfs]\n/sys/class/nvme/nvme0/{name}/queue/write_cache=write through\n"))
        assert seen(host, "nvme0n1")["mode"] == "unknown"

    def test_tuned_keeps_the_case_of_a_path(self) -> None:
        host = ready()
        place = "/sys/devices/LNXSYSTM:00/host2/target2:0:0/2:0:0:0/block/sda"
        for path in [each for each in host.files if each.startswith(host.links["/sys/block/sda"])]:
            host.files[path.replace(host.links["/sys/block/sda"], place)] = host.files[path]
        host.links.update({"/sys/block/sda": place, "/sys/class/block/sda": place})
        plant(host, tuned(f"[sysfs]\n{place}/queue/write_cache=write through\n"))
        found = seen(host, "sda")
        assert found["mode"] == "write through"
        assert found["evidence"]["write_cache.kernel_persisted"]["source"].endswith("tuned.conf line 2")


@pytest.mark.parametrize("kind", ["w", "w~"])
def test_tmpfiles_d_writes_what_its_escapes_or_base64_mean(kind: str) -> None:
    host = ready()
    argument = {"w": "write\\x20through", "w~": "d3JpdGUgdGhyb3VnaA=="}[kind]
    plant(host, {"/etc/tmpfiles.d/x.conf": f"{kind} /sys/block/sda/queue/write_cache - - - - {argument}\n"})
    assert seen(host, "sda")["mode"] == "write through"


@pytest.mark.parametrize(
    "line",
    [
        "mount -o remount,nobarrier,password=geheim /srv/pgdata",
        "echo geheim | sudo -S hdparm -W1 /dev/sda",
        "hdparm -W1 --security-unlock geheim /dev/sda",
        "for d in /dev/sda; do KEY=geheim hdparm -W1 $d; done",
    ],
)
def test_no_evidence_has_a_password_of_a_command(line: str) -> None:
    host = ready()
    plant(host, {"/etc/cron.d/x": f"@reboot root {line}\n"})
    found = json.dumps(collect(host, NOW))
    assert "/etc/cron.d/x line 1" in found
    assert "geheim" not in found


TUNE = "#!/bin/sh\nhdparm -W1 /dev/sda\n"
#: A job of at(1).
AT_JOB = "#!/bin/sh\n# atrun uid=0 gid=0\n# mail root 0\numask 22\nhdparm -W1 /dev/sda\n"


class TestScripts:
    """A script counts however it is run, and one that it runs."""

    @pytest.mark.parametrize(
        "files",
        [
            {"/etc/rc.local": f"{RC}bash /root/t\n", "/root/t": "hdparm -W1 /dev/sda\n"},
            {"/etc/rc.local": f"{RC}. /etc/tune\n", "/etc/tune": "hdparm -W1 /dev/sda\n"},
            {"/etc/rc.local": f"{RC}test -x /root/t.sh && /root/t.sh\n", "/root/t.sh": TUNE},
            {"/etc/rc.local": f"{RC}site-tune\n", "/usr/local/sbin/site-tune": TUNE},
            {"/etc/rc.local": f"{RC}/usr/bin/site-tune\n", "/usr/bin/site-tune": TUNE},
            {"/etc/cron.d/x": "@reboot root /bin/sh /root/t\n", "/root/t": "hdparm -W1 /dev/sda\n"},
            {**unit("ExecStart=/bin/sh /root/t"), "/root/t": "hdparm -W1 /dev/sda\n"},
            {
                **unit("ExecStart=/root/a.sh"),
                "/root/a.sh": "#!/bin/sh\n/root/b.sh\n",
                "/root/b.sh": TUNE,
            },
            {RULES: 'SUBSYSTEM=="net", RUN+="site-tune"\n', "/usr/lib/udev/site-tune": TUNE},
            {RULES: 'KERNEL=="sdz", RUN+="/sbin/hdparm -W1 /dev/sda"\n'},
            {"/etc/rc2.d/S20site": "-> /etc/init.d/site", "/etc/init.d/site": TUNE},
            {"/etc/rc.local": f"{RC}smartctl -s wcache,on /dev/sda\n"},
            unit("ExecStart=/usr/sbin/smartctl --set=wcache,on /dev/sda"),
            {"/etc/systemd/system/service.d/x.conf": "[Service]\nExecStartPre=/sbin/hdparm -W1 /dev/sda\n"},
            {"/var/spool/cron/crontabs/joe": "@reboot sudo hdparm -W1 /dev/sda\n"},
            {"/etc/crontab": "17 *\t* * * root\thdparm -W1 /dev/sda\n"},
            {"/etc/cron.d/x": "-*/15 0-6 * jan,feb mon-fri root /root/t\n", "/root/t": TUNE},
            {"/etc/cron.d/x": "@daily root hdparm -W1 /dev/sda\n"},
            {"/var/spool/cron/root": "0 3 * * 7 /usr/bin/nice hdparm -W1 /dev/sda\n"},
            {"/etc/anacrontab": "@monthly 45 tune nice hdparm -W1 /dev/sda\n"},
            {"/etc/cron.hourly/tune": TUNE},
            {"/etc/cron.weekly/tune": "#!/bin/sh\n/root/t\n", "/root/t": TUNE},
            {"/etc/NetworkManager/dispatcher.d/90-tune": TUNE},
            {"/etc/networkd-dispatcher/routable.d/tune": TUNE},
            {"/etc/network/if-up.d/tune": TUNE},
            {"/etc/network/interfaces": "iface eth0 inet dhcp\n\tpost-up hdparm -W1 /dev/sda\n"},
            {"/etc/network/interfaces.d/eth0": "iface eth0 inet dhcp\n  up /root/t\n", "/root/t": TUNE},
            {"/etc/dhcp/dhclient-exit-hooks.d/tune": "hdparm -W1 /dev/sda\n"},
            {"/etc/dhcp/dhclient-enter-hooks": "hdparm -W1 /dev/sda\n"},
            {"/usr/lib/systemd/system-sleep/tune": TUNE},
            {"/lib/systemd/system-sleep/tune": TUNE},
            {"/etc/network/interfaces": "iface eth0 inet dhcp\n  up true && \\\n    hdparm -W1 /dev/sda\n"},
            {"/etc/rc.local": f"{RC}# C:\\\nhdparm -W1 /dev/sda\n"},
            {
                "/etc/network/interfaces": "source more/*.cfg\n",
                "/etc/network/more/x.cfg": "source-directory .\nsource-directory ../../eth.d\n",
                "/etc/eth.d/x": "pre-up hdparm -W1 /dev/sda\n",
            },
            {"/var/spool/cron/atjobs/a0000101d0": AT_JOB},
            {"/var/spool/at/a0000101d0": AT_JOB},
        ],
    )
    def test_the_cache_is_no_longer_said_to_stay_off(self, files: dict[str, str]) -> None:
        host = ready()
        assert seen(host, "sda")["cache"] == "disabled"
        plant(host, files)
        found = seen(host, "sda")
        assert found["cache"] in ("unknown", "enabled")
        assert found["evidence"]["write_cache.persisted"]["precedence"] == "theirs"

    @pytest.mark.parametrize(
        "files",
        [
            {"/etc/rc2.d/S20site": "-> /etc/init.d/site", "/etc/init.d/site": TUNE, UNIT: "",
                "/lib/systemd/system/site.service": "[Service]\nExecStart=/bin/true\n"},
            {"/etc/rc2.d/K20site": "-> /etc/init.d/site", "/etc/init.d/site": TUNE},
            {"/etc/rc.local": f"{RC}smartctl -s wcache,on /dev/sdz\n"},
            {"/etc/rc.local": f"{RC}echo hdparm -W1 /dev/sda\n"},
            {"/etc/rc.local": f"{RC}for d in /dev/sd?; do hdparm -W0 $d; done\n"},
            {"/etc/rc.local": f"{RC}for d in sda sdc; do echo none > /sys/block/$d/queue/scheduler; done\n"},
            {RULES: 'KERNEL=="sdz", RUN+="/sbin/hdparm -W1 $devnode"\n'},
            {RULES: 'KERNEL=="sdz", RUN+="/sbin/hdparm -W1 /dev/sdz"\n'},
            {"/etc/crontab": "# 17 * * * * root hdparm -W1 /dev/sda\n17 * * * * root hdparm -W1 /dev/sdz\n"},
            {"/etc/cron.d/x": "17 * * * * joe hdparm -W1 /dev/sda\n5 4 * * * root hdparm -W0 /dev/sda\n"},
            {"/var/spool/cron/joe": "0 3 * * 7 hdparm -W1 /dev/sda\n"},
            {"/etc/crontab": "25 6 * * * root test -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.daily; }\n"},
            {"/etc/cron.daily/e2scrub": "#!/bin/sh\n/usr/sbin/packaged\n", "/usr/sbin/packaged": TUNE},
            {"/etc/cron.daily/0note": "hdparm -W1 /dev/sda\n"},
            {"/etc/network/interfaces": "iface eth0 inet dhcp\n\tdown hdparm -W1 /dev/sda\n# up hdparm -W1 /dev/sda\n"},
        ],
    )  # fmt: skip
    def test_what_does_not_run_or_sets_the_same_changes_nothing(self, files: dict[str, str]) -> None:
        host = ready()
        plant(host, files)
        found = seen(host, "sda")
        assert (found["cache"], found["scheduler"]) == ("disabled", "none")

    def test_a_job_of_at_of_another_user_is_not_read(self) -> None:
        host = ready()
        path = "/var/spool/at/a0000101d0"
        plant(host, {path: AT_JOB})
        host.uids[path] = 1000
        host.pipes.add(path)
        assert seen(host, "sda")["cache"] == "disabled"

    def test_directories_among_the_files_have_no_text(self) -> None:
        host = ready()
        plant(
            host,
            {
                "/etc/network/interfaces.d/old/eth0": "up hdparm -W1 /dev/sda\n",
                "/etc/dhcp/dhclient-exit-hooks.d/old/tune": "hdparm -W1 /dev/sda\n",
                "/var/spool/at/spool/a0000101d0": "",
            },
        )
        host.modes["/var/spool/at/spool"] = 0o700
        assert seen(host, "sda")["cache"] == "disabled"

    def test_a_script_of_the_initramfs_acts_on_the_root_of_the_host(self) -> None:
        host = SmallHost()
        path = "/etc/initramfs-tools/scripts/init-bottom/tune"
        text = "#!/bin/sh\n. /scripts/functions\nmount -o remount,nobarrier ${rootmnt}\nhdparm -W1 /dev/sda\n"
        plant(host, {path: text})
        assert barrier(host, "/")[:2] == ("unknown", "initramfs script")
        assert barrier(host) == ("on", "fstab", None)
        assert seen(host, "sda")["cache"] == "unknown"

    @pytest.mark.parametrize(
        ("files", "unit_name", "setting"),
        [
            ({"/etc/tlp.conf": 'DISK_IOSCHED="keep bfq"\nDISK_DEVICES="nvme0n1 sda"\n'}, "tlp", "scheduler"),
            ({"/etc/tlp.d/x.conf": "DISK_IOSCHED=bfq\n"}, "tlp", "scheduler"),
            ({"/etc/laptop-mode/laptop-mode.conf": "CONTROL_HD_WRITECACHE=1\n"}, "laptop-mode", "cache"),
            ({"/etc/tlp.conf": 'DISK_IOSCHED="keep keep"\n'}, "tlp", ""),
            ({"/etc/tlp.conf": '#DISK_IOSCHED="bfq"\n'}, "tlp", ""),
            ({"/etc/tlp.conf": "DISK_IOSCHED=bfq\nDISK_DEVICES=sdz\n"}, "tlp", ""),
            ({"/etc/laptop-mode/laptop-mode.conf": "CONTROL_HD_WRITECACHE=0\n"}, "laptop-mode", ""),
        ],
    )
    def test_power_tools_may_set_schedulers_and_caches(
        self, files: dict[str, str], unit_name: str, setting: str
    ) -> None:
        host = ready()
        plant(host, files)
        before = seen(host, "sda")
        assert (before["cache"], before["scheduler"]) == ("disabled", "none")
        plant(host, {f"{WANTS}/{unit_name}.service": f"-> /lib/systemd/system/{unit_name}.service"})
        found = seen(host, "sda")
        assert {key for key in ("cache", "scheduler") if found[key] == "unknown"} == ({setting} - {""})

    def test_a_job_some_time_after_the_boot_leaves_the_value_unknown(self) -> None:
        host = ready()
        plant(host, {"/etc/crontab": "17 * * * * root hdparm -W1 /dev/sda\n"})
        found = seen(host, "sda")
        assert found["cache"] == "unknown"
        row = found["evidence"]["write_cache.persisted"]
        assert (row["by"], row["source"]) == ("cron", "/etc/crontab line 1")

    def test_a_write_to_a_relative_path_counts(self) -> None:
        host = ready()
        plant(host, {"/etc/rc.local": f"{RC}cd /sys/block/sda/queue\necho write through > write_cache\n"})
        assert seen(host, "sda")["mode"] == "unknown"

    def test_an_attribute_of_another_device_in_a_rule_counts(self) -> None:
        host = ready()
        plant(host, {RULES: 'SUBSYSTEM=="net", ATTR{[block/sda]queue/write_cache}="write through"\n'})
        assert seen(host, "sda")["mode"] == "unknown"

    @pytest.mark.parametrize(("word", "cache"), [("1", "enabled"), ("0", "disabled")])
    def test_udisks_takes_numbers(self, word: str, cache: str) -> None:
        host = ready()
        host.files["/usr/libexec/udisks2/udisksd"] = "ELF"
        plant(
            host,
            {"/etc/udisks2/QEMU-HARDDISK-QEMU_HARDDISK_SATA0001.conf": f"[ATA]\nWriteCacheEnabled={word}\n"},
        )
        assert seen(host, "sda")["cache"] == cache


#: What runs /opt/s0 at a boot.
RUNS = {
    "rc.local": {"/etc/rc.local": f"{RC}/opt/s0\n"},
    "cron": {"/etc/cron.d/x": "@reboot root /opt/s0\n"},
    "unit": unit("ExecStart=/opt/s0"),
    "udev": {RULES: 'SUBSYSTEM=="net", RUN+="/opt/s0"\n'},
    "TuneD": {
        **tuned("[script]\nscript=x.sh\n"),
        "/etc/tuned/profiles/ours/x.sh": "#!/bin/sh\n/opt/s0\n",
    },
    "run-parts": {
        "/etc/rc.local": f"{RC}run-parts /etc/site.d\n",
        "/etc/site.d/10": "#!/bin/sh\n/opt/s0\n",
    },
}


class TestChains:
    """However many scripts are between a boot and a command, the command counts; with too many what it sets is unknown."""

    def chain(self, host: SmallHost, depth: int) -> None:
        """Plant scripts of which each runs the next; the last one turns the cache of sda on."""
        files = {f"/opt/s{number}": f"#!/bin/sh\n/opt/s{number + 1}\n" for number in range(depth - 1)}
        plant(host, {**files, f"/opt/s{depth - 1}": TUNE})

    @pytest.mark.parametrize("start", RUNS)
    def test_a_script_four_levels_deep_counts(self, start: str) -> None:
        host = ready()
        self.chain(host, 5)
        plant(host, RUNS[start])
        found = seen(host, "sda")
        assert found["cache"] == "unknown"
        assert "/opt/s4 line 2" in found["evidence"]["write_cache.persisted"]["source"]

    @pytest.mark.parametrize("start", RUNS)
    def test_behind_too_many_scripts_it_is_unknown_with_the_line_that_runs_them(self, start: str) -> None:
        host = ready()
        self.chain(host, 80)
        plant(host, RUNS[start])
        found = seen(host, "sda")
        assert found["cache"] == "unknown"
        reason = sentence(found, "write_cache.persisted")
        assert "runs more than 64 scripts" in reason
        (place,) = (path for path in RUNS[start] if f"{path} line " in reason)
        assert f"{place} line " in reason

    def test_many_scripts_of_several_lines_are_read(self) -> None:
        host = ready()
        lines = "\n".join(f"/opt/n{number}" for number in range(80))
        plant(host, {f"/opt/n{number}": "#!/bin/sh\n:\n" for number in range(80)})
        plant(host, {"/etc/rc.local": f"{RC}{lines}\n"})
        assert seen(host, "sda")["cache"] == "disabled"

    def test_scripts_that_run_each_other_end(self) -> None:
        host = ready()
        plant(
            host,
            {
                "/etc/rc.local": f"{RC}/opt/a\n",
                "/opt/a": "#!/bin/sh\n/opt/b\n",
                "/opt/b": "#!/bin/sh\n/opt/a\n",
            },
        )
        assert seen(host, "sda")["cache"] == "disabled"

    def test_a_script_that_cannot_be_read_is_unknown(self) -> None:
        host = ready()
        plant(host, {"/etc/rc.local": f"{RC}/opt/a\n"})
        host.files["/opt/a"] = Unobservable("/opt/a: Input/output error")
        found = seen(host, "sda")
        assert found["cache"] == "unknown"
        assert "/opt/a: Input/output error" in sentence(found, "write_cache.persisted")

    def test_a_long_program_and_a_directory_are_no_scripts(self) -> None:
        host = ready()
        plant(host, {"/etc/rc.local": f"{RC}/opt/a\n/opt/b\n", "/opt/b/c": ""})
        host.files["/opt/a"] = Unobservable("/opt/a: longer than 4194304 bytes")
        assert seen(host, "sda")["cache"] == "disabled"

    def test_a_line_that_only_names_a_script_does_not_hide_one_that_sources_it(self) -> None:
        host = ready()
        plant(
            host, {"/etc/rc.local": f"{RC}/opt/a\n", "/opt/a": "#!/bin/sh\n/opt/tune --help\n. /opt/tune\n"}
        )
        plant(host, {"/opt/tune": "hdparm -W1 /dev/sda\n"})
        assert seen(host, "sda")["cache"] == "unknown"


def test_what_a_boot_runs_is_read_once() -> None:
    host = ready()
    for number in range(20):
        plant(
            host,
            {f"/etc/systemd/system/t{number}.service": "[Service]\nExecStart=/sbin/hdparm -W1 /dev/sdz\n"},
        )
    plant(
        host, {RULES: 'SUBSYSTEM=="net", RUN+="/bin/true"\n', "/etc/rc.local": RC, "/etc/cron.d/x": "# x\n"}
    )
    reads: list[str] = []
    read = host.read
    host.read = lambda path: (reads.append(path), read(path))[1]  # type: ignore[method-assign]
    last.Last(host, {}, [])
    # A unit for its commands and for what it starts; rules also for whether they are masked and what they do.
    paths = {RULES: 3, "/etc/rc.local": 1, "/etc/cron.d/x": 1, "/etc/systemd/system/t0.service": 2}
    assert {path: reads.count(path) for path in paths} == paths


def test_a_unit_of_some_entries_of_the_boot_loader_may_start() -> None:
    host = ready()
    plant(host, {UNIT: "[Service]\nExecStart=/sbin/hdparm -W1 /dev/sda\n"})
    entry = "menuentry '{0}' {{\n linux /vmlinuz root=UUID=root ro {1}\n}}\n"
    wants = "systemd.wants=tune.service"
    for first, second, cache in (("", "", "disabled"), (wants, "", "unknown"), (wants, wants, "enabled")):
        text = f"set default=$saved_entry\n{entry.format('a', first)}{entry.format('b', second)}"
        plant(host, {"/boot/grub/grub.cfg": text, "/boot/grub/grubenv": "saved_entry=a\n"})
        plant(host, {"/boot/grub2/grubenv": "saved_entry=b\n"})
        assert seen(host, "sda")["cache"] == cache


class TestTuned:
    """A variable is left to TuneD, and options of the root file system come from its boot loader section too."""

    def test_a_variable_may_take_barriers(self) -> None:
        host = SmallHost()
        plant(host, tuned("[variables]\nb=force\n[mounts]\ndisable_barriers=${b}\n"))
        assert barrier(host)[0] == "unknown"

    def test_one_that_only_runs_may_not_start_again(self) -> None:
        host = SmallHost()
        plant(host, tuned("[mounts]\ndisable_barriers=force\n"))
        for path in [path for path in host.links if path.endswith("/tuned.service")]:
            del host.links[path]
        host.files["/run/tuned/tuned.pid"] = "700\n"
        assert barrier(host)[0] == "unknown"

    @pytest.mark.parametrize(
        ("flags", "setting", "value"),
        [("data=writeback", "data_mode", "unknown"), ("barrier=0", "barrier", "unknown")],
    )
    def test_flags_of_the_root_file_system(self, flags: str, setting: str, value: str) -> None:
        host = SmallHost()
        (before,) = [each for each in collect(host, NOW)["mounts"] if each["target"] == "/"]
        plant(host, tuned(f"[bootloader]\ncmdline=quiet rootflags={flags}\n"))
        (mount,) = [each for each in collect(host, NOW)["mounts"] if each["target"] == "/"]
        assert mount["persisted"][setting] == value != before["persisted"][setting]
        assert " line " in mount["evidence"][f"persisted.{setting}"]["source"]


class TestKernelNames:
    """sda of this boot can be sdb of the next one: a prediction for sda alone was wrong for both."""

    @pytest.mark.parametrize(
        "files",
        [
            {"/etc/rc.local": f"{RC}hdparm -W1 /dev/sda\n"},
            {"/etc/cron.d/x": "@reboot root /sbin/hdparm -W 1 /dev/sda\n"},
            {LATE_RULES: f'{ADD}, KERNEL=="sda", RUN+="/sbin/hdparm -W1 $devnode"\n'},
        ],
    )
    def test_a_kernel_name_can_be_that_of_each_disk_of_its_driver(self, files: dict[str, str]) -> None:
        host = ready()
        plant(host, files)
        assert [seen(host, disk)["cache"] for disk in ("sda", "sdb")] == ["unknown", "unknown"]
        assert seen(host, "vdb")["cache"] == "disabled"

    def test_a_section_of_tuned_that_names_a_disk_can_be_about_each(self) -> None:
        host = ready()
        plant(host, tuned("[disk]\ndevices=sda\nelevator=bfq\n"))
        assert [seen(host, disk)["scheduler"] for disk in ("sda", "sdb")] == ["unknown", "unknown"]

    def test_of_a_driver_with_one_disk_it_is_its_own(self) -> None:
        host = ready()
        plant(host, {**SYSFS, "/etc/sysfs.conf": "block/nvme0n1/queue/write_cache = write through\n"})
        assert seen(host, "nvme0n1")["mode"] == "write through"

    @pytest.mark.parametrize(
        ("files", "disks"),
        [
            ({"/etc/tmpfiles.d/x.conf": "w /sys/block/sd*/queue/scheduler - - - - bfq\n"}, ("sda", "sdb")),
            (tuned("[disk]\nelevator=bfq\n"), ("sda", "sdb")),
            (tuned("[disk]\ndevices_udev_regex=DEVNAME=/dev/sda$\nelevator=bfq\n"), ("sda",)),
            ({LATE_RULES: f'{ADD}, KERNEL=="sd[a-z]", ATTR{{queue/scheduler}}="bfq"\n'}, ("sda",)),
        ],
    )
    def test_what_is_done_with_all_disks_of_a_driver_is_certain(
        self, files: dict[str, str], disks: tuple[str, ...]
    ) -> None:
        host = ready()
        plant(host, files)
        assert {seen(host, disk)["scheduler"] for disk in disks} == {"bfq"}
