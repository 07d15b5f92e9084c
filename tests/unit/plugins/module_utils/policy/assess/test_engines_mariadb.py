# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a profile wants of MariaDB and MySQL, beside what their observer tells."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import versions as words
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb.apply import SETTINGS
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb.expected import FULL
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb.rules import JUDGE

from ...fakes.fake_mariadb import MAIN, MariaHost
from .test_engines import instance, judged

VERSIONS = [
    words.release(text) for text in ("10.5.23-MariaDB", "11.4.2-MariaDB", "5.7.44", "8.0.36", "8.4.0")
]


def rows(**given: Any) -> dict[str, str]:
    """Return {setting: verdict} of a MariaDB server."""
    return {row["setting"]: row["verdict"] for row in judged(instance("mariadb", **given))["settings"]}


@pytest.mark.fact(36)
@pytest.mark.parametrize(
    ("running", "persisted", "verdict"),
    [("OFF", "OFF", None), ("OFF", "ON", "drift_running"), ("ON", "OFF", "drift_running")],
)
def test_a_binary_log_that_is_on_now_or_at_the_next_start_has_to_be_flushed(
    running: str, persisted: str, verdict: str | None
) -> None:
    given = {
        "running": {"log_bin": running, "sync_binlog": "0"},
        "persisted": {"log_bin": persisted, "sync_binlog": "0"},
    }
    assert rows(**given).get("sync_binlog") == verdict


def test_a_stopped_server_s_binary_log_is_moot_where_it_will_be_off() -> None:
    stopped = {"state": "stopped", "running": dict.fromkeys(["log_bin", "sync_binlog"], "stopped")}
    off = {"log_bin": "OFF", "sync_binlog": "0"}
    assert "sync_binlog" not in rows(**stopped, persisted=off)
    assert rows(**stopped, persisted={"sync_binlog": "0"})["sync_binlog"] == "drift_persisted"


def test_a_server_that_never_syncs_puts_commits_at_risk() -> None:
    override = {
        "scope": "as it is started",
        "setting": "debug_no_sync",
        "value": "ON",
        "source": "/etc/my.cnf line 2",
        "cause": "option",
        "role": None,
        "database": None,
        "permission": None,
    }
    found = judged(instance("mariadb", flavour="mariadb", overrides=[override]))
    assert found["verdict"] == "at_risk"
    (reported,) = [row for row in found["settings"] if row["target"] == "main as it is started"]
    assert (reported["phase"], reported["verdict"]) == (None, "drift_running")
    assert reported["remedy"] == "remove debug_no_sync from /etc/my.cnf line 2, then restart the server"


@pytest.mark.fact(36)
@pytest.mark.parametrize("word", ["fast", "OFF", "DETECT_ONLY"])
def test_words_of_the_doublewrite_buffer_that_mend_no_page(word: str) -> None:
    found = rows(running={"innodb_doublewrite": word}, persisted={"innodb_doublewrite": word})
    assert found["innodb_doublewrite"] == "drift_persisted"


@pytest.mark.fact(36)
@pytest.mark.parametrize(
    ("word", "verdict"),
    [
        ("fsync", "ok"),
        ("O_DSYNC", "ok"),
        ("O_DIRECT", "ok"),
        # Percona's: its logs are not flushed.
        ("ALL_O_DIRECT", "drift_persisted"),
        ("something new", "drift_persisted"),
    ],
)
def test_only_flush_methods_that_are_known_to_flush_will_do(word: str, verdict: str) -> None:
    found = rows(running={"innodb_flush_method": word}, persisted={"innodb_flush_method": word})
    assert found["innodb_flush_method"] == verdict


@pytest.mark.parametrize("version", VERSIONS, ids=str)
@pytest.mark.parametrize("rules", [JUDGE.full, JUDGE.relaxed])
def test_what_is_wanted_is_a_word_that_the_layer_takes(version: words.Release, rules: Any) -> None:
    for name, rule in rules[version.flavour].items():
        if name == words.NO_SYNC:
            continue
        assert name in SETTINGS
        assert words.word(version, name, rule.value) == rule.value
        assert rule.live is (name in words.LIVE)
        if name in words.names(version) and name != words.REDO:
            assert words.word(version, name, words.default(version, name)) == words.default(version, name)


@pytest.mark.parametrize("version", [version.text for version in VERSIONS if version])
def test_no_observed_server_leaves_a_setting_untold(version: str) -> None:
    """What a version does not show, its evidence says: no rule is without a word."""
    (found,) = collect(MariaHost(version), "now")["engines"]
    reported = {name for name, seen in found["evidence"].items() if seen["value"] == "absent"}
    assert reported.isdisjoint(found["settings"])
    assert set(FULL[found["flavour"]]) <= reported | set(found["settings"])


def test_an_option_that_may_be_given_is_not_taken_for_absent() -> None:
    host = MariaHost("10.11.6-MariaDB")
    host.files[MAIN] += "!includedir relative\n[mariadb\n"
    (found,) = collect(host, "now")["engines"]
    assert found["evidence"]["debug_no_sync"]["value"] == "unknown"


@pytest.mark.parametrize(("word", "phase"), [("1", "loosen"), ("3", "loosen"), ("0", "tighten"), ("2", None)])
def test_to_flush_once_a_second_is_no_loosening_of_what_is_not_even_written(
    word: str, phase: str | None
) -> None:
    name = "innodb_flush_log_at_trx_commit"
    server = instance("mariadb", running={name: word}, persisted={name: word})
    found = judged(server, profile="disposable", accept_data_loss=True)
    (row,) = [row for row in found["settings"] if row["setting"] == name]
    assert row["phase"] == phase


@pytest.mark.parametrize(
    ("word", "means"), [("0", "a crash of the server alone"), ("2", "a power cut loses")]
)
def test_each_word_says_what_it_means(word: str, means: str) -> None:
    name = "innodb_flush_log_at_trx_commit"
    found = judged(instance("mariadb", running={name: word}, persisted={name: word}))
    (row,) = [row for row in found["settings"] if row["setting"] == name]
    assert means in row["why"]
