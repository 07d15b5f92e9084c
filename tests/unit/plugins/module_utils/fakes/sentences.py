# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences that the controller has for what a host reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.durable.dbhost.plugins.module_utils.host.observation import Because, Observation
from ansible_collections.durable.dbhost.plugins.module_utils.storage import causes


def sentence(facts: Mapping[str, Any], field: str) -> str:
    """Return why a value of a disk or mount is as it is, '' without a reason."""
    return causes.of_evidence(facts["evidence"][field])["reason"] or ""


def sentence_of(seen: Observation) -> str:
    """Return why an observed value is as it is, '' without a reason."""
    return causes.of_evidence(seen.as_dict())["reason"] or ""


def sentences(found: Iterable[Because]) -> tuple[str, ...]:
    """Return the sentence of each cause."""
    return tuple(causes.text(each.as_dict()) for each in found)
