# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The matrix of faults: what each is, how it is planted and taken away, and what a run with it must report. Only data.

Each row begins with the host of scenario `faults` with DRIFT. `support/fault_runs.py` plants the fault, runs harden-db, takes
the fault away, and runs harden-db again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from lab.layout import ROOT_SERIAL
from support.layout import cache_on, link_of

#: Commits are at risk on one mount; a cache is on; a line of fstab and a udev rule must be written.
DRIFT = rf"""
mount -o remount,barrier=0 /srv/pgdata
sed -i 's|\(/srv/maria ext4 [^ ]*\)|\1,barrier=0|' /etc/fstab
sed -i '/"VIRT0002"/d' /etc/udev/rules.d/zz-durable-dbhost-1-write-cache.rules
udevadm settle
{cache_on("SCSI0001")}
{cache_on("SCSI0002")}
udevadm settle
"""
#: Where what a fault needs is stored on the host.
SCRATCH = "/root/fault"


@dataclass(frozen=True)
class Fault:
    """One row.

    `drift` makes the host less safe before it has the fault. `plant` and `clear` are scripts for the host. `shell` is what
    every shell of the run starts with, `locale` one that it needs. `disk` are faults of disks:
    (serial, operation, effect), as `Machine.set_fault` takes them; they end after `lifted` seconds, or with the run.
    `at_apply` is run on the controller between the first collection and the changes: `lab WORDS...` is the lab's command line
    for this host, `host SCRIPT` runs a script there. `swapped`: the disk that leaves, and the serial of another in its place.
    `code` and `verdicts`: how the run may end; `says`: a regular expression that its messages match. `boots`: the host's power
    is cut before the next run. `twice`: a second run in the same boot meets the same fault, and ends as the first may.
    `exempt`: mounts and disks that the fault itself takes away from the host.
    """

    name: str
    drift: str = ""
    plant: str = ""
    clear: str = ""
    shell: str = ""
    locale: str = ""
    disk: tuple[tuple[str, str, str], ...] = ()
    lifted: float = 0.0
    at_apply: str = ""
    swapped: tuple[str, str] | None = None
    variables: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    code: int = 0
    verdicts: tuple[str, ...] = ("attested",)
    says: str = ""
    boots: bool = False
    twice: bool = False
    exempt: tuple[str, ...] = ()
    is_short: bool = False


def _fill(directory: str) -> str:
    """Return a script that takes all space below a directory."""
    return rf"""
mkdir -p {directory}
size=$((4 << 30)) n=0
while [ $size -ge 4096 ]; do
    if fallocate -l $size {directory}/$n 2> /dev/null; then n=$((n + 1)); else rm -f {directory}/$n; size=$((size / 2)); fi
done
"""


def _read_only(directory: str) -> dict[str, str]:
    """Return how a directory is made read-only, for all that open files by their paths."""
    return {
        "plant": f"mount --bind {directory} {directory}; mount -o remount,bind,ro {directory}",
        "clear": f"umount {directory}",
    }


#: Without the rollback timer, whose own files are written first, a run meets these at its changes.
_NO_SWITCH: Mapping[str, Any] = MappingProxyType({"durable_undo_after": 0})
_FAILS: dict[str, Any] = {"code": 2, "verdicts": ("at_risk",)}
_SWITCH = "could not be armed.*/etc/durable-dbhost"
#: What runs may be made safer also if no file can be written.
_UNSAVED: dict[str, Any] = {"code": 2, "verdicts": ("at_risk", "drifted")}
_FULL = "No space left on device"
_READ_ONLY = "Read-only file system"
_WRONG_CLOCK: dict[str, Any] = {"code": 2, "verdicts": ("unknown",), "says": "clock"}
_FULL_ROOT = {"plant": _fill("/fault.full"), "clear": "rm -r /fault.full"}
_FULL_BUT_TMP = {
    "plant": f"mount -t tmpfs tmpfs /tmp\n{_FULL_ROOT['plant']}",
    "clear": f"{_FULL_ROOT['clear']}; umount /tmp",
}
_FEW_INODES = {
    "plant": """
        mkdir /run/fault
        mount -t tmpfs tmpfs /run/fault
        cp -a /etc/. /run/fault/
        mount -o "remount,nr_inodes=$(df --output=iused /run/fault | tail -n 1 | tr -d ' ')" /run/fault
        mount --bind /run/fault /etc
    """,
    # What the run wrote there is gone with it.
    "clear": "umount /etc; umount /run/fault; rmdir /run/fault",
}

FAULTS = (
    Fault("none"),
    Fault(
        "root file system full",
        **_FULL_ROOT,
        code=2,
        verdicts=("unknown",),
        says=f"{_FULL}|No usable temporary directory",
        is_short=True,
    ),
    Fault("root file system full except /tmp", **_FULL_BUT_TMP, **_UNSAVED, says=_SWITCH),
    Fault(
        "root file system full except /tmp, no rollback timer",
        **_FULL_BUT_TMP,
        variables=_NO_SWITCH,
        code=2,
        verdicts=("drifted",),
        says=_FULL,
    ),
    Fault("no inode left in /etc", **_FEW_INODES, **_UNSAVED, says=_SWITCH),
    Fault("/etc read-only", **_read_only("/etc"), **_UNSAVED, says=_SWITCH),
    Fault(
        "/etc read-only, no rollback timer",
        **_read_only("/etc"),
        variables=_NO_SWITCH,
        code=2,
        verdicts=("drifted",),
        says=_READ_ONLY,
    ),
    Fault("/var/lib read-only", **_read_only("/var/lib"), code=2, verdicts=("drifted",), says=_READ_ONLY),
    Fault(
        "/var/lib full",
        plant=f"""
            mkdir /run/fault
            mount -t tmpfs -o size=64k tmpfs /run/fault
            cp -a /var/lib/durable-dbhost/. /run/fault/
            {_fill("/run/fault/full")}
            mount --bind /run/fault /var/lib/durable-dbhost
        """,
        clear="umount /var/lib/durable-dbhost; umount /run/fault; rmdir /run/fault",
        code=2,
        verdicts=("drifted",),
        says=_FULL,
    ),
    Fault("/run read-only", **_read_only("/run"), **_UNSAVED, says=_READ_ONLY),
    Fault(
        "/run full",
        plant=_fill("/run/fault"),
        clear="rm -r /run/fault",
        **_UNSAVED,
        says=f"{_FULL}|not enough space",
    ),
    Fault(
        "all file systems on disks read-only",
        plant="mount -t tmpfs tmpfs /tmp; sync; echo u > /proc/sysrq-trigger; sleep 2",
        clear="umount /tmp; mount -o remount,rw /; for each in /srv/*; do mount -o remount,rw $each; done",
        **_UNSAVED,
        says=_SWITCH,
        boots=True,
    ),
    Fault("umask 000", shell="umask 000", is_short=True),
    Fault("umask 077", shell="umask 077"),
    Fault("empty environment", shell="unset $(env | cut -d= -f1)"),
    Fault("locale tr_TR.UTF-8", shell="export LC_ALL=tr_TR.UTF-8 LANG=tr_TR.UTF-8", locale="tr_TR"),
    Fault("clock in 1970", plant="date -s @86400", clear="date -s @$LAB_NOW", **_WRONG_CLOCK),
    Fault("clock back two hours", plant="date -s '2 hours ago'", clear="date -s @$LAB_NOW", **_WRONG_CLOCK),
    Fault(
        "clock back two hours between collection and changes",
        at_apply="""host "date -s '2 hours ago'" """,
        clear="date -s @$LAB_NOW",
        **_WRONG_CLOCK,
    ),
    Fault(
        "lazy unmount",
        plant="(cd /srv/pgdata && exec setsid sleep 3600 > /dev/null 2>&1 &) ; sleep 1; umount --lazy /srv/pgdata",
        clear="pkill -x sleep; sleep 1; mount /srv/pgdata",
        code=2,
        verdicts=("unknown",),
        says="/srv/pgdata",
        exempt=("/srv/pgdata",),
        is_short=True,
    ),
    Fault(
        "lazy unmount between collection and changes",
        at_apply='host "cd /srv/pgdata; setsid sleep 3600 > /dev/null 2>&1 & sleep 1; umount --lazy /srv/pgdata"',
        clear="pkill -x sleep; sleep 1; mount /srv/pgdata",
        code=2,
        verdicts=("unknown",),
        says="/srv/pgdata",
        exempt=("/srv/pgdata",),
    ),
    Fault(
        "mounted elsewhere",
        plant=f"umount /srv/pgdata; mkdir /mnt/elsewhere; mount /dev/disk/by-id/{link_of('SCSI0001')}-part1 /mnt/elsewhere",
        clear="umount /mnt/elsewhere; rmdir /mnt/elsewhere; mount /srv/pgdata",
        code=2,
        verdicts=("unknown",),
        says="/srv/pgdata",
        exempt=("/srv/pgdata",),
    ),
    Fault(
        "errors=remount-ro after an error",
        plant="""
            mount -o remount,errors=remount-ro /srv/pgdata
            echo fault > "/sys/fs/ext4/$(basename "$(findmnt -no SOURCE /srv/pgdata)")/trigger_fs_error"
        """,
        clear="""
            disk=$(findmnt -no SOURCE /srv/pgdata)
            umount /srv/pgdata
            fsck -fy "$disk" > /dev/null || [ $? = 1 ]
            mount /srv/pgdata
        """,
        code=2,
        # All settings are right; that nothing can be written is the error's to report.
        verdicts=("attested", "at_risk", "unknown"),
        says="read-only",
    ),
    Fault(
        "udevd stopped",
        plant="systemctl stop systemd-udevd-control.socket systemd-udevd-kernel.socket systemd-udevd",
        clear="systemctl start systemd-udevd-control.socket systemd-udevd-kernel.socket systemd-udevd",
    ),
    Fault(
        "D-Bus stopped",
        plant="systemctl stop dbus.socket dbus.service",
        clear="systemctl start dbus.socket dbus.service; systemctl restart systemd-logind",
    ),
    Fault(
        "memory limit of 16 MiB",
        shell="""
            mkdir -p /sys/fs/cgroup/fault
            echo 16M > /sys/fs/cgroup/fault/memory.max
            echo $$ > /sys/fs/cgroup/fault/cgroup.procs
        """,
        # A module that is killed leaves Ansible's own files.
        clear="rmdir /sys/fs/cgroup/fault; rm -rf /tmp/ansible_*_payload_*",
        code=2,
        verdicts=("unknown", "unreachable", "at_risk"),
    ),
    Fault("address space of 100 MB", shell="ulimit -v 100000", code=2, verdicts=("unknown", "at_risk")),
    Fault(
        "3,000 processes",
        # In a unit: a session may not have as many.
        plant="""
            mkfifo /run/fault
            systemd-run --quiet --unit=fault --property=TasksMax=infinity sh -c '
                exec 3<> /run/fault
                for n in $(seq 3000); do (read -r _ <&3) & done
                wait
            '
            for n in $(seq 60); do [ "$(systemctl show -P TasksCurrent fault)" -gt 3000 ] && exit; sleep 1; done
            exit 1
        """,
        # systemd makes the directory for the first unit of systemd-run.
        clear="systemctl stop fault; rm /run/fault; rmdir /run/systemd/transient 2> /dev/null || true",
    ),
    Fault(
        "500 mounts",
        plant="""
            for n in $(seq 500); do mkdir -p /mnt/fault/$n; mount -t tmpfs -o size=4k tmpfs /mnt/fault/$n; done
        """,
        clear="for n in $(seq 500); do umount /mnt/fault/$n; done; rm -r /mnt/fault",
    ),
    Fault(
        "300 loop devices",
        plant="""
            mkdir /var/tmp/fault
            for n in $(seq 300); do
                truncate -s 1M /var/tmp/fault/$n
                losetup -f /var/tmp/fault/$n
            done
            udevadm settle
        """,
        clear="""
            losetup -D
            udevadm settle
            rm -r /var/tmp/fault
        """,
    ),
)


#: A virtio disk caches below a mount without barriers, as SCSI0001 does.
_VIRTIO_DRIFT = rf"""
mount -o remount,barrier=0 /srv/maria
echo 'write back' > "/sys/block/$(basename "$(readlink -f /dev/disk/by-id/{link_of("VIRT0001")})")/cache_type"
udevadm settle
"""
#: What no disk has yet, so that a sync must write it.
_DIRTY = "dd if=/dev/urandom of=/srv/pgdata/dirty bs=64k count=16 2> /dev/null"
_UNDIRTY = "rm -f /srv/pgdata/dirty"
_ERROR = "[Ii]nput/output error|EIO|I/O error"
#: Seconds until a disk that hangs answers again: longer than a reading, shorter than the kernel's own limit.
_HANG = 25.0
#: The module may still wait for the disk, so that a power cut comes before the next run.
_GIVEN_UP: dict[str, Any] = {
    "variables": MappingProxyType({"durable_time_limit": 60}),
    "code": 2,
    "verdicts": ("unreachable", "at_risk", "unknown"),
    "says": "no answer within",
    "boots": True,
}
_GONE = "SCSI0001|SCSI0002|/srv/pgdata|/srv/fbdata|no disk|No such"
#: Of a row whose disk leaves: the host boots with it again.
_AWAY: dict[str, Any] = {"code": 2, "verdicts": ("at_risk", "unknown"), "says": _GONE, "boots": True}


def _disk(name: str, serial: str, operation: str, effect: str, **more: Any) -> Fault:
    """Return the row of a disk with a fault."""
    return Fault(name, disk=((serial, operation, effect),), **more)


DISKS = (
    _disk(
        "flush fails (SCSI)",
        "SCSI0001",
        "flush",
        "error",
        **_FAILS,
        says=_ERROR,
        boots=True,
        twice=True,
        is_short=True,
    ),
    _disk(
        "flush fails (virtio)",
        "VIRT0001",
        "flush",
        "error",
        drift=_VIRTIO_DRIFT,
        **_FAILS,
        says=_ERROR,
        boots=True,
        # The first run has switched the cache off, and the kernel sends no flush any more.
        twice=True,
    ),
    _disk(f"flush hangs for {_HANG:.0f} s (SCSI)", "SCSI0001", "flush", "hang", lifted=_HANG),
    _disk(
        f"flush hangs for {_HANG:.0f} s (virtio)",
        "VIRT0001",
        "flush",
        "hang",
        drift=_VIRTIO_DRIFT,
        lifted=_HANG,
    ),
    _disk(
        "flush hangs past durable_time_limit (virtio)",
        "VIRT0001",
        "flush",
        "hang",
        drift=_VIRTIO_DRIFT,
        **_GIVEN_UP,
    ),
    _disk("flush lies (SCSI)", "SCSI0001", "flush", "lie"),
    _disk("flush lies (virtio)", "VIRT0001", "flush", "lie", drift=_VIRTIO_DRIFT),
    _disk(
        "MODE SELECT fails",
        "SCSI0002",
        "mode_select",
        "error",
        code=2,
        verdicts=("drifted",),
        says="SCSI0002",
    ),
    _disk(f"MODE SELECT hangs for {_HANG:.0f} s", "SCSI0002", "mode_select", "hang", lifted=_HANG),
    _disk(
        "MODE SELECT hangs past durable_time_limit",
        "SCSI0002",
        "mode_select",
        "hang",
        # The cache that stays on is flushed: its disk has barriers.
        **{**_GIVEN_UP, "verdicts": ("unreachable", "drifted", "unknown")},
    ),
    _disk(
        "MODE SELECT lies",
        "SCSI0002",
        "mode_select",
        "lie",
        code=2,
        verdicts=("drifted",),
        says="SCSI0002",
        is_short=True,
    ),
    _disk(
        "the switch of a virtio cache lies",
        "VIRT0001",
        "mode_select",
        "lie",
        drift=_VIRTIO_DRIFT,
        code=2,
        verdicts=("drifted",),
        says="VIRT0001",
    ),
    _disk(
        "writes fail",
        "SCSI0001",
        "write",
        "error",
        plant=_DIRTY,
        code=2,
        # ext4 is read-only by then, and so not synced; the step that switches the cache off counts a flush of the disk.
        verdicts=("at_risk", "attested"),
        says=f"{_ERROR}|{_READ_ONLY}",
        boots=True,
    ),
    _disk(
        f"writes hang for {_HANG:.0f} s",
        "SCSI0001",
        "write",
        "hang",
        plant=_DIRTY,
        clear=_UNDIRTY,
        lifted=_HANG,
    ),
    _disk("writes lie", "SCSI0001", "write", "lie", plant=_DIRTY, boots=True),
    _disk(
        "writes fail (disk of the root)",
        ROOT_SERIAL,
        "write",
        "error",
        code=2,
        # If the root is read-only before the first collection, Ansible has no directory for its own files.
        verdicts=(*_UNSAVED["verdicts"], "unknown"),
        says=f"{_ERROR}|{_READ_ONLY}|cannot write its own files",
        boots=True,
    ),
    Fault(
        "disk pulled between collection and changes",
        at_apply="lab unplug SCSI0002",
        **_AWAY,
        exempt=("/srv/fbdata",),
    ),
    Fault(
        "disk swapped between collection and changes",
        at_apply="lab unplug SCSI0002; lab plug SCSI0002 --as OTHER0001",
        **_AWAY,
        exempt=("/srv/fbdata",),
    ),
    _disk(
        "disk pulled at a flush of the run",
        "SCSI0001",
        "flush",
        "leave",
        **_AWAY,
        exempt=("/srv/pgdata",),
    ),
    _disk(
        "disk pulled at a MODE SELECT of the run",
        "SCSI0002",
        "mode_select",
        "leave",
        **_AWAY,
        exempt=("/srv/fbdata",),
    ),
    _disk(
        "disk swapped at a flush of the run",
        "SCSI0001",
        "flush",
        "leave",
        swapped=("SCSI0001", "OTHER0001"),
        **_AWAY,
        exempt=("/srv/pgdata",),
    ),
)

#: Rows of a run that is killed before each of its changes, and what the host does then.
STEPS = ("power cut at each step of a run", "reboot at each step of a run")


@dataclass(frozen=True)
class GuardFault:
    """One row of a host with profile `ups` whose guard has turned barriers off: `event` is what the UPS reports.

    `disk` as in Fault; `says`: a regular expression that messages of the guard or of the check match.
    """

    name: str
    event: str
    disk: tuple[tuple[str, str, str], ...] = ()
    lifted: float = 0.0
    code: int = 0
    verdicts: tuple[str, ...] = ("attested",)
    says: str = ""


GUARDED = (
    GuardFault("guard: on battery", "OB DISCHRG"),
    GuardFault(
        "guard: flush fails while it turns barriers on",
        "OB DISCHRG",
        disk=(("SCSI0001", "flush", "error"),),
        code=2,
        verdicts=("at_risk",),
        says=_ERROR,
    ),
    GuardFault(
        f"guard: flush hangs for {_HANG:.0f} s while it turns barriers on",
        "OB DISCHRG",
        disk=(("SCSI0001", "flush", "hang"),),
        lifted=_HANG,
    ),
)
LOW_BATTERY = "guard: low battery during a run"
#: Rows that cannot be tried on these machines, and why.
NOT_TRIED = {
    "guard: suspend": "User Mode Linux cannot suspend; of the emulated machines that can, none has a UPS whose runtime is known,"
    " without which no guard turns barriers off",
    "the switch of a virtio cache fails or hangs": "the write to it has no answer",
    "no inode left on the root file system": "to use up 393,216 inodes takes minutes; `/etc` on a tmpfs without one is tried",
    "controller with an empty environment or another locale": "the shared Ansible of the lab's tests has one environment; rows"
    " change that of the host",
}
ROWS = FAULTS + DISKS
NAMES = (*(row.name for row in (*ROWS, *GUARDED)), LOW_BATTERY, *STEPS)
