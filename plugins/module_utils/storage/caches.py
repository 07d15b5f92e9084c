# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the write cache of each kind of disk is read, set, and persisted.

One class for each interface: SATA speaks hdparm, SCSI mode pages, NVMe features, virtio an
attribute of its driver. `for_control` finds the class of a disk.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..host import json_text
from ..host.seam import ChangeFailed, Host, Result, Unobservable

_HDPARM = re.compile(r"^[ \t]*write-caching[ \t]*=[ \t]*(?:(1)[ \t]*\(on\)|0[ \t]*\(off\))[ \t]*$", re.M)
#: `sdparm --quiet --get WCE=1 -H`: the current value alone.
_SDPARM = re.compile(r"^0x0([01])\s*$")
#: `sdparm --quiet --get WCE -H`: current, changeable, default and saved value, each "-" where there is none.
_SDPARM_VALUES = re.compile(r"^(?:0x[0-9a-f]+|-)\s+(?:0x[0-9a-f]+|-)\s+(?:0x0([01])|-)\s+(?:0x0([01])|-)\s*$")
_SDPARM_ARGUMENTS = ("--quiet", "--readonly", "--get", "WCE=1", "-H")
#: Its exit code where a page cannot be saved, and where there is none.
_SDPARM_UNSAVED = 5
_SDPARM_ALL = ("--quiet", "--readonly", "--get", "WCE", "-H")
#: Turning a cache on below a device-mapper device that was made when it was off would lose commits:
#: that device drops flushes. So no rule does it where one lies above, or where that is
#: unknown: whatever made it, its kernel name begins with dm-.
_LOOK_ABOVE = [
    'PROGRAM=="{lsblk} --noheadings --raw --output KNAME $devnode"',
    'RESULT!="*dm-*"',
    'ENV{.DURABLE_DBHOST_ABOVE}="nothing"',
]
_NOTHING_ABOVE = 'ENV{.DURABLE_DBHOST_ABOVE}=="nothing"'
#: Raises a kernel cache mode that was lowered by a rule before: from kernel 6.12 on only this attribute undoes what was
#: written to it. It never lowers the mode, and it turns no cache on.
RAISE = 'ATTR{queue/write_cache}="write back"'
#: Program that a rule names -> where distributions have it, the default first.
PROGRAMS = {
    "hdparm": ("/sbin/hdparm", "/usr/sbin/hdparm"),
    "sdparm": ("/usr/bin/sdparm", "/bin/sdparm", "/usr/sbin/sdparm"),
    "nvme": ("/usr/sbin/nvme", "/sbin/nvme", "/usr/bin/nvme"),
    "lsblk": ("/bin/lsblk", "/usr/bin/lsblk"),
}
DEFAULTS = {program: paths[0] for program, paths in PROGRAMS.items()}
_NVME_VALUE = re.compile(r"[Cc]urrent value:\s*(?:0x)?([0-9a-fA-F]+)")

ENABLED, DISABLED, NONE = "enabled", "disabled", "none"


class Control:
    """What all interfaces have in common.

    `pinned`: the kernel cache mode stays at write back whatever the cache is set to, because the
    device may forget the setting at a reset. A stronger mode costs flushes that do nothing; a
    weaker one loses commits. `pinned_by_rule`: that takes a rule, at each boot.
    """

    pinned = True
    pinned_by_rule = True

    def source(self, name: str) -> str:
        """Return where the device's own word comes from: a command or a file."""
        raise NotImplementedError

    def ask(self, host: Host, name: str) -> str:
        """Return enabled, disabled or none, by the device's word. Raises Unobservable, ValueError."""
        raise NotImplementedError

    def is_switchable(self, host: Host, name: str) -> bool:
        """Return whether this host offers to switch it."""
        return True

    def raise_mode(self, host: Host, name: str) -> None:
        """Raise the kernel cache mode to write back without touching the device. Raises ChangeFailed."""
        # "temporary" changes the kernel cache mode and sends the device nothing. It also keeps the
        # mode from following a later rescan, so a cache that comes back on is flushed.
        host.write_attribute(scsi_cache_type(host, name), "temporary write back")

    def switch(self, host: Host, name: str, state: str) -> None:
        """Switch the device's cache, the kernel cache mode being write back. Raises ChangeFailed."""
        raise NotImplementedError

    def rules(self, state: str, paths: Mapping[str, str] = DEFAULTS) -> list[list[str]]:
        """Return what each udev rule does, in turn, that keeps `state` once it has matched the disk.

        `paths`: where the programs in PROGRAMS are.
        """
        raise NotImplementedError

    def programs(self, state: str) -> tuple[str, ...]:
        """Return the programs without which those rules do not set `state`."""
        return (*self._programs, *(("lsblk",) if state == ENABLED else ()))

    _programs: tuple[str, ...] = ()


class Sata(Control):
    """ATA disks on a port of libata."""

    _programs = ("hdparm",)

    def source(self, name: str) -> str:
        return f"hdparm -W /dev/{name}"

    def ask(self, host: Host, name: str) -> str:
        return parse_hdparm(_run(host, ["hdparm", "-W", f"/dev/{name}"]))

    def switch(self, host: Host, name: str, state: str) -> None:
        host.change(["hdparm", "-q", f"-W{_bit(state)}", f"/dev/{name}"])

    def rules(self, state: str, paths: Mapping[str, str] = DEFAULTS) -> list[list[str]]:
        # hdparm would hang or harm other devices.
        ata = 'ENV{ID_BUS}=="ata"'
        # Many drives forget -W0 at the next power-on or reset: the kernel must go on flushing.
        pin = [ata, 'ATTR{device/scsi_disk/*/cache_type}="temporary write back"']
        switch = [ata, f'RUN+="{paths["hdparm"]} -q -W{_bit(state)} $devnode"']
        return [pin, [ata, RAISE], *_guarded(state, switch, paths)]


class Scsi(Control):
    """SCSI and SAS disks with a caching mode page.

    Switched through the kernel, which then knows of it: a tool's MODE SELECT leaves the kernel
    cache mode behind. The kernel saves the page where the disk can save it.
    """

    _programs = ("sdparm",)

    def source(self, name: str) -> str:
        return f"sdparm --get WCE=1 /dev/{name}"

    def ask(self, host: Host, name: str) -> str:
        argv = ["sdparm", *_SDPARM_ARGUMENTS, f"/dev/{name}"]
        return parse_sdparm(_said(argv, self._sdparm(host, argv)))

    def power_on(self, host: Host, name: str) -> str:
        """Return enabled or disabled: the state in which it comes out of a reset or a power cycle, because it is
        saved, or else its default. Raises Unobservable, ValueError."""
        argv = ["sdparm", *_SDPARM_ALL, f"/dev/{name}"]
        result = self._sdparm(host, argv)
        # It exits so with a right answer where the page cannot be saved; where there is no page it names no values.
        unsaved = result.rc == _SDPARM_UNSAVED and result.stdout.rstrip().endswith("-")
        return parse_power_on(result.stdout if unsaved else _said(argv, result))

    def _sdparm(self, host: Host, argv: list[str]) -> Result:
        # Read-only, because closing a device that was open for writing is a udev event.
        result = host.run(argv)
        if result.rc != 0:
            # A disk that has something to report says that first, once (a unit attention). One that
            # hangs has said nothing: asked again, it would cost its time limit twice.
            result = host.run(argv)
        return result

    def switch(self, host: Host, name: str, state: str) -> None:
        path = scsi_cache_type(host, name)
        if state == ENABLED:
            host.write_attribute(path, "write back")
        else:
            host.write_attribute(path, "write through")
        # An unsaved page is gone at the next reset, and the kernel is not asked again by itself.
        self.raise_mode(host, name)

    def rules(self, state: str, paths: Mapping[str, str] = DEFAULTS) -> list[list[str]]:
        word = "write back" if state == ENABLED else "write through"
        attribute = "ATTR{device/scsi_disk/*/cache_type}"
        ask = f'PROGRAM=="{paths["sdparm"]} {" ".join(_SDPARM_ARGUMENTS)} $devnode"'
        # Only where the disk is not so: each MODE SELECT can be an event of its own ("mode parameters
        # changed"), and a rule that always made one would be called for ever.
        differs = f'RESULT=="0x0{1 - _bit(state)}*"'
        pin = ['KERNEL=="sd*"', f'{attribute}="temporary write back"']
        switch = ['KERNEL=="sd*"', ask, differs, f'{attribute}="{word}"']
        return [*_guarded(state, switch, paths), pin, ['KERNEL=="sd*"', RAISE]]


class Nvme(Control):
    """NVMe namespaces: the controller's volatile write cache, feature 6.

    The kernel takes the cache mode from the controller's identity, not from the feature, so a cache
    that is off is still flushed.
    """

    pinned_by_rule = False
    _programs = ("nvme",)

    def source(self, name: str) -> str:
        return f"nvme get-feature -f 6 /dev/{name}"

    def ask(self, host: Host, name: str) -> str:
        identity = _run(host, ["nvme", "id-ctrl", f"/dev/{name}", "--output-format=json"])
        if not has_volatile_cache(identity):
            return NONE
        return parse_nvme(_run(host, ["nvme", "get-feature", f"/dev/{name}", "--feature-id=6"]))

    def raise_mode(self, host: Host, name: str) -> None:
        # The driver has nothing to raise it by, and needs none: it is right unless it was forced.
        pass

    def switch(self, host: Host, name: str, state: str) -> None:
        host.change(["nvme", *_nvme_arguments(f"/dev/{name}", state)])

    def rules(self, state: str, paths: Mapping[str, str] = DEFAULTS) -> list[list[str]]:
        command = f"{paths['nvme']} {' '.join(_nvme_arguments('$devnode', state))}"
        return [['KERNEL=="nvme*"', RAISE], *_guarded(state, ['KERNEL=="nvme*"', f'RUN+="{command}"'], paths)]


class Virtio(Control):
    """virtio-blk: one attribute sets device and kernel cache mode together, where the hypervisor offers it."""

    pinned = False
    pinned_by_rule = False

    def source(self, name: str) -> str:
        return f"/sys/block/{name}/cache_type"

    def ask(self, host: Host, name: str) -> str:
        # Reading it asks the device's configuration space, not the kernel's memory.
        observed = host.read(self.source(name)).strip()
        if observed not in _OF_ATTRIBUTE:
            raise ValueError(f"observed {observed!r}, expected one of {', '.join(_OF_ATTRIBUTE)}")
        return _OF_ATTRIBUTE[observed]

    def is_switchable(self, host: Host, name: str) -> bool:
        try:
            # Without the feature the driver offers the attribute read-only.
            return bool(host.mode(self.source(name)) & 0o200)
        except Unobservable:
            return False

    def raise_mode(self, host: Host, name: str) -> None:
        host.write_attribute(self.source(name), "write back")

    def switch(self, host: Host, name: str, state: str) -> None:
        host.write_attribute(self.source(name), "write back" if state == ENABLED else "write through")

    def rules(self, state: str, paths: Mapping[str, str] = DEFAULTS) -> list[list[str]]:
        word = "write back" if state == ENABLED else "write through"
        switch = ['KERNEL=="vd*"', f'ATTR{{cache_type}}="{word}"']
        # With the cache off a mode of write through is right.
        return [*_guarded(state, switch, paths), *([['KERNEL=="vd*"', RAISE]] if state == ENABLED else [])]


CONTROLS: dict[str, Control] = {"sata": Sata(), "scsi": Scsi(), "nvme": Nvme(), "virtio": Virtio()}
_OF_ATTRIBUTE = {"write back": ENABLED, "write through": DISABLED}


def parse_hdparm(text: str) -> str:
    """Return enabled or disabled, of what `hdparm -W DEVICE` prints. Raises ValueError.

    "not supported" is no answer: hdparm says so, with exit code 0, of a disk that it could not
    ask (observed: QEMU's SCSI disk).
    """
    found = _HDPARM.search(text)
    if not found:
        raise ValueError(f"hdparm named no write-caching state: {_flat(text)!r}")
    return ENABLED if found.group(1) else DISABLED


def parse_sdparm(text: str) -> str:
    """Return enabled or disabled, of what `sdparm --quiet --get WCE=1 -H DEVICE` prints.

    Raises ValueError for anything else, as of a disk without a caching page.
    """
    found = _SDPARM.match(text)
    if not found:
        raise ValueError(f"sdparm named no WCE: the disk has no caching page, or hides it: {_flat(text)!r}")
    return ENABLED if found.group(1) == "1" else DISABLED


def parse_power_on(text: str) -> str:
    """Return enabled or disabled, of what `sdparm --quiet --get WCE -H DEVICE` prints: the saved value, or
    the default if none can be saved. Raises ValueError."""
    found = _SDPARM_VALUES.match(text)
    state = found and (found.group(2) or found.group(1))
    if not state:
        raise ValueError(f"sdparm named neither a saved WCE nor a default: {_flat(text)!r}")
    return ENABLED if state == "1" else DISABLED


def parse_nvme(text: str) -> str:
    """Return enabled or disabled, of what `nvme get-feature --feature-id=6` prints. Raises ValueError."""
    found = _NVME_VALUE.search(text)
    if not found:
        raise ValueError(f"nvme named no current value: {_flat(text)!r}")
    return ENABLED if int(found.group(1), 16) & 1 else DISABLED


def has_volatile_cache(identity: str) -> bool:
    """Tell of `nvme id-ctrl --output-format=json` whether there is a volatile cache. Raises ValueError."""
    try:
        return bool(int(json_text.loads(identity)["vwc"]) & 1)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"nvme id-ctrl named no vwc: {_flat(identity)[:200]!r}") from error


def scsi_cache_type(host: Host, name: str) -> str:
    """Return the path of a SCSI or ATA disk's cache_type attribute. Raises ChangeFailed."""
    directory = f"/sys/block/{name}/device/scsi_disk"
    try:
        address = host.names(directory)[0]
    except (Unobservable, IndexError) as error:
        raise ChangeFailed(f"{name}: observed no single scsi_disk below {directory}") from error
    return f"{directory}/{address}/cache_type"


def _guarded(state: str, actions: list[str], paths: Mapping[str, str]) -> list[list[str]]:
    """Return the rules that act; one that turns a cache on looks above first."""
    if state == DISABLED:
        return [actions]
    above = [word.replace("{lsblk}", paths["lsblk"]) for word in _LOOK_ABOVE]
    return [above, [_NOTHING_ABOVE, *actions]]


def _nvme_arguments(device: str, state: str) -> list[str]:
    # The feature belongs to the controller, which refuses it for one namespace: for all of them.
    every = "--namespace-id=0xffffffff"
    return ["set-feature", device, every, "--feature-id=6", f"--value={_bit(state)}"]


def _run(host: Host, argv: list[str]) -> str:
    return _said(argv, host.run(argv))


def _said(argv: list[str], result: Result) -> str:
    if result.rc != 0:
        reported = _flat(result.stderr) or _flat(result.stdout)
        raise Unobservable(f"{' '.join(argv)}: exit {result.rc}: {reported}")
    return result.stdout


def _bit(state: str) -> int:
    return 1 if state == ENABLED else 0


def _flat(text: str) -> str:
    return " ".join(text.split())
