#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make services of database servers require the mounts of their files."""

from __future__ import annotations

DOCUMENTATION = r"""
module: unit_mounts
short_description: Make services of database servers require the mounts of their files
version_added: 1.0.0
description:
  - Writes a drop-in with C(RequiresMountsFor=) over the unit of a service, so that its next start waits for the mounts of
    its files, and fails without them. A mount with C(nofail) or C(noauto) is otherwise not waited for.
  - Has systemd read it (C(systemctl daemon-reload)) and reads back what it requires then. No service is restarted.
extends_documentation_fragment:
  - durable.dbhost.attributes.layer
options:
  targets:
    description:
      - The services.
    suboptions:
      unit:
        description: The service, with its ending; of a template the instance.
        type: str
        required: true
      mounts:
        description: All mount points that it is to require.
        type: list
        elements: str
        required: true
  state:
    description: V(released) removes all drop-ins of this module, with effect at once.
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: PostgreSQL waits for its disk
  durable.dbhost.unit_mounts:
    targets:
      - unit: postgresql@15-main.service
        mounts: [/srv/pgdata]
"""

RETURN = r"""
changes:
  description: What was changed, or in check mode would be.
  returned: always
  type: list
  elements: dict
  contains:
    target:
      description: The service, or the drop-in that was removed.
      type: str
      returned: always
    setting:
      description: V(requires_mounts), or V(drop_in) when released.
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
from ansible_collections.durable.dbhost.plugins.module_utils.engines import unit_mounts as layer


def main() -> None:
    """Run the module."""
    run(layer)


if __name__ == "__main__":
    main()
