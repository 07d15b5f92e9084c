# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Opening a file of another user, one component of the path at a time. Called by :mod:`.reader` alone.

Each name is opened with O_PATH and O_NOFOLLOW, which has no effect on a device or pipe, and what was
opened is checked by its descriptor: no process can put another file there between two steps. Links are
resolved here, and never lead out of the given root directory.

A user who may change a directory chooses what a link or file in it is, so from there on everything is
opened with the rights of that user: root reads nothing for that user which that user could not read.

A path that a process or a file names is opened with the rights of the user who named it, from its first name on.
Such a path never leads onto a file system of the kernel (proc, sysfs and the like): to read a file there can do things.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import pwd
import stat
from collections.abc import Callable, Iterator
from typing import NamedTuple

from . import kernel_files

#: As many as the kernel follows: path_resolution(7).
MOST_LINKS = 40
_NOBODY = 65534
_PROC = "/proc/"
_PATH = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


class Refused(Exception):
    """A path is not followed to its end. The message is the reason that the report shows."""


class Dangling(Refused):
    """A link on the way leads to what is not there, or round and round."""


class OfTheKernel(Refused):
    """A path leads onto a file system of the kernel, and root did not name it."""


class Withheld(Refused):
    """The user who named a path may not reach or read what it leads to."""


class Identity(NamedTuple):
    """With whose rights a file is opened. A `group` of ACCOUNT: those that the user's account has."""

    user: int
    group: int
    groups: tuple[int, ...]


#: The group of a user whose groups are found where the file is opened.
ACCOUNT = -1
#: Names a path, and which user that is is unknown: kernel file systems are refused, and no rights are added.
UNKNOWN_USER = Identity(-1, ACCOUNT, ())


class Step(NamedTuple):
    """A directory or file on the way, its name, and with whose rights the way goes on (None: our own)."""

    name: str
    descriptor: int
    status: os.stat_result
    rights: Identity | None


class Walk:
    """The way from a root directory ('' is this process's own) to a path inside it, links followed.

    `named_by`: the user who named the path, None for root. Every directory and file is opened with the rights of that
    user, and with those of each user who can change what is stored on the way.
    `rest` is what of the path was not there, `changed` when a link on the way last did, `passed` everything on
    the way, links too, by its path inside the root. Raises OSError and Refused.
    """

    def __init__(self, root: str, path: str, named_by: Identity | None = None) -> None:
        self._open: list[int] = []
        self._named_by: Identity | None = None
        # A container's root is not this host's: it names paths like any other user.
        self._is_named_by_others = named_by is not None or root.startswith(_PROC)
        # Once a link was chosen by somebody, all that it leads to was.
        self._bound: Identity | None = None
        self._links = 0
        self._pending = [(name, False) for name in reversed(path.split("/"))]
        self.rest: list[str] = []
        self.changed = 0.0
        self.passed: dict[str, os.stat_result] = {}
        try:
            # By one descriptor, the directory and its users are of one process. First the
            # directory: whoever takes users of his own meanwhile has mounted nothing in it before.
            process = self._keep(os.open(os.path.dirname(root) or "/", _DIRECTORY))
            top = self._keep(os.open(os.path.basename(root) or ".", _DIRECTORY, dir_fd=process))
            self._tree = _Tree(process if root.startswith(_PROC) else None)
            self._named_by = self._tree.rights_of(named_by)
            status = os.fstat(top)
            self._expect_no_kernel_files(top)
            self.steps = [Step("", top, status, self._tree.owner(status))]
            self.passed["/"] = status
            self._go()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Walk:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close everything that was opened."""
        while self._open:
            os.close(self._open.pop())

    @property
    def path(self) -> str:
        """The path inside the root, links followed as far as it is there."""
        return os.path.normpath("/".join(["", *(step.name for step in self.steps[1:]), *self.rest]) or "/")

    @property
    def status(self) -> os.stat_result | None:
        """The status of the file at the path, None if there is none."""
        return None if self.rest else self.steps[-1].status

    def opened(self, is_kind: Callable[[int], bool], kind: str) -> contextlib.AbstractContextManager[int]:
        """Open for reading what was found, if it is of a kind. Raises OSError, Refused."""
        if not is_kind(self.steps[-1].status.st_mode):
            raise Refused(f"not a {kind}")
        return self._reopened(self.steps[-1])

    def below(self, depth: int) -> Iterator[tuple[str, os.stat_result]]:
        """Yield path and status of the files in a directory that was found, and so many levels below it.

        No link is followed. Raises OSError, Refused.
        """
        yield from self._below(self.steps[-1], "", depth)

    def _below(self, step: Step, prefix: str, depth: int) -> Iterator[tuple[str, os.stat_result]]:
        with self._reopened(step) as descriptor, os.scandir(descriptor) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    with contextlib.suppress(FileNotFoundError):
                        yield prefix + entry.name, entry.stat(follow_symlinks=False)
                elif depth > 1 and entry.is_dir(follow_symlinks=False):
                    with contextlib.suppress(FileNotFoundError):
                        inner = self._step(step, entry.name)
                        if stat.S_ISDIR(inner.status.st_mode):
                            yield from self._below(inner, f"{prefix}{entry.name}/", depth - 1)
                        os.close(self._open.pop())

    @contextlib.contextmanager
    def _reopened(self, step: Step) -> Iterator[int]:
        descriptor = self._opened_by_all(
            step, f"/proc/self/fd/{step.descriptor}", os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY
        )
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _go(self) -> None:
        while self._pending:
            name, of_link = self._pending.pop()
            if name == "..":
                # What is above the root directory is the root directory.
                self.steps = self.steps[:-1] or self.steps
            elif name not in ("", "."):
                try:
                    self._enter(name)
                except (FileNotFoundError, NotADirectoryError) as error:
                    if of_link:
                        raise Dangling("a link on the way leads to what is not there") from error
                    self.rest = [name, *(name for name, _linked in reversed(self._pending))]
                    return

    def _enter(self, name: str) -> None:
        step = self._step(self.steps[-1], name)
        self.passed["/".join([*(above.name for above in self.steps), name])] = step.status
        if stat.S_ISLNK(step.status.st_mode):
            self._bound = self._bound or step.rights
            self.changed = max(self.changed, step.status.st_ctime)
            self._follow(os.readlink("", dir_fd=step.descriptor))
        else:
            self.steps.append(step)

    def _step(self, above: Step, name: str) -> Step:
        descriptor = self._keep(self._opened_by_all(above, name, _PATH, above.descriptor))
        status = os.fstat(descriptor)
        if status.st_dev != above.status.st_dev:
            self._expect_no_kernel_files(descriptor)
        return Step(name, descriptor, status, self._rights(above, status))

    def _rights(self, above: Step, status: os.stat_result) -> Identity | None:
        if not stat.S_ISDIR(status.st_mode):
            return above.rights or self._tree.chooser(above.status, status)
        if above.rights and status.st_dev != above.status.st_dev:
            # A user's own file system says of owners what he likes.
            self._bound = self._bound or above.rights
        # A directory can be brought here only from where its name could be changed: its owner chooses on.
        return self._tree.owner(status)

    def _opened_by_all(self, step: Step, path: str, flags: int, directory: int | None = None) -> int:
        """Open a file with the rights of the user who named the path, then with those of the user who chose it.

        Both must be able to. The second descriptor is returned. Raises OSError, Refused.
        """
        chosen_by = self._bound or step.rights
        namer = self._named_by
        if namer is not None and chosen_by is not None and chosen_by.user != namer.user:
            with self._tree.acting(namer, step.status, "named"):
                os.close(os.open(path, flags, dir_fd=directory))
        elif namer is not None:
            with self._tree.acting(namer, step.status, "named"):
                return os.open(path, flags, dir_fd=directory)
        with self._tree.acting(chosen_by, step.status):
            return os.open(path, flags, dir_fd=directory)

    def _expect_no_kernel_files(self, descriptor: int) -> None:
        """Raise Refused for a file system of the kernel, unless root named the path."""
        if self._is_named_by_others:
            kind = kernel_files.kind(descriptor)
            if kind:
                raise OfTheKernel(f"it leads to a {kind} file system of the kernel, and root did not name it")

    def _follow(self, target: str) -> None:
        self._links += 1
        if self._links > MOST_LINKS:
            raise Dangling("too many levels of symbolic links")
        if target.startswith("/"):
            self.steps = self.steps[:1]
        self._pending += [(name, True) for name in reversed(target.split("/"))]

    def _keep(self, descriptor: int) -> int:
        self._open.append(descriptor)
        return descriptor


class _Tree:
    """Who is trusted below a root directory: root, and in a container with separate users its root.

    `process`: the directory of a container's process in /proc, None for this host's own tree.
    """

    def __init__(self, process: int | None) -> None:
        self._process = process
        self._users = _users_of(process) if process is not None else []
        # Without a root of its own, whoever made it: the first of its users.
        self._chief = min(self._users)[1] if self._users else 0
        self._known: dict[int, Identity] = {}

    def owner(self, status: os.stat_result) -> Identity | None:
        """Return the rights of a directory's owner, None for one who is trusted."""
        return None if status.st_uid in (0, self._chief) else self._of(status.st_uid)

    def chooser(self, above: os.stat_result, status: os.stat_result) -> Identity | None:
        """Return the rights of who may have put something into a directory of one who is trusted."""
        by_group = bool(above.st_mode & stat.S_IWGRP) and above.st_gid != 0
        by_all = bool(above.st_mode & stat.S_IWOTH)
        if not by_group and not by_all:
            return None
        if status.st_uid not in (0, self._chief):
            return self._of(status.st_uid)
        if above.st_mode & stat.S_ISVTX and are_links_protected():
            return None  # Only its owner can have named it so.
        return Identity(_NOBODY, _NOBODY if by_all else above.st_gid, ())

    def rights_of(self, named_by: Identity | None) -> Identity | None:
        """Return the rights of the user who named a path, None for root and for a user who is unknown."""
        if named_by is None or named_by == UNKNOWN_USER:
            return None
        return self._of(named_by.user) if named_by.group == ACCOUNT else named_by

    @contextlib.contextmanager
    def acting(self, rights: Identity | None, status: os.stat_result, how: str = "chosen") -> Iterator[None]:
        """Act with a user's rights; for what is not the container's, with those of its root. Raises OSError."""
        if rights is None and self._chief and not self._has(status.st_uid):
            rights = self._of(self._chief)
        if rights is None or os.geteuid() != 0:
            yield
            return
        groups, group = os.getgroups(), os.getegid()
        try:
            os.setgroups(rights.groups)
            os.setegid(rights.group)
            os.seteuid(rights.user)
            yield
        except PermissionError as error:
            kind = Withheld if how == "named" else Refused
            raise kind(
                f"it was {how} by user {rights.user}, who may not read it: {error.strerror}"
            ) from error
        finally:
            os.seteuid(0)
            os.setegid(group)
            os.setgroups(groups)

    def _has(self, user: int) -> bool:
        return any(there <= user < there + count for _inside, there, count in self._users)

    def _of(self, user: int) -> Identity:
        if user not in self._known:
            self._known[user] = _account(user) if self._process is None else _inside(self._process, user)
        return self._known[user]


def _users_of(process: int) -> list[tuple[int, int, int]]:
    """Return which users a container has, in the format of user_namespaces(7): number inside, number here, count."""
    rows = (line.split() for line in _lines_of(process, "uid_map"))
    found = [(int(inside), int(there), int(count)) for inside, there, count in rows]
    if not found:
        raise Refused("which users its container has is unknown")
    return found


def _inside(process: int, user: int) -> Identity:
    """Return the rights of a container's user, as its process has them."""
    fields = dict(line.split(":", 1) for line in _lines_of(process, "status") if ":" in line)
    users, groups = fields["Uid"].split(), fields["Gid"].split()
    if int(users[1]) != user:
        return Identity(user, _NOBODY, ())
    return Identity(user, int(groups[1]), tuple(map(int, fields["Groups"].split())))


def _lines_of(process: int, name: str) -> list[str]:
    """Return the lines of a file of the kernel about a process. Raises Refused."""
    try:
        with open(
            os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=process), encoding="utf-8", errors="replace"
        ) as handle:
            return handle.read().split("\n")[:-1]
    except OSError as error:
        # It must not be mistaken for a file of the container's that is not there.
        raise Refused(f"its process cannot be read: {error.strerror}") from error


@functools.cache
def _account(user: int) -> Identity:
    try:
        entry = pwd.getpwuid(user)
    except KeyError:
        return Identity(user, _NOBODY, ())
    return Identity(user, entry.pw_gid, tuple(os.getgrouplist(entry.pw_name, entry.pw_gid)))


@functools.cache
def are_links_protected() -> bool:
    """Return whether a user may give a second name only to files that the user owns: fs.protected_hardlinks."""
    try:
        with open("/proc/sys/fs/protected_hardlinks", encoding="ascii") as handle:
            return handle.read().strip() == "1"
    except OSError:
        return False


def reason(error: OSError) -> str:
    """Return what an error says, without a path."""
    return os.strerror(error.errno) if error.errno else errno.errorcode[errno.EIO]
