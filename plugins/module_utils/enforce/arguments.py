# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The arguments of a layer's module, or of a step of a plan, as Ansible's argument specs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Arguments:
    """The arguments of a layer.

    `target`: the spec of one of its targets, None for what concerns the whole host alone; `shared`: that of options for
    all of them, which its plan and its plan_release take; `permissions`: options that its plan alone takes, each whether it
    may do what it would not do alone; `apart`: whether a target can be changed without the others, and not if all of them
    are parts of one configuration.
    """

    target: Mapping[str, Any] | None
    shared: Mapping[str, Any] = field(default_factory=dict)
    permissions: tuple[str, ...] = ()
    apart: bool = True

    @property
    def spec(self) -> dict[str, Any]:
        """The whole spec."""
        targets: dict[str, Any] = {"type": "list", "elements": "dict", "default": [], "options": self.target}
        return {
            **({} if self.target is None else {"targets": targets}),
            "state": {"type": "str", "default": "present", "choices": ["present", "released"]},
            **{name: {"type": "bool", "default": False} for name in self.permissions},
            **self.shared,
        }
