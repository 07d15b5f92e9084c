# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make test` runs: each stage is one command."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import venvs
from venvs import ROOT

GROUPS = {
    "lint": "style, types, spelling, licences",
    "unit": "pure code and modules, without a machine",
    "sanity": "the built collection, as ansible-test and Galaxy see it",
    "lab": "behaviour on real kernels and emulated disks",
}
#: The order in which scenarios begin. What takes long comes first, for two processors to be busy to the end; and the two that
#: wait half of their time, `interrupted` and `power`, run beside two that do not.
ORDER = (
    *("default", "buses", "interrupted", "power", "engines", "mounts"),
    *("stacked", "kernels", "measure", "selinux", "faults", "network", "families"),
)
#: Scenarios of which `make test` runs a short part, and `make scenario` the whole.
WITH_SHORT_PART = ("buses", "default", "faults")
#: Scenarios that `make test` leaves out because the others fill its time. `make lab-test` runs them.
LONG_SCENARIOS = ("bls", "buses", "families", "kernels", "measure", "network", "selinux")
#: What is short, and nothing waits for it, comes after all scenarios, so that no processor waits long for the last of them.
AT_THE_END = ("antsibull-docs", "galaxy-importer", "documentation site")
COLLECTIONS = ROOT / "playbooks/collections"
#: The oldest and the newest ansible-core: the unit tests.
ANSIBLES = ("ansible-2.16", "ansible-latest")
#: Between them: `make unit` runs what calls ansible-core on each.
BETWEEN = ("ansible-2.18", "ansible-2.19", "ansible-2.20")
#: Those of the lab and of the built collection.
ON_MACHINES = ("ansible-2.19", "ansible-latest")
PLUGINS = ("module_utils", "modules", "plugin_utils", "action", "lookup")
HOST_PYTHON = "python-3.9"
#: Scenarios that run on the newest ansible-core; all others run on the first of ON_MACHINES. What a host does is the same
#: with both.
ON_NEWEST = ("default", "stacked")
ALL_UNIT_TESTS = ("pytest", "tests/unit")
#: The scenario for every day: one machine, all layers of storage, few runs.
FAST = "stacked"


@dataclass(frozen=True)
class Stage:
    """One command, the virtual environment it belongs to, and another that it may need.

    It keeps one processor busy, more or less. `needs` names the stage that has to pass before it begins. `make test` leaves
    out what `is_long`: the command of its group runs it.
    """

    group: str
    name: str
    venv: str
    command: tuple[str, ...]
    directory: Path = ROOT
    environment: dict[str, str] = field(default_factory=dict)
    live: bool = False
    also: str = ""
    needs: str = ""
    is_long: bool = False

    @property
    def slug(self) -> str:
        """The name, as a file name."""
        return re.sub(r"[^\w.]+", "-", self.name)


class Unknown(Exception):
    """No stage, group or set of stages has this name."""


@functools.cache
def ansibles_here(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of these environments with ansible-core that this machine can have; all if it can have none."""
    found = (venv for venv in names if venvs.find_python(venvs.RECIPES[venv].pythons))
    return tuple(found) or names


def lint_stages() -> Iterator[Stage]:
    """Checks of the checkout as it is."""
    lint = ("ansible-lint", "--offline", "--strict", "--nocolor")
    path = {"ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS)}
    yield Stage("lint", "ansible-lint", "lint", lint, environment=path)
    mypy = ("mypy", "--config-file", str(ROOT / "pyproject.toml"))
    commands = {
        "ruff check": ("ruff", "check", "--output-format=concise"),
        "ruff format": ("ruff", "format", "--check", "--diff"),
        "mypy tools, lab, benchmarks, proof, oracles and fuzz": (
            *mypy,
            *("tools", "lab", "benchmarks", "proof", "oracles", "fuzz"),
        ),
        "yamllint": ("yamllint", "--strict", "."),
        "codespell": ("codespell",),
        "reuse": ("reuse", "lint", "--lines"),
        "words": ("python", "tools/words.py"),
        "complexity": ("python", "tools/complexity.py"),
        "changelog": ("antsibull-changelog", "lint"),
    }
    for name, command in commands.items():
        yield Stage("lint", name, "lint", command)
    # The plugins as the packages they will be, so that their own imports resolve.
    kinds = (("-p", f"ansible_collections.durable.dbhost.plugins.{kind}") for kind in PLUGINS)
    plugins = (*mypy, *(word for pair in kinds for word in pair))
    yield Stage("lint", "mypy plugins", "lint", plugins, COLLECTIONS)


def unit_stages() -> Iterator[Stage]:
    """Unit tests: on each ansible-core, then on the oldest Python of a host."""
    old, new = ANSIBLES
    yield Stage("unit", f"unit tests, {new}", new, ALL_UNIT_TESTS)
    # All else knows no ansible-core: it has been tested once, and what runs on hosts once more below.
    # Of each parametrized test one case: what an older core or Python answers otherwise, it does so in each case.
    one = ("pytest", "--one-case")
    kinds = ("action", "lookup", "modules", "plugin_utils")
    of_core = (*(f"tests/unit/plugins/{kind}" for kind in kinds), "tests/unit/test_collection")
    for venv in (old, *BETWEEN):
        command = (*one, *of_core, "-m", "not every_core_alike")
        yield Stage("unit", f"unit tests, {venv}", venv, command, is_long=venv in BETWEEN)
    pure = (*one, "tests/unit/plugins/module_utils", "-m", "not every_python_alike")
    yield Stage("unit", "unit tests, Python 3.9 without ansible-core", HOST_PYTHON, pure)
    yield Stage("unit", "proof, the short part", new, ("python", "-m", "proof", "--short"))


def sanity_stages(scratch: Path) -> Iterator[Stage]:
    """Build the collection, install it elsewhere, and check what was installed."""
    galaxy = ("ansible-galaxy", "collection")
    version = re.search(r"^version: (\S+)$", (ROOT / "galaxy.yml").read_text(), re.M)
    assert version, "galaxy.yml has no version"
    tarball = str(scratch / f"durable-dbhost-{version[1]}.tar.gz")
    build = (*galaxy, "build", "--output-path", str(scratch))
    yield Stage("sanity", "build", "lint", build)
    # Once for each ansible-test: it writes where it runs, and they run beside each other.
    for venv in ON_MACHINES:
        install = (*galaxy, "install", "--offline", "-p", str(scratch / venv), tarball)
        yield Stage("sanity", f"install, {venv}", "lint", install, needs="build")
    yield from ansible_test_stages(scratch)
    old = scratch / ON_MACHINES[0]
    docs = (
        *("antsibull-docs", "lint-collection-docs", "--plugin-docs", "--check-extra-docs-refs"),
        *("--validate-collection-refs=all", "--disallow-unknown-collection-refs"),
        str(installed(old)),
    )
    needs = f"install, {old.name}"
    yield Stage("sanity", "antsibull-docs", "lint", docs, needs=needs)
    # In the scratch directory, because it leaves a file where it runs.
    importer = ("python", str(ROOT / "tools/galaxy_import.py"), tarball)
    yield Stage("sanity", "galaxy-importer", "lint", importer, scratch, needs="build")
    yield Stage("sanity", "documentation site", "docs", ("python", str(ROOT / "tools/docs_site.py")))


def ansible_test_stages(scratch: Path) -> Iterator[Stage]:
    """ansible-test of each ansible-core, one command after the other: they share a directory. The last one is long."""
    ansible_test = ("python", str(ROOT / "tools/ansible_test.py"))
    sanity = (*ansible_test, "sanity", "--target-python")
    units = (*ansible_test, "units", "--target-python")
    old_python = f"3.9@{venvs.VENVS / HOST_PYTHON}/bin/python3.9"
    modules, action = "tests/unit/plugins/modules/", "tests/unit/plugins/action/"
    lookup = "tests/unit/plugins/lookup/"
    # Those whose answer depends on ansible-core or on Python. All others look at the text alone, or at what the newest knows
    # better. Files are compiled and loaded with the newest of both, and with the oldest of both: each is half a minute.
    of_core = ("ansible-doc", "compile", "import", "runtime-metadata", "validate-modules")
    chosen = tuple(word for test in of_core for word in ("--test", test))
    old, new = ON_MACHINES
    # It runs each test in a process of its own, so only those of code that calls ansible-core: once as a controller,
    # once as a host sees it. Of all others it only shows that they are found, and import what they test.
    commands: dict[str, dict[str, tuple[str, ...]]] = {
        new: {
            f"ansible-test sanity, {new}": (*sanity, "default", "--skip-test", "pylint"),
            f"ansible-test units, {new}, hosts with Python 3.9": (*units, old_python, modules),
            f"ansible-test units, {new}, all are found": (*units, old_python, "--collect-only"),
            # Of unit tests, which ruff looks at, it would take as long again.
            f"ansible-test pylint of plugins, {new}": (*sanity, "default", "--test", "pylint", "plugins/"),
        },
        old: {
            f"ansible-test sanity, {old}": (*sanity, old_python, *chosen),
            f"ansible-test units, {old}": (*units, "default", modules, action, lookup),
        },
    }
    for venv, named in commands.items():
        needs = f"install, {venv}"
        for name, command in named.items():
            also = HOST_PYTHON if old_python in command else ""
            long = name == list(named)[-1]
            yield Stage(
                "sanity", name, venv, command, installed(scratch / venv), also=also, needs=needs, is_long=long
            )
            needs = name


def installed(path: Path) -> Path:
    """Return where a collection lies that was installed below a path."""
    return path / "ansible_collections/durable/dbhost"


def lab_stages(scratch: Path) -> Iterator[Stage]:
    """All molecule scenarios, with facts that are cached for this run."""
    # On a Debian of today the older one runs on the distribution's own Python, the quickest there is: it does all but what
    # needs the newest.
    here = ansibles_here(ON_MACHINES)
    old, new = here[0], here[-1]
    lab = ("python", "-m", "lab")
    # The lab's own, and the proof's: a scenario cuts its disk's power. Not PostgreSQL's: Debian's package makes a
    # cluster, and starts it.
    engines = ("*/mariadb/*", "*/firebird/*")
    doctor = ("python", "-m", "proof", "--doctor", "--install", *engines)
    yield Stage("lab", "packages", old, doctor, live=True)
    yield Stage("lab", "image", old, (*lab, "image"), live=True, needs="packages")
    for name in scenarios():
        command = ("molecule", "test", "-s", name)
        facts = {
            "ANSIBLE_CACHE_PLUGIN": "jsonfile",
            "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(scratch / "facts" / name),
        }
        own, other = (new, old) if name in ON_NEWEST else (old, new)
        # One test compares both versions.
        also = other if name == ORDER[0] else ""
        long = name in LONG_SCENARIOS
        yield Stage(
            "lab", name, own, command, environment=facts, live=True, also=also, needs="image", is_long=long
        )
        if name == ORDER[0]:
            # It is long: as the last stage it would leave one of two processors idle.
            boots = ("python", "-m", "oracles", "boot", "--short")
            yield Stage("lab", "boot oracle, the short part", old, boots, live=True, needs="image")
    ends = ("pytest", "-v", "tests/lab")
    yield Stage("lab", "ends of machines", old, ends, needs="image")
    # Those that the unit tests skip where their tool is missing.
    proof = ("pytest", "-rs", "-m", "skipif", "tests/unit/proof")
    name = "unit tests of the proof, with its tools"
    yield Stage("lab", name, old, proof, needs="packages")
    # What other programs make of ours. It installs chromium, and two who install at once are one too many.
    path = {"PYTHONPATH": f"{COLLECTIONS}:{ROOT}"}
    yield Stage(
        "lab",
        "browser and monitoring",
        "browser",
        ("pytest", "tests/tools"),
        environment=path,
        needs="packages",
    )


def scenarios() -> list[str]:
    """Return all scenarios, in the order in which they begin."""
    found = [path.parent.name for path in (ROOT / "molecule").glob("*/molecule.yml")]
    rank = {name: number for number, name in enumerate(ORDER)}
    return sorted(found, key=lambda name: (rank.get(name, len(rank)), name))


def all_stages(scratch: Path) -> list[Stage]:
    """Return all stages, in the order in which they are to begin.

    `scratch` is an empty directory outside the checkout, because ansible-test leaves out what
    git ignores.
    """
    # The longest scenario and what it needs begin before the unit tests: else all the rest would wait for it.
    packages, image, longest, *lab = lab_stages(scratch)
    stages = [*lint_stages(), packages, image, longest, *unit_stages(), *sanity_stages(scratch), *lab]
    return sorted(stages, key=lambda stage: stage.name in AT_THE_END)


def select(stages: list[Stage], name: str) -> list[Stage]:
    """Return the stages of this name, or of the set of this name, and what they need; all without a name.

    `check` is required before a commit. Raises Unknown.
    """
    by_name = {stage.name: stage for stage in stages}
    sets = {group: [stage.name for stage in stages if stage.group == group] for group in GROUPS}
    # On the distribution's own Python, where it has one that the oldest takes; the scenario is one of the newest's.
    sets["check"] = [*sets["lint"], f"unit tests, {ansibles_here(ANSIBLES)[0]}", FAST]
    sets[""] = [stage.name for stage in stages if not stage.is_long]
    if name not in sets and name not in by_name:
        known = "\n  ".join(filter(None, (*sets, *by_name)))
        raise Unknown(f"no stage is called {name!r}; there are:\n  {known}")
    wanted = list(sets.get(name, [name]))
    for each in wanted:
        if needed := by_name[each].needs:
            wanted.append(needed)
    chosen = [stage for stage in stages if stage.name in wanted]
    return [_of_check(stage) for stage in sorted(chosen, key=_is_short)] if name == "check" else chosen


def _is_short(stage: Stage) -> bool:
    return stage.group == "lint"


def _of_check(stage: Stage) -> Stage:
    """Run all unit tests in two processes: here little else runs at the same time, and they take longest.

    Under a separate name, under which its time is stored.
    """
    if stage.group != "unit":
        return stage
    return replace(stage, name=f"all {stage.name}", command=(*ALL_UNIT_TESTS, "-n", "2"))
