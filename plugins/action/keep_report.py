# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Show the result of a measurement on a host, and store it on the controller."""

from __future__ import annotations

import os
import re
from typing import Any
from xml.etree import ElementTree

from ansible.plugins.action import ActionBase

from ansible_collections.durable.dbhost.plugins.module_utils.host.printable import is_plain
from ansible_collections.durable.dbhost.plugins.module_utils.measure.plot import STYLE
from ansible_collections.durable.dbhost.plugins.plugin_utils.output import (
    keep,
    laid_out,
    measured,
    refused,
    remove,
    show,
)
from ansible_collections.durable.dbhost.plugins.plugin_utils.variables import Variables

#: Parts of the plots of module_utils/measure, and their attributes: a browser would run scripts, and load other files.
_SVG = "{http://www.w3.org/2000/svg}"
_ELEMENTS = frozenset(f"{_SVG}{name}" for name in "circle g path rect style svg text title".split())
_ATTRIBUTES = frozenset(
    "class cx cy d font-family font-size font-weight height r text-anchor transform viewBox width x y".split()
)

#: Lines of these texts are copied into the inventory, where Ansible would evaluate what this begins.
_TEMPLATE = re.compile(r"\{(?=[{%#])")


class ActionModule(ActionBase):
    """Written by the controller's own process; never connects to a managed host."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset(("name", "show", "files"))

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the paths of what was written."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        given = self._task.args
        host = (task_vars or {})["inventory_hostname"]
        plot = str(given["files"].get("svg") or "")
        if plot and not _is_plot(plot):
            raise refused(
                "svg: observed a plot with parts that this collection does not draw; expected its own: root of the host can"
                " have changed it. Nothing was written. Fix: check the host, and run again"
            )
        if not all(map(is_plain, str(given["files"].get("yml") or "").splitlines())):
            raise refused(
                "yml: observed an attestation with control characters, or what Ansible evaluates; expected plain text, because"
                " people copy it into the inventory: root of the host can have changed it. Nothing was written. Fix: check the"
                " host, and run again"
            )
        paths = []
        chosen = Variables(self._templar, task_vars or {}).report_dir()
        if chosen:
            directory = os.path.abspath(chosen)
            for suffix, text in given["files"].items():
                name = measured(given["name"], host, suffix)
                if text:
                    paths.append(_keep(directory, name, _inert(str(text)) if suffix == "txt" else str(text)))
                else:
                    _remove(directory, name)
        stored = [f"stored in {', '.join(paths)}"] if paths else []
        show([host, *laid_out(_inert(str(given["show"]))).splitlines(), *stored])
        result.update(changed=False, paths=paths)
        return result


def _inert(text: str) -> str:
    """Return a text without the beginning of a template."""
    return _TEMPLATE.sub("{ ", text)


def _is_plot(text: str) -> bool:
    """Return whether a text is a plot as this collection draws it: a host's root can forge it."""
    if "<!" in text or "<?" in text:
        return False
    try:
        parts = list(ElementTree.fromstring(text).iter())
    except (ElementTree.ParseError, ValueError):
        return False
    return all(
        part.tag in _ELEMENTS
        and _ATTRIBUTES.issuperset(part.attrib)
        and (part.tag != f"{_SVG}style" or part.text == " ".join(STYLE.split()))
        for part in parts
    )


def _remove(directory: str, name: str) -> None:
    """Remove an earlier run's file: it would be mistaken for a result of this run."""
    try:
        remove(directory, name)
    except OSError as error:
        path = os.path.join(directory, name)
        raise refused(f"{path}: {error.strerror}; it is of an earlier run: remove it") from error


def _keep(directory: str, name: str, text: str) -> str:
    try:
        return keep(directory, name, laid_out(text))
    except OSError as error:
        raise refused(
            f"durable_report_dir: {os.path.join(directory, name)}: {error.strerror}; name a directory that this"
            " user may write, or '' for none"
        ) from error
