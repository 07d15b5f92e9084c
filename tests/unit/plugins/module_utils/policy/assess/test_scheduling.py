# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Schedulers and readahead beside what the profile wants: rows of speed, never of safety."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import scheduling
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess.scheduling import wanted_scheduler
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect.guarantees import Disk
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import BadInput, Profile, choose
from ansible_collections.durable.dbhost.plugins.module_utils.storage import scheduler_rules
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.storage.disks import Disks

from ...fakes.runs import (
    NOW,
    OWN,
    enforce,
    look,
    settled,
    shipped,
)
from ...fakes.small_host import BigHost, SmallHost

#: A scheduler for each kind of disk.
SCHEDULERS = {
    "scheduler_rotational": "mq-deadline",
    "scheduler_solid_state": "kyber",
    "scheduler_virtual": "bfq",
}
#: Requests what the disk of /srv/pgdata has.
PRESENT = {"scheduler_solid_state": "none"}


def profile(**changes: Any) -> Profile:
    return choose("ours", {}, {"ours": {**OWN, **changes}}, {})[0]


def rows(host: SmallHost, *mounts: str, **changes: Any) -> dict[tuple[str, str], dict[str, Any]]:
    found = look(host, "ours", mounts=mounts, own={"ours": {**OWN, **changes}})
    return {
        (row["target"], row["setting"]): row for row in found["settings"] if row["layer"] == "io_scheduler"
    }


@pytest.mark.parametrize(
    ("kind", "rotational", "expected"),
    [
        ("physical", "yes", "mq-deadline"),
        ("physical", "no", "kyber"),
        ("physical", "unknown", "keep"),
        ("virtual", "yes", "bfq"),
        ("virtual", "no", "bfq"),
        ("san", "yes", "keep"),
        ("raid_volume", "no", "keep"),
        ("network", "no", "keep"),
        ("unknown", "yes", "keep"),
    ],
)
@pytest.mark.fact(25)
def test_each_kind_of_disk_has_its_own_key(kind: str, rotational: str, expected: str) -> None:
    chosen = profile(**SCHEDULERS)
    assert wanted_scheduler({"kind": kind, "rotational": rotational}, chosen) == expected


@pytest.mark.parametrize("name", sorted(shipped()))
def test_no_shipped_profile_requests_a_scheduler_or_readahead(name: str) -> None:
    chosen = choose(name, shipped(), {}, {})[0]
    assert {getattr(chosen, key) for key in (*SCHEDULERS, "readahead")} == {"keep"}


def test_a_profile_that_says_nothing_leaves_everything() -> None:
    assert rows(SmallHost(), "/srv/pgdata", "/srv/maria") == {}


def test_a_virtual_disk_is_set_where_a_profile_of_ones_own_says_so() -> None:
    found = rows(SmallHost(), "/srv/maria", scheduler_virtual="mq-deadline")
    assert found[("serial:VIRT0001", "scheduler")]["verdict"] == "drift_running"


def test_readahead_is_that_of_the_device_that_carries_the_file_system() -> None:
    host = BigHost()
    found = rows(host, "/srv/faircom", "/srv/pgdata", "/srv/btrfs", readahead=4096)
    assert sorted(found) == sorted(
        [(host.layers["dm-0"].id, "readahead"), (host.disk("sda").id, "readahead")]
    )
    assert found[(host.layers["dm-0"].id, "readahead")]["evidence"]["disk"] == "dm-0"


@pytest.mark.parametrize(
    ("running", "persisted", "verdict"),
    [
        ("[none] mq-deadline", "none", "ok"),
        ("[none] mq-deadline", None, "drift_persisted"),
        ("none [mq-deadline]", "none", "drift_running"),
        ("[none] mq-deadline", "mq-deadline", "drift_persisted"),
        ("none mq-deadline", "none", "unknown"),
    ],
)
def test_it_holds_only_now_and_after_the_next_boot(running: str, persisted: str | None, verdict: str) -> None:
    host = settled("strict", overrides=PRESENT)
    host.disk("sda").scheduler = running
    kept = {host.disk("sda").id: {"scheduler": persisted}} if persisted else {}
    host.files[scheduler_rules.RULES_PATH] = scheduler_rules.render(kept)
    found = look(host, "strict", mounts=["/srv/pgdata"], overrides=PRESENT)
    (row,) = [row for row in found["settings"] if row["layer"] == "io_scheduler"]
    assert (row["verdict"], row["class"]) == (verdict, "performance")
    assert bool(row["remedy"]) == (verdict != "ok")
    # It is about speed: a note, with what to do, and no verdict.
    assert (found["verdict"], found["fails"], found["why"]) == ("durable", False, [])
    notes = [note for note in found["warnings"] if ": scheduler is " in note]
    assert [note.rpartition("; ")[2] for note in notes] == ([row["remedy"]] if row["remedy"] else [])


def test_a_device_without_a_name_of_its_own_is_not_planned() -> None:
    host = BigHost()
    host.layers["dm-0"].uuid = ""
    found = look(host, "ours", mounts=["/srv/faircom"], own={"ours": {**OWN, "readahead": 64}})
    (row,) = [row for row in found["settings"] if row["setting"] == "readahead"]
    assert (row["phase"], row["target"]) == (None, "dm-0")
    assert "io_scheduler" not in found["plan"]["tighten"]


@pytest.mark.parametrize(("multipath", "phase"), [("no", "tighten"), ("yes", None)])
def test_a_path_to_a_disk_is_not_set_by_a_name_that_others_have_too(
    multipath: str, phase: str | None
) -> None:
    host = SmallHost()
    storage = collect(host, NOW)
    (disk,) = [disk for disk in storage["disks"] if disk["name"] == "sda"]
    wanted = profile(scheduler_solid_state="mq-deadline", scheduler_rotational="mq-deadline")
    disks = [{**disk, "multipath": multipath, "scheduler": {**disk["scheduler"], "running": "none"}}]
    (row,) = scheduling.rows([], [Disk(disk, wanted) for disk in disks], storage["tuned"])
    assert (row.target, row.phase) == (host.disk("sda").id if phase else "sda", phase)


def test_both_settings_of_a_device_are_one_target() -> None:
    host = SmallHost()
    own = {"ours": {**OWN, "readahead": 512, "scheduler_solid_state": "mq-deadline"}}
    found = look(host, "ours", mounts=["/srv/pgdata"], own=own)
    assert found["plan"]["tighten"]["io_scheduler"] == [
        {"device": host.disk("sda").id, "scheduler": "mq-deadline", "readahead": "512"}
    ]
    enforce(host, found)
    assert (host.disk("sda").scheduler, host.disk("sda").readahead) == ("none [mq-deadline]", "512")
    assert [
        r
        for r in look(host, "ours", mounts=["/srv/pgdata"], own=own)["changes"]
        if r["layer"] == "io_scheduler"
    ] == []


@pytest.mark.parametrize("value", [True, "4096", -4, 3, 1.5, None, 4 * 1024 * 1024, [4]])
def test_a_readahead_that_is_none_is_refused(value: Any) -> None:
    with pytest.raises(BadInput, match=r"readahead: observed .* expected 'keep', or KiB"):
        profile(readahead=value)


@pytest.mark.parametrize("value", [0, 4, 128, 4096, "keep"])
def test_a_readahead_in_kib(value: Any) -> None:
    assert profile(readahead=value).readahead == value


@pytest.mark.parametrize("name", ["noop", "cfq", "deadline", "NONE", None, 0])
@pytest.mark.fact(25)
def test_a_scheduler_that_no_kernel_of_today_has_is_refused(name: Any) -> None:
    """deadline is only an alias, and reads back as mq-deadline: it would drift for ever."""
    with pytest.raises(BadInput, match="scheduler_rotational: observed"):
        profile(scheduler_rotational=name)


@pytest.mark.parametrize("how", ["bare", "absent"])
def test_a_device_that_orders_no_queue_has_no_scheduler_to_set(how: str) -> None:
    host = BigHost()
    path = f"{host.disk('nvme0n1').sysfs}/queue/scheduler"
    if how == "bare":
        host.files[path] = "none\n"
    else:
        del host.files[path]
    disk = Disks(host).collect("nvme0n1")["scheduler"]
    assert (disk["running"], disk["available"]) == ("none", [])
    own = {"mine": {**shipped()["flush"], "scheduler_solid_state": "mq-deadline"}}
    found = look(host, "mine", own=own, mounts=["/srv/firebird"])
    assert not [row for row in found["settings"] if row["setting"] == "scheduler"]
    host.files[path] = Unobservable("I/O error")
    (row,) = [
        row
        for row in look(host, "mine", own=own, mounts=["/srv/firebird"])["settings"]
        if row["setting"] == "scheduler"
    ]
    assert row["verdict"] == "unknown"


def test_a_readahead_with_a_point_is_refused() -> None:
    """128.0 in YAML passed, and the kernel refused it."""
    own = {"mine": {**shipped()["strict"], "readahead": 128.0}}
    found = look(SmallHost(), "mine", own=own)
    assert found["verdict"] == "blocked"
    assert any("128.0" in why for why in found["why"])


def test_what_is_only_slow_decides_no_verdict_and_its_steps_say_what_they_are() -> None:
    given: dict[str, Any] = {"mounts": ["/srv/pgdata"], "overrides": PRESENT}
    host = settled("strict", **given)
    host.disk("sda").scheduler = "none [mq-deadline]"
    host.mounts["/srv/pgdata"].atime = "strictatime"
    found = look(host, "strict", **given)
    assert (found["verdict"], found["fails"]) == ("durable", False)
    assert {(step["layer"], step["class"]) for step in found["steps"]} == {
        ("mount_options", "performance"),
        ("io_scheduler", "performance"),
    }
    host.mounts["/srv/pgdata"].barrier = "off"
    mixed = [
        (step["class"], step["arguments"]["targets"]) for step in look(host, mounts=["/srv/pgdata"])["steps"]
    ]
    target = {"target": "/srv/pgdata", "persist": True}
    assert mixed[:2] == [
        ("safety", [{**target, "barrier": "on"}]),
        ("performance", [{**target, "atime": "noatime"}]),
    ]
