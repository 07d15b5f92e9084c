# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PostgreSQL: its clusters, their settings, and those of their next start."""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections.abc import Iterator

from ...enforce import ownership
from ...facts import engine_fixes
from ...facts.classes import OverrideFacts, SettingFacts, SettingFixFacts
from ...host import bounded_read
from ...host.observation import (
    UNKNOWN,
    Because,
    Observation,
    Undecided,
    because_of,
    caused,
    unknown,
    unread,
    why_of,
)
from ...host.paths import normal
from ...host.process_context import Place, is_there, resolve
from ...host.processes import Process, Processes, argv_of
from ...host.seam import Host, Unobservable
from ...host.textfile import Malformed, without_content
from .. import fixes
from ..instance import Instance, Observed, Refusal, Why, of_mains, override, setting
from ..next_start import Wrapper
from ..others import Change, Text
from . import alter, conf, drop_in, pg_ctl, scratch, server, statements, suse_script
from . import cluster as postgresql_cluster
from .cluster import DEBIAN, VALUES, Cluster, Files, Won

NAME = "postgresql"
PROGRAMS = ("postgres", "postmaster", "edb-postgres")
UNITS = re.compile(r"(postgresql(-[0-9][^/@]*)?|edb-as-[0-9]+)(@.+)?\.service")
#: Environment variables that decide what it reads at its start.
VARIABLES = ("PGDATA",)
#: What pg_ctl.conf says at the time of a start is read with the cluster's other files.
WRAPPERS = {
    "pg_ctl": Wrapper(pg_ctl.start, postgresql_cluster.are_same),
    "pg_ctlcluster": Wrapper(pg_ctl.start_of_debian, lambda _words, _coming: True),
    "postgresql-script": Wrapper(suse_script.start, postgresql_cluster.are_same_there),
}
_CONFIG = "postgresql.conf"
#: In the data directory: a link to each tablespace, of which so many are examined.
_TABLESPACES = "pg_tblspc"
_SPACES = 64
_ETC = "/etc/postgresql"
_DEBIAN_TOOL = "/usr/bin/pg_ctlcluster"
_NO_VALUES = {UNKNOWN, postgresql_cluster.UNFLUSHED}
#: How a server says that its command line has fixed a setting: no file and no reload changes it.
_COMMAND_LINE = "pg_settings: command line"
#: How a server that serves one client, or has one duty, calls itself: its postmaster is gone where
#: such a one has no parent of its kind.
_CHILD = re.compile(r"(?:edb-)?postgres: ")


def reads(text: Text, _observed: Observed) -> list[Change]:
    """Return what a command of another component sets of a cluster's settings."""
    return list(statements.of_text(text))


def find(host: Host, processes: Processes) -> list[Instance]:
    """Return the clusters that run: each has one postmaster."""
    mains = processes.mains(PROGRAMS)
    found = of_mains(NAME, processes, mains, lambda main: _instance(processes, main))
    return [instance for instance in found if instance.name]


def installed(host: Host, units: list[str]) -> list[Instance]:
    """Return the clusters that could be started, whether or not they run.

    Debian keeps one configuration for each under /etc; elsewhere units tell.
    """
    configs = clusters(host)
    found = [
        Instance(NAME, name, config=f"{_ETC}/{name}/{_CONFIG}", unit=unit) for name, unit in configs.items()
    ]
    # Where Debian's tools are, this unit starts nothing itself, and is there without any server.
    umbrella = "postgresql.service" if host.exists(_DEBIAN_TOOL) else None
    others = (unit for unit in units if unit not in configs.values() and unit != umbrella)
    return [*found, *(_of_unit(host, unit) for unit in others)]


def clusters(host: Host) -> dict[str, str]:
    """Return {`version/cluster`: unit} of the clusters that Debian's tools know."""
    found = {}
    for version in host.list_names(_ETC) or ():
        if not host.exists(f"/usr/lib/postgresql/{version}/bin/postgres"):
            continue  # The package is gone, its configuration was left.
        for name in host.list_names(f"{_ETC}/{version}") or ():
            if is_there(host, f"{_ETC}/{version}/{name}/{_CONFIG}"):
                found[f"{version}/{name}"] = f"postgresql@{version}-{name}.service"
    return found


def is_started_by_debian(host: Host, found: Instance) -> bool:
    """Return whether Debian's generator starts a cluster at boot, or may: it makes systemd's links only then.

    pg_createcluster(1): start.conf says auto, manual or disabled; without it, auto.
    """
    if not found.config or not DEBIAN.fullmatch(found.config):
        return False
    try:
        text = bounded_read.read(host, posixpath.join(posixpath.dirname(found.config), "start.conf")) or ""
    except Unobservable:
        return True
    lines = [line.partition("#")[0].strip() for line in text.split("\n")]
    return next(filter(None, lines), "auto") not in ("manual", "disabled")


def observe(host: Host, found: Instance, place: Place | None) -> Observed:
    """Return what a cluster's files and, where it runs, the server say.

    The server is queried by one command; in a container it is not queried.
    """
    evidence: list[tuple[str, Observation]] = []
    files = Files(host, place.root if place else "")
    main = found.processes[0] if found.processes else None
    answer, no_answer, no_login = _answer(host, place, main, found)
    cluster, no_files = _cluster(host, files, found, answer)
    if no_answer and main:
        evidence.append(("settings", unknown("psql", no_answer)))
    data = cluster.data if cluster else next(iter(found.directories), None)
    directories, no_directories = _directories(host, files.root, data)
    temporary = _temporary(host, files.root, cluster, directories)
    directories = tuple(path for path in directories if path not in temporary)
    if no_directories:
        evidence.append(("directories", unknown(data or "none", no_directories)))
    overrides, no_overrides = _all_overrides(host, data, answer)
    if no_overrides:
        evidence.append(("settings", unknown("sessions", no_overrides)))
    running = _all_running(host, main, place, answer, no_answer)
    settings = {
        name: _setting(
            host, data, name, running[name], *_persisted(cluster, name, no_files), answer, no_login
        )
        for name in VALUES
    }
    return Observed(
        writes=_writes(files, cluster) if cluster else (),
        passing=(*(_logs(files, data) if main else ()), *_passing(host, files.root, found, temporary)),
        temporary=temporary,
        reads=tuple(cluster.files.files) if cluster else (),
        includes=_includes(files, cluster) if cluster else (),
        refused=_refused(host, files, cluster, main, answer) if cluster else None,
        version=_version(host, files, answer, data),
        settings=settings,
        directories=directories,
        pending_restart=tuple(_pending(answer, settings)) if answer else (),
        overrides=overrides,
        evidence=tuple(evidence),
    )


def _all_running(
    host: Host,
    main: Process | None,
    place: Place | None,
    answer: server.Answer | None,
    no_answer: Why,
) -> dict[str, Observation]:
    """Return {setting: what runs}; in a container the command line counts, because the server is not queried there."""
    if main is None:
        return dict.fromkeys(VALUES, Observation("stopped", "no process"))
    found = {name: _running(answer, name, no_answer) for name in VALUES}
    if place and place.namespace == "container" and not answer:
        given = _given(host, main)
        found = {name: given.get(name, value) for name, value in found.items()}
    return found


def _writes(files: Files, cluster: Cluster) -> tuple[str, ...]:
    try:
        return drop_in.place(files, cluster.config)
    except (Malformed, Unobservable):
        return ()  # Then its settings are unknown either, and none is written.


def _includes(files: Files, cluster: Cluster) -> tuple[str, ...]:
    """Return the directories of which a cluster reads each file. All of its files were read before."""
    return tuple(
        posixpath.join(posixpath.dirname(path), line.value or "")
        for path in cluster.files.files
        for line in conf.parse(files.read(path) or "", path)
        if line.name == "include_dir"
    )


def _refused(
    host: Host, files: Files, cluster: Cluster, main: Process | None, answer: server.Answer | None
) -> Refusal | None:
    """Return why a run would set nothing of a cluster, None if it would, or if another component sets it."""
    if files.root:
        return None
    if answer and not answer["superuser"]:
        return Refusal(fixes.refusal("no_superuser"), _as_superuser(host, main, cluster.data))
    try:
        user = ownership.user_of(host, [main.pid] if main else [], cluster.data)
        return drop_in.refusal(files, cluster.config, user)
    except (Malformed, Unobservable) as error:
        return Refusal.of(error, without_content(error))


def _as_superuser(host: Host, main: Process | None, data: str) -> SettingFixFacts:
    """Return what makes the operating system user of a server a superuser in it."""
    try:
        user = server.login(host, main.pid, data).user if main else ""
    except Unobservable:
        user = ""
    if engine_fixes.FORMS["user"].fullmatch(user):
        return fixes.fix("grant_superuser", user=user)
    return fixes.fix("grant_superuser.unnamed")


def _cluster(
    host: Host, files: Files, found: Instance, answer: server.Answer | None
) -> tuple[Cluster | None, Why]:
    """Return a cluster's files, or why they cannot be read."""
    main = found.processes[0] if found.processes else None
    if found.config is None:
        why = dict(found.evidence)["config"]
        return None, why.because or why.reason
    try:
        data = next(iter(found.directories), None)
        argv = argv_of(host, main.pid) if main else None
        config = (answer["config"] if answer else None) or found.config
        if resolve(host, files.root, config) != resolve(host, files.root, found.config):
            return None, Because("other_config", {"config": config, "named": found.config})
        begins = found.begins.words if found.begins else None
        return postgresql_cluster.read(host, files, found.config, data, argv, found.unit, begins), None
    except (Unobservable, Malformed) as error:
        return None, _why(error)


def _why(error: Exception) -> Why:
    return error.because if isinstance(error, Undecided) else without_content(error)


def _answer(
    host: Host, place: Place | None, main: Process | None, found: Instance
) -> tuple[server.Answer | None, Why, SettingFixFacts | None]:
    """Return what the server says, or why it does not, and the fix if it is known."""
    if main is None or place is None:
        return None, None, None
    if place.root:
        return None, Because("in_container"), None
    if not found.directories:
        return None, Because("no_data_directory"), None
    try:
        login = server.login(host, main.pid, found.directories[0])
        return server.ask(host, login, main.pid), None, None
    except server.NoAnswer as error:
        return None, str(error), error.fix
    except Unobservable as error:
        return None, why_of(error), None


def _given(host: Host, main: Process) -> dict[str, Observation]:
    """Return the settings that the command line of a server fixed: no file and no reload changes them.

    Sessions can still have another synchronous_commit.
    """
    found = {}
    with contextlib.suppress(Unobservable):
        words = postgresql_cluster.settings_of(argv_of(host, main.pid)[1:])
        for name in words.keys() & VALUES.keys():
            with contextlib.suppress(ValueError):
                word = postgresql_cluster.word(name, words[name])
                found[name] = Observation(word, f"/proc/{main.pid}/cmdline")
    return found


def _running(answer: server.Answer | None, name: str, why: Why) -> Observation:
    if answer is None:
        return unknown("psql", why or Because("not_queried"))
    setting = answer["settings"].get(name)
    if setting is None:
        return caused(UNKNOWN, "pg_settings", "no_setting", setting=name)
    place = f" {setting['file']}:{setting['line']}" if setting["file"] else ""
    source = f"pg_settings: {setting['source']}{place}"
    if setting["source"] in server.SESSION:
        return caused(UNKNOWN, source, "set_for_login", setting=name)
    return Observation(str(setting["value"]), source)


def _persisted(cluster: Cluster | None, name: str, why: Why) -> tuple[Observation, Won | None]:
    """Return what a setting will be at the next start, and what wins."""
    if cluster is None:
        return unknown("none", why or Because("files_unknown")), None
    try:
        won = postgresql_cluster.won(cluster, name)
    except ValueError as error:
        return unknown(cluster.config, str(error)), None
    return Observation(won.word, won.place or "default"), won


def _setting(
    host: Host,
    data: str | None,
    name: str,
    running: Observation,
    persisted: Observation,
    won: Won | None,
    answer: server.Answer | None,
    no_login: SettingFixFacts | None,
) -> SettingFacts:
    word, next_value = running.value, persisted.value
    reasons: list[Why] = [each.because or each.reason for each in (running, persisted)]
    if data:
        word = postgresql_cluster.with_pending_flush(host, data, name, word)
        if (word, name) == ("stopped", "fsync"):
            next_value = postgresql_cluster.with_pending_flush(host, data, name, next_value)
    if postgresql_cluster.UNFLUSHED in (word, next_value):
        reasons.append(Because("not_flushed"))
    origin = won.place if won else None
    held, permission = _held(name, running, won, answer, no_login)
    row = setting(word, next_value, running.source, reasons, origin, held, permission)
    return (
        {**row, "refused": fixes.refusal("alter_system_off")}
        if _is_off(won, answer) and running.value != UNKNOWN
        else row
    )


def _is_off(won: Won | None, answer: server.Answer | None) -> bool:
    """Return whether ALTER SYSTEM has set what wins, and a server does not let it be taken back."""
    return bool(won and won.altered and answer and answer["alter_system"] != "on")


def _held(
    name: str,
    running: Observation,
    won: Won | None,
    answer: server.Answer | None,
    no_login: SettingFixFacts | None,
) -> tuple[SettingFixFacts | None, str | None]:
    """Return what keeps a run from setting it as the profile wants, and the permission that allows it."""
    if won is None:
        return None, None
    may = bool(answer and answer["superuser"])
    if running.value == UNKNOWN:
        # Nobody would see whether the server follows. An override that hides its word is removed before.
        setting = answer["settings"].get(name) if answer else None
        may = may and setting is not None and setting["value"] == "off" and _may_alter_roles(answer)
        held = _fix_unread(name, answer, no_login)
    elif _is_off(won, answer):
        return fixes.fix("remove_from", setting=name, source=str(won.place)), None
    elif won.held is None:
        return None, None
    else:
        held, may = won.held, may and won.altered
    return held, alter.PERMISSION if may and (won.altered or won.held is None) else None


def _fix_unread(name: str, answer: server.Answer | None, no_login: SettingFixFacts | None) -> SettingFixFacts:
    """Return what to do where a running server does not report its value of a setting."""
    if answer is None:
        return no_login or fixes.fix("allow_login")
    if answer["settings"].get(name) is None:
        return fixes.fix("update", setting=name)
    hiding = [
        row for row in answer["overrides"] if any(entry.partition("=")[0] == name for entry in row["config"])
    ]
    if not hiding:
        return fixes.fix("reset_login", setting=name)
    roles, databases = ([row[who] or "" for row in hiding] for who in ("role", "database"))
    return fixes.fix("reset_overrides", setting=name, roles=roles, databases=databases)


def _may_alter_roles(answer: server.Answer | None) -> bool:
    return bool(answer and answer["superuser"] and not answer["replica"])


def _pending(answer: server.Answer, settings: dict[str, SettingFacts]) -> Iterator[str]:
    """Yield the settings that wait for a restart: also those that the command line of this start has fixed,
    and nothing fixes at the next one."""
    yield from answer["pending"]
    for name, row in settings.items():
        differs = len({row["running"], row["persisted"]} - _NO_VALUES) == 2
        if row["source"] == _COMMAND_LINE and differs:
            yield name


def _directories(host: Host, root: str, data: str | None) -> tuple[tuple[str, ...], str | None]:
    """Return where data and logs lie: the data directory, and what leads out of it."""
    if data is None:
        return (), None
    try:
        places = [f"{data}/pg_wal"]
        spaces = f"{data}/{_TABLESPACES}"
        places += [f"{spaces}/{name}" for name in host.list_names(spaces, root) or ()]
        return (data, *(path for path in places if resolve(host, root, path) != path)), None
    except Unobservable as error:
        return (data,), str(error)


def _temporary(
    host: Host, root: str, cluster: Cluster | None, directories: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the directories out of the data directory that hold only what is not needed after a power cut."""
    spaces = [path for path in directories[:_SPACES] if f"/{_TABLESPACES}/" in path]
    found = [path for path in spaces if scratch.is_space(host, root, path)]
    setting = cluster.files.settings.get("stats_temp_directory") if cluster else None
    if (
        cluster
        and setting
        and (setting.value or "").startswith("/")
        and scratch.is_statistics(host, root, setting.value or "")
    ):
        found.append(normal(setting.value or ""))
    return tuple(found)


def _passing(host: Host, root: str, found: Instance, temporary: tuple[str, ...]) -> Iterator[str]:
    """Yield the open files that are temporary ones."""
    try:
        places = tuple(f"{resolve(host, root, path)}/" for path in temporary)
    except Unobservable:
        return
    for file in found.opened:
        if file.path.startswith(places) and scratch.is_file(file.path):
            yield file.path


def _logs(files: Files, data: str | None) -> tuple[str, ...]:
    """Return the log files for people that the server lists in its data directory."""
    try:
        text = (files.read(f"{data}/current_logfiles") if data else None) or ""
    except Unobservable:
        return ()
    # Each line: the format, and the path from the data directory.
    paths = (line.partition(" ")[2] for line in text.split("\n"))
    return tuple(normal(posixpath.join(str(data), path)) for path in paths if path)


def _version(host: Host, files: Files, answer: server.Answer | None, data: str | None) -> Observation:
    if answer:
        return Observation(str(answer["version"]), "server_version")
    source = f"{data}/PG_VERSION"
    try:
        text = files.read(source) if data else None
    except Unobservable as error:
        return unread(source, error)
    if not text or not re.fullmatch(r"[0-9.]{1,20}\n?", text):
        return caused(UNKNOWN, source, "no_version")
    return Observation(text.strip(), source)


def _all_overrides(
    host: Host, data: str | None, answer: server.Answer | None
) -> tuple[tuple[OverrideFacts, ...], str | None]:
    """Return the settings of roles and databases that go their own way, and why they are not all known."""
    if answer is None or data is None:
        return (), None
    found = list(_overrides(answer))
    try:
        for row in alter.old_sessions(host, data, answer["sessions"]):
            whose = f"sessions of {alter.scope(row['role'], row['database'])} that were there before"
            found.append(override(whose, row["setting"], row["value"], "pg_stat_activity", "session"))
    except Unobservable as error:
        return tuple(found), str(error)
    return tuple(found), None


def _overrides(answer: server.Answer) -> Iterator[OverrideFacts]:
    """Yield the settings of roles and databases."""
    for row in answer["overrides"]:
        for entry in row["config"]:
            name, _equals, value = entry.partition("=")
            if name not in VALUES:
                continue
            permission = alter.PERMISSION if _may_alter_roles(answer) else None
            try:
                value = postgresql_cluster.word(name, value)
            except ValueError:
                permission = None  # As it stands: what it means is for its reader to say.
            yield override(
                alter.scope(row["role"], row["database"]),
                name,
                value,
                alter.SOURCE,
                "role_of_primary" if answer["replica"] else "role",
                row["role"],
                row["database"],
                permission,
            )


def _of_unit(host: Host, unit: str) -> Instance:
    """Return the cluster that a unit would start, with its data directory if systemd has it."""
    try:
        data = postgresql_cluster.data_of_unit(host, unit)
    except (Unobservable, Malformed) as error:
        why = caused(UNKNOWN, unit, "not_running", why=[because_of(error).as_dict()])
        return Instance(NAME, unit, unit=unit, evidence=(("config", why),))
    return Instance(NAME, data, config=f"{data}/{_CONFIG}", directories=(data,), unit=unit)


def _instance(processes: Processes, main: Process) -> Instance:
    argv = processes.argv(main)
    if _CHILD.match(argv[0]):
        return Instance(NAME, "")
    # A postmaster's working directory is its data directory, wherever -D points.
    data = processes.directory(main)
    setting = dict(postgresql_cluster.options(argv[1:]))
    base = setting.get("-D") or processes.environment(main, ["PGDATA"]).get("PGDATA") or data
    if not base.startswith("/"):
        base = data  # Relative to where it was started, which nobody knows any more.
    config = setting.get("config_file") or posixpath.join(base, _CONFIG)
    config = normal(posixpath.join(data, config))
    debian = DEBIAN.fullmatch(config)
    return Instance(
        engine=NAME,
        name=f"{debian['version']}/{debian['cluster']}" if debian else data,
        processes=processes.family(main, PROGRAMS),
        config=config,
        directories=(data,),
    )
