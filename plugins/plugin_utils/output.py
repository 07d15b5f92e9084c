# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All output of our actions: the terminal, files on the controller, and refusals."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from ansible import constants
from ansible.errors import AnsibleActionFail
from ansible.utils.display import Display

from ..module_utils.host.printable import Lines, line, lines

#: What others may do with a file: those of the group read it.
REPORT = 0o640
#: For its owner alone.
PRIVATE = 0o600
#: The most that is read of a file, of all that were collected, and how many these may be.
_LARGEST = 8 * 1024 * 1024
_ALL = 32 * _LARGEST
_FILES = 20_000
#: Callbacks whose output is read by programs, or by nobody: nothing of ours goes between.
_MACHINES = ("json", "jsonl", "null")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Found(NamedTuple):
    """A file that was collected: its text, or why it could not be read."""

    path: str
    text: str
    fault: str = ""


def show(rows: Iterable[str]) -> None:
    """Show lines on the terminal, with an empty one before and after them; nothing where programs read it."""
    if constants.DEFAULT_STDOUT_CALLBACK.rpartition(".")[2] not in _MACHINES:
        Display().display(f"\n{lines(rows)}")


def laid_out(text: str) -> Lines:
    """Return a text of several lines that came from a host: its lines stay, all else in it is printable."""
    return lines(text.removesuffix("\n").split("\n") if text else ())


def difference(shown: Mapping[str, Any], header: str = "") -> dict[str, str]:
    """Return what a host reports for `--diff` of one file or one step, printable: Ansible shows it as it is.

    `header`: for one that has none. Raises KeyError and TypeError for no such difference.
    """
    headers = {name: line(str(shown.get(name) or header)) for name in ("before_header", "after_header")}
    texts = {name: str(laid_out(str(shown[name]))) for name in ("before", "after")}
    return {**{name: text for name, text in headers.items() if text}, **texts}


def refused(why: object) -> AnsibleActionFail:
    """Return the error that ends an action."""
    error = AnsibleActionFail(line(str(why)))
    # Before ansible-core 2.19 a callback would report an exception with a traceback above the message.
    error.result.pop("exception", None)
    return error


def measured(name: str, host: str, suffix: str) -> str:
    """Return what the file is called that has what was measured on a host."""
    return f"{name}-{quote(host, safe='')}.{suffix}"


def keep(directory: str, name: str, text: str, mode: int = REPORT) -> str:
    """Write a file whole, or leave the one that was there; return its path. A missing directory is made.

    Its temporary name cannot be predicted, and no link replaces the file or its directory except one of root's or
    of this user's own. Raises OSError.
    """
    place = _open(directory)
    try:
        temporary = f".{secrets.token_hex(16)}"
        descriptor = os.open(temporary, _NEW, PRIVATE, dir_fd=place)
        try:
            with os.fdopen(descriptor, "wb") as handle:
                handle.write(text.encode("utf-8", "backslashreplace"))
                os.fchmod(descriptor, mode)
            os.replace(temporary, name, src_dir_fd=place, dst_dir_fd=place)
        except BaseException:
            os.unlink(temporary, dir_fd=place)
            raise
    finally:
        os.close(place)
    return os.path.join(directory, name)


def stored(directory: str, name: str) -> str:
    """Return the text of a file that `keep` wrote, '' if there is none. Raises OSError."""
    try:
        place = _open(directory, make=False)
    except FileNotFoundError:
        return ""
    try:
        descriptor = os.open(name, _OLD, dir_fd=place)
    except FileNotFoundError:
        return ""
    finally:
        os.close(place)
    with os.fdopen(descriptor, "rb") as handle:
        return handle.read(_LARGEST).decode("utf-8", "replace")


def collected(directories: Iterable[str]) -> Iterator[Found]:
    """Yield the files below some directories that are named `*.json`, each once; a directory that cannot be read as a fault.

    Hidden files are passed over, and links to directories are not followed. Raises OSError if there is more than
    a person reads.
    """
    paths: set[str] = set()
    size = 0
    for top in directories:
        for path, fault in _below(os.path.abspath(top)):
            if path not in paths:
                paths.add(path)
                found = Found(path, "", fault) if fault else _found(path)
                size += len(found.text)
                if size > _ALL or len(paths) > _FILES:
                    raise OSError(
                        errno.EFBIG,
                        f"more than {_FILES} files, or than {_ALL // 2**20} MiB in all",
                        top,
                    )
                yield found


def _below(top: str) -> Iterator[tuple[str, str]]:
    """Yield the path of each file below a directory, in their order, and of each directory that cannot be read with why."""
    faults: list[OSError] = []
    for directory, inner, names in os.walk(top, onerror=faults.append):
        inner.sort()
        for name in sorted(names):
            if name.endswith(".json") and not name.startswith("."):
                yield os.path.join(directory, name), ""
    for error in faults:
        yield str(error.filename), str(error.strerror)


def _found(path: str) -> Found:
    try:
        if os.lstat(path).st_size > _LARGEST:
            return Found(path, "", f"longer than {_LARGEST // 2**20} MiB")
        return Found(path, stored(*os.path.split(path)))
    except OSError as error:
        return Found(path, "", str(error.strerror))


def remove(directory: str, name: str) -> None:
    """Remove a file, if it and its directory exist. Raises OSError."""
    _change(directory, lambda place: os.unlink(name, dir_fd=place))


def rename(directory: str, name: str, new: str) -> None:
    """Give a file another name, where it and its directory are there. Raises OSError."""
    _change(directory, lambda place: os.replace(name, new, src_dir_fd=place, dst_dir_fd=place))


def _change(directory: str, act: Callable[[int], None]) -> None:
    """Give a descriptor of a directory to an act; nothing is done if the directory, or the file, is not there."""
    with contextlib.suppress(FileNotFoundError):
        place = _open(directory, make=False)
        try:
            act(place)
        finally:
            os.close(place)


def _open(path: str, make: bool = True) -> int:
    """Return a descriptor of a directory, reached step by step: no other directory can be put in its place on the way."""
    place = os.open("/", _DIRECTORY)
    for name in os.path.abspath(path).split("/"):
        if name:
            try:
                following = _step(place, name, make)
            finally:
                os.close(place)
            place = following
    return place


def _step(place: int, name: str, make: bool) -> int:
    """Return a descriptor of a directory in another one. Raises OSError."""
    try:
        return os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
    except FileNotFoundError:
        if not make:
            raise
        os.mkdir(name, 0o750, dir_fd=place)
        return os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
    except OSError:
        found = os.stat(name, dir_fd=place, follow_symlinks=False)
        if not stat.S_ISLNK(found.st_mode):
            raise
    if found.st_uid not in (0, os.geteuid()):
        raise OSError(errno.ELOOP, f"{name} is another user's link")
    followed = os.open(name, _DIRECTORY, dir_fd=place)
    after = os.stat(name, dir_fd=place, follow_symlinks=False)
    if (found.st_ino, found.st_ctime_ns) != (after.st_ino, after.st_ctime_ns):
        os.close(followed)
        raise OSError(errno.EAGAIN, f"{name} was changed meanwhile")
    return followed
