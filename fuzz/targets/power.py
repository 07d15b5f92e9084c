# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What monitors of a UPS, their daemons on the network, journals and the guard's own files say."""

from __future__ import annotations

import json
import re
from contextlib import suppress

from ansible_collections.durable.dbhost.plugins.module_utils.host.our_paths import HOOK
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.host.textfile import Malformed
from ansible_collections.durable.dbhost.plugins.module_utils.ups import (
    apcupsd,
    apcupsd_scripts,
    journal,
    nis,
    nut_directives,
    nut_mode,
    rehearsal,
    shutdown_commands,
    upsd,
    upsmon_conf,
)
from ansible_collections.durable.dbhost.plugins.module_utils.ups import apply as power
from ansible_collections.durable.dbhost.plugins.module_utils.ups import device as ups
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard import lease, state
from fuzz.target import Says, of_bytes, of_text

NOTE = "a note"
#: Characters of a text that is edited as well.
_LONG = 4096
_UPSMON = """\
# Network UPS Tools
RUN_AS_USER nut
MONITOR rack@localhost 1 upsmon "s3\\#cret" primary
MINSUPPLIES 1
SHUTDOWNCMD "/sbin/shutdown -h +0"
NOTIFYCMD /usr/sbin/upssched  # a comment
POWERDOWNFLAG /etc/killpower
NOTIFYFLAG ONBATT SYSLOG+WALL+EXEC
FINALDELAY 5
"""
_BOOT = "01234567-89ab-cdef-0123-456789abcdef"
_LEASE = {
    "schema": lease.SCHEMA,
    "mounts": [{"target": "/d", "uuid": _BOOT}],
    "issued": "2026-01-01",
    "expires": "2026-12-31",
    "quiet": 60,
    "needed": {"durability": 10.0, "clean_stop": 60.0},
    "test_ups": False,
    "units": ["mariadb.service"],
}
_STATE = state.Record(
    _BOOT, 17, 12345, 1.5, state.WAITING, "", "2026-01-01", 5, {"/d": state.Below("8:1", ("sda",))}
)
_ENTRY = {
    "__MONOTONIC_TIMESTAMP": "1",
    "_PID": "1",
    "UNIT": "a.service",
    "MESSAGE": "x",
    "MESSAGE_ID": journal.STOPPED,
}


@of_text(
    Malformed,
    ValueError,
    seeds=[_UPSMON, 'MONITOR "a b" 1 u p\\\n slave\nNOTIFYFLAG x IGNORE\n', 'a =b "" c\\"d\n'],
)
def upsmon_conf_file(text: str) -> None:
    lines = upsmon_conf.parse(text)
    assert upsmon_conf.render(lines) == text
    upsmon_conf.complaints(lines)
    upsmon_conf.flagged(lines)
    upsmon_conf.monitors(lines)
    if len(text) > _LONG:
        return  # Each edit reads it again.
    after = upsmon_conf.set_value(text, "FINALDELAY", "7", NOTE)
    found = upsmon_conf.value(upsmon_conf.parse(after), "FINALDELAY")
    assert found and found.value == "7"
    assert upsmon_conf.value(upsmon_conf.parse(upsmon_conf.unset(after, "FINALDELAY")), "FINALDELAY") is None
    after = upsmon_conf.set_flags(text, "ONBATT", ("EXEC",), NOTE)
    assert upsmon_conf.flags(upsmon_conf.parse(after), "ONBATT") == ("EXEC",)
    upsmon_conf.parse(upsmon_conf.unset_flags(after, "ONBATT"))
    words = ("rack@localhost", "1", "upsmon", "se cret", "primary")
    after = upsmon_conf.set_monitor(text, words, NOTE)
    assert upsmon_conf.monitor_words(after, words[0]) == words
    assert upsmon_conf.monitor_words(upsmon_conf.remove_monitor(after, words[0]), words[0]) is None


@of_text(ChangeFailed, Malformed, seeds=[_UPSMON, "#!/bin/sh\nexit 0\n", "MODE=none\n"])
def upsmon_conf_of_layer(text: str) -> None:
    row = {"system": "rack@localhost", "power_value": 1, "user": "upsmon", "type": "primary"}
    if len(text) > _LONG:
        return
    asked = {"notify_flags": "exec", "monitor": row, "notify_command": HOOK}
    apcupsd_scripts.is_ours(text)
    nut_directives.unmarked(text, NOTE)
    nut_directives.passed_over(text, "upsmon.conf")
    nut_directives.has_password(text, "upsmon.conf")
    nut_directives.runs_as(text, "upsmon.conf")
    with suppress(ChangeFailed):
        power._command_before_us(text, "upsmon.conf", asked, {})
    with suppress(ChangeFailed):
        nut_directives.expect_usable(text, "upsmon.conf")
    wanted = nut_directives.wanted_of(text, "upsmon.conf", asked, "secret")
    for key, word in wanted.items():
        text = nut_directives.put(text, "upsmon.conf", key, word, NOTE)


@of_text(Malformed, seeds=["# x\nexport MODE='standalone' # y\n", "MODE=none\nMODE=none\n", "MODE = x\n"])
def nut_conf_file(text: str) -> None:
    nut_mode.value(text)
    found = nut_mode.value(nut_mode.set_mode(text, "netclient", NOTE))
    assert found and found.value == "netclient"


@of_text(Malformed, seeds=["## apcupsd.conf\nUPSCABLE usb\nNISPORT 3551\nKILLDELAY 0\nBATTERYLEVEL 5\n"])
def apcupsd_conf_file(text: str) -> None:
    for said in apcupsd.parse(text).values():
        apcupsd._number(said)


@of_text(
    seeds=[
        "/sbin/shutdown -h +0",
        "logger x; sh -c 'exec shutdown -P now' >/dev/null 2>&1 # y",
        "systemctl --when=now poweroff || halt -p",
        'sudo -n shutdown -t5 -h 23:00 "$X"',
    ]
)
def shutdown_command_line(text: str) -> None:
    found = shutdown_commands.of_line(text)
    assert found.state in ("met", "unmet", "unknown")
    # What shuts down names a program that does.
    assert found.state != "met" or re.search("shutdown|poweroff|halt|init", re.sub(r"[\"'\\\\]", "", text))


@of_text(
    seeds=['SHUTDOWN=/sbin/shutdown\ncase $1 in\n doshutdown)\n ${SHUTDOWN} -h now "UPS ${2}"\n ;;\nesac\n']
)
def apccontrol_file(text: str) -> None:
    shutdown_commands.of_lines(apcupsd._inserted(text, text).split("\n"))


@of_text(
    Unobservable,
    seeds=[
        'BEGIN LIST VAR rack\nVAR rack ups.status "OL CHRG"\nVAR rack battery.charge "100"\nVAR rack x "a\\"b\\\\"\n'
        "END LIST VAR rack\n",
        "ERR DATA-STALE\n",
        "NUMLOGINS rack 2\n",
        'BEGIN LIST VAR rack\nVAR rack battery.runtime "1e3"\nVAR rack driver.flag.ignorelb "enabled"\n'
        'VAR rack battery.runtime.low "60"\nVAR rack driver.name "dummy-ups"\nEND LIST VAR rack\n',
    ],
)
def upsd_answer(text: str) -> None:
    upsd.is_whole(bytearray(text.encode("utf-8", "surrogateescape")))
    asked = upsd.System("rack", "localhost", upsd.PORT)
    ups.of_nut("rack", "rack@localhost", "u", 1, "primary", upsd.ask(Says(text), asked))


@of_text(Unobservable, seeds=["rack", "rack@db1:3493", "rack@[::1]:3493"])
def upsd_system(text: str) -> None:
    assert 0 < upsd.system(text).port < 65536


@of_bytes(
    ValueError,
    seeds=[
        b"\x00\x18STATUS   : ONLINE SLAVE\n\x00\x16TIMELEFT : 12.5 Minutes\x00\x12BCHARGE  : 100.0 %\x00\x00",
        b"\x00\x11STATUS : COMMLOST\x00\x00",
    ],
)
def apcupsd_answer(said: bytes) -> None:
    # Only what is complete is taken apart.
    if nis.is_whole(bytearray(said)):
        told = nis.fields(said)
        ups.of_apcupsd("ups", "ups@x", "primary", told, "usb", ups.Low(None, ""))


@of_text(
    ValueError,
    seeds=[json.dumps(_ENTRY) + "\n", json.dumps({**_ENTRY, "MESSAGE": [104, 105], "_PID": ["1"]})],
)
def journal_entries(text: str) -> None:
    entries = journal.parse(text)
    journal.of(entries, "a.service")


@of_text(ValueError, seeds=[json.dumps(_LEASE)])
def guard_lease(text: str) -> None:
    found = lease.parse(text)
    assert lease.parse(found.render()) == found


@of_text(ValueError, seeds=[_STATE.render()])
def guard_state(text: str) -> None:
    found = state.parse(text)
    assert state.parse(found.render()) == found


@of_text(Unobservable, seeds=["17 (guard) S 1 1 1 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 12345 1 2\n", "12.5 3.5\n"])
def guard_process(text: str) -> None:
    with suppress(Unobservable):
        state.identity(Says(text), 17)
    state.uptime(Says(text))


@of_text(
    ValueError,
    seeds=[
        rehearsal.dumps(
            rehearsal.Job(
                _BOOT,
                5,
                "nut",
                "nut-monitor.service",
                "upsmon",
                (rehearsal.Engine("mariadb", "x", "a.service", "90"),),
                "",
            )
        )
    ],
)
def rehearsal_job(text: str) -> None:
    found = rehearsal.loads(text)
    assert rehearsal.loads(rehearsal.dumps(found)) == found
