# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables of the inventory, as the actions read them, with their defaults. docs/variables.md describes them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.module_utils.common.yaml import yaml_load

from ..module_utils.host.secret_words import can_hold_secret
from ..module_utils.policy.expect.inputs import (
    TIME_LIMIT,
    UNDO_AFTER,
    Inputs,
    time_limit_is_valid,
)
from ..module_utils.profiles import CORRECT, Refusal, as_list, near
from ..module_utils.rows import FAIL_ON
from .output import refused

#: Where reports are written, from where the command was started.
REPORT_DIR = "durable-report"
#: What is written there: one file a host, and of all hosts text, a page for browsers, JUnit and SARIF.
FORMATS = ("json", "text", "html", "junit", "sarif")
REPORT_FORMATS = FORMATS[:3]
_COLLECTION = Path(__file__).parents[2]
_SHIPPED = _COLLECTION / "playbooks/vars/profiles.yml"
_ATTESTATIONS = ("durable_attestations", "durable_attestations_group", "durable_attestations_host")


class Unreadable(Exception):
    """A variable that Ansible cannot read: its name, the message of Ansible, and the fix."""


class Variables:
    """The durable_* variables of one host; `templar` and `task_vars` are an action's."""

    def __init__(self, templar: Any, task_vars: Mapping[str, Any]) -> None:
        self._templar = templar
        self._raw = task_vars

    @property
    def host(self) -> str:
        """Return what the inventory calls the host."""
        return str(self._raw.get("inventory_hostname", ""))

    def get(self, name: str, default: Any = None) -> Any:
        """Return a variable's value; the default if it is missing or null. Raises Unreadable."""
        if name not in self._raw:
            return default
        try:
            value = _decrypted(self._templar.template(self._raw[name]))
        except AnsibleError as error:
            raise Unreadable(_unread(name, error)) from error
        return default if value is None else value

    def inputs(self, rate: bool = False) -> Inputs:
        """Return the variables of the host; one that Ansible cannot read has its default, and is in `unreadable`."""
        unreadable: dict[str, str] = {}

        def get(name: str, default: Any = None) -> Any:
            try:
                return self.get(name, default)
            except Unreadable as error:
                unreadable[name] = error.args[0]
                return default

        own = get("durable_profiles", {})
        # One that is there and empty is a slip, and no host that nobody has pinned.
        profile = get("durable_profile", "") if "durable_profile" in self._raw else None
        mount_profiles = get("durable_mount_profiles", {})
        if "durable_profiles" in unreadable:
            # They can name a profile of it.
            mount_profiles = {}
        if not unreadable.keys().isdisjoint(("durable_profile", "durable_profiles")):
            profile = None
        return Inputs(
            profile=profile,
            shipped=shipped(),
            own=own,
            overrides=get("durable_overrides", {}),
            attestations={name: get(name, []) for name in _ATTESTATIONS},
            mounts=get("durable_mounts"),
            databases=get("durable_databases"),
            mount_profiles=mount_profiles,
            ignore=get("durable_ignore", []),
            accept=get("durable_accept", []),
            allow=get("durable_allow", []),
            layers=get("durable_layers"),
            accept_data_loss=get("durable_accept_data_loss", False),
            undo_after=get("durable_undo_after", UNDO_AFTER),
            time_limit=get("durable_time_limit", TIME_LIMIT),
            fail_on=get("durable_fail_on", FAIL_ON),
            ups=_without_password(get("durable_ups", {})),
            rate=rate,
            names=[str(name) for name in self._raw],
            unreadable=tuple(unreadable.items()),
        )

    def undo_after(self) -> Any:
        """Return `durable_undo_after` as it is written. Raises Unreadable."""
        return self.get("durable_undo_after", UNDO_AFTER)

    def time_limit(self) -> int:
        """Return `durable_time_limit`; the default if it is invalid, which the assessment refuses."""
        with contextlib.suppress(Unreadable):
            found = self.get("durable_time_limit", TIME_LIMIT)
            return int(found) if time_limit_is_valid(found) else TIME_LIMIT
        return TIME_LIMIT

    def options(self, layer: str, names: Iterable[str]) -> dict[str, Any]:
        """Return the options of a layer's module that the role's variables give. Raises Unreadable."""
        given = {name: self.get(f"{layer}_{name}") for name in names}
        return {name: value for name, value in given.items() if value is not None}

    def secrets(self, layer: str, names: Iterable[str]) -> dict[str, Any]:
        """Return the secret options of a layer's module, which only its step is given. Raises Unreadable."""
        if layer != "power":
            return self.options(layer, names)
        # That of the UPS's monitor stands where its user does, and a command that can hold one is in no step.
        given = self.get("durable_ups")
        ups = given if isinstance(given, Mapping) else {}
        monitor, command = ups.get("monitor"), str(ups.get("shutdown_command") or "")
        password = str(monitor.get("password") or "") if isinstance(monitor, Mapping) else ""
        return {"password": password, **({"shutdown_command": command} if can_hold_secret(command) else {})}

    def report_dir(self) -> str:
        """Return where reports are written, '' for nowhere. Raises AnsibleActionFail."""
        try:
            found = self.get("durable_report_dir", REPORT_DIR)
        except Unreadable as error:
            raise refused(error) from error
        for message in _dir_errors(found):
            raise refused(message)
        return str(found)

    def report_formats(self) -> list[str]:
        """Return which files are written. Raises AnsibleActionFail."""
        try:
            found = self.get("durable_report_formats", REPORT_FORMATS)
        except Unreadable as error:
            raise refused(error) from error
        for message in _formats_errors(found):
            raise refused(message)
        return list(found)

    def report_errors(self) -> Iterator[str]:
        """Yield what is wrong with the variables of the reports. One that Ansible cannot read here is left out."""
        for name, default, errors in (
            ("durable_report_dir", REPORT_DIR, _dir_errors),
            ("durable_report_formats", REPORT_FORMATS, _formats_errors),
        ):
            with contextlib.suppress(Unreadable):
                found = self.get(name, default)
                # Before ansible-core 2.19 hostvars returns a template with an undefined variable as text.
                if not (isinstance(found, str) and "{{" in found):
                    yield from errors(found)


def _without_password(found: Any) -> Any:
    """Return `durable_ups` with True for the password. A value that is no mapping can be the password."""
    if not isinstance(found, Mapping):
        return _emptied(found)
    if "monitor" not in found:
        return dict(found)
    monitor = found["monitor"]
    if not isinstance(monitor, Mapping):
        return {**found, "monitor": _emptied(monitor)}
    shown = {name: value for name, value in monitor.items() if name != "password"}
    return {**found, "monitor": {**shown, "password": True} if monitor.get("password") else shown}


def _unread(name: str, error: AnsibleError) -> Refusal:
    """Return the error of a variable that Ansible cannot read."""
    text = " ".join(str(error).split())
    first, _dot, rest = text.partition(". ")
    # ansible-core 2.16 reports an undefined name twice.
    text = first if first == rest else text
    is_vault = "decrypt" in text
    fix = "give its vault password with --vault-password-file or --ask-vault-pass" if is_vault else CORRECT
    return Refusal(f"{name}: {text.rstrip('.')}", fix)


def _emptied(value: Any) -> Any:
    """Return a value of the same kind without its content."""
    if isinstance(value, (bool, int, float)):
        return type(value)()
    return [] if isinstance(value, (list, tuple)) else ""


def _dir_errors(found: Any) -> Iterator[str]:
    if not isinstance(found, str):
        yield Refusal(
            f"durable_report_dir: observed {found!r}; expected a path as text, or '' for no files",
            "write the path in quotes, for example durable_report_dir: '/var/lib/durable-report'",
        )


def _formats_errors(found: Any) -> Iterator[str]:
    given = found if isinstance(found, (list, tuple)) else [found]
    unknown = [name for name in given if name not in FORMATS]
    if unknown or given is not found:
        name = "durable_report_formats"
        question = near(unknown[0], FORMATS) if unknown else ""
        problem = f"{name}: observed {found!r}; expected a list of {', '.join(FORMATS)}"
        yield Refusal(problem, as_list(name, found), question)


def _decrypted(value: Any) -> Any:
    """Return a value with each text of a vault in it as text; ansible-core 2.19 and later return no other."""
    if getattr(value, "__ENCRYPTED__", False):
        return str(value)
    if isinstance(value, dict):
        return {key: _decrypted(inner) for key, inner in value.items()}
    return [_decrypted(inner) for inner in value] if isinstance(value, list) else value


@functools.lru_cache(maxsize=1)
def shipped() -> dict[str, Any]:
    """Return the profiles of this collection."""
    (profiles,) = yaml_load(_SHIPPED.read_text(encoding="utf-8")).values()
    return dict(profiles)


@functools.lru_cache(maxsize=1)
def collection_version() -> str:
    """Return the version of this collection: as it was installed, or of the checkout."""
    installed, checkout = _COLLECTION / "MANIFEST.json", _COLLECTION / "galaxy.yml"
    if installed.exists():
        return str(yaml_load(installed.read_text(encoding="utf-8"))["collection_info"]["version"])
    return str(yaml_load(checkout.read_text(encoding="utf-8"))["version"])
