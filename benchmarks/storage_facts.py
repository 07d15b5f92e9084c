# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cost of the storage facts on a host with hundreds of disks, and with disks that hang.

    python3 -m benchmarks.storage_facts [--record]

On one machine of the lab: the facts of scsi_debug's disks and of many mounts, beside what the bare
tools take there for the same questions; then the same with devices that do not answer. Exit code 1
when facts are missing; no time makes it fail.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import keeping, lines
from benchmarks.rig import Rig
from lab.progress import say

#: What the reason of a value says that was not read because a device hung.
SILENT = "no answer within"


def unknown(facts: dict[str, Any]) -> dict[str, str]:
    """Return {what: reason} of all that these facts do not know."""
    found = {}
    for kind, name in (("disks", "name"), ("mounts", "target")):
        for row in facts[kind]:
            for field, seen in row["evidence"].items():
                if seen["value"] in ("unknown", None):
                    found[f"{row[name]}: {field}"] = (
                        f"{seen['reason'] or seen.get('cause')} {seen.get('parameters', '')}".strip()
                    )
    return found


def missing_disks(answer: dict[str, Any], wanted: int, usual: set[str]) -> list[str]:
    """Return what is not complete: rows, the device's own word, and what is known of a single disk."""
    rows = {row["name"]: row for row in answer["facts"]["disks"]}
    found = [f"{wanted} disks wanted, {len(answer['luns'])} there"] if len(answer["luns"]) != wanted else []
    for name in answer["luns"]:
        if name not in rows:
            found.append(f"{name}: no row")
        elif rows[name]["write_cache"]["device"] not in ("enabled", "disabled"):
            found.append(f"{name}: write_cache.device")
    names = {f"{name}: {field}" for name in answer["luns"] for field in usual}
    return found + sorted(
        what
        for what in unknown(answer["facts"])
        if what.partition(":")[0] in answer["luns"] and what not in names
    )


def missing_mounts(answer: dict[str, Any], wanted: int) -> list[str]:
    """Return what is not complete of the mounts."""
    rows = {row["target"] for row in answer["facts"]["mounts"]}
    absent = [f"/srv/bench{number}" for number in range(wanted) if f"/srv/bench{number}" not in rows]
    return absent + [what for what in unknown(answer["facts"]) if what.startswith("/srv/bench")]


def many_disks(rig: Rig, sizes: Sequence[int], runs: int) -> Iterator[dict[str, Any]]:
    """Yield what each number of disks costs."""
    with rig.luns(1):
        answer = rig.facts()
        (name,) = answer["luns"]
        usual = {what.partition(": ")[2] for what in unknown(answer["facts"]) if what.startswith(f"{name}:")}
    say(f"unknown of a single disk: {', '.join(sorted(usual)) or 'nothing'}")
    for size in sizes:
        with rig.luns(size):
            row: dict[str, Any] = {"count": size, "runs": [], "missing": []}
            for _run in range(runs):
                bare, answer = rig.guest("bare"), rig.facts()
                row["runs"].append({"facts": answer["cost"], "process": answer["process"], **bare})
                row["missing"] = sorted({*row["missing"], *missing_disks(answer, size, usual)})
            if size == max(sizes):
                row["profile"] = rig.guest("profile")
        _say(row)
        yield row


def many_mounts(rig: Rig, sizes: Sequence[int], runs: int) -> Iterator[dict[str, Any]]:
    """Yield what each number of mounts costs, the number of disks being the same."""
    for size in sizes:
        with rig.mounts(size, ["/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_VOLUMES"]) as numbers:
            row: dict[str, Any] = {"count": size, "runs": [], "missing": []}
            for _run in range(runs):
                bare, answer = rig.guest("bare-mounts", *numbers), rig.facts()
                row["runs"].append({"facts": answer["cost"], "process": answer["process"], **bare})
                row["missing"] = sorted({*row["missing"], *missing_mounts(answer, size)})
        _say(row)
        yield row


def _say(row: dict[str, Any]) -> None:
    facts = ", ".join(f"{run['facts']['wall']:.1f}" for run in row["runs"])
    say(f"{row['count']}: facts {facts} s; missing: {len(row['missing'])}")


def hung(what: str, well: dict[str, Any], ill: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Compare two answers; only what belongs to `names` may be lost, and only by the time limit."""
    row = {"what": what, "well": well["cost"]["wall"], "ended": ill["process"] is not None, "lost": {}}
    if not row["ended"]:
        return {**row, "stopped_in": ill["stopped_in"], "wrong": ["nothing was read"]}
    before, after = unknown(well["facts"]), unknown(ill["facts"])
    lost = {name: reason for name, reason in after.items() if name not in before}
    lost.update({f"{path}: resolved": why for path, why in ill["facts"]["unresolved"].items()})
    strange = [name for name in lost if not name.startswith(tuple(f"{known}" for known in names))]
    untold = [
        name for name, why in lost.items() if SILENT not in why and name.rpartition(" ")[2] != "fua_path"
    ]
    rows = {kind: [len(answer["facts"][kind]) for answer in (well, ill)] for kind in ("disks", "mounts")}
    short = [f"{two - one} {kind}" for kind, (one, two) in rows.items() if one != two]
    spared = [f"{name} answered" for name in names if not any(known.startswith(name) for known in lost)]
    row.update({"wall": ill["cost"]["wall"], "process": ill["process"], "lost": lost})
    return {**row, "wrong": [*strange, *untold, *short, *spared]}


def hung_mounts(rig: Rig, runs: int) -> Iterator[dict[str, Any]]:
    """Yield what file systems cost whose device is suspended."""
    with rig.luns(4, 64):
        names = [f"/dev/{name}" for name in rig.guest("luns")]
        with rig.mounts(4, names):
            well = min(
                (rig.facts() for _run in range(runs)), key=lambda answer: float(answer["cost"]["wall"])
            )
            for count in (1, 3):
                targets = [f"/srv/bench{number}" for number in range(count)]
                rig.forget()
                with rig.suspended(count):
                    yield hung(f"{count} suspended below a mount", well, rig.facts(), targets)
            rig.forget()
            path = "/srv/bench0/data"
            with rig.suspended(1):
                yield hung("1 so, with a database path on it", well, rig.facts(path), ["/srv/bench0"])
            rig.forget()
            started, code, _said = rig.ansible()
            with rig.suspended(1):
                seconds, ill_code, said = rig.ansible()
            wrong = [] if (code, ill_code) == (0, 0) and SILENT in said else [said[-200:]]
            yield {
                "what": "1 so, through Ansible",
                "well": started,
                "wall": seconds,
                "ended": True,
                "lost": {"/srv/bench0": SILENT},
                "wrong": wrong,
            }


def hung_disks(rig: Rig, runs: int, counts: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield what disks cost that answer no command; up to 4, a file system is mounted on each."""
    for count in counts:
        with rig.luns(count, 64):
            disks = rig.guest("luns")
            mounted = count if count <= 4 else 0
            with rig.mounts(mounted, [f"/dev/{name}" for name in disks]):
                well = min((rig.facts() for _run in range(runs)), key=lambda one: float(one["cost"]["wall"]))
                rig.forget()
                paths = ["/srv/bench0/data"] if mounted else []
                names = [f"{name}:" for name in disks] + [f"/srv/bench{n}" for n in range(mounted)]
                with rig.deaf():
                    what = f"{count} disk{'s' * (count > 1)}"
                    what += ", mounted, a database path on one" if mounted else ", not mounted"
                    yield hung(what, well, rig.facts(*paths), names)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return all results."""
    with Rig("bench", arguments.release) as rig:
        result: dict[str, Any] = {
            "taken": time.strftime("%Y-%m-%d", time.gmtime()),
            "accelerator": rig.machine.record().hardware.accel,
            "processors": int(rig.shell("nproc")),
            "versions": rig.guest("versions"),
            "limit": rig.guest("limit"),
            "load": [],
        }
        result["load"].append(_load())
        result["disks"] = list(many_disks(rig, arguments.disks, arguments.runs))
        result["load"].append(_load())
        result["mounts"] = list(many_mounts(rig, arguments.mounts, arguments.runs))
        result["load"].append(_load())
        result["hung"] = [*hung_mounts(rig, arguments.runs), *hung_disks(rig, arguments.runs, arguments.hung)]
        result["load"].append(_load())
    return result


def _load() -> float:
    """Return how many processes wanted this computer's processors in the last 5 minutes."""
    return float(Path("/proc/loadavg").read_text().split()[1])


def tables(result: dict[str, Any]) -> dict[str, str]:
    """Return the tables by name."""
    said = result["versions"]
    emulated = "emulated (QEMU TCG)" if result["accelerator"] == "tcg" else result["accelerator"]
    where = (
        f"{result['taken']}; {result['processors']} processors, {emulated}; kernel {said['kernel']},"
        f" Python {said['python']}, sdparm {said['sdparm']}, {said['e2fsprogs']}, udev {said['udev']};"
        f" load of the computer below, at the start and after each part:"
        f" {', '.join(f'{load:.1f}' for load in result['load'])}."
    )
    largest = max(result["disks"], key=lambda row: int(row["count"]))
    return {
        "where": where,
        "disks": lines.sizes_table("disks", result["disks"]),
        "disk_lines": lines.lines_table("disks", result["disks"]),
        "profile": lines.profile_table(largest["profile"]),
        "mounts": lines.sizes_table("mounts", result["mounts"]),
        "mount_lines": lines.lines_table("mounts", result["mounts"]),
        "hung": lines.hung_table(result["hung"]),
    }


def numbers(text: str) -> list[int]:
    """Return numbers given with commas between."""
    return sorted(int(number) for number in text.split(","))


def main() -> int:
    """Measure, show, keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--disks", type=numbers, default="0,16,64,128,256", help="default: %(default)s")
    parser.add_argument("--mounts", type=numbers, default="1,8,16,32,64", help="default: %(default)s")
    parser.add_argument("--hung", type=numbers, default="1,3,16", help="default: %(default)s")
    parser.add_argument("--runs", type=int, default=3, help="of each; the fastest counts")
    keeping.add_options(parser)
    result = keeping.run("storage_facts", parser.parse_args(), measure, tables)
    if result is None:
        return 1
    wrong = [row["missing"] for row in (*result["disks"], *result["mounts"])]
    wrong += [row["wrong"] for row in result["hung"]]
    return 1 if any(wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
