# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fact is described once, in the classes of plugins/module_utils/facts/: what follows from them agrees with them."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
import yaml

from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import collect as engines_of
from ansible_collections.durable.dbhost.plugins.module_utils.facts import engines, storage, ups
from ansible_collections.durable.dbhost.plugins.module_utils.facts.schema import Fact, facts_of
from ansible_collections.durable.dbhost.plugins.module_utils.host_facts import power_facts
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import budgets, facts_schema
from ansible_collections.durable.dbhost.plugins.module_utils.storage.caches import CONTROLS
from ansible_collections.durable.dbhost.plugins.module_utils.storage.disk_kinds import PLACES
from ansible_collections.durable.dbhost.plugins.module_utils.storage.nfs import RECOVERIES

from ..plugins.module_utils.fakes.fake_firebird import FakeDatabase, FirebirdHost
from ..plugins.module_utils.fakes.fake_mariadb import MariaHost
from ..plugins.module_utils.fakes.fake_postgresql import FakePostgresql
from ..plugins.module_utils.fakes.fake_proc import FakeProcess
from ..plugins.module_utils.fakes.power_host import nut_28
from ..plugins.module_utils.fakes.runs import NOW
from ..plugins.module_utils.fakes.told_power import leased
from ..plugins.module_utils.fakes.vendor_host import with_faircom, with_mssql
from ..plugins.module_utils.test_captures import CAPTURES
from ..plugins.module_utils.test_captures import facts_of as captured_facts

ROOT = Path(__file__).resolve().parents[3]
CLASSES = (storage.StorageFacts, engines.EnginesFacts, ups.PowerFacts)
#: Facts of one field that the classes do not have.
EXTRA = "extra"


#: A template that writes `fact.NAME` would read the method of a dict.
METHODS = frozenset(name for name in dir(dict) if not name.startswith("_"))


@pytest.fixture(name="tool")
def _tool(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import facts_docs

    return facts_docs


def every(cls: Any, path: str = "") -> Iterator[tuple[str, Fact]]:
    """Yield each fact below a class, with its path."""
    for fact in facts_of(cls):
        yield f"{path}{fact.name}", fact
        if inner := rows_of(fact):
            yield from every(inner, f"{path}{fact.name}.")


def rows_of(fact: Fact) -> Any:
    """Return the class of a fact, of its rows, or of the values of its mapping."""
    if get_origin(fact.type) is dict and hasattr(get_args(fact.type)[1], "__required_keys__"):
        # Evidence has no documentation: it is the same everywhere.
        found = get_args(fact.type)[1]
        return found if found.__name__ != "Evidence" else None
    return fact.rows


def undescribed(cls: Any, found: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield the keys of facts that their class does not have, and the required ones that are missing."""
    facts = {fact.name: fact for fact in facts_of(cls)}
    yield from (f"{path}{name}" for name in set(found) - set(facts))
    yield from (f"{path}{name}" for name in cls.__required_keys__ - set(found))
    for name, fact in facts.items():
        if name in found and rows_of(fact) and found[name]:
            value = found[name]
            items = value.values() if get_origin(fact.type) is dict else [value]
            for item in value if get_origin(fact.type) is list else items:
                yield from undescribed(rows_of(fact), item, f"{path}{name}.")


def test_return_of_each_facts_module_is_written_from_the_classes(
    tool: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tool.main(["--check"]) == 0, capsys.readouterr().err


def test_a_return_section_that_differs_names_the_command(
    tool: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "documentation", lambda _module: "ansible_facts:\n")
    assert tool.main(["--check"]) == 1
    err = capsys.readouterr().err
    assert "RETURN of storage_facts.py differs" in err
    assert "run: python3 tools/facts_docs.py" in err


@pytest.mark.parametrize("module", ["storage_facts", "engine_facts", "power_facts"])
def test_the_documentation_of_each_fact_is_what_yaml_reads(tool: Any, module: str) -> None:
    name, _file, cls = tool.MODULES[module]
    found = yaml.safe_load(tool.documentation(module))["ansible_facts"]["contains"][name]["contains"]
    described = next(each for each in CLASSES if each.__name__ == cls)
    for path, fact in every(described):
        node = {"contains": found}
        for part in path.split("."):
            if "contains" not in node:
                break
            node = node["contains"][part]
        else:
            texts = [node["description"]] if isinstance(node["description"], str) else node["description"]
            assert texts and all(texts), path
            assert all(any(text in said for said in texts) for text in fact.paragraphs), path


@pytest.mark.parametrize("cls", CLASSES)
def test_each_value_that_a_fact_can_have_is_documented(tool: Any, cls: Any) -> None:
    for path, fact in every(cls):
        said = " ".join(tool._of_fact(fact))
        for value in fact.check.allowed if fact.check else ():
            assert value in ("", "unknown") or re.search(rf"V\({re.escape(value)}\)", said), (path, value)


@pytest.mark.parametrize("cls", CLASSES)
def test_no_fact_has_the_name_of_a_method_of_a_dict(cls: Any) -> None:
    """Jinja cannot read `fact.values`. The last parts of the paths are the names."""
    assert not METHODS & {path.rpartition(".")[2] for path, _ in every(cls)}


@pytest.mark.parametrize("cls", CLASSES)
def test_what_not_all_have_says_when(cls: Any) -> None:
    assert [path for path, fact in every(cls) if bool(fact.returned) == fact.is_required] == []


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
def test_each_fact_of_a_captured_host_is_described(capture: Path) -> None:
    assert sorted(undescribed(storage.StorageFacts, captured_facts(capture))) == []


FIREBIRD = FakeProcess(78, "/opt/firebird/bin/firebird")


def firebird() -> Any:
    host = FirebirdHost(FIREBIRD, a=FakeDatabase())
    host.files["/opt/firebird/firebird.conf"] = ""
    return host


@pytest.mark.parametrize("make", [FakePostgresql, MariaHost, firebird, with_mssql, with_faircom])
def test_each_fact_of_an_engine_is_described(make: Callable[..., Any]) -> None:
    found = engines_of(make(), NOW, [{"engine": "firebird", "paths": ["/data"]}])
    assert found["engines"]
    assert sorted(undescribed(engines.EnginesFacts, found)) == []


def test_each_fact_of_a_ups_is_described() -> None:
    found = power_facts(nut_28(), NOW, [], 60)
    assert sorted(undescribed(ups.PowerFacts, found)) == []
    found["guard"] = {**leased(schema=1), "installed": "current"}
    assert sorted(undescribed(ups.PowerFacts, found)) == []
    found["guard"][EXTRA] = 1
    assert sorted(undescribed(ups.PowerFacts, found)) == [f"guard.{EXTRA}"]


def test_the_check_of_a_response_has_evidence_of_each_fact_that_is_marked() -> None:
    facts = captured_facts(next(path for path in CAPTURES if path.stem == "stacked"))
    nothing = {"time": NOW, "engines": [], "unattributed": [], "writers": []}
    assert facts_schema.faults(facts, nothing) == []
    for rows, cls in (("disks", storage.DiskFacts), ("mounts", storage.MountFacts)):
        some = ("recovery", "persisted.recovery", "persisted.sync")
        marked = [path for path, fact in every(cls) if fact.evidenced and path not in some]
        assert len(marked) >= 8
        for path in marked:
            changed = copy.deepcopy(facts)
            del changed[rows][0]["evidence"][path]
            (fault, *_more) = facts_schema.faults(changed, nothing)
            assert fault == f"durable_storage.{rows}[0].evidence.{path}: observed nothing; expected it"
    # A fact that only some mounts have needs its evidence where it is there.
    facts["mounts"][0]["persisted"]["sync"] = "async"
    (fault, *_more) = facts_schema.faults(facts, nothing)
    assert fault.endswith("evidence.persisted.sync: observed nothing; expected it")


#: Facts of storage that hold a text which is neither a keyword of a closed list, nor a number, a path or a device -> what it is.
#: A host sends no sentence: what is wrong is a cause of facts/value_causes.py or facts/boot_causes.py with its parameters.
VERBATIM = {
    "fstab_error": "the error of the parser, quoted by the controller",
    "unresolved": "the error with which a path could not be read, quoted by the controller",
    "*.cause": "a keyword, checked with its parameters",
    "*.parameters": "values; those of value_causes.VERBATIM are quoted",
    "*.evidence": "as OF_EVIDENCE",
}
OF_EVIDENCE = {
    "value": "as the field of that name",
    "source": "the file, command or component that was read",
    "reason": "the error of a file or program, quoted by the controller",
    "cause": "a keyword, checked with its parameters",
    "parameters": "values; those of value_causes.VERBATIM are quoted",
    "by": "the name of a component",
    "precedence": "theirs, or absent",
}
#: As above: values as the kernel, udev, a tool or a file has them.
NAMES = (
    *("boot_id", "time", "virtualization", "boot_faults.*", "resolved", "other_mounts", "covered", "tuned.*"),
    *("disks.name", "disks.transport", "disks.model", "disks.serial", "disks.flush_blocked_by"),
    *("disks.write_cache.power_on", "disks.fua_efficient", "disks.raid.volume", "disks.scheduler.*"),
    *("*.readahead.*", "mounts.hidden_in", "mounts.views.*", "mounts.source", "mounts.carrier*"),
    *("mounts.fstype", "*.atime", "mounts.sync", "mounts.options_*", "mounts.stack.name"),
    *("mounts.stack.detail", "mounts.stack.state", "mounts.stack.below", "mounts.stack.label"),
    *("mounts.stack.id", "mounts.disks*", "mounts.external_log", "mounts.write_hole.*"),
)
#: What the check of a free text expects.
FREE = ("text", "a name", "a word", "a value", "a mapping", "a list of text", "a list of names")


def is_free_text(fact: Fact) -> bool:
    """Tell whether any text fits a fact."""

    def has_text(kind: Any) -> bool:
        return kind is str or any(map(has_text, get_args(kind)))

    expected = fact.check.wanted.split(",")[0] if fact.check else "text"
    return has_text(fact.type) and expected in FREE and not (fact.check and fact.check.allowed)


def test_no_fact_of_storage_holds_a_sentence() -> None:
    free = [path for path, fact in every(storage.StorageFacts) if is_free_text(fact) and not rows_of(fact)]
    known = (*VERBATIM, *NAMES)
    assert [path for path in free if not any(fnmatchcase(path, each) for each in known)] == []
    assert [each for each in known if not any(fnmatchcase(path, each) for path in free)] == []
    assert not [
        path for path, _fact in every(storage.StorageFacts) if path.endswith((".fix", ".remedy", ".why"))
    ]


def test_the_values_of_facts_are_those_of_the_code() -> None:
    assert {*CONTROLS, "none"} == set(storage.CONTROLS)
    assert RECOVERIES == storage.RECOVERIES
    assert set(PLACES) == set(storage.PLACES)
    assert tuple(ups.BudgetsFacts.__annotations__) == budgets.NAMES
