# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The evidence as files: JSON, a line for each cell; tables, plots. All of it is made anew from the JSON."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from proof import choice, price, price_page
from proof.boot_files import CONTROL
from proof.boot_files import problems as wrong_boots
from proof.cells import LOSES, NBD, SAFE, UNTRUSTED, WORKLOADS, by_setting, matrix
from proof.engines import ENGINES
from proof.plot import Bar, bars
from proof.tables import table

QEMU = "qemu"
CELLS = "cells.jsonl"
#: A file for each cell: how it was kept before.
_OLD = "cells"
PRICE = "price.json"
EARLY = "early.json"
BOOT_FILES = "boot-files.json"
TITLE = "<!-- written by `make prove`; edits are lost -->\n# Evidence\n"
COST_WORDS = """\
For each commit: by the kernel's counters, by its trace, and by the log of the disk. The kernel of User Mode Linux (`uml`)
cannot be traced: there the counters and the log stand alone. On QEMU's scsi-fua the log has more flushes than the counter, for
QEMU makes a write and a flush of each FUA write; elsewhere the two agree. On SATA with several clients the
trace has more: it names a request each time that it is issued, and a flush, which has no place in that disk's queue beside
other commands, is likely given back and issued again.
"""
CUTS_WORDS = """\
A cut counts if something was volatile. The bound is of the share of such cuts that lose commits, at 95 %.

Recovered and checked in full is each image that recovery can tell from the others: the content of files that were written in
full before the run is no part of that, is put into each cut's files afterwards, and is looked at in each cut. "Whole" are cuts
whose image was recovered with all of its content beside that; a cut where the two differ ends the cell.
"""
BOOT_WORDS = """\
harden-db and release, from a root on the volatile disk; the power is cut after each write and flush, and the root is recovered
as a boot does it. A file has to be whole, with a content that it had before the run or has had in it; once the run has returned,
with its last one. Nothing may be changed of which the original is not kept. `between`: cuts that left some files changed and
others not; `unfinished`: files not yet in their place, which nothing reads; `checked`: cuts whose whole file system was checked;
`refused`: cuts after which the file system wants an administrator, because a block of its own was there in part (docs/proof.md,
"Blocks in part"): of ext4 it is mended by `e2fsck -y`, and then looked at; of XFS nothing is. Only a disk that tears 4 KiB does
it; with any other cut it counts as wrong. Control: fstab {control}, as a plain program does it.
"""
NOT_MODELLED = (
    "Sectors that tear, writes that land elsewhere, and disks that lose what was durable are not in the model.",
)
PROTECTED = (
    "`protected` is shown over a cache that is volatile, so more than it promises; that a cache which is "
    "attested survives is the operator's word, and unproven here."
)
XFS = (
    "On XFS a call that writes the log may return before its flush, seldom (docs/proof.md): a cell has 1,600 acknowledgements, "
    "and most runs of it do not show it. An earlier run of `flush/virtio/xfs/osync` lost a commit in one of its 1,000 cuts: "
    "[its evidence](lost/flush-virtio-xfs-osync.json)."
)
NARROWED = (
    "`protected` is run on virtio with ext4 and on sata with XFS; real engines in `strict` and `protected` on virtio with ext4, "
    "and in `flush` on sata with XFS too. Of a real engine's cut the file system is mounted, with its log replayed, and not "
    "checked in full."
)
UPS = (
    "`ups` has no cells: what is exposed while its guard has barriers off, and that nothing is once it has put them back, is "
    "shown by `molecule test -s power`, over the same volatile disk."
)


def write(cells: Iterable[dict[str, Any]], directory: Path) -> None:
    """Write the cells beside those that lie there already; then the page and the plots for all of them."""
    found = {**_read_cells(directory), **{_key(cell): cell for cell in cells}}
    directory.mkdir(parents=True, exist_ok=True)
    # Whole or not at all: it holds all that was ever judged.
    new = directory / f"{CELLS}.new"
    new.write_text("".join(json.dumps(found[key], sort_keys=True) + "\n" for key in sorted(found)))
    os.replace(new, directory / CELLS)
    shutil.rmtree(directory / _OLD, ignore_errors=True)
    _write_page(directory)


def write_price(found: Mapping[str, Any], directory: Path) -> None:
    """Write the price by setting, beside settings that lie there already; then the page and the plots."""
    directory.mkdir(parents=True, exist_ok=True)
    everything = {**read_price(directory), **found}
    (directory / PRICE).write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n")
    _write_page(directory)


def write_early(found: Mapping[str, Any], directory: Path) -> None:
    """Write what many runs of one cell on one kernel gave, beside those of others; then the page and the plots."""
    directory.mkdir(parents=True, exist_ok=True)
    everything = _read_json(directory / EARLY)
    everything[f"{found['setting']}/{found['workload']}, {found['versions']['guest']}"] = found
    (directory / EARLY).write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n")
    _write_page(directory)


def write_boot_files(found: Mapping[str, Any], directory: Path) -> None:
    """Write what cuts on the disk of the root have shown, by its file system; then the page."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / BOOT_FILES).write_text(json.dumps(dict(found), indent=1, sort_keys=True) + "\n")
    _write_page(directory)


def _write_page(directory: Path) -> None:
    found, cost = read(directory), read_price(directory)
    others = (_read_json(directory / name) for name in (EARLY, BOOT_FILES))
    (directory / "README.md").write_text(page(found, cost, *others))
    if cost:
        (directory / "price.svg").write_text(price_page.plot(cost))
    (directory / "cuts.svg").write_text(cuts_plot(found))
    (directory / "flushes.svg").write_text(flushes_plot(found))


def read(directory: Path) -> list[dict[str, Any]]:
    """Return all cells that have been judged, by name and kind of machine."""
    found = _read_cells(directory)
    return [found[key] for key in sorted(found)]


def _read_cells(directory: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the cells by name and kind of machine: of each there is one record."""
    path = directory / CELLS
    texts = path.read_text().splitlines() if path.exists() else []
    # Where files of single cells lie too they are newer: to write takes them away.
    texts += [old.read_text() for old in (directory / _OLD).glob("*.json")]
    return {_key(cell): cell for cell in map(json.loads, texts)}


def kind_of(cell: dict[str, Any]) -> str:
    """Return the kind of machine that a cell was recorded on; when there was one kind, nobody wrote it down."""
    return str(cell["versions"].get("kind", QEMU))


def _key(cell: dict[str, Any]) -> tuple[str, str]:
    return str(cell["cell"]), kind_of(cell)


def _on(cell: dict[str, Any]) -> str:
    """Return the guest's kernel, without its build, and the kind of machine."""
    words = [*str(cell["versions"].get("guest", "")).split(), "unknown", "unknown"]
    return f"{words[1]}, {kind_of(cell)}"


def _label(cell: dict[str, Any]) -> str:
    """Return how a plot names a cell."""
    return str(cell["cell"]) + ("" if kind_of(cell) == QEMU else f" ({kind_of(cell)})")


def read_price(directory: Path) -> dict[str, Any]:
    """Return the price by setting; nothing if it was never written."""
    return _read_json(directory / PRICE)


def _read_json(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def page(
    cells: Sequence[dict[str, Any]],
    cost: Mapping[str, Any] | None = None,
    early: Mapping[str, Any] | None = None,
    boots: Mapping[str, Any] | None = None,
) -> str:
    """Return the page that people read."""
    cost, early, boots = cost or {}, early or {}, boots or {}
    choices = choice.choices(cells)
    safe = [cell for cell in cells if cell["expects"] == SAFE]
    controls = [cell for cell in cells if cell["expects"] == LOSES]
    by_name = {_key(cell): cell for cell in cells}
    wrong = [
        f"- {_label(cell)}: {problem}"
        for cell in cells
        for problem in (*cell["problems"], *_pair(cell, by_name))
    ]
    wrong += [f"- what is chosen for SQL Server: {line}" for line in choice.problems(choices)]
    wrong += [f"- the price: {line}" for line in price.wrong(cost)]
    shown = sum(not cell["problems"] and not _pair(cell, by_name) for cell in (*safe, *controls))
    parts = [
        TITLE,
        f"{shown} of {len(safe) + len(controls)} cells show what they should: {len(safe)} safe ones, {len(controls)} controls."
        f"{_by_default(safe)}{_twice(cells)}\n",
        "## What is not shown\n",
        "\n".join([*wrong, *(f"- {line}" for line in not_shown(cells))]) + "\n",
        "## Safe cells\n",
        CUTS_WORDS,
        table(SAFE_HEAD, [_safe_row(cell, by_name) for cell in safe]),
        "## Controls\n",
        table(CONTROL_HEAD, [_control_row(cell) for cell in controls]),
        "![Cuts that lose commits](cuts.svg)\n",
        "## What a commit costs\n",
        COST_WORDS,
        table(COST_HEAD, [row for cell in safe for row in _cost_rows(cell)]),
        "![Flushes for each commit](flushes.svg)\n",
        *_of_kinds(cells),
        *price_page.of_choices(choices),
        *price_page.of_price(cost),
        "## The rig\n",
        _of_trials(safe),
        table(RIG_HEAD, [_rig_row(cell) for cell in safe if "rig" in cell]),
        *_of_early(early),
        *_of_boot_files(boots),
        "## One cut, and a boot\n",
        "A fresh machine was booted over what a cut had left, and read the files by its own kernel.\n",
        table(REBOOT_HEAD, [_reboot_row(cell) for cell in safe if "reboot" in cell]),
        "## Versions\n",
        "\n".join(f"- {line}" for line in _versions([*cells, *cost.values()])) + "\n",
    ]
    return "\n".join(parts)


def _by_default(safe: Sequence[dict[str, Any]]) -> str:
    """Tell how many of the safe cells harden-db did not make; nothing if it made all."""
    count = sum(cell["setting"]["device"] == NBD for cell in safe)
    return (
        f" {count} of the safe ones are as the kernel makes them, on a device for which harden-db has no rule."
        if count
        else ""
    )


def _twice(cells: Sequence[dict[str, Any]]) -> str:
    """Tell how many cells stand here twice, once for each kind of machine; nothing if none does."""
    count = len(cells) - len({cell["cell"] for cell in cells})
    return f" Run on both kinds of machine, and so counted twice: {count}." if count else ""


def _of_kinds(cells: Sequence[dict[str, Any]]) -> list[str]:
    """Return what both kinds of machine say of the same cells; nothing if none was run on both."""
    twice = [name for name, count in Counter(cell["cell"] for cell in cells).items() if count > 1]
    if not twice:
        return []
    both = [cell for cell in cells if cell["cell"] in twice]
    said = [KINDS_WORDS, _agreement(both), table(KINDS_HEAD, [_kind_row(cell) for cell in both])]
    return ["## The same cells on both kinds of machine\n", *said]


def _agreement(both: Sequence[dict[str, Any]]) -> str:
    """Say where the kinds agree on cells that both have run, and name the cells where their disks were told otherwise."""
    by_name = defaultdict[str, list[dict[str, Any]]](list)
    for cell in both:
        by_name[cell["cell"]].append(cell)
    safe = [cell for cell in both if cell["expects"] == SAFE]
    losses = sum(cell["totals"]["losing"] for cell in safe)
    shares = [[_share(cell) for cell in found] for found in by_name.values()]
    apart = max(max(found) - min(found) for found in shares)
    unlike = sorted(name for name, found in by_name.items() if _is_told_otherwise(found))
    told = f"; not so in {', '.join(unlike)}" if unlike else ""
    return (
        f"Of {len(by_name)} cells that both have run {len({cell['cell'] for cell in safe})} are safe: {losses} of their cuts lose"
        f" a commit, of both kinds together. In no cell do the shares of cuts that lose differ by more than {apart:.1%}. The disk"
        f" got as many flushes and FUA writes for each commit, to a quarter{told}.\n"
    )


def _is_told_otherwise(found: Sequence[dict[str, Any]]) -> bool:
    """Whether flushes or FUA writes for each commit, as the disks got them, differ by more than what a journal adds by itself."""
    numbers = [[_fewest_clients(cell)["log"][name] for cell in found] for name in ("flushes", "fua")]
    return any(max(seen) - min(seen) > choice.TOLERANCE for seen in numbers)


def _fewest_clients(cell: dict[str, Any]) -> dict[str, Any]:
    return dict(min(cell["accounting"], key=lambda row: int(row["clients"])))


def _kind_row(cell: dict[str, Any]) -> list[str]:
    total = cell["totals"]
    row = _fewest_clients(cell)
    numbers = (row["kernel"]["flushes"], row["log"]["flushes"], row["log"]["fua"], row["log"]["writes"])
    return [
        cell["cell"],
        _on(cell),
        str(total["cuts"]),
        f"{total['losing']} ({_share(cell):.1%})",
        str(row["clients"]),
        *(f"{number:.2f}" for number in numbers),
        f"{1000 * row['commit_seconds']['p50']:.1f}",
    ]


def _of_trials(safe: Sequence[dict[str, Any]]) -> str:
    """Say in what share of trials the rig saw a flush or a FUA bit that was gone."""
    tried = [cell for cell in safe if cell.get("rig", {}).get("trials")]
    blind = sum(not cell["rig"]["caught"] for cell in tried)
    trials, caught, missed = (
        sum(cell["rig"][name] for cell in tried) for name in ("trials", "caught", "needed_and_missed")
    )
    if not trials:
        return ""
    return (
        "One flush, or one FUA bit, is taken from the log of one client, and the commits are looked for again. In all "
        f"{caught} of {trials} trials lost a commit by it ({caught / trials:.0%}); {missed} trials lost none although a commit "
        f"rested on what was taken alone. In {blind} of {len(tried)} cells no commit rested on what was taken: each "
        "lies under another flush too.\n"
    )


def _of_early(early: Mapping[str, Any]) -> list[str]:
    """Return the part on acknowledgements that came too early; nothing if nobody looked for them at length."""
    if not early:
        return []
    rows = [
        [name, str(found["clients"]), str(found["acknowledged"]), str(len(found["early"]))]
        for name, found in sorted(early.items())
    ]
    parts = [
        "## Acknowledgements that came too early\n",
        "Long runs, in which each acknowledgement is looked at: had the disk to keep its commit by then? docs/proof.md says"
        " what comes of it.\n",
        table(("cell, kernel", "clients", "acknowledged", "early"), rows),
    ]
    for name, found in sorted(early.items()):
        if found["excerpt"]:
            lines = "\n".join(found["excerpt"])
            parts.append(f"What the kernel did before the first one of {name}:\n\n```text\n{lines}\n```\n")
    return parts


def _of_boot_files(boots: Mapping[str, Any]) -> list[str]:
    """Return the part on the files of the boot, on the disk of the root; nothing if nobody has cut there."""
    if not boots:
        return []
    rows = [
        [
            root,
            name,
            *(
                str(step[key])
                for key in ("events", "cuts", "between", "unfinished", "checked", "refused", "wrong")
            ),
        ]
        for root, found in sorted(boots.items())
        for name, step in found["steps"].items()
    ]
    steps = [step for found in boots.values() for name, step in found["steps"].items() if name != CONTROL]
    files = sorted({path for step in steps for path in step["files"]})
    broken = [
        f"- {root}, the control: {problem} ({count} cuts)"
        for root, found in sorted(boots.items())
        for problem, count in sorted(found["steps"][CONTROL]["problems"].items())
    ]
    return [
        "## The boot's files, on the disk of the root\n",
        BOOT_WORDS.format(control=CONTROL),
        table(
            ("root", "run", "places", "cuts", "between", "unfinished", "checked", "refused", "wrong"), rows
        ),
        "Files that a run changed meanwhile:\n",
        "\n".join(f"- `{path}`" for path in files) + "\n",
        "What was wrong:\n",
        "\n".join([*(f"- {line}" for found in boots.values() for line in wrong_boots(found)), *broken])
        + "\n",
    ]


def not_shown(cells: Sequence[dict[str, Any]]) -> list[str]:
    """Return what this evidence leaves unproven, from what it saw."""
    lines = [*NOT_MODELLED, *_not_run(cells), NARROWED]
    profiles = {cell["setting"]["profile"] for cell in cells}
    devices = {cell["setting"]["device"] for cell in cells}
    if "protected" in profiles:
        lines.append(PROTECTED)
    if any(cell["setting"]["file_system"] == "xfs" for cell in cells):
        lines.append(XFS)
    lines.append(UPS)
    lines += [_untrusted(cell) for cell in cells if cell["expects"] == UNTRUSTED]
    engines = sorted({cell["setting"].get("engine", "") for cell in cells} - {""})
    lines += [ENGINES[name].unproven for name in engines if ENGINES[name].unproven]
    for cell in cells:
        row = next((row for row in cell["accounting"] if row["clients"] == 1), None)
        if (
            cell["setting"]["device"] == "scsi-fua"
            and row
            and row["trace"].get("fua", 0) > 0.5 > row["log"]["fua"]
        ):
            lines.append(
                f"{cell['cell']}: the kernel sent {row['trace']['fua']:.2f} FUA writes for each commit, the disk got "
                f"{row['log']['fua']:.2f}, and {row['log']['flushes']:.2f} flushes: {cell['versions']['qemu']} makes a write "
                f"and a flush of each. FUA of a SCSI disk by itself is {_elsewhere(cell, cells)}."
            )
    if NBD in devices:
        lines.append(
            "Native FUA is shown through the guest's NBD client, which harden-db does not manage: settings by default."
        )
    else:
        lines.append(
            "No device here passes FUA on by itself (cells `*/nbd/*` were not run): native FUA is unproven."
        )
    return lines


def _elsewhere(cell: dict[str, Any], cells: Sequence[dict[str, Any]]) -> str:
    """Say whether the other kind of machine, whose own disk has FUA, shows what this one could not."""
    shown = (other for other in cells if other["cell"] == cell["cell"] and kind_of(other) != kind_of(cell))
    return "shown by the other kind of machine alone" if any(shown) else "unproven"


def _not_run(cells: Sequence[dict[str, Any]]) -> list[str]:
    """Return, as one line, the cells of the matrix that are not here."""
    here = {cell["cell"] for cell in cells}
    absent = [cell for cell in matrix() if cell.name not in here]
    if not absent:
        return []
    whole = by_setting(matrix())
    names = (
        setting.name if members == whole[setting] else ", ".join(member.name for member in members)
        for setting, members in by_setting(absent).items()
    )
    return [f"{len(absent)} of {len(matrix())} cells of the matrix were not run: {', '.join(names)}."]


def _untrusted(cell: dict[str, Any]) -> str:
    """Tell what came of a device whose emulation may ignore FUA: no safe cell is claimed on it."""
    test = cell["self_test"]
    row = next(row for row in cell["accounting"] if row["clients"] == 1)
    return (
        f"{cell['cell']}: for each commit the kernel sent {row['trace']['fua']:.2f} FUA writes and "
        f"{row['kernel']['flushes']:.2f} flushes, the disk got {row['log']['fua']:.2f} and {row['log']['flushes']:.2f}; "
        f"{test['losing']} of {test['cuts']} commits do not survive a drop of all by {cell['versions']['qemu']}. "
        "No cell of this device counts as safe here."
    )


def _pair(cell: dict[str, Any], by_name: dict[tuple[str, str], dict[str, Any]]) -> list[str]:
    """Return what is wrong with the control of a safe cell."""
    if not cell["control"]:
        return []
    control = by_name.get((cell["control"], kind_of(cell)))
    if control is None:
        return [f"its control {cell['control']} was not judged"]
    return [f"its control {cell['control']} does not lose as it should"] if control["problems"] else []


SAFE_HEAD = (
    "cell",
    "kernel, kind",
    "cuts",
    "lose",
    "bound",
    "without volatile data",
    "seeds",
    "acknowledged early",
    "verdict of harden-db",
    "control loses",
    "images recovered",
)
CONTROL_HEAD = ("control", "kernel, kind", "what is planted", "cuts", "lose", "share", "images recovered")
COST_HEAD = (
    "cell",
    "kernel, kind",
    "clients",
    "flushes, kernel",
    "flushes, trace",
    "FUA, trace",
    "flushes, log",
    "FUA, log",
    "minimum",
    "commit p50, ms",
)
RIG_HEAD = (
    "cell",
    "kernel, kind",
    "self-test: acknowledgements",
    "lost",
    "taken",
    "trials",
    "caught",
    "needed and missed",
    "lie of a disk that is caught",
)


KINDS_WORDS = """\
Kernels differ as well as kinds: `qemu` runs that of the Debian release, `uml` a later one. Counted for each commit of the
fewest clients that the cell has.
"""
KINDS_HEAD = (
    "cell",
    "kernel, kind",
    "cuts",
    "lose",
    "clients",
    "flushes, kernel",
    "flushes, log",
    "FUA, log",
    "writes, log",
    "commit p50, ms",
)
REBOOT_HEAD = (
    "cell",
    "kernel, kind",
    "what the cut kept",
    "acknowledged",
    "missing",
    "torn",
    "complaints of the kernel",
)


def _reboot_row(cell: dict[str, Any]) -> list[str]:
    found = cell["reboot"]
    numbers = (found["acknowledged"], found["missing"], found["torn"], len(found["complaints"]))
    return [cell["cell"], _on(cell), found["cut"]["policy"], *(str(number) for number in numbers)]


def _safe_row(cell: dict[str, Any], by_name: dict[tuple[str, str], dict[str, Any]]) -> list[str]:
    total, early = cell["totals"], cell.get("early")
    control = by_name.get((cell["control"], kind_of(cell)))
    return [
        cell["cell"],
        _on(cell),
        str(total["cuts"]),
        str(total["losing"] + total["lost_without_volatile"]),
        _bound(cell),
        str(total["without_volatile"]),
        str(len(cell["seeds"])),
        f"{len(early['early'])} of {early['acknowledged']}" if early else "not looked at",
        str(cell["hardened"]["verdict"]),
        f"{_share(control):.0%}" if control else "not run",
        _images(cell),
    ]


def _images(cell: dict[str, Any]) -> str:
    """Tell how many images were recovered for the cuts; where no frames were, each was."""
    total = cell["totals"]
    return f"{total['whole']} whole, {total['frames']} others" if total.get("frames") else "each"


def _bound(cell: dict[str, Any]) -> str:
    bound = cell["totals"]["bound"]
    return "nothing was volatile" if bound is None else f"{bound:.2%}"


def _control_row(cell: dict[str, Any]) -> list[str]:
    total = cell["totals"]
    planted = cell["plant"] if cell["setting"]["plant"] else WORKLOADS.get(cell["workload"], cell["plant"])
    return [cell["cell"], _on(cell), planted, str(total["cuts"]), str(total["losing"]), f"{_share(cell):.0%}"]


def _cost_rows(cell: dict[str, Any]) -> list[list[str]]:
    rows = []
    for clients in sorted({row["clients"] for row in cell["accounting"]}):
        row = next(row for row in cell["accounting"] if row["clients"] == clients)
        least = row["minimum"]["flushes"]
        limit = (
            "none claimed" if least is None else f"{least:.2f}" if clients == 1 else f"at most {least:.2f}"
        )
        kernel, trace, arrived = row["kernel"]["flushes"], row["trace"], row["log"]
        seen = (kernel, trace.get("flushes"), trace.get("fua"), arrived["flushes"], arrived["fua"])
        numbers = ["not traced" if number is None else f"{number:.2f}" for number in seen]
        time = f"{1000 * row['commit_seconds']['p50']:.1f}"
        rows.append([cell["cell"], _on(cell), str(clients), *numbers, limit, time])
    return rows


def _rig_row(cell: dict[str, Any]) -> list[str]:
    test, rig = cell["self_test"], cell["rig"]
    caught = (
        (f"{rig['lie_caught']}, and FUA" if rig["lie_caught"] else "no") if rig["trials"] else "cache is off"
    )
    words = (
        test["cuts"],
        test["losing"],
        rig["edit"] or "nothing",
        rig["trials"],
        rig["caught"],
        rig["needed_and_missed"],
    )
    return [cell["cell"], _on(cell), *(str(word) for word in words), caught]


def cuts_plot(cells: Sequence[dict[str, Any]]) -> str:
    """Draw the share of cuts that lose commits."""
    rows = [
        Bar(
            _label(cell),
            _share(cell),
            f"{cell['totals']['losing']} of {cell['totals']['cuts']}",
            cell["expects"],
        )
        for cell in cells
    ]
    return bars("Share of power cuts that lose acknowledged commits", rows, 1.0)


def flushes_plot(cells: Sequence[dict[str, Any]]) -> str:
    """Draw the flushes for each commit of one client in safe cells."""
    rows = [
        Bar(_label(cell), row["kernel"]["flushes"], f"{row['kernel']['flushes']:.2f}")
        for cell in cells
        for row in cell["accounting"]
        if cell["expects"] == SAFE and row["clients"] == 1
    ]
    return bars("Flushes for each commit, one client", rows, max([2.0, *(row.value for row in rows)]))


def _share(cell: dict[str, Any]) -> float:
    total = cell["totals"]
    return float(total["losing"] / total["cuts"]) if total["cuts"] else 0.0


def _versions(cells: Sequence[dict[str, Any]]) -> list[str]:
    return sorted({f"{name}: {value}" for cell in cells for name, value in cell["versions"].items()})
