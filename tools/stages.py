# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make test` runs: each stage is one command."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import venvs
from venvs import ROOT

GROUPS = {
    "lint": "style, types, spelling, licences",
    "unit": "pure code and modules, without a machine",
    "sanity": "the built collection, as ansible-test and Galaxy see it",
    "lab": "behaviour on real kernels and emulated disks",
}
LONGEST = ("default", "engines", "power")
COLLECTIONS = ROOT / "playbooks/collections"
ANSIBLES = ("ansible-2.19", "ansible-latest")
PLUGINS = ("module_utils", "modules", "action")
HOST_PYTHON = "python-3.9"


@dataclass(frozen=True)
class Stage:
    """One command, the virtual environment it belongs to, and another that it may need.

    Neighbours that are `beside` each other run two at a time.
    """

    group: str
    name: str
    venv: str
    command: tuple[str, ...]
    directory: Path = ROOT
    environment: dict[str, str] = field(default_factory=dict)
    live: bool = False
    also: str = ""
    beside: bool = False

    @property
    def slug(self) -> str:
        """The name, as a file name."""
        return re.sub(r"[^\w.]+", "-", self.name)


def lint_stages() -> Iterator[Stage]:
    """Checks of the checkout as it is."""
    mypy = ("mypy", "--config-file", str(ROOT / "pyproject.toml"))
    commands = {
        "ruff check": ("ruff", "check", "--output-format=concise"),
        "ruff format": ("ruff", "format", "--check", "--diff"),
        "yamllint": ("yamllint", "--strict", "."),
        "codespell": ("codespell",),
        "reuse": ("reuse", "lint", "--lines"),
        "changelog": ("antsibull-changelog", "lint"),
        "mypy tools, lab, benchmarks and proof": (*mypy, "tools", "lab", "benchmarks", "proof"),
    }
    for name, command in commands.items():
        yield Stage("lint", name, "lint", command)
    # The plugins as the packages they will be, so that their own imports resolve.
    kinds = (("-p", f"ansible_collections.durable.dbhost.plugins.{kind}") for kind in PLUGINS)
    plugins = (*mypy, *(word for pair in kinds for word in pair))
    yield Stage("lint", "mypy plugins", "lint", plugins, COLLECTIONS)
    lint = ("ansible-lint", "--offline", "--strict", "--nocolor")
    path = {"ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS)}
    yield Stage("lint", "ansible-lint", "lint", lint, environment=path)


def unit_stages() -> Iterator[Stage]:
    """Unit tests: on the oldest Python of a host, then on each ansible-core."""
    pure = ("pytest", "tests/unit/plugins/module_utils")
    yield Stage("unit", "unit tests, Python 3.9 without ansible-core", HOST_PYTHON, pure)
    for venv in ANSIBLES:
        yield Stage("unit", f"unit tests, {venv}", venv, ("pytest", "-n2", "tests/unit"))
    yield Stage("unit", "proof, the short part", ANSIBLES[-1], ("python", "-m", "proof", "--short"))


def sanity_stages(scratch: Path) -> Iterator[Stage]:
    """Build the collection, install it elsewhere, and check what was installed."""
    galaxy = ("ansible-galaxy", "collection")
    version = re.search(r"^version: (\S+)$", (ROOT / "galaxy.yml").read_text(), re.M)
    assert version, "galaxy.yml has no version"
    tarball = str(scratch / f"durable-dbhost-{version[1]}.tar.gz")
    installed = scratch / "ansible_collections/durable/dbhost"
    build = (*galaxy, "build", "--output-path", str(scratch))
    yield Stage("sanity", "build", "lint", build)
    install = (*galaxy, "install", "--offline", "-p", str(scratch), tarball)
    yield Stage("sanity", "install", "lint", install)
    docs = (
        *("antsibull-docs", "lint-collection-docs", "--plugin-docs", "--check-extra-docs-refs"),
        *("--validate-collection-refs=all", "--disallow-unknown-collection-refs"),
        str(installed),
    )
    yield Stage("sanity", "antsibull-docs", "lint", docs)
    # In the scratch directory, because it leaves a file where it runs.
    importer = ("python", str(ROOT / "tools/galaxy_import.py"), tarball)
    yield Stage("sanity", "galaxy-importer", "lint", importer, scratch)
    # By its installed name, on this machine, read-only; what it finds here is not the question.
    variables = {
        "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        "durable_fail_on": [],
        "durable_report_dir": "",
    }
    audit = (
        *("ansible-playbook", "durable.dbhost.audit", "-i", "localhost,", "-c", "local"),
        *("-e", json.dumps(variables)),
    )
    path = {"ANSIBLE_COLLECTIONS_PATH": str(scratch)}
    yield Stage("sanity", "audit, as installed", "lint", audit, scratch, environment=path)
    ansible_test = ("python", str(ROOT / "tools/ansible_test.py"))
    sanity = (*ansible_test, "sanity", "--local")
    units = (*ansible_test, "units", "--target-python")
    old_python = f"3.9@{venvs.VENVS / HOST_PYTHON}/bin/python3.9"
    for venv in ANSIBLES:
        yield Stage("sanity", f"ansible-test sanity, {venv}", venv, sanity, installed)
    # Each of them has run with pytest before: here once as a controller, once as a host sees it.
    old, new = ANSIBLES
    yield Stage("sanity", f"ansible-test units, {old}", old, (*units, "default"), installed)
    name = f"ansible-test units, {new}, hosts with Python 3.9"
    yield Stage("sanity", name, new, (*units, old_python), installed, also=HOST_PYTHON)


def lab_stages() -> Iterator[Stage]:
    """All molecule scenarios, on the newest ansible-core that is here, with cached facts."""
    here = [venv for venv in ANSIBLES if venvs.find_python(venvs.RECIPES[venv].pythons)]
    lab = ("python", "-m", "lab")
    # The lab's own, and the proof's: a scenario cuts its disk's power. Not PostgreSQL's: Debian's package makes a
    # cluster, and starts it.
    engines = ("*/mariadb/*", "*/firebird/*")
    doctor = ("python", "-m", "proof", "--doctor", "--install", *engines)
    yield Stage("lab", "packages", here[-1], doctor, live=True)
    # In the unit tests those that miss their tool are skipped.
    proof = ("pytest", "-n2", "-rs", "tests/unit/proof")
    yield Stage("lab", "unit tests of the proof, with its tools", here[-1], proof)
    yield Stage("lab", "image", here[-1], (*lab, "image"), live=True)
    for name in scenarios():
        command = ("molecule", "test", "-s", name)
        facts = {
            "ANSIBLE_CACHE_PLUGIN": "jsonfile",
            "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(ROOT / "tests/output/facts" / name),
        }
        # One test compares both versions.
        yield Stage("lab", name, here[-1], command, environment=facts, live=True, also=here[0], beside=True)


def scenarios() -> list[str]:
    """Return all scenarios, the longest first: an emulated machine keeps little more than one processor busy."""
    found = [path.parent.name for path in (ROOT / "molecule").glob("*/molecule.yml")]
    return sorted(found, key=lambda name: (name not in LONGEST, name))


def stages_of(groups: list[str], scratch: Path) -> list[Stage]:
    """Return the stages of these groups, in the order of GROUPS.

    `scratch` is an empty directory outside the checkout, because ansible-test leaves out what
    git ignores.
    """
    makers = {
        "lint": lint_stages,
        "unit": unit_stages,
        "sanity": lambda: sanity_stages(scratch),
        "lab": lab_stages,
    }
    return [stage for group in GROUPS if group in groups for stage in makers[group]()]
