# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentence for each cause that engine facts give for an unknown value (facts/engine_causes.py). Pure.

Facts have the cause and its values. The controller writes the sentence, and puts each text of a host in quotes unless it can
only be a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ..facts.classes import EnginesFacts
from ..host.printable import name, quote
from ..storage import causes as of_storage

#: Cause -> what is wrong, with the names of values in braces.
SAYS: dict[str, str] = {
    **of_storage.SAYS,
    # What starts and stops a server.
    "patroni_unread": "Patroni runs, and its configuration cannot be read: {error}",
    "patroni_without_file": "Patroni runs, and its command line names no configuration file",
    "maybe_pacemaker": "Pacemaker runs here, and it is unknown whether this is one of its resources",
    "manager_not_queried": "systemd could not be queried for its unit",
    "systemd_of_user": "a user's own systemd runs it, which was not queried",
    "other_manager": "it is managed by {manager}: its unit does not decide it",
    "no_unit": "systemd does not know {unit}",
    # Processes.
    "program_unread": "it calls itself {process}, and what it runs cannot be read: {error}",
    "other_program": "it calls itself {process}, and runs {path}",
    "no_instance": "it runs {path}, and belongs to no instance of {engine} that was found",
    "not_listed": "it looks like an engine, as processes of {users} users more do, which are not listed",
    "and_more": "{why}; {number} more of {user} are as this one",
    "too_many_servers": "more than {most} servers run here, and this one was not examined",
    "search_failed": "the search for its instances failed: {error}",
    "search_failed.stopped": "the search for stopped instances failed: {error}",
    "too_large": "{process}: observed an answer of {used} bytes, expected at most {left}",
    "too_long": "observed a text of {length} characters, expected a path of at most {most}: {text}",
    "no_start_directory": "{path}: the directory in which it was started is unknown",
    # The next start.
    "undocumented_program": "{unit} starts {program}, and what that gives to the server is unknown",
    "script": "only root's script decides the arguments of its next start",
    "script_of_user": "only a user's script decides the arguments of its next start",
    "next_start_unread": "what other components set at its next start is unknown: {why}",
    "may_set": "{place} may set {setting} after the server's own files",
    "writes_file": "{place} writes {path} before the next start",
    "changes_file": "{place} changes {path} at the next boot",
    "runs_procedure": "{place} runs a procedure, which may set it and is not read",
    "events": "{number} of its events name such a setting ({place})",
    "source_unread": "what {text} sets is unknown: {why}",
    "changed_since": "what it read is unknown until it is restarted: {text}",
    "changed_quadlet": "{path} changed since {unit} started: its next start creates another container",
    "disables_fsync": "{place}: {text} makes fsync do nothing",
    "other_files": "{place} gives the server other files at {path} than the host has there",
    "other_view": "{path}: the process has another file there, in its own mount namespace",
    "not_running": "it does not run, and the location of its data is unknown: {why}",
    "unit_without_place": "it does not run, and its unit does not name its configuration",
    "arguments_unread": "whether the file is what runs is unknown: {why}",
    "encrypted_settings": "the file may not be what runs: {path} takes precedence, and is encrypted",
    "set_by_arguments": "the file may not be what runs: the command line takes precedence, and has {setting}",
    # Servers.
    "stopped": "it does not run",
    "not_queried": "the server was not queried",
    "in_container": "it runs in a container, or with a separate root directory, and is not queried from outside",
    "no_data_directory": "its data directory is unknown",
    "other_config": "the server reads {config}, and its command line names {named}",
    "no_setting": "this version has no {setting}",
    "set_for_login": "{setting} is set for the role or database of the login, which hides the server's own value",
    "files_unknown": "its files are unknown",
    "no_version": "it names no version",
    "value_unknown": "{setting} is unknown",
    "value_malformed": "{setting}: {error}",
    "not_flushed": "what was written while it was off has not been flushed to the disk",
    "no_database_open": "none of its databases' files is open",
    "no_log_open": "none of its transaction logs is open",
    "open_flags": "the flags with which {path} is open are unknown on this machine",
    "opened_as": "{path} is open {opened}",
    "old_log": "it is older than the running server, which logs elsewhere",
    "no_log": "there is no such log: the server writes it at its start",
    "no_config": "there is no {file} in {paths}",
    "defaults": "none of {paths} is there: it runs with its defaults",
    "never_queried": "it is set for each database, and was not queried: SELECT name, delayed_durability_desc FROM sys.databases",
    "databases_hidden": "the login cannot see all databases: it lacks VIEW ANY DATABASE",
    "redo_log": "the redo log has it: only the running server reports it",
    "shown_by_none": "no variable shows it: the overrides list it if it is given",
}
#: Cause -> what an administrator does about it; others have the fix of their finding.
FIX: dict[str, str] = {
    **of_storage.FIX,
    "too_large": "stop it, or make its configuration smaller, then run again",
    "changed_quadlet": "restart {unit} when its clients can wait, then run again",
    "not_flushed": "run again",
    "undocumented_program": "start it, then run again: the arguments of a running server are read",
    "disables_fsync": "remove {text} from {place}, then restart the server",
    "other_files": "put the server's files at {path} on the host and remove the setting from the unit, then run again",
    "databases_hidden": "grant VIEW ANY DATABASE to the login and revoke each DENY of it, then run again",
}
SENTENCES = of_storage.Sentences(SAYS, FIX)
#: Texts in which a reader may take anything for our own words. Other texts are quoted where they are shown.
_NAMES = ("value", "source", "by", "from", "running", "persisted", "scope", "setting")


def explained(engines: EnginesFacts) -> EnginesFacts:
    """Return engine facts with the sentences of their causes, and texts that are fit for messages."""
    return cast(
        "EnginesFacts",
        {
            **engines,
            "unattributed": [_texts(row, "why") for row in engines["unattributed"]],
            "engines": [of_instance(instance) for instance in engines["engines"]],
        },
    )


def text(row: Mapping[str, Any], key: str = "reason") -> str:
    """Return why a value of a row is unknown: the sentences of its causes, then an error in quotes; '' for nothing."""
    found = [each.reason for each in _of_row(row)]
    return "; ".join([*found, *([quote(row[key])] if row.get(key) else [])])


def fix(row: Mapping[str, Any]) -> str | None:
    """Return what an administrator does about the causes of an unknown value, None without an entry in FIX."""
    return ", and ".join(dict.fromkeys(each.fix for each in _of_row(row) if each.fix)) or None


def _of_row(row: Mapping[str, Any]) -> list[of_storage.Explained]:
    rows = [row] if "cause" in row else row.get("causes", ())
    return [SENTENCES.explain(each["cause"], each["parameters"]) for each in rows]


def of_instance(instance: Mapping[str, Any]) -> dict[str, Any]:
    """Return an instance of engine facts as `explained` has it."""
    found = {**instance, "version": name(instance["version"])}
    for field in ("settings", "evidence"):
        # Evidence that no check of a response covers may be malformed: it is left out.
        found[field] = {key: _texts(row) for key, row in instance[field].items() if isinstance(row, dict)}
    for field in ("overrides", "databases"):
        if field in instance:
            found[field] = [_texts(row) for row in instance[field]]
    return found


def _texts(row: Mapping[str, Any], key: str = "reason") -> dict[str, Any]:
    """Return a row with its reason as a sentence, and what could be taken for more than a name in quotes."""
    found = {**row, **{field: name(row[field]) for field in _NAMES if isinstance(row.get(field), str)}}
    if key in row or "causes" in row:
        found[key] = text(row, key) or None
    return found
