# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The closed list of fixes of a UPS condition. Data.

A host reports a fix by its keyword, with values; ups/findings.py has the sentence of each.
"""

from __future__ import annotations

import re

#: Fix -> the names of its values, each a text.
PARAMETERS: dict[str, tuple[str, ...]] = {
    fix: tuple(names.split())
    for fix, names in {
        "install_monitor": "",
        "allow_systemctl": "",
        "disable_one": "first second",
        "start_unit": "unit",
        "enable_unit": "unit",
        "unmask_unit": "unit",
        "unmask_unit.runtime": "unit",
        "restart_unit": "unit",
        "harden": "",
        "correct_file": "path",
        "make_readable": "path",
        "write_number": "directive path",
        "write_mode": "path",
        "write_configured": "path",
        "add_monitor": "path",
        "set_supplies": "path",
        "raise_supplies": "path",
        "set_type": "path",
        "write_master": "path",
        "set_shutdown_command": "",
        "set_powerdown_flag": "",
        "restore_apccontrol": "",
        "end_script": "path",
        "make_hooks_readable": "path",
        "install_hook": "path",
        "install_hook.apcupsd": "directory scripts flags",
        "zero_kill_delay": "path",
        "check_upsd": "system",
        "check_apcupsd": "address",
        "serve_status": "path port",
        "check_cable": "system",
        "send_status": "status",
        "send_status.empty": "",
        "status.OB": "system",
        "status.LB": "system",
        "status.FSD": "system",
        "status.RB": "system",
        "status.BYPASS": "system",
        "status.OFF": "system",
        "status.OVER": "system",
        "status.ALARM": "system",
        "status.WAIT": "system",
        "status.CAL": "system",
        "status.NOBATT": "system",
        "use_real_driver": "",
        "use_real_driver.apcupsd": "",
        "monitor_real_driver": "system",
        "report_driver": "system",
        "report_runtime": "",
        "charge_battery": "",
        "start_earlier": "seconds minutes",
        "start_earlier.unknown_need": "",
        "report_low_battery": "seconds minutes",
        "report_low_battery.unknown_need": "",
        "limit_stop": "unit",
        "use_own_unit": "engine unit",
        "use_own_unit.none": "engine",
    }.items()
}
#: Forms of values that are words of commands.
_UNIT, _COUNT = re.compile(r"[\w:.\\@-]{1,255}", re.ASCII), re.compile(r"[\d.]{1,12}", re.ASCII)
_FORMS = {
    "unit": _UNIT,
    "first": _UNIT,
    "second": _UNIT,
    "seconds": _COUNT,
    "minutes": _COUNT,
    "port": _COUNT,
}


def fits(fix: object) -> bool:
    """Return whether a fact is one of these fixes, with its values and no others."""
    if not isinstance(fix, dict) or set(fix) != {"fix", "parameters"}:
        return False
    name, parameters = fix["fix"], fix["parameters"]
    return (
        isinstance(name, str)
        and name in PARAMETERS
        and isinstance(parameters, dict)
        and set(parameters) == set(PARAMETERS[name])
        and all(isinstance(value, str) for value in parameters.values())
        and all(_FORMS[key].fullmatch(value) for key, value in parameters.items() if key in _FORMS)
    )
