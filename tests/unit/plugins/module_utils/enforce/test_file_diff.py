# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""--diff: the lines of each file that a layer writes, before and after, and no secret among them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils import catalog
from ansible_collections.durable.dbhost.plugins.module_utils.enforce import file_diff
from ansible_collections.durable.dbhost.plugins.module_utils.enforce.bring import bring
from ansible_collections.durable.dbhost.plugins.module_utils.enforce.file_diff import Edit, of_plan, of_root
from ansible_collections.durable.dbhost.plugins.module_utils.engines import unit_mounts
from ansible_collections.durable.dbhost.plugins.module_utils.engines.faircom import apply as faircom
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import apply as mariadb
from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import apply as postgresql
from ansible_collections.durable.dbhost.plugins.module_utils.host import our_paths
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.host.secret_words import can_hold_secret
from ansible_collections.durable.dbhost.plugins.module_utils.storage import (
    fstab,
    io_scheduler,
    mount_options,
    mount_units,
    write_cache,
)
from ansible_collections.durable.dbhost.plugins.module_utils.ups import apply as power
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard import apply as guard
from ansible_collections.durable.dbhost.plugins.module_utils.watch import apply as watch

from ..engines.test_unit_mounts import PG as PG_UNIT
from ..engines.test_unit_mounts import UnitHost
from ..fakes.fake_host import FakeHost
from ..fakes.fake_mariadb import SERVER_CNF, MariaHost
from ..fakes.fake_postgresql import CONF, MAIN, FakePostgresql
from ..fakes.nut_host import SECRET, UPSMON, ApcHost, NutHost
from ..fakes.small_host import BigHost
from ..fakes.vendor_host import with_faircom
from ..ups.guard.test_apply import PG, TERMS, GuardHost
from ..watch.test_apply import INPUTS, WatchHost

SDA = "serial:QEMU_HARDDISK_SATA0001"
HOOKED = [{"notify_command": our_paths.HOOK}, {"notify_flags": "EXEC"}]
MONITOR = {"system": "rack@localhost", "power_value": 2, "user": "upsmon", "type": "primary"}


def disks() -> BigHost:
    host = BigHost()
    host.mounts["/srv/pgdata"].barrier = "off"
    return host


def postgres() -> FakePostgresql:
    host = FakePostgresql()
    host.files[CONF] = f"fsync = off\n{MAIN}"
    host.start_server()
    return host


def maria() -> MariaHost:
    host = MariaHost("10.11.19-MariaDB-0+deb12u1")
    host.files[SERVER_CNF] += "sync_binlog = 0\n"
    host.variables["sync_binlog"] = "0"
    return host


#: layer: (its code, a host, arguments)
LAYERS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "mount_options": (
        mount_options,
        disks,
        {"targets": [{"target": "/srv/pgdata", "barrier": "on", "atime": "noatime", "persist": True}]},
    ),
    "write_cache": (write_cache, disks, {"targets": [{"disk": SDA, "state": "disabled"}]}),
    "io_scheduler": (
        io_scheduler,
        disks,
        {"targets": [{"device": SDA, "scheduler": "mq-deadline", "readahead": 4096}]},
    ),
    "unit_mounts": (unit_mounts, UnitHost, {"targets": [{"unit": PG_UNIT, "mounts": ["/srv/pgdata"]}]}),
    "faircom": (
        faircom,
        with_faircom,
        {"targets": [{"instance": "/opt/faircom", "settings": {"LOG_WRITETHRU": "on"}}], "restart": False},
    ),
    "postgresql": (
        postgresql,
        postgres,
        {
            "targets": [{"instance": "15/main", "settings": {"fsync": "on"}, "overrides": []}],
            "restart": False,
            "alter_system": False,
        },
    ),
    "mariadb": (
        mariadb,
        maria,
        {"targets": [{"instance": "mariadb", "settings": {"sync_binlog": 1}}], "restart": False},
    ),
    "power with NUT": (
        power,
        NutHost,
        {"targets": [*HOOKED, {"monitor": MONITOR}], "password": "n3w one"},
    ),
    "power with apcupsd": (power, ApcHost, {"targets": HOOKED, "password": ""}),
    "power_guard": (guard, GuardHost, {"targets": [{"mount": PG}], **TERMS}),
    "watch": (watch, WatchHost, {"inputs": INPUTS, "calendar": "hourly", "metrics": "", "version": ""}),
}
#: Notes and originals of a run, and what the run's own commands write.
_STATE = (our_paths.PERSISTENT, our_paths.VOLATILE, "/sys/", "/proc/", "/run/", "/etc/systemd/system/timers.")


def expect_shown(before: dict[str, str], after: dict[str, str], shown: Iterable[dict[str, str]]) -> None:
    """Compare what was shown with the files that a run has changed."""
    headers = {
        side: {each[f"{side}_header"].split(" ")[0].rstrip(":"): each for each in shown}
        for side in ("before", "after")
    }
    changed = {
        path
        for path in before.keys() | after.keys()
        if before.get(path) != after.get(path) and not path.startswith(_STATE) and ".wants/" not in path
    }
    assert changed
    assert set(headers["after"]) == changed
    for path in changed:
        each = headers["after"][path]
        for side, files in (("before", before), ("after", after)):
            rows = set(each[side].splitlines())
            if path.endswith(".pyz"):
                assert rows <= {"[not shown]"} and "not a text" in each["after_header"]
                continue
            observed = [row.expandtabs() for row in files.get(path, "").splitlines()]
            assert rows <= {*observed, file_diff._HIDDEN, file_diff._GAP}
            assert (path not in files) is each[f"{side}_header"].endswith(" (absent)")
            missing = set(observed) - rows
            other = (after if side == "before" else before).get(path, "").expandtabs().splitlines()
            # What is not shown is a secret, or stays in a private file.
            assert all(row in other or can_hold_secret(row) for row in missing)


@pytest.mark.parametrize(("layer", "make", "given"), LAYERS.values(), ids=LAYERS)
def test_each_file_that_a_layer_writes_is_shown_by_check_run_and_release(
    layer: Any, make: Any, given: dict[str, Any]
) -> None:
    host = make()
    arguments = {"state": "present", **given}
    before = dict(host.files)
    foretold = bring(host, layer, arguments, foretell=True, shows_files=True)
    assert host.mutations == []
    done = bring(host, layer, arguments, foretell=False, shows_files=True)
    assert (done.failures, done.files) == ((), foretold.files)
    expect_shown(before, dict(host.files), done.files)
    before = dict(host.files)
    foretold = bring(host, layer, {**arguments, "state": "released"}, foretell=True, shows_files=True)
    done = bring(host, layer, {**arguments, "state": "released"}, foretell=False, shows_files=True)
    assert (done.failures, done.files) == ((), foretold.files)
    expect_shown(before, dict(host.files), done.files)


def test_each_layer_that_writes_files_is_above() -> None:
    """A vendor's own program writes those of the others."""
    assert {name.partition(" ")[0] for name in LAYERS} == {*catalog.LAYERS, "watch"} - {"mssql", "firebird"}


def test_without_diff_no_line_is_sent() -> None:
    layer, make, given = LAYERS["mount_options"]
    found = bring(make(), layer, {"state": "present", **given}, foretell=True)
    assert found.changes and found.files == ()


def test_passwords_of_a_monitor_are_not_shown() -> None:
    layer, make, given = LAYERS["power with NUT"]
    found = bring(make(), layer, {"state": "present", **given}, foretell=True, shows_files=True)
    assert "NOTIFYCMD" in json.dumps(found.files)
    assert SECRET not in json.dumps(found.files) and "n3w" not in json.dumps(found.files)


NOTIFY = "/usr/bin/curl -u admin:hunter2 https://x"
OFF = "/usr/bin/upscmd -u admin -p hunter2 ups load.off"


def test_a_password_in_a_command_of_a_monitor_is_in_no_change() -> None:
    host = NutHost()
    text = host.files[UPSMON].replace("/sbin/shutdown -h +0", OFF)
    host.files[UPSMON] = f'{text}NOTIFYCMD "{NOTIFY}"\n'
    given = {"targets": [*HOOKED, {"shutdown_command": "/sbin/shutdown -h +0"}], "password": ""}
    done = bring(host, power, {"state": "present", **given}, foretell=False, shows_files=True)
    released = bring(host, power, {"state": "released", **given}, foretell=False, shows_files=True)
    assert (done.failures, released.failures) == ((), ())
    assert f'NOTIFYCMD "{NOTIFY}"' in host.files[UPSMON] and OFF in host.files[UPSMON]
    for each in (done, released):
        assert {"NOTIFYCMD", "SHUTDOWNCMD"} <= {change.setting for change in each.changes}
        assert "hunter2" not in json.dumps([each.changes, each.files])


def shown(
    before: str | None, after: str | None, path: str = "/etc/x.conf", mode: int = 0o644
) -> dict[str, str]:
    """Return what is shown of an edit of a file with this mode."""
    host = FakeHost()
    host.files.update({path: before} if before is not None else {})
    host.modes[path] = mode
    (found,) = of_plan(host, SimpleNamespace(edits=lambda *_: [Edit(path, before, after)]), None)
    return found


SECRETS = [
    "password = hunter2",
    "MSSQL_SA_PASSWORD=hunter2",
    "passwd=hunter2",
    "primary_conninfo = 'host=db user=u password=hunter2'",
    "//nas/x /mnt cifs username=u,pass=hunter2 0 0",
    "api_token: hunter2",
    "client-secret hunter2",
    "MONITOR ups@localhost 1 upsmon hunter2 primary",
    'CERTIDENT "name" "hunter2"',
    "dsn = postgresql://user:hunter2@db/x",
    "encryption_key = hunter2",
    "CREATE USER u IDENTIFIED BY 'hunter2'",
    f"{'x' * 5000} hunter2",
    '"MONITOR" ups@localhost 1 upsmon hunter2 primary',
    "# MONITOR ups@localhost 1 upsmon hunter2 primary",
    "archive_command = 'curl -s -u backup:hunter2 -T %p ftp://nas/%f'",
    "archive_command = 'curl -su backup:hunter2 -T %p ftp://nas/%f'",
    "archive_command = 'curl --user backup:hunter2 -T %p ftp://nas/%f'",
    "archive_command = 'curl --proxy-user=backup:hunter2 -T %p ftp://nas/%f'",
    "archive_command = 'lftp -u backup,hunter2 nas -e put'",
    "archive_command = 'smbclient -U backup%hunter2 //nas/wal'",
    "upscmd -u admin -p hunter2 ups load.off",
    "ipmitool -H db2 -U admin -P hunter2 chassis power off",
    "racadm -r db2 -u root -phunter2 serveraction powerdown",
    "snmpset -v1 -c hunter2 pdu 1.3.6 i 1",
    "snmpget -v3 -u ups -l authPriv -A hunter2 -X hunter2 pdu 1.3.6",
    "curl -d on https://hooks.slack.com/services/T0/B0/hunter2",
    "curl https://api.telegram.org/bot42:hunter2/sendMessage",
    "header = Authorization: Basic hunter2",
    "header = Bearer hunter2",
    "DefaultEndpointsProtocol=https;AccountKey=hunter2",
    "apikey=hunter2",
    "filekey = hunter2",
    "url = https://store/wal?sv=1&sig=hunter2",
    "SharedAccessSignature=hunter2",
    "wsrep_sst_auth = sst:hunter2",
]


@pytest.mark.parametrize("row", SECRETS)
def test_a_line_with_a_secret_is_replaced_on_both_sides(row: str) -> None:
    found = shown(f"a=1\n{row}\n", f"a=2\n{row}\n")
    assert found["before"] == f"a=1\n{file_diff._HIDDEN}\n"
    assert found["after"] == f"a=2\n{file_diff._HIDDEN}\n"


def test_a_line_that_goes_on_after_a_secret_is_replaced_too() -> None:
    assert "hunter2" not in shown(None, 'MONITOR ups 1 u "\\\nhunter2" primary\nx\n')["after"]


@pytest.mark.parametrize("between", ["# comment", " ; comment", "", "# one\n\n# two"])
def test_a_comment_or_a_blank_line_does_not_end_a_line_that_goes_on(between: str) -> None:
    rows = shown(None, f"Environment=PGPASSWORD=\\\n{between}\nhunter2\n# after\nx\n")["after"].splitlines()
    assert rows == [file_diff._HIDDEN] * (between.count("\n") + 3) + ["# after", "x"]


LOCAL = [
    "# / was on /dev/sda1 during installation",
    "UUID=1-2 / ext4 errors=remount-ro,x-systemd.device-timeout=10s 0 1",
    "/dev/sdb1 /srv btrfs subvol=@data,noatime,compress=zstd 0 0",
    "nas:/export /mnt/nfs nfs rw,hard,timeo=600 0 0",
]
REMOTE = [
    "//joe:hunter2@nas/x /mnt cifs guest 0 0",
    "//nas/x /mnt cifs user=joe%hunter2 0 0",
    "#//nas/x /mnt cifs user=joe%hunter2 0 0",
    "//nas/x /mnt cifs rw,password=hunter2 0 0",
    "//nas/x /mnt cifs rw,credentials=/root/hunter2 0 0",
    "//nas/x /mnt cifs rw,hunter2 0 0",
    "curlftpfs#ftp.nas:hunter2@nas /mnt fuse rw 0 0",
    "LABEL=x /mnt ext4 login=hunter2 0 0",
]


@pytest.mark.parametrize("row", REMOTE)
def test_a_line_of_fstab_with_a_login_is_replaced_and_those_of_local_disks_are_shown(row: str) -> None:
    host = disks()
    host.files[mount_options.FSTAB] += "\n".join([*LOCAL, row, ""])
    before = host.text(mount_options.FSTAB)
    _layer, _make, given = LAYERS["mount_options"]
    done = bring(host, mount_options, {"state": "present", **given}, foretell=False, shows_files=True)
    assert done.failures == ()
    released = bring(host, mount_options, {"state": "released", **given}, foretell=False, shows_files=True)
    (changed,) = (each for each in done.files if each["after_header"] == mount_options.FSTAB)
    (restored,) = (each for each in released.files if each["after_header"] == mount_options.FSTAB)
    expected = before.replace(row, file_diff._HIDDEN).expandtabs().splitlines()
    assert changed["before"].splitlines() == restored["after"].splitlines() == expected
    assert "hunter2" not in json.dumps([done.files, released.files])
    note, line = (each for each in changed["after"].splitlines() if each not in expected)
    assert note.startswith(fstab.MARK) and " /srv/pgdata " in line and "noatime" in line


def test_a_malformed_line_of_fstab_with_a_login_is_replaced() -> None:
    assert fstab.is_private("//joe:hun ter2@nas/x /mnt ext4 rw 0 0")
    assert fstab.is_private("//nas/x /my mnt ext4 rw login=hunter2 0 0")


@pytest.mark.parametrize(
    ("options", "private"), [(("noatime", "user=joe%hunter2"), True), (("noatime", "barrier=1"), False)]
)
def test_options_of_a_mount_unit_with_a_login_are_replaced(options: tuple[str, ...], private: bool) -> None:
    host, path = disks(), mount_units.drop_in("srv-pgdata.mount")
    written = mount_units.render(options)
    host.files[path] = written
    work = mount_options.Work((), {}, {}, "", "", {}, {"srv-pgdata.mount": ("noatime",)}, {})
    _unchanged, edit = mount_options.edits(host, work)
    (found,) = of_plan(host, SimpleNamespace(edits=lambda *_: [edit]), None)
    row = file_diff._HIDDEN if private else "Options=noatime,barrier=1"
    assert found["before"].splitlines() == [*written.splitlines()[:-1], row]
    release = mount_options.Release((), host.text(mount_options.FSTAB), (path,), None)
    (_unchanged, edit) = mount_options.edits(host, release)
    (found,) = of_plan(host, SimpleNamespace(edits=lambda *_: [edit]), None)
    assert found["before"].splitlines() == [*written.splitlines()[:-1], row]


def test_what_we_write_is_no_secret() -> None:
    rows = [
        "#",
        "# <file system> <mount point> <type> <options> <dump> <pass>",
        "barrier=1",
        'ATTR{queue/scheduler}="none"',
    ]
    rows += [
        "LOG_WRITETHRU",
        'KERNEL=="sd*", SUBSYSTEM=="block"',
        "key_buffer_size = 16M",
        "keyring = /srv/keys",
        "# - Authentication -",
        "archive_command = 'cp -u %p /srv/wal/%f; date -u +%H:%M'",
        "sudo -u postgres psql -p 5432 -c checkpoint",
        "mkdir -p /srv/ups; cp -u -p %p /srv/wal/%f",
        "ExecStart=/usr/sbin/server --user=mysql --datadir=/srv:x",
        "synchronous_commit = on",
        "innodb_flush_log_at_trx_commit=1",
        "RequiresMountsFor=/srv",
    ]
    assert shown(None, "\n".join(rows))["after"].splitlines() == rows


@pytest.mark.parametrize("mode", [0o640, 0o600, 0o644])
def test_of_a_file_that_not_all_may_read_only_changed_lines_and_three_around_are_shown(mode: int) -> None:
    rows = [f"line{number}" for number in range(40)]
    changed = [*rows[:20], "ours", *rows[20:]]
    found = shown("\n".join(rows), "\n".join(changed), mode=mode)
    if mode == 0o644:
        assert found["before"].splitlines() == rows
    else:
        assert found["before"].splitlines() == [file_diff._GAP, *rows[17:23]]
        assert found["after"].splitlines() == [file_diff._GAP, *rows[17:20], "ours", *rows[20:23]]


def test_of_a_file_of_another_user_only_changed_lines_are_shown() -> None:
    path, rows = "/srv/x/y.conf", [f"line{number}\n" for number in range(40)]
    host = FakeHost()
    host.files[path] = "".join(rows)
    host.uids[path] = 1000
    edit = Edit(path, "".join(rows), "".join([*rows, "ours\n"]))
    (found,) = of_plan(host, SimpleNamespace(edits=lambda *_: [edit]), None)
    assert len(found["after"].splitlines()) == 5


@pytest.mark.parametrize(
    ("text", "why"),
    [("x" * 70_000, "more than 64 KiB"), ("\n" * 2001, "or 2000 lines"), ("a\0b", "not a text")],
)
def test_a_file_that_is_too_large_or_no_text_has_the_reason_in_its_header(text: str, why: str) -> None:
    found = shown(None, text)
    assert why in found["after_header"] and found["before_header"].startswith("/etc/x.conf: not shown")
    assert (found["before"], found["after"]) == ("", "[not shown]\n")


def test_a_file_that_others_may_change_is_not_read_and_fails_nothing() -> None:
    host = FakeHost()
    host.files["/srv/x"] = "secret"
    host.uids["/srv/x"] = 1000
    with pytest.raises(Unobservable, match="belongs to user 1000"):
        list(of_root(host, {"/srv/x": None}))
    (found,) = of_plan(host, SimpleNamespace(edits=lambda *_: of_root(host, {"/srv/x": None})), None)
    assert "belongs to user 1000" in found["after_header"] and "secret" not in json.dumps(found)


def test_text_of_a_host_cannot_move_the_terminal() -> None:
    found = shown("a\n", "b\x1b[2J\rc\n")
    assert found["after"] == "b\\x1b[2J\\rc\n"
