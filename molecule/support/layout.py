# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The default layout's mounts, and which disk lies below each."""

from __future__ import annotations

TARGETS = {
    "/srv/pgdata": "SATA0001",
    "/srv/fbdata": "SATA0002",
    "/srv/mssql": "SATA0003",
    "/srv/maria": "VIRT0001",
    "/srv/faircom": "VIRT0002",
}
