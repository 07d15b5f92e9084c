# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cuts on the disk of the root: where they are made, what a file may be after one, and what is told of it."""

from __future__ import annotations

import base64
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from proof import boot_files, boot_watcher, checks
from proof.boot_files import CONTROL, FSTAB, ORIGINALS, Step, Tally, look, problems, schedule
from proof.errors import ProofError
from proof.log import Event, Kind
from proof.sweep import Cut

OLD, NEW = (base64.b64encode(text).decode() for text in (b"old line\n", b"new line # durable.dbhost\n"))
KEPT = base64.b64encode(b"{}").decode()
LINK = "/etc/systemd/system/local-fs.target.wants/srv.mount"
STEP = Step(
    "a run",
    begin=2,
    returned=8,
    end=10,
    allowed={FSTAB: [OLD, NEW], ORIGINALS: [None, KEPT], LINK: ["-> /lib/srv.mount"]},
    last={FSTAB: NEW, ORIGINALS: KEPT, LINK: "-> /lib/srv.mount"},
)
DURING, AFTER = (Cut(sequence, "random 4 KiB", 1) for sequence in (5, 8))
TORN = DURING._replace(policy="random 512 B")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in place of what the kernel mounts: as the run leaves it."""

    @contextmanager
    def mounted(*_: object) -> Iterator[tuple[Path, str]]:
        yield tmp_path, ""

    monkeypatch.setattr(checks, "mounted", mounted)
    for path, what in STEP.last.items():
        place = tmp_path / path.lstrip("/")
        place.parent.mkdir(parents=True)
        if what and what.startswith("-> "):
            place.symlink_to(what[3:])
        else:
            place.write_bytes(base64.b64decode(what or ""))
    return tmp_path


def looked(root: Path, cut: Cut = DURING, kind: str = "xfs") -> Tally:
    """Look at it."""
    return look(root / "image", kind, STEP, cut, root, is_checked=False)


def test_what_the_run_has_left_is_right_at_any_place(root: Path) -> None:
    for cut in (DURING, AFTER):
        assert looked(root, cut) == Tally(cuts=1)


def test_the_old_content_is_right_until_the_run_has_returned(root: Path) -> None:
    """And a cut that leaves one file old and another new is one in between."""
    (root / FSTAB[1:]).write_bytes(base64.b64decode(OLD))
    assert looked(root, DURING) == Tally(cuts=1, between=1)
    assert looked(root, AFTER).problems == {f"{FSTAB} is neither old nor new": 1}


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "is empty"), (b"new line # durable", "is neither old nor new"), (None, "is gone")],
)
def test_a_file_in_part_is_named(root: Path, content: bytes | None, words: str) -> None:
    place = root / FSTAB[1:]
    place.unlink()
    if content is not None:
        place.write_bytes(content)
    assert looked(root).problems == {f"{FSTAB} {words}": 1}


def test_a_link_elsewhere_is_named(root: Path) -> None:
    (root / LINK[1:]).unlink()
    (root / LINK[1:]).symlink_to("/dev/null")
    assert looked(root).problems == {f"{LINK} is neither old nor new": 1}


def test_nothing_may_be_changed_without_its_original(root: Path) -> None:
    """Both files are ones that the run has had."""
    (root / ORIGINALS[1:]).unlink()
    assert list(looked(root).problems) == [
        f"{FSTAB} has been changed, and {ORIGINALS} does not say what it was"
    ]


def test_what_was_not_yet_in_its_place_is_counted(root: Path) -> None:
    (root / "etc/.durable-x").touch()
    assert looked(root) == Tally(cuts=1, unfinished=1)


def test_a_root_that_cannot_be_mounted_is_wrong_unless_its_blocks_were_torn(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def mounted(*_: object) -> Iterator[tuple[None, str]]:
        yield None, "it cannot be mounted: Bad message"

    monkeypatch.setattr(checks, "mounted", mounted)
    assert looked(root) == Tally(1, 1, refused=1, problems={"it cannot be mounted: Bad message": 1})
    assert looked(root, TORN) == Tally(1, refused=1)


def test_what_ext4_wants_an_administrator_for_is_counted_and_its_files_are_looked_at(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a boot does it: before the mount. XFS has no such check."""

    @contextmanager
    def mounted(
        image: Path, _scratch: Path, _root: str, before: Callable[[Path], None]
    ) -> Iterator[tuple[Path, str]]:
        before(image)
        yield root, ""

    monkeypatch.setattr(checks, "mounted", mounted)
    monkeypatch.setattr(checks, "preened", lambda _: "replay was aborted")
    assert looked(root, TORN, "ext4") == Tally(1, refused=1)
    assert looked(root, DURING, "ext4").problems == {"replay was aborted": 1}
    assert looked(root, DURING, "xfs") == Tally(1)
    (root / FSTAB[1:]).write_bytes(b"")
    assert looked(root, TORN, "ext4").problems == {f"{FSTAB} is empty": 1}


def test_damage_is_told_where_it_is_looked_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "damage", lambda *_: "Block bitmap differences")
    found = look(root / "image", "xfs", STEP, DURING, root, is_checked=True)
    assert (found.wrong, found.checked, found.problems) == (1, 1, {"Block bitmap differences": 1})


EVENTS = [
    Event(number, kind, 0, 512)
    for number, kind in enumerate(
        [
            Kind.WRITE,
            Kind.WRITE,
            Kind.NOTE,
            Kind.WRITE,
            Kind.FLUSH,
            Kind.ZERO,
            Kind.ACK,
            Kind.TRIM,
            *[Kind.WRITE] * 4,
        ]
    )
]
PLACES = {3, 4, 5, 7, 8, 9}


def test_each_write_and_flush_of_a_step_is_cut_before_any_of_them_twice() -> None:
    assert {cut.sequence for cut in schedule(EVENTS, STEP, len(PLACES))} == PLACES
    more = Counter(cut.sequence for cut in schedule(EVENTS, STEP, 4 * len(PLACES) + 2))
    assert set(more) == PLACES
    assert set(more.values()) == {4, 5}
    assert len(schedule(EVENTS, STEP, 2)) == 2


def test_what_the_cache_keeps_goes_round_at_each_place() -> None:
    cuts = schedule(EVENTS, STEP, 4 * len(PLACES))
    for place in PLACES:
        assert len({cut.policy for cut in cuts if cut.sequence == place}) == 4


def test_a_step_in_which_the_disk_was_told_nothing_is_no_step() -> None:
    with pytest.raises(ProofError, match="a run: the root's disk was told nothing"):
        schedule(EVENTS, replace(STEP, begin=2, end=3), 4)


def test_what_the_control_did_not_break_is_a_problem() -> None:
    def found(wrong: int) -> dict[str, object]:
        steps = {"a run": {"problems": {"/etc/fstab is gone": 3}}, CONTROL: {"wrong": wrong, "problems": {}}}
        return {"root": "xfs", "steps": steps}

    assert problems(found(1)) == ["root on xfs: a run: /etc/fstab is gone (3 cuts)"]
    assert problems(found(0))[1] == "root on xfs: the control, written over, broke nothing"


def test_the_watcher_tells_each_content_once(tmp_path: Path) -> None:
    """What was there at first, what it became, what is new, what is gone; and nothing that is not yet in its place."""
    one, two = tmp_path / "one", tmp_path / "deep/two"
    one.write_text("a")
    output = io.StringIO()
    watcher = boot_watcher.Watcher(output, [str(tmp_path), str(tmp_path / "nothing")])
    (tmp_path / ".durable-x").write_text("b")
    watcher.look(0)
    (tmp_path / ".durable-x").rename(one)
    watcher.look(0)
    two.parent.mkdir()
    two.symlink_to("/dev/null")
    watcher.look(0)
    one.unlink()
    watcher.look(0)
    watcher.look(0)
    (tmp_path.parent / "other").touch()
    told = [tuple(json.loads(line).values()) for line in output.getvalue().splitlines()]
    a, b = (base64.b64encode(text).decode() for text in (b"a", b"b"))
    assert told == [
        (str(one), a),
        (str(one), b),
        (str(two), None),
        (str(two), "-> /dev/null"),
        (str(one), None),
    ]


def test_the_kernel_tells_the_watcher_of_new_directories_too(tmp_path: Path) -> None:
    watcher = boot_watcher.Watcher(io.StringIO(), [str(tmp_path)])
    (tmp_path / "deep").mkdir()
    assert list(watcher._changed()) == [f"{tmp_path}/deep"]
    watcher.look(0)
    (tmp_path / "deep/one").write_text("a")
    assert set(watcher._changed()) == {f"{tmp_path}/deep/one"}


def test_the_control_goes_between_the_contents_that_are_allowed() -> None:
    """Its script is another program: both say the same of fstab."""
    text = "UUID=1 /srv ext4 defaults 0 2\n"
    old, new = boot_files._of_control(base64.b64encode(text.encode()).decode())
    assert base64.b64decode(old or "").decode() == text
    assert base64.b64decode(new or "").decode() == "UUID=1 /srv ext4 defaults,noatime 0 2\n# a comment\n"
    assert '.replace(" defaults", " defaults,noatime") + "# a comment\\n"' in boot_files._WRITE_OVER
