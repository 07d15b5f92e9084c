# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An engine that nobody has heard of: its folder, a row of the catalogue and one of the contract are all that it takes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]

OBSERVE = """
import re
from ..instance import Instance, Observed, of_mains, setting
from ...host.observation import Observation

NAME, PROGRAMS, UNITS, VARIABLES = "toy", ("toyd",), re.compile(r"toy[.]service"), ()
CONFIG = "/etc/toy.conf"


def find(host, processes):
    return of_mains(NAME, processes, processes.mains(PROGRAMS), lambda main: Instance(NAME, "toy", (main,), CONFIG))


def installed(host, units):
    return [Instance(NAME, "toy", config=CONFIG, unit=unit) for unit in units]


def observe(host, found, place):
    word = host.read(CONFIG).strip()
    settings = {"sync": setting(word if found.processes else "stopped", word, CONFIG)}
    return Observed(Observation("1.0", "toyd"), settings, directories=("/data",), writes=(CONFIG,))
"""
RULES = """
from ...rows import Kind
from ..rule import EARLY, rule
from ..rules import Judge

TOY = Kind("note.toy.seen", "note", "{engine}: a toy")
JUDGE = Judge(
    {"toy": {"sync": rule("always", EARLY, loses=True)}},
    warnings=lambda subject: [TOY.found(subject.label, engine=subject.label)],
    kinds=(TOY,),
)
"""
ASK = """
import json, sys
from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show import report
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect as storage_of
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fake_proc import FakeProcess, ProcHost, RDWR
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.runs import NOW, inputs, settled

host = ProcHost(FakeProcess(77, "/opt/toyd", files=(("/data/a", RDWR, 31),)))
host.files["/etc/toy.conf"] = sys.argv[1]
engines = collect(host, NOW)
(instance,) = engines["engines"]
instance["directories"], instance["files"] = ["/srv/pgdata"], []
storage = storage_of(settled("strict", mounts=["/srv/pgdata"]), NOW)
engines["boot_id"] = storage["boot_id"]
named = [{"engine": "toy", "paths": ["/srv/pgdata"]}]
found = assess(inputs("strict", mounts=["/srv/pgdata"], databases=named), storage, NOW, engines)
of_run = {"host": "db1", "was": found["verdict"], "looked_only": True, "begun": [], "error": None}
table = str(report.details([report.with_outcomes({**found, **of_run})]))
print(json.dumps({"found": found, "unattributed": engines["unattributed"], "table": table}))
"""


def insert(path: Path, before: str, text: str) -> None:
    """Put a text before the only place where another one is."""
    source = path.read_text(encoding="utf-8")
    assert source.count(before) == 1
    path.write_text(source.replace(before, text + before), encoding="utf-8")


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where a copy of the collection lies that has the engine."""
    top = tmp_path_factory.mktemp("toy")
    copy = top / "ansible_collections/durable/dbhost"
    for room in ("plugins/module_utils", "tests/unit/plugins/module_utils"):
        shutil.copytree(ROOT / room, copy / room, ignore=shutil.ignore_patterns("__pycache__", "test_*"))
    shutil.copytree(ROOT / "playbooks/vars", copy / "playbooks/vars")
    utils = copy / "plugins/module_utils"
    folder = utils / "engines/toy"
    folder.mkdir()
    for name, text in (("__init__", ""), ("observe", OBSERVE), ("rules", RULES)):
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    insert(
        utils / "catalog.py",
        '    Engine(\n        "postgresql"',
        '    Engine("toy", "toy_config", checks={"toy": "toycheck"}),\n',
    )
    contract = utils / "engines/contract.py"
    insert(contract, "\n\nclass Engine(", "from .toy import observe as toy\n")
    insert(contract, "    postgresql.NAME:", "    toy.NAME: Engine(toy),\n")
    judges = utils / "engines/judges.py"
    insert(judges, "from .rules import Judge", "from .toy import rules as toy\n")
    insert(judges, "        postgresql,\n", "        toy,\n")
    return top


def ask(collection: Path, word: str) -> Any:
    """Return what is found on a host that has the engine so set."""
    done = subprocess.run(
        [sys.executable, "-c", ASK, word],
        cwd=collection,
        env={"PYTHONPATH": str(collection)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_is_found_assessed_planned_and_reported(collection: Path) -> None:
    told = ask(collection, "never")
    found = told["found"]
    assert told["unattributed"] == []
    assert [(one["engine"], one["version"]) for one in found["engines"]] == [("toy", "1.0")]
    assert found["verdict"] == "at_risk"
    assert any(why.startswith("commits of toy can be lost: sync is never") for why in found["why"])
    assert found["exposed"] == ["toy was exposed: after the fix, check it for damage with toycheck"]
    assert found["plan"]["tighten"]["toy"] == [{"instance": "toy", "settings": {"sync": "always"}}]
    (step,) = [step for step in found["steps"] if step["layer"] == "toy"]
    assert (step["phase"], step["layer"]) == ("tighten", "toy")
    assert step["arguments"] == {"targets": found["plan"]["tighten"]["toy"], "restart": False}
    assert "/etc/toy.conf" in found["files"]
    assert "toy: a toy" in found["warnings"]
    assert "sync" in told["table"]


def test_it_is_well_when_it_is_as_wanted(collection: Path) -> None:
    found = ask(collection, "always")["found"]
    assert [row["verdict"] for row in found["settings"] if row["layer"] == "toy"] == ["ok"]
    assert "toy" not in found["plan"]["tighten"]
