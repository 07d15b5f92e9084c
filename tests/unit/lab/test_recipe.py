# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Image recipes: a change of any part makes another image."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lab import image, recipe
from lab.errors import LabError
from lab.recipe import Recipe


@pytest.fixture
def own(tmp_path: Path) -> Recipe:
    """Return a recipe whose files can be changed."""
    shutil.copytree(recipe.DIRECTORY, tmp_path / "recipe")
    return Recipe("bookworm", "ssh-ed25519 A", directory=tmp_path / "recipe")


def test_the_same_recipe_has_the_same_key(own: Recipe) -> None:
    """Wherever its files lie."""
    assert own.key == Recipe("bookworm", "ssh-ed25519 A").key
    assert own.root_uuid == Recipe("bookworm", "ssh-ed25519 A").root_uuid


@pytest.mark.parametrize("name", sorted(path.name for path in recipe.DIRECTORY.iterdir()))
def test_each_file_of_the_recipe_counts(own: Recipe, name: str) -> None:
    """One more line is another image, with another UUID."""
    key, uuid = own.key, own.root_uuid
    with (own.directory / name).open("a") as file:
        file.write("# more\n")
    assert own.key != key
    assert own.root_uuid != uuid


@pytest.mark.parametrize(
    "other",
    [
        Recipe("trixie", "ssh-ed25519 A"),
        Recipe("bookworm", "ssh-ed25519 B"),
        Recipe("bookworm", "ssh-ed25519 A", ("postgresql",)),
        Recipe("bookworm", "ssh-ed25519 A", kernel=False),
    ],
)
def test_release_key_and_packages_count(other: Recipe) -> None:
    """The public key is inside the image."""
    assert other.key != Recipe("bookworm", "ssh-ed25519 A").key


def test_what_packages_leave_out_counts(own: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the base too: it is unpacked without it."""
    key, base = own.key, own.base
    monkeypatch.setattr(recipe, "LEFT_OUT", ())
    assert own.key != key
    assert own.base != base


def test_an_unknown_release_is_refused() -> None:
    """With those that are known."""
    with pytest.raises(LabError, match="unknown release 'stable'; known are"):
        Recipe("stable", "")


def test_the_images_of_a_release_begin_with_the_same_base(own: Recipe) -> None:
    """Whatever a layout adds, and whoever logs in; not with another list of packages."""
    base = own.base
    assert Recipe("bookworm", "ssh-ed25519 B", ("postgresql",), kernel=False).base == base
    assert Recipe("trixie", "ssh-ed25519 A").base != base
    for name, is_same in (("configure.sh", True), ("early.sh", False), ("packages.txt", False)):
        before = own.base
        with (own.directory / name).open("a") as file:
            file.write("# more\n")
        assert (own.base == before) == is_same


def test_packages_of_the_base_are_the_labs() -> None:
    """Comments are not packages, and nothing is asked for twice."""
    found = Recipe("bookworm", "").base_packages
    assert found[0] == "initramfs-tools"
    assert len(set(found)) == len(found)
    assert not [name for name in found if "#" in name or " " in name]


def test_the_mirror_is_the_hosts_or_left_to_mmdebstrap() -> None:
    """No mirror is named by the lab itself."""
    one = Recipe("bookworm", "")
    assert image.argv(one, [], Path("/w"), "http://mirror/debian")[-1] == "http://mirror/debian"
    assert image.argv(one, [], Path("/w"), None)[-2:] == ["bookworm", "/w/root.tar"]


@pytest.mark.parametrize(("release", "is_checked"), [("bookworm", True), ("sid", False)])
def test_only_a_copy_of_the_unstable_distribution_may_be_old(release: str, is_checked: bool) -> None:
    option = '--aptopt=Acquire::Check-Valid-Until "false"'
    assert (option in image.argv(Recipe(release, ""), [], Path("/w"), None)) is not is_checked


@pytest.mark.skipif(os.geteuid() != 0, reason="wants root, who can mount")
def test_trees_are_made_in_memory_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of them is left on this host; who has little memory, or may not mount, makes them on disk."""
    monkeypatch.setattr(image, "_available", lambda: 2 * image.TREES)
    name = f"durable-test-{os.getpid()}"
    script = ["sh", "-c", 'echo "$TMPDIR"; ls -A "$TMPDIR"; touch "$TMPDIR/$1"', "sh", name]
    done = subprocess.run([*image.in_memory(), *script], capture_output=True, text=True, check=True)
    assert done.stdout == "/dev/shm\n"
    assert not Path("/dev/shm", name).exists()
    monkeypatch.setattr(image, "_available", lambda: image.TREES)
    assert image.in_memory() == []
    monkeypatch.setattr(image, "_available", lambda: 2 * image.TREES)
    monkeypatch.setattr(image, "_IN_MEMORY", "exit 32")
    assert image.in_memory() == []


def test_the_packages_of_a_layout_are_installed_in_what_was_unpacked() -> None:
    """Of hostile names the shell makes nothing."""
    steps = image.derive(Recipe("bookworm", "", ("a", "b; c"), kernel=False), Path("/w"))
    unpack, *_, contrib = [step for step in steps if step.startswith("--setup-hook=")]
    assert unpack == '--setup-hook=tar -C "$1" -x'
    assert "s/ main$/ main contrib/" in contrib
    assert "--customize-hook=chroot \"$1\" apt-get --yes install a 'b; c'" in steps
    of_kernel = [step for step in image.derive(Recipe("bookworm", ""), Path("/w")) if "apt-get" in step]
    assert of_kernel == ['--customize-hook=chroot "$1" apt-get --yes install linux-image-amd64']
    bare = image.derive(Recipe("bookworm", "", kernel=False), Path("/w"))
    assert not any("apt-get" in step for step in bare)
