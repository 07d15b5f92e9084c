# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The classes of facts, for annotations in code that runs on hosts. Type checkers read classes.pyi, which has all of them.

A host gets no class, no check and no documentation: there each class is a plain dict, as its values are.
"""

from __future__ import annotations


def __getattr__(name: str) -> type:
    """Return the value that a class has at run time."""
    if name.startswith("_"):
        raise AttributeError(name)
    return dict
