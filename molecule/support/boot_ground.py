# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine whose boot files are spoilt, that is booted, and put back: what its boots come to, by systemd and kernel.

Where a person would sit at the console of emergency mode, the machine has a script: it writes down that it was called and
what had failed, puts the sound files back, and goes on to the default target. So one boot is enough for each defect.
"""

from __future__ import annotations

import base64
import shlex

from lab.errors import LabError
from lab.hardware import BootDisk
from lab.layout import ROOT_SERIAL
from lab.machine import Machine

from .layout import link_of

#: What a boot comes to: emergency mode; / read-only; a mount left out or read-only; nothing of these.
STOPS, READ_ONLY, WITHOUT, BOOTS = "stops", "read_only", "without", "boots"
#: What may be said of a boot that comes to one of both.
STOPS_OR_READ_ONLY = f"{STOPS} or {READ_ONLY}"
FSTAB, CRYPTTAB = "/etc/fstab", "/etc/crypttab"
#: Two disks of layout `mounts` that are not in use.
SPARE, SPARE_XFS = (f"/dev/disk/by-id/{link_of(serial)}" for serial in ("SCSI0091", "SCSI0092"))
#: A new disk, for a root with XFS.
COPY_SERIAL, COPY_SIZE = "VIRTROOT", 2 * 2**30
#: Seconds that systemd waits for a device, in place of 90: a busy host takes 15 to show all of them.
PATIENCE = 40
_MEND, _SAID = "/usr/local/sbin/lab-mend", "/run/lab-emergency"
_KEPT = "/root/sound.tar"
#: All that decides on a boot, and all that a run writes.
_FILES = (
    "etc/fstab etc/crypttab etc/systemd/system etc/systemd/system-generators etc/udev/rules.d etc/durable-dbhost"
    " var/lib/durable-dbhost"
)

#: Other people's file systems: ext4 and LUKS in two partitions, and XFS. The overlay goes: it writes to /, and stops each boot
#: that leaves / read-only.
_FOREIGN = f"""
printf 'label: gpt\\nsize=200M, name="foreign part"\\nname=vault\\n' | sfdisk --quiet --wipe always {SPARE}
udevadm settle
mkfs.ext4 -q -L foreign {SPARE}-part1
mkfs.xfs -q {SPARE_XFS}
head -c 32 /dev/urandom > /root/vault.key
cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 {SPARE}-part2 /root/vault.key
cryptsetup open --key-file /root/vault.key {SPARE}-part2 vault
mkfs.ext4 -q /dev/mapper/vault
udevadm trigger --settle --action=change --subsystem-match=block
uuid() {{ blkid -p -s UUID -o value "$1"; }}
sed -i '/ overlay /d' /etc/fstab
cat >> /etc/fstab <<END
UUID=$(uuid {SPARE}-part1) /srv/foreign ext4 defaults 0 2
UUID=$(uuid {SPARE_XFS}) /srv/foreignxfs xfs defaults 0 2
/dev/mapper/vault /srv/vault ext4 defaults 0 2
END
echo "vault UUID=$(uuid {SPARE}-part2) /root/vault.key luks" > /etc/crypttab
"""
_CONSOLE = f"""
mkdir -p /etc/systemd/system/emergency.service.d /etc/systemd/system.conf.d /etc/durable-dbhost
mkdir -p /etc/systemd/system/rescue.service.d /etc/systemd/system-generators
printf '[Manager]\\nDefaultDeviceTimeoutSec={PATIENCE}s\\n' > /etc/systemd/system.conf.d/lab.conf
cat > /etc/systemd/system/emergency.service.d/lab.conf <<'END'
[Service]
Type=idle
StandardInput=null
ExecStartPre=
ExecStart=
ExecStart=/bin/sh -c 'systemctl --failed --plain --no-legend > {_SAID}; exec {_MEND}'
END
cp /etc/systemd/system/emergency.service.d/lab.conf /etc/systemd/system/rescue.service.d
cat > {_MEND} <<'END'
#!/bin/sh
exec > /dev/console 2>&1
set -eux
mount --options-source=disable -o remount,rw "$(findmnt -nro SOURCE /)" /
cd /
rm -rf {_FILES}
tar -xpf {_KEPT}
systemctl daemon-reload
systemctl reset-failed
until systemctl --no-block default; do sleep 0.5; done
END
chmod 755 {_MEND}
tar -C / -cpf {_KEPT} {_FILES}
systemctl daemon-reexec
systemctl start local-fs.target
sync
"""
_ON_XFS = """
root=$(findmnt -nro SOURCE /)
mkfs.xfs -q -m uuid="$(blkid -p -s UUID -o value "$root")" {copy}
mkdir /run/copy
mount -t xfs -o nouuid {copy} /run/copy
cp -ax /. /run/copy
sed -i 's|^\\([^#][^ ]* / \\)ext4 [^ ]* 0 1|\\1xfs defaults 0 0|' /run/copy/etc/fstab
grep -q ' / xfs defaults 0 0' /run/copy/etc/fstab
umount /run/copy
"""


class Ground:
    """The machine, its sound files, and the ways to spoil and to boot it. `root` is the type of its root's file system."""

    def __init__(self, machine: Machine, root: str) -> None:
        self.machine, self.root = machine, root
        self._disks: tuple[BootDisk, ...] = ()
        self._tag = f"sound-{root}"
        self.files: dict[str, str] = {}
        self._mounts: dict[str, set[str]] = {}

    def sh(self, script: str, limit: float = 120.0) -> str:
        """Run a script that has to succeed; return its output."""
        return self.machine.run(["sh", "-euc", script], timeout=limit).stdout

    def prepare(self) -> None:
        """Give the machine other people's file systems and a script at its console, and keep it so."""
        if self.root == "xfs":
            self._copy_root()
        self.sh(_FOREIGN + "mkdir -p /srv/foreign /srv/foreignxfs /srv/vault" + _CONSOLE)
        self.files = {path: self.read(path) for path in (FSTAB, CRYPTTAB)}
        self.machine.save(self._tag)
        self._cycle()
        assert self.sh("findmnt -nro FSTYPE /").strip() == self.root
        self._mounts = self.mounts()

    def put_back(self) -> None:
        """Have the machine up with its sound files and mounts: as it is when it is so already, else as it was kept."""
        try:
            self.sh(f"{_MEND}; systemctl is-system-running --wait || true")
            if self.mounts() == self._mounts:
                return
        except LabError:
            pass
        self.machine.load(self._tag, *self._disks)

    def read(self, path: str) -> str:
        """Return a file of the machine, '' for none; bytes that are no UTF-8 as surrogates."""
        said = self.sh(f"! [ -e {path} ] || base64 --wrap=0 {path}")
        return base64.b64decode(said).decode("utf-8", "surrogateescape")

    def write(self, path: str, text: str) -> None:
        """Write a file of the machine, and the directories above it.

        In a directory of requirements it is a link to `text`; so is a mask, and the default target. A script can be run.
        """
        directory = path.rpartition("/")[0]
        words = base64.b64encode(text.encode("utf-8", "surrogateescape")).decode()
        link = directory.endswith(".requires") or text.startswith(("/dev/null", "/usr/lib/systemd/"))
        made = f"ln -sf {shlex.quote(text)}" if link else "base64 --decode >"
        script = f"mkdir -p {shlex.quote(directory)}; {made} {shlex.quote(path)}"
        if text.startswith("#!"):
            script += f"; chmod 755 {shlex.quote(path)}"
        self.machine.run(["sh", "-euc", script], input=words)

    def mounts(self) -> dict[str, set[str]]:
        """Return {mount point: options} of all that is mounted, and the types among the options."""
        rows = self.sh("findmnt --raw --noheadings --output TARGET,FSTYPE,OPTIONS").splitlines()
        return {target: {fstype, *options.split(",")} for target, fstype, options in map(str.split, rows)}

    def changed_since(self, stamp: str) -> str:
        """Return the files that were made or changed after that file, below what a boot or the collection reads."""
        return self.sh(
            f"find /etc /boot /usr/lib/systemd /var/lib/durable-dbhost -newer {stamp} -o -cnewer {stamp}"
        )

    def boot(self, wanted: tuple[str, ...]) -> tuple[str, str]:
        """Cut the power and boot; return what that came to, and what had failed or was left out.

        `wanted` are mount points beside those of the sound machine.
        """
        self.sh("sync")
        self._cycle()
        failed = self.sh(f"! [ -e {_SAID} ] || {{ echo emergency mode; cat {_SAID}; }}")
        if failed:
            return STOPS, failed
        now = self.mounts()
        if "ro" in now["/"]:
            return READ_ONLY, self.sh("systemctl --failed --plain --no-legend")
        left = [target for target in (*self._mounts, *wanted) if target not in now]
        left += [
            each for each, options in self._mounts.items() if "rw" in options and "ro" in now.get(each, ())
        ]
        return (WITHOUT, " ".join(left)) if left else (BOOTS, "")

    def _copy_root(self) -> None:
        """Copy the root to a disk with XFS, and have each boot from now on take that."""
        self.machine.power_off()
        self.machine.make_disk(COPY_SERIAL, COPY_SIZE)
        self.machine.boot(BootDisk("virtio", COPY_SERIAL))
        self.sh(_ON_XFS.format(copy=f"/dev/disk/by-id/{link_of(COPY_SERIAL)}"), 600.0)
        self.machine.power_off()
        self._disks = (BootDisk("virtio", ROOT_SERIAL, content=COPY_SERIAL),)
        self.machine.boot(*self._disks)

    def _cycle(self) -> None:
        self.machine.cut()
        self.machine.boot(*self._disks)
