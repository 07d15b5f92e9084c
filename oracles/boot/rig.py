# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rounds of the boot oracle: restore, plant, assess, cut the power, boot, read the running values, compare.

The rounds are a chain: the boot of one is the state in which the next one plants. Files are restored on the running machine,
which takes two seconds. A machine that came up without a mount or a server, or not at all, is loaded from its snapshot.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import yaml

from lab import layout
from lab.errors import LabError
from lab.machine import Machine
from lab.progress import say
from oracles import rig as oracles
from oracles.boot import judge, saboteurs
from oracles.boot.saboteurs import HOST, Planted
from oracles.contract import AGREED, DECLINED, DISAGREED

HERE = Path(__file__).resolve().parent
MACHINE = "boot-oracle"
TAG = "hardened"
#: Seconds: for a boot to answer, for it to settle after that, and for timers and the like to act.
ANSWERS, SETTLES, LATE = 150.0, 90, 6
#: What the console shows of a boot that stops; layout.sh has emergency and rescue mode print it.
STOPPED = ("lab: emergency mode", "lab: rescue mode", "Kernel panic")
#: The rounds of --short: nothing, then one of each area in each, a boot that stops last.
SHORT = (
    "",
    "rule, after ours, kernel write through+fstab, barrier=0+conf.d, fsync+drop-in file, sync_binlog",
    "rule, before ours, RUN of sdparm+rc.local, remount+ALTER SYSTEM, synchronous_commit+init_file",
    "rule for the disk that is not in use+fstab, a comment+conf.d, the same value+drop-in file, a comment",
    "ld.so.preload",
    "masked unit of a mount without a database",
)
#: Results that are all shown, and at once; rounds that are shown of each other one.
_LOUD = (DISAGREED, judge.FALSE_ALARM, judge.HARMFUL)
_SHOWN = 10
#: Harmless items of 100 that may change what is said.
FALSE_ALARMS = 2
#: Part of the rounds in which systemd reads its files again before the machine is assessed.
_RELOADS = 0.5
_UNITS = {"postgresql": "postgresql@*.service", "mariadb": "mariadb.service"}
_TRUTH = (HERE / "truth.py").read_text()


class Chain:
    """One machine, and what is known of it with nothing planted."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.inputs = inputs()
        self._undo: list[str] = []
        self._restart: list[str] = []
        self._is_sound = True
        self._normal: judge.Normal | None = None
        self.spent: dict[str, float] = {}

    @property
    def normal(self) -> judge.Normal:
        """The machine with nothing planted."""
        assert self._normal is not None, "prepare was not called"
        return self._normal

    def prepare(self) -> None:
        """Harden the machine, keep it so, and learn what is said of it and what its boot comes to."""
        _harden(self.machine, self.inputs)
        oracles.install(self.machine)
        self.machine.run(["sync"])
        self._cycle()
        truth = self._truth()
        self._guest("snapshot", {})
        said = self._ask([])
        self._normal = judge.Normal(said, truth)
        self.machine.save(TAG)
        if said["verdict"] not in ("durable", "attested"):
            raise LabError(f"the hardened machine is {said['verdict']}: {'; '.join(said['why'])}")

    def subjects(self) -> dict[str, list[dict[str, str]]]:
        """Return {area: what its saboteurs can be about}, as placeholders and their values."""
        return subjects(self.normal.truth, self.machine.run(["ls", "/usr/lib/postgresql"]).stdout.strip())

    def round(self, planted: Sequence[Planted], reload: bool) -> list[judge.Finding]:
        """Run one round and return what it found."""
        try:
            said = self._ask_from_a_sound_machine(planted, reload)
        except LabError as error:
            self._is_sound = False
            return [judge.Finding(DISAGREED, f"it cannot be planted or assessed: {error}")]
        self._undo = [item.undo for item in planted if item.undo]
        # A harmless drop-in starts the server in another way, too: the next round begins with the usual one.
        areas = {
            item.saboteur.area
            for item in planted
            if not item.saboteur.harmless or any("/systemd/" in path for path in item.paths)
        }
        self._restart = [unit for area, unit in _UNITS.items() if area in areas or HOST in areas]
        boot = self._boot(any(item.saboteur.late for item in planted))
        self._is_sound = boot.truth is not None and judge.is_sound(boot.truth, self.normal.truth)
        found = judge.compare(said, boot, planted, self.normal)
        if self._is_sound and all(item.saboteur.harmless for item in planted):
            after = self._guest("assess", {"inputs": self.inputs})
            found += judge.after(after, planted)
        return found

    def _ask_from_a_sound_machine(self, planted: Sequence[Planted], reload: bool) -> dict[str, Any]:
        """Return what is said of the machine, restored, with saboteurs planted. Raises LabError."""
        if self._is_sound:
            # What the last round left may keep its own undoing from working.
            with suppress(LabError):
                return self._ask(planted, reload)
        self.machine.load(TAG)
        self._undo, self._restart, self._is_sound = [], [], True
        return self._ask(planted, reload)

    def _ask(self, planted: Sequence[Planted], reload: bool = False) -> dict[str, Any]:
        started = time.monotonic()
        question = {
            "undo": self._undo,
            "restart": self._restart,
            "plant": [item.as_dict() for item in planted],
            "reload": reload,
            "inputs": self.inputs,
        }
        said = self._guest("round", question)
        for name, seconds in said["spent"].items():
            self._add(name, seconds)
        self._add("all before the boot", time.monotonic() - started)
        return said

    def _guest(self, verb: str, question: Mapping[str, Any]) -> dict[str, Any]:
        script = f"cd {oracles.HOME} && exec python3 -m oracles.boot.guest {verb}"
        done = self.machine.run(["sh", "-ec", script], input=json.dumps(question), timeout=300.0)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def _boot(self, is_late: bool) -> judge.Boot:
        started = time.monotonic()
        try:
            self._cycle()
            if is_late:
                time.sleep(LATE)
            truth = self._truth()
        except LabError as error:
            return judge.Boot(None, str(error))
        finally:
            self._add("boot", time.monotonic() - started)
        return judge.Boot(truth)

    def _add(self, name: str, seconds: float) -> None:
        self.spent[name] = self.spent.get(name, 0.0) + seconds

    def _cycle(self) -> None:
        """Cut the power and boot. Raises LabError at the first sign that the boot has stopped."""
        console = self.machine.files.console
        self.machine.cut()
        begin = console.stat().st_size if console.exists() else 0
        self.machine.start()
        deadline = time.monotonic() + ANSWERS
        while time.monotonic() < deadline:
            with suppress(LabError):
                self.machine.run(["sh", "-c", "systemctl is-system-running --wait; true"], timeout=SETTLES)
                return
            with console.open("rb") as printed:
                printed.seek(begin)
                text = printed.read().decode("utf-8", "replace")
            if sign := next((sign for sign in STOPPED if sign in text), ""):
                raise LabError(sign)
            time.sleep(0.3)
        raise LabError(f"no answer within {ANSWERS:.0f} s")

    def _truth(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.machine.run(["python3", "-"], input=_TRUTH).stdout)
        return found


#: A round: how it is run again, what it plants, and whether systemd reads its files again before the machine is assessed.
Round = tuple[str, list[Planted], bool]


def chosen(chain: Chain, first: int, count: int) -> Iterator[Round]:
    """Yield random rounds, from a seed on."""
    every, subjects = saboteurs.load(), chain.subjects()
    for seed in range(first, first + count):
        numbers = random.Random(seed)
        planted = saboteurs.choose(numbers, every, subjects)
        yield f"SEED={seed} COUNT=1", planted, numbers.random() < _RELOADS


def named(chain: Chain, rounds: Iterable[str]) -> Iterator[Round]:
    """Yield one round for each text: names of saboteurs, with + between them. Raises KeyError."""
    every, subjects = {each.name: each for each in saboteurs.load()}, chain.subjects()
    for text in rounds:
        items = [every[name] for name in text.split("+") if name]
        yield f"--plant {text!r}", [saboteurs.first(item, subjects) for item in items], True


def each(chain: Chain, word: str) -> Iterator[Round]:
    """Yield rounds that plant each saboteur with a word in its name or area once, as few rounds as possible."""
    every = [item for item in saboteurs.load() if word in f"{item.area}: {item.name}"]
    for items in saboteurs.packed(every, chain.subjects()):
        yield f"--plant {'+'.join(item.saboteur.name for item in items)!r}", items, True


def run(chain: Chain, rounds: Iterable[Round], seconds: float) -> tuple[str, bool]:
    """Run rounds, as many as the time allows; return a text and whether all is well."""
    total = Total()
    started = time.monotonic()
    for where, planted, reload in rounds:
        if time.monotonic() - started > seconds:
            break
        total.add(where, planted, chain.round(planted, reload))
    return total.report(time.monotonic() - started, chain.spent), total.is_well


class Total:
    """What all rounds found."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.rounds = 0
        self.harmless = 0
        self.shown: dict[str, list[str]] = {}

    def add(self, where: str, planted: Sequence[Planted], findings: Iterable[judge.Finding]) -> None:
        """Count one round; `where` is how it is run again."""
        self.rounds += 1
        self.harmless += sum(item.saboteur.harmless for item in planted)
        by_kind: dict[str, list[str]] = {}
        for finding in findings:
            self.counts[finding.kind] += 1
            by_kind.setdefault(finding.kind, []).append(finding.text)
        say(f"{where}: {', '.join(item.saboteur.name for item in planted) or 'nothing'}: {_counted(by_kind)}")
        for kind, texts in by_kind.items():
            # Of a wrong prediction each one is shown.
            is_enough = kind not in _LOUD and len(self.shown.get(kind, ())) >= _SHOWN
            if kind not in (AGREED, DECLINED) and not is_enough:
                text = "\n".join([f"{where}", *texts, *(item.text() for item in planted)])
                self.shown.setdefault(kind, []).append(text.replace("\n", "\n    "))
                if kind in _LOUD:
                    print(f"  {kind}: {self.shown[kind][-1]}", flush=True)

    @property
    def is_well(self) -> bool:
        """Whether no wrong prediction was found, few false alarms, and anything at all was agreed on."""
        alarms = self.counts[judge.FALSE_ALARM] * 100 <= FALSE_ALARMS * self.harmless
        wrong = self.counts[DISAGREED] + self.counts[judge.HARMFUL]
        return not wrong and alarms and self.counts[AGREED] > 0

    def report(self, seconds: float, spent: Mapping[str, float]) -> str:
        """Return it as text."""
        alarms = self.counts[judge.FALSE_ALARM]
        lines = [
            f"boot: {self.rounds} boots in {seconds:.0f} s: {self.counts[AGREED]} agreed, {self.counts[DECLINED]} declined,"
            f" {self.counts[DISAGREED]} disagreed",
            f"  {alarms} false alarms of {self.harmless} harmless items"
            f" ({100 * alarms / max(1, self.harmless):.1f} in 100; at most {FALSE_ALARMS})",
            f"  wrong, and safe: {self.counts[judge.SAFE_SIDE]}; settings of speed: {self.counts[judge.SPEED]}",
            f"  saboteurs without effect: {self.counts[judge.NO_EFFECT]};"
            f" harmless items that did harm: {self.counts[judge.HARMFUL]}",
            f"  seconds: {', '.join(f'{name} {value:.0f}' for name, value in spent.items())}",
        ]
        for kind in (*_LOUD, judge.SAFE_SIDE, judge.SPEED, judge.NO_EFFECT):
            lines += [f"  {kind}: {text}" for text in self.shown.get(kind, ())]
        return "\n".join(lines)


def inputs() -> dict[str, Any]:
    """Return what the inventory says of the machine, as policy.expect.inputs.Inputs takes it."""
    variables = yaml.safe_load((HERE / "profile.yml").read_text())
    shipped = yaml.safe_load((oracles.ROOT / "playbooks/vars/profiles.yml").read_text())
    end = (date.today() + timedelta(2)).isoformat()
    attestation = {
        "claim": "host_honours_flush",
        "target": "host",
        "by": "the lab",
        "reason": "a machine of the lab",
        "expires": end,
    }
    return {
        "profile": variables["durable_profile"],
        "overrides": variables["durable_overrides"],
        "shipped": shipped["durable_shipped_profiles"],
        "own": {},
        "attestations": {"durable_attestations": [attestation]},
    }


def subjects(truth: Mapping[str, Any], version: str) -> dict[str, list[dict[str, str]]]:
    """Return {area: its subjects} of a machine, of its running values and its version of PostgreSQL."""
    postgresql = f"/etc/postgresql/{version}/main"
    common = {
        "pg": postgresql,
        "pg_data": "/srv/pgdata/main",
        "pg_unit": f"postgresql@{version}-main.service",
        **_spare(truth),
    }
    targets = [target for target in truth["mounts"] if target.startswith("/srv/")]
    managed = [target for target in targets if target != "/srv/other"]
    by_serial = {truth["mounts"][target]["serial"]: target for target in managed}
    mounts = [{**common, **_of_mount(target, truth)} for target in managed]
    disks = [{**common, **_of_mount(target, truth)} for _serial, target in sorted(by_serial.items())]
    every = mounts[:1]
    return {"disk": disks, "mount": mounts, "postgresql": every, "mariadb": every, HOST: every}


def _of_mount(target: str, truth: Mapping[str, Any]) -> dict[str, str]:
    mount = truth["mounts"][target]
    bus = "scsi" if mount["serial"].startswith("SCSI") else "virtio"
    key = "ID_SCSI_SERIAL" if bus == "scsi" else "ID_SERIAL"
    by_id = f"scsi-0QEMU_QEMU_HARDDISK_{mount['serial']}" if bus == "scsi" else f"virtio-{mount['serial']}"
    return {
        "mount": target,
        "unit": f"{target.strip('/').replace('/', '-')}.mount",
        "uuid": mount["uuid"],
        "fstype": mount["fstype"],
        "kernel": mount["device"],
        "serial": mount["serial"],
        "bus": bus,
        "link": f"/dev/disk/by-id/{by_id}",
        "match": f'ENV{{{key}}}=="{mount["serial"]}"',
    }


def _spare(truth: Mapping[str, Any]) -> dict[str, str]:
    """Return the names of the disk that is not in use, and of the mount without a database."""
    other = truth["mounts"]["/srv/other"]
    return {
        "spare": "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_SCSI0004",
        "spare_serial": "SCSI0004",
        "other_uuid": other["uuid"],
    }


def _harden(machine: Machine, given: Mapping[str, Any]) -> None:
    """Run harden-db on the machine, as a user does."""
    variables = {
        "durable_profile": given["profile"],
        "durable_overrides": given["overrides"],
        **given["attestations"],
    }
    with tempfile.TemporaryDirectory() as directory:
        inventory = Path(directory, "hosts.yml")
        inventory.write_text(json.dumps({"databases": {"hosts": {machine.name: variables}}}))
        command = [
            str(Path(sys.executable).with_name("ansible-playbook")),
            *("-i", str(machine.inventory), "-i", str(inventory)),
            str(oracles.ROOT / "playbooks/harden-db.yml"),
        ]
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    # Some settings wait for a reboot: then it is `pending`, and the run fails.
    if "unreachable=0    failed=0" not in done.stdout:
        say(done.stdout[-3000:] + done.stderr[-1000:])


def machine(release: str) -> Machine:
    """Return the machine of the boot oracle, up."""
    made = Machine(MACHINE)
    made.up(layout.load(HERE / "layout.yml"), release)
    return made


def _counted(by_kind: Mapping[str, Sequence[str]]) -> str:
    return ", ".join(f"{len(texts)} {kind}" for kind, texts in by_kind.items())
