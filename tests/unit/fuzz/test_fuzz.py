# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fuzzing itself: what brings a parser down is told, what is kept takes a new way."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fuzz import kept, limits, run
from fuzz.target import TARGETS, Target, keep
from fuzz.target import kept as kept_of


def target(parse: Callable[[bytes], object], *allowed: type[Exception]) -> Target:
    """Return a target that nobody else knows."""
    return Target("mine", parse, allowed, (b"a seed",))


def loop(_data: bytes) -> None:
    for _number in itertools.count():
        pass


def backtrack(data: bytes) -> None:
    re.fullmatch(rb"(x+x+)+y", data)


def swallow(data: bytes) -> None:
    try:
        loop(data)
    except Exception:
        pass


@pytest.mark.parametrize("parse", [loop, backtrack, swallow])
def test_a_hang_is_broken_off(parse: Callable[[bytes], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.05)
    began = time.process_time()
    with pytest.raises(limits.Hang):
        target(parse).check(b"x" * 64)
    assert time.process_time() - began < 5


def test_what_the_clock_counts_is_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.05)
    target(lambda _data: time.sleep(0.2)).check(b"")


def test_growth_is_told_even_where_it_is_given_back() -> None:
    def grow(data: bytes) -> None:
        assert len(bytearray(data) * (60 * 2**20)) == len(data) * 60 * 2**20

    target(grow).check(b"")
    for _time in range(2):
        with pytest.raises(limits.Growth, match=r"MiB for 1 bytes; expected at most 50 MiB"):
            target(grow).check(b"x")


def test_only_what_is_allowed_may_be_raised() -> None:
    def refuse(_data: bytes) -> None:
        raise KeyError

    target(refuse, KeyError).check(b"")
    with pytest.raises(KeyError):
        target(refuse, ValueError).check(b"")


def test_what_takes_a_new_way_is_kept_shortest_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def parse(data):\n    if b'x' in data:\n        data = data[1:]\n    if len(data) > 3:\n        data = b''\n"
    )
    monkeypatch.setattr(kept, "SOURCES", tmp_path)
    code: dict[str, Any] = {}
    exec(compile((tmp_path / "mine.py").read_text(), str(tmp_path / "mine.py"), "exec"), code)
    mine = target(code["parse"])._replace(seeds=(b"a",))
    chosen = kept.choose(mine, [b"xxxx", b"ax", b"b", b"bbbbbb", b"abbbbb", b"x", b"x" * 5000])
    assert chosen == [b"x", b"abbbbb"]


def test_what_is_kept_comes_back_byte_for_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzz.target.CORPUS", tmp_path)
    inputs = [bytes(range(256)), b"", b"text\n"]
    keep("mine", inputs, tmp_path)
    assert sorted(kept_of("mine")) == sorted(inputs)


def test_a_target_that_did_not_run_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where atheris is missing."""
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(run, "OUTPUT", tmp_path / "output")
    assert run.main(["fdinfo", "--minutes", "0.01"]) == 1
    assert (
        "fdinfo: 0 inputs, 0 branches; ENDED with exit code 1: see output/fdinfo/log"
        in capsys.readouterr().out
    )


def test_one_that_ended_otherwise_is_not_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its statistics look well, and it left no input: as where something killed it at the end."""
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(run, "OUTPUT", tmp_path / "output")
    told = "printf 'cov: 3\\nstat::number_of_executed_units: 9\\n'"
    for code, seen, returned in (
        (0, "9 inputs, 3 branches; ok", 0),
        (7, "branches; ENDED with exit code 7: see", 1),
    ):
        program = tmp_path / "python"
        program.write_text(f"#!/bin/sh\n{told}\nexit {code}\n")
        program.chmod(0o755)
        monkeypatch.setattr("sys.executable", str(program))
        assert run.main(["fdinfo", "--minutes", "0.01"]) == returned
        assert seen in capsys.readouterr().out


def test_an_input_is_parsed_again(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(b"flags:\t8")
    assert run.main(["fdinfo", "--input", str(path)]) == 0
    assert "fdinfo" in TARGETS
