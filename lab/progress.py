# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Progress messages of long steps."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from lab.errors import LabError
from lab.reaper import reaped

HEARTBEAT = 10.0
_STARTED = time.monotonic()


def say(message: str) -> None:
    """Print one line on stderr, led by the seconds since this process started."""
    print(f"[{time.monotonic() - _STARTED:6.1f}s] {message}", file=sys.stderr, flush=True)


def stream(
    argv: list[str],
    log: Path,
    *,
    prefix: str = "",
    env: Mapping[str, str] | None = None,
    source: Path = Path(os.devnull),
) -> None:
    """Run `argv`, with `source` as its input, its output into `log`; show lines that start with `prefix`, and a heartbeat.

    The command ends with this process, however that ends. Raises LabError with the log's end if the command fails.
    """
    with (
        log.open("a") as out,
        source.open("rb") as given,
        subprocess.Popen(
            reaped(argv),
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=env,
        ) as process,
    ):
        assert process.stdout is not None
        _relay(process.stdout, out, prefix, argv[0])
    if process.returncode:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        raise LabError(f"{argv[0]} ended with {process.returncode} (all of it: {log}):\n{tail}")


def _relay(source: IO[bytes], out: IO[str], prefix: str, name: str) -> None:
    """Copy lines until end of file, showing those that start with `prefix`."""
    rest = ""
    with selectors.DefaultSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        while True:
            if not selector.select(HEARTBEAT):
                say(f"  ... {name} still works")
                continue
            chunk = os.read(source.fileno(), 65536)
            if not chunk:
                return
            *lines, rest = (rest + chunk.decode(errors="replace")).split("\n")
            for line in lines:
                print(line, file=out, flush=True)
                if prefix and line.startswith(prefix):
                    say(f"  {line.removeprefix(prefix)}")
