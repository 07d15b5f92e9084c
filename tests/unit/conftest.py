# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make `ansible_collections.durable.dbhost` mean this checkout, whatever its directory's name.

ansible-test brings a loader of its own and is left alone. Plain pytest gets packages that have
no files and only a path: it works without ansible-core, and on the Python of old hosts.
"""

from __future__ import annotations

import importlib.util
import signal
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def find_collection() -> None:
    """Register the three levels of the collection's package, unless a loader knows them."""
    try:
        known = importlib.util.find_spec("ansible_collections.durable.dbhost")
    except ModuleNotFoundError:
        known = None
    if known:
        return
    name = ""
    for level, path in (("ansible_collections", []), ("durable", []), ("dbhost", [str(ROOT)])):
        name = f"{name}.{level}".lstrip(".")
        package = ModuleType(name)
        package.__path__ = path
        sys.modules[name] = package


find_collection()
# A shell that runs in the background leaves it ignored, and what tests start could not be told to end.
signal.signal(signal.SIGINT, signal.default_int_handler)
