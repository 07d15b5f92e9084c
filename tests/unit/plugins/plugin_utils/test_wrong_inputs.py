# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each wrong variable is reported with the observed value, the accepted values, the nearest one, and a fix."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.page import render
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import CORRECT, Refusal
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect
from ansible_collections.durable.dbhost.plugins.plugin_utils.variables import _dir_errors, _formats_errors
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fleet import report
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.runs import (
    NOW,
    attested,
    inputs,
)
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.small_host import SmallHost

#: Names of the shipped profiles, as messages list them.
PROFILES = "disposable, flush, protected, strict, ups"
#: The usual profile of a site, complete.
BATCH = {
    "summary": "x",
    "write_cache": "disabled",
    "barrier": "on",
    "data_mode": "ordered",
    "atime": "noatime",
    "rests_on": "device",
}
FIELDS = "expected exactly claim, target, by, reason, expires"
IGNORED = {"engine": "postgresql", "by": "Ana", "reason": "x", "expires": "2026-03-01"}
ACCEPTED = {
    "finding": "risk.barrier_off",
    "target": "/srv",
    "by": "Ana",
    "reason": "x",
    "expires": "2026-03-01",
}
MONITOR = {"system": "rack@localhost", "power_value": 1, "user": "upsmon", "type": "primary"}

#: (variable, value, observed, accepted values, fix or nearest value)
WRONG: list[tuple[str, Any, str, str, str]] = [
    ("profile", "stritc", "observed 'stritc'", PROFILES, "Did you mean strict?"),
    ("profile", "", "observed ''", PROFILES, "pin one of these"),
    ("profile", 5, "observed 5", PROFILES, "pin one of these"),
    ("profile", ["strict"], "observed ['strict']", PROFILES, "Did you mean strict?"),
    ("own", {"strict": BATCH}, "observed strict", "a name of your own", "give your profile another name"),
    ("own", {True: BATCH}, "observed the name True", "expected text", "in quotes"),
    ("own", ["batch"], "observed ['batch']", "expected a mapping", CORRECT),
    ("overrides", {"barier": "on"}, "observed 'barier'", "write_cache, barrier", "Did you mean barrier?"),
    ("overrides", {"barrier": False}, "observed the boolean False", "off, keep, on", "in quotes"),
    ("overrides", {"atime": "noatim"}, "observed 'noatim'", "keep, noatime", "Did you mean noatime?"),
    ("overrides", {"barrier": "off"}, "barrier 'off'", "contradict each other", "set barrier 'on'"),
    ("overrides", {"readahead": 5}, "observed 5", "a multiple of 4", CORRECT),
    ("overrides", {"commit_delay": "shrt"}, "observed 'shrt'", "'keep', 'short'", "Did you mean short?"),
    (
        "mounts",
        "/srv/pgdata",
        "observed '/srv/pgdata'",
        "a list",
        "write a list: durable_mounts: [/srv/pgdata]",
    ),
    ("mounts", ["srv/pgdata"], "observed 'srv/pgdata'", "absolute path", "Did you mean /srv/pgdata?"),
    ("mounts", [7], "observed 7", "absolute path", CORRECT),
    (
        "mounts",
        ["/srv/pgdat"],
        "observed /srv/pgdat",
        "expected one of /, /srv/maria",
        "Did you mean /srv/pgdata?",
    ),
    ("databases", "pg", "observed 'pg'", "expected a list", CORRECT),
    (
        *("databases", [{"engine": "postgres", "paths": ["/srv/pgdata"]}]),
        *("observed {'engine': 'postgres'", "mssql, faircom", "Did you mean postgresql?"),
    ),
    (
        *("databases", [{"engine": "mssql", "path": ["/"]}]),
        *("observed 'path'", "only engine and paths", "Did you mean paths?"),
    ),
    ("databases", [{"engine": "mssql"}], "no paths", "durable_databases[0]", "list the directories"),
    (
        *("mount_profiles", {"/srv/pgdata": "stritc"}),
        *("observed 'stritc'", PROFILES, "Did you mean strict?"),
    ),
    (
        *("mount_profiles", {"srv/pgdata": "strict"}),
        *("observed 'srv/pgdata'", "absolute path", "Did you mean /srv/pgdata?"),
    ),
    (
        *("mount_profiles", {"/srv/pgdata": {"profil": "strict"}}),
        *("observed {'profil'", "profile, overrides or both", "Did you mean profile?"),
    ),
    ("attestations", "me", "observed 'me'", "expected a list", CORRECT),
    (
        *("attestations", [attested("host_honours_fulsh")]),
        *("observed 'host_honours_fulsh'", "power_loss_protection", "Did you mean host_honours_flush?"),
    ),
    (
        *("attestations", [{**attested(), "expires": "30/06/2026"}]),
        *("observed '30/06/2026'", 'expected "YYYY-MM-DD"', 'for example expires: "2027-'),
    ),
    (
        *("attestations", [{**attested(), "expires": "20260630"}]),
        *("observed '20260630'", 'expected "YYYY-MM-DD"', 'expires: "20'),
    ),
    (
        *("attestations", [{**attested(), "expires": datetime.date(2026, 6, 30)}]),
        *("an unquoted date (2026-06-30)", "expected text", 'write expires: "2026-06-30", in quotes'),
    ),
    (
        *("attestations", [{**attested(), "expires": "2036-01-30"}]),
        *("observed 2036-01-30", "or sooner", "or an earlier day"),
    ),
    (
        *("attestations", [{**attested(), "by": ""}]),
        *("by: observed ''", "the name of the person or team", "check the claim, then complete by"),
    ),
    (
        *("attestations", [{key: each for key, each in attested().items() if key != "expires"}]),
        *("missing expires", FIELDS, "add expires"),
    ),
    (
        *("attestations", [{**attested(), "expirez": "x"}]),
        *("observed the unknown key 'expirez'", FIELDS, "Did you mean expires?"),
    ),
    (
        *("attestations", [{**attested(), "target": "host"}]),
        *("observed target 'host'", "expected ", CORRECT),
    ),
    ("ignore", [{}], "missing engine", "engine, by, reason, expires", "add engine, by, reason, expires"),
    (
        *("ignore", [{**IGNORED, "engine": "postgress"}]),
        *("observed 'postgress'", "mssql, faircom", "Did you mean postgresql?"),
    ),
    (
        *("accept", [{**ACCEPTED, "finding": "risk.barier_off"}]),
        *("observed 'risk.barier_off'", "an id of the report's reasons", "Did you mean risk.barrier_off?"),
    ),
    (
        *("accept", [{**ACCEPTED, "finding": "host.input"}]),
        *("observed host.input", "expected one of a setting, requirement", "delete the entry"),
    ),
    (
        "allow",
        "reboot",
        "observed 'reboot'",
        "restart_engines, reboot",
        "write a list: durable_allow: [reboot]",
    ),
    ("allow", ["rebot"], "observed ['rebot']", "restart_engines, reboot", "Did you mean reboot?"),
    ("layers", ["write_cahce"], "observed ['write_cahce']", "storage", "Did you mean write_cache?"),
    ("fail_on", ["at_rsk"], "observed ['at_rsk']", "at_risk, blocked", "Did you mean at_risk?"),
    ("accept_data_loss", "true", "observed the text 'true'", "true or false", "on the command line use -e"),
    ("undo_after", 7, "observed 7", "from 60 to 86400, or 0", CORRECT),
    ("time_limit", 9, "observed 9", "from 10 to 86400, or 0", CORRECT),
    ("ups", {"quite": 7}, "observed quite", "quiet, margin", "Did you mean quiet?"),
    ("ups", {"quiet": "7"}, "observed '7'", "seconds as a number", CORRECT),
    ("ups", {"monitor": "rack@localhost 1"}, "observed text", "system, power_value, user, type", CORRECT),
    (
        *("ups", {"monitor": {**MONITOR, "type": "primry"}}),
        *("observed 'primry'", "primary or secondary", "Did you mean primary?"),
    ),
    (
        *("ups", {"shutdown_command": "/sbin/reboot"}),
        *(
            "'/sbin/reboot' does not shut this host down at once",
            "restarts the host",
            "use /sbin/shutdown -h now",
        ),
    ),
    ("names", ["durable_mount"], "durable_mount: no such variable", "", "Did you mean durable_mounts?"),
    (
        "names",
        ["postgresql_tragets"],
        "postgresql_tragets: no such variable",
        "",
        "Did you mean postgresql_targets?",
    ),
]


@pytest.mark.parametrize(("variable", "value", "observed", "accepted", "fix"), WRONG)
def test_each_has_what_was_observed_what_is_accepted_and_a_fix(
    variable: str, value: Any, observed: str, accepted: str, fix: str
) -> None:
    found = assess(inputs(**{"profile": "strict", variable: value}), collect(SmallHost(), NOW), NOW)
    reasons = [each for each in found["reasons"] if observed in each["reason"]]
    (reason,) = [each for each in reasons if fix in each["fix"]]
    assert accepted in reason["reason"]
    assert found["changes"] == []
    shown = " ".join(render([report("db1", found)]).split())
    assert observed in shown
    assert f"fix: {reason['fix']}" in shown or len(reason["fix"]) > 200


def test_forty_and_more_are_tried() -> None:
    assert len(WRONG) >= 40


@pytest.mark.parametrize(
    ("errors", "value", "accepted", "fix"),
    [
        (_dir_errors, 5, "a path as text, or ''", "write the path in quotes"),
        (_formats_errors, ["htlm"], "json, text, html, junit, sarif", "Did you mean html?"),
        (_formats_errors, "html", "expected a list of", "write a list: durable_report_formats: [html]"),
        (_formats_errors, 5, "expected a list of", CORRECT),
    ],
)
def test_the_variables_of_the_files_have_it_too(errors: Any, value: Any, accepted: str, fix: str) -> None:
    (error,) = errors(value)
    assert isinstance(error, Refusal)
    assert f"observed {value!r}" in error.problem
    assert accepted in error.problem
    assert fix in error.fix
    assert list(errors("" if errors is _dir_errors else ["html"])) == []


def test_a_misspelt_profile_does_not_hide_a_wrong_mount() -> None:
    given = inputs("stritc", mounts=["/srv/pgdat"])
    page = " ".join(render([report("db1", assess(given, collect(SmallHost(), NOW), NOW))]).split())
    for each in (
        "observed 'stritc'",
        "Did you mean strict?",
        "observed /srv/pgdat",
        "Did you mean /srv/pgdata?",
    ):
        assert each in page
