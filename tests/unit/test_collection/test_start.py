# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tutorial works: each command that needs no machine, its files, its line for cron, and the pages that it shows.

Scenario default runs the other commands (tools/pages.yml).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ansible")

from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.page import render
from ansible_collections.durable.dbhost.plugins.module_utils.storage import platforms
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes import fleet
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.runs import enforce, look
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.small_host import (
    FakeDisk,
    FakeMount,
    SmallHost,
)
from ansible_collections.durable.dbhost.tests.unit.test_collection.test_run_ends_with_page import AWAY

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "molecule"))

from support import pages  # noqa: E402

pytestmark = pytest.mark.every_core_alike

README, START = ROOT / "README.md", ROOT / "docs/start.md"
DATA = "/srv/pgdata"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home directory in which a reader has done steps 1 and 2; the host has no address."""
    home = tmp_path_factory.mktemp("home")
    pages.copy_of_sources(home / "sources")
    written = home / "written/inventory"
    (written / "group_vars").mkdir(parents=True)
    (configuration,) = pages.blocks(START, "ini")
    hosts, mounts = pages.blocks(START, "yaml")
    (written.parent / "ansible.cfg").write_text(configuration)
    (written / "hosts.yml").write_text(hosts)
    (written / "group_vars/databases.yml").write_text(mounts)
    (written / "zz-away.yml").write_text(json.dumps({"databases": {"hosts": {"db1": AWAY}}}))
    tools = Path(sys.executable).parent
    instead = {
        "pip install 'ansible-core>=2.16'": f'ln -s {tools}/ansible* "$VIRTUAL_ENV/bin/"',
        "git clone https://github.com/durable-db/dbhost.git": f"cp -r {home}/sources dbhost",
    }
    rows = [row["command"] for row in pages.table()["start"]]
    printed = pages.commands(START)[: len(rows) + len(instead)]
    assert [command for command in printed if command not in instead] == rows
    *commands, last = (instead.get(command, command) for command in printed)
    script = "\n".join(("set -e", *commands, f"cp -r {home}/written/. .", last))
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=home,
        env={"HOME": str(home), "PATH": f"{tools}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "|--@databases:\n  |  |--db1" in done.stdout
    assert "[WARNING]" not in done.stderr
    return home


def cron(home: Path) -> subprocess.CompletedProcess[str]:
    """Run the line of the crontab as cron does: with its bare environment, in the home directory."""
    (line,) = re.findall(r"^17 6 \* \* \* (.+)$", START.read_text(encoding="utf-8"), re.M)
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "SHELL": "/bin/sh", "LC_ALL": "C.UTF-8"}
    command = ["sh", "-c", line]
    return subprocess.run(
        command, cwd=home, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_cron_mails_the_page_of_a_check_that_fails(home: Path) -> None:
    done = cron(home)
    assert "1 host: 1 unreachable" in done.stdout
    assert "1 of 1 host fails (1 unreachable): exit code 2" in done.stdout
    assert (home / "durable/durable-report/db1.json").exists()


def test_cron_mails_nothing_of_a_check_that_passes(home: Path) -> None:
    variables = home / "durable/inventory/group_vars/all.yml"
    variables.write_text("durable_fail_on: []\n")
    done = cron(home)
    variables.unlink()
    assert (done.stdout, done.stderr) == ("", "")
    assert "no host fails: exit code 0" in (home / "durable/check.log").read_text(encoding="utf-8")


def test_the_tutorial_and_the_readme_describe_one_host() -> None:
    assert pages.blocks(README, "yaml") == pages.blocks(START, "yaml")[:1]


def test_the_readme_names_the_setting_of_the_example() -> None:
    setting = "stdout_callback = durable.dbhost.brief"
    assert setting in (ROOT / "examples/ansible.cfg").read_text(encoding="utf-8").splitlines()
    assert f"`{setting}` ([example](examples/ansible.cfg))" in README.read_text(encoding="utf-8")


def guest() -> SmallHost:
    """Return the tutorial's virtual machine after its step 3."""
    host = SmallHost()
    for replaced in (DATA, "/srv/maria"):
        del host.mounts[replaced]
        fstab = host.files["/etc/fstab"].splitlines(keepends=True)
        host.files["/etc/fstab"] = "".join(line for line in fstab if replaced not in line)
    del host.disks["vdb"]
    host.add_disk(FakeDisk("vdb", "virtio", "DATA0001"), "254:16")
    mount = FakeMount(DATA, "ext4", "254:16", "/dev/vdb", "vdb", barrier="off", atime="relatime")
    host.add_mount(mount, f"LABEL=pgdata {DATA} ext4 defaults 0 2\n")
    host.links["/dev/disk/by-label/pgdata"] = "/dev/vdb"
    host.commands[("systemd-detect-virt",)] = "kvm\n"
    host.files[f"{platforms.DIRECTORY}/sys_vendor"] = "QEMU\n"
    return host


def rendered() -> list[str]:
    """Return the lines of the check's page, of the run's, and of a check after barriers are turned off by hand."""
    host = guest()
    before = look(host, mounts=[DATA])
    enforce(host, before)
    after = look(host, mounts=[DATA])
    host.mounts[DATA].barrier = "off"
    again = look(host, mounts=[DATA])
    reports = (
        fleet.report("db1", before, engines=[]),
        fleet.report("db1", after, looked_only=False, engines=[], was=before["verdict"]),
        fleet.report("db1", again, engines=[]),
    )
    return "\n".join(render([report]) for report in reports).splitlines()


@pytest.mark.parametrize(("page", "number"), [(README, 1), (START, 3)], ids=["README", "start"])
def test_a_page_that_is_shown_is_that_of_the_tutorial_s_host(page: Path, number: int) -> None:
    """Lines in brackets stand for what is left out."""
    shown = [text for text in pages.blocks(page, "text") if "exit code" in text]
    assert len(shown) == number
    rows = [row for text in shown for row in text.splitlines() if row and "[...]" not in row]
    lines = iter(rendered())
    # In their order: each is searched for after the one before it.
    assert [row for row in rows if row not in lines] == []
