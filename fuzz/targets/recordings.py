# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Captured hosts of which one answer is another, and recordings of strangers."""

from __future__ import annotations

import copy
import functools
import json
import re
from collections.abc import Iterator
from typing import Any

from ansible_collections.durable.dbhost.plugins.module_utils.capture import (
    capture,
    recording,
    redact_devices,
    redact_mounts,
    redaction,
    servers,
)
from ansible_collections.durable.dbhost.plugins.module_utils.capture.identities import Identities
from ansible_collections.durable.dbhost.plugins.module_utils.host import bounds
from ansible_collections.durable.dbhost.plugins.module_utils.host.printable import (
    is_plain,
    line,
    lines,
    printable,
    quote,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.host.unit_lines import _named_in
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import facts_schema
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.history import with_history
from fuzz.target import FIXTURES, fixtures, of_bytes, of_text

NOW = "2026-01-31T12:00:00Z"
#: The layouts that have the most in them, and a small one: all of a recording is redacted at once.
_HOSTS = ("engines", "stacked", "mounts", "buses")
_SMALL = ("kernels",)


@functools.cache
def _host(name: str) -> dict[str, Any]:
    return recording.loads((FIXTURES / f"captures/{name}.json").read_text("ascii"))


@functools.cache
def _answers(hosts: tuple[str, ...]) -> list[tuple[str, str, str]]:
    """Return (host, call, key) of one answer of each kind: numbers make no other kind."""
    found: dict[tuple[str, str], tuple[str, str, str]] = {}
    for name in hosts:
        for call in ("read", "run", "names", "link"):
            for key in _host(name)["calls"][call]:
                found.setdefault(
                    (call, re.sub(r"[0-9a-f]*\d[0-9a-f]*|sd[a-z]|vd[a-z]", "#", key)), (name, call, key)
                )
    return sorted(found.values())


def _seeds(hosts: tuple[str, ...]) -> Iterator[bytes]:
    for number, (name, call, key) in enumerate(_answers(hosts)):
        said = _host(name)["calls"][call][key]
        text = said[1] if call == "run" and isinstance(said, list) else said
        text = "\n".join(text) if isinstance(text, list) else text if isinstance(text, str) else ""
        yield b"%d " % number + text.encode("utf-8", "surrogateescape")


def _other(data: bytes, hosts: tuple[str, ...]) -> dict[str, Any] | None:
    """Return the recording of a host in which one answer is this text: `number text`, None for another form."""
    number, _blank, said = data.partition(b" ")
    if not (number.isdigit() and len(number) < 5):
        return None
    text = said.decode("utf-8", "surrogateescape")
    name, call, key = _answers(hosts)[int(number) % len(_answers(hosts))]
    calls = dict(_host(name)["calls"])
    answer: Any = {"run": [0, text, ""], "names": sorted(set(filter(None, text.split("\n"))))}.get(call, text)
    calls[call] = {**calls[call], key: answer}
    return {**_host(name), "calls": calls}


@of_bytes(Unobservable, seeds=_seeds(_HOSTS))
def captured_host(data: bytes) -> None:
    strange = _other(data, _HOSTS)
    if strange:
        facts = capture.replay(strange, NOW, lenient=True)
        # What is wrong with what a host says is for the policy to tell; here only that it can.
        facts_schema.faults(json.loads(json.dumps(printable(facts))), [])


@of_bytes(seeds=_seeds(_SMALL))
def redacted_host(data: bytes) -> None:
    redact_mounts.hosts_in(data.decode("utf-8", "surrogateescape"))
    strange = _other(data, _SMALL)
    if strange:
        redaction.redact(copy.deepcopy(strange), ["db1"])


@of_text(
    seeds=[
        *fixtures(
            "udev_database.txt",
            "mountinfo_*.txt",
            "fstab_*.txt",
            "dmsetup_table_*.txt",
            "nvme_id_ctrl_2.3.json",
        ),
        "BOOT_IMAGE=/vmlinuz root=UUID=01234567-89ab-cdef-0123-456789abcdef rootflags=nobarrier quiet\n",
        "[Mount]\nWhat=db2:/export\nOptions=password=x,noatime\n",
        "# durable.dbhost\n# wwn:0x5000 sata disabled\n[main]\ninclude=x\n[disk]\nreadahead=4096\n",
    ]
)
def redacted_text(text: str) -> None:
    names = Identities("")
    for shown in (
        *servers.option_names(text),
        servers._text(text, names),
        quote(text),
        *_named_in(text, "x.service"),
    ):
        assert isinstance(shown, str)
    for redact in (
        *(redact_devices.database, redact_devices.rules, redact_devices.superblock, redact_devices.table),
        *(
            redact_devices.nvme_identity,
            redact_devices.queueing,
            redact_devices.drbd,
            redact_devices.drbd_84_shown,
            redact_devices.drbd_84_status,
            redact_devices.drbd_adjusted,
            redact_devices.settings,
            redact_mounts.mountinfo,
            redact_mounts.crypttab,
            redact_mounts.fstab,
        ),
        *(
            redact_mounts.options,
            redact_mounts.option_lines,
            redact_mounts.command_line,
            redact_mounts.unit,
            redact_mounts.boot_loader,
        ),
        *(redaction._text, redaction._identity, redaction._mapped, redaction._unit, redaction._asset_tag),
    ):
        assert isinstance(redact(text, names), str)
    redact_mounts._source(text, "nfs", names)


@of_text(ValueError, seeds=['{"schema": 1, "calls": {}}', "[]"])
def recording_file(text: str) -> None:
    recording.loads(text)


@of_text(
    seeds=[
        '{"schema": 1, "host": "db1", "verdict": "durable", "time": "x", "settings": []}',
        '{"schema": 1, "host": "db1", "verdict": "at_risk", "time": "y", "settings": [{"layer": "a", "target": "b",'
        ' "setting": "c", "running": "d", "persisted": "e", "verdict": "ok"}]}',
        "[]",
    ]
)
def earlier_report(text: str) -> None:
    found = with_history({"host": "db1", "time": "y", "settings": []}, text)
    assert set(found) == {"host", "time", "settings", "since"}


@of_text(seeds=["db1: durable", "\x1b[2Ja\nb\r\tc", "\u202e\u200b\ufe0f\udc80\\n", "{{ x }}", "\"'$(x)"])
def shown_text(text: str) -> None:
    shown = line(text)
    assert shown.isprintable()
    assert line(shown) == shown
    assert lines([text]).count("\n") == 1
    assert not is_plain(text) or shown == text
    assert bounds.size({text: [text]}) >= len(json.dumps(printable({text: [text]})))
    assert len(bounds.short(text)) <= 310
