# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rootflags= of the next boot: what each entry of the boot loader says, held against this boot."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.observation import Undecided
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.storage import boot_loader, causes

from ..fakes.fake_host import FakeHost

NOW = "BOOT_IMAGE=/vmlinuz-6.1 root=UUID=aaaa ro rootflags=commit=9,barrier=1 quiet\n"
LINE = "root=UUID=aaaa ro rootflags=commit=9,barrier=1 quiet $vt_handoff"
GRUB_CFG = """
set default="${saved_entry}"
password_pbkdf2 root grub.pbkdf2.sha512.10000.0123
menuentry 'Debian' --class debian {
\tinsmod ext2
\tlinux\t/boot/vmlinuz-6.1 %s
\tinitrd\t/boot/initrd.img-6.1
}
menuentry 'Debian (recovery mode)' {
\tlinux\t/boot/vmlinuz-6.1 root=UUID=aaaa ro single
}
menuentry 'Another system' {
\tlinux\t/boot/vmlinuz-5.4 root=UUID=bbbb ro rootflags=barrier=0
}
"""


def host(files: dict[str, str]) -> FakeHost:
    """A host whose boot had rootflags, and these files."""
    found = FakeHost()
    found.files["/proc/cmdline"] = NOW
    found.files.update(files)
    return found


def of_the_next(files: dict[str, str]) -> boot_loader.Rootflags:
    """What the next boot of a host with these files has."""
    return boot_loader.of_the_next(host(files))


def test_without_a_boot_loader_they_are_those_of_this_boot() -> None:
    assert of_the_next({}) == (("commit=9", "barrier=1"), "rootflags of this boot")


def test_entries_that_agree_are_those_of_the_next_boot() -> None:
    """Neither an entry for repairs nor that of another system has a say."""
    found = of_the_next({"/boot/grub/grub.cfg": GRUB_CFG % LINE})
    assert found == (("commit=9", "barrier=1"), "rootflags of /boot/grub/grub.cfg line 6")


@pytest.mark.parametrize(
    ("line", "options"),
    [
        (LINE.replace("barrier=1", "barrier=0"), ("commit=9", "barrier=0")),
        ("root=UUID=aaaa ro quiet", ()),
        (f"{LINE} rootflags=nobarrier", ("nobarrier",)),
        ("root=/dev/vda1 ro rootflags=barrier=0", ("barrier=0",)),
    ],
)
def test_the_entry_that_boots_by_default_decides(line: str, options: tuple[str, ...]) -> None:
    found = of_the_next({"/boot/grub/grub.cfg": GRUB_CFG % line})
    assert found == (options, "rootflags of /boot/grub/grub.cfg line 6")


def test_of_several_rootflags_an_initramfs_with_systemd_takes_all() -> None:
    line = "root=UUID=aaaa ro rootflags=nobarrier rootflags=commit=5"
    with pytest.raises(Undecided) as refused:
        of_the_next({"/boot/grub/grub.cfg": GRUB_CFG % line})
    assert refused.value.because.cause == "rootflags_differ"
    same = "root=UUID=aaaa ro rootflags=commit=9 rootflags=barrier=0"
    assert of_the_next({"/boot/grub/grub.cfg": GRUB_CFG % same}).options == ("barrier=0",)


@pytest.mark.parametrize(
    ("now", "line", "is_ours"),
    [
        ("LABEL=root", "LABEL=other", False),
        ("PARTUUID=0a-01", "PARTUUID=0A-01", True),
        ("PARTUUID=0a-01", "PARTUUID=0a-02", False),
        ("ZFS=rpool/ROOT/a", "ZFS=rpool/ROOT/b", False),
        ("/dev/mapper/vg-root", "/dev/mapper/vg-other", False),
        # These can be one device.
        ("/dev/vg/root", "/dev/mapper/vg-root", True),
        ("/dev/vda1", "UUID=aaaa", True),
    ],
)
def test_an_entry_of_another_root_by_any_name_is_another_systems(now: str, line: str, is_ours: bool) -> None:
    machine = host({"/boot/grub/grub.cfg": GRUB_CFG % f"root={line} ro rootflags=barrier=1"})
    machine.files["/proc/cmdline"] = f"root={now} ro rootflags=barrier=1\n"
    if is_ours:
        assert boot_loader.of_the_next(machine).options == ("barrier=1",)
        return
    with pytest.raises(Undecided) as refused:
        boot_loader.of_the_next(machine)
    assert refused.value.because.cause == "other_system"


STORED = [
    ("/etc/dracut.conf.d/x.conf", 'kernel_cmdline+=" rootflags=nobarrier "', "root=UUID=aaaa ro"),
    ("/etc/dracut.conf", "kernel_cmdline='quiet rootflags=data=writeback'", "root=UUID=aaaa ro"),
    ("/etc/initramfs-tools/conf.d/x", 'ROOTFLAGS="-o nobarrier"', "root=UUID=aaaa ro"),
    ("/etc/initramfs-tools/initramfs.conf", "export ROOTFLAGS=-onobarrier", "root=UUID=aaaa ro"),
    ("/etc/default/grub", 'GRUB_CMDLINE_LINUX_DEFAULT="quiet rootflags=barrier=0"', LINE),
    ("/etc/default/grub.d/x.cfg", 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX rootflags=nobarrier"', LINE),
]


@pytest.mark.parametrize(("path", "text", "line"), STORED)
def test_what_the_next_update_makes_of_the_root_is_unknown(path: str, text: str, line: str) -> None:
    files = {"/boot/grub/grub.cfg": GRUB_CFG % line, path: f"# made by hand\n{text}\n"}
    with pytest.raises(Undecided) as refused:
        of_the_next(files)
    assert refused.value.because.cause == "rootflags_differ"
    assert refused.value.because.parameters["entries"][0] == f"{path} line 2 (at its next update)"
    of_the_next({**files, path: f"# {text}\n"})


@pytest.mark.parametrize(
    ("path", "text"),
    [
        # The command line of the entry has rootflags=, which counts.
        ("/etc/dracut.conf.d/x.conf", 'kernel_cmdline="rootflags=nobarrier"'),
        ("/etc/initramfs-tools/conf.d/x", 'ROOTFLAGS="-o nobarrier"'),
        ("/etc/dracut.conf.d/x.txt", 'kernel_cmdline="rootflags=nobarrier"'),
        ("/etc/default/grub", 'GRUB_CMDLINE_LINUX="rootflags=barrier=1,subvol=@"'),
        ("/etc/default/grub", 'GRUB_CMDLINE_LINUX="quiet splash"'),
        ("/etc/default/grub", 'GRUB_CMDLINE_XEN="rootflags=nobarrier"'),
    ],
)
def test_what_the_next_update_leaves_changes_nothing(path: str, text: str) -> None:
    found = of_the_next({"/boot/grub/grub.cfg": GRUB_CFG % LINE, path: f"{text}\n"})
    assert found.options == ("commit=9", "barrier=1")


def entry(options: str, **more: str) -> str:
    """An entry of the Boot Loader Specification."""
    fields = "".join(f"{key.replace('_', '-')} {value}\n" for key, value in more.items())
    return f"title Debian\n{fields}options {options}\nlinux /vmlinuz\n"


OTHER = LINE.replace("barrier=1", "nobarrier")
BLSCFG = 'set default="${saved_entry}"\ninsmod blscfg\nblscfg\n'
ETC = "/boot/loader/entries"


@pytest.mark.parametrize("directory", boot_loader.ENTRIES)
def test_entries_of_the_boot_loader_specification_are_read(directory: str) -> None:
    path = f"{directory}/debian-6.1.conf"
    assert of_the_next({path: entry(OTHER, version="6.1")}) == (
        ("commit=9", "nobarrier"),
        f"rootflags of {path} line 3",
    )


def blscfg(environment: str = "", **texts: str) -> boot_loader.Rootflags:
    """The next boot of a host with GRUB and entries, by the versions in their names."""
    prefix = "0123456789abcdef-4.18.0-"
    files = {f"{ETC}/{prefix}{name.replace('_', '.')}.conf": text for name, text in texts.items()}
    files["/boot/grub2/grub.cfg"] = BLSCFG
    files["/boot/grub2/grubenv"] = f"# GRUB Environment Block\n{environment}"
    return of_the_next(files)


def test_the_newest_entry_is_next_in_the_order_of_versions() -> None:
    """As text, 553.8.1 is behind 553.16.1."""
    assert blscfg(**{"553_8_1": entry(OTHER), "553_16_1": entry(LINE)}).options[-1] == "barrier=1"
    assert blscfg(**{"553_8_1": entry(LINE), "553_16_1": entry(OTHER)}).options[-1] == "nobarrier"


def test_grub_reads_an_entry_up_to_a_line_without_a_value_and_one_line_of_options() -> None:
    """The specification and systemd-boot take all of them."""
    first = entry(LINE)
    for text, last in (
        (f"{first}options rootflags=nobarrier\n", "barrier=1"),
        (f"title\n{first}", "nobarrier"),
    ):
        assert blscfg(**{"553_8_1": text, "553_7_1": entry(OTHER)}).options[-1] == last
    of_loader = {"/efi/loader/entries/a.conf": f"{first}\noptions rootflags=nobarrier\n"}
    assert of_the_next({**of_loader, "/efi/loader/loader.conf": "timeout 3\n"}).options[-1] == "nobarrier"


def test_the_saved_entry_is_next() -> None:
    saved = "saved_entry=0123456789abcdef-4.18.0-553.8.1\n"
    texts = {"553_8_1": entry(OTHER), "553_16_1": entry(LINE)}
    assert blscfg(saved, **texts).options[-1] == "nobarrier"
    assert blscfg("saved_entry=1\n", **texts).options[-1] == "nobarrier"
    # One that is not there any more leaves the newest.
    assert blscfg("saved_entry=gone\n", **texts).options[-1] == "barrier=1"


@pytest.mark.parametrize(
    ("saved", "by_name", "by_number"),
    [
        ("1id", "commit=2", "commit=2"),
        ("0id", "commit=1", "commit=3"),
        ("0x1id", "commit=3", "commit=2"),
        ("010", "commit=3", "commit=3"),
        ("9id", "commit=3", "commit=3"),
    ],
)
def test_a_default_that_begins_with_digits_is_a_number_without_red_hats_patch(
    saved: str, by_name: str, by_number: str
) -> None:
    """As the name of an entry does that kernel-install(8) made: it begins with the machine ID."""
    entries = {
        f"{ETC}/{name}.conf": entry(f"root=UUID=aaaa rootflags=commit={n}") for n, name in _IDS.items()
    }
    for directory, option in (("grub2", by_name), ("grub", by_number)):
        files = {
            f"/boot/{directory}/grub.cfg": BLSCFG,
            f"/boot/{directory}/grubenv": f"saved_entry={saved}\n",
        }
        assert of_the_next({**entries, **files}).options == (option,)


#: In the menu's order, from the last row.
_IDS = {1: "0id", 2: "1id", 3: "2id"}


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("m-6.12.9-amd64", "m-6.12.10-amd64"),
        ("m-6.12~rc1-amd64", "m-6.12-amd64"),
        ("m-6.12-amd64", "m-6.12.1-amd64"),
        ("m-6a", "m-6-a"),
        ("9-amd64", "debian"),
        ("m-amd64.bak", "m-amd64"),
        ("m-amd64", "m-amd64.old"),
        ("m-amd64", "m-amd64.1"),
    ],
)
def test_without_red_hats_patches_grub_compares_whole_file_names(older: str, newer: str) -> None:
    files = {
        f"{ETC}/{older}.conf": entry(OTHER, version="9"),
        f"{ETC}/{newer}.conf": entry(LINE, version="1"),
    }
    assert of_the_next({**files, "/boot/grub/grub.cfg": BLSCFG}).options[-1] == "barrier=1"


def test_name_and_version_that_disagree_about_the_newest_leave_it_unknown() -> None:
    texts = {"553_8_1": entry(OTHER, version="2"), "553_16_1": entry(LINE, version="1")}
    with pytest.raises(Undecided, match="rootflags_differ") as error:
        blscfg(**texts)
    said = causes.text(error.value.because.as_dict())
    assert "Fix: choose the entry that boots by default (grub2-set-default," in said
    assert "Leave entries of snapshots and of other systems unchanged" in said
    texts["553_8_1"] = entry(LINE, version="2")
    assert blscfg(**texts).options[-1] == "barrier=1"


def test_a_rescue_entry_is_not_assessed() -> None:
    assert blscfg(**{"553_8_1": entry(LINE), "0-rescue": entry(OTHER)}).options[-1] == "barrier=1"
    name = f"{ETC}/m-0-rescue.conf"
    files = {
        f"{ETC}/m-6.1.conf": entry(LINE),
        name: entry(OTHER),
        "/boot/loader/loader.conf": "default @saved\n",
    }
    assert of_the_next(files).options[-1] == "barrier=1"


@pytest.mark.parametrize(
    "name",
    [
        "/boot/grub2/grubenv",
        "/boot/grub2/grub.cfg",
        "/boot/efi/EFI/redhat/grubenv",
        "/boot/efi/EFI/redhat/grub.cfg",
    ],
)
def test_options_in_a_variable_are_filled_in(name: str) -> None:
    said = "root=UUID=aaaa ro rootflags=commit=9,nobarrier"
    text = f"kernelopts={said}\n" if name.endswith("env") else f'  set kernelopts="{said}"\n{BLSCFG}'
    files = {f"{ETC}/el8.conf": entry("$kernelopts $tuned_params"), name: text}
    assert of_the_next(files).options == ("commit=9", "nobarrier")


def test_blscfg_adds_a_blank_to_a_value_and_knows_no_braces() -> None:
    environment = f"kernelopts={LINE}\nflags=rootflags=commit=5\n"
    files = {"/boot/grub2/grub.cfg": BLSCFG, "/boot/grub2/grubenv": environment}
    flags = {f"{ETC}/el8.conf": entry("$kernelopts $flags,nobarrier")}
    assert of_the_next({**files, **flags}).options == ("commit=5",)
    braces = {f"{ETC}/el8.conf": entry("${kernelopts}")}
    with pytest.raises(Unobservable, match=r"no_command_line .*variable: kernelopts"):
        of_the_next({**files, **braces})
    braces = {f"{ETC}/el8.conf": entry("$kernelopts rootflags=${flags}")}
    assert of_the_next({**files, **braces}).options == ("commit=9", "barrier=1")


def test_a_variable_with_the_command_line_that_nothing_sets_leaves_it_unknown() -> None:
    """Read as empty, it would say that the root has no options."""
    files = {f"{ETC}/el8.conf": entry("$kernelopts $tuned_params"), "/boot/grub2/grub.cfg": BLSCFG}
    with pytest.raises(Unobservable, match=r"no_command_line .*el8\.conf line 2; variable: kernelopts"):
        of_the_next(files)


def test_of_a_variable_the_environment_of_grub_goes_before_its_configuration() -> None:
    text = f'if [ -z "${{kernelopts}}" ]; then\n  set kernelopts="{OTHER}"\nfi\n{BLSCFG}'
    files = {f"{ETC}/el8.conf": entry("$kernelopts"), "/boot/grub2/grub.cfg": text}
    assert of_the_next(files).options[-1] == "nobarrier"
    assert of_the_next({**files, "/boot/grub2/grubenv": f"kernelopts={LINE}\n"}).options[-1] == "barrier=1"
    # Two environments, of which one counts.
    two = {"/boot/grub2/grubenv": f"kernelopts={LINE}\n", "/boot/grub/grubenv": f"kernelopts={OTHER}\n"}
    with pytest.raises(Unobservable, match="rootflags_differ"):
        of_the_next({**files, **two})


SUBMENU = """
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
else
   set default="%s"
fi
menuentry 'Debian' --class os $menuentry_id_option 'simple' {
\tlinux\t/vmlinuz-6.2 root=UUID=aaaa ro rootflags=nobarrier
}
submenu 'Advanced options' $menuentry_id_option 'advanced' {
\tmenuentry 'Debian, 6.2' $menuentry_id_option 'of-6.2' {
\t\tlinux\t/vmlinuz-6.2 root=UUID=aaaa ro rootflags=commit=1
\t}
\tmenuentry 'Debian, 6.1' --id 'of-6.1' {
\t\tif [ x = y ]; then
\t\t  search a
\t\tfi
\t\tlinux\t/vmlinuz-6.1 root=UUID=aaaa ro rootflags=commit=2
\t}
}
"""


@pytest.mark.parametrize(
    ("default", "option"),
    [
        ("0", "nobarrier"),
        ("simple", "nobarrier"),
        ("Debian", "nobarrier"),
        ("advanced>of-6.1", "commit=2"),
        ("1>0", "commit=1"),
        ("Advanced options>Debian, 6.1", "commit=2"),
        ("1>9", "commit=1"),
        # Of a submenu, a name counts behind its own name alone.
        ("of-6.1", "nobarrier"),
        ("gone", "nobarrier"),
        ("7", "nobarrier"),
        ("", "nobarrier"),
        ("${saved_entry}", "commit=2"),
    ],
)
def test_a_default_names_an_entry_by_place_title_or_id(default: str, option: str) -> None:
    files = {
        "/boot/grub/grub.cfg": SUBMENU % default,
        "/boot/grub/grubenv": "saved_entry=advanced>of-6.1\nnext_entry=\n",
    }
    assert of_the_next(files).options == (option,)


def test_an_entry_for_the_next_boot_alone_goes_before_the_default() -> None:
    files = {"/boot/grub/grub.cfg": SUBMENU % "0", "/boot/grub/grubenv": "next_entry=advanced>of-6.1\n"}
    assert of_the_next(files).options == ("commit=2",)


def test_a_submenu_as_the_default_leaves_its_entries() -> None:
    with pytest.raises(Unobservable, match="rootflags_differ"):
        of_the_next({"/boot/grub/grub.cfg": SUBMENU % "advanced"})


SUBVOLUME = "root=UUID=aaaa ro rootflags=subvol=%s"


def on_btrfs(now: str, default: str, *texts: str) -> boot_loader.Rootflags:
    """The next boot of a host with its root in a subvolume, and an entry for each of some others."""
    menu = "".join(f"menuentry '{number}' {{\n linux /v {text}\n}}\n" for number, text in enumerate(texts))
    found = host({"/boot/grub/grub.cfg": f'set default="{default}"\n{menu}'})
    found.files["/proc/cmdline"] = SUBVOLUME % now
    return boot_loader.of_the_next(found)


def test_entries_of_snapshots_are_other_systems() -> None:
    """All entries with one subvolume would take the way back to a snapshot away."""
    now, snapshot = SUBVOLUME % "@", SUBVOLUME % "@/.snapshots/7/snapshot"
    assert on_btrfs("@", "0", now, snapshot).options == ("subvol=@",)
    # Also if which one is next is unknown, here of a submenu.
    assert on_btrfs("/@", "0", f"{now},noatime").options == ("subvol=@", "noatime")


def test_a_default_that_starts_another_subvolume_or_root_leaves_the_next_boot_unknown() -> None:
    snapshot = SUBVOLUME % "@/.snapshots/7/snapshot"
    for other in (snapshot, "root=UUID=bbbb ro rootflags=subvol=@"):
        with pytest.raises(Unobservable, match=r"other_system .*cfg line 3"):
            on_btrfs("@", "0", other, SUBVOLUME % "@")


def loader(conf: str, **texts: str) -> boot_loader.Rootflags:
    """The next boot of a host with systemd-boot."""
    files = {f"/efi/loader/entries/{name}.conf": text for name, text in texts.items()}
    return of_the_next({**files, "/efi/loader/loader.conf": conf})


def test_systemd_boot_takes_its_default_or_the_newest_entry() -> None:
    texts = {
        "a": entry(OTHER, sort_key="debian", version="6.9"),
        "b": entry(LINE, sort_key="debian", version="6.10"),
    }
    assert loader("timeout 3\n", **texts).options[-1] == "barrier=1"
    assert loader("#default b*\ndefault a*\n", **texts).options[-1] == "nobarrier"
    assert loader("default A.conf\n", **texts).options[-1] == "nobarrier"
    # A pattern that nothing is like leaves the newest.
    assert loader("default gone\n", **texts).options[-1] == "barrier=1"
    with pytest.raises(Unobservable, match="rootflags_differ"):
        loader("default @saved\n", **texts)


def test_an_entry_of_systemd_boot_without_tries_is_last() -> None:
    texts = {"a-2+0-3": entry(OTHER), "a-1": entry(LINE)}
    assert loader("", **texts).options[-1] == "barrier=1"


def test_systemd_boot_sorts_by_sort_key_before_the_version() -> None:
    texts = {
        "a": entry(LINE, sort_key="debian", version="9"),
        "b": entry(OTHER, sort_key="arch", version="1"),
        "c": entry(LINE),
    }
    assert loader("", **texts).options[-1] == "nobarrier"


def test_an_entry_that_starts_no_linux_is_none() -> None:
    texts = {"a": entry(OTHER), "z": "title Another system\nefi /EFI/other.efi\n"}
    assert loader("", **texts).options[-1] == "nobarrier"


def test_where_a_unified_kernel_sorts_is_unknown() -> None:
    files = {"/efi/loader/entries/z.conf": entry(LINE), "/efi/loader/loader.conf": "timeout 3\n"}
    files["/efi/EFI/Linux/a.efi"] = "MZ"
    with pytest.raises(Unobservable, match=r"\(of /efi/EFI/Linux/a.efi\)"):
        of_the_next({**files, CMDLINE: OTHER})
    files["/efi/loader/loader.conf"] = "default z.conf\n"
    with pytest.raises(Unobservable, match=r"next kernel that is installed"):
        of_the_next({**files, CMDLINE: OTHER})
    assert of_the_next({**files, CMDLINE: LINE}).options[-1] == "barrier=1"


@pytest.mark.parametrize("name", ["EntryOneShot", "EntryDefault"])
def test_what_systemd_boot_has_in_the_firmware_goes_before_its_file(name: str) -> None:
    texts = {"a": entry(OTHER), "b": entry(LINE)}
    files = {f"/efi/loader/entries/{name}.conf": text for name, text in texts.items()}
    files["/efi/loader/loader.conf"] = "default b*\n"
    variable = f"/sys/firmware/efi/efivars/Loader{name}-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
    said = b"\x07\0\0\0" + "a.conf\0".encode("utf-16-le")
    assert of_the_next({**files, variable: said.decode("latin-1")}).options[-1] == "nobarrier"


CMDLINE = "/etc/kernel/cmdline"


def test_the_command_line_of_the_next_kernel_has_to_agree() -> None:
    files = {f"{ETC}/el9.conf": entry(LINE), "/boot/grub2/grub.cfg": BLSCFG}
    assert of_the_next({**files, CMDLINE: f"{LINE}\n"}).options[-1] == "barrier=1"
    with pytest.raises(Unobservable, match=r"/etc/kernel/cmdline \(for the next kernel that is installed\)"):
        of_the_next({**files, CMDLINE: f"{OTHER}\n"})
    # GRUB's own menu is made without that file.
    assert of_the_next({"/boot/grub/grub.cfg": GRUB_CFG % LINE, CMDLINE: OTHER}).options[-1] == "barrier=1"


def test_the_command_line_of_the_next_kernel_has_its_variables_filled_in() -> None:
    files = {f"{ETC}/sid.conf": entry("$kernelopts"), "/boot/grub/grub.cfg": BLSCFG, CMDLINE: "$kernelopts\n"}
    assert of_the_next({**files, "/boot/grub/grubenv": f"kernelopts={LINE}\n"}).options[-1] == "barrier=1"


def test_a_comment_in_the_command_line_of_the_next_kernel_may_be_options() -> None:
    """kernel-install(8) takes it as such before systemd 257."""
    files = {f"{ETC}/el9.conf": entry(LINE), "/boot/grub2/grub.cfg": BLSCFG}
    assert of_the_next({**files, CMDLINE: f"  # By hand.\n{LINE}\n"}).options[-1] == "barrier=1"
    for text in (f"{LINE}\n# rootflags=nobarrier\n", f"# {OTHER}\n{LINE.split()[0]}\n"):
        with pytest.raises(Unobservable, match="next kernel that is installed"):
            of_the_next({**files, CMDLINE: text})


def test_a_unified_kernel_has_the_command_line_of_that_file() -> None:
    image = {"/efi/EFI/Linux/debian-6.1.efi": "MZ"}
    assert of_the_next(image).options == ("commit=9", "barrier=1")
    assert of_the_next({**image, CMDLINE: OTHER}).options == ("commit=9", "nobarrier")
    with pytest.raises(Unobservable, match="rootflags_differ"):
        of_the_next({**image, CMDLINE: f"# {LINE}\n{OTHER.split()[0]}"})


def test_install_conf_names_another_place_of_entries() -> None:
    files = {"/etc/kernel/install.conf": "layout=bls\nBOOT_ROOT=/xboot\n"}
    files["/xboot/loader/entries/a.conf"] = entry(OTHER)
    assert of_the_next(files).options[-1] == "nobarrier"


@pytest.mark.parametrize(("is_efi", "option"), [(True, "barrier=0"), (False, "barrier=1")])
def test_of_two_menus_the_firmware_s_kind_of_boot_reads_one(is_efi: bool, option: str) -> None:
    files = {
        "/boot/grub2/grub.cfg": GRUB_CFG % LINE,
        "/boot/efi/EFI/redhat/grub.cfg": GRUB_CFG % LINE.replace("barrier=1", "barrier=0"),
        **({"/sys/firmware/efi/fw_platform_size": "64"} if is_efi else {}),
    }
    assert of_the_next(files).options[-1] == option


def test_a_configuration_that_cannot_be_read_is_unknown() -> None:
    found = host({"/boot/grub/grub.cfg/is-a-directory": ""})
    with pytest.raises(Unobservable, match=r"/boot/grub/grub\.cfg: Is a directory"):
        boot_loader.of_the_next(found)


CUSTOM = "/boot/grub/custom.cfg"
#: As 41_custom writes it.
SOURCES = """
if [ -f  ${config_directory}/custom.cfg ]; then
  source ${config_directory}/custom.cfg
elif [ -z "${config_directory}" -a -f  $prefix/custom.cfg ]; then
  source $prefix/custom.cfg
fi
"""


def own(option: str, title: str = "Mine") -> str:
    return f"menuentry '{title}' {{\n\tif [ x ]; then\n\ttrue\n\tfi\n\tlinux /v root=UUID=aaaa rootflags={option}\n}}\n"


@pytest.mark.parametrize(
    ("custom", "default", "flags", "source"),
    [
        ("", "Mine", ("commit=9", "barrier=1"), "/boot/grub/grub.cfg line 6"),
        (own("nobarrier"), "Mine", ("nobarrier",), f"{CUSTOM} line 5"),
        (own("nobarrier"), "3", ("nobarrier",), f"{CUSTOM} line 5"),
        (own("nobarrier"), "0", ("commit=9", "barrier=1"), "/boot/grub/grub.cfg line 6"),
        (f"set default=Mine\n{own('nobarrier')}", "0", ("nobarrier",), f"{CUSTOM} line 6"),
        (f"submenu 'More' {{\n{own('nobarrier')}}}\n", "More>Mine", ("nobarrier",), f"{CUSTOM} line 6"),
    ],
)
def test_entries_and_default_of_custom_cfg_count(
    custom: str, default: str, flags: tuple[str, ...], source: str
) -> None:
    text = (GRUB_CFG % LINE).replace("${saved_entry}", default) + SOURCES
    found = of_the_next({"/boot/grub/grub.cfg": text, CUSTOM: custom})
    assert found == (flags, f"rootflags of {source}")


def test_an_entry_that_sources_a_file_is_no_submenu() -> None:
    files = {
        "/boot/grub/grub.cfg": (GRUB_CFG % LINE).replace("\tinsmod", "\tsource $prefix/x.cfg\n\tinsmod"),
        CUSTOM: "",
    }
    assert of_the_next(files).source == "rootflags of /boot/grub/grub.cfg line 7"


def test_without_a_line_that_sources_it_custom_cfg_is_not_read() -> None:
    files = {"/boot/grub/grub.cfg": (GRUB_CFG % LINE), CUSTOM: f"set default=Mine\n{own('nobarrier')}"}
    assert of_the_next(files).source == "rootflags of /boot/grub/grub.cfg line 6"


def test_a_default_that_custom_cfg_sets_on_a_condition_leaves_both() -> None:
    custom = f"if [ -e /x ]; then\nset default=Mine\nfi\n{own('nobarrier')}"
    with pytest.raises(Unobservable, match="rootflags_differ"):
        of_the_next({"/boot/grub/grub.cfg": (GRUB_CFG % LINE) + SOURCES, CUSTOM: custom})


def test_a_sourced_file_may_source_another_one_and_itself() -> None:
    files = {
        "/boot/grub2/grub.cfg": (GRUB_CFG % LINE).replace("${saved_entry}", "Mine") + "source /grub2/a.cfg\n",
        "/boot/grub2/a.cfg": ". $prefix/b.cfg\nsource /grub2/a.cfg\nsource $nothing\n",
        "/boot/grub2/b.cfg": own("nobarrier"),
    }
    assert of_the_next(files) == (("nobarrier",), "rootflags of /boot/grub2/b.cfg line 5")


def test_a_custom_cfg_that_cannot_be_read_is_unknown() -> None:
    machine = host({"/boot/grub/grub.cfg": (GRUB_CFG % LINE) + SOURCES})
    machine.files[CUSTOM] = Unobservable(f"{CUSTOM}: Input/output error")
    with pytest.raises(Unobservable, match="Input/output error"):
        boot_loader.of_the_next(machine)
