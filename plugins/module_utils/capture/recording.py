# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The responses of a host, call by call: recorded on a host, and replayed without it."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from ..host import bounds, json_text
from ..host.seam import READ_TIMEOUT, Host, Located, NoProgram, Result, Status, Unobservable

#: The version of the format. A recording of another one is refused.
SCHEMA = 1
#: The calls of the seam that only read.
CALLS = (
    "exists",
    "is_block_device",
    "link",
    "linked_directories",
    "locate",
    "mode",
    "names",
    "read",
    "resolve",
    "run",
    "way",
)

#: Those that change something.
_CHANGES = (
    *("change", "give_file", "hold", "make_lock", "make_mount_writable", "remove_file", "set_mount_atime"),
    *("set_mount_options", "sync", "sync_mount", "try_mount", "write_attribute", "write_file"),
)

#: A recording is plain JSON; its form is in tests/fixtures/README.md.
Recording = dict[str, Any]
#: {call: {its key: the answer, as JSON has it}}.
Calls = dict[str, dict[str, Any]]
_Answer = TypeVar("_Answer")


class NotRecorded(Exception):
    """A replay needs a call that its recording does not contain. It is not Unobservable, so that
    nothing takes it for a fact about the host."""


class LooksOnly(Exception):
    """Something tried to change a host through an object that only reads."""


def _refusal(call: str) -> Callable[..., NoReturn]:
    error = LooksOnly if call in _CHANGES else NotRecorded

    def refuse(_self: Host, *given: object, **_more: object) -> NoReturn:
        raise error(" ".join(map(str, (call, *given[:1]))))

    return refuse


class _LooksOnly(Host):
    """A host that refuses every call but CALLS.

    Daemons are not queried, and no file of others is read: the recorded commands query kernel and devices alone,
    and where databases' paths lead. A recording has no place for anything else.
    """

    def refused_mount_options(
        self, fstype: str, options: Sequence[str], timeout: float = READ_TIMEOUT
    ) -> dict[str, str] | None:
        """Return None: a capture is read without its kernel, and the options may hold secrets. The tables decide."""
        return None


for _call, _function in vars(Host).items():
    if callable(_function) and not _call.startswith("_") and _call not in (*CALLS, "refused_mount_options"):
        setattr(_LooksOnly, _call, _refusal(_call))


class RecordingHost(_LooksOnly):
    """Passes every question on to another host and keeps the last answer to each in `calls`."""

    def __init__(self, inner: Host) -> None:
        self._inner = inner
        self.calls: Calls = {call: {} for call in CALLS}

    def read(self, path: str) -> str:
        return self._keep("read", path, lambda: self._inner.read(path))

    def names(self, path: str) -> list[str]:
        return self._keep("names", path, lambda: self._inner.names(path))

    def exists(self, path: str) -> bool:
        return self._keep("exists", path, lambda: self._inner.exists(path))

    def mode(self, path: str) -> int:
        return self._keep("mode", path, lambda: self._inner.mode(path))

    def resolve(self, path: str) -> str:
        return self._keep("resolve", path, lambda: self._inner.resolve(path))

    def link(self, path: str) -> str:
        return self._keep("link", path, lambda: self._inner.link(path))

    def is_block_device(self, path: str) -> bool:
        return self._keep("is_block_device", path, lambda: self._inner.is_block_device(path))

    def run(self, argv: list[str], timeout: float = READ_TIMEOUT) -> Result:
        self._inner.until, self._inner.named_by = self.until, self.named_by
        return self._keep("run", json.dumps(argv), lambda: self._inner.run(argv, timeout))

    def locate(self, path: str, root: str = "", timeout: float = READ_TIMEOUT) -> Located:
        found: list[Located] = []

        def ask() -> list[Any]:
            found.append(self._inner.locate(path, root, timeout))
            status = found[0].status
            return [found[0].path, status.mode if status else None]

        self._inner.until, self._inner.named_by = self.until, self.named_by
        self._keep("locate", root + path, ask)
        return found[0]

    def way(self, path: str, root: str = "", timeout: float = READ_TIMEOUT) -> dict[str, Status]:
        found: dict[str, Status] = {}

        def ask() -> list[Any]:
            found.update(self._inner.way(path, root, timeout))
            return [word for passed, status in found.items() for word in (passed, status.user, status.mode)]

        self._inner.until, self._inner.named_by = self.until, self.named_by
        self._keep("way", root + path, ask)
        return found

    def linked_directories(
        self, path: str, most: int = bounds.FOUND, timeout: float = READ_TIMEOUT
    ) -> list[str]:
        self._inner.until, self._inner.named_by = self.until, self.named_by
        return self._keep(
            "linked_directories", path, lambda: self._inner.linked_directories(path, most, timeout)
        )

    def _keep(self, call: str, key: str, ask: Callable[[], _Answer]) -> _Answer:
        # The last, because some disks answer only the second time. They are queried in threads, and
        # storing one key in a dict is one step for all of them.
        try:
            answer = ask()
        except Unobservable as error:
            self.calls[call][key] = {
                "error": str(error),
                **({"no_program": True} if isinstance(error, NoProgram) else {}),
            }
            raise
        self.calls[call][key] = list(answer) if isinstance(answer, Result) else answer
        return answer


class ReplayHost(_LooksOnly):
    """Answers from a recording.

    What was not recorded raises NotRecorded. For a recording of another release, which queried other
    questions, `lenient` takes it for something that is not there.
    """

    def __init__(self, recording: Recording, lenient: bool = False) -> None:
        self._calls = recording["calls"]
        self._lenient = lenient

    def read(self, path: str) -> str:
        return str(self._answer("read", path))

    def names(self, path: str) -> list[str]:
        return list(self._answer("names", path))

    def exists(self, path: str) -> bool:
        return bool(self._answer("exists", path, False))

    def mode(self, path: str) -> int:
        return int(self._answer("mode", path))

    def resolve(self, path: str) -> str:
        return str(self._answer("resolve", path, path))

    def link(self, path: str) -> str:
        return str(self._answer("link", path))

    def is_block_device(self, path: str) -> bool:
        return bool(self._answer("is_block_device", path, False))

    def run(self, argv: list[str], timeout: float = READ_TIMEOUT) -> Result:
        return Result(*self._answer("run", json.dumps(argv)))

    def locate(self, path: str, root: str = "", timeout: float = READ_TIMEOUT) -> Located:
        before = ["test", "-e", path]
        if json.dumps(before) in self._calls.get("run", {}):
            # Recordings of earlier versions: a command looked, and then the kernel knew the way.
            self.run(before)
            there = self.exists(path)
            return Located(self.resolve(path) if there else path, _status(stat.S_IFDIR if there else None))
        where, mode = self._answer("locate", root + path, [path, None])
        return Located(where, _status(mode))

    def way(self, path: str, root: str = "", timeout: float = READ_TIMEOUT) -> dict[str, Status]:
        words = self._answer("way", root + path)
        return {
            str(passed): Status(0, 0, user, 0, mode)
            for passed, user, mode in zip(words[::3], words[1::3], words[2::3])
        }

    def linked_directories(
        self, path: str, most: int = bounds.FOUND, timeout: float = READ_TIMEOUT
    ) -> list[str]:
        before = ["find", path, "-mindepth", "1", "-maxdepth", "1", "-type", "l", "-xtype", "d", "-print0"]
        if json.dumps(before) in self._calls.get("run", {}):
            found = self.run(before)
            if found.rc != 0:
                raise Unobservable(" ".join(found.stderr.split()))
            return list(dict.fromkeys(map(self.resolve, sorted(found.stdout.split("\0")[:-1]))))
        return list(self._answer("linked_directories", path, []))

    def _answer(self, call: str, key: str, default: Any = None) -> Any:
        """Return what was recorded. `default` is what a lenient replay says without raising."""
        answers = self._calls.get(call, {})
        if key in answers:
            answer = answers[key]
            if isinstance(answer, dict):
                raise (NoProgram if "no_program" in answer else Unobservable)(answer["error"])
            return answer
        if not self._lenient:
            raise NotRecorded(f"{call} {key}: the recording does not hold it; capture this host again")
        if default is None:
            raise Unobservable(f"{key}: not in the recording")
        return default


def _status(mode: int | None) -> Status | None:
    return Status(0, 0, 0, 0, mode) if mode is not None else None


def dumps(recording: Recording) -> str:
    """Return a recording as ASCII text, the same for the same recording."""
    return json.dumps(recording, indent=1, sort_keys=True) + "\n"


def loads(text: str) -> Recording:
    """Return the recording in a text. Raises ValueError when it is none, or of another schema."""
    recording = json_text.loads(text)
    if not isinstance(recording, dict) or recording.get("schema") != SCHEMA:
        raise ValueError(f"not a recording of schema {SCHEMA}")
    return recording
