# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Profile ups: what it rests on, what the guard may do, and that its lease goes when that does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.our_paths import LEASE as PATH
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import ups
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess.guard import (
    Lease,
    is_wider,
    why_not_switched,
)
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess.ups import (
    CONDITIONS,
    nothing_known,
)
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect.managed import mounts_of
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.report import change_line
from ansible_collections.durable.dbhost.plugins.module_utils.rows import VERDICTS
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.ups import findings

from ...fakes.runs import (
    NOW,
    attested,
    enforce,
    expect_cures,
    inputs,
    settled,
)
from ...fakes.small_host import (
    BOOT_ID,
    BigHost,
    FakeMount,
    SmallHost,
)
from ...fakes.told_power import (
    HOOK,
    LEASE,
    WORDS,
    budget,
    condition,
    guard,
    leased,
    power,
    seen,
    without_notify,
)

PG = ("/srv/pgdata",)
NO_PLAN = {"raise": {}, "tighten": {}, "loosen": {}}


def host(barrier: str = "on", lease: bool = True) -> SmallHost:
    """Return a host that is settled under ups, with or without a lease's file, its barriers as reported."""
    found = settled("ups", mounts=PG)
    found.mounts["/srv/pgdata"].barrier = barrier
    if lease:
        found.files[PATH] = "{}"
    return found


def judged(
    machine: SmallHost,
    reported: dict[str, Any] | None,
    profile: str = "ups",
    words: Any = WORDS,
    **given: Any,
) -> dict[str, Any]:
    """Return the assessment of a host, of which /srv/pgdata is managed."""
    given = {"mounts": PG, **given}
    return expect_cures(
        assess(inputs(profile, attestations=list(words), **given), collect(machine, NOW), NOW, None, reported)
    )


def row(found: dict[str, Any], setting: str, layer: str = "power_guard") -> dict[str, Any]:
    """Return the one row of a layer's setting."""
    (one,) = [row for row in found["settings"] if (row["layer"], row["setting"]) == (layer, setting)]
    assert isinstance(one, dict)
    return one


def states(found: dict[str, Any]) -> dict[str, str]:
    """Return the state of each requirement."""
    return {need["name"]: need["state"] for need in found["requirements"]}


def test_with_all_that_it_rests_on_the_guard_is_leased_and_nothing_else() -> None:
    found = judged(host(lease=False), power())
    assert found["plan"] == {**NO_PLAN, "loosen": {"power_guard": [{"mount": "/srv/pgdata"}]}}
    assert found["lease"] == {name: term for name, term in LEASE.items() if name != "issued"}
    assert found["verdict"] == "drifted"
    assert row(found, "lease")["running"] == "absent"
    assert (row(found, "barrier")["verdict"], row(found, "barrier")["phase"]) == ("tightened", None)
    assert "no lease for it yet" in row(found, "barrier")["why"]
    assert {PATH, "/usr/local/lib/durable-dbhost/guard.pyz"} < set(found["files"])
    json.dumps(found)


@pytest.mark.fact(41)
def test_a_guard_that_is_loose_is_as_wanted_and_rests_on_people() -> None:
    found = judged(host("off"), power(guard=leased()))
    assert (found["verdict"], found["changes"], found["plan"]) == ("attested", [], NO_PLAN)
    barrier = row(found, "barrier")
    assert (barrier["verdict"], barrier["wanted_running"], barrier["wanted_persisted"]) == ("ok", "off", "on")
    assert (barrier["running"], barrier["persisted"]) == ("off", "on")
    assert row(found, "lease")["verdict"] == "ok"
    assert all(state in ("met", "attested") for state in states(found).values())


@pytest.mark.parametrize(
    ("state", "reason"), [("tight", "ONBATT: the UPS is on battery"), ("waiting", "42 s are left")]
)
def test_barriers_that_the_guard_put_back_are_no_drift(state: str, reason: str) -> None:
    found = judged(host(), power(guard=leased(state, reason)))
    assert (found["verdict"], found["fails"], found["changes"]) == ("attested", False, [])
    barrier = row(found, "barrier")
    assert (barrier["verdict"], barrier["wanted_running"], barrier["running"]) == ("tightened", "off", "on")
    assert reason in barrier["why"]
    assert reason in "\n".join(found["why"])


def test_barriers_that_somebody_else_put_back_under_a_loose_guard() -> None:
    found = judged(host("on"), power(guard=leased()))
    assert row(found, "barrier")["verdict"] == "tightened"
    assert "another process enabled them" in row(found, "barrier")["why"]


@pytest.mark.parametrize(
    "reported",
    [
        guard(),
        guard("unknown", "not readable"),
        leased("tight"),
        leased("waiting"),
        leased("stopped"),
        leased("unknown"),
        leased(mounts=["/srv/maria"]),
        leased(expires="2026-01-30"),
    ],
    ids=[
        "no guard",
        "guard not known",
        "tight",
        "waiting",
        "stopped",
        "unknown with a lease",
        "another mount's lease",
        "lease over",
    ],
)
def test_barriers_off_without_a_guard_that_holds_them_lose_commits_and_are_put_back(
    reported: dict[str, Any],
) -> None:
    found = judged(host("off"), power(guard=reported))
    assert found["verdict"] == "at_risk"
    assert found["plan"]["tighten"]["mount_options"] == [
        {"target": "/srv/pgdata", "persist": True, "barrier": "on"}
    ]
    barrier = row(found, "barrier", "mount_options")
    assert (barrier["verdict"], barrier["phase"]) == ("drift_running", "tighten")


def test_a_guard_that_failed_is_a_risk_with_barriers_on_too() -> None:
    """It could count no flush: what was committed before may still be in a cache."""
    found = judged(host(), power(guard=leased("failed", "no flush counted on sda")))
    fix = "run harden_db, which turns barriers on and flushes, then read journalctl -u durable-dbhost-guard"
    assert [each["fix"] for each in found["reasons"] if each["id"] == "risk.guard_failed"] == [fix]
    assert found["verdict"] == "at_risk"
    assert "no flush counted on sda" in found["why"][0]
    assert (row(found, "lease")["running"], row(found, "lease")["phase"]) == ("differs", "loosen")


def test_barriers_off_at_boot_are_drift_and_never_the_guard_s() -> None:
    machine = host("off")
    machine.files["/etc/fstab"] = machine.read("/etc/fstab").replace("noatime", "noatime,barrier=0", 1)
    found = judged(machine, power(guard=leased()))
    assert found["verdict"] == "drifted"
    assert row(found, "barrier", "mount_options")["wanted_persisted"] == "on"
    assert found["plan"]["tighten"]["mount_options"][0]["barrier"] == "on"


@pytest.mark.parametrize("state", ["unmet", "unknown"])
@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.fact(40)
def test_each_condition_alone_blocks_with_its_own_words_and_takes_the_lease_back(
    name: str, state: str
) -> None:
    reported = condition(name, state)
    found = judged(host("off"), power(reported, guard=leased()))
    if (name, state) == ("notify_reaches_guard", "unmet"):
        # This run mends it; until then the guard knows by itself that nobody tells it.
        assert (found["verdict"], list(found["plan"]["tighten"])) == ("drifted", ["power"])
        return
    assert found["verdict"] == "blocked"
    why = findings.CONDITIONS[name].says if state == "unmet" else f'unknown: "saw {name}"'
    assert f"{name} (host): {why}; run systemctl start {name}, and read its journal" in found["why"]
    assert list(found["plan"]["tighten"]) == ["power_guard", "mount_options"]
    assert found["plan"]["tighten"]["power_guard"] == []
    assert found["plan"]["loosen"] == {}
    lease = row(found, "lease")
    assert (lease["wanted_running"], lease["running"], lease["phase"]) == (
        "absent",
        "present",
        "tighten",
    )


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_condition_that_the_facts_do_not_tell_is_unmet(name: str) -> None:
    reported = power()
    reported["conditions"] = [each for each in reported["conditions"] if each["name"] != name]
    found = judged(host(lease=False), reported)
    assert (found["verdict"], states(found)[name]) == ("blocked", "unmet")


@pytest.mark.parametrize(
    ("reported", "why", "fix"),
    [
        (None, "the facts of the UPS were not collected", "collect them with durable.dbhost.power_facts"),
        (
            {**nothing_known(NOW, "no such module"), "boot_id": BOOT_ID},
            '"no such module"',
            "correct what the reason names, then run again",
        ),
    ],
)
def test_without_facts_of_the_ups_nothing_is_leased(reported: Any, why: str, fix: str) -> None:
    found = judged(host(lease=False), reported)
    assert (found["verdict"], states(found)["power_known"], found["lease"]) == ("blocked", "unmet", None)
    assert f"{why}; {fix}" in "\n".join(found["why"])
    assert found["plan"] == NO_PLAN
    # What is there already is taken back all the same.
    assert judged(host(), reported)["plan"]["tighten"] == {"power_guard": []}


@pytest.mark.parametrize("claim", ["ups_rehearsed", "plug_pulled"])
def test_without_somebody_s_word_it_is_blocked(claim: str) -> None:
    words = [word for word in WORDS if word["claim"] != claim]
    found = judged(host("off"), power(guard=leased()), words=words)
    assert (found["verdict"], states(found)[claim]) == ("blocked", "unmet")
    assert f"attestation {claim}" in "\n".join(found["why"])
    assert found["plan"]["tighten"]["power_guard"] == []


@pytest.mark.parametrize("profile", ["ups", "strict"])
def test_a_word_that_is_over_takes_the_lease_back_and_keeps_nothing_from_tightening(profile: str) -> None:
    over = {**attested("ups_rehearsed"), "expires": "2026-01-30"}
    found = judged(host("off"), power(guard=leased()), profile, words=[over, attested("plug_pulled")])
    assert found["verdict"] in ("at_risk", "blocked")
    assert "ups_rehearsed by A. Person expired on 2026-01-30" in "\n".join(found["why"])
    assert found["plan"]["tighten"]["power_guard"] == []
    assert found["plan"]["loosen"] == {}
    fresh = judged(host("off"), power(guard=leased()), profile, words=[attested("plug_pulled")])
    assert found["plan"] == fresh["plan"]
    assert found["power"]["guard"]["state"] == "loose"


def test_a_word_that_is_over_changes_nothing_on_a_host_that_is_not_pinned() -> None:
    over = {**attested("ups_rehearsed"), "expires": "2026-01-30"}
    found = judged(host("off"), power(guard=leased()), None, words=[over])  # type: ignore[arg-type]
    assert (found["verdict"], found["plan"], found["changes"]) == ("at_risk", NO_PLAN, [])
    unmet = {need["name"] for need in found["ratings"]["ups"]["unmet"]}
    assert {"ups_rehearsed", "attestation_in_force"} <= unmet


def test_other_bad_input_changes_nothing() -> None:
    found = judged(host("off"), power(guard=leased()), ups={"quite": 1})
    # Barriers are off, and without the inputs it is unknown what allows that.
    assert (found["verdict"], found["plan"]) == ("at_risk", NO_PLAN)
    assert found["why"][-1].startswith("durable_ups: observed quite; expected only ")


@pytest.mark.parametrize("word", ["kvm\n", "docker\n", ""])
def test_a_guest_needs_a_word_for_the_machine_below(word: str) -> None:
    machine = host(lease=False)
    machine.commands[("systemd-detect-virt",)] = word
    found = judged(machine, power())
    assert (found["verdict"], states(found)["virtual_host_power"]) == ("blocked", "unmet")
    # Where it cannot be reported what this is, its disks must be well too.
    assert ("flush_honoured" in states(found)) is (word == "")
    words = [*WORDS, attested("virtual_host_power"), attested("host_honours_flush")]
    # Nor is it known then what its disks are, and a word about the whole host does not do.
    own = [attested("host_honours_flush", "serial:QEMU_HARDDISK_SATA0001")] if word == "" else []
    assert bool(judged(machine, power(), words=words)["plan"]["loosen"]) is (word != "")
    assert judged(machine, power(), words=[*words, *own])["plan"]["loosen"] == {
        "power_guard": [{"mount": "/srv/pgdata"}]
    }


def test_on_bare_metal_each_disk_has_to_honour_a_flush() -> None:
    given = {"mounts": ["/srv/maria"]}
    machine = settled("ups", **given)
    found = judged(machine, power(), **given)
    assert (found["verdict"], states(found)["flush_honoured"]) == ("blocked", "unmet")
    words = [*WORDS, attested("host_honours_flush")]
    assert states(judged(machine, power(), words=words, **given))["flush_honoured"] == "attested"


@pytest.mark.parametrize("state", ["unmet", "unknown"])
@pytest.mark.fact(38)
def test_a_ups_that_is_made_up_counts_for_a_test_only(state: str) -> None:
    words = [*WORDS, attested("test_ups")]
    words[-1]["expires"] = "2026-02-20"
    found = judged(host(lease=False), power(condition("driver_real", state)), words=words)
    if state == "unknown":
        assert found["verdict"] == "blocked"
        return
    assert states(found)["driver_real"] == "attested"
    assert (found["lease"]["test_ups"], found["lease"]["expires"]) == (True, "2026-02-20")
    # A UPS that is real stands on no such word.
    assert judged(host(lease=False), power(), words=words)["lease"] == {
        **{name: term for name, term in LEASE.items() if name != "issued"},
        "test_ups": False,
    }


def test_the_lease_ends_with_the_first_word_that_it_stands_on_and_a_renewed_one_counts() -> None:
    soon = {**attested("plug_pulled"), "expires": "2026-03-01"}
    assert (
        judged(host(), power(), words=[attested("ups_rehearsed"), soon])["lease"]["expires"] == "2026-03-01"
    )
    words = [attested("ups_rehearsed"), soon, attested("plug_pulled")]
    assert judged(host(), power(), words=words)["lease"]["expires"] == "2026-06-30"


@pytest.mark.parametrize(
    ("changes", "term"),
    [
        ({"expires": "2026-05-01"}, "expires"),
        ({"quiet": 10}, "quiet"),
        ({"needed": {"durability": 66.0, "clean_stop": 149.0}}, "needed"),
        ({"needed": {"durability": 66.0}}, "needed"),
        ({"needed": {"durability": 66.0, "clean_stop": "unknown"}}, "needed"),
        ({"test_ups": True}, "test_ups"),
        ({"units": ["mariadb.service"]}, "units"),
        ({"mounts": ["/srv/pgdata", "/srv/maria"]}, "mounts"),
    ],
)
def test_another_lease_is_replaced(changes: dict[str, Any], term: str) -> None:
    found = judged(host(), power(guard=leased("tight", **changes)))
    lease = row(found, "lease")
    assert (lease["running"], lease["phase"]) == ("differs", "loosen")
    assert lease["why"].endswith(f"another one: {term}")


def test_a_lease_that_asks_for_more_runtime_than_it_has_to_stays() -> None:
    more = {"durability": 66.0, "clean_stop": 165.0}
    found = judged(host(), power(guard=leased("tight", needed=more)))
    assert row(found, "lease")["running"] == "current"


@pytest.mark.parametrize(
    ("changes", "allows_more"),
    [
        ({"expires": "2026-07-30"}, True),
        ({"expires": "2026-05-01"}, False),
        ({"quiet": 10}, True),
        ({"quiet": 900}, False),
        ({"needed": {"durability": 66.0, "clean_stop": 149.0}}, True),
        ({"needed": None}, True),
        ({"test_ups": True}, True),
        ({"mounts": ["/srv/pgdata", "/srv/maria"]}, True),
        ({"units": ["mariadb.service"]}, False),
    ],
)
def test_a_lease_that_allows_more_is_taken_back_where_another_cannot_be_written(
    changes: dict[str, Any], allows_more: bool
) -> None:
    """Nothing loosens beside an engine that nobody can tell of; what is there may not stay wider than it."""
    lost = {"pid": 7, "name": "postgres", "why": "it calls itself postgres"}
    engines = {"boot_id": BOOT_ID, "time": NOW, "engines": [], "unattributed": [lost], "writers": []}
    asked = inputs("ups", attestations=list(WORDS), mounts=PG)
    reported = power(guard=leased(**changes))
    found = assess(asked, collect(host("off"), NOW), NOW, engines, reported)
    lease = row(found, "lease")
    assert found["plan"]["loosen"] == {}
    if allows_more:
        assert (lease["wanted_running"], lease["phase"], found["lease"]) == ("absent", "tighten", None)
        assert found["plan"]["tighten"]["power_guard"] == []
        assert row(found, "barrier", "mount_options")["phase"] == "tighten"
    else:
        assert (lease["running"], lease["phase"]) == ("differs", "loosen")
        assert "power_guard" not in found["plan"]["tighten"]


def test_a_lease_without_an_engine_s_service_is_taken_back_where_another_cannot_be_written() -> None:
    wanted = Lease(PG, "2026-06-30", 300, dict(LEASE["needed"]), False, ("postgresql.service",))
    assert is_wider(wanted, power(guard=leased()))
    assert not is_wider(wanted, power(guard=leased(units=["postgresql.service"])))
    assert not is_wider(wanted, power())


@pytest.mark.parametrize("installed", ["differs", "absent"])
def test_a_guard_of_another_release_is_replaced(installed: str) -> None:
    reported = {**leased("tight"), "installed": installed}
    lease = row(judged(host(), power(guard=reported)), "lease")
    assert (lease["running"], lease["phase"]) == ("differs", "loosen")


@pytest.mark.parametrize(
    ("reported", "seen_word", "phase"),
    [
        (leased("stopped", "it has ended"), "differs", "loosen"),
        (leased("unknown", "of another boot"), "unknown", None),
        (guard("unknown", "not JSON"), "unknown", None),
    ],
)
def test_a_guard_that_does_not_do_its_work(reported: dict[str, Any], seen_word: str, phase: Any) -> None:
    found = judged(host(), power(guard=reported))
    lease = row(found, "lease")
    assert (lease["running"], lease["phase"]) == (seen_word, phase)
    assert reported["reason"] in lease["why"]
    assert found["verdict"] == ("unknown" if seen_word == "unknown" else "drifted")
    assert found["fails"]


@pytest.mark.parametrize("profile", ["strict", "flush", "protected"])
def test_a_host_that_leaves_ups_gives_its_lease_back_first(profile: str) -> None:
    machine = settled(profile, mounts=PG)
    machine.mounts["/srv/pgdata"].barrier = "off"
    machine.files[PATH] = "{}"
    found = judged(machine, power(guard=leased()), profile)
    assert list(found["plan"]["tighten"])[:2] == ["power_guard", "mount_options"]
    assert found["plan"]["tighten"]["power_guard"] == found["plan"]["tighten"]["power"] == []
    assert [row(found, "notify_command", "power")[part] for part in ("wanted_running", "running")] == [
        "released",
        HOOK,
    ]
    assert found["lease"] is None
    given = {step["layer"]: step["arguments"] for step in found["steps"]}
    assert given["power_guard"] == given["power"] == {"targets": [], "state": "released"}
    # Also where nothing could be asked but whether there is one.
    assert judged(machine, None, profile)["plan"]["tighten"]["power_guard"] == []


@pytest.mark.parametrize("profile", ["strict", "flush"])
def test_other_profiles_ask_nothing_of_a_ups(profile: str) -> None:
    machine = settled(profile, mounts=PG)
    found = judged(machine, None, profile)
    assert (found["verdict"], found["power"], found["plan"]) == ("durable", None, NO_PLAN)
    assert not {row["layer"] for row in found["settings"]} & {"power", "power_guard"}


def test_an_unpinned_host_is_told_of_its_guard_and_not_changed() -> None:
    found = judged(host("off"), power(guard=leased()), profile=None)  # type: ignore[arg-type]
    # Barriers are off, and no profile says that the UPS may be relied on.
    assert (found["verdict"], found["plan"]) == ("at_risk", NO_PLAN)
    assert any("release_db" in why for why in found["why"])
    assert found["power"]["monitor"] == "nut"


def test_a_host_without_databases_gives_its_lease_back() -> None:
    found = judged(host("off"), power(guard=leased()), mounts=[])
    assert (found["verdict"], found["plan"]["tighten"]) == ("not_applicable", {"power_guard": []})


@pytest.mark.parametrize(
    ("target", "why"),
    [("/srv/mssql", "on xfs they are not switched"), ("/var", "/var holds more than databases")],
)
def test_other_mounts_keep_their_barriers_and_do_not_block(target: str, why: str) -> None:
    machine = SmallHost()
    if target == "/var":
        machine.add_mount(
            FakeMount("/var", "ext4", "8:2", "/dev/sda2", "sda"), "UUID=var /var ext4 defaults 0 2\n"
        )
    given = {"mounts": [*PG, target]}
    enforce(machine, judged(machine, None, **given))
    machine.reboot()
    found = judged(machine, power(), **given)
    assert found["lease"]["mounts"] == ["/srv/pgdata"]
    (kept,) = [each for each in found["settings"] if (each["target"], each["setting"]) == (target, "barrier")]
    assert (kept["verdict"], kept["wanted_running"]) == ("ok", "on")
    assert why in kept["why"]
    assert all(need["state"] != "unmet" for need in found["requirements"])


def test_where_no_mount_may_lose_its_barriers_there_is_no_guard_and_a_note() -> None:
    machine = settled("ups", mounts=["/srv/mssql"])
    found = judged(machine, power(), mounts=["/srv/mssql"])
    assert (found["verdict"], found["lease"], found["changes"]) == ("attested", None, [])
    assert any("profile flush" in note for note in found["warnings"])


def test_the_monitor_is_set_to_tell_the_guard_in_the_same_run() -> None:
    found = judged(host(lease=False), without_notify())
    assert found["plan"]["tighten"] == {"power": [{"notify_command": HOOK}, {"notify_flags": "EXEC"}]}
    assert found["plan"]["loosen"] == {"power_guard": [{"mount": "/srv/pgdata"}]}
    assert states(found)["notify_reaches_guard"] == "planned"
    assert found["verdict"] == "drifted"


def test_a_requested_command_with_a_password_is_in_no_row_and_holds_if_the_monitor_has_such_a_one() -> None:
    reported = power(guard=leased("tight"))
    command = "/usr/bin/upscmd -u admin -p hunter2 ups load.off"
    reported["settings"]["shutdown_command"] = seen("[command not shown: it can contain a secret]")
    found = judged(host(), reported, ups={"shutdown_command": command})
    assert row(found, "shutdown_command", "power")["verdict"] == "ok"
    reported["settings"]["shutdown_command"] = seen("/sbin/poweroff")
    found = judged(host(), reported, ups={"shutdown_command": command})
    # The step does not have it either: -v shows steps.
    (step,) = found["steps"]
    assert step["arguments"]["targets"] == [
        {"shutdown_command": "[command not shown: it can contain a secret]"}
    ]
    assert list(found["plan"]["tighten"]) == ["power"]
    assert "hunter2" not in json.dumps(found)
    assert "requested" not in row(found, "shutdown_command", "power")["evidence"]


def test_no_monitor_is_set_to_tell_a_guard_that_will_not_be_there() -> None:
    found = judged(host(lease=False), without_notify(), words=[])
    assert found["plan"] == NO_PLAN
    assert states(found)["notify_reaches_guard"] == "unmet"


def test_a_hook_that_is_gone_is_written_again() -> None:
    broken = condition("notify_reaches_guard", "unmet", evidence=f"{HOOK}: No such file")
    found = judged(host(), power(broken, guard=leased("tight")))
    assert found["plan"]["tighten"] == {"power": [{"notify_command": HOOK}]}
    assert "No such file" in row(found, "notify_command", "power")["why"]


@pytest.mark.parametrize(
    ("asked", "drifts"),
    [
        ({"final_delay": 5, "host_sync": 15, "shutdown_command": "/sbin/shutdown -h +0"}, []),
        ({"final_delay": 6}, [{"final_delay": 6}]),
        ({"shutdown_command": "/sbin/poweroff"}, [{"shutdown_command": "/sbin/poweroff"}]),
        ({"powerdown_flag": "/run/killpower"}, [{"powerdown_flag": "/run/killpower"}]),
        (
            {"monitor": {"system": "rack@localhost", "power_value": 1, "user": "upsmon", "type": "primary"}},
            [],
        ),
        (
            {"monitor": {"system": "rack@localhost", "power_value": 1, "user": "db1", "type": "primary"}},
            [{"monitor": {"system": "rack@localhost", "power_value": 1, "user": "db1", "type": "primary"}}],
        ),
        (
            {"monitor": {"system": "new@localhost", "power_value": 1, "user": "u", "type": "primary"}},
            [{"monitor": {"system": "new@localhost", "power_value": 1, "user": "u", "type": "primary"}}],
        ),
    ],
)
def test_what_the_owner_asks_of_the_monitor(asked: dict[str, Any], drifts: list[dict[str, Any]]) -> None:
    found = judged(host(), power(guard=leased("tight")), ups=asked)
    assert found["plan"]["tighten"].get("power", []) == drifts
    assert len([row for row in found["settings"] if row["layer"] == "power"]) == 2 + len(asked)


def test_a_condition_that_a_step_of_this_run_makes_true_does_not_block() -> None:
    reported = power(condition("shutdown_command", "unmet"))
    reported["settings"]["shutdown_command"] = seen("")
    assert judged(host(lease=False), reported)["verdict"] == "blocked"
    found = judged(host(lease=False), reported, ups={"shutdown_command": "/sbin/poweroff"})
    assert (found["verdict"], states(found)["shutdown_command"]) == ("drifted", "planned")
    assert list(found["plan"]["loosen"]) == ["power_guard"]


def test_the_report_has_the_ups_the_sums_and_the_guard_and_no_settings_of_the_monitor() -> None:
    found = judged(host(), power(guard=leased("tight", "on battery")))
    section = found["power"]
    assert set(section) == {"monitor", "mode", "upses", "timing", "budget", "conditions", "guard"}
    assert section["budget"]["clean_stop"]["arithmetic"] == (
        "90 (stop of postgresql.service) + 60 (margin) = 150 s needed, of 300 s"
    )


@pytest.mark.parametrize("reported", [power(guard=leased()), power(), without_notify()])
@pytest.mark.parametrize("barrier", ["on", "off"])
def test_an_unknown_condition_never_improves_a_verdict(reported: dict[str, Any], barrier: str) -> None:
    before = VERDICTS.index(judged(host(barrier), reported)["verdict"])
    for index, each in enumerate(reported["conditions"]):
        rest = reported["conditions"][:index] + reported["conditions"][index + 1 :]
        other = {**reported, "conditions": [*rest, {**each, "state": "unknown"}]}
        found = judged(host(barrier), other)
        assert VERDICTS.index(found["verdict"]) <= max(before, VERDICTS.index("unknown")), each["name"]
        assert "power_guard" not in found["plan"]["loosen"] or each["name"] == "notify_reaches_guard"


DISABLE = [{"fix": "disable_one", "parameters": {"first": "a", "second": "b"}}]


def test_conditions_that_cannot_be_told_for_one_reason_are_one_line() -> None:
    reported = power(
        *(condition(name, "unknown", evidence="two monitors", fixes=DISABLE) for name in CONDITIONS)
    )
    why = judged(host(lease=False), reported)["why"]
    assert (
        why[0]
        == f'{", ".join(CONDITIONS)} (host): unknown: "two monitors"; disable one of a and b (systemctl disable --now)'
    )


def test_what_the_whole_host_has_is_named_by_its_layer() -> None:
    found = judged(host(lease=False), power())
    assert (
        "power_guard: lease is absent, expected current: the guard has no lease yet; run harden_db"
        in found["why"]
    )
    assert change_line(found["changes"][0]).startswith("power_guard lease: now absent -> current")


def test_facts_of_another_hour_are_refused() -> None:
    found = judged(host("off"), power(guard=leased(), time="2026-01-31T09:00:00Z"))
    assert (found["verdict"], found["plan"]) == ("unknown", NO_PLAN)
    assert "the facts are of 2026-01-31T09:00:00Z" in found["why"][0]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"fstype": "ext3"}, ""),
        ({"fstype": "ext2"}, "on ext2 they are not switched at run time"),
        ({"fstype": "btrfs"}, "on btrfs they are not switched at run time"),
        ({"hidden_in": "container pg"}, "only container pg sees it"),
        ({"disks": "unknown"}, "the layers below it are unknown"),
        ({"listed": False}, "/srv/pgdata is not listed, and may hold more than databases"),
        ({"targets": ["/srv/pgdata", "/usr/share/x"]}, "/usr/share/x holds more than databases"),
    ],
)
def test_what_may_lose_its_barriers(changes: dict[str, Any], why: str) -> None:
    (mount,) = mounts_of(list(PG), None, collect(SmallHost(), NOW), [])
    assert why_not_switched({**mount, **changes}).startswith(why)
    assert bool(why_not_switched({**mount, **changes})) is bool(why)


@pytest.mark.parametrize(("cache_mode", "why"), [("write back", ""), ("write through", "drops flushes")])
def test_a_layer_that_passes_no_flush_on_keeps_barriers(cache_mode: str, why: str) -> None:
    machine = BigHost()
    machine.layers["dm-0"].cache_mode = cache_mode
    (mount,) = mounts_of(["/srv/faircom"], None, collect(machine, NOW), [])
    assert why in why_not_switched(mount)
    assert bool(why_not_switched(mount)) is bool(why)


@pytest.mark.parametrize(
    ("reported", "why"),
    [
        ({"held_on": "8:1"}, "a file of another file system"),
        ({"cause": {"cause": "no_rule_for_layer", "parameters": {}}}, "by an attestation alone"),
    ],
)
def test_over_what_the_guard_does_not_know_barriers_stay(reported: dict[str, Any], why: str) -> None:
    (mount,) = mounts_of(["/srv/faircom"], None, collect(BigHost(), NOW), None)
    mount["stack"][0].update(reported)
    assert why in why_not_switched(mount)


def test_barriers_that_cannot_be_read_are_unknown_whatever_the_guard_says() -> None:
    machine = host("off")
    machine.files.pop("/proc/fs/ext4/sda1/options")
    found = judged(machine, power(guard=leased()))
    assert (found["verdict"], row(found, "barrier", "mount_options")["verdict"]) == ("unknown", "unknown")


@pytest.mark.parametrize("claim", ["virtual_host_power", "host_honours_flush", "plug_pulled"])
def test_a_word_for_the_machine_below_makes_up_for_a_cache_that_it_alone_can_switch(claim: str) -> None:
    machine = host(lease=False)
    del machine.commands[("hdparm", "-W", "/dev/sda")]
    found = judged(machine, power(), words=[*WORDS, attested(claim)])
    (cache,) = [each for each in found["settings"] if each["setting"] == "write_cache"]
    assert (cache["verdict"] == "ok") is (claim != "plug_pulled")


def test_a_condition_that_holds_is_not_called_planned() -> None:
    found = judged(host(), power(guard=leased("tight")), ups={"shutdown_command": "/sbin/poweroff"})
    assert (states(found)["shutdown_command"], found["verdict"]) == ("met", "drifted")


def test_of_apcupsd_only_its_events_are_set() -> None:
    reported = {**without_notify(), "monitor": "apcupsd"}
    found = judged(host(lease=False), reported, ups={"final_delay": 9})
    assert found["plan"]["tighten"] == {"power": [{"notify_command": HOOK}, {"notify_flags": "EXEC"}]}
    delay = row(found, "final_delay", "power")
    assert (delay["phase"], "remove final_delay from durable_ups" in delay["remedy"]) == (None, True)


@pytest.mark.parametrize("monitor", ["none", "unknown"])
def test_a_monitor_that_is_not_known_is_not_set(monitor: str) -> None:
    reported = power(condition("monitor_active", "unmet"), monitor=monitor)
    found = judged(host(lease=False), reported, ups={"final_delay": 9})
    assert (row(found, "final_delay", "power")["phase"], found["plan"]) == (None, NO_PLAN)


def test_the_conditions_are_those_of_the_facts() -> None:
    assert len(set(CONDITIONS)) == 11
    assert {each["name"] for each in power()["conditions"]} == set(CONDITIONS)
    assert ups.section(None) is None


def on_battery(words: str, state: str) -> dict[str, Any]:
    """Return the facts of a host whose UPS says this, with a leased guard in that state."""
    reported = power(condition("status_online", "unmet"), guard=leased(state, "ONBATT"))
    for each in reported["upses"]:
        each["status"] = words.split()
    return reported


@pytest.mark.parametrize("words", ["OB DISCHRG", "OB LB DISCHRG"])
def test_a_power_that_is_away_is_what_the_guard_is_for(words: str) -> None:
    found = judged(host(), on_battery(words, "tight"))
    assert (found["verdict"], found["changes"], found["plan"]) == ("attested", [], NO_PLAN)
    assert states(found)["status_online"] == "guarded"
    assert row(found, "barrier")["verdict"] == "tightened"


@pytest.mark.parametrize(
    ("words", "state", "barrier"),
    [("OB RB", "tight", "on"), ("OB", "loose", "off"), ("FSD OB LB", "tight", "on"), ("OB", "stopped", "on")],
)
def test_any_other_trouble_blocks(words: str, state: str, barrier: str) -> None:
    found = judged(host(barrier), on_battery(words, state))
    assert found["verdict"] == "blocked"
    assert states(found)["status_online"] == "unmet"
    assert "power_guard" in found["plan"]["tighten"]


def test_the_lease_is_for_the_times_that_this_run_sets() -> None:
    reported = power()
    # No secondary is waited for: whatever HOSTSYNC is, it does not count.
    terms = (("host_sync", 0.0), ("final_delay", 5.0), ("stop of postgresql.service", 90.0))
    reported["budget"]["clean_stop"] = budget(300.0, *terms)
    found = judged(host(lease=False), reported, ups={"final_delay": 25, "host_sync": 30})
    assert found["plan"]["tighten"]["power"] == [{"final_delay": 25}, {"host_sync": 30}]
    assert found["lease"]["needed"] == {"clean_stop": 115.0, "durability": 66.0}
