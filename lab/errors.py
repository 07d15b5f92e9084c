# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The exceptions of this package."""


class LabError(Exception):
    """Something the user can act on; its text says what was seen and what to do."""


class PortTakenError(LabError):
    """Another process has the TCP port of a machine's ssh meanwhile."""
