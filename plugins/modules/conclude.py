#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the conclude action, which runs on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: conclude
short_description: Make one report of a host's run
version_added: 0.1.0
description:
  - The last assessment of a host, with what the run began with, what was done and what failed.
  - Runs on the controller and connects to no host. In check mode everything was only looked at.
extends_documentation_fragment:
  - durable.dbhost.attributes
  - durable.dbhost.attributes.action
options:
  looks:
    description: The results of M(durable.dbhost.assess), the first one first. Those of tasks that were skipped are left out.
    type: list
    elements: dict
    required: true
  applied:
    description: The result of M(durable.dbhost.apply), also where it was skipped.
    type: dict
    default: {}
  rebooted:
    description: The result of M(ansible.builtin.reboot), also where it was skipped.
    type: dict
    default: {}
  looked_only:
    description: Whether nothing was to be changed.
    type: bool
    default: false
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Conclude
  durable.dbhost.conclude:
    looks: "{{ [before] }}"
    looked_only: true
  register: concluded
"""

RETURN = r"""
report:
  description:
    - The assessment, with C(was), C(plan), C(changes), C(files) and C(exposed) of the first one, C(begun) and C(error);
      C(undone), whether the dead man's switch of this run has put the host back.
    - C(time) and C(collection) say when and by which version it was made.
  returned: always
  type: dict
failure:
  description: The line with which the host fails, or null where it does not.
  returned: always
  type: str
"""
