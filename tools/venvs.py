# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the virtual environments below .venv/, and the link that lets playbooks run from here.

They are in the user's cache directory, .venv/ leads there: a clone takes what another has made of the same requirements, if
that is less than a week old, so that newer releases of tools are not missed. A checkout keeps those that it has. A second
call costs nothing: each environment keeps a stamp of what it was made from.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
VENVS = ROOT / ".venv"
STORE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "durable-dbhost-venvs"
#: Requirements of the environments with collections.
COLLECTIONS = "collections.txt"
#: Days after which a new checkout gets a new environment, and after which an old one is deleted.
FRESH, REMOVED_AFTER = 7, 60
LINK = ROOT / "playbooks/collections/ansible_collections/durable/dbhost"


class Recipe(NamedTuple):
    """How to make an environment: Pythons in order of preference, the distribution's before all others; a requirements file.

    `alone`: made only if it is requested by name, because one target alone needs it. `collections`: has those of
    requirements/collections.txt.
    """

    pythons: tuple[str, ...]
    requirements: str
    alone: bool = False
    collections: bool = False


NEWEST_FIRST = ("3.13", "3.12", "3.14", "3.11")
RECIPES = {
    "run": Recipe(NEWEST_FIRST, "run.txt", collections=True),
    "lint": Recipe(NEWEST_FIRST, "lint.txt"),
    "ansible-2.16": Recipe(("3.11", "3.12"), "ansible-2.16.txt"),
    "ansible-2.18": Recipe(("3.11", "3.12", "3.13"), "ansible-2.18.txt", alone=True),
    "ansible-2.19": Recipe(("3.11", "3.12", "3.13"), "ansible-2.19.txt", collections=True),
    "ansible-2.20": Recipe(("3.13", "3.12", "3.14"), "ansible-2.20.txt", alone=True),
    "ansible-latest": Recipe(("3.13", "3.12", "3.14"), "ansible-latest.txt", collections=True),
    "python-3.9": Recipe(("3.9",), "unit.txt"),
    "docs": Recipe(NEWEST_FIRST, "docs.txt"),
    "browser": Recipe(("3.13", "3.12", "3.11"), "browser.txt"),
    "fuzz": Recipe(("3.13", "3.12", "3.11"), "fuzz.txt", alone=True),
    "integrations": Recipe(NEWEST_FIRST, "integrations.txt", alone=True),
}


class Unavailable(Exception):
    """This machine has no Python for the environment."""


def find_python(versions: tuple[str, ...]) -> str | None:
    """Return the path of the first of these Pythons that works here, or None."""
    found = subprocess.run(
        [str(ROOT / "tools/find-python"), *versions], stdout=subprocess.PIPE, text=True, check=False
    )
    return found.stdout.strip() or None


def read_requirements(name: str) -> str:
    """Return a requirements file, with the files it includes."""
    text = (ROOT / "requirements" / name).read_text()
    included = [line.split()[1] for line in text.splitlines() if line.startswith("-r ")]
    return text + "".join(read_requirements(other) for other in included)


def ensure(name: str) -> Path:
    """Make the environment unless it is there already, and return its directory.

    Raises Unavailable if no Python for it is here, or if .venv leads to another checkout that has none.
    """
    recipe = RECIPES[name]
    python = find_python(recipe.pythons)
    if not python:
        raise Unavailable(f"{name} needs Python {' or '.join(recipe.pythons)}, which is not here")
    venv = VENVS / name
    if VENVS.is_symlink():
        # Another checkout's, and whoever works there uses them now: taken as they are, never made again from here.
        if not (venv / "bin").is_dir():
            raise Unavailable(f"{name} is not in {VENVS.resolve()}, to which .venv leads: make it there")
        return venv
    texts = [read_requirements(file) for file in (recipe.requirements, *[COLLECTIONS] * recipe.collections)]
    stamp = hashlib.sha256("\n".join([python, *texts]).encode()).hexdigest()
    if not is_made(venv, stamp):
        with locked(name):
            lead(venv, from_store(name, stamp, python, recipe.requirements))
    return venv


def is_made(venv: Path, stamp: str) -> bool:
    """Tell whether an environment is whole and made of this: the stamp is written last."""
    file = venv / "stamp"
    return file.exists() and file.read_text() == stamp


def from_store(name: str, stamp: str, python: str, requirements: str) -> Path:
    """Return an environment of these days, made now if there is none; delete those that were unused for long."""
    today = date.today()
    ages = {
        venv: (today - date.fromisoformat(venv.name[-10:])).days
        for venv in STORE.glob(f"{name}@*-[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]")
    }
    for venv, age in ages.items():
        if age > REMOVED_AFTER:
            shutil.rmtree(venv)
    fresh = [venv for venv, age in ages.items() if age < FRESH and is_made(venv, stamp)]
    if fresh:
        return min(fresh, key=lambda venv: ages[venv])
    venv = STORE / f"{name}@{stamp[:8]}-{today}"
    make(venv, name, python, requirements)
    (venv / "stamp").write_text(stamp)
    return venv


def lead(link: Path, venv: Path) -> None:
    """Let a name below .venv/ lead to an environment, instead of what is there."""
    if link.is_symlink():
        link.unlink()
    else:
        shutil.rmtree(link, ignore_errors=True)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(venv)


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Let one process at a time make this environment; the kernel frees the lock if it dies."""
    STORE.mkdir(parents=True, exist_ok=True)
    with (STORE / f"{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def make(venv: Path, name: str, python: str, requirements: str) -> None:
    """Make the environment again."""
    print(f"setup: .venv/{name} ...", flush=True)
    started = time.monotonic()
    shutil.rmtree(venv, ignore_errors=True)
    subprocess.run([python, "-m", "venv", str(venv)], check=True)
    subprocess.run(
        [
            *(str(venv / "bin/python"), "-m", "pip", "install", "--quiet"),
            # Python compiles what it imports; most of a tool is never imported.
            *("--disable-pip-version-check", "--no-input", "--no-compile"),
            *("-r", str(ROOT / "requirements" / requirements)),
        ],
        check=True,
    )
    if RECIPES[name].collections:
        add_collections(venv)
    print(f"setup: .venv/{name} made, {time.monotonic() - started:.0f} s", flush=True)


def add_collections(venv: Path) -> None:
    """Unpack community.general where Python's packages are: Ansible finds it there, and needs no Galaxy."""
    requirements, python = ROOT / "requirements" / COLLECTIONS, str(venv / "bin/python")
    packages = next(venv.glob("lib/python*/site-packages"))
    with tempfile.TemporaryDirectory() as scratch:
        options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--dest", scratch)
        subprocess.run([python, "-m", "pip", "download", *options, "-r", str(requirements)], check=True)
        with zipfile.ZipFile(next(Path(scratch).glob("*.whl"))) as wheel:
            prefix = "ansible_collections/community/general/"
            wheel.extractall(packages, [name for name in wheel.namelist() if name.startswith(prefix)])


def link_collection() -> None:
    """Make this checkout findable as durable.dbhost for the playbooks in it."""
    target = Path(*[".."] * len(LINK.relative_to(ROOT).parent.parts))
    if LINK.is_symlink() and LINK.readlink() == target:
        return
    LINK.parent.mkdir(parents=True, exist_ok=True)
    LINK.unlink(missing_ok=True)
    LINK.symlink_to(target)


def main() -> int:
    """Make the requested environments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(RECIPES))
    parser.add_argument(
        "--all", action="store_true", help="all that this machine can have, but those of one target"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(RECIPES):
        parser.error(f"no such environment: {', '.join(sorted(unknown))}")
    link_collection()
    shared = [name for name, recipe in RECIPES.items() if not recipe.alone]
    for name in shared if arguments.all else arguments.names:
        try:
            ensure(name)
        except Unavailable as reason:
            print(f"setup: not made: {reason}", file=sys.stderr)
            if not arguments.all:
                return 1
        except subprocess.CalledProcessError as failure:
            print(f"setup: failed: {' '.join(failure.cmd)}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
