# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What all real engines have in common: their scripts, their programs, and how their cuts are made."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from proof import engine, evidence, judge, needs
from proof.cells import SAFE, Setting
from proof.engine import Bench, Engine
from proof.engines import ENGINES
from proof.sweep import MIX, WHOLE_PAGES
from proof.volatile import SECTORS

each_engine = pytest.mark.parametrize("one", ENGINES.values(), ids=list(ENGINES))


@each_engine
def test_scripts_are_shell(one: Engine) -> None:
    """As far as sh can tell without running them."""
    for script in (one.adopt, one.prepare, one.ask, one.sync_off):
        assert script.strip()
        done = subprocess.run(["sh", "-n"], input=script, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@each_engine
def test_a_client_answers_with_the_number_of_the_commit(one: Engine) -> None:
    """Behind the insert, of this seed and client."""
    said = one.client.commit.format(seed=7, client=2, number=31)
    assert "insert into commits values (7, 2, 31);" in said
    assert said.index("values (7, 2, 31)") < said.index("done 31")


@each_engine
def test_programs_that_are_not_there_are_named_with_their_packages(
    one: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only where cells of the engine were asked for."""
    monkeypatch.setattr(needs, "is_there", lambda tool, path: tool not in one.programs)
    monkeypatch.setattr(needs, "_has_plugin", lambda: True)
    assert not set(one.programs) & set(needs.missing())
    assert {tool: needs.missing([one])[tool] for tool in one.programs} == dict(one.programs)


def test_a_library_is_there_though_no_program(tmp_path: Path) -> None:
    """It is named in full, and nobody runs it."""
    (tmp_path / "lib.so").touch(0o644)
    assert needs.is_there(f"{tmp_path}/lib.so", "/usr/bin")
    assert not needs.is_there(f"{tmp_path}/none.so", "/usr/bin")


def test_pages_that_nothing_mends_are_cut_whole_and_the_page_says_so() -> None:
    """Firebird's; the other engines' are torn as any."""
    mixes = {name: judge.mix_of(Setting("flush", "virtio", "ext4", engine=name)) for name in ["", *ENGINES]}
    assert mixes == {"": MIX, "postgresql": MIX, "mariadb": MIX, "firebird": WHOLE_PAGES}
    assert SECTORS in MIX and SECTORS not in WHOLE_PAGES and len(MIX) == len(WHOLE_PAGES)
    for name, one in ENGINES.items():
        cell = {
            "cell": "c",
            "expects": SAFE,
            "setting": {"profile": "flush", "device": "sata", "file_system": "ext4", "engine": name},
        }
        told = evidence.not_shown([cell | {"accounting": []}])
        assert (ENGINES["firebird"].unproven in told) == (name == "firebird")
        assert bool(one.unproven) == one.whole_pages


def test_rows_and_what_is_absent() -> None:
    """Blanks around do not count; what was never acknowledged is not asked for."""
    rows = engine.rows_of("0,0  \n\n 1,0\n1,7\n", ",")
    assert rows == {(0, 0), (1, 0), (1, 7)}
    assert engine.absent([2, 1], rows) == {(0, 1)}


@pytest.mark.skipif(engine.os.geteuid() != 0, reason="needs root, to be somebody else")
def test_a_server_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its words are kept; it was nobody, with no environment of ours."""
    monkeypatch.setattr(engine, "LIMIT", 0.5)
    monkeypatch.setenv("PROOF_SECRET", "x")
    bench = Bench(Path("/"), Path("/"))
    ended = bench.run(["sh", "-c", "id -un; echo [$PROOF_SECRET]; exec sleep 60"])
    assert (ended.code, ended.said) == (-1, "no end after 0 s: nobody\n[]")
