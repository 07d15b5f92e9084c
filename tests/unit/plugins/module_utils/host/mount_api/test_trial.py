# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A scratch image is mounted where no path leads, and nothing of it is left, however the trial ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.mount_api import calls, trial
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Host, TrialRefused

from ...fakes.real_mounts import left, needs_mounts, sh

pytestmark = needs_mounts


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A scratch image of ext4."""
    path = tmp_path / "image"
    sh('truncate -s 16M "$1"; mkfs.ext4 -q -F "$1"', path)
    return path


def loops(image: Path) -> str:
    """Return the loop devices over an image."""
    return sh('losetup --associated "$1"', image)


@pytest.mark.fact(104)
def test_options_that_the_kernel_takes_leave_nothing(image: Path) -> None:
    """While a file system is mounted anywhere, its loop device stays."""
    Host().try_mount(str(image), "ext4", [["noatime", "barrier=1", "nofail"]])
    Host().try_mount(str(image), "ext4", [["ro"], ["rw", "errors=remount-ro"]])
    assert left(lambda: loops(image)) == ""


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([["bogus"]], "ext4: Unknown parameter 'bogus'"),
        ([["journal_async_commit"]], "can't mount with journal_async_commit in data=ordered mode"),
        ([["ro"], ["rw", "data=journal"]], "Cannot change data mode on remount"),
    ],
)
def test_a_refusal_is_the_kernels_own_reason(image: Path, steps: list[list[str]], reason: str) -> None:
    with pytest.raises(TrialRefused) as error:
        Host().try_mount(str(image), "ext4", steps)
    assert str(error.value) == reason
    assert left(lambda: loops(image)) == ""


def test_a_kill_in_a_trial_leaves_nothing(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    real = calls.reconfigure

    def stop(context: int) -> None:
        os.write(write, b"x")
        signal.pause()
        real(context)

    monkeypatch.setattr(calls, "reconfigure", stop)
    child = os.fork()
    if child == 0:
        trial.try_mount(str(image), "ext4", [["ro"], ["rw"]])
        os._exit(1)
    os.read(read, 1)
    assert loops(image)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert left(lambda: loops(image)) == ""


def test_without_the_calls_no_trial_is_a_permission(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_fstype: str) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(calls, "fsopen", missing)
    with pytest.raises(ChangeFailed, match="Function not implemented"):
        Host().try_mount(str(image), "ext4", [["noatime"]])
