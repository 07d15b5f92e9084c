# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation that the modules share."""

from __future__ import annotations


class ModuleDocFragment:
    """The attributes of every module of this collection."""

    DOCUMENTATION = r"""
options: {}
requirements:
  - Python 3.9 or later on the host; Python 3.11 or later on the controller
attributes:
  check_mode:
    description: Can run in check mode and tell what it would change, without changing it.
    support: full
  diff_mode:
    description: Returns no differences.
    support: none
  platform:
    description: The systems that it runs on.
    support: full
    platforms: linux
"""

    #: Of the modules of layers.
    LAYER = r"""
options: {}
requirements:
  - Python 3.9 or later on the host; Python 3.11 or later on the controller
attributes:
  check_mode:
    description: Can run in check mode and tell what it would change, without changing it.
    support: full
  diff_mode:
    description: Returns what each setting was and is, and the lines of the files that change.
    support: full
  platform:
    description: The systems that it runs on.
    support: full
    platforms: linux
  action_group:
    description: Use C(group/durable.dbhost.layers) in C(module_defaults) to set O(state) for all modules of layers.
    support: full
    membership: [durable.dbhost.layers]
"""

    #: Of the actions that are tasks of one host; beside those of every module.
    ACTION = r"""
options: {}
attributes:
  action:
    description: Runs on the controller as well.
    support: full
  async:
    description: Cannot be run in the background.
    support: none
  bypass_host_loop:
    description: Runs for each host.
    support: none
"""

    #: Of the modules that get the list of databases; in addition to that of every module.
    FACTS = r"""
options: {}
attributes:
  action_group:
    description: Use C(group/durable.dbhost.facts) in C(module_defaults) to name O(databases) once.
    support: full
    membership: [durable.dbhost.facts]
"""
