# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host's whole answer to the controller, in which some values are others: whoever is root there chooses them."""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Iterator
from typing import Any

import yaml

from ansible_collections.durable.dbhost.plugins.module_utils.host.printable import printable
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import engines, ups
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect.inputs import Inputs
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.page import HEIGHT, render
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.report import details, with_outcomes
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.results import assess_answer
from ansible_collections.durable.dbhost.plugins.module_utils.rows import VERDICTS
from fuzz import ROOT
from fuzz.target import FIXTURES, of_bytes

NOW = "2026-01-31T12:00:00Z"
_PROFILES = ("strict", "flush", "protected", "ups", "disposable")
#: What stands in the place of a value.
_INSTEAD: tuple[Any, ...] = (
    *(
        None,
        True,
        0,
        -1,
        2**80,
        1e308,
        "",
        "unknown",
        "on",
        "durable",
        "/",
        "/\n../x",
        "{{ x }}",
        "\x1b[2J",
        "9" * 5000,
    ),
    *([], [[]], [None], {}, {"": ""}, {"value": "unknown"}, ["unknown", {}]),
)


def _plain(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (mapping or list, key) of all that is in a tree, the outer first."""
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], (dict, list)):
            yield from _plain(tree[key])


@functools.cache
def _answer() -> dict[str, Any]:
    storage = json.loads((FIXTURES / "captures/buses.facts.json").read_text("ascii"))
    moment = {"boot_id": storage["boot_id"], "time": NOW}
    storage.update(moment)
    return {
        "ansible_facts": {
            "durable_storage": storage,
            "durable_engines": {**engines.nothing_known(NOW, "x"), **moment},
            "durable_power": {**ups.nothing_known(NOW, "x"), **moment},
        },
        "failures": {},
    }


@functools.cache
def _shipped() -> dict[str, Any]:
    found = yaml.safe_load((ROOT / "playbooks/vars/profiles.yml").read_text("utf-8"))
    return dict(next(iter(found.values())))


@of_bytes(
    seeds=[bytes([number]) for number in range(5)] + [b"\x00\x00\x08\x07", b"\x01\x00\x01\x0f\x00\x02\x02"]
)
def assessed_answer(data: bytes) -> None:
    answer, data = copy.deepcopy(_answer()), data or b"\0"
    # Three bytes are an edit: which value, and what stands there.
    for place in range(1, len(data) - 2, 3):
        values = list(_plain(answer))
        inside, key = values[int.from_bytes(data[place : place + 2], "big") % len(values)]
        inside[key] = copy.deepcopy(_INSTEAD[data[place + 2] % len(_INSTEAD)])
        if place > 10:
            break
    inputs = Inputs(_PROFILES[data[0] % len(_PROFILES)], _shipped(), {}, {}, rate=bool(data[0] & 128))
    found = assess_answer(inputs, NOW, answer)
    assert found["verdict"] in VERDICTS
    json.dumps(printable(found))
    report = with_outcomes({**found, "host": "db1", "was": "", "looked_only": True, "error": None})
    details([report])
    assert len(render([report]).splitlines()) <= HEIGHT


@of_bytes(
    seeds=[
        b"Failed to connect to the host via ssh: ssh: connect to host db1 port 22: Connection refused",
        b"Failed to connect to the host via ssh: root@db1: Permission denied (publickey).",
        b"Task failed: No space left on device",
        b"db1; Fix: {{ x }}",
    ]
)
def unreached_host(data: bytes) -> None:
    """The message with which Ansible reports a host as unreachable, which contains what the host sent."""
    inputs = Inputs("strict", _shipped(), {}, {})
    answer = {"unreachable": True, "msg": data.decode("utf-8", "replace")}
    found = assess_answer(inputs, NOW, answer)
    assert found["verdict"] == "unreachable"
    json.dumps(printable(found))
