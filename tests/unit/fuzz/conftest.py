# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fuzzing is a program of the repository, not part of the collection: find it from its root."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
