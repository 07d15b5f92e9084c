#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Set the durability of MariaDB and MySQL servers, now and at each start."""

from __future__ import annotations

DOCUMENTATION = r"""
module: mariadb_config
short_description: Set the durability of MariaDB and MySQL servers, now and at each start
version_added: 1.0.0
description:
  - Changes what a running server takes, flushes what it had not flushed until then, and keeps the settings in an option
    separate file, C(zz-durable-dbhost.cnf), in the last directory of option files that the server includes.
  - Fails before it changes anything where something else would have the last word, such as the command line, SET PERSIST of
    MySQL, or a later file, and says where that stands.
  - Logs in as root over the server's socket, if the server's process listens there. If that is refused, with the user and
    password of C(/root/.my.cnf), if the server is a service of the system whose program only root may change, and if
    MariaDB's client is 10.6.21, 10.11.11, 11.4.5, 11.8 or later. It then refuses each authentication that reveals the password.
    No option file's content is shown.
  - Writes no file for a server with a group suffix, with separate option files, of a person (users from 1000 on), or that no
    service of the system starts. The module fails for that server and reports the file and the lines to add.
  - A server in a container is left alone.
extends_documentation_fragment:
  - durable.dbhost.attributes.layer
  - durable.dbhost.attributes.restart
options:
  targets:
    description:
      - The servers.
    suboptions:
      instance:
        description:
          - The server's name, as RV(durable.dbhost.engine_facts#module:ansible_facts.durable_engines.engines[].name) has it.
        type: str
        required: true
      settings:
        description:
          - Names of settings and their expected values, of C(innodb_flush_log_at_trx_commit), C(sync_binlog),
            C(innodb_doublewrite), C(innodb_flush_method) and, of MySQL 8.0.21 and later, C(innodb_redo_log_enabled), which
            can only be V(ON).
          - A running server's word with which commits survive as well is left as it is.
        type: dict
        required: true
  state:
    description:
      - V(released) removes the option files; the servers keep their settings until they start again.
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Every commit on disk before it is acknowledged
  durable.dbhost.mariadb_config:
    targets:
      - instance: mariadb
        settings:
          innodb_flush_log_at_trx_commit: 1
          sync_binlog: 1
          innodb_doublewrite: "ON"
"""

RETURN = r"""
changes:
  description: What was changed, or in check mode would be.
  returned: always
  type: list
  elements: dict
  contains:
    target:
      description: The server's name, or the file that was removed.
      type: str
      returned: always
    setting:
      description: The setting, or V(drop_in) when released.
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
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import apply as layer


def main() -> None:
    """Run the module."""
    run(layer)


if __name__ == "__main__":
    main()
