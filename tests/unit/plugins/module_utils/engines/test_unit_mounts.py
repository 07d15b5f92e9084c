# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drop-ins by which services require their mounts: written, read back from systemd, released."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines import unit_mounts
from ansible_collections.durable.dbhost.plugins.module_utils.engines.unit_mounts import Target
from ansible_collections.durable.dbhost.plugins.module_utils.host import units
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed
from ansible_collections.durable.dbhost.plugins.module_utils.storage.mount_units import unit_name

from ..fakes.fake_proc import ProcHost

PG = "postgresql@15-main.service"
DROP_IN = f"/etc/systemd/system/{PG}.d/durable-dbhost-mounts.conf"
_LINE = re.compile(r'^RequiresMountsFor="((?:[^"\\]|\\.)+)"$', re.M)


class UnitHost(ProcHost):
    """A host whose systemd reads our drop-ins when it is told to; `deaf`: and makes nothing of them."""

    def __init__(self) -> None:
        super().__init__()
        self.units = {PG: {}, "mariadb.service": {}}
        self.files["/run/systemd/system/marker"] = ""
        self.deaf = False

    def on_change(self, argv: list[str]) -> None:
        if argv == ["systemctl", "daemon-reload"]:
            for name, said in self.units.items():
                text = str(self.files.get(unit_mounts.drop_in(name), ""))
                paths = [re.sub(r"\\(.)", r"\1", path).replace("%%", "%") for path in _LINE.findall(text)]
                names = (unit_name(path) for path in paths if not self.deaf)
                mounts = " ".join(_printed(name) for name in names)
                said.update({"Requires": f"sysinit.target {mounts}", "After": f"{mounts} basic.target"})
        elif argv[0] != "rmdir":
            super().on_change(argv)


def _printed(name: str) -> str:
    """As `systemctl show` prints the name of a unit (Debian 12)."""
    escaped = name.replace("\\", "\\\\")
    return f'"{escaped}"' if "\\" in name else name


def settle(host: UnitHost, *targets: Target) -> unit_mounts.Work:
    work = unit_mounts.plan(host, list(targets))
    unit_mounts.apply(host, work, list(targets))
    return work


def test_a_unit_requires_what_it_did_not_and_a_second_run_does_nothing() -> None:
    host = UnitHost()
    target = unit_mounts.target_of({"unit": PG, "mounts": ["/srv/wal", "/srv/pgdata"]})
    work = settle(host, target)
    assert {change.when for change in work.changes} == {"running", "persisted"}
    assert {change.after for change in work.changes} == {"/srv/pgdata, /srv/wal"}
    assert host.files[DROP_IN].endswith(
        '[Unit]\nRequiresMountsFor="/srv/pgdata"\nRequiresMountsFor="/srv/wal"\n'
    )
    assert unit_mounts.plan(host, [target]).changes == ()
    restarts = [change for change in host.mutations if "restart" in change]
    assert restarts == []


def test_a_plan_writes_nothing() -> None:
    host = UnitHost()
    assert unit_mounts.plan(host, [Target(PG, ("/srv/pgdata",))]).changes
    assert host.mutations == []


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("/srv/two words", '"/srv/two words"'),
        ("/srv/100%n", '"/srv/100%%n"'),
        ('/srv/"a"', '"/srv/\\"a\\""'),
        ("/srv/back\\slash", '"/srv/back\\\\slash"'),
        ("/srv/it's", '"/srv/it\'s"'),
        ("/srv/ä", '"/srv/ä"'),
    ],
)
def test_odd_letters_are_written_as_systemd_takes_them(path: str, written: str) -> None:
    host = UnitHost()
    settle(host, Target(PG, (path,)))
    assert f"RequiresMountsFor={written}\n" in host.files[DROP_IN]


@pytest.mark.parametrize("path", ["/srv/a\nExecStart=/bin/sh", "srv/pgdata", "/srv/\udce4", "", "/"[:0]])
def test_a_path_that_no_unit_can_name_is_refused(path: str) -> None:
    with pytest.raises(ChangeFailed, match="expected one or more absolute paths"):
        unit_mounts.plan(UnitHost(), [Target(PG, (path,))])


@pytest.mark.parametrize("unit", ["../../x.service", "a/b.service", "pg.timer", "a b.service", ".service"])
def test_a_name_that_is_no_service_is_refused(unit: str) -> None:
    with pytest.raises(ChangeFailed, match="no name of a service"):
        unit_mounts.plan(UnitHost(), [Target(unit, ("/srv/a",))])


def test_a_unit_that_systemd_does_not_know_is_refused() -> None:
    with pytest.raises(ChangeFailed, match="observed not-found, expected a unit"):
        unit_mounts.plan(UnitHost(), [Target("gone.service", ("/srv/a",))])


def test_without_systemd_nothing_is_written() -> None:
    host = UnitHost()
    host.units = {}
    with pytest.raises(ChangeFailed, match="systemd could not be asked"):
        unit_mounts.plan(host, [Target(PG, ("/srv/a",))])


def test_somebody_elses_file_of_that_name_stays() -> None:
    host = UnitHost()
    host.files[DROP_IN] = "[Unit]\nRequiresMountsFor=/srv/other\n"
    with pytest.raises(ChangeFailed, match="not ours"):
        unit_mounts.plan(host, [Target(PG, ("/srv/a",))])


def test_a_systemd_that_makes_nothing_of_it_fails_the_step() -> None:
    host = UnitHost()
    host.deaf = True
    with pytest.raises(ChangeFailed, match="the machine did not follow"):
        settle(host, Target(PG, ("/srv/pgdata",)))


def test_files_that_systemd_has_not_read_are_read() -> None:
    """A run that was killed before the reload left the drop-in there."""
    host = UnitHost()
    target = Target(PG, ("/srv/pgdata",))
    settle(host, target)
    host.units[PG] = {"NeedDaemonReload": "yes", **host.units[PG]}
    (change,) = unit_mounts.plan(host, [target]).changes
    assert (change.when, change.before) == ("running", "not reloaded")


def test_release_takes_all_of_ours_and_nobody_elses() -> None:
    host = UnitHost()
    settle(host, Target(PG, ("/srv/pgdata",)), Target("mariadb.service", ("/srv/maria",)))
    other = f"/etc/systemd/system/{PG}.d/override.conf"
    host.files[other] = "[Service]\nNice=5\n"
    work = unit_mounts.plan_release(host)
    assert [change.target for change in work.changes] == [
        "/etc/systemd/system/mariadb.service.d/durable-dbhost-mounts.conf",
        DROP_IN,
    ]
    unit_mounts.apply_release(host, work)
    assert DROP_IN not in host.files and other in host.files
    assert host.mutations[-1] == ("change", "systemctl", "daemon-reload")
    assert unit_mounts.plan_release(host).changes == ()


@pytest.mark.fact(64)
@pytest.mark.parametrize(
    ("said", "mounts"),
    [
        ("Requires=a.mount sysinit.target\nAfter=a.mount b.mount", ("a.mount",)),
        ("BindsTo=a.mount\nRequisite=b.mount\nAfter=b.mount a.mount x.service", ("b.mount", "a.mount")),
        ("Wants=a.mount\nAfter=a.mount", ()),
        # As Debian 12 prints a name with a backslash, and as one would without quotes.
        (
            'Requires="srv-two\\\\x20words.mount" -.mount\nAfter="srv-two\\\\x20words.mount"',
            ("srv-two\\x20words.mount",),
        ),
        (
            "Requires=srv-two\\x20words.mount\nAfter=srv-two\\x20words.mount x.target",
            ("srv-two\\x20words.mount",),
        ),
        # Without an order it would not wait.
        ("Requires=a.mount\nAfter=basic.target", ()),
    ],
)
def test_a_unit_waits_for_what_it_requires_and_comes_after(said: str, mounts: tuple[str, ...]) -> None:
    (unit,) = units.parse(f"Id=x.service\n{said}\n")
    assert unit.mounts == mounts


def told(host: Any, targets: list[Target]) -> list[str]:
    return [change.before for change in unit_mounts.plan(host, targets).changes]


def test_what_is_missing_of_several_is_told() -> None:
    host = UnitHost()
    settle(host, Target(PG, ("/srv/pgdata",)))
    assert told(host, [Target(PG, ("/srv/pgdata", "/srv/wal"))]) == ["other", "/srv/pgdata"]
