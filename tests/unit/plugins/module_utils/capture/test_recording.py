# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A recording holds every answer, and a replay nothing else."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.capture.recording import (
    CALLS,
    SCHEMA,
    LooksOnly,
    NotRecorded,
    RecordingHost,
    ReplayHost,
    dumps,
    loads,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host.mountinfo import Mount
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import (
    Host,
    Located,
    Result,
    Status,
    Unobservable,
)

from ..fakes.fake_host import FakeHost

CHANGES = {
    *(
        "change",
        "give_file",
        "hold",
        "make_lock",
        "make_mount_writable",
        "remove_file",
        "set_mount_atime",
        "set_mount_options",
    ),
    *("sync", "sync_mount", "try_mount", "write_attribute", "write_file"),
}
MOUNT = Mount("8:1", "/", "/srv", ("rw",), "ext4", "/dev/sda1", ("rw",), "30", "1")
#: What no recording has a place for: daemons, and files for which a user's rights count.
NOT_RECORDED: dict[str, Callable[[Host], Any]] = {
    "ask": lambda host: host.ask("localhost", 3493, [b"LIST UPS\n"], lambda said: True),
    "find_files": lambda host: host.find_files("/etc"),
    "hold_socket": lambda host: host.hold_socket("/run/mysqld/mysqld.sock"),
    "lines": lambda host: list(host.lines("/etc/text")),
    "list_names": lambda host: host.list_names("/etc"),
    "listeners": lambda host: host.listeners(),
    "lock_text": lambda host: host.lock_text("/run/lock"),
    "read_part": lambda host: host.read_part("/etc/fstab"),
    "run_with_secret": lambda host: host.run_with_secret(["sqlcmd"], {"SQLCMDPASSWORD": "x"}),
    "socket_listener": lambda host: host.socket_listener("/run/mysqld/mysqld.sock"),
    "user": lambda host: host.user(),
}


def passed(found: dict[str, Status]) -> dict[str, tuple[int, int]]:
    """Return what a recording keeps of the way to a path: whose each part is, and who may change it."""
    return {path: (status.user, status.mode) for path, status in found.items()}


def odd() -> FakeHost:
    host = FakeHost()
    slow = Unobservable("/sys/slow: too slow")
    host.files.update({"/etc/text": "a\udce9\n", "/dev/sda": "", "/sys/slow": slow})
    host.links["/dev/link"] = "/dev/sda"
    host.links["/srv/wal"] = "/log/wal"
    host.files["/log/wal/1"] = ""
    host.hung = ("/slow",)
    host.block_devices.add("/dev/sda")
    host.modes["/dev/sda"] = 0o660
    host.commands["odd",] = Result(3, "out\udce9", "err")
    return host


def kind(found: Located) -> tuple[str, int | None]:
    """Return what a recording keeps of where a path leads."""
    return found.path, found.status.mode if found.status else None


QUESTIONS: dict[str, Callable[[Host], Any]] = {
    "read": lambda host: host.read("/etc/text"),
    "read nothing": lambda host: host.read("/etc/none"),
    "read an error": lambda host: host.read("/sys/slow"),
    "names": lambda host: host.names("/dev"),
    "names nothing": lambda host: host.names("/none"),
    "exists": lambda host: host.exists("/dev/link"),
    "exists not": lambda host: host.exists("/dev/none"),
    "is a block device": lambda host: host.is_block_device("/dev/sda"),
    "is no block device": lambda host: host.is_block_device("/etc/text"),
    "mode": lambda host: host.mode("/dev/sda"),
    "locate": lambda host: kind(host.locate("/dev/link")),
    "locate nothing": lambda host: kind(host.locate("/none")),
    "locate on a disk that hangs": lambda host: kind(host.locate("/slow/x")),
    "linked directories": lambda host: host.linked_directories("/srv"),
    "linked directories of nothing": lambda host: host.linked_directories("/none"),
    "way": lambda host: passed(host.way("/dev/link")),
    "way to nothing": lambda host: passed(host.way("/none")),
    "mode of nothing": lambda host: host.mode("/none"),
    "resolve": lambda host: host.resolve("/dev/link"),
    "resolve nothing": lambda host: host.resolve("/none"),
    "link": lambda host: host.link("/dev/link"),
    "no link": lambda host: host.link("/dev/sda"),
    "run": lambda host: host.run(["odd"]),
    "run within": lambda host: host.run(["odd"], timeout=1.0),
    "run nothing": lambda host: host.run(["none", "-x"]),
}
question = pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)


def outcome(ask: Callable[[Host], Any], host: Host) -> Any:
    try:
        return ask(host)
    except Unobservable as error:
        return f"unobservable: {error}"


def recorded(*asked: Callable[[Host], Any]) -> dict[str, Any]:
    """Return the recording of these questions, as it comes back from a file."""
    recorder = RecordingHost(odd())
    for ask in asked:
        outcome(ask, recorder)
    return loads(dumps({"schema": SCHEMA, "calls": recorder.calls}))


@question
def test_a_replay_says_what_the_host_said(ask: Callable[[Host], Any]) -> None:
    expected = outcome(ask, odd())
    assert outcome(ask, RecordingHost(odd())) == expected
    assert outcome(ask, ReplayHost(recorded(ask))) == expected
    assert type(outcome(ask, ReplayHost(recorded(ask)))) is type(expected)


@question
def test_a_replay_that_was_not_asked_for_fails_the_test_that_asks(ask: Callable[[Host], Any]) -> None:
    with pytest.raises(NotRecorded, match="capture this host again"):
        ask(ReplayHost(recorded()))
    assert not issubclass(NotRecorded, (Unobservable, ValueError, OSError))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("read", "unobservable: /etc/text: not in the recording"),
        ("names", "unobservable: /dev: not in the recording"),
        ("mode", "unobservable: /dev/sda: not in the recording"),
        ("link", "unobservable: /dev/link: not in the recording"),
        ("run", 'unobservable: ["odd"]: not in the recording'),
        ("exists", False),
        ("is a block device", False),
        ("resolve", "/dev/link"),
    ],
)
def test_a_lenient_replay_takes_it_for_something_that_is_not_there(name: str, expected: Any) -> None:
    assert outcome(QUESTIONS[name], ReplayHost({"calls": {}}, lenient=True)) == expected


@pytest.mark.parametrize(
    "host", [RecordingHost(odd()), ReplayHost(recorded())], ids=lambda h: type(h).__name__
)
@pytest.mark.parametrize(
    "change",
    [
        lambda host: host.change(["rm", "x"]),
        lambda host: host.write_attribute("/sys/x", "1"),
        lambda host: host.write_file("/etc/x", b""),
        lambda host: host.remove_file("/etc/x"),
        lambda host: host.make_lock("/run/x"),
        lambda host: host.sync("/etc/x"),
        lambda host: host.give_file("/etc/x", Status(1, 2, 0, 0, 0o100644), 998, 998),
        lambda host: host.sync_mount(MOUNT),
        lambda host: host.set_mount_options(MOUNT, ["barrier=0"]),
        lambda host: host.set_mount_atime(MOUNT, "noatime"),
        lambda host: host.make_mount_writable(MOUNT),
        lambda host: host.try_mount("/x", "ext4", [["noatime"]]),
    ],
)
def test_nothing_can_be_changed(host: Host, change: Callable[[Host], None]) -> None:
    with pytest.raises(LooksOnly):
        change(host)


@pytest.mark.parametrize(
    "host", [RecordingHost(odd()), ReplayHost(recorded(), lenient=True)], ids=lambda h: type(h).__name__
)
@pytest.mark.parametrize("call", NOT_RECORDED)
def test_what_is_not_recorded_is_not_asked_of_the_machine_that_replays(call: str, host: Host) -> None:
    with pytest.raises(NotRecorded, match=call):
        NOT_RECORDED[call](host)


@pytest.mark.parametrize("kind", [RecordingHost, ReplayHost])
def test_every_call_of_the_seam_is_either_recorded_or_refused(kind: type[Host]) -> None:
    """The kernel alone is neither: it cannot be queried there, and the tables decide."""
    calls = {name for name, call in vars(Host).items() if callable(call) and not name.startswith("_")}
    assert calls == {*CALLS, *CHANGES, *NOT_RECORDED, "refused_mount_options"}
    assert [name for name in sorted(calls) if getattr(kind, name) is getattr(Host, name)] == []


def test_the_time_for_all_holds_for_who_is_recorded_as_well() -> None:
    host = odd()
    recorder = RecordingHost(host)
    recorder.until = 7.0
    outcome(lambda host: host.run(["true"]).stdout, recorder)
    assert host.until == 7.0


def test_the_answer_to_a_second_attempt_counts() -> None:
    host = odd()
    recorder = RecordingHost(host)
    assert outcome(lambda host: host.read("/sys/slow"), recorder) == "unobservable: /sys/slow: too slow"
    host.files["/sys/slow"] = "awake"
    recorder.read("/sys/slow")
    assert recorder.calls["read"] == {"/sys/slow": "awake"}


def test_a_recording_is_ascii_and_the_same_each_time() -> None:
    one, other = (recorded(*asked) for asked in (QUESTIONS.values(), reversed(list(QUESTIONS.values()))))
    assert dumps(one) == dumps(other)
    assert dumps(one).isascii()
    assert loads(dumps(one)) == one


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema": 0}', '{"schema": 2, "calls": {}}', "schema: 1"])
def test_a_text_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        loads(text)


def test_recordings_of_earlier_versions_answer_in_their_own_words() -> None:
    """They asked a command whether a path is there, and the kernel where it leads."""
    look = json.dumps(["test", "-e", "/srv/pg"])
    find = ["find", "/data/pg", "-mindepth", "1", "-maxdepth", "1", "-type", "l", "-xtype", "d", "-print0"]
    calls: dict[str, Any] = {
        "run": {
            look: [0, "", ""],
            json.dumps(["test", "-e", "/srv/none"]): [1, "", ""],
            json.dumps(["test", "-e", "/slow"]): {"error": "test -e /slow: no answer within 10 s"},
            json.dumps(find): [0, "/data/pg/wal\0/data/pg/again\0", ""],
        },
        "exists": {"/srv/pg": True, "/srv/none": False},
        "resolve": {"/srv/pg": "/data/pg", "/data/pg/wal": "/log/wal", "/data/pg/again": "/log/wal"},
    }
    host = ReplayHost({"calls": calls})
    found = host.locate("/srv/pg")
    assert found.path == "/data/pg"
    assert found.status
    assert stat.S_ISDIR(found.status.mode)
    assert host.locate("/srv/none") == ("/srv/none", None)
    with pytest.raises(Unobservable, match="no answer within 10 s"):
        host.locate("/slow")
    assert host.linked_directories("/data/pg") == ["/log/wal"]
    calls["run"][json.dumps(find)] = [1, "", "find: Permission denied\n"]
    with pytest.raises(Unobservable, match="find: Permission denied"):
        host.linked_directories("/data/pg")


@pytest.mark.parametrize(
    "host", [RecordingHost(odd()), ReplayHost(recorded(), lenient=True)], ids=lambda h: type(h).__name__
)
def test_the_kernel_is_not_queried_for_options_so_that_a_replay_agrees_with_its_recording(host: Host) -> None:
    """The machine that replays has another kernel, and the options of a line may hold a password."""
    assert host.refused_mount_options("ext4", ["durable-dbhost-bogus"]) is None
