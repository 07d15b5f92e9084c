# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`python3 -m proof [cells]`."""

import sys
from pathlib import Path

# the collection, for its policy is asked what it would choose; tools/venvs.py made the link
sys.path.append(str(Path(__file__).resolve().parent.parent / "playbooks/collections"))

from proof.run import main

# the processes that sweep import this file too
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
