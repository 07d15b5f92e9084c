# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file counts as what a process read only if nothing on the way to it changed since: real files, processes, mounts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines import since_start
from ansible_collections.durable.dbhost.plugins.module_utils.host.processes import Process
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import (
    READ_TIMEOUT,
    Host,
    Result,
    Unobservable,
)

from ..fakes.fake_proc import started_at
from ..fakes.vendor_host import BOOT, CONF, MSSQL_UNIT, VendorHost, with_mssql

ROOT = Path(__file__).parents[5]
CONFIG = "/opt/faircom/config/ctsrvr.cfg"
EVE = 54321
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount, and start processes of others")


class Systemd(Host):
    """This machine, with a systemd that noted the clock of now at its start, and that all mounts came before it."""

    def run(self, argv: list[str], timeout: float = READ_TIMEOUT) -> Result:
        if argv[:4] != ["env", "TZ=UTC", "systemctl", "show"]:
            return super().run(argv, timeout)
        boot = time.time() - float(self.read("/proc/uptime").split()[0])
        noted = {
            f"{k}={v}\n{k.replace('InactiveExit', 'Userspace')}={v}\n" for k, v in started_at(boot).items()
        }
        names = argv[argv.index("--") + 1 :] if "--" in argv else [""]
        blocks = (f"Id={name}\nActiveState=active\n" + "".join(noted) for name in names)
        return Result(0, "\n".join(blocks), "")


def put(top: Path, directory: str, text: str) -> Path:
    path = top / directory.lstrip("/")
    path.mkdir(parents=True)
    (path / "ctsrvr.cfg").write_text(text)
    return path


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A root directory with a configuration, and others that are as old."""
    put(tmp_path, "/opt/faircom/config", "COMPATIBILITY LOG_WRITETHRU")
    put(tmp_path, "/opt/evil/config", "")
    (tmp_path / "opt" / "linked").symlink_to("faircom")
    (tmp_path / "opt" / "astray").symlink_to("evil")
    return tmp_path


@pytest.fixture
def started(top: Path) -> Iterator[since_start.Start]:
    """A process that started when all of that was there."""
    time.sleep(0.3)
    with subprocess.Popen(["sleep", "100"]) as child:
        time.sleep(0.3)
        yield since_start.start_of(Systemd(), Process(child.pid, 0, "", "", None, None, None))
        child.kill()


def change(top: Path, start: since_start.Start, path: str = CONFIG) -> str:
    return since_start.change(Systemd(), path, start, str(top))


def exchange(path: Path, other: Path) -> None:
    path.rename(f"{path}.old")
    other.rename(path)


def write_in_place(top: Path) -> None:
    (top / CONFIG[1:]).write_text("")


def exchange_the_file(top: Path) -> None:
    exchange(top / CONFIG[1:], top / "opt/evil/config/ctsrvr.cfg")


def exchange_its_directory(top: Path) -> None:
    exchange(top / "opt/faircom/config", top / "opt/evil/config")


def exchange_the_directory_above(top: Path) -> None:
    exchange(top / "opt/faircom", top / "opt/evil")


def let_the_process_in(top: Path) -> None:
    (top / "opt/faircom/config").chmod(0o711)


class TestFiles:
    def test_what_is_as_it_was_is_what_it_read(self, top: Path, started: since_start.Start) -> None:
        assert change(top, started) == ""
        assert change(top, started, "/opt/linked/config/ctsrvr.cfg") == ""
        assert change(top, started, "/opt/faircom/config/none.cfg") == ""

    @pytest.mark.parametrize(
        ("attack", "where"),
        [
            (write_in_place, CONFIG),
            (exchange_the_file, CONFIG),
            (exchange_its_directory, "/opt/faircom/config"),
            (exchange_the_directory_above, "/opt/faircom"),
            (let_the_process_in, "/opt/faircom/config"),
        ],
    )
    def test_each_component_that_changed_is_named(
        self, top: Path, started: since_start.Start, attack: Callable[[Path], None], where: str
    ) -> None:
        attack(top)
        assert f"{where} was changed after the process started" in change(top, started)

    def test_a_link_that_leads_elsewhere_now(self, top: Path, started: since_start.Start) -> None:
        exchange(top / "opt/linked", top / "opt/astray")
        told = change(top, started, "/opt/linked/config/ctsrvr.cfg")
        assert "/opt/linked was changed after the process started" in told

    def test_a_file_that_is_gone_may_have_been_there(self, top: Path, started: since_start.Start) -> None:
        (top / CONFIG[1:]).unlink()
        assert "/opt/faircom/config was changed" in change(top, started)

    def test_a_server_makes_files_in_its_own_directory(self, top: Path, started: since_start.Start) -> None:
        (top / "opt/faircom/config/L0000001.FCS").touch()
        assert change(top, started) == ""

    @as_root
    def test_but_not_in_one_of_another_user(self, top: Path) -> None:
        os.chown(top / "opt/faircom/config", EVE, EVE)
        time.sleep(0.3)
        with subprocess.Popen(["sleep", "100"]) as child:
            time.sleep(0.3)
            start = since_start.start_of(Systemd(), Process(child.pid, 0, "", "", None, None, None))
            assert change(top, start) == ""
            (top / "opt/faircom/config/other").touch()
            assert "/opt/faircom/config was changed" in change(top, start)
            child.kill()

    def test_directories_of_the_system_get_names_all_the_time(
        self, top: Path, started: since_start.Start
    ) -> None:
        (top / "opt/other").touch()
        (top / "other").touch()
        assert change(top, started) == ""
        (top / "opt").chmod(0o777)
        assert "/opt was changed" in change(top, started)


#: Runs in a mount namespace of its own, where /opt is a file system that systemd knows. argv: what happens.
SCENE = """
import json, os, subprocess, sys, time
from pathlib import Path
from ansible_collections.durable.dbhost.plugins.module_utils.engines import since_start
from ansible_collections.durable.dbhost.plugins.module_utils.host.processes import Process
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Result, Unobservable
what, CONFIG, FILE = sys.argv[1], "/opt/faircom/config", "/opt/faircom/config/ctsrvr.cfg"
def do(*argv): subprocess.run(argv, check=True)
do("mount", "-t", "tmpfs", "none", "/opt")
for name in ("faircom/config", "evil"):
    Path("/opt", name).mkdir(parents=True)
    Path("/opt", name, "ctsrvr.cfg").write_text(name)
Path("/opt/evil/opt/faircom/config").mkdir(parents=True)
Path("/opt/evil/opt/faircom/config/ctsrvr.cfg").write_text("evil")
if what == "unmounted":
    do("mount", "--bind", "/opt/evil", CONFIG)
time.sleep(0.3)
argv = ["sleep", "100"]
if what == "own":
    argv = ["unshare", "-m", "sh", "-c", f"mount --bind /opt/evil {CONFIG}; exec sleep 100"]
if what == "sandbox":
    argv = ["unshare", "-m", "sh", "-c", f"mount --bind {CONFIG} {CONFIG}; exec sleep 100"]
child = subprocess.Popen(argv)
time.sleep(0.5)
up = float(Path("/proc/uptime").read_text().split()[0])
units = {"opt.mount": {"ActiveState": "active"}}
if what in ("mounted", "unnoticed"):
    do("mount", "--bind", "/opt/evil", CONFIG)
    if what == "mounted":
        units["opt-faircom-config.mount"] = {"ActiveState": "active", "ActiveEnterTimestampMonotonic": f"{up * 1e6:.0f}"}
if what == "over":
    do("mount", "--bind", "/opt/evil/opt", "/opt")
if what == "unmounted":
    do("umount", CONFIG)
    units["opt-faircom-config.mount"] = {"ActiveState": "inactive", "InactiveEnterTimestampMonotonic": f"{up * 1e6:.0f}"}
class Systemd(Host):
    def run(self, argv, timeout=10.0):
        if argv[:3] != ["env", "TZ=UTC", "systemctl"]:
            return super().run(argv, timeout)
        boot = time.time() - float(self.read("/proc/uptime").split()[0])
        wall = time.strftime("%a %Y-%m-%d %H:%M:%S UTC", time.gmtime(boot + 1))
        clock = {"UserspaceTimestamp": wall, "UserspaceTimestampMonotonic": "1000000"}
        clock.update(InactiveExitTimestamp=wall, InactiveExitTimestampMonotonic="1000000")
        names = argv[argv.index("--") + 1:] if "--" in argv else [""]
        rows = [{"Id": name, "ActiveState": "inactive", **units.get(name, {}), **clock} for name in names]
        return Result(0, "\\n".join("".join(f"{k}={v}\\n" for k, v in row.items()) for row in rows), "")
try:
    start = since_start.start_of(Systemd(), Process(child.pid, 0, "", "", None, None, None))
    print(json.dumps(since_start.change(Systemd(), FILE, start)))
except Unobservable as error:
    print(json.dumps(f"unobservable: {error}"))
finally:
    child.kill()
"""


@as_root
@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("nothing", ""),
        ("sandbox", ""),
        ("mounted", "/opt/faircom/config was mounted after the process started"),
        (
            "unnoticed",
            "unobservable: /opt/faircom/config/ctsrvr.cfg: when /opt/faircom/config was mounted is unknown",
        ),
        ("over", "when /opt was mounted is unknown"),
        ("unmounted", "/opt/faircom/config was unmounted after the process started"),
        ("own", "the process has another file there, in its own mount namespace"),
    ],
)
def test_a_mount_on_the_way_came_before_the_process_or_its_file_is_another(
    what: str, told: str, tmp_path: Path
) -> None:
    collection = tmp_path / "ansible_collections/durable"
    collection.mkdir(parents=True)
    (collection / "dbhost").symlink_to(ROOT)
    done = subprocess.run(
        ["unshare", "-m", "--propagation", "private", sys.executable, "-c", SCENE, what],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    said = json.loads(done.stdout)
    assert told in said and bool(told) == bool(said)


#: Dirties a page of a mapping; after a line of input it changes the content through it.
MAPPING = """
import mmap, os, sys
file = os.open(sys.argv[1], os.O_RDWR)
content = mmap.mmap(file, os.fstat(file).st_size)
content[0:1] = content[0:1]
print("mapped", flush=True)
sys.stdin.readline()
content[:] = b";" * len(content)
print("changed", flush=True)
sys.stdin.readline()
"""


@as_root
def test_a_write_through_a_mapping_in_memory_is_not_missed(tmp_path: Path) -> None:
    """tmpfs leaves the ctime of a file that another user changes so after the start as it was."""
    with tempfile.TemporaryDirectory(prefix="durable-test-", dir="/dev/shm") as top:
        path = put(Path(top), "/opt/faircom/config", "COMPATIBILITY LOG_WRITETHRU") / "ctsrvr.cfg"
        os.chown(path, EVE, EVE)
        Path(top).chmod(0o755)
        argv = [
            "setpriv",
            f"--reuid={EVE}",
            f"--regid={EVE}",
            "--clear-groups",
            "/usr/bin/python3",
            "-c",
            MAPPING,
        ]
        with subprocess.Popen(
            [*argv, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdin and writer.stdout and writer.stdout.readline() == "mapped\n"
            time.sleep(0.5)
            with subprocess.Popen(["sleep", "10"]) as server:
                time.sleep(0.3)
                start = since_start.start_of(Systemd(), Process(server.pid, 0, "", "", None, None, None))
                writer.stdin.write("\n")
                writer.stdin.flush()
                assert writer.stdout.readline() == "changed\n"
                assert path.read_text().startswith(";") and path.stat().st_ctime < start.at
                with pytest.raises(Unobservable, match="tmpfs does not record writes through a mapping"):
                    since_start.change(Systemd(), str(path), start)
                os.chown(path, 0, 0)
                assert "was changed after the process started" in since_start.change(
                    Systemd(), str(path), start
                )
                server.kill()
            writer.kill()


@pytest.mark.parametrize("kind", ["fuse.sshfs", "fuseblk", "nfs4", "cifs", "9p", "virtiofs", "ceph", "new"])
def test_a_file_system_whose_server_chooses_the_times_is_unknown(kind: str) -> None:
    host = with_mssql()
    start = since_start.start_of(host, Process(50, 0, "", "", None, None, None))
    assert since_start.change(host, CONF, start) == ""
    for table in ("/proc/50/mountinfo", "/proc/self/mountinfo"):
        host.files[table] = host.files[table].replace("- ext4 /dev/sda1", f"- {kind} /dev/sda1")
    with pytest.raises(Unobservable, match=f"observed file system {kind}, expected one whose ctime"):
        since_start.change(host, CONF, start)


class TestClock:
    def told(self, host: VendorHost) -> str:
        start = since_start.start_of(host, Process(50, 0, "", "", None, None, None))
        return since_start.change(host, CONF, start)

    def test_one_that_runs_evenly_is_no_reason(self) -> None:
        host = with_mssql()
        assert self.told(host) == ""
        host.noted_boot = BOOT + 0.9
        assert self.told(host) == ""

    @pytest.mark.parametrize("seconds", [3600, -3600, 5, -5])
    def test_one_that_was_set_after_the_start_makes_all_times_doubtful(self, seconds: int) -> None:
        host = with_mssql()
        # The unit started by the clock of before: an hour slow, say, and set right since.
        host.noted_boot = BOOT - seconds
        assert "the clock was set by about" in self.told(host)

    def test_a_server_in_no_unit_has_the_clock_of_the_boot(self) -> None:
        host = with_mssql()
        host.files["/proc/50/cgroup"] = "0::/user.slice/session-1.scope\n"
        assert self.told(host) == ""
        host.noted_boot = BOOT - 3600
        assert "the clock was set" in self.told(host)

    def test_a_unit_that_started_again_later_tells_nothing_of_this_process(self) -> None:
        host = with_mssql()
        host.noted_boot = BOOT - 3600
        host.units[MSSQL_UNIT].update(started_at(BOOT, 2000))
        assert "the clock was set" in self.told(host)

    @pytest.mark.parametrize("said", ["n/a", "", "Tue 2023-11-14 22:13:21 CET", "Tue 2023-11-14 22:13 UTC"])
    def test_without_systemds_record_it_is_unknown(self, said: str) -> None:
        host = with_mssql()
        host.units[MSSQL_UNIT]["InactiveExitTimestamp"] = said
        host.commands[("systemctl", "show", "--property=UserspaceTimestamp,UserspaceTimestampMonotonic")] = (
            f"UserspaceTimestamp={said}\n"
        )
        with pytest.raises(
            Unobservable, match="whether the clock was set since the process started is unknown"
        ):
            self.told(host)
