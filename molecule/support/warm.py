# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible's commands, imported once and forked for each run.

Of the three seconds of processor that a check of one host takes, two go into importing Ansible, into compiling the collection's
plugins, whose bytecode Ansible does not keep, and into packing its modules, the same each time. A server does all of it once:
the packed modules lie in its temporary directory, where each of its forks finds them. What runs in a fork is the command's own
`main`.

On the machine, half of what a module costs is that Python compiles it. A server that is told of a Python like the machines'
packs what that makes of each source beside it; a machine with another Python takes the source, as all do of a user.

This file is also the server's program, which runs with the Python of the Ansible that is asked for.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

#: The commands that a server knows, and their modules.
COMMANDS = {"ansible": "ansible.cli.adhoc", "ansible-playbook": "ansible.cli.playbook"}
#: What each run loads of Ansible's own plugins.
PLUGINS = {
    "strategy": ("linear",),
    "connection": ("ssh",),
    "shell": ("sh",),
    "callback": ("default",),
    "inventory": ("host_list", "script", "auto", "yaml", "ini", "toml"),
}
#: Seconds between two looks whether a host has answered. Ansible's own is a millisecond, and the processor that these looks
#: take is wanted by the machine that is to answer.
POLL = 0.01
#: What a fork answers when the command ended in a way that no command should.
_BROKEN = 250


class Ended(Exception):
    """A server or its fork ended without an answer."""


class Server:
    """A server for one environment: Ansible reads its configuration as it is imported."""

    def __init__(
        self, python: Path, environment: Mapping[str, str], compiler: str = "", collection: str = ""
    ) -> None:
        """Start one with a Python that has Ansible; `compiler`: a Python of the machines' version.

        `collection`: where the collection lies of which it runs playbooks, and those of no other.
        """
        # A run that was told to end may still write into it.
        self._directory = tempfile.TemporaryDirectory(prefix="warm-", ignore_cleanup_errors=True)
        path = f"{self._directory.name}/socket"
        self._said = Path(self._directory.name, "said")
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(path)
        listening.listen()
        self._path = path
        # A terminal or pipe of ours may be non-blocking, by an ssh that has it too: with such a one Ansible does not start.
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [str(python), __file__, str(listening.fileno()), compiler, collection],
                # What multiprocessing makes in a fork goes with the directory: a fork's end takes nothing away.
                env={**environment, "TMPDIR": self._directory.name},
                # It ends when this end of its standard input does: with us, however we end.
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=said,
                pass_fds=(listening.fileno(),),
            )
        listening.close()

    def run(self, command: str, arguments: list[str], directory: Path, output: Path, timeout: float) -> int:
        """Run a command in a directory, its output and errors into a file; return its exit code.

        Raises subprocess.TimeoutExpired after so many seconds, and Ended.
        """
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as connection:
            connection.settimeout(timeout)
            try:
                connection.connect(self._path)
                answers = connection.makefile("r")
                request = {"argv": [command, *arguments], "directory": str(directory), "output": str(output)}
                connection.sendall(f"{json.dumps(request)}\n".encode())
                fork = int(answers.readline() or 0)
                try:
                    code = answers.readline()
                except TimeoutError:
                    os.kill(fork, signal.SIGKILL)
                    raise subprocess.TimeoutExpired([command, *arguments], timeout) from None
            except (ConnectionError, ValueError) as error:
                raise self._ended(command, str(error)) from error
        if not code:
            raise self._ended(command, "its process ended without an answer")
        return int(code)

    def _ended(self, command: str, why: str) -> Ended:
        """Return the error, with what the server and its forks have said."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1)  # Python says last of all why it ends
        said = self._said.read_text(errors="replace") if self._said.exists() else ""
        return Ended(f"{command}: {why}\n{said}".rstrip())

    def close(self) -> None:
        """End it; what it still runs ends by itself."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()
        self._directory.cleanup()


def compiled(packed: bytes, compiler: str) -> bytes:
    """Return a packed module with the bytecode of each source beside it; as it is where that Python does not do it.

    It is bound to no time of its source, and Python passes one of another version over.
    """
    with tempfile.TemporaryDirectory(prefix="compiled-") as directory:
        with zipfile.ZipFile(io.BytesIO(packed)) as sources:
            sources.extractall(directory)
        words = [
            compiler,
            "-m",
            "compileall",
            "-q",
            "-b",
            "-s",
            directory,
            "--invalidation-mode",
            "unchecked-hash",
        ]
        if subprocess.run([*words, directory], check=False, stdout=subprocess.DEVNULL).returncode != 0:
            return packed
        target = io.BytesIO(packed)
        with zipfile.ZipFile(target, "a", zipfile.ZIP_DEFLATED) as both:
            for path in sorted(Path(directory).rglob("*.pyc")):
                both.write(path, path.relative_to(directory))
        return target.getvalue()


def pack_compiled(compiler: str) -> None:
    """Have all that Ansible packs from now on hold bytecode too; ansible-core before 2.19 packs as it does."""
    packed = getattr(importlib.import_module("ansible.executor.module_common"), "_CachedModule", None)
    if packed is None:
        return
    keep = packed.dump

    @functools.wraps(keep)
    def dump(self: object, path: str) -> None:
        # A frozen class, and nobody has read it yet but the one that waits for this.
        data = base64.b64encode(compiled(base64.b64decode(self.zip_data), compiler))  # type: ignore[attr-defined]
        object.__setattr__(self, "zip_data", data)
        keep(self, path)

    packed.dump = dump


def load_plugins(collection: Path) -> None:
    """Load the actions of a collection, and what each run loads of Ansible's own plugins."""
    loader = importlib.import_module("ansible.plugins.loader")
    loader.init_plugin_loader()
    # A command does this first, and once for each process: in a fork it is done.
    importlib.import_module("ansible.cli").init_plugin_loader = lambda _paths: None
    config = importlib.import_module("ansible.utils.collection_loader").AnsibleCollectionConfig
    config.playbook_paths = [str(collection / "playbooks")]
    actions = sorted(path.stem for path in (collection / "plugins/action").glob("[a-z]*.py"))
    for kind, names in {**PLUGINS, "action": [f"durable.dbhost.{name}" for name in actions]}.items():
        for name in names:
            getattr(loader, f"{kind}_loader").get(name, class_only=True)


def serve(listening: socket.socket, compiler: str, collection: str) -> None:
    """Fork for each request, until standard input ends."""
    if compiler:
        pack_compiled(compiler)
    mains = {name: importlib.import_module(module).main for name, module in COMMANDS.items()}
    importlib.import_module("ansible.constants").DEFAULT_INTERNAL_POLL_INTERVAL = POLL
    if collection:
        load_plugins(Path(collection))
    # What is there now stays: no fork has to look through it for garbage.
    gc.freeze()
    while True:
        ready, _writable, _broken = select.select([sys.stdin, listening], [], [], 1)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if sys.stdin in ready:
            return
        if listening in ready:
            connection, _address = listening.accept()
            if os.fork() == 0:
                answer(connection, mains)
            connection.close()


def answer(connection: socket.socket, mains: Mapping[str, object]) -> NoReturn:
    """Run one request and say its exit code. What is registered for the end of the process is the server's."""
    code = _BROKEN
    try:
        request = json.loads(connection.makefile("r").readline())
        connection.sendall(f"{os.getpid()}\n".encode())
        os.chdir(request["directory"])
        nothing = os.open(os.devnull, os.O_RDONLY)
        output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for own, standard in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(own, standard)
        sys.argv = request["argv"]
        code = _code_of(mains[sys.argv[0]])
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        connection.sendall(f"{code}\n".encode())
        os._exit(code)


def _code_of(main: object) -> int:
    """Return the exit code with which a command ends."""
    assert callable(main)
    try:
        code = main()
    except SystemExit as end:
        code = end.code
    return code if isinstance(code, int) else int(code is not None)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as given:
        serve(given, *sys.argv[2:])
