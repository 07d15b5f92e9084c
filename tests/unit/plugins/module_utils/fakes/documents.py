# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation of a module with its fragments, as ansible-doc merges them."""

from __future__ import annotations

from typing import Any

import yaml

from ansible_collections.durable.dbhost.plugins.doc_fragments.attributes import ModuleDocFragment


def with_fragments(text: str) -> dict[str, Any]:
    """Return a module's DOCUMENTATION; what it says of an option replaces what a fragment says."""
    found: dict[str, Any] = yaml.safe_load(text)
    options = found.setdefault("options", {})
    for name in found["extends_documentation_fragment"]:
        fragment = name.removeprefix("durable.dbhost.attributes").lstrip(".").upper() or "DOCUMENTATION"
        for option, keys in yaml.safe_load(getattr(ModuleDocFragment, fragment))["options"].items():
            options[option] = {**keys, **options.get(option, {})}
    return found
