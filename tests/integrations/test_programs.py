# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples for other programs, with these programs. What is not here is skipped, with the reason."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
BIN = Path(sys.executable).parent
#: Seconds for Java to start on a busy machine, and for a check of this machine.
LIMIT = 180.0
TOKEN = "only-of-this-test"


def run(*command: str, cwd: Path, **variables: str) -> str:
    """Return what a program prints, which ends well."""
    environment = {**os.environ, **variables, "PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_grafana_knows_each_field_of_the_dashboard() -> None:
    """By the types that Grafana publishes: a field that they do not have is lost on the way."""
    from grafana_foundation_sdk.cog import plugins
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models.dashboard import Dashboard

    plugins.register_default_plugins()
    given = json.loads((EXAMPLES / "grafana/durable_dbhost.json").read_text())
    back = json.loads(JSONEncoder().encode(Dashboard.from_json(given)))
    # Of the editor of variables alone.
    assert set(lost(given, back)) == {"/templating/list/1/definition"}


def lost(given: Any, back: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of a JSON value that another one lacks or has otherwise."""
    if isinstance(given, dict) and isinstance(back, dict):
        for key, value in given.items():
            yield from lost(value, back[key], f"{path}/{key}") if key in back else (f"{path}/{key}",)
    elif isinstance(given, list) and isinstance(back, list) and len(given) == len(back):
        for number, (one, other) in enumerate(zip(given, back)):
            yield from lost(one, other, f"{path}/{number}")
    elif given != back:
        yield path


@pytest.mark.parametrize(
    ("schema", "name"), [("gitlab-ci", "gitlab-ci.yml"), ("github-workflows", "github-drift.yml")]
)
def test_a_pipeline_is_one_by_its_forges_schema(schema: str, name: str, tmp_path: Path) -> None:
    command = (str(BIN / "check-jsonschema"), "--builtin-schema", f"vendor.{schema}")
    run(*command, str(EXAMPLES / "ci" / name), cwd=ROOT)
    # The control.
    (tmp_path / name).write_text(
        (EXAMPLES / "ci" / name)
        .read_text()
        .replace("rules:", "rulez: 1\n  rules: 1\n  x:")
        .replace("runs-on", "runs")
    )
    done = subprocess.run([*command, str(tmp_path / name)], capture_output=True, check=False)
    assert done.returncode == 1


def test_the_schedule_has_days() -> None:
    from dateutil.rrule import rrulestr

    rule = json.loads((EXAMPLES / "awx/schedule.json").read_text())["rrule"]
    days = rrulestr(rule.replace(" ", "\n"))
    assert [str(day)[:16] for day in (days[0], days[1])] == ["2027-01-01 05:17", "2027-01-02 05:17"]


def test_ansible_builder_makes_the_context(tmp_path: Path) -> None:
    """The image itself is not built: its base is in a registry of containers."""
    shutil.copy(EXAMPLES / "execution-environment/execution-environment.yml", tmp_path)
    run(
        str(BIN / "ansible-galaxy"),
        "collection",
        "build",
        "--output-path",
        str(tmp_path),
        str(ROOT),
        cwd=ROOT,
    )
    run(str(BIN / "ansible-builder"), "create", "--output-filename", "Containerfile", cwd=tmp_path)
    assert (tmp_path / "context/Containerfile").exists()
    (tarball,) = (tmp_path / "context/_build/collections").glob("durable-dbhost-*.tar.gz")
    assert tarball.name in (tmp_path / "context/_build/requirements.yml").read_text()


class Listener(NamedTuple):
    """A rulebook that runs: where it listens, and what it has printed."""

    port: int
    log: Path

    def post(self, token: str, message: object) -> int:
        """Return the status of a message, as Alertmanager sends it."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/",
            json.dumps(message).encode(),
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=LIMIT) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code

    def runs(self) -> int:
        """Return how many checks have ended."""
        return self.log.read_text().count("PLAY RECAP")


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Listener]:
    """Start ansible-rulebook with the example, on a free port, with this machine in its inventory."""
    if not shutil.which("java"):
        pytest.skip("ansible-rulebook needs Java 17, which is not here: NOT RUN")
    place = tmp_path / "eda"
    shutil.copytree(EXAMPLES / "eda", place)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    rulebook = place / "rulebook.yml"
    rulebook.write_text(rulebook.read_text().replace("port: 5000", f"port: {port}"))
    host = {
        "ansible_connection": "local",
        "ansible_become": False,
        "ansible_python_interpreter": sys.executable,
        "durable_profile": "strict",
        "durable_fail_on": [],
        "durable_report_dir": str(tmp_path / "report"),
    }
    (place / "inventory.yml").write_text(yaml.safe_dump({"all": {"hosts": {"localhost": host}}}))
    words = ["--inventory", "inventory.yml", "--rulebook", "rulebook.yml", "--env-vars", "EDA_TOKEN"]
    java = Path(os.path.realpath(str(shutil.which("java")))).parent.parent
    environment = {
        **os.environ,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "JAVA_HOME": os.environ.get("JAVA_HOME") or str(java),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "playbooks/collections"),
        "EDA_TOKEN": TOKEN,
    }
    log = tmp_path / "log"
    with log.open("w") as output:
        server = subprocess.Popen(
            [str(BIN / "ansible-rulebook"), *words], cwd=place, env=environment, stdout=output, stderr=output
        )
    end = time.monotonic() + LIMIT
    while server.poll() is None and time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.2)
    assert server.poll() is None, log.read_text()
    yield Listener(port, log)
    server.terminate()
    server.wait(LIMIT)


def test_an_alert_starts_one_check_of_its_host(listener: Listener, tmp_path: Path) -> None:
    alert = {"status": "firing", "groupLabels": {"instance": "localhost:9100"}}
    assert listener.post("wrong", alert) == 401
    assert listener.post(TOKEN, {**alert, "status": "resolved"}) == 200
    assert listener.post(TOKEN, {**alert, "groupLabels": {"instance": "all:!localhost"}}) == 200
    assert listener.post(TOKEN, alert) == listener.post(TOKEN, alert) == 200
    end = time.monotonic() + LIMIT
    while not listener.runs() and time.monotonic() < end:
        time.sleep(0.5)
    report = json.loads((tmp_path / "report/localhost.json").read_text())
    assert (report["profile"], report["looked_only"]) == ("strict", True)
    # A second check would have ended by now.
    time.sleep(20)
    assert listener.runs() == 1
