# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MariaDB and MySQL: their instances and the settings that each reports."""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from ...facts.classes import OverrideFacts, SettingFacts
from ...host import bounds, our_paths
from ...host.observation import UNKNOWN, Because, Observation, caused, unknown, unread
from ...host.paths import normal
from ...host.process_context import Place, Places, is_there
from ...host.processes import Process, Processes
from ...host.seam import ChangeFailed, Host, Unobservable
from .. import others, temporary
from ..instance import COMMAND_LINE, Instance, Observed, Refusal, of_mains, override, setting
from ..next_start import Wrapper
from ..others import Change, Text
from ..rule import Rule
from . import drop_in, init_sql, mysqld_safe, options, owners, shell_start, statements, suse_helper, versions
from .expected import of_flavour
from .snapshot import BINARIES, DATA, Snapshot, examine

NAME = "mariadb"
#: mysqld_safe and mariadbd-safe start a server, and are none.
PROGRAMS = ("mariadbd", "mysqld", "mysqld-debug")
UNITS = versions.UNITS
#: Environment variables that decide what it reads at its start; HOME is that of its user.
VARIABLES = tuple(name for name in options.VARIABLES if name != "HOME")
_SAFE = Wrapper(mysqld_safe.start, mysqld_safe.is_same)
WRAPPERS = {
    "mysqld_safe": _SAFE,
    "mariadbd-safe": _SAFE,
    "mysql-systemd-helper": Wrapper(suse_helper.start, mysqld_safe.is_same),
    "sh": Wrapper(shell_start.start, shell_start.is_same),
}
#: Options that every release has, and that change neither what it reads nor how it writes.
UNRELATED = re.compile(
    r"--(?:(?:interactive|wait|net[-_]read|net[-_]write|connect|lock[-_]wait)[-_]timeout|thread[-_]cache[-_]size"
    r"|max[-_](?:allowed[-_]packet|connect[-_]errors|connections|heap[-_]table[-_]size)|tmp[-_]table[-_]size"
    r"|(?:join|key|read|sort)[-_]buffer[-_]size|table[-_](?:definition|open)[-_]cache|long[-_]query[-_]time)=\d+[KMG]?"
)
#: Where servers look for options, the first first.
_CONFIGS = ("/etc/my.cnf", "/etc/mysql/my.cnf")

_NAMES = (versions.LOG, versions.BINLOG, versions.DOUBLEWRITE, versions.METHOD, versions.LOG_BIN)
#: Whose data was written without being flushed, until it has been. A boot ends that either way.
PENDING_FLUSH = our_paths.UNFLUSHED_MARIADB
_UNFLUSHED = "unflushed"
_FULL_LOG = ("1", "3")
#: Variables that name files that nobody needs after a power cut.
_LOGS = ("general_log_file", "log_error", "slow_query_log_file")
#: Variables that name directories, relative to the data directory.
_DIRECTORIES = (
    "innodb_log_group_home_dir",
    "innodb_data_home_dir",
    "innodb_undo_directory",
    "innodb_doublewrite_dir",
    "aria_log_dir_path",
)
#: Where it keeps temporary tables of InnoDB, and what temporary files are called.
_TEMPORARY_SPACE = "ibtmp1:12M:autoextend"
_SCRATCH = re.compile(r"#sql.*", re.S)
#: Bytes of a path, as the kernel takes it.
_LONGEST_PATH = 4096


def reads(text: Text, observed: Observed) -> list[Change]:
    """Return what a command of another component sets of a server's settings."""
    return statements.of_text(text, versions.release(observed.version.value))


def find(host: Host, processes: Processes) -> list[Instance]:
    """Return the instances that run."""
    places, mains = Places(host), processes.mains(PROGRAMS)
    return of_mains(NAME, processes, mains, lambda main: _instance(processes, places, main))


def installed(host: Host, units: list[str]) -> list[Instance]:
    """Return the instances that could be started, whether or not they run."""
    names: list[str | None] = [*units]
    if not names and any(host.exists(path) for path in BINARIES):
        names = [None]
    config = next((path for path in _CONFIGS if host.exists(path)), None)
    only = len(names) == 1
    return [
        Instance(NAME, NAME if only or not unit else unit, config=config, unit=unit, flavour="unknown")
        for unit in names
    ]


def _instance(processes: Processes, places: Places, main: Process) -> Instance:
    argv = processes.argv(main)
    # A server's working directory is its data directory.
    data = processes.directory(main)
    named = _option(argv, "defaults-file") or _option(argv, "defaults-extra-file")
    found = Instance(
        engine=NAME,
        name=NAME if data == DATA else data,
        processes=processes.family(main, PROGRAMS),
        directories=(data,),
        # Before 10.5 MariaDB's server was called mysqld as well.
        flavour="mariadb" if main.program == "mariadbd" else "unknown",
    )
    if named and not named.startswith("/"):
        why = caused(UNKNOWN, f"/proc/{main.pid}/cmdline", "no_start_directory", path=named)
        return found._replace(evidence=(("config", why),))
    root = places.of(main).root
    there = (path for path in _CONFIGS if is_there(places.host, path, root))
    config = named or next(there, None)
    if config is None:
        why = caused(UNKNOWN, ", ".join(_CONFIGS), "defaults", paths=list(_CONFIGS))
        return found._replace(evidence=(("config", why),))
    return found._replace(config=config)


def _option(argv: list[str], name: str) -> str | None:
    """Return the value of one of the options that name files of options: one word, at the beginning."""
    prefix = f"--{name}="
    return next((word[len(prefix) :] for word in argv[1:] if word.startswith(prefix)), None)


def observe(host: Host, found: Instance, place: Place | None) -> Observed:
    """Return what an instance says of its settings; `place` is None for a stopped one."""
    snapshot = examine(host, found, place)
    version = snapshot.version
    flavour = version.flavour if version else found.flavour or UNKNOWN
    names = versions.names(version) if version else _NAMES
    coming = _next_values(snapshot, names)
    rules, is_far = of_flavour(flavour), bool(place and place.root)
    running = {name: _running(host, snapshot, found, name) for name in names}
    if found.processes and place and place.namespace == "container":
        running = {name: _given(each, coming[name], rules.get(name), found) for name, each in running.items()}
    settings = {name: _setting(name, running[name], coming[name], found) for name in names}
    settings = {
        name: row if is_far else _refused(snapshot, rules.get(name), name, coming[name].word, row)
        for name, row in settings.items()
    }
    settings = others.apply(settings, init_sql.changes(host, snapshot, names))
    waiting = [
        name
        for name in names
        if _waits(rules.get(name), running[name].value, settings[name]["persisted"] or UNKNOWN)
    ]
    root = place.root if place else ""
    elsewhere, why = _tables_elsewhere(host, root, snapshot.data)
    reads, includes = _configuration(snapshot)
    return Observed(
        version=_version(snapshot),
        settings=settings,
        directories=tuple(dict.fromkeys((*_directories(snapshot), *elsewhere))),
        pending_restart=tuple(waiting),
        overrides=tuple(_overrides(snapshot)),
        flavour=flavour,
        writes=_writes(snapshot),
        reads=reads,
        includes=includes,
        passing=_passing(snapshot, found),
        temporary=_temporary(host, root, snapshot),
        evidence=(
            *_evidence(snapshot, found),
            *([("directories", unknown(snapshot.data, why))] if why else []),
        ),
    )


def _setting(name: str, running: Observation, coming: options.NextValue, found: Instance) -> SettingFacts:
    return setting(
        running.value,
        coming.word,
        running.source if found.processes else (coming.origin or "option files"),
        (running.because or running.reason, coming.reason),
        coming.origin,
        options.held(name, coming.origin),
    )


def _waits(rule: Rule | None, running: str, persisted: str) -> bool:
    """Return whether a setting waits for a restart."""
    return rule is not None and not rule.live and _differ(running, persisted)


def _writes(snapshot: Snapshot) -> tuple[str, ...]:
    try:
        found = drop_in.places(snapshot)
        # The last that is read has the last word.
        last = [] if owners.apart(snapshot, found) else found[-1:]
        return tuple(f"{place.rstrip('/')}/{drop_in.NAME}" for place in last)
    except ChangeFailed:
        return ()  # Its options are unknown, and none is written.


def _configuration(snapshot: Snapshot) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the option files of a server, those that may come too, and the directories that they include."""
    try:
        mains, files = snapshot.started.mains if snapshot.started else (), snapshot.reading().found.files
        return (*mains, *files), tuple(snapshot.files.directories(files))
    except Unobservable:
        return (), ()  # Then its settings are unknown.


def _refused(snapshot: Snapshot, rule: Rule | None, name: str, word: str, row: SettingFacts) -> SettingFacts:
    """Return a row with why a run would write nothing that sets what is wrong, where it would not and something is."""
    if row["held"] or rule is None or name == versions.REDO or word == UNKNOWN or rule.allows(word):
        return row
    try:
        drop_in.write(snapshot, {name: rule.value}, {})
    except ChangeFailed as error:
        return Refusal.of(error).keeps(row)
    finally:
        snapshot.files.overlay = {}
    return row


def _next_values(snapshot: Snapshot, names: Sequence[str]) -> dict[str, options.NextValue]:
    if snapshot.started is None or snapshot.version is None:
        why = snapshot.reason or Because("value_unknown", {"setting": "version"})
        return dict.fromkeys(names, options.NextValue(UNKNOWN, None, why))
    in_files = [name for name in names if name != versions.REDO]
    coming = options.persisted(
        in_files, snapshot.version, snapshot.started, snapshot.files, snapshot.data, snapshot.stated
    )
    if versions.REDO in names:
        word = _word(snapshot, versions.REDO)
        reason = None if word.value != UNKNOWN else Because("redo_log")
        coming[versions.REDO] = options.NextValue(word.value, "the redo log itself", reason)
    return coming


def pending_flush_path(data: str) -> str:
    """Return the file that says that a server wrote into its data directory, and has not flushed that yet."""
    return f"{PENDING_FLUSH}/{quote(normal(data), safe='', errors='surrogateescape')}"


def _running(host: Host, snapshot: Snapshot, found: Instance, name: str) -> Observation:
    if not found.processes:
        return Observation("stopped", "no process")
    if snapshot.silence:
        return unknown(snapshot.socket or "the server", snapshot.silence)
    word = _word(snapshot, name)
    if name == versions.LOG and word.value in _FULL_LOG and host.exists(pending_flush_path(snapshot.data)):
        return caused(_UNFLUSHED, word.source, "not_flushed")
    return word


def _given(
    running: Observation, coming: options.NextValue, rule: Rule | None, found: Instance
) -> Observation:
    """Return the running word of a setting, of a silent server what its command line fixed.

    A statement can have changed a word of a live setting since, so only one that loses commits counts.
    """
    counts = rule is not None and (not rule.live or (rule.loses and not rule.allows(coming.word)))
    if running.value != UNKNOWN or coming.origin != COMMAND_LINE or coming.word == UNKNOWN or not counts:
        return running
    return Observation(coming.word, f"/proc/{found.processes[0].pid}/cmdline")


def _word(snapshot: Snapshot, name: str) -> Observation:
    """Return the running server's word."""
    source = f"SHOW GLOBAL VARIABLES at {snapshot.socket}" if snapshot.socket else "the server"
    if snapshot.version is None or name not in snapshot.answers:
        return unknown(source, snapshot.silence or Because("no_setting", {"setting": name}))
    try:
        return Observation(versions.word(snapshot.version, name, snapshot.answers[name]), source)
    except ValueError as error:
        return caused(UNKNOWN, source, "value_malformed", setting=name, error=str(error))


def _version(snapshot: Snapshot) -> Observation:
    if snapshot.version is None:
        return unknown(snapshot.version_source, snapshot.reason or Because("no_version"))
    return Observation(snapshot.version.text, snapshot.version_source)


def _differ(running: str, persisted: str) -> bool:
    return running != persisted and not {running, persisted} & {UNKNOWN, "stopped"}


def _directories(snapshot: Snapshot) -> list[str]:
    """Return where data and logs are, as the instance sees them."""
    values = snapshot.answers or _configured(snapshot)
    base = posixpath.join(snapshot.data, values.get("datadir") or "")
    # System table spaces may each be in a directory of its own: `path:size[:autoextend];...`.
    # MySQL keeps tables elsewhere only in directories that it knows of.
    known = (values.get("innodb_directories") or "").split(";")
    shared = values.get("innodb_data_home_dir") or ""
    spaces = (part.partition(":")[0] for part in values.get("innodb_data_file_path", "").split(";"))
    found = [
        *(values.get(name) or "" for name in _DIRECTORIES),
        *known,
        *(posixpath.dirname(posixpath.join(shared, space)) for space in spaces if space),
        posixpath.dirname(values.get("log_bin_basename") or ""),
    ]
    return list(dict.fromkeys(normal(posixpath.join(base, path)) for path in ["", *found]))


def _passing(snapshot: Snapshot, found: Instance) -> tuple[str, ...]:
    """Return the open files that the running server calls logs for people, or temporary ones."""
    logs = {path for name in _LOGS for path in _paths(snapshot, snapshot.answers.get(name))}
    scratch, spaces = _scratch(snapshot), _temporary_spaces(snapshot)
    return tuple(
        file.path
        for file in found.opened
        if file.path in (*logs, *spaces)
        or (posixpath.dirname(file.path) in scratch and _SCRATCH.fullmatch(posixpath.basename(file.path)))
    )


def _paths(snapshot: Snapshot, value: str | None) -> list[str]:
    base = posixpath.join(snapshot.data, snapshot.answers.get("datadir") or "")
    return [normal(posixpath.join(base, path)) for path in (value or "").split(":") if path]


def _scratch(snapshot: Snapshot) -> list[str]:
    """Return the directories of temporary files that the running server names."""
    return [
        path for name in ("tmpdir", "innodb_tmpdir") for path in _paths(snapshot, snapshot.answers.get(name))
    ]


def _temporary_spaces(snapshot: Snapshot) -> list[str]:
    """Return the files of InnoDB's table space for temporary tables that the options name, or its usual one.

    Its undo logs are none: those are needed.
    """
    with contextlib.suppress(Unobservable):
        reading = snapshot.reading()
        home = options.last_value("innodb_data_home_dir", reading)
        last = options.last_value("innodb_temp_data_file_path", reading)
        last_value = (last and last[0]) or _TEMPORARY_SPACE
        files = (part.partition(":")[0] for part in last_value.split(";"))
        base = posixpath.join(snapshot.data, (home and home[0]) or "")
        return [normal(posixpath.join(base, name)) for name in files if name]
    return []


def _temporary(host: Host, root: str, snapshot: Snapshot) -> tuple[str, ...]:
    """Return the directories in which nothing but temporary files lies."""
    spaces = _temporary_spaces(snapshot)
    names = {posixpath.basename(path) for path in spaces}
    places = dict.fromkeys((*_scratch(snapshot), *map(posixpath.dirname, spaces)))
    return tuple(
        path
        for path in places
        if temporary.holds_only(host, path, root, lambda name: _SCRATCH.fullmatch(name) or name in names)
    )


def _tables_elsewhere(host: Host, root: str, data: str) -> tuple[list[str], str | None]:
    """Return where tables with a DATA DIRECTORY of their own lie, and why that is unknown.

    A file NAME.isl next to a database's tables names such a one: "InnoDB Tablespaces".
    """
    try:
        found = host.find_files(data, root, bounds.FOUND, depth=2, ending=".isl")
        parts = [
            host.read_part(posixpath.join(data, path), root, _LONGEST_PATH) for path in found if "/" in path
        ]
    except Unobservable as error:
        return [], str(error)
    if len(found) == bounds.FOUND:
        return [], f"{data}: {bounds.FOUND} tables or more outside the data directory"
    paths = (part.text.split("\n")[0] for part in parts if part)
    tables = (normal(posixpath.join(data, path)) for path in paths if path)
    # What CREATE TABLE named is above a directory with the database's name.
    return list(dict.fromkeys(map(posixpath.dirname, tables))), None


def _configured(snapshot: Snapshot) -> Mapping[str, str]:
    """Return what options say of directories, under the names of the variables."""
    try:
        reading = snapshot.reading()
    except Unobservable:
        return {}
    renamed = {"log_bin_basename": versions.LOG_BIN}
    names = ("datadir", "innodb_data_file_path", "innodb_directories", "log_bin_basename", *_DIRECTORIES)
    found = {}
    for name in names:
        with contextlib.suppress(Unobservable):
            last = options.last_value(renamed.get(name, name), reading)
            if last and last[0]:
                found[name] = last[0]
    return found


def _no_sync(snapshot: Snapshot) -> tuple[str | None, str] | None:
    """Return the option that has MariaDB never flush, and where it stands, None if it is not given.

    No variable shows it. Raises Unobservable where what the server was given is unknown.
    """
    return options.switched_on(versions.NO_SYNC, snapshot.reading())


def _overrides(snapshot: Snapshot) -> list[OverrideFacts]:
    """Return an option that no variable shows, and that undoes every other."""
    try:
        last = _no_sync(snapshot) if snapshot.version and snapshot.version.is_mariadb else None
    except Unobservable:
        return []  # The evidence lacks it then.
    if not last:
        return []
    return [override("as it is started", versions.NO_SYNC, "ON", last[1], "option")]


def _evidence(snapshot: Snapshot, found: Instance) -> list[tuple[str, Observation]]:
    """Return why something is unknown, and `absent` for settings that this version does not show."""
    evidence = []
    if snapshot.version:
        extra = () if snapshot.version.is_mariadb else (versions.REDO,)
        for name in (*_NAMES, *extra):
            if name not in versions.names(snapshot.version):
                why = versions.why_absent(snapshot.version, name)
                evidence.append((name, Observation("absent", snapshot.version_source, why)))
        if snapshot.version.is_mariadb:
            evidence += _started_as_override(snapshot)
    member = _member(snapshot)
    if member:
        evidence.append(("cluster", member))
    if found.processes and snapshot.silence:
        evidence.append(("settings", unknown("the server", snapshot.silence)))
    return evidence


def _member(snapshot: Snapshot) -> Observation | None:
    """Return galera or group_replication for a node of such a cluster, None if nothing says so.

    Options count as well: a node can have wsrep_on switched off for a while.
    """
    source = f"SHOW GLOBAL VARIABLES at {snapshot.socket}"
    # Percona XtraDB Cluster has wsrep_on=ON without any cluster as well, and no provider then.
    provider = snapshot.answers.get("wsrep_provider", UNKNOWN)
    if snapshot.answers.get("wsrep_on", "").upper() in ("ON", "1") and provider.lower() not in ("", "none"):
        return Observation("galera", f"{source}: wsrep_on")
    if snapshot.answers.get("group_replication_group_name"):
        return Observation("group_replication", f"{source}: group_replication_group_name")
    try:
        galera = options.last_value("wsrep_on", snapshot.reading())
        if galera and options.is_on(galera):
            return Observation("galera", f"{galera[1]}: wsrep_on")
    except Unobservable:
        return None
    return None


def _started_as_override(snapshot: Snapshot) -> list[tuple[str, Observation]]:
    source = "command line and option files"
    try:
        _no_sync(snapshot)
    except Unobservable as error:
        return [(versions.NO_SYNC, unread(source, error))]
    return [(versions.NO_SYNC, caused("absent", source, "shown_by_none"))]
