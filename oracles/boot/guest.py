# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on the machine: restores its files, plants what the next boot meets, and assesses the machine. Prints JSON.

python3 -m oracles.boot.guest snapshot
python3 -m oracles.boot.guest round < JSON with `undo`, `restart`, `plant`, `reload`, `inputs`
python3 -m oracles.boot.guest assess < JSON with `inputs`
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

#: What a saboteur may write to. A restored machine has in these what it had at the snapshot.
ROOTS = (
    *("/etc", "/usr/local", "/lib/udev", "/lib/systemd", "/lib/tmpfiles.d", "/lib/modprobe.d"),
    *("/var/spool/cron", "/run/systemd/system", "/run/udev/rules.d", "/run/tmpfiles.d"),
    *("/root/.my.cnf", "/srv/pgdata/main/postgresql.auto.conf", "/srv/pgdata/main/postgresql.conf"),
)
#: Changed by the system itself, and nothing that a boot depends on.
_PASSED = (
    "/etc/mtab",
    "/etc/.pwd.lock",
    "/etc/resolv.conf",
    "/etc/adjtime",
    "/etc/machine-id",
    "/etc/ld.so.cache",
)
HOME = Path("/root/boot-oracle")
_PRODUCT = "ansible_collections.durable.dbhost.plugins.module_utils"
_EXECUTABLE, _PLAIN = 0o755, 0o644


def snapshot() -> dict[str, Any]:
    """Copy all files below ROOTS, and note how they are."""
    shutil.rmtree(HOME, ignore_errors=True)
    for root in ROOTS:
        if os.path.lexists(root):
            target = f"{HOME}{root}"
            os.makedirs(os.path.dirname(target), exist_ok=True)
            subprocess.run(["cp", "-a", "--no-dereference", f"{os.path.realpath(root)}", target], check=True)
    _note()
    return {}


def restore() -> list[str]:
    """Bring all files below ROOTS to what they were at the snapshot; return the paths that were not."""
    noted: dict[str, list[int]] = json.loads((HOME / "noted.json").read_text())
    found = _found()
    changed = [path for path in {*noted, *found} if noted.get(path) != found.get(path)]
    # What is in a directory goes before it, and comes after it.
    for path in sorted(changed, reverse=True):
        if path not in noted:
            _remove(path)
    for path in sorted(changed):
        if path in noted:
            original = f"{HOME}{path}"
            if os.path.isdir(original) and not os.path.islink(original):
                os.makedirs(path, exist_ok=True)
                shutil.copystat(original, path)
                continue
            _remove(path)
            subprocess.run(["cp", "-a", "--no-dereference", original, path], check=True)
    if changed:
        _note()
    return sorted(changed)


def plant(items: list[dict[str, Any]]) -> None:
    """Write the files, programs and links of saboteurs, and run their commands. Raises CalledProcessError."""
    for item in items:
        for path, text in item["files"].items():
            _write(path, text, _PLAIN)
        for path, text in item["programs"].items():
            _write(path, text, _EXECUTABLE)
        for path, target in item["links"].items():
            os.makedirs(os.path.dirname(path), exist_ok=True)
            _remove(path)
            os.symlink(target, path)
        _shell(item["run"])


def assess(inputs: dict[str, Any]) -> dict[str, Any]:
    """Return what the collection says of this machine: `verdict`, `why`, `settings` and `warnings`."""
    host = importlib.import_module(f"{_PRODUCT}.host.seam").Host()
    facts = importlib.import_module(f"{_PRODUCT}.host_facts")
    results = importlib.import_module(f"{_PRODUCT}.policy.show.results")
    known = importlib.import_module(f"{_PRODUCT}.policy.expect.inputs").Inputs
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    found = facts.collect(host, now, None, "guarded")
    answer = {"ansible_facts": found.facts, "failures": found.failures, "looked_at": found.looked_at}
    assessed = results.assess_answer(known(**inputs), now, answer)
    return {name: assessed[name] for name in ("verdict", "why", "settings", "warnings")}


def run(question: dict[str, Any]) -> dict[str, Any]:
    """Restore the machine, plant, assess, and write all to the disks."""
    spent = {}
    started = time.monotonic()
    for script in question["undo"]:
        _shell(script)
    changed = restore()
    if changed:
        subprocess.run(["systemctl", "daemon-reload"], check=False)
        subprocess.run(["udevadm", "control", "--reload"], check=False)
    if any("/udev/" in path for path in changed):
        # Properties that a rule of the last round set are in udev's database until the next event.
        subprocess.run(["udevadm", "trigger", "--subsystem-match=block", "--settle"], check=False)
    for unit in question["restart"]:
        subprocess.run(["systemctl", "restart", unit], check=False)
    spent["restore"] = time.monotonic() - started
    plant(question["plant"])
    if question["reload"]:
        subprocess.run(["systemctl", "daemon-reload"], check=False)
    spent["plant"] = time.monotonic() - started - spent["restore"]
    said = assess(question["inputs"])
    os.sync()
    spent["assess"] = time.monotonic() - started - spent["restore"] - spent["plant"]
    return {**said, "restored": changed, "spent": spent}


def _note() -> None:
    (HOME / "noted.json").write_text(json.dumps(_found()))


def _found() -> dict[str, list[int]]:
    """Return {path: what changes with each change of it} of all below ROOTS."""
    found: dict[str, list[int]] = {}
    for root in ROOTS:
        for directory, names, files in os.walk(root):
            for path in (directory, *(os.path.join(directory, name) for name in (*files, *names))):
                _add(found, path)
        if not os.path.isdir(root) and os.path.lexists(root):
            _add(found, root)
    return {path: noted for path, noted in found.items() if path not in _PASSED}


def _add(found: dict[str, list[int]], path: str) -> None:
    status = os.lstat(path)
    is_directory = os.path.isdir(path) and not os.path.islink(path)
    found[path] = [
        status.st_mode,
        *([] if is_directory else [status.st_size, status.st_ino, status.st_ctime_ns]),
    ]


def _write(path: str, text: str, mode: int) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    # Not through a link: what it leads to may belong to no snapshot.
    if os.path.islink(path):
        os.remove(path)
    Path(path).write_text(text, encoding="utf-8")
    os.chmod(path, mode)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.remove(path)


def _shell(script: str) -> None:
    if script:
        done = subprocess.run(["sh", "-euc", script], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{script!r} exits with {done.returncode}: {done.stdout}{done.stderr}")


def main(verb: str) -> None:
    """Do one of the verbs."""
    question = json.load(sys.stdin)
    if verb == "snapshot":
        found = snapshot()
    elif verb == "round":
        found = run(question)
    else:
        found = assess(question["inputs"])
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
