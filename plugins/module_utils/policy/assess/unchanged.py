# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings that a profile leaves unchanged: they are assessed and never changed. Pure."""

from __future__ import annotations

from ... import catalog
from ...profiles import KEEP, Profile
from ...rows import Setting

#: Setting of a row -> the key of a profile that decides it; of engines all settings except those about speed.
_KEYS = {"barrier": "barrier", "data_mode": "data_mode", "write_cache": "write_cache"}


def left(row: Setting, profile: Profile) -> Setting:
    """Return a row; if its profile leaves the setting unchanged, without a change, and `ok` if any value is accepted."""
    key = _key(row)
    if key is None or not profile.keeps(key) or row.verdict in ("ok", "unknown"):
        return row
    if profile.wanted(key) == KEEP:
        why = f"profile {profile.name} keeps {key} as it is"
        return row._replace(verdict="ok", phase=None, why=why, remedy="")
    remedy = f"set {row.setting} to {row.wanted_persisted}, or give {key} a value other than keep in profile {profile.name}"
    return row._replace(phase=None, remedy=remedy)


def _key(row: Setting) -> str | None:
    if catalog.is_engine(row.layer):
        return None if (row.klass, row.phase) == ("performance", "tighten") else "engines"
    return _KEYS.get(row.setting)
