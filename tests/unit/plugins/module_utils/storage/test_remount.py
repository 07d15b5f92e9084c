# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the kernel sends no flush, only a device's own word makes that right; barriers are set alone."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.mountinfo import parse_mountinfo
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.storage.remount import (
    expect_nothing_cached,
    set_barrier,
)

from ..fakes.small_host import BigHost, SmallHost


@pytest.mark.parametrize("cache", ["disabled", "none"])
def test_a_disk_that_says_that_it_caches_nothing_needs_no_flush(cache: str) -> None:
    host = BigHost()
    vars(host.disk("nvme0n1")).update(cache=cache, cache_mode="write through")
    expect_nothing_cached(host, "/srv/x", ["nvme0n1"])


@pytest.mark.parametrize("name", ["sda", "sdc", "nvme0n1", "vdb"])
def test_a_disk_that_caches_needs_one(name: str) -> None:
    host = BigHost()
    host.disk(name).cache_mode = "write through"
    with pytest.raises(ChangeFailed, match=f"/srv/x: .* {name} .* while its cache is enabled"):
        expect_nothing_cached(host, "/srv/x", [name])


def test_a_disk_that_does_not_say_is_not_taken_for_one_that_caches_nothing() -> None:
    """As one without a caching page: the kernel assumes write through."""
    host = BigHost()
    vars(host.disk("sdc")).update(caching_page=False, cache_mode="write through")
    with pytest.raises(
        ChangeFailed, match=r"/srv/x: .* sdc .* while its cache is unknown: raise the cache mode"
    ):
        expect_nothing_cached(host, "/srv/x", ["sdc"])


def test_one_of_several_is_enough() -> None:
    host = BigHost()
    vars(host.disk("sda")).update(cache="disabled", cache_mode="write through")
    with pytest.raises(ChangeFailed, match="sdb"):
        expect_nothing_cached(host, "/srv/x", ["sda", "sdb"])
    expect_nothing_cached(host, "/srv/x", ["sda"])
    expect_nothing_cached(host, "/srv/x", [])


def test_of_a_disk_that_does_not_tell_nothing_is_known() -> None:
    host = SmallHost()
    host.commands[("hdparm", "-W", "/dev/sda")] = Unobservable("hdparm: no answer within 10 s")
    with pytest.raises(ChangeFailed, match="it gets no flush, while its cache is unknown"):
        expect_nothing_cached(host, "/srv/pgdata", ["sda"])


@pytest.mark.parametrize(
    ("target", "value", "option"),
    [
        ("/srv/pgdata", "on", "barrier=1"),
        ("/srv/pgdata", "off", "barrier=0"),
        ("/srv/btrfs", "on", "barrier"),
        ("/srv/btrfs", "off", "nobarrier"),
    ],
)
def test_barriers_are_the_only_option_that_is_set(target: str, value: str, option: str) -> None:
    host = BigHost()
    found = parse_mountinfo(host.read("/proc/self/mountinfo"))
    (mount,) = [mount for mount in found if mount.target == target]
    set_barrier(host, mount, value)
    assert host.mutations == [("options", target, option)]
    assert host.mounts[target].barrier == value
