# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of findings about any engine. Those of one engine are in its rules.py. Data."""

from __future__ import annotations

from ..rows import FIX_READ_ERROR, Kind

PRELOAD = Kind(
    "risk.preload",
    "at_risk",
    "commits of {engine} can be lost: {library} is loaded into it, and makes fsync do nothing",
    "remove {library} from LD_PRELOAD of its unit and from /etc/ld.so.preload, then restart it",
)
SETTING = Kind(
    "risk.engine_setting",
    "at_risk",
    "commits of {engine} can be lost: {setting} is {value} ({target})",
    "{cure}",
)

UNATTRIBUTED = Kind(
    "unknown.process",
    "unknown",
    "{process} may be a database server, and belongs to no known server: {cause}",
    "stop {process}, or start the server by its own unit, then run again",
)
ENGINES = Kind(
    "unknown.engines",
    "unknown",
    "whether {engine} runs here is unknown: {cause}",
    "correct what the reason names, then run again",
)
OBSERVATION = Kind("unknown.engine", "unknown", "{engine}: {cause}", FIX_READ_ERROR)
NO_SETTINGS = Kind(
    "unknown.engine_settings",
    "unknown",
    "{engine}: its settings are unknown",
    "make its configuration readable for root, or add {engine} to durable_ignore",
)
STATE = Kind("unknown.engine_state", "unknown", "{engine}: whether it runs is unknown", "see {command}")
#: Field of an instance -> the finding if it is unknown.
FIELDS = {
    field: Kind(f"unknown.{field}", "unknown", f"{{engine}}: {what} is unknown: {{cause}}", FIX_READ_ERROR)
    for field, what in {
        "directories": "the location of its files",
        "files": "the list of its open files",
        "namespace": "its mount namespace",
        "preloads": "whether a library disables its flushes",
    }.items()
}
OLD_BUILD = Kind(
    "unknown.old_build",
    "unknown",
    "{engine}: observed version {version}, expected {first} or later: {before}",
    "{update}",
)
BUILD = Kind(
    "unknown.build",
    "unknown",
    "{engine}: its version is unknown ({cause}), expected {first} or later: {before}",
    "{see}",
)
OPEN_FLAGS = Kind(
    "unknown.open_flags",
    "unknown",
    "{engine}: {opened}, and whether they are is unknown: {cause}",
    "{look}",
)
CONTAINER_VALUES = Kind(
    "unknown.container_values",
    "unknown",
    "{engine}: {settings} cannot be read from outside its container",
    "compare them in the container with the profile, then accept this finding in durable_accept until a date",
)
START_SCRIPT = Kind(
    "unknown.start_script",
    "unknown",
    "{engine}: {script} alone decides the arguments of its next start",
    "compare {script} with the server's arguments now (ps -ww -p {pid}), then accept this finding in durable_accept until a date",
)
PLACE = Kind("unknown.place", "unknown", "{engine}: the location of its files is unknown", "{cure}")
PLACE_UNREAD = Kind("unknown.place_unread", "unknown", "{engine}: {cause}", FIX_READ_ERROR)
NOT_MANAGED = Kind(
    "unknown.not_managed",
    "unknown",
    "{engine} has files on {mount} ({example}), which is not managed",
    "list it in durable_mounts",
)
NOT_FOUND = Kind(
    "unknown.not_found",
    "unknown",
    "durable_databases names {name}, and none was found, so its settings are unknown",
    "start {name}, or delete the entry from durable_databases",
)
NOT_THERE = Kind(
    "unknown.not_there",
    "unknown",
    "durable_databases names {name} on {paths}, and no {engine} that was found has anything there: it is unknown how it"
    " commits",
    "start it, correct the paths, or list what holds no server in durable_mounts",
)

NOT_ASKED = Kind(
    "note.engines_not_asked",
    "note",
    "no database engines were searched for: this verdict does not cover them",
)
TORN_PAGE = Kind(
    "note.torn_page",
    "note",
    "{engine}: a power cut can tear a page of more than {size} bytes, the physical sector of {disk}, and no second copy of a"
    " page repairs it",
    "{cure}",
)
NO_UNIT = Kind(
    "note.no_unit",
    "note",
    "{engine}: it has files on {mounts}, which the boot goes on without, and no unit of systemd's starts it (managed by"
    " {manager})",
    "make what starts it wait for {mounts}",
)

#: The row about libraries that make fsync do nothing.
PRELOADS = "preloads"

KINDS = (
    *(
        PRELOAD,
        SETTING,
        UNATTRIBUTED,
        ENGINES,
        OBSERVATION,
        NO_SETTINGS,
        STATE,
        *FIELDS.values(),
        OLD_BUILD,
        BUILD,
        OPEN_FLAGS,
        START_SCRIPT,
        CONTAINER_VALUES,
    ),
    *(PLACE, PLACE_UNREAD, NOT_MANAGED, NOT_FOUND, NOT_THERE, NOT_ASKED, NO_UNIT, TORN_PAGE),
)
