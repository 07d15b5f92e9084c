# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A mount is changed through its descriptor: nothing else of it changes, and no exchanged directory redirects it."""

from __future__ import annotations

import errno
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.mount_api import calls, change
from ansible_collections.durable.dbhost.plugins.module_utils.host.mountinfo import Mount
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Host

from ...fakes.real_mounts import ext4, mounted, needs_mounts, options, sh

pytestmark = needs_mounts


def missing(*_arguments: Any) -> int:
    """Stand in for a system call that the kernel lacks."""
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


@pytest.fixture(params=["descriptors", "mount(2)"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Change mounts with the new calls, and without them as on an old kernel."""
    if request.param != "descriptors":
        monkeypatch.setattr(calls, "fspick", missing)
        monkeypatch.setattr(calls, "mount_setattr", missing)
    return str(request.param)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Path]:
    """An ext4 whose every flag differs from its default."""
    with ext4(
        tmp_path, "nosuid,nodev,noexec,noatime,nodiratime,sync,lazytime,commit=17,errors=remount-ro"
    ) as found:
        yield found


def exchange(target: Path) -> None:
    """Put another mount at the path of a mounted file system, as the owner of a directory above it can."""
    top = target.parent
    top.rename(top.with_name("moved"))
    target.mkdir(parents=True)
    sh('mount -t tmpfs -o nosuid none "$1"', target)


class TestBarrier:
    @pytest.mark.fact(100)
    def test_only_the_barrier_changes(self, target: Path, way: str) -> None:
        before, flags = options(target), mounted(target)
        Host().set_mount_options(flags, ["barrier=0"])
        assert set(options(target)) ^ set(before) == {"barrier", "nobarrier"}
        assert mounted(target) == flags._replace(super_options=mounted(target).super_options)
        assert set(mounted(target).super_options) - set(flags.super_options) == {"nobarrier"}
        Host().set_mount_options(flags, ["barrier=1"])
        assert (options(target), mounted(target)) == (before, flags)

    @pytest.mark.fact(101)
    def test_a_read_only_superblock_stays_read_only(self, tmp_path: Path, way: str) -> None:
        with ext4(tmp_path, "ro,nobarrier") as target:
            second = tmp_path / "second"
            second.mkdir()
            sh('mount --bind "$1" "$2"', target, second)
            Host().set_mount_options(mounted(target), ["barrier=1"])
            assert {"ro", "barrier"} <= set(options(target))
            with pytest.raises(OSError, match="Read-only"):
                (second / "x").touch()

    def test_a_read_only_view_leaves_the_file_system_writable(
        self, target: Path, tmp_path: Path, way: str
    ) -> None:
        view = tmp_path / "view"
        view.mkdir()
        sh('mount --bind "$1" "$2"; mount -o remount,bind,ro "$2"', target, view)
        before = mounted(target), mounted(view)
        if way == "descriptors":
            Host().set_mount_options(mounted(view), ["barrier=0"])
            assert "nobarrier" in options(target)
        else:
            with pytest.raises(ChangeFailed, match="mounted read-only over a writable file system"):
                Host().set_mount_options(mounted(view), ["barrier=0"])
            assert "barrier" in options(target)
        assert [m.options for m in (mounted(target), mounted(view))] == [m.options for m in before]
        (target / "x").touch()

    def test_a_mount_in_another_namespace_keeps_its_flags(
        self, target: Path, tmp_path: Path, way: str
    ) -> None:
        script = 'mount -o remount,bind,ro,nosuid,relatime "$1"; echo; exec sleep 60'
        argv = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", script, "sh", str(target)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            other.stdout.readline()

            def flags() -> str:
                table = Path(f"/proc/{other.pid}/mountinfo").read_text(encoding="utf-8")
                return next(line.split()[5] for line in table.splitlines() if line.split()[4] == str(target))

            before = flags()
            Host().set_mount_options(mounted(target), ["barrier=0"])
            Host().set_mount_atime(mounted(target), "strictatime")
            assert flags() == before
            assert "nobarrier" in options(target)
            other.kill()

    def test_a_refused_option_is_reported_with_the_reason(self, target: Path) -> None:
        with pytest.raises(ChangeFailed, match=r"/mnt: bogus=1: ext4: Unknown parameter 'bogus'; "):
            Host().set_mount_options(mounted(target), ["bogus=1"])

    def test_sync_goes_on_and_off_alone(self, target: Path, way: str) -> None:
        before = mounted(target)
        Host().set_mount_options(before, ["async"])
        assert mounted(target).super_options == tuple(o for o in before.super_options if o != "sync")
        assert mounted(target).options == before.options
        Host().set_mount_options(before, ["sync"])
        assert mounted(target) == before


class TestAtime:
    @pytest.mark.fact(102)
    @pytest.mark.parametrize("atime", ["noatime", "relatime", "strictatime"])
    def test_only_the_atime_of_this_mount_changes(
        self, target: Path, tmp_path: Path, way: str, atime: str
    ) -> None:
        second = tmp_path / "second"
        second.mkdir()
        sh('mount --bind "$1" "$2"', target, second)
        before, beside, ours = mounted(target), mounted(second), options(target)
        Host().set_mount_atime(before, atime)
        word = () if atime == "strictatime" else (atime,)
        others = tuple(option for option in before.options if option != "noatime")
        assert set(mounted(target).options) == {*others, *word}
        assert mounted(target).super_options == before.super_options
        assert (mounted(second), options(target)) == (beside, ours)


class TestExchange:
    """The owner of a directory above a mount point exchanges it. The first version of this attack made a user root."""

    CHANGES: tuple[Callable[[Mount], None], ...] = (
        lambda mount: Host().set_mount_options(mount, ["barrier=0"]),
        lambda mount: Host().set_mount_atime(mount, "strictatime"),
        lambda mount: Host().make_mount_writable(mount),
        lambda mount: Host().sync_mount(mount),
    )

    @pytest.mark.parametrize("act", CHANGES)
    def test_before_the_open_nothing_is_changed(
        self, target: Path, way: str, act: Callable[[Mount], None]
    ) -> None:
        meant = mounted(target)
        exchange(target)
        moved = target.parent.with_name("moved") / "mnt"
        before = mounted(target), mounted(moved), options(moved)
        with pytest.raises(
            ChangeFailed, match=f"expected mount {meant.number} of {meant.device}, found mount"
        ):
            act(meant)
        assert (mounted(target), mounted(moved), options(moved)) == before

    def test_after_the_open_the_assessed_mount_is_changed(
        self, target: Path, way: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        meant, compare = mounted(target), change._same

        def compared(descriptor: int, mount: Mount) -> Mount:
            found = compare(descriptor, mount)
            exchange(target)
            return found

        monkeypatch.setattr(change, "_same", compared)
        change.set_options(meant, ["barrier=0"])
        assert mounted(target).fstype == "tmpfs"
        assert "nosuid" in mounted(target).options
        assert "nobarrier" in options(target.parent.with_name("moved") / "mnt")

    def test_a_link_in_place_of_the_mount_point_is_not_followed(self, tmp_path: Path, target: Path) -> None:
        meant = mounted(target)
        (tmp_path / "link").symlink_to(target)
        with pytest.raises(ChangeFailed, match="expected mount"):
            Host().set_mount_options(meant._replace(target=str(tmp_path / "link")), ["barrier=0"])
        assert "barrier" in options(target)

    def test_a_pipe_in_place_of_the_mount_point_is_not_opened(self, tmp_path: Path, target: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        begin = time.monotonic()
        with pytest.raises(ChangeFailed, match="expected mount"):
            Host().sync_mount(mounted(target)._replace(target=str(tmp_path / "pipe")), timeout=5)
        assert time.monotonic() - begin < 4

    def test_a_mount_id_of_another_file_system_is_another_mount(self, target: Path) -> None:
        """The kernel uses an ID again after an unmount."""
        with pytest.raises(ChangeFailed, match="expected mount"):
            Host().set_mount_options(mounted(target)._replace(device="8:1"), ["barrier=0"])
        with pytest.raises(ChangeFailed, match="expected mount"):
            Host().set_mount_options(mounted(target)._replace(root="/data"), ["barrier=0"])
        assert "barrier" in options(target)


def test_a_read_only_root_becomes_writable(tmp_path: Path, way: str) -> None:
    with ext4(tmp_path, "ro,nosuid,relatime") as target:
        Host().make_mount_writable(mounted(target))
        assert mounted(target).options == ("rw", "nosuid", "relatime")
        (target / "x").touch()


def test_a_file_system_is_synced(target: Path) -> None:
    Host().sync_mount(mounted(target))
