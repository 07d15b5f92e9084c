# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks that took no flush when barriers came back."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import ChangeFailed, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.remount import expect_nothing_cached

from .small_host import SmallHost


@pytest.mark.parametrize(("cache", "fine"), [("disabled", True), ("enabled", False), ("unknown", False)])
def test_a_disk_that_takes_no_flush_has_to_say_that_it_caches_nothing(cache: str, fine: bool) -> None:
    host = SmallHost()
    if cache == "unknown":
        host.commands["hdparm", "-W", "/dev/sda"] = Unobservable("no answer")
    else:
        host.disk("sda").cache = cache
    if fine:
        expect_nothing_cached(host, "/srv/pgdata", ["sda"])
        return
    with pytest.raises(ChangeFailed, match=f"its cache is {cache}: raise"):
        expect_nothing_cached(host, "/srv/pgdata", ["sda"])
