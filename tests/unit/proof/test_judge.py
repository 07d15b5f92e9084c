# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From a record to a verdict and to the page, on a real ext4 and a simulated guest; no machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from proof import checks, evidence, judge, log, machine, run, writer
from proof.cells import LOSES, SAFE, UNTRUSTED, Cell, Setting, matrix
from proof.errors import ProofError
from proof.judge import Record, added, cuts_of, judge_cell, kept_or_judged, problems, window
from proof.log import Event, Kind
from proof.machine import MOUNT, RECORD, Segment
from proof.simulated import Setup, events
from proof.sweep import Summary
from proof.writer import Job

PATH = f"{os.environ['PATH']}:{checks.SBIN}"
TOOLS = ("mkfs.ext4", "e2fsck", "debugfs", "dumpe2fs")
ext4_tools = pytest.mark.skipif(
    not all(shutil.which(tool, path=PATH) for tool in TOOLS), reason=f"needs {' '.join(TOOLS)}"
)
WORKLOAD = "direct_fdatasync"
SETTING = Setting("flush", "virtio", "ext4")
BARRIERS_OFF = replace(SETTING, plant="barrier0")
ALONE = Job(f"{MOUNT}/{WORKLOAD}", WORKLOAD, clients=1, commits=60, seed=0, noise=1)
MANY = replace(ALONE, clients=4, commits=30, seed=1)
VERSIONS = {"qemu": "QEMU emulator version 7.2", "guest": "Linux 6.1"}


def command(*argv: str) -> str:
    """Run a tool that must work."""
    environment = os.environ | {"PATH": PATH, "LC_ALL": "C"}
    return subprocess.run(argv, check=True, capture_output=True, text=True, env=environment).stdout


def place(image: Path, path: str) -> int:
    """Return where a file begins on the disk, in bytes."""
    words = command("dumpe2fs", "-h", str(image)).splitlines()
    size = int(next(line for line in words if line.startswith("Block size")).split()[-1])
    return int(command("debugfs", "-R", f"bmap {path} 0", str(image))) * size


def made(directory: Path, setting: Setting, by: str) -> Record:
    """Make a record as a machine would: one client, then four, on one log; `by` is how commits are made durable."""
    tree, disk = directory / "tree", directory / "disk"
    (tree / WORKLOAD).mkdir(parents=True)
    disk.mkdir()
    size = max(job.clients * job.commits for job in (ALONE, MANY)) * ALONE.size
    (tree / WORKLOAD / "commits").write_bytes(b"\1" * size)
    (tree / WORKLOAD / "noise").write_bytes(b"\1" * 64 * writer.BLOCK)
    image = disk / "base.img"
    command("mkfs.ext4", "-q", "-d", str(tree), str(image), "16M")
    setup = Setup(by, place(image, f"/{WORKLOAD}/commits"), 1, place(image, f"/{WORKLOAD}/noise"))
    out = log.Writer(disk, 16 << 20)
    segments = []
    for job in (ALONE, MANY):
        begin = log.count(disk)
        for event in events(job, setup):
            out.append(event.kind, event.offset, event.length, event.fua, bytes(event.data))
        end, commits = log.count(disk), job.clients * job.commits
        kernel = {"writes": 2 * commits, "flushes": commits if by == "flush" else 0, "fua": 0}
        result = {"commits": [job.commits] * job.clients, "seconds": 4.0, "commit_seconds": {"p50": 0.01}}
        segments.append(asdict(Segment(WORKLOAD, job, begin, end, begin, end, kernel, kernel, result)))
    out.close()
    words = dict.fromkeys(("seen", "seen_after"), "as seen")
    raw = {
        "setting": asdict(setting),
        "plant": "planted",
        "hardened": {"verdict": "attested"},
        "versions": VERSIONS,
    }
    (directory / RECORD).write_text(json.dumps({**raw, **words, "segments": segments}))
    return Record.read(directory)


@pytest.fixture
def safe_record(tmp_path: Path) -> Record:
    """Return the record of a setting that flushes."""
    return made(tmp_path / "flush-virtio-ext4", SETTING, "flush")


@pytest.fixture
def control_record(tmp_path: Path) -> Record:
    """Return the record of its control."""
    return made(tmp_path / "flush-virtio-ext4-barrier0", BARRIERS_OFF, "nothing")


SAFE_CELL = Cell(SETTING, WORKLOAD, SAFE, f"{BARRIERS_OFF.name}/{WORKLOAD}")
CONTROL = Cell(BARRIERS_OFF, WORKLOAD, LOSES)


@ext4_tools
def test_a_safe_cell_and_its_control_are_shown(
    safe_record: Record, control_record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With everything that says what the verdict is worth; then the page and the plots."""
    monkeypatch.setattr(judge, "NEEDED", 30)
    monkeypatch.setattr(judge, "TRIALS", 4)
    found = [judge_cell(SAFE_CELL, safe_record, 100), judge_cell(CONTROL, control_record, 60)]
    assert [cell["problems"] for cell in found] == [[], []]
    safe, control = found
    assert (safe["totals"]["losing"], safe["totals"]["damaged"]) == (0, 0)
    assert safe["totals"]["bound"] == pytest.approx(3 / safe["totals"]["cuts"], rel=0.1)
    assert control["totals"]["losing"] >= control["totals"]["cuts"] / 2
    assert safe["self_test"]["cuts"] == 60 and safe["self_test"]["losing"] == 0
    assert safe["rig"] == {
        "edit": "flush",
        "trials": 4,
        "caught": 4,
        "needed_and_missed": 0,
        "lie_caught": "every 50th flush",
    }
    assert [row["log"]["flushes"] for row in safe["accounting"]] == [1.0, 1.0]
    evidence.write(found, tmp_path / "evidence")
    text = (tmp_path / "evidence/README.md").read_text()
    assert "2 of 2 cells show what they should: 1 safe ones, 1 controls" in text
    assert f"| {SAFE_CELL.name} | 6.1, qemu | {safe['totals']['cuts']} | 0 |" in text
    assert "all 4 of 4 trials lost a commit by it (100%); 0 trials lost none" in text
    assert "In 0 of 1 cells" in text
    # the page of a device without a rule of harden-db says so at its head
    assert "1 safe ones, 1 controls.\n" in text
    by_default = {**safe, "setting": {**safe["setting"], "device": "nbd"}}
    assert "1 of the safe ones are as the kernel makes them" in evidence.page([by_default])
    assert "native FUA is unproven" in text
    assert f"{len(matrix()) - 2} of {len(matrix())} cells of the matrix were not run: " in text
    assert "strict/virtio/ext4, strict/virtio/ext4/cache-back, " in text
    for plot in ("cuts.svg", "flushes.svg"):
        assert SAFE_CELL.name in xml.parse(tmp_path / "evidence" / plot).getroot().itertext()


@ext4_tools
def test_the_same_record_and_seeds_give_the_same_evidence(safe_record: Record) -> None:
    """To the last byte."""
    first, second = (judge_cell(SAFE_CELL, safe_record, 20) for _ in range(2))
    assert json.dumps(first) == json.dumps(second)


@ext4_tools
def test_an_unsafe_run_in_a_safe_cell_is_not_shown(control_record: Record) -> None:
    """And says what is wrong: commits, self-test, flushes."""
    told = " ".join(judge_cell(SAFE_CELL, control_record, 60)["problems"])
    assert "cuts lose commits" in told
    assert "do not survive a drop of all" in told
    assert "seen 0.000 flushes for each commit, wanted 1.00" in told


@ext4_tools
def test_what_was_judged_is_kept_for_a_run_that_goes_on(
    safe_record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the same number of cuts and the same sources; what broke off while it was written is judged again."""
    monkeypatch.setattr(judge, "TRIALS", 2)
    first = kept_or_judged(SAFE_CELL, safe_record.directory, 20)
    again = list[int]()

    def judged(cell: Cell, record: Record, cuts: int) -> dict[str, Any]:
        again.append(cuts)
        return first

    monkeypatch.setattr(judge, "judge_cell", judged)
    assert kept_or_judged(SAFE_CELL, safe_record.directory, 20) == json.loads(json.dumps(first))
    assert again == []
    kept_or_judged(SAFE_CELL, safe_record.directory, 30)
    monkeypatch.setattr(judge, "_sources", lambda: "others")
    kept_or_judged(SAFE_CELL, safe_record.directory, 30)
    (safe_record.directory / f"judged-{WORKLOAD}.json").write_text('{"of": ')
    kept_or_judged(SAFE_CELL, safe_record.directory, 40)
    assert again == [30, 30, 40]


RUN = """
import sys, time
from pathlib import Path
from proof import judges
from proof.cells import matrix
if __name__ == "__main__":
    cell = next(cell for cell in matrix() if cell.name == sys.argv[2])
    pool = judges.pool(2)
    for _ in range(3):
        pool.submit(judges.judged, cell, Path(sys.argv[1]), 10**6)
    print(*pool._processes, flush=True)
    time.sleep(60)
"""


@ext4_tools
def test_judges_end_with_a_run_that_is_killed(safe_record: Record) -> None:
    """In the middle of a cell, with others waiting; and each puts its images away, although it is told twice."""
    argv = [sys.executable, "-c", RUN, str(safe_record.directory), SAFE_CELL.name]
    environment = os.environ | {"PATH": PATH, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=environment) as killed:
        assert killed.stdout
        judges = [Path("/proc", number) for number in killed.stdout.readline().split()]
        assert len(judges) == 2
        time.sleep(2)
        assert all(judge.exists() for judge in judges)
        maps = "\n".join((judge / "maps").read_text() for judge in judges)
        scratch = {Path(path) for path in re.findall(r"(/\S*/dbhost-proof-\w+)/", maps)}
        assert len(scratch) >= 2
        for judge in judges:
            os.kill(int(judge.name), signal.SIGTERM)
        killed.kill()
    end = time.monotonic() + 60
    while any(judge.exists() for judge in judges) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(path.exists() for path in (*judges, *scratch))


def test_only_a_runs_own_acknowledgements_count() -> None:
    """Writes before it are there all the same, those behind it are not."""
    kinds = [Kind.ACK, Kind.WRITE, Kind.ACK, Kind.WRITE, Kind.ACK]
    everything = [Event(number, kind) for number, kind in enumerate(kinds)]
    segment = Segment(WORKLOAD, MANY, 1, 3, 1, 3)
    assert [event.sequence for event in window(everything, segment)] == [1, 2]
    later = replace(segment, look_begin=3, look_end=5)
    assert [event.sequence for event in window(everything, later)] == [1, 2, 3]


def test_cuts_behind_a_change_lie_behind_it() -> None:
    """On a disk that was told nothing since, they lie at its end, with policies and seeds of their own."""
    everything = [Event(0, Kind.WRITE), Event(1, Kind.ACK), Event(2, Kind.WRITE), Event(3, Kind.WRITE)]
    segment = Segment(WORKLOAD, MANY, 0, 2, 2, 4)
    cuts = cuts_of(everything, segment, 50, 1)
    assert {cut.sequence for cut in cuts} == {2, 3}
    assert cuts == cuts_of(everything, segment, 50, 1) != cuts_of(everything, segment, 50, 2)
    idle = cuts_of(everything[:2], replace(segment, look_end=2), 50, 1)
    assert {cut.sequence for cut in idle} == {1}
    assert len({cut.policy for cut in idle}) == 4


def total(**values: int) -> Summary:
    """Return a summary."""
    names = ("cuts", "without_volatile", "lost_without_volatile", "losing", "damaged", "commits_lost")
    return Summary(**{name: values.get(name, 0) for name in names}, bound=None)


NOTHING: dict[str, Any] = {"accounting": []}
OFF = Cell(Setting("strict", "sata", "xfs"), WORKLOAD, SAFE)


@pytest.mark.parametrize(
    ("cell", "summed", "said"),
    [
        (SAFE_CELL, total(cuts=1000), ""),
        (SAFE_CELL, total(cuts=999), "only 999 cuts had volatile data; wanted 1000"),
        (SAFE_CELL, total(cuts=1000, losing=1), "1 of 1000 cuts lose commits"),
        (SAFE_CELL, total(cuts=1000, damaged=2), "2 leave a damaged file system"),
        (SAFE_CELL, total(cuts=1000, lost_without_volatile=1), "though nothing was volatile"),
        (OFF, total(without_volatile=1000), ""),
        (OFF, total(without_volatile=999), "only 999 cuts"),
        (OFF, total(without_volatile=1000, cuts=1), "the cache is off, yet 1 cuts had volatile data"),
        (CONTROL, total(cuts=10, losing=5), ""),
        (CONTROL, total(cuts=10, losing=4), "loses commits in 4 of 10 cuts"),
        (CONTROL, total(), "this control controls nothing"),
    ],
)
def test_what_a_cell_must_show(cell: Cell, summed: Summary, said: str) -> None:
    """And what is said if it does not."""
    told = " ".join(problems(cell, summed, NOTHING))
    assert said in told
    assert bool(told) == bool(said)


def test_summaries_are_added_up_and_bounded_together() -> None:
    """Five seeds are one cell."""
    summed = added([total(cuts=600, losing=1), total(cuts=400, without_volatile=3)])
    assert (summed.cuts, summed.losing, summed.without_volatile) == (1000, 1, 3)
    assert summed.bound == pytest.approx(0.00473, rel=0.01)
    assert added([total()]).bound is None


def test_a_record_that_broke_off_is_told(tmp_path: Path) -> None:
    """It has no record.json, which is written last."""
    with pytest.raises(ProofError, match="no whole record"):
        Record.read(tmp_path)


def test_a_failed_control_takes_its_cell_along() -> None:
    """On the page: a safe cell stands only beside a control that loses."""
    base = {
        "setting": asdict(SETTING),
        "workload": WORKLOAD,
        "seeds": [],
        "accounting": [],
        "versions": VERSIONS,
    }
    sums = asdict(total(cuts=1000, without_volatile=7)) | {"bound": 0.003}
    more = {"plant": "", "hardened": {"verdict": "attested"}, "totals": sums, "problems": []}
    safe = {**base, **more, "cell": "a", "expects": SAFE, "control": "b"}
    assert "a: its control b was not judged" in evidence.page([safe])
    control = {**base, **more, "cell": "b", "expects": LOSES, "control": "", "problems": ["loses too little"]}
    text = evidence.page([safe, control])
    assert "0 of 2 cells show what they should" in text
    assert "a: its control b does not lose as it should" in text
    assert "b: loses too little" in text


@ext4_tools
def test_a_cell_of_both_kinds_of_machine_is_two_records(control_record: Record, tmp_path: Path) -> None:
    """Each with its kernel, beside each other; a kernel that was not traced has no figures of a trace."""
    one = judge_cell(CONTROL, control_record, 60)
    other = json.loads(json.dumps(one))
    other["versions"] = {"guest": "Linux 7.2.7 #1 x86_64", "kind": "uml"}
    for row in other["accounting"]:
        row["trace"] = {}
    evidence.write([one, other], tmp_path)
    assert [evidence.kind_of(cell) for cell in evidence.read(tmp_path)] == ["qemu", "uml"]
    text = (tmp_path / "README.md").read_text()
    assert "Run on both kinds of machine, and so counted twice: 1." in text
    section = text.partition("## The same cells on both kinds of machine")[2].partition("\n## ")[0]
    assert f"| {CONTROL.name} | 6.1, qemu | " in section
    assert f"| {CONTROL.name} | 7.2.7, uml | " in section
    assert "Of 1 cells that both have run 0 are safe: 0 of their cuts lose" in section
    assert "differ by more than 0.0%. The disk got as many flushes" in section
    assert "to a quarter.\n" in section
    # what one disk was told and the other was not is named
    for row in other["accounting"]:
        row["log"] = {**row["log"], "fua": row["log"]["fua"] + 1}
    unlike = {**other, "totals": {**other["totals"], "losing": other["totals"]["losing"] - 30}}
    text = evidence.page([one, unlike])
    assert f"to a quarter; not so in {CONTROL.name}.\n" in text
    assert f"differ by more than {30 / one['totals']['cuts']:.1%}" in text
    # a pair is of one kind: the control of a safe cell on the other does not count
    safe = {**other, "cell": SAFE_CELL.name, "expects": SAFE, "control": CONTROL.name, "problems": []}
    text = evidence.page([one, safe])
    assert f"{SAFE_CELL.name} (uml): its control {CONTROL.name} was not judged" in text
    assert "not traced" in text


def test_fua_that_does_not_arrive_is_said_to_be_unproven() -> None:
    """The kernel sends it, QEMU makes a write and a flush of it."""
    row = {"clients": 1, "trace": {"fua": 1.0}, "log": {"fua": 0.0, "flushes": 1.0}}
    cell = {
        "cell": "flush/scsi-fua/ext4/direct_dsync",
        "expects": SAFE,
        "setting": asdict(replace(SETTING, device="scsi-fua")),
        "accounting": [row],
        "versions": VERSIONS,
    }
    told = " ".join(evidence.not_shown([cell]))
    assert "FUA of a SCSI disk by itself is unproven" in told
    row["log"] = {"fua": 1.0, "flushes": 0.0}
    assert "by itself is unproven" not in " ".join(evidence.not_shown([cell]))


@ext4_tools
def test_a_device_that_is_not_trusted_is_told_and_never_safe(control_record: Record, tmp_path: Path) -> None:
    """QEMU 7.2's NVMe disk: its self-test loses commits, and no verdict comes of it."""
    name = Cell(BARRIERS_OFF, WORKLOAD, UNTRUSTED)
    found = judge_cell(name, control_record, 40)
    assert found["verdict"] == "told"
    assert found["self_test"]["losing"] > 0
    evidence.write([found], tmp_path)
    text = (tmp_path / "README.md").read_text()
    assert "0 of 0 cells show what they should" in text
    assert f"{found['self_test']['losing']} of {found['self_test']['cuts']} commits do not survive" in text


@ext4_tools
def test_the_command_judges_kept_records(
    safe_record: Record,
    control_record: Record,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It names what is not shown, and its exit code says so; what was not recorded is named, and stops nothing."""
    monkeypatch.setattr(judge, "TRIALS", 2)
    monkeypatch.setattr(run.needs, "missing", dict)
    monkeypatch.setenv("DBHOST_LAB_KIND", "qemu")
    records = safe_record.directory.parent
    words = [
        "--judge-only",
        "--records",
        str(records),
        "--evidence",
        str(records / "e"),
        "--cuts",
        "60",
        "--jobs",
        "1",
    ]
    assert run.main([*words, SAFE_CELL.name, "strict/virtio/ext4/dsync"]) == 1
    told = capsys.readouterr().out
    assert "1 of 2 cells show what they should" in told
    assert "wanted 1000: raise --cuts or --seeds" in told
    assert "strict/virtio/ext4:" in told and "no whole record" in told
    assert len(evidence.read(records / "e")) == 2


@ext4_tools
def test_a_machine_is_booted_from_what_a_cut_left(
    safe_record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With volatile data gone; here the machine is debugfs."""

    def reboot(setting: Setting, image: Path, paths: list[str], seed: int, directory: Path) -> machine.Found:
        assert setting == SETTING
        checked = checks.ext4(image, paths, tmp_path)
        return machine.Found(checked.files, [] if checked.clean else [checked.said])

    monkeypatch.setattr(machine, "reboot", reboot)
    found = judge.reboot_cell(SAFE_CELL, safe_record, tmp_path / "reboot")
    assert 0 < found["acknowledged"] < MANY.clients * MANY.commits
    assert judge.problems_of_reboot(found) == []
    assert "2 missing, 1 torn of 9" in " ".join(
        judge.problems_of_reboot(
            {"acknowledged": 9, "missing": 2, "torn": 1, "complaints": ["EXT4-fs error"]}
        )
    )
    monkeypatch.setattr(
        machine, "reboot", lambda *_: machine.Found(dict.fromkeys([f"{WORKLOAD}/commits"]), [])
    )
    assert judge.problems_of_reboot(judge.reboot_cell(SAFE_CELL, safe_record, tmp_path / "reboot"))


@ext4_tools
def test_a_machine_that_does_not_come_back_is_a_problem_of_the_cell_alone(
    safe_record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its cuts have shown is kept."""

    def lost(*_: object) -> None:
        raise ProofError("it is not reachable")

    monkeypatch.setattr(machine, "reboot", lost)
    found: dict[str, Any] = {"totals": {"cuts": 1000}, "problems": []}
    run._reboot(SAFE_CELL, safe_record, found)
    assert found["problems"] == ["a boot from what a cut left: it is not reachable"]
    assert (found["verdict"], found["totals"]) == ("not shown", {"cuts": 1000})


@ext4_tools
def test_a_boot_is_kept_with_the_record(safe_record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    """Judging once more, or only judging, finds it there; without one, only judging boots nothing."""
    boots = list[str]()

    def reboot(*_: object) -> dict[str, Any]:
        boots.append("one")
        return {"acknowledged": 9, "missing": 1, "torn": 0, "complaints": []}

    monkeypatch.setattr(judge, "reboot_cell", reboot)
    cells = [dict[str, Any](problems=[]) for _ in range(4)]
    for found, may_boot in zip(cells, (False, True, True, False), strict=True):
        run._reboot(SAFE_CELL, safe_record, found, may_boot)
    assert cells[0] == {"problems": []}
    assert cells[1]["reboot"]["missing"] == 1 and "1 missing" in cells[1]["problems"][0]
    assert cells[1] == cells[2] == cells[3]
    assert boots == ["one"]


def test_cells_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """A pattern that fits none is refused."""
    assert run.main(["--list", SAFE_CELL.name]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith(f"{SAFE_CELL.name}\tsafe\tcontrol: ")
    assert run.main(["--list", "nothing"]) == 1
    assert "no cell is called 'nothing'" in capsys.readouterr().err


@pytest.mark.parametrize(("absent", "code"), [({}, 0), ({"nbdkit": "nbdkit"}, 1)])
def test_the_doctor_says_what_is_missing_and_proves_nothing(
    absent: dict[str, str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run.needs, "missing", lambda engines: absent)
    monkeypatch.setattr(run, "_prove", lambda *_: pytest.fail("it proves"))
    assert run.main(["--doctor"]) == code
    assert ("apt-get install" in capsys.readouterr().err) == bool(absent)
