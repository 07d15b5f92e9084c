# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The build host's apt configuration, as its own tools print it."""

from __future__ import annotations

import pytest

from lab import mirror

TARGETS = """\
Packages main bookworm-security http://mirror.example/debian-security/
DEP-11 main bookworm http://mirror.example/debian/
Packages contrib bookworm http://mirror.example/contrib/
Packages main bookworm http://mirror.example/debian/
"""

DUMP = """\
APT "";
Acquire::http "";
Acquire::http::Proxy "http://proxy.example:3128";
Acquire::https::CaInfo "/etc/ssl/own.pem";
Acquire::Languages "none";
"""


def test_the_main_archive_is_the_one_with_the_hosts_own_suite() -> None:
    """Not security, not another component."""
    assert mirror.main_archive(TARGETS, "bookworm") == "http://mirror.example/debian"
    assert mirror.main_archive(TARGETS, "trixie") is None
    assert mirror.main_archive("", "bookworm") is None


def test_proxies_and_certificates_are_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else of the host's configuration is."""
    monkeypatch.setattr(mirror, "_output", lambda *_: DUMP)
    assert mirror.apt_options() == [
        'Acquire::http::Proxy "http://proxy.example:3128";',
        'Acquire::https::CaInfo "/etc/ssl/own.pem";',
    ]
