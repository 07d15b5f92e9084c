# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a host's Python cannot run modules, and which of its interpreters can.

One command over the connection of the task, on a host whose module failed. It starts no interpreter: versions are read from
the names to which links lead.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
import shlex
from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleError

from ..action.engine_facts import Bounded, TooMuch
from ..module_utils.policy.show.results import INSTALL_PYTHON, MINIMUM, Explained, Recognised, of_python

#: Where distributions and administrators put interpreters.
_PLACES = (
    "/usr/bin/python3",
    "/usr/bin/python3.[0-9]",
    "/usr/bin/python3.[0-9][0-9]",
    "/usr/local/bin/python3.[0-9]",
    "/usr/local/bin/python3.[0-9][0-9]",
    "/opt/*/bin/python3.[0-9]",
    "/opt/*/bin/python3.[0-9][0-9]",
    "/opt/*/*/root/usr/bin/python3",
    "/usr/libexec/platform-python",
)
#: A path of a host becomes text of a report.
_LINE = re.compile(r"(?P<path>/[\w./+-]{1,200}) (?P<target>/[\w./+-]{1,200})", re.ASCII)
_VERSION = re.compile(r"python(\d)\.(\d{1,2})m?", re.ASCII)
_CURRENT = re.compile(r"Current version: (\d)\.(\d{1,2})\b", re.ASCII)
_MOST = 3
_Version = tuple[int, int]
#: What a module returns to Ansible.
Result = dict[str, Any]


def explained(action: Bounded, variables: Mapping[str, Any], result: Result) -> Result:
    """Return a failed result; with another `msg` if the host's Python is missing or too old. Raises nothing of the host."""
    message = str(result.get("msg") or "")
    found: dict[str, _Version] = {}
    used = _used(action, variables, result)
    with contextlib.suppress(AnsibleError, TooMuch):
        found = _listed(action, used)
    current = _CURRENT.search(f"{message} {result.get('module_stdout', '')}")
    observed = (int(current[1]), int(current[2])) if current else found.get(used)
    is_old = observed is not None and observed < MINIMUM
    if not is_old and not of_python({**result, "msg": message}):
        return result
    good = sorted((version, path) for path, version in found.items() if version >= MINIMUM and path != used)
    if not is_old and not good:
        return result
    why = _explanation(observed if is_old else None, used, [path for _version, path in good])
    return Recognised({**result, "msg": f"{why.meaning}. Fix: {why.fix}"}, why)


def _used(action: Bounded, variables: Mapping[str, Any], result: Result) -> str:
    """Return the interpreter with which Ansible started the module, '' if that is unknown."""
    facts = result.get("ansible_facts")
    known = facts.get("discovered_interpreter_python") if isinstance(facts, dict) else None
    known = known or variables.get("ansible_python_interpreter") or ""
    with contextlib.suppress(AnsibleError):
        known = action._templar.template(known)
    return known if isinstance(known, str) and known.startswith("/") else ""


def _listed(action: Bounded, used: str) -> dict[str, _Version]:
    """Return {path: version} of the interpreters on the host. Raises AnsibleError."""
    places = " ".join([*([shlex.quote(used)] if used else []), *_PLACES])
    command = f'for p in {places}; do [ -x "$p" ] && echo "$p $(readlink -f "$p")"; done; true'
    answer = action._low_level_execute_command(command, sudoable=False)
    found: dict[str, _Version] = {}
    for line in str(answer.get("stdout") or "").splitlines():
        row = _LINE.fullmatch(line.strip())
        version = _VERSION.fullmatch(posixpath.basename(row["target"])) if row else None
        if row and version:
            found[row["path"]] = (int(version[1]), int(version[2]))
    return found


def _explanation(observed: _Version | None, used: str, found: list[str]) -> Explained:
    expected = f"{MINIMUM[0]}.{MINIMUM[1]} or later expected"
    if observed:
        what = f"Python {observed[0]}.{observed[1]} observed, {expected}"
    else:
        what = f"no usable Python at {used or 'the path that Ansible uses'}, {expected}"
    if not found:
        return Explained(what, fix=INSTALL_PYTHON)
    more = f" (or {', '.join(found[1:_MOST])})" if found[1:] else ""
    return Explained(what, fix=f"set ansible_python_interpreter to {found[0]}{more} in the inventory")
