# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`python3 -m fuzz [TARGET ...]`: see README.md."""

import sys

from fuzz.run import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
