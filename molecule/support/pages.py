# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands that README and docs print, taken from the pages themselves: what runs is what a reader copies."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
#: Who runs which command, and why some are run by nobody.
TABLE = ROOT / "tools/pages.yml"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)
#: What stands behind a command to explain it.
_REMARK = re.compile(r"(?:^|\s+)# .*$")


def pages() -> list[Path]:
    """Return the pages that people read."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    """Return the blocks of a language on a page."""
    found = _BLOCK.findall(page.read_text(encoding="utf-8"))
    return [text for named, text in found if named == language]


def commands(page: Path) -> list[str]:
    """Return the commands of a page, each in one line, without what is said of it."""
    lines = [line for text in blocks(page, "console") for line in text.replace("\\\n", " ").splitlines()]
    bare = (" ".join(_REMARK.sub("", line).split()) for line in lines)
    return [command for command in bare if command]


def table() -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each part of the table."""
    found: dict[str, list[dict[str, Any]]] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return found


def with_names(command: str, names: dict[str, str]) -> str:
    """Return a command with what stands for a reader's own: hosts, directories, files."""
    for ours, theirs in names.items():
        command = command.replace(ours, theirs)
    return command


def copy_of_sources(destination: Path) -> None:
    """Copy the files of the checkout that git knows, as a reader's clone has them."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).exists():
            (destination / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, destination / name, follow_symlinks=False)
