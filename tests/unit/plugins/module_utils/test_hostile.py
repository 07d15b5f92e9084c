# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that want all memory: real processes and files in namespaces of their own, and what they cost.

`python -m tests.unit.plugins.module_utils.fakes.hostile_host` tells the peaks of the whole attacks.
"""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import bounds

from .fakes import hostile_host

MOST = 200
WHO = "of user 4242"


def can_be_hostile() -> bool:
    """Tell whether this is root on a machine that lets it have namespaces."""
    tool = shutil.which("unshare")
    argv = [str(tool), "--mount", "--pid", "--fork", "--mount-proc", "true"]
    return bool(os.geteuid() == 0 and tool and subprocess.run(argv, check=False).returncode == 0)


#: Attack -> what the report says of it.
SAID: dict[str, tuple[str, ...]] = {
    "settings": ("part0.conf", "has more than", WHO),
    "below": (),
    "tablespaces": ("the time for all queries of this host was over",),
    "crowd": (f"more {WHO} are as this one",),
    "opened": (),
    "arguments": ("expected a path of at most 4096",),
    "mounts": (),
}


#: One of each thing that is bounded: files, processes, mounts. DBHOST_TESTS_WHOLE=1 tries every attack.
SAMPLE = ("settings", "crowd", "mounts")
TRIED = tuple(SAID) if os.environ.get("DBHOST_TESTS_WHOLE") == "1" else SAMPLE
#: Attacks by servers whose data is on the tmpfs of this test.
IN_MEMORY = ("settings", "below", "tablespaces", "crowd", "opened")


@pytest.mark.every_python_alike
@pytest.mark.skipif(not can_be_hostile(), reason="wants root, and namespaces")
@pytest.mark.parametrize("attack", TRIED)
def test_a_hostile_host_costs_less_than_200_mb_and_is_named(attack: str) -> None:
    found = hostile_host.told(attack, 0.2)
    print(attack, found["peaks"], found["bytes"], f"{found['seconds']} s")
    assert max(found["peaks"].values()) < MOST
    assert max(found["bytes"].values()) <= bounds.ANSWER
    verdict = found["report"].split("\n")[0].split()[1].rstrip(",")
    assert verdict == ("at_risk" if attack in IN_MEMORY else "unknown")
    assert not [words for words in SAID[attack] if words not in found["report"]]
