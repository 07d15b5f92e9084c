# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One row of the matrix of faults: plant it, run, take it away, run again, and read what the host is each time."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.machine import Machine
from support import truth
from support.faults import DRIFT, SCRATCH, Fault
from support.layout import TARGETS
from support.runs import ROOT, Playbooks, Run, before_call

#: Verdicts of a host that loses no acknowledged commit, as far as is known.
GOOD = ("durable", "attested", "unverified", "accepted_loss")
#: What a run could leave behind: files, devices, mounts, units, locks that are held, processes. The lock's file, and the
#: empty directory of pending flushes, stay until the next boot.
_LEFT = r"""
cd /
find etc usr/local root tmp var/tmp var/lib/durable-dbhost run/durable-dbhost run/systemd/system run/systemd/transient \
    run/udev/rules.d dev/shm mnt -path root/.ansible -prune -o -path '*systemd-private*' -prune \
    -o ! -path 'run/systemd/transient/session-*' ! -path run/durable-dbhost ! -path run/durable-dbhost/lock \
    ! -path run/durable-dbhost/flush-owed -printf '%p %y %m %u:%g %l\n' 2> /dev/null | sort
find etc usr/local var/lib/durable-dbhost -type f -print0 | sort -z | xargs -0 sha256sum
find / -xdev \( -name '*durable*' -o -name '.ansible*' \) ! -path '/root/*' | sort
losetup --list --noheadings --output NAME,BACK-FILE
cut -d' ' -f2-4 /proc/mounts | sort
systemctl list-units --all --no-legend --plain '*durable*'
systemctl list-units --all --no-legend --plain --type=timer | cut -d' ' -f1 | sort
systemctl --failed --no-legend --plain
lslocks --noheadings --output PATH | grep durable || true
pgrep -fa '[a]nsible|[d]urable' || true
"""


#: Directories of the rollback timer. They are removed after what was in them, and a power cut may bring them back.
_EMPTY = re.compile(r"\+ /?etc/durable-dbhost(/undo)?( d .*)?$")


@dataclass
class Result:
    """What came of a row: both runs, and what is wrong with the host before, during and after."""

    run: Run
    report: dict[str, Any]
    before: set[str]
    during: set[str]
    again: Run
    after: set[str]
    left: list[str]
    second: Run | None = None


class Faults:
    """The machine, and how it is when all is well."""

    def __init__(self, machine: Machine, inventories: list[Path], directory: Path) -> None:
        self.machine = machine
        self.inventories = inventories
        self.directory = directory
        self._runs = 0
        self._well = ""
        self._is_known = False

    def repair(self) -> None:
        """Repair the host with DRIFT and no fault: a repaired line of fstab is not written as converge wrote it."""
        self._sh(DRIFT)
        run = self.playbooks().run("harden-db")
        assert run.code == 0, run.output

    def tried(self, fault: Fault) -> Result:
        """Return the result of a row, on a machine that is as converge left it or as a row that was all right."""
        if not self._is_known:
            self.fresh()
        if not self._well:
            self.left()
        self._is_known = False
        result = self.run(fault)
        print(told(result))
        self._is_known = faults_of(result, fault) == []
        return result

    def fresh(self) -> Machine:
        """Return the machine as converge left it, for whoever changes it otherwise."""
        self._is_known = False
        self.machine.load("strict")
        return self.machine

    def run(self, fault: Fault) -> Result:
        """Plant a fault, run, take it away, run again."""
        self._sh(DRIFT + fault.drift)
        before = self.weaknesses(fault)
        with self._planted(fault) as playbooks:
            run = playbooks.run("harden-db", variables=dict(fault.variables) or None)
            second = self.playbooks().run("harden-db") if fault.twice else None
            if any(effect == "hang" for _serial, _operation, effect in fault.disk):
                # No disk that hangs can be read.
                self._lift(fault)
            during = self.weaknesses(fault)
        if fault.boots:
            self.machine.reset()
        again = self.playbooks().run("harden-db")
        left = [line for line in self.left() if not (fault.boots and _EMPTY.match(line))]
        report = run.reports.get(self.machine.name, {})
        return Result(run, report, before, during, again, self.weaknesses(), left, second)

    def playbooks(self) -> Playbooks:
        """Return what runs playbooks, in a directory of its own."""
        self._runs += 1
        directory = self.directory / f"run-{self._runs}"
        directory.mkdir()
        return Playbooks([*self.inventories], directory, {})

    def weaknesses(self, fault: Fault | None = None) -> set[str]:
        """Return the weaknesses of the mounts and disks that the fault leaves on the host."""
        exempt = fault.exempt if fault else ()
        targets = {target: serial for target, serial in TARGETS.items() if target not in exempt}
        return truth.weaknesses(truth.read(self.machine), targets)

    def left(self) -> list[str]:
        """Return in what the host differs from one that is well; the first call says what that is."""
        seen = self._sh(_LEFT)
        if not self._well:
            self._well = seen
        was, now = set(self._well.splitlines()), set(seen.splitlines())
        return sorted([f"- {line}" for line in was - now] + [f"+ {line}" for line in now - was])

    def _sh(self, script: str, timeout: float = 600.0) -> str:
        # By standard input: a script in a command line would find itself among processes.
        return self.machine.run(["sh", "-eu"], input=script, timeout=timeout).stdout

    @contextmanager
    def _planted(self, fault: Fault) -> Iterator[Playbooks]:
        """Give what runs playbooks while the host has the fault; take all of it away at the end."""
        playbooks = self.playbooks()
        now = time.time()
        self._prepare(fault, playbooks)
        self._sh(fault.plant)
        for serial, operation, effect in fault.disk:
            self.machine.set_fault(serial, operation, effect)
        lift = threading.Timer(fault.lifted, self._lift, (fault,))
        if fault.lifted:
            lift.start()
        try:
            with self._swapping(fault):
                yield playbooks
        finally:
            lift.cancel()
            self._lift(fault)
            # The host's clock may be anywhere.
            self._sh(fault.clear.replace("$LAB_NOW", f"{now + 1:.0f}"))
            if fault.shell:
                self._sh(f"test -s {SCRATCH}/shells")
            self._sh(f"rm -rf {SCRATCH} /usr/lib/locale/tr_TR.utf8")
            if fault.clear:
                self._sh(f"date -s @{time.time():.3f}")

    def _lift(self, fault: Fault) -> None:
        for serial, operation, effect in fault.disk:
            # A disk that has left has no faults.
            with suppress(LabError) if effect == "leave" else nullcontext():
                self.machine.set_fault(serial, operation, "none")

    @contextmanager
    def _swapping(self, fault: Fault) -> Iterator[None]:
        """Plug another disk in once the one that leaves has left."""
        if not fault.swapped:
            yield
            return
        gone, other = fault.swapped
        ended = threading.Event()

        def swap() -> None:
            while not ended.wait(0.1):
                # The fault of a disk that is there can be set again.
                try:
                    self.machine.set_fault(gone, "flush", "leave")
                except LabError:
                    self.machine.plug(gone, other)
                    return

        thread = threading.Thread(target=swap)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _prepare(self, fault: Fault, playbooks: Playbooks) -> None:
        if fault.shell:
            # Without the fault the run would show nothing.
            script = (
                f'#!/bin/sh\nset -e\n{fault.shell}\necho >> {SCRATCH}/shells\nset +e\nexec /bin/sh "$@"\n'
            )
            self._sh(f"mkdir -p {SCRATCH}; cat > {SCRATCH}/sh <<'END'\n{script}END\nchmod 755 {SCRATCH}/sh")
            variables = {"ansible_shell_executable": f"{SCRATCH}/sh"}
            path = playbooks.directory / "shell.yml"
            path.write_text(_inventory(self.machine.name, variables))
            playbooks.inventories.append(path)
        if fault.locale:
            self._install_locale(fault.locale)
        if fault.at_apply:
            ssh = f'host() {{ ssh -F {self.machine.ssh_config} {self.machine.name} "$@"; }}'
            lab = f'lab() {{ verb=$1; shift; (cd {ROOT} && {sys.executable} -m lab "$verb" {self.machine.name} "$@"); }}'
            # Standard input has the module.
            before_call(playbooks, self.machine.name, 2, f"({ssh}; {lab}; {fault.at_apply}) < /dev/null >&2")

    def _install_locale(self, name: str) -> None:
        """Give the machine a locale; this host has the same C library as its release, or a newer one."""
        target = self.directory / f"{name}.utf8"
        shutil.rmtree(target, ignore_errors=True)
        argv = ["localedef", "--no-archive", "-i", name, "-f", "UTF-8", str(target)]
        subprocess.run(argv, check=True, capture_output=True)
        archive = self.directory / "locale.tar"
        subprocess.run(["tar", "-C", str(self.directory), "-cf", str(archive), target.name], check=True)
        self.machine.put(archive, "/root/locale.tar")
        self._sh("tar -C /usr/lib/locale -xf /root/locale.tar; rm /root/locale.tar")
        assert f"{name}.utf8" in self._sh("locale -a")


def _inventory(host: str, variables: dict[str, str]) -> str:
    lines = "".join(f"      {name}: {value}\n" for name, value in variables.items())
    return f"databases:\n  hosts:\n    {host}:\n{lines}"


def told(result: Result) -> str:
    """Return what is to be read of a result that is not as it should be."""
    run, report = result.run, result.report
    lines = [f"{run.code} {report.get('verdict')}, error: {report.get('error')}"]
    lines += [f"  why: {why}" for why in report.get("why", [])]
    lines += [f"  warning: {warning}" for warning in report.get("warnings", [])]
    lines += [
        f"  {change['state']}: {change['target']} {change['setting']}" for change in report.get("changes", [])
    ]
    lines += [f"before: {sorted(result.before)}", f"during: {sorted(result.during)}"]
    lines += [f"after: {sorted(result.after)}", f"left: {result.left}"]
    return "\n".join(lines)


def messages(result: Result) -> str:
    """Return all that a run told its user."""
    return f"{result.run.output}\n{result.run.details}\n{result.report.get('error')}"


def faults_of(result: Result, fault: Fault) -> list[str]:
    """Return what is wrong with the result of a row; nothing if nothing is."""
    report, found = result.report, []
    verdict = report.get("verdict")
    if worse := result.during - result.before:
        found.append(f"less safe than before the run: {sorted(worse)}")
    if result.during and verdict in GOOD:
        found.append(f"{verdict}, with {sorted(result.during)}")
    if (result.run.code, verdict in fault.verdicts) != (fault.code, True):
        found.append(
            f"exit code {result.run.code}, {verdict}: expected {fault.code}, one of {fault.verdicts}"
        )
    if result.second:
        said = next(iter(result.second.reports.values()), {}).get("verdict")
        if (result.second.code, said in fault.verdicts) != (fault.code, True):
            found.append(f"a second run with the fault: exit code {result.second.code}, {said}")
    if not re.search(fault.says, messages(result)):
        found.append(f"no message has {fault.says!r}")
    again = result.again.reports.get(next(iter(result.again.reports), ""), {})
    if (result.again.code, again.get("verdict"), again.get("error")) != (0, "attested", None):
        found.append(f"the next run: {result.again.code}, {again.get('verdict')}, {again.get('error')}")
    if result.after:
        found.append(f"after the next run: {sorted(result.after)}")
    if result.left:
        found.append(f"left behind: {result.left}")
    return found


def cells(result: Result) -> tuple[str, str, str]:
    """Return what the table has of a result."""
    again = next(iter(result.again.reports.values()))
    host = "all is safe" if not result.during else "safer" if result.during < result.before else "as before"
    return (
        f"{result.run.code}, `{result.report.get('verdict', 'no report')}`",
        host,
        f"{result.again.code}, `{again['verdict']}`",
    )
