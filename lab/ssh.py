# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One shared ssh connection to a machine, and the files that let others use it too."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.locks import locked
from lab.paths import Lab, MachineFiles


def public_key(lab: Lab) -> str:
    """Return the lab's public key, making the pair on first use."""
    public = lab.key.with_suffix(".pub")
    with locked(lab, "key"):
        if not public.exists():
            lab.key.unlink(missing_ok=True)
            argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "dbhost-lab"]
            subprocess.run([*argv, "-f", str(lab.key)], check=True)
    return public.read_text().strip()


@dataclass(frozen=True)
class Connection:
    """How to reach one machine."""

    name: str
    files: MachineFiles

    def configure(self, lab: Lab, port: int) -> None:
        """Write ssh_config and inventory.yml for a machine whose ssh is at 127.0.0.1:`port`."""
        self.files.ssh_config.write_text(
            f"Host {self.name} 127.0.0.1\n"
            "  HostName 127.0.0.1\n"
            f"  Port {port}\n"
            "  User root\n"
            f'  IdentityFile "{lab.key}"\n'
            "  IdentitiesOnly yes\n"
            "  StrictHostKeyChecking no\n"
            f'  UserKnownHostsFile "{self.files.directory / "known_hosts"}"\n'
            "  LogLevel ERROR\n"
            "  ServerAliveInterval 15\n"
            "  ControlMaster auto\n"
            "  ControlPersist 3600\n"
            f'  ControlPath "{self.files.control}"\n'
        )
        control = f"-o ControlMaster=auto -o ControlPersist=3600 -o ControlPath={self.files.control}"
        host = {
            "ansible_host": "127.0.0.1",
            "ansible_port": port,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(lab.key),
            # ControlPath is named here too, or Ansible would keep a connection of its own that
            # hangs when a snapshot is loaded.
            "ansible_ssh_args": f"-F {shlex.quote(str(self.files.ssh_config))} {control}",
            "ansible_python_interpreter": "/usr/bin/python3",
        }
        inventory = {"all": {"hosts": {self.name: host}}}
        # JSON is YAML, and needs no library
        self.files.inventory.write_text(json.dumps(inventory, indent=2) + "\n")

    def run(
        self,
        argv: list[str],
        *,
        check: bool = True,
        input: str | None = None,
        timeout: float | None = 120.0,
    ) -> subprocess.CompletedProcess[str]:
        """Run `argv` as root in the machine.

        LabError if it does not end in time, and, with its output, if it fails and `check`.
        """
        try:
            done = subprocess.run(
                [*self._ssh(), self.name, "--", shlex.join(argv)],
                input="" if input is None else input,
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise LabError(
                f"{self.name}: {shlex.join(argv)[:100]!r} did not end within {timeout:.0f} s;"
                f" its console: {self.files.console}"
            ) from error
        if check and done.returncode:
            raise LabError(
                f"{self.name}: {shlex.join(argv)[:100]!r} ended with {done.returncode}\n"
                f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
        return done

    def put(self, local: Path, remote: str) -> None:
        """Copy one file, with its mode, to an absolute path in the machine."""
        mode = f"{local.stat().st_mode & 0o7777:o}"
        script = 'cat > "$1" && chmod "$2" "$1"'
        with local.open("rb") as source:
            done = subprocess.run(
                [
                    *self._ssh(),
                    self.name,
                    "--",
                    shlex.join(["sh", "-c", script, "put", remote, mode]),
                ],
                stdin=source,
                capture_output=True,
                check=False,
            )
        if done.returncode:
            raise LabError(f"{self.name}: cannot write {remote}: {done.stderr.decode()}")

    def close(self) -> None:
        """End the shared connection; it would hang after the machine jumps in time."""
        if self.files.control.exists():
            argv = [*self._ssh(), "-O", "exit", self.name]
            subprocess.run(argv, capture_output=True, timeout=10, check=False)
        self.files.control.unlink(missing_ok=True)

    def wait(self, limit: float, must_run: Callable[[], None] = lambda: None) -> None:
        """Return when a command can be run; LabError after `limit` seconds, or what `must_run` raises before."""
        deadline = time.monotonic() + limit
        argv = [*self._ssh(), "-o", "ConnectTimeout=10", self.name, "true"]
        while time.monotonic() < deadline:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
            if done.returncode == 0:
                return
            must_run()
            time.sleep(0.3)
        raise LabError(
            f"{self.name} is not reachable after {limit:.0f} s: "
            f"{done.stderr.decode().strip()}; its console: {self.files.console}"
        )

    def _ssh(self) -> list[str]:
        return ["ssh", "-F", str(self.files.ssh_config), "-o", "BatchMode=yes"]
