# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a host is too much, where it is read and where it is answered; and what the documentation tells of it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import bounds
from ansible_collections.durable.dbhost.plugins.module_utils.host.printable import printable
from ansible_collections.durable.dbhost.plugins.module_utils.host.read_budget import within
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.host.textfile import Malformed, split

from ..fakes.captured import COLLECTION
from ..fakes.fake_host import FakeHost


@pytest.mark.parametrize(
    ("text", "count", "why"),
    [
        ("x" * bounds.FILE, 3, "more than 2097152 bytes"),
        ("\n" * (bounds.LINES // 2), 3, "more than 50000 lines"),
        ("", bounds.FILES + 1, "more than 1000 files"),
    ],
)
def test_a_configuration_is_bounded_over_all_its_files(text: str, count: int, why: str) -> None:
    host = FakeHost()
    host.whose = "process 7 (postgres) of user 1000"
    read = within(host, lambda _path: text)
    for _file in range(count - 1):
        assert read("/etc/same.conf") == text
    with pytest.raises(
        Unobservable, match=f"/etc/last.conf: .* of process 7 .postgres. of user 1000 has {why}"
    ):
        read("/etc/last.conf")


def test_a_file_of_very_many_lines_is_refused() -> None:
    assert len(split("\n" * bounds.LINES, "/f")) == bounds.LINES
    with pytest.raises(Malformed, match="/f: observed more than 50000 lines"):
        split("\n" * (bounds.LINES + 1), "/f")


@pytest.mark.parametrize(
    "value",
    [
        "",
        "text",
        'a"b\\',
        "\U0001f600\U000e0100",
        "\u200b" * 9,
        "\u20ac\x00",
        "\b" * 99,
        "\f" * 99,
        "\x7f" * 99,
        "".join(map(chr, range(256))) * 9,
        {"a": [1, None, 2.5], "b": {"c": True}},
        ["\ud800" * 9],
        10**20,
    ],
)
def test_a_size_is_never_told_too_small(value: object) -> None:

    assert bounds.size(value) >= len(json.dumps(value))
    assert bounds.size(value) >= len(json.dumps(printable(value)))


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"a": "x"}, None),
        ({"a": "x" * bounds.ANSWER, "b": "y"}, "most of it a"),
        ({"a": "x", "b": [1] * bounds.VALUES}, "most of it b"),
    ],
)
def test_an_answer_that_no_controller_takes_is_none(facts: dict[str, object], why: str | None) -> None:
    found = bounds.too_large(facts)
    assert (found or "").count(why or "!") == (1 if why else 0)


def test_a_long_text_is_shown_by_its_ends() -> None:
    short: Callable[[str, int], str] = bounds.short
    assert short("abc", 3) == "abc"
    assert short("abcdef", 4) == "ab ... ef"


def test_the_documentation_tells_the_bounds() -> None:
    def number(value: float) -> str:
        return f"{value:,.0f}"

    def mebibytes(value: int) -> str:
        return f"{value // bounds.MIB} MiB"

    text = (COLLECTION / "docs/engines.md").read_text(encoding="utf-8")
    section = text.partition("## What one host may cost")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.split("\n") if line.startswith("| ")][1:]
    configuration = f"{number(bounds.LINES)} lines, {number(bounds.FILES)} files"
    assert dict(rows) == {
        "one file or command": mebibytes(bounds.OUTPUT),
        "a reading command's memory": mebibytes(bounds.MEMORY),
        "one file of a configuration": mebibytes(bounds.FILE),
        "a configuration with all that it includes": f"{mebibytes(bounds.CONFIGURATION)}, {configuration}",
        "one instance: processes, open files, their directories": ", ".join(
            map(number, (bounds.PROCESSES, bounds.OPEN_FILES, bounds.ROWS))
        ),
        "one instance's facts": mebibytes(bounds.INSTANCE),
        "one instance, or all of one person or container: seconds of reading": number(bounds.PATIENCE),
        "all of a host: seconds of reading": number(bounds.PATIENCE_FOR_ALL),
        "one user's instances of one engine": number(bounds.INSTANCES_OF_ONE),
        "a host's instances": number(bounds.INSTANCES),
        "mounts in one namespace, and in those of all engines": number(bounds.MOUNTS),
        "a process that is no engine's: open files; rows of such processes": (
            f"{number(bounds.OPEN_FILES_OF_OTHERS)}, {number(bounds.WRITERS)}"
        ),
        "a module's whole answer": f"{mebibytes(bounds.ANSWER)}, {number(bounds.VALUES)} values",
    }
    assert f"may take {mebibytes(bounds.ROOM)} for it above" in section
