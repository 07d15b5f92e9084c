# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `ansible-galaxy collection build` packs: it does not read .gitignore."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOP_LEVEL = {
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "COPYING",
    "FILES.json",
    "LICENSES",
    "MANIFEST.json",
    "README.md",
    "SECURITY.md",
    "changelogs",
    "docs",
    "examples",
    "meta",
    "playbooks",
    "plugins",
    "roles",
    "tests",
}
# Written by Ansible itself.
GENERATED = {"FILES.json", "MANIFEST.json"}
# What was measured here, how a release is made, and tests of what is not in the tarball.
CHECKOUT_ONLY = (
    "docs/evidence",
    "docs/releasing.md",
    "tests/integrations",
    "tests/tools",
    "tests/unit/benchmarks",
    "tests/unit/fuzz",
    "tests/unit/lab",
    "tests/unit/oracles",
    "tests/unit/proof",
    "tests/unit/test_collection",
    "tests/unit/tools",
)


def git_files() -> set[str]:
    """Return the files that belong to the checkout, by git: tracked, or new and not ignored."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}


def build(checkout: Path, destination: Path) -> set[str]:
    """Build the collection and return the names of the files in the tarball."""
    galaxy = Path(sys.executable).with_name("ansible-galaxy")
    command = [str(galaxy), "collection", "build", "--output-path", str(destination), str(checkout)]
    subprocess.run(command, check=True, stdout=subprocess.PIPE)
    (tarball,) = destination.glob("durable-dbhost-*.tar.gz")
    with tarfile.open(tarball) as packed:
        return {member.name for member in packed if not member.isdir()}


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Return the files of the tarball of this checkout."""
    return build(ROOT, tmp_path_factory.mktemp("dist"))


def test_only_known_top_level_entries(packed: set[str]) -> None:
    assert {name.split("/")[0] for name in packed} - TOP_LEVEL == set()


def test_exactly_the_files_of_the_checkout(packed: set[str]) -> None:
    expected = {
        name for name in git_files() if name.split("/")[0] in TOP_LEVEL and not name.startswith(CHECKOUT_ONLY)
    }
    assert packed - GENERATED == expected


@pytest.mark.parametrize(
    "stray",
    [
        ".venv/run/bin/python",
        "durable-report/db1.json",
        "lab/.cache/disk.qcow2",
        "playbooks/collections/ansible_collections/durable/dbhost/README.md",
        "playbooks/durable-report/db1.json",
        "plugins/modules/__pycache__/x.cpython-39.pyc",
        "tests/output/unit.log",
        "tests/unit/root.img",
    ],
)
def test_leaves_out_what_running_things_leaves_behind(stray: str, tmp_path: Path) -> None:
    checkout, destination = tmp_path / "checkout", tmp_path / "dist"
    destination.mkdir()
    path = checkout / stray
    path.parent.mkdir(parents=True)
    path.write_text("stray")
    (checkout / "README.md").write_text("# A collection")
    shutil.copy(ROOT / "galaxy.yml", checkout)
    assert build(checkout, destination) == {"README.md", *GENERATED}
