# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""tools/venvs.py: an environment is made once for all checkouts, and again when newer releases may be there."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.every_core_alike

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The tool, with a store of its own and a stand-in for what makes an environment; `made` are those it was asked for."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import venvs

    made: list[Path] = []

    def make(venv: Path, *_given: str) -> None:
        (venv / "bin").mkdir(parents=True)
        made.append(venv)

    monkeypatch.setattr(venvs, "STORE", tmp_path / "store")
    monkeypatch.setattr(venvs, "VENVS", tmp_path / "one/.venv")
    monkeypatch.setattr(venvs, "find_python", lambda _versions: "/usr/bin/python3")
    monkeypatch.setattr(venvs, "make", make)
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    venvs.made = made
    yield venvs
    del sys.modules["venvs"]


def aged(tool: Any, name: str, days: int) -> Path:
    """Let the only environment of this name in the store be so old; what led to it leads there still."""
    (old,) = tool.STORE.glob(f"{name}@*")
    day = date.today() - timedelta(days=days)
    renamed: Path = old.rename(old.with_name(f"{old.name[:-10]}{day}"))
    tool.lead(tool.VENVS / name, renamed)
    return renamed


def in_another_checkout(tool: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tool, "VENVS", tmp_path / "two/.venv")


def test_a_clone_takes_what_another_has_made(
    tool: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = tool.ensure("run")
    assert first == tmp_path / "one/.venv/run"
    assert tool.ensure("run") == first
    in_another_checkout(tool, monkeypatch, tmp_path)
    second = tool.ensure("run")
    assert second == tmp_path / "two/.venv/run"
    assert second.resolve() == first.resolve() == tool.made[0]
    assert len(tool.made) == 1


def test_another_name_is_another_environment_even_of_the_same_requirements(tool: Any) -> None:
    tool.RECIPES = {**tool.RECIPES, "again": tool.RECIPES["run"]}
    assert tool.ensure("run").resolve() != tool.ensure("again").resolve()


@pytest.mark.parametrize("days", [0, 6, 7, 30])
def test_a_clone_takes_none_that_is_a_week_old_and_who_has_it_keeps_it(
    tool: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, days: int
) -> None:
    tool.ensure("run")
    old = aged(tool, "run", days)
    assert tool.ensure("run").resolve() == old
    in_another_checkout(tool, monkeypatch, tmp_path)
    assert (tool.ensure("run").resolve() == old) == (days < 7)
    assert old.is_dir()


def test_of_two_the_newer_is_taken(tool: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool.ensure("run")
    old = aged(tool, "run", 5)
    newer = old.with_name(f"{old.name[:-10]}{date.today() - timedelta(days=2)}")
    newer.mkdir()
    (newer / "stamp").write_text((old / "stamp").read_text())
    in_another_checkout(tool, monkeypatch, tmp_path)
    assert tool.ensure("run").resolve() == newer


def test_after_long_it_is_deleted_and_who_had_it_gets_a_new_one(
    tool: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tool.ensure("run")
    old = aged(tool, "run", 61)
    ours = tool.VENVS
    in_another_checkout(tool, monkeypatch, tmp_path)
    tool.ensure("run")
    assert not old.exists()
    monkeypatch.setattr(tool, "VENVS", ours)
    assert (tool.ensure("run") / "bin").is_dir()
    assert len(tool.made) == 2


def test_other_requirements_or_another_python_make_another(
    tool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool.ensure("run")
    monkeypatch.setattr(tool, "read_requirements", lambda _name: "other")
    tool.ensure("run")
    monkeypatch.setattr(tool, "find_python", lambda _versions: "/usr/bin/python4")
    tool.ensure("run")
    assert len({venv.name for venv in tool.made}) == 3


def test_one_that_was_broken_off_is_made_again(
    tool: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As by a signal, or a package that cannot be fetched: no checkout takes it."""

    def fail(venv: Path, *_given: str) -> None:
        venv.mkdir(parents=True)
        raise KeyboardInterrupt

    whole = tool.make
    monkeypatch.setattr(tool, "make", fail)
    with pytest.raises(KeyboardInterrupt):
        tool.ensure("run")
    assert not (tool.VENVS / "run").exists()
    (left,) = tool.STORE.glob("run@*")
    left.rmdir()  # as the real make begins
    monkeypatch.setattr(tool, "make", whole)
    assert (tool.ensure("run") / "stamp").exists()


def test_other_collections_make_another_environment_of_those_with_collections(
    tool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = tool.read_requirements
    tool.ensure("run")
    tool.ensure("docs")
    monkeypatch.setattr(
        tool, "read_requirements", lambda name: read(name) + name * (name == tool.COLLECTIONS)
    )
    tool.ensure("run")
    tool.ensure("docs")
    assert [venv.name.partition("@")[0] for venv in tool.made] == ["run", "docs", "run"]


def test_of_the_package_with_all_collections_one_is_unpacked(
    tool: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    packages = tmp_path / "lib/python3.11/site-packages"
    packages.mkdir(parents=True)

    def download(argv: list[str], *, check: bool) -> None:
        assert check
        assert argv[-2:] == ["-r", str(ROOT / "requirements/collections.txt")]
        with zipfile.ZipFile(Path(argv[argv.index("--dest") + 1]) / "ansible.whl", "w") as wheel:
            for collection in ("community/general", "community/mysql"):
                wheel.writestr(f"ansible_collections/{collection}/MANIFEST.json", "{}")

    monkeypatch.setattr(tool.subprocess, "run", download)
    tool.add_collections(tmp_path)
    found = [path.relative_to(packages) for path in packages.rglob("*") if path.is_file()]
    assert found == [Path("ansible_collections/community/general/MANIFEST.json")]


def test_a_directory_of_before_gives_way_to_the_link(tool: Any) -> None:
    (tool.VENVS / "run/bin").mkdir(parents=True)
    assert tool.ensure("run").is_symlink()
