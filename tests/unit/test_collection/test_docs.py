# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of the documentation say what the code does."""

from __future__ import annotations

import fnmatch
import functools
import json
import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.durable.dbhost.plugins.module_utils import catalog
from ansible_collections.durable.dbhost.plugins.module_utils.attestations import CLAIMS
from ansible_collections.durable.dbhost.plugins.module_utils.engines import restart
from ansible_collections.durable.dbhost.plugins.module_utils.facts.boot_causes import FAULTS
from ansible_collections.durable.dbhost.plugins.module_utils.facts.storage import KINDS
from ansible_collections.durable.dbhost.plugins.module_utils.policy import kinds
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import plan
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess.requirements import Requirement
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess.settings import Setting
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect import chosen_layers, inputs
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show import assessment, checklist
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.page import render
from ansible_collections.durable.dbhost.plugins.module_utils.rows import FAIL_ON, VERDICTS
from ansible_collections.durable.dbhost.plugins.module_utils.storage import platforms
from ansible_collections.durable.dbhost.plugins.module_utils.storage.raid_controllers import controllers
from ansible_collections.durable.dbhost.plugins.module_utils.ups import conditions
from ansible_collections.durable.dbhost.plugins.plugin_utils import sarif, variables
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fleet import captured

ROOT = Path(__file__).resolve().parents[3]
#: What is in a report, with a description of each key.
SCHEMA = json.loads((ROOT / "plugins/plugin_utils/report.schema.json").read_text(encoding="utf-8"))
#: Where the tarball's pages find what only the repository has.
FORGE = "https://github.com/durable-db/dbhost/blob/main/"
#: Pages that people read.
PAGES = (
    *ROOT.glob("*.md"),
    *(
        path
        for room in ("docs", "roles", "tests", "lab")
        for path in (ROOT / room).rglob("*.md")
        if "output" not in path.relative_to(ROOT).parts  # A site that was made here.
    ),
)


def table(path: str, first: str) -> list[list[str]]:
    """Return the rows of the table whose head begins with these cells, without backquotes."""
    text = (ROOT / path).read_text(encoding="utf-8")
    lines = text[text.index(f"| {first}") :].split("\n")
    rows = []
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().replace("`", "") for cell in line.strip("|").split("|")])
    assert rows
    return rows


def described(part: str) -> dict[str, str]:
    """Return {key: what the schema of a report says of it} of a part of the report."""
    return {key: each["description"] for key, each in SCHEMA["$defs"][part]["properties"].items()}


def words(cell: str) -> list[str]:
    """Return the names of a cell that lists some."""
    return [word.strip() for word in cell.split(",") if word.strip()]


def test_each_fault_of_the_next_boot_is_a_setting_of_the_report() -> None:
    listed = described("setting")["setting"].partition("faults of the next boot: ")[2].partition(".")[0]
    assert sorted(words(listed.replace("`", ""))) == sorted(FAULTS)
    rows = table("docs/boot.md", "setting | what is wrong")
    assert {row[0] for row in rows} - {""} == set(FAULTS)


def test_how_long_a_run_waits_for_a_restarted_server() -> None:
    text = " ".join((ROOT / "docs/engines.md").read_text(encoding="utf-8").split())
    assert f"the run checks up to {restart._LOOKS} times, a second after each check" in text
    assert f"stays so for {restart._STEADY} checks" in text
    assert f"may take {restart._MARGIN / 60:g} minutes more than the unit gives to a stop" in text


def test_the_verdicts_are_listed_worst_first_with_those_that_fail() -> None:
    rows = table("docs/report.md", "verdict | meaning | fails by default")
    assert tuple(row[0] for row in rows) == VERDICTS
    assert tuple(row[0] for row in rows if row[2] == "yes") == FAIL_ON
    codes = {word: row[2] for row in table("README.md", "verdict | meaning") for word in words(row[0])}
    assert tuple(codes) == VERDICTS
    assert tuple(verdict for verdict, code in codes.items() if code == "2") == FAIL_ON
    assert set(codes.values()) == {"0", "2"}


def test_the_file_has_the_keys_that_are_described() -> None:
    of_run = {"host", "was", "looked_only", "error", "time", "collection", "since", "switch"}
    empty = assessment.unobserved(inputs.Inputs(), kinds.NOT_MERGED.found(cause=""))
    assert set(SCHEMA["properties"]) == {*empty, *of_run} - {"steps"}
    rows = table("docs/report.md", "key | meaning")
    assert {word for row in rows for word in words(row[0])} <= set(SCHEMA["properties"])


def test_a_row_has_the_keys_that_are_described() -> None:
    assert set(described("setting")) == {"class", *Setting._fields} - {"klass", "means"}


def test_a_requirement_has_the_keys_that_are_described() -> None:
    assert set(described("requirement")) == {*Requirement._fields}


def test_the_permissions_and_what_fails_are_those_of_the_policy() -> None:
    rows = table("docs/variables.md", "word | effect")
    assert {row[0] for row in rows} == set(inputs.PERMISSIONS)
    assert not any("no effect" in row[1] for row in rows)
    (fails,) = [
        row[2] for row in table("docs/variables.md", "variable | type") if "durable_fail_on" in row[0]
    ]
    assert tuple(words(fails)) == FAIL_ON


def test_the_profiles_are_those_that_are_shipped() -> None:
    text = (ROOT / "playbooks/vars/profiles.yml").read_text(encoding="utf-8")
    shipped = yaml.safe_load(text)["durable_shipped_profiles"]
    keys = ("write_cache", "barrier", "data_mode", "atime", "engines", "rests_on")
    rows = table("docs/profiles.md", "profile | `write_cache`")
    assert {row[0]: tuple(row[1:]) for row in rows} == {
        name: tuple(profile[key] for key in keys) for name, profile in shipped.items()
    }
    assert {row[0]: tuple(row[1:3]) for row in table("README.md", "profile | write cache")} == {
        name: (
            {"enabled": "on", "disabled": "off"}[profile["write_cache"]],
            "on at boot, off at run time by a guard" if name == "ups" else profile["barrier"],
        )
        for name, profile in shipped.items()
    }


def test_the_words_for_layers_are_those_of_the_policy() -> None:
    rows = table("docs/variables.md", "word | layers")
    assert {row[0]: tuple(words(row[1])) for row in rows} == chosen_layers.GROUPS


def test_the_defaults_of_variables_are_those_of_the_code() -> None:
    rows = {row[0].partition("]")[0].strip("["): row[2] for row in table("docs/variables.md", "variable | ")}
    assert int(rows["durable_undo_after"]) == inputs.UNDO_AFTER
    assert int(rows["durable_time_limit"]) == inputs.TIME_LIMIT < inputs.UNDO_AFTER
    assert rows["durable_report_dir"] == variables.REPORT_DIR
    assert words(rows["durable_report_formats"]) == list(variables.REPORT_FORMATS)
    said = inputs.Inputs()
    for name in ("mount_profiles", "profiles", "overrides", "ups"):
        assert rows[f"durable_{name}"] == "{}"
    assert (rows["durable_ignore"], rows["durable_allow"]) == ("[]", "[]")
    assert rows["durable_accept_data_loss"] == str(said.accept_data_loss).lower()


def test_the_formats_of_a_report_are_those_of_the_code() -> None:
    text = (ROOT / "docs/variables.md").read_text(encoding="utf-8")
    section = text[text.index("\n## durable_report_formats\n") :]
    said = section[section.index(", of `") : section.index(" Without `json`")]
    assert re.findall(r"`(\w+)`", said) == list(variables.FORMATS)
    assert f"[{', '.join(variables.FORMATS)}]" in section


def test_the_levels_of_sarif_are_those_of_the_code() -> None:
    rows = table("docs/report.md", "verdict of the reason | `level`")
    assert rows.pop() == ["any other", "note"]
    assert {verdict: level for named, level in rows for verdict in words(named)} == sarif.LEVELS
    assert set(sarif.LEVELS) <= set(VERDICTS)


def test_the_claims_and_their_lives_are_those_of_the_policy() -> None:
    rows = table("docs/attest.md", "claim | meaning")
    assert {row[0]: int(row[2]) for row in rows} == CLAIMS
    sources = "".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "plugins/module_utils/policy").rglob("*.py")
        if path.name != "attestations.py"
    )
    for claim, _meaning, _days, used in rows:
        assert (f'"{claim}"' in sources) == used.startswith("for "), claim


def test_the_platforms_and_what_they_document_are_those_of_the_code() -> None:
    rows = table("docs/evidence/platforms.md", "fact | platform | signs")
    assert [tuple(row[:2]) for row in rows] == [(each.word, each.title) for each in platforms.PLATFORMS]
    for row, platform in zip(rows, platforms.PLATFORMS):
        patterns = [pattern for sign in platform.signs for pattern in sign.values()]
        assert all(pattern in "|".join(row[2:]).replace("\\|", "|") for pattern in patterns), row
    documented = [
        (each.word, claim, *said) for each in platforms.PLATFORMS for claim, said in each.statements.items()
    ]
    assert [tuple(row) for row in table("docs/attest.md", "fact | claim | check")] == documented


def test_the_kinds_of_disk_and_the_raid_tools_are_those_of_the_code() -> None:
    assert {row[0] for row in table("docs/storage.md", "`kind` | disks")} == set(KINDS)
    listed = {
        (tuple(words(row[0])), tuple(words(row[1]))) for row in table("docs/storage.md", "driver | tool")
    }
    assert {(drivers, tuple(tool.split()[0] for tool in tools)) for drivers, tools in listed} == {
        (tool.DRIVERS, tuple(dict.fromkeys(Path(program).name for program in tool.PROGRAMS)))
        for tool in controllers.TOOLS
    }


def test_the_conditions_of_a_ups_are_those_of_the_code() -> None:
    rows = table("docs/power.md", "condition | met when")
    assert tuple(row[0] for row in rows) == conditions.NAMES


#: What each step of the documented order is, as (phase, layer).
ORDER = {
    "Raise kernel cache modes.": ("raise", "write_cache"),
    "Withdraw the guard's lease": ("tighten", "power_guard"),
    "Tighten mounts.": ("tighten", "mount_options"),
    "Tighten caches.": ("tighten", "write_cache"),
    "Add mount requirements": ("tighten", "unit_mounts"),
    "Tighten engines.": ("tighten", "engines"),
    "Set the UPS monitor": ("tighten", "power"),
    "Set schedulers and readahead.": ("tighten", "io_scheduler"),
    "Loosen caches.": ("loosen", "write_cache"),
    "Loosen mounts.": ("loosen", "mount_options"),
    "Loosen engines": ("loosen", "engines"),
    "Grant the guard's lease.": ("loosen", "power_guard"),
}


def test_the_order_of_steps_is_that_of_the_plan() -> None:
    text = (ROOT / "docs/order.md").read_text(encoding="utf-8")
    listed = re.findall(r"^(\d+)\. \*\*(.+?)\*\*", text.partition("## When a run is killed")[0], re.M)
    assert [int(number) for number, _name in listed] == list(range(1, len(listed) + 1))
    steps = [(phase, "engines" if catalog.is_engine(layer) else layer) for phase, layer in plan.STEPS]
    assert [ORDER[name] for _number, name in listed] == list(dict.fromkeys(steps))


@pytest.mark.parametrize("path", sorted((ROOT / "plugins/modules").glob("*.py")), ids=lambda path: path.stem)
def test_a_module_that_returns_differences_says_so(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    fragments = yaml.safe_load(re.search(r'DOCUMENTATION = r"""(.*?)"""', text, re.S)[1])  # type: ignore[index]
    is_layer = path.stem in {layer.module for layer in catalog.LAYERS.values()}
    own = "durable.dbhost.attributes.layer" if is_layer else "durable.dbhost.attributes"
    assert own in fragments["extends_documentation_fragment"]


def test_the_documentation_of_each_plugin_is_yaml() -> None:
    """The site would say so too, half an hour later."""
    for path in sorted(ROOT.glob("plugins/*/*.py")):
        for name, text in re.findall(
            r'^(DOCUMENTATION|EXAMPLES|RETURN) = r?"""\n(.*?)^"""', path.read_text(), re.M | re.S
        ):
            assert yaml.safe_load(text) is not None, f"{path.name}: {name}"


def test_every_name_of_an_example_is_documented() -> None:
    documented = (ROOT / "docs/variables.md").read_text(encoding="utf-8")
    for path in (ROOT / "examples").rglob("*.yml"):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"^\s*(durable_\w+):", text, re.M):
            assert name in documented or name.replace("durable_attestations", "") in documented, name


def test_no_example_of_what_people_answer_for_is_taken_as_it_stands() -> None:
    """An attestation that is pasted would end green on what nobody has checked."""
    found = 0
    for path in (*PAGES, *(ROOT / "examples").rglob("*.yml"), *(ROOT / "roles").rglob("README.md")):
        for entry in re.findall(
            r"^ *- (?:claim|finding|engine): .*\n(?: +\w+: .*\n)*", path.read_text(encoding="utf-8"), re.M
        ):
            fields = dict(re.findall(r"(\w+): *(\S[^#\n]*)", entry))
            if "by" in fields:
                found += 1
                assert (fields["by"].strip(), fields["reason"].strip()) == ('""', '""'), (
                    f"{path.name}: {entry}"
                )
    assert found >= 6


def test_every_test_that_the_page_of_attacks_names_is_there() -> None:
    text = (ROOT / "docs/evidence/attacks.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", text))
    sources = [*(ROOT / "tests/unit").rglob("test_*.py"), *(ROOT / "molecule").rglob("test_*.py")]
    there = {
        name for path in sources for name in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 50
    assert named - there == set()


def test_the_picture_of_a_report_is_what_a_check_says() -> None:
    """Lines in brackets stand for what is left out; nothing else is."""
    text = (ROOT / "docs/report.md").read_text(encoding="utf-8")
    (picture,) = re.findall(r"```text\n(4 hosts: .*?)```", text, re.S)
    shown = [row for row in picture.splitlines() if row and "[...]" not in row]
    said = iter(render(captured()).splitlines())
    assert len(shown) >= 5
    # In their order: each is looked for after the one before it.
    assert [row for row in shown if row not in said] == []


def test_the_checklist_has_the_answers_of_an_audit() -> None:
    answers = [answer for answer, _by_hand in table("docs/papers.md", "answer | by hand")]
    assert answers == list(checklist.HEADINGS.values())
    assert list(checklist.HEADINGS) == SCHEMA["properties"]["checklist"]["required"]


def test_images_are_small() -> None:
    images = list((ROOT / "docs/images").iterdir())
    assert images
    assert all(image.stat().st_size < 200_000 for image in images)


def test_the_readme_and_the_security_policy_lead_to_the_trust_page() -> None:
    for path in ("README.md", "SECURITY.md"):
        assert "(docs/trust.md)" in (ROOT / path).read_text(encoding="utf-8")


def test_the_readme_is_short_and_lists_the_commands_of_a_checkout_once() -> None:
    """Galaxy shows it to people who have the tarball alone: only one block needs a checkout."""
    text = (ROOT / "README.md").read_text()
    assert len(text.split()) <= 700
    assert re.findall(r"^make (\w+)|`make ", text, re.M) == ["demo", "test", "audit"]
    assert "in a checkout" in text.partition("make demo")[0].splitlines()[-3]


@functools.cache
def left_out() -> tuple[str, ...]:
    """Return the patterns of what the tarball has not."""
    return tuple(yaml.safe_load((ROOT / "galaxy.yml").read_text())["build_ignore"])


def is_left_out(path: Path) -> bool:
    """Tell whether a file of the checkout, or a directory above it, is not in the tarball."""
    names = [str(each) for each in (path, *path.parents) if each != Path()]
    return any(fnmatch.fnmatch(name, pattern) for name in names for pattern in left_out())


@pytest.mark.parametrize("page", sorted(str(path.relative_to(ROOT)) for path in PAGES))
def test_a_page_of_the_tarball_links_to_what_is_in_it(page: str) -> None:
    """To all else by its address."""
    assert is_left_out(Path("lab/README.md")) and not is_left_out(Path("docs/start.md"))
    if is_left_out(Path(page)):
        return
    links = re.findall(r"\]\(([^)\s#]+)", (ROOT / page).read_text())
    found = [(ROOT / page).parent / link for link in links if not re.match(r"https?:", link)]
    assert [str(path) for path in found if is_left_out(path.resolve().relative_to(ROOT))] == []


@pytest.mark.parametrize("page", sorted(str(path.relative_to(ROOT)) for path in PAGES))
def test_each_link_of_a_page_leads_somewhere(page: str) -> None:
    path = ROOT / page
    text = re.sub(re.escape(FORGE), f"{ROOT}/", path.read_text())
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"https?:", target):
            file, _hash, heading = target.partition("#")
            found = path if not file else path.parent / file
            assert found.exists(), target
            assert not heading or heading in anchors(found), target


def anchors(path: Path) -> set[str]:
    """Return what can be linked to in a page: its headings as forges spell them, and anchors that are written out."""
    text = path.read_text()
    headings = re.findall(r"^#+ +(.+)$", text, re.M)
    spelled = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return spelled | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


def test_the_glossary_has_each_term_once_and_in_order() -> None:
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", text, re.M)[1:]
    assert len(terms) > 30
    assert terms == sorted(set(terms), key=str.lower)
