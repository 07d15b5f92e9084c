#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check a host before and after a shutdown by the monitor of a UPS."""

from __future__ import annotations

DOCUMENTATION = r"""
module: shutdown_rehearsal
short_description: Check a host before and after a shutdown by the monitor of a UPS
version_added: 1.0.0
description:
  - Private. Only roles and playbooks of this collection call it. Options and results can change in each release.
  - V(planned) checks that a rehearsal would show something, and returns what V(read) needs. V(read) reads the journal of
    the boot that ended, and of this one. Whether the monitor shut the host down, in which order, how long each engine took,
    and whether anything had to be recovered.
  - Both only read. The shutdown itself is started by the playbook C(test_shutdown).
extends_documentation_fragment:
  - durable.dbhost.attributes
options:
  state:
    description: V(planned) before the shutdown, V(read) after the next boot.
    type: str
    choices: [planned, read]
    required: true
  engines:
    description:
      - The engines of this host, RV(durable.dbhost.engine_facts#module:ansible_facts.durable_engines.engines). For V(planned).
    type: list
    elements: dict
    default: []
  unattributed:
    description:
      - Processes that belong to no engine that was found,
        RV(durable.dbhost.engine_facts#module:ansible_facts.durable_engines.unattributed). There may be none. For V(planned).
    type: list
    elements: dict
    default: []
  begun_by:
    description:
      - V(monitor) where the monitor's own forced shutdown begins it, V(hand) if a person pulls the plug of the UPS, which
        is the only way for apcupsd. For V(planned).
    type: str
    choices: [monitor, hand]
    default: monitor
  job:
    description: What V(planned) has returned. For V(read).
    type: str
  by:
    description: Who attests the rehearsal; without it no attestation is written. For V(read).
    type: str
    default: ''
  today:
    description: The date of the attestation, as V(2026-01-31). For V(read).
    type: str
    default: ''
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Look before
  durable.dbhost.shutdown_rehearsal:
    state: planned
    engines: "{{ engines.ansible_facts.durable_engines.engines }}"
  register: planned

- name: Look after
  durable.dbhost.shutdown_rehearsal:
    state: read
    job: "{{ planned.job }}"
    by: storage team, ticket STO-1204
    today: "2026-01-31"
"""

RETURN = r"""
job:
  description: What the rehearsal is of, as text.
  returned: for V(planned)
  type: str
notice:
  description: What the person who starts it must know.
  returned: for V(planned)
  type: str
monitor:
  description: V(nut) or V(apcupsd).
  returned: for V(planned)
  type: str
verdict:
  description:
    - V(kept) if every condition was met, V(not_kept), or V(unknown) if the journal does not show how an engine stopped.
  returned: for V(read)
  type: str
why:
  description: The reasons.
  returned: for V(read)
  type: str
rehearsal:
  description:
    - Each step with its times in seconds since the monitor spoke and what was wrong with it, the file systems that were not
      unmounted, and the engines that had to recover and that are up again.
  returned: for V(read)
  type: dict
table:
  description: The same as text.
  returned: for V(read)
  type: str
attestation:
  description: The YAML of the attestation, empty unless the verdict is V(kept) and O(by) is set.
  returned: for V(read)
  type: str
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.durable.dbhost.plugins.module_utils.host.reply import fail, finish
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.ups import rehearsal, rehearsal_host

SPEC = {
    "state": {"type": "str", "required": True, "choices": ["planned", "read"]},
    "engines": {"type": "list", "elements": "dict", "default": []},
    "unattributed": {"type": "list", "elements": "dict", "default": []},
    "begun_by": {"type": "str", "default": "monitor", "choices": ["monitor", "hand"]},
    "job": {"type": "str"},
    "by": {"type": "str", "default": ""},
    "today": {"type": "str", "default": ""},
}


def planned(host: Host, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the job, and what to tell beforehand."""
    names = ", ".join(sorted({str(row.get("name")) for row in given["unattributed"]}))
    if names:
        raise rehearsal_host.Refused(
            f"engines: observed processes that belong to none that was found ({names}), expected only known servers; name"
            " them in durable_databases"
        )
    job = rehearsal_host.plan(host, given["engines"], given["begun_by"])
    return {"job": rehearsal.dumps(job), "notice": rehearsal_host.notice(host, job), "monitor": job.monitor}


def read(host: Host, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what was shown."""
    job = rehearsal.loads(given["job"])
    observed = rehearsal_host.read(host, job)
    text = ""
    if observed.verdict == rehearsal.KEPT and given["by"]:
        text = rehearsal.attestation(job, observed, given["by"], given["today"])
    return {
        "verdict": observed.verdict,
        "why": observed.why,
        "rehearsal": observed.as_dict(),
        "table": rehearsal.table(observed),
        "attestation": text,
    }


STATES = {"planned": planned, "read": read}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec=SPEC, supports_check_mode=True, required_if=[("state", "read", ["job"])]
    )
    try:
        result = STATES[module.params["state"]](Host(), module.params)
    except (Unobservable, ValueError) as error:
        fail(module, error)
    finish(module, **result)


if __name__ == "__main__":
    main()
