#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the assess action, which queries the host once and assesses on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: assess
short_description: Collect a host's facts and compare them with its safety profile
version_added: 1.0.0
description:
  - Private. Only roles and playbooks of this collection call it. Options and results can change in each release.
  - Runs M(durable.dbhost.host_facts) on the host, which is one execution, and assesses on the controller. Changes nothing,
    except that O(disarm) removes the rollback timer of a run.
  - Reads the variables of the inventory itself, those that begin with C(durable_).
  - Each host has a result. Bad input gives the verdict V(blocked) with the message and an empty plan. A host that cannot be
    reached is V(unreachable).
extends_documentation_fragment:
  - durable.dbhost.attributes
  - durable.dbhost.attributes.action
options:
  rate:
    description: Whether to rate the host against every profile too.
    type: bool
    default: false
  before:
    description: The assessment before anything was changed. In check mode it is returned again, and the host is not queried.
    type: dict
  applied:
    description: The result of M(durable.dbhost.apply), used to decide whether to reboot.
    type: dict
  disarm:
    description:
      - Whether to remove the rollback timer once the facts are collected over a new connection, by M(durable.dbhost.confirm).
      - The timer stays if O(applied) reports none. With O(before), it stays for the collection after a permitted reboot.
    type: bool
    default: false
  failed:
    description: The result of a task that failed in this run, for RV(error).
    type: dict
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Collect facts and assess
  durable.dbhost.assess:
  register: assessed

- name: Show the verdict
  ansible.builtin.debug:
    msg: "{{ (assessed.assessment | from_json).verdict }}"
"""

RETURN = r"""
clock:
  description: Time of this result, in nanoseconds of the controller's own clock, for O(durable.dbhost.conclude#module:since).
  returned: always
  type: int
switch:
  description: The rollback timer as M(durable.dbhost.host_facts) returns it; its state is V(unreported) if the host was not
    queried or did not report it.
  returned: always
  type: dict
looked_at:
  description: Which run was the last on the host when it was collected, for O(durable.dbhost.apply#module:looked_at). Null if
    the host was not queried.
  returned: always
  type: int
steps:
  description: The plan in the order in which it is carried out, for M(durable.dbhost.apply).
  type: list
  elements: dict
  returned: always
  contains:
    phase:
      description: As in RV(assessment.plan).
      type: str
      returned: always
    layer:
      description: As in RV(assessment.plan).
      type: str
      returned: always
    class:
      description: C(performance) if it changes only speed, else C(safety).
      type: str
      returned: always
    arguments:
      description: The options of the layer's module.
      type: dict
      returned: always
assessment:
  description: Verdict, reasons, settings, requirements, pending changes and plan, in JSON.
  returned: always
  type: str
  contains:
    verdict:
      description: The most severe state of the host.
      type: str
      returned: always
    fails:
      description: Whether the verdict fails the host.
      type: bool
      returned: always
    why:
      description: The reasons, as text.
      type: list
      elements: str
      returned: always
    reasons:
      description: The reasons by their parts, worst first.
      type: list
      elements: dict
      returned: always
      contains:
        id:
          description: The stable name of its kind, as V(risk.barrier_off).
          type: str
          returned: always
        verdict:
          description: The verdict that it causes.
          type: str
          returned: always
        reason:
          description: What is wrong.
          type: str
          returned: always
        fix:
          description: What to do; empty where RV(assessment.reasons[].reason) states it.
          type: str
          returned: always
        targets:
          description: The disks, mounts or engines that it concerns.
          type: list
          elements: str
          returned: always
        observed:
          description: The values that RV(assessment.reasons[].reason) and RV(assessment.reasons[].fix) contain, by name.
          type: dict
          returned: always
    accepted:
      description: The findings that an entry of C(durable_accept) accepts, each with its author and last day.
      type: list
      elements: dict
      returned: always
    notes:
      description: The warnings by their parts, as RV(assessment.reasons); the verdict is V(note).
      type: list
      elements: dict
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
      description: The conditions beyond settings, each with its state.
      type: list
      elements: dict
      returned: always
    pending:
      description: Settings that wait for a reboot.
      type: list
      elements: dict
      returned: always
    steps:
      description: As RV(steps).
      type: list
      elements: dict
      returned: always
    plan:
      description: For each phase (C(raise), C(tighten), C(loosen)) the layers and their targets.
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
      description: The attestations that apply to this host.
      type: list
      elements: dict
      returned: always
    ratings:
      description: For each profile its verdict and changes; empty unless O(rate) is set or no profile is pinned.
      type: dict
      returned: always
    recommendation:
      description:
        - The profile that fits the host best as it is; null if nothing was rated or none fits.
        - C(why), what fits C(also), and C(group_vars), the lines that pin it.
      type: dict
      returned: always
    checklist:
      description: Answers to the six questions of FairCom's checklist; null unless O(rate) is set and a mount is managed.
      type: dict
      returned: always
    warnings:
      description: Notes that change no verdict.
      type: list
      elements: str
      returned: always
    exposed:
      description: Engines whose settings, disks or mounts lose commits, and the check of each for damage.
      type: list
      elements: str
      returned: always
    engines:
      description: Each database engine with its files, their disks, and how it opens them.
      type: list
      elements: dict
      returned: always
    mounts:
      description: Each managed mount, and those that hold only temporary files of engines and are not assessed.
      type: list
      elements: dict
      returned: always
    ignored:
      description: The entries of C(durable_ignore) in force.
      type: list
      elements: dict
      returned: always
    stack:
      description: The managed C(mounts) with the layers below each, top first, and the C(disks) below them.
      type: dict
      returned: always
    power:
      description: UPSes, conditions, budgets with their sums as text, and the guard; null if they were not requested.
      type: dict
      returned: always
    lease:
      description: Terms of the guard's lease, or null. For M(durable.dbhost.power_guard).
      type: dict
      returned: always
    schema:
      description: Version of this format.
      type: int
      returned: always
error:
  description: Message of O(failed), in one line, or null.
  returned: always
  type: str
wants_reboot:
  description: Whether a change of this run waits for a reboot, and a reboot is allowed.
  returned: always
  type: bool
"""
