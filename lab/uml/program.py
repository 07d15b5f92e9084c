# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program: Debian's package user-mode-linux in a small root of its own, with the libc that it wants.

Each distribution of Debian has it, built of the sources of its own kernel. apt fetches it with lists and a cache of the lab's
own, checks it by the archive's signature, and nothing of it touches this host's own packages.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lab import mirror
from lab.errors import LabError
from lab.locks import locked
from lab.paths import Lab
from lab.progress import say

#: The distribution with the newest kernel.
NEWEST = "sid"
#: Of the distribution whose kernel it is.
PACKAGES = ("user-mode-linux", "libc6", "libgcc-s1")
#: Of the newest: Debian 11's does not find the UUID of a file system that Debian 12 has made.
BUSYBOX = "busybox-static"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
INIT = Path(__file__).parent / "init.sh"
#: The path of the first file system, inside.
INITRD = "/initrd"
#: Where the namespaces of a machine mount what is its own.
MOUNT_POINTS = ("dev", "proc", "run", "tmp")
#: Directories that Debian merged into /usr.
MERGED = ("bin", "lib", "lib64", "sbin")


@dataclass(frozen=True)
class Program:
    """The root directory that the program runs in; its name holds the versions, its parent's the distribution."""

    root: Path

    @property
    def version(self) -> str:
        """The package's version, and those of what it runs with."""
        return self.root.name


def ensure(lab: Lab, distribution: str) -> Program:
    """Return the newest program of a distribution in the cache with this first file system, or fetch it.

    Raises LabError, which says why it cannot be had.
    """
    found = _found(lab, distribution)
    if found is None:
        with locked(lab, f"uml-{distribution}"):
            found = _found(lab, distribution) or _fetch(lab, distribution)
    return found


def _found(lab: Lab, distribution: str) -> Program | None:
    roots = [path for path in lab.uml.glob(f"{distribution}/*+{_init_version()}") if path.is_dir()]
    return Program(max(roots, key=lambda path: path.stat().st_mtime)) if roots else None


def _init_version() -> str:
    return f"init_{hashlib.sha256(INIT.read_bytes()).hexdigest()[:8]}"


def _fetch(lab: Lab, distribution: str) -> Program:
    say(f"uml: fetching User Mode Linux of {distribution} from Debian's archive")
    work = lab.uml / distribution / ".fetching"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        versions = _download(work, distribution)
        root = work / "root"
        for package in sorted(work.glob("*.deb")):
            _run(["dpkg-deb", "--extract", str(package), str(root)])
        _complete(root)
        names = [f"{name}_{versions[name].replace(':', '.')}" for name in (*PACKAGES, BUSYBOX)]
        target = work.with_name("+".join([*names, _init_version()]))
        root.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return Program(target)


def _download(work: Path, distribution: str) -> dict[str, str]:
    """Download the packages of a distribution, and return their versions."""
    uri = mirror.mirror()
    if uri is None or not Path(KEYRING).exists():
        raise LabError("User Mode Linux comes from Debian's archive, and this host has no way to it")
    (work / "lists/partial").mkdir(parents=True)
    (work / "cache/archives/partial").mkdir(parents=True)
    sources = [f"deb [signed-by={KEYRING}] {uri} {name} main\n" for name in sorted({distribution, NEWEST})]
    (work / "sources.list").write_text("".join(sources))
    own = {
        "Dir::Etc::sourcelist": work / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": work / "lists",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": work / "cache",
        "Acquire::Languages": "none",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        "APT::Architecture": "amd64",
        # As root, apt would read as another user, who cannot come here.
        "APT::Sandbox::User": "root",
    }
    (work / "apt.conf").write_text("".join(f'{key} "{value}";\n' for key, value in own.items()))
    environment = {"APT_CONFIG": str(work / "apt.conf")}
    _run(["apt-get", "-qq", "update"], environment=environment)
    wanted = [*(f"{name}/{distribution}" for name in PACKAGES), f"{BUSYBOX}/{NEWEST}"]
    _run(["apt-get", "-qq", "download", *wanted], directory=work, environment=environment)
    names = (path.name.split("_") for path in work.glob("*.deb"))
    return {name: version.replace("%3a", ":") for name, version, _ in names}


def _complete(root: Path) -> None:
    """Add what packages do not hold: links to what was merged into /usr, mount points, the first file system."""
    for name in MERGED:
        if (root / "usr" / name).exists() and not (root / name).exists():
            (root / name).symlink_to(f"usr/{name}")
    for name in MOUNT_POINTS:
        (root / name).mkdir(exist_ok=True)
    shutil.rmtree(root / "usr/share", ignore_errors=True)
    first = root.with_name("first")
    (first / "bin").mkdir(parents=True)
    shutil.copy(root / "bin/busybox", first / "bin/busybox")
    shutil.copy(INIT, first / "init")
    (first / "init").chmod(0o755)
    script = 'cd "$1" && find . | cpio --quiet --create --format=newc --owner=0:0'
    (root / "initrd").write_bytes(_run(["sh", "-c", script, "pack", str(first)]))


def _run(argv: list[str], directory: Path | None = None, environment: dict[str, str] | None = None) -> bytes:
    done = subprocess.run(
        argv, cwd=directory, env={**os.environ, **(environment or {})}, capture_output=True, check=False
    )
    if done.returncode:
        raise LabError(
            f"{argv[0]} ended with {done.returncode}: {done.stderr.decode(errors='replace').strip()[-500:]}"
        )
    return done.stdout
