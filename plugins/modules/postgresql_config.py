#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Set the durability of PostgreSQL clusters, now and at each start."""

from __future__ import annotations

DOCUMENTATION = r"""
module: postgresql_config
short_description: Set the durability of PostgreSQL clusters, now and at each start
version_added: 1.0.0
description:
  - Writes a separate file that the server reads last, C(zz-durable-dbhost.conf), reloads the configuration, and reads the
    settings back from the server.
  - The file goes into the last C(include_dir) of C(postgresql.conf), else next to it. If it would not be read last, a
    marked line at the end of C(postgresql.conf) includes it.
  - What ALTER SYSTEM has set overrides that file. With O(alter_system) it is reset (ALTER SYSTEM RESET), what
    it was is stored, and V(released) sets it again, unless it was set again since.
  - Fails, with the cluster as it was, if something still overrides that file (ALTER SYSTEM without O(alter_system), or
    the command line), if the server cannot be queried, and if another manager owns the settings (Patroni, a container).
    Other clusters are still set.
  - Where C(fsync) or C(full_page_writes) was off and comes on, a checkpoint is made, and for C(fsync) the data directory is
    flushed by C(initdb --sync-only). Until both are done the setting counts as V(unflushed), also for a later run.
  - A reload also takes what others have written into the configuration and not loaded yet.
  - A setting of a role or a database overrides the file. Those of O(targets[].overrides) are removed (ALTER ROLE ... RESET),
    with O(alter_system), and stored and restored as above. Sessions that are connected keep what they have until they end;
    M(durable.dbhost.engine_facts) reports them. A setting of a session is left alone.
extends_documentation_fragment:
  - durable.dbhost.attributes.layer
  - durable.dbhost.attributes.restart
requirements:
  - Root. PostgreSQL 10 or later with its psql; initdb where fsync was off. setpriv and getent.
  - A running server lets its own operating system user in through its unix socket, as a superuser, into the database postgres.
options:
  targets:
    description:
      - The clusters.
    suboptions:
      instance:
        description:
          - The cluster's name as RV(durable.dbhost.engine_facts#module:ansible_facts.durable_engines.engines[].name) says it,
            such as V(15/main) on Debian, or its data directory.
        type: str
        required: true
      settings:
        description: The settings; without a value one is left alone.
        type: dict
        required: true
        suboptions:
          fsync:
            description: Whether the server asks that its files reach the disk.
            type: str
            choices: ['on', 'off']
          full_page_writes:
            description: Whether the log holds whole pages, to repair those that a power cut left half written.
            type: str
            choices: ['on', 'off']
          synchronous_commit:
            description: What a commit waits for.
            type: str
            choices: ['on', 'off', local, remote_write, remote_apply]
          wal_sync_method:
            description: How the log is brought to the disk.
            type: str
            choices: [fdatasync, fsync, open_datasync, open_sync]
          data_sync_retry:
            description: Whether the server goes on after a failed fsync. A running server takes it at its next start.
            type: str
            choices: ['on', 'off']
      overrides:
        description: Settings of roles and databases that are to go, as the facts tell of them.
        type: list
        elements: dict
        default: []
        suboptions:
          setting:
            description: The setting.
            type: str
            required: true
            choices: [fsync, full_page_writes, synchronous_commit, wal_sync_method, data_sync_retry]
          role:
            description: The role; without one, that of all roles.
            type: str
          database:
            description: The database; without one, that of all databases.
            type: str
  alter_system:
    description: >-
      Whether to reset what ALTER SYSTEM has set, and the O(targets[].overrides).
    type: bool
    default: false
  state:
    description: >-
      V(released) takes the files and lines away that this module has written. A running server keeps its settings until it
      reads its files again. What was reset with O(alter_system) is set again, which takes a server that runs.
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Commits of this cluster survive a power cut
  durable.dbhost.postgresql_config:
    targets:
      - instance: 15/main
        settings:
          fsync: 'on'
          full_page_writes: 'on'
          synchronous_commit: 'on'
"""

RETURN = r"""
changes:
  description: What was changed, or in check mode would be.
  returned: always
  type: list
  elements: dict
  contains:
    target:
      description: The cluster's name, with the role or database whose setting it is, or the file that was changed or removed.
      type: str
      returned: always
    setting:
      description: The setting, or V(drop_in) or V(include) when released.
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
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import apply as layer


def main() -> None:
    """Run the module."""
    run(layer)


if __name__ == "__main__":
    main()
