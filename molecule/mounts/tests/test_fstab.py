# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel, mount(8) and systemd make of fstab and of the root's superblock, and what a run makes of both.

Each class, and each test outside of one, gives the machine back as it found it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import truth
from support.devices import names
from support.layout import cache_on
from support.runs import Playbooks, Run

from lab.machine import Machine

#: One release is enough for what does not depend on it.
pytestmark = pytest.mark.parametrize("machine", ["bookworm"], indirect=True)
SCENARIO = Path(__file__).resolve().parents[1]
#: Serial of a spare disk -> UUID of its file system.
SPARE = {
    "SCSI0091": "0a5e0091-54a0-4b1d-8c55-7d1f7c3a0091",
    "SCSI0092": "0a5e0092-54a0-4b1d-8c55-7d1f7c3a0092",
}
BASE = "/srv/lab"
#: What a run writes: kept aside, and put back.
FILES = "etc/fstab etc/udev/rules.d var/lib/durable-dbhost"
ARCHIVE = "/root/as-found.tar"
#: Words of fstab that no file system knows.
SLIPS = ("noatmie", "barier=1", "defaluts")
ROOT_LINE = "s|^\\([^#][^ ]* / ext4\\) [^ ]*|\\1 {options}|"
ROOT_OPTIONS = "errors=remount-ro"
#: Default of the superblock -> options of the line that the kernel refuses with it.
REFUSED = {"ordered": ("journal_async_commit",), "journal": ("delalloc", "dioread_nolock")}


def sh(machine: Machine, script: str) -> str:
    """Run a script that has to succeed; return its output."""
    return machine.run(["sh", "-euc", script]).stdout


def refused(machine: Machine, *argv: str) -> bool:
    """Tell whether a command fails."""
    return machine.run(list(argv), check=False).returncode != 0


def kernel_options(machine: Machine, device: str) -> list[str]:
    """Return all options in force of a mounted ext4, by the kernel itself."""
    return sh(machine, f"cat /proc/fs/ext4/$(basename {device})/options").split()


def refused_with(machine: Machine, device: str, mode: str) -> set[str]:
    """Return the options that the kernel does not make a file system writable with, by its default mode."""
    found = set()
    sh(machine, f"tune2fs -o journal_data{'' if mode == 'journal' else f'_{mode}'} {device}")
    for option in (option for options in REFUSED.values() for option in options):
        sh(machine, f"mount -o ro {device} {BASE}")
        if refused(machine, "mount", "--options-source=disable", "-o", f"remount,rw,{option}", device, BASE):
            found.add(option)
        assert ("rw" in kernel_options(machine, device)) == (option not in found)
        sh(machine, f"umount {BASE}")
    return found


def row(run: Run, machine: Machine, target: str, setting: str) -> dict[str, str]:
    """Return one row of a run's report."""
    (found,) = (
        row
        for row in run.reports[machine.name]["settings"]
        if (row["target"], row["setting"]) == (target, setting)
    )
    return dict(found)


def spares(machine: Machine) -> dict[str, str]:
    """Return {serial: device} of the spare disks, as they are called now."""
    known = names(machine)
    return {serial: f"/dev/{known[serial]}" for serial in SPARE}


def keep(machine: Machine) -> dict[str, str]:
    """Keep aside what a run writes, give the spare disks file systems; return {serial: device}."""
    devices = spares(machine)
    sh(
        machine,
        f"mkdir -p /var/lib/durable-dbhost {BASE}; tar -C / -cpf {ARCHIVE} {FILES};"
        + "".join(f"mkfs.ext4 -q -F -U {SPARE[serial]} {device};" for serial, device in devices.items()),
    )
    tell_udev(machine, devices)
    return devices


def tell_udev(machine: Machine, devices: dict[str, str]) -> None:
    """Have udev know the file systems of the spare disks.

    After a mount it may know none: until 2.41 libblkid takes no superblock whose checksum the kernel has still
    to write (util-linux, pull request 3301).
    """
    links = " ".join(f"/dev/disk/by-uuid/{SPARE[serial]}" for serial in devices)
    sh(
        machine,
        f"for try in 1 2 3 4 5; do udevadm trigger --settle --action=change {' '.join(devices.values())};"
        f"udevadm settle; ls {links} > /dev/null 2>&1 && exit; done; ls {links}",
    )


def give_back(machine: Machine) -> None:
    """Put back what was kept, and leave the spare disks empty, with their caches on."""
    devices = " ".join(spares(machine).values())
    sh(
        machine,
        f"cd /; for disk in {devices}; do ! findmnt $disk > /dev/null || umount --all-targets $disk; done;"
        f"rm -rf --one-file-system {BASE};"
        f"rm -rf var/lib/durable-dbhost etc/udev/rules.d/*durable*; tar -xpf {ARCHIVE}; rm {ARCHIVE};"
        "systemctl daemon-reload; systemctl reset-failed; udevadm control --reload;"
        f"for disk in {devices}; do wipefs --quiet --all $disk; done;" + ";".join(map(cache_on, SPARE)),
    )


def playbooks_of(machine: Machine, directory: Path) -> Playbooks:
    """Return the collection's playbooks, for one run that several tests look at."""
    found = Playbooks([machine.inventory, SCENARIO / "inventory/hosts.yml"], directory, {})
    found.limit = machine.name
    return found


@pytest.fixture
def spare(machine: Machine) -> Iterator[dict[str, str]]:
    """The spare disks with a file system each: {serial: device}."""
    yield keep(machine)
    give_back(machine)


@pytest.mark.fact(54)
def test_the_kernel_refuses_to_make_writable_what_the_superblock_does_not_allow(
    machine: Machine, spare: dict[str, str]
) -> None:
    """Read-only, then writable with the options of the line: so the root is mounted at each boot."""
    for mode in (*REFUSED, "writeback"):
        assert refused_with(machine, spare["SCSI0091"], mode) == set(REFUSED.get(mode, ())), mode


@pytest.mark.fact(55)
def test_the_kernel_reads_the_number_of_a_barrier(machine: Machine, spare: dict[str, str]) -> None:
    device = spare["SCSI0091"]
    for number, word in {"0x0": "nobarrier", "+0": "nobarrier", "00": "nobarrier", "010": "barrier"}.items():
        sh(machine, f"mount -o barrier={number} {device} {BASE}")
        assert word in kernel_options(machine, device), number
        sh(machine, f"umount {BASE}")


@pytest.mark.fact(55)
def test_a_directory_below_a_mount_over_its_parent_lies_on_that_mount(
    machine: Machine, playbooks: Playbooks, spare: dict[str, str]
) -> None:
    hidden, over = (spare[serial] for serial in SPARE)
    sh(
        machine,
        f"mkdir -p {BASE}/data; mount {hidden} {BASE}/data; mount -o barrier=+0 {over} {BASE}; mkdir {BASE}/data;"
        f"echo UUID={SPARE['SCSI0092']} {BASE} ext4 barrier=+0 0 2 >> /etc/fstab",
    )
    tell_udev(machine, spare)
    variables = {
        "durable_mounts": [],
        "durable_databases": [{"engine": "mssql", "paths": [f"{BASE}/data"]}],
    }
    try:
        run = playbooks.run("harden-db", "--check", variables=variables)
    finally:
        sh(machine, f"umount {BASE}")
    found = row(run, machine, BASE, "barrier")
    assert (found["running"], found["persisted"]) == ("off", "off"), found
    assert f"{BASE}/data" not in {target for target, _setting in run.settings(machine.name)}


@pytest.fixture(scope="class")
def devices(machine: Machine) -> Iterator[dict[str, str]]:
    found = keep(machine)
    twice, quoted = SPARE.values()
    sh(
        machine,
        "cat >> /etc/fstab <<END\n"
        f"UUID={twice} {BASE}/first ext4 barrier=0x0 0 2\n"
        f"UUID={twice} {BASE}/second ext4 barrier=1 0 2\n"
        f'UUID="{quoted}" {BASE}/quoted ext4 defaults 0 2 # whose it is\n'
        + "".join(f"UUID={quoted} {BASE}/{slip} ext4 {slip} 0 2\n" for slip in SLIPS)
        + "END\n"
        f"cd {BASE}; mkdir first second quoted {' '.join(SLIPS)}; systemctl daemon-reload;"
        "systemctl start srv-lab-first.mount; systemctl start srv-lab-second.mount srv-lab-quoted.mount",
    )
    tell_udev(machine, found)
    yield found
    give_back(machine)


@pytest.fixture(scope="class")
def run(machine: Machine, devices: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run over all of these lines."""
    targets = [f"{BASE}/{name}" for name in ("first", "second", "quoted")]
    playbooks = playbooks_of(machine, tmp_path_factory.mktemp("lines"))
    return playbooks.run("harden-db", variables={"durable_mounts": targets})


class TestLines:
    """Lines that contradict each other, that have quotes and comments, and that mount nothing; one run over all."""

    @pytest.mark.fact(45)
    @pytest.mark.fact(55)
    def test_the_first_mount_of_a_file_system_decides_on_its_barriers(
        self, machine: Machine, devices: dict[str, str]
    ) -> None:
        assert "nobarrier" in kernel_options(machine, devices["SCSI0091"])
        assert not refused(machine, "mountpoint", "--quiet", f"{BASE}/second")

    @pytest.mark.fact(66)
    def test_quotes_and_a_comment_are_taken_by_systemd_and_findmnt(
        self, machine: Machine, devices: dict[str, str]
    ) -> None:
        target = f"{BASE}/quoted"
        assert sh(machine, f"findmnt -no SOURCE {target}").strip() == devices["SCSI0092"]
        fstab = sh(machine, f"findmnt --fstab --evaluate -no SOURCE,OPTIONS {target}").split()
        assert fstab == [devices["SCSI0092"], "defaults"]

    @pytest.mark.parametrize("slip", SLIPS)
    def test_a_line_with_a_slip_mounts_nothing(
        self, machine: Machine, devices: dict[str, str], slip: str
    ) -> None:
        assert refused(machine, "mount", f"{BASE}/{slip}")
        assert f"Unknown parameter '{slip.partition('=')[0]}'" in sh(machine, "dmesg")

    def test_both_lines_of_one_file_system_are_named(self, machine: Machine, run: Run) -> None:
        found = row(run, machine, f"{BASE}/first", "barrier")
        assert (found["running"], found["verdict"]) == ("on", "unknown")
        lines = sh(machine, f"grep -nE ' {BASE}/(first|second) ' /etc/fstab | cut -d: -f1").split()
        assert len(lines) == 2
        for line in lines:
            assert f"/etc/fstab line {line} " in found["why"]
        change = next(c for c in run.reports[machine.name]["changes"] if c["setting"] == "barrier")
        assert change["state"] == "done"  # what is in force, and that alone

    @pytest.mark.parametrize("slip", SLIPS)
    def test_a_slip_is_named_and_not_green(self, machine: Machine, run: Run, slip: str) -> None:
        found = row(run, machine, f"{BASE}/{slip}", "options")
        assert (found["verdict"], found["persisted"]) == ("drift_persisted", "refused")
        assert slip in found["remedy"]
        assert run.code == 2

    @pytest.mark.fact(66)
    def test_a_line_with_quotes_and_a_comment_is_kept_with_both(self, machine: Machine, run: Run) -> None:
        target = f"{BASE}/quoted"
        verdicts = {name: v for (where, name), v in run.settings(machine.name).items() if where == target}
        assert verdicts == {"barrier": "ok", "data_mode": "ok", "atime": "ok"}
        line = sh(machine, f"grep ' {target} ' /etc/fstab").strip()
        assert line.startswith('UUID="')
        assert line.endswith(f'" {target} ext4 defaults,noatime 0 2 # whose it is')
        sh(machine, "systemctl restart srv-lab-quoted.mount")
        assert "noatime" in sh(machine, f"findmnt -no VFS-OPTIONS {target}")


def root_device(machine: Machine) -> str:
    """Return the device that the root lies on."""
    return sh(machine, "findmnt -no SOURCE /").strip()


def set_root_line(machine: Machine, options: str) -> None:
    """Give the root's line of fstab other options."""
    sh(
        machine,
        f"sed -i '{ROOT_LINE.format(options=options)}' /etc/fstab; grep -q ' {options} ' /etc/fstab",
    )


def root_default(machine: Machine) -> list[str]:
    """Return the journal modes that the superblock names."""
    said = sh(machine, f"dumpe2fs -h {root_device(machine)} 2>/dev/null | sed -n 's/^Default mount.*://p'")
    return [word for word in said.split() if word.startswith("journal_data")]


@pytest.fixture(scope="class")
def weak_root(machine: Machine) -> Iterator[None]:
    """Have the root come up with writeback, and with an option that ordered does not go with."""
    keep(machine)
    options = f"{ROOT_OPTIONS},{REFUSED['ordered'][0]}"
    sh(machine, f"tune2fs -o journal_data_writeback {root_device(machine)}")
    set_root_line(machine, options)
    sh(machine, "sync")
    machine.reset()
    assert "data=writeback" in kernel_options(machine, root_device(machine))
    yield
    device = root_device(machine)
    sh(machine, f"tune2fs -o ^journal_data_ordered {device}")
    give_back(machine)
    sh(machine, f"echo 'write back' > /sys/block/$(basename {device})/cache_type; sync")
    machine.reset()


@pytest.mark.usefixtures("weak_root")
class TestRoot:
    """A journal mode of the root: in its superblock, for the next boot."""

    @pytest.mark.fact(54)
    @pytest.mark.parametrize("mode", REFUSED)
    def test_what_the_line_refuses_is_not_written(
        self, machine: Machine, playbooks: Playbooks, mode: str
    ) -> None:
        boot = truth.read(machine)["boot_id"]
        set_root_line(machine, ",".join((ROOT_OPTIONS, *REFUSED[mode])))
        variables = {
            "durable_mounts": ["/"],
            "durable_allow": ["reboot"],
            "durable_overrides": {"data_mode": mode},
        }
        run = playbooks.run("harden-db", variables=variables)
        assert run.code == 2
        found = row(run, machine, "/", "data_mode")
        assert found["verdict"] == "drift_persisted"
        for option in REFUSED[mode]:
            assert option in found["remedy"]
        assert f"the kernel refuses data={mode}" in found["why"]
        assert root_default(machine) == ["journal_data_writeback"]
        assert truth.read(machine)["boot_id"] == boot

    @pytest.mark.fact(54)
    def test_the_layer_alone_tries_the_boot_and_leaves_the_superblock_where_the_kernel_refuses(
        self, machine: Machine, playbooks: Playbooks
    ) -> None:
        """The policy does not come so far: it knows these words. Here the kernel itself is asked."""
        set_root_line(machine, f"{ROOT_OPTIONS},{REFUSED['ordered'][0]}")
        target = {"target": "/", "data_mode": "ordered"}
        with pytest.raises(subprocess.CalledProcessError) as failed:
            playbooks.ask(machine.name, "durable.dbhost.mount_options", {"targets": [target]})
        assert "mount a test image" in failed.value.stdout
        assert REFUSED["ordered"][0] in failed.value.stdout
        assert root_default(machine) == ["journal_data_writeback"]

    @pytest.mark.fact(5)
    def test_what_the_line_allows_is_written_and_the_root_comes_up_writable_with_it(
        self, machine: Machine, playbooks: Playbooks
    ) -> None:
        boot = truth.read(machine)["boot_id"]
        set_root_line(machine, ROOT_OPTIONS)
        variables = {"durable_mounts": ["/"], "durable_allow": ["reboot"]}
        run = playbooks.run("harden-db", variables=variables)
        assert (run.code, run.reports[machine.name]["verdict"]) == (0, "attested")
        assert run.settings(machine.name)["/", "data_mode"] == "ok"
        assert truth.read(machine)["boot_id"] != boot
        assert {"rw", "data=ordered"} <= set(kernel_options(machine, root_device(machine)))
        assert root_default(machine) == ["journal_data_ordered"]
        sh(machine, "touch /root/written; rm /root/written")
