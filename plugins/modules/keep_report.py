#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the keep_report action, which runs on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: keep_report
short_description: Show the result of a measurement, and store it on the controller
version_added: 1.0.0
description:
  - Private. Only roles and playbooks of this collection call it. Options and results can change in each release.
  - Runs on the controller and connects to no host. In check mode too it writes its files, as M(durable.dbhost.report) does.
extends_documentation_fragment:
  - durable.dbhost.attributes
  - durable.dbhost.attributes.action
options:
  name:
    description: What was measured; the files are C(<name>-<host>.<suffix>).
    type: str
    required: true
  show:
    description: The text for the terminal.
    type: str
    required: true
  files:
    description:
      - The text of each file by its suffix, written to C(durable_report_dir) unless that is empty.
      - One of an earlier run that is empty now is removed.
    type: dict
    required: true
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Show and store the result
  durable.dbhost.keep_report:
    name: prove-fua
    show: "{{ proof.table }}"
    files:
      json: "{{ proof.rows | to_nice_json }}"
"""

RETURN = r"""
paths:
  description: The files that were written.
  returned: always
  type: list
  elements: str
"""
