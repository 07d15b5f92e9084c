#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the apply action, which runs the layers' modules on the host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: apply
short_description: Carry out the steps of a plan, the safest first
version_added: 0.1.0
description:
  - Runs the module of each step, one execution for each, in the order of the plan.
  - After a step that failed those that make something safer are still done, and none that makes something less strict.
  - It does not fail by itself. What failed is in RV(error), and the host is to be looked at again.
  - The password of a UPS's monitor is read from C(durable_ups) for the step that writes it, and is in no argument.
extends_documentation_fragment:
  - durable.dbhost.attributes
  - action_common_attributes.flow
attributes:
  action:
    support: full
  async:
    support: none
  bypass_host_loop:
    support: none
options:
  steps:
    description: The steps, as M(durable.dbhost.assess) returns them.
    type: list
    elements: dict
    required: true
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Collect facts and assess
  durable.dbhost.assess:
  register: before

- name: Apply the plan, the safest step first
  durable.dbhost.apply:
    steps: "{{ before.assessment.steps }}"
  register: applied
"""

RETURN = r"""
begun:
  description: The phase and layer of each step that was begun.
  returned: always
  type: list
  elements: list
error:
  description: What failed, in one line, or null.
  returned: always
  type: str
"""
