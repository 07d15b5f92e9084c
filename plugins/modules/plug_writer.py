#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commit on a host whose plug is pulled, and check afterwards what was acknowledged."""

from __future__ import annotations

DOCUMENTATION = r"""
module: plug_writer
short_description: Commit on a host whose power is cut, and check the acknowledged commits
version_added: 1.0.0
description:
  - Private. Only roles and playbooks of this collection call it. Options and results can change in each release.
  - Writes commits to scratch files in the mounts, as database engines write their logs, in a process that goes on when
    the module has ended. Each is reported to a witness on another host (M(durable.dbhost.plug_witness)) before the next.
  - After the power was cut and is back, searches for each commit that was reported to the witness.
  - A run without a cut ends automatically and removes its files. Files that a cut left are removed by
    V(cleaned).
  - In check mode V(started) and V(cleaned) do nothing.
extends_documentation_fragment:
  - durable.dbhost.attributes
options:
  state:
    description:
      - V(planned) checks everything and returns the job, V(started) begins it, V(verified) checks the commits,
        V(cleaned) takes the files of runs that have ended away.
    type: str
    choices: [planned, started, verified, cleaned]
    required: true
  mounts:
    description: The mount points, for V(planned) and V(cleaned).
    type: list
    elements: str
    default: []
  run:
    description: A random name for the run, 16 hexadecimal digits, for V(planned).
    type: str
  patterns:
    description: How commits are written, for V(planned).
    type: list
    elements: str
    choices: [direct_dsync, direct_fdatasync, rwf_dsync, osync, dsync, append_fsync]
    default: [direct_dsync, direct_fdatasync, rwf_dsync, osync, dsync, append_fsync]
  clients:
    description: How many commit at the same time, 1 to 64, at least one for each mount and pattern; for V(planned).
    type: int
    default: 12
  size:
    description:
      - MiB of each client's file, 1 to 64. Four times all of them must be free, and 5 per cent of the file system
        afterwards. For V(planned).
    type: int
    default: 4
  rate:
    description: Commits in a second by all clients, at most; 10 to 5000. For V(planned).
    type: int
    default: 500
  seconds:
    description: Seconds after which a run without a cut ends, 30 to 3600; for V(planned).
    type: int
    default: 600
  job:
    description: What V(planned) returned, for V(started) and V(verified).
    type: str
  address:
    description: Where this host reaches the witness, for V(started).
    type: str
  port:
    description: The witness's port, for V(started).
    type: int
    default: 7411
  key:
    description: The key that the witness was given, for V(started).
    type: str
  acknowledged:
    description: What was reported to the witness, the number of commits of each client; for V(verified).
    type: list
    elements: int
    default: []
  ended:
    description: Why clients ended, as reported to the witness, by client; for V(verified).
    type: dict
    default: {}
  by:
    description: Who attests that the plug was pulled, for V(verified).
    type: str
    default: ''
  today:
    description: The date on the controller, C(YYYY-MM-DD), for V(verified).
    type: str
    default: ''
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Check a run before it is started
  durable.dbhost.plug_writer:
    state: planned
    run: 0123456789abcdef
    mounts: [/srv/pgdata]
"""

RETURN = r"""
job:
  description: The job, for the other states and for the witness.
  returned: when O(state=planned)
  type: str
verdict:
  description: V(kept), V(lost), V(not_cut), or V(too_few).
  returned: when O(state=verified)
  type: str
why:
  description: The reason, as text.
  returned: when O(state=verified)
  type: str
losses:
  description:
    - How many commits were V(acknowledged), V(checked) and V(lost), some that are, V(named), and the patterns
      and mounts of which none could be checked, V(unchecked).
  returned: when O(state=verified)
  type: dict
attestation:
  description: The text for the host's variables; empty unless O(by) is set and no commit was lost.
  returned: when O(state=verified)
  type: str
table:
  description: All of it as text.
  returned: when O(state=verified)
  type: str
removed:
  description: The files that were removed.
  returned: when O(state=cleaned)
  type: list
  elements: str
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.durable.dbhost.plugins.module_utils.host.refusals import explained
from ansible_collections.durable.dbhost.plugins.module_utils.host.reply import fail, finish
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.measure import plug_host, plug_job, plug_verdict
from ansible_collections.durable.dbhost.plugins.module_utils.measure.limits import Refused, number
from ansible_collections.durable.dbhost.plugins.module_utils.measure.patterns import PATTERNS
from ansible_collections.durable.dbhost.plugins.module_utils.measure.scratch import Ended, signals_end
from ansible_collections.durable.dbhost.plugins.module_utils.storage.disks import Disks

SPEC = {
    "state": {"type": "str", "required": True, "choices": ["planned", "started", "verified", "cleaned"]},
    "mounts": {"type": "list", "elements": "str", "default": []},
    "run": {"type": "str"},
    "patterns": {"type": "list", "elements": "str", "default": list(PATTERNS), "choices": list(PATTERNS)},
    "clients": {"type": "int", "default": 12},
    "size": {"type": "int", "default": 4},
    "rate": {"type": "int", "default": 500},
    "seconds": {"type": "int", "default": 600},
    "job": {"type": "str"},
    "address": {"type": "str"},
    "port": {"type": "int", "default": 7411},
    "key": {"type": "str", "no_log": True},
    "acknowledged": {"type": "list", "elements": "int", "default": []},
    "ended": {"type": "dict", "default": {}},
    "by": {"type": "str", "default": ""},
    "today": {"type": "str", "default": ""},
}
REQUIRED = [
    ("state", "planned", ["run", "mounts"]),
    ("state", "started", ["job", "address", "key"]),
    ("state", "verified", ["job", "acknowledged"]),
    ("state", "cleaned", ["mounts"]),
]


def planned(host: Host, given: Mapping[str, Any], check: bool) -> Mapping[str, Any]:
    """Return the job."""
    return {"job": plug_job.dumps(plug_host.plan(host, given["run"], given))}


def started(host: Host, given: Mapping[str, Any], check: bool) -> Mapping[str, Any]:
    """Begin it."""
    job = plug_job.loads(given["job"])
    port = number("port", given["port"], 1, 65535)
    if not check:
        with signals_end():
            plug_host.begin(host, job, (given["address"], port), given["key"])
    return {"changed": True}


def verified(host: Host, given: Mapping[str, Any], check: bool) -> Mapping[str, Any]:
    """Search for the commits; return the result."""
    job = plug_job.loads(given["job"])
    if len(given["acknowledged"]) != job.clients:
        raise Refused(f"acknowledged: observed {len(given['acknowledged'])} numbers, expected {job.clients}")
    # A run that ended without a cut has removed its files: nothing is lost, and nothing proven.
    acknowledged = dict(enumerate(given["acknowledged"]))
    losses = plug_job.NOT_CHECKED if given["ended"] else plug_host.verify(host, job, acknowledged)
    ended = {int(client): str(why) for client, why in given["ended"].items()}
    verdict = plug_verdict.assess(job, losses, ended)
    text = ""
    if verdict.word == "kept" and given["by"]:
        virtualization = Disks(host).virtualization.value
        text = plug_verdict.attestation(job, losses, given["by"], given["today"], virtualization)
    return {
        "verdict": verdict.word,
        "why": verdict.why,
        "losses": losses._asdict(),
        "attestation": text,
        "table": plug_verdict.table(job, losses, verdict),
    }


def cleaned(host: Host, given: Mapping[str, Any], check: bool) -> Mapping[str, Any]:
    """Take the files of ended runs away."""
    gone = [] if check else plug_host.clean(host, given["mounts"])
    return {"changed": bool(gone), "removed": gone}


STATES = {"planned": planned, "started": started, "verified": verified, "cleaned": cleaned}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True, required_if=REQUIRED)
    try:
        result = STATES[module.params["state"]](Host(), module.params, module.check_mode)
    except (Refused, Unobservable, Ended, ValueError) as error:
        fail(module, error)
    except OSError as error:
        fail(module, f"{explained(error)}. No process goes on, and the files of this run have been removed")
    finish(module, **result)


if __name__ == "__main__":
    main()
