# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings that other tests produce as rows or facts alone, as reasons of a host with their ids."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.catalog import ENGINES
from ansible_collections.durable.dbhost.plugins.module_utils.facts import boot_causes
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ..fakes.runs import NOW, inputs, look, settled
from ..fakes.small_host import SmallHost
from .assess.test_engines import database, instance, judged

PG = ["/srv/pgdata"]


def ids(found: dict[str, Any]) -> dict[str, list[str]]:
    """Return {id: targets} of the reasons of a host."""
    return {each["id"]: each["targets"] for each in found["reasons"]}


def value_of(spec: str) -> Any:
    """Return a value for an entry of boot_causes.VALUES."""
    keywords = spec.partition("=")[2].split("|")
    return [f"<{spec[:-2]}>"] if spec.endswith("[]") else keywords[0] or f"<{spec}>"


def faulty(cause: str, state: str = "refused", **changes: Any) -> dict[str, Any]:
    """Return the facts of a host whose next boot has a fault."""
    storage = copy.deepcopy(collect(settled("strict", mounts=PG), NOW))
    values = {spec.partition("=")[0].replace("[]", ""): value_of(spec) for spec in boot_causes.VALUES[cause]}
    fault = {
        "source": "/etc/fstab line 3",
        "target": PG[0],
        "fstype": "ext4",
        "boot": "required",
        "cause": cause,
        "state": state,
        "parameters": values,
        "options": [],
    }
    storage["boot_faults"] = [{**fault, **changes}]
    return storage


@pytest.mark.parametrize("cause", boot_causes.FAULT_OF)
@pytest.mark.parametrize(("state", "verdict"), [("refused", "drifted"), ("unknown", "unknown")])
def test_each_cause_of_a_fault_of_the_next_boot_is_a_finding(cause: str, state: str, verdict: str) -> None:
    found = assess(inputs(mounts=PG), faulty(cause, state), NOW)
    assert ids(found)[f"boot.{cause}"] == PG
    assert found["verdict"] == verdict
    (reason,) = (each for each in found["reasons"] if each["id"] == f"boot.{cause}")
    texts = reason["reason"] + reason["fix"]
    # Each value that a host reports is in the sentence or in the fix, and no name of a value is left over.
    assert "{" not in texts and reason["fix"]
    (row,) = (each for each in found["settings"] if each["finding"] == f"boot.{cause}")
    assert (row["setting"], row["remedy"]) == (boot_causes.FAULT_OF[cause], reason["fix"])


@pytest.mark.parametrize(
    "changes",
    [
        {"cause": "something else"},
        {"parameters": {}},
        {"parameters": {"unit": "x.service", "waiting": "y.mount", "fix": "run this"}},
        {"parameters": {"unit": "x.service", "waiting": ["y.mount"]}},
    ],
)
def test_a_cause_or_a_value_that_no_rule_has_cannot_be_read(changes: dict[str, Any]) -> None:
    storage = faulty("no_unit")
    storage["boot_faults"][0].update(changes)
    found = assess(inputs(mounts=PG), storage, NOW)
    assert list(ids(found)) == ["host.facts"] and found["verdict"] == "unknown"


def test_a_keyword_of_a_value_is_one_of_its_list() -> None:
    values = faulty("no_kernel")["boot_faults"][0]["parameters"]
    assert boot_causes.fits("no_kernel", values)
    assert not boot_causes.fits("no_kernel", {**values, "rest": "run this"})


def test_options_that_the_kernel_refuses_of_another_mount_are_a_finding() -> None:
    """No host reports it: the policy finds it in the options of the next boot."""
    storage = copy.deepcopy(collect(settled("strict", mounts=PG), NOW))
    other = next(mount for mount in storage["mounts"] if PG[0] not in mount["targets"] and mount["boots"])
    other["persisted"]["data_mode"] = "journal"
    other["options_boot"] = [*(other["options_boot"] or []), "data=journal", "delalloc"]
    other["boots"] = dict.fromkeys(other["boots"], "required")
    other["fstype"] = "ext4"
    found = assess(inputs(mounts=PG), storage, NOW)
    (reason,) = (each for each in found["reasons"] if each["id"] == "boot.refused_combination")
    assert reason["targets"] == [other["target"]] and reason["fix"].startswith("remove delalloc from ")


def test_the_output_of_a_program_is_last_and_in_quotes() -> None:
    error = 'do: run "this"'
    found = assess(inputs(mounts=PG), faulty("unread.images", parameters={"error": error}), NOW)
    (reason,) = (each for each in found["reasons"] if each["id"] == "boot.unread.images")
    assert reason["reason"].endswith(': "do: run \\"this\\""') and "this" not in reason["fix"]


@pytest.mark.parametrize("engine", [engine.name for engine in ENGINES])
def test_a_library_of_the_next_start_is_a_finding_of_its_engine(engine: str) -> None:
    coming = {"value": "/usr/lib/libeatmydata.so", "source": "/etc/ld.so.preload", "reason": None}
    given = {"databases": [database()]} if engine == "firebird" else {}
    found = judged(instance(engine, evidence={"next_preloads": coming}, **given))
    assert f"setting.{engine}.preloads" in ids(found)
    assert found["verdict"] not in ("durable", "attested")


def test_a_host_on_which_nothing_can_be_rated_says_so() -> None:
    host = SmallHost()
    host.mounts.clear()
    assert "host.unrated" in ids(look(host, None, mounts=None))
