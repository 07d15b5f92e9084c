# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The udev rules that persist write caches, and the events after which udev applies them again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..host import our_paths, systemd, udev
from ..host.seam import Host
from .caches import CONTROLS, DEFAULTS, DISABLED, ENABLED, PROGRAMS, RAISE

RULES_PATH = our_paths.CACHE_RULES
FORMER_PATH = our_paths.FORMER_CACHE_RULES
UNIT = our_paths.RESUME_SERVICE
UNIT_PATH = our_paths.RESUME_UNIT
_TARGETS = ("suspend.target", "hibernate.target", "hybrid-sleep.target", "suspend-then-hibernate.target")

#: After a reset of a SCSI disk systemd's own 60-block.rules make a "change" of its block device, and
#: these rules act on that.
HEADER = """\
# Managed by durable.dbhost: the write cache of each disk, whenever it appears, changes or is reset.
# playbooks/release_db.yml takes it away. Other rules belong into files of their own.
"""

_UDEVADM = ("/bin/udevadm", "/usr/bin/udevadm", "/sbin/udevadm", "/usr/sbin/udevadm")
_UNIT_TEXT = f"""\
# Managed by durable.dbhost: a disk that slept may wake with its write cache on.
[Unit]
Description=Set the write caches of disks again after sleep
After={" ".join(_TARGETS)}

[Service]
Type=oneshot
ExecStart={{udevadm}} trigger --action=change --subsystem-match=block

[Install]
WantedBy={" ".join(_TARGETS)}
"""


#: Each text that the unit may have: SUSE has udevadm elsewhere.
UNIT_TEXTS = tuple(_UNIT_TEXT.replace("{udevadm}", path) for path in _UDEVADM)
UNIT_TEXT = UNIT_TEXTS[0]
#: A program's path in a rule.
_PROGRAM = re.compile(rf'="(?P<path>/[a-z/]+/(?P<name>{"|".join(PROGRAMS)})) ')


def read(host: Host) -> dict[str, tuple[str, str]]:
    """Return {disk id: (control, state)} of the disks that keep their state. Raises Unobservable.

    None does if no unit triggers udev after a resume: then the rules exist, and are not enough. A rule that runs a
    program which is not installed sets nothing.
    """
    rules = _parsed(udev.parse_rules, _text(host, RULES_PATH), programs(host))
    if not rules or not is_woken(host):
        return {}
    return {known: rule for known, rule in rules.items() if not missing(host, *rule)}


def useless(host: Host) -> dict[str, list[str]]:
    """Return {disk id: programs that are missing} of the disks whose rule sets nothing. Raises Unobservable."""
    absent = {known: missing(host, *rule) for known, rule in read_rules(host).items()}
    return {known: names for known, names in absent.items() if names}


def without(names: list[str]) -> str:
    """Return what is wrong with a rule whose programs are missing."""
    return f"the udev rule runs {', '.join(names)}, which is not installed: install {', '.join(names)}"


def read_rules(host: Host) -> dict[str, tuple[str, str]]:
    """Return the rules of ours that are in the rule file, to be written again with others.

    Those of a file with its former name too, and those that name a program at another path. Raises Unobservable.
    """
    # In the former file no rule raised a mode: it is one line less.
    former = _parsed(udev.written_rules, _default_paths(_text(host, FORMER_PATH)), DEFAULTS, raises=False)
    return {**former, **_parsed(udev.written_rules, _default_paths(_text(host, RULES_PATH)), DEFAULTS)}


def render(rules: dict[str, tuple[str, str]], paths: Mapping[str, str] = DEFAULTS) -> str:
    """Return the rule file's text; empty without rules. `paths`: where this host has the programs."""
    words = {known: f"{control} {state}" for known, (control, state) in rules.items()}
    return udev.render_rules(words, HEADER, _assigner(paths))


def programs(host: Host) -> dict[str, str]:
    """Return where this host has each program that rules name; its default path if it has none."""
    return {program: _first(host, paths) or paths[0] for program, paths in PROGRAMS.items()}


def missing(host: Host, control: str, state: str) -> list[str]:
    """Return the programs that the rules for a state run and that are not installed."""
    return [name for name in CONTROLS[control].programs(state) if _first(host, PROGRAMS[name]) is None]


def is_woken(host: Host) -> bool:
    """Return whether udev gets an event for each resume; always, without systemd."""
    if not systemd.runs(host):
        return True
    if not host.exists(UNIT_PATH) or host.read(UNIT_PATH) != _unit_text(host):
        return False
    return all(host.exists(f"/etc/systemd/system/{target}.wants/{UNIT}") for target in _TARGETS)


def files(host: Host, text: str) -> dict[str, str | None]:
    """Return {path: text afterwards} of the files that `write` changes, None for one that it removes."""
    former = {FORMER_PATH: None} if host.exists(FORMER_PATH) else {}
    return {RULES_PATH: text, **former, **({} if is_woken(host) else {UNIT_PATH: _unit_text(host)})}


def write(host: Host, text: str) -> None:
    """Make the host keep what the rule file's text says. Raises ChangeFailed."""
    is_enabled = is_woken(host)
    for path, content in files(host, text).items():
        if content is None:
            host.remove_file(path)
        else:
            host.write_file(path, content.encode("ascii"))
    if not is_enabled:
        host.change(["systemctl", "--quiet", "enable", UNIT])


def ours(host: Host) -> list[str]:
    """Return the paths of our files on the host."""
    links = [f"/etc/systemd/system/{target}.wants/{UNIT}" for target in _TARGETS]
    return [path for path in (RULES_PATH, FORMER_PATH, UNIT_PATH, *links) if host.exists(path)]


def remove(host: Host) -> None:
    """Remove all of our files. Raises ChangeFailed."""
    # The links first: systemctl disable needs the unit that they point to.
    if host.exists(UNIT_PATH):
        host.change(["systemctl", "--quiet", "disable", UNIT])
        systemd.reset_failed(host, UNIT)
    for path in ours(host):
        host.remove_file(path)


def _text(host: Host, path: str) -> str:
    return host.read(path) if host.exists(path) else ""


def _parsed(
    parse: udev.Parse, text: str, paths: Mapping[str, str], raises: bool = True
) -> dict[str, tuple[str, str]]:
    found = parse(text, HEADER, _assigner(paths, raises))
    return {known: _split(words) for known, words in found.items()}


def _default_paths(text: str) -> str:
    return _PROGRAM.sub(lambda found: f'="{DEFAULTS[found["name"]]} ', text)


def _first(host: Host, paths: Iterable[str]) -> str | None:
    return next((path for path in paths if host.exists(host.resolve(path))), None)


def _unit_text(host: Host) -> str:
    return _UNIT_TEXT.replace("{udevadm}", _first(host, _UDEVADM) or _UDEVADM[0])


def _assigner(paths: Mapping[str, str] = DEFAULTS, raises: bool = True) -> udev.Assign:
    def assign(words: str) -> list[list[str]]:
        control, state = _split(words)
        if control not in CONTROLS or state not in (ENABLED, DISABLED):
            raise ValueError(f"observed {words!r}, expected a control and enabled or disabled")
        return [rule for rule in CONTROLS[control].rules(state, paths) if raises or RAISE not in rule]

    return assign


def _split(words: str) -> tuple[str, str]:
    control, _space, state = words.partition(" ")
    return control, state
