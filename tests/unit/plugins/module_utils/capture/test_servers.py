# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A capture has the servers and the system around them: enough for the same verdict, and no secret."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.capture import servers
from ansible_collections.durable.dbhost.plugins.module_utils.capture.capture import (
    capture,
    replay,
    replay_engines,
)
from ansible_collections.durable.dbhost.plugins.module_utils.capture.identities import Identities
from ansible_collections.durable.dbhost.plugins.module_utils.capture.recording import dumps, loads
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ..fakes.runs import NOW, inputs
from ..fakes.small_host import BOOT_ID, SmallHost
from ..fakes.vendor_host import CONF, HOME, MSSQL_UNIT, VendorHost, with_mssql
from ..policy.assess.test_engines import instance

SECRET = "S3cr3t+word"
CONFIG = f"[network]\ntcpport = 1433\n[control]\nwritethrough = 0\n; password {SECRET}\n[sa]\nsapassword = {SECRET}\n"
SHOWN = (
    f"Id={MSSQL_UNIT}\nUser=mssql\nType=simple\n"
    "ExecStart={ path=/opt/mssql/bin/sqlservr ; argv[]=/opt/mssql/bin/sqlservr"
    f" --password={SECRET} -p{SECRET} {SECRET} -c fsync={SECRET} -D /srv ; ignore_errors=no }}\n"
    f"Environment=SA_PASSWORD={SECRET} PLAIN {SECRET}\nPassword={SECRET}\n"
)


def unfamiliar() -> VendorHost:
    """Return a host with SQL Server whose file, unit and command line hold secrets."""
    host = with_mssql(CONFIG, "3979")
    host.owners.update({HOME: "998:998", CONF: "0:0"})
    host.modes.update({HOME: 0o770, CONF: 0o644})
    properties = ",".join((*servers._PLAIN, *servers._WITH_VALUES))
    host.commands["systemctl", "show", f"--property={properties}", "--", MSSQL_UNIT] = SHOWN
    host.commands["systemctl", "--version"] = "systemd 252 (252.22-1)\n+PAM\n"
    entry = "/boot/efi/loader/entries/6.1.conf"
    host.files.update(
        {
            "/sys/fs/selinux/enforce": "1",
            "/etc/selinux/config": "# SELINUX=old\nSELINUX=enforcing\nSELINUXTYPE=targeted\n",
            "/sys/module/apparmor/parameters/enabled": "Y\n",
            "/proc/50/attr/current": "system_u:system_r:mssql_server_t:s0\0",
            entry: f"title Linux\nlinux /vmlinuz\noptions root=UUID=1-2 rootflags=data=writeback pw={SECRET}\n",
            "/boot/efi/EFI/debian/grubx64.efi": "",
            "/etc/machine-id": "0123456789abcdef0123456789abcdef\n",
        }
    )
    return host


def recorded(host: VendorHost) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the servers and the system of a host as a capture has them."""
    names = Identities("")
    found = servers.without_names(servers.facts(host, NOW, None))
    return servers.redacted(found, names), servers.system(host, found, names)


def test_the_system_has_units_owners_option_names_and_the_state_of_security() -> None:
    _found, system = recorded(unfamiliar())
    assert set(system["python"]) == {"version", "executable"}
    assert system["systemd"] == "systemd 252 (252.22-1)"
    assert system["selinux"] == {"enforce": "1", "configured": ["SELINUX=enforcing", "SELINUXTYPE=targeted"]}
    assert system["apparmor"] == {"enabled": "Y"}
    assert system["labels"] == {"50": "system_u:system_r:mssql_server_t:s0"}
    assert (system["files"][CONF], system["files"][HOME][:7]) == ("0:0 0644", "998:998")
    assert system["options"][CONF] == [
        "[network]",
        "tcpport",
        "[control]",
        "writethrough",
        "[sa]",
        "sapassword",
    ]
    assert system["boot"]["/boot/efi/EFI"] == ["debian"]
    (entry,) = system["entries"].values()
    assert re.search(r"^options root=UUID=\S+ rootflags=data=writeback$", entry, re.M)
    unit = system["units"][MSSQL_UNIT]
    assert (unit["User"], unit["Type"], unit["Environment"]) == ("mssql", "simple", "SA_PASSWORD=... ... ...")
    assert unit["ExecStart"] == (
        "{ path=/opt/mssql/bin/sqlservr ; argv[]=/opt/mssql/bin/sqlservr --password=... -p... ... -c fsync=... -D /srv ;"
        " ignore_errors=... }"
    )
    assert "Password" not in unit


def test_no_secret_and_no_value_of_a_file_is_recorded() -> None:
    found, system = recorded(unfamiliar())
    assert [each["name"] for each in found["engines"]] == ["mssql"]
    assert SECRET not in json.dumps([found, system])
    assert "1433" not in json.dumps(system["options"])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"sapassword={SECRET}", ["sapassword"]),
        (f"password {SECRET}", ["password"]),
        (SECRET, []),
        (f"  {SECRET} = x", []),
        (f"# {SECRET}", []),
        ("Password1", []),
        ("skip-networking", []),
        ("[mysqld]\nsync_binlog = 0", ["[mysqld]", "sync_binlog"]),
    ],
)
def test_of_a_file_only_names_that_have_a_value_are_recorded(text: str, found: list[str]) -> None:
    assert list(servers.option_names(text)) == found


@pytest.mark.parametrize(
    "text",
    [
        f"password={SECRET}",
        f"--password {SECRET}",
        f"SA_PASSWORD: {SECRET}",
        f"IDENTIFIED BY '{SECRET}'",
        f'api_token="{SECRET}"',
        f"pwd = {SECRET}",
    ],
)
def test_a_secret_in_a_reason_is_hidden(text: str) -> None:
    assert SECRET not in str(servers.redacted({"reason": [f"it failed: {text}"]}, Identities("")))


def test_a_host_whose_servers_cannot_be_listed_has_the_reason() -> None:
    found = servers.facts(SmallHost(), NOW, None)
    assert found == {"error": "/proc shows only some of the processes: run as root"}
    assert replay_engines({"engines": found}) is None
    assert servers.system(SmallHost(), found, Identities(""))["units"] == {}


def test_a_capture_of_an_unfamiliar_host_gives_its_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    given = instance(
        running={"fsync": "off"},
        persisted={"fsync": "unknown"},
        managed_by="none",
        evidence={
            "managed_by": {"value": "none", "source": "x", "reason": f"started with --password={SECRET}"}
        },
        overrides=[
            {
                "scope": "role carol",
                "setting": "synchronous_commit",
                "value": "off",
                "source": "pg_db_role_setting",
                "cause": "role",
                "role": "carol",
                "database": None,
                "permission": None,
            }
        ],
    )
    live = {
        "boot_id": BOOT_ID,
        "time": NOW,
        "engines": [given],
        "paths": [],
        "unattributed": [],
        "writers": [],
    }
    monkeypatch.setattr(servers, "collect", lambda *_given: live)
    host = SmallHost()
    expected = assess(inputs(), collect(host, NOW), NOW, live)
    text = dumps(capture(host, NOW))
    assert SECRET not in text and "carol" not in text
    recording = loads(text)
    found = assess(inputs(), replay(recording, NOW), NOW, replay_engines(recording))
    assert (expected["verdict"], len(expected["reasons"]) > 2) == ("at_risk", True)
    assert found["verdict"] == expected["verdict"]
    assert [each["id"] for each in found["reasons"]] == [each["id"] for each in expected["reasons"]]
    assert [each["verdict"] for each in found["settings"]] == [
        each["verdict"] for each in expected["settings"]
    ]
    # Without its servers the verdict is another one.
    assert replay_engines({}) is None
    assert assess(inputs(), replay(recording, NOW), NOW, {**live, "engines": []})["verdict"] != "at_risk"
