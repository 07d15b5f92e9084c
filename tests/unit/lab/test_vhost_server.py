# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The server as a program: its configuration, its control socket, its beginning and its end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lab.errors import LabError
from lab.vhost.config import load
from lab.vhost.server import Server
from tests.unit.lab.vhost_master import ROOT, Bench, Disk

VIRTIO = {"serial": "A", "bus": "virtio", "socket": "/x", "store": {"type": "file", "path": "/x"}}
SCSI = {"serial": "A", "bus": "scsi", "store": {"type": "file", "path": "/x"}}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], r"the configuration is \[\]: expected is a JSON object"),
        ({}, "lacks 'control'"),
        ({"control": "/c", "disk": []}, "unknown key 'disk'; known are control, scsi, disks"),
        ({"control": 7}, "'control' of the configuration is 7: expected is a str"),
        (
            {"control": "/c", "disks": [{**VIRTIO, "bus": "sata"}]},
            "bus 'sata': expected is one of virtio, scsi",
        ),
        ({"control": "/c", "disks": [{**VIRTIO, "serial": "x" * 21}]}, "expected are 1 to 20 ASCII"),
        ({"control": "/c", "disks": [{**VIRTIO, "fua": True}]}, "has fua: that is for the other bus"),
        ({"control": "/c", "disks": [{**SCSI, "socket": "/x"}]}, "has socket: that is for the other bus"),
        (
            {"control": "/c", "disks": [{k: VIRTIO[k] for k in ("serial", "bus", "store")}]},
            "lacks its socket",
        ),
        ({"control": "/c", "disks": [SCSI]}, "no socket `scsi`"),
        ({"control": "/c", "disks": [VIRTIO, VIRTIO]}, "two disks have the serial A"),
        ({"control": "/c", "scsi": "/s", "disks": [{**SCSI, "target": 64}]}, "expected is 0 to 63"),
        ({"control": "/c", "scsi": "/s", "disks": [{**SCSI, "wwn": "lab"}]}, "hexadecimal"),
        ({"control": "/c", "scsi": "/s", "disks": [{**SCSI, "wwn": "0x1" + "0" * 16}]}, "64 bits"),
    ],
)
def test_a_wrong_configuration_is_told(tmp_path: Path, words: Any, message: str) -> None:
    """What was seen, and what is wanted."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(words))
    with pytest.raises(LabError, match=message):
        load(path)


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ({"type": "tape"}, "type 'tape': expected is one of file, overlay, python"),
        ({"type": "file"}, "a file store lacks 'path'"),
        ({"type": "python", "factory": "no.such:thing"}, "no factory 'no.such:thing'"),
        ({"type": "python", "factory": "os:thing"}, "no factory 'os:thing'"),
        (
            {"type": "python", "factory": "proof.vhost_store:ack", "arguments": {"x": 1}},
            "does not take its arguments",
        ),
    ],
)
def test_a_wrong_store_is_told(tmp_path: Path, store: dict[str, Any], message: str) -> None:
    """Before any socket appears."""
    bench = Bench(tmp_path, {"serial": "A", "bus": "virtio", "store": store})
    with pytest.raises(LabError, match=message):
        Server(load(bench.config))
    assert not bench.socket("control").exists()


def test_the_program_says_what_is_wrong(tmp_path: Path) -> None:
    """On standard error, with status 1."""
    bench = Bench(
        tmp_path, {"serial": "A", "bus": "virtio", "store": {"type": "file", "path": str(tmp_path / "none")}}
    )
    for config, message in ((bench.config, "No such file"), (tmp_path / "missing.json", "cannot read")):
        argv = [sys.executable, "-m", "lab.vhost", str(config)]
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert message in done.stderr and "Traceback" not in done.stderr


def test_the_program_ends_by_a_signal(tmp_path: Path) -> None:
    """And takes its sockets away; what a killed one left is no obstacle to the next."""
    bench = Bench(tmp_path, {"serial": "A", "bus": "virtio"})
    for number, status in ((signal.SIGKILL, -9), (signal.SIGTERM, 0)):
        process = subprocess.Popen([sys.executable, "-m", "lab.vhost", str(bench.config)], cwd=ROOT)
        deadline = time.monotonic() + 10
        while not _answers(bench):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait(10) == status
    assert not list(tmp_path.glob("*.sock"))


def _answers(bench: Bench) -> bool:
    try:
        bench.tell("stats")
    except OSError:
        return False
    return True


def test_a_socket_that_is_in_use_is_not_taken(tmp_path: Path) -> None:
    """Nor is a path that is too long."""
    bench = Bench(tmp_path, {"serial": "A", "bus": "virtio"})
    with bench.served(), pytest.raises(LabError, match="another process listens"):
        Server(load(bench.config))
    words = json.loads(bench.config.read_text()) | {"scsi": f"/tmp/{'x' * 110}"}
    bench.config.write_text(json.dumps(words))
    with pytest.raises(LabError, match="103 fit"):
        Server(load(bench.config))


def test_commands_that_are_wrong(tmp_path: Path) -> None:
    """Each is answered with what was seen and what is wanted, and the server goes on."""
    with Bench(tmp_path, {"serial": "A", "bus": "virtio"}, {"serial": "B", "bus": "scsi"}).served() as bench:
        assert "expected is {" in bench.answer("[]")["error"]
        assert "Expecting value" in bench.answer("unplug A")["error"]
        assert "one of stats" in bench.refusal("explode")
        assert bench.refusal("unplug") == "unplug: 'serial' is None, expected is a str"
        assert bench.refusal("stats", serial="A") == "stats: unknown 'serial'; expected is nothing"
        assert bench.refusal("unplug", serial="C") == "there is no disk 'C', only A, B"
        assert bench.refusal("set_cache", serial="A", on=1) == "set_cache: 'on' is 1, expected is a bool"
        assert "only SCSI disks are reset" in bench.refusal("reset", serial="A")
        assert "there is a disk B" in bench.refusal("plug", disk={**SCSI, "serial": "B"})
        taken = {"serial": "C", "bus": "scsi", "target": 0, "store": bench.file("C")}
        assert "target 0 is that of disk B" in bench.refusal("plug", disk=taken)
        assert "No such file" in bench.refusal("plug", disk=SCSI | {"serial": "D"})
        assert list(bench.tell("stats")) == ["A", "B"]


def test_commands_may_come_in_pieces_and_together(tmp_path: Path) -> None:
    """A line is a command; a line without end is none."""
    with Bench(tmp_path).served() as bench, socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(bench.socket("control")))
        connection.sendall(b'{"command"')
        connection.sendall(b': "stats"}\n{"command": "stats"}\n')
        with connection.makefile() as lines:
            assert [lines.readline(), lines.readline()] == ['{"return": {}}\n'] * 2
        connection.sendall(b"x" * 70000)
        assert connection.recv(1) == b""


def test_a_failed_write_is_an_error_of_the_disk(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Told to the guest and on standard error, and counted."""
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    store = {"type": "python", "factory": "tests.unit.lab.vhost_master:full"}
    with Bench(tmp_path, {"serial": "A", "bus": "virtio", "store": store}).served() as bench:
        disk = Disk(bench.socket("A"))
        assert disk.do(1, 0, bytes(512))[0] == 1
        assert bench.tell("stats")["A"]["failed"] == 1
        disk.close()
    assert "disk A: write at 0 failed" in capfd.readouterr().err
