# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write RETURN of the facts modules from the classes in plugins/module_utils/facts/, where each fact is described once.

Without an argument it writes the modules; with --check it fails if RETURN of one is not what it would write.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import yaml

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 128
#: Module -> the name of its facts, and the module and class that describe them.
MODULES = {
    "storage_facts": ("durable_storage", "storage", "StorageFacts"),
    "engine_facts": ("durable_engines", "engines", "EnginesFacts"),
    "power_facts": ("durable_power", "ups", "PowerFacts"),
}
#: Types of Python -> those of Ansible's documentation. A union is `raw`.
_TYPES: dict[Any, str] = {str: "str", int: "int", float: "float", bool: "bool"}
_RETURN = re.compile(r'(?<=^RETURN = r"""\n).*?(?=^""")', re.M | re.S)


def import_facts(name: str) -> Any:
    """Return a module of plugins/module_utils/facts/."""
    collections = str(ROOT / "playbooks/collections")
    if collections not in sys.path:
        sys.path.append(collections)
    return importlib.import_module(f"ansible_collections.durable.dbhost.plugins.module_utils.facts.{name}")


def documentation(module: str) -> str:
    """Return RETURN of a module."""
    fact, name, cls = MODULES[module]
    described = getattr(import_facts(name), cls)
    rows = [
        "ansible_facts:",
        "  description: The facts, under one name.",
        "  returned: always",
        "  type: dict",
        "  contains:",
        f"    {fact}:",
        *_described(_paragraphs(described), 6),
        "      type: dict",
        "      returned: always",
        "      contains:",
        *_fields(described, 8),
    ]
    return "\n".join(rows) + "\n"


def _fields(cls: Any, indent: int) -> Iterator[str]:
    blank = " " * (indent + 2)
    for fact in sorted(import_facts("schema").facts_of(cls), key=lambda fact: not fact.is_required):
        yield f"{' ' * indent}{fact.name}:"
        yield from _described(_of_fact(fact), indent + 2)
        kind, elements = _type_of(fact)
        yield f"{blank}type: {kind}"
        if elements:
            yield f"{blank}elements: {elements}"
        yield f"{blank}returned: {fact.returned or 'always'}"
        for sample in fact.samples:
            yield f"{blank}sample: {yaml.safe_dump(sample, default_flow_style=True, sort_keys=False, width=200).splitlines()[0]}"
        if fact.rows:
            yield f"{blank}contains:"
            yield from _fields(fact.rows, indent + 4)


def _type_of(fact: Any) -> tuple[str, str]:
    """Return the type of a fact and of its elements, as Ansible's documentation has them."""
    origin = get_origin(fact.type)
    if origin is list:
        (item,) = get_args(fact.type)
        return "list", "dict" if fact.rows else _TYPES[item]
    if fact.rows or origin is dict:
        return "dict", ""
    return _TYPES.get(fact.type, "raw"), ""


def _of_fact(fact: Any) -> list[str]:
    """Return what describes a fact: its own texts, or those of its class; its values if these name none."""
    found = list(fact.paragraphs) or (_paragraphs(fact.rows) if fact.rows else [])
    allowed = [f"V({value})" for value in (fact.check.allowed if fact.check else ()) if value]
    if allowed and not any("V(" in text for text in found):
        values = f"{', '.join(allowed[:-1])} or {allowed[-1]}."
        found[-1:] = [" ".join([*found[-1:], values])]
    item = get_args(fact.type)[1] if get_origin(fact.type) is dict else None
    if hasattr(item, "__required_keys__"):
        inner = import_facts("schema").facts_of(item)
        found += [f"C({each.name}) - {' '.join(each.paragraphs)}" for each in inner if each.paragraphs]
    return found


def _paragraphs(cls: Any) -> list[str]:
    return [" ".join(part.split()) for part in (cls.__doc__ or "").split("\n\n")]


def _described(paragraphs: list[str], indent: int) -> Iterator[str]:
    """Yield the lines of `description`."""
    blank = " " * indent
    line = f"{blank}description: {paragraphs[0]}"
    if len(paragraphs) == 1 and len(line) <= WIDTH and _is_plain(paragraphs[0]):
        yield line
        return
    yield f"{blank}description:"
    for text in paragraphs:
        if _is_plain(text):
            yield from textwrap.wrap(
                text, WIDTH, initial_indent=f"{blank}  - ", subsequent_indent=f"{blank}    ", **_WHOLE
            )
        else:
            yield f"{blank}  - >-"
            yield from textwrap.wrap(
                text, WIDTH, initial_indent=f"{blank}    ", subsequent_indent=f"{blank}    ", **_WHOLE
            )


_WHOLE: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}


def _is_plain(text: str) -> bool:
    """Tell whether YAML reads a text without quotes as it is."""
    try:
        return bool(yaml.safe_load(text) == text)
    except yaml.YAMLError:
        return False


def main(argv: list[str]) -> int:
    """Write the modules, or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args(argv).check
    differs = []
    for module in MODULES:
        path = ROOT / f"plugins/modules/{module}.py"
        text = path.read_text(encoding="utf-8")
        wanted = documentation(module)
        if _RETURN.findall(text) != [wanted]:
            differs.append(f"RETURN of {path.name} differs from the classes of facts")
            if not check:
                path.write_text(_RETURN.sub(lambda _found, new=wanted: new, text), encoding="utf-8")  # type: ignore[misc]
    if check and differs:
        print("\n".join([*differs, "run: python3 tools/facts_docs.py"]), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
