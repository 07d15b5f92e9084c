# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels of what is written. Kernel and policy are stand-ins, except the last test, which asks the real library."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import labels
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Host

HOST = Host()
#: What a kernel gives to a file of a user's in a directory: user and level are those of the process.
MADE = "unconfined_u:object_r:{}:s0"


class StandIn:
    """A kernel that keeps labels, and a policy: {pattern of paths: type}. `refuses`: an errno for each new label."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.on = True
        self.refuses = 0
        self.policy: dict[str, str] = {}
        self.fixed = ""
        self.set: list[str] = []
        self._root = root
        self._kept: dict[tuple[int, int], bytes] = {}
        real = {name: getattr(os, name) for name in ("getxattr", "setxattr", "listxattr")}

        def getxattr(what: str | int, name: str) -> bytes:
            return self.label(what).encode() + b"\0" if name == labels.NAME else real["getxattr"](what, name)

        def setxattr(what: str | int, name: str, value: bytes) -> None:
            if name != labels.NAME:
                real["setxattr"](what, name, value)
                return
            if self.refuses:
                raise OSError(self.refuses, os.strerror(self.refuses))
            self.set.append(value.rstrip(b"\0").decode())
            self._kept[_key(what)] = value.rstrip(b"\0")

        monkeypatch.setattr(os, "getxattr", getxattr)
        monkeypatch.setattr(os, "setxattr", setxattr)
        monkeypatch.setattr(os, "listxattr", lambda what: [*real["listxattr"](what), labels.NAME])
        monkeypatch.setattr(labels, "is_on", lambda: self.on)
        monkeypatch.setattr(labels, "_policys", self._policys)

    def give(self, path: Path, label: str) -> None:
        self._kept[_key(str(path))] = label.encode()

    def label(self, what: str | int) -> str:
        """The label; of what was never given one, that of the directory that it was made in."""
        if self.fixed:
            return self.fixed
        return self._kept.get(_key(what), MADE.format("var_t").encode()).decode()

    def _policys(self, path: str, mode: int) -> bytes | None:
        kind = "dir" if stat.S_ISDIR(mode) else "file"
        wanted = f"{kind} {Path(path).relative_to(self._root)}"
        found = [made for pattern, made in self.policy.items() if re.fullmatch(pattern, wanted)]
        return f"system_u:object_r:{found[0]}:s0".encode() if found else None


def _key(what: str | int) -> tuple[int, int]:
    status = os.stat(what)
    return status.st_dev, status.st_ino


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> StandIn:
    return StandIn(monkeypatch, tmp_path)


def test_a_file_that_is_replaced_keeps_its_label_whole(kernel: StandIn, tmp_path: Path) -> None:
    """Also one that somebody gave it by hand, of which the policy knows nothing."""
    path = tmp_path / "fstab"
    path.write_bytes(b"old")
    kernel.give(path, "staff_u:object_r:etc_t:s0:c1,c2")
    kernel.policy[".*"] = "other_t"
    HOST.write_file(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert kernel.label(str(path)) == "staff_u:object_r:etc_t:s0:c1,c2"


def test_a_new_file_and_its_directories_have_the_types_of_the_policy(kernel: StandIn, tmp_path: Path) -> None:
    """The temporary name that a file has at first is not asked for, and user and level stay those of its maker."""
    kernel.policy = {
        "dir bin": "bin_t",
        "dir bin/more": "more_t",
        "file bin/more/hook": "hook_t",
        ".*durable.*": "wrong_t",
    }
    HOST.write_file(str(tmp_path / "bin/more/hook"), b"new")
    there = ("bin", "bin/more", "bin/more/hook")
    assert [kernel.label(str(tmp_path / path)) for path in there] == [
        "unconfined_u:object_r:bin_t:s0",
        "unconfined_u:object_r:more_t:s0",
        "unconfined_u:object_r:hook_t:s0",
    ]


def test_the_label_is_there_before_the_name(
    kernel: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads at any moment may; and a power cut leaves no file that nobody may read."""
    seen = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: seen.append(list(kernel.set)) or real(descriptor))
    kernel.policy["file x"] = "x_t"
    HOST.write_file(str(tmp_path / "x"), b"new")
    assert seen[0] == ["unconfined_u:object_r:x_t:s0"]


@pytest.mark.parametrize("old", [True, False])
def test_a_label_that_is_refused_changes_nothing(kernel: StandIn, tmp_path: Path, old: bool) -> None:
    path = tmp_path / "x"
    if old:
        path.write_bytes(b"old")
        kernel.give(path, "system_u:object_r:x_t:s0")
    kernel.policy["file x"] = "x_t"
    kernel.refuses = errno.EACCES
    with pytest.raises(
        ChangeFailed, match=r"/x: its SELinux label \w+:object_r:x_t:s0 cannot be set: Permission denied"
    ):
        HOST.write_file(str(path), b"new")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == ([("x", b"old")] if old else [])


def test_a_mount_with_one_label_for_all_refuses_none(kernel: StandIn, tmp_path: Path) -> None:
    """mount(8), context=: the kernel refuses any label there, that of all files too."""
    path = tmp_path / "x"
    path.write_bytes(b"old")
    kernel.fixed = "system_u:object_r:mssql_t:s0"
    kernel.refuses = errno.EOPNOTSUPP
    HOST.write_file(str(path), b"new")
    assert path.read_bytes() == b"new"


def test_without_selinux_an_old_label_is_kept_where_that_is_possible(kernel: StandIn, tmp_path: Path) -> None:
    """A file system that was labelled once; nobody asks for labels now."""
    path = tmp_path / "x"
    path.write_bytes(b"old")
    kernel.give(path, "system_u:object_r:x_t:s0")
    kernel.on = False
    HOST.write_file(str(path), b"new")
    assert kernel.label(str(path)) == "system_u:object_r:x_t:s0"
    kernel.refuses = errno.EPERM
    HOST.write_file(str(path), b"newer")
    assert path.read_bytes() == b"newer"


def test_without_selinux_nothing_new_is_labelled(kernel: StandIn, tmp_path: Path) -> None:
    kernel.policy[".*"] = "x_t"
    kernel.on = False
    HOST.write_file(str(tmp_path / "a/x"), b"new")
    assert kernel.set == []


def test_what_the_policy_does_not_know_stays_as_it_was_made(kernel: StandIn, tmp_path: Path) -> None:
    HOST.write_file(str(tmp_path / "a/x"), b"new")
    assert kernel.set == []


@pytest.mark.parametrize("number", [errno.ENODATA, errno.ENOTSUP])
def test_a_file_system_without_labels(
    kernel: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def none(_what: object, _name: str) -> bytes:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "getxattr", none)
    kernel.policy[".*"] = "x_t"
    HOST.write_file(str(tmp_path / "x"), b"new")
    assert kernel.set == []


@pytest.mark.parametrize("missing", ["ctypes", "library"])
def test_without_ctypes_or_the_library_nobody_can_have_loaded_a_policy(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    if missing == "ctypes":
        monkeypatch.setitem(sys.modules, "ctypes", None)
    else:
        monkeypatch.setattr(labels, "_LIBRARY", "libnothing.so.1")
    labels._library.cache_clear()
    try:
        assert not labels.is_on()
    finally:
        labels._library.cache_clear()


#: Reads the module by its path: it needs nothing but the standard library.
ASK = """\
import json, runpy, stat, sys
labels = runpy.run_path(sys.argv[1])
assert not labels["_library"]().matchpathcon_init(sys.argv[2].encode())
questions = (("/a/bin/x", stat.S_IFREG), ("/a/bin", stat.S_IFDIR), ("/a/none", stat.S_IFREG), ("/b", stat.S_IFREG))
print(json.dumps([(labels["_policys"](*question) or b"").decode() for question in questions]))
"""


@pytest.mark.skipif(labels._library() is None, reason="this machine has no libselinux")
def test_the_real_library_answers_from_a_policys_file(tmp_path: Path) -> None:
    """Contexts as file_contexts(5) has them; asked in a process of its own: the library keeps what it once read."""
    contexts = tmp_path / "file_contexts"
    contexts.write_text(
        "/a/.*bin(/.*)?\t--\tsystem_u:object_r:bin_t:s0\n/a/bin\t-d\tsystem_u:object_r:dir_t:s0\n/a/none\t--\t<<none>>\n"
    )
    argv = [sys.executable, "-c", ASK, labels.__file__, str(contexts)]
    said = subprocess.run(argv, check=True, stdout=subprocess.PIPE).stdout
    assert json.loads(said) == ["system_u:object_r:bin_t:s0", "system_u:object_r:dir_t:s0", "", ""]
