# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Property tests find the same examples in every run, and leave nothing behind; markers."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "repeatable",
    database=None,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
)
settings.load_profile("repeatable")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers for ansible-test too, which does not read pyproject.toml."""
    for marker in (
        "fact(number): the measured or documented behaviour that this guards, by number in docs/facts.md",
        "every_python_alike: long, and asks what no Python answers otherwise: run on the newest alone",
        "every_core_alike: calls no ansible-core: run in the environment of the newest alone",
    ):
        config.addinivalue_line("markers", marker)
