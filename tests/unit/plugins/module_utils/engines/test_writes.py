# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An engine's facts name the files that setting it writes."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.catalog import engine
from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import Engines

from ..fakes.fake_postgresql import CONF, DATA
from ..fakes.vendor_host import with_faircom, with_mssql
from .faircom.test_apply import run as run_faircom
from .mariadb.test_apply import bring, exposed, targets
from .mssql.test_apply import FLUSH, WRONG
from .mssql.test_apply import run as run_mssql
from .postgresql.test_apply import RED_HAT, SAFE, unsafe
from .postgresql.test_apply import run as run_postgresql


def told(host: Any, name: str) -> list[str]:
    """Return the files that the facts of the only instance of an engine name."""
    (found,) = Engines(host, (name,)).instances()
    writes = found["writes"]
    assert isinstance(writes, list)
    return writes


def written(host: Any, name: str) -> set[str]:
    """Return the paths that were written except originals and notes."""
    paths = {change[1] for change in host.mutations if change[0] == "file" and "/run/" not in change[1]}
    return paths - set(engine(name).files)


@pytest.mark.parametrize("config", [CONF, RED_HAT])
def test_postgresql(config: str) -> None:
    """Beside a configuration without include directories, a line of that is written too."""
    host = unsafe(config=config)
    before = told(host, "postgresql")
    run_postgresql(host, SAFE, "15/main" if config == CONF else DATA)
    assert written(host, "postgresql") == set(before) == set(told(host, "postgresql"))
    assert (config in before) == (config == RED_HAT)


def test_mariadb() -> None:
    host = exposed()
    before = told(host, "mariadb")
    bring(host, targets())
    assert list(written(host, "mariadb")) == before == told(host, "mariadb")


def test_faircom() -> None:
    host = with_faircom()
    before = told(host, "faircom")
    run_faircom(host, {"LOG_WRITETHRU": "on"})
    assert list(written(host, "faircom")) == before


def test_mssql() -> None:
    host = with_mssql(WRONG)
    (before,) = told(host, "mssql")
    run_mssql(host, FLUSH)
    # The vendor's tool writes it.
    assert written(host, "mssql") == set()
    assert ("change", "sync", before) in host.mutations
