# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names by which a host identifies its devices, and pseudonyms for the parts that are unique. Pure."""

from __future__ import annotations

import re

from ..host.device_names import is_filler
from .pseudonyms import Pseudonyms

#: udev properties that name one device or file system.
_NAMING = re.compile(r"SERIAL|WWN|UUID|EUI64|NGUID|NAA_|IDENT_")
#: What says which sort of number follows.
_SORT = re.compile(r"(?:wwn-)?(?:0x|naa\.|eui\.|nvme\.|uuid\.)|", re.I)
_LINK = re.compile(r"""(/dev/disk/(by-[a-z]+)/)((?:[^\s"',;:]|:(?=[^\s:]))+)""")
#: Names of links that a cloud gives by a disk's place, the same on each of its machines.
_PLACES = re.compile(r"google-(?:local-(?:nvme-)?ssd|persistent-disk)-\d+")
_PART = re.compile(r"-part\d+$")
_UUID_LINK = re.compile(r"(?:lvm-pv|md)-uuid-")
_MAPPED = re.compile(r"(?P<part>part\d+-)?(?P<maker>[A-Za-z_]+)-(?P<rest>.+)", re.S)
_LVM = re.compile(r"([0-9A-Za-z]{32})([0-9A-Za-z]{32})(.*)", re.S)
_CRYPT = re.compile(r"([A-Z0-9]+-)(?:([0-9a-f]{32})-)?(.*)", re.S)
_OVER_IP = re.compile(r"((?:^|.*-)ip-)(.*?)((?:-lun-\d+)?(?:-part\d+)?)", re.S)


def _filler(value: str) -> str:
    """Return zeros for a number that names no device, so that its stand-in names none either; '' for any other."""
    zeros = "0" * len(value) if is_filler(value) else ""
    return zeros + "0" if zeros and zeros == value else zeros


class Identities(Pseudonyms):
    """Stand-ins for names of devices, in the forms that udev, device-mapper and md give them."""

    def __init__(self, unchanged: str, salt: int = 0) -> None:
        super().__init__(unchanged, salt)
        #: Serial number as udev has it -> the model that it begins with.
        self._models: dict[str, str] = {}
        self._known: set[str] = set()

    def learn_device(self, properties: dict[str, str]) -> None:
        """Learn the names of one block device from its udev properties."""
        model = properties.get("ID_MODEL", "") + "_"
        for key, value in properties.items():
            if key in ("ID_SERIAL", "DM_SERIAL") and value.startswith(model):
                self._models[value] = model
            if key == "DM_UUID":
                self.learn_mapped(value)
            elif key == "MD_NAME" and ":" in value:
                self.learn_host(value.partition(":")[0])
            elif _NAMING.search(key):
                self.learn_identity(value)

    def learn_identity(self, value: str) -> None:
        """Learn a serial number, WWN or UUID."""
        self._known.add(value.strip())
        self.learn(value.strip()[len(self._sort(value.strip())) :])

    def learn_mapped(self, uuid: str) -> None:
        """Learn the numbers in a device-mapper uuid."""
        found = _MAPPED.fullmatch(uuid)
        lvm = _LVM.fullmatch(found["rest"]) if found else None
        if lvm:
            self.learn(lvm[1])
            self.learn(lvm[2])
        elif not found:
            self.learn(uuid)
        elif found["maker"] != "CRYPT" or not _CRYPT.fullmatch(found["rest"]):
            self.learn_identity(found["rest"])

    def identity(self, value: str) -> str:
        """Return the stand-in for a serial number, WWN or UUID, whatever it looks like."""
        bare = value.strip()
        start = value.index(bare) + len(self._sort(bare))
        end = value.index(bare) + len(bare)
        part = value[start:end]
        return f"{self.scrub(value[:start])}{_filler(part) or self.of(part)}{value[end:]}"

    def mapped(self, uuid: str) -> str:
        """Return a device-mapper uuid with stand-ins. Volumes of one LVM group still share its part."""
        found = _MAPPED.fullmatch(uuid)
        if not found:
            return self.of(uuid)
        part, maker, rest = found["part"] or "", found["maker"], found["rest"]
        lvm, crypt = _LVM.fullmatch(rest), _CRYPT.fullmatch(rest)
        if maker == "LVM" and lvm:
            return f"{part}LVM-{self.of(lvm[1])}{self.of(lvm[2])}{lvm[3]}"
        if maker == "CRYPT" and crypt:
            number = f"{self.of(crypt[2])}-" if crypt[2] else ""
            return f"{part}CRYPT-{crypt[1]}{number}{self.scrub(crypt[3])}"
        return f"{part}{maker}-{self.identity(rest)}"

    def array(self, name: str) -> str:
        """Return an md array's name, without the host that it was made on."""
        host, colon, rest = name.partition(":")
        return f"{self.of(host)}:{self.scrub(rest)}" if colon else self.scrub(name)

    def link(self, directory: str, name: str) -> str:
        """Return the name of a link in a directory of /dev/disk."""
        if directory == "by-id":
            part = _PART.search(name)
            end = part.group() if part else ""
            return self._by_id(name[: len(name) - len(end)]) + end
        if directory in ("by-label", "by-partlabel"):
            return self.scrub(name)
        if directory == "by-path":
            return self.path(name)
        return name if directory == "by-diskseq" else self.of(name)

    def path(self, name: str) -> str:
        """Return a udev path (ID_PATH, by-path). Over a network it has addresses and names."""
        found = _OVER_IP.fullmatch(name)
        return f"{found[1]}{self.of(found[2])}{found[3]}" if found else self.scrub(name)

    def text(self, text: str) -> str:
        """Return a text with stand-ins, also for what a link of /dev/disk in it names."""
        done, position = [], 0
        for found in _LINK.finditer(text):
            done += [self.scrub(text[position : found.start()]), found[1], self.link(found[2], found[3])]
            position = found.end()
        return "".join([*done, self.scrub(text[position:])])

    def named(self, text: str) -> str:
        """Return a text with stand-ins also for short and common strings that name a device."""
        known = "|".join(map(re.escape, sorted(filter(None, self._known), key=len, reverse=True)))
        return self.text(re.sub(known, lambda found: self.identity(found.group()), text) if known else text)

    def _by_id(self, name: str) -> str:
        if _PLACES.fullmatch(name):
            return name
        if name.startswith("dm-uuid-"):
            return f"dm-uuid-{self.mapped(name[len('dm-uuid-') :])}"
        if name.startswith("dm-name-"):
            return f"dm-name-{self.scrub(name[len('dm-name-') :])}"
        if name.startswith("md-name-"):
            return f"md-name-{self.array(name[len('md-name-') :])}"
        uuid = _UUID_LINK.match(name)
        if uuid:
            return uuid.group() + self.of(name[uuid.end() :])
        bus, dash, rest = name.partition("-")
        return f"{bus}-{self.identity(rest)}" if dash else self.of(name)

    def _sort(self, value: str) -> str:
        """Return what an identity begins with and need not be hidden."""
        if value in self._models:
            return self._models[value]
        found = _SORT.match(value)
        return found.group() if found else ""
