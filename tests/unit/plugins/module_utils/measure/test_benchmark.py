# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The benchmark: fio's words, what it says, doubts, advice; settings that are put back."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.mountinfo import Mount
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import (
    ChangeFailed,
    Result,
    Unobservable,
)
from ansible_collections.durable.dbhost.plugins.module_utils.measure import (
    advice,
    benchmark,
    fio,
    planned,
    plot,
    variants,
)
from ansible_collections.durable.dbhost.plugins.module_utils.measure.limits import Refused
from ansible_collections.durable.dbhost.plugins.module_utils.measure.plausible import doubt
from ansible_collections.durable.dbhost.plugins.module_utils.measure.variants import (
    AS_IT_IS,
    CACHE_OFF,
    Variant,
)
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fake_host import FakeHost
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.small_host import SmallHost

from .test_scratch import mount_of

ROW = {
    "mounts": ["/srv/pgdata"],
    "patterns": ["direct_dsync", "append_fsync"],
    "transactions": [],
    "commit_delays": [1],
    "clients": [1, 4],
    "schedulers": [],
    "mount_options": [],
    "write_caches": [],
    "seconds": 5,
    "runs": 1,
    "minutes": 15,
    "size": 1,
    "rate": 50000,
}


def disk(**changes: Any) -> dict[str, Any]:
    """Return a rotating SATA disk whose cache is on."""
    cache = {"device": "enabled", "kernel": "write back", "volatile": "unknown"}
    return {
        "name": "sda",
        "id": "serial:SATA0001",
        "kind": "physical",
        "rotational": "yes",
        "fua": "unsupported",
        "write_cache": {**cache, **changes.pop("cache", {})},
        "scheduler": {"running": "mq-deadline", "available": ["none", "mq-deadline", "bfq"]},
        **changes,
    }


def place(**changes: Any) -> dict[str, Any]:
    """Return a mount on that disk."""
    return {
        "target": "/srv",
        "mount": Mount("8:1", "/", "/srv", (), "ext4", "/dev/sda1", (), number="30"),
        "barrier": "on",
        "device": "8:1",
        "fstype": "ext4",
        "atime": "relatime",
        "sync": "no",
        "leaves": [disk()],
        **changes,
    }


def said(
    commits: int = 1000, milliseconds: int = 2000, sync: bool = False, groups: int = 1, **job: Any
) -> str:
    """Return what fio says of groups that are all alike."""
    waits = {"percentile": {"99.000000": 3_000_000}}
    return "fio: a note\n" + json.dumps(
        {
            "jobs": [
                {
                    "error": 0,
                    "write": {"total_ios": commits, "runtime": milliseconds, "clat_ns": waits},
                    "sync": {
                        "total_ios": commits if sync else 0,
                        "lat_ns": {"percentile": {"99.000000": 9_000_000}},
                    },
                    **job,
                }
            ]
            * groups
        }
    )


#: What fio 3.33 says of its option `sync`, and what it says from before it knew O_DSYNC.
SYNC = """\
                sync: Use synchronous write IO
                type: string (opt=bla)
             default: none
        valid values: none
                    : 0
                    : sync
                    : 1
                    : dsync
"""
OLD_SYNC = """\
                sync: Use O_SYNC for buffered writes
                type: boolean value (opt=bool)
             default: 0
"""


class FioHost(SmallHost):
    """fio is there, and says the same each time."""

    def __init__(self, said: str = said(), sync: str = SYNC) -> None:
        super().__init__()
        self.said, self.ran = said, []  # type: str, list[list[str]]
        self.questions = {"--version": "fio-3.33\n", "--cmdhelp=sync": sync}

    def run(self, argv: list[str], timeout: float = 10.0) -> Result:
        if argv[0] != "fio":
            return super().run(argv, timeout)
        self.ran.append(argv)
        return Result(0, self.questions.get(argv[1], self.said), "")


class TestFio:
    @pytest.mark.parametrize("pattern", sorted(fio.WORDS))
    def test_it_writes_to_files_that_are_there_and_makes_none(self, pattern: str) -> None:
        words = fio.argv(pattern, [["/proc/1/fd/3", "/proc/1/fd/4"]], 8, 5, 1000)
        assert {"--allow_file_create=0", "--fallocate=none", "--runtime=5", "--rate_iops=500"} <= set(words)
        assert [word for word in words if word.startswith("--filename")] == [
            "--filename=/proc/1/fd/3",
            "--filename=/proc/1/fd/4",
        ]
        assert set(fio.WORDS[pattern]) <= set(words)
        assert ("--time_based" in words) == (pattern != "append_fsync")

    def test_each_mount_is_a_group_of_its_own(self) -> None:
        words = fio.argv("dsync", [["a", "b"], ["c", "d"]], 8, 5, 1000)
        clients = words[words.index("--name=g0c0") :]
        assert clients == [
            *("--name=g0c0", "--new_group", "--filename=a", "--name=g0c1", "--filename=b"),
            *("--name=g1c0", "--new_group", "--filename=c", "--name=g1c1", "--filename=d"),
        ]
        assert "--rate_iops=500" in words

    def test_figures(self) -> None:
        assert fio.parse(said(), 1, 2) == [fio.Figures(1000, 500.0, 4.0, 3.0)]
        assert fio.parse(said(sync=True), 1, 1)[0].p99 == 9.0
        assert len(fio.parse(said(groups=2), 2, 1)) == 2
        with pytest.raises(Unobservable, match="observed 2 groups, expected 1"):
            fio.parse(said(groups=2), 1, 1)

    @pytest.mark.parametrize(
        "text", ["", "{}", "fio: broken", said(commits=0), said(milliseconds=0), said(error=5)]
    )
    def test_what_is_no_measurement_is_unobservable(self, text: str) -> None:
        with pytest.raises(Unobservable, match="fio"):
            fio.parse(text, 1, 1)


class TestPlausible:
    @pytest.mark.parametrize(
        ("seen", "rate", "clients", "doubted"),
        [
            (disk(), 120, 1, False),
            (disk(), 375, 1, False),
            (disk(), 376, 1, True),
            (disk(), 1400, 4, False),
            (disk(), 1600, 4, True),
            (disk(cache={"device": "disabled"}), 5000, 1, True),
            (disk(cache={"volatile": "non_volatile"}), 5000, 1, False),
            (disk(kind="virtual"), 5000, 1, False),
            (disk(kind="virtual"), 20001, 1, True),
            (disk(kind="virtual"), 90000, 16, False),
            (disk(cache={"device": "none", "volatile": "non_volatile"}), 5000, 1, True),
            (disk(rotational="no"), 20000, 1, False),
            (disk(rotational="no"), 20001, 1, True),
            (disk(rotational="no", cache={"device": "none"}), 99999, 1, False),
        ],
    )
    def test_a_disk_cannot_be_faster_than_it_turns(
        self, seen: Any, rate: float, clients: int, doubted: bool
    ) -> None:
        found = doubt(seen, rate, clients)
        assert bool(found) == doubted
        assert found is None or f"observed {rate:g}" in found


class TestPlan:
    def test_what_is_as_it_is_alone_by_default(self) -> None:
        made = planned.plan(FioHost(), ROW)
        assert (made.variants, made.runs) == ([Variant(AS_IT_IS)], 4)

    @pytest.mark.parametrize(
        ("changes", "why"),
        [
            ({"mounts": ["/nowhere"]}, "nothing is mounted"),
            ({"clients": []}, "clients"),
            ({"mounts": []}, "mounts: observed none"),
            ({"clients": [81]}, "clients"),
            ({"patterns": ["group_osync"], "commit_delays": []}, "commit_delays"),
            ({"patterns": ["group_osync"], "commit_delays": [1001]}, "commit_delays"),
            ({"seconds": 1}, "seconds"),
            ({"size": 0}, "size"),
            ({"rate": 1}, "rate"),
            ({"patterns": ["direct"]}, "patterns"),
            ({"schedulers": ["cfq"]}, "schedulers"),
            ({"schedulers": ["kyber"]}, "expected one that is loaded there"),
            ({"mount_options": ["barrier=0"]}, "mount_options"),
            ({"seconds": 60, "minutes": 1}, "expected at most 60"),
        ],
    )
    def test_wrong_input_is_refused_before_anything_starts(self, changes: Any, why: str) -> None:
        host = FioHost()
        with pytest.raises(Refused, match=why):
            planned.plan(host, {**ROW, **changes})
        assert host.mutations == []
        assert all(argv[1] in host.questions for argv in host.ran)

    def test_without_fio_it_is_refused(self) -> None:
        with pytest.raises(Refused, match="install it"):
            planned.plan(SmallHost(), ROW)
        alone = planned.plan(SmallHost(), {**ROW, "patterns": ["group_osync"]})
        assert alone.ways == [planned.Way("group_osync", 1)]

    def test_a_fio_that_knows_no_dsync_is_told_before_it_fails(self) -> None:
        host = FioHost(sync=OLD_SYNC)
        with pytest.raises(Refused, match=r"knows no O_DSYNC.* without direct_dsync"):
            planned.plan(host, {**ROW, "patterns": ["osync", "direct_dsync"]})
        assert planned.plan(host, {**ROW, "patterns": ["osync"]}).ways == [planned.Way("osync")]

    def test_the_published_table_can_be_asked_for(self) -> None:
        asked = {
            "patterns": ["group_osync", "osync"],
            "commit_delays": [-1, 1],
            "clients": [80, 1, 10, 20, 40],
        }
        made = planned.plan(FioHost(), {**ROW, **asked})
        assert made.clients == [1, 10, 20, 40, 80]
        ways = [("group_osync", -1), ("group_osync", 1), ("osync", None)]
        assert made.ways == [planned.Way(*way) for way in ways]

    def test_two_mount_points_of_one_file_system_are_refused(self) -> None:
        host = FioHost()
        other = replace(host.mounts["/srv/pgdata"], target="/srv/again")
        host.add_mount(other, "")
        with pytest.raises(Refused, match="/srv/pgdata and /srv/again of one file system"):
            planned.plan(host, {**ROW, "mounts": ["/srv/pgdata", "/srv/again"]})

    def test_a_busy_disk_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(benchmark.time, "sleep", lambda _seconds: None)
        host, ticks = FakeHost(), iter([100, 450, 100, 700])
        host.files["/sys/block/sda/stat"] = lambda: " ".join(["0"] * 9 + [str(next(ticks))] + ["0"] * 7)
        benchmark.expect_quiet(host, ["sda"])
        with pytest.raises(Refused, match="busy 30%"):
            benchmark.expect_quiet(host, ["sda"])


class Kernel(FakeHost):
    """One disk with a scheduler, one mount that can be remounted; `deaf` follows no more."""

    def __init__(self) -> None:
        super().__init__()
        self.scheduler, self.options, self.super_options = "mq-deadline", "rw,nosuid,relatime", "rw,lazytime"
        self.deaf = False
        self.files["/sys/block/sda/queue/scheduler"] = lambda: f"none [{self.scheduler}] x\n"
        self.files["/proc/self/mountinfo"] = lambda: (
            f"30 1 8:1 / /srv {self.options} - ext4 /dev/sda1 {self.super_options}\n"
        )

    def on_attribute(self, path: str, value: str) -> None:
        if not self.deaf:
            self.scheduler = value

    def on_options(self, target: str, options: Sequence[str]) -> None:
        assert target == "/srv"
        if self.deaf:
            raise ChangeFailed("mount: refused")
        (word,) = options
        if "atime" in word:
            self.options = ",".join(("rw", "nosuid", *([word] if word != "strictatime" else [])))
        else:
            self.super_options = {"sync": "rw,lazytime,sync", "async": "rw,lazytime"}[word]


TRIED = [
    Variant("x", "scheduler", "none"),
    Variant("x", "atime", "noatime"),
    Variant("x", "atime", "strictatime"),
    Variant("x", "sync", "sync"),
]


class TestVariants:
    def state(self, host: Kernel) -> tuple[str, str, str]:
        return host.scheduler, host.options, host.super_options

    @pytest.mark.parametrize("tried", TRIED, ids=lambda one: one.value)
    def test_each_is_in_force_and_put_back_after_a_failure_too(self, tried: Variant) -> None:
        host = Kernel()
        before = self.state(host)
        with variants.in_force(host, [place()], tried):
            assert self.state(host) != before
        assert self.state(host) == before
        with pytest.raises(KeyError), variants.in_force(host, [place()], tried):
            raise KeyError
        assert self.state(host) == before

    @pytest.mark.parametrize("tried", TRIED, ids=lambda one: one.value)
    def test_what_could_not_be_put_back_is_said(self, tried: Variant) -> None:
        host = Kernel()
        with (
            pytest.raises(ChangeFailed, match=r"could not be restored to .*by hand"),
            variants.in_force(host, [place()], tried),
        ):
            host.deaf = True

    def test_a_mount_that_was_sync_before_is_so_afterwards(self) -> None:
        """It is tried if another of the measured mounts is not sync."""
        host = Kernel()
        host.super_options = "rw,lazytime,sync"
        with variants.in_force(host, [place(sync="yes")], Variant("x", "sync", "sync")):
            pass
        assert host.super_options == "rw,lazytime,sync"

    def test_another_mount_of_the_device_is_not_changed(self) -> None:
        """It is at the same path by now, as the owner of a directory above can arrange."""
        host = Kernel()
        assessed = place()["mount"]._replace(number="29")
        for tried in TRIED[1:]:
            changed = variants.in_force(host, [place(mount=assessed)], tried)
            with pytest.raises(ChangeFailed, match="assessed is not there"), changed:
                pass
        assert host.mutations == []

    def test_as_it_is_changes_nothing(self) -> None:
        host = Kernel()
        with variants.in_force(host, [place()], Variant(AS_IT_IS)):
            pass
        assert host.mutations == []

    def test_what_is_in_force_already_is_not_tried_again(self) -> None:
        found = variants.plan(
            FakeHost(), [place(sync="yes")], ["mq-deadline", "bfq"], ["relatime", "sync", "noatime"]
        )
        assert [one.value for one in found] == ["", "bfq", "noatime"]

    def test_another_file_system_is_refused(self) -> None:
        with pytest.raises(Refused, match="expected ext4 or xfs"):
            variants.plan(FakeHost(), [place(fstype="btrfs")], [], ["sync"])

    def test_nothing_that_loosens_can_be_asked_for(self) -> None:
        assert not [word for word in variants.MOUNT_OPTIONS if "barrier" in word or "data=" in word]


def row(variant: str, rate: float, clients: int = 1, pattern: str = "dsync") -> dict[str, Any]:
    """Return one measured row."""
    return {
        "variant": variant,
        "mount": "/srv",
        "pattern": pattern,
        "commit_delay": None,
        "clients": clients,
        "commits": 100,
        "rate": rate,
        "mean": round(clients * 1000 / rate, 3),
        "p99": 1.0,
        "flushes_per_commit": 1.0,
        "held_back": "no",
        "server": None,
        "runs": 3,
        "spread": 0.02,
    }


class TestAdvice:
    def made(self, **changes: Any) -> planned.Plan:
        tried = [Variant(AS_IT_IS), Variant("scheduler bfq", "scheduler", "bfq")]
        return planned.Plan([place(**changes)], [planned.Way("dsync")], [1], tried, 5, 1, 50000)

    @pytest.mark.parametrize(
        ("rate", "profile", "words"),
        [
            (105, {}, "keep the settings as they are"),
            (50, {}, "keep the settings as they are"),
            (150, {"scheduler_rotational": "mq-deadline"}, "durable_overrides: {scheduler_rotational: bfq}"),
            (150, {"scheduler_rotational": "bfq"}, "run harden_db"),
            (150, None, "pin a profile"),
            (150, "of another mount", "pin a profile"),
        ],
    )
    def test_by_measurement_within_the_profile(self, rate: float, profile: Any, words: str) -> None:
        rows = [row(AS_IT_IS, 100), row("scheduler bfq", rate)]
        profiles = {"/srv": profile} if isinstance(profile, dict) else {"/other": {}} if profile else {}
        assert words in advice.recommend(self.made(), rows, profiles)[-1]

    def test_the_fastest_way_to_commit_is_named(self) -> None:
        rows = [row(AS_IT_IS, 100), row(AS_IT_IS, 200, pattern="osync")]
        made = self.made()._replace(variants=[Variant(AS_IT_IS)])
        assert advice.recommend(made, rows, {}) == [
            "/srv, 1 client(s): osync is the fastest way to commit, 5.0 ms"
        ]

    @pytest.mark.parametrize(
        ("rates", "said"),
        [
            (
                {(1, -1): 2000, (1, 1): 1000, (40, -1): 2500, (40, 1): 3000},
                "1 client(s): -1, 40 client(s): 1; durable",
            ),
            ({(1, 0): 2000, (1, 1): 1000}, "1 client(s): 0; durable_overrides: {commit_delay: 0}"),
            ({(1, -1): 1000, (1, 1): 1050}, "1 client(s): no difference; leave commit_delay unchanged"),
        ],
    )
    def test_the_delay_is_named_by_the_number_of_clients(
        self, rates: dict[tuple[int, int], float], said: str
    ) -> None:
        rows = [
            {**row(AS_IT_IS, rate, clients, "group_osync"), "commit_delay": delay}
            for (clients, delay), rate in rates.items()
        ]
        made = self.made()._replace(clients=sorted({clients for clients, _delay in rates}))
        (advice_of_it,) = [
            line for line in advice.recommend(made, rows, {}) if "fastest commit_delay" in line
        ]
        assert f"/srv: the fastest commit_delay of FairCom DB for {said}" in advice_of_it
        one = [each for each in rows if each["commit_delay"] == 1]
        assert not any("fastest commit_delay" in line for line in advice.recommend(made, one, {}))

    def tried(self, rates: dict[str, float], spread: float = 0.02) -> tuple[planned.Plan, list[Any]]:
        """Return a plan with two schedulers and an atime, and its rows: by name the rate, 100 as it is."""
        tried = [
            Variant(AS_IT_IS),
            Variant("scheduler bfq", "scheduler", "bfq"),
            Variant("scheduler none", "scheduler", "none"),
            Variant("mount option noatime", "atime", "noatime"),
            Variant(CACHE_OFF, "write_cache", "disabled"),
        ]
        made = self.made()._replace(variants=[each for each in tried if each.name in {AS_IT_IS, *rates}])
        rows = [{**row(name, rate), "spread": spread} for name, rate in {AS_IT_IS: 100.0, **rates}.items()]
        return made, rows

    def test_the_best_of_each_kind_of_setting_is_copied_to_group_vars(self) -> None:
        made, rows = self.tried({"scheduler bfq": 130, "scheduler none": 150, "mount option noatime": 120})
        assert advice.group_vars(made, rows, {}, []) == [
            "durable_overrides:",
            "  scheduler_rotational: none  # 50% more commits",
            "  atime: noatime  # 20% more commits",
        ]
        pinned = {"/srv": {"scheduler_rotational": "none", "atime": "noatime"}}
        assert advice.group_vars(made, rows, pinned, []) == []
        table = str(benchmark.result_of(made, rows, {}, {})["table"])
        assert table.endswith(
            "durable_overrides:\n  scheduler_rotational: none  # 50% more commits\n  atime: noatime  # 20% more commits\n"
        )

    def test_a_difference_smaller_than_that_of_the_runs_is_no_advice(self) -> None:
        made, rows = self.tried({"scheduler none": 130}, spread=0.4)
        lines = advice.recommend(made, rows, {})
        assert lines[-2:] == [
            "scheduler none: observed +30%, but runs of the same setting differ by 40%. Fix: measure on a quiet host, with more"
            " seconds",
            "keep the settings as they are: nothing tried was clearly faster by 10%",
        ]
        assert advice.group_vars(made, rows, {}, []) == []
        delays = [
            {**row(AS_IT_IS, rate, 1, "group_osync"), "commit_delay": delay, "spread": 0.4}
            for delay, rate in ((0, 130), (1, 100))
        ]
        assert any("1 client(s): no difference" in line for line in advice.recommend(made, delays, {}))

    @pytest.mark.parametrize(
        ("rate", "spread", "profile", "note"),
        [
            (97, 0.02, ["durable_profile: strict  # 3% slower than the present settings"], False),
            (97, 0.08, [], True),
            (60, 0.02, [], False),
            (105, 0.02, ["durable_profile: strict  # 5% faster than the present settings"], False),
        ],
    )
    def test_a_safer_profile_is_recommended_if_it_costs_little(
        self, rate: float, spread: float, profile: list[str], note: bool
    ) -> None:
        made, rows = self.tried({CACHE_OFF: rate}, spread)
        fields = {"engines": "full", "rests_on": "device", "barrier": "on", "write_cache": "disabled"}
        result = benchmark.result_of(made, rows, {}, {"strict": fields})
        assert result["group_vars"] == profile
        (line,) = [each for each in result["advice"] if "/srv: strict is " in each]
        assert line.endswith("is worth it" if profile else "the guarantee that you need")
        assert any("runs of the same setting differ by" in each for each in result["advice"]) == note

    def test_a_lying_cache_comes_before_all_advice(self) -> None:
        result = benchmark.result_of(self.made(), [row(AS_IT_IS, 9000)], {}, {})
        assert len(result["doubts"]) == 1
        assert result["advice"][0].startswith("do not choose by these figures")
        assert result["group_vars"] == []
        assert "WARNING: sda" in result["table"]

    def test_without_rows_there_is_nothing_to_say(self) -> None:
        result = benchmark.result_of(self.made(), [], {}, {})
        assert [result[name] for name in ("table", "svg", "advice", "prices")] == ["", "", [], []]


def test_a_run_measures_each_combination_on_all_mounts_and_leaves_nothing(tmp_path: Path) -> None:
    host = FioHost(said(groups=2))
    here = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        here.append(place(target=str(tmp_path / name), mount=mount_of(tmp_path / name)))
    ways = [planned.Way("direct_dsync"), planned.Way("append_fsync")]
    made = planned.Plan(here, ways, [1, 2], [Variant(AS_IT_IS)], 2, 1, 50000)
    rows = benchmark.run(host, made, busy_allowed=True)
    assert [(one["pattern"], one["clients"], one["mount"]) for one in rows] == [
        (way.pattern, count, mount) for way in ways for count in (1, 2) for mount in made.targets
    ]
    assert all(
        word.startswith("--filename=/proc/") for argv in host.ran for word in argv if "filename" in word
    )
    assert [argv.count("--new_group") for argv in host.ran] == [2] * 4
    assert {one["flushes_per_commit"] for one in rows} == {"unknown"}, "both mounts are on one disk"
    assert [os.listdir(one) for one in made.targets] == [[], []]
    host.said = "broken"
    with pytest.raises(Unobservable):
        benchmark.run(host, made, busy_allowed=True)
    assert [os.listdir(one) for one in made.targets] == [[], []]


def test_each_measurement_is_repeated_and_the_median_has_the_spread(tmp_path: Path) -> None:
    here = place(target=str(tmp_path), mount=mount_of(tmp_path))

    class Varied(FioHost):
        """Each of three runs is as fast as another."""

        rates = iter([100, 300, 200, 50, 50, 60])

        def run(self, argv: list[str], timeout: float = 10.0) -> Result:
            self.said = said(commits=next(self.rates), milliseconds=1000)
            return super().run(argv, timeout)

    made = planned.Plan(
        [here], [planned.Way("direct_dsync")], [1], [Variant(AS_IT_IS)], 2, 1, 50000, repeats=3
    )
    assert made.runs == 3
    for rate, spread in ((200.0, 1.0), (50.0, 0.2)):
        (found,) = benchmark.run(Varied(), made, busy_allowed=True)
        assert (found["rate"], found["commits"], found["runs"], found["spread"]) == (rate, rate, 3, spread)
    assert " 100% " in "".join(plot.as_lines([{**found, "spread": 1.0}], []))


def test_clients_that_share_a_log_take_the_room_of_one(tmp_path: Path) -> None:
    here = place(target=str(tmp_path), mount=mount_of(tmp_path))
    made = planned.Plan([here], [planned.Way("group_osync", 1)], [3], [Variant(AS_IT_IS)], 2, 1, 64)
    seen: list[int] = []

    class Watched(FioHost):
        """It counts the scratch files when the flushes are counted."""

        def read(self, path: str, limit: int = 2**20) -> str:
            if path.endswith("/stat"):
                seen.append(len(os.listdir(tmp_path)))
            return super().read(path)

    (row,) = benchmark.run(Watched(), made, busy_allowed=True)
    assert set(seen) == {1}
    assert (row["clients"], row["commit_delay"]) == (3, 1)
    assert row["commits"] >= 3
