# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files on the controller lie where they are to lie, whatever others put in their way, and only those who may read them."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("ansible")

from ansible_collections.durable.dbhost.plugins.plugin_utils import output
from ansible_collections.durable.dbhost.plugins.plugin_utils.output import (
    PRIVATE,
    REPORT,
    keep,
    laid_out,
    remove,
)

#: Somebody who is neither root nor who runs this.
STRANGER = 54321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")


@pytest.fixture(name="victim")
def a_file_of_others(tmp_path: Path) -> Path:
    """Return a file in a directory of its own, which nobody here writes to."""
    path = tmp_path / "elsewhere/a.json"
    path.parent.mkdir()
    path.write_text("theirs")
    return path


def test_a_refusal_has_no_traceback() -> None:
    try:
        raise ValueError("inner")
    except ValueError:
        error = output.refused("observed 1; expected 2")
    assert (error.message, "exception" in error.result) == ("observed 1; expected 2", False)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize(("mode", "promised"), [((), 0o640), ((REPORT,), 0o640), ((PRIVATE,), 0o600)])
def test_others_read_no_report(umask: int, mode: tuple[int, ...], promised: int, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/a.json").write_text("old")
    (tmp_path / "there/a.json").chmod(0o666)
    before = os.umask(umask)
    try:
        paths = [keep(str(tmp_path / name), "a.json", "text", *mode) for name in ("there", "made/below")]
    finally:
        os.umask(before)
    for path in map(Path, paths):
        assert path.read_text() == "text"
        assert stat.S_IMODE(path.stat().st_mode) == promised
        assert os.listdir(path.parent) == ["a.json"]
    assert (tmp_path / "made").stat().st_mode & 0o027 == 0


def test_no_link_at_a_file_s_place_is_followed(victim: Path, tmp_path: Path) -> None:
    place = tmp_path / "reports"
    place.mkdir()
    for name in ("a.json", "a.json.new", ".a.json"):
        (place / name).symlink_to(victim)
    keep(str(place), "a.json", "ours")
    remove(str(place), "a.json.new")
    assert victim.read_text() == "theirs"
    assert not (place / "a.json").is_symlink()
    assert sorted(os.listdir(place)) == [".a.json", "a.json"]


def test_a_temporary_name_is_another_each_time_and_never_one_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = []
    replace = os.replace
    monkeypatch.setattr(
        os, "replace", lambda old, new, **where: (names.append(old), replace(old, new, **where))
    )
    for _time in range(3):
        keep(str(tmp_path), "a.json", "x")
    assert len(set(names)) == 3
    assert all(len(name) > 30 and "a.json" not in name for name in names)
    monkeypatch.setattr(output.secrets, "token_hex", lambda size: "known")
    (tmp_path / ".known").write_text("theirs")
    with pytest.raises(FileExistsError):
        keep(str(tmp_path), "a.json", "y")
    assert (tmp_path / "a.json").read_text() == "x"
    assert (tmp_path / ".known").read_text() == "theirs"


@needs_root
@pytest.mark.parametrize("depth", ["reports", "reports/below"])
def test_a_link_of_somebody_else_s_leads_nowhere(depth: str, victim: Path, tmp_path: Path) -> None:
    (tmp_path / "reports").symlink_to(victim.parent)
    # One's own is followed: that is how people have their reports elsewhere.
    keep(str(tmp_path / depth), "b.json", "ours")
    os.lchown(tmp_path / "reports", STRANGER, STRANGER)
    for act in (
        lambda: keep(str(tmp_path / depth), "a.json", "x"),
        lambda: remove(str(tmp_path / depth), "a.json"),
    ):
        with pytest.raises(OSError, match="another user's link"):
            act()
    assert victim.read_text() == "theirs"


def test_a_directory_that_is_swapped_meanwhile_gets_nothing(
    victim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, aside = tmp_path / "reports", tmp_path / "aside"
    place.mkdir()
    fchmod = os.fchmod

    def swap(*given: Any) -> None:
        place.rename(aside)
        place.symlink_to(victim.parent)
        fchmod(*given)

    monkeypatch.setattr(os, "fchmod", swap)
    keep(str(place), "a.json", "ours")
    assert victim.read_text() == "theirs"
    assert (aside / "a.json").read_text() == "ours"


def test_a_link_that_is_swapped_while_it_is_followed_is_refused(
    victim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "reports"
    (tmp_path / "right").mkdir()
    link.symlink_to(tmp_path / "right")
    real = os.stat

    def swap(name: Any, **how: Any) -> os.stat_result:
        found = real(name, **how)
        if name == "reports" and os.readlink(link) != str(victim.parent):
            link.unlink()
            link.symlink_to(victim.parent)
        return found

    monkeypatch.setattr(os, "stat", swap)
    with pytest.raises(OSError, match="changed meanwhile"):
        keep(str(link), "a.json", "ours")
    assert victim.read_text() == "theirs"


def test_what_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", MagicMock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        keep(str(tmp_path), "a.json", "x")
    assert os.listdir(tmp_path) == []


def test_what_is_not_there_is_taken_away_already(tmp_path: Path) -> None:
    remove(str(tmp_path / "nowhere"), "a.json")
    remove(str(tmp_path), "a.json")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "wanted"), [("", ""), ("a", "a\n"), ("a\nb\n", "a\nb\n"), ("\n\x1bc\r\n", "\n\\x1bc\\r\n")]
)
def test_a_host_s_text_keeps_its_lines_and_nothing_else(text: str, wanted: str) -> None:
    assert laid_out(text) == wanted
