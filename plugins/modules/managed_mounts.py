#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the managed_mounts action, which runs on the controller and asks the host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: managed_mounts
short_description: List the managed mounts of a host
version_added: 1.0.0
description:
  - Private. Only roles and playbooks of this collection call it. Options and results can change in each release.
  - The same choice as M(durable.dbhost.assess) makes, from the inventory's variables and from what the engines have open.
  - Reads the inventory's variables itself, and collects the host's facts in one execution. Fails if nothing is managed.
extends_documentation_fragment:
  - durable.dbhost.attributes
  - durable.dbhost.attributes.action
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
lasting:
  description: Those whose profile guarantees durable commits; all if none does.
  returned: always
  type: list
  elements: str
known:
  description: The settings of all profiles that are known for this host, by name.
  returned: always
  type: dict
profiles:
  description: By mount point the settings of its profile, with its overrides; empty without a pinned one.
  returned: always
  type: dict
"""
