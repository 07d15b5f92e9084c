# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scratch files: real ones, in a directory that others may write to; limits before anything is written."""

from __future__ import annotations

import os
import signal
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.mountinfo import Mount, by_id
from ansible_collections.durable.dbhost.plugins.module_utils.measure import scratch
from ansible_collections.durable.dbhost.plugins.module_utils.measure.limits import (
    MIB,
    Refused,
    chosen,
    expect_space,
    number,
)

from ..fakes.real_mounts import ext4, mounted, needs_mounts, sh


def mount_of(path: Path) -> Mount:
    """Return the mount on which a directory lies, as if that were its mount point."""
    place = os.open(path, os.O_PATH)
    lines = Path(f"/proc/self/fdinfo/{place}").read_text("ascii").split("\n")
    os.close(place)
    number = next(line.split()[1] for line in lines if line.startswith("mnt_id:"))
    return by_id(Path("/proc/self/mountinfo").read_text("utf-8"))[number]._replace(target=str(path))


def space(free: int, whole: int, read_only: bool = False) -> Any:
    """Return what statvfs says of a file system of so many MiB."""
    flags = os.ST_RDONLY if read_only else 0
    return os.statvfs_result((MIB, MIB, whole, free, free, 1, 1, 1, flags, 255))


def test_files_are_written_in_full_for_their_owner_and_gone_at_the_end(tmp_path: Path) -> None:
    with scratch.directory(mount_of(tmp_path)) as place:
        with scratch.files(str(tmp_path), place, [MIB + 5, 0]) as descriptors:
            assert [os.fstat(one).st_size for one in descriptors] == [MIB + 5, 0]
            assert {stat.S_IMODE(os.fstat(one).st_mode) for one in descriptors} == {0o600}
            assert len(os.listdir(tmp_path)) == 2
        assert os.listdir(tmp_path) == []


def test_they_are_gone_after_a_failure_and_after_a_signal_too(tmp_path: Path) -> None:
    with scratch.directory(mount_of(tmp_path)) as place:
        with pytest.raises(KeyError), scratch.files(str(tmp_path), place, [10]):
            raise KeyError
        with (
            pytest.raises(scratch.Ended, match="signal 15"),
            scratch.signals_end(),
            scratch.files(str(tmp_path), place, [10]),
        ):
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()
    assert os.listdir(tmp_path) == []
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_they_are_gone_after_the_process_was_killed(tmp_path: Path) -> None:
    place = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    child = os.fork()
    if child == 0:
        with scratch.files("/srv", place, [4096, 4096]):
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    deadline = time.monotonic() + 20
    while os.listdir(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.close(place)
    assert os.listdir(tmp_path) == []


def test_a_file_that_could_not_be_filled_is_gone_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int, _size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(scratch, "fill", full)
    with (
        scratch.directory(mount_of(tmp_path)) as place,
        pytest.raises(OSError, match="No space"),
        scratch.files(str(tmp_path), place, [10]),
    ):
        pass
    assert os.listdir(tmp_path) == []


def test_only_what_a_killed_run_left_is_swept(tmp_path: Path) -> None:
    place = os.open(tmp_path, os.O_RDONLY)
    left = scratch.create(place, scratch.PREFIX + "left")
    os.close(left)
    held = scratch.create(place, scratch.PREFIX + "held")
    (tmp_path / "other").touch()
    (tmp_path / (scratch.PREFIX + "link")).symlink_to(tmp_path / "other")
    os.mkfifo(tmp_path / (scratch.PREFIX + "pipe"))
    assert scratch.sweep(place) == [scratch.PREFIX + "left"]
    assert sorted(os.listdir(tmp_path)) == [scratch.PREFIX + word for word in ("held", "link", "pipe")] + [
        "other"
    ]
    os.close(held)
    os.close(place)


def test_a_link_or_a_file_is_refused(tmp_path: Path) -> None:
    link, file = tmp_path / "link", tmp_path / "file"
    link.symlink_to(tmp_path)
    file.touch()
    for path in (link, file, tmp_path / "none"):
        mount = mount_of(tmp_path)._replace(target=str(path))
        with pytest.raises(Refused, match="name a directory"), scratch.directory(mount):
            pass


@needs_mounts
def test_another_mount_of_the_same_file_system_is_refused(tmp_path: Path) -> None:
    """The owner of a directory above exchanges it: the device is the same, the place is another one's."""
    with ext4(tmp_path) as target:
        assessed = mounted(target)
        with scratch.directory(assessed) as place:
            assert os.path.samestat(os.fstat(place), target.stat())
        other = tmp_path / "other/mnt"
        other.mkdir(parents=True)
        sh('mount --bind "$1" "$2"', target, other)
        target.parent.rename(tmp_path / "moved")
        other.parent.rename(target.parent)
        assert mounted(target).device == assessed.device
        why = f"expected mount {assessed.number} .*exchanged"
        with pytest.raises(Refused, match=why), scratch.directory(assessed):
            pass
        assert [path.name for path in target.iterdir()] == ["lost+found"]


def test_a_name_that_is_taken_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("data")
    place = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(FileExistsError):
        scratch.create(place, "precious")
    os.close(place)
    assert (tmp_path / "precious").read_text() == "data"


def test_a_file_is_reached_whatever_its_name_says_now(tmp_path: Path) -> None:
    place = os.open(tmp_path, os.O_RDONLY)
    made = scratch.create(place, "one")
    (tmp_path / "one").rename(tmp_path / "moved")
    (tmp_path / "one").write_text("precious")
    again = scratch.reopen(made, os.O_WRONLY)
    os.write(again, b"x")
    assert ((tmp_path / "moved").read_text(), (tmp_path / "one").read_text()) == ("x", "precious")
    for descriptor in (place, made, again):
        os.close(descriptor)


@pytest.mark.parametrize(
    ("status", "size", "why"),
    [
        (space(100, 1000), 25 * MIB, None),
        (space(99, 1000), 25 * MIB, "observed 99 MiB free, expected 100 MiB"),
        (space(51, 1000), 1 * MIB, None),
        (space(50, 1000), 1 * MIB, "expected 51 MiB"),
        (space(900, 1000, read_only=True), MIB, "read-only"),
    ],
)
def test_a_scratch_file_is_small_beside_what_is_free(status: Any, size: int, why: str | None) -> None:
    if why is None:
        expect_space("/srv", status, size)
    else:
        with pytest.raises(Refused, match=why):
            expect_space("/srv", status, size)


@pytest.mark.parametrize("value", [0, 11, True, "5", None, 5.0])
def test_a_number_has_limits(value: Any) -> None:
    assert number("n", 10, 1, 10) == 10
    with pytest.raises(Refused, match="whole number from 1 to 10"):
        number("n", value, 1, 10)


@pytest.mark.parametrize("values", [[], None, "ab", ["x"], [["a"]]])
def test_words_are_known_ones(values: Any) -> None:
    assert chosen("w", ["b", "a", "b"], ("a", "b")) == ["b", "a"]
    with pytest.raises(Refused, match="expected some of a, b"):
        chosen("w", values, ("a", "b"))
