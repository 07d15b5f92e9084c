# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Databases on NFS: never green by themselves, green by somebody's word about the export, never where writes are given up."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.measure import targets
from ansible_collections.durable.dbhost.plugins.module_utils.measure.limits import Refused
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import facts_schema
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.storage import nfs
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ..fakes.runs import NOW, attested, inputs, look
from ..fakes.small_host import FakeMount, SmallHost

NAS, EXPORT = "/srv/nas", "nfs:nas.example.com:/export/pg"
#: As the kernel shows a mount of NFS 4.2 (nfs(5) has the words).
SHOWN = ("vers=4.2", "rsize=1048576", "namlen=255", "hard", "proto=tcp", "timeo=600", "addr=10.9.8.7")


def client(
    *line: str,
    shown: tuple[str, ...] = SHOWN,
    fstype: str = "nfs4",
    source: str = "nas.example.com:/export/pg",
) -> SmallHost:
    """Return a host with an NFS mount; `line`: the lines of fstab about it."""
    host = SmallHost()
    host.add_mount(FakeMount(NAS, fstype, "0:52", source, "pg", super_options=shown))
    host.files["/etc/fstab"] += "".join(line or (f"nas.example.com:/export/pg/ {NAS} nfs defaults 0 0\n",))
    return host


def judged(host: SmallHost, profile: str = "flush", *words: dict[str, str]) -> dict[str, Any]:
    return look(host, profile, mounts=[NAS], attestations=list(words))


def without(*words: str) -> tuple[str, ...]:
    return tuple(option for option in SHOWN if option != "hard") + words


@pytest.mark.fact(90)
@pytest.mark.parametrize("profile", ["strict", "flush", "protected", "ups"])
@pytest.mark.parametrize("fstype", ["nfs", "nfs4"])
def test_it_is_never_green_by_itself(fstype: str, profile: str) -> None:
    found = judged(client(fstype=fstype), profile)
    assert found["verdict"] in ("unknown", "blocked"), found["why"]
    assert any("attest" in why and EXPORT in why for why in found["why"]), found["why"]
    assert not any(found["plan"].values())


@pytest.mark.fact(90)
@pytest.mark.parametrize(
    ("profile", "claim"), [("flush", "host_honours_flush"), ("strict", "power_loss_protection")]
)
def test_what_its_report_has_people_copy_attests_the_export(profile: str, claim: str) -> None:
    host = client()
    before = judged(host, profile)
    assert before["verdict"] == "unknown"
    (needed,) = [need for need in before["requirements"] if need["attest"]]
    (entry,) = yaml.safe_load("\n".join(needed["attest"]).replace("!unsafe ", ""))
    assert (entry["claim"], entry["target"]) == (claim, EXPORT)
    after = judged(host, profile, {**entry, "by": "A. Person", "reason": "exportfs -v says sync"})
    assert after["verdict"] == "attested", after["why"]


def test_a_database_that_is_listed_by_its_path_is_not_refused_there() -> None:
    given = {"mounts": None, "databases": [{"engine": "postgresql", "paths": [f"{NAS}/15/main"]}]}
    found = look(client(), "flush", **given)
    assert found["verdict"] == "unknown", found["why"]
    assert [row["target"] for row in found["settings"] if row["setting"] == "recovery"] == [NAS]


@pytest.mark.parametrize(
    "word",
    [attested("host_honours_flush"), attested("host_honours_flush", "nfs:nas.example.com:/export")],
    ids=["the hypervisor", "another export"],
)
def test_a_word_about_something_else_does_not_do(word: dict[str, str]) -> None:
    assert judged(client(), "flush", word)["verdict"] == "unknown"


GOOD = attested("host_honours_flush", EXPORT)


@pytest.mark.fact(91)
@pytest.mark.parametrize(
    ("shown", "options", "verdict"),
    [
        (SHOWN, "defaults", "attested"),
        (SHOWN, "hard,sync", "attested"),
        (without("hard", "sync"), "async", "attested"),
        (SHOWN, "soft,hard", "attested"),
        (without("soft"), "hard", "drifted"),
        (without("softerr"), "hard", "drifted"),
        (SHOWN, "soft", "drifted"),
        (SHOWN, "vers=4.2,hard,softerr", "drifted"),
        (without(), "hard", "unknown"),
        (without("soft"), "", "drifted"),
    ],
)
def test_a_mount_that_gives_writes_up_is_not_green(
    shown: tuple[str, ...], options: str, verdict: str
) -> None:
    line = f"nas.example.com:/export/pg {NAS} nfs4 {options} 0 0\n" if options else ""
    host = client(line, shown=shown)
    found = judged(host, "flush", GOOD)
    assert found["verdict"] == verdict, found["why"]
    (row,) = [row for row in found["settings"] if row["setting"] == "recovery"]
    assert (row["verdict"] == "ok") == (verdict == "attested")
    again = f"unmount and mount {NAS} with its databases down"
    cures = {
        "hard": f"unmount {NAS} and mount it by /etc/fstab line 6 with its databases down",
        "soft": f"set hard in place of soft in /etc/fstab line 6, then {again}",
        "vers=4.2,hard,softerr": f"set hard in place of softerr in /etc/fstab line 6, then {again}",
        "": f"add a line for {NAS} with the option hard to /etc/fstab, then {again}",
    }
    assert (row["phase"], row["remedy"]) == (None, "" if verdict == "attested" else cures[options])


def test_a_value_that_is_hidden_may_hold_anything() -> None:
    """A password may hold a comma: what stands behind it is not read as an option."""
    found = nfs.persisted(("secret=hidden", "hidden"), "fstab")
    assert found["recovery"].value == "unknown"


@pytest.mark.parametrize(
    ("line", "persisted"),
    [
        (f"nas.example.com:/export/pg {NAS} nfs defaults\n", "hard"),
        (f"nas.example.com:/other {NAS} nfs defaults\n", "unset"),
        (f"nas.example.com:/export/pg {NAS} cifs defaults\n", "unset"),
        (f"/dev/sda9 {NAS} ext4 defaults\n", "unset"),
        ("# nothing\n", "unset"),
    ],
)
def test_the_next_boot_is_what_fstab_says_of_the_same_export(line: str, persisted: str) -> None:
    found = next(mount for mount in collect(client(line), NOW)["mounts"] if mount["target"] == NAS)
    assert (found["persisted"]["recovery"], found["recovery"]) == (persisted, "hard")


CONF = "/etc/nfsmount.conf"


@pytest.mark.parametrize("options", ["defaults", "hard"])
@pytest.mark.parametrize(
    ("path", "text"),
    [
        (CONF, "# a\n[ NFSMount_Global_Options ]\n# Soft=False\n  Soft = True\n"),
        (f"{CONF}.d/a.conf", '\n\n[NFSMount_Global_Options]\nsoft="true"\n'),
        (CONF, '[ Server "NAS.example.com" ]\n vers=4\n\nsoft=true\n'),
        ("/usr/etc/nfsmount.conf", f'[ MountPoint "{NAS}" ]\nretrans=3\n\nSOFT=TRUE\n'),
    ],
)
def test_a_file_of_mount_nfs_makes_a_mount_soft_whatever_its_line_has(
    path: str, text: str, options: str
) -> None:
    host = client(f"nas.example.com:/export/pg {NAS} nfs4 {options} 0 0\n")
    host.files[path] = text
    found = judged(host, "flush", GOOD)
    (row,) = [row for row in found["settings"] if row["setting"] == "recovery"]
    assert (row["running"], row["persisted"], found["verdict"]) == ("hard", "soft", "drifted")
    again = f"then unmount and mount {NAS} with its databases down"
    assert row["remedy"] == f"remove soft from {path} line 4, {again}"
    assert row["evidence"]["persisted"]["by"] == "nfsmount.conf"


@pytest.mark.parametrize(
    "text",
    [
        "[ NFSMount_Global_Options ]\n# Soft=True\n;soft=true\nSoft=False\nsofter=true\n",
        '[ Server "other.example.com" ]\nsoft=true\n[ MountPoint "/srv/other" ]\nsoft=true\n',
        "soft=true\n",
    ],
)
def test_a_file_of_mount_nfs_that_is_about_others_changes_nothing(text: str) -> None:
    host = client()
    host.files[CONF] = text
    assert judged(host, "flush", GOOD)["verdict"] == "attested"


@pytest.mark.parametrize(
    "text", ["include=/etc/nfs/site.conf\n", Unobservable(f"{CONF}: Input/output error")]
)
def test_a_file_of_mount_nfs_that_is_not_read_makes_the_next_boot_unknown(text: str | Exception) -> None:
    host = client()
    host.files[CONF] = text
    found = judged(host, "flush", GOOD)
    (row,) = [row for row in found["settings"] if row["setting"] == "recovery"]
    assert (row["persisted"], found["verdict"]) == ("unknown", "unknown")
    assert "hard" not in row["remedy"]


def test_lines_that_disagree_make_the_next_boot_unknown() -> None:
    line = "nas.example.com:/export/pg {} nfs {} 0 0\n"
    host = client(line.format(NAS, "hard"), line.format("/mnt/copy", "soft"))
    assert judged(host, "flush", GOOD)["verdict"] == "unknown"


def test_two_mounts_of_one_export_lie_on_one_disk() -> None:
    host = client()
    host.add_mount(
        FakeMount("/mnt/b", "nfs4", "0:53", "nas.example.com:/export/pg", "pg", super_options=SHOWN)
    )
    storage = collect(host, NOW)
    assert [disk["id"] for disk in storage["disks"] if disk["transport"] == "nfs"] == [EXPORT]
    assert facts_schema.faults(storage, {"time": NOW, "engines": [], "unattributed": [], "writers": []}) == []


def test_an_export_is_known_by_its_name_alone() -> None:
    """A word about the host never counts for it, whatever another fact says."""
    storage = collect(client(), NOW)
    (export,) = [disk for disk in storage["disks"] if nfs.is_export(disk)]
    export.update(transport="scsi", kind="virtual")
    given = inputs("flush", mounts=[NAS], attestations=[attested("host_honours_flush")])
    assert assess(given, storage, NOW)["verdict"] == "unknown"


def test_a_login_is_not_shown() -> None:
    assert nfs.name_of("joe:secret@nas:/x") == "nfs:hidden@nas:/x"


def test_exports_with_a_login_s_sign_in_their_paths_are_known_apart() -> None:
    """What is hidden of two would be one name, and a word about one would count for the other."""
    assert nfs.name_of("nas:/a@x") == "nfs:nas:/a@x"
    assert nfs.name_of("[fe80::1]:/b@x") == "nfs:[fe80::1]:/b@x"


@pytest.mark.parametrize("field", ["recovery", "persisted"])
def test_facts_that_lost_it_are_not_judged(field: str) -> None:
    storage = collect(client(), NOW)
    mount = next(mount for mount in storage["mounts"] if mount["target"] == NAS)
    if field == "recovery":
        del mount["recovery"]
    else:
        mount["persisted"]["recovery"] = "perhaps"
    assert facts_schema.faults(storage, {"time": NOW, "engines": [], "unattributed": [], "writers": []})


def test_nothing_is_measured_there() -> None:
    """What reaches the disks of another machine could not be counted."""
    with pytest.raises(Refused, match="no disk of this host is below it"):
        targets.find(client(), [NAS])
