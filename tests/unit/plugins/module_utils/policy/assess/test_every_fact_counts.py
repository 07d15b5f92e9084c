# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that is well is not called so any more when any one of its facts is lost or makes no sense.

Over all captured hosts, settled as a run would leave them. Facts that do not bear on safety are listed, each
with its reason.
"""

from __future__ import annotations

import copy
import fnmatch
import functools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.host.our_paths import LEASE
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect.inputs import Inputs
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.rows import FAIL_ON, VERDICTS
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect as storage_of
from ansible_collections.durable.dbhost.plugins.module_utils.ups.collect import collect as power_of

from ...engines.faircom.test_observe import ALL_ON
from ...engines.firebird.test_databases import machine
from ...fakes.captured import COLLECTION
from ...fakes.fake_firebird import FakeDatabase
from ...fakes.fake_mariadb import MARIADB, MYSQL, MariaHost
from ...fakes.fake_postgresql import FakePostgresql
from ...fakes.fake_proc import (
    DIRECT,
    DSYNC,
    RDWR,
    SYNC,
    FakeProcess,
)
from ...fakes.power_host import nut_28
from ...fakes.runs import (
    NOW,
    attested,
    enforce,
    inputs,
    settled,
)
from ...fakes.told_power import WORDS, leased
from ...fakes.vendor_host import (
    faircom,
    sqlservr,
    with_faircom,
    with_mssql,
)
from ...test_captures import CAPTURES, facts_of
from .test_engines_mssql import machine as machine_with_fua
from .test_engines_mssql import server as sql_server
from .test_engines_mssql import words as fua_words

pytestmark = pytest.mark.every_python_alike

GREEN = ("durable", "attested")
IS_WHOLE = os.environ.get("DBHOST_TESTS_WHOLE") == "1"
PROMISES = ("strict", "flush", "protected")
ABSENT = object()
#: Other states of a captured layout are the same host once it is settled.
LAYOUTS = [
    path
    for path in CAPTURES
    # Layouts of families have the kinds of facts that the others have; Ubuntu's has a fault of /boot/efi, which holds no data.
    if (COLLECTION / f"lab/layouts/{path.stem}.yml").exists() and not path.stem.startswith("family-")
]
#: What stands in for a fact. None is how JSON says that there is no value.
INSTEAD: tuple[Any, ...] = ("unknown", ABSENT, None, [], "garbage", 17, {})
#: Facts that may be any of the words of their shape and leave a host as safe as it is. Patterns of paths, and why.
NO_BEARING = {
    "*.evidence.*": "for people; where a change goes, never whether a value is safe",
    "boot_id": "compared with that of engines and power, and these are not here",
    "virtualization": "only a UPS rests on it; what it says of disks is in their kind",
    "platform": "where a remedy says to look",
    "root_image": "which commands a remedy names",
    "tuned.*": "scheduler and readahead, performance",
    "other_mounts.*": "names the kind of a file system that holds no managed mount, for a message",
    "disks.*.id": "null: no name that stays; what was persisted by it is judged as write_cache.persisted",
    "disks.*.model": "for people",
    "disks.*.serial": "for people",
    "disks.*.place": "for people",
    "disks.*.transport": "for people; what follows from it is in kind and control",
    "disks.*.rotational": "chooses the scheduler, performance",
    "disks.*.scheduler.*": "performance",
    "disks.*.readahead.*": "performance",
    "disks.*.fua": "only what an engine writes by FUA rests on it, and no engine is here",
    "disks.*.fua_efficient": "not read by the policy",
    "disks.*.flush_blocked_by.*": "whether a cache may be turned on now; the layers themselves are judged in stack",
    "disks.*.write_cache.volatile": "only protected rests on it, and these are attested",
    "mounts.*.source": "for people",
    "mounts.*.options_*": "what they mean is judged as barrier, data_mode and persisted",
    "mounts.*.external_log": "for people; its disk is in disks and stack",
    "mounts.*.fua_path": "only what an engine writes by FUA rests on it, and no engine is here",
    "disks.*.sector.*": "a note about engines that write pages, and no engine is here",
    "mounts.*.dir_index": "a note",
    "mounts.*.sync": "only an own profile's sync rests on it",
    "mounts.*.atime": "performance",
    "mounts.*.persisted.atime": "performance",
    "mounts.*.readahead*": "performance",
    "mounts.*.carrier*": "where readahead is set, performance",
    "mounts.*.views*": "what other processes see of it: atime, performance",
    "mounts.*.boots*": "which servers have to wait for it, and whether a mount that is not managed stops the boot",
    "mounts.*.device": "what engines' files are placed by, and no engine is here",
    "mounts.*.stack.*.detail": "for people; the levels with a write hole are in write_hole",
    "mounts.*.stack.*.label": "for people",
    "mounts.*.stack.*.id": "what somebody vouches for goes by it, where a layer is not understood: then it was not well",
    "mounts.*.stack.*.state": "ppl counts, and what a layer loses by itself: then the host was not well",
}
#: Kinds of disks whose cache is another machine's.
ELSEWHERE = ("san", "network")
#: Facts that one stand-in alone leaves well: (pattern of the path, stand-in) -> why.
HARMLESS = {
    ("disks.*.kind", "unknown"): "a word about its whole host does not do any more; one about itself does",
    ("disks.*.write_cache.device", "unknown"): "attested: what somebody vouches for need not be seen",
    ("mounts.*.data_mode", "unknown"): "XFS and btrfs have none; of ext4 it counts",
    ("mounts.*.persisted.data_mode", "unknown"): "XFS and btrfs have none; of ext4 it counts",
    ("mounts.*.stack.*.name", "garbage"): "the topmost layer's, for people; all others are tied by below",
    ("mounts.*.targets.*", ABSENT): "one of several places of a file system whose settings are the same",
    (
        "mounts.*.stack.*.below.*",
        ABSENT,
    ): "counts below a layer that drops flushes: then it was not well",
}


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every leaf, and of every list."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        yield path
        for index in _distinct(value):
            yield from leaves(value[index], (*path, index))
    else:
        yield path


def _distinct(items: list[Any]) -> Iterable[int]:
    """Return the indexes of the items that differ in more than their names and numbers.

    All of them with DBHOST_TESTS_WHOLE=1.
    """
    if IS_WHOLE:
        return range(len(items))
    first: dict[str, int] = {}
    for index, item in enumerate(items):
        text = re.sub(r'"[^"]*[\d/][^"]*"|\d+', "0", json.dumps(item, sort_keys=True))
        first.setdefault(text, index)
    return first.values()


def settle(storage: dict[str, Any], given: Inputs) -> None:
    """Set the facts to what a run and a reboot would leave."""
    by_target: dict[str, dict[str, Any]] = {}
    for disk in storage["disks"]:
        by_target[disk["id"] or disk["name"]] = disk
    by_target.update({mount["target"]: mount for mount in storage["mounts"]})
    for row in assess(given, storage, storage["time"])["settings"]:
        found, setting, wanted = by_target.get(row["target"]), row["setting"], row["wanted_running"]
        if row["verdict"] == "ok" or found is None or row["layer"] == "io_scheduler":
            continue
        if setting == "write_cache":
            found["write_cache"].update(device=wanted, persisted=wanted)
        elif setting == "kernel_cache_mode":
            found["write_cache"]["kernel"] = wanted
        elif "unset" not in found["persisted"].values():
            found[setting] = found["persisted"][setting] = wanted


@functools.cache
def green_host(capture: Any, profile: str) -> tuple[Inputs, dict[str, Any]]:
    """Return what its inventory says of a host and the host, settled, with each mount that comes to a profile."""
    storage = facts_of(capture)
    words = [("host_honours_flush", "host")]
    words += [("power_loss_protection", disk["id"]) for disk in storage["disks"] if profile == "protected"]
    expires = "2026-12-31"
    entries = [
        {"claim": claim, "target": target, "by": "A. Person", "reason": "asked", "expires": expires}
        for claim, target in words
    ]
    given = inputs(profile, mounts=[], attestations=entries)
    chosen = []
    for mount in storage["mounts"]:
        alone = given._replace(mounts=[mount["target"]])
        trial = copy.deepcopy(storage)
        settle(trial, alone)
        if assess(alone, trial, trial["time"])["verdict"] in GREEN:
            chosen.append(mount["target"])
    given = given._replace(mounts=chosen)
    settle(storage, given)
    # What lies beside them is judged nowhere.
    storage["mounts"] = [mount for mount in storage["mounts"] if mount["target"] in chosen]
    below = {name for mount in storage["mounts"] for name in mount["disks"]}
    storage["disks"] = [disk for disk in storage["disks"] if disk["name"] in below]
    assert chosen, "no mount of this host can be brought to this profile"
    return given, storage


def is_harmless(
    path: tuple[Any, ...], instead: Any, verdict: str, storage: dict[str, Any], own: bool
) -> bool:
    """Tell whether a stand-in is listed; `own`: each disk is attested itself."""
    if path[-1] == "kind" and not own:
        return verdict == "unverified"
    if (path[-1], instead) == ("cache_mode", "unknown"):
        return own  # What somebody says outlives a power cut needs no flush.
    if path[-1] == "data_mode" and storage["mounts"][path[1]]["fstype"].startswith("ext"):
        return False
    if path[2:] in (("write_cache", "persisted"), ("write_cache", "kernel")) and is_elsewhere(path, storage):
        # This host sets nothing there: who vouches for it vouches for what it is set to.
        return instead == "unknown" and (own or path[-1] == "persisted")
    text = ".".join(map(str, path))
    return any(instead == value and fnmatch.fnmatchcase(text, pattern) for pattern, value in HARMLESS)


def is_elsewhere(path: tuple[Any, ...], storage: dict[str, Any]) -> bool:
    """Tell whether a path of facts is of a disk whose cache is another machine's."""
    return path[0] == "disks" and storage["disks"][path[1]]["kind"] in ELSEWHERE


def has_no_bearing(path: tuple[Any, ...]) -> bool:
    """Tell whether a fact is listed."""
    text = ".".join(map(str, path))
    return any(fnmatch.fnmatchcase(text, pattern) for pattern in NO_BEARING)


@pytest.mark.parametrize("profile", PROMISES)
@pytest.mark.parametrize("capture", LAYOUTS, ids=lambda path: path.stem)
def test_a_lost_fact_is_never_green(capture: Any, profile: str) -> None:
    given, storage = green_host(capture, profile)
    assert assess(given, storage, storage["time"])["verdict"] in GREEN
    own = profile == "protected"

    def is_well(path: tuple[Any, ...], instead: Any, verdict: str) -> bool:
        return has_no_bearing(path) or is_harmless(path, instead, verdict, storage, own)

    # What bears on no profile needs a verdict, whichever it is: one profile is enough to ask.
    paths = (path for path in leaves(storage) if profile == PROMISES[0] or not has_no_bearing(path))
    wrong = survivors(
        storage,
        paths,
        lambda now=storage["time"]: str(assess(given, storage, now)["verdict"]),
        lambda path: INSTEAD if not has_no_bearing(path) else (ABSENT, 17),
        is_well,
    )
    assert not wrong, "\n".join(wrong)


def test_a_kernel_cache_mode_is_told_of_every_layer_that_has_one_and_of_no_other() -> None:
    (stacked,) = (path for path in LAYOUTS if path.stem == "stacked")
    given, storage = green_host(stacked, "strict")
    has_none = ("disk", "partition")
    layers = [layer for mount in storage["mounts"] for layer in mount["stack"]]
    assert {"lvm", "md", *has_none} <= {layer["type"] for layer in layers}
    for layer in layers:
        before = layer["cache_mode"]
        layer["cache_mode"] = "write back" if layer["type"] in has_none else ""
        found = assess(given, storage, storage["time"])
        layer["cache_mode"] = before
        assert found["verdict"] in FAIL_ON, layer["name"]
        assert f"the kernel cache mode of {layer['name']} is" in "\n".join(found["why"])


def survivors(
    facts: dict[str, Any],
    paths: Iterable[tuple[Any, ...]],
    judge: Callable[[], str],
    stand_ins: Callable[[tuple[Any, ...]], tuple[Any, ...]],
    is_well: Callable[[tuple[Any, ...], Any, str], bool],
) -> list[str]:
    """Return the facts that were replaced without failing their host, each with what stood in for it."""
    found = []
    for path in list(paths):
        part: Any = facts
        for key in path[:-1]:
            part = part[key]
        before = part[path[-1]]
        for instead in stand_ins(path):
            if instead == before:
                continue
            put(part, path[-1], instead)
            try:
                verdict = judge()
            except Exception as error:
                verdict = f"{type(error).__name__}: {error}"
            finally:
                restore(part, path[-1], instead, before)
            # No exemption is one from giving a verdict at all.
            if verdict not in FAIL_ON and not (verdict in VERDICTS and is_well(path, instead, verdict)):
                word = "absent" if instead is ABSENT else repr(instead)
                found.append(f"{'.'.join(map(str, path))}: {word}: {verdict}")
    return found


def put(part: Any, key: Any, instead: Any) -> None:
    if instead is ABSENT:
        del part[key]
    else:
        part[key] = instead


def restore(part: Any, key: Any, instead: Any, before: Any) -> None:
    if instead is ABSENT and isinstance(part, list):
        part.insert(key, before)
    else:
        part[key] = before


PG, SQL = "/srv/pgdata", "/srv/mssql"
#: A file on the device of PG, as an engine has one open.
DATA = {"directory": PG, "device": "8:1", "opened": "buffered", "count": 1, "example": f"{PG}/base/1"}
#: As above, of durable_engines.
ENGINES_NO_BEARING = {
    "paths*": "for storage_facts, which looks where they lie",
    "stop_timeouts*": "for power_facts, which adds them up",
    "*.pids*": "for people",
    "*.requires_mounts*": "for servers on mounts that the boot goes on without",
    "*.root": "for roles, which write there",
    "*.stop_timeout": "for power_facts",
    "*.evidence.stop_timeout*": "for power_facts",
    "*.evidence.delayed_durability*": "never known: a note that it was not asked",
    "*.evidence.recovery*": "for the rehearsed shutdown",
    "*.files.*.example": "for people",
    "*.settings.*.from": "for people",
    "*.settings.*.by": "for people",
    "*.settings.*.held": "for the remedy of one that is not right",
    "*.settings.*.permission": "whether a run mends one that is not right",
}
#: Facts that are right as they are, and may be any other text.
ENGINES_TEXT = {
    "*.source": "for people",
    "*.reason": "for people",
    "*.name": "for people, and to call it by",
    "*.config": "for people",
    "*.unit": "to restart it by",
    "*.settings.COMMIT_DELAY.*": "performance",
    "*.settings.*Unflushed*": "only what a database without forced writes may lose rests on it",
    "*.settings.*FileSystemCache*": "not read by the policy",
    "*.settings.ServerMode.*": "for the remedy of a database without forced writes",
    "*.settings.traceflag3982.*": "asks for the forced flush, which is set anyway",
    "*.settings.log_bin.*": "only with it does sync_binlog count, which is 1 or has log_bin OFF beside it",
    "*.settings.sync_binlog.*": "log_bin is OFF",
    "*.evidence.write_through.value": "counts where nothing is flushed beside, as FairCom's with LOG_WRITETHRU",
    "*.databases.*.path": "for people: where files lie is reported by directories and open files",
    "*.databases.*.owner": "for the remedy of a database without forced writes",
    "*.databases.*.in_use": "whether it may be changed now, and it is right",
    "*.databases.*.mode": "read_only alone counts, and only without forced writes",
}
#: (pattern, stand-in) -> why.
ENGINES_HARMLESS = {
    ("engines", "[]"): "what a host without an engine tells; one that the inventory names is missed",
    ("engines.0", "absent"): "as above",
    ("*.evidence.debug_no_sync.cause", "absent"): "for people: its value counts",
    ("*.managed_by", "unknown"): "as evidence has it too, it would only not be restarted",
    ("*.directories", "[]"): "all of its open files are known",
    ("*.directories.0", "absent"): "all of its open files are known",
    ("*.writes", "[]"): "for people: nothing is to be written",
    ("*.writes.0", "absent"): "for people: nothing is to be written",
    ("*.files", "[]"): "its directories are known",
    ("*.files.0", "absent"): "its directories are known",
    ("*.files.0.opened", "unknown"): "what rests on it is reported as write_through",
    ("*.files.0.count", "17"): "for people",
    ("*.config", "None"): "for people",
    ("*.unit", "None"): "to restart it by",
    ("*.owner", "None"): "for the remedy of a database without forced writes",
    ("*.source", "None"): "of a setting: for people",
    ("*.reason", "None"): "for people",
    ("*.evidence.version", "absent"): "the version itself is there",
    ("*.evidence.managed_by", "absent"): "managed_by itself is there",
    ("*.evidence.write_through", "absent"): "as write_through above",
    ("*.settings", "{}"): "Firebird's, as below",
    ("*.settings.COMMIT_DELAY", "absent"): "performance",
    ("*.settings.*Unflushed*", "absent"): "as above",
    ("*.settings.*FileSystemCache*", "absent"): "as above",
    ("*.settings.ServerMode", "absent"): "as above",
    ("*.settings.traceflag3982", "absent"): "as above",
    ("*.settings.log_bin", "absent"): "as above",
    ("*.settings.sync_binlog", "absent"): "as above",
}
#: Of these single engines only.
ENGINES_ONLY = {
    "*.evidence.write_through": "mssql",
    "*.evidence.write_through.value": "mssql",
    "*.settings": "firebird",
    "*.settings.log_bin": "mysql",
    "*.settings.log_bin.running": "mysql",
    "*.settings.log_bin.persisted": "mysql",
    "*.settings.sync_binlog": "mariadb",
    "*.settings.sync_binlog.running": "mariadb",
    "*.settings.sync_binlog.persisted": "mariadb",
}
#: As above, of durable_power.
POWER_NO_BEARING = {
    "kernel": "not read by the policy",
    "unit": "not read by the policy",
    "timing.*": "for people: what they add up to is in budget",
    "evidence*": "for people: what follows from it is in conditions",
    "upses.*": "for people: what follows from it is in conditions",
    "guard.lease.issued": "the guard's own",
    "settings.*": "compared where durable_ups asks for it; what all hosts need is in conditions",
}
POWER_TEXT = {
    "mode": "for people: what follows from it is in conditions",
    "*.reason": "for people",
    "*.source": "for people",
    "*.since": "for people",
    "conditions.*.evidence": "for people",
    "conditions.*.why": "for people",
    "conditions.*.fixes.*": "for people",
    "conditions.*.target": "for people",
    "budget.*.terms.*.name": "for people, except those that durable_ups sets",
}
POWER_HARMLESS = {
    ("timing", "{}"): "for people: what they add up to is in budget",
    ("upses", "[]"): "for people: what follows from it is in conditions",
    ("guard.mounts", "[]"): "for people: whether barriers are on is reported of the mounts",
    ("guard.mounts.0", "absent"): "as above",
    ("guard.mounts.0.barrier", "unknown"): "as above",
    ("budget.clean_stop.terms.[24]", "absent"): "of 0 s, which add nothing",
    ("guard.quiet", "17"): "for people",
    ("guard.since", "None"): "for people",
    ("*.reason", "None"): "for people",
}


def fits(text: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(text, pattern) for pattern in patterns)


def nodes(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every fact, of those that hold others too."""
    if path:
        yield path
    for key, item in (
        value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
    ):
        yield from nodes(item, (*path, key))


def with_firebird() -> Any:
    files = (("/data/a.fdb", RDWR | DSYNC, 31),)
    host = machine(FakeProcess(50, "/opt/firebird/bin/firebird", files=files), a=FakeDatabase())
    host.locks.append((50, "/data/a.fdb"))
    return host


def with_sql_server() -> Any:
    host = with_mssql()
    host.start(replace(sqlservr(), files=(("/data/master.mdf", RDWR | DIRECT | DSYNC, 31),)))
    return host


def with_synchronous_logs() -> Any:
    host = with_faircom(ALL_ON, synchronous=True)
    host.start(replace(faircom(), files=(("/data/L0000001.FCS", RDWR | SYNC, 31),)))
    return host


ENGINES: dict[str, Callable[[], Any]] = {
    "postgresql": FakePostgresql,
    "mariadb": lambda: MariaHost(MARIADB),
    "mysql": lambda: MariaHost(MYSQL),
    "firebird": with_firebird,
    "mssql": with_sql_server,
    "faircom": with_synchronous_logs,
}


def green_engines(kind: str) -> dict[str, Any]:
    """Return the facts of an engine whose files lie on PG."""
    found = collect(ENGINES[kind](), NOW)
    for instance in found["engines"]:
        instance["directories"] = [PG]
        instance["files"] = [{**DATA, "opened": row["opened"]} for row in instance["files"]] or [dict(DATA)]
    return found


@pytest.mark.parametrize("kind", ENGINES)
def test_a_lost_fact_of_an_engine_is_never_green(kind: str) -> None:
    storage = storage_of(settled("strict", mounts=[PG]), NOW)
    engines = {**green_engines(kind), "boot_id": storage["boot_id"]}
    given = inputs("strict", mounts=[PG])

    def judge() -> str:
        return str(assess(given, storage, NOW, engines)["verdict"])

    assert judge() in GREEN
    others = [pattern for pattern, only in ENGINES_ONLY.items() if only != kind]

    def is_well(path: tuple[Any, ...], instead: Any, _verdict: str) -> bool:
        text = ".".join(map(str, path))
        if fits(text, others):
            return False
        return is_listed(text, instead, ENGINES_NO_BEARING, ENGINES_TEXT, ENGINES_HARMLESS)

    wrong = survivors(engines, nodes(engines), judge, lambda _path: INSTEAD, is_well)
    assert not wrong, "\n".join(wrong)


#: Of the storage facts, which SQL Server's way by FUA rests on beside what each host's green does.
FUA_FACTS = ("disks.*.fua", "mounts.*.fua_path")


def by_fua() -> tuple[Inputs, dict[str, Any], dict[str, Any]]:
    """Return what its inventory says of a host, its storage, and SQL Server on it that writes by FUA."""
    words = [attested("host_honours_flush"), {**attested("host_honours_fua"), "target": "host"}]
    given = inputs("flush", mounts=[SQL], attestations=words)
    host = machine_with_fua(fua=True)
    enforce(host, assess(given, storage_of(host, NOW), NOW))
    host.reboot()
    storage = storage_of(host, NOW)
    found = sql_server(fua_words("on", "off", "1", "0"))
    engines = {
        "time": NOW,
        "boot_id": storage["boot_id"],
        "engines": [found],
        "unattributed": [],
        "writers": [],
    }
    return given, storage, engines


def beside_an_engine(kind: str) -> tuple[Inputs, dict[str, Any], dict[str, Any]]:
    """Return the same of an engine whose files lie on PG."""
    storage = storage_of(settled("strict", mounts=[PG]), NOW)
    return inputs("strict", mounts=[PG]), storage, {**green_engines(kind), "boot_id": storage["boot_id"]}


#: One whose rules read the disks below it, and one whose rules do not.
@pytest.mark.parametrize("kind", ["mssql by FUA", "postgresql"])
def test_a_lost_fact_of_the_disks_below_an_engine_is_never_green(kind: str) -> None:
    given, storage, engines = by_fua() if kind == "mssql by FUA" else beside_an_engine(kind)
    managed = given.mounts[0]

    def judge() -> str:
        return str(assess(given, storage, NOW, engines)["verdict"])

    assert judge() in GREEN
    ours = {
        f"{part}.{number}."
        for part, key, names in (("mounts", "target", [managed]), ("disks", "name", _below(storage, managed)))
        for number, row in enumerate(storage[part])
        if row[key] in names
    }

    def is_well(path: tuple[Any, ...], instead: Any, verdict: str) -> bool:
        text = ".".join(map(str, path))
        if kind == "mssql by FUA" and fits(text, FUA_FACTS):
            return not text.startswith(tuple(ours))
        beside = path[0] in ("disks", "mounts") and len(path) > 1 and not text.startswith(tuple(ours))
        return beside or has_no_bearing(path) or is_harmless(path, instead, verdict, storage, False)

    wrong = survivors(storage, leaves(storage), judge, lambda _path: INSTEAD, is_well)
    assert not wrong, "\n".join(wrong)


def _below(storage: dict[str, Any], target: str) -> list[str]:
    return [str(name) for mount in storage["mounts"] if mount["target"] == target for name in mount["disks"]]


def is_listed(
    text: str,
    instead: Any,
    no_bearing: Iterable[str],
    texts: Iterable[str],
    harmless: Iterable[tuple[str, str]],
) -> bool:
    """Tell whether a stand-in is listed; what may be any text may be no other thing."""
    word = "absent" if instead is ABSENT else str(instead)
    single = [pattern for pattern, stand_in in harmless if stand_in == word]
    return fits(text, no_bearing) or fits(text, single) or (isinstance(instead, str) and fits(text, texts))


def test_a_lost_fact_of_a_ups_is_never_green() -> None:
    host = settled("ups", mounts=[PG])
    host.mounts[PG].barrier = "off"
    host.files[LEASE] = "{}"
    storage = storage_of(host, NOW)
    given = inputs("ups", mounts=[PG], attestations=list(WORDS))
    power = {**power_of(nut_28(), NOW, []), "boot_id": storage["boot_id"]}
    power["guard"] = leased()
    power["guard"]["lease"]["needed"] = {name: each["needed"] for name, each in power["budget"].items()}

    def judge() -> str:
        return str(assess(given, storage, NOW, None, power)["verdict"])

    def is_well(path: tuple[Any, ...], instead: Any, _verdict: str) -> bool:
        return is_listed(".".join(map(str, path)), instead, POWER_NO_BEARING, POWER_TEXT, POWER_HARMLESS)

    assert judge() in GREEN
    wrong = survivors(power, nodes(power), judge, lambda _path: INSTEAD, is_well)
    assert not wrong, "\n".join(wrong)
