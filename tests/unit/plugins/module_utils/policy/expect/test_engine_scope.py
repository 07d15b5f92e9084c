# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left over: engines that are stopped for good, and those that the inventory ignores for a while."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect import engine_scope
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.report import details, with_outcomes
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import BadInput

from ...fakes.fake_proc import FakeProcess, ProcHost
from ...fakes.runs import NOW
from ..assess.test_engines import instance, judged

TODAY = NOW[:10]
UNSAFE = {"running": {"fsync": "off"}, "persisted": {"fsync": "off"}}
MARIA = {"engine": "mariadb", "name": "mariadb", "directories": ["/srv/maria"]}


def entry(**given: Any) -> dict[str, Any]:
    """Return a good entry of durable_ignore."""
    good = {
        "engine": "postgresql",
        "by": "A. Person",
        "reason": "a test's, gone in June",
        "expires": "2026-06-30",
    }
    return {**good, **given}


def of(found: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Return {engine: whether it is judged, and why not} of a report."""
    return {each["engine"]: (each["judged"], each["reason"]) for each in found["engines"]}


def test_one_that_is_ignored_is_listed_with_who_and_why_and_not_judged() -> None:
    assert judged(instance(**UNSAFE))["verdict"] == "at_risk"
    found = judged(instance(**UNSAFE), ignore=[entry(instance="main")])
    assert found["verdict"] == "drifted"
    assert [row for row in found["settings"] if row["layer"] == "postgresql"] == []
    why = "ignored by A. Person until 2026-06-30: a test's, gone in June: listed, not assessed"
    assert of(found) == {"postgresql": ("ignored", why)}
    assert f"postgresql main: {why}" in found["warnings"]
    assert found["ignored"] == [entry(instance="main")]


@pytest.mark.parametrize("profile", ["strict", None])
def test_it_stands_in_every_report(profile: str | None) -> None:
    found = judged(instance(), profile=profile, ignore=[entry()], mounts=None)
    assert of(found)["postgresql"][0] == "ignored"
    assert found["ignored"] == [entry(instance="")]
    report = {"host": "a", "was": "unknown", "error": None, "looked_only": True, "changes": [], **found}
    assert "ignored by A. Person until 2026-06-30" in str(details([with_outcomes(report)]))


def test_one_that_has_expired_counts_again_and_is_named() -> None:
    found = judged(instance(**UNSAFE), ignore=[entry(expires="2026-01-30")])
    assert found["verdict"] == "at_risk"
    assert of(found) == {"postgresql": ("yes", "")}
    assert found["ignored"] == []
    assert any("durable_ignore[0]: postgresql expired on 2026-01-30" in note for note in found["warnings"])
    assert judged(instance(**UNSAFE), ignore=[entry(expires=TODAY)])["verdict"] == "drifted"


def test_only_the_instance_that_is_named_is_ignored() -> None:
    found = judged(instance(**UNSAFE), ignore=[entry(instance="other")])
    assert found["verdict"] == "at_risk"
    (note,) = [note for note in found["warnings"] if "durable_ignore" in note]
    assert note == (
        "durable_ignore[0]: postgresql other is not here (found: postgresql main). Fix: correct the entry, or delete it"
    )


INNER = "/var/lib/postgresql/data"
VOLUME = """\
50 40 0:99 / / rw - overlay overlay rw
51 50 8:17 /volumes/pg /var/lib/postgresql/data rw - ext4 /dev/sdb1 rw
"""
DOCKER = [f"0::/system.slice/docker-{digit * 64}.scope\n" for digit in "ab"]
#: Of containers that no control group names.
NAMELESS = ["0::/x.slice/a.service\n", "0::/x.slice/b.service\n"]


def in_container(pid: int, cgroup: str) -> FakeProcess:
    """Return a server whose files are at the same paths in each container."""
    return FakeProcess(
        pid,
        "/usr/lib/postgresql/16/bin/postgres",
        ("postgres",),
        cwd=INNER,
        namespace=f"402653200{pid}",
        pid_namespace=f"402653190{pid}",
        mountinfo=VOLUME.replace("/volumes/pg", f"/volumes/{pid}"),
        cgroup=cgroup,
    )


def ignored(host: ProcHost, **given: Any) -> tuple[list[list[int]], list[str]]:
    """Return the processes of the instances that an entry ignores, and what is reported of entries."""
    facts = collect(host, NOW)
    ignoring = engine_scope.read([entry(**given)], None, TODAY)
    found = engine_scope.standings(facts, None, ignoring.entries)
    notes = [note for note in engine_scope.notes(found, ignoring) if note.startswith("durable_ignore")]
    return [each.instance["pids"] for each in found if each.judged == "ignored"], notes


@pytest.mark.parametrize("name", [INNER, f"docker:/data/volumes/50 {INNER}", f"container {INNER}"])
@pytest.mark.parametrize("cgroups", [DOCKER, NAMELESS], ids=["docker", "nameless"])
def test_an_entry_never_moves_to_the_container_that_is_left(cgroups: list[str], name: str) -> None:
    """Both have the same path inside; the first is removed."""
    first, second = in_container(50, cgroups[0]), in_container(60, cgroups[1])
    found, notes = ignored(ProcHost(first, second), instance=name)
    assert found == ([[50]] if name.startswith("docker") and cgroups is DOCKER else [])
    assert bool(notes) != bool(found)
    found, (note,) = ignored(ProcHost(second), instance=name)
    assert found == []
    assert f"durable_ignore[0]: postgresql {name}" in note


def test_the_whole_name_of_a_container_s_instance_ignores_it_alone() -> None:
    host = ProcHost(in_container(50, DOCKER[0]), in_container(60, DOCKER[1]))
    assert ignored(host, instance=f"docker:/data/volumes/60 {INNER}") == ([[60]], [])


def test_a_container_without_a_name_cannot_be_named() -> None:
    found, (note,) = ignored(ProcHost(in_container(50, NAMELESS[0])), instance=f"container {INNER}")
    assert found == []
    assert (
        "another instance can come to have this name (its control group does not name its container)" in note
    )
    assert note.endswith("Fix: stop that instance, or delete the entry")


def chrooted(pid: int, unit: str) -> FakeProcess:
    """Return a server of a unit with RootDirectory=, in which the paths are as in any other."""
    cgroup = f"0::/system.slice/{unit}\n"
    return FakeProcess(
        pid,
        "/usr/sbin/mariadbd",
        cwd="/var/lib/mysql",
        namespace=f"402653200{pid}",
        mountinfo=VOLUME,
        cgroup=cgroup,
    )


def test_an_entry_never_moves_to_the_unit_with_its_own_root_that_is_left() -> None:
    first, second = chrooted(50, "a.service"), chrooted(60, "b.service")
    for name, found in (("mariadb", []), ("a.service mariadb", [[50]]), ("b.service mariadb", [[60]])):
        assert ignored(ProcHost(first, second), engine="mariadb", instance=name)[0] == found
        left = [pids for pids in found if pids == [60]]
        assert ignored(ProcHost(second), engine="mariadb", instance=name)[0] == left


def test_a_server_that_a_person_runs_never_has_the_name_of_a_service() -> None:
    service = FakeProcess(50, "/opt/mssql/bin/sqlservr", cgroup="0::/system.slice/mssql-server.service\n")
    by_hand = FakeProcess(
        60, "/home/u/sqlservr", uid=1000, cgroup="0::/user.slice/user-1000.slice/session-1.scope\n"
    )
    for processes, found in (((service, by_hand), []), ((service,), [[50]]), ((by_hand,), [])):
        host = ProcHost(*processes)
        assert ignored(host, engine="mssql", instance="mssql")[0] == found
    assert ignored(ProcHost(by_hand), engine="mssql", instance="mssql (user 1000)")[0] == [[60]]


def test_a_name_that_several_have_ignores_none_of_them_and_is_reported_with_theirs() -> None:
    both = instance(name="main (/etc/a.conf)", **UNSAFE), instance(name="main (/etc/b.conf)", **UNSAFE)
    found = judged(*both, ignore=[entry(instance="main")])
    assert found["verdict"] == "at_risk"
    assert [each["judged"] for each in found["engines"]] == ["yes", "yes"]
    (note,) = [note for note in found["warnings"] if "durable_ignore" in note]
    assert note == (
        "durable_ignore[0]: postgresql main: 2 instances can be meant, and it ignores none of them."
        " Fix: set instance to the whole name of one: 'main (/etc/a.conf)', 'main (/etc/b.conf)'"
    )
    found = judged(*both, ignore=[entry(instance="main (/etc/b.conf)")])
    assert [each["judged"] for each in found["engines"]] == ["yes", "ignored"]
    # Of the whole engine all are meant.
    found = judged(*both, ignore=[entry()])
    assert [each["judged"] for each in found["engines"]] == ["ignored", "ignored"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"namespace": "unknown"}, "whether it runs in a container is unknown"),
        ({"namespace": "container", "name": "container /var/lib/x"}, "does not name its container"),
        ({"namespace": "container", "name": "/var/lib/x"}, "does not name its container"),
        ({"name": "process 17"}, "only its process tells it from others"),
        ({"namespace": "container", "name": "lxc:db process 17"}, "only its process tells it from others"),
        ({"name": "main (17)", "pids": [17]}, "only its process tells it from others"),
        ({"name": "chroot mariadb"}, "only its process tells it from others"),
    ],
)
def test_a_name_that_another_can_come_to_have_ignores_nothing(given: dict[str, Any], why: str) -> None:
    one = instance(**{**UNSAFE, **given})
    found = judged(one, ignore=[entry(instance=one["name"])])
    assert [each["judged"] for each in found["engines"]] == ["yes"]
    assert why in "\n".join(found["warnings"])


@pytest.mark.parametrize(
    "given",
    [
        {"namespace": "container", "name": "lxc:db /var/lib/x"},
        {"namespace": "private", "name": "/srv/x"},
        {"name": "15/main", "pids": [17]},
        {"name": "process.d/17"},
    ],
)
def test_a_name_of_its_own_is_ignored(given: dict[str, Any]) -> None:
    one = instance(**{**UNSAFE, **given})
    found = judged(one, ignore=[entry(instance=one["name"])])
    assert [each["judged"] for each in found["engines"]] == ["ignored"]


def test_a_flavour_is_told_apart() -> None:
    maria, mysql = instance("mariadb"), instance("mariadb", flavour="mysql")
    both = [engine_scope.Ignored(name, "", "a", "b", "2026-06-30", "") for name in ("mariadb", "mysql")]
    assert [each.fits(maria) for each in both] == [True, False]
    assert [each.fits(mysql) for each in both] == [True, True]


def test_its_mounts_are_managed_only_for_another_reason() -> None:
    pg, maria = instance(**UNSAFE), instance(**MARIA)
    alone = judged(pg, maria, mounts=None, ignore=[entry()])
    targets = {row["target"] for row in alone["settings"] if row["layer"] == "mount_options"}
    assert targets == {"/srv/maria"}
    beside = judged(pg, instance(**{**MARIA, "directories": ["/srv/pgdata"]}), mounts=None, ignore=[entry()])
    targets = {row["target"] for row in beside["settings"] if row["layer"] == "mount_options"}
    assert targets == {"/srv/pgdata"}


def test_without_any_other_engine_or_mount_nothing_is_managed() -> None:
    found = judged(instance(**UNSAFE), mounts=None, ignore=[entry()])
    assert found["verdict"] == "not_applicable"
    assert any("ignored by A. Person" in why for why in found["why"])
    assert of(found)["postgresql"][0] == "ignored"


def test_one_that_is_stopped_is_listed_with_its_state_and_reason() -> None:
    idle = instance(state="stopped", starts_at_boot="no", files=[])
    found = judged(idle)
    (reported,) = found["engines"]
    assert (reported["state"], reported["judged"]) == ("stopped", "stopped")
    assert "nothing starts it (postgresql@15-main.service)" in reported["reason"]
    assert of(judged(instance()))["postgresql"] == ("yes", "")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({}, r"durable_ignore: observed \{\}; expected a list"),
        (
            ["postgresql"],
            r"durable_ignore\[0\]: observed 'postgresql'; expected exactly engine, by, reason, expires",
        ),
        ([entry(engine="oracle")], r"engine: observed 'oracle'; expected one of mssql, faircom"),
        ([entry(by=" ")], r"by: observed ' '; expected the name of the person or team that decided it"),
        ([entry(reason="")], r"reason: observed ''; expected why the engine is not assessed"),
        (
            [entry(until="x")],
            r"the unknown key 'until'; expected exactly engine, by, reason, expires, optional: instance",
        ),
        (
            [entry(instancee="x")],
            r"the unknown key 'instancee'; .* optional: instance\. Did you mean instance\?",
        ),
        (
            [entry(expires="2027-02-02")],
            r"ignoring postgresql may last 366 days at most: observed 2027-02-02",
        ),
        ([entry(expires="soon")], r'expires: observed \'soon\'; expected "YYYY-MM-DD"'),
    ],
)
def test_what_is_malformed_blocks_its_host(value: Any, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        engine_scope.read(value, None, TODAY)
    assert judged(instance(), ignore=value)["verdict"] == "blocked"


def test_the_longest_life_is_a_year() -> None:
    assert engine_scope.read([entry(expires="2027-02-01")], None, TODAY).entries


def test_an_engine_is_not_named_and_ignored_at_once() -> None:
    named = [{"engine": "postgresql", "paths": ["/srv/pgdata"]}]
    with pytest.raises(BadInput, match="which durable_databases names"):
        engine_scope.read([entry()], named, TODAY)
    assert engine_scope.read([entry(instance="old")], named, TODAY).entries
