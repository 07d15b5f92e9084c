# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes mounts of a scratch disk by the collection's own functions, and reads the kernel's tables before and after.

    mount_api_script.py SOURCES DEVICE FSTYPE WAY

SOURCES is a zip of module_utils/host as the package `host`. WAY is `descriptors`, or `mount` for a kernel that lacks
fspick(2) and mount_setattr(2), which this script then makes missing. Prints a JSON list of what was wrong: [] is right.
"""

import errno
import json
import os
import subprocess
import sys
from functools import partial

sources, device, fstype, way = sys.argv[1:]
sys.path.insert(0, sources)
from host.mount_api import calls  # noqa: E402
from host.mountinfo import parse_mountinfo  # noqa: E402
from host.seam import ChangeFailed, Host  # noqa: E402

POINT, SECOND, VIEW = "/mnt/api/one", "/mnt/api/two", "/mnt/api/view"
host = Host()
wrong = []
has_barrier = fstype != "xfs"
OFF, ON = ("nobarrier", "barrier") if fstype == "btrfs" else ("barrier=0", "barrier=1")


def missing(*_arguments):
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


def sh(script):
    subprocess.run(["sh", "-euc", script], check=True, stdout=subprocess.DEVNULL)


def table(pid="self"):
    with open(f"/proc/{pid}/mountinfo") as lines:
        return [mount for mount in parse_mountinfo(lines.read()) if mount.target.startswith("/mnt/api/")]


def mount(target):
    return next(mount for mount in table() if mount.target == target)


def set_options(target, option):
    host.set_mount_options(mount(target), [option])


def in_effect():
    """Return the options of the superblock: ext4's driver lists all of them, other drivers what differs."""
    if fstype == "ext4":
        with open(f"/proc/fs/ext4/{os.path.basename(device)}/options") as lines:
            return set(lines.read().split())
    return set(mount(POINT).super_options)


def expect(what, observed, expected):
    if observed != expected:
        wrong.append(f"{what}: observed {observed}, expected {expected}")


def expect_only(what, act, changed, is_elsewhere=True):
    """Require that an act changes these options of the superblock, and no flag of any mount here or elsewhere.

    `is_elsewhere`: whether the process with mounts of its own still runs.
    """

    def others():
        return [m.options for m in table(other.pid)] if is_elsewhere else []

    options, flags, elsewhere = in_effect(), [m.options for m in table()], others()
    act()
    expect(f"{what}: options", sorted(in_effect() ^ options), sorted(changed))
    expect(f"{what}: flags", [m.options for m in table()], flags)
    expect(f"{what}: flags elsewhere", others(), elsewhere)


def writable(target):
    try:
        open(f"{target}/probe", "w").close()
        return True
    except OSError:
        return False


if way == "mount":
    calls.fspick = calls.mount_setattr = missing
sh(f"mkdir -p {POINT} {SECOND} {VIEW}; mount -t {fstype} -o nosuid,nodev,noexec,nodiratime {device} {POINT}")
sh(f"mount -t {fstype} {device} {SECOND}; mount --bind {POINT} {VIEW}; mount -o remount,bind,ro {VIEW}")
other = subprocess.Popen(
    [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        f"mount -o remount,bind,ro,noatime {SECOND}; echo; exec sleep 600",
    ],
    stdout=subprocess.PIPE,
)
other.stdout.readline()
try:
    barrier = {"barrier", "nobarrier"} if fstype == "ext4" else {"nobarrier"}
    if has_barrier:
        for target in (POINT, SECOND):
            for option in (OFF, ON):
                expect_only(f"{option} by {target}", partial(set_options, target, option), barrier)
        if way == "descriptors":
            for option in (OFF, ON):
                expect_only(f"{option} by a read-only view", partial(set_options, VIEW, option), barrier)
        else:
            try:
                host.set_mount_options(mount(VIEW), [OFF])
                wrong.append("a remount by a read-only view was not refused")
            except ChangeFailed:
                pass
        expect("still writable", (writable(POINT), writable(VIEW)), (True, False))
    for atime in ("noatime", "strictatime", "relatime"):
        flags, options = {m.target: m.options for m in table()}, in_effect()
        host.set_mount_atime(mount(POINT), atime)
        word = () if atime == "strictatime" else (atime,)
        others = [o for o in flags[POINT] if o not in ("noatime", "relatime")]
        expect(atime, sorted(mount(POINT).options), sorted((*others, *word)))
        expect(
            f"{atime} elsewhere",
            [mount(t).options for t in (SECOND, VIEW)],
            [flags[t] for t in (SECOND, VIEW)],
        )
        expect(f"{atime}: options", in_effect(), options)
    other.kill()
    other.wait()
    sh(f"umount {VIEW} {SECOND} {POINT}; mount -t {fstype} -o ro,nosuid {device} {POINT}")
    sh(f"mount -t {fstype} -o ro {device} {SECOND}")
    if has_barrier:
        for option in (OFF, ON):
            expect_only(
                f"{option} of a read-only superblock",
                partial(set_options, POINT, option),
                barrier,
                is_elsewhere=False,
            )
            expect(f"{option} of a read-only superblock", (writable(POINT), writable(SECOND)), (False, False))
            expect(
                f"{option} of a read-only superblock: flags",
                mount(POINT).options,
                ("ro", "nosuid", "relatime"),
            )
    host.make_mount_writable(mount(POINT))
    expect("made writable", (writable(POINT), mount(POINT).options), (True, ("rw", "nosuid", "relatime")))
    # The owner of a directory above exchanges it.
    meant = mount(POINT)
    sh(f"mkdir -p /mnt/api/x; mount -t tmpfs -o nosuid none {POINT}")
    before = table(), in_effect()
    try:
        host.set_mount_options(meant, [OFF if has_barrier else "sync"])
        wrong.append("another mount over the assessed one was not refused")
    except ChangeFailed as error:
        expect("the reason", f"expected mount {meant.number}" in str(error), True)
    expect("after an exchange", (table(), in_effect()), before)
finally:
    other.kill()
    sh(
        "umount -l /mnt/api/one /mnt/api/two /mnt/api/view 2>/dev/null || true; umount -l /mnt/api/one 2>/dev/null || true"
    )
print(json.dumps(wrong))
