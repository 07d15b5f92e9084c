# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Firebird's tools: they run only if root alone can change them and everything that they load."""

from __future__ import annotations

from collections.abc import Iterator

from ...host import trusted_path
from ...host.seam import Host, Unobservable

_OPT, _ETC = "/opt/firebird", "/etc/firebird"
GFIX = (f"{_OPT}/bin/gfix", "/usr/bin/gfix")
#: There is another gstat: Debian calls it fbstat, Fedora and SUSE gstat-fb.
GSTAT = (f"{_OPT}/bin/gstat", "/usr/bin/fbstat", "/usr/bin/gstat-fb", "/usr/bin/gstat")
#: These name the modules that a tool loads. Beside them are files that belong to the server's user.
_CONFIGURATIONS = ("firebird.conf", "plugins.conf", "databases.conf", "fbintl.conf")
_MODULES = ("plugins", "intl")


def choose(host: Host, paths: tuple[str, ...]) -> str:
    """Return the first of these tools that exists. Raises Unobservable if others than root can change what it runs."""
    tool = trusted_path.choose(host, paths)
    for path, is_directory in _loaded(host, tool):
        find = trusted_path.weak_entry if is_directory else trusted_path.weak_future
        why = find(host, path)
        if why:
            raise Unobservable(
                f"{tool} loads {path}, which others than root may change ({why}), so it is not run. Fix: chown that"
                " to root and chmod it go-w"
            )
    return tool


def _loaded(host: Host, tool: str) -> Iterator[tuple[str, bool]]:
    """Yield what a tool loads, and whether that is a directory of modules. Raises Unobservable."""
    if tool.startswith(f"{_OPT}/"):
        yield from ((f"{_OPT}/{name}", True) for name in _MODULES)
        yield from ((f"{_OPT}/{name}", False) for name in _CONFIGURATIONS)
        return
    # Debian has a directory for each version; modules lie below /usr.
    for directory in (
        _ETC,
        *(f"{_ETC}/{name}" for name in host.list_names(_ETC) or [] if name[:1].isdigit()),
    ):
        yield from ((f"{directory}/{name}", False) for name in _CONFIGURATIONS)
