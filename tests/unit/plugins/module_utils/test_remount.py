# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Barriers are on again only where what takes no flush is known to need none."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import ChangeFailed, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.remount import expect_nothing_cached

from .small_host import BigHost, SmallHost


@pytest.mark.parametrize("cache", ["disabled", "none"])
def test_a_disk_that_caches_nothing_needs_no_flush(cache: str) -> None:
    host = BigHost()
    host.disk("sdc").cache = cache
    expect_nothing_cached(host, "/srv/faircom", ["sdc"])


def test_a_disk_that_caches_needs_one() -> None:
    with pytest.raises(ChangeFailed, match="sends it no flush, while its cache is enabled"):
        expect_nothing_cached(SmallHost(), "/srv/pgdata", ["sda"])


def test_of_a_disk_that_does_not_tell_nothing_is_known() -> None:
    host = SmallHost()
    host.commands[("hdparm", "-W", "/dev/sda")] = Unobservable("hdparm: no answer within 10 s")
    with pytest.raises(ChangeFailed, match="sends it no flush, while its cache is unknown"):
        expect_nothing_cached(host, "/srv/pgdata", ["sda"])
