# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each engine's settings compared with the profile: rows of the report, and findings.

Pure: `durable_engines` in, rows out, as policy/assess/settings.py for disks and mounts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

from ... import catalog
from ...engines import causes as engine_causes
from ...engines import findings
from ...engines.judges import judge_of
from ...engines.overrides import fix as fix_of_override
from ...engines.owners import OWNERS, where_to_set
from ...engines.placement import Placement, holder
from ...engines.rule import Rule
from ...engines.rules import (
    Honoured,
    Subject,
    judge,
    product,
    why_of,
)
from ...facts.engines import EnginesFacts, InstanceFacts, OverrideFacts, SettingFacts, Stray
from ...facts.storage import MountFacts, StorageFacts
from ...host.observation import NOTHING, UNKNOWN
from ...host.printable import command
from ...host.printable import name as quoted
from ...rows import FIX_READ_ERROR, RUN, Reason, Setting
from ..expect import chosen_layers
from ..expect.engine_scope import Standing
from ..expect.guarantees import Server
from .found import Cause
from .unchanged import left

#: Nodes of these are restarted by their owner only: their settings are set, and stay pending.
_CLUSTERS = ("galera", "group_replication")
#: The permission to restart servers.
_RESTART = "restart_engines"
#: Manager -> the restart that makes pending settings effective. A run may restart a unit of systemd.
_RESTARTS = {
    "pacemaker": "run pcs resource restart RESOURCE (SUSE: crm resource restart RESOURCE)",
    **dict.fromkeys(
        _CLUSTERS,
        "restart the nodes one at a time, each after the one before has joined the cluster again",
    ),
    "patroni": "run patronictl restart CLUSTER MEMBER with the names that patronictl list shows for this node",
    "container": "restart its container",
    "none": "stop and start the server as it was started",
    UNKNOWN: "stop and start the server as it was started, through Pacemaker if crm_mon -1r lists it",
}
#: Observations that every running server has.
_ALWAYS_REPORTED = ("files", "preloads")

#: The change of a file's owner that a run makes before it writes a setting there (engines/instance.py).
_OWNER = ("owner_of", "owner", "owner_wanted")

#: Placeholder for a setting that an instance does not report.
_NOT_REPORTED: SettingFacts = {
    "running": UNKNOWN,
    "persisted": UNKNOWN,
    "source": "none",
    "reason": None,
    "from": None,
    "held": None,
    "permission": None,
}


class Engines(NamedTuple):
    """The findings about a host's engines.

    `risks`: ways in which acknowledged commits can be lost now; `unknowns`: unknown values;
    `warnings`: notes that change no verdict; `lasting`: servers that still can lose commits after
    this run has set everything that it may; `exposed`: commands that check for damage, of servers that
    could have lost commits or report damage; `causes`: the settings from which risks come.
    """

    rows: tuple[Setting, ...] = ()
    risks: tuple[Reason, ...] = ()
    unknowns: tuple[Reason, ...] = ()
    warnings: tuple[Reason, ...] = ()
    lasting: tuple[str, ...] = ()
    exposed: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()


def assess(
    servers: Iterable[Server],
    unattributed: Iterable[Stray],
    storage: StorageFacts,
    honoured: Honoured,
    allow: Collection[str],
    layers: frozenset[str],
    lies_on_loss: Callable[[Placement], bool],
) -> Engines:
    """Return the findings about all engines of a host.

    `unattributed`: processes that belong to no instance; `honoured` returns whether a disk honours
    FUA; `allow`: the permissions of this run; `layers`: those that it may touch; `lies_on_loss`: whether disks or mounts below
    an instance lose commits with any setting of the engine.
    """
    rows: list[Setting] = []
    risks: list[Reason] = []
    warnings: list[Reason] = []
    lasting: list[str] = []
    checks: list[str] = []
    causes: list[Cause] = []
    unknowns = [_unattributed(process) for process in unattributed]
    for instance, where, profile in servers:
        subject = Subject(instance, profile, storage, honoured)
        own = [left(row, profile)._replace(profile=profile.name) for row in _rows(subject, allow)]
        unread = [row for row in own if instance["managed_by"] == "container" and row.verdict == UNKNOWN]
        rows += [row for row in own if row not in unread]
        fixes, _safer = chosen_layers.leave_out(own, layers)
        own_risks = list(subject.shown(_risks(subject, fixes))) if profile.promises_durability else []
        risks += own_risks
        causes += [
            Cause(each, row.target, row.setting)
            for each in own_risks
            for row in own
            if each.targets == (_about(row),)
        ]
        if profile.promises_durability and _is_lasting(subject, own, allow):
            lasting.append(subject.label)
        unknowns += subject.shown([*_unread(subject, unread), *_unknowns(subject)])
        warnings += subject.shown(judge_of(instance).warnings(subject))
        check, damage = catalog.check(instance), instance["evidence"].get("damage")
        if damage:
            observed = f"{damage['reason']} ({damage['source']})"
            checks.append(
                f"{quoted(subject.title)} was damaged: {observed}; unless it was repaired since, check it with {check}"
            )
        if own_risks or (profile.promises_durability and lies_on_loss(where)):
            checks.append(
                f"{quoted(subject.title)} was exposed: after the fix, check it for damage with {check}"
            )
    return Engines(
        tuple(rows),
        tuple(risks),
        tuple(unknowns),
        tuple(warnings),
        tuple(lasting),
        tuple(checks),
        tuple(causes),
    )


def _unread(subject: Subject, rows: list[Setting]) -> Iterator[Reason]:
    """Yield one finding for all values that cannot be read from outside a container."""
    instance, label = subject.instance, subject.label
    is_silent = instance["evidence"].get("settings", NOTHING).get("value") == UNKNOWN
    names = [row.setting for row in rows]
    if instance["managed_by"] == "container" and is_silent and not names:
        names = ["settings of roles and databases"]
    if names and subject.profile.promises_durability:
        yield findings.CONTAINER_VALUES.found(label, engine=label, settings=", ".join(dict.fromkeys(names)))


def _unknowns(subject: Subject) -> Iterator[Reason]:
    """Yield the unknown values of an instance, except its settings."""
    instance, label = subject.instance, subject.label
    evidence, own = instance["evidence"], judge_of(instance)
    if evidence.get("observation"):
        observed = evidence["observation"]
        cure = engine_causes.fix(observed)
        yield findings.OBSERVATION.found(label, fix=cure, engine=label, cause=str(observed["reason"]))
    elif not instance["settings"] and not instance.get("databases"):
        yield findings.NO_SETTINGS.found(label, engine=label)
    if instance["state"] == UNKNOWN:
        status = command("systemctl", "status", *filter(None, [instance["unit"]]))
        yield findings.STATE.found(label, engine=label, command=status)
    lost = {field for field in findings.FIELDS if evidence.get(field, NOTHING).get("value") == UNKNOWN}
    lost |= {field for field in _ALWAYS_REPORTED if field not in evidence}
    lost |= {"namespace"} if instance["namespace"] == UNKNOWN else set()
    incomplete = evidence.get("files", NOTHING).get("value") == "partial"
    nowhere = "directories" in lost or not instance["directories"]
    if incomplete and (nowhere or own.lies_anywhere):
        lost.add("files")
    if instance["state"] == "stopped":
        # It has no process, and so no open files, libraries and namespace.
        lost &= {"directories"}
    for field in sorted(lost):
        cure = engine_causes.fix(evidence.get(field, NOTHING))
        yield findings.FIELDS[field].found(label, fix=cure, engine=label, cause=subject.reason(field))
    starter = evidence.get("start_arguments")
    if starter and instance["state"] != "stopped" and subject.profile.promises_durability:
        pid = str(next(iter(instance["pids"]), ""))
        yield findings.START_SCRIPT.found(label, engine=label, script=str(starter["source"]), pid=pid)
    yield from own.unknowns(subject)


def nothing_known(now: str, why: str) -> EnginesFacts:
    """Return durable_engines for a host without collected engines: it may run any."""
    lost: Stray = {"pid": None, "name": "any database server", "why": why}
    return {
        "boot_id": "",
        "time": now,
        "paths": [],
        "stop_timeouts": [],
        "engines": [],
        "unattributed": [lost],
        "writers": [],
    }


def as_report(standing: Standing, storage: StorageFacts) -> dict[str, Any]:
    """Return an instance for the report: whether it is assessed; its files, their disks and open modes."""
    instance = standing.instance
    fields = ("engine", "name", "state", "version", "unit", "managed_by", "namespace", "config")
    by_device = {mount["device"]: mount for mount in storage["mounts"]}
    files = [
        {
            "directory": row["directory"],
            "opened": row["opened"],
            "count": row["count"],
            "mount": _mounted_at(by_device.get(row["device"]), row["directory"]),
            "disks": by_device.get(row["device"], NOTHING).get("disks", UNKNOWN),
        }
        for row in instance["files"]
    ]
    judged = {"judged": standing.judged, "reason": standing.reason}
    shown = {
        **{name: value for name, value in instance.items() if name in fields},
        "product": product(instance),
    }
    return {**shown, **judged, "files": files}


def _mounted_at(mount: MountFacts | None, directory: str) -> str | None:
    """Return the mount point of a file system below which a directory is: subvolumes of btrfs are mounted side by side."""
    return mount and (holder(directory, tuple(mount["targets"])) or mount["target"])


def _rows(subject: Subject, allow: Collection[str]) -> Iterator[Setting]:
    if subject.profile.promises_durability:
        yield from _of_next_preloads(subject.instance)
    yield from _of_settings(subject, allow)


def _of_next_preloads(instance: InstanceFacts) -> Iterator[Setting]:
    """Yield a row for libraries that make fsync do nothing and that the next start loads; none if it loads none."""
    coming = instance["evidence"].get("next_preloads")
    if not coming:
        return
    now = " ".join(instance["preloads"]) or "none"
    now = "stopped" if instance["state"] == "stopped" else now
    is_known = coming["value"] != UNKNOWN
    running = {"value": now, "source": "/proc/PID/maps", "reason": None}
    yield Setting.of(
        layer=instance["engine"],
        target=instance["name"],
        setting=findings.PRELOADS,
        wanted="none",
        observed=(now, coming["value"]),
        verdict="drift_persisted" if is_known else UNKNOWN,
        phase=None,
        evidence={"running": running, "persisted": coming},
        why=f"the next start loads {coming['value']} ({coming['source']}), which makes fsync do nothing"
        if is_known
        else f"which libraries the next start loads is unknown: {coming['reason']}",
        remedy=f"remove {coming['value']} from {coming['source']}" if is_known else FIX_READ_ERROR,
    )


def _of_settings(subject: Subject, allow: Collection[str]) -> Iterator[Setting]:
    instance, own = subject.instance, judge_of(subject.instance)
    wanted = own.wanted(subject)
    if own.rows:
        yield from own.rows(subject, wanted)
        return
    for name, rule in wanted.items():
        observed = instance["settings"].get(name) or {**_NOT_REPORTED, "reason": subject.reason(name)}
        # An instance without any setting has one finding for all.
        if instance["settings"] and not _is_absent(instance, name) and not _is_moot(instance, rule):
            yield _row(instance, name, rule, observed, allow)
    for override in instance["overrides"]:
        broken, full = (of.get(override["setting"]) for of in (wanted, own.strict(instance)))
        # A role may preserve its commits although loss is accepted.
        is_strict = full is not None and full.allows(override["value"])
        if broken and not broken.allows(override["value"]) and not is_strict:
            yield _override(instance, override, broken, allow)


def _row(
    instance: InstanceFacts, name: str, rule: Rule, observed: SettingFacts, allow: Collection[str]
) -> Setting:
    stopped = instance["state"] == "stopped"
    running = "stopped" if stopped else observed["running"]
    persisted = observed["persisted"]
    runs, persists = stopped or rule.allows(running), rule.allows(persisted)
    runs_as, persisted_as = _values(rule, running if runs else UNKNOWN, persisted if persists else UNKNOWN)
    # A value of the command line needs a restart, although the server reloads the setting from its file.
    waits = name in instance["pending_restart"]
    verdict = judge(running, persisted, runs, persists, rule.live and not waits)
    fix_text = judge_of(instance).fix
    held = None if persists else _held(fix_text(observed.get("held")), observed.get("permission"), allow)
    ours = instance["managed_by"] not in OWNERS and persisted != UNKNOWN and not held
    phase = rule.phase if _is_set(instance, verdict, ours, allow) else None
    source = {"value": running, "source": observed["source"], "reason": observed["reason"]}
    last = {"by": observed.get("by"), "fix": fix_text(observed.get("fix"))}
    last = {key: value for key, value in last.items() if value}
    last.update({key: str(observed.get(key)) for key in _OWNER if observed.get("owner_of")})
    why = why_of(verdict, name, running, persisted, rule, observed)
    refused = observed.get("refused")
    if held and refused and verdict != "ok":
        why = f"{why}, and no run sets it: {judge_of(instance).refusal(refused)}"
    return Setting(
        layer=instance["engine"],
        target=instance["name"],
        setting=name,
        klass=rule.klass,
        wanted_running=runs_as,
        wanted_persisted=persisted_as,
        running=running,
        persisted=persisted,
        verdict=verdict,
        phase=phase,
        evidence={
            "running": source,
            "persisted": {**source, "value": persisted, "source": observed.get("from"), **last},
        },
        why=why,
        means=verdict == "drift_running",
        remedy=_remedy(instance, name, verdict, phase, held, observed),
    )


def _values(rule: Rule, running: str, persisted: str) -> tuple[str, str]:
    """Return the expected running value and the one for the next start; given are the accepted ones, or UNKNOWN.

    If several values are accepted, the current one stays: it may be the stricter one.
    """
    runs_as = "" if running in (UNKNOWN, "stopped") else running
    persisted_as = ("" if persisted == UNKNOWN else persisted) or runs_as or rule.value
    return runs_as or persisted_as, persisted_as


def _is_set(instance: InstanceFacts, verdict: str, ours: bool, allow: Collection[str]) -> bool:
    """Return whether a run changes a setting; `ours`: whether it may write it."""
    if verdict == "pending":
        return _RESTART in allow and instance["managed_by"] == "systemd"
    return verdict.startswith("drift") and ours


def _remedy(
    instance: InstanceFacts,
    name: str,
    verdict: str,
    phase: str | None,
    held: str | None,
    observed: SettingFacts,
) -> str:
    if verdict == "ok":
        return ""
    if phase:
        return RUN
    manager = instance["managed_by"]
    if verdict == "pending":
        return _RESTARTS.get(manager, f"restart the server{_or_give(_RESTART)}")
    if verdict == UNKNOWN:
        # The unknown value may be correct: an administrator reads it before any change.
        return held or engine_causes.fix(observed) or FIX_READ_ERROR
    return where_to_set(instance, name, observed.get("from")) or held or FIX_READ_ERROR


def _held(held: str | None, permission: str | None, allow: Collection[str]) -> str | None:
    """Return how to remove what overrides a run, None if nothing does, or if the run may remove it."""
    if not held or not permission:
        return held
    return None if permission in allow else f"{held}{_or_give(permission)}"


def _or_give(permission: str) -> str:
    return f", or give durable_allow: [{permission}]"


def _override(
    instance: InstanceFacts, override: OverrideFacts, rule: Rule, allow: Collection[str]
) -> Setting:
    """Return the row of a setting of one role or database, which overrides that of the server."""
    value = override["value"]
    observation = {"value": value, "source": override["source"], "reason": None}
    where = {"instance": instance["name"], "role": override["role"], "database": override["database"]}
    manager = instance["managed_by"]
    permission = override["permission"] if manager not in OWNERS else None
    held = _held(fix_of_override(override), permission, allow)
    return Setting.of(
        layer=instance["engine"],
        target=f"{instance['name']} {override['scope']}",
        setting=override["setting"],
        wanted=rule.value,
        observed=(value, value),
        verdict="drift_running",
        phase=None if held else rule.phase,
        evidence={"running": observation, "persisted": observation, "override": where},
        why=f"{override['setting']} is {value} for {override['scope']}: {rule.meaning(value)}",
        remedy=held or RUN,
        klass=rule.klass,
    )


def _is_absent(instance: InstanceFacts, name: str) -> bool:
    """Return whether this version has no such setting, or reports it in `overrides` only.

    The evidence of the setting then has the value `absent`, with the reason.
    """
    return (
        name not in instance["settings"] and instance["evidence"].get(name, NOTHING).get("value") == "absent"
    )


def _is_moot(instance: InstanceFacts, rule: Rule) -> bool:
    # The value at the next start counts too.
    idle = (*rule.unless[1:], "stopped")
    return _decides(instance, rule, "running") in idle and _is_without_effect(instance, rule, "persisted")


def _is_without_effect(instance: InstanceFacts, rule: Rule, when: str) -> bool:
    """Return whether another setting makes this one idle, `running` or `persisted`."""
    return bool(rule.unless) and _decides(instance, rule, when) == rule.unless[1]


def _decides(instance: InstanceFacts, rule: Rule, when: str) -> Any:
    """Return the value of the setting on which a rule's effect depends, None without one."""
    return instance["settings"].get(rule.unless[0], NOTHING).get(when) if rule.unless else None


def _risks(subject: Subject, rows: list[Setting]) -> Iterator[Reason]:
    instance, label, own = subject.instance, subject.label, judge_of(subject.instance)
    if instance["state"] == "stopped":
        return
    yield from _defects(subject)
    for row in rows:
        rule = _rule_of(instance, row)
        wrong = (
            rule and rule.loses and row.running not in (UNKNOWN, "stopped") and not rule.allows(row.running)
        )
        # A running state decides a risk, regardless of the next start.
        if rule and _is_without_effect(instance, rule, "running"):
            continue
        if wrong and row.klass == "safety" and row.verdict != "ok":
            values = {"engine": label, "setting": row.setting, "value": row.running, "target": row.target}
            values["cure"] = row.remedy or FIX_READ_ERROR
            yield findings.SETTING.found(_about(row), **values)
    remedy = next((row.remedy for row in rows if row.setting in own.loses and row.remedy), "")
    yield from (each._replace(fix=remedy or each.fix) for each in own.risks(subject))


def _about(row: Setting) -> str:
    """Return the target of a risk that comes from one setting of one server: a waiver of one accepts no other."""
    return f"{row.layer} {row.target} {row.setting}"


def _defects(subject: Subject) -> Iterator[Reason]:
    """Yield current risks of a running instance that no setting corrects."""
    label = subject.label
    for library in subject.instance["preloads"]:
        yield findings.PRELOAD.found(label, engine=label, library=library)
    yield from judge_of(subject.instance).defects(subject)


def _is_lasting(subject: Subject, rows: list[Setting], allow: Collection[str]) -> bool:
    """Return whether an instance still can lose commits after this run has set everything that it may.

    Then nothing below it becomes less strict: a disabled cache may be all that preserves its commits.
    """
    instance = subject.instance
    if instance["state"] == "stopped":
        return False
    if any(_defects(subject)):
        return True
    restarts = _RESTART in allow and instance["managed_by"] == "systemd"
    wrong = [row for row in rows if row.verdict != "ok" and _loses(instance, row)]
    return any(_stays(instance, row, restarts) for row in wrong)


def _loses(instance: InstanceFacts, row: Setting) -> bool:
    """Return whether a wrong setting can lose commits."""
    rule = _rule_of(instance, row)
    loses = (*judge_of(instance).loses, findings.PRELOADS)
    return row.klass == "safety" and (rule.loses if rule else row.setting in loses)


def _stays(instance: InstanceFacts, row: Setting, restarts: bool) -> bool:
    """Return whether a setting is or can be wrong after this run has set it."""
    # An open connection continues with the old value of its role or database.
    if row.phase is None or row.running == UNKNOWN or "override" in row.evidence:
        return True
    rule = _rule_of(instance, row)
    return row.running != row.wanted_running and not restarts and not (rule and rule.live)


def _rule_of(instance: InstanceFacts, row: Setting) -> Rule | None:
    return judge_of(instance).strict(instance).get(row.setting)


def _unattributed(process: Stray) -> Reason:
    """Return the finding for a process that may be an engine, or for engines that could not be searched for."""
    name, cause = str(process["name"]), str(process["why"])
    if not process["pid"]:
        return findings.ENGINES.found(name, engine=name, cause=cause)
    who = f"process {process['pid']} ({name})"
    return findings.UNATTRIBUTED.found(who, process=who, cause=cause)
