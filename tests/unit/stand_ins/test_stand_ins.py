# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-ins for SQL Server and FairCom DB do what they are said to do, and the collection reads it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.faircom import status as faircom_status
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql import conf as mssql_conf
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql import observe as mssql
from ansible_collections.durable.dbhost.plugins.module_utils.engines.open_files import opened, parse_fdinfo

HERE = Path(__file__).resolve().parents[2] / "stand_ins"
PROGRAMS = sorted(path.name for path in HERE.iterdir() if path.suffix in (".py", ".sh", ".service"))


@pytest.fixture(name="root")
def _root(tmp_path: Path) -> Path:
    """Return a directory that stands for / with SQL Server's directories, on a disk with direct writes."""
    (tmp_path / "var/opt/mssql").mkdir(parents=True)
    try:
        os.close(os.open(tmp_path / "probe", os.O_RDWR | os.O_CREAT | os.O_DIRECT))
    except OSError:
        pytest.skip("this directory takes no direct writes")
    return tmp_path


def conf(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the stand-in of mssql-conf."""
    return subprocess.run(
        [sys.executable, str(HERE / "mssql_conf_stand_in.py"), *words],
        env={"MSSQL_STAND_IN_ROOT": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def text(root: Path) -> str:
    return (root / "var/opt/mssql/mssql.conf").read_text(encoding="utf-8")


class Server:
    """A stand-in that runs."""

    def __init__(self, script: str, cwd: Path, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / script)], cwd=cwd, env=environment, start_new_session=True
        )

    def wait_for(self, path: Path, words: str) -> str:
        """Return a log once it says something."""
        for _try in range(200):
            said = path.read_text(encoding="utf-8") if path.exists() else ""
            if words in said:
                return said
            assert self.process.poll() is None, "it ended"
            time.sleep(0.05)
        raise AssertionError(f"{path} does not say {words!r}")

    def files(self) -> dict[str, str]:
        """Return {name: how it is opened} of this process and its child."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(
            encoding="ascii"
        )
        found = {}
        for pid in (str(self.process.pid), *children.split()):
            for link in Path(f"/proc/{pid}/fd").iterdir():
                flags = parse_fdinfo(Path(f"/proc/{pid}/fdinfo/{link.name}").read_text(encoding="ascii"))[0]
                if flags & 3:
                    found[os.path.basename(os.readlink(link))] = opened(flags, os.uname().machine)
        return found

    def stop(self) -> int:
        """Stop it as systemd does, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)


@pytest.fixture(name="servers")
def _servers() -> Iterator[list[Server]]:
    started: list[Server] = []
    yield started
    for server in started:
        if server.process.poll() is None:
            os.killpg(server.process.pid, signal.SIGKILL)
            server.process.wait()


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_says_what_it_is(name: str) -> None:
    said = (HERE / name).read_text(encoding="utf-8")
    assert re.search("stand[-_]in", name)
    assert re.search("stand-in", said, re.I)
    if name.endswith(".py"):
        assert '"""A stand-in for ' in said


class TestMssqlConf:
    @pytest.mark.fact(27)
    def test_what_it_writes_is_what_the_collection_reads(self, root: Path) -> None:
        said = conf(root, "set", "control.writethrough", "1")
        assert (said.returncode, "needs to be restarted" in said.stdout, "stand-in" in said.stdout) == (
            0,
            True,
            True,
        )
        conf(root, "set", "control.alternatewritethrough", "0")
        conf(root, "traceflag", "3979", "1204", "on")
        assert text(root) == (
            "[control]\nwritethrough = 1\nalternatewritethrough = 0\n\n"
            "[traceflag]\ntraceflag0 = 3979\ntraceflag1 = 1204\n\n"
        )
        lines = mssql_conf.parse(text(root))
        assert set(mssql_conf.trace_flags(lines)) == {3979, 1204}
        assert conf(root, "get", "control").stdout == "writethrough : 1\nalternatewritethrough : 0\n"
        conf(root, "unset", "control.alternatewritethrough")
        conf(root, "traceflag", "3979", "off")
        assert text(root) == "[control]\nwritethrough = 1\n\n[traceflag]\ntraceflag1 = 1204\n\n"

    @pytest.mark.parametrize(
        "argv",
        [
            ("set", "control.writethrough", "false"),
            ("set", "control.writethrough", "2"),
            ("set", "control.nosuch", "1"),
            ("unset", "nosuch"),
            ("traceflag", "x", "on"),
            ("traceflag", "3979", "maybe"),
            ("get", "nosuch"),
            (),
        ],
    )
    def test_what_is_wrong_is_refused(self, root: Path, argv: tuple[str, ...]) -> None:
        said = conf(root, *argv)
        assert said.returncode != 0
        assert not (root / "var/opt/mssql/mssql.conf").exists()

    def test_mode_stays_and_comments_go(self, root: Path) -> None:
        path = root / "var/opt/mssql/mssql.conf"
        path.write_text("# mine\n[Control]\nWriteThrough=0\n", encoding="utf-8")
        path.chmod(0o640)
        conf(root, "traceflag", "3982", "on")
        assert path.stat().st_mode & 0o777 == 0o640
        assert text(root) == "[Control]\nwritethrough = 0\n\n[traceflag]\ntraceflag0 = 3982\n\n"

    def test_it_lists_what_it_knows(self, root: Path) -> None:
        assert "control.writethrough" in conf(root, "list").stdout


class TestSqlservr:
    @pytest.mark.parametrize(
        ("settings", "way"),
        [
            ((), "direct"),
            (("control.alternatewritethrough", "0"), "direct dsync"),
            (("control.writethrough", "0"), "direct"),
        ],
    )
    @pytest.mark.fact(28)
    def test_its_files_are_opened_as_it_is_set(
        self, root: Path, servers: list[Server], settings: tuple[str, ...], way: str
    ) -> None:
        if settings:
            conf(root, "set", *settings)
        conf(root, "traceflag", "3979", "on")
        server = Server("sqlservr_stand_in.py", root, MSSQL_STAND_IN_ROOT=str(root))
        servers.append(server)
        log = server.wait_for(root / "var/opt/mssql/log/errorlog", "ready for client connections")
        number, _name, flags = mssql.parse_log(log)
        assert (number, flags) == ("16.0.4185.3", {3979})
        files = server.files()
        for name in ("master.mdf", "mastlog.ldf", "tempdb.mdf", "templog.ldf", "user.mdf", "user_log.ldf"):
            assert files[name] == way
        assert files["errorlog"] == "buffered"
        assert server.stop() == 0
        assert "terminating" in (root / "var/opt/mssql/log/errorlog").read_text(encoding="utf-8")

    def test_the_log_of_the_start_before_is_kept(self, root: Path, servers: list[Server]) -> None:
        logs = root / "var/opt/mssql/log"
        servers.append(Server("sqlservr_stand_in.py", root, MSSQL_STAND_IN_ROOT=str(root)))
        servers[-1].wait_for(logs / "errorlog", "ready")
        assert servers[-1].stop() == 0
        servers.append(Server("sqlservr_stand_in.py", root, MSSQL_STAND_IN_ROOT=str(root)))
        servers[-1].wait_for(logs / "errorlog.1", "terminating")
        # It is told to stop at any moment, also before it is up.
        assert servers[-1].stop() == 0

    @pytest.mark.fact(30)
    def test_its_unit_has_the_vendors_time_to_stop(self) -> None:
        assert "TimeoutStopSec=30min" in (HERE / "mssql-server-stand-in.service").read_text(encoding="utf-8")


class TestFaircom:
    @pytest.mark.parametrize(
        ("lines", "version", "ways", "logged"),
        [
            ("", "", ("buffered", "buffered", "buffered"), "off"),
            ("COMPATIBILITY LOG_WRITETHRU\n", "", ("buffered sync", "buffered", "buffered"), "on"),
            (
                "compatibility log_writethru\nCOMPATIBILITY TDATA_WRITETHRU\nCOMPATIBILITY TINDEX_WRITETHRU\n",
                "",
                ("buffered sync",) * 3,
                "on",
            ),
            ("COMPATIBILITY LOG_WRITETHRU\nDELAYED_DURABILITY 2\n", "", ("buffered",) * 3, "off"),
            ("SUBSYSTEM X {\n COMPATIBILITY LOG_WRITETHRU\n}\n", "", ("buffered",) * 3, "off"),
            # It says so, and Linux ignores what it asks.
            ("COMPATIBILITY LOG_WRITETHRU\n", "V10.3.1.20000(Build-140101)", ("buffered",) * 3, "on"),
        ],
    )
    @pytest.mark.fact(32)
    @pytest.mark.fact(33)
    def test_its_files_are_opened_as_it_is_set(
        self,
        tmp_path: Path,
        servers: list[Server],
        lines: str,
        version: str,
        ways: tuple[str, ...],
        logged: str,
    ) -> None:
        (tmp_path / "ctsrvr.cfg").write_text(
            f"LOCAL_DIRECTORY data\nLOG_ODD odd/L\n{lines}", encoding="utf-8"
        )
        environment = {"FAIRCOM_STAND_IN_VERSION": version} if version else {}
        server = Server("faircom_stand_in.py", tmp_path, FCSRVR_CFG="ctsrvr.cfg", **environment)
        servers.append(server)
        path = tmp_path / "data/CTSTATUS.FCS"
        said = faircom_status.parse(server.wait_for(path, "Server Is Operational"), str(path), running=True)
        assert said.synchronous == logged
        assert said.version.value.startswith(version[1:13] or "12.0.1.214")
        files = server.files()
        assert tuple(files[name] for name in ("L0000001.FCS", "stand_in.dat", "stand_in.idx")) == ways
        assert (tmp_path / "data/odd/L0000001.FCS").exists()
        assert server.stop() == 0
        assert path.read_text(encoding="utf-8").rstrip().endswith("Server shutdown completed")


class TestInstall:
    def install(self, root: Path, *names: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", str(HERE / "install_stand_ins.sh"), *names],
            env={"DESTDIR": str(root), "PATH": os.environ["PATH"]},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def test_the_interpreter_bears_the_servers_name(self, tmp_path: Path) -> None:
        for _time in range(2):
            assert self.install(tmp_path, "mssql", "faircom").returncode == 0
        for program in ("opt/mssql/bin/sqlservr", "opt/faircom/server/faircom"):
            argv = [str(tmp_path / program), "-c", "import json, os; print(os.readlink('/proc/self/exe'))"]
            found = subprocess.run(
                argv, env={"PYTHONHOME": "/usr"}, stdout=subprocess.PIPE, text=True, check=True
            )
            assert os.path.realpath(found.stdout.strip()) == os.path.realpath(tmp_path / program)
        assert (tmp_path / "etc/systemd/system/mssql-server.service").exists()
        said = subprocess.run(
            [str(tmp_path / "opt/mssql/bin/mssql-conf"), "list"],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        assert "control.writethrough" in said.stdout

    def test_the_modes_are_those_of_the_vendors_guide(self, tmp_path: Path) -> None:
        assert self.install(tmp_path, "mssql").returncode == 0
        home = tmp_path / "var/opt/mssql"
        modes = {path: path.stat().st_mode & 0o7777 for path in (home, home / "mssql.conf")}
        assert modes == {home: 0o770, home / "mssql.conf": 0o644}
        assert text(tmp_path) == "[EULA]\naccepteula = Y\n\n"

    def test_a_real_server_is_left_alone(self, tmp_path: Path) -> None:
        program = tmp_path / "opt/mssql/bin/sqlservr"
        program.parent.mkdir(parents=True)
        program.write_text("real", encoding="utf-8")
        said = self.install(tmp_path, "mssql")
        assert said.returncode == 1
        assert "no stand-in" in said.stdout
        assert program.read_text(encoding="utf-8") == "real"

    @pytest.mark.parametrize("names", [(), ("oracle",)])
    def test_wrong_words(self, tmp_path: Path, names: tuple[str, ...]) -> None:
        assert self.install(tmp_path, *names).returncode == 2
