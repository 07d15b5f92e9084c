# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a facts module on a host, and limit the size of its response.

meta/runtime.yml has every module that runs on a host run so. A host that answers more fails its own task, and is
`unknown` by name: the process that Ansible makes for one task of one host gives up, and the others go on.
"""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible.plugins.action.normal import ActionModule as Normal

from ansible_collections.durable.dbhost.plugins.module_utils.host import bounds
from ansible_collections.durable.dbhost.plugins.plugin_utils.deadline import Expired, deadline
from ansible_collections.durable.dbhost.plugins.plugin_utils.output import difference

#: Seconds for the removal of a temporary directory.
_CLEANUP = 30


class TooMuch(Exception):
    """A host says more than modules do, and how much."""


class Bounded(ActionBase):
    """An action whose module's answer is bounded."""

    #: What the last command on the host printed as errors, if it failed.
    last_stderr = ""
    #: Whether the host did not answer within the time limit. This task sends it nothing more.
    is_given_up = False

    def _execute_module(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return what the module returns, or that it failed, for a larger answer."""
        try:
            with _bounded_memory():
                result: dict[str, Any] = super()._execute_module(*args, **kwargs)
        except MemoryError:
            return {"failed": True, "msg": bounds.refused("it took more memory than that")}
        except TooMuch as error:
            return {"failed": True, "msg": bounds.refused(str(error))}
        if "diff" in result:
            result["diff"] = _printable(result["diff"])
        return result

    def cleanup(self, force: bool = False) -> None:
        """Remove this task's files from the host; a host that is lost meanwhile has reported that already.

        Ansible has no time limit for it.
        """
        if self.is_given_up:
            return
        with contextlib.suppress(AnsibleError, TooMuch, Expired), deadline(_CLEANUP):
            super().cleanup(force)

    def _low_level_execute_command(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return what a command on the host says. Raises TooMuch for too much, before it is understood."""
        self.last_stderr = ""  # A connection that is lost now prints nothing.
        result: dict[str, Any] = super()._low_level_execute_command(*args, **kwargs)
        why = bounds.too_much(result["stdout"], result["stderr"])
        if why:
            raise TooMuch(why)
        self.last_stderr = str(result["stderr"]) if result.get("rc") else ""
        return result


class ActionModule(Bounded, Normal):
    """The module; nothing else is done here."""


def _printable(diff: Any) -> list[dict[str, str]]:
    """Return what a host reports for `--diff`, nothing if it is not one of our modules': its root can forge it."""
    try:
        return [difference(each) for each in diff]
    except (AttributeError, KeyError, TypeError):
        return []


@contextlib.contextmanager
def _bounded_memory() -> Iterator[None]:
    """Limit this process's memory to what an answer needs: a connection stores all that a host sends.

    It is the process of one task on one host. Where the system does not tell how much it has, nothing is bounded.
    """
    before = resource.getrlimit(resource.RLIMIT_AS)
    try:
        with open("/proc/self/statm", encoding="ascii") as handle:
            used = int(handle.read().split()[0]) * resource.getpagesize()
        most = (
            used + bounds.ROOM if before[0] == resource.RLIM_INFINITY else min(before[0], used + bounds.ROOM)
        )
        resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    except (OSError, ValueError):
        pass
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_AS, before)
