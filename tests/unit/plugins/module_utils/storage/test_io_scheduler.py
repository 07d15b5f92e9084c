# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The io_scheduler layer: written, read back, kept by a rule."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.storage import scheduler_rules
from ansible_collections.durable.dbhost.plugins.module_utils.storage.io_scheduler import (
    Target,
    apply,
    apply_release,
    plan,
    plan_release,
    target_of,
)

from ..fakes.fake_host import Killed
from ..fakes.small_host import BigHost, SmallHost

SDA, SDB = "serial:QEMU_HARDDISK_SATA0001", "serial:QEMU_HARDDISK_SATA0002"
QUEUE = "/sys/block/sda/queue"


def run(host: SmallHost, *targets: Target) -> list[tuple[str, str, str, str]]:
    """Plan and carry out; return (setting, when, before, after) of each change."""
    work = plan(host, list(targets))
    apply(host, work, list(targets))
    return [change[1:] for change in work.changes]


def rules(wanted: dict[str, dict[str, str]]) -> tuple[str, str, bytes]:
    return ("file", scheduler_rules.RULES_PATH, scheduler_rules.render(wanted).encode())


def test_written_and_kept() -> None:
    host = SmallHost()
    wanted = {"scheduler": "mq-deadline", "readahead": "4096"}
    assert run(host, Target(SDA, wanted)) == [
        ("scheduler", "running", "none", "mq-deadline"),
        ("scheduler", "persisted", "unset", "mq-deadline"),
        ("readahead", "running", "128", "4096"),
        ("readahead", "persisted", "unset", "4096"),
    ]
    assert host.mutations == [
        ("attribute", f"{QUEUE}/scheduler", "mq-deadline"),
        ("attribute", f"{QUEUE}/read_ahead_kb", "4096"),
        rules({SDA: wanted}),
    ]
    host.reboot()
    assert plan(host, [Target(SDA, wanted)]).changes == ()


def test_the_text_with_brackets_is_read_and_a_bare_name_written() -> None:
    """The file lists all of them, the one in force in brackets: never a shell's business."""
    host = SmallHost()
    host.disk("sda").scheduler = "none [bfq] kyber mq-deadline"
    assert run(host, Target(SDA, {"scheduler": "kyber"}))[0] == ("scheduler", "running", "bfq", "kyber")
    assert host.mutations[0][2] == "kyber"


def test_a_layer_takes_a_readahead() -> None:
    host = BigHost()
    device = host.layers["dm-0"].id
    run(host, Target(device, {"readahead": "2048"}))
    assert host.layers["dm-0"].readahead == "2048"
    host.reboot()
    assert host.layers["dm-0"].readahead == "2048"


def test_rules_of_other_devices_and_other_settings_stay() -> None:
    host = SmallHost()
    kept = {SDB: {"readahead": "64"}, SDA: {"readahead": "64"}}
    host.files[scheduler_rules.RULES_PATH] = scheduler_rules.render(kept)
    run(host, Target(SDA, {"scheduler": "none"}))
    assert host.mutations == [
        rules({SDB: {"readahead": "64"}, SDA: {"scheduler": "none", "readahead": "64"}})
    ]


def test_a_second_run_does_nothing_and_planning_changes_nothing() -> None:
    host = SmallHost()
    target = Target(SDA, {"scheduler": "mq-deadline"})
    assert plan(host, [target]).changes
    assert host.mutations == []
    run(host, target)
    host.mutations.clear()
    assert run(host, target) == []
    assert host.mutations == []


@pytest.mark.parametrize(
    ("arrange", "wanted", "message"),
    [
        (
            lambda host: host.unplug("sda"),
            {"scheduler": "none"},
            f"{SDA}: no block device of that id is there; expected",
        ),
        (
            lambda host: host.files.update({host.resolve(f"{QUEUE}/scheduler"): "none\n"}),
            {"scheduler": "none"},
            r"sda\): its scheduler cannot be set: observed no list of schedulers",
        ),
        (
            lambda host: host.files.update({host.resolve(f"{QUEUE}/read_ahead_kb"): "much\n"}),
            {"readahead": "4"},
            r"sda\): its readahead cannot be read",
        ),
        (
            lambda host: host.files.update({scheduler_rules.RULES_PATH: Unobservable("rules: I/O error")}),
            {"scheduler": "none"},
            "rules: I/O error",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_changes(
    arrange: Any, wanted: dict[str, str], message: str
) -> None:
    host = SmallHost()
    arrange(host)
    with pytest.raises(ChangeFailed, match=message):
        run(host, Target(SDB, {"scheduler": "mq-deadline"}), Target(SDA, wanted))
    assert host.mutations == []


@pytest.mark.fact(25)
def test_a_scheduler_that_is_not_there_is_a_failure_and_the_others_are_still_set() -> None:
    """noop and cfq fail; so does bfq where its module is not loaded."""
    host = SmallHost()
    with pytest.raises(ChangeFailed, match="sda/queue/scheduler: Invalid argument"):
        run(host, Target(SDA, {"scheduler": "bfq"}), Target(SDB, {"scheduler": "mq-deadline"}))
    assert host.disk("sdb").scheduler == "none [mq-deadline]"
    assert SDB in scheduler_rules.read(host)


def test_a_device_that_does_not_follow_is_a_failure() -> None:
    host = SmallHost()
    host.disk("sda").obeys = False
    with pytest.raises(
        ChangeFailed, match=rf"{SDA}: scheduler \(running\): observed none, expected mq-deadline"
    ):
        run(host, Target(SDA, {"scheduler": "mq-deadline"}))


@pytest.mark.parametrize("stop", [Killed, ChangeFailed])
@pytest.mark.parametrize("stop_at", [1, 2, 3])
def test_stopped_anywhere_a_second_run_ends_it(stop: type[BaseException], stop_at: int) -> None:
    host = SmallHost()
    target = Target(SDA, {"scheduler": "mq-deadline", "readahead": "4096"})
    ways = host.ways_to_lose()
    host.stop_at, host.stop = stop_at, stop
    try:
        run(host, target)
    except (Killed, ChangeFailed):
        pass
    host.stop_at = 0
    assert host.ways_to_lose() == ways
    run(host, target)
    assert plan(host, [target]).changes == ()


def test_settings_that_are_none_are_not_wanted() -> None:
    row = {"device": SDA, "scheduler": None, "readahead": 2048}
    assert target_of(row) == Target(SDA, {"readahead": "2048"})
    assert target_of({"device": SDA}) == Target(SDA, {})


class TestRelease:
    def test_the_rule_file_goes_and_the_settings_stay(self) -> None:
        host = SmallHost()
        run(host, Target(SDA, {"scheduler": "mq-deadline"}))
        work = plan_release(host)
        assert work.changes == (
            (scheduler_rules.RULES_PATH, "rules", "persisted", "present", "absent"),
            (SDA, "scheduler", "persisted", "mq-deadline", "unset"),
        )
        apply_release(host, work)
        assert host.disk("sda").scheduler == "none [mq-deadline]"
        assert plan_release(host).changes == ()

    def test_a_file_that_somebody_edited_is_still_ours(self) -> None:
        host = SmallHost()
        host.files[scheduler_rules.RULES_PATH] = "edited\n"
        work = plan_release(host)
        assert [change.target for change in work.changes] == [scheduler_rules.RULES_PATH]
        apply_release(host, work)
        assert plan_release(host).changes == ()

    def test_nothing_to_release(self) -> None:
        assert plan_release(SmallHost()).changes == ()


FOREIGN = 'ACTION=="add|change", SUBSYSTEM=="block", KERNEL=="sda", RUN+="/sbin/hdparm -q -W1 $devnode"\n'


VDB = "serial:VIRT0001"


def test_a_rule_of_somebody_elses_beside_our_schedulers_goes_and_ours_stay() -> None:
    host = SmallHost()
    rules = {SDA: {"scheduler": "none"}, VDB: {"scheduler": "mq-deadline"}}
    host.files[scheduler_rules.RULES_PATH] = scheduler_rules.render(rules) + FOREIGN
    assert scheduler_rules.read(host) == {}
    target = [Target(SDA, {"scheduler": "none"})]
    apply(host, plan(host, target), target)
    assert scheduler_rules.read(host) == rules
