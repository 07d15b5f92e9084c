#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the conclude action, which runs on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: conclude
short_description: Make one report of each host's run
version_added: 1.0.0
description:
  - Private. Only roles and playbooks of this collection call it. Options and results can change in each release.
  - The last assessment of a host, with what the run began with, what was done and what failed.
  - Runs on the controller, once for a batch of hosts, and connects to none. In check mode the hosts were only read.
extends_documentation_fragment:
  - durable.dbhost.attributes
options:
  hosts:
    description:
      - The hosts of the batch. Of each is read what role C(harden) has registered, as far as there is
        something - C(harden_before), C(harden_after) and C(harden_last), results of M(durable.dbhost.assess);
        C(harden_applied), that of M(durable.dbhost.apply); C(harden_rebooted), that of M(ansible.builtin.reboot).
    type: list
    elements: str
    required: true
  removed:
    description:
      - Hosts of the play for which the run has failed already, or that it has lost. One of them without a report is C(unknown).
    type: list
    elements: str
    default: []
  since:
    description:
      - What was registered before it is of an earlier play, and left aside. In nanoseconds of the controller's own clock, as
        M(durable.dbhost.play_inputs), M(durable.dbhost.assess) and M(durable.dbhost.apply) return it.
    type: int
    required: true
  looked_only:
    description: Whether nothing may be changed.
    type: bool
    default: false
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Conclude
  durable.dbhost.conclude:
    hosts: "{{ ansible_play_batch }}"
    removed: "{{ ansible_play_hosts_all | difference(ansible_play_hosts) }}"
    since: "{{ harden_concluded.clock }}"
  run_once: true
  register: harden_concluded
"""

RETURN = r"""
reports:
  description:
    - For each host in JSON the assessment, with C(was), C(plan), C(changes), C(files) and C(exposed) of the first one,
      C(begun) and C(error); C(undone), whether the rollback timer of this run has put the host back.
    - C(time) and C(collection) say when and by which version it was made.
  returned: always
  type: dict
failures:
  description: For each host that fails the line with which it does.
  returned: always
  type: dict
"""
