# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page at the end of a run: hosts with findings, reasons and fixes, on one screen. Pure."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from ...attestations import HOST
from ...host.printable import (
    Lines,
    line,
    lines,
    message,
)
from ...profiles import CORRECT
from ...rows import VERDICTS
from ..assess import plan
from ..report_types import Rating, ReasonEntry, Report
from . import checklist
from .report import takes_place, worst_first

#: Verdicts that do not come from a host's state.
_NO_STATE = ("blocked", "unreachable", "unknown")
#: Verdicts that have an order.
_RANKED = VERDICTS[: VERDICTS.index("accepted_loss")]
#: Lines that fit a screen, and their length.
HEIGHT = 40
WIDTH = 100
#: Lines that notes and engines may have, each.
_FEW = 4
#: Minimum and maximum lines of a group of hosts.
_LEAST, _MOST = 4, 20
#: Reasons with one remedy that are written out.
_REASONS = 3
#: Verdicts that rest on attestations or waivers; and how many of these a group names.
_ON_A_WORD = ("attested", "accepted_loss")
_BASES = 3
#: Lines of a table of changes, and the length of its cells and of names in it.
_CHANGES = 8
_CELL = 28
_TARGET = 24
#: Layer -> the plural of its targets.
_NOUNS = {"mount_options": "mounts", "write_cache": "disks", "io_scheduler": "disks"}
#: Lines about the profiles of rated hosts.
_PROFILES = 6
#: Lines of a fix.
_FIX = 3
#: Lines of a reason that contains its fix.
_WHOLE = 4
#: Hosts that are named in a line; the others are counted.
_NAMED = 4
_INDENT = " " * 4
#: The end of a cut text.
_DOTS = " ..."
#: The playbook that fixes name.
_PLAYBOOK = "harden_db"
_DO = re.compile(r"\s*fix\s*:", re.I)


class Group(NamedTuple):
    """Hosts with the same verdict, profile and first reason."""

    verdict: str
    reports: tuple[Report, ...]

    @property
    def hosts(self) -> list[str]:
        """Return the hosts' names."""
        return [report["host"] for report in self.reports]


class _Rows(NamedTuple):
    """The lines of a group: those of its hosts and reasons, and those of changes, profiles and attestations below."""

    reasons: list[str]
    changes: list[str]

    def both(self) -> list[str]:
        """Return all of them."""
        return [*self.reasons, *self.changes]


def render(
    reports: Iterable[Mapping[str, Any]],
    missing: Sequence[str] = (),
    notes: Sequence[str] = (),
    details: str = "",
) -> Lines:
    """Return the page: totals, groups of hosts, worst first, engines, and the result of the run.

    `reports` as in the files; `missing`: hosts of the play without one; `notes`: notes about the whole run;
    `details`: the place of the files, '' for none. It has at most HEIGHT lines.
    """
    ordered = worst_first(cast(Iterable[Report], reports))
    head = [_totals(ordered)]
    if missing:
        head += wrap_rows(f"not checked, or not yet: {names(missing)}", "", 2)
    head += wrap_rows(_since(ordered), "", 2)
    tail = _answers(ordered)
    tail += _some(_notes(ordered, notes), "notes", details)
    tail += _some(_engines(ordered), "engines", details)
    tail += ["", *_commands(ordered), *_end(ordered, missing)]
    tail += wrap_rows(f"Details: {details}", "", 2) if details else []
    found, room = groups(ordered), HEIGHT - len(head) - len(tail) - 2
    # The list of changes never takes the place of a reason.
    body, long = (_body(found, room, details, table) for table in (False, True))
    shown = [row for each in (long if _fits(body, long) else body) for row in each.both()]
    return lines([*head, "", *shown, *([""] if tail[0] else []), *tail])


def groups(ordered: Iterable[Report]) -> list[Group]:
    """Return hosts that need the same attention in groups, the most urgent first."""
    found: dict[tuple[Any, ...], list[Report]] = {}
    for report in ordered:
        first = next(iter(reasons(report)), ("", ""))
        key = (report["verdict"], report["was"], report["profile"], *first)
        found.setdefault(key, []).append(report)
    return [Group(key[0], tuple(reports)) for key, reports in found.items()]


def reasons(report: Mapping[str, Any], is_alone: bool = False) -> list[tuple[str, str]]:
    """Return (reason, fix) of a host, worst first, without names that are specific to this host.

    `is_alone`: its fixes have them: an attestation needs the id of a disk.
    """
    found = [(report["error"], "")] if report["error"] else []
    found += [(_without_detail(each), each["fix"]) for each in report["reasons"]]
    return list(
        dict.fromkeys(
            (_unnamed(why, report), fix if is_alone else _unnamed(fix, report)) for why, fix in found
        )
    )


def names(hosts: Sequence[str], most: int = _NAMED) -> str:
    """Return the names of hosts, a few of many."""
    if len(hosts) <= most:
        return ", ".join(map(line, hosts))
    shown = most // 2
    return f"{', '.join(map(line, hosts[:shown]))}, ... ({len(hosts) - shown} more)"


def _unnamed(text: str, report: Mapping[str, Any]) -> str:
    """Return a text with the kernel's names of disks instead of their unique ids."""
    for disk in report["stack"]["disks"]:
        if disk["id"]:
            text = text.replace(disk["id"], disk["name"])
    return text


def _without_detail(each: ReasonEntry) -> str:
    """Return a reason without the message of ssh or a module at its end, which names one host."""
    return str(each["reason"]).removesuffix(message(each["observed"].get("detail", ""))).rstrip()


def _totals(ordered: list[Report]) -> str:
    count = Counter(report["verdict"] for report in ordered)
    each = [f"{count[verdict]} {verdict}" for verdict in VERDICTS if count[verdict]]
    return f"{_hosts(len(ordered))}: {', '.join(each)}" if each else "no host was checked"


def _since(ordered: list[Report]) -> str:
    """Return the hosts with another verdict than in their last report, '' for none."""
    known = [report for report in ordered if report.get("since")]
    worse, better = ([each["host"] for each in known if sign * _steps(each) < 0] for sign in (1, -1))
    both = (("worse", worse), ("better", better))
    return "; ".join(f"{what} than in the last report: {names(hosts)}" for what, hosts in both if hosts)


def _steps(report: Report) -> int:
    """Return by how many verdicts a host is better than in its last report, 0 if either verdict has no order.

    A host whose state is unknown is never better, and one whose state was unknown is neither better nor worse.
    """
    since = report.get("since")
    if not since or since["verdict"] in _NO_STATE:
        return 0
    if not {report["verdict"], since["verdict"]}.issubset(_RANKED):
        return 0
    steps = VERDICTS.index(report["verdict"]) - VERDICTS.index(since["verdict"])
    return min(steps, 0) if report["verdict"] in _NO_STATE else steps


def _answers(ordered: list[Report]) -> list[str]:
    """Return the answers of a single rated host, one line each. Those of many are in the files."""
    found = checklist.lines_of(ordered[0].get("checklist")) if len(ordered) == 1 else []
    return [_cut(line(text), "") for text in found]


def _hosts(number: int) -> str:
    return f"{number} host{'' if number == 1 else 's'}"


def _body(found: list[Group], room: int, details: str, table: bool) -> list[_Rows]:
    """Return the groups in so many lines: the worst get most, and each gets its minimum; `table`: of changes."""
    needs = [min(_LEAST, len(_group(group, HEIGHT, details, False).both())) for group in found]
    shown: list[_Rows] = []
    for index, group in enumerate(found):
        left = room - sum(len(each.both()) for each in shown)
        rest = found[index:]
        # The last line counts the groups that do not fit.
        if left < needs[index] + (len(rest) > 1):
            number = sum(len(each.reports) for each in rest)
            verdicts = ", ".join(dict.fromkeys(each.verdict for each in rest))
            more = f"and {len(rest)} more groups, {_hosts(number)} ({verdicts}){_see(details)}"
            return [*shown, _Rows([more], [])]
        most = max(needs[index], min(_MOST, left - sum(needs[index + 1 :])))
        shown.append(_group(group, most, details, table))
    return shown


def _fits(short: list[_Rows], long: list[_Rows]) -> bool:
    """Return whether pages with and without tables of changes have the same reasons."""
    return [each.reasons for each in short] == [each.reasons for each in long]


def _see(details: str) -> str:
    return ": see the files" if details else ""


def _group(group: Group, room: int, details: str, table: bool) -> _Rows:
    """Return one group in at most so many lines: its hosts, the reasons, their fixes, and the number of other reasons."""
    head = f"{group.verdict:<12} {len(group.reports):>3}  {names(group.hosts)}{_beside(group)}"
    rows = wrap_rows(head, " " * 18, 1 if room <= _LEAST else 2)
    whys_by_fix = by_remedy(group)
    changes = _changes(group, table, details) if room > _LEAST else []
    sets = _advice(group, _PROFILES if room > _LEAST else 1)
    sets += _basis(group, max(1, room - len(rows) - len(changes) - len(sets) - 1))
    room -= len(changes) + len(sets)
    hidden = sum(map(len, whys_by_fix.values()))
    # A fix is shown whole or not at all, so the lines of reasons count those without a line.
    last = len(rows) - 1
    counts = Counter[int]()
    for remedy, whys in whys_by_fix.items():
        left = room - len(rows)
        if left < (2 if remedy else 1):
            break
        do = _fix(remedy, min(_FIX, left - 1)) if remedy else []
        # A reason that contains its fix, and an error of the input with its accepted values, are shown whole.
        is_whole = not remedy or remedy.startswith(CORRECT)
        most = _WHOLE if is_whole and len(whys_by_fix) == 1 else 2
        shown, more = _whys(whys, left - len(do), most, _MOST if is_whole else _REASONS)
        last = len(rows) + len(shown) - 1
        counts[last] = more
        rows += [*shown, *do]
        hidden -= len(whys)
    if hidden and len(rows) < room:
        rows.append(f"{_INDENT}and {hidden} more reason{'s' * (hidden > 1)}{_see(details)}")
    else:
        counts[last] += hidden
    for number, more in counts.items():
        if more:
            rows[number] = _cut(rows[number], f" (and {more} more{_see(details)})")
    return _Rows(rows, [*changes, *sets])


def _fix(remedy: str, most: int) -> list[str]:
    """Return a fix in at most so many lines, or its place: half a command can do harm."""
    rows = wrap_rows(f"fix: {remedy}", _INDENT * 2, HEIGHT)
    return (
        rows
        if len(rows) <= most
        else [f"{_INDENT * 2}fix: in the files of the report; it is too long for this page"]
    )


def _advice(group: Group, most: int) -> list[str]:
    """Return in at most so many lines what each profile needs on rated hosts, the recommended one first."""
    by_profile: dict[str, list[Rating]] = {}
    for report in group.reports:
        for name, rating in report["ratings"].items():
            by_profile.setdefault(name, []).append(rating)
    fits = Counter(
        report["recommendation"]["profile"] for report in group.reports if report["recommendation"]
    )
    best = max(
        (rating["after"] for ratings in by_profile.values() for rating in ratings),
        key=VERDICTS.index,
        default="",
    )
    none = f"no profile is recommended: with each of them the verdict after a run is {best} or worse"
    each = [] if fits or not by_profile else [none]
    for name in sorted(by_profile, key=lambda name: -fits[name]):
        number = max(len(rating["changes"]) for rating in by_profile[name])
        worst = min((rating["after"] for rating in by_profile[name]), key=VERDICTS.index)
        some = f" for {_hosts(fits[name])}" if fits[name] < len(group.reports) else ""
        mark = f" (recommended{some})" if fits[name] else ""
        each.append(f"{line(name)}{mark}: {number} change{'' if number == 1 else 's'}, then {worst}")
    rows = [_cut(f"{_INDENT}{text}", "") for text in each[:most]]
    more = len(each) - len(rows)
    return [*rows[:-1], _cut(rows[-1], f" (and {more} more)")] if more else rows


def basis(group: Group) -> list[str]:
    """Return the attestations and waivers on which a green verdict rests, each with its author and expiry date."""
    if group.verdict not in _ON_A_WORD:
        return []
    targets: dict[str, dict[str, None]] = {}
    for report in group.reports:
        for need in report["requirements"]:
            if need["state"] == "attested":
                named = [need["target"]] if need["target"] != HOST else []
                targets.setdefault(str(need["evidence"]), {}).update(dict.fromkeys(named))
    found = {f"{names(list(on))}: {text}" if on else text: None for text, on in targets.items()}
    found.update(
        dict.fromkeys(
            f"{each['target']}: {each['finding']}, accepted by {each['by']} until {each['expires']}: {each['reason']}"
            for report in group.reports
            for each in report["accepted"]
        )
    )
    return list(found)


def _basis(group: Group, room: int) -> list[str]:
    """Return the basis of a green verdict in so many lines: a few of its texts, and the number of the others."""
    found = basis(group)
    shown = min(_BASES, max(1, room // 2))
    lines_each = 2 if room > 1 else 1
    rows = [row for text in found[:shown] for row in wrap_rows(f"rests on {line(text)}", _INDENT, lines_each)]
    more = len(found) - shown
    return [*rows[:-1], _cut(rows[-1], f" (and {more} more)")] if more > 0 else rows


def by_remedy(group: Group) -> dict[str, list[str]]:
    """Return {fix: its reasons}, each with the number of hosts unless it is that of the group."""
    is_alone = len(group.reports) == 1
    counted = Counter(reason for report in group.reports for reason in reasons(report, is_alone))
    found: dict[str, list[str]] = {}
    for (why, remedy), number in counted.items():
        some = f" ({_hosts(number)})" if number < len(group.reports) else ""
        found.setdefault(line(remedy), []).append(f"{line(why)}{some}")
    return found


def _whys(whys: list[str], room: int, most: int, count: int) -> tuple[list[str], int]:
    """Return reasons with one fix in so many lines, and the number of those without a line; `most`: lines of one;
    `count`: of reasons."""
    rows: list[str] = []
    for number, why in enumerate(whys[:count]):
        if number and len(rows) >= room:
            break
        wrapped = wrap_rows(why, _INDENT, min(most, max(1, room - len(rows))))
        # A name of a host in it can look like the line of a fix.
        rows += [_cut(f"{_INDENT}... {row.strip()}", "") if _DO.match(row) else row for row in wrapped]
    else:
        number = min(len(whys), count)
    return rows, len(whys) - number


def _beside(group: Group) -> str:
    """Return the profile and the earlier verdict of a group."""
    first = group.reports[0]
    was = f"was {first['was']}" if first["was"] != group.verdict else ""
    parts = [str(first["profile"] or ""), was]
    return f"  ({', '.join(filter(None, map(line, parts)))})" if any(parts) else ""


def _changes(group: Group, table: bool, details: str) -> list[str]:
    """Return what a run would set, or has set, on the hosts of a group: a table of the values now and at boot, or two lines."""
    changes = [(each, change) for each in group.reports for change in each["changes"] if takes_place(change)]
    if not changes:
        return []
    verb = "would set" if changes[0][1]["state"] == "foreseen" else "has set"
    if not table:
        count = Counter(f"{change['setting']} {line(change['wanted'])}" for _report, change in changes)
        each = ", ".join(f"{what} ({number})" for what, number in count.most_common())
        return wrap_rows(f"{verb}: {each}", _INDENT, 2)
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for report, change in changes:
        wanted, at_boot = change["wanted"], change["persisted"]
        now = _step(change["running"], wanted)
        boot = "unchanged" if at_boot is None else _step(at_boot, wanted)
        key = (_NOUNS.get(change["layer"], ""), line(change["setting"]), now, boot)
        target = _unnamed(plan.named(change["layer"], change["target"]), report)
        found.setdefault(key, []).append(target)
    cells: list[tuple[str, ...]] = [(f"{verb}:", "", "now", "at boot")]
    cells += [("  " + _targets(on, noun), *rest) for (noun, *rest), on in found.items()]
    # A longer cell moves only its own row.
    widths = [max(len(cell) for cell in column if len(cell) <= _CELL) for column in zip(*cells)]
    rows = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
    shown = [_cut(f"{_INDENT}{row}", "") for row in rows[: _CHANGES + 1]]
    more = len(rows) - len(shown)
    return [*shown, f"{_INDENT}  and {more} more{_see(details)}"] if more else shown


def _step(before: str, wanted: str) -> str:
    """Return a value before and after a change."""
    return line(wanted if before == wanted else before if before == "stopped" else f"{before} -> {wanted}")


def _targets(named: Sequence[str], noun: str) -> str:
    """Return the targets of one change: a few names, or their number."""
    text = " ".join(dict.fromkeys(named))
    number = len(named)
    return text if number == len(set(named)) and len(text) <= _TARGET else f"{number} {noun or 'targets'}"


def _notes(ordered: list[Report], notes: Sequence[str]) -> Iterator[str]:
    """Yield notes: possible damage, rollback timers, notes of the run, then of the hosts."""
    switched = [report for report in ordered if _has_switch(report)]
    # The action of a rollback timer is the first note of its host.
    yield from _of_hosts(((report, report["exposed"]) for report in ordered), len(ordered))
    yield from _of_hosts(((report, report["warnings"][:1]) for report in switched), len(ordered))
    yield from (f"note: {line(text)}" for text in notes)
    rest = [(report, report["warnings"][_has_switch(report) :]) for report in ordered]
    yield from _of_hosts(rest, len(ordered))


def _has_switch(report: Report) -> bool:
    return str(report.get("switch", "none")) != "none"


def _of_hosts(noted: Iterable[tuple[Report, Sequence[str]]], number: int) -> Iterator[str]:
    """Yield notes of hosts, each once: the first ones of all hosts before the second ones; `number`: of hosts on the page."""
    found: dict[str, dict[str, str]] = {}
    hosts = list(noted)
    for texts in itertools.zip_longest(*(texts for _report, texts in hosts)):
        for (report, _texts), text in zip(hosts, texts):
            if text is not None:
                found.setdefault(_unnamed(text, report), {})[report["host"]] = text
    for unnamed, whole in found.items():
        (first, *more) = whole.values()
        text = line(unnamed if more else first)
        yield f"note: {names(list(whole))}: {text}" if number > 1 else f"note: {text}"


def _engines(ordered: list[Report]) -> Iterator[str]:
    """Yield each engine with its version and mounts, and the number of hosts with it."""
    found: dict[str, set[str]] = {}
    for report in ordered:
        for engine in report["engines"]:
            mounts = sorted({str(row["mount"]) for row in engine["files"] if row["mount"]})
            lies = f", on {', '.join(mounts)}" if mounts else ""
            state = f" ({engine['state']})" if engine["state"] != "running" else ""
            product, name = engine.get("product", engine["engine"]), engine["name"]
            named = product if name in (product, engine["engine"]) else f"{product} {name}"
            version = (
                engine["version"] if engine["version"] not in (None, "", "unknown") else "version unknown"
            )
            text = f"{named}, {version}{state}{lies}"
            found.setdefault(text, set()).add(report["host"])
    ranked = sorted(found.items(), key=lambda each: (-len(each[1]), each[0]))
    for text, hosts in ranked:
        on = f": {_hosts(len(hosts))}" if len(ordered) > 1 else ""
        yield f"found: {line(text)}{on}"


def _some(texts: Iterable[str], what: str, details: str) -> list[str]:
    """Return a few texts, each in one line or two, and how many more there are."""
    rows: list[str] = []
    found = list(texts)
    for number, text in enumerate(found):
        last = number + 1 == len(found)
        if len(rows) >= _FEW - (0 if last else 1):
            return [*rows, f"and {len(found) - number} more {what}{_see(details)}"]
        rows += wrap_rows(text, _INDENT, 1 if len(found) > 2 else 2)
    return rows


def _commands(ordered: list[Report]) -> list[str]:
    """Return the command line of the playbook that a fix names."""
    is_named = any(_PLAYBOOK in each["fix"] for report in ordered for each in report["reasons"])
    return [f"{_PLAYBOOK}: ansible-playbook -b -i INVENTORY durable.dbhost.{_PLAYBOOK}"] if is_named else []


def _end(ordered: list[Report], missing: Sequence[str]) -> list[str]:
    """Return the line with the number of failed hosts and the exit code."""
    failed = [report for report in ordered if report["fails"] or report["error"]]
    count = Counter(report["verdict"] for report in failed)
    each = ", ".join(f"{count[verdict]} {verdict}" for verdict in VERDICTS if count[verdict])
    so_far = " so far" if missing else ""
    if failed:
        return [
            f"{len(failed)} of {_hosts(len(ordered))} fail{'s' * (len(failed) == 1)} ({each}): exit code 2{so_far}"
        ]
    return [f"no host fails: exit code 0{so_far}"]


def wrap_rows(text: str, indent: str, most: int) -> list[str]:
    """Return a text in at most so many lines; a cut text ends in dots."""
    begin = "" if indent.startswith(" " * 12) or not indent else indent
    rows = textwrap.wrap(text, WIDTH, initial_indent=begin, subsequent_indent=indent, break_on_hyphens=False)
    # A name of a host in it can look like the line of a fix.
    rows[1:] = [_cut(f"{indent}... {row.strip()}", "") if _DO.match(row) else row for row in rows[1:]]
    return rows if len(rows) <= most else [*rows[: most - 1], _cut(rows[most - 1], _DOTS)]


def _cut(row: str, end: str) -> str:
    """Return a row with this end; a row that gets too long ends in dots before it."""
    if len(row) + len(end) <= WIDTH:
        return f"{row}{end}"
    end = f"{_DOTS}{end.removeprefix(_DOTS)}"
    room = WIDTH - len(end)
    head, space, _word = row[: room + 1].rpartition(" ")
    # A word as long as a row must be cut.
    return f"{(head if space and head.strip() else row[:room]).rstrip()}{end}"
