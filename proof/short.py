# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The short, deterministic part: simulated guests on the model of the disk, without a machine.

Its outcomes are kept, cut by cut, as a digest. The same code and seeds give them again on any computer.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from proof.simulated import Setup, raw_judge, raw_run
from proof.sweep import Model, Outcome, Run, every_ack, schedule, sensitivity, summary, sweep
from proof.volatile import Faults
from proof.writer import Job

KEPT = Path(__file__).with_name("short.json")
JOB = Job("/d", "direct_fdatasync", clients=4, commits=60, seed=7)
CUTS, TRIALS = 200, 10
#: One client: no other one's flush stands in for a flush that was ignored.
ALONE = replace(JOB, clients=1, commits=240)
#: Name, who writes, how commits are made durable, and what the disk does wrong.
CASES = (
    ("flush", JOB, "flush", Faults()),
    ("fua", JOB, "fua", Faults()),
    ("nothing", JOB, "nothing", Faults()),
    ("flush, every 50th ignored", ALONE, "flush", Faults(ignore_flush_every=50)),
    ("fua, ignored", ALONE, "fua", Faults(ignore_fua=True)),
)
SAFE = ("flush", "fua")


def results() -> dict[str, dict[str, Any]]:
    """Sweep each case."""
    found = dict[str, dict[str, Any]]()
    with tempfile.TemporaryDirectory() as name:
        for case, job, by, faults in CASES:
            run = raw_run(Path(name), job, Setup(by))
            cuts = [*schedule(run.events, CUTS, 3), *every_ack(run.events, 3)]
            outcomes = list(sweep(run, cuts, raw_judge(job), Model(faults=faults, seed=3)))
            total = summary(outcomes)
            found[case] = {"cuts": total.cuts, "losing": total.losing, "digest": _digest(outcomes)}
        for edit in SAFE:
            found[f"less one {edit}"] = _trials(raw_run(Path(name), ALONE, Setup(edit)), edit)
    return found


def problems(found: dict[str, dict[str, Any]]) -> list[str]:
    """Return what is not as it must be, whatever was kept."""
    wrong = [f"{name}: {found[name]['losing']} cuts lose commits" for name in SAFE if found[name]["losing"]]
    lying = [name for name, *_ in CASES if name not in SAFE and not found[name]["losing"]]
    blind = [name for name, row in found.items() if "caught" in row and row["caught"] != row["trials"]]
    return [
        *wrong,
        *(f"{name}: no cut shows it" for name in lying),
        *(f"{name}: not always caught" for name in blind),
    ]


def main(keep: bool = False) -> int:
    """Compare with what was kept, or keep it; return the exit code."""
    found = results()
    wrong = problems(found)
    if keep and not wrong:
        KEPT.write_text(json.dumps(found, indent=1) + "\n")
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if not kept:
        wrong.append(f"{KEPT} is missing: --short --keep makes it")
    wrong += [
        f"{name}: seen {found.get(name)}, kept {row}" for name, row in kept.items() if found.get(name) != row
    ]
    for line in wrong:
        print(f"proof: {line}")
    for name, row in found.items():
        counts = ", ".join(f"{value} {key}" for key, value in row.items() if key != "digest")
        print(f"{name}: {counts}")
    return 1 if wrong else 0


def _trials(run: Run, edit: str) -> dict[str, Any]:
    trials = [sensitivity(run, edit, seed, raw_judge(run.job)) for seed in range(TRIALS)]
    return {"trials": len(trials), "caught": sum(trial.caught for trial in trials)}


def _digest(outcomes: Iterable[Outcome]) -> str:
    # how a cut was looked at is not what it left
    told = [asdict(outcome) for outcome in outcomes]
    text = json.dumps([{name: one[name] for name in one if name not in ("whole", "frame")} for one in told])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
