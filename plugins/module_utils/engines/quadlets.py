# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quadlets (podman-systemd.unit(5)): each start of their unit creates a container by the files that are there then.

Docker, and podman without a Quadlet, start a container again as it was created.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..host import system_conf
from ..host.observation import Because
from ..host.process_context import Place, unit_of
from ..host.processes import Process
from ..host.seam import Host
from ..next_boot import unit_files

_DIRECTORIES = (
    "/etc/containers/systemd",
    "/usr/local/share/containers/systemd",
    "/usr/share/containers/systemd",
)
#: The control group of a container that its unit's podman started.
_OF_QUADLET = ".service/libpod-payload-"
#: Files that other Quadlets refer to.
_SHARED = (".volume", ".network", ".pod", ".image", ".build", ".kube")


def changed(host: Host, place: Place, main: Process) -> Because | None:
    """Return why the next start of a server's container can differ from the running one, None if no file of it changed since.

    Raises Unobservable.
    """
    unit = unit_of(place.cgroup)
    if unit is None or _OF_QUADLET not in place.cgroup or main.started is None:
        return None
    for path in _files(host, unit):
        status = host.locate(path).status
        if status is not None and max(status.modified, status.changed) > main.started:
            return Because("changed_quadlet", {"path": path, "unit": unit})
    return None


def _files(host: Host, unit: str) -> Iterator[str]:
    """Yield the files from which a start of a unit creates its container. Raises Unobservable."""
    own = f"{unit[: -len('.service')]}.container"
    for directory in _DIRECTORIES:
        for name in system_conf.names_in(host, directory):
            if name == own or name.endswith(_SHARED):
                yield f"{directory}/{name}"
                yield from _environment_files(host, f"{directory}/{name}")
        for drop_ins in (f"{directory}/{own}.d", f"{directory}/container.d"):
            for name in system_conf.names_in(host, drop_ins):
                yield f"{drop_ins}/{name}"
                yield from _environment_files(host, f"{drop_ins}/{name}")
    yield from unit_files.drop_ins(host, unit)


def _environment_files(host: Host, path: str) -> Iterator[str]:
    for line in system_conf.parse(host.read(path), path):
        if line.key == "EnvironmentFile" and line.value.startswith("/"):
            yield line.value
