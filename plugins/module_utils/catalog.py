# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of layers and engines: names, order, files, and what a pending change needs. Data.

Other lists of layers are derived from these, or tested against them. The directory of an engine has its observation and
its rules; engines/contract.py lists these directories.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .host import our_paths


@dataclass(frozen=True)
class Layer:
    """One layer: the role `name`, and its module.

    `files`: those that a step of it may write, with any targets. `needs`: what makes some of its settings take effect, restart
    or reboot; `waits`: {setting: why}, '' for any other; `restarts`: whether its module can do that restart; `alters`: whether
    it can change the server's own configuration file; `options`: options of its module that the inventory sets by the role's
    variables, `<layer>_<option>`; `secrets`: options whose value is never shown; `undone`: whether the rollback timer
    restores the files that it writes.
    """

    name: str
    module: str
    files: tuple[str, ...] = ()
    needs: str = "reboot"
    restarts: bool = False
    alters: bool = False
    options: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    waits: Mapping[str, str] = field(default_factory=dict)
    undone: bool = False


@dataclass(frozen=True)
class Engine(Layer):
    """The layer of a database engine.

    `checks`: {its name, or a flavour that the inventory may name: the command that checks for damage}.
    `has_databases`: settings belong to single databases, in any directory of the inventory. `locks`: a
    directory in which its processes find each other, which holds no data. `rereads`: what makes a server use a changed
    configuration.
    """

    checks: Mapping[str, str] = field(default_factory=dict)
    has_databases: bool = False
    locks: str = ""
    rereads: str = "restart"
    needs: str = "restart"
    restarts: bool = True
    waits: Mapping[str, str] = field(default_factory=lambda: {"": "the server takes it at its start only"})


#: In the order in which they are set and released.
ENGINES = (
    Engine("mssql", "mssql_conf", (our_paths.ORIGINALS_MSSQL,), checks={"mssql": "DBCC CHECKDB"}),
    Engine(
        "faircom",
        "faircom_config",
        (our_paths.ORIGINALS_FAIRCOM,),
        checks={"faircom": "ctvfyfil and ctvfyidx"},
    ),
    Engine(
        "firebird",
        "firebird_config",
        (our_paths.ORIGINALS_FIREBIRD,),
        checks={"firebird": "gfix -v -full"},
        restarts=False,
        options=("user", "server"),
        secrets=("password",),
        has_databases=True,
        locks="/tmp/firebird",
    ),
    Engine(
        "postgresql",
        "postgresql_config",
        (our_paths.ORIGINALS_POSTGRESQL,),
        alters=True,
        rereads="reload or restart",
        checks={
            # Without --install-missing it checks no database that lacks its extension.
            "postgresql": "pg_amcheck --all --install-missing --heapallindexed (before 14: pg_dumpall --file=/dev/null)"
        },
    ),
    Engine(
        "mariadb",
        "mariadb_config",
        checks={"mariadb": "mariadb-check --all-databases", "mysql": "mysqlcheck --all-databases"},
    ),
)

#: In the order in which they are released. The guard is the first: when it ends, it enables barriers and flushes.
LAYERS: Mapping[str, Layer] = {
    layer.name: layer
    for layer in (
        Layer("power_guard", "power_guard", (our_paths.LEASE, our_paths.PROGRAM, our_paths.UNIT)),
        Layer("power", "power_config", (our_paths.ORIGINALS_POWER, our_paths.HOOK), secrets=("password",)),
        Layer(
            "write_cache",
            "write_cache",
            (our_paths.CACHE_RULES, our_paths.RESUME_UNIT),
            waits={
                "write_cache": "a layer above was made when nothing below cached, and would drop flushes",
                "layer_cache_mode": "a device-mapper device keeps the cache mode that it had when its table was loaded",
            },
            undone=True,
        ),
        Layer("io_scheduler", "io_scheduler", (our_paths.SCHEDULER_RULES,), undone=True),
        Layer(
            "mount_options",
            "mount_options",
            (our_paths.ORIGINALS,),
            waits={"data_mode": "the kernel does not change data= of a mounted file system"},
            undone=True,
        ),
        Layer("unit_mounts", "unit_mounts", undone=True),
        *ENGINES,
    )
}

#: Name that the inventory may give an engine -> its name.
NAMES = {name: engine.name for engine in ENGINES for name in engine.checks}

#: Safe order. The kernel flushes again. A guard that may have barriers off ends: it enables them and flushes. Barriers
#: on, with a counted flush; caches off; servers require their mounts; engines strict; the monitor of the UPS
#: notifies the guard. After all of that is read back: caches on, barriers off, engines less strict, and a guard may
#: disable barriers.
STEPS = (
    ("raise", "write_cache"),
    ("tighten", "power_guard"),
    ("tighten", "mount_options"),
    ("tighten", "write_cache"),
    ("tighten", "unit_mounts"),
    *(("tighten", engine.name) for engine in ENGINES),
    ("tighten", "power"),
    ("tighten", "io_scheduler"),
    ("loosen", "write_cache"),
    ("loosen", "mount_options"),
    *(("loosen", engine.name) for engine in ENGINES),
    ("loosen", "power_guard"),
)


def release() -> list[dict[str, Any]]:
    """Return the steps that release all layers, in the form of a plan."""
    return [
        {"phase": "release", "layer": name, "class": "safety", "arguments": {"state": "released"}}
        for name in LAYERS
    ]


def engine(name: str) -> Engine:
    """Return an engine by its name. Raises KeyError."""
    found = LAYERS[name]
    if not isinstance(found, Engine):
        raise KeyError(name)
    return found


def is_engine(name: str) -> bool:
    """Return whether a layer is a database engine's."""
    return isinstance(LAYERS.get(name), Engine)


def kind(instance: Mapping[str, Any]) -> str:
    """Return an instance's engine, or its flavour if that has other rules."""
    flavour = instance.get("flavour")
    return str(flavour if NAMES.get(str(flavour)) == instance["engine"] else instance["engine"])


def check(instance: Mapping[str, Any]) -> str:
    """Return the command that checks an instance for damage."""
    return engine(instance["engine"]).checks[kind(instance)]
