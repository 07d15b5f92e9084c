# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The udev rules that keep write caches, and what makes udev apply them again after a reset or resume."""

from __future__ import annotations

from collections.abc import Callable

from ..host import our_paths, systemd, udev
from ..host.seam import Host
from .caches import CONTROLS, DISABLED, ENABLED

RULES_PATH = our_paths.CACHE_RULES
UNIT = our_paths.RESUME_SERVICE
UNIT_PATH = our_paths.RESUME_UNIT
_TARGETS = ("suspend.target", "hibernate.target", "hybrid-sleep.target", "suspend-then-hibernate.target")

#: After a reset of a SCSI disk systemd's own 60-block.rules make a "change" of its block device, and
#: these rules act on that.
HEADER = """\
# Managed by durable.dbhost: the write cache of each disk, whenever it appears, changes or is reset.
# playbooks/release_db.yml takes it away. Other rules belong into files of their own.
"""

UNIT_TEXT = f"""\
# Managed by durable.dbhost: a disk that slept may wake with its write cache on.
[Unit]
Description=Set the write caches of disks again after sleep
After={" ".join(_TARGETS)}

[Service]
Type=oneshot
ExecStart=/bin/udevadm trigger --action=change --subsystem-match=block

[Install]
WantedBy={" ".join(_TARGETS)}
"""


def read(host: Host) -> dict[str, tuple[str, str]]:
    """Return {disk id: (control, state)} of the disks that keep their state. Raises Unobservable.

    None does where no unit tells udev of a resume: then the rules stand, and are not enough.
    """
    rules = _read(host, udev.parse_rules)
    return rules if rules and is_woken(host) else {}


def read_rules(host: Host) -> dict[str, tuple[str, str]]:
    """Return the rules of ours that stand in the rule file, to be written again with others.

    Raises Unobservable.
    """
    return _read(host, udev.written_rules)


def render(rules: dict[str, tuple[str, str]]) -> str:
    """Return the rule file's text; empty without rules."""
    words = {known: f"{control} {state}" for known, (control, state) in rules.items()}
    return udev.render_rules(words, HEADER, _assign)


def is_woken(host: Host) -> bool:
    """Tell whether udev is told of each resume; always, where systemd is not."""
    if not systemd.runs(host):
        return True
    if not host.exists(UNIT_PATH) or host.read(UNIT_PATH) != UNIT_TEXT:
        return False
    return all(host.exists(f"/etc/systemd/system/{target}.wants/{UNIT}") for target in _TARGETS)


def write(host: Host, text: str) -> None:
    """Make the host keep what the rule file's text says. Raises ChangeFailed."""
    host.write_file(RULES_PATH, text.encode("ascii"))
    if not is_woken(host):
        host.write_file(UNIT_PATH, UNIT_TEXT.encode("ascii"))
        host.change(["systemctl", "--quiet", "enable", UNIT])


def ours(host: Host) -> list[str]:
    """Return the paths of what lies on the host for us."""
    links = [f"/etc/systemd/system/{target}.wants/{UNIT}" for target in _TARGETS]
    return [path for path in (RULES_PATH, UNIT_PATH, *links) if host.exists(path)]


def remove(host: Host) -> None:
    """Take everything away. Raises ChangeFailed."""
    # The links first: systemctl disable needs the unit that they point to.
    if host.exists(UNIT_PATH):
        host.change(["systemctl", "--quiet", "disable", UNIT])
    for path in ours(host):
        host.remove_file(path)


def _read(host: Host, parse: Callable[..., dict[str, str]]) -> dict[str, tuple[str, str]]:
    text = host.read(RULES_PATH) if host.exists(RULES_PATH) else ""
    return {known: _split(words) for known, words in parse(text, HEADER, _assign).items()}


def _assign(words: str) -> list[list[str]]:
    control, state = _split(words)
    if control not in CONTROLS or state not in (ENABLED, DISABLED):
        raise ValueError(f"seen {words!r}, wanted a control and enabled or disabled")
    return CONTROLS[control].rules(state)


def _split(words: str) -> tuple[str, str]:
    control, _space, state = words.partition(" ")
    return control, state
