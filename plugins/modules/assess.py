#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the assess action, which runs on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: assess
short_description: Hold a host's facts against its safety profile
version_added: 0.1.0
description:
  - Pure policy, run on the controller. It connects to no host and changes nothing.
  - A host is never lost. Bad input is the verdict V(blocked) with the message, and a plan that is empty.
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
  profile:
    description: The pinned profile's name; without one the host is only rated.
    type: str
  shipped:
    description: The profiles of this collection.
    type: dict
    required: true
  profiles:
    description: The user's own profiles.
    type: dict
    default: {}
  overrides:
    description: Single settings of this host.
    type: dict
    default: {}
  attestations:
    description: What people vouch for. For each variable's name, which messages use, its list.
    type: dict
    default: {}
  mounts:
    description: Mount points to manage.
    type: raw
  databases:
    description: Databases whose paths name the mounts to manage.
    type: raw
  allow:
    description: Permissions given for this host.
    type: list
    elements: raw
    default: []
  accept_data_loss:
    description: Whether losing commits is accepted.
    type: raw
    default: false
  fail_on:
    description: Verdicts that fail the host.
    type: raw
    default: [at_risk, blocked, unreachable, unknown, drifted, pending]
  rate:
    description: Whether to rate the host against every profile too.
    type: bool
    default: false
  storage:
    description: The registered result of M(durable.dbhost.storage_facts), also when that failed.
    type: dict
    default: {}
  engines:
    description:
      - The registered result of M(durable.dbhost.engine_facts), also when that failed.
      - Without it no engine is judged, and no mount is found by what engines have open.
    type: dict
  power:
    description:
      - The registered result of M(durable.dbhost.power_facts), also when that failed or was skipped.
      - Without it no UPS is known, and a profile that rests on one is blocked.
    type: dict
  ups:
    description: As C(durable_ups), without the password of its monitor.
    type: raw
  failure:
    description:
      - The result of a task before this one that failed. Its cause is told in one line.
      - The verdict is V(blocked) where the host's variables are at fault, else V(unknown).
    type: dict
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Ask the disks
  durable.dbhost.storage_facts:
  register: storage

- name: What would strict take
  durable.dbhost.assess:
    profile: strict
    shipped: "{{ durable_shipped_profiles }}"
    mounts: [/srv/pgdata]
    storage: "{{ storage }}"
"""

RETURN = r"""
assessment:
  description: Verdict, reasons, settings, requirements, pending changes and plan.
  returned: always
  type: dict
  contains:
    verdict:
      description: The worst thing that is true of the host.
      type: str
      returned: always
    fails:
      description: Whether the verdict is one that fails the host.
      type: bool
      returned: always
    why:
      description: The reasons, in plain words.
      type: list
      elements: str
      returned: always
    profile:
      description: The pinned profile's name, or null.
      type: str
      returned: always
    settings:
      description: One row for each setting of each target.
      type: list
      elements: dict
      returned: always
    requirements:
      description: What must be true besides.
      type: list
      elements: dict
      returned: always
    pending:
      description: Settings that wait for a reboot.
      type: list
      elements: dict
      returned: always
    steps:
      description: The order in which a plan is carried out, as pairs of phase and layer.
      type: list
      elements: list
      returned: always
    plan:
      description: For each phase (C(believe), C(tighten), C(loosen)) the layers and their targets.
      type: dict
      returned: always
    changes:
      description: What the plan changes, one entry a setting.
      type: list
      elements: dict
      returned: always
    files:
      description: Files on the host that the plan changes.
      type: list
      elements: str
      returned: always
    attestations:
      description: All that stand for this host.
      type: list
      elements: dict
      returned: always
    ratings:
      description: For each profile what it would take; empty unless O(rate) is set or no profile is pinned.
      type: dict
      returned: always
    warnings:
      description: What is right as far as settings go, and should be known.
      type: list
      elements: str
      returned: always
    exposed:
      description: Engines whose settings, disks or mounts lose commits, and the check of each for damage.
      type: list
      elements: str
      returned: always
    engines:
      description: Each database engine, and which files it has on which disks, opened how.
      type: list
      elements: dict
      returned: always
    power:
      description: UPSes, conditions, budgets with their sums in words, and the guard; null where nobody asked for them.
      type: dict
      returned: always
    licence:
      description: What the guard is to be allowed, or null. For M(durable.dbhost.power_guard).
      type: dict
      returned: always
    schema:
      description: Version of this format.
      type: int
      returned: always
"""
