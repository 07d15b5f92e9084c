# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the virtual environments below .venv/, and the link that lets playbooks run from here.

A second call costs nothing: each environment keeps a stamp of what it was made from.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
VENVS = ROOT / ".venv"
LINK = ROOT / "playbooks/collections/ansible_collections/durable/dbhost"


class Recipe(NamedTuple):
    """How to make an environment: Pythons in order of preference, the distribution's before all others; a requirements file.

    `alone`: only who asks for it by its name gets it; it is large, and one target's.
    """

    pythons: tuple[str, ...]
    requirements: str
    alone: bool = False


NEWEST_FIRST = ("3.13", "3.12", "3.14", "3.11")
RECIPES = {
    "run": Recipe(NEWEST_FIRST, "run.txt"),
    "lint": Recipe(NEWEST_FIRST, "lint.txt"),
    "ansible-2.19": Recipe(("3.11", "3.12", "3.13"), "ansible-2.19.txt"),
    "ansible-latest": Recipe(("3.13", "3.12", "3.14"), "ansible-latest.txt"),
    "python-3.9": Recipe(("3.9",), "unit.txt"),
    "docs": Recipe(NEWEST_FIRST, "docs.txt"),
    "browser": Recipe(("3.13", "3.12", "3.11"), "browser.txt"),
    "fuzz": Recipe(("3.13", "3.12", "3.11"), "fuzz.txt", alone=True),
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
        # Another checkout's, and whoever works there uses them now: taken as they are, never made anew from here.
        if not (venv / "bin").is_dir():
            raise Unavailable(f"{name} is not in {VENVS.resolve()}, to which .venv leads: make it there")
        return venv
    stamp_file = venv / "stamp"
    # The place belongs to the stamp: scripts in an environment name it in their first line.
    made_from = f"{venv}\n{python}\n{read_requirements(recipe.requirements)}"
    stamp = hashlib.sha256(made_from.encode()).hexdigest()
    if not stamp_file.exists() or stamp_file.read_text() != stamp:
        make(venv, python, recipe.requirements)
        stamp_file.write_text(stamp)
    return venv


def make(venv: Path, python: str, requirements: str) -> None:
    """Make the environment anew."""
    print(f"setup: {venv.relative_to(ROOT)} ...", flush=True)
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
    print(f"setup: {venv.relative_to(ROOT)} made, {time.monotonic() - started:.0f} s", flush=True)


def link_collection() -> None:
    """Make this checkout findable as durable.dbhost for the playbooks in it."""
    target = Path(*[".."] * len(LINK.relative_to(ROOT).parent.parts))
    if LINK.is_symlink() and LINK.readlink() == target:
        return
    LINK.parent.mkdir(parents=True, exist_ok=True)
    LINK.unlink(missing_ok=True)
    LINK.symlink_to(target)


def main() -> int:
    """Make the environments that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(RECIPES))
    parser.add_argument("--all", action="store_true", help="all that this machine can have, but for fuzz")
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
