# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The paths in `durable_databases`, read the same way by facts and policy."""

from __future__ import annotations

import posixpath
from typing import Any


def normal(path: str) -> str:
    """Return a path with each slash and dot in it once. Two leading slashes are one on Linux."""
    return "/" + posixpath.normpath(path).lstrip("/")


def of_databases(databases: Any, engine: str | None = None) -> list[str]:
    """Return the absolute paths that are named, of one engine or of all.

    What is malformed is for the policy to refuse.
    """
    entries = databases if isinstance(databases, (list, tuple)) else []
    dicts = [entry for entry in entries if isinstance(entry, dict)]
    lists = [entry.get("paths") for entry in dicts if engine in (None, entry.get("engine"))]
    named = [path for found in lists if isinstance(found, (list, tuple)) for path in found]
    return [normal(path) for path in named if isinstance(path, str) and path.startswith("/")]
