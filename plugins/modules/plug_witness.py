#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Log the acknowledged commits of a host whose power is cut."""

from __future__ import annotations

DOCUMENTATION = r"""
module: plug_witness
short_description: Log the acknowledged commits of a host whose power is cut
version_added: 1.0.0
description:
  - Private. Only roles and playbooks of this collection call it. Options and results can change in each release.
  - Starts a small server that goes on when the module has ended. It writes down which commits a host says are done
    (M(durable.dbhost.plug_writer)), and answers once they are on its own disk.
  - It listens on one port, takes only who knows the key, as many as the job has clients, and writes at most 256 MiB.
    Who has not shown it after 5 seconds, or is one of too many, is not heard any more. It ends two minutes after the job's
    own time, or on request.
  - Messages go over the network in the clear. The key does not. Names of commits are all there is to read.
  - In check mode V(started) and V(absent) do nothing.
extends_documentation_fragment:
  - durable.dbhost.attributes
options:
  state:
    description: V(started) starts it, V(read) returns what the host reported to it, V(absent) ends it and removes its log.
    type: str
    choices: [started, read, absent]
    required: true
  name:
    description: The name of the host whose plug is pulled. One run of a host is stored at a time.
    type: str
    required: true
  job:
    description: What M(durable.dbhost.plug_writer) planned, for V(started).
    type: str
  key:
    description: A secret of at least 32 characters that the host is given too, for V(started).
    type: str
  address:
    description: The address on which it listens, for V(started).
    type: str
    default: 0.0.0.0
  port:
    description: The port, for V(started).
    type: int
    default: 7411
  directory:
    description: Where it keeps its log. It is made if need be; only this user may write there.
    type: path
    default: /var/lib/durable-dbhost
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: What was acknowledged before the power was cut
  durable.dbhost.plug_witness:
    state: read
    name: db1.example.com
"""

RETURN = r"""
job:
  description: The job.
  returned: when O(state=read)
  type: str
acknowledged:
  description: How many commits of each client were acknowledged.
  returned: when O(state=read)
  type: list
  elements: int
ended:
  description: The clients that ended before the cut, and why. A power cut leaves none.
  returned: when O(state=read)
  type: dict
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.durable.dbhost.plugins.module_utils.host.refusals import explained
from ansible_collections.durable.dbhost.plugins.module_utils.host.reply import fail, finish
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.measure import plug_host, plug_job, plug_keeper
from ansible_collections.durable.dbhost.plugins.module_utils.measure.limits import Refused, number

SPEC = {
    "state": {"type": "str", "required": True, "choices": ["started", "read", "absent"]},
    "name": {"type": "str", "required": True},
    "job": {"type": "str"},
    "key": {"type": "str", "no_log": True},
    "address": {"type": "str", "default": "0.0.0.0"},
    "port": {"type": "int", "default": 7411},
    "directory": {"type": "path", "default": "/var/lib/durable-dbhost"},
}


def started(given: Mapping[str, Any], check: bool) -> Mapping[str, Any]:
    """Start it."""
    job = plug_job.loads(given["job"])
    port = number("port", given["port"], 1, 65535)
    if plug_host.boot_id(Host()) == job.boot_id:
        raise Refused("the witness is the host itself: expected another machine, whose power stays on")
    place = plug_keeper.paths(given["directory"], given["name"])
    if not check:
        plug_keeper.start(place, job, given["key"], given["address"], port)
    return {"changed": True}


def read(given: Mapping[str, Any], check: bool) -> Mapping[str, Any]:
    """Return what the host reported to it."""
    log = plug_keeper.read(plug_keeper.paths(given["directory"], given["name"]))
    return {
        "job": plug_job.dumps(log.job),
        "acknowledged": [log.acknowledged[client] for client in range(log.job.clients)],
        "ended": {str(client): why for client, why in log.ended.items()},
    }


def absent(given: Mapping[str, Any], check: bool) -> Mapping[str, Any]:
    """End it and forget."""
    place = plug_keeper.paths(given["directory"], given["name"])
    return {"changed": False if check else plug_keeper.stop(place)}


STATES = {"started": started, "read": read, "absent": absent}


def main() -> None:
    """Run the module."""
    required = [("state", "started", ["job", "key"])]
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True, required_if=required)
    try:
        result = STATES[module.params["state"]](module.params, module.check_mode)
    except (Refused, Unobservable) as error:
        fail(module, error)
    except OSError as error:
        fail(module, explained(error))
    finish(module, **result)


if __name__ == "__main__":
    main()
