# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of a host that nobody has pinned: what is at risk now, and which profile to pin."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ansible_collections.durable.dbhost.plugins.module_utils.host.printable import is_plain
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import ratings as rated
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show import recommendation
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.page import render
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ...fakes.fleet import exposed, report
from ...fakes.runs import (
    NOW,
    OWN,
    attested,
    enforce,
    inputs,
    look,
    settled,
)
from ...fakes.small_host import SmallHost

FEWEST = "of the profiles with this verdict, it relies on the fewest assumptions"
GUEST = "this guest cannot verify its hypervisor"
CHANGE = {"layer": "mount_options", "target": "/srv", "setting": "barrier", "wanted": "on"}


def rating(after: str, verdict: str = "drifted", **given: Any) -> dict[str, Any]:
    """Return what a profile would take."""
    return {"verdict": verdict, "after": after, "changes": [CHANGE], "unmet": [], "why": [], **given}


def test_a_host_that_loses_commits_is_at_risk_though_nobody_has_pinned_it() -> None:
    found = exposed(1)
    assert (found["verdict"], found["profile"], found["fails"], found["steps"]) == ("at_risk", None, True, [])
    assert found["why"][0] == (
        "commits since the last flush on sda can be lost: /srv/pgdata is mounted without barriers;"
        " pin a profile, then run harden_db"
    )
    assert found["why"][-1].startswith(
        "no durable_profile is pinned: nothing is changed; set durable_profile"
    )
    assert "at_risk        1  db1\n" in render([report("db1", found)])


def test_what_may_pass_is_the_user_s_choice() -> None:
    machine = SmallHost()
    machine.mounts["/srv/pgdata"].barrier = "off"
    found = assess(inputs(None, fail_on=["unreachable"]), collect(machine, NOW), NOW)
    assert (found["verdict"], found["fails"]) == ("at_risk", False)


def test_what_cannot_be_read_of_databases_is_unknown_and_of_a_host_without_them_nothing() -> None:
    machine = SmallHost()
    machine.files["/proc/fs/ext4/sda1/options"] = ""
    found = assess(inputs(None), collect(machine, NOW), NOW)
    assert found["verdict"] == "unknown"
    assert any("/srv/pgdata" in why for why in found["why"])
    without = assess(inputs(None, mounts=[]), collect(machine, NOW), NOW)
    assert (without["verdict"], without["fails"]) == ("not_managed", False)


@pytest.mark.parametrize(("word", "said"), [("docker", True), ("lxc", True), ("kvm", False), ("none", False)])
def test_a_container_is_told_to_be_one(word: str, said: bool) -> None:
    machine = SmallHost()
    machine.commands[("systemd-detect-virt",)] = f"{word}\n"
    warnings = look(machine)["warnings"]
    assert any(f"this is a container ({word})" in each for each in warnings) is said


def test_a_host_that_is_safe_is_not_managed_and_told_which_profile_fits() -> None:
    words = [attested("host_honours_flush")]
    machine = settled("strict", attestations=words)
    found = look(machine, None, attestations=words)
    assert found["verdict"] == "not_managed"
    assert found["recommendation"]["profile"] == "strict"
    assert found["ratings"]["strict"]["after"] == "attested"


def test_a_host_that_is_pinned_as_it_is_told_ends_as_it_is_told() -> None:
    machine = SmallHost()
    machine.mounts["/srv/pgdata"].barrier = "off"
    reported = look(machine, None)
    profile = reported["recommendation"]["profile"]
    assert reported["ratings"][profile]["verdict"] == "at_risk"
    enforce(machine, look(machine, profile))
    machine.reboot()
    assert look(machine, profile)["verdict"] == reported["ratings"][profile]["after"] == "unverified"


@pytest.mark.parametrize(
    ("ratings", "best", "also"),
    [
        ({"strict": rating("unverified"), "flush": rating("durable")}, "flush", []),
        ({"strict": rating("durable"), "flush": rating("durable")}, "strict", ["flush"]),
        ({"strict": rating("blocked"), "flush": rating("unverified")}, "flush", []),
        ({"disposable": rating("durable"), "flush": rating("attested")}, "flush", []),
    ],
)
def test_the_one_that_ends_best_is_told_and_of_equals_the_one_that_rests_on_least(
    ratings: dict[str, Any], best: str, also: list[str]
) -> None:
    found = recommendation.of(ratings, ("strict", "flush", "ups"), ())
    assert found is not None
    assert (found["profile"], found["also"]) == (best, also)


@pytest.mark.parametrize(
    ("after", "is_virtual", "also", "choice"),
    [
        ("unverified", True, ["flush"], [FEWEST, GUEST]),
        ("unverified", False, ["flush"], [FEWEST]),
        ("attested", True, ["flush"], [FEWEST]),
        ("unverified", True, [], []),
    ],
)
def test_a_choice_between_profiles_with_one_verdict_has_a_reason(
    after: str, is_virtual: bool, also: list[str], choice: list[str]
) -> None:
    ratings = {name: rating(after) for name in ("strict", *also)}
    found = recommendation.of(ratings, ("strict", "flush"), (), is_virtual=is_virtual)
    assert found is not None
    assert [why for why in found["why"] if why in (FEWEST, GUEST)] == choice


def test_the_guest_of_a_hypervisor_is_known_by_the_disks_of_its_databases() -> None:
    on_virtual = look(SmallHost(), None, mounts=["/srv/maria"])["recommendation"]["why"]
    assert [why for why in on_virtual if why in (FEWEST, GUEST)] == [FEWEST, GUEST]
    machine = SmallHost()
    # Its root is on a virtual disk.
    found = look(machine, None, mounts=["/srv/pgdata"])["recommendation"]
    assert (found["also"], GUEST in found["why"]) == (["flush"], False)


def test_of_profiles_with_one_verdict_the_basis_with_the_fewest_assumptions_is_recommended() -> None:
    own = {
        name: {**OWN, "rests_on": basis} for name, basis in (("a", "ups"), ("b", "flush"), ("c", "device"))
    }
    own["c"]["write_cache"] = "disabled"
    names = list(rated.promising_of(inputs(None, own=own)))
    assert names == ["strict", "c", "flush", "b", "protected", "ups", "a"]


def test_a_rating_states_a_withheld_setting_once() -> None:
    why = look(SmallHost(), None)["ratings"]["disposable"]["why"]
    assert [text for text in why if text.startswith("/srv/pgdata barrier: off is withheld")]
    assert not [text for text in why if "barrier is on" in text]


def test_a_rating_and_its_recommendation_have_only_reasons_that_a_run_does_not_fix() -> None:
    machine = SmallHost()
    machine.mounts["/srv/pgdata"].barrier = "off"
    found = look(machine, None)
    rating = found["ratings"]["strict"]
    assert (rating["verdict"], rating["after"]) == ("at_risk", "unverified")
    assert rating["why"]
    by_hand = [why for why in found["recommendation"]["why"] if why.startswith("to do by hand: ")]
    assert by_hand == [f"to do by hand: {why}" for why in rating["why"]]
    assert not [why for why in (*rating["why"], *by_hand) if "without barriers" in why]


@pytest.mark.parametrize("after", ["at_risk", "blocked", "unknown", "drifted"])
def test_a_profile_that_a_run_does_not_reach_is_not_told(after: str) -> None:
    assert recommendation.of({"strict": rating(after)}, ("strict",), ()) is None


def test_the_reason_names_disks_engines_and_what_is_left() -> None:
    engine = {"layer": "postgresql", "target": "15/main", "setting": "fsync", "wanted": "on"}
    given = rating(
        "unverified",
        "at_risk",
        changes=[CHANGE, CHANGE, engine],
        why=["attest it"],
    )
    found = recommendation.of({"strict": given}, ("strict",), ())
    assert found is not None
    assert found["why"] == [
        "with this profile: at_risk now, unverified after a run",
        "a run sets on disks and mounts: barrier on (2)",
        "a run sets on engines: fsync on (1)",
        "to do by hand: attest it",
    ]


@pytest.mark.parametrize(
    "mount", ["/srv/pgdata", "/srv/{{ 7 * 7 }}", '/srv/"\n- x: y', "/srv/# a\u202e", "/srv/!x: [1"]
)
def test_the_lines_to_paste_say_nothing_but_the_names(mount: str) -> None:
    """Whoever mounts something on a host does not write the inventory of its owner."""
    found = recommendation.of({"strict": rating("durable")}, ("strict",), (mount,))
    assert found is not None

    class Loader(yaml.SafeLoader):
        """As Ansible reads variables: what is `!unsafe` is never evaluated."""

    Loader.add_constructor("!unsafe", lambda loader, node: ("unsafe", loader.construct_scalar(node)))
    # Of a name that Ansible would evaluate alone: other readers of YAML refuse the tag.
    wanted = mount if is_plain(mount) else ("unsafe", mount)
    assert yaml.load("\n".join(found["group_vars"]), Loader) == {
        "durable_profile": "strict",
        "durable_mounts": [wanted],
    }
    assert ("{{" in mount) <= isinstance(wanted, tuple)
    assert all(row.isascii() and row.isprintable() for row in found["group_vars"])
