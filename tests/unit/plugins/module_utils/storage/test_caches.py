# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How each sort of disk is asked and switched: captured answers, exact commands, safe order."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import (
    ChangeFailed,
    Result,
    Unobservable,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage.caches import (
    CONTROLS,
    has_volatile_cache,
    parse_hdparm,
    parse_nvme,
    parse_power_on,
    parse_sdparm,
    scsi_cache_type,
)

from ..fakes.captured import captured
from ..fakes.small_host import BigHost, SmallHost

SDPARM = ("sdparm", "--quiet", "--readonly", "--get", "WCE=1", "-H", "/dev/sdc")
SCSI = "/sys/block/sdc/device/scsi_disk/0:0:0:0/cache_type"


@pytest.mark.parametrize(
    ("name", "expected"), [("hdparm_sata_on.txt", "enabled"), ("hdparm_sata_off.txt", "disabled")]
)
def test_captured_hdparm(name: str, expected: str) -> None:
    assert parse_hdparm(captured(name)) == expected


@pytest.mark.parametrize(
    "text",
    [
        captured("hdparm_virtio.txt"),
        # Of a SCSI disk: hdparm could not ask, and said this with exit code 0.
        captured("hdparm_scsi.txt"),
        "",
        " write-caching = ",
        " write-caching =  2 (on)",
        " write-caching =  1 (off)",
        " write-caching =  0 (on)",
        "SG_IO: bad/missing sense data, sb[]:  70 00 05 00\n write-caching = not supported\n",
        "HDIO_DRIVE_CMD(identify) failed: Inappropriate ioctl for device",
    ],
)
def test_hdparm_that_names_no_state_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="hdparm"):
        parse_hdparm(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [(captured("sdparm_quiet_on.txt"), "enabled"), ("0x00 \n", "disabled"), ("0x01", "enabled")],
)
def test_captured_sdparm(text: str, expected: str) -> None:
    assert parse_sdparm(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        captured("sdparm_no_caching_page.txt"),
        captured("sdparm_virtio_1.10.txt"),
        captured("sdparm_virtio_1.12.txt"),
        # Current, changeable, default, saved: not what was asked for.
        captured("sdparm_columns.txt"),
        "",
        "0x02 \n",
        "0x1\n",
        "0x010\n",
        "0x01 \n0x00 \n",
        "1",
        "WCE           1  [cha: y, def:  1]\n",
        "\n0x01 \n",
        "0x\udcff1",
    ],
)
@pytest.mark.fact(19)
def test_a_disk_without_a_caching_page_is_not_taken_for_one_without_a_cache(text: str) -> None:
    """The kernel assumes write through there; what names no WCE is unknown instead."""
    with pytest.raises(ValueError, match="caching page"):
        parse_sdparm(text)


@pytest.mark.parametrize("version", ["1.12", "2.3", "2.13"])
def test_captured_nvme(version: str) -> None:
    text = captured(f"nvme_get_feature_{version}.txt")
    assert parse_nvme(text) == "enabled"
    # Off, each of them prints the value without 0x.
    assert parse_nvme(text.partition("value:")[0] + "value:00000000\n") == "disabled"
    assert has_volatile_cache(captured(f"nvme_id_ctrl_{version}.json"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "get-feature:0x06 (Volatile Write Cache), Default value:0x00000001\n",
        "get-feature:0x06 (Volatile Write Cache), Saved value:0x00000001\n",
        "get-feature:0x06 (Volatile Write Cache), Supported capabilities value:0x00000004\n",
        "get-feature:0x06 (Volatile Write Cache), Current value:\n",
        "NVMe status: Invalid Field in Command(0x4002)\n",
        "\udcff\0",
    ],
)
def test_nvme_that_names_no_current_value_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="nvme named no current value"):
        parse_nvme(text)


@pytest.mark.parametrize(("value", "expected"), [("0", False), ("1", True), ("6", False), ("7", True)])
@pytest.mark.fact(24)
def test_only_the_first_bit_of_vwc_says_that_there_is_a_volatile_cache(value: str, expected: bool) -> None:
    """NVMe's VWC is good evidence of no volatile cache; SCSI's WCE=0 is so only with a caching page."""
    assert has_volatile_cache(f'{{"mn": "x", "vwc": {value}}}') is expected


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"vwc": "many"}', '{"vwc": null}', '{"vwci": 1}', "\udcff"]
)
def test_an_identity_without_vwc_is_an_error_and_not_a_disk_without_a_cache(text: str) -> None:
    with pytest.raises(ValueError, match="nvme id-ctrl named no vwc"):
        has_volatile_cache(text)


class TestSata:
    def test_asked_and_switched_by_hdparm(self) -> None:
        host = SmallHost()
        control = CONTROLS["sata"]
        assert control.ask(host, "sda") == "enabled"
        control.switch(host, "sda", "disabled")
        assert host.mutations == [("change", "hdparm", "-q", "-W0", "/dev/sda")]
        assert control.ask(host, "sda") == "disabled"

    @pytest.mark.fact(20)
    def test_a_rule_for_ata_disks_alone_sets_it_at_each_event(self) -> None:
        """hdparm -W0 is forgotten at a power cycle, and hangs on disks that are not ATA."""
        for state, bit in (("enabled", "1"), ("disabled", "0")):
            pin, _raise, *_above, rule = CONTROLS["sata"].rules(state)
            assert 'ENV{ID_BUS}=="ata"' in pin
            assert 'ENV{ID_BUS}=="ata"' in rule
            assert 'cache_type}="temporary write back"' in pin[-1]
            assert f"hdparm -q -W{bit} $devnode" in rule[-1]


class TestScsi:
    def test_asked_read_only_because_a_writer_that_closes_makes_an_event(self) -> None:
        host = BigHost()
        assert CONTROLS["scsi"].ask(host, "sdc") == "enabled"
        assert host.asked[-1] == SDPARM

    def test_a_disk_with_something_to_report_is_asked_twice(self) -> None:
        host = BigHost()
        host.disk("sdc").attention = "Additional sense: Mode parameters changed\n"
        assert CONTROLS["scsi"].ask(host, "sdc") == "enabled"
        assert host.asked == [SDPARM, SDPARM]

    def test_a_disk_that_hangs_costs_its_time_limit_once(self) -> None:
        host = BigHost()
        host.commands[SDPARM] = Unobservable("no answer within 10 s")
        with pytest.raises(Unobservable, match="no answer"):
            CONTROLS["scsi"].ask(host, "sdc")
        assert host.asked == [SDPARM]

    @pytest.mark.parametrize(
        "answer",
        [
            Result(5, "", "WCE not found in Caching (SBC) [0x8] mode page\n"),
            Result(99, "0x01 \n", ""),
            Unobservable("sdparm: No such file or directory"),
        ],
    )
    def test_an_exit_code_is_looked_at(self, answer: Any) -> None:
        host = BigHost()
        host.commands[SDPARM] = answer
        with pytest.raises(Unobservable, match="sdparm"):
            CONTROLS["scsi"].ask(host, "sdc")

    @pytest.mark.parametrize(("state", "word"), [("enabled", "write back"), ("disabled", "write through")])
    @pytest.mark.fact(19)
    def test_switched_through_the_kernel_which_is_then_pinned(self, state: str, word: str) -> None:
        """A tool's MODE SELECT leaves the kernel cache mode as it was; its own attribute does not."""
        host = BigHost()
        disk = host.disk("sdc")
        disk.cache = {"enabled": "disabled", "disabled": "enabled"}[state]
        CONTROLS["scsi"].switch(host, "sdc", state)
        assert host.mutations == [("attribute", SCSI, word), ("attribute", SCSI, "temporary write back")]
        assert (disk.cache, disk.cache_mode, disk.pinned) == (state, "write back", True)

    @pytest.mark.fact(21)
    def test_an_unsaved_page_comes_back_at_a_reset_under_a_cache_mode_that_flushes_it(self) -> None:
        """WCE=0 that is not saved is gone at the next power-on or bus reset."""
        host = BigHost()
        CONTROLS["scsi"].switch(host, "sdc", "disabled")
        host.reset("sdc", heard=False)
        assert (host.disk("sdc").cache, host.disk("sdc").cache_mode) == ("enabled", "write back")

    def test_a_disk_that_refuses_is_an_error(self) -> None:
        host = BigHost()
        host.disk("sdc").refuses = True
        with pytest.raises(ChangeFailed, match="Invalid argument"):
            CONTROLS["scsi"].switch(host, "sdc", "disabled")

    def test_a_disk_without_the_attribute_is_an_error_by_name(self) -> None:
        with pytest.raises(ChangeFailed, match="vdb: observed no single scsi_disk below"):
            scsi_cache_type(SmallHost(), "vdb")


class TestNvme:
    def test_asked_for_its_identity_first(self) -> None:
        host = BigHost()
        assert CONTROLS["nvme"].ask(host, "nvme0n1") == "enabled"
        assert [argv[1] for argv in host.asked] == ["id-ctrl", "get-feature"]

    def test_without_a_volatile_cache_there_is_none_to_ask_for(self) -> None:
        host = BigHost()
        host.disk("nvme0n1").cache = "none"
        assert CONTROLS["nvme"].ask(host, "nvme0n1") == "none"
        assert [argv[1] for argv in host.asked] == ["id-ctrl"]

    @pytest.mark.fact(22)
    def test_the_kernel_goes_on_flushing_when_the_feature_is_off(self) -> None:
        """The kernel cache mode comes from the controller's identity: after set-feature sysfs says what it said."""
        host = BigHost()
        disk = host.disk("nvme0n1")
        control = CONTROLS["nvme"]
        control.switch(host, "nvme0n1", "disabled")
        assert (control.ask(host, "nvme0n1"), disk.cache_mode) == ("disabled", "write back")
        assert control.pinned
        assert host.read("/sys/block/nvme0n1/queue/write_cache") == "write back\n"

    def test_the_feature_is_set_for_all_namespaces(self) -> None:
        """nvme-cli 2 sends the namespace's id, and the controller refuses: Feature Not Namespace Specific."""
        host = BigHost()
        CONTROLS["nvme"].switch(host, "nvme0n1", "disabled")
        assert "--namespace-id=0xffffffff" in host.mutations[0]
        _raise, (_kernel, rule) = CONTROLS["nvme"].rules("disabled")
        assert "--namespace-id=0xffffffff" in rule


@pytest.mark.fact(67)
class TestPowerOn:
    """A SCSI disk can save its caching page: then a cache that is off stays off at a reset and at a boot."""

    @pytest.mark.parametrize(
        ("text", "state"),
        [
            ("0x00 0x01 0x01 0x00 \n", "disabled"),
            ("0x00 0x01 0x01 0x01 \n", "enabled"),
            ("0x01 0x00 0x01 0x00 \n", "disabled"),
            # Nothing can be saved: the default.
            ("0x00 0x01 0x01 -    \n", "enabled"),
            ("0x00 0x01 0x00 -    \n", "disabled"),
            ("-    -    0x00 0x01 \n", "enabled"),
        ],
    )
    def test_what_is_saved_or_the_default(self, text: str, state: str) -> None:
        assert parse_power_on(text) == state

    @pytest.mark.parametrize(
        "text", ["", "0x01\n", "0x01 0x01 -    -    \n", "0x01 0x01 0x02 0x01 \n", "x\n", "0x01 0x01 0x01\n"]
    )
    def test_anything_else_is_not_known(self, text: str) -> None:
        with pytest.raises(ValueError, match="sdparm named neither a saved WCE nor a default"):
            parse_power_on(text)

    @pytest.mark.parametrize(
        ("rc", "text", "state"),
        [
            (5, "0x01 0x01 0x01 -    \n", "enabled"),
            (5, "0x01 0x01 0x00 -    \n", "disabled"),
            (5, "0x01 0x01 0x01 0x00 \n", None),
            (5, "", None),
            (2, "0x01 0x01 0x01 -    \n", None),
        ],
    )
    def test_a_page_that_cannot_be_saved_is_no_failure(self, rc: int, text: str, state: str | None) -> None:
        host = BigHost()
        argv = ("sdparm", "--quiet", "--readonly", "--get", "WCE", "-H", "/dev/sdc")
        host.commands[argv] = Result(rc, text, "")
        if state:
            assert CONTROLS["scsi"].power_on(host, "sdc") == state  # type: ignore[attr-defined]
        else:
            with pytest.raises(Unobservable, match=f"exit {rc}"):
                CONTROLS["scsi"].power_on(host, "sdc")  # type: ignore[attr-defined]

    @pytest.mark.parametrize("attention", ["", "unit attention\n"])
    def test_it_is_asked_again_after_an_attention(self, attention: str) -> None:
        host = BigHost()
        vars(host.disk("sdc")).update(saves=True, power_on="disabled", attention=attention)
        assert CONTROLS["scsi"].power_on(host, "sdc") == "disabled"  # type: ignore[attr-defined]


class TestVirtio:
    @pytest.mark.fact(23)
    @pytest.mark.parametrize(("mode", "switchable"), [(0o644, True), (0o444, False), (None, False)])
    def test_switchable_where_the_host_offers_it(self, mode: int | None, switchable: bool) -> None:
        """virtio-blk's cache_type is a switch where the hypervisor offers one, else read-only."""
        host = SmallHost()
        path = host.resolve("/sys/block/vdb/cache_type")
        if mode is None:
            del host.files[path]
        else:
            host.modes[path] = mode
        assert CONTROLS["virtio"].is_switchable(host, "vdb") is switchable

    @pytest.mark.parametrize("word", ["", "none", "write back, no read (daft)", "write sideways"])
    def test_another_word_is_an_error(self, word: str) -> None:
        host = SmallHost()
        host.files[host.resolve("/sys/block/vdb/cache_type")] = f"{word}\n"
        with pytest.raises(ValueError, match="expected one of write back, write through"):
            CONTROLS["virtio"].ask(host, "vdb")


@pytest.mark.parametrize(
    ("control", "name"), [("sata", "sda"), ("scsi", "sdc"), ("nvme", "nvme0n1"), ("virtio", "vdb")]
)
@pytest.mark.parametrize("state", ["enabled", "disabled"])
@pytest.mark.fact(18)
def test_no_interface_writes_the_kernel_cache_mode_alone(control: str, name: str, state: str) -> None:
    """Writing queue/write_cache changes the kernel cache mode and not the device: weaker, it loses commits."""
    host = BigHost()
    for act in (CONTROLS[control].raise_mode, lambda h, n: CONTROLS[control].switch(h, n, state)):
        act(host, name)
        assert host.disk(name).cache_mode == "write back" or host.disk(name).cache == "disabled"
    written = [str(mutation) for mutation in host.mutations]
    assert [text for text in written if "queue/write_cache" in text] == []
    # A rule raises it, and never lowers it.
    actions = [action for rule in CONTROLS[control].rules(state) for action in rule]
    assert {action for action in actions if "queue/write_cache" in action} <= {
        'ATTR{queue/write_cache}="write back"'
    }


@pytest.mark.parametrize(("control", "name"), [("sata", "sda"), ("scsi", "sdc")])
def test_raising_the_cache_mode_touches_no_device(control: str, name: str) -> None:
    host = BigHost()
    vars(host.disk(name)).update(cache="disabled", cache_mode="write through")
    CONTROLS[control].raise_mode(host, name)
    assert (host.disk(name).cache, host.disk(name).cache_mode) == ("disabled", "write back")


def test_many_empty_lines_are_soon_no_answer() -> None:
    began = time.process_time()
    with pytest.raises(ValueError, match="no write-caching state"):
        parse_hdparm("\n" * 2**18)
    assert time.process_time() - began < 5


def test_the_rule_looks_for_device_mapper_by_the_name_that_the_kernel_gives() -> None:
    """Types are many (lvm, crypt, mpath, dmraid, vdo, stratis); the kernel's name is dm-N for all."""
    for control in CONTROLS.values():
        look_above, *rest = [
            rule
            for rule in control.rules("enabled")
            if "temporary" not in rule[-1] and "queue/write_cache" not in rule[-1]
        ]
        assert "KNAME" in look_above[0]
        assert look_above[1] == 'RESULT!="*dm-*"'
        assert all('ENV{.DURABLE_DBHOST_ABOVE}=="nothing"' in rule for rule in rest)
        assert not any("DURABLE" in action for rule in control.rules("disabled") for action in rule)
