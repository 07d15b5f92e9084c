# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NFS as the file system of a database: the client's options. The server's are unknown. Pure.

At each fsync the client sends COMMIT, and waits (RFC 1813, RFC 8881); no mount option puts that off, so `async` and
`sync` of the client are both well. Whether the server has stored what it acknowledges is its own matter: exported with
`async` it may answer before (exports(5)). So the facts have an export as a disk of kind `network`, whose cache is
hidden, and an administrator attests it by its id.

A mount that is `soft` or `softerr` gives writes up after a time, with an error to the program; nfs(5) warns of data
corruption, and PostgreSQL's documentation asks for `hard`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..facts.classes import DiskFacts, MountFacts
from ..host.mountinfo import Mount
from ..host.observation import UNKNOWN, Observation, caused
from .blockstack import Layer, Stack
from .disk_kinds import MACHINE_HIDES, NETWORK
from .shown_options import HIDDEN, without_login

TYPES = ("nfs", "nfs4")
TRANSPORT = "nfs"
HARD = "hard"
#: What the client does when the server does not answer: the options of that name, nfs(5).
RECOVERIES = (HARD, "soft", "softerr")
#: By its protocol the client sends COMMIT at each fsync.
_COMMIT = "NFS"


def is_nfs(fstype: str) -> bool:
    """Return whether a file system type is NFS, of any version."""
    return fstype in TYPES


def name_of(source: str) -> str:
    """Return the name that an export has among the disks, which is its id too, and unique."""
    return f"{TRANSPORT}:{shown_source(_plain(source))}"


def shown_source(source: str) -> str:
    """Return an export that is mounted, without a login before its server. A path on the server holds none."""
    server, colon, path = source.partition(":/")
    return f"{without_login(server)}{colon}{path}"


def is_export(disk: DiskFacts) -> bool:
    """Return whether the facts of a disk are those of an export: no name of the kernel's has a colon."""
    return str(disk["name"]).startswith(f"{TRANSPORT}:")


def is_same(spec: str, source: str) -> bool:
    """Return whether two names, of fstab and of the mount table, are of one export."""
    return _plain(spec) == _plain(source)


def stack(mount: Mount) -> Stack:
    """Return the stack below an NFS mount: the export, as a disk."""
    return Stack((Layer(name_of(mount.source), "disk", "NFS export"),), (name_of(mount.source),))


def running(mount: Mount) -> dict[str, Observation]:
    """Return the settings of an NFS mount as they are in force."""
    source = "/proc/self/mountinfo"
    return {
        "barrier": Observation("on", _COMMIT),
        "data_mode": Observation("none", "file system"),
        "recovery": _recovery(mount.super_options, UNKNOWN, source),
    }


def persisted(options: tuple[str, ...], source: str) -> dict[str, Observation]:
    """Return what options make of the settings at the next boot; hard is nfs(5)'s default."""
    return {
        "barrier": Observation("on", source),
        "data_mode": Observation("none", source),
        "recovery": _recovery(options, HARD, source),
    }


def exports(mounts: Iterable[MountFacts]) -> list[DiskFacts]:
    """Return the facts of all exports below mounts, each once, in the shape of a disk's."""
    names = {name for mount in mounts if is_nfs(mount["fstype"]) for name in mount["disks_seen"]}
    return [_export(name) for name in sorted(names)]


def _export(name: str) -> DiskFacts:
    hidden = caused(UNKNOWN, "an NFS export", MACHINE_HIDES)
    none = Observation("none", "an NFS export")
    unset = Observation("unset", "an NFS export")
    observed = {
        "rotational": hidden,
        "write_cache.device": hidden,
        "write_cache.kernel": Observation("write back", _COMMIT),
        "write_cache.persisted": unset,
        "write_cache.volatile": hidden,
        "fua": Observation("unsupported", "an NFS export"),
        "fua_efficient": Observation("no", "an NFS export"),
        "sector.logical": hidden,
        "sector.physical": hidden,
        "scheduler.running": none,
        "scheduler.persisted": unset,
        "readahead.running": hidden,
        "readahead.persisted": unset,
    }
    return {
        "name": name,
        "id": name,
        "kind": NETWORK,
        "transport": TRANSPORT,
        "control": "none",
        "model": None,
        "serial": None,
        "switchable": "no",
        "multipath": "no",
        "raid": None,
        "place": "nfs",
        "flush_blocked_by": [],
        "flush": "done",
        "rotational": hidden.value,
        "fua": observed["fua"].value,
        "fua_efficient": observed["fua_efficient"].value,
        "write_cache": {
            "device": hidden.value,
            "kernel": observed["write_cache.kernel"].value,
            "persisted": unset.value,
            "volatile": hidden.value,
        },
        "sector": {"logical": hidden.value, "physical": hidden.value},
        "scheduler": {"running": none.value, "available": [], "persisted": unset.value},
        "readahead": {"running": hidden.value, "persisted": unset.value},
        "evidence": {
            "id": {"value": name, "source": "/proc/self/mountinfo", "reason": None},
            "kind": Observation(NETWORK, "/proc/self/mountinfo").as_dict(),
            **{field: value.as_dict() for field, value in observed.items()},
        },
    }


def _recovery(options: Iterable[str], otherwise: str, source: str) -> Observation:
    """Return the last recovery option; `otherwise` if there is none."""
    reported = [option for option in options if option in RECOVERIES]
    if HIDDEN in options:
        return caused(UNKNOWN, source, "nfs_hidden_option")
    word = reported[-1] if reported else otherwise
    return caused(UNKNOWN, source, "nfs_no_recovery") if word == UNKNOWN else Observation(word, source)


def _plain(source: str) -> str:
    return source.rstrip("/") if not source.endswith(":/") else source
