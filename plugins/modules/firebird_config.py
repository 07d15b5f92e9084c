#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Set forced writes of Firebird databases."""

from __future__ import annotations

DOCUMENTATION = r"""
module: firebird_config
short_description: Set forced writes of Firebird databases
version_added: 1.0.0
description:
  - Changes the flag in a database's header with gfix, reads it back, and brings onto the disk what was written before.
  - gfix runs as the owner of the database's file and needs no server. Where that fails and O(password) is given, the server
    does it.
  - A database that is open is left unchanged, with a warning. With Classic and SuperClassic, gfix would change its
    header, and those who have it open would go on as before.
  - It does not look into mount namespaces of servers. A server with a private C(/tmp) has its lock files there, where
    gfix does not see them.
extends_documentation_fragment:
  - durable.dbhost.attributes.layer
options:
  targets:
    description:
      - The databases.
    suboptions:
      database:
        description: The absolute path of a database's first file. Either this or O(targets[].directory).
        type: str
      directory:
        description: An absolute path. All databases in and below it are meant.
        type: str
      forced_writes:
        description:
          - With V(on), each write goes to the disk before the next. With V(off), they wait in memory for the kernel.
        type: str
        choices: ['on', 'off']
        required: true
  user:
    description: As whom gfix attaches.
    type: str
    default: SYSDBA
  password:
    description:
      - The password of O(user), for databases whose owner cannot change them without a server.
      - It is handed to gfix in its environment, never on a command line.
      - gfix logs in by Srp alone. A user that was created with the plugin C(Legacy_UserManager) alone cannot log in.
    type: str
  server:
    description: The server that does it then, as C(HOST) or C(HOST/PORT).
    type: str
    default: localhost
  state:
    description: >-
      V(released) restores, at once, what each database had before the first change, if it is still the same database.
requirements:
  - Root. gfix of Firebird 3, 4 or 5; setpriv, cat, grep, stat, uname and getent.
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Forced writes on for one database, and for all in a directory
  durable.dbhost.firebird_config:
    targets:
      - database: /srv/firebird/shop.fdb
        forced_writes: 'on'
      - directory: /var/lib/firebird/3.0/data
        forced_writes: 'on'
"""

RETURN = r"""
changes:
  description: What was changed, or in check mode would be.
  returned: always
  type: list
  elements: dict
  contains:
    target:
      description: The database.
      type: str
      returned: always
    setting:
      description: V(forced_writes), or V(originals) where release only forgets what was.
      type: str
      returned: always
    when:
      description: V(persisted).
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
from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird import apply as layer


def main() -> None:
    """Run the module."""
    run(layer)


if __name__ == "__main__":
    main()
