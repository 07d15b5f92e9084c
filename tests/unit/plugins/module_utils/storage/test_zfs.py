# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ZFS by its own commands: composed from its manual pages, run on no machine."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Result, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.storage.zfs import (
    GET,
    PARAMETERS,
    STATUS,
    leaves,
    parse_properties,
    parse_status,
)

from ..fakes.captured import captured
from ..fakes.runs import NOW, attested, enforce, look
from ..fakes.sentences import sentence
from ..fakes.small_host import BigHost, FakeMount

SRV, DATASET = "/srv/zfs", "tank/pg data"
GREEN = ("durable", "attested")


def on_zfs(sync: str = "standard", mountpoint: str = SRV, **parameters: str) -> BigHost:
    """Return a host with a dataset over sdc (SAS), mirrored on sdd, and its log on nvme0n1p2."""
    host = BigHost()
    host.files["/proc/filesystems"] += "nodev\tzfs\n"
    mount = FakeMount(SRV, "zfs", "0:77", DATASET.replace(" ", "\\040"), "sdc", atime="noatime")
    host.mounts[SRV] = mount
    said = f"sync\t{sync}\ncanmount\ton\nmountpoint\t{mountpoint}\n"
    host.commands[(*GET, DATASET)] = said
    host.commands[(*STATUS, "tank")] = captured("zpool_status.txt")
    for name, value in {"zfs_nocacheflush": "0", "zil_nocacheflush": "0", **parameters}.items():
        host.files[f"{PARAMETERS}/{name}"] = f"{value}\n"
    return host


def test_the_devices_of_a_pool_are_its_disks_and_its_logs_and_no_copies() -> None:
    assert parse_status(captured("zpool_status.txt"), "tank") == (
        ["/dev/sdc1", "/dev/sdd1", "/dev/nvme0n1p2"],
        ["/dev/nvme0n1p2"],
    )


@pytest.mark.parametrize("name", ["cache", "spares", "logs"])
def test_a_pool_that_is_called_like_a_section_has_all_of_its_devices(name: str) -> None:
    text = captured("zpool_status.txt").replace("\ttank  ", f"\t{name}  ")
    assert parse_status(text, name) == parse_status(captured("zpool_status.txt"), "tank")


@pytest.mark.parametrize(
    "text", ["", "no pools available\n", "config:\n\n\tNAME STATE\n\ttank ONLINE 0 0 0\n"]
)
def test_a_pool_without_devices_is_unknown(text: str) -> None:
    with pytest.raises(Unobservable, match="no device is named"):
        parse_status(text, "tank")


def test_properties() -> None:
    assert parse_properties("sync\tstandard\nmountpoint\t/a\tb\n\nx\n") == {
        "sync": "standard",
        "mountpoint": "/a\tb",
    }


@pytest.mark.parametrize("name", ["-r", "", "tank/../x|y", "tank\n", "/tank"])
def test_a_name_that_is_none_is_asked_of_nobody(name: str) -> None:
    host = on_zfs()
    with pytest.raises(Unobservable, match="is no name of a ZFS dataset"):
        leaves(host, name)
    assert host.asked == []


@pytest.mark.parametrize("profile", ["strict", "flush"])
@pytest.mark.parametrize("sync", ["standard", "always"])
@pytest.mark.fact(87)
def test_a_dataset_that_honours_fsync_is_as_durable_as_its_disks(sync: str, profile: str) -> None:
    host = on_zfs(sync)
    enforce(host, look(host, profile, mounts=[SRV]))
    found = look(host, profile, mounts=[SRV])
    assert found["verdict"] in GREEN, found["why"]
    wanted = "disabled" if profile == "strict" else "enabled"
    assert {host.disk(name).cache for name in ("sdc", "sdd", "nvme0n1")} == {wanted}


RUNNING = f"write 0 to zfs_nocacheflush and zil_nocacheflush in {PARAMETERS}"


@pytest.mark.parametrize(
    ("host", "why", "cure"),
    [
        (on_zfs("disabled"), "sync=disabled", "run zfs set sync=standard 'tank/pg data'"),
        (on_zfs(zfs_nocacheflush="1"), "zfs_nocacheflush is 1", RUNNING),
        (on_zfs(zil_nocacheflush="1"), "zil_nocacheflush is 1", RUNNING),
    ],
    ids=["sync", "zfs", "zil"],
)
@pytest.mark.fact(87)
def test_one_that_does_not_is_at_risk_over_a_cache_and_never_green(
    host: BigHost, why: str, cure: str
) -> None:
    found = look(host, "flush", mounts=[SRV])
    assert found["verdict"] == "at_risk"
    assert {each["fix"] for each in found["reasons"] if each["id"] == "risk.barrier_off.zfs"} == {cure}
    (row,) = [row for row in found["settings"] if (row["target"], row["setting"]) == (SRV, "barrier")]
    assert why in row["evidence"]["running"]["reason"]
    words = [attested(target=f"wwn:0x5000c500a1b2c3{part}") for part in ("d4", "d5")]
    words.append(attested(target="nvme:eui.0025385"))
    assert look(host, "protected", mounts=[SRV], attestations=words)["verdict"] == "blocked"


@pytest.mark.parametrize(
    ("lost", "verdict"),
    [
        ({"commands": (*GET, DATASET)}, "unknown"),
        ({"commands": (*STATUS, "tank")}, "unknown"),
        ({"files": f"{PARAMETERS}/zfs_nocacheflush"}, "unknown"),
        ({"links": "/sys/class/block/sdd1"}, "unknown"),
    ],
    ids=["zfs", "zpool", "parameter", "a disk"],
)
def test_what_cannot_be_read_is_unknown(lost: dict[str, Any], verdict: str) -> None:
    host = on_zfs()
    for where, key in lost.items():
        del getattr(host, where)[key]
    enforce(host, look(host, "flush", mounts=[SRV]))
    assert look(host, "flush", mounts=[SRV])["verdict"] == verdict


def test_a_command_that_fails_is_unknown_with_its_reason() -> None:
    host = on_zfs()
    host.commands[(*GET, DATASET)] = Result(1, "", "cannot open\n 'tank/pg data'")
    assert any(
        "exit 1: cannot open 'tank/pg data'" in why for why in look(host, "flush", mounts=[SRV])["why"]
    )


@pytest.mark.parametrize(
    "text",
    [
        "options zfs zfs_nocacheflush=1\n",
        "options zfs zil_nocacheflush=1 x=0\n",
        "options zfs zfs-nocacheflush=1\n",
        # An import then discards what was acknowledged since the last transaction group.
        "options zfs zil_replay_disable=1\n",
    ],
)
@pytest.mark.parametrize("path", ["/etc/modprobe.d/zfs.conf", "/lib/modprobe.d/a.conf", "/proc/cmdline"])
def test_a_parameter_of_the_next_boot_counts(path: str, text: str) -> None:
    host = on_zfs()
    host.files[path] = (
        text.replace("options zfs ", "root=/dev/vda1 zfs.") if path == "/proc/cmdline" else text
    )
    found = look(host, "flush", mounts=[SRV])
    (row,) = [row for row in found["settings"] if (row["target"], row["setting"]) == (SRV, "barrier")]
    assert (row["running"], row["persisted"], found["verdict"]) == ("on", "off", "blocked")
    place = f"{path} line 1"
    if path == "/proc/cmdline":
        place = "the kernel's command line of this boot (/proc/cmdline)"
    assert row["evidence"]["persisted"]["source"] == place


DROPS = "zfs.zfs_nocacheflush=1"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        # Gone at the next boot.
        ("/run/modprobe.d/zfs.conf", "options zfs zfs_nocacheflush=1\n"),
        # Replaced by a file of the same name in /etc.
        ("/usr/lib/modprobe.d/kept.conf", "options zfs zfs_nocacheflush=1\n"),
        ("/etc/modprobe.d/zfs.conf.bak", "options zfs zfs_nocacheflush=1\n"),
    ],
)
def test_what_no_boot_reads_does_not_count(path: str, text: str) -> None:
    host = on_zfs()
    host.files.update({"/etc/modprobe.d/kept.conf": "# nothing\n", path: text})
    assert persisted(host)[0] == "on"


@pytest.mark.parametrize(
    "path", ["/usr/local/lib/modprobe.d/a.conf", "/usr/lib/modprobe.d/a.conf", "/etc/modprobe.d/a.conf"]
)
def test_a_parameter_is_named_by_file_and_line(path: str) -> None:
    host = on_zfs()
    host.files[path] = "# a\noptions zfs x=1 \\\n y=2\noptions zfs \\\n zil_nocacheflush=1\n"
    (mount,) = [each for each in collect(host, NOW)["mounts"] if each["target"] == SRV]
    assert mount["evidence"]["persisted.barrier"]["source"] == f"{path} line 4"


@pytest.mark.parametrize(
    ("now", "entry", "found"), [(DROPS, "quiet", "on"), ("quiet", DROPS, "off"), (DROPS, DROPS, "off")]
)
def test_the_command_line_is_that_of_the_entry_that_boots_next(now: str, entry: str, found: str) -> None:
    host = on_zfs()
    host.files["/proc/cmdline"] = f"root=UUID=root ro {now}\n"
    host.files["/boot/grub/grub.cfg"] = f"menuentry 'a' {{\n linux /v root=UUID=root ro {entry}\n}}\n"
    (mount,) = [each for each in collect(host, NOW)["mounts"] if each["target"] == SRV]
    assert mount["persisted"]["barrier"] == found
    is_named = mount["evidence"]["persisted.barrier"]["source"] == "/boot/grub/grub.cfg line 2"
    assert is_named == (found == "off")


def test_entries_that_differ_are_unknown_if_each_may_be_next() -> None:
    host = on_zfs()
    menus = {"/boot/grub/grub.cfg": "quiet", "/boot/grub2/grub.cfg": DROPS}
    for path, word in menus.items():
        host.files[path] = f"menuentry 'a' {{\n linux /v root=UUID=root ro {word}\n}}\n"
    found, why = persisted(host)
    assert (found, "it is unknown which of them boots next" in why) == ("unknown", True)
    assert "/boot/grub2/grub.cfg line 2 has ZFS flush no disk" in why
    host.files["/boot/grub/grub.cfg"] = host.read("/boot/grub/grub.cfg").replace("quiet", DROPS)
    assert persisted(host)[0] == "off"
    host.files["/boot/grub2/grub.cfg"] = host.read("/boot/grub2/grub.cfg").replace(DROPS, "single")
    assert persisted(host)[0] == "off"
    for path in menus:
        host.files[path] = host.read(path).replace(DROPS, "single")
    assert persisted(host)[0] == "on"


def test_an_entry_whose_command_line_is_not_known_is_unknown() -> None:
    host = on_zfs()
    host.files["/boot/grub/grub.cfg"] = "menuentry 'a' {\n linux /v root=UUID=root $kernelopts\n}\n"
    found, why = persisted(host)
    assert (found, "nothing sets $kernelopts" in why) == ("unknown", True)


@pytest.mark.parametrize(
    "text",
    ["# zfs_nocacheflush=1\n", "options zfs zfs_nocacheflush=0 zil_replay_disable=0\n", "options zfs x=1\n"],
)
def test_another_parameter_does_not(text: str) -> None:
    host = on_zfs()
    host.files["/etc/modprobe.d/zfs.conf"] = text
    enforce(host, look(host, "flush", mounts=[SRV]))
    assert look(host, "flush", mounts=[SRV])["verdict"] in GREEN


def test_a_dataset_that_mounts_elsewhere_by_itself_is_drift() -> None:
    host = on_zfs(mountpoint="legacy")
    found = look(host, "flush", mounts=[SRV])
    (row,) = [row for row in found["settings"] if (row["target"], row["setting"]) == (SRV, "barrier")]
    assert (row["persisted"], found["verdict"]) == ("unset", "drifted")
    assert (
        row["remedy"] == f"with its databases down, run zfs set canmount=on mountpoint={SRV} 'tank/pg data'"
    )


def persisted(host: BigHost, target: str = SRV) -> tuple[str, str]:
    """Return the persisted value of a dataset's barriers, with the reason."""
    (mount,) = [each for each in collect(host, NOW)["mounts"] if each["target"] == target]
    return mount["persisted"]["barrier"], sentence(mount, "persisted.barrier")


@pytest.mark.parametrize("canmount", ["on", "noauto"])
def test_a_legacy_dataset_is_mounted_by_a_line_of_fstab(canmount: str) -> None:
    host = on_zfs(mountpoint="legacy")
    host.commands[(*GET, DATASET)] = f"sync\tstandard\ncanmount\t{canmount}\nmountpoint\tlegacy\n"
    assert persisted(host)[0] == "unset"
    host.files["/etc/fstab"] += "tank/other /srv/zfs zfs defaults 0 0\n"
    assert persisted(host)[0] == "unset"
    host.files["/etc/fstab"] = host.read("/etc/fstab").replace("tank/other", "tank/pg\\040data")
    assert persisted(host) == ("on", "")


def test_a_dataset_with_canmount_noauto_is_unset() -> None:
    host = on_zfs()
    host.commands[(*GET, DATASET)] = f"sync\tstandard\ncanmount\tnoauto\nmountpoint\t{SRV}\n"
    found, why = persisted(host)
    assert (found, f"ZFS does not mount it at {SRV} automatically" in why) == ("unset", True)


def test_a_dataset_that_cannot_be_mounted_is_unset_despite_its_line() -> None:
    host = on_zfs(mountpoint="legacy")
    host.commands[(*GET, DATASET)] = "sync\tstandard\ncanmount\toff\nmountpoint\tlegacy\n"
    host.files["/etc/fstab"] += "tank/pg\\040data /srv/zfs zfs defaults 0 0\n"
    assert persisted(host)[0] == "unset"


def root_on_zfs(root: str, canmount: str = "noauto", mountpoint: str = "/") -> BigHost:
    """Return a host whose root is a boot environment of ZFS."""
    host = on_zfs()
    host.mounts["/"] = FakeMount("/", "zfs", "0:70", "rpool/ROOT/debian", "vda", atime="relatime")
    host.commands[(*GET, "rpool/ROOT/debian")] = (
        f"sync\tstandard\ncanmount\t{canmount}\nmountpoint\t{mountpoint}\n"
    )
    host.files["/proc/cmdline"] = f"{root} ro\n"
    return host


@pytest.mark.parametrize("mountpoint", ["/", "legacy"])
@pytest.mark.parametrize(
    "root", ["root=ZFS=rpool/ROOT/debian", "root=zfs:rpool/ROOT/debian", "root=zfs:AUTO"]
)
def test_the_initramfs_mounts_a_root_that_zfs_itself_does_not(root: str, mountpoint: str) -> None:
    assert persisted(root_on_zfs(root, mountpoint=mountpoint), "/") == ("on", "")


def test_a_root_that_the_boot_loader_does_not_name_is_unset() -> None:
    host = root_on_zfs("root=ZFS=rpool/ROOT/debian")
    host.files["/boot/grub/grub.cfg"] = "\tlinux /vmlinuz root=ZFS=rpool/ROOT/older ro\n"
    found, why = persisted(host, "/")
    assert (found, "the boot loader names rpool/ROOT/older" in why) == ("unset", True)
    assert persisted(root_on_zfs("root=ZFS=rpool/ROOT/debian", canmount="off"), "/")[0] == "unset"


def at_boot(
    command: str, path: str = "/etc/rc.local", sync: str = "standard", **files: str
) -> tuple[str, str]:
    """Return the barrier of the dataset at the next boot with a command at boot, and its source."""
    host = on_zfs(sync)
    host.files["/sbin/zfs"] = "ELF"
    host.files.update({path: command, **files})
    host.modes[path] = 0o755
    (mount,) = [each for each in collect(host, NOW)["mounts"] if each["target"] == SRV]
    return mount["persisted"]["barrier"], mount["evidence"]["persisted.barrier"]["source"]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("zfs set sync=disabled 'tank/pg data'", "off"),
        ("/sbin/zfs set -u compression=lz4 sync=disabled 'tank/pg data'", "off"),
        ("echo 1 > /sys/module/zfs/parameters/zfs_nocacheflush", "off"),
        # Below the dataset: with a value of its own it inherits none.
        ("zfs set sync=disabled tank", "unknown"),
        ("zfs inherit sync 'tank/pg data'", "unknown"),
        ("zfs inherit -r sync tank", "unknown"),
        ("zfs set sync=bogus 'tank/pg data'", "unknown"),
        ("zfs set canmount=off 'tank/pg data'", "unknown"),
        ("zfs set mountpoint=/srv/elsewhere tank", "unknown"),
        ("for d in $(zfs list -Ho name); do zfs set sync=disabled $d; done", "unknown"),
        ("if true; then zfs set sync=disabled 'tank/pg data'; fi", "unknown"),
        ("modprobe zfs zil_nocacheflush=1", "unknown"),
        ("zfs set sync=disabled 'tank/pg data'; zfs set sync=always 'tank/pg data'", "unknown"),
        # What changes nothing.
        ("zfs set sync=standard 'tank/pg data'", "on"),
        ("zfs set sync=disabled tank/other", "on"),
        ("zfs set sync=disabled tan", "on"),
        ("zfs set sync=disabled other/pg", "on"),
        ("if true; then zfs set sync=disabled tank/other; fi", "on"),
        ("zfs set atime=off 'tank/pg data'; zfs inherit compression tank; zfs list; zfs get sync tank", "on"),
        ("echo 0 > /sys/module/zfs/parameters/zfs_nocacheflush", "on"),
        ("mount -o remount,nobarrier /srv/pgdata", "on"),
        ("echo zfs set sync=disabled tank", "on"),
    ],
)
def test_commands_at_boot_that_set_properties_of_a_dataset(line: str, wanted: str) -> None:
    value, source = at_boot(f"#!/bin/sh\n{line}\n")
    assert value == wanted
    assert (source == "/etc/rc.local line 2") is (wanted != "on")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/etc/tmpfiles.d/zfs.conf", "w /sys/module/zfs/parameters/z?l_nocacheflush - - - - 1\n"),
        (
            "/etc/udev/rules.d/70-zfs.rules",
            'SUBSYSTEM=="module", KERNEL=="zfs", ATTR{parameters/zil_nocacheflush}="1"\n',
        ),
        ("/etc/cron.d/zfs", "@reboot root zfs set sync=disabled 'tank/pg data'\n"),
    ],
)
def test_other_components_that_set_zfs(path: str, text: str) -> None:
    value, source = at_boot(text, path)
    assert value in ("off", "unknown")
    assert source == f"{path} line 1"


def test_a_command_that_turns_flushes_on_hides_no_other_cause() -> None:
    assert at_boot("#!/bin/sh\nzfs set sync=standard 'tank/pg data'\n", sync="disabled")[0] == "off"


def test_a_script_about_zfs_is_about_no_other_mount() -> None:
    host = on_zfs()
    before = {each["target"]: each["persisted"] for each in collect(host, NOW)["mounts"]}
    host.files["/etc/rc.local"] = "#!/bin/sh\nfor d in $(cat /x); do zfs set sync=disabled $d; done\n"
    host.modes["/etc/rc.local"] = 0o755
    after = {each["target"]: each["persisted"] for each in collect(host, NOW)["mounts"]}
    assert {target for target in before if before[target] != after[target]} == {SRV}


def test_what_cannot_be_read_at_boot_leaves_zfs_unknown() -> None:
    host = on_zfs()
    host.files["/etc/crontab"] = Unobservable("/etc/crontab: Input/output error")
    (mount,) = [each for each in collect(host, NOW)["mounts"] if each["target"] == SRV]
    assert mount["persisted"]["barrier"] == "unknown"
