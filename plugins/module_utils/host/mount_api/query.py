# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mount options that the running kernel knows. The query needs no device and mounts nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable

from . import calls, options

_TYPES = "/proc/filesystems"
#: An option that no file system has.
_BOGUS = "durable_dbhost_probe"
#: Drivers want a source before any other option: ext2 of Linux 7.2 fails in the kernel without one.
_SOURCE = "source=none"
#: The value is the path of a device, which the kernel opens at once. Whether it is there is another question.
_WITH_DEVICE = ("journal_path=", "logdev=", "rtdev=", "device=")


def refused(fstype: str, requested: Iterable[str]) -> dict[str, str] | None:
    """Return {option: the kernel's message} of the options that the kernel refuses for a type of file system.

    None if the kernel cannot be queried: the type is not loaded (nothing is loaded for a query), the calls are
    missing, or the driver accepts any option until it mounts.
    """
    if not _is_loaded(fstype):
        return None
    try:
        if _refusal(fstype, _BOGUS) is None:
            return None
        found = {word: _refusal(fstype, word) for word in options.for_file_system(requested)}
    except OSError:
        return None
    return {word: why for word, why in found.items() if why is not None}


def _refusal(fstype: str, option: str) -> str | None:
    """Return why an option is refused, None if it is known. Raises OSError if the kernel cannot be queried."""
    if option.startswith(_WITH_DEVICE):
        return None
    context = calls.fsopen(fstype)
    try:
        calls.set_option(context, _SOURCE)
        calls.messages(context)
        try:
            calls.set_option(context, option)
        except OSError as error:
            return "; ".join(calls.messages(context)) or str(error.strerror)
        return None
    finally:
        os.close(context)


def _is_loaded(fstype: str) -> bool:
    with open(_TYPES, encoding="utf-8") as lines:
        return fstype in (line.split()[-1] for line in lines if line.strip())
