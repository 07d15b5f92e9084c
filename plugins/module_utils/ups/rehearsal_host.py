# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rehearsed shutdown on the host: the requirements before it, and its journal after it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from .. import attestations
from ..engines.collect import Engines
from ..host import json_text, units
from ..host.our_paths import SERVICE
from ..host.seam import Host, Unobservable
from . import journal, nut, rehearsal, services, upsmon_conf
from .journal import Entry
from .rehearsal import HAND, MONITOR, Engine, Job, Outcome

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_JOURNALS = "/var/log/journal"
#: Debian's initramfs checks the root file system, and stores fsck's output there.
_FSCK_LOG = "/run/initramfs/fsck.log"
#: Seconds that journalctl may take over a long journal.
_LIMIT = 120.0
#: Seconds by which the host's clock may be off between two of its services.
_SLACK = 5


class Refused(ValueError):
    """A rehearsal that is not started. The message: observed value, expected value, fix."""


def plan(host: Host, engines: Iterable[Mapping[str, Any]], by: str) -> Job:
    """Return the job. `engines` are the instances of the engines' facts. Reads only.

    Raises Refused where a rehearsal would show nothing, and Unobservable.
    """
    service = services.find(host)
    if service.active.state != "met":
        raise Refused(
            f"monitor of the UPS: observed {service.reason or service.active.evidence}, expected one that runs; see to"
            " it, then run again"
        )
    if service.monitor == services.APCUPSD and by == MONITOR:
        raise Refused(
            "durable_shutdown_by: observed monitor, expected hand: apcupsd has no command that begins a shutdown as a power"
            " cut does; run again with -e durable_shutdown_by=hand, then pull the plug of the UPS"
        )
    _expect_kept_journal(host)
    running = tuple(_engine(row) for row in engines if row.get("state") == "running")
    if not running:
        raise Refused(
            "engines: observed none that runs, expected those that a power cut would meet; start them first"
        )
    attestations.expect_plain(engine.label for engine in running)
    shown, why = units.show(host, [SERVICE])
    if why:
        raise Unobservable(why)
    guard = shown.get(SERVICE)
    return Job(
        boot_id=host.read(_BOOT_ID).strip(),
        began=_now(host) - _SLACK,
        monitor=service.monitor,
        unit=service.unit,
        by=by,
        engines=running,
        guard=SERVICE if guard and guard.active == "active" else "",
    )


def notice(host: Host, job: Job) -> str:
    """Return the warning before a rehearsal: what else loses its power. Never raises."""
    how_it_starts = (
        "Now pull the plug of the UPS, not of the host." if job.by == HAND else "The monitor begins it now."
    )
    return (
        f"This shuts the host down, with {', '.join(engine.label for engine in job.engines)}. {_loads(host, job)}"
        f" It starts again only if its firmware starts it when power returns. {how_it_starts}"
    )


def read(host: Host, job: Job) -> Outcome:
    """Return what the journals of the boot that ended, and of this one, show. Reads only.

    Raises Refused for a host that was not restarted, or more than once, and Unobservable.
    """
    boot, before = host.read(_BOOT_ID).strip(), job.boot_id.replace("-", "")
    if boot == job.boot_id:
        raise Refused(f"boot: observed {boot} still, expected another one: the host was not restarted")
    ended = _entries(
        host,
        [f"--boot={before}", f"--since=@{job.began}"],
        ["_PID=1", *(f"_SYSTEMD_UNIT={unit}" for unit in (job.unit, job.guard) if unit), "_TRANSPORT=driver"],
    )
    if _boot_of(host, f"--boot={before}+1") != boot.replace("-", ""):
        raise Refused(
            f"boot: observed {boot}, expected the first one after the rehearsal: only that one shows which file systems and"
            " engines had to recover. Fix: rehearse again"
        )
    names = [engine.unit for engine in job.engines if engine.unit]
    spoken = [
        "_TRANSPORT=kernel",
        "SYSLOG_IDENTIFIER=systemd-fsck",
        *(f"_SYSTEMD_UNIT={name}" for name in names),
    ]
    now = _entries(host, ["--boot=0"], spoken)
    shown, why = units.show(host, names)
    if why:
        raise Unobservable(why)
    up = {name: _word(unit.active) for name, unit in shown.items()}
    return rehearsal.judge(job, ended, [*now, *_of_initramfs(host)], up, _recovery(host, job))


def _recovery(host: Host, job: Job) -> dict[str, str]:
    """Return {engine's label: whether it had to recover} of the engines that log it outside the journal."""
    names = tuple(
        dict.fromkeys(engine.engine for engine in job.engines if engine.engine not in rehearsal.RECOVERS)
    )
    found = Engines(host, names).instances() if names else []
    return {
        _engine(facts).label: facts["evidence"]["recovery"]["value"]
        for facts in found
        if facts["state"] == "running" and "recovery" in facts["evidence"]
    }


def _engine(row: Mapping[str, Any]) -> Engine:
    return Engine(
        str(row["engine"]), str(row["name"]), str(row.get("unit") or ""), str(row.get("stop_timeout"))
    )


def _expect_kept_journal(host: Host) -> None:
    """Raise Refused where the journal of a boot ends with it."""
    try:
        there = host.names(f"{_JOURNALS}/{host.read('/etc/machine-id').strip()}")
    except Unobservable:
        there = []
    if not any(name.endswith(".journal") for name in there):
        raise Refused(
            f"journal: observed none in {_JOURNALS}, expected one that outlives the boot: nothing would be left to read; set"
            " Storage=persistent in /etc/systemd/journald.conf, then systemctl restart systemd-journald and"
            " journalctl --flush"
        )


def _loads(host: Host, job: Job) -> str:
    """Say what the monitor's role makes of the UPS's other loads."""
    if job.monitor != services.NUT:
        return "At its end the UPS may switch off its outlets, for every load on it."
    try:
        path = next(
            f"{there}/upsmon.conf" for there in nut.DIRECTORIES if host.exists(f"{there}/upsmon.conf")
        )
        found = upsmon_conf.monitors(upsmon_conf.parse(host.read(path), path), path)
    except (StopIteration, Unobservable, ValueError):
        return "What else the UPS feeds may lose its power."
    primary = [monitor.system for monitor in found if monitor.type == "primary" and monitor.power_value]
    if not primary:
        return "It is a secondary of its UPS, and shuts down alone."
    return (
        f"It is the primary of {', '.join(primary)}: every secondary of that UPS shuts down too, and at the end the UPS may"
        " switch off its outlets, for every load on it."
    )


def _entries(host: Host, boot: list[str], matches: list[str]) -> list[Entry]:
    either = [word for match in matches for word in ("+", match)][1:]
    text = _journal(host, boot, [f"--output-fields={','.join(journal.FIELDS)}", *either])
    try:
        return journal.parse(text)
    except ValueError as error:
        raise Unobservable(f"journalctl {' '.join(boot)}: {error}") from None


def _boot_of(host: Host, boot: str) -> str:
    """Return the ID of a boot that is named relative to another one. Raises Unobservable."""
    text = _journal(host, [boot], ["--lines=1", "--output-fields=MESSAGE"])
    try:
        return str(json_text.loads(text)["_BOOT_ID"])
    except (ValueError, TypeError, KeyError):
        raise Unobservable(f"journalctl {boot}: observed no entry with the ID of its boot") from None


def _journal(host: Host, boot: list[str], more: list[str]) -> str:
    result = host.run(["journalctl", *boot, "--quiet", "--no-pager", "--output=json", *more], timeout=_LIMIT)
    if result.rc != 0:
        raise Unobservable(
            f"journalctl {' '.join(boot)}: {' '.join(result.stderr.split()) or f'exit {result.rc}'}"
        )
    return result.stdout


def _of_initramfs(host: Host) -> list[Entry]:
    if not host.exists(_FSCK_LOG):
        return []
    return [Entry(0.0, "", "", False, line, "") for line in host.read(_FSCK_LOG).split("\n")]


def _now(host: Host) -> int:
    output = host.run(["date", "+%s"]).stdout.strip()
    if not re.fullmatch(r"[0-9]{1,12}", output):
        raise Unobservable(f"date: observed {output[:40]!r}")
    return int(output)


def _word(active: str) -> str:
    return "yes" if active == "active" else "no"
