# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A terminal callback whose last output is the page of the run."""

from __future__ import annotations

DOCUMENTATION = r"""
name: brief
type: stdout
short_description: Show only the page of a run
version_added: 1.0.0
requirements:
  - Python 3.11 or later
author:
  - durable.dbhost contributors (@durable-db)
description:
  - As P(ansible.builtin.default#callback), without hosts that pass or skip a task, without a line for each host whose
    verdict fails, and without the recap of a run that ends with its page.
  - Other failures, warnings and differences are shown. Several errors of the input have a line each. With C(-v) all is
    shown.
extends_documentation_fragment:
  - default_callback
  - result_format_callback
"""

from typing import Any

from ansible import constants
from ansible.plugins.callback.default import CallbackModule as Default

from ansible_collections.durable.dbhost.plugins.module_utils.host.printable import lines
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import ALSO

#: The names of the tasks by which a host fails whose verdict, or cause, stands on the page.
_ON_PAGE = ("Compare the verdicts with durable_fail_on", "Fail if a layer could not be released")


class CallbackModule(Default):
    """The callback plugin."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "durable.dbhost.brief"

    def __init__(self) -> None:
        super().__init__()
        self._has_page = False

    def set_options(self, *given: Any, **named: Any) -> None:
        """Show what a task says of hosts only where one fails."""
        super().set_options(*given, **named)
        for option in ("display_ok_hosts", "display_skipped_hosts"):
            self.set_option(option, bool(self._display.verbosity))

    def v2_runner_on_ok(self, result: Any) -> None:
        """Show a task's warnings alone."""
        found = _returned(result)
        self._has_page |= "page" in found
        if self._display.verbosity:
            super().v2_runner_on_ok(result)
        else:
            self._handle_warnings(found)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """Show what failed, except what the page shows; several errors of the input have a line each."""
        errors = str(_returned(result).get("msg", "")).split(ALSO)
        if self._display.verbosity or (len(errors) == 1 and not result.task_name.endswith(_ON_PAGE)):
            super().v2_runner_on_failed(result, ignore_errors)
        elif len(errors) > 1:
            host = self.host_label(result)
            rows = [f"fatal: [{host}]: {len(errors)} errors", *(f"  {error}" for error in errors)]
            self._display.display(lines(rows), color=constants.COLOR_ERROR)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Show the recap unless a page has shown how the run ended."""
        if self._display.verbosity or not self._has_page:
            super().v2_playbook_on_stats(stats)

    def v2_playbook_on_no_hosts_remaining(self) -> None:
        """Show that no host is left unless a page has shown how the run ended."""
        if self._display.verbosity or not self._has_page:
            super().v2_playbook_on_no_hosts_remaining()

    def v2_playbook_on_include(self, included_file: Any) -> None:
        """Show no list of hosts."""
        if self._display.verbosity:
            super().v2_playbook_on_include(included_file)


def _returned(result: Any) -> Any:
    """Return what a task returned; ansible-core before 2.19 has no public name for it."""
    return result.result if hasattr(result, "result") else result._result
