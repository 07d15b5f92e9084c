# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A function in a child process: its result, its errors, and its time limit."""

from __future__ import annotations

import errno
import os
import time

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import child_process


def test_the_result_is_that_of_the_function() -> None:
    large = ["x" * 1000] * 1000
    assert child_process.run(lambda: large, 10) == large
    assert child_process.run(lambda: None, 10) is None


def test_an_error_is_that_of_the_function() -> None:
    def fail() -> None:
        raise OSError(errno.ESTALE, "exchanged")

    with pytest.raises(OSError, match="exchanged") as error:
        child_process.run(fail, 10)
    assert error.value.errno == errno.ESTALE


def test_another_error_is_named() -> None:
    with pytest.raises(OSError, match="KeyError: 'x'"):
        child_process.run(lambda: {}["x"], 10)


def test_a_child_that_dies_is_an_error() -> None:
    with pytest.raises(OSError, match="its process ended without a result"):
        child_process.run(lambda: os._exit(0), 10)


def test_a_child_that_hangs_is_left_and_ended() -> None:
    begin = time.monotonic()
    with pytest.raises(OSError, match=r"no result within 0.2 s") as error:
        child_process.run(lambda: time.sleep(60), 0.2)
    assert error.value.errno == errno.ETIMEDOUT
    assert time.monotonic() - begin < 5


def test_it_changes_nothing_here_and_has_none_of_our_files() -> None:
    changed = []
    read, write = os.pipe()
    names = child_process.run(
        lambda: changed.append(1) or [int(name) for name in os.listdir("/proc/self/fd")], 10
    )
    assert changed == []
    assert read not in names
    os.close(read)
    os.close(write)
