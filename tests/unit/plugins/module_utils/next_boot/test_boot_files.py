# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that other components read at boot: the lines of sysfs.conf, and which files of a directory count."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import boot_files, shell_lines
from ansible_collections.durable.dbhost.plugins.module_utils.next_boot import files, sysfs_conf

from ..fakes.fake_host import FakeHost

PATH = "/etc/sysfs.conf"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("block/sda/queue/scheduler = bfq", ("/sys/block/sda/queue/scheduler", "bfq")),
        ("/sys/block/sda/queue/scheduler=bfq # why", ("/sys/block/sda/queue/scheduler", "bfq")),
        ("mode block/sda/queue/scheduler = 0644", None),
        ("owner block/sda/queue/scheduler = root:root", None),
        ("# block/sda/queue/scheduler = bfq", None),
        ("block/sda/queue/scheduler", None),
        ("= bfq", None),
    ],
)
def test_a_line_of_sysfs_conf_writes_a_value_or_nothing(line: str, words: tuple[str, str] | None) -> None:
    found = sysfs_conf.parse(f"# first\n{line}\n", PATH)
    assert [(act.source, act.kind, act.words) for act in found] == (
        [(f"{PATH} line 2", "write", words)] if words else []
    )


def test_files_of_a_directory_are_those_with_the_ending_that_are_not_hidden() -> None:
    host = FakeHost()
    assert boot_files.existing(host, "/etc/x.d", ".conf") == []
    for name in ("b.conf", "a.conf", ".c.conf", "d.conf.bak"):
        host.files[f"/etc/x.d/{name}"] = ""
    assert boot_files.existing(host, "/etc/x.d", ".conf") == ["/etc/x.d/a.conf", "/etc/x.d/b.conf"]


@pytest.mark.parametrize(
    ("path", "text", "command", "packaged", "found"),
    [
        ("/opt/tune", "#!/bin/sh\n:\n", "/opt/tune", False, True),
        ("/usr/bin/tune", "#!/bin/sh\n:\n", "/usr/bin/tune", False, False),
        ("/usr/bin/tune", "#!/bin/sh\n:\n", "/usr/bin/tune", True, True),
        ("/opt/tune", ":\n", "/opt/tune", False, False),
        ("/opt/tune", ":\n", "sh /opt/tune", False, True),
        ("/opt/tune", "\x7fELF", "sh /opt/tune", False, False),
        ("/proc/tune", "#!/bin/sh\n:\n", "/proc/tune", True, False),
    ],
)
def test_which_scripts_a_command_runs(
    path: str, text: str, command: str, packaged: bool, found: bool
) -> None:
    host = FakeHost()
    host.files[path] = text
    found_text = files.program_text(host, path, packaged)
    assert bool(found_text and shell_lines.is_script(found_text, path, command)) is found
