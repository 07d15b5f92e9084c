# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible_test.py ARGUMENT...: run ansible-test here, with nothing but the machine's own pip.

ansible-test fills its environments by a script it downloads (get-pip.py), and runs pip without
the variables that configure it. So both are put where it looks: a stand-in for the script, and
the configuration in a file, in a separate home directory: yours stays as it is.
"""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path

GET_PIP = '''\
"""Stand-in for get-pip.py: the pip that comes with Python installs the one that is wanted."""
import subprocess
import sys

# As a separate process: ensurepip makes pip deaf to its configuration.
subprocess.check_call([sys.executable, "-m", "ensurepip"], stdout=subprocess.DEVNULL)
wanted = [word for word in sys.argv[1:] if word not in ("--no-setuptools", "--no-wheel")]
sys.exit(subprocess.call([sys.executable, "-m", "pip", "install", "--quiet"] + wanted))
'''


def prepare(home: Path, venv: Path) -> None:
    """Put the stand-in and the configuration where the ansible-test of `venv` looks for them."""
    cache = home / ".ansible/test/cache"
    cache.mkdir(parents=True, exist_ok=True)
    version = wanted_pip(venv).replace(".", "_")
    (cache / f"get_pip_{version}.py").write_text(GET_PIP)
    config = home / ".config/pip/pip.conf"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.touch(mode=0o600)
    config.write_text(pip_config())


def wanted_pip(venv: Path) -> str:
    """Return the version of pip that this ansible-test wants to start with."""
    (source,) = venv.glob("lib/python*/site-packages/ansible_test/_internal/python_requirements.py")
    version = re.search(r"^ +pip='([0-9.]+)'", source.read_text(), re.M)
    assert version, f"no version of pip in {source}"
    return version[1]


def ask_pip(*words: str) -> str:
    """Return what this environment's pip says."""
    command = [sys.executable, "-m", "pip", *words]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def pip_config() -> str:
    """Return what configures pip here, files and variables, as one configuration file."""
    found = re.findall(r"^(global|install|:env:)\.(\S+)='(.*)'$", ask_pip("config", "list"), re.M)
    # Variables come last, because they win over files.
    found.sort(key=lambda setting: setting[0] == ":env:")
    settings = {"quiet": "1", "cache-dir": ask_pip("cache", "dir").strip()}
    settings.update((name, value) for _section, name, value in found)
    return "[global]\n" + "".join(f"{name} = {value}\n" for name, value in settings.items())


def main(arguments: list[str]) -> int:
    """Run ansible-test in the collection that is the current directory."""
    # Where the environment lies, however it is called: what ansible-test installs stays there for the next checkout.
    venv = Path(sys.prefix).resolve()
    home = venv / "home"
    home.mkdir(exist_ok=True)
    with (home / "lock").open("w") as handle:
        # It installs while it runs, and two at once do not know of each other.
        fcntl.flock(handle, fcntl.LOCK_EX)
        prepare(home, venv)
        command = [str(venv / "bin/ansible-test"), *arguments, "--color", "no"]
        return subprocess.call(command, env={**os.environ, "HOME": str(home)})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
