# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation that the modules share."""

from __future__ import annotations


class ModuleDocFragment:
    """The attributes of every module of this collection."""

    DOCUMENTATION = r"""
options: {}
requirements:
  - Python 3.9 or later on the host; Python 3.11 or later on the controller
attributes:
  check_mode:
    description: Can run in check mode and tell what it would change, without changing it.
    support: full
  diff_mode:
    description: Returns no differences.
    support: none
  platform:
    description: The systems that it runs on.
    support: full
    platforms: linux
"""

    #: Of the modules of layers.
    LAYER = r"""
options:
  state:
    type: str
    choices: [present, released]
    default: present
  targets:
    type: list
    elements: dict
    default: []
requirements:
  - Python 3.9 or later on the host; Python 3.11 or later on the controller
attributes:
  check_mode:
    description: Can run in check mode and tell what it would change, without changing it.
    support: full
  diff_mode:
    description: Returns what each setting was and is, and the lines of the files that change.
    support: full
  platform:
    description: The systems that it runs on.
    support: full
    platforms: linux
  action_group:
    description: Use C(group/durable.dbhost.layers) in C(module_defaults) to set O(state) for all modules of layers.
    support: full
    membership: [durable.dbhost.layers]
"""

    #: Of the modules of servers that apply a setting only when they start.
    RESTART = r"""
options:
  restart:
    description:
      - Whether a server that systemd manages may be restarted, through its unit, for a setting that waits for it. Without
        it such a setting waits for the next start.
      - A server that something else manages, such as Pacemaker, is never restarted.
    type: bool
    default: false
"""

    #: Of the actions that are tasks of one host; beside those of every module.
    ACTION = r"""
options: {}
attributes:
  action:
    description: Runs on the controller as well.
    support: full
  async:
    description: Cannot be run in the background.
    support: none
  bypass_host_loop:
    description: Runs for each host.
    support: none
"""

    #: Of the modules that get the list of databases; in addition to that of every module.
    FACTS = r"""
options:
  databases:
    description: As in C(durable_databases).
    type: raw
attributes:
  action_group:
    description: Use C(group/durable.dbhost.facts) in C(module_defaults) to name O(databases) once.
    support: full
    membership: [durable.dbhost.facts]
"""

    #: Of the modules that collect all facts of a host.
    HOST_FACTS = r"""
options:
  power:
    description:
      - When the power is read. V(guarded) is only if a guard may have barriers off, or that is unknown.
      - A daemon of a UPS that does not answer costs its time limit of three seconds.
    type: str
    choices: [always, guarded, never]
    default: always
  margin:
    description: As in M(durable.dbhost.power_facts).
    type: int
    default: 60
"""

    #: Of the modules that measure with fio; each sets its defaults.
    FIO = r"""
options:
  patterns:
    description: How commits are written.
    type: list
    elements: str
  clients:
    description: Numbers of clients that commit at the same time on each file system, each 1 to 80.
    type: list
    elements: int
  schedulers:
    type: list
    elements: str
    default: []
  seconds:
    description: Seconds of one run, 1 to 60; at least 2 in M(durable.dbhost.benchmark).
    type: int
  runs:
    description: How often each measurement is repeated; 1 to 9. The figures are those of the run with the median rate.
    type: int
    default: 3
  minutes:
    description:
      - Minutes that all runs may take together, 1 to 60; up to 120 in M(durable.dbhost.compare_filesystems).
      - More is refused before the first.
    type: int
  size:
    description: MiB of scratch file for each client, 1 to 64.
    type: int
    default: 8
"""
