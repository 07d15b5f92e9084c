# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What NUT's upsd says, asked over loopback of a stand-in, and what is made of a hostile answer."""

from __future__ import annotations

import socket
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.host import bounds
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.ups import upsd
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.power_host import (
    VARIABLES,
    Upsd,
)
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.stand_in import (
    Talk,
    answering,
    listening,
)


def asked(port: int) -> upsd.Answer:
    """Ask the stand-in."""
    return upsd.ask(Host(), upsd.System("rack", "127.0.0.1", port))


def test_a_stand_in_over_loopback_tells_what_upsd_tells() -> None:
    with listening(answering(Upsd({"rack": VARIABLES}, logins=3))) as port:
        found = asked(port)
    assert found.reason is None
    assert found.logins == 3
    assert found.variables is not None
    assert found.variables["ups.status"] == "OL CHRG"
    assert found.variables["device.model"] == 'Smart "Rack" #2'
    assert set(found.variables) == set(VARIABLES)


def test_what_upsd_refuses_is_told_in_its_word() -> None:
    with listening(answering(Upsd({}))) as port:
        found = asked(port)
    assert (found.variables, found.word) == (None, "UNKNOWN-UPS")
    assert found.reason == "upsd of 127.0.0.1 says UNKNOWN-UPS"


def test_nobody_there_is_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    found = asked(port)
    assert found.variables is None
    assert found.reason == f"upsd: 127.0.0.1 port {port}: Connection refused"


def trickle(link: socket.socket) -> None:
    """Answer a byte at a time, for ever."""
    try:
        while True:
            link.sendall(b"x")
            time.sleep(0.02)
    except OSError:
        pass


def flood(link: socket.socket) -> None:
    """Answer without an end."""
    try:
        while True:
            link.sendall(b"x" * 65536)
    except OSError:
        pass


def hang_up(link: socket.socket) -> None:
    """Answer half of it."""
    link.recv(100)
    link.sendall(b"BEGIN LIST VAR rack\nVAR rack ups.st")


@pytest.mark.parametrize(
    ("talk", "words"),
    [
        (trickle, "no answer within 0.3 s"),
        (lambda link: time.sleep(0.6), "no answer within 0.3 s"),
        (flood, "answers more than 1000 bytes"),
        (hang_up, "ended the connection after b'BEGIN LIST VAR rack"),
    ],
)
def test_a_daemon_that_does_not_come_to_an_end_is_left_in_time(
    talk: Talk, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "DAEMON_OUTPUT", 1000)
    with listening(talk) as port:
        began = time.monotonic()
        with pytest.raises(Unobservable, match=words):
            Host().ask("127.0.0.1", port, [b"LIST VAR rack\n"], upsd.is_whole, timeout=0.3)
        assert time.monotonic() - began < 2


def test_a_host_that_is_out_of_time_asks_nobody() -> None:
    host = Host()
    host.until = time.monotonic() - 1
    with pytest.raises(Unobservable, match="no answer within"):
        host.ask("127.0.0.1", 9, [b"x"], upsd.is_whole)


def test_a_name_that_nobody_can_look_up_is_no_answer() -> None:
    with pytest.raises(Unobservable, match="port 3493"):
        Host().ask("x" * 300, 3493, [b"x"], upsd.is_whole)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("rack", upsd.System("rack", "localhost", 3493)),
        ("rack@ups1.example.com", upsd.System("rack", "ups1.example.com", 3493)),
        ("rack@192.0.2.7:4000", upsd.System("rack", "192.0.2.7", 4000)),
        ("rack@[2001:db8::7]", upsd.System("rack", "2001:db8::7", 3493)),
        ("rack@[2001:db8::7]:4000", upsd.System("rack", "2001:db8::7", 4000)),
    ],
)
def test_a_system_is_read_as_upsmon_reads_it(text: str, wanted: upsd.System) -> None:
    assert upsd.system(text) == wanted


@pytest.mark.parametrize(
    "text", ["", "@host", "rack\n@host", "ra ck@host", "rack@host:99999", "rack@host:x", "a@b@c:1:2"]
)
def test_any_other_system_is_refused(text: str) -> None:
    with pytest.raises(Unobservable, match="expected"):
        upsd.system(text)


@pytest.mark.parametrize(
    ("said", "whole"),
    [
        (b"", False),
        (b"ERR UNKNOWN-UPS", False),
        (b"ERR UNKNOWN-UPS\n", True),
        (b"BEGIN LIST VAR rack\n", False),
        (b'BEGIN LIST VAR rack\nVAR rack a "END LIST"\n', False),
        (b"BEGIN LIST VAR rack\nEND LIST VAR rack\n", True),
    ],
)
def test_an_answer_is_whole_with_its_last_line(said: bytes, whole: bool) -> None:
    assert upsd.is_whole(bytearray(said)) is whole


@pytest.mark.parametrize(
    "body",
    [
        'VAR rack ups.status "OL"\nVAR rack ups.status "OB"',
        'VAR rack ups.status "OL" "OB"',
        "VAR rack ups.status OL",
        'VAR rack ups.status "OL',
        'VAR rack ups.status "O"L"',
        'RW rack ups.status "OL"',
        "",
    ],
)
def test_a_list_with_any_odd_line_is_none(body: str) -> None:
    with pytest.raises(Unobservable, match="expected"):
        upsd.variables(f"BEGIN LIST VAR rack\n{body}\nEND LIST VAR rack\n", "rack")


@pytest.mark.parametrize("last", ["END LIST VAR other", "END LIST UPS", 'VAR rack a "b"'])
def test_a_list_without_its_own_end_is_none(last: str) -> None:
    with pytest.raises(Unobservable, match="expected BEGIN LIST VAR rack"):
        upsd.variables(f'BEGIN LIST VAR rack\nVAR rack ups.status "OL"\n{last}\n', "rack")


@given(st.text(max_size=200))
def test_no_answer_does_worse_than_be_refused(text: str) -> None:
    for said in (text, f"BEGIN LIST VAR rack\n{text}\nEND LIST VAR rack\n"):
        try:
            found = upsd.variables(said, "rack")
        except Unobservable:
            continue
        assert all(isinstance(value, str) for value in found.values())
