# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program of the rollback timer as a process of its own, over real files: it needs nothing but Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import bounds, our_paths, program
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Host
from ansible_collections.durable.dbhost.plugins.module_utils.undo import journal, put_back

pytestmark = pytest.mark.every_core_alike

#: Where things lie is made up, and that systemd runs: all else is the program's.
_RUN = """
import os, sys
sys.path.insert(0, sys.argv[1])
from durable_dbhost.host import our_paths, systemd
root = sys.argv[2]
for name in ("UNDO", "UNDO_JOURNAL", "UNDO_PROGRAM", "UNDO_FIRED", "UNDO_UNIT", "CONFIGURED", "LOCK"):
    setattr(our_paths, name, root + getattr(our_paths, name))
from durable_dbhost.undo import installed, journal, put_back
from durable_dbhost.enforce import one_run
one_run.LOCK = our_paths.LOCK
installed._FILES = tuple(root + path for path in installed._FILES if not path.startswith(root))
systemd.runs = lambda host: False
put_back.expect_root = lambda host: None
def wait(host, seconds):
    print("waited", seconds)
    try:
        for number in range(100 if sys.argv[3:] else 0):
            open(root + "/run/" + str(number), "x").close()
    except OSError:
        pass
put_back.wait = wait
put_back._make_writable = lambda host: None
sys.exit(put_back.main())
"""


@pytest.fixture(params=["no lock", "a torn text", "a full file system", "no inode since the boot"])
def run(tmp_path: Path, request: pytest.FixtureRequest) -> subprocess.CompletedProcess[str]:
    """The program, ended, over a machine of files of which one was changed, one made and one removed."""
    host = Host()
    changed, made, removed = (str(tmp_path / f"etc/{name}") for name in ("fstab", "made", "removed"))
    (tmp_path / "etc").mkdir()
    Path(changed).write_bytes(b"LABEL=\xe9 / ext4 defaults 0 1\r\n")
    Path(changed).chmod(0o640)
    Path(removed).write_text("gone\n", encoding="utf-8")
    patched = pytest.MonkeyPatch()
    patched.setattr(our_paths, "UNDO_JOURNAL", f"{tmp_path}{our_paths.UNDO_JOURNAL}")
    with patched.context():
        journal.write(host, journal.Journal({}, 60))
        keeping = journal.KeepingHost(host)
        keeping.write_file(changed, b"other\n")
        keeping.write_file(made, b"x\n")
        keeping.remove_file(removed)
        assert keeping.exists(made) and not keeping.exists(removed)
    patched.undo()
    archive = tmp_path / "undo.pyz"
    archive.write_bytes(program.build(put_back.__name__))
    argv = [sys.executable, "-I", "-S", "-c", _RUN, str(archive), str(tmp_path)]
    if request.param == "a torn text":
        lock = Path(f"{tmp_path}{our_paths.LOCK}")
        lock.parent.mkdir(parents=True)
        lock.write_text('{"number": 1{"number": 2, "by": "ann"', encoding="utf-8")
    elif request.param == "a full file system":
        place = tmp_path / "run"
        place.mkdir()
        fill = 'mount -t tmpfs -o size=4k tmpfs "$1"; head -c 4096 /dev/zero > "$1/fill"; shift; exec "$@"'
        argv = ["unshare", "--mount", "sh", "-e", "-c", fill, "sh", str(place), *argv]
    elif request.param == "no inode since the boot":
        place = tmp_path / "run"
        place.mkdir()
        fill = 'mount -t tmpfs -o nr_inodes=9 tmpfs "$1"; shift; exec "$@"'
        argv = ["unshare", "--mount", "sh", "-e", "-c", fill, "sh", str(place), *argv, "fill"]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


def test_it_puts_back_bytes_modes_and_what_was_not_there(
    run: subprocess.CompletedProcess[str], tmp_path: Path
) -> None:
    assert (run.returncode, run.stderr) == (0, "")
    assert "waited 60" in run.stdout
    assert (tmp_path / "etc/fstab").read_bytes() == b"LABEL=\xe9 / ext4 defaults 0 1\r\n"
    assert (tmp_path / "etc/fstab").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "etc/removed").read_text(encoding="utf-8") == "gone\n"
    assert not (tmp_path / "etc/made").exists()
    left = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted({*left, "lock"}) == ["fired.json", "fstab", "lock", "removed", "undo.pyz"]


class TestJournalTooLong:
    """Over real files: what is written is read back, or it is not written and nothing is changed."""

    @pytest.fixture
    def host(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
        """A host on which the switch waits."""
        monkeypatch.setattr(our_paths, "UNDO_JOURNAL", str(tmp_path / "journal.json"))
        journal.write(Host(), journal.Journal({}, 60))
        return journal.KeepingHost(Host())

    def test_a_file_that_is_changed_again_and_again_never_makes_a_journal_that_cannot_be_read(
        self, host: Host, tmp_path: Path
    ) -> None:
        path = tmp_path / "fstab"
        path.write_bytes(b"0" * 2**20)
        first, done = path.read_bytes(), 0
        with pytest.raises(ChangeFailed) as error:
            for done in range(10):
                host.write_file(str(path), str(done + 1).encode() * 2**20)
        assert f"{path}: not changed: {our_paths.UNDO_JOURNAL}: it would have " in str(error.value)
        assert "at most 4194304 bytes. Fix: set durable_undo_after to 0" in str(error.value)
        assert path.read_bytes() == str(done).encode() * 2**20
        found = journal.read(Host())
        assert found is not None
        assert len(found.entries) == done == 1
        assert put_back._restore(Host(), found.entries[0]) is None
        assert path.read_bytes() == first

    def test_a_file_that_is_too_long_for_the_journal_is_not_changed(self, host: Host, tmp_path: Path) -> None:
        path = tmp_path / "fstab"
        for size in (bounds.OUTPUT - 100, bounds.OUTPUT + 1):
            path.write_bytes(b"0" * size)
            with pytest.raises(ChangeFailed, match="Fix: set durable_undo_after to 0"):
                host.write_file(str(path), b"")
            with pytest.raises(ChangeFailed, match="Fix: set durable_undo_after to 0"):
                host.remove_file(str(path))
            assert path.stat().st_size == size
        path.write_bytes(b"")
        with pytest.raises(ChangeFailed, match="Fix: set durable_undo_after to 0"):
            host.write_file(str(path), b"1" * bounds.OUTPUT)
        assert path.read_bytes() == b""

    def test_the_longest_that_is_written_is_read(self, host: Host) -> None:
        def of(size: int) -> journal.Journal:
            return journal.Journal({"mount_options": [{"target": "x" * size}]}, 60)

        journal.write(Host(), of(1))
        beside = Path(our_paths.UNDO_JOURNAL).stat().st_size - 1
        journal.write(Host(), of(bounds.OUTPUT - beside))
        assert journal.read(Host()) == of(bounds.OUTPUT - beside)
        with pytest.raises(ChangeFailed, match=f"it would have {bounds.OUTPUT + 1} bytes"):
            journal.write(Host(), of(bounds.OUTPUT - beside + 1))
        assert journal.read(Host()) == of(bounds.OUTPUT - beside)
