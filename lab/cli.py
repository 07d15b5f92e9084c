# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command line."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from lab import doctor
from lab.errors import LabError
from lab.kinds import pick
from lab.layout import Layout, load
from lab.machine import Machine, all_machines, image_for
from lab.paths import Lab
from lab.recipe import RELEASES

Command = Callable[[argparse.Namespace], int]
DEFAULT_LAYOUT = Path(__file__).parent / "layouts" / "default.yml"
SIMPLE = {
    "reset": "power cycle without shutdown",
    "cut": "end it at once, as a power cut does",
    "boot": "boot it again after a cut",
}
TAGGED = {"save": "keep disks, and memory where it can be kept", "load": "go back to what was kept"}


def main(argv: list[str]) -> int:
    """Run one command; return the exit code."""
    arguments = _parser().parse_args(argv)
    os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:{doctor.SBIN}"
    absent = doctor.missing()
    if absent and getattr(arguments, "install", False) and shutil.which("apt-get"):
        doctor.install(absent)
        absent = doctor.missing()
    if absent:
        print(doctor.advice(absent), file=sys.stderr)
        return 1
    try:
        command: Command = arguments.command
        return command(arguments)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m lab", description=sys.modules["lab"].__doc__)
    verbs = parser.add_subparsers(required=True, metavar="command")

    def add(verb: str, text: str, command: Command, *names: str) -> argparse.ArgumentParser:
        sub = verbs.add_parser(verb, help=text, description=text)
        sub.set_defaults(command=command, verb=verb)
        for name in names:
            sub.add_argument(name)
        return sub

    sub = add("doctor", "say what is missing", lambda _: _say("nothing is missing"))
    sub.add_argument("--install", action="store_true", help="install it with apt-get (root, or sudo)")
    _release(add("image", "build the root image", _image))
    up = add("up", "give a booted machine", _up, "name")
    up.add_argument("--layout", type=Path, default=DEFAULT_LAYOUT)
    _release(up)
    down = add("down", "end machines and delete them", _down)
    down.add_argument("name", nargs="*")
    down.add_argument("--all", action="store_true", help="every machine of this lab")
    for verb, text in SIMPLE.items():
        add(verb, text, _simple, "name")
    for verb, text in TAGGED.items():
        add(verb, text, _tagged, "name", "tag")
    add("unplug", "take a disk away", _unplug, "name", "serial")
    plug = add("plug", "bring a disk back", _plug, "name", "serial")
    plug.add_argument("--as", dest="replacement", metavar="SERIAL", help="an empty one with this serial")
    add("status", "list machines", _status)
    add("ssh", "log in, or run a command", _ssh, "name").add_argument("argv", nargs="*")
    return parser


def _release(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--release", choices=RELEASES, default=RELEASES[0])


def _say(text: str) -> int:
    print(text)
    return 0


def _image(arguments: argparse.Namespace) -> int:
    lab, layout, release = Lab.default(), Layout(), arguments.release
    return _say(str(image_for(lab, pick(lab, layout, release), layout, release).directory))


def _up(arguments: argparse.Namespace) -> int:
    machine = Machine(arguments.name)
    machine.up(load(arguments.layout), arguments.release)
    return _say(f"inventory: {machine.inventory}\nssh_config: {machine.ssh_config}")


def _down(arguments: argparse.Namespace) -> int:
    lab = Lab.default()
    if not arguments.all and not arguments.name:
        raise LabError("name a machine, or say --all")
    chosen = all_machines(lab) if arguments.all else [Machine(n, lab) for n in arguments.name]
    for machine in chosen:
        machine.down()
    return 0


def _simple(arguments: argparse.Namespace) -> int:
    getattr(Machine(arguments.name), arguments.verb)()
    return 0


def _tagged(arguments: argparse.Namespace) -> int:
    getattr(Machine(arguments.name), arguments.verb)(arguments.tag)
    return 0


def _unplug(arguments: argparse.Namespace) -> int:
    Machine(arguments.name).unplug(arguments.serial)
    return 0


def _plug(arguments: argparse.Namespace) -> int:
    Machine(arguments.name).plug(arguments.serial, arguments.replacement)
    return 0


def _status(_: argparse.Namespace) -> int:
    for machine in all_machines(Lab.default()):
        kind = machine.record().hardware.kind if machine.files.record.exists() else "unfinished"
        print(f"{machine.name}\t{kind}\t{'up' if machine.running else 'off'}\t{machine.ssh_config}")
    return 0


def _ssh(arguments: argparse.Namespace) -> int:
    """Replace this process by ssh; words are quoted, so that the guest sees the same ones."""
    machine = Machine(arguments.name)
    machine.record()
    command = [shlex.join(arguments.argv)] if arguments.argv else []
    os.execvp("ssh", ["ssh", "-F", str(machine.ssh_config), machine.name, *command])
