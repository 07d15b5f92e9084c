# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules that keep schedulers and readahead: their bytes, and what udev makes of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.storage.scheduler_rules import (
    HEADER,
    RULES_PATH,
    SCHEDULERS,
    read,
    render,
)

from ..fakes.small_host import BigHost, SmallHost

SDA = "serial:QEMU_HARDDISK_SATA0001"
RENDERED = f"""\
{HEADER}
# {SDA} scheduler=mq-deadline readahead=2048
ACTION=="add|change", SUBSYSTEM=="block", ENV{{DEVTYPE}}=="disk", ENV{{ID_SERIAL}}=="QEMU_HARDDISK_SATA0001", \
ATTR{{queue/scheduler}}="mq-deadline", ATTR{{queue/read_ahead_kb}}="2048"
"""
settings = st.fixed_dictionaries(
    {}, optional={"scheduler": st.sampled_from(SCHEDULERS), "readahead": st.integers(0, 10**6).map(str)}
).filter(bool)
ids = st.builds(
    "{}:{}".format, st.sampled_from(["wwn", "serial", "dm", "md"]), st.text("aZ0-_.:", min_size=1)
)


def host_with(text: str) -> SmallHost:
    host = SmallHost()
    host.files[RULES_PATH] = text
    return host


def test_rendered_bytes() -> None:
    assert render({SDA: {"scheduler": "mq-deadline", "readahead": "2048"}}) == RENDERED
    assert render({}) == render({SDA: {}}) == ""


@given(st.dictionaries(ids, settings))
def test_what_was_rendered_is_what_is_read(rules: dict[str, dict[str, str]]) -> None:
    assert read(host_with(render(rules))) == rules


@pytest.mark.parametrize(
    "words",
    [
        "scheduler=noop",
        "scheduler=cfq",
        "scheduler=",
        "readahead=much",
        "readahead=-1",
        "rotational=0",
        "scheduler",
        "scheduler=none  readahead=1",
    ],
)
@pytest.mark.fact(25)
def test_words_that_no_kernel_of_today_takes_do_not_count(words: str) -> None:
    """blk-mq knows none, mq-deadline, kyber and bfq: noop and cfq fail."""
    assert read(host_with(RENDERED.replace("scheduler=mq-deadline readahead=2048", words))) == {}


@pytest.mark.parametrize("change", [('"2048"', '"4096"'), ("ACTION", "#ACTION"), (HEADER, "# Theirs.\n")])
def test_a_rule_that_somebody_edited_does_not_count(change: tuple[str, str]) -> None:
    assert read(host_with(RENDERED.replace(*change))) == {}


def test_what_cannot_be_read_is_said() -> None:
    host = SmallHost()
    assert read(host) == {}
    host.files[RULES_PATH] = Unobservable("I/O error")
    with pytest.raises(Unobservable):
        read(host)


@pytest.mark.fact(25)
@pytest.mark.fact(48)
def test_udev_sets_them_whenever_the_device_appears_or_changes() -> None:
    """elevator= is ignored: a rule by WWN or serial is what persists, also for a disk plugged in later."""
    host = BigHost()
    host.files[RULES_PATH] = render(
        {
            SDA: {"scheduler": "mq-deadline"},
            host.disk("sdc").id: {"scheduler": "none", "readahead": "4096"},
            host.layers["dm-0"].id: {"readahead": "2048"},
            host.layers["md0"].id: {"readahead": "1024"},
        }
    )
    host.reboot()
    assert host.disk("sda").scheduler == "none [mq-deadline]"
    assert (host.disk("sdc").scheduler, host.disk("sdc").readahead) == ("[none] mq-deadline", "4096")
    assert [host.layers[name].readahead for name in ("dm-0", "md0", "dm-1")] == ["2048", "1024", "128"]
    host.disk("sda").scheduler = "[none] mq-deadline"
    host.event("change", "sda")
    assert host.disk("sda").scheduler == "none [mq-deadline]"


@pytest.mark.fact(25)
def test_the_file_sorts_behind_the_vendors_rules() -> None:
    """Vendors' rules for schedulers are named 60-."""
    assert RULES_PATH.rpartition("/")[2] > "60-ssd-scheduler.rules"
    assert RULES_PATH.rpartition("/")[2] > "66-azure-storage.rules"


def test_a_readahead_in_other_digits_becomes_no_rule() -> None:
    with pytest.raises(ValueError, match="expected scheduler=NAME or readahead=KIB"):
        render({SDA: {"readahead": "\u0661\u0662\u0668"}})
