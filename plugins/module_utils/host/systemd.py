# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether systemd runs a host, and failed units that are removed."""

from __future__ import annotations

from .seam import Host


def runs(host: Host) -> bool:
    """Return whether systemd is the init process, as sd_booted(3) does."""
    return host.exists("/run/systemd/system")


def reset_failed(host: Host, unit: str) -> None:
    """Clear the failed state of a unit that is removed: `systemctl --failed` lists it otherwise. Raises ChangeFailed."""
    # systemctl refuses the name of a unit that is not loaded. A pattern that matches none is accepted (systemctl(1)).
    if runs(host):
        host.change(["systemctl", "reset-failed", f"{unit.rpartition('.')[0]}.*"])
