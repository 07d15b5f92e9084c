#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pack what the facts read on a host into a file that others can replay."""

from __future__ import annotations

DOCUMENTATION = r"""
module: capture
short_description: Pack what the facts read on a host into a file
version_added: 1.0.0
description:
  - Asks the host all that M(durable.dbhost.storage_facts) asks, and keeps the answers, so that the same facts can be
    collected again from the file, on another machine. It serves bug reports and tests.
  - Serial numbers, WWNs, UUIDs, host names and addresses become stand-ins. Of files and outputs only what is known to
    be harmless is recorded. Mount points, names of volumes and labels stay, so read the file before you send it.
  - Records what M(durable.dbhost.engine_facts) collects, the units of the servers, owners, modes and names of options of their
    files, and the state of Python, systemd, SELinux, AppArmor and the boot entries. Values of options and variables are not
    recorded.
  - Changes nothing and writes nothing on the host. The file is written on the controller.
extends_documentation_fragment:
  - durable.dbhost.attributes
  - durable.dbhost.attributes.facts
options:
  databases:
    description:
      - As in C(durable_databases). Whether the C(paths) in it exist, and on which disks, is recorded too.
  dir:
    description:
      - Directory on the controller for the file C(capture-<host>.json), relative to where the command was started.
      - Without it, C(durable_report_dir). With V('') nothing is written, and RV(recording) has all of it.
    type: str
seealso:
  - module: durable.dbhost.storage_facts
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Capture this host for a bug report
  durable.dbhost.capture:
    dir: durable-report
"""

RETURN = r"""
path:
  description: The file on the controller.
  returned: when O(dir) is not empty
  type: str
  sample: /home/user/durable-report/capture-db1.example.com.json
recording:
  description: The recording, as JSON in ASCII.
  returned: when O(dir) is empty
  type: str
failed_at:
  description: Where taking the facts ended early, or null.
  returned: always
  type: str
  sample: "ValueError at ext4.py:56"
differs:
  description: The facts that the recording does not give as the host did; should be empty.
  returned: always
  type: list
  elements: str
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.durable.dbhost.plugins.module_utils.capture.capture import capture
from ansible_collections.durable.dbhost.plugins.module_utils.capture.recording import dumps
from ansible_collections.durable.dbhost.plugins.module_utils.host import bounds
from ansible_collections.durable.dbhost.plugins.module_utils.host.paths import of_databases
from ansible_collections.durable.dbhost.plugins.module_utils.host.printable import lines
from ansible_collections.durable.dbhost.plugins.module_utils.host.reply import fail, finish
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Unobservable, expect_root


def main() -> None:
    """Run the module."""
    # The action of the same name takes dir away and writes the file.
    options = {"databases": {"type": "raw"}, "dir": {"type": "str"}}
    module = AnsibleModule(argument_spec=options, supports_check_mode=True)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    try:
        host = Host()
        expect_root(host)
        recording = capture(host, now, of_databases(module.params["databases"]), module.params["databases"])
    except (Unobservable, ValueError) as error:
        fail(module, f"This host cannot be captured: {error}")
    # As text: JSON of another writer may lose bytes that are no UTF-8.
    text = lines(dumps(recording).splitlines())
    refused = bounds.too_large({"recording": text})
    if refused:
        fail(module, f"This host cannot be captured: {refused}")
    finish(
        module,
        recording=text,
        failed_at=recording["failed"],
        differs=recording["differs"],
    )


if __name__ == "__main__":
    main()
