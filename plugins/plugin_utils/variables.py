# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables of the inventory, as the actions read them: each in one place, with its default. docs/variables.md."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from ansible.errors import AnsibleError

from ..module_utils.policy.assessment import FAIL_ON, Inputs
from .output import refused

#: Where reports are written, from where the command was started.
REPORT_DIR = "durable-report"
_SHIPPED = Path(__file__).parents[2] / "playbooks/vars/profiles.yml"
_ATTESTATIONS = ("durable_attestations", "durable_attestations_group", "durable_attestations_host")


class Unreadable(Exception):
    """A variable that Ansible cannot read: its name, and what Ansible says."""


class Variables:
    """The durable_* variables of one host; `templar` and `task_vars` are an action's."""

    def __init__(self, templar: Any, task_vars: Mapping[str, Any]) -> None:
        self._templar = templar
        self._raw = task_vars

    def get(self, name: str, default: Any = None) -> Any:
        """Return a variable's value; the default where it is not there or null. Raises Unreadable."""
        if name not in self._raw:
            return default
        try:
            value = self._templar.template(self._raw[name])
        except AnsibleError as error:
            raise Unreadable(f"{name}: {error}") from error
        return default if value is None else value

    def inputs(self, rate: bool = False) -> Inputs:
        """Return what the inventory says of the host. Raises Unreadable."""
        return Inputs(
            # One that is there and empty is a slip, and no host that nobody has pinned.
            profile=self.get("durable_profile", "") if "durable_profile" in self._raw else None,
            shipped=shipped(),
            own=self.get("durable_profiles", {}),
            overrides=self.get("durable_overrides", {}),
            attestations={name: self.get(name, []) for name in _ATTESTATIONS},
            mounts=self.get("durable_mounts"),
            databases=self.get("durable_databases"),
            allow=self.get("durable_allow", []),
            layers=self.get("durable_layers"),
            accept_data_loss=self.get("durable_accept_data_loss", False),
            fail_on=self.get("durable_fail_on", FAIL_ON),
            ups=self._ups(),
            rate=rate,
            names=[str(name) for name in self._raw],
        )

    def options(self, layer: str, names: Iterable[str]) -> dict[str, Any]:
        """Return the options of a layer's module that the role's variables give. Raises Unreadable."""
        given = {name: self.get(f"{layer}_{name}") for name in names}
        return {name: value for name, value in given.items() if value is not None}

    def ups_password(self) -> str:
        """Return the password of the UPS's monitor, which only the step that writes it is given. Raises Unreadable."""
        found = self.get("durable_ups")
        monitor = found.get("monitor") if isinstance(found, Mapping) else None
        return str(monitor.get("password") or "") if isinstance(monitor, Mapping) else ""

    def report_dir(self) -> str:
        """Return where reports are written, '' for nowhere. Raises AnsibleActionFail."""
        try:
            return str(self.get("durable_report_dir", REPORT_DIR))
        except Unreadable as error:
            raise refused(error) from error

    def _ups(self) -> Any:
        """Return `durable_ups` without the password. What should be a mapping and is none may be one."""
        found = self.get("durable_ups", {})
        if not isinstance(found, Mapping):
            return "no mapping"
        if "monitor" not in found:
            return dict(found)
        monitor = found["monitor"]
        kept = (
            {name: value for name, value in monitor.items() if name != "password"}
            if isinstance(monitor, Mapping)
            else "no mapping"
        )
        return {**found, "monitor": kept}


@functools.lru_cache(maxsize=1)
def shipped() -> dict[str, Any]:
    """Return the profiles of this collection."""
    (profiles,) = yaml.safe_load(_SHIPPED.read_text(encoding="utf-8")).values()
    return dict(profiles)
