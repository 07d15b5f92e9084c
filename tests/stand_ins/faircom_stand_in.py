# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for FairCom DB: it opens its logs and data as ctsrvr.cfg says, and logs to CTSTATUS.FCS.

Its configuration is named by CTSRVR_CFG on the command line or FCSRVR_CFG, or is
`../config/ctsrvr.cfg` beside its program, or `ctsrvr.cfg` where it runs. FAIRCOM_STAND_IN_VERSION is what it says
it is; builds before V10.3.1.21834 ask for O_SYNC through fcntl(2), as the real ones did, in vain.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import sys
import time
from types import FrameType

VERSION = os.environ.get("FAIRCOM_STAND_IN_VERSION", "V12.0.1.214(Build-230103)")
_PAIR = re.compile(r"\s*([A-Za-z0-9_.]+)[ \t]+(.*?)\s*")
_FIXED = (10, 3, 1, 21834)


class Settings:
    """What it read from ctsrvr.cfg and its command line, which has the last word."""

    def __init__(self) -> None:
        words = sys.argv[1:]
        pairs = {words[i].upper(): words[i + 1] for i in range(len(words) - 1)}
        self.keywords: dict[str, str] = {}
        self.options: set[str] = set()
        for path in self._paths(pairs):
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="surrogateescape") as handle:
                    self._read(handle.read())
                break
        self.keywords.update({key: pairs[key] for key in ("LOCAL_DIRECTORY", "COMMIT_DELAY") if key in pairs})
        self.local = os.path.abspath(self.keywords.get("LOCAL_DIRECTORY", "."))
        if int(self.keywords.get("DELAYED_DURABILITY", "0")) > 0:
            self.options.discard("LOG_WRITETHRU")

    def _paths(self, pairs: dict[str, str]) -> list[str]:
        named = pairs.get("CTSRVR_CFG") or os.environ.get("FCSRVR_CFG")
        base = os.path.dirname(os.path.dirname(os.path.realpath("/proc/self/exe")))
        return [named] if named else [f"{base}/config/ctsrvr.cfg", "ctsrvr.cfg"]

    def _read(self, text: str) -> None:
        text = re.sub(r"(?ims)^[ \t]*SUBSYSTEM\b.*?\{.*?^[ \t]*\}", "", text)
        for line in text.split("\n"):
            pair = _PAIR.fullmatch(line)
            if pair and pair[1].upper() == "COMPATIBILITY":
                self.options.add(pair[2].upper())
            elif pair:
                self.keywords[pair[1].upper()] = pair[2]

    def place(self, keyword: str, default: str) -> str:
        """Return a path that begins as a keyword says, below LOCAL_DIRECTORY unless it is absolute."""
        return os.path.join(self.local, self.keywords.get(keyword, default))


class Status:
    """CTSTATUS.FCS: each message below the time when it was said."""

    def __init__(self, directory: str) -> None:
        self.handle = open(  # noqa: SIM115 (open while it runs)
            f"{directory}/CTSTATUS.FCS", "a", encoding="utf-8", buffering=1
        )

    def say(self, words: str) -> None:
        """Log one message."""
        self.handle.write(f"\n{time.ctime()}\n - User# 00001\t{words}\n")


def main() -> None:
    """Open the files, say so, and write a log record twice a second until SIGTERM."""
    stopping: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        stopping.append(number)

    signal.signal(signal.SIGTERM, stop)
    settings = Settings()
    os.makedirs(settings.local, exist_ok=True)
    status = Status(settings.local)
    status.say("This is a stand-in for FairCom DB.")
    status.say(f"Process ID: {os.getpid()}")
    synchronous = bool(settings.options & {"LOG_WRITETHRU", "SYNC_LOG"})
    if synchronous:
        status.say("Transaction logs using synchronous I/O.")
    data = f"{settings.local}/stand_in"
    log = open_file(settings.place("LOG_ODD", "L") + "0000001.FCS", synchronous)
    open_file(settings.place("LOG_EVEN", "L") + "0000002.FCS", synchronous)
    open_file(settings.place("START_EVEN", "S") + "0000000.FCS", False)
    open_file(f"{data}.dat", "TDATA_WRITETHRU" in settings.options)
    open_file(f"{data}.idx", "TINDEX_WRITETHRU" in settings.options)
    status.say(f"FairCom DB {VERSION} Server Is Operational       -SN 00000000")
    late = int(settings.keywords.get("DELAYED_DURABILITY", "0")) > 0
    while not stopping:
        os.pwrite(log, str(time.time_ns()).encode(), 0)
        if not synchronous and not late:
            os.fdatasync(log)
        time.sleep(0.5)
    status.say("Server shutdown initiated")
    status.say("Server shutdown completed")


def open_file(path: str, synchronous: bool) -> int:
    """Open a file as this build opens those that shall be written through."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    numbers = re.search(r"V(\d+(?:\.\d+)+)", VERSION)
    works = not numbers or tuple(map(int, numbers[1].split("."))) >= _FIXED
    flags = os.O_RDWR | os.O_CREAT
    descriptor = os.open(path, flags | (os.O_SYNC if synchronous and works else 0), 0o660)
    if synchronous and not works:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_SYNC)
    return descriptor


if __name__ == "__main__":
    main()
