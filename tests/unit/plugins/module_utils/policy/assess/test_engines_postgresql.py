# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a profile wants of PostgreSQL where there is more to it than one right word."""

from __future__ import annotations

import pytest

from .test_engines import instance, judged, row


@pytest.mark.fact(50)
@pytest.mark.parametrize("word", ["local", "remote_write", "remote_apply"])
def test_the_stricter_word_stays_where_the_other_one_drifts(word: str) -> None:
    for drift, stays in (("running", "persisted"), ("persisted", "running")):
        found = judged(
            instance(**{drift: {"synchronous_commit": "off"}, stays: {"synchronous_commit": word}})
        )
        (target,) = found["plan"]["tighten"]["postgresql"]
        assert target["settings"] == {"synchronous_commit": word}
        assert row(found, "synchronous_commit")["wanted_running"] == word


def test_what_cannot_be_read_is_never_wanted() -> None:
    unreadable = {"fsync": "unknown"}
    found = judged(instance(running=unreadable, persisted={"fsync": "off"}))
    assert row(found, "fsync")["wanted_running"] == "on"
    found = judged(instance(state="stopped", persisted={"fsync": "off"}))
    assert (row(found, "fsync")["wanted_running"], row(found, "fsync")["wanted_persisted"]) == ("on", "on")


@pytest.mark.fact(35)
@pytest.mark.fact(53)
def test_what_is_owed_a_flush_is_at_risk_and_flushed() -> None:
    found = judged(instance(running={"fsync": "unflushed"}))
    assert found["verdict"] == "at_risk"
    assert row(found, "fsync")["verdict"] == "drift_running"
    assert "while it was off may not be on disk" in row(found, "fsync")["why"]
    assert found["plan"]["tighten"]["postgresql"] == [{"instance": "main", "settings": {"fsync": "on"}}]
    assert "pg_amcheck" in str(found)
    found = judged(instance(state="stopped", persisted={"fsync": "unflushed"}))
    assert row(found, "fsync")["verdict"] == "drift_persisted"
    assert "may not be on disk" in row(found, "fsync")["why"]


def test_what_the_command_line_has_fixed_waits_for_a_restart() -> None:
    pinned = {**instance(running={"fsync": "off"}), "pending_restart": ["fsync"]}
    found = judged(pinned)
    assert (row(found, "fsync")["verdict"], found["verdict"]) == ("pending", "at_risk")
    assert found["plan"]["tighten"].get("postgresql", []) == []
    assert "durable_allow: [restart_engines]" in row(found, "fsync")["remedy"]
    # With the files wrong as well these are written first.
    both = {**instance(running={"fsync": "off"}, persisted={"fsync": "off"}), "pending_restart": ["fsync"]}
    assert row(judged(both), "fsync")["verdict"] == "drift_persisted"
