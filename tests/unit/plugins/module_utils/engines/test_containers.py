# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers in containers: options of the command line override files, and names outlive the container.

Rebuilt from the documents of Docker, Podman, Quadlet and LXC; no runtime ran.
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines import causes
from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import Engines

from ..fakes.fake_proc import OTHER, FakeProcess, ProcHost

ONE, TWO = "0123456789ab" + "c" * 52, "f" * 64
DATA = "/var/lib/postgresql/data"
GROUPS = {
    "docker": "/system.slice/docker-{}.scope",
    "podman": "/machine.slice/libpod-{}.scope/container",
    "quadlet": "/system.slice/pg.service/libpod-payload-{}",
}
POSTGRES = "/usr/lib/postgresql/16/bin/postgres"


def table(host_path: str, inside: str = DATA) -> str:
    """Return the mount table of a container with a volume on /data of the host."""
    return (
        "50 40 0:99 / / rw - overlay overlay rw\n"
        f"51 50 8:17 {host_path.removeprefix('/data')} {inside} rw - ext4 /dev/sdb1 rw\n"
    )


def container(group: str, *argv: str, pid: int = 50, at: str = "/data/volumes/pg") -> ProcHost:
    """Return a host with a container that runs PostgreSQL."""
    process = FakeProcess(
        pid,
        POSTGRES,
        ("postgres", *argv),
        cwd=DATA,
        namespace=OTHER,
        pid_namespace="4026539999",
        mountinfo=table(at),
        cgroup=f"0::{group}\n",
    )
    host = ProcHost(process)
    root = f"/proc/{pid}/root{DATA}"
    host.files.update({f"{root}/postgresql.conf": "fsync = on\n", f"{root}/PG_VERSION": "16\n"})
    return host


def told(host: ProcHost, engine: str = "postgresql") -> dict[str, Any]:
    (facts,) = map(causes.of_instance, Engines(host, (engine,)).instances())
    assert "observation" not in facts["evidence"], facts["evidence"]
    assert facts["managed_by"] == "container"
    return facts


@pytest.mark.parametrize("group", [*GROUPS.values(), "/lxc.payload.db/system.slice/x.service"])
@pytest.mark.parametrize(
    ("argv", "name", "word"),
    [
        (("-c", "fsync=off"), "fsync", "off"),
        (("-c", "fsync=on"), "fsync", "on"),
        (("-F",), "fsync", "off"),
        (("--full-page-writes=off",), "full_page_writes", "off"),
        (("-c", "synchronous_commit=off"), "synchronous_commit", "off"),
    ],
)
def test_an_option_of_the_command_line_is_what_runs_and_what_persists(
    group: str, argv: tuple[str, ...], name: str, word: str
) -> None:
    facts = told(container(group.format(ONE), *argv))
    rows = facts["settings"]
    assert (rows[name]["running"], rows[name]["persisted"]) == (word, word)
    assert (rows[name]["source"], rows[name]["from"]) == ("/proc/50/cmdline", "its command line")
    others = {row["running"] for each, row in rows.items() if each != name}
    assert others == {"unknown"}
    assert facts["evidence"]["settings"]["value"] == "unknown"


def test_a_word_that_postgresql_refuses_is_no_running_value() -> None:
    assert told(container(GROUPS["docker"].format(ONE), "-c", "fsync=maybe"))["settings"]["fsync"][
        "running"
    ] == ("unknown")


@pytest.mark.parametrize(
    ("option", "name", "running", "persisted"),
    [
        ("--innodb-flush-log-at-trx-commit=2", "innodb_flush_log_at_trx_commit", "2", "2"),
        # SET GLOBAL can have changed a good one.
        ("--innodb-flush-log-at-trx-commit=1", "innodb_flush_log_at_trx_commit", "unknown", "1"),
        ("--innodb-flush-method=O_DSYNC", "innodb_flush_method", "O_DSYNC", "O_DSYNC"),
    ],
)
def test_of_mariadb_only_a_fixed_or_a_losing_option_is_what_runs(
    option: str, name: str, running: str, persisted: str
) -> None:
    process = FakeProcess(
        80,
        "/usr/sbin/mariadbd",
        ("mariadbd", option),
        cwd="/var/lib/mysql",
        namespace=OTHER,
        pid_namespace="4026539999",
        mountinfo=table("/data/volumes/my", "/var/lib/mysql"),
        cgroup=f"0::{GROUPS['docker'].format(ONE)}\n",
        environment={"MARIADB_VERSION": "1:10.11.6+maria~ubu2204"},
    )
    row = told(ProcHost(process), "mariadb")["settings"][name]
    assert (row["running"], row["persisted"]) == (running, persisted)


@pytest.mark.parametrize("kind", GROUPS)
def test_a_name_outlives_the_container(kind: str) -> None:
    names = {
        told(container(GROUPS[kind].format(each), pid=pid))["name"] for pid, each in ((50, ONE), (90, TWO))
    }
    word = "docker" if kind == "docker" else "libpod"
    assert names == {f"{word}:/data/volumes/pg {DATA}"}


QUADLETS = "/etc/containers/systemd"
QUADLET = {
    f"{QUADLETS}/pg.container": "[Container]\nImage=postgres\nEnvironmentFile=/etc/pg.env\nVolume=pg.volume:/data\n",
    f"{QUADLETS}/pg.volume": "[Volume]\n",
    f"{QUADLETS}/pg.container.d/x.conf": "[Container]\nExec=-c fsync=on\n",
    f"{QUADLETS}/web.container": "[Container]\nImage=web\n",
    "/etc/systemd/system/pg.service.d/x.conf": "[Service]\nTimeoutStartSec=99\n",
    "/etc/pg.env": "A=b\n",
}


@pytest.mark.parametrize("path", sorted(QUADLET))
def test_a_quadlet_that_changed_since_the_start_leaves_the_next_start_unknown(path: str) -> None:
    host = container(GROUPS["quadlet"].format(ONE), "-c", "fsync=on")
    host.files.update(QUADLET)
    assert told(host)["settings"]["fsync"]["persisted"] == "on"
    later = next(iter(Engines(host, ("postgresql",)).processes.all.values())).started
    assert later is not None
    host.owned[path] = host.status(path)._replace(modified=later + 60)
    found = told(host)["settings"]["fsync"]
    if "/web." in path:
        assert found["persisted"] == "on"
        return
    assert (found["running"], found["persisted"]) == ("on", "unknown")
    assert f"{path} changed since pg.service started" in found["reason"]
    assert causes.fix(found) == "restart pg.service when its clients can wait, then run again"


@pytest.mark.parametrize("group", [GROUPS["podman"], "/system.slice/pg.service/libpod-{}.scope"])
def test_a_container_that_starts_as_it_was_created_has_no_quadlet(group: str) -> None:
    host = container(group.format(ONE), "-c", "fsync=on")
    host.files.update(QUADLET)
    path = f"{QUADLETS}/pg.container"
    host.owned[path] = host.status(path)._replace(modified=9e9)
    assert told(host)["settings"]["fsync"]["persisted"] == "on"


def test_containers_with_other_volumes_have_other_names() -> None:
    group = GROUPS["docker"].format(ONE)
    assert told(container(group))["name"] != told(container(group, at="/data/volumes/other"))["name"]


def test_lxc_names_its_containers() -> None:
    assert told(container("/lxc.payload.db/system.slice/x.service"))["name"] == f"lxc:db {DATA}"
    assert told(container("/system.slice/systemd-nspawn@db.service/payload"))["name"] == f"nspawn:db {DATA}"


def test_data_that_this_host_sees_nowhere_leaves_the_id() -> None:
    host = container(GROUPS["docker"].format(ONE))
    host.files["/proc/50/mountinfo"] = "50 40 0:99 / / rw - overlay overlay rw\n"
    assert told(host)["name"] == f"docker:0123456789ab {DATA}"
