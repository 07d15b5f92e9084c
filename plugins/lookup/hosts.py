# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pattern of a play's hosts, refused where it matches none."""

from __future__ import annotations

DOCUMENTATION = r"""
name: hosts
short_description: A pattern of hosts that matches at least one
version_added: 1.0.0
requirements:
  - Python 3.11 or later
author:
  - durable.dbhost contributors (@durable-db)
description:
  - Returns the given pattern, for C(hosts) of a play.
  - Fails if no host of the inventory matches, or none of those that C(--limit) leaves. Ansible itself only warns and
    ends with exit code 0, so a check of no host would pass.
  - Fails for C(--tags), and for C(--skip-tags) that would leave out steps. The steps depend on
    their order. A part of them could end with success and change nothing, and a task that checks this could be left out.
  - Fails for a C(durable_serial) that is neither a number of hosts nor a share of them. Ansible reads 0 as all hosts at once,
    and ends with a traceback for a text.
  - Fails for a C(durable_hosts) or C(durable_serial) with an undefined variable. The play would run on all hosts at once.
  - If nothing runs (C(--syntax-check), C(--list-hosts), C(--list-tasks), C(--list-tags)) no host is needed.
options:
  _terms:
    description: One pattern.
    type: raw
    required: true
"""

EXAMPLES = r"""
- name: Check the database hosts
  hosts: "{{ lookup('durable.dbhost.hosts', durable_hosts | default('all')) }}"
"""

RETURN = r"""
_raw:
  description: The given pattern.
  type: list
  elements: raw
"""

import itertools
import re
from typing import Any

from ansible import context
from ansible.errors import AnsibleError, AnsibleLookupError, AnsibleUndefinedVariable
from ansible.inventory.manager import InventoryManager
from ansible.plugins.lookup import LookupBase

from ansible_collections.durable.dbhost.plugins.module_utils.profiles import ALSO, near

#: Words of --skip-tags that leave out steps of a play whose tag is `always`.
_SKIP_STEPS = ("all", "always", "tagged", "untagged")
#: How many hosts a batch has: a number, or a share.
_BATCH = re.compile(r"[1-9][0-9]*|(100|[1-9][0-9]?)%")
#: Options of ansible-playbook with which it runs nothing, and needs no host.
_RUNS_NOTHING = ("syntax", "listhosts", "listtags", "listtasks")


class LookupModule(LookupBase):
    """The lookup plugin."""

    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        """Return the pattern. Raises AnsibleLookupError, with all errors, if the play must not begin."""
        (pattern,) = terms
        known = variables or {}
        limit = known.get("ansible_limit")
        if any(context.CLIARGS.get(option) for option in _RUNS_NOTHING):
            return [pattern]
        serial, undefined = self._resolved("durable_serial", known.get("durable_serial", "100%"))
        _hosts, unknown = self._resolved("durable_hosts", known.get("durable_hosts"))
        errors = [
            *_of_tags(),
            *(undefined or _of_serial(serial)),
            *(unknown or self._of_hosts(pattern, known, limit)),
        ]
        if errors:
            text = ALSO.join(dict.fromkeys(errors))
            raise AnsibleLookupError(f"{text}{'' if text.endswith('?') else '.'} Nothing was changed.")
        return [pattern]

    def _resolved(self, name: str, given: Any) -> tuple[Any, list[str]]:
        """Return the value of an input of the play, or the error of one with an undefined variable: the play has the default of
        such an input, which is all hosts, or all of them at once."""
        try:
            return self._templar.template(given), []
        except AnsibleUndefinedVariable as error:
            why = str(error).partition(". ")[0]
            return None, [f"{name}: {why}; expected only defined variables in it"]

    def _of_hosts(self, pattern: Any, known: dict[str, Any], limit: str | None) -> list[str]:
        """Return the error of a pattern that matches no host, or of a limit that leaves none."""
        found = self._matching(pattern, known["groups"], None)
        if not found:
            return [_no_host(pattern, known)]
        if not limit or self._matching(pattern, known["groups"], limit):
            return []
        return [
            f"--limit: observed {limit!r}, which leaves none of the hosts of {pattern!r}; expected one of"
            f" {', '.join(found[:5])}{', ...' if len(found) > 5 else ''}"
        ]

    def _matching(self, pattern: Any, groups: dict[str, list[str]], limit: str | None) -> list[str]:
        """Return the names of the hosts of an inventory that match a pattern, and a limit if there is one."""
        inventory = InventoryManager(self._loader, parse=False)
        for group, hosts in groups.items():
            inventory.add_group(group)
            for host in hosts:
                inventory.add_host(host, group=group)
        inventory.subset(limit)
        try:
            return [host.name for host in inventory.get_hosts(pattern)]
        except (AnsibleError, TypeError):
            return []  # As host_pattern_mismatch=error has it, or a mapping.


def _no_host(pattern: Any, variables: dict[str, Any]) -> str:
    """Return the message for a pattern that matches no host; `variables`: those of the play."""
    sources = ", ".join(map(str, variables.get("ansible_inventory_sources") or ()))
    if "durable_hosts" not in variables:
        return f"no host in the inventory; expected hosts in {f'-i {sources}' if sources else 'an inventory (-i)'}"
    names = {*variables["groups"], *itertools.chain.from_iterable(variables["groups"].values())}
    return (
        f"durable_hosts: observed {pattern!r}, which matches no host; expected hosts or groups of the inventory"
        f"{f' {sources}' if sources else ''}. Check its spelling{near(pattern, names)}"
    )


def _of_tags() -> list[str]:
    """Return the error of a part of a run: steps that are left out would be missing from an order that is safe as a whole."""
    only, skipped = (list(context.CLIARGS.get(option) or ()) for option in ("tags", "skip_tags"))
    # Only this step has a tag, so all other tags skip nothing.
    without = [word for word in skipped if word in _SKIP_STEPS]
    options = [f"--tags {','.join(only)}"] if only not in ([], ["all"]) else []
    options += [f"--skip-tags {','.join(without)}"] if without else []
    if not options:
        return []
    return [
        f"observed {' '.join(options)}; expected no --tags and no --skip-tags: a part of the steps could end with"
        " success and change nothing. Choose hosts with --limit"
    ]


def _of_serial(given: Any) -> list[str]:
    """Return the error of each value that is not the number of hosts of a batch."""
    return [
        f"durable_serial: observed {each!r}; expected the number of hosts in a batch: a number from 1 on, a share"
        " from 1% to 100%, or a list of these"
        for each in (given if isinstance(given, list) and given else [given])
        if not _is_batch(each)
    ]


def _is_batch(given: Any) -> bool:
    """Return whether it says how many hosts a batch has."""
    is_plain = isinstance(given, (int, str)) and not isinstance(given, bool)
    return is_plain and bool(_BATCH.fullmatch(str(given).strip()))
