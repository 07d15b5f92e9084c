# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of each engine. Only the controller assesses: no module of a host imports this file. Pure."""

from __future__ import annotations

from importlib import import_module

from .. import catalog
from ..facts.engines import InstanceFacts
from .rules import Judge

#: By engine. Each `rules.py` is imported by its name: an import statement would send them to each host.
JUDGES: dict[str, Judge] = {
    engine.name: import_module(f"{__package__}.{engine.name}.rules").JUDGE for engine in catalog.ENGINES
}


def judge_of(instance: InstanceFacts) -> Judge:
    """Return the rules that assess an instance of `durable_engines`."""
    return JUDGES[instance["engine"]]
