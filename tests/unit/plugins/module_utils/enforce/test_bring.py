# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done with every layer: where it fails, what it did by then is read from the machine again."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.enforce.arguments import Arguments
from ansible_collections.durable.dbhost.plugins.module_utils.enforce.bring import bring
from ansible_collections.durable.dbhost.plugins.module_utils.enforce.change import Change
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed

from ..fakes.fake_host import FakeHost

A, B = (Change(name, "cache", "running", "on", "off") for name in "ab")


class Work(NamedTuple):
    """A plan."""

    changes: tuple[Change, ...]
    failures: Mapping[str, str]


class Layer(SimpleNamespace):
    """A stand-in of a layer: each plan finds what is next in `seen`, a reason or changes; `refuses`: what applying says."""

    ARGUMENTS = Arguments({})
    failures: Mapping[str, str] = MappingProxyType({})
    refuses = ""

    def plan(self, _host: Any, _targets: Any) -> Work:
        found = self.seen.pop(0)
        if isinstance(found, str):
            raise ChangeFailed(found)
        return Work(tuple(found), self.failures)

    def apply(self, *_given: Any) -> None:
        if self.refuses:
            raise ChangeFailed(self.refuses)


@pytest.mark.parametrize(
    ("layer", "changed", "told"),
    [
        (Layer(seen=[[A, B]]), True, []),
        (Layer(seen=["none is there"]), False, ["none is there; nothing of this step was done"]),
        (Layer(seen=["/srv: /srv: no"]), False, ["/srv: no; nothing of this step was done"]),
        (
            Layer(seen=[[A]], failures={"/srv": "/srv: /srv: no"}),
            True,
            ["/srv: no; done: a cache (running)"],
        ),
        (
            Layer(seen=[[A, B], [B]], refuses="b: no"),
            True,
            ["b: no; done: a cache (running); not done: b cache (running): observed on, expected off"],
        ),
        (
            Layer(seen=[[A], [A]], refuses="a: no"),
            False,
            ["a: no; not done: a cache (running): observed on, expected off"],
        ),
        (
            Layer(seen=[[A], "gone"], refuses="a: no"),
            True,
            ["a: no; done or not, it cannot be read: a cache (running)"],
        ),
        # A target that was left out at the plan already keeps no other from being done.
        (Layer(seen=[[A]], failures={"c": "c: busy"}), True, ["c: busy; done: a cache (running)"]),
    ],
)
def test_a_failure_ends_in_what_was_done_by_then(layer: Layer, changed: bool, told: list[str]) -> None:
    found = bring(FakeHost(), layer, {"state": "present"}, foretell=False)
    assert (found.changed, list(found.failures)) == (changed, told)


def test_a_check_tells_what_would_fail_and_of_nothing_that_was_done() -> None:
    layer = Layer(seen=[[A]], failures={"c": "c: busy"}, refuses="nobody is to ask")
    found = bring(FakeHost(), layer, {"state": "present"}, foretell=True)
    assert (found.changed, found.failures) == (False, ("c: busy",))
