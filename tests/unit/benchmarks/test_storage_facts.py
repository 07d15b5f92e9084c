# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the benchmark counts as complete, as linear, and as the fault of a device that hangs."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from benchmarks.keeping import DOCS, RESULTS
from benchmarks.lines import document, fit, table
from benchmarks.storage_facts import hung, missing_disks, missing_mounts, tables, unknown

USUAL = {"write_cache.volatile"}
SLOW = "dumpe2fs -h /dev/block/253:0: no answer within 10 s"


def seen(**values: Any) -> dict[str, Any]:
    return {
        name.replace("_in_", "."): {"value": value, "source": "x", "reason": SLOW}
        for name, value in values.items()
    }


def answer() -> dict[str, Any]:
    """Two LUNs and two mounts, complete."""
    disks = [
        {
            "name": name,
            "write_cache": {"device": "enabled"},
            "evidence": seen(write_cache_in_volatile="unknown", id="wwn:1"),
        }
        for name in ("sda", "sdb")
    ]
    mounts = [{"target": f"/srv/bench{n}", "evidence": seen(disks="sda")} for n in (0, 1)]
    facts = {"disks": disks, "mounts": mounts, "unresolved": {}}
    return {"luns": ["sda", "sdb"], "facts": facts, "cost": {"wall": 1.0}, "process": 2.0}


def test_complete_is_complete() -> None:
    assert missing_disks(answer(), 2, USUAL) == missing_mounts(answer(), 2) == []


@pytest.mark.parametrize("broken", ["row", "device", "id", "field", "lun"])
def test_what_is_missing_of_a_disk_is_named(broken: str) -> None:
    found = answer()
    row = found["facts"]["disks"][1]
    if broken == "row":
        found["facts"]["disks"].remove(row)
    elif broken == "device":
        row["write_cache"]["device"] = "unknown"
    elif broken == "id":
        row["evidence"]["id"]["value"] = None
    elif broken == "field":
        row["evidence"].update(seen(fua="unknown"))
    else:
        found["luns"].remove("sdb")
    assert len(missing_disks(found, 2, USUAL)) == 1


def test_what_is_missing_of_a_mount_is_named() -> None:
    found = answer()
    found["facts"]["mounts"][1]["evidence"]["disks"]["value"] = "unknown"
    assert missing_mounts(found, 3) == ["/srv/bench2", "/srv/bench1: disks"]
    assert unknown(found["facts"])["/srv/bench1: disks"] == SLOW


class TestHung:
    def ill(self, target: str = "/srv/bench0", reason: str = SLOW) -> dict[str, Any]:
        found = answer()
        row = next(row for row in found["facts"]["mounts"] if row["target"] == target)
        row["evidence"]["disks"] = {"value": "unknown", "source": "x", "reason": reason}
        return found

    def wrong(self, ill: dict[str, Any]) -> Any:
        return hung("one", answer(), ill, ["/srv/bench0"])["wrong"]

    def test_only_what_hangs_is_lost(self) -> None:
        assert self.wrong(self.ill()) == []

    def test_another_that_is_lost_is_wrong(self) -> None:
        ill = self.ill()
        ill["facts"]["mounts"][1] = self.ill("/srv/bench1")["facts"]["mounts"][1]
        assert self.wrong(ill) == ["/srv/bench1: disks"]

    def test_a_reason_without_the_limit_is_wrong(self) -> None:
        assert self.wrong(self.ill(reason="exit 1")) == ["/srv/bench0: disks"]

    def test_a_row_that_is_gone_is_wrong(self) -> None:
        ill = self.ill()
        del ill["facts"]["disks"][0]
        assert self.wrong(ill) == ["-1 disks"]

    def test_nothing_lost_means_that_nothing_hung(self) -> None:
        assert self.wrong(copy.deepcopy(answer())) == ["/srv/bench0 answered"]

    def test_a_process_that_does_not_end_is_wrong(self) -> None:
        found = hung("one", answer(), {"process": None, "stopped_in": "D"}, ["/srv/bench0"])
        assert (found["ended"], found["wrong"]) == (False, ["nothing was read"])


def test_a_line_is_told_from_a_parabola() -> None:
    sizes = (0, 16, 64, 128, 256)
    line = fit({size: 2 + 0.01 * size for size in sizes})
    assert (line.slope, line.intercept, line.r_squared) == pytest.approx((0.01, 2, 1))
    assert line.lower == pytest.approx(line.upper)
    parabola = fit({size: size**2 / 1000 for size in sizes})
    assert parabola.r_squared > 0.9
    assert parabola.upper > 2 * parabola.lower


def test_a_table_is_one_in_markdown_and_in_plain_text() -> None:
    assert table(["a", "long"], [["first", "1"], ["b", "22"]]).split("\n") == [
        "| a     | long |",
        "| ----- | ---: |",
        "| first |    1 |",
        "| b     |   22 |",
    ]


def test_the_page_shows_the_results_that_are_kept() -> None:
    page = "".join(path.read_text(encoding="utf-8") for path in DOCS)
    assert (
        document(page, tables(json.loads((RESULTS / "storage_facts.json").read_text(encoding="utf-8"))))
        == page
    )
