# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Power cuts while harden-db and release change what the next boot reads, on the disk of the root itself.

`record` boots a machine whose root lies on the volatile disk, brings it from one profile to the next, and releases it. A
watcher writes down each content that a file of the boot has meanwhile. `judged` cuts the power at the events of that log, lets
the kernel recover the root, and looks at each file: it has to be whole, one that the run began with or has written since. After
the run has ended it has to be the last one. The control writes fstab over as a plain program does.
"""

from __future__ import annotations

import base64
import json
import os
import random
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lab.hardware import BootDisk
from lab.layout import ROOT_SERIAL, Disk, Layout
from lab.machine import Machine
from lab.progress import say
from proof import checks, log, machine
from proof.boot_watcher import UNFINISHED
from proof.checks import scratch_directory
from proof.disk import NEWEST, ROOT, VolatileDisk
from proof.errors import ProofError
from proof.images import Image, copy_sparse
from proof.log import CHANGES, Event, Kind
from proof.sweep import Cut
from proof.volatile import BLOCKS, DROP, KEEP, POLICIES, SECTORS
from proof.volatile import Disk as Cache

ROOTS = ("ext4", "xfs")
CONTROL = "written over"
RECORD = "boot-files.json"
FSTAB = "/etc/fstab"
ORIGINALS = "/var/lib/durable-dbhost/originals.json"
#: What harden-db writes beside a line of fstab that is its own.
MANAGED = "# durable.dbhost"
DIRECTORIES = (
    *("/etc/udev/rules.d", "/etc/systemd/system", "/etc/durable-dbhost"),
    *("/var/lib/durable-dbhost", "/usr/local/lib/durable-dbhost"),
)
MOUNTS = ("/srv/pgdata", "/srv/maria", "/srv/unit")
COPY_SERIAL, COPY_SIZE, UNIT_SERIAL = "NEWROOT", 1536 << 20, "UNIT0001"
#: Each cut of a place in the log keeps something else of the cache.
MIX = (DROP, SECTORS, BLOCKS, KEEP)
#: What leaves blocks of 4 KiB in part.
TEARS = SECTORS
#: Every so many cuts the whole file system is checked, not only recovered.
CHECK_EVERY = 50
LIMIT = 600.0
_SEEN = "/run/boot-files.jsonl"
#: A mount of a unit of its own, so that a drop-in is written too.
_UNIT = f"""
disk=/dev/disk/by-id/virtio-{UNIT_SERIAL}
mkfs.ext4 -q -F "$disk"
udevadm trigger --action=change --subsystem-match=block
udevadm settle
mkdir -p /srv/unit
cat > /etc/systemd/system/srv-unit.mount <<END
[Mount]
What=$disk
Where=/srv/unit
Type=ext4
[Install]
WantedBy=local-fs.target
END
systemctl daemon-reload
systemctl --quiet enable --now srv-unit.mount
"""
LAYOUT = Layout(
    disks=(
        Disk("scsi", "SCSI0001", fstype="ext4", mount="/srv/pgdata"),
        Disk("virtio", "VIRT0001", fstype="xfs", mount="/srv/maria"),
        Disk("virtio", UNIT_SERIAL),
    ),
    script=_UNIT,
)
#: A root with the same UUID on the other disk. What no boot reads stays behind: each cut copies the image.
_COPY_ROOT = """
disk=/dev/disk/by-id/virtio-$1
uuid=$(findmnt --noheadings --output UUID /)
case $2 in
ext4) mkfs.ext4 -q -F -U "$uuid" -E lazy_itable_init=0,lazy_journal_init=0 -N 60000 "$disk" ;;
xfs) mkfs.xfs -q -f -m uuid="$uuid" "$disk" ;;
esac
mkdir -p /mnt/root
mount -t "$2" "$disk" /mnt/root
tar --one-file-system -C / -c --exclude=./usr/share/doc --exclude=./usr/share/man --exclude=./usr/share/locale \\
    --exclude=./var/cache/apt --exclude=./var/lib/apt/lists --exclude=./boot/* --exclude=./usr/lib/modules/* \\
    --exclude=./mnt/root . | tar -C /mnt/root -xp
[ "$2" = ext4 ] || sed -i "s| / ext4 [^ ]*| / $2 defaults|" /mnt/root/etc/fstab
grep " / $2 " /mnt/root/etc/fstab
umount /mnt/root
sync
"""
#: Some writes that nobody syncs, and then a sync: what a run that has ended left waiting would show here.
_AFTERWARDS = """
for number in 1 2 3 4 5 6 7 8; do echo "$number" > "/var/tmp/noise$number"; sleep 0.05; done
sync
"""
#: fstab written over between two contents, while others sync.
_WRITE_OVER = """
import os, threading
old = open("/etc/fstab").read()
new = old.replace(" defaults", " defaults,noatime") + "# a comment\\n"
assert new != old
ended = threading.Event()
def others():
    while not ended.is_set():
        os.sync()
threading.Thread(target=others).start()
for number in range(40):
    with open("/etc/fstab", "w") as fstab:
        fstab.write((new, old)[number % 2])
ended.set()
"""

#: A content as the watcher has it; None: the file is not there.
Content = str | None


@dataclass(frozen=True)
class Step:
    """One run. `begin`, `returned` and `end` are sequences of the log: of its first event, and of the first one after it has
    returned, and of the first that is not looked at.

    `allowed` has, for each path, the contents that it may have at a cut; `last` the one that it has had to have since.
    """

    name: str
    begin: int
    returned: int
    end: int
    allowed: dict[str, list[Content]]
    last: dict[str, Content]

    def wanted(self, sequence: int) -> dict[str, list[Content]]:
        """Return the contents that each file may have at a cut."""
        return (
            self.allowed if sequence < self.returned else {path: [what] for path, what in self.last.items()}
        )


@dataclass(frozen=True)
class Tally:
    """What cuts of one step left.

    `between`: cuts after which files are neither all as before the run nor all as after it; `unfinished`: files that were not
    yet in their place; `checked`: cuts whose whole file system was checked; `refused`: cuts after which the
    file system wants an administrator: `e2fsck -p`, which a boot from ext4 begins with, who then lets it mend all; XFS is not
    mounted, and none of its files is looked at; `problems`: what was wrong, and how often.
    """

    cuts: int = 0
    wrong: int = 0
    unfinished: int = 0
    checked: int = 0
    between: int = 0
    refused: int = 0
    problems: dict[str, int] = field(default_factory=dict)

    def __add__(self, other: Tally) -> Tally:
        """Return the sum of both."""
        return Tally(
            self.cuts + other.cuts,
            self.wrong + other.wrong,
            self.unfinished + other.unfinished,
            self.checked + other.checked,
            self.between + other.between,
            self.refused + other.refused,
            dict(Counter(self.problems) + Counter(other.problems)),
        )


def record(root: str, directory: Path) -> None:
    """Record all steps over a root of that file system. ProofError or LabError says what failed."""
    machine.make_directory(directory)
    host = Machine(f"boot-files-{root}")
    with ExitStack() as stack:
        stack.callback(host.down)
        host.down()
        say(f"root on {root}: a fresh machine")
        host.up(LAYOUT)
        host.power_off()
        host.make_disk(COPY_SERIAL, COPY_SIZE)
        host.boot(BootDisk("virtio", COPY_SERIAL))
        _must(host, "copy the root", _COPY_ROOT, COPY_SERIAL, root)
        host.power_off()
        image = directory / "root.img"
        host.copy_disk(COPY_SERIAL, image)
        disk = VolatileDisk.made(directory / "disk", image, machine.FLUSH)
        image.unlink()
        stack.enter_context(disk.served_for(host))
        # In place of the root, and without the copy: two roots of one UUID could not be told apart.
        host.boot(disk.boot_disk(ROOT_SERIAL))
        found = _steps(host, root, disk, directory)
        versions = machine.versions_of(host)
        host.cut()
    (disk.directory / NEWEST).unlink()
    text = {"root": root, "versions": versions, "steps": [asdict(step) for step in found]}
    # last: a directory with this file is whole
    (directory / RECORD).write_text(json.dumps(text))


def _steps(host: Machine, root: str, disk: VolatileDisk, directory: Path) -> list[Step]:
    """Run everything, and return what was seen meanwhile."""
    host.put(ROOT / "proof/boot_watcher.py", "/run/boot_watcher.py")
    watcher = (
        "systemd-run",
        "--quiet",
        "--unit=boot-watcher",
        "--property=Nice=-10",
        "python3",
        "/run/boot_watcher.py",
        _SEEN,
    )
    host.run([*watcher, FSTAB, *DIRECTORIES])
    play = _Plays(host, directory)
    todo: dict[str, Callable[[], None]] = {
        "nothing to flush": lambda: play.harden("flush"),
        "flush to disposable": lambda: play.harden("disposable"),
        "disposable to strict": lambda: play.harden("strict"),
        "release": lambda: play.run("release_db"),
        CONTROL: lambda: _must(host, CONTROL, 'python3 -c "$1"', _WRITE_OVER),
    }
    found, known = list[Step](), dict[str, Content]()
    seen = _settled(host, 0)
    for name, act in todo.items():
        say(f"root on {root}: {name}")
        known = _after(known, seen)
        begin, read = log.count(disk.directory), _lines(host)
        act()
        returned = log.count(disk.directory)
        _must(host, "afterwards", _AFTERWARDS)
        end = log.count(disk.directory)
        seen = _settled(host, read)
        allowed = {path: [known.get(path)] for path in {*known, *(path for path, _ in seen)}}
        for path, what in seen:
            if what not in allowed[path]:
                allowed[path].append(what)
        if name == CONTROL:
            # What the watcher saw of it may be a file that is half written.
            allowed[FSTAB] = _of_control(known[FSTAB])
            returned = end
        found.append(Step(name, begin, returned, end, allowed, _after(known, seen)))
    return found


def _of_control(content: Content) -> list[Content]:
    """Return both contents between which the control changes."""
    old = base64.b64decode(content or "").decode()
    new = old.replace(" defaults", " defaults,noatime") + "# a comment\n"
    return [base64.b64encode(text.encode()).decode() for text in (old, new)]


class _Plays:
    """Runs playbooks as a user does."""

    def __init__(self, host: Machine, directory: Path) -> None:
        self.host, self.directory = host, directory / "plays"
        self.directory.mkdir()

    def harden(self, profile: str) -> None:
        """Bring the machine to a profile."""
        words = machine.inventory(self.host.name, profile)
        words["all"]["hosts"][self.host.name]["durable_mounts"] = list(MOUNTS)
        (self.directory / "profile.yml").write_text(json.dumps(words))
        self.run("harden-db")
        report = json.loads((self.directory / f"durable-report/{self.host.name}.json").read_text())
        if not report["changes"]:
            raise ProofError(f"harden-db to {profile} changed nothing: {self.directory}/output.txt")

    def run(self, playbook: str) -> None:
        """Run a playbook; that something is pending is no failure here."""
        program = Path(sys.executable).with_name("ansible-playbook")
        if not program.exists():
            raise ProofError(f"{program} is missing: run `make prove`, or a Python of .venv/run")
        inventories = ("-i", str(self.host.inventory), "-i", str(self.directory / "profile.yml"))
        variables = ("-e", json.dumps({"durable_fail_on": []}))
        with (self.directory / "output.txt").open("a") as output:
            done = subprocess.run(
                [str(program), *inventories, *variables, str(ROOT / f"playbooks/{playbook}.yml")],
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
                timeout=LIMIT,
            )
        if done.returncode:
            raise ProofError(f"{playbook} ended with {done.returncode}: {self.directory}/output.txt")


def _must(host: Machine, step: str, script: str, *arguments: str) -> None:
    done = host.run(["sh", "-euc", script, "proof", *arguments], check=False, timeout=LIMIT)
    if done.returncode:
        raise ProofError(
            f"{host.name}: {step} ended with {done.returncode}: {(done.stdout + done.stderr).strip()[-1500:]}"
        )


def _lines(host: Machine) -> int:
    """Return how many lines the watcher has written."""
    return int(host.run(["sh", "-c", f"wc -l < {_SEEN}"]).stdout)


def _settled(host: Machine, begin: int) -> list[tuple[str, Content]]:
    """Return what the watcher has seen after so many lines, once it has seen all that there is."""
    script = f"sleep 1; systemctl is-active --quiet boot-watcher; tail -n +{begin + 1} {_SEEN}"
    lines = host.run(["sh", "-euc", script]).stdout.splitlines()
    return [(line["path"], line["content"]) for line in map(json.loads, lines)]


def _after(known: dict[str, Content], seen: Iterable[tuple[str, Content]]) -> dict[str, Content]:
    return {**known, **dict(seen)}


def read(directory: Path) -> tuple[dict[str, Any], list[Step]]:
    """Return a record and its steps; ProofError: it is not whole."""
    try:
        found = json.loads((directory / RECORD).read_text())
    except OSError as error:
        raise ProofError(f"{directory} has no whole record: {error.strerror}") from error
    return found, [Step(**step) for step in found["steps"]]


def schedule(events: Sequence[Event], step: Step, count: int) -> list[Cut]:
    """Choose so many cuts of a step, spread over the events that write or flush: each of them once before any of them twice.

    What follows an event is cut before the next one. What the cache keeps goes round by turns.
    """
    places = [
        event.sequence
        for event in events[step.begin : step.end]
        if event.kind in CHANGES or event.kind is Kind.FLUSH
    ]
    if not places:
        raise ProofError(f"{step.name}: the root's disk was told nothing")
    chance = random.Random(f"boot files {step.name}")
    rounds, rest = divmod(count, len(places))
    chosen = [*places * rounds, *sorted(chance.sample(places, rest))]
    return sorted(
        Cut(place, MIX[(number + number // len(places)) % len(MIX)].name, chance.randrange(1 << 32))
        for number, place in enumerate(chosen)
    )


def judged(pool: Executor, directory: Path, cuts: int, jobs: int) -> dict[str, Any]:
    """Cut so often in each step of a record, and return what was left, for the evidence."""
    found, steps = read(directory)
    events = log.read(directory / "disk").events
    told = {}
    for step in steps:
        chosen = schedule(events, step, cuts)
        size = -(-len(chosen) // jobs)
        parts = [chosen[at : at + size] for at in range(0, len(chosen), size)]
        futures = [pool.submit(judged_part, directory, found["root"], step, part) for part in parts]
        tally = sum((future.result() for future in futures), Tally())
        places = len({cut.sequence for cut in chosen})
        told[step.name] = {**asdict(tally), "events": places, "files": _moved(step)}
        say(f"root on {found['root']}: {step.name}: {tally.wrong} of {tally.cuts} cuts left what must not be")
    return {"root": found["root"], "versions": found["versions"], "steps": told}


def _moved(step: Step) -> list[str]:
    """Return the files of which a step has made another content."""
    return sorted(path for path, contents in step.allowed.items() if len(contents) > 1)


def judged_part(directory: Path, root: str, step: Step, cuts: Sequence[Cut]) -> Tally:
    """Look at cuts, in the order of the log."""
    events = log.read(directory / "disk").events
    cache, place, total = Cache(), 0, Tally()
    with scratch_directory() as name:
        scratch = Path(name)
        copy_sparse(directory / "disk/base.img", scratch / "cut.img")
        image = Image(scratch / "cut.img")
        for number, cut in enumerate(cuts):
            while place < len(events) and events[place].sequence <= cut.sequence:
                image.make_durable(cache.apply(events[place]))
                place += 1
            with image.at_cut(cache.cut(POLICIES[cut.policy], cut.seed)) as path:
                total += look(path, root, step, cut, scratch, number % CHECK_EVERY == 0)
        image.close()
    return total


def look(image: Path, root: str, step: Step, cut: Cut, scratch: Path, is_checked: bool) -> Tally:
    """Recover one image of a root, and hold each file against the contents that it may have at this place of the log.

    A file system that does not recover is a problem unless the cut tore its blocks: against that neither has a remedy.
    """
    wanted, refused = step.wanted(cut.sequence), list[str]()

    def boots(copy: Path) -> None:
        """Do what a boot does before it mounts the root."""
        if root == "ext4":
            refused.extend(filter(None, [checks.preened(copy)]))

    with checks.mounted(image, scratch, root, boots) as (target, said):
        if target is None:
            refused.append(said)
        else:
            found = {path: _content(target, path) for path in wanted}
            unfinished = sum(1 for _ in _unfinished(target))
    wrong = [] if cut.policy == TEARS.name else refused.copy()
    if target is None:
        return Tally(1, bool(wrong), refused=1, problems=dict(Counter(wrong)))
    wrong += [_wrong(path, found[path], contents) for path, contents in wanted.items()]
    if MANAGED in _text(found.get(FSTAB)) and found.get(ORIGINALS) is None:
        wrong.append(f"{FSTAB} has been changed, and {ORIGINALS} does not say what it was")
    if is_checked:
        wrong.append(checks.damage(scratch / checks.COPY, root))
    before = {path: contents[0] for path, contents in step.allowed.items()}
    problems = Counter(filter(None, wrong))
    is_between = found not in (before, step.last)
    return Tally(1, bool(problems), unfinished, is_checked, is_between, len(refused), dict(problems))


def _wrong(path: str, found: Content, contents: Sequence[Content]) -> str:
    if found in contents:
        return ""
    if found is None:
        return f"{path} is gone"
    return f"{path} is empty" if not found else f"{path} is neither old nor new"


def _text(content: Content) -> str:
    return base64.b64decode(content).decode(errors="replace") if content else ""


def _content(target: Path, path: str) -> Content:
    """Return the content of a file as the watcher has it."""
    place = target / path.lstrip("/")
    try:
        if stat.S_ISLNK(place.lstat().st_mode):
            return f"-> {os.readlink(place)}"
        return base64.b64encode(place.read_bytes()).decode()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _unfinished(target: Path) -> Iterator[Path]:
    """Yield what a run left that had not put it in its place: nothing reads files of such names."""
    for directory in (os.path.dirname(FSTAB), *DIRECTORIES):
        yield from (target / directory.lstrip("/")).glob(f"{UNFINISHED}*")


def problems(found: dict[str, Any]) -> list[str]:
    """Return what a root's cuts should have shown and did not."""
    wrong = [
        f"root on {found['root']}: {name}: {problem} ({count} cuts)"
        for name, step in found["steps"].items()
        if name != CONTROL
        for problem, count in step["problems"].items()
    ]
    if not found["steps"][CONTROL]["wrong"]:
        wrong.append(f"root on {found['root']}: the control, {CONTROL}, broke nothing")
    return wrong


def tried(root: str, records: Path, cuts: int, jobs: int, pool: Executor, is_fresh: bool) -> dict[str, Any]:
    """Record one root if that has not been done, and cut so often in each step."""
    directory = records / f"boot-files-{root}"
    if is_fresh or not (directory / RECORD).exists():
        record(root, directory)
    return judged(pool, directory, cuts, jobs)
