# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON of others, and everybody who reads it: nothing but the error that is documented."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.capture import recording
from ansible_collections.durable.dbhost.plugins.module_utils.host import json_text
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.measure import fio, plug_job, plug_log
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import costs
from ansible_collections.durable.dbhost.plugins.module_utils.storage.caches import has_volatile_cache
from ansible_collections.durable.dbhost.plugins.module_utils.ups import journal, rehearsal
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard import lease, state

PLUGINS = Path(__file__).resolve().parents[5] / "plugins"
STRANGE = {
    "nested": "[" * 200_000,
    "nested mappings": '{"a":' * 200_000,
    "infinite": '{"vwc": Infinity, "began": Infinity, "schema": NaN}',
    "too large": '{"vwc": 1e999, "began": 1e999}',
    "digits": '{"vwc": %s}' % ("9" * 5000),
    "more than a double holds": '{"vwc": %s}' % ("9" * 400),
}
#: Who reads JSON of itself: of its own process, or of a file that root wrote a moment ago.
OWN = {"json_text.py", "seam.py", "reader.py", "nut_directives.py", "redaction.py"}


@pytest.mark.parametrize("text", STRANGE.values(), ids=STRANGE)
def test_what_is_no_json_is_one_error(text: str) -> None:
    with pytest.raises(ValueError):
        json_text.loads(text)


def test_json_is_read_as_it_is() -> None:
    assert json_text.loads('{"a": [1, -2.5, "x", null, true]}') == {"a": [1, -2.5, "x", None, True]}


@pytest.mark.parametrize("text", STRANGE.values(), ids=STRANGE)
@pytest.mark.parametrize(
    "read",
    [
        has_volatile_cache,
        journal.parse,
        lease.parse,
        state.parse,
        rehearsal.loads,
        plug_job.loads,
        lambda text: plug_log.parse(io.StringIO(text)),
        recording.loads,
        lambda text: fio.parse(text, 1, 1),
        costs.parse,
    ],
)
def test_who_reads_it_raises_what_is_documented(read: Callable[[str], object], text: str) -> None:
    with pytest.raises((ValueError, Unobservable)):
        read(text)


@pytest.mark.parametrize(
    "figures",
    [
        '"write": 5, "sync": {}',
        '"write": {"total_ios": 1, "runtime": "inf", "clat_ns": {}}, "sync": {}',
        '"write": {"total_ios": %s, "runtime": 1, "clat_ns": {}}, "sync": {}' % ("9" * 400),
        '"write": {"total_ios": 1, "runtime": 1, "clat_ns": 7}, "sync": {}',
        '"write": {"total_ios": 1, "runtime": 1, "clat_ns": {"percentile": []}}, "sync": {}',
        '"write": {"total_ios": 1, "runtime": 1, "clat_ns": {}}, "sync": 5',
    ],
)
def test_figures_of_fio_that_are_none(figures: str) -> None:
    with pytest.raises(Unobservable):
        fio.parse(f'{{"jobs": [{{{figures}}}]}}', 1, 1)


def test_nobody_else_reads_json() -> None:
    for path in (PLUGINS / "module_utils").rglob("*.py"):
        if path.name not in OWN:
            assert not re.search(r"\bjson\.loads?\(", path.read_text("utf-8")), path
