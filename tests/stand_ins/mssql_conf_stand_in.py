# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for SQL Server's mssql-conf, after its documentation: set, unset, traceflag, get, list.

It rewrites mssql.conf in place as Python's ConfigParser does: keys in small letters, comments gone,
owner and mode kept, nothing brought to the disk. MSSQL_STAND_IN_ROOT is put before its path, for tests.
"""

from __future__ import annotations

import argparse
import configparser
import grp
import os
import re
import shutil
import sys

CONFIG = os.environ.get("MSSQL_STAND_IN_ROOT", "") + "/var/opt/mssql/mssql.conf"
STAND_IN = "(stand-in for mssql-conf)"
_SWITCH, _PATH, _TEXT = r"[01]", r"/.*", r".+"
#: Settings that it knows, with what their values look like.
SUPPORTED = {
    "control.alternatewritethrough": ("Enable optimized write through flush for O_DSYNC requests", _SWITCH),
    "control.writethrough": ("Use O_DSYNC for file flag write through requests", _SWITCH),
    "filelocation.defaultbackupdir": ("Default directory for backup files", _PATH),
    "filelocation.defaultdatadir": ("Default directory for data files", _PATH),
    "filelocation.defaultdumpdir": ("Default directory for crash dump files", _PATH),
    "filelocation.defaultlogdir": ("Default directory for log files", _PATH),
    "filelocation.errorlogfile": ("Error log file location", _PATH),
    "filelocation.masterdatafile": ("Master database data file location", _PATH),
    "filelocation.masterlogfile": ("Master database log file location", _PATH),
    "language.lcid": ("Locale identifier for SQL Server to use", r"\d+"),
    "memory.memorylimitmb": ("SQL Server memory limit (megabytes)", r"\d+"),
    "network.tcpport": ("TCP port for incoming connections", r"\d+"),
    "sqlagent.enabled": ("Enable or disable SQLAgent", r"true|false"),
    "telemetry.customerfeedback": ("Telemetry status", r"true|false"),
}
RESTART = (
    "SQL Server needs to be restarted in order to apply this setting. Please run\n"
    f"'systemctl restart mssql-server.service'. {STAND_IN}"
)


def main() -> None:
    """Run the command."""
    given = _arguments()
    _expect_member()
    commands = {
        "get": lambda: _get(given.setting),
        "list": _list,
        "set": lambda: _set(given.setting, given.value),
        "traceflag": lambda: _trace_flags(given.flags, given.state),
        "unset": lambda: _unset(given.setting),
    }
    commands[given.command]()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mssql-conf", description=STAND_IN)
    parser.add_argument("-n", "--noprompt", action="store_true")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("set")
    one.add_argument("setting")
    one.add_argument("value")
    commands.add_parser("unset").add_argument("setting")
    commands.add_parser("get").add_argument("setting")
    commands.add_parser("list")
    flags = commands.add_parser("traceflag")
    flags.add_argument("flags", nargs="+")
    flags.add_argument("state", choices=["on", "off"])
    return parser.parse_args()


def _expect_member() -> None:
    """End where neither root nor a member of the group mssql runs it, on a machine that has this group."""
    members = [group.gr_gid for group in grp.getgrall() if group.gr_name == "mssql"]
    if os.geteuid() != 0 and members and not {os.getegid(), *os.getgroups()} & set(members):
        print(f"This program must be run as superuser or as a member of the group mssql. {STAND_IN}")
        sys.exit(1)


def _set(name: str, value: str) -> None:
    section, key = _known(name)
    if not re.fullmatch(SUPPORTED[f"{section}.{key}"][1], value):
        print(f"Validation error on setting '{section}.{key}' {STAND_IN}", file=sys.stderr)
        sys.exit(1)
    config = _read()
    if not config.has_section(section):
        config.add_section(section)
    config.set(section, key, value)
    _write(config)


def _unset(name: str) -> None:
    section, key = _known(name)
    config = _read()
    if config.has_section(section):
        config.remove_option(section, key)
        if not config.options(section):
            config.remove_section(section)
    _write(config)


def _trace_flags(numbers: list[str], state: str) -> None:
    """Add flags under the first free numbers, or take them away by their value."""
    wrong = [number for number in numbers if not number.isdigit()]
    if wrong:
        print(f"The trace flag '{wrong[0]}' is not valid {STAND_IN}", file=sys.stderr)
        sys.exit(1)
    config = _read()
    if not config.has_section("traceflag"):
        config.add_section("traceflag")
    for number in numbers:
        there = [key for key, value in config.items("traceflag") if value == number]
        if state == "off":
            for key in there:
                config.remove_option("traceflag", key)
        elif not there:
            free = next(i for i in range(10000) if not config.has_option("traceflag", f"traceflag{i}"))
            config.set("traceflag", f"traceflag{free}", number)
    if not config.options("traceflag"):
        config.remove_section("traceflag")
    _write(config)


def _get(name: str) -> None:
    section, _dot, key = name.partition(".")
    config = _read()
    if not config.has_section(section):
        print(f"No setting for the given key {STAND_IN}")
        sys.exit(1)
    for found, value in config.items(section):
        if key in ("", found):
            print(f"{found} : {value}")


def _list() -> None:
    for name, (text, _pattern) in sorted(SUPPORTED.items()):
        print(f"{name:<42} {text}")
    print(STAND_IN)


def _known(name: str) -> tuple[str, str]:
    if name.lower() not in SUPPORTED:
        print(f"The setting '{name}' is not supported. {STAND_IN}", file=sys.stderr)
        sys.exit(1)
    section, _dot, key = name.lower().partition(".")
    return section, key


def _read() -> configparser.ConfigParser:
    config = configparser.ConfigParser(allow_no_value=True, interpolation=None)
    try:
        config.read(CONFIG)
    except (configparser.Error, UnicodeDecodeError):
        print(f"There was a parsing error in the configuration file. {STAND_IN}", file=sys.stderr)
        sys.exit(1)
    return config


def _write(config: configparser.ConfigParser) -> None:
    is_new = not os.path.exists(CONFIG)
    try:
        with open(CONFIG, "w", encoding="utf-8") as handle:
            config.write(handle)
    except OSError:
        print(f"Permission denied to modify SQL Server configuration. {STAND_IN}", file=sys.stderr)
        sys.exit(1)
    if is_new and os.geteuid() == 0:
        try:
            shutil.chown(CONFIG, "mssql", "mssql")
        except LookupError:
            pass  # A machine without that user: a test's.
    print(RESTART)


if __name__ == "__main__":
    main()
