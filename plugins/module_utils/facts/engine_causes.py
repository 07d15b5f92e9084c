# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The closed list of causes that engine facts give for an unknown value. Data.

A host reports a cause by its keyword, with values; engines/causes.py has the sentence and the fix of each.
"""

from __future__ import annotations

import functools

from . import value_causes

_MANAGERS = {
    "patroni_unread": "error",
    "patroni_without_file": "",
    "maybe_pacemaker": "",
    "manager_not_queried": "",
    "systemd_of_user": "",
    "other_manager": "manager",
    "no_unit": "unit",
}
_PROCESSES = {
    "program_unread": "process error",
    "other_program": "process path",
    "no_instance": "path engine",
    "not_listed": "users",
    "and_more": "why{} number user",
    "too_many_servers": "most",
    "search_failed": "error",
    "search_failed.stopped": "error",
    "too_large": "used process left",
    "no_start_directory": "path",
    "too_long": "text length most",
}
_NEXT_START = {
    "script": "",
    "undocumented_program": "unit program",
    "script_of_user": "",
    "next_start_unread": "why{}",
    "may_set": "place setting",
    "writes_file": "place path",
    "changes_file": "place path",
    "not_flushed": "",
    "runs_procedure": "place",
    "events": "number place",
    "source_unread": "text why{}",
    "changed_since": "text",
    "changed_quadlet": "path unit",
    "not_running": "why{}",
    "unit_without_place": "",
    "arguments_unread": "why{}",
    "encrypted_settings": "path",
    "set_by_arguments": "setting",
    "disables_fsync": "place text",
    "other_files": "place path",
    "other_view": "path",
}
_SERVERS = {
    "stopped": "",
    "not_queried": "",
    "in_container": "",
    "no_data_directory": "",
    "other_config": "config named",
    "no_setting": "setting",
    "set_for_login": "setting",
    "files_unknown": "",
    "no_version": "",
    "value_unknown": "setting",
    "value_malformed": "setting error",
    "no_database_open": "",
    "no_log_open": "",
    "open_flags": "path",
    "opened_as": "path opened",
    "old_log": "",
    "no_log": "",
    "no_config": "file paths[]",
    "defaults": "paths[]",
    "never_queried": "",
    "databases_hidden": "",
    "redo_log": "",
    "shown_by_none": "",
}
#: Cause -> the names of its values, as in value_causes.py, with the causes of storage facts: some are of a next start too.
VALUES: dict[str, tuple[str, ...]] = {
    **value_causes.VALUES,
    **{
        cause: tuple(values.split())
        for causes in (_MANAGERS, _PROCESSES, _NEXT_START, _SERVERS)
        for cause, values in causes.items()
    },
}
#: Whether a mapping is one of these causes, with its values and no others.
is_cause = functools.partial(value_causes.is_cause, known=VALUES)
#: As is_cause, of a cause and its values.
fits = functools.partial(value_causes.fits, known=VALUES)
#: Causes of one value.
MOST = 50


def are_causes(value: object) -> bool:
    """Return whether a value is a list of causes."""
    return isinstance(value, list) and len(value) <= MOST and all(map(is_cause, value))
