# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that keep the next boot from its mounts, or have it mount another file system: named, and harmless ones are not.

What each comes to was found by booting (molecule/support/boot_defects.py).
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Status, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ..fakes.boot_texts import with_texts
from ..fakes.runs import NOW, inputs
from ..fakes.small_host import SmallHost

UNITS, RULES = "/etc/systemd/system", "/etc/udev/rules.d"
PACKAGED = "/usr/lib/udev/rules.d"
BOOTED = 1000.0


class Machine(SmallHost):
    """A host with files that were there at its boot, except those of `changed`."""

    def __init__(self) -> None:
        super().__init__()
        self.changed: set[str] = set()
        self.files["/etc/fstab"] = self.read("/etc/fstab").replace(",nofail", "")
        self.files["/proc/stat"] = f"cpu 1\nbtime {BOOTED:.0f}\n"
        for name, target in (("sda1", "pg"), ("sdb1", "ms"), ("vdb", "ma"), ("vda1", "root")):
            self.links[f"/dev/disk/by-uuid/{target}"] = f"/dev/{name}"
        self.files["/usr/lib/systemd/system/multi-user.target"] = "[Unit]\n"

    def status(self, path: str) -> Status:
        when = BOOTED + 9 if path in self.changed else BOOTED - 9
        return super().status(path)._replace(modified=when, changed=when)

    def mask(self, path: str) -> None:
        """Link a file to /dev/null."""
        self.links[path] = "/dev/null"

    def program(self, path: str, text: str) -> None:
        """Write a file that can be executed."""
        self.files[path] = text
        self.modes[path] = 0o755


def faults(machine: SmallHost) -> list[dict[str, Any]]:
    found = with_texts(collect(machine, NOW)["boot_faults"])
    assert isinstance(found, list)
    return found


def one(machine: SmallHost) -> tuple[str, str, str, str, str]:
    """The one fault of a host."""
    (found,) = faults(machine)
    assert found["remedy"]
    return found["fault"], found["state"], found["boot"], found["target"], found["why"]


def test_a_sound_host_has_no_fault() -> None:
    assert faults(Machine()) == []


class TestMasks:
    """systemd leaves out the whole of local-fs.target, to which the remount of / belongs."""

    @pytest.mark.parametrize("how", ["null", "empty"])
    @pytest.mark.parametrize("base", [UNITS, "/etc/systemd/system.control"])
    def test_a_masked_mount_of_the_boot_leaves_the_root_read_only(self, base: str, how: str) -> None:
        machine = Machine()
        path = f"{base}/srv-maria.mount"
        if how == "null":
            machine.mask(path)
        else:
            machine.files[path] = ""
        fault, state, boot, target, why = one(machine)
        assert (fault, state, boot, target) == ("masked", "refused", "read_only", "/srv/maria")
        assert why.startswith(f"{path} masks srv-maria.mount, by which /etc/fstab line 5")
        assert faults(machine)[0]["remedy"].startswith("run systemctl unmask srv-maria.mount")

    def test_of_a_managed_one_the_fix_is_to_unmask_it(self) -> None:
        machine = Machine()
        machine.mask(f"{UNITS}/srv-pgdata.mount")
        found = assess(inputs("strict", mounts=["/srv/pgdata"]), collect(machine, NOW), NOW)["settings"]
        rows = [row for row in found if row["persisted"] == "unset" or row["setting"] == "masked"]
        rows = [row for row in rows if not row["phase"]]
        assert {row["setting"] for row in rows} >= {"masked", "barrier"}
        for row in rows:
            assert row["remedy"].startswith("run systemctl unmask srv-pgdata.mount")
            assert "/etc/fstab mounts" not in row["why"]

    def test_a_mask_that_the_boot_does_not_need_is_not_named(self) -> None:
        machine = Machine()
        machine.files["/etc/fstab"] += "UUID=pg /srv/x ext4 noauto 0 0\n"
        for name in ("srv-x.mount", "srv-other.mount", "cups.service", "tmp.mount"):
            machine.mask(f"{UNITS}/{name}")
        machine.mask("/run/systemd/system/srv-pgdata.mount")
        assert faults(machine) == []

    def test_the_mask_of_a_mount_that_the_boot_can_do_without_leaves_that_one_out(self) -> None:
        machine = Machine()
        machine.files["/etc/fstab"] = machine.read("/etc/fstab").replace(
            "maria ext4 defaults", "maria ext4 nofail"
        )
        machine.mask(f"{UNITS}/srv-maria.mount")
        assert one(machine)[:4] == ("masked", "refused", "optional", "/srv/maria")

    @pytest.mark.parametrize(
        ("unit", "boot"),
        [
            ("systemd-remount-fs.service", "read_only"),
            ("local-fs.target", "read_only"),
            ("systemd-udevd.service", "required"),
        ],
    )
    def test_units_that_every_boot_needs(self, unit: str, boot: str) -> None:
        machine = Machine()
        machine.mask(f"{UNITS}/{unit}")
        assert one(machine)[:3] == ("masked", "refused", boot)


LINK = 'KERNEL=="vdb", SYMLINK+="disk/by-uuid/pg"'
HIGH = f'{LINK}, OPTIONS+="link_priority=100"'


class TestRules:
    """Rules of others that move names, or have systemd pass a device over."""

    @pytest.mark.parametrize(
        ("rule", "state"),
        [
            (HIGH, "refused"),
            (HIGH.replace("pg", "$env{X}pg"), "refused"),
            (HIGH.replace("+=", "="), "refused"),
            # Both devices have the same priority, or the rule may match: either may be mounted.
            (LINK, "unknown"),
            (f'PROGRAM="/bin/x", {HIGH}', "unknown"),
        ],
    )
    def test_a_name_that_another_device_takes_is_named(self, rule: str, state: str) -> None:
        machine = Machine()
        machine.files[f"{RULES}/10-mine.rules"] = f"# mine\n{rule}\n"
        found = one(machine)
        assert found[:4] == ("link", state, "required", "/srv/pgdata")
        assert found[4].startswith(f"{RULES}/10-mine.rules line 2 gives vdb the name /dev/disk/by-uuid/pg")

    def test_a_name_that_cannot_be_expanded_may_be_any(self) -> None:
        machine = Machine()
        machine.files[f"{RULES}/10-mine.rules"] = f"{HIGH.replace('pg', '$result')}\n"
        found = faults(machine)
        assert {each["state"] for each in found} == {"unknown"}
        assert "/srv/pgdata" in {each["target"] for each in found}

    def test_it_is_named_also_when_udev_has_applied_the_rule(self) -> None:
        machine = Machine()
        machine.files[f"{RULES}/10-mine.rules"] = f"{HIGH}\n"
        machine.disk("vdb").properties["DEVLINKS"] = "/dev/disk/by-uuid/pg /dev/disk/by-uuid/ma"
        machine.links["/dev/disk/by-uuid/pg"] = "/dev/vdb"
        assert ("link", "refused", "/srv/pgdata") in [
            (found["fault"], found["state"], found["target"]) for found in faults(machine)
        ]

    @pytest.mark.parametrize("tag", ["label", "partuuid", "partlabel"])
    def test_names_of_other_tags(self, tag: str) -> None:
        machine = Machine()
        machine.files["/etc/fstab"] = machine.read("/etc/fstab").replace("UUID=pg", f"{tag.upper()}=pg")
        machine.links[f"/dev/disk/by-{tag}/pg"] = "/dev/sda1"
        machine.files[f"{RULES}/10-mine.rules"] = f"{HIGH.replace('uuid', tag)}\n"
        assert one(machine)[:2] == ("link", "refused")

    @pytest.mark.parametrize(
        "rule",
        [
            'KERNEL=="vdb", SYMLINK+="mine"',
            'KERNEL=="sda1", SYMLINK+="disk/by-uuid/pg"',
            'KERNEL=="vdz", SYMLINK+="disk/by-uuid/pg", OPTIONS+="link_priority=100"',
            'KERNEL=="vdb", SYMLINK+="disk/by-uuid/other"',
            'SUBSYSTEM=="net", NAME="eth7"',
            'KERNEL=="sdc", ENV{SYSTEMD_READY}="0"',
            'KERNEL=="sda1", ENV{SYSTEMD_READY}="1"',
            'KERNEL=="sda*", ENV{UDISKS_IGNORE}="1", OWNER="oracle", MODE="0660"',
            'KERNEL=="sda1", ENV{SYSTEMD_WANTS}+="mine.service", TAG+="systemd"',
        ],
    )
    def test_a_rule_about_something_else_is_not_named(self, rule: str) -> None:
        machine = Machine()
        machine.files[f"{RULES}/99-mine.rules"] = f"{rule}\n"
        assert faults(machine) == []

    def test_rules_of_packages_are_not_named(self) -> None:
        machine = Machine()
        machine.files[f"{PACKAGED}/60-mine.rules"] = f"{HIGH}\n"
        assert faults(machine) == []

    @pytest.mark.parametrize(
        ("rule", "state"),
        [
            ('KERNEL=="sda1", ENV{SYSTEMD_READY}="0"', "refused"),
            ('SUBSYSTEM=="block", ENV{SYSTEMD_READY}="0", KERNEL=="sda1"', "refused"),
            ('KERNEL=="sda1", PROGRAM="/x", ENV{SYSTEMD_READY}="0"', "unknown"),
            ('KERNEL=="sda1", TAG-="systemd"', "refused"),
            ('KERNEL=="sda1", ENV{UDEV_DISABLE_PERSISTENT_STORAGE_RULES_FLAG}="1"', "refused"),
            ('KERNEL=="sda1", SYMLINK-="disk/by-uuid/pg"', "refused"),
            ('KERNEL=="sda1", SYMLINK="mine"', "refused"),
            ('KERNEL=="sda1", ENV{ID_FS_UUID_ENC}="mine"', "unknown"),
        ],
    )
    def test_a_device_that_is_passed_over_is_named(self, rule: str, state: str) -> None:
        machine = Machine()
        machine.files[f"{RULES}/99-zz-mine.rules"] = f"{rule}\n"
        assert one(machine)[:4] == ("link", state, "required", "/srv/pgdata")

    def test_of_two_rules_the_last_one_counts(self) -> None:
        machine = Machine()
        rule = 'KERNEL=="sda1", ENV{SYSTEMD_READY}="%s"\n'
        machine.files[f"{RULES}/99-zz.rules"] = rule % "0" + rule % "1"
        assert faults(machine) == []

    def test_masked_rules_of_the_names_stop_the_boot(self) -> None:
        machine = Machine()
        machine.files[f"{PACKAGED}/60-persistent-storage.rules"] = (
            'SYMLINK+="disk/by-uuid/$env{ID_FS_UUID_ENC}"\n'
        )
        assert faults(machine) == []
        machine.mask(f"{RULES}/60-persistent-storage.rules")
        found = one(machine)
        assert found[:4] == ("rules", "refused", "required", "/srv/pgdata")
        assert f"{RULES}/60-persistent-storage.rules masks" in found[4]

    def test_a_file_in_their_place_has_to_make_the_same_names(self) -> None:
        machine = Machine()
        machine.files[f"{PACKAGED}/60-persistent-storage.rules"] = "x\n"
        machine.files[f"{RULES}/60-persistent-storage.rules"] = (
            'KERNEL=="x", SYMLINK+="disk/by-uuid/$env{A}"\n'
        )
        assert faults(machine) == []
        machine.files[f"{RULES}/60-persistent-storage.rules"] = 'KERNEL=="x", SYMLINK+="disk/by-id/$env{A}"\n'
        assert one(machine)[:2] == ("rules", "unknown")

    def test_rules_of_devices_that_are_not_here_may_be_masked(self) -> None:
        machine = Machine()
        machine.mask(f"{RULES}/60-persistent-storage-dm.rules")
        machine.mask(f"{RULES}/75-net-description.rules")
        assert faults(machine) == []

    def test_rules_that_cannot_be_read_are_unknown(self) -> None:
        machine = Machine()

        def refuse() -> str:
            raise Unobservable("Input/output error")

        machine.files[f"{RULES}/10-mine.rules"] = refuse
        assert (
            "link",
            "unknown",
            'the names that rules of udev make cannot be read: "Input/output error"',
        ) in [(found["fault"], found["state"], found["why"]) for found in faults(machine)]


class TestDrivers:
    def machine(self, text: str = "", path: str = "/etc/modprobe.d/mine.conf") -> Machine:
        """A host whose SATA disks a module drives, and that of its root another one."""
        machine = Machine()
        for name, driver in (("sda", "ahci"), ("vda", "virtio_blk")):
            disk = machine.links[f"/sys/class/block/{name}"]
            above = disk.rpartition("/block/")[0] or disk
            machine.links[f"{above}/driver"] = f"/sys/bus/drivers/{driver}"
            machine.links[f"/sys/bus/drivers/{driver}/module"] = f"/sys/module/{driver}"
            machine.files[f"/sys/module/{driver}/initstate"] = "live\n"
        machine.files["/sys/module/xfs/initstate"] = "live\n"
        if text:
            machine.files[path] = text
        return machine

    @pytest.mark.parametrize(
        ("text", "state", "target"),
        [
            ("blacklist ahci\n", "refused", "/srv/pgdata"),
            ("# a\n  blacklist\tahci # b\n", "refused", "/srv/pgdata"),
            ("install ahci /bin/false\n", "refused", "/srv/pgdata"),
            ("install ahci \\\n /bin/true\n", "refused", "/srv/pgdata"),
            ("install ahci /usr/local/bin/load\n", "unknown", "/srv/pgdata"),
            ("blacklist xfs\n", "refused", "/srv/mssql"),
            # The initramfs loads it as modprobe.d was when it was made.
            ("blacklist virtio-blk\n", "unknown", "/"),
        ],
    )
    def test_a_module_that_is_not_loaded_is_named(self, text: str, state: str, target: str) -> None:
        found = one(self.machine(text))
        assert found[:2] == ("driver", state)
        assert found[3] == target

    def test_a_line_behind_one_that_is_continued_has_its_own_number(self) -> None:
        machine = self.machine("options x \\\n a=1 \\\n b=2\ninstall ahci \\\n /bin/true\n")
        assert one(machine)[4].endswith('by /etc/modprobe.d/mine.conf line 4: "install ahci /bin/true"')

    @pytest.mark.parametrize(
        "text",
        [
            "blacklist pcspkr\n",
            "options ahci mobile_lpm_policy=1\n",
            "install ahci /sbin/modprobe --ignore-install ahci && /bin/logger ahci\n",
            "softdep ahci pre: libahci\n",
            "#blacklist ahci\n",
            "blacklist ext4\n",  # is a part of this kernel
        ],
    )
    def test_another_line_is_not_named(self, text: str) -> None:
        assert faults(self.machine(text)) == []

    def test_a_file_is_replaced_by_one_of_the_same_name(self) -> None:
        machine = self.machine("blacklist ahci\n", "/usr/lib/modprobe.d/mine.conf")
        assert one(machine)[:2] == ("driver", "refused")
        machine.mask("/etc/modprobe.d/mine.conf")
        assert faults(machine) == []

    def test_the_kernel_s_command_line_names_modules_too(self) -> None:
        machine = self.machine()
        machine.files["/proc/cmdline"] = "root=UUID=root ro module_blacklist=floppy,ahci\n"
        found = one(machine)
        assert found[:2] == ("driver", "refused")
        assert found[4].startswith(
            "the next boot does not load the module ahci, the driver of sda1, by the kernel's"
        )
        assert found[4].endswith('line of this boot (/proc/cmdline): "module_blacklist=floppy,ahci"')
        machine.files["/boot/grub/grub.cfg"] = (
            "menuentry 'a' {\n linux /v root=UUID=root ro modprobe.blacklist=ahci\n}\n"
        )
        machine.files["/v"] = "a kernel"
        assert one(machine)[4].endswith('by /boot/grub/grub.cfg line 2: "modprobe.blacklist=ahci"')
        assert faults(machine)[0]["remedy"].startswith(
            "remove that word from the boot loader's entry (grubby"
        )


class TestExtraMounts:
    """systemd.mount-extra=WHAT:WHERE[:FSTYPE[:OPTIONS]] of the next boot."""

    @staticmethod
    def machine(value: str, key: str = "systemd.mount-extra") -> Machine:
        machine = Machine()
        machine.files["/v"] = "a kernel"
        text = f"menuentry 'a' {{\n linux /v root=UUID=root ro {key}={value}\n}}\n"
        machine.files["/boot/grub/grub.cfg"] = text
        machine.files["/srv/data/17/PG_VERSION"] = "17\n"
        return machine

    @pytest.mark.parametrize("key", ["systemd.mount-extra", "systemd.mount_extra"])
    def test_one_over_files_is_named_even_with_nofail(self, key: str) -> None:
        for options in ("noatime", "nofail"):
            found = faults(self.machine(f"/dev/vda1:/srv//data/:ext4:{options}", key))
            assert [(each["cause"], each["state"], each["boot"]) for each in found] == [
                ("extra_mount", "refused", "hides")
            ]
            assert found[0]["why"] == (
                f"/boot/grub/grub.cfg line 2: {key} mounts /dev/vda1 at /srv/data, where files are now"
            )
            assert found[0]["remedy"].startswith(f"remove {key} from the boot")

    def test_what_cannot_be_listed_is_unknown(self) -> None:
        machine = self.machine("/dev/vda1:/srv/data/17/PG_VERSION")
        assert [(each["cause"], each["state"]) for each in faults(machine)] == [("extra_mount", "unknown")]

    @pytest.mark.parametrize("key", ["systemd.mount-extra", "rd.systemd.mount-extra"])
    def test_one_over_a_mount_is_unknown_as_fstab_may_win(self, key: str) -> None:
        root = "/sysroot" if key.startswith("rd.") else ""
        (found,) = faults(self.machine(f"/dev/vda1:{root}/srv/pgdata:ext4", key))
        assert (found["cause"], found["state"], found["target"]) == ("extra_mount", "unknown", "/srv/pgdata")
        assert found["parameters"]["covers"] == "mount"

    @pytest.mark.parametrize(
        "value",
        [
            "/dev/vda1:/srv/empty:ext4",  # is not there
            "/dev/sda1:/srv/pgdata:ext4",  # is mounted there now
            "/dev/vda1:/srv/data:ext4:rw:x",  # systemd passes over five fields
            "/dev/vda1",
            "/dev/vda1:srv/data",
        ],
    )
    def test_others_are_not(self, value: str) -> None:
        assert faults(self.machine(value)) == []

    def test_what_the_initramfs_mounts_for_itself_is_not(self) -> None:
        assert faults(self.machine("/dev/vda1:/srv/data", "rd.systemd.mount-extra")) == []

    def test_its_device_and_options_are_checked_as_those_of_a_line(self) -> None:
        found = faults(self.machine("/dev/sdz9:/srv/new:ext4:nobarier"))
        assert {(each["cause"], each["boot"]) for each in found} == {
            ("no_device", "required"),
            ("unknown_option", "required"),
        }
        assert {each["source"] for each in found} == {"/boot/grub/grub.cfg line 2"}
        assert faults(self.machine("/dev/sdz9:/srv/new:ext4:nofail"))[0]["boot"] == "optional"

    def test_options_of_a_second_mount_of_a_file_system_count(self) -> None:
        machine = self.machine("/dev/sda1:/mnt/second:ext4:nobarrier")
        (mount,) = [each for each in collect(machine, NOW)["mounts"] if each["target"] == "/srv/pgdata"]
        assert mount["persisted"]["barrier"] == "unknown"
        assert mount["evidence"]["persisted.barrier"]["cause"] == "ways_differ"


class TestWords:
    @pytest.mark.parametrize(
        ("word", "key"),
        [
            ("systemd.mask=srv-pgdata.mount", "systemd.mask"),
            ("systemd.mask=systemd-udevd.service", "systemd.mask"),
            ("fstab=no", "fstab"),
            ("systemd.volatile=yes", "systemd.volatile"),
            ("rd.break", "rd.break"),
            ("overlayroot=tmpfs", "overlayroot"),
            ("init=/opt/start", "init"),
            ("systemd.setenv=LD_PRELOAD=libeatmydata.so", "systemd.setenv"),
            ("systemd.run=/opt/once", "systemd.run"),
            ("systemd.mask=durable-dbhost-guard.service", "systemd.mask"),
            ("rd.systemd.mask=sysroot.mount", "rd.systemd.mask"),
            ("fstab=N", "fstab"),
            ("break=mount", "break"),
            ("rd.systemd.unit=emergency.target", "rd.systemd.unit"),
            ("mount.usr=/dev/sdz1", "mount.usr"),
            ("systemd.mask=other.mount", ""),
            ("rd.systemd.mask=plymouth-start.service", ""),
            ("systemd.volatile=0", ""),
            ("systemd.set_credential=passwd.hashed-password.root:x", ""),
            ("fstab=yes", ""),
            ("systemd.volatile=no", ""),
            ("overlayroot=disabled", ""),
            ('overlayroot=""', ""),
            ("overlayroot", ""),
            ("systemd.setenv=LANG=C", ""),
            ("init=/sbin/init", ""),
        ],
    )
    def test_a_word_that_has_the_next_boot_run_otherwise_is_named(self, word: str, key: str) -> None:
        machine = Machine()
        machine.files["/boot/grub/grub.cfg"] = f"menuentry 'a' {{\n linux /v root=UUID=root ro {word}\n}}\n"
        machine.files["/v"] = "a kernel"
        found = faults(machine)
        assert [each["fault"] for each in found] == (["start"] if key else [])
        for each in found:
            assert each["why"].startswith(f"/boot/grub/grub.cfg line 2: {word} ")
            assert each["remedy"].startswith(f"remove {key} from the boot")

    def test_another_usr_than_this_boots_is_named_and_this_boots_own_is_not(self) -> None:
        machine = Machine()
        machine.files["/proc/cmdline"] = "root=UUID=root ro mount.usr=/dev/sdz1 mount.usrflags=noatime\n"
        assert faults(machine) == []
        machine.files["/v"] = "a kernel"
        line = "linux /v root=UUID=root ro mount.usr=/dev/sdz1 mount.usrflags=nobarrier"
        machine.files["/boot/grub/grub.cfg"] = f"menuentry 'a' {{\n {line}\n}}\n"
        (found,) = faults(machine)
        assert (found["cause"], found["parameters"]["key"]) == ("other_root", "mount.usrflags")

    @pytest.mark.parametrize(
        ("name", "key"),
        [
            ("fstab.extra", "systemd.set_credential"),
            ("systemd.unit-dropin.srv-pgdata.mount", "systemd.set-credential"),
            ("udev.rules.99-x", "systemd.set_credential_binary"),
        ],
    )
    def test_a_credential_that_makes_mounts_or_units_is_named_without_its_value(
        self, name: str, key: str
    ) -> None:
        machine = Machine()
        machine.files["/proc/cmdline"] = f'root=UUID=root ro "{key}={name}:geheim"\n'
        (found,) = faults(machine)
        assert (found["cause"], found["state"]) == ("credential", "unknown")
        assert found["parameters"] == {"key": key, "unit": name, "word": f"{key}={name}"}

    def test_a_credential_of_firmware_is_named_and_others_are_not(self) -> None:
        machine = Machine()
        machine.files["/run/credentials/@system/ssh.authorized_keys.root"] = "x"
        assert faults(machine) == []
        machine.files["/run/credentials/@system/tmpfiles.extra"] = "x"
        (found,) = faults(machine)
        assert (found["cause"], found["state"], found["source"]) == (
            "given_credential",
            "unknown",
            "/run/credentials/@system/tmpfiles.extra",
        )

    def test_a_word_of_one_of_the_entries_that_may_be_next_is_unknown(self) -> None:
        machine = Machine()
        machine.files["/v"] = "a kernel"
        for path, word in {
            "/boot/grub/grub.cfg": "quiet",
            "/boot/grub2/grub.cfg": "systemd.volatile=yes",
        }.items():
            machine.files[path] = f"menuentry 'a' {{\n linux /v root=UUID=root ro {word}\n}}\n"
        (found,) = faults(machine)
        assert (found["cause"], found["state"]) == ("other_root", "unknown")
        assert found["source"] == "/boot/grub2/grub.cfg line 2"
        machine.files["/boot/grub/grub.cfg"] = machine.read("/boot/grub2/grub.cfg")
        assert [each["state"] for each in faults(machine)] == ["refused"]

    @pytest.mark.parametrize(
        ("texts", "source"),
        [
            (('overlayroot_cfgdisk="disabled"\noverlayroot="tmpfs"\n', ""), "/etc/overlayroot.conf line 2"),
            (
                ('overlayroot=""\n', "# x\noverlayroot=tmpfs:recurse=0\n"),
                "/etc/overlayroot.local.conf line 2",
            ),
            (("overlayroot=tmpfs\n", "overlayroot=disabled\n"), ""),
            (('overlayroot=""\n#overlayroot="tmpfs"\n', ""), ""),
            (("", ""), ""),
        ],
    )
    def test_an_overlay_over_the_root_by_a_file_is_named(self, texts: tuple[str, str], source: str) -> None:
        machine = Machine()
        paths = ("/etc/overlayroot.conf", "/etc/overlayroot.local.conf")
        machine.files.update(zip(paths, texts))
        assert faults(machine) == []  # Without the package nothing reads the files.
        machine.files["/usr/share/initramfs-tools/scripts/init-bottom/overlayroot"] = "#!/bin/sh\n"
        found = faults(machine)
        assert [each["source"] for each in found] == ([source] if source else [])
        for each in found:
            assert (each["state"], each["boot"]) == ("refused", "required")
            assert each["remedy"] == f'write overlayroot="" in {source}'

    @pytest.mark.parametrize("path", ["/proc/cmdline", "/etc/overlayroot.conf"])
    def test_a_password_of_overlayroot_is_not_shown(self, path: str) -> None:
        machine = Machine()
        word = "overlayroot=crypt:dev=/dev/sdz1,pass=geheim"
        machine.files[path] = f"root=UUID=root ro {word}\n" if path == "/proc/cmdline" else f"{word}\n"
        machine.files["/usr/share/initramfs-tools/scripts/init-bottom/overlayroot"] = "#!/bin/sh\n"
        (found,) = faults(machine)
        assert "overlayroot=crypt has" in found["why"]
        assert "geheim" not in str(found)


class TestStart:
    @pytest.mark.parametrize("target", ["rescue", "emergency", "poweroff"])
    def test_a_default_target_for_repairs_is_named(self, target: str) -> None:
        machine = Machine()
        machine.links[f"{UNITS}/default.target"] = f"/usr/lib/systemd/system/{target}.target"
        machine.files[f"/usr/lib/systemd/system/{target}.target"] = "[Unit]\n"
        found = one(machine)
        assert found[:3] == ("start", "refused", "required")
        assert found[4].startswith(f"{UNITS}/default.target has the next boot start {target}.target")
        assert faults(machine)[0]["remedy"] == "run systemctl set-default multi-user.target"

    def test_a_default_target_that_is_masked_or_gone_is_named(self) -> None:
        machine = Machine()
        machine.links[f"{UNITS}/default.target"] = "/usr/lib/systemd/system/gone.target"
        assert one(machine)[:2] == ("start", "refused")
        machine.mask(f"{UNITS}/default.target")
        assert one(machine)[:2] == ("start", "refused")

    @pytest.mark.parametrize(
        ("words", "is_named"),
        [
            ("systemd.unit=rescue.target", True),
            ("systemd.unit=emergency.target quiet", True),
            ("single", True),
            ("init=/bin/sh", True),
            ("systemd.unit=rescue.target systemd.unit=multi-user.target", False),
            ("quiet splash init=/lib/systemd/systemd", False),
        ],
    )
    def test_the_command_line_of_the_next_boot_chooses_the_target(self, words: str, is_named: bool) -> None:
        machine = Machine()
        machine.files["/boot/grub/grub.cfg"] = f"menuentry 'a' {{\n linux /v root=UUID=root ro {words}\n}}\n"
        machine.files["/v"] = "a kernel"
        found = faults(machine)
        assert [each["fault"] for each in found] == (["start"] if is_named else [])
        for each in found:
            assert each["source"] == "/boot/grub/grub.cfg line 2"
            assert each["why"].startswith("/boot/grub/grub.cfg line 2 has the next boot start ")
            assert each["remedy"].startswith(
                "remove systemd.unit=, init= and options for repairs from the boot"
            )

    def test_the_place_of_an_entry_of_the_specification_is_its_line_of_options(self) -> None:
        machine = Machine()
        path = "/boot/loader/entries/a.conf"
        machine.files[path] = "title a\nlinux /v\n# x\noptions root=UUID=root single\n"
        machine.files["/boot/v"] = "a kernel"
        assert [each["source"] for each in faults(machine)] == [f"{path} line 4"]

    def test_without_a_boot_loader_it_is_that_of_this_boot(self) -> None:
        machine = Machine()
        machine.files["/proc/cmdline"] = "root=UUID=root ro single\n"
        assert one(machine)[4].startswith("the kernel's command line of this boot (/proc/cmdline) has")

    def test_others_targets_are_not_named(self) -> None:
        machine = Machine()
        machine.links[f"{UNITS}/default.target"] = "/usr/lib/systemd/system/multi-user.target"
        assert faults(machine) == []


SERVICE = "[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\nExecStart=/opt/mine\n[Install]\nRequiredBy=local-fs.target\n"
SHOW = (
    "systemctl",
    "show",
    "--property=ActiveState,Result,ExecMainStartTimestampMonotonic",
    "--",
    "mine.service",
)


class TestRequirements:
    def machine(self, of: str = "local-fs.target", said: str = "inactive success 42") -> Machine:
        """A host with a service that a unit requires; `said` is what systemd has for it."""
        machine = Machine()
        machine.files[f"{UNITS}/mine.service"] = SERVICE
        machine.links[f"{UNITS}/{of}.requires/mine.service"] = f"{UNITS}/mine.service"
        names = ("ActiveState", "Result", "ExecMainStartTimestampMonotonic")
        machine.commands[SHOW] = "".join(f"{name}={word}\n" for name, word in zip(names, said.split()))
        return machine

    @pytest.mark.parametrize(
        "said", ["failed exit-code 42", "inactive success 0", "activating success 0", "inactive timeout 42"]
    )
    @pytest.mark.parametrize("of", ["local-fs.target", "srv-pgdata.mount", "sysinit.target"])
    def test_a_service_that_mounts_wait_for_and_that_did_not_start_is_named(self, of: str, said: str) -> None:
        found = one(self.machine(of, said))
        assert found[:3] == ("requires", "unknown", "undecided")
        assert found[4].startswith(
            f"{UNITS}/{of}.requires/mine.service has {of} wait for mine.service, and at this boot systemd reports"
        )

    @pytest.mark.parametrize("said", ["inactive success 42", "active success 42", "active success 0"])
    def test_one_that_started_at_this_boot_is_not_named(self, said: str) -> None:
        assert faults(self.machine(said=said)) == []

    def test_one_that_was_changed_since_is_named(self) -> None:
        machine = self.machine()
        machine.changed.add(f"{UNITS}/mine.service")
        assert "was changed after this boot" in one(machine)[4]

    def test_one_that_is_gone_or_masked_is_named(self) -> None:
        machine = self.machine()
        del machine.files[f"{UNITS}/mine.service"]
        assert "has no file" in one(machine)[4]
        link = f"{UNITS}/local-fs.target.requires/mine.service"
        assert faults(machine)[0]["remedy"] == f"remove {link}"
        machine.mask(f"{UNITS}/mine.service")
        # A link to a masked unit is a mask, too; a drop-in names the unit itself.
        assert faults(machine) == []
        machine.files[f"{UNITS}/local-fs.target.d/mine.conf"] = "[Unit]\nRequires=mine.service\n"
        assert "is masked" in one(machine)[4]
        assert faults(machine)[0]["remedy"] == "run systemctl unmask mine.service"
        del machine.links[f"{UNITS}/mine.service"]
        del machine.links[link]
        assert (
            faults(machine)[0]["remedy"]
            == f"remove mine.service from {UNITS}/local-fs.target.d/mine.conf line 2"
        )

    @pytest.mark.parametrize("key", ["Requires", "Requisite", "BindsTo"])
    def test_a_drop_in_requires_as_well(self, key: str) -> None:
        machine = self.machine(said="failed exit-code 42")
        del machine.links[f"{UNITS}/local-fs.target.requires/mine.service"]
        assert faults(machine) == []
        path = f"{UNITS}/srv-pgdata.mount.d/mine.conf"
        machine.files[path] = f"# mine\n[Unit]\n{key}=\\\n  mine.service\n"
        found = one(machine)
        assert found[3] == "/srv/pgdata"
        assert found[4].startswith(
            f"{path} line 3 has srv-pgdata.mount wait for mine.service, and at this boot"
        )
        cure = (
            f"correct what journalctl -b -u mine.service shows, or have {path} line 3 want mine.service instead of requiring it"
            " (Wants=, WantedBy=)"
        )
        assert faults(machine)[0]["remedy"] == cure
        machine.files[path] = f"[Unit]\n[X-Unit]\n{key}=mine.service\n"
        assert faults(machine) == []

    def test_a_drop_in_that_was_changed_since_is_named(self) -> None:
        machine = self.machine()
        del machine.links[f"{UNITS}/local-fs.target.requires/mine.service"]
        path = f"{UNITS}/srv-pgdata.mount.d/mine.conf"
        machine.files[path] = "[Unit]\nRequires=mine.service\n"
        assert faults(machine) == []
        machine.changed.add(path)
        assert f"and {path} was changed after this boot" in one(machine)[4]

    def test_a_condition_of_a_mount_is_named(self) -> None:
        machine = Machine()
        machine.files[f"{UNITS}/srv-pgdata.mount.d/mine.conf"] = "[Unit]\nConditionPathExists=/x\n"
        found = one(machine)
        path = f"{UNITS}/srv-pgdata.mount.d/mine.conf line 2"
        assert found[:2] == ("requires", "unknown")
        assert found[4] == f"{path} starts srv-pgdata.mount only if ConditionPathExists=/x holds"
        assert faults(machine)[0]["remedy"] == f"remove ConditionPathExists=/x from {path}"

    def test_what_is_only_wanted_or_is_of_systemd_is_not_named(self) -> None:
        machine = Machine()
        machine.files[f"{UNITS}/mine.service"] = SERVICE
        machine.links[f"{UNITS}/local-fs.target.wants/mine.service"] = f"{UNITS}/mine.service"
        machine.files[f"{UNITS}/srv-pgdata.mount.d/mine.conf"] = (
            "[Unit]\nWants=mine.service\nAfter=mine.service\n"
        )
        own = "systemd-fsck@dev-sdb1.service"
        machine.files[f"/usr/lib/systemd/system/{own}"] = SERVICE
        machine.links[f"{UNITS}/local-fs.target.requires/{own}"] = f"/usr/lib/systemd/system/{own}"
        assert faults(machine) == []


GENERATORS = "/etc/systemd/system-generators"


class TestGenerators:
    @pytest.mark.parametrize("directory", [GENERATORS, "/usr/local/lib/systemd/system-generators"])
    @pytest.mark.parametrize(
        "text",
        [
            "#!/bin/sh\necho '[Mount]' > $1/srv-pgdata.mount.d/x.conf\n",
            "#!/bin/sh\necho ExecStartPost=mysql > $1/x.service\n",
            "\udc7fELF\0\0",
        ],
    )
    def test_one_that_may_change_a_mount_or_a_server_is_unknown(self, directory: str, text: str) -> None:
        machine = Machine()
        machine.program(f"{directory}/mine", text)
        found = one(machine)
        assert found[:2] == ("generator", "unknown")
        assert found[4].startswith(f"{directory}/mine is a generator")

    def test_harmless_ones_are_not_named(self) -> None:
        machine = Machine()
        machine.program("/usr/lib/systemd/system-generators/lvm2-activation", "\udc7fELF\0")
        machine.program(
            f"{GENERATORS}/mine", "#!/bin/sh\n# mounts nothing\necho '[Unit]' > $1/hello.service\n"
        )
        machine.files[f"{GENERATORS}/README"] = "mount\n"
        machine.mask(f"{GENERATORS}/systemd-gpt-auto-generator")
        assert faults(machine) == []

    def test_one_in_the_place_of_a_packaged_one_is_unknown(self) -> None:
        machine = Machine()
        machine.program("/usr/lib/systemd/system-generators/hello", "\udc7fELF\0")
        machine.program(f"{GENERATORS}/hello", "#!/bin/sh\n:\n")
        assert one(machine)[:2] == ("generator", "unknown")

    def test_a_mask_of_the_generator_of_fstab_is_named(self) -> None:
        machine = Machine()
        machine.mask(f"{GENERATORS}/systemd-fstab-generator")
        assert one(machine)[:3] == ("generator", "refused", "read_only")
