# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run at a time changes a host, and none goes by a look that another run has overtaken."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.enforce import one_run
from ansible_collections.durable.dbhost.plugins.module_utils.host.our_paths import LOCK
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Host
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fake_host import FakeHost

NOW = "2026-01-31T12:00:00Z"
#: Holds the lock until it is killed.
HOLDER = """
import sys, time
from pathlib import Path
sys.path[:0] = {path!r}
from {package}.enforce import one_run
from {package}.host.seam import Host
one_run.LOCK = {lock!r}
with one_run.hold(Host(), "eve on db9", {now!r}, ["write_cache", "mssql"]):
    print("held", flush=True)
    time.sleep(600)
"""


def stat(number: int, ticks: int) -> str:
    """Return what the kernel tells of a process."""
    return f"{number} (a ) b) S {' '.join(['0'] * 18)} {ticks} 0\n"


@pytest.fixture
def host() -> FakeHost:
    """A host on which this process has the number 40."""
    found = FakeHost()
    found.files["/proc/self/stat"] = found.files["/proc/40/stat"] = stat(40, 700)
    return found


def hold(host: Host, looked_at: int | None = None) -> None:
    """Hold the lock and give it back."""
    with one_run.hold(host, "ann on desk", NOW, ["mount_options"], looked_at):
        pass


def test_a_look_before_any_run_is_good_for_the_first(host: FakeHost) -> None:
    assert one_run.look(host) == 0
    hold(host, 0)
    host.files["/proc/40/stat"] = stat(40, 701)  # Another process that has got its number.
    assert one_run.look(host) == 1
    hold(host, 1)


def test_what_another_run_has_changed_since_is_not_gone_by(host: FakeHost) -> None:
    looked_at = one_run.look(host)
    hold(host)
    with pytest.raises(
        ChangeFailed, match=r"by ann on desk, since 2026-\S+ \(mount_options\); nothing was changed"
    ):
        hold(host, looked_at)
    del host.files["/proc/40/stat"]
    hold(host, one_run.look(host))


def test_a_look_while_a_run_changes_the_host_is_good_for_nothing(host: FakeHost) -> None:
    with one_run.hold(host, "ann on desk", NOW, []):
        looked_at = one_run.look(host)
    assert looked_at == one_run.CHANGING
    with pytest.raises(ChangeFailed, match="changed while or after it was looked at"):
        hold(host, looked_at)


def test_a_second_run_is_told_who_holds_it(host: FakeHost) -> None:
    with (
        one_run.hold(host, "eve\x1b on db9", NOW, ["write_cache", "mssql"]),
        pytest.raises(ChangeFailed) as error,
    ):
        hold(host)
    assert "another run changes this host: eve\\x1b on db9, since 2026" in str(error.value)
    assert "(write_cache, mssql)" in str(error.value)
    hold(host)


@pytest.mark.parametrize("text", ["{", "[]", '{"number": "x"}', "null"])
def test_words_that_are_no_run_s_stop_every_run(host: FakeHost, text: str) -> None:
    host.files[LOCK] = text
    assert one_run.look(host) is None
    with pytest.raises(ChangeFailed, match="seen no run's words; remove it"):
        hold(host)
    host.held.add(LOCK)
    with pytest.raises(ChangeFailed, match="it has not said who it is"):
        hold(host)


class TestKernel:
    """With the kernel's own locks."""

    @pytest.fixture
    def lock(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A lock's path in a directory that is not there yet."""
        path = tmp_path / "run" / "lock"
        monkeypatch.setattr(one_run, "LOCK", str(path))
        return path

    @pytest.fixture
    def holder(self, lock: Path) -> Iterator[subprocess.Popen[str]]:
        """Another process, which holds the lock."""
        package = one_run.__name__.rpartition(".enforce")[0]
        root = str(Path(one_run.__file__).parents[3])
        bare = "plugins.module_utils"
        text = HOLDER.format(path=[root], package=bare, lock=str(lock), now=NOW)
        assert package.endswith(bare)
        with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout and process.stdout.readline() == "held\n"
            yield process
            process.kill()

    def test_the_lock_ends_with_its_process_however_that_ends(
        self, lock: Path, holder: subprocess.Popen[str]
    ) -> None:
        assert one_run.look(Host()) == one_run.CHANGING
        with pytest.raises(ChangeFailed, match="another run changes this host: eve on db9"):
            hold(Host())
        holder.kill()
        holder.wait()
        assert one_run.look(Host()) == 1
        hold(Host(), 1)

    def test_its_file_is_root_s_alone_and_no_link_is_followed(self, lock: Path, tmp_path: Path) -> None:
        hold(Host())
        assert lock.stat().st_mode & 0o777 == 0o600
        lock.unlink()
        lock.symlink_to(tmp_path / "other")
        with pytest.raises(ChangeFailed, match="Too many levels of symbolic links"):
            hold(Host())
        assert not (tmp_path / "other").exists()

    def test_no_child_keeps_it(self, lock: Path) -> None:
        """A server that a step starts lives on."""
        with one_run.hold(Host(), "ann", NOW, []):
            child = subprocess.Popen(["sleep", "60"], close_fds=False)
        try:
            hold(Host())
        finally:
            child.kill()
            child.wait()
        assert os.path.exists(lock)
