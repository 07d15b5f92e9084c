# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host made of dicts, which records every change and can die at any of them."""

from __future__ import annotations

import os
import posixpath
import stat
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Union

from ansible_collections.durable.dbhost.plugins.module_utils.host import bounds, foreign
from ansible_collections.durable.dbhost.plugins.module_utils.host.mountinfo import Mount, parse_mountinfo
from ansible_collections.durable.dbhost.plugins.module_utils.host.paths import normal
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import (
    ASK_TIMEOUT,
    CHANGE_TIMEOUT,
    READ_TIMEOUT,
    ChangeFailed,
    Held,
    Host,
    Located,
    NoAnswer,
    NoProgram,
    Part,
    Result,
    Status,
    TooLong,
    TrialRefused,
    Unobservable,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host.unix_sockets import (
    INODE,
    HeldSocket,
    Listener,
)

#: What a path or command says: a text, an exception, or a function that returns or raises one.
Answer = Union[str, Exception, Callable[[], str]]
#: What a command says: as above with exit code 0, or its whole result.
Outcome = Union[str, Exception, Result, Callable[[], Union[str, Result]]]
#: One change, in the order in which it was asked: ("change", *argv), ("attribute", path, value),
#: ("file", path, content), ("remove", path), ("options", mount point, *options), ("atime", mount point, value),
#: ("trial", image, type, steps).
Mutation = tuple[Any, ...]
#: How owner and mode are asked for.
STATUS = ["stat", "--format=%u %f", "--"]


class Killed(BaseException):
    """The process was killed: nothing after it happens, `finally` clauses included."""


class Tree(UserDict[str, Any]):
    """A dict by path, which knows what lies in each directory without searching for it each time."""

    def __init__(self) -> None:
        self._below: dict[str, dict[str, int]] = {}
        super().__init__()

    def __setitem__(self, path: str, value: Any) -> None:
        if path not in self.data:
            self._count(path, 1)
        super().__setitem__(path, value)

    def __delitem__(self, path: str) -> None:
        super().__delitem__(path)
        self._count(path, -1)

    def children(self, directory: str) -> set[str]:
        """Return the names in a directory."""
        return {name for name, paths in self._below.get(directory, {}).items() if paths}

    def is_directory(self, path: str) -> bool:
        """Say whether anything lies below a path."""
        return any(self._below.get(path, {}).values())

    def _count(self, path: str, by: int) -> None:
        head, _slash, tail = path.rpartition("/")
        while tail:
            names = self._below.setdefault(head, {})
            names[tail] = names.get(tail, 0) + by
            head, _slash, tail = head.rpartition("/")


class Links(Tree):
    """Links by path; where a path leads is found once, until a link changes."""

    def __init__(self) -> None:
        self._found: dict[str, str] = {}
        super().__init__()

    def __setitem__(self, path: str, target: str) -> None:
        self._found.clear()
        super().__setitem__(path, target)

    def __delitem__(self, path: str) -> None:
        self._found.clear()
        super().__delitem__(path)

    def resolve(self, path: str) -> str:
        """Follow all links of a path, the last one too."""
        if path not in self._found:
            place = self.resolve_directory(path)
            self._found[path] = self.resolve(self.data[place]) if place in self.data else place
        return self._found[path]

    def resolve_directory(self, path: str) -> str:
        """Follow the links in the directories above a path."""
        head, _slash, tail = path.rpartition("/")
        return f"{self.resolve(head)}/{tail}" if head else path


class FakeHost(Host):
    """Reads from dicts; `effects` says what a change does.

    `files`: path -> content; `links`: path -> target, absolute; `commands`: argv -> output, or a
    whole Result; `modes`: path -> permission bits, where they are not 0644; `uids`: path -> owner, where
    that is not root; `block_devices`: paths; `pipes`: paths of `files` that are none; `hung`: paths on a
    disk that does not answer; `unreadable`: path -> why what others own is not read there; `owned`: path ->
    what the kernel tells of it, where it matters; `asked`: commands, `questions`: what was looked at or read
    of what others own; `listening`: path of a socket file -> number of the socket that listens there;
    `daemons`: (address, port) -> what is answered to a question;
    `environment`: what the last change was given; `stop`: what is raised at mutation number `stop_at`
    (from 1), instead of its effect.
    """

    until = float("inf")
    mains: Mapping[int, Any] = MappingProxyType({})
    whose = "nobody"
    named_by: foreign.Identity | None = None
    follows_owners = False
    #: As whom the process acts.
    acts_as = 0

    def user(self) -> int:
        return self.acts_as

    def __init__(self) -> None:
        self.files = Tree()
        self.links = Links()
        self.commands: dict[tuple[str, ...], Outcome] = {}
        self.modes: dict[str, int] = {}
        self.uids: dict[str, int] = {}
        self.written_as: dict[str, int] = {}
        self.block_devices: set[str] = set()
        self.pipes: set[str] = set()
        self.hung: tuple[str, ...] = ()
        self.unreadable: dict[str, str] = {}
        self.owned: dict[str, Status] = {}
        self.daemons: dict[tuple[str, int], Callable[[bytes], bytes]] = {}
        self.listening: dict[str, int] = {}
        #: The process that listens at each held socket.
        self.listener = 0
        self.mutations: list[Mutation] = []
        #: Locks that a process holds.
        self.held: set[str] = set()
        self.environment: dict[str, str] = {}
        #: The environment of each command with a secret.
        self.secrets: list[dict[str, str]] = []
        self.asked: list[tuple[str, ...]] = []
        self.questions: list[tuple[str, ...]] = []
        #: {type of file system: the options that the kernel knows}, of those for which it can be queried.
        self.options_known: dict[str, set[str]] = {}
        self.queried: list[tuple[str, tuple[str, ...]]] = []
        self.stop_at = 0
        self.stop: type[BaseException] = Killed
        self.after_mutation: Callable[[], None] = lambda: None

    def read(self, path: str) -> str:
        text = self._full_text(path)
        if len(text) > bounds.OUTPUT:
            raise TooLong(f"{path}: longer than {bounds.OUTPUT} bytes")
        return text

    def _full_text(self, path: str) -> str:
        path = self.resolve(path)
        assert path not in self.pipes, f"{path}: whoever reads a pipe waits for ever"
        if path in self.files:
            text = said(self.files[path])
            assert isinstance(text, str)
            return text
        raise Unobservable(f"{path}: {os.strerror(21 if self._children(path) else 2)}")

    def lines(self, path: str) -> Iterator[str]:
        text = said(self.files[self.resolve(path)])
        assert isinstance(text, str)
        yield from text.split("\n")

    def names(self, path: str) -> list[str]:
        found = self._children(self.resolve(path))
        if not found:
            raise Unobservable(f"{path}: No such file or directory")
        return sorted(found)

    def exists(self, path: str) -> bool:
        path = self.links.resolve_directory(path)
        if path in self.files.data or path in self.links.data:
            return True
        directory = path.rstrip("/")
        return self.files.is_directory(directory) or self.links.is_directory(directory)

    def resolve(self, path: str) -> str:
        return self.links.resolve(path)

    def link(self, path: str) -> str:
        path = self.links.resolve_directory(path)
        if path in self.links:
            return self.links[path]
        raise Unobservable(f"{path}: {os.strerror(22 if self.exists(path) else 2)}")

    def is_block_device(self, path: str) -> bool:
        return self.resolve(path) in self.block_devices

    def mode(self, path: str) -> int:
        path = self.resolve(path)
        if path in self.modes or path in self.files:
            return self.modes.get(path, 0o644)
        raise Unobservable(f"{path}: No such file or directory")

    def run(self, argv: list[str], timeout: float = READ_TIMEOUT) -> Result:
        self.asked.append(tuple(argv))
        if tuple(argv) not in self.commands and argv[:3] == STATUS:
            return self._status(argv[3:])
        if tuple(argv) not in self.commands and argv[:2] == ["test", "-e"]:
            return Result(0 if self.exists(argv[2]) else 1, "", "")
        if tuple(argv) not in self.commands and argv[:2] == ["udevadm", "info"]:
            # Its database has block devices alone.
            argv = ["udevadm", "info", "--export-db"]
        if tuple(argv) not in self.commands:
            raise NoProgram(f"{argv[0]}: No such file or directory")
        outcome = said(self.commands[tuple(argv)])
        return outcome if isinstance(outcome, Result) else Result(0, outcome, "")

    def run_with_secret(
        self, argv: list[str], environment: Mapping[str, str], timeout: float = READ_TIMEOUT
    ) -> Result:
        self.secrets.append(dict(environment))
        return self.run(argv, timeout)

    def ask(
        self,
        address: str,
        port: int,
        questions: Sequence[bytes],
        is_whole: Callable[[bytearray], bool],
        timeout: float = ASK_TIMEOUT,
    ) -> list[bytes]:
        if (address, port) not in self.daemons:
            raise Unobservable(f"{address} port {port}: Connection refused")
        answers = [self.daemons[address, port](question) for question in questions]
        if not all(is_whole(bytearray(answer)) for answer in answers):
            raise Unobservable(f"{address} port {port}: no answer within {timeout:g} s")
        return answers

    def hold_socket(self, path: str, timeout: float = READ_TIMEOUT) -> HeldSocket:
        if path not in self.files:
            raise Unobservable(f"{path}: No such file or directory")
        return HeldSocket(f"/proc/4242/fd/{sorted(self.files).index(path)}", self.status(path).inode, "22")

    def listeners(self, timeout: float = ASK_TIMEOUT) -> list[Listener]:
        return [
            Listener(number, "8:1", self.status(path).inode & INODE)
            for path, number in self.listening.items()
        ]

    def socket_listener(self, path: str, timeout: float = ASK_TIMEOUT) -> int:
        return self.listener

    def locate(self, path: str, root: str = "", timeout: float = READ_TIMEOUT) -> Located:
        self.questions.append(("locate", root + path))
        inside = self._inside(root, path)
        return Located(inside, self.status(root + inside) if self._is_there(root + inside) else None)

    def read_part(
        self,
        path: str,
        root: str = "",
        limit: int = bounds.OUTPUT,
        at_end: bool = False,
        flush: bool = False,
        timeout: float = READ_TIMEOUT,
    ) -> Part | None:
        self.questions.append(("read", root + path, *(["flush"] if flush else [])))
        inside = self._inside(root, path)
        if not self._is_there(root + inside):
            return None
        if not stat.S_ISREG(self.status(root + inside).mode):
            raise Unobservable(f"{path}: not a regular file")
        if root + inside in self.unreadable:
            raise Unobservable(f"{path}: {self.unreadable[root + inside]}")
        content = self.content(root + inside)
        return Part(inside, self.status(root + inside), content[-limit:] if at_end else content[:limit])

    def way(self, path: str, root: str = "", timeout: float = READ_TIMEOUT) -> dict[str, Status]:
        self.questions.append(("way", root + path))
        passed: dict[str, Status] = {"/": self.status("/")}
        for followed in self._followed(root, path):
            parts = followed.split("/")
            for part in ("/".join(parts[:count]) for count in range(2, len(parts) + 1)):
                there = self.links.resolve_directory(root + part)
                if there in self.links.data:
                    passed[part] = self.status(there)._replace(mode=stat.S_IFLNK | 0o777)
                    break
                if not self._is_there(there):
                    raise Unobservable(f"{path}: No such file or directory")
                passed[part] = self.status(there)
        return passed

    def list_names(self, path: str, root: str = "", timeout: float = READ_TIMEOUT) -> list[str] | None:
        self.questions.append(("names", root + path))
        inside = self._inside(root, path)
        if not self._is_there(root + inside):
            return None
        if not stat.S_ISDIR(self.status(root + inside).mode):
            raise Unobservable(f"{path}: not a directory")
        return sorted(self._children(root + inside))

    def linked_directories(
        self, path: str, most: int = bounds.FOUND, timeout: float = READ_TIMEOUT
    ) -> list[str]:
        found: dict[str, None] = {}
        for name in self.list_names(path) or ():
            if f"{path}/{name}" in self.links.data:
                try:
                    real = self._inside("", f"{path}/{name}")
                except Unobservable:
                    continue
                if stat.S_ISDIR(self.status(real).mode):
                    found[real] = None
        return list(found)[:most]

    def find_files(
        self,
        path: str,
        root: str = "",
        most: int = bounds.FOUND,
        depth: int = 1,
        smallest: int = 0,
        ending: str = "",
        timeout: float = READ_TIMEOUT,
    ) -> list[str]:
        top = root + self._inside(root, path)
        found = [name[len(top) + 1 :] for name in self.files if name.startswith(f"{top}/")]
        return [
            name
            for name in found
            if name.count("/") < depth and name.endswith(ending) and self.size(f"{top}/{name}") >= smallest
        ][:most]

    def size(self, path: str) -> int:
        """Return how large a file is."""
        return len(self.content(path))

    def sync(self, path: str, whole: bool = False, timeout: float = CHANGE_TIMEOUT) -> None:
        argv = ["sync", *(["--file-system"] if whole else []), path]
        self._mutate(("change", *argv), lambda: self.on_change(argv))

    def give_file(
        self, path: str, status: Status, user: int, group: int, timeout: float = CHANGE_TIMEOUT
    ) -> None:
        if self.status(path)[:4] != status[:4]:
            raise ChangeFailed(f"{path}: another file is there")
        self._mutate(("give", path, f"{user}:{group}"), lambda: self.on_give(path, user, group))

    def on_give(self, path: str, user: int, group: int) -> None:
        """Set the owner of a file."""
        self.uids[path] = user

    def sync_mount(self, mount: Mount, timeout: float = CHANGE_TIMEOUT) -> None:
        self._expect_same(mount)
        self.change(["sync", "--file-system", mount.target], timeout)

    def set_mount_options(
        self, mount: Mount, options: Sequence[str], timeout: float = CHANGE_TIMEOUT
    ) -> None:
        self._expect_same(mount)
        self._mutate(("options", mount.target, *options), lambda: self.on_options(mount.target, options))

    def set_mount_atime(self, mount: Mount, atime: str, timeout: float = CHANGE_TIMEOUT) -> None:
        self._expect_same(mount)
        self._mutate(("atime", mount.target, atime), lambda: self.on_options(mount.target, [atime]))

    def make_mount_writable(self, mount: Mount, timeout: float = CHANGE_TIMEOUT) -> None:
        self._expect_same(mount)
        self._mutate(("options", mount.target, "rw"), lambda: self.on_options(mount.target, ["rw"]))

    def try_mount(
        self, image: str, fstype: str, steps: Sequence[Sequence[str]], timeout: float = CHANGE_TIMEOUT
    ) -> None:
        tried = tuple(map(tuple, steps))
        self._mutate(("trial", image, fstype, tried), lambda: self.on_trial(image, fstype, steps))

    def refused_mount_options(
        self, fstype: str, options: Sequence[str], timeout: float = READ_TIMEOUT
    ) -> dict[str, str] | None:
        self.queried.append((fstype, tuple(options)))
        known = self.options_known.get(fstype)
        return None if known is None else {word: "Unknown parameter" for word in options if word not in known}

    def _expect_same(self, mount: Mount) -> None:
        """Refuse what the kernel refuses: a mount that is not the one at its path."""
        there = [
            now for now in parse_mountinfo(self.read("/proc/self/mountinfo")) if now.target == mount.target
        ]
        if [(now.number, now.device) for now in there[-1:]] != [(mount.number, mount.device)]:
            raise ChangeFailed(f"{mount.target}: expected mount {mount.number}: exchanged")

    def status(self, path: str) -> Status:
        """Return what the kernel tells of what lies at a path."""
        if path in self.owned:
            return self.owned[path]
        kind = stat.S_IFIFO if path in self.pipes else stat.S_IFREG
        if path not in self.files:
            kind = stat.S_IFBLK if path in self.block_devices else stat.S_IFDIR
        mode = self.modes.get(path, 0o755 if kind == stat.S_IFDIR else 0o644)
        return Status(1, abs(hash(path)), self.owner_of(path), 0, kind | mode)

    def owner_of(self, path: str) -> int:
        """Return the number of who owns what lies at a path."""
        return self.uids.get(path, 0)

    def content(self, path: str) -> bytes:
        """Return what is in a file."""
        return self._full_text(path).encode("utf-8", "surrogateescape")

    def _is_there(self, path: str) -> bool:
        return path in self.files or path in self.owned or path in self.block_devices or self.exists(path)

    def _inside(self, root: str, path: str) -> str:
        """Follow links inside a root directory. Raises Unobservable as the seam does."""
        return list(self._followed(root, path))[-1]

    def _followed(self, root: str, path: str) -> Iterator[str]:
        """Yield a path inside a root directory, each time with one more link followed."""
        path, reach = normal(path), 0
        for _link in range(40):
            yield path
            if any(f"{root}{path}/".startswith(f"{hung}/") for hung in self.hung):
                raise NoAnswer(f"{path}: no answer within {READ_TIMEOUT:g} s")
            parts = path.split("/")
            links = ["/".join(parts[:count]) for count in range(2, len(parts) + 1)]
            link = next((link for link in links if root + link in self.links.data), None)
            if link is None:
                if reach and not self._is_there(root + "/".join(parts[:reach])):
                    raise Unobservable(f"{path}: a link on the way leads to what is not there")
                return
            target = normal(posixpath.join(posixpath.dirname(link), self.links.data[root + link]))
            rest = parts[len(link.split("/")) :]
            reach = max(reach - len(link.split("/")), 0) + len(target.split("/"))
            path = normal("/".join([target, *rest]))
        raise Unobservable(f"{path}: too many levels of symbolic links")

    def change(
        self,
        argv: list[str],
        timeout: float = CHANGE_TIMEOUT,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.environment = dict(environment or {})
        self._mutate(("change", *argv), lambda: self.on_change(argv))

    def write_attribute(self, path: str, value: str) -> None:
        self._mutate(("attribute", path, value), lambda: self.on_attribute(path, value))

    def write_file(self, path: str, content: bytes, mode: int = 0o644, owner: int = 0) -> None:
        text = content.decode("utf-8", "surrogateescape")
        self.written_as[path] = owner
        if owner and not self.exists(path):
            self.uids[path] = owner
        self._mutate(("file", path, content), lambda: self._write(path, text))

    def remove_file(self, path: str, owner: int = 0) -> None:
        self.written_as[path] = owner
        self._mutate(("remove", path), lambda: (self.links if path in self.links else self.files).pop(path))

    def lock_text(self, path: str) -> str | None:
        return None if path in self.held else self.files.get(path, "")

    def make_lock(self, path: str) -> None:
        self.files.setdefault(path, "")

    @contextmanager
    def hold(self, path: str, tell: Callable[[str], str], is_text_needed: bool = True) -> Iterator[None]:
        before = self.files.get(path, "")
        if path in self.held:
            raise Held(path, before)
        self.files[path] = tell(before)
        self.held.add(path)
        try:
            yield
        finally:
            self.held.remove(path)

    def on_change(self, argv: list[str]) -> None:
        """Do what a changing command does. Raises ChangeFailed."""
        raise ChangeFailed(f"{argv[0]}: No such file or directory")

    def on_options(self, target: str, options: Sequence[str]) -> None:
        """Do what new options of a mount do. Raises ChangeFailed."""
        raise ChangeFailed(f"{target}: {','.join(options)}: Invalid argument")

    def on_trial(self, image: str, fstype: str, steps: Sequence[Sequence[str]]) -> None:
        """Mount a scratch image. Raises TrialRefused."""
        raise TrialRefused(f"{image}: No such file or directory")

    def on_attribute(self, path: str, value: str) -> None:
        """Do what writing a kernel attribute does. Raises ChangeFailed."""
        raise ChangeFailed(f"{path}: writing {value!r}: No such file or directory")

    def _mutate(self, mutation: Mutation, effect: Callable[[], None]) -> None:
        dead = self.stop is Killed and self.stop_at and len(self.mutations) >= self.stop_at
        if dead:
            raise Killed
        self.mutations.append(mutation)
        if len(self.mutations) == self.stop_at:
            raise self.stop(f"stopped at {mutation[:3]}")
        effect()
        self.after_mutation()

    def _write(self, path: str, text: str) -> None:
        if self.resolve(path) == "/dev/null":
            raise ChangeFailed(f"{path}: not a regular file; it was masked or replaced")
        self.files[path] = text

    def _status(self, paths: list[str]) -> Result:
        """Say owner and mode, links not followed; what is not there has none."""
        lines = []
        for path in map(self.links.resolve_directory, paths):
            if not self.exists(path):
                return Result(1, "", f"stat: cannot statx '{path}': {os.strerror(2)}\n")
            is_directory = path == "/" or (path not in self.files and path not in self.links)
            usual = stat.S_IFDIR | 0o755 if is_directory else stat.S_IFREG | 0o644
            mode = stat.S_IFMT(usual) | self.modes.get(path, stat.S_IMODE(usual))
            if path in self.links:
                mode = stat.S_IFLNK | 0o777
            lines.append(f"{self.owner_of(path)} {mode:x}\n")
        return Result(0, "".join(lines), "")

    def _children(self, path: str) -> set[str]:
        directory = path.rstrip("/")
        return self.files.children(directory) | self.links.children(directory)


def said(answer: Outcome) -> str | Result:
    """Return what an answer says, or raise it."""
    if callable(answer) and not isinstance(answer, type):
        answer = answer()
    if isinstance(answer, Exception):
        raise answer
    assert isinstance(answer, (str, Result))
    return answer
