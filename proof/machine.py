# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records one setting: a lab machine over a volatile disk, made by harden-db, with writers at work until its power is cut.

What comes of it is a directory that a later judgement needs nothing else than: the image that the disk began with, the
disk's log, and `record.json`. The machine is gone by then.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from lab.archive import add_module_utils
from lab.errors import LabError
from lab.hardware import BootDisk
from lab.kinds import pick
from lab.layout import Layout
from lab.machine import Machine
from lab.paths import Lab
from lab.progress import say
from lab.recipe import RELEASES
from proof import accounting, log
from proof.cells import (
    COMMITS,
    DEFAULTS,
    DISPOSABLE,
    NBD,
    NVME,
    PLANTS,
    REWRITE,
    UNSAFE_WORKLOADS,
    Cell,
    Setting,
)
from proof.checks import SBIN
from proof.disk import ROOT, VolatileDisk
from proof.engine import Rows, rows_of
from proof.engines import ENGINES
from proof.errors import ProofError
from proof.writer import PATTERNS, Job

SERIAL, ACK_SERIAL = "PROOF0001", "PROOFACK"
MOUNT = "/srv/proof"
#: XFS takes no less than 300 MiB; holes cost nothing.
SIZE = 320 << 20
#: Seconds that a flush takes: enough that writes of other clients gather in the cache meanwhile.
FLUSH = 0.005
CLIENTS, RUN_COMMITS, ENGINE_COMMITS = 6, 50, 70
#: Of the run with one client: for the self-test of the device, the accounting, and the trials of the rig.
ALONE, ALONE_COMMITS, ALONE_SEED = 1, 100, 0
#: Bytes of a boot's file.
FILE_SIZE = 4000
LIMIT = 1800.0
RECORD = "record.json"
NOT_TRACED = "not traced"
_WRITER = ("python3", "/root/writer.py")
#: Runs what follows the disk's name, between two readings of the kernel's counters, and traces the block layer meanwhile
#: if the kernel can.
_COUNTED = f"""
disk=$1
shift
trace=/sys/kernel/tracing
[ -e $trace/tracing_on ] || mount -t tracefs tracefs $trace 2> /dev/null || trace=
if [ "$trace" ]; then
    echo 0 > $trace/tracing_on
    echo 16384 > $trace/buffer_size_kb
    echo > $trace/trace
    echo 1 > $trace/events/block/block_rq_issue/enable
    echo 1 > $trace/tracing_on
fi
cat "/sys/block/$disk/stat"
"$@"
cat "/sys/block/$disk/stat"
[ ! "$trace" ] || echo 0 > $trace/tracing_on
cat "/sys/block/$disk/dev"
[ "$trace" ] || {{ echo "{NOT_TRACED}"; exit 0; }}
grep block_rq_issue: $trace/trace || true
"""
VERDICTS = {DISPOSABLE: ("accepted_loss",)}
KEPT = ("durable", "attested")

#: What each device hangs on, and whether it has FUA. The guest's NBD client needs none.
DISKS = {
    "virtio": ("virtio", False),
    "scsi": ("scsi", False),
    "scsi-fua": ("scsi", True),
    "sata": ("sata", False),
    NVME: ("nvme", False),
}
#: Buses that only QEMU has.
EMULATED = ("sata", "nvme")


@dataclass(frozen=True)
class Segment:
    """One run of the writer, as sequences of the log: its own events, and where cuts are made; usually the same.

    `trace` is empty if the guest's kernel cannot be traced.
    """

    workload: str
    job: Job
    begin: int
    end: int
    look_begin: int
    look_end: int
    kernel: dict[str, int] = field(default_factory=dict)
    trace: dict[str, int] = field(default_factory=dict)
    result: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, raw: dict[str, Any]) -> Segment:
        """Return it from JSON."""
        return cls(**{**raw, "job": Job(**raw["job"])})


def boot_disks(device: str, disk: VolatileDisk) -> tuple[BootDisk, ...]:
    """Return the disk, as that device, and the disk of acknowledgements. The guest's NBD client gets both through ssh."""
    if device == NBD:
        return ()
    bus, fua = DISKS[device]
    return disk.boot_disk(SERIAL, bus, fua), disk.ack_disk(ACK_SERIAL)


def make_file_system(path: Path, file_system: str) -> None:
    """Make a sparse image with an empty file system.

    ext4 has the blocks of a large disk, which it would not have on so small a one, and inodes for the few files that there
    are: a check that looks at 80 times as many takes three times as long.
    """
    path.touch()
    with path.open("r+b") as file:
        file.truncate(SIZE)
    options = (
        [
            "-q",
            "-F",
            "-b",
            "4096",
            "-N",
            "1024",
            "-J",
            "size=8",
            "-E",
            "lazy_itable_init=0,lazy_journal_init=0",
        ]
        if file_system == "ext4"
        else ["-q", "-f"]
    )
    argv = [f"mkfs.{file_system}", *options, str(path)]
    try:
        done = subprocess.run(
            ["env", f"PATH={SBIN}:/usr/bin:/bin", *argv], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise ProofError(f"cannot make {path}: {error}") from error
    if done.returncode:
        raise ProofError(f"{argv[0]} makes no file system in {path}: {done.stderr.strip()}")


def jobs(workload: str, seeds: Sequence[int], device: str, ack: str, engine: str = "") -> list[Job]:
    """Return what is written in one cell: alone first, then all clients once for each seed.

    With a real engine only all clients, by its own. A file that grows needs a directory of its own for each run. The others
    lie once; a run is told from the one before it by its seed, and blocks that have been written already are what an
    engine's log is made of.
    """
    found = []
    if engine:
        # noise too: of a server that never syncs nothing reaches the disk by itself for a long time
        job = Job(f"{MOUNT}/noise", engine, CLIENTS, ENGINE_COMMITS, ack=ack, device=device, noise=1)
        socket = ENGINES[engine].socket
        return [replace(job, seed=seed, seconds=LIMIT / 2, socket=socket) for seed in seeds]
    for clients, commits, seed in (
        (ALONE, ALONE_COMMITS, ALONE_SEED),
        *((CLIENTS, RUN_COMMITS, s) for s in seeds),
    ):
        pattern = PATTERNS[workload]
        own = workload if pattern.lies_in_place else f"{workload}-{clients}-{seed}"
        found.append(
            Job(
                f"{MOUNT}/{own}",
                workload,
                clients,
                commits,
                seed=seed,
                ack=ack,
                device=device,
                noise=1,
                seconds=LIMIT / 2,
                # Of a file its last sector is half full.
                size=FILE_SIZE if pattern.replaces else Job.size,
            )
        )
    return found


def inventory(name: str, profile: str, days: int = 7) -> dict[str, Any]:
    """Return what harden-db is told of the machine: its profile, the mount, and what the lab vouches for.

    The disk honours flushes: this rig's own disk does, and shows it. That its cache survives a power cut, which `protected`
    asks for, is said and not true: what that profile promises has to hold without.
    """
    targets = {"host_honours_flush": ["host"]}
    if profile == "protected":
        ids = (SERIAL, f"QEMU_HARDDISK_{SERIAL}", f"0QEMU_QEMU_HARDDISK_{SERIAL}")
        targets["power_loss_protection"] = [f"serial:{identity}" for identity in ids]
    attestations = [
        {
            "claim": claim,
            "target": target,
            "by": "the proof's rig",
            "reason": "a machine of the lab, thrown away after the test",
            "expires": (date.today() + timedelta(days)).isoformat(),
        }
        for claim, where in targets.items()
        for target in where
    ]
    words: dict[str, Any] = {
        "durable_profile": profile,
        "durable_mounts": [MOUNT],
        "durable_attestations": attestations,
    }
    if profile == DISPOSABLE:
        words["durable_accept_data_loss"] = True
    return {"all": {"hosts": {name: words}}}


class Rig:
    """The machine of one setting, up."""

    def __init__(self, setting: Setting, directory: Path, disk: VolatileDisk, machine: Machine) -> None:
        """Take what `booted` made."""
        self.setting = setting
        self.directory = directory
        self.disk = disk
        self.machine = machine
        self.name = ""
        self.ack = ""
        self.kind = machine.record().hardware.kind

    @property
    def can_trace(self) -> bool:
        """Whether the guest's kernel can be traced: that of User Mode Linux has no tracefs."""
        return self.kind == "qemu"

    def shell(self, step: str, script: str, *arguments: str, limit: float = 300.0) -> str:
        """Run a script for sh in the guest; ProofError says which step failed, and how."""
        try:
            done = self.machine.run(["sh", "-euc", script, "proof", *arguments], check=False, timeout=limit)
        except LabError as error:
            raise ProofError(f"{self.setting.name}: {step}: {error}") from None
        if done.returncode:
            raise ProofError(
                f"{self.setting.name}: {step}: ended with {done.returncode}: {(done.stdout + done.stderr).strip()[-1500:]}"
            )
        return done.stdout

    def find_disks(self) -> None:
        """Learn what the kernel calls the disks."""
        if self.setting.device == NBD:
            self.name, self.ack = "nbd0", "/dev/nbd1"
        else:
            self.name, self.ack = self._by_serial(SERIAL), "/dev/" + self._by_serial(ACK_SERIAL)

    def mount(self) -> None:
        """Mount the file system, from fstab as any administrator would have it."""
        script = """
mkdir -p "$2"
echo "UUID=$(blkid -p -s UUID -o value "/dev/$1") $2 $3 defaults 0 0" >> /etc/fstab
systemctl daemon-reload
mount "$2"
mountpoint -q "$2"
"""
        self.shell("mount", script, self.name, MOUNT, self.setting.file_system)

    def harden(self) -> dict[str, Any]:
        """Let harden-db make the setting; return its report. ProofError unless the verdict is what the profile promises."""
        if self.setting.profile == DEFAULTS:
            return {"verdict": "not made by harden-db: it has no rule for this device"}
        found = self._harden_once()
        if self.setting.profile == DISPOSABLE and found["verdict"] == "pending":
            # how ext4 treats data is decided when it is mounted; nothing uses it yet
            self.shell("mount anew", 'umount "$1"; mount "$1"', MOUNT)
            found = self._harden_once()
        wanted = VERDICTS.get(self.setting.profile, KEPT)
        if found["verdict"] not in wanted:
            raise ProofError(
                f"{self.setting.name}: harden-db's verdict is {found['verdict']}, wanted {' or '.join(wanted)}: "
                f"{'; '.join(found['why'])} ({self.directory}/harden/output.txt)"
            )
        return {key: found[key] for key in ("profile", "verdict", "was", "why", "changes", "requirements")}

    def _harden_once(self) -> dict[str, Any]:
        """Run harden-db and return its report on this host."""
        where = self.directory / "harden"
        where.mkdir(exist_ok=True)
        # JSON is YAML
        (where / "profile.yml").write_text(json.dumps(inventory(self.machine.name, self.setting.profile)))
        report = where / "durable-report" / f"{self.machine.name}.json"
        report.unlink(missing_ok=True)
        program = Path(sys.executable).with_name("ansible-playbook")
        if not program.exists():
            raise ProofError(f"{program} is missing: run `make prove`, or a Python of .venv/run")
        command = [str(program), "-i", str(self.machine.inventory), "-i", str(where / "profile.yml")]
        with (where / "output.txt").open("a") as output:
            done = subprocess.run(
                [*command, str(ROOT / "playbooks/harden-db.yml")],
                cwd=where,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if not report.exists():
            raise ProofError(
                f"{self.setting.name}: harden-db ended with {done.returncode} and no report: {where}/output.txt"
            )
        found: dict[str, Any] = json.loads(report.read_text())
        return found

    def seen(self) -> dict[str, str]:
        """Return what the guest says of mount and disk, as it is now."""
        script = """
cat /proc/sys/kernel/osrelease
findmnt --noheadings --output OPTIONS "$2"
cat "/sys/block/$1/queue/write_cache"
cat "/sys/block/$1/queue/fua" 2> /dev/null || echo unknown
cat "/sys/block/$1/cache_type" 2> /dev/null || cat "/sys/block/$1"/device/scsi_disk/*/cache_type 2> /dev/null || echo none
"""
        words = self.shell("look at the setting", script, self.name, MOUNT).splitlines()
        return dict(zip(("kernel", "mount", "write_cache", "fua", "cache_type"), words, strict=False))

    def plant(self, step: str, script: str) -> None:
        """Do what a control wants."""
        if script:
            self.shell(
                f"plant {self.setting.plant or 'nothing'} ({step})",
                script,
                self.name,
                self.setting.device,
                MOUNT,
            )

    def slow_journal(self, factor: float) -> None:
        """Let ext4 commit its journal by itself that much more seldom; ProofError unless the kernel says that it does."""
        script = """
mount -o "remount,commit=$3" "$2"
grep -qx "commit=$3" "/proc/fs/ext4/$1/options"
"""
        seconds = str(round(accounting.JOURNAL_INTERVAL * factor))
        self.shell("let the journal commit more seldom", script, self.name, MOUNT, seconds)

    def prepare(self, wanted: Sequence[Job]) -> None:
        """Make the files of all runs, while the setting is still one that flushes."""
        for name in ("writer.py", "engine_writer.py"):
            self.machine.put(ROOT / "proof" / name, f"/root/{name}")
        if any(PATTERNS[job.pattern].replaces for job in wanted if not self.setting.engine):
            self._put_collection()
        if self.setting.engine:
            # its own files are there; the noise is not
            self._prepare(replace(wanted[0], pattern="direct", commits=1))
            return
        largest = dict[str, Job]()
        for job in sorted(wanted, key=lambda job: job.clients * job.commits):
            largest[job.directory] = job
        for job in largest.values():
            self._prepare(job)

    def write(self, job: Job) -> Segment:
        """Let the writer run, and count what the kernel sent meanwhile.

        The journal is emptied before: each cut's recovery then replays this run, and not all that were before it.
        """
        self.shell("empty the journal", 'fsfreeze --freeze "$1"; fsfreeze --unfreeze "$1"', MOUNT)
        begin = log.count(self.disk.directory)
        # One call: each costs an emulated machine a good part of a second.
        said = self.shell(
            f"writer run {job.pattern}, {job.clients} clients, seed {job.seed}",
            _COUNTED,
            self.name,
            *self.run_of(job),
            limit=LIMIT,
        )
        before, words, after, device, trace = said.split("\n", 4)
        end = log.count(self.disk.directory)
        result = json.loads(words)
        del result["job"]
        kernel = accounting.of_stat(before, after)
        if (trace.strip() == NOT_TRACED) == self.can_trace:
            raise ProofError(
                f"{self.setting.name}: a machine of the kind {self.kind} was {'not ' * self.can_trace}traced"
            )
        traced = asdict(accounting.of_trace(trace, device)) if self.can_trace else {}
        if not sum(result["commits"]):
            raise ProofError(f"{self.setting.name}: {job.pattern}: nothing was committed")
        return Segment(
            COMMITS if self.setting.engine else job.pattern,
            job,
            begin,
            end,
            begin,
            end,
            asdict(kernel),
            traced,
            {**result, "job": None},
        )

    def read(self, path: str) -> bytes | None:
        """Return the content of a file below the mount point, None for one that is gone."""
        text = self.shell(
            f"read {path}", '[ ! -e "$1" ] || { echo there; base64 "$1"; }', f"{MOUNT}/{path.lstrip('/')}"
        )
        there, _, content = text.partition("\n")
        return base64.b64decode(content) if there else None

    def make_engine(self) -> None:
        """Start the engine's server on the mount point, with a table; nothing if the setting has no engine."""
        if self.setting.engine:
            say(f"{self.setting.name}: a server of {self.setting.engine}")
            engine = ENGINES[self.setting.engine]
            self.shell(f"start {engine.name}", engine.adopt, MOUNT, limit=LIMIT)
            self.shell(f"prepare {engine.name}", engine.prepare, MOUNT, limit=LIMIT)

    def versions(self) -> dict[str, str]:
        """Return the versions on which the evidence stands, with those of the engine's server and of what serves the disk."""
        found = versions_of(self.machine)
        if self.setting.device == NBD:
            found |= {"nbdkit": _first_line(["nbdkit", "--version"])}
        if self.setting.engine:
            engine = ENGINES[self.setting.engine]
            found |= {engine.name: self.shell(f"version of {engine.name}", engine.version).strip()}
        return found

    def rows(self, seed: int) -> Rows:
        """Return the commits of a seed that the engine's server has, once it has recovered."""
        engine = ENGINES[self.setting.engine]
        self.shell(f"recovery by {engine.name}", engine.adopt, MOUNT, limit=LIMIT)
        return rows_of(self.shell("ask for the commits", engine.ask, str(seed)), ",")

    def _put_collection(self) -> None:
        """Put what runs on hosts beside the writer, as the package `durable`."""
        with tempfile.TemporaryDirectory() as scratch:
            archive = Path(scratch, "durable.tar")
            with tarfile.open(archive, "w") as tar:
                add_module_utils(tar, "durable")
            self.machine.put(archive, "/root/durable.tar")
        self.shell("unpack the collection", "tar -C /root -xf /root/durable.tar")

    def _prepare(self, job: Job) -> None:
        self.shell(f"writer prepare {job.pattern}", 'exec "$@"', *_WRITER, "prepare", json.dumps(asdict(job)))

    def run_of(self, job: Job) -> list[str]:
        """Return the command that lets a writer run a job in the guest."""
        words = json.dumps(asdict(job))
        if self.setting.engine:
            client = ENGINES[self.setting.engine].client
            return ["python3", "/root/engine_writer.py", words, json.dumps(asdict(client))]
        return [*_WRITER, "run", words]

    def _by_serial(self, serial: str) -> str:
        script = 'udevadm settle; lsblk --nodeps --noheadings --raw --output SERIAL,NAME | sed -n "s/^$1 //p"'
        name = self.shell("find the disks", script, serial).strip()
        if not name:
            raise ProofError(f"{self.setting.name}: the guest sees no disk with the serial {serial}")
        return name


def record(setting: Setting, wanted: Sequence[Cell], seeds: Sequence[int], directory: Path) -> None:
    """Record all cells of one setting into a directory, which is replaced. ProofError or LabError says what failed."""

    def todo(rig: Rig) -> list[Job]:
        # What loses by its own pattern comes last: it leaves dirty pages behind.
        last = (*UNSAFE_WORKLOADS, REWRITE)
        order = sorted((cell.workload for cell in wanted), key=lambda name: (name in last, name))
        return [
            job for name in order for job in jobs(name, seeds, f"/dev/{rig.name}", rig.ack, setting.engine)
        ]

    record_jobs(setting, todo, directory)


def record_jobs(
    setting: Setting,
    todo_of: Callable[[Rig], list[Job]],
    directory: Path,
    slow: float = 0.0,
) -> None:
    """Record runs of the writer in one setting. With `slow` the disk takes the time of mechanics.py so many times over.

    The file system's own clock goes as slowly then: it commits its journal every 5 seconds of that disk's time.
    """
    make_directory(directory)
    image = directory / "empty.img"
    make_file_system(image, setting.file_system)
    plant = PLANTS[setting.plant]
    flush = 0.0 if slow else FLUSH
    disk = VolatileDisk.made(directory / "disk", image, flush, slow)
    with booted(setting, directory, disk) as rig:
        rig.mount()
        rig.make_engine()
        say(f"{setting.name}: harden-db")
        report = rig.harden()
        if slow:
            rig.slow_journal(slow)
        todo = todo_of(rig)
        rig.prepare([*todo, _afterwards(todo[-1])])
        rig.plant("first part", ENGINES[setting.engine].sync_off if plant.sync_off else plant.before)
        seen = rig.seen()
        segments = list[Segment]()
        if plant.has_second_part:
            segments = _before_and_after(rig, todo[1:])
        else:
            for number, job in enumerate(todo, 1):
                say(
                    f"{setting.name}: {job.pattern}, {job.clients} clients, seed {job.seed} ({number} of {len(todo)})"
                )
                segments.append(rig.write(job))
        after = rig.seen()
        versions = rig.versions()
    found = log.read(disk.directory)
    _must_be_whole(setting, found, segments)
    text = {
        "setting": asdict(setting),
        "plant": plant.what,
        "hardened": report,
        "seen": seen,
        "seen_after": after,
        "versions": versions,
        "flush_seconds": flush,
        "slow": slow,
        "events": len(found.events),
        "torn": found.torn,
        "segments": [asdict(segment) for segment in segments],
    }
    image.unlink()
    (disk.directory / "newest.img").unlink()
    # last: a directory with this file is whole
    (directory / RECORD).write_text(json.dumps(text, indent=1))


@dataclass(frozen=True)
class Found:
    """What a machine finds that is booted after a power cut: files (None: gone), and what its kernel complains of.

    Of a real engine `rows` are the commits, as (client, number), that its server has.
    """

    files: dict[str, bytes | None]
    complaints: list[str]
    rows: Rows = field(default_factory=set)


def reboot(setting: Setting, image: Path, paths: Sequence[str], seed: int, directory: Path) -> Found:
    """Boot a fresh machine over the image that a cut left, mount it as any boot does, and read files by their paths.

    A real engine's server is started there, recovers, and is asked for the commits of a seed.
    """
    make_directory(directory)
    disk = VolatileDisk.made(directory / "disk", image)
    with booted(setting, directory, disk) as rig:
        rig.mount()
        files = {path: rig.read(path) for path in paths}
        rows = rig.rows(seed) if setting.engine else set()
        script = 'dmesg | grep -iE "(ext4-fs|xfs|jbd2).*(error|corrupt|abort|shut)" || true'
        complaints = rig.shell("what the kernel complains of", script).splitlines()
    for path in (disk.base, disk.directory / "newest.img"):
        path.unlink()
    return Found(files, complaints, rows)


def _before_and_after(rig: Rig, todo: Sequence[Job]) -> list[Segment]:
    """Commit, change the setting, go on or idle; cuts are looked at from the change on.

    The first seed commits. After harden-db direct writes go on, so that something is volatile; they flush nothing.
    """
    plant = PLANTS[rig.setting.plant]
    say(f"{rig.setting.name}: commits before the change")
    exposed = rig.write(todo[0])
    rig.plant("second part", plant.after)
    if plant.hardens:
        say(f"{rig.setting.name}: harden-db, over commits that were exposed")
        rig.harden()
    changed = log.count(rig.disk.directory)
    if plant.hardens:
        rig.write(_afterwards(todo[0]))
    values = asdict(exposed) | {
        "job": exposed.job,
        "look_begin": changed,
        "look_end": log.count(rig.disk.directory),
    }
    return [Segment(**values)]


def _afterwards(job: Job) -> Job:
    return replace(job, directory=f"{MOUNT}/afterwards", pattern="direct")


def layout_of(setting: Setting) -> Layout:
    """Return the machine of a setting, which has no disks of its own but the root."""
    needs = ("exact_hardware",) if setting.device in EMULATED else ()
    if setting.engine:
        return Layout(packages=ENGINES[setting.engine].packages, memory=1024, needs=needs)
    return Layout(needs=needs)


def kind_of(setting: Setting) -> str:
    """Return the kind of machine that records a setting here and now; $DBHOST_LAB_KIND asks for one."""
    return pick(Lab.default(), layout_of(setting), _release()).name


def _release() -> str:
    """Return the Debian release of the machines; another brings an emulated machine another kernel."""
    return os.environ.get("DBHOST_PROOF_RELEASE", RELEASES[0])


@contextmanager
def booted(setting: Setting, directory: Path, disk: VolatileDisk) -> Iterator[Rig]:
    """Boot a machine over the disk; at the end its power is cut, then the disk's, and the machine is deleted."""
    # a setting may be at work for its price and for its proof at once
    machine = Machine(f"{'price' if disk.slow else 'proof'}-{setting.directory}")
    with ExitStack() as stack:
        stack.callback(machine.down)
        machine.down()
        say(f"{setting.name}: a fresh machine")
        machine.up(layout_of(setting), _release())
        machine.power_off()
        # the guest's NBD client is served by nbdkit, whatever the machine
        stack.enter_context(disk if setting.device == NBD else disk.served_for(machine))
        say(f"{setting.name}: boot over the volatile disk")
        machine.boot(*boot_disks(setting.device, disk))
        rig = Rig(setting, directory, disk, machine)
        if setting.device == NBD:
            stack.enter_context(_nbd_over_ssh(rig))
        rig.find_disks()
        yield rig
        machine.cut()


@contextmanager
def _nbd_over_ssh(rig: Rig) -> Iterator[None]:
    """Give the guest's kernel both disks by its own NBD client: flush and FUA arrive as the kernel sends them."""
    remote = "/run/proof-nbd"
    forward = f"{remote}:{rig.disk.socket}"
    options = ["-F", str(rig.machine.ssh_config), "-o", "ControlPath=none", "-o", "ExitOnForwardFailure=yes"]
    argv = ["ssh", *options, "-N", "-R", forward, rig.machine.name]
    with (rig.directory / "nbd-ssh.txt").open("w") as errors:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
    try:
        script = """
for second in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do [ -S "$1" ] && break; sleep 1; done
[ -S "$1" ] || { echo "ssh does not bring the disk's socket to $1"; exit 1; }
modprobe nbd nbds_max=2
nbd-client -unix "$1" /dev/nbd0 -name disk -block-size 512
nbd-client -unix "$1" /dev/nbd1 -name ack -block-size 512
udevadm settle
[ "$(cat /sys/block/nbd0/queue/fua)" = 1 ] || { echo "the kernel's NBD client does not offer FUA here"; exit 1; }
"""
        rig.shell("the guest's NBD client", script, remote)
        yield
    finally:
        process.kill()
        process.wait()


def versions_of(machine: Machine) -> dict[str, str]:
    """Return the kind of a machine, and the versions on which the evidence stands."""
    kind = machine.record().hardware.kind
    commands = {
        "e2fsck": ["/usr/sbin/e2fsck", "-V"],
        "commit": ["git", "-C", str(ROOT), "describe", "--always", "--dirty"],
        "host": ["uname", "-sr"],
    }
    if kind == "qemu":
        commands |= {"qemu": ["qemu-system-x86_64", "--version"], "nbdkit": ["nbdkit", "--version"]}
    return {
        "guest": machine.run(["uname", "-srvm"]).stdout.strip(),
        "kind": kind,
        "python": sys.version.split()[0],
        **{name: _first_line(argv) for name, argv in commands.items()},
    }


def _first_line(argv: list[str]) -> str:
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    except OSError:
        return "unknown"
    return (done.stdout.strip().splitlines() or ["unknown"])[0]


def make_directory(directory: Path) -> None:
    """Make it anew: only what an earlier record left there is deleted."""
    if directory.exists():
        aside = directory.with_name(f"{directory.name}.old-{time.time_ns()}")
        directory.rename(aside)
        subprocess.run(["rm", "-rf", "--", str(aside)], check=True)
    directory.mkdir(parents=True)


def _must_be_whole(setting: Setting, found: log.Log, segments: Sequence[Segment]) -> None:
    """Every segment lies inside the log, and the log has as many acknowledgements as the writer made."""
    for segment in segments:
        acks = sum(e.kind is log.Kind.ACK for e in found.events[segment.begin : segment.end])
        made = sum(segment.result["commits"])
        if acks != made:
            raise ProofError(
                f"{setting.name}: {segment.workload}: the writer made {made} commits, the log has {acks} acknowledgements"
            )
