# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command line: record, judge, write the evidence."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from lab import doctor, watch
from lab.errors import LabError
from lab.kinds import KINDS
from lab.paths import Lab
from lab.progress import say
from proof import boot_files, choice, early, evidence, judge, judges, machine, needs, price, short
from proof.cells import PLANTS, SAFE, Cell, Setting, by_setting, chosen, matrix, to_boot
from proof.disk import ROOT
from proof.engines import ENGINES
from proof.errors import ProofError

EVIDENCE = ROOT / "docs/evidence"
SEEDS, CUTS = 5, 1000
#: A machine that is recorded waits for its disk more than it works.
MACHINES = 2
FAILURES = (ProofError, LabError, OSError, subprocess.SubprocessError)


def main(argv: Sequence[str]) -> int:
    """Do what the command line says; return the exit code: 0 only if all that was asked for is shown."""
    arguments = _parser().parse_args(argv)
    # However this run ends, no machine outlives it.
    watch.own()
    os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:{doctor.SBIN}"
    try:
        if arguments.short:
            return short.main(arguments.keep)
        cells = [] if arguments.price or arguments.boot_files else _cells(arguments)
        if arguments.list:
            return _list(cells)
        _must_have_tools(cells, arguments.install)
        if arguments.doctor:
            return 0
        if arguments.early:
            return _early(cells, arguments)
        if arguments.boot_files:
            return _boot_files(arguments)
        failed = _prove(cells, arguments) if cells else 0
        return _price(arguments) or failed if arguments.price or not arguments.cells else failed
    except (ProofError, LabError) as error:
        print(f"proof: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m proof", description=__doc__)
    parser.add_argument(
        "cells",
        nargs="*",
        metavar="CELL",
        help="as flush/virtio/ext4/*; controls come along; !*/commits leaves cells out",
    )
    parser.add_argument(
        "--price",
        action="store_true",
        help="no cells, but what commits cost on a rotating disk; part of a run of all cells too",
    )
    parser.add_argument(
        "--early",
        type=_positive,
        metavar="RUNS",
        help="no cuts: make so many long runs of each safe cell, traced where that can be, and look at each acknowledgement",
    )
    parser.add_argument(
        "--boot-files",
        type=_positive,
        metavar="CUTS",
        help="no cells: so many cuts in each step of harden-db and release, on the disk of the root itself, ext4 and XFS",
    )
    parser.add_argument("--kind", choices=KINDS, help="only cells that are recorded on such a machine here")
    parser.add_argument("--list", action="store_true", help="show the cells, and do nothing")
    parser.add_argument(
        "--short", action="store_true", help="the deterministic part, without a machine; seconds"
    )
    parser.add_argument(
        "--keep", action="store_true", help="with --short: keep its outcomes as those to compare with"
    )
    parser.add_argument(
        "--seeds", type=_positive, default=SEEDS, help=f"runs with all clients of each cell ({SEEDS})"
    )
    parser.add_argument(
        "--cuts", type=_positive, default=CUTS, help=f"cuts of each cell, shared by its runs ({CUTS})"
    )
    parser.add_argument("--jobs", type=_positive, default=os.cpu_count() or 1, help="processes that judge")
    parser.add_argument(
        "--machines", type=_positive, default=MACHINES, help=f"settings recorded side by side ({MACHINES})"
    )
    parser.add_argument("--fresh", action="store_true", help="record anew what has been recorded")
    parser.add_argument("--no-reboot", action="store_true", help="leave out the boot from what one cut left")
    parser.add_argument("--judge-only", action="store_true", help="judge kept records, start no machine")
    parser.add_argument("--records", type=Path, default=None, metavar="DIR", help="where records lie")
    parser.add_argument(
        "--evidence",
        type=Path,
        default=EVIDENCE,
        metavar="DIR",
        help="where the evidence goes (docs/evidence)",
    )
    parser.add_argument(
        "--doctor", action="store_true", help="say which tools these cells miss, and do nothing else"
    )
    parser.add_argument("--install", action="store_true", help="install missing tools with apt-get")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("wanted 1 or more")
    return number


def _cells(arguments: argparse.Namespace) -> list[Cell]:
    found = chosen(matrix(), arguments.cells or ["*"])
    return [cell for cell in found if arguments.kind in (None, machine.kind_of(cell.setting))]


def _list(cells: Sequence[Cell]) -> int:
    for cell in cells:
        print(f"{cell.name}\t{cell.expects}" + (f"\tcontrol: {cell.control}" if cell.control else ""))
    print(f"{len(cells)} cells, {len(by_setting(cells))} boots", file=sys.stderr)
    return 0


def _must_have_tools(cells: Sequence[Cell], install: bool) -> None:
    engines = [ENGINES[name] for name in sorted({cell.setting.engine for cell in cells} - {""})]
    absent = needs.missing(engines)
    if absent and install and shutil.which("apt-get"):
        doctor.install(absent)
        absent = needs.missing(engines)
    if absent:
        raise ProofError(doctor.advice(absent))


def _prove(cells: Sequence[Cell], arguments: argparse.Namespace) -> int:
    """Record and judge setting by setting; a setting that fails is named at the end, and the others go on.

    While some are recorded, each by a machine of its own, those before them are judged, each cell by a process.
    """
    started = time.monotonic()
    records = arguments.records or Lab.default().root / "proof"
    done = _Done(len(cells))
    settings = by_setting(cells)
    with judges.pool(arguments.jobs) as pool, _recorders(arguments.machines) as recorders:
        ahead = {
            setting: recorders.submit(_recorded, setting, members, records, arguments)
            for setting, members in settings.items()
        }
        waiting = deque[_Judged]()
        for number, (setting, members) in enumerate(settings.items(), 1):
            try:
                directory = ahead[setting].result()
            except FAILURES as error:
                done.fail(setting.name, error)
                continue
            say(f"{setting.name}: {number} of {len(settings)} settings recorded, {len(members)} cells")
            futures = [pool.submit(judges.judged, cell, directory, arguments.cuts) for cell in members]
            for future in futures:
                future.add_done_callback(done.tell)
            waiting.append(_Judged(setting, members, directory, futures))
            while waiting and all(future.done() for future in waiting[0].futures):
                _take(waiting.popleft(), arguments, done)
        while waiting:
            _take(waiting.popleft(), arguments, done)
    _tell(done.judged, done.failed, time.monotonic() - started)
    wrong = choice.problems(choice.choices(evidence.read(arguments.evidence)))
    for line in wrong:
        print(f"  what is chosen for SQL Server: {line}")
    return 1 if done.failed or wrong or any(cell["problems"] for cell in done.judged) else 0


@contextmanager
def _recorders(machines: int) -> Iterator[Executor]:
    """Give what records settings side by side; one that has not begun when the run fails never does."""
    executor = ThreadPoolExecutor(machines)
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


class _Judged(NamedTuple):
    """The cells of one setting, and what will be found."""

    setting: Setting
    members: Sequence[Cell]
    directory: Path
    futures: list[Future[dict[str, Any]]]


class _Done:
    """What was found so far, of so many cells, and the settings that failed."""

    def __init__(self, cells: int) -> None:
        self.cells = cells
        self.judged = list[dict[str, Any]]()
        self.failed = dict[str, str]()
        self._ended = 0

    def fail(self, name: str, error: Exception) -> None:
        say(f"{name}: FAILED: {error}")
        self.failed[name] = str(error)

    def tell(self, future: Future[dict[str, Any]]) -> None:
        """Say how far it is; called as soon as a cell is judged, whoever waits for another one."""
        self._ended += 1
        if not future.cancelled() and not future.exception():
            found = future.result()
            say(f"{found['cell']}: {_in_words(found)} ({self._ended} of {self.cells} cells)")


def _take(one: _Judged, arguments: argparse.Namespace, done: _Done) -> None:
    """Wait for the cells of a setting, and write their evidence."""
    found = dict[Cell, dict[str, Any]]()
    for cell, future in zip(one.members, one.futures, strict=True):
        try:
            found[cell] = future.result()
            _boot_from(cell, one.directory, found[cell], arguments)
        except FAILURES as error:
            done.fail(cell.name, error)
    done.judged += found.values()
    evidence.write(found.values(), arguments.evidence)


def _early(cells: Sequence[Cell], arguments: argparse.Namespace) -> int:
    """Look for acknowledgements that come too early. Whether there are any is a finding, not a failure."""
    records = arguments.records or Lab.default().root / "proof"
    for cell in cells:
        if cell.expects == SAFE:
            where = records / f"early-{cell.setting.directory}"
            found = early.hunt(cell.setting, cell.workload, arguments.early, where)
            evidence.write_early(early.as_json(found), arguments.evidence)
    return 0


def _boot_files(arguments: argparse.Namespace) -> int:
    """Cut the power on the root's own disk; the exit code is 0 only if each file was whole, and the control's was not."""
    records = arguments.records or Lab.default().root / "proof"
    with judges.pool(arguments.jobs) as pool:
        found = [
            boot_files.tried(root, records, arguments.boot_files, arguments.jobs, pool, arguments.fresh)
            for root in boot_files.ROOTS
        ]
    evidence.write_boot_files({one["root"]: one for one in found}, arguments.evidence)
    wrong = [problem for one in found for problem in boot_files.problems(one)]
    cuts = sum(
        step["cuts"] for one in found for name, step in one["steps"].items() if name != boot_files.CONTROL
    )
    print(f"\nboot files: {cuts} cuts, {len(found)} roots")
    for line in wrong:
        print(f"  {line}")
    return 1 if wrong else 0


def _price(arguments: argparse.Namespace) -> int:
    """Record and judge each setting of the price; one that fails is named at the end, and the others go on."""
    records = arguments.records or Lab.default().root / "proof"
    failed, found = dict[str, str](), dict[str, dict[str, Any]]()
    for setting in price.SETTINGS:
        say(f"{setting.name}: the price")
        try:
            if not arguments.judge_only and (arguments.fresh or not price.covers(setting, records)):
                price.record(setting, records)
            found[setting.name] = price.judged(setting, records)
        except (ProofError, LabError, OSError, subprocess.SubprocessError) as error:
            say(f"{setting.name}: FAILED: {error}")
            failed[setting.name] = str(error)
    evidence.write_price(found, arguments.evidence)
    wrong = price.wrong(evidence.read_price(arguments.evidence))
    print(f"\nthe price: {len(found)} of {len(price.SETTINGS)} settings")
    for line in [*wrong, *(f"not recorded or judged: {name}: {why}" for name, why in failed.items())]:
        print(f"  {line}")
    return 1 if failed or wrong else 0


def _record_of(setting: Setting, records: Path) -> Path:
    """Return where the record of a setting lies: one for each kind of machine."""
    kind = machine.kind_of(setting)
    return records / (setting.directory if kind == "qemu" else f"{setting.directory}-{kind}")


def _recorded(
    setting: Setting, members: Sequence[Cell], records: Path, arguments: argparse.Namespace
) -> Path:
    """Return the directory of a setting's record, and record it if it has to be."""
    directory, wanted = _record_of(setting, records), list(range(1, arguments.seeds + 1))
    if not arguments.judge_only and (arguments.fresh or not _covers(directory, members, len(wanted))):
        machine.record(setting, members, wanted, directory)
    judge.Record.read(directory)
    return directory


def _boot_from(cell: Cell, directory: Path, judged: dict[str, Any], arguments: argparse.Namespace) -> None:
    if cell.name in to_boot(matrix()):
        boots = not (arguments.judge_only or arguments.no_reboot)
        _reboot(cell, judge.Record.read(directory), judged, boots)


def _reboot(cell: Cell, record: judge.Record, found: dict[str, Any], boots: bool = True) -> None:
    """Cut once for real: boot from what a cut left. What that showed is part of the record, and found there again."""
    kept = record.directory / f"reboot-{cell.workload}.json"
    try:
        if kept.exists():
            found["reboot"] = json.loads(kept.read_text())
        elif boots:
            say(f"{cell.name}: one cut, and a boot from what it left")
            found["reboot"] = judge.reboot_cell(
                cell, record, record.directory.with_name(f"{record.directory.name}-reboot")
            )
            kept.write_text(json.dumps(found["reboot"]))
        else:
            return
    except (ProofError, LabError) as error:
        # What the cuts have shown is worth keeping.
        found["problems"].append(f"a boot from what a cut left: {error}")
    else:
        found["problems"] += judge.problems_of_reboot(found["reboot"])
    found["verdict"] = "not shown" if found["problems"] else "shown"


def _covers(directory: Path, members: Sequence[Cell], seeds: int) -> bool:
    """Return whether a whole record has all that is wanted."""
    try:
        record = judge.Record.read(directory)
        runs = [record.segments(cell.workload) for cell in members]
    except ProofError:
        return False
    one_run = bool(record.setting.plant) and PLANTS[record.setting.plant].has_second_part
    return all(sum(run.job.clients > 1 for run in each) >= (1 if one_run else seeds) for each in runs)


def _in_words(found: dict[str, Any]) -> str:
    total = found["totals"]
    words = f"{total['losing']} of {total['cuts']} cuts lose commits, {total['without_volatile']} had nothing volatile"
    return "; ".join([words, *found["problems"]])


def _tell(judged: Sequence[dict[str, Any]], failed: dict[str, str], seconds: float) -> None:
    shown = sum(not cell["problems"] for cell in judged)
    print(f"\n{shown} of {len(judged)} cells show what they should; {seconds:.0f} s")
    for cell in judged:
        for problem in cell["problems"]:
            print(f"  {cell['cell']}: {problem}")
    for name, why in failed.items():
        print(f"  not recorded or judged: {name}: {why}")
