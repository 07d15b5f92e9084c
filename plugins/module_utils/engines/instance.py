# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One instance of an engine, as found, before it is queried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Union, cast

from ..facts.classes import (
    CauseFacts,
    DatabaseFacts,
    OverrideFacts,
    ReasonFacts,
    RefusalFacts,
    SettingFacts,
    SettingFixFacts,
)
from ..host import bounds, named_by
from ..host.foreign import Identity
from ..host.observation import Because, Observation, Undecided, unread
from ..host.process_context import whose
from ..host.processes import Process, Processes
from ..host.seam import Host, Refused, Unobservable
from . import fixes
from .next_start import NextStart
from .open_files import Opened

#: The origin of a value that a server was started with.
COMMAND_LINE = "its command line"
#: Why a value is unknown: the text of an error, or a cause.
Why = Union[str, Because, None]
#: One or several of these.
Whys = Union[Why, Sequence[Why]]


class Instance(NamedTuple):
    """One server that runs, or that is installed and stopped.

    `name` stays the same over restarts. `processes`: the main one first, () when it is stopped.
    `config` and `directories` are paths as the instance itself sees them; None and () are for what
    was not found. `unit` is the systemd service of a stopped one; of a running one its control group
    has it; `begins` is how that starts it next, None if that is unknown, or another manager does.
    `flavour` is for MariaDB and MySQL: mariadb, mysql or unknown. `evidence` says by field why
    something is unknown. `opened`: the files that it has open for writing, as far as they are known.
    `named_by`: the user of its main process, who names all these paths; None for root.
    """

    engine: str
    name: str
    processes: tuple[Process, ...] = ()
    config: str | None = None
    directories: tuple[str, ...] = ()
    unit: str | None = None
    flavour: str | None = None
    version: Observation | None = None
    evidence: tuple[tuple[str, Observation], ...] = ()
    opened: tuple[Opened, ...] = ()
    begins: NextStart | None = None
    named_by: Identity | None = None


class Refusal(NamedTuple):
    """Why a run would not set a setting, and what to do first."""

    reason: RefusalFacts
    fix: SettingFixFacts

    @classmethod
    def of(cls, error: Exception, text: str | None = None) -> Refusal:
        """Return what an error says; `text`: its message, where that may hold anything."""
        if isinstance(error, Refused):
            found = error.found if isinstance(error, fixes.RefusedWith) else None
            return cls(
                fixes.refusal("error", error=error.reason), found or fixes.fix("refusal", text=error.fix)
            )
        reason, _mark, fix = (text or str(error)).partition(". Fix: ")
        found = fixes.fix("refusal", text=fix) if fix else fixes.fix("correct")
        return cls(fixes.refusal("error", error=reason), found)

    def keeps(self, row: SettingFacts) -> SettingFacts:
        """Return a row of settings which this keeps a run from setting, unless something else does."""
        return row if row["held"] else {**row, "held": self.fix, "refused": self.reason}


class Gift(NamedTuple):
    """A file whose owner a run sets before it writes there: how a plan names it, and `user:group` before and after."""

    name: str
    before: str
    after: str

    def adds(self, row: SettingFacts) -> SettingFacts:
        """Return a row of settings with this change."""
        return {**row, "owner_of": self.name, "owner": self.before, "owner_wanted": self.after}


class Observed(NamedTuple):
    """What an engine says of one of its instances, and its files say of its next start.

    `directories`: where it keeps data and logs, as the instance sees them, over those that were known.
    `settings`: {name: {running, persisted, source, reason, from, held, permission}}, values as the engine writes them;
    running is `stopped` if nothing runs; `from` is the file and line that wins, or null; `reason`
    says why one of the two is unknown; `held` is null, or how to remove what beats every file that a run
    writes; `permission`: the word of durable_allow with which a run itself removes it, or null; `refused`, if it is
    there: why a run does not set it, and `held` is what to do about that.
    `pending_restart`: names of settings that wait for a restart.
    `overrides`: [{scope, setting, value, source, cause, role, database, permission}] of roles, users or databases that go
    their own way; `cause` is one of CAUSES of the facts; `role` and `database` are null for any, and if it is neither's.
    `databases`: Firebird's, [{path, forced_writes, running, in_use, mode, owner, reason}], paths as the instance sees them.
    `reads`: the configuration files that it reads at its start, `includes`: directories of which it reads each file.
    `writes`: the files that a run may write to set its settings; `refused`: why it
    would not, or None; `gives`: the owner that it sets first, or None. `passing`: paths of open files
    that are no data: logs for people, and temporary files. `temporary`: directories in which nothing but temporary files of
    its lies, as the instance sees them; they are no `directories`.
    """

    version: Observation
    settings: dict[str, SettingFacts]
    directories: tuple[str, ...] = ()
    pending_restart: tuple[str, ...] = ()
    overrides: tuple[OverrideFacts, ...] = ()
    databases: tuple[DatabaseFacts, ...] = ()
    flavour: str | None = None
    evidence: tuple[tuple[str, Observation], ...] = ()
    writes: tuple[str, ...] = ()
    refused: Refusal | None = None
    gives: Gift | None = None
    passing: tuple[str, ...] = ()
    temporary: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()


class Override(NamedTuple):
    """A setting of one role or database, or of a role in a database, that goes its own way; None is for any."""

    setting: str
    role: str | None
    database: str | None


def several(whys: Whys) -> tuple[Why, ...]:
    """Return one reason or several as several."""
    # A cause is a tuple too.
    return tuple(whys) if isinstance(whys, (list, tuple)) and not isinstance(whys, Because) else (whys,)  # type: ignore[return-value]


def reasons(*whys: Why) -> ReasonFacts:
    """Return why a value is unknown, as facts have it: the texts of errors, and causes."""
    errors = dict.fromkeys(why for why in whys if isinstance(why, str) and why)
    found: ReasonFacts = {"reason": "; ".join(errors) or None}
    causes: list[CauseFacts] = []
    for why in whys:
        cause: CauseFacts | None = None
        if isinstance(why, Because):
            cause = {"cause": why.cause, "parameters": dict(why.parameters)}
        if cause and cause not in causes:
            causes.append(cause)
    if causes:
        found["causes"] = causes
    return found


def reasons_and(row: SettingFacts, why: Why) -> SettingFacts:
    """Return a setting with one more reason why a value of it is unknown."""
    causes = [Because(**each) for each in row.get("causes", ())]
    return cast("SettingFacts", {**row, **reasons(row["reason"], *causes, why)})


def setting(
    running: str,
    persisted: str,
    source: str,
    why: Whys = None,
    origin: str | None = None,
    held: SettingFixFacts | None = None,
    permission: str | None = None,
) -> SettingFacts:
    """Return one of the settings of :class:`Observed`."""
    row: SettingFacts = {
        "running": running,
        "persisted": persisted,
        "source": source,
        "reason": None,
        "from": origin,
        "held": held,
        "permission": permission,
    }
    return cast("SettingFacts", {**row, **reasons(*several(why))})


def override(
    scope: str,
    setting_of: str,
    value: str,
    source: str,
    cause: str,
    role: str | None = None,
    database: str | None = None,
    permission: str | None = None,
) -> OverrideFacts:
    """Return one of the overrides of :class:`Observed`."""
    return {
        "scope": scope,
        "setting": setting_of,
        "value": value,
        "source": source,
        "cause": cause,
        "role": role,
        "database": database,
        "permission": permission,
    }


def of_mains(
    engine: str,
    processes: Processes,
    mains: Iterable[Process],
    build: Callable[[Process], Instance],
    most: int | None = None,
) -> list[Instance]:
    """Return what `build` makes of each main process.

    Any user can start thousands: of one user no more than `most` are examined (INSTANCES_OF_ONE), and the
    system's users come first. One that has ended meanwhile is passed over. One that cannot be read is an instance too,
    named by its process, and its evidence says why.
    """
    found = []
    for main in _fairly(processes, mains, most or bounds.INSTANCES_OF_ONE)[: bounds.CLIENTS]:
        try:
            found.append(_expect_short(_built(processes.host, main, build)))
        except Unobservable as error:
            if not processes.is_gone(main):
                why = unread(f"/proc/{main.pid}", error)
                stray = Instance(engine, f"process {main.pid}", (main,), evidence=(("config", why),))
                found.append(stray._replace(named_by=named_by.UNKNOWN_USER))
    return sorted(found, key=lambda instance: instance.processes[0].pid if instance.processes else 0)


def _built(host: Host, main: Process, build: Callable[[Process], Instance]) -> Instance:
    """Return what `build` makes of a process, its paths opened with the rights of its user. Raises Unobservable."""
    with named_by.by_process(host, main) as user:
        found = build(main)
    return found._replace(named_by=user)


def _fairly(processes: Processes, mains: Iterable[Process], most: int) -> list[Process]:
    """Return the first processes of each user, the second ones, and so on up to `most`; people's come last."""
    count: Counter[str] = Counter()
    ranked = []
    for main in mains:
        who = whose(processes.host, main)
        count[who] += 1
        if count[who] <= most:
            ranked.append((processes.is_of_a_person(main), count[who], main.pid, main))
    return [main for *_rank, main in sorted(ranked)]


def _expect_short(found: Instance) -> Instance:
    """Return an instance. Raises Unobservable for texts that are no paths: they are as long as a command line."""
    texts = (
        found.name,
        found.config or "",
        *found.directories,
        *(why.reason or "" for _what, why in found.evidence),
        *(
            str(value)
            for _what, why in found.evidence
            if why.because
            for value in why.because.parameters.values()
        ),
    )
    long = next((text for text in texts if len(text) > bounds.PATH), None)
    if long is not None:
        raise Undecided(
            "too_long", text=bounds.short(long, 100), length=str(len(long)), most=str(bounds.PATH)
        )
    return found
