# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `ansible-galaxy collection build` packs, which does not read .gitignore; and that it is enough, without a checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
#: Of the environment whose Ansible uses the tarball: tests/integrations/test_empty.py names new ones with ansible-core alone.
BIN = Path(os.environ.get("DBHOST_ANSIBLE_BIN") or Path(sys.executable).parent)
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
    command = [
        str(BIN / "ansible-galaxy"),
        "collection",
        "build",
        "--output-path",
        str(destination),
        str(checkout),
    ]
    subprocess.run(command, check=True, stdout=subprocess.PIPE)
    (tarball,) = destination.glob("durable-dbhost-*.tar.gz")
    with tarfile.open(tarball) as packed:
        return {member.name for member in packed if not member.isdir()}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory for the tarball."""
    return tmp_path_factory.mktemp("dist")


@pytest.fixture(scope="module")
def packed(place: Path) -> set[str]:
    """Return the files of the tarball of this checkout."""
    return build(ROOT, place)


@pytest.fixture(scope="module")
def alone(packed: set[str], place: Path) -> Iterator[Callable[..., str]]:
    """Install the tarball; return a function that runs a command of Ansible with it, and knows no checkout."""
    # Short: Ansible makes sockets below its home.
    with tempfile.TemporaryDirectory(prefix="dbhost-") as home:
        environment = {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "HOME": home,
            "ANSIBLE_COLLECTIONS_PATH": f"{home}/collections",
            "ANSIBLE_NOCOLOR": "1",
        }

        def run(command: str, *arguments: str) -> str:
            done = subprocess.run(
                [str(BIN / command), *arguments],
                cwd=home,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        (tarball,) = place.glob("durable-dbhost-*.tar.gz")
        run("ansible-galaxy", "collection", "install", "--offline", str(tarball), "-p", f"{home}/collections")
        yield run


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


@pytest.mark.parametrize("kind", ["module", "lookup", "callback"])
def test_alone_each_plugin_has_its_documentation(
    kind: str, packed: set[str], alone: Callable[..., str]
) -> None:
    directory = f"plugins/{'modules' if kind == 'module' else kind}/"
    names = [f"durable.dbhost.{Path(name).stem}" for name in packed if name.startswith(directory)]
    assert names
    found = json.loads(alone("ansible-doc", "--json", "-t", kind, *names))
    assert set(found) == set(names)
    assert not [name for name in names if not found[name]["doc"]["short_description"]]


def test_alone_each_role_has_its_documentation(packed: set[str], alone: Callable[..., str]) -> None:
    names = {f"durable.dbhost.{name.split('/')[1]}" for name in packed if name.startswith("roles/")}
    found = json.loads(alone("ansible-doc", "--json", "-t", "role", *names))
    assert set(found) == names
    for name in names:
        assert all(entry["options"] for entry in found[name]["entry_points"].values()), name


@pytest.mark.skipif(os.geteuid() != 0, reason="the facts of a host need root")
@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (["durable.dbhost.audit"], {}),
        (["durable.dbhost.harden_db", "--check"], {"durable_profile": "strict"}),
    ],
    ids=["audit", "check"],
)
def test_alone_this_host_is_read(
    words: list[str], variables: dict[str, Any], alone: Callable[..., str]
) -> None:
    """What it finds here is not the question."""
    with tempfile.TemporaryDirectory() as reports:
        given = {
            **variables,
            "ansible_python_interpreter": "{{ ansible_playbook_python }}",
            "durable_fail_on": [],
            "durable_report_dir": reports,
        }
        page = alone("ansible-playbook", *words, "-i", "localhost,", "-c", "local", "-e", json.dumps(given))
        report = json.loads((Path(reports) / "localhost.json").read_text())
    assert report["looked_only"] is True
    assert f"1 host: 1 {report['verdict']}" in page
