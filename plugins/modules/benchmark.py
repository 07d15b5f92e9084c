#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure commit latency on mounts, by pattern, clients and setting."""

from __future__ import annotations

DOCUMENTATION = r"""
module: benchmark
short_description: Measure commit latency on mounts, by pattern, clients and setting
version_added: 1.0.0
description:
  - Runs C(fio) on scratch files in mounts, writing as database engines write their logs. Every pattern waits for the
    disk with each commit. Several mounts are written to at the same time, and each has its own figures.
  - Measures the host as it is. On request it also tries other schedulers, other mount options and disabled write caches, and
    restores the settings, also after a failure or a signal. It never changes barriers and journal modes, and enables no
    write cache that was off.
  - Refuses if other programs keep the disks busy, if space is missing, or if it would take longer than O(minutes).
  - In check mode nothing is written and nothing is set. The inputs are still checked.
  - Each of O(transactions) runs on a scratch server of the version that runs on this host, else of the only one that is
    installed. It has its own files in the measured mount and its own socket there, and listens on no network. Server and
    clients run as the server's user, never as root. They end, and all is removed, also after the module was killed.
requirements:
  - fio 3, for all patterns but V(group_osync)
  - pgbench next to the server program, for V(pgbench_tpcb); sysbench, for V(oltp_read_write) and V(oltp_write_only);
    isql-fb of Firebird 3, 4 or 5, for V(firebird_tpcb)
extends_documentation_fragment:
  - durable.dbhost.attributes
  - durable.dbhost.attributes.fio
options:
  mounts:
    description: The mount points, each of a separate file system.
    type: list
    elements: str
    required: true
  patterns:
    description: How commits are written. An empty list is accepted with O(transactions).
    choices: [direct_dsync, direct_fdatasync, osync, dsync, append_fsync, group_osync]
    default: [direct_dsync, direct_fdatasync, osync, dsync, append_fsync, group_osync]
  transactions:
    description:
      - Transactions of a database server, measured on one mount after the other. O(rate) does not limit them.
      - V(pgbench_tpcb) is TPC-B of C(pgbench) on PostgreSQL, with one branch for each client. V(oltp_read_write) and
        V(oltp_write_only) are those of C(sysbench) on MariaDB or MySQL. V(firebird_tpcb) is a small TPC-B in PSQL blocks of
        C(isql), whose own engine opens a scratch database, with one branch for each client.
      - PostgreSQL needs 700 MiB and 17 MiB for each client, MariaDB and MySQL 400 MiB, Firebird 100 MiB and 2 MiB for each
        client; four times that must be free.
    type: list
    elements: str
    choices: [pgbench_tpcb, oltp_read_write, oltp_write_only, firebird_tpcb]
    default: []
  commit_delays:
    description:
      - For V(group_osync), the milliseconds for which the first of several commits waits for others; 0 to 1000.
      - V(-1) is none, where each client syncs for itself.
    type: list
    elements: int
    default: [1]
  clients:
    description:
      - Numbers of clients that commit at the same time on each file system, each 1 to 80.
      - If none are named, 1, 10, 20, 40 and 80 with O(transactions), else 1, 4 and 16.
  schedulers:
    description: I/O schedulers to try in addition to the one in force; all must be loaded.
    choices: [none, mq-deadline, kyber, bfq]
  mount_options:
    description: Mount options to try in addition to those in force, on ext4 and XFS.
    type: list
    elements: str
    choices: [noatime, relatime, strictatime, sync]
    default: []
  write_caches:
    description:
      - States of the disks' write caches to measure with. V(disabled) is tried if they are on, and restored.
      - V(enabled) is refused if one of them is off.
    type: list
    elements: str
    choices: [enabled, disabled]
    default: []
  seconds:
    default: 5
  minutes:
    default: 15
  size:
    description:
      - MiB of scratch file for each client, of V(group_osync) for all of a mount, 1 to 64. Four times all of them must be
        free, and 5 per cent of the file system afterwards.
  rate:
    description: Commits in a second by all clients of a mount, at most; 64 to 1000000.
    type: int
    default: 50000
  busy:
    description: Measure although other programs use the disks.
    type: bool
    default: false
  profiles:
    description: The settings of the profile that each mount is pinned to, for the recommendation.
    type: dict
    default: {}
  known:
    description: The settings of the profiles whose cost is reported, by name.
    type: dict
    default: {}
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: What does a commit cost, and would another scheduler help
  durable.dbhost.benchmark:
    mounts: [/srv/pgdata, /srv/pglog]
    clients: [1, 8]
    schedulers: [mq-deadline]
"""

RETURN = r"""
mounts:
  description: The mount points.
  returned: always
  type: list
  elements: str
rows:
  description: One for each setting, pattern, number of clients and mount; empty in check mode.
  returned: always
  type: list
  elements: dict
  contains:
    variant:
      description: The setting that was tried, or V(as it is).
      type: str
      returned: always
    mount:
      description: The mount point.
      type: str
      returned: always
    pattern:
      description: How commits were written, or one of O(transactions).
      type: str
      returned: always
    commit_delay:
      description: Milliseconds of the delay, for V(group_osync); null else.
      type: int
      returned: always
    clients:
      description: How many committed at the same time.
      type: int
      returned: always
    commits:
      description: How many were made.
      type: int
      returned: always
    rate:
      description: Commits in a second, by all clients.
      type: float
      returned: always
    mean:
      description: Milliseconds that a commit took, on average.
      type: float
      returned: always
    p99:
      description: Milliseconds within which 99 of 100 calls that wait for the disk returned, or 99 of 100 transactions of
        sysbench; null for pgbench and isql, which do not report it.
      type: float
      returned: always
    flushes_per_commit:
      description: Flushes for each commit, of the disk with the most; V(unknown) where they cannot be counted, or mounts share
        the disk.
      type: raw
      returned: always
    runs:
      description: How often it was measured.
      type: int
      returned: always
    spread:
      description: The difference between the fastest and the slowest run, as a share of the median.
      type: float
      returned: always
    held_back:
      description: Whether O(rate) was reached. V(yes) or V(no).
      type: str
      returned: always
    server:
      description: The version of the server, for one of O(transactions); else null.
      type: str
      returned: always
doubts:
  description: Disks that are faster than they can be.
  returned: always
  type: list
  elements: str
advice:
  description: What the figures recommend within the profile.
  returned: always
  type: list
  elements: str
disks:
  description: The permanent names of the disks below each mount; null for a disk without one.
  returned: always
  type: dict
prices:
  description: What each of O(known) costs on each mount.
  returned: always
  type: list
  elements: dict
  contains:
    mount:
      description: The mount point.
      type: str
      returned: always
    profile:
      description: The name of the profile.
      type: str
      returned: always
    variant:
      description: The setting in which the mount was as the profile wants it; null where that was not measured.
      type: str
      returned: always
    why:
      description: Why it was not measured; null where it was.
      type: str
      returned: always
    rates:
      description: The C(rate) for each C(pattern), C(commit_delay), number of C(clients) and C(server), and its share
        C(of_now).
      type: list
      elements: dict
      returned: always
group_vars:
  description: Lines of YAML with the recommended profile and settings; empty without a recommendation, or with RV(doubts).
  returned: always
  type: list
  elements: str
table:
  description: All of it as text.
  returned: always
  type: str
svg:
  description: A plot of the rates over the clients.
  returned: always
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.durable.dbhost.plugins.module_utils.host.refusals import explained
from ansible_collections.durable.dbhost.plugins.module_utils.host.reply import fail, finish, warn
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Host, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.measure import (
    benchmark,
    planned,
    transactions,
    variants,
)
from ansible_collections.durable.dbhost.plugins.module_utils.measure.limits import Refused
from ansible_collections.durable.dbhost.plugins.module_utils.measure.scratch import Ended

SPEC = {
    "mounts": {"type": "list", "elements": "str", "required": True},
    "patterns": {
        "type": "list",
        "elements": "str",
        "default": list(planned.PATTERNS),
        "choices": list(planned.PATTERNS),
    },
    "transactions": {
        "type": "list",
        "elements": "str",
        "default": [],
        "choices": list(transactions.LOADS),
    },
    "commit_delays": {"type": "list", "elements": "int", "default": [1]},
    "clients": {"type": "list", "elements": "int"},
    "schedulers": {"type": "list", "elements": "str", "default": [], "choices": list(variants.SCHEDULERS)},
    "mount_options": {
        "type": "list",
        "elements": "str",
        "default": [],
        "choices": list(variants.MOUNT_OPTIONS),
    },
    "write_caches": {
        "type": "list",
        "elements": "str",
        "default": [],
        "choices": list(variants.WRITE_CACHES),
    },
    "seconds": {"type": "int", "default": 5},
    "runs": {"type": "int", "default": 3},
    "minutes": {"type": "int", "default": 15},
    "size": {"type": "int", "default": 8},
    "rate": {"type": "int", "default": 50000},
    "busy": {"type": "bool", "default": False},
    "profiles": {"type": "dict", "default": {}},
    "known": {"type": "dict", "default": {}},
}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    host, rows = Host(), []
    try:
        made = planned.plan(host, module.params)
        if not module.check_mode:
            rows = benchmark.run(host, made, module.params["busy"])
    except (Refused, ChangeFailed, Unobservable, Ended) as error:
        fail(module, error)
    except OSError as error:
        fail(module, f"writing the scratch files: {explained(error)}. They have been removed")
    result = benchmark.result_of(made, rows, module.params["profiles"], module.params["known"])
    for doubt in result["doubts"]:
        warn(module, doubt)
    finish(module, **result)


if __name__ == "__main__":
    main()
