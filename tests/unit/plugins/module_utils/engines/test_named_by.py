# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every path of a server is opened with the rights of its user, in facts and in runs, whatever the engine."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines import causes
from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import Engines
from ansible_collections.durable.dbhost.plugins.module_utils.host import named_by
from ansible_collections.durable.dbhost.plugins.module_utils.storage import collect as storage

from ..fakes import vendor_host
from ..fakes.fake_firebird import FakeDatabase, FirebirdHost
from ..fakes.fake_host import FakeHost
from ..fakes.small_host import SmallHost
from .test_refused import ENGINES

#: What our own lists name: package directories that are listed whether or not a server is there.
OWN = ("/etc/systemd/", "/usr/", "/lib/", "/run/systemd/", "/etc/postgresql", "/run/durable-dbhost/")


def firebird_host() -> FirebirdHost:
    host = FirebirdHost(a=FakeDatabase())
    host.files["/etc/firebird/3.0/firebird.conf"] = ""
    host.open(70, "/data/a.fdb")
    return host


HOSTS = {**{name: engine.host for name, engine in ENGINES.items()}, "firebird": firebird_host}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What is opened from now on: its path, and who named it."""
    found: list[tuple[str, Any]] = []
    for call in ("locate", "read_part", "way", "list_names", "find_files", "sync", "linked_directories"):
        real = getattr(FakeHost, call)

        def opening(host: FakeHost, path: str, *given: Any, real: Any = real, **more: Any) -> Any:
            found.append((path, host.named_by))
            return real(host, path, *given, **more)

        monkeypatch.setattr(FakeHost, call, opening)
    return found


@pytest.mark.parametrize("engine", HOSTS)
def test_facts_open_a_running_server_s_paths_as_its_user(engine: str, asked: list[tuple[str, Any]]) -> None:
    host = HOSTS[engine]()
    running = [facts for facts in Engines(host, (engine,)).instances() if facts["pids"]]
    assert running and all("observation" not in facts["evidence"] for facts in running)
    by_root = {path for path, who in asked if who is None and not path.startswith(OWN)}
    assert len(asked) > len(by_root) and by_root <= set(host_lists(engine)), by_root
    assert {who.user for _path, who in asked if who} == {26}
    assert host.named_by is None


def host_lists(engine: str) -> tuple[str, ...]:
    """Return what is looked for of installed servers that need not run: paths of our own lists."""
    return {
        "firebird": ("/etc/firebird", "/opt/firebird/firebird.conf", "/etc/firebird/3.0/firebird.conf"),
    }.get(engine, ())


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_opens_no_path_of_a_server_as_one_that_root_named(
    engine: str, asked: list[tuple[str, Any]]
) -> None:
    host = HOSTS[engine]()
    layer, target = ENGINES[engine].layer, ENGINES[engine].target
    work = layer.plan(host, [target])
    assert work.changes
    by_root = {path for path, who in asked if who is None and not path.startswith(OWN)}
    # Besides the constants of SQL Server: what its tool loads, which root alone must be able to change.
    loaded = {path for path in by_root if f"{vendor_host.TOOL}/".startswith(f"{path}/") or "/lib" in path}
    assert by_root - loaded <= {vendor_host.CONF, vendor_host.HOME, vendor_host.TOOL}, by_root


def test_a_process_that_becomes_another_user_meanwhile_is_unknown() -> None:
    host = vendor_host.with_faircom()
    text, looks = host.files["/proc/60/status"], []

    def status() -> str:
        looks.append(1)
        return text if len(looks) < 4 else text.replace("26", "27")

    host.files["/proc/60/status"] = status
    (facts,) = map(causes.of_instance, Engines(host, ("faircom",)).instances())
    assert facts["name"] == "process 60"
    assert "its user changed while its arguments were read" in facts["evidence"]["config"]["reason"]


def test_databases_paths_are_placed_as_those_of_somebody(asked: list[tuple[str, Any]]) -> None:
    host = SmallHost()
    storage.collect(host, "2026-01-31T12:00:00Z", ["/", "/data"])
    who = {who for path, who in asked if path in ("/", "/data")}
    assert who == {named_by.UNKNOWN_USER}
