# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a host's response to an assessment, and from a run's assessments to its report. Pure."""

from __future__ import annotations

import errno
import os
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ...facts.engines import EnginesFacts
from ...facts.storage import StorageFacts
from ...facts.ups import PowerFacts
from ...host.printable import line, quote
from ...profiles import BadInput
from ...rows import FIX_READ_ERROR, Reason
from ...undo.installed import WAITS
from .. import kinds
from ..assess import engines, ups
from ..expect import guarantees
from ..expect.inputs import Inputs
from ..report_types import Result
from .assessment import assess, noted, unobserved

#: States of the rollback timer -> the message.
TIMER_STATES = {
    "none": "",
    "armed": "the rollback timer is armed: {said}; run again to keep what was changed",
    "fired": "the rollback timer of {whose} run has restored this host: {said}; check why that run lost the host",
    "broken": "the rollback timer of an earlier run cannot restore this host: {said}",
    "unknown": "how far it came is unknown, and {said}; run again once it answers",
}
UNREPORTED = "unreported"
#: Seconds for the collection of facts from a host that was lost a moment ago.
_AGAIN = 120
#: Characters of a reason in the line with which a host fails.
_ONE_LINE = 160
_UNREACHABLE = "start the host and check ssh, then run again"
#: The first version of Python on which the modules run.
MINIMUM = (3, 9)
INSTALL_PYTHON = "install Python 3.9 or later there, or name one in ansible_python_interpreter"
_CANNOT_WRITE = "Ansible cannot write its own files there"
#: Message of a failed task, its meaning, and the fix: Ansible reports a symptom only.
_CAUSES = (
    (
        re.compile(r"interpreter .* was not found|python[\d.]*: (command )?not found", re.I),
        "no Python where Ansible looks for it",
        INSTALL_PYTHON,
    ),
    (
        # 3.6 knows no annotations, 3.7 no :=, and 3.8 no dict[...].
        re.compile(
            r"SyntaxError|object is not subscriptable|requires (a minimum of )?Python|'functools' has no attribute 'cache'",
            re.I,
        ),
        "its Python is too old",
        INSTALL_PYTHON,
    ),
    (
        re.compile(r"password is required|missing \w+ password|incorrect \w+ password", re.I),
        "could not become root: the become password is missing or wrong",
        "give it with -K, or log in as root",
    ),
    (
        # Our messages continue with the state of the file, or have their own fix.
        re.compile(
            r"\A(?!.*free space on ).*(failed to create temporary directory|failed to transfer file"
            r"|no usable temporary directory|no space left on device(?![:;]))",
            re.I | re.S,
        ),
        f"{_CANNOT_WRITE}{{error}}",
        "free space or make the file system writable, or name another directory in ansible_remote_tmp",
    ),
    (
        # Before the next: become is set already, and no password helps.
        re.compile(r"\b(sudo|su|doas|pbrun|pfexec|ksu|dzdo)['\"]?: (command )?not found", re.I),
        "could not become root: the program of become_method is not installed",
        "set become_method (ansible_become_method) to one that the host has, for example su, or install it, or log in as root",
    ),
    (
        re.compile(
            r"\(become\)|for become success|become password|\b(sudo|su|doas): |(sudo|su|doas) password|privilege escalation",
            re.I,
        ),
        "could not become root",
        "log in as root, or add -b (become: true), with its password (-K)",
    ),
)
#: Messages of ssh, Python and the kernel about a failed connection, their meaning, and the fix.
_UNREACHED = tuple(
    (re.compile(pattern, re.I), meaning, cure)
    for pattern, meaning, cure in (
        # First, because ssh adds that the login is refused.
        (
            r"host key verification failed|remote host identification has changed",
            "its host key is unknown or has changed",
            "check the key on the host, then correct known_hosts of the controller",
        ),
        (
            r"permission denied|authentication failed|too many authentication failures",
            "the login was refused",
            "check ansible_user, and its key or password (-k), then run again",
        ),
        (
            r"could not resolve hostname|name or service not known|temporary failure in name resolution",
            "its name could not be resolved",
            "correct the host's name or ansible_host, or check the name service, then run again",
        ),
        (
            r"connection refused",
            "nothing accepts the connection",
            "start sshd on the host, or correct ansible_port, then run again",
        ),
        (
            r"no route to host|network is unreachable",
            "no route leads to it",
            "start the host, or check the network and its firewalls, then run again",
        ),
        (
            r"timed? ?out",
            "the connection timed out",
            "start the host, or check the network and its firewalls, then run again",
        ),
        (
            r"connection (reset|closed)",
            "the connection was closed",
            "check the log of sshd on the host, then run again",
        ),
    )
)
#: Errors of a file system: the page shows them from a longer text.
_FILE_ERROR = re.compile(
    "|".join(os.strerror(each) for each in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO))
)
#: With these, Ansible only reports that a module failed: the message of the host is in another field.
_SYMPTOMS = re.compile(r"Module result deserialization failed|MODULE FAILURE|See stdout/stderr", re.I)


def cause(result: Result) -> str:
    """Return in one line why a task failed, with the fix if known; '' without a message.

    `result` is that of the task, as registered or as `ansible_failed_result`.
    """
    found = explained(result)
    return "; ".join(filter(None, (f"{found.meaning} {_in_brackets(found.text)}".strip(), found.fix)))


class Explained(NamedTuple):
    """Why a task failed: the meaning, the message of Ansible or the host, and the fix; '' if unknown."""

    meaning: str = ""
    text: str = ""
    fix: str = ""


class Recognised(dict[str, Any]):
    """The result of a task whose failure an action of ours has explained.

    `why` is no field of the result: no host can send it.
    """

    def __init__(self, fields: Mapping[str, Any], why: Explained) -> None:
        super().__init__(fields)
        self.why = why


def explained(result: Result) -> Explained:
    """Return why a task failed, and the fix: as `cause`."""
    if isinstance(result, Recognised):
        return result.why
    text = str(result.get("msg") or "")
    if _SYMPTOMS.search(text) or not text:
        text = str(result.get("module_stderr") or result.get("module_stdout") or text)
    lines = [line.strip() for line in text.split("\n") if line.strip() and not line.startswith(">>>")]
    if not lines:
        return Explained()
    # The cause is at the end of a traceback or of sudo's message; else it is the module's sentence.
    last = lines[-1] if len(lines) > 1 else lines[0]
    for pattern, meaning, fix in _CAUSES:
        if pattern.search(text):
            error = _FILE_ERROR.search(text)
            return Explained(meaning.format(error=f": {error[0]}" if error else ""), last, fix)
    return Explained(last if _SYMPTOMS.search(str(result.get("msg") or "")) else " ".join(lines))


def of_python(result: Result) -> bool:
    """Return whether a task failed because the host's Python is missing or too old."""
    return explained(result).fix == INSTALL_PYTHON


def why_missing(answer: Result, name: str) -> str:
    """Return why one kind of facts could not be collected, with the fix if known; '' without a reason."""
    return cause(_failure_of(answer, name))


def _failure_of(answer: Result, name: str) -> Result:
    failures = answer.get("failures")
    return {"msg": failures[name]} if isinstance(failures, dict) and failures.get(name) else {}


def facts_of(answer: Result, name: str) -> Any:
    """Return facts of a response, or None if malformed, because a host's root can forge it."""
    reported = answer.get("ansible_facts")
    found = reported.get(name) if isinstance(reported, dict) else None
    return found if isinstance(found, dict) else None


def reported_switch(answer: Result) -> dict[str, str]:
    """Return the rollback timer of a response; `unreported` if malformed, because a host's root can forge it."""
    reported = answer.get("switch")
    if not isinstance(reported, dict) or str(reported.get("state")) not in TIMER_STATES:
        return {"state": UNREPORTED, "said": ""}
    return {"state": str(reported["state"]), "said": line(str(reported.get("said", "")))}


def question(inputs: Inputs) -> dict[str, Any]:
    """Return the query of host_facts for an assessment: databases, power and margin."""
    margin = inputs.ups.get("margin") if isinstance(inputs.ups, dict) else None
    found = {"databases": inputs.databases, "power": power_wanted(inputs)}
    # The policy refuses any other one.
    return {**found, "margin": margin} if isinstance(margin, int) and margin >= 0 else found


def power_wanted(inputs: Inputs) -> str:
    """Return when the host's power is collected, in the form of host_facts."""
    if inputs.rate or inputs.profile is None:
        return "always"
    try:
        chosen = inputs.chosen()
        entries = guarantees.read(inputs.mount_profiles, inputs.shipped, inputs.own)
    except BadInput:
        return "guarded"
    every = (*(chosen or ())[:1], *(entry.named[0] for entry in entries.values() if entry.named))
    return "always" if any(each.rests_on == "ups" for each in every) else "guarded"


def assess_answer(inputs: Inputs, now: str, answer: Result) -> dict[str, Any]:
    """Return the assessment of one host.

    `answer` is the result of the module host_facts, also a failed one, or with `unreachable` that of a lost host.
    `now` is the controller's UTC time in ISO 8601. If engines or power could not be collected, disks and mounts are
    still made safer.
    """
    if answer.get("unreachable"):
        return unobserved(inputs, _unreached(answer))
    storage = facts_of(answer, "durable_storage")
    if storage is None:
        why = explained(_failure_of(answer, "durable_storage") or answer)
        # A meaning without a fix is the message of the host.
        cause = (why.meaning if why.fix else quote(why.meaning)) if why.meaning else "none collected"
        return unobserved(
            inputs,
            kinds.NO_FACTS.found(cause=cause, detail=_in_brackets(why.text), cure=why.fix or FIX_READ_ERROR),
        )
    power = _or_nothing(answer, "durable_power", ups.nothing_known, storage)
    return assess(
        inputs,
        storage,
        now,
        _or_nothing(answer, "durable_engines", engines.nothing_known, storage),
        power if _was_requested(answer, "durable_power") else None,
    )


def _unreached(answer: Result) -> Reason:
    """Return why a host is unreachable, from the message of Ansible."""
    if isinstance(answer, Recognised):
        return kinds.UNREACHABLE.found(cause=answer.why.meaning, detail="", cure=answer.why.fix)
    text = " ".join(str(answer.get("msg", "")).split())
    # Ansible reports a host as unreachable if it cannot create its directory there.
    found = explained({"msg": text})
    if found.meaning.startswith(_CANNOT_WRITE):
        return kinds.UNREACHABLE.found(cause=found.meaning, detail=_in_brackets(text), cure=found.fix)
    for pattern, meaning, cure in _UNREACHED:
        if pattern.search(text):
            return kinds.UNREACHABLE.found(cause=meaning, detail=_in_brackets(text), cure=cure)
    return kinds.UNREACHABLE.found(cause="no connection", detail=_in_brackets(text), cure=_UNREACHABLE)


def _in_brackets(text: str) -> str:
    return f"({quote(text)})" if text else ""


def wants_reboot(inputs: Inputs, found: Result, before: Result | None, applied: Result | None) -> bool:
    """Return whether a run reboots its host: it is allowed, and a change of this run is pending.

    `found`: the assessment after the changes; `before` and `applied`: the one before them, and the result of the steps,
    None without steps. A second reboot would not help.
    """
    if before is None or (applied or {}).get("error") or not _may_reboot(inputs):
        return False
    waiting = {after for row in found["pending"] if row["needs"] == "reboot" for after in row["after"]}
    return not waiting.isdisjoint(f"{change['target']} {change['setting']}" for change in before["changes"])


def disarms(inputs: Inputs, given: Result) -> bool:
    """Return whether a collection removes the rollback timer; `given`: the arguments of assess.

    It does on request, after steps that may have armed the switch; but not if a reboot may follow.
    """
    may_be_armed = (given.get("applied") or {}).get("switch") != "none"
    stays_armed = given.get("before") is not None and _may_reboot(inputs)
    return bool(given.get("disarm")) and may_be_armed and not stays_armed


def limit_of_collection(limit: int, applied: Result | None) -> int:
    """Return the time limit of a collection of facts in seconds, 0 for none: a short one if the steps before lost the host."""
    return min(limit or _AGAIN, _AGAIN) if (applied or {}).get("switch") == "unknown" else limit


def _may_reboot(inputs: Inputs) -> bool:
    """Return whether a reboot is permitted; not by refused input."""
    return isinstance(inputs.allow, list) and "reboot" in inputs.allow


def conclude(
    assessed: Sequence[Result], applied: Result, rebooted: Result, looked_only: bool
) -> dict[str, Any]:
    """Return the report of a host's run: its last assessment, with the first one and the steps.

    `assessed`: the results of assess in order; `applied` and `rebooted` are the results of those tasks, {} or
    `skipped` if they did not run.
    """
    errors = [str(reported["error"]) for reported in (applied, *assessed) if reported.get("error")]
    if applied.get("unreachable"):
        errors.append(f"lost the host: {cause(applied) or 'unreachable'}")
    if rebooted.get("failed") or rebooted.get("unreachable"):
        errors.append(f"reboot: {cause(rebooted) or 'failed'}")
    assessments = [each["assessment"] for each in assessed]
    before = assessments[0]
    switch, text, is_error = _switch(assessed, {} if looked_only else applied)
    errors += [text] if is_error else []
    # The page has few lines for notes.
    first = noted([kinds.ROLLBACK_TIMER.found(cause=text)] if text and not is_error else [])
    slow = noted(kinds.STEP_FAILED.found(cause=why) for why in applied.get("slow", ()))
    return {
        **assessments[-1],
        **{name: [*first[name], *assessments[-1][name], *slow[name]] for name in ("warnings", "notes")},
        "was": before["verdict"],
        **{name: before[name] for name in ("plan", "changes", "files", "exposed")},
        "looked_only": looked_only,
        "begun": applied.get("begun", []),
        "switch": switch,
        "undone": is_error and switch == "fired",
        "error": "; ".join(errors) or None,
    }


def _switch(assessed: Sequence[Result], applied: Result) -> tuple[str, str, bool]:
    """Return the state of the rollback timer at the end of a run, its message, and whether that is an error, as after a
    run that has changed the host. `applied`: {} without changes."""
    first, last = (each.get("switch") or {"state": UNREPORTED} for each in (assessed[0], assessed[-1]))
    done = applied.get("switch")
    ours = {"state": done, "said": _lost(done, applied.get("undo_after") or 0)} if done else None
    reported = ours or first
    reported = (
        last
        if last["state"] != UNREPORTED
        else reported
        if reported["state"] != UNREPORTED
        else {"state": "none"}
    )
    if reported["state"] == "none" and first["state"] == "fired":
        reported = first
    # It fired or was unreadable before this run, or another run armed it.
    is_earlier = (reported == first and reported["state"] in ("fired", "broken")) or (
        reported["state"] == "fired" and done not in ("armed", "unknown")
    )
    is_error = done is not None and reported["state"] != "none" and not is_earlier
    whose = "this" if is_error else "an earlier"
    said = reported.get("said", "")
    said = said if reported is ours else quote(said)
    return reported["state"], TIMER_STATES[reported["state"]].format(said=said, whose=whose), is_error


def _lost(state: str, seconds: int) -> str:
    """Return the outlook of a host that was lost after its steps; `seconds`: until its switch acts, 0 without one."""
    waits = WAITS.format(seconds=seconds)
    if state == "armed":
        return f"the host did not answer again, and {waits}"
    return (
        f"if the rollback timer was armed by then, {waits}" if seconds else "nothing rolls back automatically"
    )


def failure(report: Result) -> str | None:
    """Return the line with which a host fails, None if it does not.

    It names no host: Ansible shows equal messages of several hosts once.
    """
    if not report["fails"] and report["error"] is None:
        return None
    reasons = [str(report["error"])] if report["error"] else []
    reasons += [each["reason"] for each in report["reasons"]] or ["by durable_fail_on"]
    more = f", with {len(reasons) - 1} more," if len(reasons) > 1 else ""
    first = textwrap.shorten(reasons[0], _ONE_LINE, placeholder=" ...")
    return f"{report['verdict']}: {first} (what to do{more} is in the report)"


def _or_nothing(
    answer: Result,
    name: str,
    nothing: Callable[[str, str], EnginesFacts | PowerFacts],
    storage: StorageFacts,
) -> Any:
    """Return facts of a response, or unknown ones with the time of the storage facts."""
    moment = {field: storage.get(field) for field in ("boot_id", "time")}
    why = why_missing(answer, name) or f"no {name} was collected"
    return facts_of(answer, name) or {**nothing(str(moment["time"]), why), **moment}


def _was_requested(answer: Result, name: str) -> bool:
    return any(
        isinstance(answer.get(part), dict) and name in answer[part] for part in ("ansible_facts", "failures")
    )
