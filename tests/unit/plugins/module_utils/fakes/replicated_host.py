# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host whose database lies on DRBD; what drbdsetup says is for the test to add."""

from __future__ import annotations

from typing import Any

from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.storage.drbd import ADJUST

from .fake_devices import FakeLayer
from .runs import NOW, enforce, look
from .small_host import FakeDisk, FakeMount, SmallHost

DATA = "/srv/drbd"


def replicated_host(cache: str = "enabled") -> SmallHost:
    """Return a host whose database lies on /dev/drbd5, over sdg; its resource `pg` is what its configuration says."""
    host = SmallHost()
    host.commands[(*ADJUST, "pg")] = ""
    host.add_disk(FakeDisk("sdg", "sata", "G", cache=cache, cache_mode="write back"), "8:96")
    host.add_layer(FakeLayer("drbd5", "drbd", ("sdg",), "147:5"))
    mount = FakeMount(DATA, "ext4", "147:5", "/dev/drbd5", "drbd5", atime="noatime")
    host.add_mount(mount, f"/dev/drbd5 {DATA} ext4 noatime,noauto 0 0\n")
    return host


def judged(host: SmallHost, profile: str = "flush", *words: dict[str, str]) -> dict[str, Any]:
    """Return the assessment of a host on which a run has set what it may."""
    given = {"mounts": [DATA], "attestations": list(words)}
    enforce(host, look(host, profile, **given))
    return look(host, profile, **given)


def facts(host: SmallHost) -> dict[str, Any]:
    """Return the facts of the mount."""
    found: dict[str, Any] = next(m for m in collect(host, NOW)["mounts"] if m["target"] == DATA)
    return found
