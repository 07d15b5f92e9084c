# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The entries of the boot loader, and the candidates for the next boot.

GRUB's configuration and environment, entries of the Boot Loader Specification
(https://uapi-group.org/specifications/specs/boot_loader_specification/) and systemd-boot's loader.conf(5) are read. A key
pressed at the menu can choose another entry: the default one counts.
"""

from __future__ import annotations

import fnmatch
import functools
import itertools
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ..host.seam import Host
from . import version_order
from .grub_menu import Item, default_names, parse_menu, resolve, sets_default

GRUB = ("/boot/grub/grub.cfg", "/boot/grub2/grub.cfg")
#: Where GRUB is without Red Hat's patches: Debian, Ubuntu, Arch.
_UNPATCHED = "/boot/grub/"
GRUB_VARIABLES = ("/boot/grub/grubenv", "/boot/grub2/grubenv")
#: Directories of vendors on the EFI system partition: GRUB's files of Red Hat's releases up to 8, and of others.
_VENDORS = "/boot/efi/EFI"
_IS_EFI = "/sys/firmware/efi"
#: File systems on which entries of the specification begin: the extended boot partition, the EFI system partition.
TOPS = ("/boot", "/efi", "/boot/efi")
ENTRIES = tuple(f"{top}/loader/entries" for top in TOPS)
#: kernel-install(8): the command line of the next kernel that is installed, and where its entries are written.
KERNEL_COMMAND_LINE = ("/etc/kernel/cmdline", "/usr/lib/kernel/cmdline")
_INSTALL_CONF = ("/etc/kernel/install.conf", "/usr/lib/kernel/install.conf")
_SET = re.compile(r"""^[ \t]*(?:set[ \t]+)?(\w+)=(?:"([^"]*)"|'([^']*)'|(.*))$""", re.M)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_IN_BRACES = re.compile(r"\$\{(\w+)\}")
#: Variables without which an entry has no command line.
_WHOLE_LINES = ("kernelopts", "default_kernelopts")
_NAMED_ROOT = re.compile(r"(?:^|\s)root=")
#: Values of a command line for repairs, from which no database is started.
REPAIR = {
    "single",
    "rescue",
    "emergency",
    "recovery",
    "systemd.unit=rescue.target",
    "systemd.unit=emergency.target",
}
_RESCUE = re.compile(r"(?:^|[-/])0-rescue(?:-|\.|$)")
#: Tries that are left to an entry, in its file's name.
_TRIES = re.compile(r"\+(\d+)(?:-\d+)?$")
_EFI_VARIABLES = "/sys/firmware/efi/efivars/Loader{}-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"


#: Variants of one command line, at most.
_VARIANTS = 16


class Entry(NamedTuple):
    """An entry of the boot loader that starts a system.

    `source` is its file, of GRUB's with the row; `at` is where its command line `line` is, with variables filled in;
    `names` are those by which a default names it; `top` is where the paths of `kernel` and `initramfs` begin. `lost` is a
    variable that nothing sets and without which the command line is unknown.
    """

    source: str
    at: str
    line: str
    kernel: str
    initramfs: tuple[str, ...]
    top: str = ""
    names: tuple[str, ...] = ()
    lost: str = ""

    @property
    def is_repair(self) -> bool:
        """Return whether it starts no database: an entry for repairs, or the rescue image of the distribution."""
        is_rescue = any(_RESCUE.search(name) for name in (self.kernel, *self.names))
        return is_rescue or bool(REPAIR & set(self.line.split()))


class Next(NamedTuple):
    """The entries of which the next boot is one, and all others."""

    entries: tuple[Entry, ...]
    others: tuple[Entry, ...]

    @property
    def is_decided(self) -> bool:
        """Return whether one entry alone can be the next boot's, apart from variants of its command line."""
        return len({entry.source for entry in self.entries}) == 1


def find(host: Host) -> Next:
    """Return the entries of the boot loader by whether the next boot may be theirs. Raises Unobservable."""
    texts, environment = _configurations(host), _environments(host)
    read = {path: _read_menu(host, path, text, {path}) for path, text in texts.items()}
    sourced = {path: content for _menu, contents in read.values() for path, content in contents.items()}
    variables = _variables({**texts, **sourced}, environment)
    specified = _all_specified(host, variables, is_grub=True)
    active = _active(host, {path: menu for path, (menu, _contents) in read.items() if menu})
    if specified and not active and (texts or environment) and not _loader_conf(host):
        active, texts = {"": [Item("", is_blscfg=True)]}, {"": "\n".join(texts.values())}
    found: list[Entry] = []
    every: list[Entry] = []
    for path, menu in active.items():
        text = _of_default(texts[path], read[path][1].values() if path in read else ())
        chosen, all_of_it = _of_menu(path, menu, text, environment, variables, specified)
        found, every = [*found, *chosen], [*every, *all_of_it]
    if not active or _loader_conf(host):
        of_loader = [*_all_specified(host, variables, is_grub=False), *_unified(host)]
        found += _of_loader(host, of_loader)
        every += of_loader
    distinct = dict.fromkeys(found)
    return Next(tuple(distinct), tuple(each for each in dict.fromkeys(every) if each not in distinct))


def of_next_kernel(host: Host) -> list[tuple[str, str]]:
    """Return the file and each command line that kernel-install(8) may give the next kernel, [] without one.

    GRUB's own menu entries are made without it. Raises Unobservable.
    """
    if not any(map(host.exists, _INSTALL_CONF)) and not _entry_files(host) and not _unified_files(host):
        return []
    path = next(filter(host.exists, KERNEL_COMMAND_LINE), None)
    variables = _variables(_configurations(host), _environments(host))
    made = _of_command_line_file(host.read(path)) if path else []
    return [(str(path), line) for each in made for line, _lost in _filled_by_blscfg(each, variables)]


def _of_command_line_file(text: str) -> list[str]:
    """Return the command lines that kernel-install(8) may make of its file: comments are options before systemd 257.

    Those of a unified kernel are before 261.
    """
    bare = "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("#"))
    return list(dict.fromkeys(" ".join(each.split()) for each in (bare, text)))


def _read_menu(host: Host, path: str, text: str, done: set[str]) -> tuple[list[Item], dict[str, str]]:
    """Return the rows of a configuration with those of the files that it sources, and {path: text} of these files.

    `done`: files that were read. Raises Unobservable.
    """
    rows: list[Item] = []
    contents: dict[str, str] = {}
    for item in parse_menu(text):
        if not item.sourced:
            rows.append(item)
            continue
        file = _sourced(host, path, item.sourced)
        if file and file not in done:
            done.add(file)
            contents[file] = host.read(file)
            inner, more = _read_menu(host, file, contents[file], done)
            rows += [_in_file(each, file) for each in inner]
            contents.update(more)
    return rows, contents


def _sourced(host: Host, path: str, said: str) -> str:
    """Return the file that a configuration sources, '' if it is not there: in its directory, or on the file system of /boot."""
    relative = re.fullmatch(r"\$(?:\{\w+\}|\w+)/([^$]+)", said)
    paths = [f"{posixpath.dirname(path)}/{relative[1]}"] if relative else [said, f"/boot{said}"]
    return next((each for each in paths if each.startswith("/") and host.exists(each)), "")


def _in_file(item: Item, path: str) -> Item:
    return item._replace(path=item.path or path, items=tuple(_in_file(each, path) for each in item.items))


def _of_default(text: str, contents: Iterable[str]) -> str:
    """Return the text that sets the default: a sourced file comes after the beginning of the configuration."""
    for content in contents:
        sets, always = sets_default(content)
        if sets:
            text = content if always else f"{text}\n{content}"
    return text


def _active(host: Host, menus: dict[str, list[Item]]) -> dict[str, list[Item]]:
    """Return the configurations with a menu that the firmware's kind of boot reads."""
    of_efi = {path: menu for path, menu in menus.items() if path.startswith(_VENDORS)}
    others = {path: menu for path, menu in menus.items() if path not in of_efi}
    if of_efi and others:
        return of_efi if host.exists(_IS_EFI) else others
    return menus


def _of_menu(
    path: str,
    menu: list[Item],
    text: str,
    environment: Mapping[str, list[str]],
    variables: Mapping[str, list[str]],
    specified: list[Entry],
) -> tuple[list[Entry], list[Entry]]:
    """Return the entries of a menu of GRUB's that may be next, and all of it."""
    of_name: dict[str, list[Entry]] = {}
    for entry in specified:
        of_name.setdefault(entry.names[0], []).append(entry)
    is_patched = not path.startswith(_UNPATCHED)
    by_name, by_version = _by_grub(specified, is_patched)
    listed = [
        Item(name, of_name[name][0].names, name) for name in dict.fromkeys(each.names[0] for each in by_name)
    ]
    # The menu as it is shown: the entries of the specification are where `blscfg` is.
    whole = [item for each in menu for item in (listed if each.is_blscfg else [each])]

    def entries(item: Item) -> list[Entry]:
        return of_name[item.specified] if item.specified else _of_item(item.path or path, item, variables)

    chosen: list[Entry] = []
    for name in default_names(text, environment):
        for item in resolve(whole, name, is_patched):
            chosen += entries(item)
            if item.specified and name not in item.names:
                # By its place: name and version may disagree about which one is the newest.
                chosen += of_name[by_version[by_name.index(of_name[item.specified][0])].names[0]]
    return chosen, [entry for item in _flat(whole) for entry in entries(item)]


def _flat(items: Iterable[Item]) -> Iterator[Item]:
    for item in items:
        yield from _flat(item.items) if item.items else (item,)


def _of_item(path: str, item: Item, variables: Mapping[str, list[str]]) -> list[Entry]:
    """Return a menu entry's variants: its command line with each value that its variables may have."""
    command = item.kernel
    if command is None:
        return []
    row, said = command
    source = f"{path} line {row}"
    images = [word for _row, each in item.images for word in _partly_filled(each, variables)]
    kernel = next(iter(_partly_filled(said, variables)), "")
    names = tuple(filter(None, (item.title, *item.names)))
    return [
        Entry(source, source, line, kernel, tuple(images), "", names, lost)
        for line, lost in _filled(said, variables)
    ]


def _all_specified(host: Host, variables: Mapping[str, list[str]], is_grub: bool) -> list[Entry]:
    """Return the entries of the specification as GRUB or systemd-boot reads them. Raises Unobservable."""
    return [entry for path in _entry_files(host) for entry in _specified(host, path, variables, is_grub)]


def _specified(host: Host, path: str, variables: Mapping[str, list[str]], is_grub: bool) -> list[Entry]:
    """Return the variants of an entry of the specification, none if it starts no Linux. Raises Unobservable.

    GRUB reads it up to a line without a value, and takes the first line of options alone.
    """
    fields: dict[str, list[tuple[int, str]]] = {}
    for row, line in enumerate(host.read(path).split("\n"), 1):
        key, _blank, value = line.strip().replace("\t", " ").partition(" ")
        if is_grub and not value and not key.startswith("#"):
            break
        fields.setdefault(key, []).append((row, value.strip()))
    if not fields.keys() & ({"linux"} if is_grub else {"linux", "options"}):
        return []
    if is_grub:
        fields["options"] = fields.get("options", [])[:1]
    rows = [row for row, _said in fields.get("options", [])]
    name = posixpath.basename(path)[: -len(".conf")]
    names = [name, *(said for key in ("title", "id") for _row, said in fields.get(key, [])[:1])]
    kernel = next((said for _row, said in fields.get("linux", [])), "")
    images = [word for _row, said in fields.get("initrd", []) for word in _partly_filled(said, variables)]
    top = path.partition("/loader/entries/")[0]
    return [
        Entry(
            path,
            f"{path} line {rows[0]}" if rows else path,
            line,
            " ".join(_partly_filled(kernel, variables)),
            tuple(images),
            top,
            (
                *names,
                *(f"{key}:{said[0][1]}" for key, said in fields.items() if key in ("version", "sort-key")),
            ),
            lost,
        )
        for line, lost in _filled_by_blscfg(
            " ".join(said for _row, said in fields.get("options", [])), variables
        )
    ]


def _field(entry: Entry, key: str) -> str:
    return next((name[len(key) + 1 :] for name in entry.names if name.startswith(f"{key}:")), "")


def _by_grub(entries: list[Entry], is_patched: bool) -> tuple[list[Entry], list[Entry]]:
    """Return entries of the specification in GRUB's order, the newest first: by file name, and by version.

    Without Red Hat's patches, GRUB knows no version.
    """
    if not is_patched:
        by_file = sorted(
            entries, key=lambda each: version_order.of_file(f"{each.names[0]}.conf"), reverse=True
        )
        return by_file, by_file
    by_name = sorted(entries, key=lambda each: version_order.key(each.names[0]), reverse=True)
    by_version = sorted(by_name, key=lambda each: version_order.key(_field(each, "version")), reverse=True)
    return by_name, by_version if all(_field(each, "version") for each in entries) else by_name


def _of_loader(host: Host, entries: list[Entry]) -> list[Entry]:
    """Return the entries that may be next with systemd-boot. Raises Unobservable."""
    ordered = sorted(entries, key=functools.cmp_to_key(_compare_of_loader))
    if not ordered:
        return []
    once = _efi_variable(host, "EntryOneShot")
    settled = once or _efi_variable(host, "EntryDefault") or _loader_conf(host).get("default", "")
    if settled == "@saved":
        settled = _efi_variable(host, "EntryLastBooted")
        if not settled:
            return ordered
    if settled:
        pattern = settled.lower()
        named = [each for each in ordered if any(fnmatch.fnmatchcase(name, pattern) for name in _ids(each))]
        if named:
            return [each for each in ordered if each.source == named[0].source]
        # The pattern may be about an entry that the loader makes: a unified kernel, or another system.
        if once or settled.startswith("auto-"):
            return ordered
    if any(each.source.endswith(".efi") for each in ordered):
        return ordered  # Their order is by what is in the image.
    return [each for each in ordered if each.source == ordered[0].source]


def _ids(entry: Entry) -> list[str]:
    name = posixpath.basename(entry.source).lower()
    stem, dot, kind = name.rpartition(".")
    return [name, stem, f"{_TRIES.sub('', stem)}{dot}{kind}", _TRIES.sub("", stem)]


def _compare_of_loader(one: Entry, other: Entry) -> int:
    """Compare as the specification sorts: entries without tries last, then by sort-key, then the newest first."""
    spent = [_spent(each) for each in (one, other)]
    keys = [_field(each, "sort-key") for each in (one, other)]
    if spent[0] != spent[1]:
        return 1 if spent[0] else -1
    if bool(keys[0]) != bool(keys[1]):
        return -1 if keys[0] else 1
    if keys[0] != keys[1]:
        return -1 if keys[0] < keys[1] else 1
    by_version = version_order.compare(_field(other, "version"), _field(one, "version")) if keys[0] else 0
    return by_version or version_order.compare(other.names[0], one.names[0])


def _spent(entry: Entry) -> bool:
    tries = _TRIES.search(entry.names[0])
    return tries is not None and int(tries[1]) == 0


def _efi_variable(host: Host, name: str) -> str:
    """Return a variable of systemd-boot's, '' without one: four bytes of attributes, then UTF-16."""
    path = _EFI_VARIABLES.format(name)
    if not host.exists(path):
        return ""
    content = host.read(path).encode("utf-8", "surrogateescape")[4:]
    return content.decode("utf-16-le", "replace").rstrip("\0")


def _loader_conf(host: Host) -> dict[str, str]:
    """Return the settings of systemd-boot's loader.conf, {} without one. Raises Unobservable."""
    found: dict[str, str] = {}
    for path in (f"{top}/loader/loader.conf" for top in _tops(host)):
        lines = host.read(path).splitlines() if host.exists(path) else []
        for key, _blank, value in (line.strip().replace("\t", " ").partition(" ") for line in lines):
            if key and not key.startswith("#"):
                found.setdefault(key, value.strip())
    return found


def _tops(host: Host) -> tuple[str, ...]:
    """Return the file systems of entries; install.conf may name one more. Raises Unobservable."""
    path = next(filter(host.exists, _INSTALL_CONF), None)
    said = re.findall(r"^\s*BOOT_ROOT=(\S+)", host.read(path), re.M) if path else []
    return tuple(dict.fromkeys((*TOPS, *(each.strip("\"'") for each in said))))


def _entry_files(host: Host) -> list[str]:
    """Return the paths of the entries of the specification, one for each real file. Raises Unobservable."""
    directories = [path for path in (f"{top}/loader/entries" for top in _tops(host)) if host.exists(path)]
    paths = [f"{path}/{name}" for path in directories for name in host.names(path) if name.endswith(".conf")]
    return list({host.resolve(path): path for path in reversed(paths)}.values())[::-1]


def _unified_files(host: Host) -> list[str]:
    directories = [path for path in (f"{top}/EFI/Linux" for top in _tops(host)) if host.exists(path)]
    return [
        f"{path}/{name}" for path in directories for name in host.names(path) if name.lower().endswith(".efi")
    ]


def _unified(host: Host) -> list[Entry]:
    """Return unified kernel images, as kernel-install(8) makes them: with the command line of its file, or of this boot."""
    path = next(filter(host.exists, KERNEL_COMMAND_LINE), "/proc/cmdline")
    return [
        Entry(image, f"{path} (of {image})", line, "", (), "", (posixpath.basename(image)[:-4],))
        for image in _unified_files(host)
        for line in _of_command_line_file(host.read(path))
    ]


def _of_vendors(host: Host, name: str) -> list[str]:
    vendors = host.names(_VENDORS) if host.exists(_VENDORS) else []
    return [path for path in (f"{_VENDORS}/{vendor}/{name}" for vendor in vendors) if host.exists(path)]


def _configurations(host: Host) -> dict[str, str]:
    """Return {path: text} of GRUB's configurations. Raises Unobservable."""
    paths = [*filter(host.exists, GRUB), *_of_vendors(host, "grub.cfg")]
    return {path: host.read(path) for path in {host.resolve(path): path for path in reversed(paths)}.values()}


def _environments(host: Host) -> dict[str, list[str]]:
    """Return {variable: values} of GRUB's environment blocks. Raises Unobservable."""
    paths = [*filter(host.exists, GRUB_VARIABLES), *_of_vendors(host, "grubenv")]
    # A link to a partition that is not mounted leads to nothing.
    there = {host.resolve(path): path for path in paths if host.exists(host.resolve(path))}
    return _values(host.read(path) for path in there.values())


def _variables(texts: Mapping[str, str], environment: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return {variable: values}: a configuration sets those that the environment lacks."""
    return {**_values(texts.values()), **{name: said for name, said in environment.items() if any(said)}}


def _values(texts: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for text in texts:
        # Of one file the last value counts.
        for name, value in {name: a or b or c for name, a, b, c in _SET.findall(text)}.items():
            found.setdefault(name, {})[value.strip()] = None
    return {name: list(said) for name, said in found.items()}


def _filled(line: str, variables: Mapping[str, list[str]]) -> list[tuple[str, str]]:
    """Return a command line's variants, and of each the variable that it lacks ('' for none)."""
    names = dict.fromkeys(found[1] or found[2] for found in _VARIABLE.finditer(line))
    found = []
    for chosen in itertools.islice(
        itertools.product(*(variables.get(name, [""]) for name in names)), _VARIANTS
    ):
        said = dict(zip(names, chosen))
        text = _VARIABLE.sub(lambda each, said=said: said[each[1] or each[2]], line)  # type: ignore[misc]
        lost = [
            name
            for name in names
            if not said[name] and (name in _WHOLE_LINES or not _NAMED_ROOT.search(text))
        ]
        found.append((text, lost[0] if lost else ""))
    return found


def _filled_by_blscfg(line: str, variables: Mapping[str, list[str]]) -> list[tuple[str, str]]:
    """Return what `_filled` does, of the options of an entry: GRUB adds a blank to a variable's value, and splits at braces."""
    lost = next((name for name in _IN_BRACES.findall(line) if name in _WHOLE_LINES), "")
    found = _filled(re.sub(r"\$(\w+) ?", r"${\1} ", _IN_BRACES.sub(r" {\1}", line)), variables)
    return [(text, lost or unset) for text, unset in found]


def _partly_filled(text: str, variables: Mapping[str, list[str]]) -> list[str]:
    """Return the parts of a text in which a variable stays that has not one value."""

    def value(found: re.Match[str]) -> str:
        said = variables.get(found[1] or found[2], [])
        return said[0] if len(said) == 1 else found[0]

    return [word.strip("\"'") for word in _VARIABLE.sub(value, text).split()]
