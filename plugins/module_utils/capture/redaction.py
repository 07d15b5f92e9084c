# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Redaction of a recording before it is shown to others.

For each file, directory and command there is a rule for what stays of its answer. An answer
without a rule is withheld: a replay then says that it could not be read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from ..host import our_paths
from ..storage import cache_rules, crypttab, drbd, ext4, platforms, shown_options, zfs
from ..storage.raid_controllers.controllers import TOOLS
from . import redact_devices as devices
from . import redact_mounts as mounts
from .identities import Identities
from .pseudonyms import Collision
from .recording import Calls, Recording

WITHHELD = "withheld: no rule says what of it may be shown"
_ATTEMPTS = 20

#: Words of paths and of parsers, and numbers that Hyper-V gives all its machines: they stay.
_WORDS = f"""
/proc/self/mountinfo /proc/filesystems /proc/cmdline /proc/mdstat /proc/swaps /proc/fs/ext4/options /proc/comm
/proc/sys/kernel/random/boot_id osrelease ns/mnt /sys/block /sys/dev/block /sys/class/block /sys/devices/virtual
/sys/module/parameters /dev/disk/by-id /dev/disk/by-uuid by-partuuid by-partlabel by-label by-path by-diskseq azure cloud
/boot/grub/grub.cfg custom.cfg /boot/grub2/grubenv /boot/efi/loader/entries kernelopts
/dev/mapper /dev/md /dev/block /dev/null /etc/fstab {our_paths.CACHE_RULES} {our_paths.FORMER_CACHE_RULES} io-scheduler
/etc/systemd/system.control/ /etc/systemd/system/ multi-user.target.wants requires local-fs.target remote-fs.target
/run/systemd/system /usr/local/lib/systemd/system /usr/lib/systemd/system /lib/systemd/system
/etc/tuned/active_profile post_loaded_profile profiles tuned.conf tuned.pid tuned.service {our_paths.ORIGINALS}
{our_paths.PENDING_FLUSHES} /boot /home /root /tmp /srv /mnt /media /opt /usr/bin /usr/sbin /data
UUID PARTUUID LABEL PARTLABEL subvol root rootflags part luks mpath crypt virtio sata scsi nvme ata wwn serial
enabled disabled none unknown write back write through temporary zz-durable-dbhost.conf durable-dbhost-resume.service
systemd-detect-virt udevadm info --export-db od -An -v -tx1 -j1024 -N1024 hdparm sdparm --quiet --get WCE nvme id-ctrl get-feature
--output-format=json --feature-id=6 dmsetup table test -e storage_facts localhost debian ubuntu linux server
losetup --list --noheadings --output NAME,BACK-MAJ:MIN
linear striped raid multipath active idle elevator include readahead type replace devices withheld
No such file or directory Permission denied Is a directory Input/output error no answer within exit
{" ".join(program for tool in TOOLS for program in tool.PROGRAMS)}
00000000-0000-8899-0000-000000000000 00000000-0001-8899-0000-000000000000
f8b3781a-1e82-4818-a1c3-63d806ec15bb f8b3781b-1e82-4818-a1c3-63d806ec15bb
"""

_Rule = Callable[[str, Identities], str]


def _as_is(text: str, _names: Identities) -> str:
    return text


def _text(text: str, names: Identities) -> str:
    return names.text(text)


def _identity(text: str, names: Identities) -> str:
    return names.identity(text)


def _mapped(text: str, names: Identities) -> str:
    return names.mapped(text.rstrip("\n")) + text[len(text.rstrip("\n")) :]


def _asset_tag(text: str, _names: Identities) -> str:
    # Owners write there what they like: a number of their own for this one machine.
    return text if platforms.is_sign("chassis_asset_tag", text) else "\n"


def _nothing(_text_of_file: str, _names: Identities) -> str:
    return ""


def _hdparm_rule(text: str, _names: Identities) -> str:
    # As Debian has it. What an administrator wrote there is dropped.
    applies = "/udev/hdparm" in text
    return 'ACTION=="add", SUBSYSTEM=="block", RUN+="/usr/lib/udev/hdparm"\n' if applies else ""


def _unit(text: str, names: Identities) -> str:
    return text if text in cache_rules.UNIT_TEXTS else mounts.unit(text, names)


_BLOCK = r"/sys/(?:block|class/block|dev/block|devices)/.*"
_SYSTEMD = r"(?:/etc|/run|/usr/local/lib|/usr/lib|/lib)/systemd/system(?:\.control)?"
_OF_OWNERS = r"(?:/etc|/run|/usr/local/lib)/systemd/system(?:\.control)?"
_LOADER = r"/(?:boot|efi|boot/efi)/loader"
_ENTRIES = rf"{_LOADER}/entries"
_VENDORS = r"/boot/efi/EFI"
_PLACES = r"(?:/etc|/usr/local/lib|/usr/lib|/lib)"
_TUNED = r"(?:/etc|/usr/lib)/tuned"
_OUR_RULES = (
    *(our_paths.CACHE_RULES, our_paths.SCHEDULER_RULES),
    *(our_paths.FORMER_CACHE_RULES, our_paths.FORMER_SCHEDULER_RULES),
)
_THEIRS = (
    r"(?:/etc|/usr/local/lib|/usr/lib)/tmpfiles\.d|/etc/(?:sysfs\.d|cron\.(?:d|hourly|daily|weekly|monthly)|udisks2)"
    r"|/etc/NetworkManager/dispatcher\.d(?:/(?:pre-up|no-wait)\.d)?|/etc/networkd-dispatcher/\w+\.d|/etc/network/if-(?:pre-)?up\.d"
    r"|/etc/(?:dracut\.conf|initramfs-tools/conf|default/grub|tlp)\.d|/etc/initramfs-tools/scripts/[\w-]+"
    r"|/var/spool/(?:cron(?:/crontabs|/tabs|/atjobs)?|at|atjobs)|/etc/network/interfaces\.d|/etc/dhcp/dhclient-\w+-hooks\.d"
    r"|(?:/usr)?/lib/systemd/system-sleep"
    r"|/var/lib/cloud/scripts/per-boot|(?:/usr)?/etc/nfsmount\.conf\.d"
)
_GENERATED = r"/run/systemd/generator"
#: Files of other components that act at boot. A recording has none of them, whatever they set.
_DROPPED = re.compile(
    rf"(?:{_THEIRS})/(?!(?:crontabs|tabs|atjobs)$)[^/]+"
    rf"|(?:{_OF_OWNERS}|{_GENERATED})/(?!.*durable-dbhost|(?:[^/]*/)?tuned\.service$|default\.target$)(?:[^/]+/)?[^/]+"
    r"\.(?:service|timer|target|path|socket)(?:\.d(?:/[^/]+)?)?"
)
#: Path -> what stays of the file. The first that matches the whole path counts.
_FILES: tuple[tuple[str, _Rule], ...] = (
    (r"/proc/(?:\d+|self)/mountinfo", mounts.mountinfo),
    (r"/proc/(?:\d+|self)/comm", _text),
    (r"/proc/(?:filesystems|mdstat)|/proc/sys/kernel/osrelease", _as_is),
    (r"/proc/sys/kernel/random/boot_id|/etc/machine-id|/proc/sys/kernel/hostname", _identity),
    (r"/proc/cmdline", mounts.command_line),
    (
        rf"(?:/boot/grub2?|{_VENDORS}/[^/]+)/(?:grub\.cfg|custom\.cfg|grubenv)|{_ENTRIES}/.*\.conf",
        mounts.boot_loader,
    ),
    (r"(?:/etc|/usr/lib)/kernel/cmdline", mounts.command_line),
    (rf"{_LOADER}/loader\.conf|(?:/etc|/usr/lib)/kernel/install\.conf", mounts.loader_conf),
    (r"/sys/firmware/efi/efivars/Loader.*", _text),
    (r"/proc/stat", partial(devices.lines, r"btime \d+")),
    (r"/proc/fs/(?:ext4|ext3|jbd2)/.*/options", mounts.option_lines),
    (r"/etc/fstab|/proc/(?:self/)?mounts", mounts.fstab),
    (re.escape(crypttab.PATH), mounts.crypttab),
    (rf"{_BLOCK}/dm/uuid", _mapped),
    (rf"{_BLOCK}/(?:serial|wwid|uuid|nguid|eui|wwn|unique_id|subsysnqn)", _identity),
    (rf"{_BLOCK}/(?:dm/name|device/(?:model|vendor|rev|firmware_rev)|loop/backing_file)", _text),
    (
        rf"{_BLOCK}/(?:queue/.*|md/.*|dm/.*|bcache/(?:state|cache_mode)|loop/dio|cache_type|dev|partition|ro|removable|size|start|stat|hidden|inflight"
        r"|device/(?:type|state|transport|queue_depth|queue_type|scsi_level|cntlid|numa_node)"
        r"|device/scsi_disk/[\d:]+/(?:cache_type|FUA|protection_type|provisioning_mode))",
        _as_is,
    ),
    (r"/sys/class/scsi_host/host\d+/proc_name|/sys/module/\w+/parameters/\w+", _as_is),
    (rf"{platforms.DIRECTORY}/chassis_asset_tag", _asset_tag),
    (rf"{platforms.DIRECTORY}/(?:{'|'.join(platforms.FIELDS)})", _text),
    (r"/sys/class/nvme/nvme\d+/(?:transport|state|cntrltype)", _as_is),
    (r"/sys/fs/btrfs/[^/]+/(?:allocation|features)/.*|/sys/fs/ext4/[^/]+/journal_task", _as_is),
    ("|".join(map(re.escape, _OUR_RULES)), devices.rules),
    (rf"{_PLACES}/udev/rules\.d/85-hdparm\.rules", _hdparm_rule),
    (rf"{_PLACES}/udev/rules\.d/.*\.rules", devices.foreign_rules),
    (rf"{_PLACES}/modprobe\.d/.*\.conf", devices.modules),
    (rf"{_PLACES}/systemd/system-generators/.*", devices.generator),
    (rf"{_SYSTEMD}/.*\.(?:automount|mount|service|socket|target|conf)", _unit),
    (
        r"/etc/(?:sysfs|hdparm|smartd|smartmontools/smartd|overlayroot(?:\.local)?)(?:\.conf)?|/etc/(?:rc\.d/)?rc\.local"
        r"|/etc/(?:network/interfaces|dhcp/dhclient-\w+-hooks|(?:ana)?crontab|tlp\.conf|laptop-mode/laptop-mode\.conf)"
        r"|/etc/(?:dracut\.conf|initramfs-tools/initramfs\.conf)|(?:/usr)?/etc/nfsmount\.conf",
        _nothing,
    ),
    # Scripts that act at boot: what an owner wrote there is dropped.
    (
        r"/etc/(?:init\.d|default|sysconfig)/[^/]+|/etc/mysql/debian-start"
        r"|(?:/usr)?(?:/local|/pgsql-\d+)?/(?:s?bin|libexec)/[^/]+",
        _nothing,
    ),
    (rf"{_TUNED}/(?:active|post_loaded)_profile", _text),
    (rf"{_TUNED}/.*tuned\.conf", devices.settings),
)

#: Directory -> which of its names stay, all with stand-ins.
_DIRECTORIES = (
    (r"/proc", r"\d+|self"),
    (r"/proc/fs/.*|/sys/(?:block|class/block|dev/block|fs/btrfs)|/sys/fs/(?:btrfs|ext4|xfs)/.*", r".*"),
    (rf"{_BLOCK}", r".*"),
    (r"/sys/class/(?:nvme|nvme-subsystem|scsi_host|scsi_disk)(?:/.*)?", r".*"),
    (r"/dev/(?:disk|mapper|md|block)(?:/.*)?", r".*"),
    (_SYSTEMD, r".*\.(?:mount|mount\.d|wants|requires)|.*durable-dbhost.*"),
    (rf"{_SYSTEMD}/(?:.*\.)?(?:mount|target)\.d|{_ENTRIES}", r".*\.conf"),
    (rf"{_PLACES}/udev/rules\.d", r".*\.rules"),
    (rf"{_PLACES}/modprobe\.d", r".*\.conf"),
    (rf"{_PLACES}/systemd/system-generators|{_VENDORS}|/(?:boot|efi|boot/efi)/EFI/Linux", r".*"),
    (rf"{_SYSTEMD}/.*\.(?:mount|target)\.requires", r".*"),
    (rf"{_SYSTEMD}/.*\.(?:wants|requires)", r".*\.mount|.*durable-dbhost.*"),
    (rf"{_THEIRS}|/etc/rc[S2-5]\.d|{_GENERATED}(?:/.*)?|{_SYSTEMD}/.*\.(?:service\.d|upholds)", r"(?!)"),
    (rf"(?:{our_paths.VOLATILE}|{our_paths.PERSISTENT})(?:/.*)?", r".*"),
)

#: Command line -> what stays of its output. Its error messages stay as text.
_COMMANDS: tuple[tuple[str, _Rule], ...] = (
    (r"systemd-detect-virt", partial(devices.lines, r"[a-z0-9-]{1,30}")),
    (r"udevadm info (?:--export-db|/sys/class/block/.*)", devices.database),
    (rf"{' '.join(ext4.SHOW)} \S+", devices.superblock),
    (r"hdparm -W \S+", partial(devices.lines, r"/dev/\S+:|\s*write-caching\s*=.*|SG_IO: [\w /,\[\]:]*")),
    (
        r"sdparm (?:[\w=-]+ )*/dev/\w+",
        partial(devices.lines, r"(?:(?:0x[0-9a-f]+|-)\s*)+|\s+/dev/\S+: .*"),
    ),
    (r"nvme id-ctrl \S+ --output-format=json", devices.nvme_identity),
    (
        r"nvme get-feature \S+ --feature-id=6",
        partial(devices.lines, r"get-feature:[\w ()]*,? ?[Cc]urrent value:\s*\w+"),
    ),
    (rf"{' '.join(zfs.GET)} .*", partial(devices.lines, r"(?:sync|canmount)\t[a-z]+|mountpoint\t\S+")),
    (rf"{' '.join(zfs.STATUS)} .*", partial(devices.lines, r"  pool: .*|config:|\t *\S+(?: .*)?")),
    (r"dmsetup table", devices.table),
    (r"systemctl show --property=ActiveState,Result,ExecMainStartTimestampMonotonic -- \S+", _as_is),
    (
        r"losetup --list --noheadings --output NAME,BACK-MAJ:MIN",
        partial(devices.lines, r"/dev/loop\d+\s+\d+:\d+\s*"),
    ),
    (r"multipathd show maps raw format %w:%Q", devices.queueing),
    (r"drbdsetup (?:show|status) --json", devices.drbd),
    (r"drbdsetup show", devices.drbd_84_shown),
    (r"drbdadm --dry-run adjust \S+", devices.drbd_adjusted),
    (r"drbdsetup status --verbose --statistics", devices.drbd_84_status),
)


class Redactor:
    """Makes one recording fit to be shown, and returns the replacement of each name in it.

    `hosts` are names of the host that the recording itself need not hold. Raises Collision.
    """

    def __init__(self, recording: Recording, hosts: Iterable[str] = (), salt: int = 0) -> None:
        self._recording = {**recording, "calls": _without_idle_processes(recording["calls"])}
        self.names = Identities(_unchanged_of(recording), salt)
        for host in hosts:
            self.names.learn_host(host)
        self._learn()

    def redact(self) -> Recording:
        """Return the recording with everything dropped or replaced that is unknown to be harmless."""
        recording = self._recording
        calls = recording["calls"]
        return {
            **{key: recording[key] for key in ("schema", "kernel", "release", "taken")},
            "command": [self.names.text(word) for word in recording["command"]],
            "calls": {call: self._answers(call, calls[call]) for call in sorted(calls)},
        }

    def stands_for(self, value: str) -> set[str]:
        """Return all that a text of the facts can have become."""
        kind, colon, rest = value.partition(":")
        names = self.names
        return {
            *(value, names.text(value), names.identity(value), names.named(value)),
            *(mounts.option(value, names), mounts.option(value, names, True)),
            *((f"{kind}:{names.identity(rest)}", f"{kind}:{names.mapped(rest)}") if colon else ()),
        }

    def _learn(self) -> None:
        for argv, answer in sorted(self._recording["calls"]["run"].items()):
            if isinstance(answer, list) and json.loads(argv)[0] == "udevadm":
                for properties in devices.records(answer[1]):
                    self.names.learn_device(properties)
        for path, answer in sorted(self._recording["calls"]["read"].items()):
            if isinstance(answer, str):
                self._learn_file(path, answer)

    def _learn_file(self, path: str, text: str) -> None:
        rule = _rule_for(path)
        if rule is _identity and path != "/proc/sys/kernel/hostname":
            self.names.learn_identity(text)
        elif rule is _mapped:
            self.names.learn_mapped(text.strip())
        elif rule in (mounts.mountinfo, mounts.fstab):
            for host in mounts.hosts_in(text):
                self.names.learn_host(host)

    def _answers(self, call: str, answers: Mapping[str, Any]) -> Mapping[str, Any]:
        dropped = [key for key in answers if _DROPPED.fullmatch(key)]
        given = {**answers, **{key: self._absent(call, key) for key in dropped}}
        return dict(self._answer(call, key, given[key]) for key in sorted(given))

    def _absent(self, call: str, key: str) -> Any:
        """Return the answer about a file that is not there: a replay asks for some files by name."""
        answers = {"exists": False, "is_block_device": False, "resolve": key, "locate": [key, None]}
        return answers.get(call, {"error": f"{self._path(key)}: No such file or directory"})

    def _answer(self, call: str, key: str, answer: Any) -> tuple[str, Any]:
        if call == "run":
            arguments = json.loads(key)
            argv = [self._path(word) for word in arguments]
            if arguments[:-1] == drbd.ADJUST:
                argv[-1] = self.names.of(arguments[-1])  # as the resource is called in what drbdsetup says
            return json.dumps(argv), self._ran(" ".join(arguments), answer)
        return self._path(key), self._redacted(call, key, answer)

    def _redacted(self, call: str, path: str, answer: Any) -> Any:
        if isinstance(answer, dict):
            return {**answer, "error": self.names.text(answer["error"])}
        if call == "read":
            rule = _rule_for(path)
            return rule(answer, self.names) if rule else {"error": f"{self._path(path)}: {WITHHELD}"}
        if call == "names":
            return self._listed(path, answer)
        if isinstance(answer, list):
            return [self._path(word) if isinstance(word, str) else word for word in answer]
        return self._path(answer) if isinstance(answer, str) else answer

    def _listed(self, path: str, answer: list[str]) -> Any:
        allowed = next((names for pattern, names in _DIRECTORIES if re.fullmatch(pattern, path)), None)
        if allowed is None:
            return {"error": f"{self._path(path)}: {WITHHELD}"}
        whole = (self._path(f"{path}/{name}") for name in answer if re.fullmatch(allowed, name, re.S))
        return sorted(name.rpartition("/")[2] for name in whole)

    def _ran(self, command: str, answer: Any) -> Any:
        if isinstance(answer, dict):
            return {**answer, "error": self.names.text(answer["error"])}
        rule = next((rule for pattern, rule in _COMMANDS if re.fullmatch(pattern, command)), None)
        if rule is None:
            return {"error": f"{self.names.text(command.split(' ')[0])}: {WITHHELD}"}
        code, out, err = answer
        return [code, rule(out, self.names), self.names.text(err)]

    def _path(self, path: str) -> str:
        # What the kernel names there is no serial number, however short numbers are.
        return self.names.kernel(path) if path.startswith(("/sys/", "/proc/")) else self.names.text(path)


def redact(recording: Recording, hosts: Iterable[str] = ()) -> Recording:
    """Return what of a recording may be shown, with stand-ins for all that names the one host."""
    return redactor(recording, hosts)[1]


def redactor(recording: Recording, hosts: Iterable[str] = ()) -> tuple[Redactor, Recording]:
    """Return the redacted recording, and who knows which stand-in is whose."""
    given = tuple(hosts)
    for salt in range(_ATTEMPTS):
        try:
            made = Redactor(recording, given, salt)
            return made, made.redact()
        except Collision:
            continue
    raise ValueError("no stand-ins could be found for the names in this recording")


def _rule_for(path: str) -> _Rule | None:
    return next((rule for pattern, rule in _FILES if re.fullmatch(pattern, path, re.S)), None)


def _without_idle_processes(calls: Calls) -> Calls:
    """Leave out the processes of which nothing was read except the mounts that they have.

    There are thousands, others each time, and the facts have passed them over.
    """
    accesses = [(_process(path), path) for answers in calls.values() for path in answers]
    busy = {process for process, path in accesses if process and path != f"/proc/{process}/ns/mnt"}
    idle = {process for process, _path in accesses if process} - busy
    listed = calls["names"].get("/proc")
    if not isinstance(listed, list):
        return calls
    return {
        **calls,
        "names": {**calls["names"], "/proc": [name for name in listed if name not in idle]},
        "link": {path: answer for path, answer in calls["link"].items() if _process(path) not in idle},
    }


def _process(path: str) -> str:
    """Return the number of the process that a path of /proc is about, '' for another path."""
    found = re.match(r"/proc/(\d+)/", path)
    return found[1] if found else ""


def _unchanged_of(recording: Recording) -> str:
    """Return the strings that stay unchanged because they are the same on many hosts."""
    calls = recording["calls"]
    disks = calls["names"].get("/sys/block", [])
    paths = (path for path in calls["resolve"].values() if path.startswith("/sys/devices/"))
    texts = (calls["read"].get(path, "") for path in ("/proc/filesystems", "/proc/sys/kernel/osrelease"))
    return "\n".join(
        [
            _WORDS,
            *(disks if isinstance(disks, list) else ()),
            *(path.rpartition("/")[2] for path in paths),
            *(text for text in texts if isinstance(text, str)),
            *mounts.FSTYPES,
            *shown_options.FLAGS,
            *shown_options.KEYS,
            *shown_options.PATHS,
        ]
    )
