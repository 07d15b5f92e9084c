# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every parser against texts that nobody wrote: coverage-guided, within bounds of time and memory."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The collection by its name: tools/venvs.py made the link. pytest knows it already.
sys.path.append(str(ROOT / "playbooks/collections"))
