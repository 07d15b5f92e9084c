# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the watch tells is read by Debian's own node exporter, and its promtool fires the alerts when it should.

Both are taken out of their packages: installed, they would begin to serve this computer.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.watch import metrics
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fleet import reports
from lab.process import free_port

ROOT = Path(__file__).parents[2]
LIMIT = 30.0
Tool = Callable[[str, str], str]


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Tool:
    """Return the path of a program of a package."""

    def find(package: str, program: str) -> str:
        place = tmp_path_factory.mktemp(package)
        subprocess.run(["apt-get", "-q", "download", package], cwd=place, check=True)
        (archive,) = place.glob("*.deb")
        subprocess.run(["dpkg-deb", "-x", str(archive), str(place / "root")], check=True)
        return str(place / "root/usr/bin" / program)

    return find


@pytest.fixture
def exporter(tool: Tool, tmp_path: Path) -> Iterator[tuple[Path, Callable[[], str]]]:
    """Start the node exporter on loopback; give the directory it reads, and what it answers."""
    address = f"127.0.0.1:{free_port()}"
    words = ["--collector.disable-defaults", "--collector.textfile", f"--web.listen-address={address}"]
    program = tool("prometheus-node-exporter", "prometheus-node-exporter")
    server = subprocess.Popen([program, *words, f"--collector.textfile.directory={tmp_path}"])

    def answer() -> str:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=LIMIT) as response:
            return str(response.read().decode())

    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        with suppress(OSError):
            answer()
            break
        time.sleep(0.1)
    yield tmp_path, answer
    server.terminate()
    server.wait(LIMIT)


def test_the_node_exporter_tells_each_line_of_each_kind_of_host(
    exporter: tuple[Path, Callable[[], str]],
) -> None:
    """Verdict, reasons, settings and attestations."""
    directory, answer = exporter
    for report in reports(6):
        text = metrics.render(report, failing=True, version="1.2.3")
        (directory / "durable_dbhost.prom").write_text(text)
        told = answer()
        assert "node_textfile_scrape_error 0" in told
        lines = re.findall(r"^durable_dbhost_.*$", text, re.M)
        assert lines and set(_as_numbers(lines)) <= set(_as_numbers(told.splitlines()))


def test_a_line_that_is_none_is_noticed(exporter: tuple[Path, Callable[[], str]]) -> None:
    """The control."""
    directory, answer = exporter
    (directory / "durable_dbhost.prom").write_text('durable_dbhost_state{target="a"b"} 1\n')
    assert "node_textfile_scrape_error 1" in answer()


def test_alerts_fire_when_they_should(tool: Tool) -> None:
    """Each rule is valid, and the tests beside them pass."""
    done = subprocess.run(
        [tool("prometheus", "promtool"), "test", "rules", "durable_dbhost.test.yml"],
        cwd=ROOT / "examples/prometheus",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_alertmanager_reads_the_example(tool: Tool) -> None:
    program = tool("prometheus-alertmanager", "amtool")
    subprocess.run([program, "check-config", str(ROOT / "examples/eda/alertmanager.yml")], check=True)


def test_each_query_of_the_dashboard_has_an_answer(tool: Tool, tmp_path: Path) -> None:
    """promtool evaluates it over the metrics of six hosts, as the exporter serves them."""
    series = [
        {"series": _of_instance(line.rpartition(" ")[0], number), "values": line.rpartition(" ")[2]}
        for number, report in enumerate(reports(6))
        for line in metrics.render(report, failing=True, version="1.2.3").splitlines()
        if not line.startswith("#")
    ]
    dashboard = json.loads((ROOT / "examples/grafana/durable_dbhost.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert all("$instance" in query for query in queries)
    checks = [
        {
            "expr": f"count({query.replace('$instance', '.+')}) > bool 0",
            "eval_time": "0m",
            "exp_samples": [{"labels": "{}", "value": 1}],
        }
        for query in queries
    ]
    tests = [{"interval": "1m", "input_series": series, "promql_expr_test": checks}]
    (tmp_path / "test.yml").write_text(json.dumps({"tests": tests}))
    done = subprocess.run(
        [tool("prometheus", "promtool"), "test", "rules", str(tmp_path / "test.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _of_instance(name: str, number: int) -> str:
    """Return a metric with the label that a scrape adds."""
    metric, _, labels = name.partition("{")
    return f'{metric}{{instance="db{number}:9100",{labels or "}"}'


def _as_numbers(lines: list[str]) -> Iterator[tuple[str, float]]:
    """Yield each line's name and value: the exporter writes numbers and the order of labels in its own way."""
    for line in lines:
        if line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            labels = re.findall(r'\w+="(?:[^"\\]|\\.)*"', name)
            yield f"{name.partition('{')[0]} {sorted(labels)}", float(value)
