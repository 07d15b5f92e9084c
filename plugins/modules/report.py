#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the report action, which runs on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: report
short_description: Show the page of a run, and write its files on the controller
version_added: 1.0.0
description:
  - Private. Only roles and playbooks of this collection call it. Options and results can change in each release.
  - Runs in the controller's process, once for a batch of hosts; connects to no host.
  - Shows which hosts are not right, why, and what to do, on one screen; nothing where the stdout callback is one for
    programs, as C(json).
  - Writes one JSON file for each host, which says what has changed since its last one, and files of all hosts.
extends_documentation_fragment:
  - durable.dbhost.attributes
options:
  hosts:
    description:
      - The hosts of the play. Reported is each that has a report in its C(harden_concluded), the result of
        M(durable.dbhost.conclude).
    type: list
    elements: str
    required: true
  release:
    description:
      - Show the page of a release instead, from the results of the tasks of durable.dbhost.release_db, without files.
    type: bool
    default: false
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Report
  durable.dbhost.report:
    hosts: "{{ ansible_play_hosts_all }}"
  run_once: true
"""

RETURN = r"""
missing:
  description: Hosts of the play without a report, of a later batch or given up.
  returned: without O(release)
  type: list
  elements: str
page:
  description: The lines that are shown.
  returned: always
  type: list
  elements: str
verdicts:
  description: Each host's verdict, worst first.
  returned: without O(release)
  type: dict
"""
