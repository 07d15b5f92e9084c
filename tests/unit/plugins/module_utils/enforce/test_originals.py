# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was there before: kept whole, read back exactly, never guessed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.enforce import originals
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed

from ..fakes.fake_host import FakeHost

text = st.text(st.characters(blacklist_characters="\0")) | st.just("/srv/\udcff")


@given(st.dictionaries(text, text, min_size=1))
def test_what_is_saved_is_loaded(entries: dict[str, str]) -> None:
    host = FakeHost()
    originals.save(host, entries)
    assert originals.load(host) == entries


def test_exact_bytes() -> None:
    host = FakeHost()
    originals.save(host, {"/srv/b": "ro", "/srv/a": "defaults"})
    expected = b'{\n  "/srv/a": "defaults",\n  "/srv/b": "ro"\n}\n'
    assert host.mutations == [("file", originals.PATH, expected)]


def test_nothing_kept_is_no_file() -> None:
    host = FakeHost()
    originals.save(host, {})
    assert host.mutations == []
    originals.save(host, {"/": "ro"})
    originals.save(host, {})
    assert originals.PATH not in host.files
    assert originals.load(host) == {}


@pytest.mark.parametrize("content", ["", "{", "[]", '"x"', "{}x", "\udcff"])
def test_a_damaged_file_stops_everything_and_says_what_to_do(content: str) -> None:
    host = FakeHost()
    host.files[originals.PATH] = content
    with pytest.raises(ChangeFailed, match=rf"^{originals.PATH}: .*restore it from a backup"):
        originals.load(host)


@pytest.mark.parametrize(
    ("path", "user", "mode", "seen"),
    [
        (originals.PATH, 0, 0o666, f"{originals.PATH} has mode 0666"),
        (originals.PATH, 65534, 0o644, f"{originals.PATH} belongs to user 65534"),
        ("/var/lib/durable-dbhost", 0, 0o777, "/var/lib/durable-dbhost has mode 0777"),
        ("/var/lib/durable-dbhost", 65534, 0o755, "/var/lib/durable-dbhost belongs to user 65534"),
    ],
)
def test_a_file_that_others_could_have_written_puts_nothing_back(
    path: str, user: int, mode: int, seen: str
) -> None:
    """Under umask 000 the directory was writable for all, and `nobody` had release write `nobarrier` to fstab."""
    host = FakeHost()
    originals.save(host, {"/srv/b": "ro"})
    host.uids[path], host.modes[path] = user, mode
    with pytest.raises(ChangeFailed, match=f"observed that {seen}, expected .*Fix: restore it from a backup"):
        originals.load(host)
