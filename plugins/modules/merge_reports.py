#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the merge_reports action, which runs on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: merge_reports
short_description: Merge the reports of several runs into one page and one result
version_added: 1.0.0
description:
  - Reads the JSON reports that M(durable.dbhost.report) has written in several runs, such as slices of a job or hosts that
    pull, and shows and writes the page of them all. Runs in the controller's process, once; connects to no host.
  - The newest report of a host counts.
  - A file that is no report of this schema, a host without a report, and one whose newest report is too old or of a time
    to come are V(unknown), and fail.
extends_documentation_fragment:
  - durable.dbhost.attributes
options:
  directories:
    description:
      - Where reports lie. Each file below that ends with C(.json) must be one; what M(durable.dbhost.keep_report) has
        written there of a measurement is passed over.
    type: list
    elements: path
    required: true
  hosts:
    description: Hosts of which there must be a report; C(localhost) is not one of them.
    type: list
    elements: str
  max_hours:
    description: The age of a report that still counts.
    type: float
    default: 48
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Merge
  durable.dbhost.merge_reports:
    directories: [/var/lib/durable-report]
    hosts: "{{ ansible_play_hosts_all }}"
  run_once: true
"""

RETURN = r"""
failing:
  description: The hosts that fail, worst first.
  returned: always
  type: list
  elements: str
failure:
  description: The line with which the run must fail, none if no host fails.
  returned: always
  type: str
page:
  description: The lines that are shown.
  returned: always
  type: list
  elements: str
verdicts:
  description: Each host's verdict, worst first.
  returned: always
  type: dict
"""
