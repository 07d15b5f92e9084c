# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which mount holds a path."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.placement import holder

TARGETS = ("/", "/srv", "/srv/pgdata", "/srv/pgdata/wal")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/srv/pgdata", "/srv/pgdata"),
        ("/srv/pgdata/base", "/srv/pgdata"),
        ("/srv/pgdata/wal/1", "/srv/pgdata/wal"),
        # Names that only begin like a mount point's lie beside it.
        ("/srv/pgdata2", "/srv"),
        ("/srv/pgdata2/base", "/srv"),
        ("/srvx", "/"),
        ("/", "/"),
    ],
)
def test_the_longest_parent_holds_a_path(path: str, expected: str) -> None:
    assert holder(path, TARGETS) == expected
    assert holder(path, TARGETS[::-1]) == expected


def test_a_path_below_no_mount_point_has_no_holder() -> None:
    assert holder("/srv/pgdata2", ("/srv/pgdata",)) is None
