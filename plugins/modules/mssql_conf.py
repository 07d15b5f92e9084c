#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Set the durability of SQL Server's writes on Linux."""

from __future__ import annotations

DOCUMENTATION = r"""
module: mssql_conf
short_description: Set the durability of SQL Server's writes on Linux
version_added: 1.0.0
description:
  - Sets trace flags and C(control) settings by SQL Server's own C(mssql-conf), one after the other in an order that is
    never less safe than the start, and reads the file back. It checks that the file's owner and mode are unchanged.
  - C(mssql-conf) runs as the user who owns C(/var/opt/mssql), by C(setpriv), for that user may put a link there at any
    moment. As root it runs only where only root may change that directory; otherwise nothing is changed.
  - SQL Server reads them at its start. Without O(restart) they wait for the next one.
  - C(mssql-conf) writes its file again, without the comments in it.
  - It does not choose between the two safe ways; the policy of the collection does, by the storage below.
extends_documentation_fragment:
  - durable.dbhost.attributes.layer
  - durable.dbhost.attributes.restart
options:
  targets:
    description:
      - The instances.
    suboptions:
      instance:
        description:
          - The instance's name, as
            RV(durable.dbhost.engine_facts#module:ansible_facts.durable_engines.engines[].name) names it.
        type: str
        required: true
      settings:
        description: The settings; one that is not named is left alone.
        type: dict
        required: true
        suboptions:
          traceflag3979:
            description: Trace flag 3979 as a start-up parameter; V(on) leaves flushing to FUA writes.
            type: str
            choices: ['on', 'off']
          traceflag3982:
            description: Trace flag 3982, forced flush, the default without any flag; it contradicts the other.
            type: str
            choices: ['on', 'off']
          writethrough:
            description: C(control.writethrough); without it nothing is sent on to the disk, so that V(0) is not offered.
            type: str
            choices: ['1']
          alternatewritethrough:
            description: C(control.alternatewritethrough); V(1) collects writes and flushes, V(0) opens files with O_DSYNC.
            type: str
            choices: ['0', '1']
  state:
    description: V(released) restores the original values; the server reads them at its next start.
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Forced flush, right on every storage
  durable.dbhost.mssql_conf:
    targets:
      - instance: mssql
        settings:
          traceflag3979: 'off'
          writethrough: '1'
          alternatewritethrough: '1'
"""

RETURN = r"""
changes:
  description: What was changed, or in check mode would be.
  returned: always
  type: list
  elements: dict
  contains:
    target:
      description: The instance's name.
      type: str
      returned: always
    setting:
      description: The setting.
      type: str
      returned: always
    when:
      description: V(running) or V(persisted).
      type: str
      returned: always
    before:
      description: What it was.
      type: str
      returned: always
    after:
      description: What it is now.
      type: str
      returned: always
"""

from ansible_collections.durable.dbhost.plugins.module_utils.enforce.runner import run
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql import apply as layer


def main() -> None:
    """Run the module."""
    run(layer)


if __name__ == "__main__":
    main()
