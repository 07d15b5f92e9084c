# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The functions that are parsers, and those that targets reach: a new parser without a target is found."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from fuzz import ROOT
from fuzz.target import Target

SOURCES = ROOT / "plugins/module_utils"
#: What a parser's first argument is called here, whatever its type; bytes are parsed under any name.
_TEXT = ("text", "page")
#: Functions of that form that take nothing apart that a host said.
NOT_PARSERS = {
    "storage/known_options.py:_forms": "reads the table beside it",
    "engines/postgresql/apply.py:_bytes": "encodes its text",
    "policy/assess/facts_check.py:_time": "reads what the facts' own module wrote",
    "storage/known_options.py:_spellings": "reads the table beside it",
    "watch/metrics.py:_escaped": "writes its text",
    "watch/metrics.py:_seconds": "reads what a report has",
    "capture/redaction.py:_as_is": "returns its text",
    "undo/put_back.py:_say": "writes its text",
    "undo/put_back.py:_tell_systemd": "sends its text",
}


def parsers() -> set[str]:
    """Return `file:function` of all parsers: functions of a module whose name begins with parse, or that take
    a text or bytes first."""
    found = {
        f"{path.relative_to(SOURCES)}:{name}" for path in sorted(SOURCES.rglob("*.py")) for name in _of(path)
    }
    return found - set(NOT_PARSERS)


def missed(targets: Iterable[Target]) -> set[str]:
    """Return `file:function` of the parsers that none of these targets calls with its corpus.

    The first input of each target comes first: nearly all parsers are reached by those, and the rest need not be read.
    """
    left = parsers()
    corpora = [(target, list(target.corpus())) for target in targets]
    for number in range(max(len(corpus) for _target, corpus in corpora)):
        for target, corpus in corpora:
            for data in corpus[number : number + 1]:
                if not left:
                    return left
                left -= _reached(target, data)
    return left


def _reached(target: Target, data: bytes) -> set[str]:
    """Return `file:function` of all that a target calls with this input."""
    called: set[CodeType] = set()

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call":
            called.add(frame.f_code)

    sys.setprofile(note)
    try:
        target.parse(data)
    except target.allowed:
        pass
    finally:
        sys.setprofile(None)
    places = ((code.co_filename.partition(f"/{SOURCES.name}/")[2], code.co_name) for code in called)
    return {f"{path}:{name}" for path, name in places if path}


def _of(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args][:1]
            takes_text = any(
                argument.arg in _TEXT or ast.unparse(argument.annotation or ast.Constant(None)) == "bytes"
                for argument in arguments
            )
            if takes_text or node.name.startswith("parse"):
                yield node.name
