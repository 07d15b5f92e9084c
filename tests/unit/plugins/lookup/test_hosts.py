# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A check of no host is no check that passed: a pattern or a limit that leaves none is an error."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest
from ansible import context
from ansible.errors import AnsibleLookupError, AnsibleUndefinedVariable
from ansible.parsing.dataloader import DataLoader

from ansible_collections.durable.dbhost.plugins.lookup.hosts import LookupModule

GROUPS = {"all": ["db1", "db2", "web1"], "databases": ["db1", "db2"], "web": ["web1"], "ungrouped": []}


def pattern(
    given: Any, limit: str | None = None, groups: dict[str, list[str]] | None = None, **variables: Any
) -> Any:
    """Return what the lookup gives back for a pattern."""
    variables = {"groups": GROUPS if groups is None else groups, **variables}
    if limit:
        variables["ansible_limit"] = limit
    (found,) = lookup().run([given], variables)
    return found


def lookup() -> LookupModule:
    """Return the plugin, with a templar that knows `half` alone."""

    def template(given: Any) -> Any:
        if isinstance(given, str) and "{{" in given and given != "{{ half }}":
            # ansible-core 2.16 repeats its message.
            raise AnsibleUndefinedVariable(f"{given[3:-3]!r} is undefined. {given[3:-3]!r} is undefined")
        return "50%" if given == "{{ half }}" else given

    return LookupModule(loader=DataLoader(), templar=MagicMock(template=template))


@pytest.mark.parametrize(
    "given", ["all", "databases", "db1,web1", "databases:!db1", ["db1", "db2"], "db*", "~db[12]"]
)
def test_a_pattern_that_matches_is_given_back(given: Any) -> None:
    assert pattern(given) == given


@pytest.mark.parametrize("given", ["database", "databases:!all", "ungrouped", [], 5, None, {"a": 1}])
def test_a_pattern_that_matches_none_is_an_error(given: Any) -> None:
    with pytest.raises(
        AnsibleLookupError, match="which matches no host; expected hosts or groups of the inventory"
    ):
        pattern(given, durable_hosts=given)


def test_a_misspelt_group_gets_the_nearest_name() -> None:
    with pytest.raises(
        AnsibleLookupError,
        match=r"inventory a.yml\. Check its spelling\. Did you mean databases\? Nothing was changed\.$",
    ):
        pattern("databasez", durable_hosts="databasez", ansible_inventory_sources=["a.yml"])


@pytest.mark.parametrize("option", ["syntax", "listhosts", "listtags", "listtasks"])
def test_where_nothing_is_run_no_host_is_needed(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "CLIARGS", {option: True})
    assert pattern("all", groups={"all": []}) == "all"


def test_an_empty_inventory_is_an_error() -> None:
    empty = {"all": [], "ungrouped": []}
    with pytest.raises(
        AnsibleLookupError,
        match=r"^no host in the inventory; expected hosts in -i a, b\. Nothing was changed\.$",
    ):
        pattern("all", groups=empty, ansible_inventory_sources=["a", "b"])
    with pytest.raises(
        AnsibleLookupError, match=r"expected hosts in an inventory \(-i\)\. Nothing was changed\.$"
    ):
        pattern("all", groups=empty)


@pytest.mark.parametrize("limit", ["db1", "all", "web:db2", "!db1"])
def test_a_limit_may_leave_some(limit: str) -> None:
    assert pattern("databases", limit) == "databases"


@pytest.mark.parametrize("limit", ["web", "!databases", "web1"])
def test_a_limit_that_leaves_none_is_an_error(limit: str) -> None:
    with pytest.raises(
        AnsibleLookupError,
        match=r"--limit: observed .* which leaves none .* expected one of db1, db2\. Nothing was changed\.$",
    ):
        pattern("databases", limit)


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({"tags": ["storage"]}, "observed --tags storage; expected no --tags and no --skip-tags: a part"),
        ({"tags": ["always"]}, "observed --tags always; expected no --tags and no --skip-tags: a part"),
        (
            {"tags": ["all"], "skip_tags": ["power", "untagged"]},
            "observed --skip-tags untagged; expected no --tags and no --skip-tags: a part",
        ),
        (
            {"skip_tags": ["always"]},
            "observed --skip-tags always; expected no --tags and no --skip-tags: a part",
        ),
        (
            {"skip_tags": ["tagged"]},
            "observed --skip-tags tagged; expected no --tags and no --skip-tags: a part",
        ),
        (
            {"tags": ["a"], "skip_tags": ["all"]},
            "observed --tags a --skip-tags all",
        ),
        ({"tags": ["all"], "skip_tags": []}, ""),
        # As Molecule gives to each of its playbooks: a tag that no step has skips nothing.
        ({"tags": ["all"], "skip_tags": ["molecule-notest", "notest"]}, ""),
    ],
)
def test_a_part_of_a_run_is_refused(
    given: dict[str, list[str]], seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "CLIARGS", given)
    if not seen:
        assert pattern("all") == "all"
        return
    with pytest.raises(AnsibleLookupError, match=seen):
        pattern("all")


def batches(given: Any) -> None:
    """Ask for hosts of a play whose batches are so large."""
    lookup().run(["all"], {"groups": GROUPS, "durable_serial": given})


@pytest.mark.parametrize("given", [1, "5", "10%", "100%", [1, "20%"], "{{ half }}"])
def test_batches_are_numbers_or_shares(given: Any) -> None:
    batches(given)


@pytest.mark.parametrize("given", [0, "0", -1, "abc", "", "0%", "101%", 2.5, True, None, [], [1, "x"], {}])
def test_what_is_no_size_of_a_batch_is_refused(given: Any) -> None:
    """Ansible takes 0 for all hosts at once."""
    with pytest.raises(
        AnsibleLookupError, match=r"durable_serial: observed .*; expected the number of hosts"
    ):
        batches(given)


def test_all_errors_are_reported_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "CLIARGS", {"tags": ["storage"]})
    with pytest.raises(AnsibleLookupError) as error:
        pattern("databasez", durable_hosts="databasez", durable_serial=[0, "x"])
    parts = (
        "--tags storage",
        "durable_serial: observed 0",
        "durable_serial: observed 'x'",
        "durable_hosts: ",
    )
    assert all(part in str(error.value) for part in parts)


def test_each_error_is_reported_once() -> None:
    with pytest.raises(AnsibleLookupError) as error:
        batches([0, 0])
    assert str(error.value).count("observed 0") == 1


def test_a_size_of_a_batch_is_resolved_first() -> None:
    module = lookup()
    module._templar.template = lambda _given: 0
    with pytest.raises(AnsibleLookupError, match="durable_serial: observed 0;"):
        module.run(["all"], {"groups": GROUPS, "durable_serial": "{{ size }}"})


@pytest.mark.parametrize("name", ["durable_hosts", "durable_serial"])
def test_an_undefined_variable_does_not_make_it_all_hosts_at_once(name: str) -> None:
    with pytest.raises(
        AnsibleLookupError,
        match=rf"{name}: 'missing' is undefined; expected only defined variables in it\. Nothing was changed\.$",
    ):
        pattern("all", **{name: "{{ missing }}"})
