# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host answers to the controller is of any form: whoever is root there wrote it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.policy.results import assess_results
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ..runs import NOW, inputs, settled
from ..small_host import SmallHost

STRANGE: tuple[Any, ...] = (None, [], 17, "durable", [{}])


@pytest.mark.parametrize("form", STRANGE, ids=repr)
@pytest.mark.parametrize("part", ["storage", "engines", "power"])
@pytest.mark.parametrize("inside", [True, False])
def test_an_answer_of_another_form_is_no_facts(form: Any, part: str, inside: bool) -> None:
    """It costs its own host the verdict, and never the run."""
    # The other profiles ask nothing of a UPS.
    profile = "ups" if part == "power" else "strict"
    host: SmallHost = settled(profile)
    good = {"ansible_facts": {"durable_storage": collect(host, NOW)}}
    strange = {"ansible_facts": {f"durable_{part}": form} if inside else form}
    results = {"storage": good, "engines": None, "power": None, part: strange}
    found = assess_results(inputs(profile), NOW, results["storage"], results["engines"], results["power"])
    assert found["verdict"] == ("blocked" if part == "power" else "unknown")
