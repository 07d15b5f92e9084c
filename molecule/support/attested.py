# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the lab vouches for."""

from __future__ import annotations

from datetime import date, timedelta

#: What profile `ups` rests on where the UPS is made up or nothing is at stake.
UPS_CLAIMS = ("host_honours_flush", "virtual_host_power", "ups_rehearsed", "plug_pulled", "test_ups")


def attested(claim: str, target: str = "host", expires: date | None = None) -> dict[str, str]:
    """Return an attestation, as durable_attestations takes it, that ends tomorrow where nothing else is said."""
    end = expires or date.today() + timedelta(1)
    reason = "a machine of the lab"
    return {"claim": claim, "target": target, "by": "the lab", "reason": reason, "expires": end.isoformat()}
