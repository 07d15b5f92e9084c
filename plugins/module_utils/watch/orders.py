# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of the watch: variables of the inventory, and the destination of metrics. Only root can read the file."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..host import json_text, trusted_path
from ..host.our_paths import WATCH_INPUTS
from ..host.seam import ChangeFailed, Host, Unobservable
from ..policy.expect.inputs import Inputs

#: In the directory of node_exporter's textfile collector.
METRICS = "durable_dbhost.prom"
#: Nobody but root needs to know what people vouch for.
MODE = 0o600


class Orders(NamedTuple):
    """`inputs`: what the inventory says; `metrics`: the directory of the textfile collector, '' for none; `version`: that of
    the collection that installed the watch."""

    inputs: Inputs
    metrics: str
    version: str


def render(inputs: Mapping[str, Any], metrics: str, version: str) -> bytes:
    """Return the file's content, of Inputs as a mapping. Raises ChangeFailed for keys that this version does not know."""
    unknown = sorted(set(inputs) - set(Inputs._fields))
    if unknown:
        raise ChangeFailed(f"inputs: observed {', '.join(unknown)}; expected {', '.join(Inputs._fields)}")
    if metrics and not posixpath.isabs(metrics):
        raise ChangeFailed(f"metrics: observed {metrics!r}, expected an absolute path")
    orders = {"inputs": dict(inputs), "metrics": metrics, "version": version}
    return f"{json.dumps(orders, indent=1, sort_keys=True)}\n".encode()


def read(host: Host) -> Orders:
    """Return what is in force. Raises Unobservable."""
    try:
        orders = json_text.loads(host.read(WATCH_INPUTS))
        return Orders(Inputs(**orders["inputs"]), str(orders["metrics"]), str(orders.get("version", "")))
    except (ValueError, TypeError, KeyError) as error:
        raise Unobservable(f"{WATCH_INPUTS}: none of this version's: {error}; run the role again") from error


def directory(host: Host) -> str:
    """Return the directory of the metrics, as any version has written it, '' for none or if it is unknown."""
    try:
        return str(json_text.loads(host.read(WATCH_INPUTS))["metrics"])
    except (Unobservable, ValueError, TypeError, KeyError):
        return ""


def write_metrics(host: Host, directory: str, text: str) -> None:
    """Replace the numbers, with the rights of whom the directory belongs to. Raises ChangeFailed."""
    try:
        owner = trusted_path.statuses(host, [directory])[directory].owner
        why = trusted_path.weakness(host, directory, {0, owner})
    except Unobservable as error:
        raise ChangeFailed(f"{directory}: {error}") from error
    if why:
        raise ChangeFailed(
            f"{directory}: observed that others than root and its owner may change it ({why}); expected a directory of"
            " root's or of node_exporter's user"
        )
    host.write_file(f"{directory}/{METRICS}", text.encode(), 0o644, owner)
