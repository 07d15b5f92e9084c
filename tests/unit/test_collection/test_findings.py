# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of findings: each is written once, has a fix, and a section in docs/findings.md.

That a test produces each of them is shown at the end of a run of all unit tests (conftest.py).
"""

from __future__ import annotations

import importlib
import re
import string
import sys
from collections import Counter
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.contract import ENGINES
from ansible_collections.durable.dbhost.plugins.module_utils.policy import catalogue
from ansible_collections.durable.dbhost.plugins.module_utils.rows import (
    FAIL_ON,
    FIX_READ_ERROR,
    VERDICTS,
    Kind,
)

ROOT = Path(__file__).resolve().parents[3]
UTILS = "ansible_collections.durable.dbhost.plugins.module_utils"
#: Modules that have entries of the catalogue.
MODULES = ("policy.kinds", "storage.findings", "storage.boot_findings", "ups.findings", "engines.findings")
#: Beginning of an id -> the verdicts that it may have.
VERDICTS_OF = {
    "risk": {"at_risk"},
    "requirement": {"blocked", "unverified"},
    "withheld": {"blocked"},
    "boot": {"drifted", "unknown"},
    "unknown": {"unknown"},
    "host": set(VERDICTS),
    "note": {"note"},
}
#: The observed value states the fix.
STATED = {"host.facts", "host.no_report"}


def entries() -> list[Kind]:
    """Return all entries that the modules have, wherever they are in a name of the module."""
    modules = [importlib.import_module(f"{UTILS}.{name}") for name in MODULES]
    modules += [importlib.import_module(f"{UTILS}.engines.{name}.rules") for name in ENGINES]
    found: dict[int, Kind] = {}
    for module in modules:
        for value in vars(module).values():
            inner = value.values() if isinstance(value, dict) else (value,)
            found.update({id(each): each for each in inner if isinstance(each, Kind)})
    return list(found.values())


def test_each_entry_is_in_the_catalogue_once() -> None:
    count = Counter(each.id for each in entries())
    assert [kind for kind, number in count.items() if number > 1] == []
    assert set(count) == set(catalogue.KINDS)
    assert len(catalogue.SETTINGS) == len(set(catalogue.SETTINGS))
    assert not set(catalogue.SETTINGS) & set(catalogue.KINDS)


@pytest.mark.parametrize("kind", sorted(catalogue.KINDS))
def test_its_verdict_is_that_of_its_sort_and_a_red_one_has_a_fix(kind: str) -> None:
    entry = catalogue.KINDS[kind]
    assert re.fullmatch(r"[a-z]+(\.[a-z_]+)+", kind)
    assert entry.verdict in VERDICTS_OF[kind.partition(".")[0]]
    assert entry.says
    if entry.verdict in (*FAIL_ON, "unverified") and kind not in STATED:
        assert entry.fix, f"{kind} has no fix"


@pytest.mark.parametrize("kind", sorted(catalogue.KINDS))
def test_its_sentence_and_fix_take_the_values_that_they_name(kind: str) -> None:
    entry = catalogue.KINDS[kind]
    names = {
        name for text in (entry.says, entry.fix) for _, name, _, _ in string.Formatter().parse(text) if name
    }
    found = entry.found(**{name: f"<{name}>" for name in names})
    assert "{" not in found.reason + found.fix
    assert dict(found.observed) == {name: f"<{name}>" for name in names}


@pytest.mark.parametrize("kind", sorted(catalogue.KINDS))
def test_one_finding_is_one_sentence(kind: str) -> None:
    assert "; " not in catalogue.KINDS[kind].says


def test_no_code_but_the_catalogue_s_makes_a_reason() -> None:
    """Else it would have an id that no page explains."""
    made = {
        str(path.relative_to(ROOT / "plugins/module_utils"))
        for path in (ROOT / "plugins").rglob("*.py")
        if re.search(r"(?<!\w)Reason\(", path.read_text(encoding="utf-8").replace("class Reason(", ""))
    }
    assert made == {"rows.py", "policy/assess/verdicts.py"}


def test_the_page_has_a_section_for_each_as_the_catalogue_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("yaml")
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import findings_page
    finally:
        sys.path.remove(str(ROOT / "tools"))
    assert findings_page.main(["--check"]) == 0, capsys.readouterr().err
    page = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^### (\S+)$", page, re.M)) == sorted(catalogue.IDS)


def sections() -> dict[str, str]:
    """Return {id: the text below its heading} of the page, in one line each."""
    page = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    parts = re.split(r"^### (\S+)$", page, flags=re.M)
    return {
        name: " ".join(text.partition("\n## ")[0].split()) for name, text in zip(parts[1::2], parts[2::2])
    }


def in_capitals(text: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda name: name[1].upper(), text).replace("|", "\\|")


def test_each_section_has_its_message_and_fix_or_those_of_the_section_that_it_links_to() -> None:
    found = sections()
    for kind, entry in catalogue.KINDS.items():
        linked = re.search(r"As \[(\S+)\]", found[kind])
        alike = catalogue.KINDS.get(linked[1]) if linked else None
        for name in ("says", "fix"):
            text = getattr(entry, name)
            if re.fullmatch(r"\{\w+\}", text) or (alike and getattr(alike, name) == text):
                continue
            usual = text == FIX_READ_ERROR and kind.startswith(("boot.", "unknown."))
            assert usual or in_capitals(text) in found[kind], f"{kind}: {name}"


def test_each_section_of_a_red_finding_has_a_fix_or_links_to_one() -> None:
    """Reasons of boot and of unknown values have a usual fix, which the head of their part has."""
    found = sections()

    def has_fix(name: str) -> bool:
        linked = re.match(r"(?:.*? )?As \[(\S+)\]", found[name])
        return "Fix: " in found[name] or bool(linked and has_fix(linked[1]))

    red = [
        name
        for name, entry in catalogue.KINDS.items()
        if entry.verdict in (*FAIL_ON, "unverified", "at_risk")
    ]
    assert len(red) > 150
    usual = {name for name in red if catalogue.KINDS[name].fix == FIX_READ_ERROR}
    assert [name for name in red if name not in usual and not has_fix(name)] == []


def test_each_finding_has_why_it_matters_how_it_is_detected_and_its_waiver() -> None:
    """In its section, in the one that it links to, or in the head of its part."""
    page = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    heads = {
        # The heads of settings of one kind add to that of all settings.
        re.split(r"[.\s]", rest, maxsplit=1)[0]: " ".join(head.split())
        for head, rest in re.findall(r"^## [^\n]+\n\n(.*?)^### (\S+)", page, re.M | re.S)
        if "aiver" in head
    }
    found = sections()

    def has(name: str, what: str) -> bool:
        linked = re.search(r"(?:As|as) \[(\S+)\]", found[name])
        texts = (found[name], heads[name.partition(".")[0]])
        return any(what in text for text in texts) or bool(linked and has(linked[1], what))

    assert set(heads) == {name.partition(".")[0] for name in catalogue.IDS}
    for what in ("Detected: ", "aiver"):
        assert [name for name in catalogue.IDS if not has(name, what)] == []
    assert [name for name in catalogue.IDS if not found[name] and name not in catalogue.SETTINGS] == []
