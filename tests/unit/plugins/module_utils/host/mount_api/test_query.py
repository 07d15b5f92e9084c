# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The running kernel is queried for the options that a file system knows."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.mount_api import calls, query
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host

from ...fakes.real_mounts import needs_mounts


@needs_mounts
class TestKernel:
    @pytest.mark.fact(103)
    def test_refused_options_are_returned_with_the_kernels_message(self) -> None:
        found = Host().refused_mount_options(
            "ext4", ["noatime", "nofail", "x-y", "barrier=1", "bogus", "data=orderd"]
        )
        assert found == {
            "bogus": "ext4: Unknown parameter 'bogus'",
            "data=orderd": "ext4: Bad value for 'data'",
        }

    def test_a_type_that_is_not_loaded_is_not_queried(self) -> None:
        assert Host().refused_mount_options("no-such-type", ["noatime"]) is None

    def test_the_source_is_set_before_every_other_option(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """ext2 of Linux 7.2 fails in the kernel without a source."""
        given: dict[int, list[str]] = {}
        real = calls.set_option

        def record(context: int, option: str) -> None:
            given.setdefault(context, []).append(option)
            real(context, option)

        monkeypatch.setattr(calls, "set_option", record)
        query.refused("ext4", ["barrier=1", "ro"])
        (orders,) = given.values()  # Each context has the number of the one before it.
        assert orders[::2] == ["source=none"] * 3


class Contexts:
    """A kernel whose drivers of file systems are of the old kind: they accept any option until they mount."""

    def __init__(self, knows: set[str] | None) -> None:
        self.knows = knows

    def set_option(self, _context: int, option: str) -> None:
        if self.knows is not None and not option.startswith("source=") and option not in self.knows:
            raise OSError(22, "Invalid argument")


@pytest.mark.parametrize(
    ("knows", "expected"), [(None, None), ({"acl"}, {"noacl": "Invalid argument"})], ids=["old", "new"]
)
def test_a_driver_that_accepts_any_option_is_not_believed(
    monkeypatch: pytest.MonkeyPatch, knows: set[str] | None, expected: Any
) -> None:
    kernel = Contexts(knows)
    monkeypatch.setattr(query, "_is_loaded", lambda _fstype: True)
    monkeypatch.setattr(calls, "fsopen", lambda _fstype: 0)
    monkeypatch.setattr(calls, "set_option", kernel.set_option)
    monkeypatch.setattr(calls, "messages", lambda _context: [])
    monkeypatch.setattr(query.os, "close", lambda _context: None)
    assert query.refused("ext4", ["acl", "noacl"]) == expected


def test_without_the_calls_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_fstype: str) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(query, "_is_loaded", lambda _fstype: True)
    monkeypatch.setattr(calls, "fsopen", missing)
    assert query.refused("ext4", ["noacl"]) is None


def test_a_path_of_a_device_is_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(_fstype: str) -> int:
        raise AssertionError

    monkeypatch.setattr(calls, "fsopen", opened)
    assert query._refusal("ext4", "journal_path=/dev/x") is None


def test_a_python_without_ctypes_reports_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "ctypes", None)
    calls._library.cache_clear()
    calls.load()
    for act in (lambda: calls.fsopen("ext4"), lambda: calls.mount_setattr(0, 0, 0), lambda: calls.syncfs(0)):
        with pytest.raises(OSError, match="has no ctypes module") as error:
            act()
        assert error.value.errno in calls.MISSING
