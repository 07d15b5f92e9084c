#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Detect database engines, and which files they have open, on which devices, opened how."""

from __future__ import annotations

DOCUMENTATION = r"""
module: engine_facts
short_description: Detect database engines and the files that they have open
version_added: 1.0.0
description:
  - Finds SQL Server, FairCom DB, Firebird, PostgreSQL, MariaDB and MySQL, running in any mount namespace or container, and
    those that are installed and stopped.
  - Reads from C(/proc), without logging in to any engine, which files each has open for writing and how they were opened.
  - What cannot be read is the word V(unknown), with its reason under RV(ansible_facts.durable_engines.engines[].evidence);
    it never counts as safe.
  - A path on a disk that does not answer costs its time limit of ten seconds, and the rest is still read.
  - Changes nothing and writes nothing on the host. C(mssql.conf) is flushed to its disk before it counts as persisted.
extends_documentation_fragment:
  - durable.dbhost.attributes
  - durable.dbhost.attributes.facts
options:
  databases:
    description:
      - The databases that the inventory names, a list of dictionaries with C(engine) and C(paths).
      - Files of Firebird's are searched for in and below the paths of its entries, and wherever its configuration leads.
requirements:
  - Root, to see other users' processes. cat, date, grep, stat and uname; systemctl for units.
  - Of PostgreSQL, psql, setpriv and getent, and that a server lets its own operating system user in through its unix socket.
  - Of MariaDB and MySQL, their client (mariadb or mysql), and that a server lets root in through its unix socket; else
    what runs is unknown. Their server program is queried with C(--help --verbose), by setpriv and env, as the server's user.
  - Of Firebird, setpriv, and gstat for databases of a structure that is unknown here.
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Ask the processes
  durable.dbhost.engine_facts:

- name: Find Firebird's databases in a directory of ours, too
  durable.dbhost.engine_facts:
    databases:
      - engine: firebird
        paths: [/srv/firebird]

- name: Show which files are open, on which devices, and how
  ansible.builtin.debug:
    msg: "{{ ansible_facts.durable_engines.engines | map(attribute='files') | flatten }}"
"""

RETURN = r"""
ansible_facts:
  description: The facts, under one name.
  returned: always
  type: dict
  contains:
    durable_engines:
      description: Database engines. Texts, never booleans, if a value can be unknown.
      type: dict
      returned: always
      contains:
        boot_id:
          description: The kernel's id of this boot.
          type: str
          returned: always
        time:
          description: When the facts were taken, by the host's clock, in UTC and ISO 8601.
          type: str
          returned: always
          sample: '2026-01-31T12:00:00Z'
        paths:
          description: Directories of data and logs of all instances, as this host sees them.
          type: list
          elements: str
          returned: always
        stop_timeouts:
          description: How long a clean stop of each instance may take, as M(durable.dbhost.power_facts) takes it.
          type: list
          elements: dict
          returned: always
          contains:
            engine:
              description: As in RV(ansible_facts.durable_engines.engines[].engine).
              type: str
              returned: always
            unit:
              description: As in RV(ansible_facts.durable_engines.engines[].unit).
              type: str
              returned: always
            seconds:
              description: As in RV(ansible_facts.durable_engines.engines[].stop_timeout).
              type: str
              returned: always
        writers:
          description: Processes of no engine that have files open for writing, a row for each name and device, at most 200.
          type: list
          elements: dict
          returned: always
          contains:
            pid:
              description: One such process.
              type: int
              returned: always
            name:
              description: What it calls itself.
              type: str
              returned: always
            device:
              description: The device's numbers, as in RV(ansible_facts.durable_engines.engines[].files[].device).
              type: str
              returned: always
            example:
              description: One such file.
              type: str
              returned: always
        unattributed:
          description:
            - Processes that look like an engine and belong to no instance that was found.
            - As long as there is one, the servers of this host are unknown.
            - Of very many of one user some are listed, and the last one's reason says how many more there are.
          type: list
          elements: dict
          returned: always
          contains:
            pid:
              description: Its process id, or null if the search for an engine failed.
              type: int
              returned: always
            name:
              description: What the process calls itself, or the engine.
              type: str
              returned: always
            why:
              description:
                - >-
                  The error for which it could not be attributed, or null: C(causes) has others.
              type: str
              returned: always
            causes:
              description:
                - >-
                  Why: C(cause), a keyword of a closed list, and its C(parameters).
              type: list
              elements: dict
              returned: if a value is unknown for causes that the collection knows
              contains:
                cause:
                  description: A keyword of the collection's closed list. The report has the sentence.
                  type: str
                  returned: always
                parameters:
                  description: The values of the sentence, by name.
                  type: dict
                  returned: always
        engines:
          description: One entry for each instance, those that run first.
          type: list
          elements: dict
          returned: always
          contains:
            engine:
              description: V(mssql), V(faircom), V(firebird), V(postgresql) or V(mariadb), which MySQL is as well.
              type: str
              returned: always
            name:
              description:
                - The instance's name, which stays. V(15/main) of a cluster of Debian; V(mssql), V(mariadb), V(firebird) in the
                  engine's usual place; otherwise its data directory, installation, configuration or unit.
                - In a container it begins with the data directory on the host, or the container's name, or else its id.
              type: str
              returned: always
              sample: 15/main
            state:
              description: V(running) or V(stopped).
              type: str
              returned: always
            pids:
              description: Its processes, the main one first. Empty when it is stopped.
              type: list
              elements: int
              returned: always
            version:
              description: Its version, or V(unknown).
              type: str
              returned: always
            config:
              description: The path of its main configuration file as the host sees it, or null.
              type: str
              returned: always
            unit:
              description: Its systemd service, or null.
              type: str
              returned: always
            managed_by:
              description:
                - Who starts and stops it. V(systemd), V(pacemaker), V(patroni), V(container), V(none) or V(unknown).
                - V(galera) or V(group_replication) for a node of such a cluster, which is set and never restarted.
                - V(systemd) only where its unit is the engine's own, or has started it, and no other server is in it.
                - Where Pacemaker runs, and it is unknown whether the instance is one of its resources, it is V(unknown).
              type: str
              returned: always
            namespace:
              description: V(host), V(private) (a separate mount namespace), V(container) or V(unknown).
              type: str
              returned: always
            root:
              description:
                - The directory below which its files are, as V(/proc/4711/root), if the host has other files at their paths;
                  else empty.
              type: str
              returned: always
            starts_at_boot:
              description:
                - Whether the next boot starts its unit, V(yes), V(no) or V(unknown).
                - V(no) is one that is masked, or disabled, does not run, and is started by no other unit and no script at boot.
              type: str
              returned: always
            stop_timeout:
              description: Seconds that a clean stop may take before systemd kills it, V(infinity) or V(unknown).
              type: str
              returned: always
              sample: '1800'
            preloads:
              description:
                - Libraries in its memory that make fsync do nothing.
                - C(next_preloads) in RV(ansible_facts.durable_engines.engines[].evidence) has those that its next start loads,
                  with the file and line, if there are any.
              type: list
              elements: str
              returned: always
            directories:
              description: Its configured places of data and logs, links followed, as the host sees them.
              type: list
              elements: str
              returned: always
            temporary:
              description:
                - Directories in which nothing but its temporary files lies, links followed, as the host sees them.
                - Of SQL Server tempdb's, by the names that setup gives them; of PostgreSQL tablespaces with nothing but
                  temporary relations and sorts, and C(stats_temp_directory); of MariaDB and MySQL C(tmpdir), C(innodb_tmpdir)
                  and the directory of C(innodb_temp_data_file_path). Such files are not among
                  RV(ansible_facts.durable_engines.engines[].files).
              type: list
              elements: str
              returned: always
            requires_mounts:
              description:
                - The mount units that its own unit requires and waits for, V([]) without a unit; or V(unknown) where the unit's
                  file has changed since systemd read it.
              type: raw
              returned: always
            writes:
              description: The files that a run may write to set its settings, as the host sees them; not databases of Firebird.
              type: list
              elements: str
              returned: always
            files:
              description:
                - The files that it has open for writing, one entry for each directory, device and way of opening.
                - Of an instance with very many processes only some are read;
                  RV(ansible_facts.durable_engines.engines[].evidence) says so.
              type: list
              elements: dict
              returned: always
              contains:
                directory:
                  description: The directory as the instance sees it.
                  type: str
                  returned: always
                device:
                  description: The device in C(/proc/PID/mountinfo), or V(unknown).
                  type: str
                  returned: always
                  sample: '8:17'
                opened:
                  description:
                    - V(buffered) or V(direct) (O_DIRECT), then V(dsync) (O_DSYNC) or V(sync) (O_SYNC) if it was requested.
                    - V(unknown) on an architecture without a rule for its flags.
                  type: str
                  returned: always
                  sample: direct dsync
                count:
                  description: How many files.
                  type: int
                  returned: always
                example:
                  description: One of them.
                  type: str
                  returned: always
            settings:
              description:
                - Its settings by name.
                - C(from) - The file and line that wins at the next start, of another component too, or null.
                - C(by) - The component that sets it last, V(durable.dbhost), V(server) for the server's own files and defaults,
                  or another one; null if that is unknown.
                - C(fix) - What to remove there, as C(held).
                - >-
                  C(refused) - The reason: C(cause), a keyword of a closed list, and its C(parameters). C(held) is then its fix.
                - C(owner_of) - The name of that file in a plan.
                - C(owner) - Its C(user:group) before.
                - C(owner_wanted) - Its C(user:group) after.
                - >-
                  C(causes) - Why: C(cause), a keyword of a closed list, and its C(parameters).
                - C(running) - The value in force, V(stopped) without a process, or V(unknown).
                - C(persisted) - The value after the next start, which a command of a unit, an C(init_file), a script at boot or
                  C(tmpfiles.d) may set last.
                - C(source) - Where it was read.
                - >-
                  C(reason) - The error for which a value is V(unknown), or null: C(causes) has others.
                - >-
                  C(held) - How to remove the setting that overrides every file that a run writes: C(fix), a keyword of a closed
                  list, and its C(parameters); or null.
                - C(permission) - The value of C(durable_allow) with which a run removes that itself, or null.
              type: dict
              returned: always
            overrides:
              description: Settings of roles, users or databases.
              type: list
              elements: dict
              returned: always
              contains:
                scope:
                  description: What it applies to.
                  type: str
                  returned: always
                setting:
                  description: The setting's name.
                  type: str
                  returned: always
                value:
                  description: The value there.
                  type: str
                  returned: always
                source:
                  description: The place of the setting.
                  type: str
                  returned: always
                cause:
                  description:
                    - V(role) if a role or database has it, V(role_of_primary) if only the primary of this replica can remove
                      it, V(session) if older sessions have it, V(option) if the server is started with it.
                  type: str
                  returned: always
                role:
                  description: The role or user, or null.
                  type: str
                  returned: always
                database:
                  description: The database, or null.
                  type: str
                  returned: always
                permission:
                  description: The value of C(durable_allow) with which a run removes it, or null.
                  type: str
                  returned: always
            pending_restart:
              description: Names of settings that a restart would put into effect.
              type: list
              elements: str
              returned: always
            evidence:
              description:
                - For contested values their C(value), C(source) and C(reason), the error for which a value is unknown. In its
                  place C(cause) is a keyword of a closed list, with C(parameters).
                - The value of C(files) is V(complete), V(partial) or V(unknown).
                - The value of C(write_through) is V(yes), V(no) or V(unknown), whether what must be written through is open so.
                - The value of C(recovery), of FairCom DB, is V(yes), V(no) or V(unknown), whether its last start had to
                  recover; C(damage) is there where its log reports a recovery that failed.
                - The value of C(start_arguments) is V(unknown) if an undocumented script, its C(source), alone decides
                  arguments of the next start. Its cause is V(script), or V(script_of_user), which is not read.
                - By a setting's name, V(absent) says that this version shows no such setting.
              type: dict
              returned: always
            flavour:
              description: V(mariadb), V(mysql) or V(unknown).
              type: str
              returned: for MariaDB and MySQL
            databases:
              description:
                - The databases that it has open, that its configuration names, and those in the directories that it or the
                  inventory names.
                - Also databases in the same directories as these, and what may be one and could not be read.
              type: list
              elements: dict
              returned: for Firebird
              contains:
                path:
                  description: The database's first file as the host sees it, or what could not be read.
                  type: str
                  returned: always
                forced_writes:
                  description: What the database's header says. V(on), V(off) or V(unknown).
                  type: str
                  returned: always
                running:
                  description:
                    - What the processes do that have it open. V(on) where each write goes to the disk at once, V(off),
                      V(closed) if no process has it open, or V(unknown).
                    - With Classic and SuperClassic, processes that have it open go on as they were when the header changes.
                  type: str
                  returned: always
                in_use:
                  description: Whether a process has it open. V(yes), V(no) or V(unknown).
                  type: str
                  returned: always
                mode:
                  description:
                    - V(read_write), V(read_only), V(shutdown) if it refuses logins, V(backup) if changes go to another file for
                      a while, or V(unknown).
                  type: str
                  returned: always
                owner:
                  description: The number of the user who owns the file, or V(unknown).
                  type: str
                  returned: always
                reason:
                  description:
                    - >-
                      The error for which one of the values is V(unknown), or null: C(causes) has others.
                  type: str
                  returned: always
                causes:
                  description:
                    - >-
                      Why: C(cause), a keyword of a closed list, and its C(parameters).
                  type: list
                  elements: dict
                  returned: if a value is unknown for causes that the collection knows
                  contains:
                    cause:
                      description: A keyword of the collection's closed list. The report has the sentence.
                      type: str
                      returned: always
                    parameters:
                      description: The values of the sentence, by name.
                      type: dict
                      returned: always
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.host.reply import fail, observed
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Unobservable, expect_root


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={"databases": {"type": "raw"}}, supports_check_mode=True)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    host = Host()
    try:
        expect_root(host)
        facts = collect(host, now, module.params["databases"])
    except Unobservable as error:
        fail(module, f"This machine cannot be observed: {error}")
    observed(module, "durable_engines", facts)


if __name__ == "__main__":
    main()
