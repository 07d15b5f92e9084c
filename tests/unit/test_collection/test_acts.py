# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/evidence/acts.md lists what the modules do as root: each module that acts, and all programs that it starts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.every_core_alike

ROOT = Path(__file__).resolve().parents[3]
PLUGINS = ROOT / "plugins"
SOURCES = PLUGINS / "module_utils"
#: What runs as root on a host.
FOLDERS = ("module_utils", "modules")
#: The methods of the seam (host/seam.py) by act.
METHODS = {
    "mount": {"set_mount_options", "set_mount_atime", "make_mount_writable", "try_mount", "sync_mount"},
    "write": {"write_file", "remove_file", "write_attribute"},
    "program": {"run", "run_with_secret", "change"},
    "socket": {"ask"},
}
HOSTS = ("host", "self.host", "self._host", "self._inner")
#: Calls that act without the seam.
DIRECT = {
    **dict.fromkeys(
        [
            *(
                "os.chmod",
                "os.chown",
                "os.fchmod",
                "os.fchown",
                "os.ftruncate",
                "os.link",
                "os.makedirs",
                "os.mkdir",
            ),
            *("os.mkfifo", "os.mknod", "os.remove", "os.removexattr", "os.rename", "os.replace", "os.rmdir"),
            *("os.setxattr", "os.symlink", "os.truncate", "os.unlink", "os.utime"),
            *(
                "tempfile.mkdtemp",
                "tempfile.mkstemp",
                "shutil.copy",
                "shutil.copyfile",
                "shutil.move",
                "shutil.rmtree",
            ),
        ],
        "write",
    ),
    "confined.command": "program",
    "stranger.command": "program",
    "processes.output": "program",
    "subprocess.Popen": "program",
    "socket.socket": "socket",
    "socket.create_connection": "socket",
}
#: Calls that make a command confined.
CONFINED = ("confined.command", "stranger.command")
#: Calls that no module makes: each would act on a name, or pass a text to a shell.
NEVER = {
    "os.system",
    "os.popen",
    "subprocess.run",
    "subprocess.call",
    "subprocess.check_output",
    "subprocess.check_call",
}


#: Methods of the seam that read with the rights of root, links followed: for paths of the host's own.
AS_ROOT = {"read", "exists", "link", "names", "mode", "resolve", "is_block_device"}
#: Such reads of rooms that deal with servers, whose path is no constant and none in /proc, and who named it.
NAMED_BY_ROOT = {
    ("engines/config_writes.py", "path"): "a line of tmpfiles.d",
    ("engines/firebird/observe.py", "f'{_OPT}/{_CONFIG}'"): "the vendor's directory",
    ("engines/firebird/observe.py", "path"): "our list of programs",
    ("engines/managers.py", "override"): "a drop-in of systemd",
    ("engines/mariadb/observe.py", "pending_flush_path(snapshot.data)"): "our own note, by a hash",
    ("engines/mariadb/observe.py", "path"): "our lists of programs and files",
    ("engines/mariadb/snapshot.py", "path"): "our list of programs",
    ("engines/open_files.py", "f'{base}/fd/{number}'"): "proc",
    ("engines/open_files.py", "f'{base}/fdinfo/{number}'"): "proc",
    ("engines/postgresql/cluster.py", "pending_flush_path(data, name)"): "our own note, by a hash",
    ("engines/next_preloads.py", "host.resolve(_FILE)"): "/etc/ld.so.preload",
    ("engines/quadlets.py", "path"): "files of the directories of root's Quadlets",
    ("engines/since_start.py", "f'{own}/ns/mnt'"): "proc",
    ("engines/since_start.py", "source"): "proc",
    ("engines/start_commands.py", "path"): "root's units and tables",
    ("engines/start_commands.py", "real"): "root's units and tables",
    ("engines/start_files.py", "path"): "our own note",
    ("engines/unit_mounts.py", "path"): "our own drop-in",
}


#: Flags of os.open() by which a file is written or made.
FLAGS = {"os.O_CREAT", "os.O_RDWR", "os.O_TRUNC", "os.O_WRONLY"}


def sources() -> Iterator[Path]:
    """Yield all that runs as root on a host."""
    for folder in FOLDERS:
        yield from (PLUGINS / folder).rglob("*.py")


def name_of(path: Path) -> str:
    """Return the name of a module in the table: below `module_utils`, or `modules/` with its name."""
    is_util = SOURCES in path.parents
    return str(path.relative_to(SOURCES if is_util else PLUGINS))


def path_of(name: str) -> Path:
    return (PLUGINS if name.startswith("modules/") else SOURCES) / name


def is_written(call: ast.Call) -> bool:
    """Tell whether a call of open() has a mode by which a file is written or made, or one that is no constant."""
    modes = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "mode")]
    return any(not isinstance(mode, ast.Constant) or set("wax+") & set(str(mode.value)) for mode in modes)


def calls(path: Path) -> Iterator[tuple[str, ast.AST]]:
    """Yield (act, call) of a module; also for each flag by which a file is written."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in FLAGS:
            yield "write", node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "output":
                yield "program", node
            if node.func.id == "open" and is_written(node):
                yield "write", node
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name = ast.unparse(node.func)
        if name in DIRECT:
            yield DIRECT[name], node
        for act, methods in METHODS.items():
            if node.func.attr in methods and ast.unparse(node.func.value) in HOSTS:
                yield act, node


def acting() -> dict[str, set[str]]:
    """Return {act: modules}."""
    found: dict[str, set[str]] = {act: set() for act in METHODS}
    for path in sources():
        for act, _call in calls(path):
            found[act].add(name_of(path))
    return found


def table() -> list[tuple[str, set[str], str, str]]:
    """Return (act, modules, what, rule) of each row of the page."""
    text = (ROOT / "docs/evidence/acts.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (mount|write|program|socket) \| (.*?) \| (.*) \| (.*?) \|$", text, re.M)
    return [
        (act, set(re.findall(r"`([\w/]+\.py)`", modules)), what, rule) for act, modules, what, rule in rows
    ]


@pytest.mark.parametrize("act", METHODS)
def test_the_table_lists_each_module_that_acts_and_no_other(act: str) -> None:
    listed = {module for row in table() if row[0] == act for module in row[1]}
    assert listed == acting()[act]


def test_each_row_names_its_rule() -> None:
    rules = set(re.findall(r"^\| (R\d) \|", (ROOT / "docs/trust.md").read_text(encoding="utf-8"), re.M))
    assert rules == {f"R{number}" for number in range(1, 8)}
    for act, modules, _what, rule in table():
        assert rule.strip(), (act, modules)
        assert set(re.findall(r"R\d", rule)) <= rules


def started(path: Path) -> set[str]:
    """Return the programs that a module names as the first word of a list for the seam, directly or by a constant."""
    names = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = {
        ast.unparse(node.targets[0]): node.value for node in tree.body if isinstance(node, ast.Assign)
    }
    for act, call in calls(path):
        if act != "program" or not isinstance(call, ast.Call):
            continue
        name = ast.unparse(call.func)
        if name == "confined.command":
            names |= {"setpriv", "env"} if len(call.args) + len(call.keywords) > 3 else {"setpriv"}
        at = {"confined.command": 2, "stranger.command": 1, "output": 1, "processes.output": 1}.get(name, 0)
        words: ast.AST | None = call.args[at] if len(call.args) > at else None
        while isinstance(words, (ast.List, ast.Tuple)) and words.elts:
            first = words.elts[0]
            if isinstance(first, ast.Constant):
                names.add(str(first.value))
            words = constants.get(ast.unparse(first.value)) if isinstance(first, ast.Starred) else None
    return names


@pytest.mark.parametrize("module", sorted(acting()["program"]))
def test_the_row_of_a_module_names_the_programs_that_it_starts(module: str) -> None:
    named = {
        word
        for row in table()
        if row[0] == "program" and module in row[1]
        for word in re.findall(r"`([^`]+)`", row[2])
    }
    assert started(path_of(module)) <= named


def test_a_program_of_the_table_is_one_that_a_module_of_its_row_names() -> None:
    for act, modules, what, _rule in table():
        if act == "program":
            texts = "\n".join(
                path.read_text(encoding="utf-8")
                for module in modules
                for path in path_of(module).parent.glob("*.py")
            )
            programs = {program for module in modules for program in started(path_of(module))}
            for word in re.findall(r"`([a-z][\w.-]+)`", what):
                assert word in texts or word in programs or word.startswith("mkfs."), (word, modules)


def test_a_program_of_a_server_runs_confined() -> None:
    """Its path is no constant: packages differ, and a process names it. So it runs by host/confined.py or host/stranger.py."""
    found = [
        (name_of(path), ast.unparse(call))
        for path in (SOURCES / "engines").rglob("*.py")
        for act, call in calls(path)
        if act == "program" and isinstance(call, ast.Call) and ast.unparse(call.func) not in CONFINED
        for words in call.args
        if isinstance(words, ast.List) and not isinstance(words.elts[0], (ast.Constant, ast.Starred))
    ]
    assert found == []


def is_of_the_host(path: ast.AST) -> bool:
    """Tell whether a path is a constant, or begins as one."""
    if isinstance(path, ast.JoinedStr):
        return isinstance(path.values[0], ast.Constant) and str(path.values[0].value).startswith("/")
    return isinstance(path, ast.Constant) or ast.unparse(path).rpartition(".")[2].strip("_").isupper()


def test_no_path_that_a_server_names_is_read_with_the_rights_of_root() -> None:
    """Those go through locate, read_part and their like, which take the rights of the user who named them."""
    found = {
        (name_of(path), ast.unparse(call.args[0]))
        for path in (SOURCES / "engines").rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in AS_ROOT
        and ast.unparse(call.func.value).endswith("host")
        and not is_of_the_host(call.args[0])
    }
    assert found == set(NAMED_BY_ROOT)


def test_nothing_is_started_without_the_seam() -> None:
    """No shell, and no program beside those of the table."""
    found = [
        (path.name, ast.unparse(node.func))
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in NEVER
    ]
    assert found == []


def test_mount_is_never_run_by_name() -> None:
    for path in sources():
        assert not {"mount", "umount", "sh", "bash"} & started(path), path
