# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules that keep write caches: what they do when udev runs them, and when they are not enough."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.storage import (
    cache_rules,
    io_scheduler,
    scheduler_rules,
    write_cache,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage.cache_rules import (
    HEADER,
    RULES_PATH,
    UNIT,
    UNIT_PATH,
    UNIT_TEXT,
    is_woken,
    read,
    read_rules,
    remove,
    render,
    write,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage.caches import PROGRAMS
from ansible_collections.durable.dbhost.plugins.module_utils.storage.disks import Disks

from ..fakes.sentences import sentence
from ..fakes.small_host import UNITS, BigHost, SmallHost

EVERY = (("sata", "sda"), ("scsi", "sdc"), ("nvme", "nvme0n1"), ("virtio", "vdb"))
RENDERED = f"""\
{HEADER}
# serial:QEMU_HARDDISK_SATA0001 sata disabled
ACTION=="add|change", SUBSYSTEM=="block", ENV{{DEVTYPE}}=="disk", ENV{{ID_SERIAL}}=="QEMU_HARDDISK_SATA0001", \
ENV{{ID_BUS}}=="ata", ATTR{{device/scsi_disk/*/cache_type}}="temporary write back"
ACTION=="add|change", SUBSYSTEM=="block", ENV{{DEVTYPE}}=="disk", ENV{{ID_SERIAL}}=="QEMU_HARDDISK_SATA0001", \
ENV{{ID_BUS}}=="ata", ATTR{{queue/write_cache}}="write back"
ACTION=="add|change", SUBSYSTEM=="block", ENV{{DEVTYPE}}=="disk", ENV{{ID_SERIAL}}=="QEMU_HARDDISK_SATA0001", \
ENV{{ID_BUS}}=="ata", RUN+="/sbin/hdparm -q -W0 $devnode"
"""
SDA = {"serial:QEMU_HARDDISK_SATA0001": ("sata", "disabled")}


def kept(state: str, *names: str) -> BigHost:
    """Return a host whose disks have a rule each."""
    host = BigHost()
    rules = {host.disk(name).id: (control, state) for control, name in EVERY if name in names}
    write(host, render(rules))
    return host


def test_rendered_bytes() -> None:
    assert render(SDA) == RENDERED
    assert render({}) == ""


@pytest.mark.parametrize(("control", "name"), EVERY)
@pytest.mark.parametrize("state", ["enabled", "disabled"])
@pytest.mark.parametrize("power_on", ["enabled", "disabled"])
@pytest.mark.parametrize("event", ["reboot", "reset"])
@pytest.mark.fact(20)
@pytest.mark.fact(21)
@pytest.mark.fact(48)
def test_udev_brings_each_disk_to_its_state_and_the_cache_mode_is_never_weaker(
    control: str, name: str, state: str, power_on: str, event: str
) -> None:
    """Many disks forget their setting at a power cycle or reset; replaced ones come with a default."""
    host = kept(state, name)
    disk = host.disk(name)
    disk.power_on = power_on
    host.reboot()
    if event == "reset":
        host.reset(name)
    # Over a layer that may pass no flush on, no rule turns a cache on.
    below_a_layer = name in ("sdc", "nvme0n1") and event == "reset"
    assert disk.cache == (power_on if below_a_layer and state == "enabled" else state)
    assert disk.cache_mode == "write back" or (disk.cache == "disabled" and control == "virtio")


@pytest.mark.parametrize(("control", "name"), [pair for pair in EVERY if pair[0] != "virtio"])
@pytest.mark.fact(21)
def test_between_a_reset_and_its_event_the_kernel_goes_on_flushing(control: str, name: str) -> None:
    """The kernel cache mode was write through, and the cache was on again."""
    host = kept("disabled", name)
    host.reboot()
    host.reset(name, heard=False)
    assert (host.disk(name).cache, host.disk(name).cache_mode) == ("enabled", "write back")


def test_a_rule_acts_on_its_own_disk_alone() -> None:
    host = kept("disabled", "sda", "sdc", "vdb")
    host.reboot()
    assert {name: disk.cache for name, disk in host.disks.items()} == {
        **dict.fromkeys(host.disks, "enabled"),
        **dict.fromkeys(("sda", "sdc", "vdb"), "disabled"),
    }


def test_a_scsi_disk_that_is_as_wanted_is_sent_nothing() -> None:
    """Each MODE SELECT can be an event of its own: a rule that always made one would run for ever."""
    host = kept("disabled", "sdc")
    host.reboot()
    sent = []
    host.disk("sdc").switch = sent.append  # type: ignore[method-assign]
    host.event("change", "sdc")
    assert sent == []


def test_a_scsi_disk_that_does_not_answer_is_still_pinned() -> None:
    host = kept("disabled", "sdc")
    host.disk("sdc").caching_page = False
    host.disk("sdc").pinned = False
    host.event("change", "sdc")
    assert host.disk("sdc").pinned


def test_a_disk_that_refuses_stops_no_other() -> None:
    host = kept("disabled", "sda", "sdc", "nvme0n1")
    host.disk("sdc").refuses = True
    host.reboot()
    assert [host.disk(name).cache for name in ("sda", "sdc", "nvme0n1")] == [
        "disabled",
        "enabled",
        "disabled",
    ]
    assert host.disk("sdc").cache_mode == "write back"


@pytest.mark.parametrize(
    "words", ["sata", "sata off", "floppy enabled", "sata enabled more", "sata  enabled", "sata none"]
)
def test_words_that_are_not_ours_do_not_count(words: str) -> None:
    host = SmallHost()
    host.files[RULES_PATH] = RENDERED.replace("sata disabled", words)
    assert read_rules(host) == {}


class TestSleep:
    """udev hears nothing of a resume, and a disk may wake with its cache on."""

    def test_a_unit_tells_udev(self) -> None:
        assert "udevadm trigger --action=change --subsystem-match=block" in UNIT_TEXT
        wanted = UNIT_TEXT.split("WantedBy=")[1].split()
        assert {"suspend.target", "hibernate.target"} <= set(wanted)
        # Ordered behind its target, that is after the sleep.
        assert set(UNIT_TEXT.split("After=")[1].split("\n")[0].split()) == set(wanted)

    def test_it_is_written_and_enabled_behind_the_rules(self) -> None:
        """A masked unit must not cost the rules, which hold the caches at the next boot."""
        host = SmallHost()
        write(host, RENDERED)
        assert [mutation[1] for mutation in host.mutations] == [RULES_PATH, UNIT_PATH, "systemctl"]
        assert is_woken(host)
        host.mutations.clear()
        write(host, RENDERED)
        assert [mutation[1] for mutation in host.mutations] == [RULES_PATH]

    @pytest.mark.parametrize(
        "damage",
        [
            lambda host: host.files.pop(UNIT_PATH),
            lambda host: host.files.update({UNIT_PATH: UNIT_TEXT + "\n"}),
            lambda host: host.files.update({UNIT_PATH: ""}),
            lambda host: host.links.pop(f"{UNITS}/suspend.target.wants/{UNIT}"),
        ],
    )
    def test_without_it_nothing_is_said_to_be_kept_and_the_next_run_mends_it(self, damage: Any) -> None:
        host = SmallHost()
        write(host, render(SDA))
        assert read(host) == SDA
        damage(host)
        assert (read(host), read_rules(host)) == ({}, SDA)
        write(host, render(SDA))
        assert read(host) == SDA

    def test_a_host_without_systemd_needs_none(self) -> None:
        host = SmallHost()
        del host.files["/run/systemd/system/marker"]
        write(host, render(SDA))
        assert [mutation[1] for mutation in host.mutations] == [RULES_PATH]
        assert read(host) == SDA

    @pytest.mark.parametrize("path", [RULES_PATH, UNIT_PATH])
    def test_what_cannot_be_read_is_said(self, path: str) -> None:
        host = SmallHost()
        write(host, render(SDA))
        host.files[path] = Unobservable(f"{path}: I/O error")
        with pytest.raises(Unobservable, match="I/O error"):
            read(host)


def test_removing_takes_rules_unit_and_links() -> None:
    host = SmallHost()
    files, links = dict(host.files), dict(host.links)
    write(host, RENDERED)
    remove(host)
    assert (dict(host.files), dict(host.links)) == (files, links)
    host.mutations.clear()
    remove(host)
    assert host.mutations == []


def test_the_file_sorts_after_the_rules_of_others_and_before_our_readahead() -> None:
    """A change of a cache mode resets the readahead (kernel 7.2)."""
    name = cache_rules.RULES_PATH.rpartition("/")[2]
    assert name > "85-hdparm.rules"
    assert name > "60-persistent-storage.rules"
    assert name > "99-zz-local.rules"
    assert name < scheduler_rules.RULES_PATH.rpartition("/")[2]


def test_the_readahead_survives_each_boot_and_event() -> None:
    """Our file for readahead sorted first, and our file for caches reset what it had set, at each boot."""
    host = kept("disabled", "sda", "sdc")
    rules = {host.disk(name).id: {"readahead": "512"} for name in ("sda", "sdc")}
    scheduler_rules.write(host, scheduler_rules.render(rules))
    host.reboot()
    host.reset("sdc")
    assert [host.disk(name).readahead for name in ("sda", "sdc")] == ["512", "512"]


@pytest.mark.parametrize(("control", "name"), EVERY)
def test_a_mode_that_a_rule_before_has_lowered_is_raised(control: str, name: str) -> None:
    """Kernel 6.12 and later keep what was written to queue/write_cache until the same file undoes it."""
    host = kept("enabled", name)
    vars(host.disk(name)).update(cache="enabled", cache_mode="write through", forced=True)
    host.event("change", name)
    assert host.disk(name).cache_mode == "write back"


def former(text: str) -> str:
    """Return a rule file as earlier releases wrote it: without the line that raises the mode."""
    return "".join(line for line in text.splitlines(True) if "queue/write_cache" not in line)


class TestFormerNames:
    """Files of earlier releases have other names: the next run renames them, and release removes both."""

    def test_the_next_run_writes_the_new_files_and_removes_the_old(self) -> None:
        host = SmallHost()
        sdb = {host.disk("sdb").id: ("sata", "disabled")}
        host.files[cache_rules.FORMER_PATH] = former(render({**SDA, **sdb}))
        schedule = {host.disk("sda").id: {"readahead": "512"}, host.disk("sdb").id: {"readahead": "1024"}}
        host.files[scheduler_rules.FORMER_PATH] = scheduler_rules.render(schedule)
        assert read(host) == scheduler_rules.read(host) == {}
        caches = [write_cache.Target(next(iter(SDA)), "disabled")]
        write_cache.apply(host, write_cache.plan(host, caches), caches)
        queues = [io_scheduler.Target(next(iter(SDA)), {"readahead": "512"})]
        io_scheduler.apply(host, io_scheduler.plan(host, queues), queues)
        assert (read(host), scheduler_rules.read(host)) == ({**SDA, **sdb}, schedule)
        assert not host.exists(cache_rules.FORMER_PATH)
        assert not host.exists(scheduler_rules.FORMER_PATH)
        assert (write_cache.plan(host, caches).changes, io_scheduler.plan(host, queues).changes) == ((), ())

    def test_an_edited_rule_of_the_old_file_is_not_taken_over(self) -> None:
        host = SmallHost()
        host.files[cache_rules.FORMER_PATH] = former(render(SDA)).replace("-W0", "-W1")
        assert read_rules(host) == {}

    def test_release_removes_both(self) -> None:
        host = SmallHost()
        host.files[cache_rules.FORMER_PATH] = former(render(SDA))
        host.files[scheduler_rules.FORMER_PATH] = scheduler_rules.render(
            {next(iter(SDA)): {"readahead": "512"}}
        )
        write_cache.apply_release(host, write_cache.plan_release(host))
        io_scheduler.apply_release(host, io_scheduler.plan_release(host))
        assert not [path for path in host.files if "durable-dbhost" in path]


class TestPrograms:
    """A rule that runs a program which is not installed has no effect."""

    @pytest.mark.parametrize(
        ("control", "name", "program", "state"),
        [
            ("sata", "sda", "/sbin/hdparm", "disabled"),
            ("scsi", "sdc", "/usr/bin/sdparm", "disabled"),
            ("nvme", "nvme0n1", "/usr/sbin/nvme", "disabled"),
            ("virtio", "vdb", "/bin/lsblk", "enabled"),
        ],
    )
    def test_nothing_is_persisted_without_it_and_the_reason_says_what_to_install(
        self, control: str, name: str, program: str, state: str
    ) -> None:
        host = kept(state, name)
        target = write_cache.Target(host.disk(name).id, state)
        assert Disks(host).collect(name)["write_cache"]["persisted"] == state
        del host.files[program]
        facts = Disks(host).collect(name)
        assert facts["write_cache"]["persisted"] == "unset"
        tool = program.rpartition("/")[2]
        assert f"install {tool}" in sentence(facts, "write_cache.persisted")
        with pytest.raises(ChangeFailed, match=f"install {tool}"):
            write_cache.plan(host, [target])

    def test_the_path_of_this_host_is_written_and_the_rule_holds(self) -> None:
        """SUSE has all programs below /usr alone."""
        host = kept("enabled", "sda", "sdc")
        for paths in (*PROGRAMS.values(), ("/bin/udevadm",)):
            del host.files[paths[0]]
            host.files[f"/usr{paths[0]}" if paths[0].startswith(("/bin", "/sbin")) else paths[1]] = ""
        # What the former paths say sets nothing here.
        assert read(host) == {}
        targets = [write_cache.Target(host.disk(name).id, "enabled") for name in ("sda", "sdc")]
        write_cache.apply(host, write_cache.plan(host, targets), targets)
        assert '"/usr/sbin/hdparm -q -W1 $devnode"' in host.text(RULES_PATH)
        assert "/bin/lsblk" not in host.text(RULES_PATH).replace("/usr/bin/lsblk", "")
        assert "ExecStart=/usr/bin/udevadm " in host.text(UNIT_PATH)
        assert set(read(host)) == {target.disk for target in targets}
