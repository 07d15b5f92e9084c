#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Detect the UPS behind this host, who watches it, and whether it is properly configured."""

from __future__ import annotations

DOCUMENTATION = r"""
module: power_facts
short_description: Detect a UPS and its monitor, and check them for a database without barriers
version_added: 1.0.0
description:
  - Reads the configuration of NUT's upsmon or of apcupsd, and asks each UPS's upsd or apcupsd over the network.
  - Says of each condition of a properly configured UPS whether it is met, unmet or unknown, with evidence and fixes.
  - Reckons how many seconds a flush and a clean stop need, and holds them against what the battery gives.
  - What cannot be read is V(unknown), with its reason; it never counts as safe.
  - A daemon that does not answer costs its time limit of three seconds.
  - Changes nothing and writes nothing on the host. Passwords in the monitor's configuration are never returned.
extends_documentation_fragment:
  - durable.dbhost.attributes
options:
  stop_timeouts:
    description:
      - What must be stopped cleanly before the battery is empty, as M(durable.dbhost.engine_facts) found it.
      - A list of dictionaries with C(engine), C(unit) and C(seconds), which is a number as text, V(infinity) or V(unknown).
      - A unit counts once, however many engines are in it.
    type: list
    elements: dict
    default: []
  margin:
    description:
      - Seconds that are added to both sums, for the last writes and flushes, units that are no engine's, and
        what cannot be foreseen.
    type: int
    default: 60
requirements:
  - Root, to read the monitor's configuration. systemctl.
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Ask the UPS, for a host that runs SQL Server
  durable.dbhost.power_facts:
    stop_timeouts:
      - engine: mssql
        unit: mssql-server.service
        seconds: "1800"

- name: Show which conditions are not met
  ansible.builtin.debug:
    msg: "{{ ansible_facts.durable_power.conditions | rejectattr('state', 'eq', 'met') }}"
"""

RETURN = r"""
ansible_facts:
  description: The facts, under one name.
  returned: always
  type: dict
  contains:
    durable_power:
      description: The UPS and its monitor. Texts, never booleans, if a value can be unknown.
      type: dict
      returned: always
      contains:
        boot_id:
          description: The kernel's id of this boot.
          type: str
          returned: always
        time:
          description: When the facts were taken, by the host's clock, in UTC and ISO 8601.
          type: str
          returned: always
          sample: '2026-01-31T12:00:00Z'
        kernel:
          description: The kernel's release.
          type: str
          returned: always
        monitor:
          description: Who watches the UPS. V(nut), V(apcupsd), V(none), or V(unknown), also where both run.
          type: str
          returned: always
        unit:
          description: The monitor's systemd service, or empty.
          type: str
          returned: always
        mode:
          description: MODE of C(nut.conf), or empty.
          type: str
          returned: always
        upses:
          description: The UPSes that the monitor watches.
          type: list
          elements: dict
          returned: always
          contains:
            name:
              description: Its name at its upsd or apcupsd.
              type: str
              returned: always
            system:
              description: As the monitor names it, V(ups@host).
              type: str
              returned: always
            driver:
              description: The driver that asks the device, or V(unknown).
              type: str
              returned: always
            user:
              description: As whom NUT's monitor asks for it. Empty for apcupsd.
              type: str
              returned: always
            power_value:
              description: How many of this host's power supplies it feeds, by the monitor's configuration.
              type: int
              returned: always
            type:
              description: Whether this host is the V(primary) at its cable, or a V(secondary).
              type: str
              returned: always
            status:
              description: Its status in the notation of NUT. Empty if it reports none.
              type: list
              elements: str
              returned: always
              sample: [OL, CHRG]
            charge:
              description: Of its battery, in percent, or null.
              type: float
              returned: always
            runtime:
              description: Seconds that the battery lasts by the UPS's own reckoning, or null.
              type: float
              returned: always
            runtime_low:
              description: Seconds that it still lasts when the monitor learns that it is low, or null if that is unknown.
              type: float
              returned: always
            stale:
              description: Whether the daemon has lost the UPS and has old values of it. V(yes), V(no) or V(unknown).
              type: str
              returned: always
            test:
              description: Whether its driver makes it up. V(yes), V(no) or V(unknown).
              type: str
              returned: always
            logins:
              description: How many hosts draw power from it by their own word, or null.
              type: int
              returned: always
            reason:
              description: Why it has no status, or null.
              type: str
              returned: always
        timing:
          description: The monitor's times by name, in seconds, or V(unknown).
          type: dict
          returned: always
          sample: {pollfreq: 5, pollfreqalert: 5, finaldelay: 5, hostsync: 15, deadtime: 15}
        budget:
          description:
            - What is needed and what there is, in seconds.
            - C(durability) is one flush of what was committed, C(clean_stop) the end of all engines by themselves.
          type: dict
          returned: always
          contains:
            durability:
              description: From a power failure to the end of the flush.
              type: dict
              returned: always
              contains:
                needed:
                  description: The sum of the terms; a number, V(infinity) or V(unknown).
                  type: raw
                  returned: always
                available:
                  description: What the battery gives; a number or V(unknown).
                  type: raw
                  returned: always
                state:
                  description: V(met), V(unmet) or V(unknown).
                  type: str
                  returned: always
                terms:
                  description: The parts of the sum.
                  type: list
                  elements: dict
                  returned: always
                  contains:
                    name:
                      description: What it is for.
                      type: str
                      returned: always
                    seconds:
                      description: A number, V(infinity) or V(unknown).
                      type: raw
                      returned: always
                    source:
                      description: Its source.
                      type: str
                      returned: always
            clean_stop:
              description: From a low battery to the end of the machine.
              type: dict
              returned: always
              contains:
                needed:
                  description: The sum of the terms; a number, V(infinity) or V(unknown).
                  type: raw
                  returned: always
                available:
                  description: What the battery gives; a number or V(unknown).
                  type: raw
                  returned: always
                state:
                  description: V(met), V(unmet) or V(unknown).
                  type: str
                  returned: always
                terms:
                  description: The parts of the sum.
                  type: list
                  elements: dict
                  returned: always
                  contains:
                    name:
                      description: What it is for.
                      type: str
                      returned: always
                    seconds:
                      description: A number, V(infinity) or V(unknown).
                      type: raw
                      returned: always
                    source:
                      description: Its source.
                      type: str
                      returned: always
        conditions:
          description: All conditions of a properly configured UPS, always the same ones in the same order.
          type: list
          elements: dict
          returned: always
          contains:
            name:
              description:
                - V(monitor_active), V(monitor_enabled), V(mode_set), V(power_values), V(shutdown_command), V(powerdown_flag),
                  V(notify_reaches_guard), V(driver_real), V(status_online), V(runtime_durability) or V(runtime_clean_stop).
              type: str
              returned: always
            target:
              description: The file or unit that it is about, or V(host).
              type: str
              returned: always
            state:
              description: V(met), V(unmet) or V(unknown).
              type: str
              returned: always
            evidence:
              description: The observed value.
              type: str
              returned: always
            fixes:
              description: What to do, one after the other. Empty if it is met.
              type: list
              elements: dict
              returned: always
              contains:
                fix:
                  description: A keyword of the collection's closed list. The report has the sentence.
                  type: str
                  returned: always
                parameters:
                  description: The values of the sentence, by name.
                  type: dict
                  returned: always
        guard:
          description: The state of the guard that turns barriers off, by its own report as far as it can be trusted.
          type: dict
          returned: always
          contains:
            state:
              description: V(absent), V(waiting), V(loose), V(tight), V(failed), V(stopped) or V(unknown).
              type: str
              returned: always
            reason:
              description: Why it is in this state.
              type: str
              returned: always
            since:
              description: Since when, in UTC and ISO 8601, or null.
              type: str
              returned: always
            quiet:
              description: Seconds that it still waits, or null.
              type: int
              returned: always
            lease:
              description: What it may do, with the mount points, the first and last day, and the seconds needed; or null.
              type: dict
              returned: always
              contains:
                schema:
                  description: The version of the form of this mapping.
                  type: int
                  returned: always
                mounts:
                  description: Mount points of which it may turn the barriers off.
                  type: list
                  elements: str
                  returned: always
                issued:
                  description: The first day on which it holds, in UTC and ISO 8601.
                  type: str
                  returned: always
                expires:
                  description: The last day on which it holds.
                  type: str
                  returned: always
                quiet:
                  description: Seconds for which all conditions must be met before it turns barriers off.
                  type: int
                  returned: always
                needed:
                  description: For each budget the seconds of runtime that the battery must have.
                  type: dict
                  returned: always
                test_ups:
                  description: Whether a UPS that a test driver makes up counts.
                  type: bool
                  returned: always
                units:
                  description: The services of engines, which stop after it has turned barriers on.
                  type: list
                  elements: str
                  returned: always
            mounts:
              description: Its mount points.
              type: list
              elements: dict
              returned: always
              contains:
                target:
                  description: The mount point.
                  type: str
                  returned: always
                barrier:
                  description: The kernel's value. V(on), V(off) or V(unknown).
                  type: str
                  returned: always
            installed:
              description:
                - Whether its program, unit and hook are there as this version of the collection writes them, and the unit is
                  enabled. V(current), V(differs), V(absent) or V(unknown).
              type: str
              returned: always
        settings:
          description:
            - The monitor's settings by name, each with C(value), C(source) and C(reason). The reason says why a value is
              V(unknown). No password is among them.
            - C(notify_flags) is V(exec) where each event that matters runs the notify command, else it names those that do not.
          type: dict
          returned: always
        evidence:
          description: For what was concluded, its C(value), C(source) and C(reason).
          type: dict
          returned: always
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.durable.dbhost.plugins.module_utils.host.reply import fail, observed
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.host_facts import power_facts, refusal


def main() -> None:
    """Run the module."""
    spec = {
        "stop_timeouts": {"type": "list", "elements": "dict", "default": []},
        "margin": {"type": "int", "default": 60},
    }
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    host = Host()
    given = module.params
    why = refusal(host, given["margin"])
    if why:
        fail(module, why)
    try:
        facts = power_facts(host, now, given["stop_timeouts"], given["margin"])
    except Unobservable as error:
        fail(module, f"This machine cannot be observed: {error}")
    except ValueError as error:
        fail(module, error)
    observed(module, "durable_power", facts)


if __name__ == "__main__":
    main()
