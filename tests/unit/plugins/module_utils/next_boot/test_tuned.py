# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What TuneD's active profile sets of schedulers and readahead."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.next_boot import effects
from ansible_collections.durable.dbhost.plugins.module_utils.next_boot.acts import Device
from ansible_collections.durable.dbhost.plugins.module_utils.next_boot.effects import State, Value
from ansible_collections.durable.dbhost.plugins.module_utils.next_boot.tuned import collect as acts_of
from ansible_collections.durable.dbhost.plugins.module_utils.next_boot.tuned import read
from ansible_collections.durable.dbhost.plugins.module_utils.storage import causes
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ..fakes.runs import NOW, OWN, enforce, look
from ..fakes.small_host import SmallHost

NONE = {"profile": None, "sets": {}, "cause": None}
MSSQL = "[main]\nsummary=Optimize for SQL Server\ninclude=throughput-performance\n[disk]\nreadahead=4096\n"
THROUGHPUT = "[main]\nsummary=x\n[disk]\nreadahead=>128\nelevator=mq-deadline\n[vm]\nelevator=no disk\n"


#: Requests what the disk has.
GIVEN: dict[str, Any] = {"mounts": ["/srv/pgdata"], "overrides": {"scheduler_solid_state": "none"}}
WANTED = "/etc/systemd/system/multi-user.target.wants/tuned.service"


def host_with(active: str = "mssql", **profiles: str) -> SmallHost:
    """Return a host where TuneD runs, and starts at boot."""
    host = SmallHost()
    host.links[WANTED] = "/usr/lib/systemd/system/tuned.service"
    host.files["/run/tuned/tuned.pid"] = "700\n"
    host.files["/etc/tuned/active_profile"] = f"{active}\n"
    for name, text in profiles.items():
        host.files[f"/usr/lib/tuned/{name.replace('_', '-')}/tuned.conf"] = text
    return host


def test_a_host_without_it() -> None:
    assert read(SmallHost()) == NONE


@pytest.mark.parametrize(
    ("sign", "acts"),
    [
        ("/run/tuned/tuned.pid", True),
        ("/etc/systemd/system/multi-user.target.wants/tuned.service", True),
        ("/usr/lib/systemd/system/tuned.service", False),
    ],
)
@pytest.mark.fact(25)
def test_it_acts_where_it_runs_or_will_at_the_next_boot(sign: str, acts: bool) -> None:
    """TuneD may override schedulers: it is detected, not fought."""
    host = host_with(mssql="[disk]\nelevator=none\n")
    del host.files["/run/tuned/tuned.pid"], host.links[WANTED]
    host.files[sign] = ""
    assert read(host) == ({"profile": "mssql", "sets": {"elevator": "none"}, "cause": None} if acts else NONE)


def test_a_profile_wins_over_those_that_it_includes() -> None:
    found = read(host_with(mssql=MSSQL, throughput_performance=THROUGHPUT))
    assert found == {
        "profile": "mssql",
        "sets": {"readahead": "4096", "elevator": "mq-deadline"},
        "cause": None,
    }


@pytest.mark.parametrize(
    ("text", "sets"),
    [
        ("[disk]\nelevator=none\n", {"elevator": "none"}),
        ("[data_disks]\ntype=disk\nelevator=none\n", {"elevator": "none"}),
        ("[disk]\ntype=net\nelevator=none\n", {}),
        ("[vm]\nelevator=none\n", {}),
        ("[disk]\nelevator=\n", {}),
        ("[disk]\nelevator\n", {}),
        ("[disk]\napm=255\n", {}),
        ("[disk]\nelevator = none # for the SSDs\n", {"elevator": "none"}),
        ("[disk]\nelevator: none\n", {}),
        ("[disk]\nenabled=false\nelevator=none\n", {}),
        ("[disk]\nenabled=True\nelevator=none\n", {"elevator": "none"}),
        ("[main]\ninclude=other\n[disk]\nreadahead=4096\n", {"elevator": "bfq", "readahead": "4096"}),
        ("[main]\ninclude=-none-such;other\n", {"elevator": "bfq", "readahead": "128"}),
        ("[main]\ninclude=other\n[disk]\nreplace=1\nreadahead=4096\n", {"readahead": "4096"}),
        ("[main]\ninclude=other\n[disk]\ndrop=elevator, apm\n", {"readahead": "128"}),
        ("[main]\ninclude=other\n[disk]\nenabled=0\n", {}),
        ("[main]\ninclude=mssql\n[disk]\nelevator=none\n", {"elevator": "none"}),
        ("", {}),
    ],
)
def test_only_disk_sections_set_them(text: str, sets: dict[str, str]) -> None:
    """As TuneD 2.20 merges them: a section over the one of that name, included profiles first."""
    other = "[disk]\nelevator=bfq\nreadahead=128\n"
    assert read(host_with(mssql=text, other=other))["sets"] == sets


def test_a_profile_may_include_the_package_s_of_its_own_name() -> None:
    host = host_with(mssql="[disk]\nelevator=bfq\nreadahead=128\n")
    host.files["/etc/tuned/mssql/tuned.conf"] = "[main]\ninclude=mssql\n[disk]\nelevator=none\n"
    assert read(host)["sets"] == {"elevator": "none", "readahead": "128"}


def test_what_is_loaded_after_the_active_profile_has_the_last_word() -> None:
    host = host_with(mssql="[disk]\nelevator=bfq\n", late="[disk]\nelevator=none\n")
    host.files["/etc/tuned/post_loaded_profile"] = "late\n"
    assert read(host) == {"profile": "mssql", "sets": {"elevator": "none"}, "cause": None}


@pytest.mark.parametrize(
    ("said", "value", "made"),
    [
        ("4096", "128", "4096"),
        (">4096", "128", "4096"),
        ("> 4096", "4096", "4096"),
        (">4096", "8192", "8192"),
        ("<4096", "8192", "4096"),
        ("<4096", "128", "128"),
        ("8192 s", "4096", "4096"),
        (">8192 s", "128", "4096"),
        ("${ours}", "128", "unknown"),
    ],
)
def test_a_readahead_after_a_sign_is_set_only_where_that_is_more_or_less(
    said: str, value: str, made: str
) -> None:
    host = host_with(mssql=f"[disk]\nreadahead={said}\n")
    (act,) = acts_of(host, {"sda": {}})
    state = effects.after(State(readahead=Value(value)), act, Device("sda"), True)
    assert state.readahead.value == made


def test_what_the_packages_profiles_set_at_least_is_no_conflict_with_as_much() -> None:
    """`throughput-performance`, which most others include, says `readahead=>4096`."""
    host = host_with(
        mssql="[main]\ninclude=throughput-performance\n", throughput_performance="[disk]\nreadahead=>4096\n"
    )
    verdicts = {}
    for wanted in (128, 4096, 8192):
        own = {"ours": {**OWN, "readahead": wanted}}
        given = {"own": own, "mounts": ["/srv/pgdata"]}
        enforce(host, look(host, "ours", **given))
        (row,) = [r for r in look(host, "ours", **given)["settings"] if r["setting"] == "readahead"]
        verdicts[wanted] = row["verdict"]
    assert verdicts == {128: "drift_persisted", 4096: "ok", 8192: "ok"}


def test_where_its_profile_cannot_be_read_nothing_is_fought_and_nothing_is_ok() -> None:
    host = host_with(mssql="[main]\ninclude=${f:virt_check:virtual-guest:throughput-performance}\n")
    found = look(host, "strict", **GIVEN)
    (row,) = [row for row in found["settings"] if row["setting"] == "scheduler"]
    assert (row["phase"], row["class"]) == (None, "performance")
    assert row["verdict"] != "ok"
    assert "TuneD's profile could not be read: TuneD has no profile \"${f:virt" in row["why"]
    assert row["remedy"] == "correct the error that the reason names, or run tuned-adm off"
    assert "io_scheduler" not in found["plan"]["tighten"]


def test_several_active_profiles_are_applied_in_turn() -> None:
    found = read(host_with("one two", one="[disk]\nelevator=none\n", two="[disk]\nelevator=bfq\n"))
    assert (found["profile"], found["sets"]) == ("one two", {"elevator": "bfq"})


def test_a_profile_of_the_administrator_hides_one_of_the_package() -> None:
    host = host_with(mssql="[disk]\nelevator=bfq\n")
    host.files["/etc/tuned/profiles/mssql/tuned.conf"] = "[disk]\nelevator=none\n"
    assert read(host)["sets"] == {"elevator": "none"}


@pytest.mark.parametrize(
    ("active", "text"),
    [
        ("gone", "[disk]\n"),
        ("../mssql", "[disk]\n"),
        ("mssql", "[main]\ninclude=gone\n"),
        ("mssql", "no section\n"),
        ("mssql", Unobservable("I/O error")),
    ],
)
def test_what_cannot_be_read_is_an_error_and_not_nothing(active: str, text: Any) -> None:
    host = host_with(active)
    host.files["/usr/lib/tuned/mssql/tuned.conf"] = text
    found = read(host)
    assert (found["profile"], found["sets"]) == ("unknown", {})
    assert found["cause"]


def test_where_tuned_sets_what_is_wanted_a_rule_is_no_fight() -> None:
    host = host_with(mssql="[disk]\nelevator=none\n")
    enforce(host, look(host, "strict", **GIVEN))
    rows = look(host, "strict", **GIVEN)["settings"]
    assert [row["verdict"] for row in rows if row["setting"] == "scheduler"] == ["ok"]


@pytest.mark.fact(25)
def test_a_scheduler_that_tuned_sets_otherwise_is_reported_and_not_fought_over() -> None:
    host = host_with(mssql="[disk]\nelevator=bfq\n")
    found = look(host, "strict", **GIVEN)
    (row,) = [row for row in found["settings"] if row["setting"] == "scheduler"]
    assert (row["verdict"], row["phase"], row["class"]) == ("drift_persisted", None, "performance")
    assert row["remedy"] == (
        "select another profile (tuned-adm profile NAME), or set elevator to none in a copy of /usr/lib/tuned/mssql in"
        " /etc/tuned"
    )
    assert "io_scheduler" not in found["plan"]["tighten"]
    enforce(host, found)
    assert host.disk("sda").scheduler == "[none] mq-deadline"


def test_each_profile_is_read_once_however_often_it_is_included() -> None:
    """Each of these includes the next one twice: read again each time, that would be a million."""
    names = [f"p{number}" for number in range(20)]
    profiles = {
        name: f"[main]\ninclude={after},{after}\n[disk]\nreadahead={name[1:]}\n"
        for name, after in zip(names, [*names[1:], "end"])
    }
    host = host_with("p0", **profiles, end="[disk]\nelevator=none\n")
    reads: list[str] = []
    answer = host.read

    def count(path: str) -> str:
        reads.append(path)
        assert len(reads) < 100
        return answer(path)

    host.read = count  # type: ignore[method-assign]
    assert read(host)["sets"] == {"readahead": "0", "elevator": "none"}


def test_a_bare_include_of_tuned_includes_nothing() -> None:
    host = SmallHost()
    host.files.update(
        {
            "/etc/tuned/active_profile": "x\n",
            "/run/tuned/tuned.pid": "1",
            "/etc/tuned/x/tuned.conf": "[main]\ninclude\n[disk]\nelevator=bfq\n",
        }
    )
    assert collect(host, NOW)["tuned"]["sets"] == {"elevator": "bfq"}


@pytest.mark.parametrize(
    ("host", "why"),
    [
        (host_with("mssql " * 101, mssql=MSSQL), "/etc/tuned/active_profile: observed 101 names of profiles"),
        (
            host_with(mssql="[main]\ninclude=" + ",".join(["a"] * 101)),
            "mssql/tuned.conf: observed 101 names of profiles",
        ),
        (
            host_with("a b c", **dict.fromkeys("abc", "# x\n" * 20_000)),
            "c/tuned.conf: with it the configuration of nobody has more than 50000 lines",
        ),
    ],
    ids=["active", "included", "lines"],
)
def test_more_than_anybody_has_is_an_error(host: SmallHost, why: str) -> None:
    found = read(host)
    assert (found["profile"], found["sets"]) == ("unknown", {})
    assert why in causes.text(found["cause"])
