# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules that measure: what they refuse, that check mode writes nothing, and what they hand on."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("ansible")

from ansible_collections.durable.dbhost.plugins.module_utils.measure import benchmark as core
from ansible_collections.durable.dbhost.plugins.module_utils.measure import (
    file_systems,
    plug_host,
    plug_job,
    plug_keeper,
    prove,
)
from ansible_collections.durable.dbhost.plugins.modules import (
    benchmark,
    compare_filesystems,
    plug_witness,
    plug_writer,
    prove_fua,
)
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.documents import with_fragments
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.small_host import SmallHost
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.measure.test_benchmark import (
    FioHost,
    row,
)
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.measure.test_file_systems import (
    DISK,
    ROWS,
)
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.measure.test_plug import (
    JOB,
    KEY,
    small_job,
)

from .run_module import run_module

MODULES = [benchmark, compare_filesystems, plug_witness, plug_writer, prove_fua]


def never(*_arguments: Any) -> None:
    """Stand for what writes."""
    raise AssertionError("something was written")


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_the_documentation_is_the_argument_spec(module: ModuleType) -> None:
    documented = with_fragments(module.DOCUMENTATION)["options"]
    assert set(documented) == set(module.SPEC)
    for name, option in module.SPEC.items():
        for key in ("type", "elements", "default", "choices", "required"):
            assert documented[name].get(key) == option.get(key), (name, key)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"mounts": ["/nowhere"]}, "nothing is mounted there"),
        ({"mounts": ["/srv/pgdata"], "size": 65}, "size"),
        ({"mounts": ["/srv/pgdata"], "commits": 5}, "commits"),
        ({"mounts": ["/srv/pgdata"], "patterns": []}, "patterns"),
    ],
)
def test_prove_fua_refuses(arguments: Any, why: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(prove, "run", never)
    result = run_module(prove_fua, SmallHost(), monkeypatch, capsys, **arguments)
    assert why in result["msg"]


def test_prove_fua_writes_nothing_in_check_mode(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(prove, "run", never)
    result = run_module(prove_fua, SmallHost(), monkeypatch, capsys, True, mounts=["/srv/pgdata"])
    assert (result["changed"], result["rows"]) == (False, [])


def test_a_full_disk_fails_with_words(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def full(*_arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(prove, "run", full)
    result = run_module(prove_fua, SmallHost(), monkeypatch, capsys, mounts=["/srv/pgdata"])
    assert "No space left on device; free space on that file system" in result["msg"]
    assert "It has been removed" in result["msg"]


def test_benchmark_writes_nothing_in_check_mode(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(core, "run", never)
    host = FioHost()
    result = run_module(
        benchmark, host, monkeypatch, capsys, True, mounts=["/srv/pgdata"], schedulers=["none"]
    )
    assert (result["changed"], result["rows"], host.mutations) == (False, [], [])


def test_benchmark_warns_of_a_lying_cache(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(
        core,
        "run",
        lambda *_: [{**row("as it is", 30000, clients), "mount": "/srv/pgdata"} for clients in (1, 4, 16)],
    )
    warned: list[str] = []
    monkeypatch.setattr(benchmark.AnsibleModule, "warn", lambda _self, text: warned.append(text))
    host = FioHost()
    host.disks["sda"].rotational = "1"
    result = run_module(benchmark, host, monkeypatch, capsys, mounts=["/srv/pgdata"])
    assert result["doubts"]
    assert warned == result["doubts"]


def test_file_systems_are_compared_only_outside_check_mode_and_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    made = file_systems.Plan(
        DISK, ["ext4"], {"jfs": "missing"}, ["defaults"], [], ["none"], ["dsync"], [1], 1, 1, 1
    )
    monkeypatch.setattr(file_systems, "plan", lambda *_: made)
    monkeypatch.setattr(file_systems, "run", never)
    names = {"device": DISK.device, "overwrite": DISK.device}
    result = run_module(compare_filesystems, SmallHost(), monkeypatch, capsys, True, **names)
    assert (result["changed"], result["rows"], result["table"]) == (False, [], "")
    monkeypatch.setattr(file_systems, "run", lambda *_: file_systems.Measured(ROWS, 0.5, "sdc is in use"))
    warned: list[str] = []
    monkeypatch.setattr(compare_filesystems.AnsibleModule, "warn", lambda _self, text: warned.append(text))
    result = run_module(compare_filesystems, SmallHost(), monkeypatch, capsys, **names)
    assert (result["device"], len(result["rows"])) == (DISK.device, len(ROWS))
    assert "jfs was not measured: missing" in result["table"]
    assert "50% faster at the end" in result["advice"][0]
    assert compare_filesystems.MADE_BY in result["svg"]
    assert warned == ["sdc is in use"]
    monkeypatch.undo()
    result = run_module(
        compare_filesystems, SmallHost(), monkeypatch, capsys, device="/dev/sda", overwrite="/dev/sda"
    )
    assert "expected the permanent name" in result["msg"]


def test_a_run_is_planned_without_writing(
    monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path
) -> None:
    job = small_job(tmp_path)
    monkeypatch.setattr(plug_host, "plan", lambda *_: job)
    result = run_module(
        plug_writer, SmallHost(), monkeypatch, capsys, state="planned", run=job.run, mounts=["/a"]
    )
    assert (plug_job.loads(result["job"]), result["changed"]) == (job, False)


@pytest.mark.parametrize("state", ["started", "cleaned"])
def test_the_writer_does_nothing_in_check_mode(
    state: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(plug_host, "begin", never)
    monkeypatch.setattr(plug_host, "clean", never)
    given = {"mounts": ["/a"], "job": plug_job.dumps(JOB), "address": "w", "key": KEY}
    assert "failed" not in run_module(
        plug_writer, SmallHost(), monkeypatch, capsys, True, state=state, **given
    )


def verify(monkeypatch: pytest.MonkeyPatch, capsys: Any, **given: Any) -> dict[str, Any]:
    """Return what the writer says of the job's commits."""
    base = {"job": plug_job.dumps(JOB), "acknowledged": [200] * 12, "by": "me", "today": "2026-02-01"}
    return run_module(plug_writer, SmallHost(), monkeypatch, capsys, state="verified", **{**base, **given})


def test_an_attestation_is_written_only_of_what_was_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(plug_host, "verify", lambda *_: plug_job.Losses(2400, 2400, 0, ()))
    kept = verify(monkeypatch, capsys)
    assert (kept["verdict"], "plug_pulled" in kept["attestation"]) == ("kept", True)
    assert verify(monkeypatch, capsys, by="")["attestation"] == ""
    monkeypatch.setattr(plug_host, "verify", lambda *_: plug_job.Losses(2400, 2400, 1, ("x",)))
    lost = verify(monkeypatch, capsys)
    assert (lost["verdict"], lost["attestation"]) == ("lost", "")
    monkeypatch.setattr(plug_host, "verify", never)
    ended = verify(monkeypatch, capsys, ended={"3": "stopped"})
    assert (ended["verdict"], ended["attestation"]) == ("not_cut", "")


def test_numbers_of_another_job_are_refused(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    assert "expected 12" in verify(monkeypatch, capsys, acknowledged=[1])["msg"]


def test_a_witness_on_the_same_machine_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path
) -> None:
    monkeypatch.setattr(plug_keeper, "start", never)
    host = SmallHost()
    same = JOB._replace(boot_id=host.read("/proc/sys/kernel/random/boot_id").strip())
    given = {"state": "started", "name": "db1", "key": KEY, "directory": str(tmp_path / "kept")}
    result = run_module(plug_witness, host, monkeypatch, capsys, job=plug_job.dumps(same), **given)
    assert "expected another machine" in result["msg"]
    checked = run_module(plug_witness, host, monkeypatch, capsys, True, job=plug_job.dumps(JOB), **given)
    assert checked["changed"] is True
    assert os.listdir(tmp_path) == []


def test_a_witness_that_nobody_started_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path
) -> None:
    given = {"name": "db1", "directory": str(tmp_path)}
    assert (
        "not there"
        in run_module(plug_witness, SmallHost(), monkeypatch, capsys, state="read", **given)["msg"]
    )
    assert (
        run_module(plug_witness, SmallHost(), monkeypatch, capsys, state="absent", **given)["changed"]
        is False
    )
