# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What fio, blkparse and the witness of a power cut say."""

from __future__ import annotations

import io

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.measure import (
    fio,
    patterns,
    plot,
    plug_job,
    plug_log,
    server_trace,
    spare,
    trace,
    transactions,
)
from ansible_collections.durable.dbhost.plugins.module_utils.measure.limits import Refused
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import costs
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import Profile
from fuzz.target import of_text

_JOB = plug_job.dumps(
    plug_job.Job("0123456789abcdef", "boot", ("/d",), ("8:1",), (sorted(patterns.PATTERNS)[0],), 2, 1, 10, 30)
)


@of_text(
    Unobservable,
    seeds=[
        'fio: warning\n{"jobs": [{"error": 0, "write": {"total_ios": 100, "runtime": 1000, "clat_ns": {"percentile":'
        ' {"99.000000": 1.5}}}, "sync": {"total_ios": 100, "lat_ns": {"percentile": {"99.000000": 2}}}}]}',
        '{"jobs": [{"write": {"total_ios": 1, "runtime": 1, "clat_ns": {}}, "sync": {}}]}',
    ],
)
def fio_output(text: str) -> None:
    fio.parse(text, 1, 4)


@of_text(
    seeds=[
        '{"time": "2026-01-31T12:00:00Z", "disks": {"/srv": ["serial:A"]}, "doubts": [], "prices": [{"profile": "strict",'
        ' "mount": "/srv", "rates": [{"rate": 76.0, "of_now": 0.96}, {"rate": 600, "of_now": 1.02}]}]}'
    ]
)
def benchmark_file(text: str) -> None:
    storage = {
        "disks": [{"name": "sda", "id": "serial:A", "kind": "physical", "rotational": "yes"}],
        "mounts": [{"targets": ["/srv"], "disks": ["sda"]}],
    }
    profile = Profile("strict", "", "disabled", "on", "ordered", "noatime", "device")
    priced, beside = costs.of([profile], text, storage, "2026-02-01")
    assert not (beside and "own benchmark" in priced["strict"])


@of_text(seeds=["8,0 D WFS 4\n8,0 D W 8\n8,16 D FWFS 8\n8,16 C WFS 8\n"])
def blkparse(text: str) -> None:
    trace.count(text)
    assert plot.text(text).isprintable() or "\n" in text


@of_text(seeds=["0 1500 8,0 Q WFS 2048 8 712\n1 0 8,0 D FF 0 0 1\n1 2 8,0 D WFS x 8 712\n"])
def blkparse_of_a_server(text: str) -> None:
    found = list(server_trace.events(text))
    assert len(found) <= text.count("\n") + 1
    server_trace.of_disk(found, {712})


@of_text(Refused, seeds=[_JOB + "\n", _JOB + "\na 0 0\na 1 0\na 0 1\ne 0 gone\na 1"])
def plug_log_file(text: str) -> None:
    found = plug_log.parse(io.StringIO(text))
    assert plug_job.loads(plug_job.dumps(found.job)) == found.job


@of_text(
    Unobservable,
    seeds=[
        "number of transactions actually processed: 100\ntps = 50.5 (without initial connection time)\n",
        "    transactions:                        100    (50.00 per sec.)\n         99th percentile:     10.5\n",
        "nothing",
    ],
)
def transactions_output(text: str) -> None:
    transactions.parse(text, 4)


@of_text(
    seeds=[
        "# /dev/sda\nvg UUID=x /dev/disk/by-path/pci-0000:00:1f.2-ata-1 luks\n<source dev='/dev/sdb'/> /dev/sdc:/key\n"
    ]
)
def configuration_with_devices(text: str) -> None:
    assert all(device.startswith("/") for device in spare._devices(text))
