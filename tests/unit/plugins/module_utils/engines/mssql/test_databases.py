# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DELAYED_DURABILITY: who gets the password, and what the answer means. No real SQL Server ran here."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines import causes
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql import conf, databases
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Result

from ...fakes.vendor_host import VendorHost, with_mssql

PASSWORD = "not in any list"


class QueriedHost(VendorHost):
    """A host with a login for its SQL Server; `answer` is sqlcmd's."""

    answer = Result(0, "VISIBLE|1\n\nDISABLED|5\n", "")

    def run(self, argv: list[str], timeout: float = 10.0) -> Result:
        if databases.PROGRAM in argv:
            self.asked.append(tuple(argv))
            return self.answer
        if argv[:2] == ["getent", "passwd"] and argv[2] == "60706":
            return Result(2, "", "")
        return super().run(argv, timeout)


def queried(answer: Result = QueriedHost.answer, login: str = f"reader\n{PASSWORD}\n") -> QueriedHost:
    """Return a host where SQL Server runs and a login is stored."""
    host = with_mssql()
    host.__class__ = QueriedHost
    assert isinstance(host, QueriedHost)
    host.answer = answer
    host.files.update({databases.PROGRAM: "", databases.LOGIN: login})
    host.files["/proc/sys/kernel/hostname"] = "db1.example.com\n"
    host.modes[databases.LOGIN] = 0o600
    return host


def found(host: VendorHost, text: str = "[control]\n", is_local: bool = True) -> Any:
    """Return the observation."""
    return databases.delayed_durability(host, conf.parse(text), is_local)


@pytest.mark.fact(49)
@pytest.mark.parametrize(
    ("output", "value"),
    [
        ("DISABLED|5\n", "disabled"),
        ("DISABLED|5\n ALLOWED|1 \n", "allowed"),
        ("ALLOWED|1\n\nFORCED|2\nDISABLED|4\n", "forced"),
    ],
)
def test_the_weakest_database_counts(output: str, value: str) -> None:
    assert found(queried(Result(0, f"VISIBLE|1\n\n{output}", ""))).value == value


@pytest.mark.fact(49)
@pytest.mark.parametrize("visible", ["0", "NULL"])
def test_databases_that_the_login_cannot_see_may_be_weaker(visible: str) -> None:
    observation = found(queried(Result(0, f"VISIBLE|{visible}\nDISABLED|2\nALLOWED|1\n", "")))
    assert (observation.value, observation.because.cause) == ("unknown", "databases_hidden")
    assert causes.fix(observation.as_dict()).startswith("grant VIEW ANY DATABASE to the login")
    # Nothing is weaker than forced.
    assert found(queried(Result(0, f"VISIBLE|{visible}\nFORCED|1\n", ""))).value == "forced"


def test_the_query_proves_that_all_databases_are_visible() -> None:
    host = queried()
    found(host)
    (argv,) = (each for each in host.asked if databases.PROGRAM in each)
    query = argv[argv.index("-Q") + 1]
    assert "SELECT 'VISIBLE', HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW ANY DATABASE');" in query


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (
            Result(1, "", "Sqlcmd: Error: certificate verify failed"),
            "exits 1: Sqlcmd: Error: certificate verify",
        ),
        (Result(0, "", ""), "exits 0"),
        (Result(0, "VISIBLE|1\nFORCED|2\nsomething else\n", ""), "something else"),
        (Result(0, "VISIBLE|1\nDISABLED|x\n", ""), "DISABLED|x"),
        (Result(0, "DISABLED|5\n", ""), "DISABLED|5"),
        (Result(0, "VISIBLE|1\n", ""), "VISIBLE|1"),
        (Result(0, "VISIBLE|2\nDISABLED|5\n", ""), "VISIBLE|2"),
        (Result(0, "DISABLED|5\nVISIBLE|1\n", ""), "VISIBLE|1"),
        (Result(0, "VISIBLE|1\nVISIBLE|0\nDISABLED|5\n", ""), "VISIBLE|0"),
    ],
)
def test_another_answer_is_unknown(answer: Result, cause: str) -> None:
    observation = found(queried(answer))
    assert observation.value == "unknown"
    assert cause in observation.reason


def test_the_password_is_in_no_argument_and_goes_only_to_a_confirmed_certificate() -> None:
    host = queried()
    found(host, "[network]\ntcpport = 1444\n")
    (argv,) = (each for each in host.asked if databases.PROGRAM in each)
    assert host.secrets == [{"SQLCMDPASSWORD": PASSWORD}]
    assert not [word for word in argv if PASSWORD in word]
    assert argv[:3] == ("setpriv", "--reuid=60706", "--regid=60706")
    assert argv[argv.index("-S") + 1] == "tcp:db1.example.com,1444"
    # -C would accept any certificate.
    assert "-Nm" in argv and "-C" not in argv


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (
            lambda host: host.modes.update({databases.LOGIN: 0o640}),
            "mode 0640, expected a file that root alone",
        ),
        (lambda host: host.uids.update({databases.LOGIN: 1000}), "expected a file that root alone"),
        (lambda host: host.files.update({databases.LOGIN: "reader\n"}), "expected two lines"),
        (lambda host: host.files.update({databases.LOGIN: "-C\nx\n"}), "expected two lines"),
        (lambda host: host.files.update({databases.LOGIN: f"{PASSWORD}\n\n"}), "expected two lines"),
        (lambda host: host.files.update({"/proc/sys/kernel/hostname": "-C\n"}), "not one that a certificate"),
    ],
)
def test_without_a_safe_way_nothing_is_sent(change: Any, cause: str) -> None:
    host = queried()
    change(host)
    observation = found(host)
    assert observation.value == "unknown"
    assert cause in observation.reason
    assert PASSWORD not in observation.reason
    assert host.secrets == []


@pytest.mark.parametrize("text", ["[network]\ntcpport = 1433 -C\n", "[network]\ntcpport = 0\n"])
def test_a_port_that_is_none_is_not_queried(text: str) -> None:
    host = queried()
    assert "tcpport" in found(host, text).reason
    assert host.secrets == []


def test_a_server_in_a_container_and_one_without_a_login_are_not_queried() -> None:
    host = queried()
    assert found(host, is_local=False).because.cause == "never_queried"
    del host.files[databases.LOGIN]
    assert found(host).because.cause == "never_queried"
    assert host.secrets == []
