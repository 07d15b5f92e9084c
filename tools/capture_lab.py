# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""capture_lab.py MACHINE NAME: keep a machine of the lab, as it is now, as tests/fixtures/captures/NAME.json.

Next to it is NAME.facts.json, the facts as they were read on the machine (with the stand-ins of the
recording); tests/unit/plugins/module_utils/test_captures.py holds the replay against it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CAPTURES = ROOT / "tests/fixtures/captures"
sys.path[:0] = [str(ROOT), str(ROOT / "playbooks/collections")]

from ansible_collections.durable.dbhost.plugins.module_utils.capture import capture, recording  # noqa: E402
from lab.errors import LabError  # noqa: E402
from lab.machine import Machine  # noqa: E402


def take(machine: Machine, directory: str) -> str:
    """Return the text of a machine's capture."""
    command = [
        str(Path(sys.executable).with_name("ansible-playbook")),
        *("-i", str(machine.inventory), str(ROOT / "playbooks/capture.yml")),
        *("-e", json.dumps({"durable_report_dir": directory})),
    ]
    subprocess.run(command, check=True)
    return (Path(directory) / f"capture-{machine.name}.json").read_text(encoding="ascii")


def main() -> int:
    """Make both files; refuse a recording whose replay differs from the machine's facts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("machine", help="a machine that is up")
    parser.add_argument("name", help="what to call its state")
    arguments = parser.parse_args()
    try:
        machine = Machine(arguments.machine)
        machine.record()
        with tempfile.TemporaryDirectory() as directory:
            text = take(machine, directory)
    except (LabError, subprocess.CalledProcessError) as error:
        print(f"capture_lab: {error}", file=sys.stderr)
        return 1
    recorded = recording.loads(text)
    if recorded["failed"] or recorded["differs"]:
        print(f"capture_lab: failed: {recorded['failed']}; differs: {recorded['differs']}", file=sys.stderr)
        return 1
    facts = capture.replay(recorded, f"{recorded['taken']}T00:00:00Z")
    CAPTURES.mkdir(exist_ok=True)
    (CAPTURES / f"{arguments.name}.json").write_text(text, encoding="ascii")
    (CAPTURES / f"{arguments.name}.facts.json").write_text(recording.dumps({**facts}), encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
