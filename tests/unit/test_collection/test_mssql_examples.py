# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of examples/mssql: complete, and as the page that leads to them says. SQL Server itself is in no archive."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PLACE = ROOT / "examples/mssql"
PAGE = (ROOT / "docs/engines/mssql-test.md").read_text(encoding="utf-8")
JOBS = PLACE / "ioperftest.fio"


def jobs() -> configparser.ConfigParser:
    """Return the fio jobs."""
    found = configparser.ConfigParser(default_section="global")
    found.read_string(JOBS.read_text(encoding="utf-8"))
    return found


def test_the_page_names_each_file_and_no_other() -> None:
    named = set(re.findall(r"\b[\w-]+\.(?:sql|sh|fio)\b", PAGE))
    assert named == {path.name for path in PLACE.iterdir()}


def test_each_section_that_is_named_is_a_job() -> None:
    named = set(re.findall(r"--section=(\w+)", PAGE + JOBS.read_text(encoding="utf-8")))
    named |= set(re.findall(r"jobs? `(\w+)`(?: and `(\w+)`)?", PAGE)[0])
    assert named <= set(jobs().sections())


@pytest.mark.fact(17)
def test_the_jobs_are_the_patterns_with_the_flags_of_their_names() -> None:
    found = jobs()
    for name in found.sections():
        job = found[name]
        if name in ("sqliosim_data", "sqliosim_log", "diskspd"):
            assert (job["direct"], job["sync"]) == ("1", "dsync"), name
            continue
        words = name.split("_")
        assert job.get("direct") == ("1" if "direct" in words else None), name
        assert job.get("sync") == ("dsync" if "dsync" in words else None), name
        assert job.get("fdatasync") == ("1" if "fdatasync" in words else None), name
        assert job["ioengine"] == ("libaio" if "aio" in words else "psync"), name
    assert {"direct", "dsync", "direct_dsync", "aio_direct", "aio_direct_dsync"} <= set(found.sections())


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed here")
def test_fio_understands_the_jobs(tmp_path: Path) -> None:
    subprocess.run(["fio", "--parse-only", str(JOBS)], cwd=tmp_path, check=True, timeout=60)


def test_the_statements_undo_what_they_make() -> None:
    text = {path.name: path.read_text(encoding="utf-8") for path in PLACE.glob("*.sql")}
    assert text["commits.sql"].index("CREATE DATABASE CommitTest") < text["commits.sql"].index(
        "DROP DATABASE"
    )
    assert "IF DB_ID(N'CommitTest') IS NOT NULL" in text["commits.sql"].partition("CREATE DATABASE")[0]
    assert "CREATE EVENT SESSION commit_path" in text["xevents.sql"]
    assert "DROP EVENT SESSION commit_path" in text["xevents-stop.sql"]
    for name in ("flush%", "make[_]durable%", "checkpoint%"):
        assert f"LIKE N'{name}'" in text["xevents.sql"]


def test_the_trace_refuses_what_is_no_disk_and_is_a_script_for_sh() -> None:
    script = PLACE / "trace.sh"
    subprocess.run(["sh", "-n", str(script)], check=True, timeout=10)
    refused = subprocess.run(
        ["sh", str(script), "nothing"], capture_output=True, text=True, check=False, timeout=10
    )
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "observed nothing, expected a disk" in refused.stderr
