#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the play_inputs action, which runs on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: play_inputs
short_description: Refuse variables of a play that have no effect
version_added: 1.0.0
description:
  - Private. Only roles and playbooks of this collection call it. Options and results can change in each release.
  - Ansible reads C(hosts) and C(serial) of a play before any variable of the inventory. Set there, C(durable_hosts) and
    C(durable_serial) would be ignored silently, and a run would reach more hosts at once than intended.
  - Runs on the controller and connects to no host.
extends_documentation_fragment:
  - durable.dbhost.attributes
options:
  pinned:
    description: Whether one of them at least has to have a C(durable_profile).
    type: bool
    default: false
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Refuse play inputs in the inventory
  durable.dbhost.play_inputs:
  run_once: true
  register: harden_concluded
"""

RETURN = r"""
clock:
  description: When it was made, in nanoseconds of the controller's own clock, for O(durable.dbhost.conclude#module:since).
  returned: always
  type: int
"""
