# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each engine's settings beside what the profile wants: rows of the report, and what they mean.

Pure: `durable_engines` in, rows out, as policy/settings.py for disks and mounts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..engines.faircom import rules as faircom
from ..engines.mssql import rules as mssql
from ..engines.rules import CHECKS, FULL, RELAXED, Rule
from ..host.observation import UNKNOWN
from ..host.printable import command
from ..profiles import Profile
from .settings import MEND, Setting

#: Who keeps an engine's settings elsewhere, and what to do there.
_OWNERS = {
    "patroni": "set it in Patroni's configuration: patronictl edit-config",
    "container": "set it in the container's image or its options, and make it anew",
    UNKNOWN: "find out who manages this server, and set it there",
}

#: Nodes of these are restarted by their owner only: their settings are set, and wait.
_CLUSTERS = ("galera", "group_replication")
#: Fields of an instance without which nothing can be promised for it, and what each tells.
_NEEDED = {
    "directories": "where it keeps its files",
    "files": "which files it has open",
    "namespace": "in which mount namespace it runs",
    "preloads": "whether a library takes its flushes away",
}

#: Those that of a server that runs are always told, whatever they are.
_TOLD = ("files", "preloads")

#: Engines whose databases may lie outside of every directory that they are configured to.
_ANYWHERE = ("mssql", "faircom", "firebird")

#: What stands for a setting of the rules of which an instance tells nothing.
_NOT_TOLD = {
    "running": UNKNOWN,
    "persisted": UNKNOWN,
    "source": "none",
    "from": None,
}


class Engines(NamedTuple):
    """What the policy finds of a host's engines.

    `risks`: ways in which acknowledged commits can vanish now; `unknowns`: what is not understood;
    `warnings`: what is right as far as settings go, and should be known; `lasting`: the servers that
    will still lose commits, or may, when this run has set all that it may; `exposed`: the engines' own
    checks for damage, of those that ran over or with something that loses commits.
    """

    rows: tuple[Setting, ...] = ()
    risks: tuple[str, ...] = ()
    unknowns: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    lasting: tuple[str, ...] = ()
    exposed: tuple[str, ...] = ()


def assess(
    found: dict[str, Any],
    profile: Profile,
    storage: dict[str, Any],
    honoured: mssql.Honoured,
    may_restart: bool,
    lies_on_loss: Callable[[dict[str, Any]], bool],
) -> Engines:
    """Return what is to be said of all engines of a host.

    `found`: durable_engines; `honoured` tells whether a disk's FUA may be relied on; `may_restart`:
    whether this run may restart servers; `lies_on_loss`: whether disks or mounts below an instance lose
    commits, so that it was not safe however it is set.
    """
    rows: list[Setting] = []
    risks: list[str] = []
    warnings: list[str] = []
    lasting: list[str] = []
    checks: list[str] = []
    unknowns = [_unattributed(process) for process in found["unattributed"]]
    for instance in found["engines"]:
        own = list(_rows(instance, profile, storage, honoured, may_restart))
        rows += own
        own_risks = list(_risks(instance, own)) if profile.promises_durability else []
        risks += own_risks
        if profile.promises_durability and _is_lasting(instance, own, may_restart):
            lasting.append(_label(instance))
        unknowns += _unknowns(instance)
        if instance["engine"] == "mssql":
            warnings += mssql.warnings(instance)
            unknowns += mssql.unknowns(instance, _label(instance)) if profile.promises_durability else []
        if instance["engine"] == "faircom":
            warnings += faircom.warnings(instance, _label(instance), profile, storage)
            unknowns += faircom.unknowns(instance, _label(instance)) if profile.promises_durability else []
        if own_risks or lies_on_loss(instance):
            check = CHECKS[_kind(instance)]
            checks.append(f"{_label(instance)} was exposed: when it is mended, look for damage with {check}")
    return Engines(tuple(rows), tuple(risks), tuple(unknowns), tuple(warnings), tuple(lasting), tuple(checks))


def _unknowns(instance: dict[str, Any]) -> Iterator[str]:
    """Yield what of an instance could not be observed, beside its settings."""
    label, evidence = _label(instance), instance["evidence"]
    if evidence.get("observation"):
        yield f"{label}: {evidence['observation']['reason']}"
    elif not instance["settings"] and not instance.get("databases"):
        yield f"{label}: nothing is known of its settings"
    if instance["state"] == UNKNOWN:
        status = command("systemctl", "status", *filter(None, [instance["unit"]]))
        yield f"{label}: whether it runs is not known; see {status}"
    if instance.get("flavour") == UNKNOWN:
        yield f"{label}: whether it is MariaDB or MySQL is not known, and their settings differ; start it once"
    if instance["engine"] == "firebird" and not instance["databases"]:
        yield f"{label}: none of its databases was found; name their paths in durable_databases"
    lost = {field for field in _NEEDED if evidence.get(field, {}).get("value") == UNKNOWN}
    lost |= {field for field in _TOLD if field not in evidence}
    lost |= {"namespace"} if instance["namespace"] == UNKNOWN else set()
    incomplete = evidence.get("files", {}).get("value") == "partial"
    nowhere = "directories" in lost or not instance["directories"]
    if incomplete and (nowhere or instance["engine"] in _ANYWHERE):
        lost.add("files")
    if instance["state"] == "stopped":
        # It has no process, and so no open files, libraries and namespace.
        lost &= {"directories"}
    for field in sorted(lost):
        why = evidence.get(field, {}).get("reason") or "it was not told"
        yield f"{label}: {_NEEDED[field]} is not known: {why}"


def nothing_known(now: str, why: str) -> dict[str, Any]:
    """Return what stands for durable_engines where it could not be collected: a host that may run any."""
    lost = {"pid": None, "name": "what runs here", "why": why}
    return {"time": now, "engines": [], "unattributed": [lost], "writers": []}


def paths(found: dict[str, Any]) -> list[str]:
    """Return where the engines keep data and logs: what they are configured to, and have open."""
    named = [path for instance in found["engines"] for path in instance["directories"]]
    opened = [row["directory"] for instance in found["engines"] for row in instance["files"]]
    return list(dict.fromkeys([*named, *opened]))


def told(instance: dict[str, Any], storage: dict[str, Any]) -> dict[str, Any]:
    """Return an instance as the report has it: which files, on which disks, opened how."""
    fields = ("engine", "name", "state", "version", "unit", "managed_by", "namespace", "config")
    by_device = {mount["device"]: mount for mount in storage["mounts"]}
    files = [
        {
            **{name: row[name] for name in ("directory", "opened", "count")},
            "mount": by_device.get(row["device"], {}).get("target"),
            "disks": by_device.get(row["device"], {}).get("disks", UNKNOWN),
        }
        for row in instance["files"]
    ]
    return {**{name: instance[name] for name in fields}, "files": files}


def rules(instance: dict[str, Any], profile: Profile) -> dict[str, Rule]:
    """Return the rules for an instance's settings that do not depend on storage."""
    found = (FULL if profile.engines == "full" else RELAXED)[_kind(instance)]
    return {name: rule.against(_seen(instance, name)) for name, rule in found.items()}


def _seen(instance: dict[str, Any], name: str) -> set[str]:
    """Return the words of a setting now and at the next start, as far as they are known."""
    seen = instance["settings"].get(name, {})
    return {seen.get("running", UNKNOWN), seen.get("persisted", UNKNOWN)} - {UNKNOWN, "stopped"}


def _rows(
    instance: dict[str, Any],
    profile: Profile,
    storage: dict[str, Any],
    honoured: mssql.Honoured,
    may_restart: bool,
) -> Iterator[Setting]:
    if instance["engine"] == "firebird":
        yield from _databases(instance, profile)
        return
    wanted = rules(instance, profile)
    if instance["engine"] == "mssql":
        wanted = mssql.rules(instance, profile, storage, honoured)
    if instance["engine"] == "faircom":
        wanted = faircom.rules(instance, wanted, profile)
    for name, rule in wanted.items():
        why = instance["evidence"].get(name, {}).get("reason") or "it was not told"
        seen = instance["settings"].get(name, {**_NOT_TOLD, "reason": why})
        # Of one that tells nothing at all this is said once, elsewhere.
        if instance["settings"] and not _is_absent(instance, name) and not _is_moot(instance, rule):
            yield _row(instance, name, rule, seen, may_restart)
    for override in instance["overrides"]:
        broken, full = (of.get(override["setting"]) for of in (wanted, FULL[_kind(instance)]))
        # Where loss is accepted, a role that keeps its commits may.
        is_strict = full is not None and full.allows(override["value"])
        if broken and not broken.allows(override["value"]) and not is_strict:
            yield _override(instance, override, broken)


def _row(instance: dict[str, Any], name: str, rule: Rule, seen: dict[str, Any], may_restart: bool) -> Setting:
    stopped = instance["state"] == "stopped"
    running = "stopped" if stopped else seen["running"]
    persisted = seen["persisted"]
    runs, kept = stopped or rule.allows(running), rule.allows(persisted)
    # What the command line fixed waits for a restart, also of a setting that a server takes otherwise.
    waits = name in instance["pending_restart"]
    verdict = _judge(running, persisted, runs, kept, rule.live and not waits)
    held = None if kept else seen.get("held")
    ours = instance["managed_by"] not in _OWNERS and persisted != UNKNOWN and not held
    phase = None
    if verdict.startswith("drift") and ours:
        phase = rule.phase
    if verdict == "pending" and may_restart and instance["managed_by"] == "systemd":
        phase = rule.phase
    # Of several words that will do, the one that is there is kept: it may be the stricter one.
    runs_as = running if runs and running not in (UNKNOWN, "stopped") else None
    stays = persisted if kept and persisted != UNKNOWN else None
    kept_as = stays or runs_as or rule.value
    source = {"value": running, "source": seen["source"], "reason": seen["reason"]}
    return Setting(
        layer=instance["engine"],
        target=instance["name"],
        setting=name,
        klass=rule.klass,
        wanted_running=runs_as or kept_as,
        wanted_persisted=kept_as,
        running=running,
        persisted=persisted,
        verdict=verdict,
        phase=phase,
        evidence={"running": source, "persisted": {**source, "value": persisted, "source": seen.get("from")}},
        why=_why(verdict, name, running, persisted, rule, seen),
        remedy=_remedy(instance, verdict, phase, held),
    )


def _judge(running: str, persisted: str, runs: bool, kept: bool, live: bool) -> str:
    if running != UNKNOWN and not runs:
        if live:
            return "drift_running"
        if persisted != UNKNOWN:
            return "pending" if kept else "drift_persisted"
    if persisted != UNKNOWN and not kept:
        return "drift_persisted"
    return UNKNOWN if UNKNOWN in (running, persisted) else "ok"


def _why(verdict: str, name: str, running: str, persisted: str, rule: Rule, seen: dict[str, Any]) -> str:
    if verdict == "ok":
        return "as wanted"
    if verdict == UNKNOWN:
        return seen["reason"] or f"{name} could not be read"
    if verdict == "drift_running":
        return f"{name} is {running}: {rule.meaning(running)}"
    if verdict == "pending":
        return f"the server runs with {running} until it is restarted: {rule.meaning(running)}"
    place = f" ({seen['from']})" if seen.get("from") else ""
    return f"at its next start {name} will be {persisted}{place}: {rule.meaning(persisted)}"


def _remedy(instance: dict[str, Any], verdict: str, phase: str | None, held: str | None) -> str:
    if verdict == "ok":
        return ""
    if phase:
        return "run harden-db"
    manager = instance["managed_by"]
    if verdict == "pending":
        if manager == "pacemaker":
            return "restart it through the cluster: pcs resource restart"
        if manager in _CLUSTERS:
            return (
                "rolling restart, one node at a time: each once the one before has joined the cluster again"
            )
        if manager != "systemd":
            return "restart the server: no unit of its own is known that could be restarted"
        return "restart the server, or give durable_allow: [restart_engines]"
    if manager in _OWNERS:
        return _OWNERS[manager]
    if held:
        return held
    return MEND


def _override(instance: dict[str, Any], override: dict[str, Any], rule: Rule) -> Setting:
    """A setting of one role or database, which the server's own does not reach."""
    value = override["value"]
    said = {"value": value, "source": override["source"], "reason": None}
    return Setting(
        layer=instance["engine"],
        target=f"{instance['name']} {override['scope']}",
        setting=override["setting"],
        klass=rule.klass,
        wanted_running=rule.value,
        wanted_persisted=rule.value,
        running=value,
        persisted=value,
        verdict="drift_running",
        phase=None,
        evidence={"running": said, "persisted": said},
        why=f"{override['setting']} is {value} for {override['scope']}: {rule.meaning(value)}",
        remedy=f"take it away where it was set: {override['remedy']}",
    )


def _databases(instance: dict[str, Any], profile: Profile) -> Iterator[Setting]:
    """Yield a row for each Firebird database: the setting is in its header.

    Who has it open may do otherwise than the header says, until he detaches.
    """
    rule = rules(instance, profile)["forced_writes"]
    for database in instance["databases"]:
        persisted = database["forced_writes"]
        running = persisted if database["running"] == "closed" else database["running"]
        runs, kept = rule.allows(running), rule.allows(persisted)
        verdict = _judge(running, persisted, runs, kept, rule.live)
        if database["mode"] == "read_only":
            verdict = "ok"  # Nothing writes to it; Firebird changes no header of such a one either.
        can = verdict.startswith("drift") and _is_ours_to_change(instance, database)
        why = _why(verdict, "forced_writes", running, persisted, rule, {"reason": database["reason"]})
        if verdict.startswith("drift"):
            why += _flushes(instance)
        source = {"value": running, "source": f"how {database['path']} is open", "reason": database["reason"]}
        header = {**source, "value": persisted, "source": f"{database['path']}: header"}
        yield Setting(
            layer="firebird",
            target=database["path"],
            setting="forced_writes",
            klass="safety",
            wanted_running=rule.value,
            wanted_persisted=rule.value,
            running=running,
            persisted=persisted,
            verdict=verdict,
            phase=rule.phase if can else None,
            evidence={"running": header if database["running"] == "closed" else source, "persisted": header},
            why=why,
            remedy="" if verdict == "ok" else "run harden-db" if can else _gfix(instance, database, verdict),
        )


def _is_ours_to_change(instance: dict[str, Any], database: dict[str, Any]) -> bool:
    is_free = (database["in_use"], database["mode"]) == ("no", "read_write") and database["owner"] != "0"
    # Those who open a database find each other by files in /tmp/firebird, which another namespace hides.
    return is_free and instance["namespace"] == "host" and instance["managed_by"] not in _OWNERS


def _gfix(instance: dict[str, Any], database: dict[str, Any], verdict: str) -> str:
    path, manager = database["path"], instance["managed_by"]
    if verdict == UNKNOWN:
        return MEND
    if manager in _OWNERS:
        return _OWNERS[manager]
    if instance["namespace"] != "host":
        return f"run {command('gfix', '-write', 'sync', path)} in the server's own mount namespace: nsenter"
    if database["mode"] == "shutdown":
        return f"it is shut down: bring it online ({command('gfix', '-online', path)}), and run again"
    if database["owner"] == "0":
        return f"root owns {path}: give it to the server's user (chown), as whom gfix has to run"
    if database["in_use"] == "yes":
        mode = instance["settings"].get("ServerMode", {}).get("persisted", "")
        if mode.lower() in ("super", "threadeddedicated"):
            by_server = command("gfix", "-write", "sync", f"localhost:{path}")
            return f"somebody has it open: run again when nobody has, or {by_server} now"
        return "somebody has it open: run again when nobody has; who has it open keeps his way of writing"
    return MEND


def _flushes(instance: dict[str, Any]) -> str:
    """Return what the server's settings mean for a database without forced writes."""
    said = {name: row["persisted"] for name, row in instance["settings"].items()}
    writes, seconds = said.get("MaxUnflushedWrites", UNKNOWN), said.get("MaxUnflushedWriteTime", UNKNOWN)
    if not all(re.fullmatch(r"-?\d{1,9}", word, re.ASCII) for word in (writes, seconds)):
        return ""
    if max(int(writes), int(seconds)) < 0:
        return ", for the server never asks it to (MaxUnflushedWrites and MaxUnflushedWriteTime are off)"
    return f", at most until a commit after {writes} writes or {seconds} seconds (-1: never)"


def _is_absent(instance: dict[str, Any], name: str) -> bool:
    """Tell whether an observer says that this version has no such setting, or shows it in `overrides` only.

    It says so by the word `absent` in the evidence of the setting's name, with the reason.
    """
    return name not in instance["settings"] and instance["evidence"].get(name, {}).get("value") == "absent"


def _is_moot(instance: dict[str, Any], rule: Rule) -> bool:
    if not rule.unless:
        return False
    other, word = rule.unless
    seen = instance["settings"].get(other, {})
    # What the next start brings counts as well.
    return seen.get("running") in (word, "stopped") and bool(seen.get("persisted") == word)


def _risks(instance: dict[str, Any], rows: list[Setting]) -> Iterator[str]:
    label = _label(instance)
    if instance["state"] == "stopped":
        return
    yield from _defects(instance)
    for row in rows:
        rule = _rule_of(instance, row)
        wrong = (
            rule and rule.loses and row.running not in (UNKNOWN, "stopped") and not rule.allows(row.running)
        )
        if wrong and row.klass == "safety" and row.verdict != "ok":
            why = f"commits of {label} can vanish: {row.setting} is {row.running} ({row.target})"
            yield f"{why}; {row.remedy or MEND}"
    if instance["engine"] == "mssql":
        remedy = next((row.remedy for row in rows if row.setting in mssql.LOSES and row.remedy), MEND)
        yield from (f"{why}; {remedy}" for why in mssql.risks(instance, label))


def _defects(instance: dict[str, Any]) -> Iterator[str]:
    """Yield the ways in which a running instance loses commits now that no setting mends."""
    label = _label(instance)
    for library in instance["preloads"]:
        yield (
            f"commits of {label} can vanish: {library} is loaded into it, and makes fsync do nothing; take it out of"
            " LD_PRELOAD and /etc/ld.so.preload, and restart it"
        )
    if instance["engine"] == "mssql":
        yield from mssql.defects(instance, label)
    if instance["engine"] == "faircom":
        yield from faircom.defects(instance, label)


def _is_lasting(instance: dict[str, Any], rows: list[Setting], may_restart: bool) -> bool:
    """Tell whether an instance loses commits, or may, also after this run has set what it may.

    Then nothing below it becomes less strict: a cache that is off may be all that keeps its commits.
    """
    if instance["state"] == "stopped":
        return False
    if any(_defects(instance)):
        return True
    restarts = may_restart and instance["managed_by"] == "systemd"
    wrong = [row for row in rows if row.verdict != "ok" and _loses(instance, row)]
    return any(_stays(instance, row, restarts) for row in wrong)


def _loses(instance: dict[str, Any], row: Setting) -> bool:
    """Tell whether a setting that is wrong may lose commits."""
    rule = _rule_of(instance, row)
    return row.klass == "safety" and (rule.loses if rule else row.setting in mssql.LOSES)


def _stays(instance: dict[str, Any], row: Setting, restarts: bool) -> bool:
    """Tell whether a setting is wrong, or may be, also when this run has set it."""
    if row.phase is None or row.running == UNKNOWN:
        return True
    rule = _rule_of(instance, row)
    return row.running != row.wanted_running and not restarts and not (rule and rule.live)


def _rule_of(instance: dict[str, Any], row: Setting) -> Rule | None:
    return FULL[_kind(instance)].get(row.setting)


def _unattributed(process: dict[str, Any]) -> str:
    who = f"process {process['pid']} ({process['name']})" if process["pid"] else process["name"]
    return f"{who} may be a database server, and belongs to none that is understood: {process['why']}"


def _kind(instance: dict[str, Any]) -> str:
    """Return which rules hold: MySQL's are not quite MariaDB's."""
    if instance["engine"] == "mariadb" and instance.get("flavour") == "mysql":
        return "mysql"
    return str(instance["engine"])


def _label(instance: dict[str, Any]) -> str:
    return f"{instance['engine']} {instance['name']}"
