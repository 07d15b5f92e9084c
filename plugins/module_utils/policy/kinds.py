# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of findings about a host as a whole. Data."""

from __future__ import annotations

from ..rows import Kind

ATTESTATION_EXPIRED = Kind(
    "requirement.attestation_in_force",
    "blocked",
    "{where}: {claim} by {author} expired on {date}: it has no effect",
    "check the claim, then set a later expires in {where}, or delete it",
)
LOSS_NOT_ACCEPTED = Kind(
    "requirement.data_loss_accepted",
    "blocked",
    "this profile loses acknowledged commits at a power cut",
    "check that backups and a UPS exist, then set durable_accept_data_loss: true; or pin a profile that preserves commits",
)

WITHHELD_LAYER = Kind(
    "withheld.layer",
    "blocked",
    "{setting}: {wanted} is withheld until {layers} has made its part safer: durable_layers leaves it out",
    "add {layers} to durable_layers, then run harden_db",
)
WITHHELD_ENGINE = Kind(
    "withheld.engine",
    "blocked",
    "{setting}: {wanted} is withheld until {engines} verifiably preserves commits",
    "correct the settings of {engines} first",
)
WITHHELD_REQUIREMENT = Kind(
    "withheld.requirement",
    "blocked",
    "{setting}: {wanted} is withheld until the requirements are met",
    "meet the requirements that are listed as blocked, then run again",
)

INPUT = Kind("host.input", "blocked", "{cause}", "{cure}")
FACTS = Kind("host.facts", "unknown", "{cause}")
#: `detail`: the message of Ansible, ssh or a module, in brackets; '' without one. The page omits it: it names the host.
NO_FACTS = Kind("host.no_facts", "unknown", "no facts: {cause} {detail}", "{cure}")
NOT_MERGED = Kind("host.no_report", "unknown", "{cause}")
UNREACHABLE = Kind("host.unreachable", "unreachable", "unreachable: {cause} {detail}", "{cure}")
UNPINNED = Kind(
    "host.unpinned",
    "not_managed",
    "no durable_profile is pinned: nothing is changed",
    "set durable_profile in group_vars",
)
UNRATED = Kind(
    "host.unrated",
    "not_managed",
    "nothing to rate: no file system on a block device is mounted for writing",
)
LEASED = Kind(
    "host.leased",
    "not_managed",
    "a guard may disable barriers here",
    "run durable.dbhost.release_db",
)
NO_DATABASE = Kind(
    "host.no_database",
    "not_applicable",
    "no database engine was found, and no managed mount",
    "list mounts in durable_mounts, or the databases' paths in durable_databases",
)

CONTAINER = Kind(
    "note.container",
    "note",
    "this is a container ({kind}): its disks, mounts and next boot belong to its host",
    "run on that host",
)
UNMATCHED_ATTESTATION = Kind(
    "note.attestation_unmatched",
    "note",
    "the attestation of {claim} by {author} has no effect: no disk or unknown layer here has the id {target}",
    "use {expected}",
)
ROLLBACK_TIMER = Kind("note.rollback_timer", "note", "{cause}")
STEP_FAILED = Kind("note.performance_step", "note", "a step about speed alone failed: {cause}")
ACCEPTED = Kind(
    "note.accepted", "note", "{finding} of {target} is accepted by {author} until {date}: {reason} ({where})"
)
WAIVER_EXPIRED = Kind(
    "note.waiver_expired",
    "note",
    "{where}: the acceptance of {finding} of {target} expired on {date}, so it accepts nothing",
    "check the finding, then set a later expires, or delete the entry",
)
WAIVER_REFUSED = Kind(
    "note.waiver_refused",
    "note",
    "{where}: {finding} of {target} is at_risk: accepting it requires durable_accept_data_loss: true",
    "correct the finding, or set that variable too",
)
WAIVER_UNMATCHED = Kind(
    "note.waiver_unmatched",
    "note",
    "{where}: this host has no finding {finding} of {target}, so the entry accepts nothing",
    "correct the entry, or delete it",
)
LISTED = Kind("note.not_judged", "note", "{what}")

KINDS = (
    *(ATTESTATION_EXPIRED, LOSS_NOT_ACCEPTED, WITHHELD_LAYER, WITHHELD_ENGINE, WITHHELD_REQUIREMENT),
    *(INPUT, FACTS, NO_FACTS, NOT_MERGED, UNREACHABLE, UNPINNED, UNRATED, LEASED, NO_DATABASE),
    *(CONTAINER, UNMATCHED_ATTESTATION, ROLLBACK_TIMER, STEP_FAILED, LISTED),
    *(ACCEPTED, WAIVER_EXPIRED, WAIVER_REFUSED, WAIVER_UNMATCHED),
)
