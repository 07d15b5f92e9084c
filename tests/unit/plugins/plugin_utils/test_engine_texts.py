# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No text of a host's engine facts is shown as this collection's advice: it is in quotes, or not shown."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect as storage_of

from ..module_utils.fakes.runs import NOW, inputs, settled
from ..module_utils.policy.assess.test_every_fact_counts import ENGINES, PG, green_engines, nodes
from .advice import expect_quoted


def as_it_is(_instance: dict[str, Any]) -> None:
    pass


def wrong(instance: dict[str, Any]) -> None:
    """Give all settings and databases a value that no profile accepts."""
    for row in instance["settings"].values():
        row.update(running="off", persisted="off", held=None)
    for row in instance.get("databases", ()):
        row.update(forced_writes="off", running="off")


def unread(instance: dict[str, Any]) -> None:
    """Have all values of an instance unknown, each for a reason."""
    for row in instance["settings"].values():
        row.update(running="unknown", persisted="unknown", reason="x")
    for row in instance.get("databases", ()):
        row.update(forced_writes="unknown", running="unknown", reason="x")
    for name in ("config", "observation", "configuration", "log_directories", "directories", "namespace"):
        instance["evidence"][name] = {"source": "x"}
    instance["evidence"].update(next_preloads={"source": "x"}, start_arguments={"source": "x"})
    for row in instance["evidence"].values():
        row.update(value="unknown", reason="x")
    instance.update(version="unknown", managed_by="unknown", namespace="unknown", state="unknown")


def noted(instance: dict[str, Any]) -> None:
    """Give an instance what only few have: warnings, and settings of roles."""
    for name in ("slips", "damage", "line_ends", "delayed_durability"):
        instance["evidence"][name] = {"value": "seen", "source": "x", "reason": "x"}
    name = next(iter(instance["settings"]), "fsync")
    row = {"scope": "x", "setting": name, "value": "off", "source": "x", "permission": None}
    for cause in ("role", "role_of_primary", "session", "option"):
        instance["overrides"].append({**row, "cause": cause, "role": "x", "database": "x"})
    instance["preloads"] = ["x"]
    instance["evidence"]["preloads"] = {"value": "x", "source": "x", "reason": None}


def refused(instance: dict[str, Any]) -> None:
    """Have no run set a setting, for reasons that the host reports as texts."""
    for row in instance["settings"].values():
        row.update(
            running="off",
            persisted="off",
            held={"fix": "refusal", "parameters": {"text": "x"}},
            refused={"cause": "error", "parameters": {"error": "x"}},
        )


def old(instance: dict[str, Any]) -> None:
    """Give an instance a build that does not do what its settings say, and files that are open in the wrong way."""
    for name, row in instance["settings"].items():
        row.update(
            running="0" if name == "alternatewritethrough" else "1" if name == "writethrough" else "on"
        )
    instance["version"] = {"faircom": "9.5.1.1 build 100000", "mssql": "14.0.1.1"}.get(
        instance["engine"], instance["version"]
    )
    instance["evidence"]["version"] = {"value": instance["version"], "source": "x", "reason": None}
    instance["evidence"]["write_through"] = {"value": "no", "source": "x", "reason": "x"}


def nowhere(instance: dict[str, Any]) -> None:
    """Have files and directories of an instance on no known file system."""
    for row in instance["files"]:
        row.update(directory="x", device="9:9", example="x")
    instance["directories"] = ["/proc/50/root/x", "/x"]
    instance["evidence"]["files"] = {"value": "partial", "source": "x", "reason": "x"}


def contained(instance: dict[str, Any]) -> None:
    """Have a container run an instance whose settings are wrong."""
    wrong(instance)
    instance.update(managed_by="container", namespace="container", root="/proc/50/root")
    instance["evidence"]["managed_by"] = {"value": "container", "source": "x", "reason": None}


def stopped(instance: dict[str, Any]) -> None:
    """Have an instance stopped, whose next start has wrong settings, by a manager that is unknown."""
    wrong(instance)
    for row in instance["settings"].values():
        row.update(running="stopped", **{"from": "x", "by": "x"})
    instance.update(state="stopped", pids=[], managed_by="unknown", preloads=[])
    instance["evidence"]["managed_by"] = {"value": "unknown", "source": "x", "reason": "x"}


STATES = (as_it_is, wrong, unread, noted, refused, old, nowhere, contained, stopped)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", ENGINES)
def test_a_sentence_in_the_place_of_any_text_is_never_advice(kind: str, state: Any) -> None:
    storage = storage_of(settled("strict", mounts=[PG]), NOW)
    engines = {**green_engines(kind), "boot_id": storage["boot_id"]}
    state(engines["engines"][0])
    engines["unattributed"] = [{"pid": 7, "name": "x", "why": "x"}, {"pid": None, "name": "x", "why": "x"}]
    engines["writers"] = [{"pid": 8, "name": "x", "device": "8:1", "example": "x"}]
    given = inputs("strict", mounts=[PG])
    assert expect_quoted(engines, nodes(engines), lambda: assess(given, storage, NOW, engines))


NO_FILES = {"cause": "files_unknown", "parameters": {}}


def with_causes(place: str, causes: Any) -> dict[str, Any]:
    """Return the assessment of a host with causes at a place of its engine facts."""
    storage = storage_of(settled("strict", mounts=[PG]), NOW)
    engines = {**green_engines("firebird"), "boot_id": storage["boot_id"]}
    instance = engines["engines"][0]
    engines["unattributed"] = [{"pid": 7, "name": "x", "why": None}]
    instance["evidence"]["files"] = {"value": "unknown", "source": "x", "reason": None}
    if place == "evidence":
        instance["evidence"]["files"].update(causes[0])
    else:
        row = {
            "process": engines["unattributed"][0],
            "database": instance["databases"][0],
            "setting": next(iter(instance["settings"].values())),
        }[place]
        row.update(causes=causes)
        if place == "database":
            row.update(forced_writes="unknown", running="unknown")
    return assess(inputs("strict", mounts=[PG]), storage, NOW, engines)


@pytest.mark.parametrize("place", ["process", "database", "evidence"])
def test_the_report_has_the_sentence_of_a_cause(place: str) -> None:
    found = with_causes(place, [NO_FILES])
    assert any("its files are unknown" in each["reason"] for each in found["reasons"])


@pytest.mark.parametrize("place", ["process", "database", "setting", "evidence"])
def test_an_unknown_cause_is_not_understood_and_never_safe(place: str) -> None:
    found = with_causes(place, [{"cause": "made_up", "parameters": {}}])
    (reason,) = found["reasons"]
    assert (found["verdict"], reason["id"]) == ("unknown", "host.facts")
