# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the layers share: every target gets its chance, and the machine has the last word."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.enforce.change import (
    Change,
    account,
    as_diff,
    each,
    verify,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Unobservable

CHANGE = Change("serial:x", "write_cache", "running", "enabled", "disabled")


def test_one_that_refuses_does_not_cost_the_others() -> None:
    done = []

    def act(target: str) -> None:
        if target in "bd":
            raise ChangeFailed(f"{target}: no")
        done.append(target)

    with pytest.raises(ChangeFailed, match=r"^b: no; d: no$"):
        each("abcde", act)
    assert done == ["a", "c", "e"]


def test_what_is_left_after_a_change_is_a_failure() -> None:
    verify([])
    with pytest.raises(
        ChangeFailed, match=r"serial:x: write_cache \(running\): observed enabled, expected disabled"
    ):
        verify([CHANGE])


def test_an_account_says_of_each_change_whether_it_was_made_and_what_is_seen_instead() -> None:
    kept = CHANGE._replace(when="persisted")
    # What is seen may be another value than before.
    left = [CHANGE._replace(before="unknown")]
    assert account([CHANGE, kept], left) == (
        "done: serial:x write_cache (persisted);"
        " not done: serial:x write_cache (running): observed unknown, expected disabled"
    )
    assert account([CHANGE], []) == "done: serial:x write_cache (running)"
    assert account([CHANGE], None) == "done or not, it cannot be read: serial:x write_cache (running)"
    many = [CHANGE._replace(target=str(number)) for number in range(9)]
    assert account(many, []).endswith(", 5 write_cache (running) and 3 more")


def test_the_diff_has_one_line_a_setting() -> None:
    assert as_diff([CHANGE, CHANGE._replace(when="persisted", before="unset")]) == {
        "before": "serial:x write_cache (running): enabled\nserial:x write_cache (persisted): unset\n",
        "after": "serial:x write_cache (running): disabled\nserial:x write_cache (persisted): disabled\n",
    }
    assert as_diff([]) == {"before": "", "after": ""}


def test_a_target_that_cannot_be_read_does_not_stop_the_others() -> None:
    done = []

    def act(target: str) -> None:
        if target == "a":
            raise Unobservable("a: Input/output error")
        done.append(target)

    with pytest.raises(ChangeFailed, match="a: Input/output error"):
        each(["a", "b"], act)
    assert done == ["b"]
