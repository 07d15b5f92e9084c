# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that watches itself says what a check of its controller says, in a file, a line and numbers."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest
import yaml

from ansible_collections.durable.dbhost.plugins.module_utils.host import our_paths
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.host_facts import collect
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect.inputs import Inputs
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show import results
from ansible_collections.durable.dbhost.plugins.module_utils.rows import VERDICTS
from ansible_collections.durable.dbhost.plugins.module_utils.watch import metrics, orders, program

from ..fakes.captured import COLLECTION
from ..fakes.small_host import SmallHost

NOW = "2026-01-31T12:00:00Z"
SHIPPED = next(iter(yaml.safe_load((COLLECTION / "playbooks/vars/profiles.yml").read_text("utf-8")).values()))
WORD = {
    "claim": "host_honours_flush",
    "target": "host",
    "by": "ann",
    "reason": 'she "looked"',
    "expires": "2026-03-01",
}


def given(profile: str | None, **more: Any) -> dict[str, Any]:
    """Return what an inventory says."""
    found = Inputs(profile=profile, shipped=SHIPPED, own={}, overrides={}, mounts=["/srv/pgdata"], **more)
    return json.loads(json.dumps(found._asdict()))  # type: ignore[no-any-return]


class WatchingHost(SmallHost):
    """A small host that keeps the modes of what is written."""

    def write_file(self, path: str, content: bytes, mode: int = 0o644, owner: int = 0) -> None:
        self.modes[path] = mode
        super().write_file(path, content, mode, owner)


def watching(inputs: dict[str, Any], numbers: str = "") -> SmallHost:
    """Return a host that watches itself by these."""
    host = WatchingHost()
    host.files[our_paths.WATCH_INPUTS] = orders.render(inputs, numbers, "1.2.3").decode()
    host.files["/metrics/other.prom"] = ""
    return host


@pytest.mark.parametrize("profile", ["strict", "disposable", "nonsense", None])
def test_its_verdict_is_that_of_a_check(profile: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    host = watching(given(profile, attestations={"durable_attestations": [WORD]}))
    code = program.run_once(host, "db1", NOW)
    kept = json.loads(host.files[our_paths.WATCH_REPORT])
    inputs = Inputs(**given(profile, attestations={"durable_attestations": [WORD]}))
    answer = collect(host, NOW, **results.question(inputs))
    found = results.assess_answer(inputs, NOW, {"ansible_facts": answer.facts, "failures": answer.failures})
    assert {name: kept[name] for name in ("verdict", "why", "fails")} == {
        name: found[name] for name in ("verdict", "why", "fails")
    }
    assert code == (2 if found["fails"] else 0)
    (said,) = capsys.readouterr().out.splitlines()
    assert said.startswith(f"{'<3>' if found['fails'] else '<6>'}db1 is {found['verdict']}")
    assert [path for _kind, path, *_rest in host.mutations] == [our_paths.WATCH_REPORT]
    assert host.modes[our_paths.WATCH_REPORT] == 0o640


def test_drift_is_a_number_within_one_look() -> None:
    host = watching(given("flush"), "/metrics")
    program.run_once(host, "db1", NOW)
    before = numbers(host)
    host.mounts["/srv/pgdata"].barrier = "off"
    program.run_once(host, "db1", NOW)
    after = numbers(host)
    drifting = 'durable_dbhost_settings{layer="mount_options",class="safety",verdict="drift_running"}'
    assert drifting not in before
    assert after[drifting] == 1
    assert after["durable_dbhost_failing"] == 1


def numbers(host: SmallHost) -> dict[str, int]:
    """Return the numbers of a host, as a collector reads them."""
    rows = [
        line for line in host.files[f"/metrics/{orders.METRICS}"].splitlines() if not line.startswith("#")
    ]
    found = {}
    for row in rows:
        match = re.fullmatch(r'([a-z_]+(?:\{(?:[a-z]+="(?:[^"\\]|\\.)*",?)+\})?) (\d+)', row)
        assert match, row
        assert match[1] not in found
        found[match[1]] = int(match[2])
    return found


def test_numbers_name_the_verdict_and_when_words_end() -> None:
    host = watching(given("strict", attestations={"durable_attestations": [WORD]}), "/metrics")
    program.run_once(host, "db1", NOW)
    found = numbers(host)
    verdicts = {name: value for name, value in found.items() if name.startswith("durable_dbhost_verdict{")}
    assert len(verdicts) == len(VERDICTS)
    assert sum(verdicts.values()) == 1
    assert found["durable_dbhost_assessed_timestamp_seconds"] == 1769860800
    assert found['durable_dbhost_info{version="1.2.3",profile="strict"}'] == 1
    ends = found[
        'durable_dbhost_attestation_expires_timestamp_seconds{claim="host_honours_flush",target="host"}'
    ]
    assert ends == 1772409600  # 2026-03-02T00:00:00Z
    for name, text in metrics.HELP.items():
        assert (
            f"# HELP durable_dbhost_{name} {text}\n# TYPE durable_dbhost_{name} gauge\n"
            in host.files[f"/metrics/{orders.METRICS}"]
        )


@pytest.mark.parametrize("order", [1, -1])
def test_of_a_renewed_attestation_the_later_end_is_the_number(order: int) -> None:
    both = [WORD, {**WORD, "expires": "2026-02-10"}][::order]
    host = watching(given("strict", attestations={"durable_attestations": both}), "/metrics")
    program.run_once(host, "db1", NOW)
    # `numbers` fails for two lines with the same labels.
    ends = [value for name, value in numbers(host).items() if "attestation_expires" in name]
    assert ends == [1772409600]


def test_reasons_are_counted_by_id_and_verdict() -> None:
    host = watching(given("strict"), "/metrics")
    host.mounts["/srv/pgdata"].barrier = "off"
    program.run_once(host, 'd"b\n\udcff1', NOW)
    report = json.loads(host.files[our_paths.WATCH_REPORT])
    once = Counter((each["id"], each["verdict"]) for each in report["reasons"])
    assert by_id(host) == once
    assert once[("risk.barrier_off", "at_risk")] == 1 and len(once) > 2
    twice = metrics.render({**report, "reasons": report["reasons"] * 2}, True, "")
    host.files[f"/metrics/{orders.METRICS}"] = twice
    assert by_id(host) == once + once


def by_id(host: SmallHost) -> dict[tuple[str, str], int]:
    """Return {(id, verdict): number of reasons}."""
    found = {}
    for name, value in numbers(host).items():
        if name.startswith("durable_dbhost_reasons_by_id{"):
            labels = re.fullmatch(r'.*\{host="(.+)",id="([a-z_.]+)",verdict="([a-z_]+)"\}', name)
            assert labels and labels[1] == r"d\"b\\n\\xff1"
            found[(labels[2], labels[3])] = value
    return found


def test_a_label_ends_where_it_should() -> None:
    assert metrics._labels({"target": 'a"} 1\nb\\'}) == '{target="a\\"} 1\\nb\\\\"}'


@pytest.mark.parametrize(
    ("text", "user", "why"),
    [
        ("{", 0, "none of this version's"),
        (None, 0, our_paths.WATCH_INPUTS),
        ("as it should be", 1000, "observed user 1000, expected root"),
    ],
)
def test_a_failed_check_exits_with_1(
    text: str | None, user: int, why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host = watching(given("strict"))
    host.acts_as = user
    if text is None:
        del host.files[our_paths.WATCH_INPUTS]
    elif user == 0:
        host.files[our_paths.WATCH_INPUTS] = text
    monkeypatch.setattr(program, "Host", lambda: host)
    monkeypatch.setattr(program.os, "umask", lambda _mask: 0)
    assert program.main() == 1
    (said,) = capsys.readouterr().out.splitlines()
    assert said.startswith("<3>") and why in said
    assert host.mutations == []


def test_metrics_in_a_directory_of_any_user_exit_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host = watching(given("strict"), "/metrics")
    host.modes["/metrics"] = 0o40777
    monkeypatch.setattr(program, "Host", lambda: host)
    monkeypatch.setattr(program.os, "umask", lambda _mask: 0)
    assert program.main() == 1
    assert capsys.readouterr().out.startswith("<3>/metrics: observed that others than root")


def test_the_report_has_the_rollback_timer() -> None:
    host = watching(given("strict"))
    host.files[our_paths.UNDO_JOURNAL] = "{"
    program.run_once(host, "db1", NOW)
    kept = json.loads(host.files[our_paths.WATCH_REPORT])
    assert kept["switch"] == "broken"


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"inputs": {"new": 1}, "metrics": "", "version": ""}'],
)
def test_a_file_of_another_version_is_told(text: str) -> None:
    host = SmallHost()
    host.files[our_paths.WATCH_INPUTS] = text
    with pytest.raises(Unobservable, match=f"{our_paths.WATCH_INPUTS}: none of this version's"):
        program.run_once(host, "db1", NOW)
    assert host.mutations == []
