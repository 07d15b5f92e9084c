# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The battery runs down: engines stop cleanly before the power goes. And what is left where it goes before that."""

from __future__ import annotations

import random
import re
import string
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from support.runs import Executions, Playbooks
from support.site import FLUSHED, GUARD, LEASE, LOW, Site

from proof import exposure

HOST = "power"
ENGINES = ("postgresql@15-main.service", "firebird3.0.service")
POSTGRESQL_LOG = "/var/log/postgresql/postgresql-15-main.log"
#: What PostgreSQL says at its start: after a clean stop, and after none.
CLEAN, RECOVERED = "database system was shut down at", "database system was interrupted; last known up at"


def new_words() -> str:
    """Return words that were never said before; no letter twice, for Firebird writes rows of one letter as their number."""
    return "".join(random.sample(string.ascii_lowercase, 16))


def last_start(site: Site) -> str:
    """Return what PostgreSQL has said since its last start."""
    site.until(
        f"pg_isready -q -h /run/postgresql && grep -q 'ready to accept' {POSTGRESQL_LOG}", "PostgreSQL is up"
    )
    return site.sh(f"cat {POSTGRESQL_LOG}").rpartition("starting PostgreSQL")[2]


def damage(site: Site) -> str:
    """Return what gfix says of Firebird's database: of one that was closed, nothing."""
    site.sh("systemctl stop firebird3.0")
    try:
        return site.sh(
            "setpriv --reuid firebird --regid firebird --clear-groups env HOME=/tmp"
            " gfix -v -full -user SYSDBA /srv/db/firebird/lab.fdb 2>&1"
        )
    finally:
        site.sh("systemctl start firebird3.0")


def order(site: Site, *options: str) -> list[str]:
    """Return what happened in a boot, in order: `flushed`, and the names of units that have stopped."""
    found = []
    for line in site.journal("", *options):
        message, unit = str(line.get("MESSAGE")), str(line.get("UNIT", ""))
        if line.get("_SYSTEMD_UNIT") == GUARD and FLUSHED in message:
            found.append("flushed")
        elif (
            line.get("SYSLOG_IDENTIFIER") == "systemd"
            and message.startswith("Stopped ")
            and unit in (*ENGINES, GUARD)
        ):
            found.append(unit)
    return found


def test_rebooted_on_battery_barriers_are_on_and_stay_on(loose: Site) -> None:
    # What the UPS says at the next boot too.
    loose.sh("echo OB DISCHRG > /etc/lab-ups")
    loose.ups("OB DISCHRG")
    loose.machine.reboot()
    assert loose.barrier() == "on"
    loose.await_ups("OB")
    loose.sh("sleep 20")  # twice the quiet time
    assert loose.barrier() == "on"
    said = loose.sh(
        f"systemctl is-active {GUARD}; journalctl --boot --no-pager --output=cat _SYSTEMD_UNIT={GUARD}"
    )
    assert said.startswith("active")
    assert "barriers are off" not in said
    cursor = loose.cursor()
    loose.ups("OL")
    loose.await_guard(cursor, "barriers are off")


def test_an_idle_database_keeps_its_last_commit_and_recovers_where_the_power_went_at_once(
    loose: Site,
) -> None:
    words = new_words()
    begin = len(loose.events())
    loose.psql(f"insert into said values ('{words} of PostgreSQL')")
    loose.isql(f"insert into said values ('{words} of Firebird'); commit;")
    # Now nobody writes any more, and nobody flushes.
    loose.sh(f"sleep 2; {loose.mark('idle')}")
    cursor = loose.cursor()
    loose.ups("OB DISCHRG")
    loose.await_guard(cursor, FLUSHED)
    assert loose.barrier() == "on"
    image = loose.cut()
    events, idle = loose.events(), loose.at("idle")
    for engine in ("PostgreSQL", "Firebird"):
        durable = exposure.made_durable(events[begin:], f"{words} of {engine}".encode())
        # A cut while all was well would have taken it; the guard's flush made it durable.
        assert durable is not None and durable > idle, engine
    loose.boot_over(image)
    # Killed before any shutdown: recovery does run.
    said = last_start(loose)
    assert RECOVERED in said
    assert "automatic recovery in progress" in said
    assert loose.psql(f"select count(*) from said where words = '{words} of PostgreSQL'") == "1"
    assert (
        "1"
        in loose.isql(
            f"set heading off; select count(*) from said where words = '{words} of Firebird';"
        ).split()
    )


def test_when_the_battery_is_low_upsmon_shuts_down_and_the_engines_have_stopped_cleanly(loose: Site) -> None:
    words = new_words()
    loose.isql(f"insert into said values ('{words}'); commit;")
    begin = len(loose.events())
    with loose.inserting() as job:
        boot = loose.sh("cat /proc/sys/kernel/random/boot_id").replace("-", "")
        loose.ups("OB DISCHRG")
        loose.await_barrier("on")
        loose.ups("OB DISCHRG", LOW)
        image = loose.await_power_off(but_the_last=True)
    acknowledged = {
        exposure.named(event) for event in loose.events()[begin:] if exposure.is_acknowledgement(event)
    }
    assert acknowledged
    loose.boot_over(image)

    said = last_start(loose)
    assert CLEAN in said
    assert RECOVERED not in said and "recovery" not in said
    # The last line before that of this start, of which only the date is left here.
    stopped = loose.sh(f"cat {POSTGRESQL_LOG}").rpartition("starting PostgreSQL")[0]
    assert stopped.splitlines()[-2].endswith("database system is shut down")
    rows = {
        tuple(map(int, line.split("|")))
        for line in loose.psql(f"select client, number from commits where seed = {job.seed}").splitlines()
    }
    assert acknowledged <= rows
    assert "1" in loose.isql(f"set heading off; select count(*) from said where words = '{words}';").split()
    assert damage(loose) == ""

    # By the journal of that boot: flushed first of all, the guard has ended before the engines.
    happened = order(loose, f"_BOOT_ID={boot}")
    assert happened[-4:-2] == ["flushed", GUARD], happened
    assert set(happened[-2:]) == set(ENGINES), happened
    for unit in ENGINES:
        ended = [str(line["MESSAGE"]) for line in loose.journal("", f"_BOOT_ID={boot}", f"UNIT={unit}")]
        assert any("Deactivated successfully" in line for line in ended)
        assert not any("timed out" in line or "Killing" in line for line in ended)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "durable_confirm=test-shutdown"),
        (("-e", "durable_confirm=pull-the-plug"), "durable_confirm=test-shutdown"),
        (("-e", "durable_confirm=test-shutdown", "--check"), "check mode"),
    ],
    ids=["no word", "another's word", "check mode"],
)
def test_a_rehearsal_without_its_word_does_not_even_ask(
    site: Site, playbooks: Playbooks, hardened: object, options: tuple[str, ...], said: str
) -> None:
    executions = Executions(site.machine)
    run = playbooks.run("test-shutdown", *options)
    assert run.code == 2
    assert said in " ".join(run.output.split())
    assert executions.count() == 0


def test_a_rehearsal_shuts_down_reads_what_happened_and_writes_the_attestation(
    loose: Site, playbooks: Playbooks
) -> None:
    # Beside it the machine is booted again when it has switched itself off, as by a UPS when the power is back. Not the
    # other way round: a disk is served as long as the thread lives that began to.
    with ThreadPoolExecutor(1) as pool:
        rehearsed = pool.submit(
            playbooks.run,
            "test-shutdown",
            "-e",
            "durable_confirm=test-shutdown",
            variables={"durable_hosts": HOST, "durable_attested_by": "the lab", "durable_wait": 420},
        )
        loose.boot_over(loose.await_power_off(300.0))
        run = rehearsed.result(600.0)
    assert run.code == 0
    (name,) = [name for name in run.reports if "shutdown" in name]
    report = run.reports[name]
    assert report["verdict"] == "kept", report
    text = Path(playbooks.directory, "durable-report", f"{name}.yml").read_text()
    (claim,) = yaml.safe_load(text)["durable_attestations_host"]
    assert (claim["claim"], claim["target"], claim["by"]) == ("ups_rehearsed", "host", "the lab")
    # The table has each engine, and how long it took.
    assert "postgresql 15/main stops" in run.output
    assert re.search(r"firebird \S+ stops", run.output)
    assert CLEAN in last_start(loose)
    # It is back, and loosens again by itself.
    assert loose.sh(f"[ -e {LEASE} ] && echo there") == "there"
    loose.mend()
    loose.await_barrier("off")
