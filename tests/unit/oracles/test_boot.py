# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boot oracle: what it chooses, fills in and calls a wrong prediction; its machine is not needed."""

from __future__ import annotations

import copy
import random
import subprocess
from typing import Any

import pytest

from oracles.boot import guest, judge, rig, saboteurs
from oracles.boot.saboteurs import AREAS, HOST, Saboteur
from oracles.contract import AGREED, DECLINED, DISAGREED

EVERY = saboteurs.load()
TRUTH: dict[str, Any] = {
    "disks": {
        "SCSI0001": {
            "write_cache": "disabled",
            "kernel_cache_mode": "write back",
            "scheduler": "mq-deadline",
            "readahead": "512",
        },
        "VIRT0002": {
            "write_cache": "disabled",
            "kernel_cache_mode": "write through",
            "scheduler": "none",
            "readahead": "512",
        },
    },
    "mounts": {
        target: {
            "uuid": f"uuid-{serial}",
            "serial": serial,
            "device": device,
            "fstype": fstype,
            "access": "rw",
            "barrier": "on",
            "data_mode": "ordered",
        }
        for target, serial, device, fstype in (
            ("/srv/pgdata", "SCSI0001", "sda", "ext4"),
            ("/srv/pgwal", "VIRT0001", "vdb", "xfs"),
            ("/srv/maria", "SCSI0002", "sdb", "xfs"),
            ("/srv/binlog", "VIRT0002", "vdc", "ext4"),
            ("/srv/other", "SCSI0003", "sdc", "ext4"),
        )
    },
    "engines": {"postgresql": {"fsync": "on"}, "mariadb": {"sync_binlog": "1"}},
    "preloads": [],
    "root": "rw",
}
SUBJECTS = rig.subjects(TRUTH, "15")


def row(layer: str, target: str, setting: str, persisted: str, **others: str) -> dict[str, Any]:
    given = {"running": persisted, "verdict": "ok", "why": "as wanted", "remedy": "", **others}
    return {
        "layer": layer,
        "target": target,
        "setting": setting,
        "persisted": persisted,
        "evidence": {"persisted": {"source": given.pop("source", "somewhere")}},
        **given,
    }


SAID: dict[str, Any] = {
    "verdict": "attested",
    "why": ["host_honours_flush is attested"],
    "warnings": [],
    "settings": [
        row("mount_options", "/srv/pgdata", "barrier", "on"),
        row("write_cache", "0QEMU_SCSI0001", "write_cache", "disabled"),
        row("write_cache", "0QEMU_SCSI0001", "kernel_cache_mode", "write back"),
        row("write_cache", "VIRT0002", "kernel_cache_mode", "write through"),
        row("io_scheduler", "0QEMU_SCSI0001", "readahead", "512"),
        row("postgresql", "main", "fsync", "on"),
        row("mariadb", "mariadb", "sync_binlog", "1"),
    ],
}
NORMAL = judge.Normal(SAID, TRUTH)


def item(area: str, harmless: bool = False, path: str = "/etc/site.conf") -> saboteurs.Planted:
    one = Saboteur(f"{area} one", area, harmless, area == HOST, files={path: "x"})
    return saboteurs.first(one, SUBJECTS)


def found(
    truth: dict[str, Any], said: dict[str, Any] = SAID, planted: tuple[saboteurs.Planted, ...] = ()
) -> dict[str, list[str]]:
    """Return {class: texts} of a comparison."""
    findings = judge.compare(said, judge.Boot(truth), planted, NORMAL)
    return {
        kind: [each.text for each in findings if each.kind == kind] for kind in {f.kind for f in findings}
    }


def truth_with(*path: str, value: Any) -> dict[str, Any]:
    truth = copy.deepcopy(TRUTH)
    place = truth
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return truth


def said_with(number: int, **fields: str) -> dict[str, Any]:
    said = copy.deepcopy(SAID)
    said["settings"][number].update(fields)
    return said


def test_every_saboteur_can_be_filled_in_for_each_of_its_subjects() -> None:
    for each in EVERY:
        suited = saboteurs.subjects_of(each, SUBJECTS[each.area])
        assert suited, f"{each.name} is about nothing that the machine has"
        for subject in suited:
            text = saboteurs.planted(each, subject).text()
            assert not saboteurs._PLACEHOLDER.search(text), text
            assert each.name in text


def test_every_script_of_a_saboteur_is_one_for_sh() -> None:
    for each in EVERY:
        for script in (each.run, each.undo, *each.programs.values()):
            done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
            assert not done.stderr, f"{each.name}: {done.stderr}"


def test_a_placeholder_without_a_value_is_an_error() -> None:
    with pytest.raises(KeyError):
        saboteurs.fill("@nothing@", SUBJECTS["disk"][0])


def test_each_area_has_as_many_harmless_items_as_half_of_its_saboteurs() -> None:
    for area in AREAS:
        of_area = [each for each in EVERY if each.area == area and not each.alone]
        harmless = [each for each in of_area if each.harmless]
        assert len(harmless) * 2 >= len(of_area) - len(harmless) > 10, area


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "x", "area": "disk"},
        {"name": "x", "area": "moon", "run": "true"},
        {"name": "x", "area": "host", "run": "true"},
        {"name": "x", "area": "disk", "run": "true", "harmles": True},
        {"area": "disk", "run": "true"},
    ],
)
def test_a_malformed_entry_is_refused(entry: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"x: |needs a name"):
        saboteurs._read(entry)


def test_what_saboteurs_write_is_restored() -> None:
    for each in EVERY:
        for subject in saboteurs.subjects_of(each, SUBJECTS[each.area]):
            planted = saboteurs.planted(each, subject)
            for path in planted.paths:
                assert path.startswith(guest.ROOTS), f"{each.name}: {path} is below none of guest.ROOTS"
            if "psql" in planted.run and "system" not in planted.run:
                assert planted.undo, f"{each.name} changes a database"
            if "tune2fs" in planted.run or "mariadb -e 'create" in planted.run:
                assert planted.undo, f"{each.name} changes more than files"


def test_a_round_is_chosen_again_from_its_seed() -> None:
    rounds = [saboteurs.choose(random.Random(seed), EVERY, SUBJECTS) for seed in range(300)]
    assert rounds == [saboteurs.choose(random.Random(seed), EVERY, SUBJECTS) for seed in range(300)]
    assert len({str(each) for each in rounds}) > 250


def test_a_round_has_one_item_of_each_area_or_one_that_is_alone() -> None:
    for seed in range(300):
        planted = saboteurs.choose(random.Random(seed), EVERY, SUBJECTS)
        areas = [each.saboteur.area for each in planted]
        assert len(set(areas)) == len(areas)
        if any(each.saboteur.alone for each in planted):
            assert len(planted) == 1
        paths = [path for each in planted for path in each.paths]
        assert len(set(paths)) == len(paths)


def test_no_item_of_a_round_replaces_the_file_of_another_one() -> None:
    every = [
        *(
            Saboteur(f"{area} {kind}", area, kind == "x", files={"/etc/rc.local": area})
            for area in AREAS
            for kind in "xy"
        ),
        Saboteur("alone", HOST, alone=True, run="true"),
    ]
    rounds = [saboteurs.choose(random.Random(seed), every, SUBJECTS) for seed in range(50)]
    assert {len(planted) for planted in rounds} == {1}


def test_a_few_hundred_rounds_plant_nearly_all() -> None:
    names = {
        each.saboteur.name
        for seed in range(600)
        for each in saboteurs.choose(random.Random(seed), EVERY, SUBJECTS)
    }
    assert len(names) > 0.95 * len(EVERY)


def test_packed_rounds_plant_each_saboteur_once() -> None:
    rounds = list(saboteurs.packed(EVERY, SUBJECTS))
    names = [each.saboteur.name for planted in rounds for each in planted]
    assert sorted(names) == sorted(each.name for each in EVERY)
    assert len(rounds) < len(EVERY) / 2
    for planted in rounds:
        areas = [each.saboteur.area for each in planted]
        paths = [path for each in planted for path in each.paths]
        assert len(set(areas)) == len(areas)
        assert len(set(paths)) == len(paths)
        assert len({each.saboteur.harmless for each in planted}) == 1
        assert len(planted) == 1 or not any(each.saboteur.alone for each in planted)


def test_the_fixed_rounds_name_saboteurs_and_cover_every_area() -> None:
    by_name = {each.name: each for each in EVERY}
    assert rig.SHORT[0] == "", "the first one plants nothing"
    names = [name for text in rig.SHORT for name in text.split("+") if name]
    assert {by_name[name].area for name in names} == {*AREAS, HOST}
    assert any(by_name[name].harmless for name in names)


def test_a_boot_as_it_was_said_agrees() -> None:
    assert set(found(TRUTH)) == {AGREED}
    assert len(found(TRUTH)[AGREED]) == len(SAID["settings"])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("mounts", "/srv/pgdata", "barrier"), "off"),
        (("disks", "SCSI0001", "write_cache"), "enabled"),
        (("disks", "SCSI0001", "kernel_cache_mode"), "write through"),
        (("engines", "postgresql", "fsync"), "off"),
        (("engines", "mariadb", "sync_binlog"), "0"),
    ],
)
def test_a_safe_value_that_is_unsafe_after_the_boot_is_a_wrong_prediction(
    path: tuple[str, ...], value: str
) -> None:
    assert len(found(truth_with(*path, value=value))[DISAGREED]) == 1


def test_a_setting_of_speed_is_counted_apart_unless_nothing_was_planted() -> None:
    truth = truth_with("disks", "SCSI0001", "readahead", value="8192")
    result = found(truth, planted=(item("disk"),))
    assert DISAGREED not in result
    assert len(result[judge.SPEED]) == 1
    assert len(found(truth)[DISAGREED]) == 1


def test_an_unsafe_value_that_is_safe_after_the_boot_is_counted_apart() -> None:
    result = found(TRUTH, said_with(5, persisted="off", verdict="drift_persisted"))
    assert DISAGREED not in result
    assert len(result[judge.SAFE_SIDE]) == 1


def test_a_kernel_that_flushes_more_than_was_said_is_on_the_safe_side() -> None:
    result = found(truth_with("disks", "VIRT0002", "kernel_cache_mode", value="write back"))
    assert set(result) == {AGREED, judge.SAFE_SIDE}


def test_a_kernel_that_does_not_flush_over_a_cache_is_a_wrong_prediction() -> None:
    truth = truth_with("disks", "SCSI0001", "kernel_cache_mode", value="write through")
    truth["disks"]["SCSI0001"]["write_cache"] = "enabled"
    assert len(found(truth)[DISAGREED]) == 2


def test_an_unknown_value_is_declined_whatever_the_boot_comes_to() -> None:
    truth = truth_with("engines", "postgresql", "fsync", value="off")
    result = found(truth, said_with(5, persisted="unknown", verdict="unknown"))
    assert DISAGREED not in result
    assert len(result[DECLINED]) == 1


def test_a_setting_that_is_left_out_of_a_good_report_is_a_wrong_prediction_if_it_is_unsafe() -> None:
    truth = truth_with("engines", "postgresql", "fsync", value="off")
    said = copy.deepcopy(SAID)
    del said["settings"][5]
    assert len(found(truth, said)[DISAGREED]) == 1
    said["verdict"] = "unknown"
    assert DISAGREED not in found(truth, said)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("mounts", "/srv/pgdata", "uuid"), "another"),
        (("mounts", "/srv/pgdata", "serial"), "SCSI0004"),
        (("mounts", "/srv/pgdata", "access"), "ro"),
        (("mounts", "/srv/other", "access"), "ro"),
        (("engines", "mariadb"), {}),
        (("preloads",), ["postgres"]),
    ],
)
def test_a_loss_must_have_been_named(path: tuple[str, ...], value: Any) -> None:
    truth = truth_with(*path, value=value)
    assert len(found(truth)[DISAGREED]) >= 1
    said = copy.deepcopy(SAID)
    planted = (item(HOST),)
    said["why"].append("/etc/site.conf acts at the next boot")
    lost = [each for each in judge.compare(said, judge.Boot(truth), planted, NORMAL) if "named" in each.text]
    assert [each.kind for each in lost] == [AGREED]


@pytest.mark.parametrize(
    ("said_of", "kind"),
    [("mariadb", DECLINED), ("postgresql", DISAGREED)],
)
def test_a_library_is_declined_while_nothing_is_known_of_that_server_s_next_start(
    said_of: str, kind: str
) -> None:
    truth = truth_with("preloads", value=["mariadbd"])
    said = copy.deepcopy(SAID)
    why = f"{said_of}.service: its file has changed since systemd read it: systemctl daemon-reload, then run again"
    said["settings"].append(row(said_of, "other", "x", "unknown", verdict="unknown", why=why))
    findings = judge.compare(said, judge.Boot(truth), (), NORMAL)
    assert [each.kind for each in findings if "libeatmydata" in each.text] == [kind]


def test_what_is_always_said_names_nothing() -> None:
    truth = truth_with("engines", "mariadb", value={})
    always = {**SAID, "why": ["mariadb: the next boot"], "settings": [*SAID["settings"]]}
    always["settings"].append(row("mariadb", "old", "sync_binlog", "0", verdict="drift_persisted"))
    findings = judge.compare(always, judge.Boot(truth), (), judge.Normal(always, TRUTH))
    assert "mariadb does not run, and was not named" in [each.text for each in findings]


def test_what_is_wrong_now_names_nothing() -> None:
    truth = truth_with("mounts", "/srv/pgdata", "uuid", value="another")
    said = said_with(0, running="off", verdict="drift_running", why="/srv/pgdata: barriers are off")
    said["why"].append("/srv/pgdata: barriers are off over a cache")
    assert any("another file system" in text for text in found(truth, said)[DISAGREED])


def test_a_missing_mount_must_have_been_named_by_its_own_name() -> None:
    truth = copy.deepcopy(TRUTH)
    del truth["mounts"]["/srv/maria"]
    said = said_with(0, verdict="drift_persisted", persisted="off", why="/srv/pgdata: barriers are off")
    assert any("/srv/maria" in text for text in found(truth, said)[DISAGREED])
    said["settings"].append(
        row("mount_options", "/srv/maria", "source", "refused", verdict="drift_persisted", why="is gone")
    )
    assert DISAGREED not in found(truth, said)


def test_a_machine_that_does_not_boot_must_have_been_named() -> None:
    boot = judge.Boot(None, "lab: emergency mode")
    assert [each.kind for each in judge.compare(SAID, boot, (item(HOST),), NORMAL)] == [DISAGREED]
    said = said_with(0, verdict="drift_persisted", why="the next boot stops")
    assert [each.kind for each in judge.compare(said, boot, (item(HOST),), NORMAL)] == [AGREED]


def test_an_unsafe_setting_of_a_role_must_have_been_reported() -> None:
    truth = truth_with("engines", "postgresql", "roles", value=["synchronous_commit=off", "work_mem=6MB"])
    assert len(found(truth)[DISAGREED]) == 1
    said = copy.deepcopy(SAID)
    said["settings"].append(
        row("postgresql", "main role app", "synchronous_commit", "off", verdict="drift_running")
    )
    assert DISAGREED not in found(truth, said)


@pytest.mark.parametrize(
    ("number", "area"), [(0, "mount"), (1, "disk"), (5, "postgresql"), (6, "mariadb"), (6, HOST)]
)
def test_a_harmless_item_that_changes_a_value_is_a_false_alarm(number: int, area: str) -> None:
    said = said_with(number, persisted="unknown", verdict="unknown")
    assert len(found(TRUTH, said, (item(area, harmless=True),))[judge.FALSE_ALARM]) == 1
    assert judge.FALSE_ALARM not in found(TRUTH, said, (item(area),))
    other = "mariadb" if area == "postgresql" else "postgresql"
    if area != HOST:
        assert judge.FALSE_ALARM not in found(TRUTH, said, (item(area), item(other, harmless=True)))


def test_what_a_saboteur_makes_unknown_is_no_alarm_of_a_harmless_item_beside_it() -> None:
    """The reason of a row that has drifted names the running value, and only its evidence the saboteur."""
    said = said_with(0, persisted="unknown", verdict="drift_running", why="it is off")
    area = judge._AREA_OF[said["settings"][0]["layer"]]
    planted = (item(area, harmless=True), item("postgresql", path="/etc/systemd/system-generators/zz"))
    assert judge.FALSE_ALARM in found(TRUTH, said, planted)
    said["settings"][0]["evidence"] = {
        "persisted": {"reason": "/etc/systemd/system-generators/zz is a generator"}
    }
    assert judge.FALSE_ALARM not in found(TRUTH, said, planted)


def test_a_reason_that_names_a_harmless_file_is_a_false_alarm() -> None:
    said = copy.deepcopy(SAID)
    said["why"].append("/etc/site.conf may act at the next boot")
    assert judge.FALSE_ALARM in found(TRUTH, said, (item("disk", harmless=True),))


def test_a_machine_that_is_red_after_a_boot_with_harmless_items_is_a_false_alarm() -> None:
    planted = (item("mount", harmless=True),)
    red = {**SAID, "verdict": "blocked", "why": ["/srv/pgdata is not mounted"]}
    assert judge.after(SAID, planted) == []
    assert [each.kind for each in judge.after(red, planted)] == [judge.FALSE_ALARM]
    assert [each.kind for each in judge.after(red, ())] == [DISAGREED]


def test_what_still_runs_of_the_round_before_is_no_false_alarm() -> None:
    said = said_with(5, running="off", verdict="drift_running")
    said["why"].append("postgresql main: fsync is off")
    assert judge.FALSE_ALARM not in found(TRUTH, said, (item("postgresql", harmless=True),))


@pytest.mark.parametrize(
    ("path", "value", "area"),
    [
        (("mounts", "/srv/pgdata", "barrier"), "off", "mount"),
        (("disks", "SCSI0001", "write_cache"), "enabled", "disk"),
        (("engines", "postgresql", "fsync"), "off", "postgresql"),
        (("engines", "postgresql", "roles"), ["fsync=off"], "postgresql"),
        (("engines", "mariadb"), {}, "mariadb"),
        (("preloads",), ["mariadbd"], "mariadb"),
    ],
)
def test_an_item_that_does_another_thing_than_its_entry_says_is_found(
    path: tuple[str, ...], value: Any, area: str
) -> None:
    truth = truth_with(*path, value=value)
    assert len(found(truth, planted=(item(area, harmless=True),))[judge.HARMFUL]) == 1
    assert judge.NO_EFFECT not in found(truth, planted=(item(area),))
    other = "mariadb" if area != "mariadb" else "disk"
    result = found(truth, planted=(item(other), item(other, harmless=True)))
    assert len(result[judge.NO_EFFECT]) == 1
    assert judge.HARMFUL not in result


def test_a_run_is_well_without_a_wrong_prediction_and_with_few_false_alarms() -> None:
    good, alarm = judge.Finding(AGREED), judge.Finding(judge.FALSE_ALARM, "x")
    harmless = item("disk", harmless=True)
    total = rig.Total()
    assert not total.is_well, "nothing was agreed on"
    for _number in range(50):
        total.add("SEED=1 COUNT=1", (harmless,), [good])
    total.add("SEED=2 COUNT=1", (harmless,), [alarm])
    assert total.is_well
    total.add("SEED=3 COUNT=1", (harmless,), [alarm])
    assert not total.is_well
    text = total.report(1.0, {})
    assert "2 false alarms of 52 harmless items (3.8 in 100" in text
    assert "SEED=3 COUNT=1" in text
    total = rig.Total()
    total.add("SEED=5 COUNT=1", (harmless,), [good, judge.Finding(judge.HARMFUL, "disk one")])
    assert not total.is_well
    total = rig.Total()
    total.add("SEED=4 COUNT=1", (item("disk"),), [good, judge.Finding(DISAGREED, "said on, is off")])
    assert not total.is_well
    text = total.report(1.0, {})
    assert "SEED=4 COUNT=1" in text
    assert "said on, is off" in text
    assert "/etc/site.conf: 'x'" in text


def test_a_machine_without_a_mount_or_a_server_is_not_sound() -> None:
    assert judge.is_sound(TRUTH, TRUTH)
    assert not judge.is_sound(truth_with("mounts", "/srv/other", "access", value="ro"), TRUTH)
    assert not judge.is_sound(truth_with("engines", "postgresql", value={}), TRUTH)


def test_restoring_brings_back_what_changed_and_removes_what_is_new(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "etc"
    (root / "d").mkdir(parents=True)
    (root / "a").write_text("a")
    (root / "d/b").write_text("b")
    (root / "link").symlink_to("a")
    monkeypatch.setattr(guest, "HOME", tmp_path / "home")
    monkeypatch.setattr(guest, "ROOTS", (str(root),))
    guest.snapshot()
    assert guest.restore() == []
    guest.plant(
        [
            {
                "files": {f"{root}/a": "other", f"{root}/new/deep/c": "c"},
                "programs": {f"{root}/run": "#!/bin/sh"},
                "links": {f"{root}/d/b": "/dev/null"},
                "run": f"rm {root}/link",
            }
        ]
    )
    assert (root / "run").stat().st_mode & 0o111
    assert (root / "d/b").is_symlink()
    changed = guest.restore()
    assert {str(root / name) for name in ("a", "d/b", "link", "new", "new/deep/c", "run")} <= set(changed)
    assert sorted(str(path.relative_to(root)) for path in root.rglob("*")) == ["a", "d", "d/b", "link"]
    assert ((root / "a").read_text(), (root / "d/b").read_text()) == ("a", "b")
    assert (root / "link").is_symlink()
    assert guest.restore() == []
    with pytest.raises(RuntimeError, match="exits with 3"):
        guest.plant([{"files": {}, "programs": {}, "links": {}, "run": "exit 3"}])
