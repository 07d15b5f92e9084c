# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Recording, as far as it goes without a machine: arguments, jobs, inventory; and a rig whose guest is this test."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab.qemu.kind import Qemu
from lab.uml.kind import Uml
from proof import log, machine
from proof.cells import COMMITS, DEVICES, LOSES, NBD, NVME, SAFE_WORKLOADS, Cell, Setting
from proof.disk import VolatileDisk
from proof.engine import Engine
from proof.engines import ENGINES
from proof.errors import ProofError
from proof.judge import Record
from proof.log import Kind
from proof.machine import ACK_SERIAL, SERIAL, Rig, Segment
from proof.writer import PATTERNS, Job, acknowledgement

SETTING = Setting("flush", "virtio", "ext4")
ext4_tool = pytest.mark.skipif(
    not shutil.which("mkfs.ext4", path="/usr/sbin:/sbin:/usr/bin"), reason="needs mkfs.ext4"
)


@pytest.mark.parametrize("device", [*DEVICES, NVME])
def test_the_guest_sees_the_disk_and_that_of_acknowledgements(device: str, tmp_path: Path) -> None:
    """Each with its serial, both of one directory: so they share a log, behind either kind of machine."""
    data, ack = machine.boot_disks(device, VolatileDisk(tmp_path, flush=0.3))
    assert (data.serial, ack.serial) == (SERIAL, ACK_SERIAL)
    assert (data.bus, data.fua) == (device.removesuffix("-fua"), device == "scsi-fua")
    assert (ack.bus, ack.fua) == ("virtio", False)
    assert data.store and ack.store
    assert (data.store["factory"], ack.store["factory"]) == (
        "proof.vhost_store:disk",
        "proof.vhost_store:ack",
    )
    assert data.store["arguments"] == {"directory": str(tmp_path), "flush": 0.3, "slow": 0.0}
    assert ack.store["arguments"] == {"directory": str(tmp_path)}
    # nbdkit is not running: QEMU is told no address, and refuses
    assert data.nbd is None and ack.nbd is None


def test_the_guests_own_nbd_client_needs_no_device(tmp_path: Path) -> None:
    """Both disks come through ssh."""
    assert machine.boot_disks(NBD, VolatileDisk(tmp_path)) == ()


@pytest.mark.parametrize(
    ("device", "emulated"),
    [("virtio", False), ("scsi", False), ("scsi-fua", False), (NBD, False), ("sata", True), (NVME, True)],
)
def test_only_what_qemu_alone_has_is_emulated(device: str, emulated: bool) -> None:
    """The layout says what the device needs; which kind has it is the lab's business."""
    layout = machine.layout_of(Setting("flush", device, "ext4"))
    assert Uml().can_have(layout) != emulated
    assert Qemu().can_have(layout)


def test_a_disk_is_served_by_nbdkit_to_qemu_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk server of User Mode Linux opens it by itself."""
    began = list[str]()

    def enter(disk: VolatileDisk) -> VolatileDisk:
        began.append("nbdkit")
        return disk

    monkeypatch.setattr(VolatileDisk, "__enter__", enter)
    for kind, wanted in (("uml", []), ("qemu", ["nbdkit"])):
        guest = Guest(tmp_path / kind, 1, kind)
        with VolatileDisk(tmp_path).served_for(guest):  # type: ignore[arg-type]
            assert began == wanted


@pytest.mark.parametrize("workload", PATTERNS)
def test_each_workload_is_written_alone_and_then_by_all(workload: str) -> None:
    """With noise, so that something is volatile; files that grow begin anew each time."""
    jobs = machine.jobs(workload, [1, 2], "/dev/vdb", "/dev/vdc")
    assert [(job.clients, job.seed) for job in jobs] == [(1, 0), (machine.CLIENTS, 1), (machine.CLIENTS, 2)]
    assert all(job.noise and job.ack == "/dev/vdc" and job.device == "/dev/vdb" for job in jobs)
    assert len({job.directory for job in jobs}) == (1 if PATTERNS[workload].lies_in_place else 3)


@pytest.mark.parametrize("engine", ENGINES.values(), ids=list(ENGINES))
def test_a_real_engine_is_written_to_by_its_own_client(engine: Engine, tmp_path: Path) -> None:
    """By all at once, with noise that is prepared on its file system; its machine has the server."""
    jobs = machine.jobs(COMMITS, [1, 2], "/dev/vdb", "/dev/vdc", engine.name)
    assert [(job.pattern, job.clients, job.seed, job.socket) for job in jobs] == [
        (engine.name, machine.CLIENTS, 1, engine.socket),
        (engine.name, machine.CLIENTS, 2, engine.socket),
    ]
    made, guest = rig(tmp_path)
    made.setting, made.name = Setting("flush", "virtio", "ext4", engine=engine.name), "vdb"
    put = list[str]()
    guest.put = lambda local, remote: put.append(remote)  # type: ignore[method-assign]
    made.prepare(jobs)
    assert put == ["/root/writer.py", "/root/engine_writer.py"]
    (prepared,) = guest.scripts
    job = json.loads(prepared[prepared.index("{") :])
    assert (job["pattern"], job["directory"], job["noise"]) == ("direct", "/srv/proof/noise", 1)
    assert machine.layout_of(made.setting).packages == engine.packages
    made.write(jobs[0])
    (written,) = (script for script in guest.scripts if "engine_writer.py" in script)
    words = written.split("engine_writer.py ", 1)[1]
    told, end = json.JSONDecoder().raw_decode(words)
    assert Job(**told) == jobs[0]
    assert json.loads(words[end:])["argv"] == list(engine.client.argv)


def test_what_harden_db_is_told() -> None:
    """The profile, the mount, and words that have not expired; only `protected` has its disk vouched for."""
    for profile in ("strict", "flush", "protected", "disposable"):
        words = machine.inventory("proof", profile)["all"]["hosts"]["proof"]
        assert words["durable_profile"] == profile
        assert words["durable_mounts"] == [machine.MOUNT]
        claims = {row["claim"] for row in words["durable_attestations"]}
        assert ("power_loss_protection" in claims) == (profile == "protected")
        assert all(row["expires"] > date.today().isoformat() for row in words["durable_attestations"])
        assert words.get("durable_accept_data_loss", False) == (profile == "disposable")


@pytest.mark.parametrize("file_system", ["ext4", "xfs"])
def test_a_file_system_is_made(file_system: str, tmp_path: Path) -> None:
    """A sparse one, of the size that XFS wants."""
    if not shutil.which(f"mkfs.{file_system}", path="/usr/sbin:/sbin:/usr/bin"):
        pytest.skip(f"needs mkfs.{file_system}")
    image = tmp_path / "image"
    machine.make_file_system(image, file_system)
    assert image.stat().st_size == machine.SIZE
    assert image.stat().st_blocks * 512 < machine.SIZE / 2


def test_a_file_system_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """With the tool's own words."""
    with pytest.raises(ProofError, match="no file system"):
        machine.make_file_system(tmp_path / "image", "nonsense")


def test_segments_are_read_as_they_were_written() -> None:
    """Job and all."""
    segment = Segment("dsync", Job("/d", "dsync"), 1, 2, 3, 4, {"flushes": 1}, {}, {"commits": [1]})
    assert Segment.read(json.loads(json.dumps(asdict(segment)))) == segment


class Guest:
    """A machine that answers what the test wants, and commits when the writer runs."""

    name = "proof"

    def __init__(self, directory: Path, commits: int, kind: str = "qemu") -> None:
        """Begin the log that its commits go to."""
        directory.mkdir(exist_ok=True)
        self.log = log.Writer(directory, 1 << 20)
        self.kind = kind
        self.can_trace = kind == "qemu"
        self.commits = commits
        self.scripts = list[str]()
        self.flushes = 0

    def run(self, argv: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        """Answer by what the script is about."""
        script = " ".join(argv[2:] or argv)
        self.scripts.append(script)
        return subprocess.CompletedProcess(argv, *self._answer(script), "sh: no")

    def _answer(self, script: str) -> tuple[int, str]:
        if "writer.py run" in script or "engine_writer.py" in script:
            for number in range(self.commits):
                self.log.append(Kind.WRITE, 0, data=bytes(512))
                self.log.append(Kind.FLUSH)
                self.log.append(Kind.ACK, 0, data=acknowledgement(0, number))
            before, self.flushes = self._stat(), self.flushes + self.commits
            told = json.dumps({"job": {}, "commits": [self.commits], "commit_seconds": {"p50": 0.1}})
            trace = " x: block_rq_issue: 254,16 FF 0 () 0 + 0 [x]" if self.can_trace else machine.NOT_TRACED
            return 0, "\n".join([before, told, self._stat(), "254:16", trace, ""])
        if "lsblk" in script:
            return 0, "vdb\n"
        if named := [name for name, engine in ENGINES.items() if engine.version in script]:
            return 0, f"{named[0]} 1.2.3\n"
        return (1, "said") if "fails" in script else (0, "")

    def record(self) -> Any:
        """Tell its kind."""
        return SimpleNamespace(hardware=SimpleNamespace(kind=self.kind))

    def _stat(self) -> str:
        return f"0 0 0 0 {self.flushes} 0 0 0 0 0 0 0 0 0 0 {self.flushes} 0"

    def put(self, local: Path, remote: str) -> None:
        """Take a file."""


def rig(tmp_path: Path, commits: int = 3, kind: str = "qemu") -> tuple[Rig, Guest]:
    """Return a rig over such a guest."""
    guest = Guest(tmp_path, commits, kind)
    return Rig(SETTING, tmp_path, VolatileDisk(tmp_path), guest), guest  # type: ignore[arg-type]


def test_a_run_is_counted_by_kernel_trace_and_log(tmp_path: Path) -> None:
    """And knows which part of the log is its own."""
    made, guest = rig(tmp_path)
    made.name = "vdb"
    guest.log.append(Kind.NOTE, data=b"opened disk")
    first, second = (made.write(Job("/d", "dsync", clients=1, seed=seed)) for seed in (1, 2))
    assert (first.begin, first.end, second.begin, second.end) == (1, 10, 10, 19)
    assert first.kernel["flushes"] == second.kernel["flushes"] == 3
    assert first.trace["flushes"] == 1
    found = log.read(tmp_path)
    machine._must_be_whole(SETTING, found, [first, second])
    with pytest.raises(ProofError, match="the writer made 3 commits, the log has 2"):
        machine._must_be_whole(SETTING, found, [Segment(**{**vars(first), "end": 7})])


def test_a_kernel_that_cannot_be_traced_is_counted_without_a_trace(tmp_path: Path) -> None:
    """No trace, not one of zeros; and QEMU's kernels have to be traced."""
    made, guest = rig(tmp_path, kind="uml")
    made.name = "vdb"
    segment = made.write(Job("/d", "dsync", clients=1))
    assert (segment.kernel["flushes"], segment.trace) == (3, {})
    guest.can_trace = True
    with pytest.raises(ProofError, match="a machine of the kind uml was traced"):
        made.write(Job("/d", "dsync", clients=1))
    emulated, other = rig(tmp_path / "qemu")
    emulated.name = "vdb"
    other.can_trace = False
    with pytest.raises(ProofError, match="a machine of the kind qemu was not traced"):
        emulated.write(Job("/d", "dsync", clients=1))


def test_a_step_that_fails_says_which_and_how(tmp_path: Path) -> None:
    """Setting, step, exit code and words; and a writer that commits nothing."""
    made, _ = rig(tmp_path, commits=0)
    with pytest.raises(ProofError, match=r"flush/virtio/ext4: the step: ended with 1: saidsh: no"):
        made.shell("the step", "fails")
    made.name = "vdb"
    with pytest.raises(ProofError, match="dsync: nothing was committed"):
        made.write(Job("/d", "dsync"))


def test_a_profile_that_no_rule_makes_is_said_so(tmp_path: Path) -> None:
    """harden-db has none for NBD."""
    made, _ = rig(tmp_path)
    made.setting = Setting("defaults", NBD, "ext4")
    assert "not made by harden-db" in made.harden()["verdict"]


@pytest.mark.parametrize(("profile", "mounts"), [("disposable", 1), ("flush", 0)])
def test_what_takes_a_new_mount_gets_one_only_where_commits_are_given_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str, mounts: int
) -> None:
    """How ext4 treats data is decided then; a safe profile that waits for something is no safe setting."""
    made, guest = rig(tmp_path)
    made.setting = Setting(profile, "virtio", "ext4")
    words = dict.fromkeys(("profile", "was", "changes", "requirements"), "")
    reports = [{**words, "verdict": verdict, "why": ["it waits"]} for verdict in ("accepted_loss", "pending")]
    monkeypatch.setattr(Rig, "_harden_once", lambda _: reports.pop())
    if mounts:
        assert made.harden()["verdict"] == "accepted_loss"
    else:
        with pytest.raises(ProofError, match="verdict is pending, wanted durable or attested: it waits"):
            made.harden()
    assert len([script for script in guest.scripts if "umount" in script]) == mounts


def test_files_are_prepared_once_for_all_runs_in_a_directory(tmp_path: Path) -> None:
    """In the size that the largest needs."""
    made, guest = rig(tmp_path)
    made.prepare(
        [job for name in SAFE_WORKLOADS for job in machine.jobs(name, [1, 2], "/dev/vdb", "/dev/vdc")]
    )
    prepared = [script for script in guest.scripts if "writer.py prepare" in script]
    assert len(prepared) == len(SAFE_WORKLOADS) - 1 + 3
    assert all(f'"clients": {machine.CLIENTS}' in script for script in prepared if "append" not in script)


def test_a_file_is_read_from_the_guest(tmp_path: Path) -> None:
    """Its bytes, an empty one as such, and one that is gone as None; the script runs here."""
    made, guest = rig(tmp_path)

    def run(argv: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        path = argv[-1].replace(machine.MOUNT, str(tmp_path))
        return subprocess.run([*argv[:-1], path], capture_output=True, text=True, check=False)

    guest.run = run  # type: ignore[method-assign]
    (tmp_path / "full").write_bytes(bytes(range(256)) * 3)
    (tmp_path / "empty").touch()
    assert [made.read(name) for name in ("full", "/empty", "gone")] == [bytes(range(256)) * 3, b"", None]


def test_a_directory_is_made_anew(tmp_path: Path) -> None:
    """What an earlier record left there is gone."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a/old").touch()
    machine.make_directory(tmp_path / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert not list((tmp_path / "a").iterdir())


@pytest.fixture
def guests(monkeypatch: pytest.MonkeyPatch) -> list[Guest]:
    """Let no machine be booted; return the guests that stand in for them, as they come."""
    found = list[Guest]()

    @contextmanager
    def booted(setting: Setting, directory: Path, disk: VolatileDisk) -> Iterator[Rig]:
        found.append(Guest(disk.directory, 3))
        made = Rig(setting, directory, disk, found[-1])  # type: ignore[arg-type]
        made.find_disks()
        yield made

    def harden(made: Rig) -> dict[str, Any]:
        found[-1].scripts.append("harden-db")
        found[-1].log.append(Kind.FLUSH)
        return {"verdict": "attested"}

    monkeypatch.setattr(machine, "booted", booted)
    monkeypatch.setattr(Rig, "harden", harden)
    return found


def place(guest: Guest, words: str) -> int:
    """Return which of the guest's scripts is the first to hold these words."""
    return next(number for number, script in enumerate(guest.scripts) if words in script)


@ext4_tool
def test_a_setting_is_recorded_whole(guests: list[Guest], tmp_path: Path) -> None:
    """Mounted, hardened, files made, then what is planted, then the writers; unsafe patterns last."""
    setting = Setting("flush", "virtio", "ext4", "barrier0")
    cells = [Cell(setting, name, LOSES) for name in ("no_sync", "dsync")]
    machine.record(setting, cells, [1, 2], tmp_path / "r")
    found = Record.read(tmp_path / "r")
    (guest,) = guests
    steps = ["/etc/fstab", "harden-db", "writer.py prepare", "barrier=0", "writer.py run"]
    assert [place(guest, step) for step in steps] == sorted(place(guest, step) for step in steps)
    assert place(guest, '"pattern": "dsync"') < place(guest, '"pattern": "no_sync"')
    assert [(s.job.clients, s.job.seed) for s in found.segments("dsync")] == [
        (1, 0),
        (machine.CLIENTS, 1),
        (machine.CLIENTS, 2),
    ]
    segments = [*found.segments("dsync"), *found.segments("no_sync")]
    assert [one.end for one in segments[:-1]] == [one.begin for one in segments[1:]]
    assert found.raw["hardened"] == {"verdict": "attested"}
    assert found.setting == setting
    assert sorted(path.name for path in (tmp_path / "r/disk").iterdir()) == [
        "base.img",
        "disk.data",
        "disk.records",
    ]


@ext4_tool
@pytest.mark.parametrize(("plant", "step"), [("tightened", "barrier=1"), ("mended", "harden-db")])
def test_a_moment_is_recorded_with_cuts_behind_it(
    guests: list[Guest], tmp_path: Path, plant: str, step: str
) -> None:
    """Commits before it are looked for after it; after harden-db others are made, elsewhere, that flush nothing."""
    setting = Setting("flush", "virtio", "ext4", plant)
    machine.record(setting, [Cell(setting, "append_fsync", LOSES)], [1], tmp_path / "r")
    found = Record.read(tmp_path / "r")
    (segment,) = found.segments("append_fsync")
    scripts = guests[0].scripts
    last = (
        len(scripts) - 1 - next(number for number, script in enumerate(reversed(scripts)) if step in script)
    )
    assert place(guests[0], "barrier=0") < place(guests[0], "writer.py run") < last
    assert segment.look_begin >= segment.end
    run = found.run(segment)
    assert sum(event.kind is Kind.ACK for event in run.events) == 3
    later = [script for script in scripts[last:] if "writer.py run" in script]
    assert len(later) == (plant == "mended")
    assert all('"pattern": "direct"' in script and "afterwards" in script for script in later)
    assert (segment.look_end > segment.look_begin) == (plant == "mended")


@ext4_tool
def test_a_slow_disk_is_recorded_with_its_scale(guests: list[Guest], tmp_path: Path) -> None:
    """The journal is slowed once harden-db is done, and before barriers go: that remount reads fstab."""
    setting = Setting("strict", "virtio", "ext4", "barrier0")
    todo = [Job("/d", "osync", clients=1, commits=3, delay=0.01)]
    machine.record_jobs(setting, lambda rig: todo, tmp_path / "r", slow=10)
    found = Record.read(tmp_path / "r")
    assert (found.raw["slow"], found.raw["flush_seconds"]) == (10, 0.0)
    assert [segment.job for segment in found.segments("osync")] == todo
    steps = ["harden-db", "remount,commit=", "barrier=0", "writer.py run"]
    assert [place(guests[0], step) for step in steps] == sorted(place(guests[0], step) for step in steps)


def test_a_setting_may_be_recorded_for_proof_and_price_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By machines with names of their own."""
    names = list[str]()

    class Named:
        def __init__(self, name: str) -> None:
            names.append(name)
            raise ProofError("no machine here")

    monkeypatch.setattr(machine, "Machine", Named)
    for slow in (0.0, 10.0):
        with (
            pytest.raises(ProofError),
            machine.booted(SETTING, tmp_path, VolatileDisk(tmp_path, slow=slow)),
        ):
            pass
    assert names == ["proof-flush-virtio-ext4", "price-flush-virtio-ext4"]


@ext4_tool
@pytest.mark.parametrize(
    ("engine", "made", "off"),
    [
        ("postgresql", "pg_createcluster", "set fsync = off"),
        ("mariadb", "mariadb-install-db", "innodb_flush_log_at_trx_commit = 0"),
        ("firebird", "create database", "-write async"),
    ],
)
def test_a_real_engine_is_there_before_it_is_hardened(
    guests: list[Guest], tmp_path: Path, engine: str, made: str, off: str
) -> None:
    """For harden-db manages what it finds."""
    setting = Setting("flush", "virtio", "ext4", "sync-off", engine)
    machine.record(setting, [Cell(setting, COMMITS, LOSES)], [1], tmp_path / "r")
    steps = [made, "create table", "harden-db", off, "engine_writer.py"]
    assert [place(guests[0], step) for step in steps] == sorted(place(guests[0], step) for step in steps)
    found = Record.read(tmp_path / "r")
    assert len(found.segments(COMMITS)) == 1
    assert found.raw["versions"][engine] == f"{engine} 1.2.3"
