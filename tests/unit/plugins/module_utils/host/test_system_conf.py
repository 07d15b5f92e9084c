# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files of systemd's configuration directories are read, and in which order."""

from __future__ import annotations

from ansible_collections.durable.dbhost.plugins.module_utils.host.system_conf import drop_ins

from ..fakes.fake_host import FakeHost

ETC, USR = "/etc/systemd/system.conf.d", "/usr/lib/systemd/system.conf.d"


def test_files_are_read_by_name_and_the_stronger_directory_hides_the_other() -> None:
    host = FakeHost()
    host.files.update(
        {f"{USR}/10.conf": "", f"{ETC}/20.conf": "", f"{USR}/20.conf": "", f"{USR}/30.conf": ""}
    )
    host.links[f"{ETC}/30.conf"] = "/dev/null"
    assert drop_ins(host, [ETC, USR]) == [f"{USR}/10.conf", f"{ETC}/20.conf"]


def test_hidden_files_and_other_endings_are_not_read() -> None:
    """systemd skips a name that begins with a dot, so an editor's temporary file has no effect."""
    host = FakeHost()
    host.files.update({f"{ETC}/.10.conf": "", f"{ETC}/10.conf~": "", f"{USR}/10.conf": ""})
    assert drop_ins(host, [ETC, USR]) == [f"{USR}/10.conf"]
