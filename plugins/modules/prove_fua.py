#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Return whether a commit reaches the disks as FUA, as a flush, or as neither."""

from __future__ import annotations

DOCUMENTATION = r"""
module: prove_fua
short_description: Report whether commits reach the disks with FUA, a flush, or neither
version_added: 1.0.0
description:
  - Writes to a scratch file in each mount as database engines write their logs, and counts what the block layer sends
    to each disk below, flushes from C(/sys/block/DISK/stat), FUA writes by C(blktrace).
  - The scratch file is removed at the end, also after a failure or a signal. One that a killed run left is removed
    by the next run. Nothing else is changed.
  - In check mode nothing is written. Mounts and limits are still checked.
  - With O(observe) nothing is written to the mounts. The requests of a running server are traced instead. This has not
    run on a real SQL Server.
  - Without C(blktrace) FUA writes are unknown, and only a flush, or disks to which the kernel sends no FUA, can be assessed.
extends_documentation_fragment:
  - durable.dbhost.attributes
options:
  mounts:
    description: The mount points.
    type: list
    elements: str
    required: true
  patterns:
    description: How commits are written.
    type: list
    elements: str
    choices: [direct_dsync, direct_fdatasync, rwf_dsync, osync, dsync, append_fsync]
    default: [direct_dsync, direct_fdatasync, rwf_dsync, osync, dsync, append_fsync]
  commits:
    description: Commits for each mount and pattern, 20 to 1000.
    type: int
    default: 100
  rate:
    description: Commits in a second, at most; 10 to 2000.
    type: int
    default: 200
  seconds:
    description: Seconds that the commits of one mount and pattern may take; 1 to 60.
    type: int
    default: 10
  size:
    description:
      - MiB of the scratch file, 1 to 64. Four times as much must be free, and 5 per cent of the file system afterwards.
    type: int
    default: 4
  observe:
    description:
      - The file name of a running server's program, for example V(sqlservr) or V(postgres).
      - Its requests are traced for O(seconds). O(patterns), O(commits), O(rate) and O(size) have no effect then.
      - A synchronous write counts as flushed if a flush was sent to its disk within 1 s of its end.
    type: str
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: What does a commit become below the data
  durable.dbhost.prove_fua:
    mounts: [/srv/pgdata]

- name: How the writes of a running SQL Server reach the disks
  durable.dbhost.prove_fua:
    mounts: [/var/opt/mssql]
    observe: sqlservr
    seconds: 30
"""

RETURN = r"""
rows:
  description: One for each mount and pattern; empty in check mode.
  returned: always
  type: list
  elements: dict
  contains:
    mount:
      description: The mount point.
      type: str
      returned: always
    fstype:
      description: Its file system's type.
      type: str
      returned: always
    pattern:
      description: How commits were written; V(observed) with O(observe).
      type: str
      returned: always
    words:
      description: The same as flags of open(2), and which engine writes so.
      type: str
      returned: always
    commits:
      description: How many were made; with O(observe) the server's synchronous writes.
      type: int
      returned: always
    found:
      description: V(FUA), V(flush), V(neither), V(unclear) (others write too), or V(unknown).
      type: str
      returned: always
    safety:
      description: V(ok), V(at_risk), or V(unknown). Whether the device honours flushes cannot be read here.
      type: str
      returned: always
    why:
      description: The reason, as text.
      type: str
      returned: always
    flushes_per_commit:
      description: For each disk.
      type: dict
      returned: always
    fua_per_commit:
      description: For each disk; empty where they could not be counted.
      type: dict
      returned: always
    fua_unknown:
      description: Why FUA writes could not be counted, or null.
      type: str
      returned: always
table:
  description: The same as text.
  returned: always
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.durable.dbhost.plugins.module_utils.host.refusals import explained
from ansible_collections.durable.dbhost.plugins.module_utils.host.reply import fail, finish
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.measure import prove, server_trace
from ansible_collections.durable.dbhost.plugins.module_utils.measure.limits import Refused
from ansible_collections.durable.dbhost.plugins.module_utils.measure.patterns import PATTERNS
from ansible_collections.durable.dbhost.plugins.module_utils.measure.scratch import Ended

SPEC = {
    "mounts": {"type": "list", "elements": "str", "required": True},
    "patterns": {"type": "list", "elements": "str", "default": list(PATTERNS), "choices": list(PATTERNS)},
    "commits": {"type": "int", "default": 100},
    "rate": {"type": "int", "default": 200},
    "seconds": {"type": "int", "default": 10},
    "size": {"type": "int", "default": 4},
    "observe": {"type": "str"},
}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    host, rows = Host(), []
    try:
        limits = prove.limits_of(module.params)
        places, patterns = prove.plan(host, module.params["mounts"], module.params["patterns"])
        program = server_trace.expect_name(module.params["observe"])
        if program and not module.check_mode:
            rows = server_trace.run(host, places, program, limits.seconds)
        elif not module.check_mode:
            rows = prove.run(host, places, patterns, limits)
    except (Refused, Unobservable, Ended) as error:
        fail(module, error)
    except OSError as error:
        fail(module, f"writing the scratch file: {explained(error)}. It has been removed")
    finish(module, rows=rows, table=prove.table(rows))


if __name__ == "__main__":
    main()
