# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's tests fork an Ansible that is there already: what they get is what the command itself gives."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
#: A program too, which stands alone.
PROGRAM = ROOT / "molecule/support/warm.py"
_SPEC = importlib.util.spec_from_file_location("warm", PROGRAM)
assert _SPEC and _SPEC.loader
warm = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(warm)
BIN = Path(sys.executable).parent
#: What a user's own environment says to Ansible is not the question.
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
    "ANSIBLE_NOCOLOR": "1",
    "ANSIBLE_LOCALHOST_WARNING": "false",
}
INTERPRETER = {"ansible_python_interpreter": sys.executable}
AD_HOC = ("-e", json.dumps(INTERPRETER))
PLAYS = {
    "well": [
        {"ansible.builtin.command": "printf %s {{ said }}"},
        {"ansible.builtin.debug": {"msg": "{{ said }}"}},
    ],
    "failed": [{"ansible.builtin.fail": {"msg": "{{ said }}"}}],
    "no task at all": [{"durable.nothing.nowhere": {}}],
}


@pytest.fixture(scope="module")
def server() -> Iterator[warm.Server]:
    found = warm.Server(BIN / "python", ENVIRONMENT)
    yield found
    found.close()


@pytest.mark.parametrize("name", PLAYS)
def test_a_run_ends_as_the_command_does(server: warm.Server, tmp_path: Path, name: str) -> None:
    play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": PLAYS[name]}
    path, output = tmp_path / "play.yml", tmp_path / "output"
    path.write_text(json.dumps([play]))
    words = ["-i", "localhost,", "play.yml", "-e", json.dumps({"said": f"I am {name}", **INTERPRETER})]
    code = server.run("ansible-playbook", words, tmp_path, output, 60)
    assert (code, output.read_text()) == by_itself(words, tmp_path)
    assert bool(code) == (name != "well")


def by_itself(words: list[str], directory: Path) -> tuple[int, str]:
    """Return the exit code of ansible-playbook itself, and what it prints."""
    done = subprocess.run(
        [str(BIN / "ansible-playbook"), *words],
        cwd=directory,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_a_playbook_of_the_collection_ends_as_by_the_command(tmp_path: Path) -> None:
    """The first of its actions refuses a run without a profile."""
    loaded = warm.Server(BIN / "python", ENVIRONMENT, "", str(ROOT))
    output = tmp_path / "output"
    playbook = str(ROOT / "playbooks/harden-db.yml")
    words = ["-i", "localhost,", "-c", "local", playbook, "-e", "durable_hosts=all"]
    code = loaded.run("ansible-playbook", words, tmp_path, output, 60)
    loaded.close()
    assert (code, output.read_text()) == by_itself(words, tmp_path)
    assert "No host of this run has a durable_profile" in output.read_text()


def test_a_fork_finds_the_collection_s_actions_loaded() -> None:
    script = (
        "import sys; from pathlib import Path; import warm; warm.load_plugins(Path(sys.argv[1]));"
        " package = sys.modules['ansible_collections.durable.dbhost.plugins.action.assess'];"
        " print(package.__file__)"
    )
    environment = {**ENVIRONMENT, "PYTHONPATH": str(PROGRAM.parent)}
    words = [str(BIN / "python"), "-c", script, str(ROOT)]
    said = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout.strip()
    assert Path(said).resolve() == ROOT / "plugins/action/assess.py"


def test_all_tests_of_a_session_share_a_server() -> None:
    """pytest tells in the environment which test runs. A server for each imported and packed all again."""
    script = "from support import runs; print(*runs.bare_environment())"
    told = dict.fromkeys(("ANSIBLE_X", "MOLECULE_X", "PYTEST_CURRENT_TEST"), "this")
    environment = {**ENVIRONMENT, "PYTHONPATH": f"{ROOT / 'molecule'}:{ROOT}", **told}
    words = [str(BIN / "python"), "-c", script]
    names = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout.split()
    assert "PATH" in names
    assert [name for name in names if name.startswith(("ANSIBLE_", "MOLECULE_", "PYTEST_"))] == [
        "ANSIBLE_NOCOLOR"
    ]


def test_a_module_is_packed_once_and_its_output_is_of_this_call(server: warm.Server, tmp_path: Path) -> None:
    said = []
    for word in ("one", "two"):
        output = tmp_path / word
        words = ["localhost", "-c", "local", "-m", "ping", "-a", f"data={word}", *AD_HOC]
        assert server.run("ansible", words, tmp_path, output, 60) == 0
        said.append(output.read_text())
    assert ["one" in said[0], "two" in said[0], "one" in said[1], "two" in said[1]] == [
        True,
        False,
        False,
        True,
    ]


def test_what_takes_too_long_is_ended_and_the_next_run_is_served(server: warm.Server, tmp_path: Path) -> None:
    words = ["localhost", "-c", "local", "-m", "command", "-a", "sleep 60", *AD_HOC]
    with pytest.raises(subprocess.TimeoutExpired):
        server.run("ansible", words, tmp_path, tmp_path / "late", 2)
    assert server.run("ansible", ["--version"], tmp_path, tmp_path / "next", 60) == 0


def test_a_server_ends_with_who_started_it(tmp_path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from warm import Server;"
        " print(Server(Path(sys.executable), os.environ)._process.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    path = {"PYTHONPATH": str(PROGRAM.parent)}
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **path}, stdout=subprocess.PIPE, check=False
    )
    server = Path(f"/proc/{int(done.stdout)}/stat")
    for _second in range(30):
        if not server.exists() or server.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        subprocess.run(["sleep", "1"], check=True)
    raise AssertionError("it is there still")


def test_a_server_that_ended_leaves_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as own:  # short: the name of a socket in it has at most 108 characters
        monkeypatch.setattr(tempfile, "tempdir", own)
        server = warm.Server(BIN / "python", {**ENVIRONMENT, "TMPDIR": own})
        words = ["localhost", "-c", "local", "-m", "ping", *AD_HOC]
        assert server.run("ansible", words, Path(own), Path(own, "output"), 60) == 0
        server.close()
        assert os.listdir(own) == ["output"]


def test_a_terminal_that_does_not_block_is_no_hindrance(tmp_path: Path) -> None:
    """An ssh that runs beside the tests makes the standard output that they share so."""
    script = (
        "import os, sys; from pathlib import Path; from warm import Server; os.set_blocking(1, False);"
        f" server = Server(Path({str(BIN / 'python')!r}), os.environ); here = Path({str(tmp_path)!r});"
        " sys.exit(server.run('ansible', ['--version'], here, here / 'output', 60))"
    )
    path = {"PYTHONPATH": str(PROGRAM.parent)}
    reading, writing = os.pipe()
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **path}, stdout=writing, check=False
    )
    os.close(reading)
    os.close(writing)
    assert (done.returncode, "ansible" in (tmp_path / "output").read_text()) == (0, True)


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    server = warm.Server(
        BIN / "python", {**ENVIRONMENT, "LC_ALL": "C", "LANG": "C", "PYTHONCOERCECLOCALE": "0"}
    )
    with pytest.raises(warm.Ended, match="locale"):
        server.run("ansible", ["--version"], tmp_path, tmp_path / "output", 60)
    server.close()


def test_a_server_that_is_gone_is_no_run(tmp_path: Path) -> None:
    server = warm.Server(BIN / "python", ENVIRONMENT)
    server.close()
    with pytest.raises((warm.Ended, FileNotFoundError)):
        server.run("ansible", ["--version"], tmp_path, tmp_path / "output", 60)


def packed(source: str, *more: tuple[str, bytes]) -> bytes:
    """Return a zip file with one module, `told`, and what else it is to hold."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in (("told.py", source.encode()), *more):
            file.writestr(name, content)
    return target.getvalue()


def told(content: bytes, path: Path) -> str:
    """Return what this Python makes of the module."""
    path.write_bytes(content)
    words = [sys.executable, "-c", "import told; print(told.WORD)"]
    environment = {**os.environ, "PYTHONPATH": str(path)}
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_bytecode_that_is_packed_is_what_runs_and_another_pythons_is_passed_over(tmp_path: Path) -> None:
    both = zipfile.ZipFile(io.BytesIO(warm.compiled(packed("WORD = 'bytecode'"), sys.executable)))
    bytecode = both.read("told.pyc")
    assert both.read("told.py") == b"WORD = 'bytecode'"
    assert told(packed("WORD = 'source'", ("told.pyc", bytecode)), tmp_path / "same") == "bytecode"
    another = b"\0\0" + bytecode[2:]
    assert told(packed("WORD = 'source'", ("told.pyc", another)), tmp_path / "another") == "source"


def test_what_does_not_compile_is_packed_as_it_is() -> None:
    for source, compiler in (("WORD =", sys.executable), ("WORD = 1", "/bin/false")):
        given = packed(source)
        assert warm.compiled(given, compiler) == given


def test_a_server_with_a_python_of_the_machines_packs_what_that_compiles(tmp_path: Path) -> None:
    module_common = pytest.importorskip("ansible.executor.module_common")
    is_old = not hasattr(module_common, "_CachedModule")
    given = {**ENVIRONMENT, "ANSIBLE_LOCAL_TEMP": str(tmp_path / "local")}
    server = warm.Server(BIN / "python", given, sys.executable)
    words = ["localhost", "-c", "local", "-m", "ping", "-a", "data=said", *AD_HOC]
    assert server.run("ansible", words, tmp_path, tmp_path / "output", 60) == 0
    assert '"ping": "said"' in (tmp_path / "output").read_text()
    if is_old:  # Before 2.19: it serves, and packs nothing more.
        server.close()
        return
    script = (
        "import base64, pickle, sys; import ansible.executor.module_common;"
        " sys.stdout.buffer.write(base64.b64decode(pickle.load(open(sys.argv[1], 'rb')).zip_data))"
    )
    (kept,) = (path for path in (tmp_path / "local").rglob("ansiballz_cache/*") if path.suffix != ".lock")
    done = subprocess.run([str(BIN / "python"), "-c", script, kept], capture_output=True, check=True)
    names = set(zipfile.ZipFile(io.BytesIO(done.stdout)).namelist())
    server.close()
    assert {f"{name}c" for name in names if name.endswith(".py")} <= names
