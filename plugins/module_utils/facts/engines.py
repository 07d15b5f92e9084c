# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts `durable_engines`: names, types, checks and documentation of each field. Data.

`tools/facts_docs.py` writes RETURN of the module from it; policy/assess/facts_schema.py checks a host's response with it.
"""

# Annotations are evaluated: no `from __future__ import annotations`, no `X | Y` (Python 3.9).

from typing import Annotated, Any, Optional, TypedDict, Union

from .. import catalog
from ..host.observation import UNKNOWN, Evidence
from .schema import (
    ANY,
    DEVICE,
    MAPPING,
    NAME,
    NUMBER,
    ON_OFF_UNKNOWN,
    PATH,
    PATHS,
    TEXT,
    YES_NO_UNKNOWN,
    Sample,
    When,
    each,
    one_of,
    or_none,
    or_unknown,
    pattern,
)

#: What starts and stops an instance.
MANAGERS = (
    *("systemd", "pacemaker", "patroni", "container", "galera", "group_replication", "none"),
    UNKNOWN,
)
_FLAVOURS = (
    *(name for engine in catalog.ENGINES if len(engine.checks) > 1 for name in engine.checks),
    UNKNOWN,
)


class StopTimeout(TypedDict):
    """How long a clean stop of each instance may take, as M(durable.dbhost.power_facts) takes it."""

    engine: Annotated[str, "As in RV(ansible_facts.durable_engines.engines[].engine)."]
    unit: Annotated[Optional[str], "As in RV(ansible_facts.durable_engines.engines[].unit)."]
    seconds: Annotated[str, "As in RV(ansible_facts.durable_engines.engines[].stop_timeout)."]


class Writer(TypedDict):
    """Processes of no engine that have files open for writing, a row for each name and device, at most 200."""

    pid: Annotated[int, ANY, "One such process."]
    name: Annotated[str, TEXT, "What it calls itself."]
    device: Annotated[
        str, DEVICE, "The device's numbers, as in RV(ansible_facts.durable_engines.engines[].files[].device)."
    ]
    example: Annotated[str, TEXT, "One such file."]


class CauseFacts(TypedDict):
    """Why a value is unknown."""

    cause: Annotated[str, "A keyword of the collection's closed list. The report has the sentence."]
    parameters: Annotated[dict[str, Any], "The values of the sentence, by name."]


class _Caused(TypedDict, total=False):
    causes: Annotated[
        list[CauseFacts],
        When("if a value is unknown for causes that the collection knows"),
        "Why: C(cause), a keyword of a closed list, and its C(parameters).",
    ]


class ReasonFacts(_Caused):
    """Why a value of a row is unknown."""

    reason: Optional[str]


class Stray(_Caused):
    """Processes that look like an engine and belong to no instance that was found."""

    pid: Annotated[Optional[int], ANY, "Its process id, or null if the search for an engine failed."]
    name: Annotated[str, TEXT, "What the process calls itself, or the engine."]
    why: Annotated[
        Optional[str],
        or_none(TEXT),
        "The error for which it could not be attributed, or null: C(causes) has others.",
    ]


class OpenedFacts(TypedDict):
    """The files that it has open for writing, one entry for each directory, device and way of opening."""

    directory: Annotated[str, PATH, "The directory as the instance sees it."]
    device: Annotated[str, DEVICE, "The device in C(/proc/PID/mountinfo), or V(unknown).", Sample("8:17")]
    opened: Annotated[
        str,
        pattern(r"(buffered|direct)( d?sync)?", f"how it is open, or {UNKNOWN}", UNKNOWN),
        "V(buffered) or V(direct) (O_DIRECT), then V(dsync) (O_DSYNC) or V(sync) (O_SYNC) if it was "
        "requested.",
        "V(unknown) on an architecture without a rule for its flags.",
        Sample("direct dsync"),
    ]
    count: Annotated[int, NUMBER, "How many files."]
    example: Annotated[str, "One of them."]


class DatabaseFacts(_Caused):
    """The databases that it has open, that its configuration names, and those in the directories that it or the
    inventory names.

    Also databases in the same directories as these, and what may be one and could not be read.
    """

    path: Annotated[str, NAME, "The database's first file as the host sees it, or what could not be read."]
    forced_writes: Annotated[
        str, ON_OFF_UNKNOWN, "What the database's header says. V(on), V(off) or V(unknown)."
    ]
    running: Annotated[
        str,
        one_of("on", "off", "closed", UNKNOWN),
        "What the processes do that have it open. V(on) where each write goes to the disk at once, "
        "V(off), V(closed) if no process has it open, or V(unknown).",
        "With Classic and SuperClassic, processes that have it open go on as they were when the header "
        "changes.",
    ]
    in_use: Annotated[str, YES_NO_UNKNOWN, "Whether a process has it open. V(yes), V(no) or V(unknown)."]
    mode: Annotated[
        str,
        one_of("read_write", "read_only", "shutdown", "backup", UNKNOWN),
        "V(read_write), V(read_only), V(shutdown) if it refuses logins, V(backup) if changes go to "
        "another file for a while, or V(unknown).",
    ]
    owner: Annotated[Optional[str], or_none(TEXT), "The number of the user who owns the file, or V(unknown)."]
    reason: Annotated[
        Optional[str],
        or_none(TEXT),
        "The error for which one of the values is V(unknown), or null: C(causes) has others.",
    ]


#: Why a role, database or session differs from the server.
CAUSES = ("role", "role_of_primary", "session", "option")


class OverrideFacts(TypedDict):
    """Settings of roles, users or databases."""

    scope: Annotated[str, TEXT, "What it applies to."]
    setting: Annotated[str, TEXT, "The setting's name."]
    value: Annotated[str, TEXT, "The value there."]
    source: Annotated[str, TEXT, "The place of the setting."]
    cause: Annotated[
        str,
        one_of(*CAUSES),
        "V(role) if a role or database has it, V(role_of_primary) if only the primary of this replica can remove it, "
        "V(session) if older sessions have it, V(option) if the server is started with it.",
    ]
    role: Annotated[Optional[str], or_none(TEXT), "The role or user, or null."]
    database: Annotated[Optional[str], or_none(TEXT), "The database, or null."]
    permission: Annotated[
        Optional[str],
        or_none(TEXT),
        "The value of C(durable_allow) with which a run removes it, or null.",
    ]


class SettingFixFacts(TypedDict):
    """What an administrator does about a setting that no run sets."""

    fix: Annotated[str, "A keyword of the collection's closed list. The report has the sentence."]
    parameters: Annotated[dict[str, Union[str, list[str]]], "The values of the sentence, by name."]


class RefusalFacts(TypedDict):
    """Why no run sets a setting."""

    cause: Annotated[str, "A keyword of the collection's closed list. The report has the sentence."]
    parameters: Annotated[dict[str, str], "The values of the sentence, by name."]


#: `from` is a keyword of Python.
_Origin = TypedDict(
    "_Origin",
    {
        "from": Annotated[
            Optional[str],
            "The file and line that wins at the next start, of another component too, or null.",
        ]
    },
)


class _SettingOfOthers(TypedDict, total=False):
    by: Annotated[
        Optional[str],
        When("always"),
        "The component that sets it last, V(durable.dbhost), V(server) for the server's own files and defaults, "
        "or another one; null if that is unknown.",
    ]
    fix: Annotated[
        Optional[SettingFixFacts],
        When("if another component sets it last"),
        "What to remove there, as C(held).",
    ]
    refused: Annotated[
        Optional[RefusalFacts],
        When("if a run refuses to set it"),
        "The reason: C(cause), a keyword of a closed list, and its C(parameters). C(held) is then its fix.",
    ]
    owner_of: Annotated[
        Optional[str], When("if a run changes the owner of a file first"), "The name of that file in a plan."
    ]
    owner: Annotated[
        Optional[str], When("if a run changes the owner of a file first"), "Its C(user:group) before."
    ]
    owner_wanted: Annotated[
        Optional[str], When("if a run changes the owner of a file first"), "Its C(user:group) after."
    ]


class SettingFacts(_Origin, _SettingOfOthers, _Caused):  # pylint: disable=inconsistent-mro,inherit-non-class
    """One setting of an instance, as the engine writes its values."""

    running: Annotated[str, TEXT, "The value in force, V(stopped) without a process, or V(unknown)."]
    persisted: Annotated[
        str,
        TEXT,
        "The value after the next start, which a command of a unit, an C(init_file), a script at boot or "
        "C(tmpfiles.d) may set last.",
    ]
    source: Annotated[Optional[str], or_none(TEXT), "Where it was read."]
    reason: Annotated[
        Optional[str],
        or_none(TEXT),
        "The error for which a value is V(unknown), or null: C(causes) has others.",
    ]
    held: Annotated[
        Optional[SettingFixFacts],
        "How to remove the setting that overrides every file that a run writes: C(fix), a keyword of a closed list, and its"
        " C(parameters); or null.",
    ]
    permission: Annotated[
        Optional[str],
        "The value of C(durable_allow) with which a run removes that itself, or null.",
    ]


class _InstanceOfSome(TypedDict, total=False):
    flavour: Annotated[
        str, one_of(*_FLAVOURS), When("for MariaDB and MySQL"), "V(mariadb), V(mysql) or V(unknown)."
    ]
    databases: Annotated[list[DatabaseFacts], When("for Firebird")]


class InstanceFacts(_InstanceOfSome):
    """One entry for each instance, those that run first."""

    engine: Annotated[
        str,
        one_of(*(engine.name for engine in catalog.ENGINES)),
        "V(mssql), V(faircom), V(firebird), V(postgresql) or V(mariadb), which MySQL is as well.",
    ]
    name: Annotated[
        str,
        NAME,
        "The instance's name, which stays. V(15/main) of a cluster of Debian; V(mssql), V(mariadb), "
        "V(firebird) in the engine's usual place; otherwise its data directory, installation, "
        "configuration or unit.",
        "In a container it begins with the data directory on the host, or the container's name, or else its id.",
        Sample("15/main"),
    ]
    state: Annotated[str, one_of("running", "stopped", UNKNOWN), "V(running) or V(stopped)."]
    pids: Annotated[list[int], "Its processes, the main one first. Empty when it is stopped."]
    version: Annotated[str, TEXT, "Its version, or V(unknown)."]
    config: Annotated[
        Optional[str], or_none(TEXT), "The path of its main configuration file as the host sees it, or null."
    ]
    unit: Annotated[Optional[str], or_none(TEXT), "Its systemd service, or null."]
    managed_by: Annotated[
        str,
        one_of(*MANAGERS),
        "Who starts and stops it. V(systemd), V(pacemaker), V(patroni), V(container), V(none) or V(unknown).",
        "V(galera) or V(group_replication) for a node of such a cluster, which is set and never restarted.",
        "V(systemd) only where its unit is the engine's own, or has started it, and no other server is in"
        " it.",
        "Where Pacemaker runs, and it is unknown whether the instance is one of its resources, it is "
        "V(unknown).",
    ]
    namespace: Annotated[
        str,
        one_of("host", "private", "container", UNKNOWN),
        "V(host), V(private) (a separate mount namespace), V(container) or V(unknown).",
    ]
    root: Annotated[
        str,
        "The directory below which its files are, as V(/proc/4711/root), if the host has other files at their paths; else empty.",
    ]
    starts_at_boot: Annotated[
        str,
        YES_NO_UNKNOWN,
        "Whether the next boot starts its unit, V(yes), V(no) or V(unknown).",
        "V(no) is one that is masked, or disabled, does not run, and is started by no other unit and no script at boot.",
    ]
    stop_timeout: Annotated[
        str,
        "Seconds that a clean stop may take before systemd kills it, V(infinity) or V(unknown).",
        Sample("1800"),
    ]
    preloads: Annotated[
        list[str],
        each(TEXT, "a list of paths"),
        "Libraries in its memory that make fsync do nothing.",
        "C(next_preloads) in RV(ansible_facts.durable_engines.engines[].evidence) has those that its next"
        " start loads, with the file and line, if there are any.",
    ]
    directories: Annotated[
        list[str], PATHS, "Its configured places of data and logs, links followed, as the host sees them."
    ]
    temporary: Annotated[
        list[str],
        PATHS,
        "Directories in which nothing but its temporary files lies, links followed, as the host sees them.",
        "Of SQL Server tempdb's, by the names that setup gives them; of PostgreSQL tablespaces with "
        "nothing but temporary relations and sorts, and C(stats_temp_directory); of MariaDB and MySQL "
        "C(tmpdir), C(innodb_tmpdir) and the directory of C(innodb_temp_data_file_path). Such files are "
        "not among RV(ansible_facts.durable_engines.engines[].files).",
    ]
    requires_mounts: Annotated[
        Union[str, list[str]],
        or_unknown(each(NAME, "a list of mount units")),
        "The mount units that its own unit requires and waits for, V([]) without a unit; or V(unknown) "
        "where the unit's file has changed since systemd read it.",
    ]
    writes: Annotated[
        list[str],
        PATHS,
        "The files that a run may write to set its settings, as the host sees them; not databases of "
        "Firebird.",
    ]
    files: Annotated[
        list[OpenedFacts],
        "The files that it has open for writing, one entry for each directory, device and way of opening.",
        "Of an instance with very many processes only some are read; "
        "RV(ansible_facts.durable_engines.engines[].evidence) says so.",
    ]
    settings: Annotated[dict[str, SettingFacts], MAPPING, "Its settings by name."]
    overrides: list[OverrideFacts]
    pending_restart: Annotated[
        list[str], each(TEXT, "a list of settings"), "Names of settings that a restart would put into effect."
    ]
    evidence: Annotated[
        dict[str, Evidence],
        MAPPING,
        "For contested values their C(value), C(source) and C(reason), the error for which a value is unknown. In its place"
        " C(cause) is a keyword of a closed list, with C(parameters).",
        "The value of C(files) is V(complete), V(partial) or V(unknown).",
        "The value of C(write_through) is V(yes), V(no) or V(unknown), whether what must be written "
        "through is open so.",
        "The value of C(recovery), of FairCom DB, is V(yes), V(no) or V(unknown), whether its last start "
        "had to recover; C(damage) is there where its log reports a recovery that failed.",
        "The value of C(start_arguments) is V(unknown) if an undocumented script, its C(source), alone decides "
        "arguments of the next start. Its cause is V(script), or V(script_of_user), which is not read.",
        "By a setting's name, V(absent) says that this version shows no such setting.",
    ]


class EnginesFacts(TypedDict):
    """Database engines. Texts, never booleans, if a value can be unknown."""

    boot_id: Annotated[str, "The kernel's id of this boot."]
    time: Annotated[
        str,
        TEXT,
        "When the facts were taken, by the host's clock, in UTC and ISO 8601.",
        Sample("2026-01-31T12:00:00Z"),
    ]
    paths: Annotated[list[str], "Directories of data and logs of all instances, as this host sees them."]
    stop_timeouts: list[StopTimeout]
    writers: list[Writer]
    unattributed: Annotated[
        list[Stray],
        "Processes that look like an engine and belong to no instance that was found.",
        "As long as there is one, the servers of this host are unknown.",
        "Of very many of one user some are listed, and the last one's reason says how many more there are.",
    ]
    engines: list[InstanceFacts]


def fields_of(engine: catalog.Engine) -> tuple[str, ...]:
    """Return the optional fields that each instance of an engine has."""
    return (
        *(("flavour",) if len(engine.checks) > 1 else ()),
        *(("databases",) if engine.has_databases else ()),
    )
