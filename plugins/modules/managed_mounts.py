#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the managed_mounts action, which runs on the controller and asks the host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: managed_mounts
short_description: Say which mounts of a host are managed
version_added: 0.1.0
description:
  - The same choice as M(durable.dbhost.assess) makes, from the inventory's words and from what the engines have open.
  - Reads the inventory's variables itself, and collects the host's facts in one execution. Fails where nothing is managed.
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
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Choose the mounts
  durable.dbhost.managed_mounts:
  register: managed
"""

RETURN = r"""
mounts:
  description: The mount points.
  returned: always
  type: list
  elements: str
profile:
  description: The settings of the pinned profile with the host's overrides; null without one.
  returned: always
  type: dict
"""
