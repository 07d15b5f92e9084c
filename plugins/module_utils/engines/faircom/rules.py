# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings that FairCom DB needs, by its build, and what its files leave open. Pure.

Builds before V10.3.1.21834 (140307) ask for O_SYNC through fcntl(2), which Linux ignores, and then
do not flush: with them the options that make writes synchronous lose commits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from ...host.observation import NOTHING, UNKNOWN
from ...host.printable import name as quoted
from ...profiles import KEEP, SHORT
from ...rows import FIX_READ_ERROR, Kind, Reason
from ..placement import place
from ..rule import EARLY, Rule, Rules, rule
from ..rules import Build, Judge, Subject
from .builds import FIRST, WRITE_THROUGH, writes_through
from .fixes import FIXES, REFUSALS

_ARE = "under transactions are not opened for synchronous writes"
#: It takes all of them at its start only.
_rule = partial(rule, live=False)
_FULL = {
    "LOG_WRITETHRU": _rule("on", "the transaction log is not opened for synchronous writes", loses=False),
    "TDATA_WRITETHRU": _rule("on", f"data files {_ARE}", loses=False),
    "TINDEX_WRITETHRU": _rule("on", f"index files {_ARE}", loses=False),
    # An option of its own, whatever LOG_WRITETHRU says.
    "SYNC_LOG": _rule(
        "off", "the transaction log is opened without O_SYNC, and flushed by another call", loses=False
    ),
    "NO_SYS_FLUSH_ON_CLOSE": _rule(
        "off", "what is in memory when a file is closed may not reach the disk", loses=True
    ),
    "NO_FLUSH_DIR": _rule(
        "off",
        "after a power cut a transaction log may have no name under which recovery looks for it",
        loses=True,
    ),
    "DELAYED_DURABILITY": _rule("0", EARLY, loses=True),
    # Parts of it that a profile can request separately.
    "SUPPRESS_LOG_FLUSH": _rule("NO", EARLY, loses=True),
    "SUPPRESS_LOG_SYNC": _rule("NO", EARLY, loses=True),
    # It groups commits and loses none: which words will do is the profile's to say.
    "COMMIT_DELAY": Rule((), "1", "commits wait for each other", False, live=False, klass="performance"),
}
#: Options that such builds take for a wish for O_SYNC: SYNC_LOG, an option of its own, as well.
_ASKS_FOR_SYNC = (*WRITE_THROUGH, "SYNC_LOG")
#: Milliseconds for which a commit may wait for others before a warning.
_LONG_DELAY = 100
#: Those that group commits, and keep nobody waiting. FairCom, of disks that rotate: a small one beats none; a large one
#: slows down.
_SHORT_DELAYS = tuple(map(str, range(1, 11)))
#: Without a delay. On fast disks 1 ms has 0.35 to 0.64 of their commits with one client, and 3.4 to 7.7 times with 40 to 80.
_NO_DELAYS = ("-1", "0")
_SINCE = Build(
    first=FIRST,
    before="before it write-through does nothing on Linux",
    see="start it once with this configuration, or see CTSTATUS.FCS",
    opened="with LOG_WRITETHRU its logs must be open with O_SYNC",
    look="run again while the server has a transaction log open",
)
NOT_SYNCHRONOUS = Kind(
    "risk.faircom.not_synchronous",
    "at_risk",
    "commits of {engine} can be lost: LOG_WRITETHRU is on, and {cause}, without O_SYNC",
    "restart the server",
)
#: The same of a build that cannot open them so.
NOT_SYNCHRONOUS_OLD = NOT_SYNCHRONOUS._replace(
    id="risk.faircom.not_synchronous_old_build",
    fix=f"remove COMPATIBILITY LOG_WRITETHRU from {{config}} and restart the server, or update it to {FIRST} or later",
)
NO_EFFECT = Kind(
    "risk.faircom.no_effect",
    "at_risk",
    "commits of {engine} can be lost: {setting} is {value}, which version {version} asks of Linux in a way that does nothing",
    "{update}",
)
LOGS_UNKNOWN = Kind(
    "unknown.faircom.logs",
    "unknown",
    "{engine}: the location of its transaction logs is unknown: {cause}",
    FIX_READ_ERROR,
)
LONG_DELAY = Kind(
    "note.faircom.commit_delay",
    "note",
    "{engine}: COMMIT_DELAY: observed {value}",
    f"set -1 to {_LONG_DELAY} (ms): a longer delay delays every commit, and loses none",
)
IN_FILE = Kind("note.faircom.configuration", "note", "{engine}: {source}: {cause}")
ON_XFS = Kind(
    "note.faircom.xfs",
    "note",
    "{engine}: {mount} is XFS over a disk with a cache, where an O_SYNC write can, rarely, be acknowledged some milliseconds"
    " before it is on the disk",
    "set durable_profile: strict, or move the data to ext4",
)
#: A profile whose promise rests on these has caches that lose what was not flushed yet.
_AWAITS_FLUSH = ("flush", "ups")


def _rules(subject: Subject, wanted: Rules) -> Rules:
    """Return the rules that make sense for an instance's build, with the profile's commit delay."""
    profile, delay = subject.profile, wanted["COMMIT_DELAY"]
    if profile.commit_delay == SHORT:
        # Which is faster depends on the disk and on the number of clients: docs/engines/faircom.md.
        means = "a delay of 1 to 10 ms groups commits best"
        if _may_rotate(subject):
            delay = delay._replace(accepts=_SHORT_DELAYS, means=means)
        else:
            means = "no delay, or one of 1 to 10 ms, keeps commits waiting the least"
            delay = delay._replace(accepts=(*_SHORT_DELAYS, *_NO_DELAYS), means=means)
    elif profile.commit_delay != KEEP:
        word = str(profile.commit_delay)
        delay = delay._replace(accepts=(word,), value=word, means="the profile wants another one")
    wanted = {**wanted, "COMMIT_DELAY": delay}
    if writes_through(subject.instance["version"]) == "yes":
        return wanted
    return {name: rule for name, rule in wanted.items() if name not in WRITE_THROUGH}


def _may_rotate(subject: Subject) -> bool:
    """Return whether a disk below the server's files rotates; also if that is unknown."""
    kinds = {disk["name"]: disk["rotational"] for disk in subject.storage["disks"]}
    mounts = place(subject.instance, subject.storage).mounts
    names = [
        name for mount in mounts for name in (mount["disks"] if isinstance(mount["disks"], list) else ("",))
    ]
    return not names or any(kinds.get(name) != "no" for name in names)


def _defects(subject: Subject) -> Iterator[Reason]:
    """Yield the ways in which it loses acknowledged commits now, whatever is set.

    With LOG_WRITETHRU a commit is not flushed: it rests on O_SYNC, and so on the flags with which logs really are open.
    """
    instance, label = subject.instance, subject.label
    flags = instance["evidence"].get("write_through", NOTHING)
    if _relies_on_flags(subject) and flags.get("value") == "no":
        is_new = writes_through(instance["version"]) == "yes"
        kind = NOT_SYNCHRONOUS if is_new else NOT_SYNCHRONOUS_OLD
        yield kind.found(label, engine=label, cause=str(flags["reason"]), config=_config(subject))
    for name in _without_effect(subject):
        yield NO_EFFECT.found(
            label,
            engine=label,
            setting=name,
            value=subject.running(name),
            version=instance["version"],
            update=_update(subject),
        )


def _without_effect(subject: Subject) -> list[str]:
    """Return the options that are on, and that its build asks of Linux in a way that does nothing."""
    is_old = writes_through(subject.instance["version"]) == "no"
    return [name for name in _ASKS_FOR_SYNC if is_old and subject.running(name) == "on"]


def _update(subject: Subject) -> str:
    """Return what to do about an old build: without these options it flushes."""
    names = ", ".join(_without_effect(subject))
    until = f", and until then remove COMPATIBILITY {names} from {_config(subject)} and restart it"
    return f"{_SINCE.update}{until if names else ''}"


def _config(subject: Subject) -> str:
    # A process names it, and it stands in fixes.
    config = subject.instance["config"]
    return quoted(config) if config else "its configuration"


def _relies_on_flags(subject: Subject) -> bool:
    """Return whether nothing but O_SYNC brings a running server's logs to the disk."""
    return subject.running("LOG_WRITETHRU") == "on"


def _unknowns(subject: Subject) -> Iterator[Reason]:
    """Yield what is not understood of an instance, and what to do."""
    yield from _SINCE.unknowns(
        subject, writes_through(subject.instance["version"]), _relies_on_flags(subject), _update(subject)
    )
    logs = subject.instance["evidence"].get("log_directories")
    if subject.profile.promises_durability and logs and logs["value"] == UNKNOWN:
        yield LOGS_UNKNOWN.found(subject.label, engine=subject.label, cause=logs["reason"])


def _warnings(subject: Subject) -> Iterator[Reason]:
    """Yield what its configuration file should not say, what slows commits down and survives a restart, and XFS below it."""
    instance, label, profile = subject.instance, subject.label, subject.profile
    delay = instance["settings"].get("COMMIT_DELAY", NOTHING) if profile.commit_delay == KEEP else {}
    for word in dict.fromkeys((delay.get("running"), delay.get("persisted"))):
        if word not in (None, UNKNOWN, "stopped") and not _is_short(word):
            yield LONG_DELAY.found(label, engine=label, value=word)
    for name in ("slips", "line_ends"):
        found = instance["evidence"].get(name)
        if found:
            yield IN_FILE.found(label, engine=label, source=found["source"], cause=found["reason"])
    if profile.rests_on in _AWAITS_FLUSH:
        yield from _on_xfs(subject)


def _on_xfs(subject: Subject) -> Iterator[Reason]:
    """Yield the XFS file systems, over a cache, that its files are on.

    It writes its log with O_SYNC, which notes the file's times in the file system's log; and XFS can return from that
    before its flush. The proof caught it (docs/proof.md).
    """
    with_cache = {
        disk["name"] for disk in subject.storage["disks"] if disk["write_cache"]["volatile"] != "non_volatile"
    }
    for mount in place(subject.instance, subject.storage).mounts:
        if mount["fstype"] == "xfs" and with_cache.intersection(mount["disks"]):
            yield ON_XFS.found(subject.label, engine=subject.label, mount=mount["target"])


def _is_short(word: str) -> bool:
    """Return whether a delay is a number, and not a long one; -1 is none at all."""
    return bool(re.fullmatch(r"-1|\d{1,9}", word, re.ASCII)) and int(word) <= _LONG_DELAY


JUDGE = Judge(
    full={"faircom": _FULL},
    rules=_rules,
    defects=_defects,
    unknowns=_unknowns,
    warnings=_warnings,
    kinds=(NOT_SYNCHRONOUS, NOT_SYNCHRONOUS_OLD, NO_EFFECT, LOGS_UNKNOWN, LONG_DELAY, IN_FILE, ON_XFS),
    lies_anywhere=True,
    fix_texts=FIXES,
    refusal_texts=REFUSALS,
)
