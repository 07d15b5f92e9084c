# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`keep`: a setting is left as it is found, and judged by what its profile promises."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.profiles import KEEP, BadInput, choose

from ...fakes.runs import (
    OWN,
    attested,
    enforce,
    look,
    settled,
)
from ...fakes.small_host import SmallHost
from .test_engines import instance, judged

PG = ["/srv/pgdata"]
ALL = ("write_cache", "barrier", "data_mode", "engines")


def seen(host: SmallHost, rests_on: str = "flush", **changes: Any) -> dict[str, Any]:
    """Return the assessment of a host with a profile of its own."""
    own = {"ours": {**OWN, "rests_on": rests_on, **changes}}
    return look(host, "ours", mounts=PG, own=own, accept_data_loss=True)


def row(found: dict[str, Any], setting: str) -> dict[str, Any]:
    """Return the row of a setting."""
    (one,) = [each for each in found["settings"] if each["setting"] == setting]
    return one


def bare() -> SmallHost:
    """Return a host with barriers off, now and at boot."""
    host = settled("flush", mounts=PG)
    host.mounts["/srv/pgdata"].barrier = "off"
    host.files["/etc/fstab"] = host.read("/etc/fstab").replace("barrier=1", "barrier=0")
    return host


@pytest.mark.parametrize("rests_on", ["flush", "nothing"])
def test_a_profile_that_keeps_all_changes_nothing_of_safety(rests_on: str) -> None:
    for host in (SmallHost(), bare(), settled("strict", mounts=PG)):
        found = seen(host, rests_on, **dict.fromkeys(ALL, KEEP))
        assert [change for change in found["changes"] if change["setting"] != "kernel_cache_mode"] == []


def test_barriers_that_are_kept_off_are_at_risk_all_the_same() -> None:
    assert seen(bare())["plan"]["tighten"]
    found = seen(bare(), barrier=KEEP)
    assert (found["verdict"], found["changes"]) == ("at_risk", [])
    reported = row(found, "barrier")
    assert (reported["verdict"], reported["wanted_running"], reported["phase"]) == (
        "drift_running",
        "on",
        None,
    )
    assert reported["remedy"] == "set barrier to on, or give barrier a value other than keep in profile ours"
    assert reported["remedy"] in found["why"][0]
    settled_host = settled("flush", mounts=PG)
    assert row(seen(settled_host, barrier=KEEP), "barrier")["verdict"] == "ok"


def test_a_cache_is_not_turned_on_over_barriers_that_are_kept_off() -> None:
    host = settled("strict", mounts=PG)
    assert seen(host)["plan"]["loosen"]
    host.mounts["/srv/pgdata"].barrier = "off"
    found = seen(host, barrier=KEEP)
    assert found["plan"]["loosen"] == {}
    assert [(need["name"], need["target"]) for need in found["requirements"] if need["state"] == "unmet"] == [
        ("barriers_on", "/srv/pgdata")
    ]
    enforce(host, found)
    assert host.disk("sda").cache == "disabled"


def test_where_nothing_is_promised_whatever_is_there_will_do() -> None:
    found = seen(bare(), "nothing", **dict.fromkeys(ALL, KEEP))
    assert found["verdict"] == "accepted_loss"
    assert {row(found, name)["verdict"] for name in ("barrier", "data_mode", "write_cache")} == {"ok"}


@pytest.mark.parametrize(("cache", "verdict"), [("enabled", "drifted"), ("disabled", "durable")])
def test_a_cache_that_is_kept_has_to_be_off_where_the_promise_rests_on_the_device(
    cache: str, verdict: str
) -> None:
    host = settled("strict" if cache == "disabled" else "flush", mounts=PG)
    found = seen(host, "device", write_cache=KEEP)
    assert (found["verdict"], found["changes"]) == (verdict, [])
    assert row(found, "write_cache")["wanted_running"] == "disabled"


@pytest.mark.parametrize("profile", ["strict", "flush"])
def test_elsewhere_a_cache_that_is_kept_may_be_as_it_is(profile: str) -> None:
    found = seen(settled(profile, mounts=PG), write_cache=KEEP)
    assert (found["verdict"], found["changes"]) == ("durable", [])
    assert row(found, "write_cache")["wanted_running"] == KEEP


def test_a_cache_nobody_can_read_is_unknown_also_when_it_is_kept() -> None:
    host = settled("flush", mounts=PG)
    host.commands[("hdparm", "-W", "/dev/sda")] = "what?\n"
    assert seen(host, write_cache=KEEP)["verdict"] == "unknown"


def test_a_lie_about_a_cache_that_is_kept_is_mended() -> None:
    host = settled("flush", mounts=PG)
    host.disk("sda").cache_mode = "write through"
    found = seen(host, write_cache=KEEP)
    assert found["verdict"] == "at_risk"
    assert found["plan"]["raise"] == {"write_cache": [{"disk": host.disk("sda").id, "state": "keep"}]}


def test_an_engine_that_is_kept_loses_commits_at_its_owner_s_risk_only_where_nothing_is_promised() -> None:
    unsafe = {"running": {"synchronous_commit": "off"}, "persisted": {"synchronous_commit": "off"}}
    own = {"ours": {**OWN, "engines": KEEP}, "fast": {**OWN, "engines": KEEP, "rests_on": "nothing"}}
    found = judged(instance(**unsafe), profile="ours", own=own)
    assert found["verdict"] == "at_risk"
    assert "postgresql" not in found["plan"]["tighten"]
    assert found["plan"]["loosen"] == {}
    found = judged(instance(**unsafe), profile="fast", own=own, accept_data_loss=True)
    assert {each["verdict"] for each in found["settings"] if each["layer"] == "postgresql"} == {"ok"}
    for words in (unsafe, {}):
        found = judged(instance(**words), profile="fast", own=own, accept_data_loss=True)
        assert [change for change in found["changes"] if change["layer"] == "postgresql"] == []


def test_a_commit_delay_is_not_what_engines_keep() -> None:
    own = {"ours": {**OWN, "engines": KEEP, "commit_delay": "short"}}
    found = judged(
        instance("faircom", running={"COMMIT_DELAY": "50"}, persisted={"COMMIT_DELAY": "50"}),
        profile="ours",
        own=own,
    )
    assert [change["setting"] for change in found["changes"] if change["layer"] == "faircom"] == [
        "COMMIT_DELAY"
    ]


@pytest.mark.parametrize("setting", ["write_cache", "barrier"])
def test_what_a_guard_takes_away_is_not_kept(setting: str) -> None:
    with pytest.raises(BadInput, match="'keep' with rests_on 'ups'"):
        choose("ours", {}, {"ours": {**OWN, "rests_on": "ups", setting: KEEP}}, {})


def test_to_keep_what_a_profile_wants_stricter_is_weaker() -> None:
    kept = {"overrides": {"write_cache": KEEP}}
    host = settled("flush", mounts=PG)
    own = {"ours": {**OWN, "write_cache": "disabled"}}
    found = look(host, "ours", mounts=PG, own=own, **kept)
    assert [need["name"] for need in found["requirements"] if need["state"] == "unmet"] == [
        "override_attested"
    ]
    assert look(host, "ours", mounts=PG, own=own, attestations=[attested()], **kept)["verdict"] == "attested"
    # What is judged as before is not weaker.
    assert [need["state"] for need in look(host, "strict", mounts=PG, **kept)["requirements"]] == ["met"]
