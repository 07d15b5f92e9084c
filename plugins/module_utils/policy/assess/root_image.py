# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixes for a root that is an image or a snapshot: usual commands fail there, are lost, or break its boot. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ...facts.storage import StorageFacts
from ...host.observation import UNKNOWN
from ...rows import Reason, Setting
from ...storage import findings
from ...storage.root_image import (
    OSTREE,
    OTHER,
    READ_ONLY,
    TRANSACTIONAL,
)
from .requirements import Requirement


class _Tools(NamedTuple):
    """The commands that change one kind of root: its initramfs, the kernel's arguments, its default entry, its boot loader's
    menu, its packages."""

    initramfs: str
    arguments: str
    default: str
    menu: str
    packages: str


_TOOLS = {
    OSTREE: _Tools(
        "rpm-ostree initramfs --enable (bootc: build the image again)",
        "rpm-ostree kargs, bootc: kargs.d of the image",
        "ostree admin set-default",
        "rpm-ostree kargs (bootc: build the image again)",
        "layer with rpm-ostree install, or add to the image,",
    ),
    TRANSACTIONAL: _Tools(
        "transactional-update initrd and reboot",
        "/etc/default/grub, then transactional-update grub.cfg and a reboot",
        "transactional-update rollback",
        "transactional-update grub.cfg and reboot",
        "install with transactional-update pkg install",
    ),
    READ_ONLY: _Tools(
        "what builds the image of this host",
        "what builds the image of this host",
        "what deploys the image of this host",
        "what builds the image of this host",
        "add to the image of this host",
    ),
}
_INITRAMFS = re.compile(
    r"update-initramfs(?: -\w+(?: [^\s,;-][^\s,;]*)?)* or dracut(?: -f| --force)*(?: --kver [^\s,;]+)?"
)
_MODULE = re.compile(r" \(dracut: module [^)]*\)")
_DEFAULT = re.compile(r"\(grub2-set-default[^()]*\)")
_ARGUMENTS = re.compile(r"\([^()]*\b(?:grubby|update-grub|grub2-mkconfig)\b[^()]*\)")
_MENU = re.compile(r"update-grub or grub2-mkconfig")
_PACKAGES = re.compile(r"\binstall(?= (?!that\b|it\b|the\b)[a-z])")
_FLAGS = re.compile(r"(rootflags=? of [^,;(]*[^,;( ])")


def fix(text: str, kind: str) -> str:
    """Return a fix for a kind of root."""
    tools = _TOOLS.get(kind)
    if tools is None:
        return text
    text = _MODULE.sub("", _INITRAMFS.sub(tools.initramfs, text))
    text = _DEFAULT.sub(f"({tools.default})", text)
    text = _MENU.sub(tools.menu, _ARGUMENTS.sub(f"({tools.arguments})", text))
    text = _FLAGS.sub(rf"\1 ({tools.arguments})", text)
    return _PACKAGES.sub(tools.packages, text)


def of_row(row: Setting, kind: str) -> Setting:
    """Return a row whose fix fits a kind of root."""
    return row._replace(why=fix(row.why, kind), remedy=fix(row.remedy, kind))


def of_need(need: Requirement, kind: str) -> Requirement:
    """Return a requirement whose fix fits a kind of root."""
    return need._replace(remedy=fix(need.remedy, kind))


def of_reason(reason: Reason, kind: str) -> Reason:
    """Return a finding whose fix fits a kind of root."""
    return reason._replace(reason=fix(reason.reason, kind), fix=fix(reason.fix, kind))


def unknowns(storage: StorageFacts) -> Iterator[Reason]:
    """Yield that the next boot starts another root: the persisted values were read from this one."""
    if storage["next_root"] == OTHER:
        yield findings.NEXT_ROOT.found()
    if storage["next_root"] == UNKNOWN:
        yield findings.NEXT_ROOT_UNKNOWN.found()
