# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which mounts a host manages: those that are named, or those that its databases lie on."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ...fakes.runs import NOW, inputs, look
from ...fakes.small_host import SmallHost
from ..assess.test_engines import instance, judged

PG = "/srv/pgdata"


def test_a_database_on_tmpfs_is_not_said_to_lie_on_its_parent() -> None:
    host = SmallHost()
    host.files["/proc/self/mountinfo"] = (
        host.read("/proc/self/mountinfo") + "98 31 0:50 / /srv/pgdata/ram rw - tmpfs tmpfs rw\n"
    )
    found = look(
        host, "strict", mounts=None, databases=[{"engine": "postgresql", "paths": ["/srv/pgdata/ram/db"]}]
    )
    assert found["verdict"] in ("blocked", "unknown", "at_risk"), found["verdict"]


@pytest.mark.fact(46)
def test_a_database_behind_a_link_lies_where_the_link_leads() -> None:
    host = SmallHost()
    host.links["/var/lib/data"] = "/srv/pgdata/data"
    host.files["/srv/pgdata/data"] = ""
    databases = [{"engine": "postgresql", "paths": ["/var/lib/data"]}]
    found = look(host, "strict", mounts=None, databases=databases)
    assert {row["target"] for row in found["settings"] if row["layer"] == "mount_options"} == {PG}


def test_a_database_that_is_not_there_is_not_attributed_to_what_would_hold_it() -> None:
    given = inputs("strict", mounts=None, databases=[{"engine": "postgresql", "paths": ["/srv/pgdta"]}])
    found = assess(given, collect(SmallHost(), NOW, ["/srv/pgdta"]), NOW)
    assert found["verdict"] == "unknown"
    assert "observed /srv/pgdta: it does not exist" in found["why"][0]
    assert not found["settings"]


@pytest.mark.parametrize("mounts", ["", {}, 0, False])
def test_what_is_no_list_is_not_taken_for_none(mounts: Any) -> None:
    assert look(SmallHost(), "strict", mounts=mounts)["verdict"] == "blocked"


SCRATCH = {"directories": [PG], "temporary": ["/srv/maria/tempdb"]}


def mounts_in(found: dict[str, Any]) -> dict[str, str]:
    """Return {mount point: how it is judged} of a report."""
    return {each["target"]: each["judged"] for each in found["mounts"]}


def test_a_mount_with_temporary_files_alone_is_listed_and_judged_by_nothing() -> None:
    found = judged(instance(**SCRATCH), mounts=None)
    assert mounts_in(found) == {PG: "yes", "/srv/maria": "temporary"}
    assert not any(row["target"] in ("/srv/maria", "serial:VIRT0001") for row in found["settings"])
    assert (
        "/srv/maria: it holds nothing but temporary files of postgresql main: not assessed"
        in found["warnings"]
    )
    assert "has files on" not in "\n".join(found["why"])


def test_a_mount_with_data_of_another_engine_is_not_temporary_although_it_is_not_listed() -> None:
    maria = instance("mariadb", name="other", directories=["/srv/maria/db"])
    found = judged(instance(**SCRATCH), maria, mounts=[PG])
    assert mounts_in(found) == {PG: "yes"}
    assert not any("temporary files" in note for note in found["warnings"])


@pytest.mark.parametrize("profile", ["strict", None])
def test_an_audit_leaves_out_read_only_mounts(profile: str | None) -> None:
    """A power cut loses nothing there."""
    host = SmallHost()
    vars(host.mounts["/srv/maria"]).update(flags=("ro",), sb_flag="ro")
    host.files["/etc/fstab"] = host.text("/etc/fstab").replace("/srv/maria ext4 ", "/srv/maria ext4 ro,")
    found = look(host, profile, mounts=None, rate=True)
    targets = {row["target"] for row in found["ratings"]["strict"]["changes"]}
    assert PG in targets
    assert "/srv/maria" not in targets


def test_it_counts_with_one_data_file_of_any_engine_or_on_a_list() -> None:
    maria = instance("mariadb", name="other", directories=["/srv/maria/db"])
    for found in (
        judged(instance(**SCRATCH), maria, mounts=None),
        judged(instance(**SCRATCH), mounts=[PG, "/srv/maria"]),
        judged(instance(**{**SCRATCH, "directories": [PG, "/srv/maria/db"]}), mounts=None),
    ):
        assert mounts_in(found) == {PG: "yes", "/srv/maria": "yes"}
        assert any(row["target"] == "/srv/maria" for row in found["settings"])
