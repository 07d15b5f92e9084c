# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mount options as text: how a list is split, and which options are for the kernel. Pure.

Source: mount(8), systemd.mount(5), fsconfig(2).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: A comma within quotes is part of a value (libmount).
_OPTION = re.compile(r'(?:"[^"]*"|[^,"])+|"')
#: Options that mount(8), systemd and udisks consume.
FOR_PROGRAMS = ("x-", "X-")
_FOR_PROGRAMS = frozenset(
    "defaults auto noauto user nouser users nousers owner noowner group nogroup nofail _netdev comment loop offset"
    " sizelimit encryption helper uhelper silent loud iversion noiversion bind rbind move remount".split()
)
#: Options of one mount, not of its file system.
_OF_MOUNT = frozenset(
    "suid nosuid dev nodev exec noexec atime noatime relatime norelatime strictatime nostrictatime diratime"
    " nodiratime symfollow nosymfollow private rprivate shared rshared slave rslave unbindable runbindable".split()
)


def split(text: str) -> list[str]:
    """Return the options of a text as libmount splits them: a comma within quotes ends none."""
    return _OPTION.findall(text)


def for_file_system(options: Iterable[str]) -> list[str]:
    """Return the options that a file system gets, as fsconfig(2) takes them: without quotes around values."""
    found = []
    for option in split(",".join(options)):
        name, equals, value = option.partition("=")
        if name not in _FOR_PROGRAMS and name not in _OF_MOUNT and not name.startswith(FOR_PROGRAMS):
            is_quoted = len(value) > 1 and value[0] == value[-1] == '"'
            found.append(name + equals + (value[1:-1] if is_quoted else value))
    return found
