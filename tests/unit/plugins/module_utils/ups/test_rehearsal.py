# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rehearsed shutdown: what its journals show, each fault alone, and what is refused before it.

The journals are written after systemd.journal-fields(7), systemd's catalogue of messages, and the sources of
upsmon and apcupsd; none was captured.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.our_paths import SERVICE
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Result, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.ups import journal, rehearsal, rehearsal_host
from ansible_collections.durable.dbhost.plugins.module_utils.ups.rehearsal import Engine, Job

from ..fakes.nut_host import TEXT, UPSMON, ApcHost, MonitorHost, NutHost

BOOT, NEXT = "11111111-2222-3333-4444-555555555555", "99999999-2222-3333-4444-555555555555"
PG, MARIA = "postgresql@15-main.service", "mariadb.service"
ENGINES = (Engine("postgresql", "15/main", PG, "3600"), Engine("mariadb", "mariadb", MARIA, "900"))
JOB = Job(BOOT, 1700000000, "nut", "nut-monitor.service", "monitor", ENGINES, SERVICE)
UP = {PG: "yes", MARIA: "yes"}


def line(at: float, text: str, unit: str = "", pid: str = "700", **fields: Any) -> dict[str, Any]:
    """Return an entry of a service's process."""
    return {
        "__MONOTONIC_TIMESTAMP": str(int(at * 1e6)),
        "MESSAGE": text,
        "_SYSTEMD_UNIT": unit,
        "_PID": pid,
        **fields,
    }


def manager(at: float, text: str, unit: str, message: str = "", **fields: Any) -> dict[str, Any]:
    """Return an entry of systemd's own."""
    return line(at, text, "init.scope", "1", UNIT=unit, MESSAGE_ID=message, **fields)


def ended() -> list[dict[str, Any]]:
    """Return the end of a boot in which all went well."""
    return [
        line(100, "Signal 10: User requested FSD", "nut-monitor.service"),
        line(100.1, "Executing automatic power-fail shutdown", "nut-monitor.service"),
        line(100.2, "tightening: the monitor said FSD", SERVICE),
        line(100.4, "tight after 0.212 s: the monitor said FSD", SERVICE),
        manager(105, f"Stopping {SERVICE}", SERVICE, journal.STOPPING),
        line(105.1, "stopped: it was told to stop", SERVICE),
        manager(105.2, f"Stopped {SERVICE}", SERVICE, journal.STOPPED),
        manager(105.3, "Stopping MariaDB", MARIA, journal.STOPPING),
        manager(105.3, "Stopping PostgreSQL", PG, journal.STOPPING),
        manager(107.3, "Stopped PostgreSQL", PG, journal.STOPPED),
        manager(113.4, "mariadb.service: Deactivated successfully.", MARIA),
        manager(113.5, "Stopped MariaDB", MARIA, journal.STOPPED),
        line(114, "Journal stopped", "systemd-journald.service", "300"),
    ]


def now() -> list[dict[str, Any]]:
    """Return the beginning of the boot after it."""
    return [
        line(2, "EXT4-fs (sda1): mounted filesystem with ordered data mode. Quota mode: none."),
        line(3, "XFS (sdb1): Ending clean mount"),
        line(9, "LOG:  database system was shut down at 2026-01-31 12:00:00 UTC", PG),
        line(9, "0 [Note] /usr/sbin/mariadbd: ready for connections.", MARIA),
    ]


def text_of(entries: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def judged(
    old: list[dict[str, Any]] | None = None,
    new: list[dict[str, Any]] | None = None,
    job: Job = JOB,
    told: dict[str, str] | None = None,
) -> rehearsal.Outcome:
    before = journal.parse(text_of(ended() if old is None else old))
    after = journal.parse(text_of(now() if new is None else new))
    return rehearsal.judge(job, before, after, UP, told or {})


def without(*words: str) -> list[dict[str, Any]]:
    found = [entry for entry in ended() if not any(word in entry["MESSAGE"] for word in words)]
    assert len(found) < len(ended())
    return found


def test_a_shutdown_as_it_has_to_be() -> None:
    seen = judged()
    assert seen.verdict == "kept"
    assert [(row.step, row.began, row.ended, row.fault) for row in seen.rows] == [
        ("nut shuts the host down", 0.0, None, ""),
        ("the guard has barriers on, and flushed", 5.1, 5.1, ""),
        ("postgresql 15/main stops", 5.3, 7.3, ""),
        ("mariadb mariadb stops", 5.3, 13.5, ""),
        ("the journal of that boot ends", 14.0, None, ""),
    ]
    assert (seen.recovered, seen.seconds) == ({"postgresql 15/main": "no", "mariadb mariadb": "no"}, 13.5)
    assert "not_kept" not in rehearsal.table(seen)


FAULTS: dict[str, tuple[list[dict[str, Any]], str]] = {
    "the monitor is silent": (without("FSD", "Executing"), "nothing in its journal says that it did"),
    "another unit speaks like the monitor": (
        [*without("FSD", "Executing"), line(1, "Executing automatic power-fail shutdown", "other.service")],
        "nothing in its journal says that it did",
    ),
    "the guard is silent": (without("tight after", "stopped:"), "it does not say so before an engine"),
    "the guard is loose again": (
        [
            *ended()[:4],
            line(104, "/srv/pgdata: barriers are off", SERVICE),
            *without("tight after", "stopped:")[2:],
        ],
        "it does not say so before an engine",
    ),
    "the guard is late": (
        [*without("tight after", "stopped:"), line(106, "stopped: it was told to stop", SERVICE)],
        "it does not say so before an engine",
    ),
    "the guard fails": (
        [
            *without("stopped:")[:4],
            line(104, "failed after 5.0 s: /srv/pgdata: no flush", SERVICE),
            *ended()[6:],
        ],
        "failed after 5.0 s: /srv/pgdata: no flush",
    ),
    "an engine is never stopped": (
        without("MariaDB"),
        "mariadb mariadb stops: systemd does not say that it stopped",
    ),
    "an engine does not come to its end": (
        without("Stopped MariaDB"),
        "mariadb mariadb stops: systemd began to stop it, and does not say",
    ),
    "a stop times out": (
        [*ended(), manager(112, "mariadb.service: State 'stop-sigterm' timed out. Killing.", MARIA)],
        "did not stop cleanly without a kill (mariadb.service: State 'stop-sigterm' timed out",
    ),
    "a process is killed": (
        [*ended(), manager(112, "mariadb.service: Killing process 7 (mariadbd) with signal SIGKILL.", MARIA)],
        "did not stop cleanly without a kill (mariadb.service: Killing process 7",
    ),
    "a service fails": (
        [*ended(), manager(112, "x", MARIA, journal.FAILURE_RESULT, UNIT_RESULT="exit-code")],
        "did not stop cleanly without a kill (x)",
    ),
    "an engine is started again and not stopped": (
        [*ended()[:-1], manager(113.8, "Stopping MariaDB", MARIA, journal.STOPPING), ended()[-1]],
        "mariadb mariadb stops: systemd began to stop it, and does not say",
    ),
    "its last entry is older than a stop": (
        [*ended()[:-1], line(110, "Journal stopped", "systemd-journald.service", "300")],
        "the journal of that boot ends: its journal ends before that",
    ),
    "an engine stops before the monitor speaks": (
        [manager(99, "Stopping PostgreSQL", PG, journal.STOPPING), *without("Stopping PostgreSQL")],
        "postgresql 15/main stops: began to stop before the monitor spoke",
    ),
    "nothing is left": ([], "its journal ends before that"),
}


@pytest.mark.parametrize(("old", "why"), FAULTS.values(), ids=FAULTS)
def test_each_fault_of_the_shutdown_alone(old: list[dict[str, Any]], why: str) -> None:
    seen = judged(old)
    assert seen.verdict == "not_kept"
    assert why in seen.why
    assert why in rehearsal.table(seen)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("EXT4-fs (sda1): recovery complete", "sda1"),
        ("EXT4-fs (dm-3): 1 orphan inode deleted", "dm-3"),
        ("XFS (sdb1): Starting recovery (logdev: internal)", "sdb1"),
        ("BTRFS info (device vdb): start tree-log replay", "vdb"),
        ("/dev/sda1: recovering journal", "/dev/sda1"),
        ("/dev/sda1 was not cleanly unmounted, check forced.", None),
        ("/dev/vdc: was not cleanly unmounted, check forced.", "/dev/vdc"),
    ],
)
def test_a_file_system_that_was_not_unmounted(text: str, name: str | None) -> None:
    seen = judged(new=[*now(), line(1, text)])
    if name is None:
        assert seen.verdict == "kept"  # fsck names it first, with a colon; other words of its are unknown.
        return
    assert (seen.verdict, seen.unclean) == ("not_kept", (name,))


@pytest.mark.parametrize(
    ("unit", "text"),
    [
        (PG, "LOG:  database system was not properly shut down; automatic recovery in progress"),
        (MARIA, "2026-01-31 12:00:00 0 [Note] InnoDB: Starting crash recovery from checkpoint LSN=1,1"),
    ],
)
def test_an_engine_that_had_to_recover(unit: str, text: str) -> None:
    seen = judged(new=[*now(), line(8, text, unit)])
    assert seen.verdict == "not_kept"
    assert "had to recover at its start" in seen.why


FAIRCOM = Engine("faircom", "/opt/faircom", PG, "600")


@pytest.mark.parametrize(("word", "verdict"), [("yes", "not_kept"), ("no", "kept"), ("unknown", "kept")])
def test_an_engine_whose_own_log_tells_what_it_recovered(word: str, verdict: str) -> None:
    seen = judged(job=JOB._replace(engines=(FAIRCOM,)), told={FAIRCOM.label: word})
    assert (seen.verdict, seen.recovered) == (verdict, {FAIRCOM.label: word})
    assert (f"{FAIRCOM.label}: had to recover" in seen.why) == (word == "yes")


def test_an_engine_that_says_nothing_is_not_said_to_be_well() -> None:
    assert judged(new=[]).recovered == {"postgresql 15/main": "unknown", "mariadb mariadb": "unknown"}


def test_an_engine_without_a_service_leaves_it_unknown() -> None:
    job = JOB._replace(engines=(*ENGINES, Engine("mssql", "mssql", "", "unknown")))
    seen = judged(job=job)
    assert seen.verdict == "unknown"
    assert "mssql mssql: no service of systemd's" in seen.why


def test_without_a_guard_none_is_looked_for() -> None:
    assert judged(without(SERVICE, "tight", "stopped:"), job=JOB._replace(guard="")).verdict == "kept"


def test_apcupsd_s_own_words() -> None:
    job = JOB._replace(monitor="apcupsd", unit="apcupsd.service")
    old = [line(100, "Initiating system shutdown!", "apcupsd.service"), *ended()[2:]]
    assert judged(old, job=job).verdict == "kept"


def test_the_attestation_is_yaml_that_the_inventory_takes() -> None:
    yaml = pytest.importorskip("yaml")
    text = rehearsal.attestation(JOB, judged(), 'team: "a", # 7', "2026-01-31")
    (entry,) = yaml.safe_load(text)["durable_attestations_host"]
    assert (entry["claim"], entry["target"], entry["by"]) == ("ups_rehearsed", "host", 'team: "a", # 7')
    assert entry["expires"] == "2026-08-03"
    assert "postgresql 15/main, mariadb mariadb stopped cleanly within 13.5 s" in entry["reason"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("no", "no"), "unmounted, nothing had to recover"),
        (("unknown", "no"), "unmounted; whether postgresql 15/main had to recover is unknown"),
    ],
)
def test_nobody_signs_more_than_was_seen(words: tuple[str, str], said: str) -> None:
    yaml = pytest.importorskip("yaml")
    labels = [engine.label for engine in JOB.engines]
    seen = judged()._replace(recovered=dict(zip(labels, words)))
    text = rehearsal.attestation(JOB, seen, "me", "2026-01-31")
    (entry,) = yaml.safe_load(text)["durable_attestations_host"]
    assert entry["reason"].endswith(said)


@pytest.mark.parametrize(("by", "today"), [(" ", "2026-01-31"), ("me", "31.1.2026")])
def test_nobody_or_no_day_attests_nothing(by: str, today: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        rehearsal.attestation(JOB, judged(), by, today)


def test_a_job_is_kept_as_text() -> None:
    assert rehearsal.loads(rehearsal.dumps(JOB)) == JOB


@pytest.mark.parametrize(
    "change",
    [
        {"boot_id": "x"},
        {"unit": "--since=x"},
        {"guard": "a b.service"},
        {"began": "soon"},
        {"engines": [{"engine": "x"}]},
        {"engines": 1},
    ],
)
def test_a_job_of_somebody_else_s_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="job: expected"):
        rehearsal.loads(json.dumps({**json.loads(rehearsal.dumps(JOB)), **change}))


@pytest.mark.parametrize(
    "text", ["no json\n", "[]\n", "{}\n", '{"__MONOTONIC_TIMESTAMP": "x"}\n', "[" * 9999]
)
def test_what_is_no_journal_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="journal line 1: "):
        journal.parse(text)


@pytest.mark.parametrize(
    ("said", "wanted"),
    [([104, 195, 40], "h\ufffd("), (None, ""), (["one", "two"], "one"), ([], ""), (["x", 300], "x"), (7, "")],
)
def test_fields_that_are_no_text(said: Any, wanted: str) -> None:
    (entry,) = journal.parse(json.dumps({"__MONOTONIC_TIMESTAMP": "1500000", "MESSAGE": said}))
    assert (entry.at, entry.text) == (1.5, wanted)


def test_only_systemd_itself_speaks_of_a_unit() -> None:
    forged = line(1, "Stopped", "evil.service", UNIT=PG, MESSAGE_ID=journal.STOPPED)
    (entry,) = journal.parse(text_of([forged]))
    assert (entry.by_systemd, entry.unit) == (False, "evil.service")


ROWS = [
    {"engine": "postgresql", "name": "15/main", "state": "running", "unit": PG, "stop_timeout": "3600"},
    {"engine": "mariadb", "name": "mariadb", "state": "stopped", "unit": MARIA, "stop_timeout": "900"},
]


def ready(host: MonitorHost) -> MonitorHost:
    host.files["/proc/sys/kernel/random/boot_id"] = f"{BOOT}\n"
    host.files["/etc/machine-id"] = "abc\n"
    host.files["/var/log/journal/abc/system.journal"] = ""
    host.commands[("date", "+%s")] = "1700000005\n"
    return host


def test_the_plan_holds_what_runs() -> None:
    host = ready(NutHost())
    host.services[SERVICE] = "active"
    job = rehearsal_host.plan(host, ROWS, "monitor")
    assert job == JOB._replace(engines=ENGINES[:1])
    assert host.mutations == []
    said = rehearsal_host.notice(host, job)
    assert "primary of rack@localhost: every secondary of that UPS shuts down too" in said
    assert "for every load on it" in said


def test_a_secondary_shuts_down_alone() -> None:
    host = ready(NutHost(TEXT.replace("primary", "slave")))
    assert "shuts down alone" in rehearsal_host.notice(host, JOB)
    del host.files[UPSMON]
    assert "may lose its power" in rehearsal_host.notice(host, JOB)


def _stopped(host: MonitorHost) -> None:
    host.services = dict.fromkeys(host.services, "inactive")


@pytest.mark.parametrize(
    ("kind", "break_it", "rows", "why"),
    [
        (NutHost, _stopped, ROWS, "monitor of the UPS: observed nut-monitor.service is inactive"),
        (NutHost, lambda host: host.services.clear(), ROWS, "monitor of the UPS: observed no service"),
        (
            NutHost,
            lambda host: host.files.pop("/var/log/journal/abc/system.journal"),
            ROWS,
            "Storage=persistent",
        ),
        (NutHost, lambda host: None, ROWS[1:], "engines: observed none that runs"),
        (ApcHost, lambda host: None, ROWS, "durable_shutdown_by=hand"),
    ],
)
def test_what_would_show_nothing_is_not_begun(
    kind: type[MonitorHost], break_it: Callable[[Any], Any], rows: list[dict[str, Any]], why: str
) -> None:
    host = ready(kind())
    break_it(host)
    with pytest.raises(rehearsal_host.Refused) as refused:
        rehearsal_host.plan(host, rows, "monitor")
    assert why in str(refused.value)
    assert "expected" in str(refused.value)


def test_apcupsd_by_hand() -> None:
    job = rehearsal_host.plan(ready(ApcHost()), ROWS, "hand")
    assert (job.monitor, job.by, job.guard) == ("apcupsd", "hand", "")
    assert "Now pull the plug of the UPS" in rehearsal_host.notice(ApcHost(), job)


class BackHost(NutHost):
    """A host after the rehearsal: it has another boot's journal, and its own."""

    def __init__(self, old: Result, new: Result) -> None:
        super().__init__()
        ready(self)
        self.files["/proc/sys/kernel/random/boot_id"] = f"{NEXT}\n"
        self.services.update({PG: "active", MARIA: "failed"})
        before = f"--boot={BOOT.replace('-', '')}"
        self.following = NEXT
        self.journals = {before: old, "--boot=0": new}
        self.answers = {
            f"{before}+1": lambda: text_of([line(1, "x", _BOOT_ID=self.following.replace("-", ""))])
        }
        self.matches: list[list[str]] = []

    def run(self, argv: list[str], timeout: float = 10.0) -> Result:
        if argv[0] == "journalctl":
            if argv[1] in self.answers:
                return Result(0, self.answers[argv[1]](), "")
            self.matches.append(argv)
            return self.journals[argv[1]]
        return super().run(argv, timeout)


def test_both_journals_are_read() -> None:
    host = BackHost(Result(0, text_of(ended()), ""), Result(0, text_of(now()), ""))
    seen = rehearsal_host.read(host, JOB)
    assert seen.verdict == "kept"
    assert seen.up == {"postgresql 15/main": "yes", "mariadb mariadb": "no"}
    old, new = host.matches
    assert "--since=@1700000000" in old
    assert old[old.index("_PID=1") :] == [
        *("_PID=1", "+", "_SYSTEMD_UNIT=nut-monitor.service", "+", f"_SYSTEMD_UNIT={SERVICE}"),
        *("+", "_TRANSPORT=driver"),
    ]
    assert f"_SYSTEMD_UNIT={PG}" in new
    assert host.mutations == []


def test_what_fsck_said_of_the_root_counts() -> None:
    host = BackHost(Result(0, text_of(ended()), ""), Result(0, text_of(now()), ""))
    host.files["/run/initramfs/fsck.log"] = "Log of fsck\n/dev/vda1: recovering journal\n"
    assert rehearsal_host.read(host, JOB).unclean == ("/dev/vda1",)


@pytest.mark.parametrize(("state", "word"), [("running", "yes"), ("stopped", "unknown")])
def test_what_an_engine_s_own_log_says_is_read(
    monkeypatch: pytest.MonkeyPatch, state: str, word: str
) -> None:
    asked: list[Any] = []

    class Found:
        """Facts of FairCom DB, and of an engine that does not tell."""

        def __init__(self, _host: Any, names: Any) -> None:
            asked.append(names)

        def instances(self) -> list[dict[str, Any]]:
            row = {"engine": "faircom", "name": "/opt/faircom", "state": state}
            own = {**row, "evidence": {"recovery": {"value": "yes", "source": "x", "reason": None}}}
            return [own, {**row, "name": "other", "evidence": {}}]

    monkeypatch.setattr(rehearsal_host, "Engines", Found)
    host = BackHost(Result(0, text_of(ended()), ""), Result(0, text_of(now()), ""))
    rehearsal_host.read(host, JOB)
    assert asked == []
    seen = rehearsal_host.read(host, JOB._replace(engines=(*ENGINES, FAIRCOM)))
    assert asked == [("faircom",)]
    assert seen.recovered[FAIRCOM.label] == word


def test_a_host_that_was_not_restarted_shows_nothing() -> None:
    host = BackHost(Result(0, "", ""), Result(0, "", ""))
    host.files["/proc/sys/kernel/random/boot_id"] = f"{BOOT}\n"
    with pytest.raises(rehearsal_host.Refused, match="not restarted"):
        rehearsal_host.read(host, JOB)


def test_a_host_that_was_restarted_again_shows_nothing() -> None:
    """What its engines and file systems had to recover is in the boot between."""
    host = BackHost(Result(0, text_of(ended()), ""), Result(0, text_of(now()), ""))
    host.following = "33333333-2222-3333-4444-555555555555"
    with pytest.raises(rehearsal_host.Refused, match="the first one after the rehearsal"):
        rehearsal_host.read(host, JOB)
    host.answers[f"--boot={BOOT.replace('-', '')}+1"] = lambda: ""
    with pytest.raises(Unobservable, match=r"\+1: observed no entry"):
        rehearsal_host.read(host, JOB)


@pytest.mark.parametrize(
    "answer", [Result(1, "", "No journal boot entry found"), Result(0, "not json\n", "")]
)
def test_a_journal_that_cannot_be_read_is_no_journal(answer: Result) -> None:
    with pytest.raises(Unobservable, match="journalctl --boot="):
        rehearsal_host.read(BackHost(answer, Result(0, "", "")), JOB)
