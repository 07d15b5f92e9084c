# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plug is pulled: job, log, verdict; and witness and writer over a real connection and real files."""

from __future__ import annotations

import contextlib
import datetime
import io
import os
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.attestations import read as read_attestations
from ansible_collections.durable.dbhost.plugins.module_utils.measure import (
    daemon,
    plug_host,
    plug_job,
    plug_keeper,
    plug_log,
    plug_verdict,
    plug_witness,
    plug_writer,
    scratch,
)
from ansible_collections.durable.dbhost.plugins.module_utils.measure.limits import MIB, Refused
from ansible_collections.durable.dbhost.plugins.module_utils.measure.patterns import BLOCK, PATTERNS
from ansible_collections.durable.dbhost.plugins.module_utils.measure.plug_job import Job, Losses
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fake_host import FakeHost

from .test_scratch import mount_of

RUN = "0123456789abcdef"
KEY = "k" * 48
ROW = {"patterns": list(PATTERNS), "clients": 12, "size": 1, "rate": 5000, "seconds": 30}
JOB = plug_job.make(
    RUN, "boot-1", [{"target": "/a", "device": "8:1"}, {"target": "/b", "device": "8:2"}], ROW
)


#: A user who logs in.
PERSON = 1000


def small_job(path: Path, **changes: Any) -> Job:
    """Return a job on one directory, with two clients."""
    place = {"target": str(path), "device": mount_of(path).device}
    row = {**ROW, "patterns": ["dsync", "append_fsync"], "clients": 2, **changes}
    return plug_job.make(RUN, "boot-1", [place], row)


class Rig:
    """A witness in a thread, with its log."""

    def __init__(self, job: Job, log: Path) -> None:
        self.path, self._stop = log, threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self.listener.getsockname()
        self._log = os.open(log, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        os.write(self._log, plug_witness.first_line(job))
        witness = plug_witness.Witness(self.listener, self._log, job, KEY, self._stop.is_set)
        self._thread = threading.Thread(target=witness.serve, args=(30,))
        self._thread.start()

    def await_ends(self, count: int) -> None:
        """Return once it has heard that so many clients ended: what they said last may still be on its way."""
        deadline = time.monotonic() + 10
        while len(plug_log.parse(io.StringIO(self.path.read_text("ascii"))).ended) < count:
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def close(self) -> plug_log.Log:
        """End it and return its log."""
        self._stop.set()
        self._thread.join()
        self.listener.close()
        os.close(self._log)
        return plug_log.parse(io.StringIO(self.path.read_text("ascii")))


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHost]:
    """A host in boot-1 on which every directory is a mount."""
    made = FakeHost()
    made.files["/proc/sys/kernel/random/boot_id"] = "boot-1\n"

    def find(_host: Any, targets: Any) -> list[dict[str, Any]]:
        mounts = [mount_of(Path(target)) for target in targets]
        return [{"target": mount.target, "device": mount.device, "mount": mount} for mount in mounts]

    monkeypatch.setattr(plug_host, "find", find)
    monkeypatch.setattr(plug_keeper, "_PATIENCE", 5.0)
    yield made


class TestJob:
    def test_every_mount_and_pattern_has_a_client(self) -> None:
        seen = {(JOB.mount_of(client), JOB.pattern_of(client)) for client in range(12)}
        assert seen == {(mount, pattern) for mount in (0, 1) for pattern in PATTERNS}

    def test_it_comes_back_from_its_line(self) -> None:
        assert plug_job.loads(plug_job.dumps(JOB)) == JOB
        assert "\n" not in plug_job.dumps(JOB)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "[]",
            "{}",
            plug_job.dumps(JOB._replace(run="../../etc/passwd")),
            plug_job.dumps(JOB._replace(size=10**9)),
            plug_job.dumps(JOB._replace(devices=("8:1",))),
            plug_job.dumps(JOB._replace(patterns=("none",))),
        ],
    )
    def test_what_is_no_job_is_refused(self, text: str) -> None:
        with pytest.raises(Refused):
            plug_job.loads(text)

    def test_too_few_clients_are_refused(self) -> None:
        with pytest.raises(Refused, match="expected at least 6"):
            plug_job.make(RUN, "b", [{"target": "/a", "device": "8:1"}], {**ROW, "clients": 5})

    def test_a_block_belongs_to_one_commit(self) -> None:
        block = plug_job.record(JOB, 3, 7)
        assert len(block) == BLOCK
        assert plug_job.number_in(JOB, 3, block) == 7
        for other in (
            plug_job.record(JOB, 4, 7),
            plug_job.record(JOB._replace(run="f" * 16), 3, 7),
            bytes(BLOCK),
            b"",
        ):
            assert plug_job.number_in(JOB, 3, other) is None
        assert plug_job.number_in(JOB, 3, block[:-1] + bytes([block[-1] ^ 1])) is None


class TestCheck:
    def write(self, path: Path, job: Job, client: int, commits: range) -> int:
        """Write commits as a client would, and return the file."""
        file = os.open(path / str(client), os.O_RDWR | os.O_CREAT)
        for commit in commits:
            if PATTERNS[job.pattern_of(client)].appends and job.slot_of(client, commit) == 0:
                os.ftruncate(file, 0)
            os.pwrite(file, plug_job.record(job, client, commit), job.slot_of(client, commit) * BLOCK)
        return file

    @pytest.mark.parametrize("client", [0, 1])
    @pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 400, 512])
    def test_all_is_there_with_and_without_one_more_under_way(
        self, client: int, count: int, tmp_path: Path
    ) -> None:
        job = small_job(tmp_path)
        assert job.slots == 256
        for more in (0, 1):
            file = self.write(tmp_path, job, client, range(count + more))
            losses = plug_job.check(job, {client: count}, {client: file})
            assert (losses.lost, losses.acknowledged) == (0, count)
            os.close(file)

    def test_the_one_under_way_may_have_torn_the_oldest(self, tmp_path: Path) -> None:
        job = small_job(tmp_path)
        file = self.write(tmp_path, job, 0, range(300))
        os.pwrite(file, b"torn", job.slot_of(0, 300) * BLOCK)
        assert plug_job.check(job, {0: 300}, {0: file}).lost == 0
        os.close(file)

    @given(st.integers(1, 300).flatmap(lambda count: st.tuples(st.just(count), st.integers(0, count - 1))))
    def test_each_one_that_is_missing_is_found(
        self, tmp_path_factory: pytest.TempPathFactory, case: Any
    ) -> None:
        count, missing = case
        path = tmp_path_factory.mktemp("run")
        job = small_job(path)
        file = self.write(path, job, 0, range(count))
        os.pwrite(file, bytes(512), job.slot_of(0, missing) * BLOCK + 1024)
        found = plug_job.check(job, {0: count}, {0: file})
        os.close(file)
        # Of an old commit the place may hold a newer one, which is then the one that is missing.
        held = [
            commit
            for commit in range(job.oldest(0, count), count)
            if commit % job.slots == missing % job.slots
        ]
        expected = len(held)
        assert found.lost == expected
        assert len(found.named) == expected

    def test_an_older_commit_in_its_place_is_a_loss(self, tmp_path: Path) -> None:
        job = small_job(tmp_path)
        file = self.write(tmp_path, job, 0, range(300))
        os.pwrite(file, plug_job.record(job, 0, 299 - 256), job.slot_of(0, 299) * BLOCK)
        losses = plug_job.check(job, {0: 300}, {0: file})
        assert (losses.lost, losses.named) == (1, ("client 0 (dsync): commit 299, observed commit 43",))
        os.close(file)

    @pytest.mark.parametrize(("count", "unchecked"), [(1023, ()), (1024, ("append_fsync on {path}",))])
    def test_a_pattern_of_which_nothing_can_be_checked_is_named(
        self, count: int, unchecked: tuple[str, ...], tmp_path: Path
    ) -> None:
        """The commit that is under way has emptied the file."""
        job = small_job(tmp_path, patterns=["append_fsync"])
        found = plug_job.check(job, {0: count, 1: 2048}, {0: self.write(tmp_path, job, 0, range(count))})
        assert found.unchecked == tuple(each.format(path=tmp_path) for each in unchecked)
        assert plug_verdict.assess(job, found, {}).word == ("too_few" if unchecked else "kept")

    def test_a_file_that_is_gone_has_lost_all_of_it(self, tmp_path: Path) -> None:
        losses = plug_job.check(small_job(tmp_path), {0: 30, 1: 0}, {})
        assert (losses.checked, losses.lost, len(losses.named)) == (30, 30, 20)


class TestLog:
    def text(self, *lines: str) -> str:
        return plug_witness.first_line(JOB).decode() + "".join(f"{line}\n" for line in lines)

    def test_it_counts_and_leaves_out_a_line_that_is_cut_off(self) -> None:
        text = self.text("a 0 0", "a 3 0", "a 0 1", "e 3 stopped by hand") + "a 0 2"
        log = plug_log.parse(io.StringIO(text))
        assert (log.acknowledged[0], log.acknowledged[3], log.acknowledged[1]) == (2, 1, 0)
        assert log.ended == {3: "stopped by hand"}

    @pytest.mark.parametrize("line", ["a 0 1", "a 99 0", "a x 0", "b 0 0", "", "a 0", "a -1 0", "a 0 \u00b2"])
    def test_what_does_not_follow_is_refused(self, line: str) -> None:
        with pytest.raises(Refused, match="line 2"):
            plug_log.parse(io.StringIO(self.text(line)))

    def test_a_line_without_an_end_hides_no_commit_behind_it(self) -> None:
        with pytest.raises(Refused, match="line 2"):
            plug_log.parse(io.StringIO(self.text("e 3 " + "x" * 2**20, "a 0 0")))

    def test_a_long_one_takes_little_memory(self, tmp_path: Path) -> None:
        """On the controller, a module has not much more than that of the process that asks for it."""
        place = plug_keeper.paths(str(tmp_path), "db1")
        tmp_path.chmod(0o700)
        lines = 100_000
        Path(place.log).write_text(self.text(*(f"a 0 {number}" for number in range(lines))))
        tracemalloc.start()
        try:
            log = plug_keeper.read(place)
            _now, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert log.acknowledged[0] == lines
        assert most < 2**20


class TestVerdict:
    KEPT = Losses(2000, 1500, 0, ())

    @pytest.mark.parametrize(
        ("losses", "ended", "word"),
        [
            (KEPT, {}, "kept"),
            (Losses(2000, 1500, 1, ("x",)), {}, "lost"),
            (Losses(5, 5, 1, ("x",)), {}, "lost"),
            (Losses(999, 999, 0, ()), {}, "too_few"),
            (KEPT._replace(unchecked=("append_fsync on /a",)), {}, "too_few"),
            (Losses(2000, 1500, 1, ("x",), ("append_fsync on /a",)), {}, "lost"),
            (KEPT, {3: "stopped"}, "not_cut"),
            (plug_job.NOT_CHECKED, {3: "stopped"}, "not_cut"),
        ],
    )
    def test_words(self, losses: Losses, ended: dict[int, str], word: str) -> None:
        verdict = plug_verdict.assess(JOB, losses, ended)
        assert verdict.word == word
        assert word in plug_verdict.table(JOB, losses, verdict)

    @pytest.mark.parametrize("by", ["storage team", 'a: "b" # c', "caf\u00e9"])
    def test_the_attestation_is_one_that_the_policy_takes(self, by: str) -> None:
        yaml = pytest.importorskip("yaml")
        text = plug_verdict.attestation(JOB, self.KEPT, by, "2026-02-01", "none")
        (word,) = read_attestations(yaml.safe_load(text.replace("!unsafe ", "")), "2026-02-01").in_force
        assert (word.claim, word.target, word.by) == ("plug_pulled", "host", by)
        assert "none lost" in word.reason
        assert word.expires == str(datetime.date(2026, 2, 1) + datetime.timedelta(days=366))
        taken = text.replace("# Below", "#Below").replace("# ", "").replace("!unsafe ", "")
        both = read_attestations(yaml.safe_load(taken), "2026-02-01").in_force
        assert [one.claim for one in both] == ["plug_pulled", "host_honours_flush"]

    def test_a_guest_is_told_whose_power_counts(self) -> None:
        assert "hypervisor" in plug_verdict.attestation(JOB, self.KEPT, "me", "2026-02-01", "kvm")

    @pytest.mark.parametrize(("by", "today"), [("  ", "2026-02-01"), ("me", "today"), ("me", "")])
    def test_nobody_vouches_for_nothing(self, by: str, today: str) -> None:
        with pytest.raises(Refused):
            plug_verdict.attestation(JOB, self.KEPT, by, today, "none")


class TestWitness:
    def clients(self, job: Job, rig: Rig, place: int) -> list[plug_writer.Client]:
        """Return the job's clients, connected."""
        files = [scratch.create(place, job.name_of(number)) for number in range(job.clients)]
        return [plug_writer.Client(job, n, rig.address, KEY, file) for n, file in enumerate(files)]

    def test_what_was_acknowledged_is_there_and_written_down(self, tmp_path: Path) -> None:
        job = small_job(tmp_path)
        rig, place = Rig(job, tmp_path / "log"), os.open(tmp_path, os.O_RDONLY)
        clients = self.clients(job, rig, place)
        stopped, begun = threading.Event(), threading.Event()
        running = threading.Thread(target=plug_writer.commit_all, args=(clients, stopped, begun.set))
        running.start()
        assert begun.wait(10)
        time.sleep(0.2)
        stopped.set()
        running.join()
        rig.await_ends(2)
        log = rig.close()
        assert log.acknowledged == {0: clients[0].acknowledged, 1: clients[1].acknowledged}
        assert min(log.acknowledged.values()) > 0
        assert set(log.ended) == {0, 1}
        files = {number: os.open(tmp_path / job.name_of(number), os.O_RDONLY) for number in (0, 1)}
        assert plug_job.check(job, log.acknowledged, files).lost == 0

    def test_silence_is_no_end_but_a_closed_connection_is(self, tmp_path: Path) -> None:
        job = small_job(tmp_path)
        rig, place = Rig(job, tmp_path / "log"), os.open(tmp_path, os.O_RDONLY)
        silent, closed = self.clients(job, rig, place)
        closed.close()
        rig.await_ends(1)
        log = rig.close()
        assert log.ended == {1: "closed"}
        silent.close()

    def test_why_a_client_ended_is_written_as_all_foreign_text_is(self, tmp_path: Path) -> None:
        rig = Rig(small_job(tmp_path), tmp_path / "log")
        with socket.create_connection(rig.address) as peer:
            challenge = peer.recv(100).decode().strip()
            peer.sendall(f"0 {plug_witness.prove(KEY, challenge, 0)}\n".encode())
            assert peer.recv(100) == b"ok\n"
            peer.sendall(b"end \x1b[31m caf\xc3\xa9\x00\n")
            rig.await_ends(1)
        rig.close()
        said = rig.path.read_text("ascii").splitlines()[1]
        assert said == r"e 0 \x1b[31m caf\xc3\xa9\x00"

    @pytest.mark.parametrize(
        "hello",
        ["0 wrong", "99 x", "-1 x", "", "x" * 500, "0 \u00e9", "RIGHT\n5", "RIGHT\nx"],
    )
    def test_strangers_and_what_does_not_follow_are_not_heard(self, hello: str, tmp_path: Path) -> None:
        job = small_job(tmp_path)
        rig = Rig(job, tmp_path / "log")
        with socket.create_connection(rig.address) as peer:
            challenge = peer.recv(100).decode().strip()
            peer.sendall(
                (hello.replace("RIGHT", f"0 {plug_witness.prove(KEY, challenge, 0)}") + "\n").encode()
            )
            peer.settimeout(5)
            said = b""
            try:
                while True:
                    piece = peer.recv(100)
                    if not piece:
                        break
                    said += piece
            except ConnectionResetError:
                pass
        log = rig.close()
        assert said in (b"", b"ok\n")
        assert log.acknowledged == {0: 0, 1: 0}

    def test_a_client_is_taken_once(self, tmp_path: Path) -> None:
        job = small_job(tmp_path)
        rig, place = Rig(job, tmp_path / "log"), os.open(tmp_path, os.O_RDONLY)
        first, second = self.clients(job, rig, place)
        with pytest.raises((plug_writer.Ends, OSError)):
            plug_writer.Client(job, 0, rig.address, KEY, scratch.create(place, "again"))
        for client in (first, second):
            client.close()
        rig.close()

    def test_strangers_that_never_stop_talking_are_not_heard_for_ever(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(plug_witness, "_HELLO", 0.3)
        rig = Rig(small_job(tmp_path), tmp_path / "log")
        with socket.create_connection(rig.address) as peer:
            deadline = time.monotonic() + 10
            try:
                while time.monotonic() < deadline:
                    peer.sendall(b"x")
                    time.sleep(0.1)
            except OSError:
                pass  # It was closed at the other end.
        rig.close()
        assert time.monotonic() < deadline

    def test_many_strangers_dripping_bytes_lock_no_client_out(self, tmp_path: Path) -> None:
        job = small_job(tmp_path)
        rig, place = Rig(job, tmp_path / "log"), os.open(tmp_path, os.O_RDONLY)
        strangers = [
            socket.create_connection(rig.address, source_address=("127.0.0.2", 0))
            for _number in range(plug_witness.STRANGERS + 20)
        ]
        stopped = threading.Event()

        def drip() -> None:
            while not stopped.wait(0.02):
                for stranger in strangers:
                    with contextlib.suppress(OSError):
                        stranger.send(b"x")

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            clients = self.clients(job, rig, place)
            clients[0]._say("0")
            assert clients[0]._hear() == "0"
        finally:
            stopped.set()
            dripping.join()
        for each in (*clients, *strangers):
            each.close()
        rig.close()

    def test_a_stranger_makes_room_for_a_newcomer_the_one_with_most_beside_it_first(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(plug_witness, "STRANGERS", 3)
        rig = Rig(small_job(tmp_path), tmp_path / "log")
        peers = []
        for address in ("127.0.0.3", "127.0.0.2", "127.0.0.2", "127.0.0.2"):
            peers.append(socket.create_connection(rig.address, 2, source_address=(address, 0)))
            assert len(peers[-1].recv(100)) == 33
        # The oldest of the address that has the most.
        assert peers[1].recv(100) == b""
        for peer in peers:
            peer.close()
        rig.close()

    def test_the_line_is_durable_before_the_answer(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = small_job(tmp_path)
        seen: list[str] = []
        real = os.fdatasync
        monkeypatch.setattr(os, "fdatasync", lambda fd: (seen.append("sync"), real(fd))[1])
        monkeypatch.setattr(
            plug_witness.Witness,
            "_send",
            lambda _self, peer, text: (seen.append(text.decode()), peer.connection.send(text)),
        )
        rig, place = Rig(job, tmp_path / "log"), os.open(tmp_path, os.O_RDONLY)
        client = plug_writer.Client(job, 0, rig.address, KEY, scratch.create(place, "f"))
        client._say("0")
        assert client._hear() == "0"
        client.close()
        rig.close()
        assert seen.index("sync") < seen.index("0\n")


class TestHost:
    def test_from_beginning_to_verdict(self, tmp_path: Path, host: FakeHost) -> None:
        """The whole way except the power cut, which is the witness's end and another boot here."""
        data, kept = tmp_path / "data", tmp_path / "kept"
        data.mkdir()
        job = plug_host.plan(host, RUN, {**ROW, "mounts": [str(data)], "rate": 200})
        place = plug_keeper.paths(str(kept), "db1/odd name")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        plug_keeper.start(place, job, KEY, "127.0.0.1", port)
        plug_host.begin(host, job, ("127.0.0.1", port), KEY)
        assert len(os.listdir(data)) == 12
        with pytest.raises(Refused, match="another run"):
            plug_host.plan(host, RUN, {**ROW, "mounts": [str(data)]})
        with pytest.raises(Refused, match="still writes"):
            plug_host.clean(host, [str(data)])
        with pytest.raises(Refused, match="earlier run"):
            plug_keeper.start(place, job, KEY, "127.0.0.1", port)
        log = plug_keeper.read(place)
        assert (log.job, log.ended) == (job, {})
        assert min(log.acknowledged.values()) > 0
        with pytest.raises(Refused, match="not restarted"):
            plug_host.verify(host, job, log.acknowledged)
        host.files["/proc/sys/kernel/random/boot_id"] = "boot-2\n"
        assert plug_host.verify(host, job, log.acknowledged).lost == 0
        assert plug_keeper.stop(place)
        assert not plug_keeper.stop(place)
        assert os.listdir(kept) == []
        deadline = time.monotonic() + 20
        while os.listdir(data) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert os.listdir(data) == [], "the commits end, and their files go, without the witness"

    @pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
    def test_a_witness_keeps_nothing_where_others_may_write(self, tmp_path: Path, mode: int) -> None:
        job, place = small_job(tmp_path), plug_keeper.paths(str(tmp_path), "db1")
        Path(place.log).write_text("theirs\n")
        Path(place.stop).symlink_to(tmp_path / "precious")
        tmp_path.chmod(mode)
        for act in (
            plug_keeper.read,
            plug_keeper.stop,
            lambda _: plug_keeper.start(place, job, KEY, "127.0.0.1", 1),
        ):
            with pytest.raises(Refused, match=f"has mode {mode:04o}. Other users"):
                act(place)
        assert not (tmp_path / "precious").exists()

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
    @pytest.mark.parametrize("harm", [lambda top: os.chown(top, PERSON, 0), lambda top: top.chmod(0o777)])
    def test_nor_below_a_directory_that_others_may_exchange(
        self, tmp_path: Path, harm: Callable[[Path], Any]
    ) -> None:
        """The user renames the directory of the witness, and puts one with a log of theirs in its place."""
        top, kept = tmp_path / "top", tmp_path / "top/kept"
        kept.mkdir(mode=0o700, parents=True)
        job, place = small_job(tmp_path), plug_keeper.paths(str(kept), "db1")
        Path(place.log).write_bytes(plug_witness.first_line(job))
        assert plug_keeper.read(place).job == job
        harm(top)
        new = plug_keeper.paths(f"{top}/new/one", "db1")
        for act in (
            lambda: plug_keeper.read(place),
            lambda: plug_keeper.stop(place),
            lambda: plug_keeper.start(new, job, KEY, "127.0.0.1", 1),
        ):
            with pytest.raises(Refused, match=f"{top} (belongs to user {PERSON}|has mode 0777). Other users"):
                act()
        assert os.listdir(top) == ["kept"]

    def test_begins_on_no_mount_but_the_one_that_was_assessed(self, tmp_path: Path, host: FakeHost) -> None:
        job = plug_host.plan(host, RUN, {**ROW, "mounts": [str(tmp_path)]})
        with pytest.raises(Refused, match="expected 0:0: what is mounted there has changed"):
            plug_host.begin(host, job._replace(devices=("0:0",)), ("127.0.0.1", 1), KEY)
        assert os.listdir(tmp_path) == []

    def test_files_that_a_cut_left_are_cleaned_and_no_others(self, tmp_path: Path, host: FakeHost) -> None:
        (tmp_path / f".durable-plug-{RUN}-0").touch()
        (tmp_path / ".durable-plug-link").mkdir()
        (tmp_path / "precious").touch()
        assert plug_host.clean(host, [str(tmp_path)]) == [f"{tmp_path}/.durable-plug-{RUN}-0"]
        assert sorted(os.listdir(tmp_path)) == [".durable-plug-link", "precious"]

    def test_without_a_witness_nothing_is_left(self, tmp_path: Path, host: FakeHost) -> None:
        job = plug_host.plan(host, RUN, {**ROW, "mounts": [str(tmp_path)]})
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with pytest.raises(Refused, match="expected one that this host reaches"):
            plug_host.begin(host, job, ("127.0.0.1", port), KEY)
        assert os.listdir(tmp_path) == []

    def test_a_wrong_key_leaves_nothing(self, tmp_path: Path, host: FakeHost) -> None:
        data = tmp_path / "data"
        data.mkdir()
        job = plug_host.plan(host, RUN, {**ROW, "mounts": [str(data)]})
        rig = Rig(job, tmp_path / "log")
        with pytest.raises(Refused, match="witness"):
            plug_host.begin(host, job, rig.address, "another key")
        rig.close()
        assert os.listdir(data) == []

    def test_without_the_space_nothing_begins(
        self, tmp_path: Path, host: FakeHost, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        full = os.statvfs_result((MIB, MIB, 1000, 1, 1, 1, 1, 1, 0, 255))
        monkeypatch.setattr(os, "fstatvfs", lambda _fd: full)
        with pytest.raises(Refused, match="MiB free"):
            plug_host.plan(host, RUN, {**ROW, "mounts": [str(tmp_path)]})
        assert os.listdir(tmp_path) == []

    def forge(self, directory: Path, job: Job, user: int) -> None:
        """Write, as a user, the files of a run as if nothing of it was lost."""
        child = os.fork()
        if not child:
            os.chdir(directory)  # The way to it is root's alone.
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            for client in range(job.clients):
                path = Path(job.name_of(client))
                path.write_bytes(b"".join(plug_job.record(job, client, commit) for commit in range(9)))
                path.chmod(0o644)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0

    def test_a_file_of_another_user_is_no_evidence(self, tmp_path: Path, host: FakeHost) -> None:
        """The owner of the database's directory removes a file, and writes another that shows every commit."""
        assert os.geteuid() == 0
        job = small_job(tmp_path)._replace(boot_id="boot-0")
        os.chown(tmp_path, PERSON, PERSON)
        os.chmod(tmp_path, 0o755)
        self.forge(tmp_path, job, PERSON)
        with pytest.raises(Refused, match=rf"replaced \(owner {PERSON}\). Only a regular file of user 0"):
            plug_host.verify(host, job, {0: 5, 1: 5})
        for client in range(job.clients):
            os.chown(tmp_path / job.name_of(client), 0, 0)
        assert plug_host.verify(host, job, {0: 5, 1: 5}).lost == 0

    @pytest.mark.parametrize(
        ("harm", "why"),
        [
            (lambda path: os.link(path, f"{path}-2"), "2 names"),
            (lambda path: path.chmod(0o622), "mode 622"),
            (lambda path: path.chmod(0o660), "mode 660"),
            (lambda path: (path.rename(f"{path}-2"), path.symlink_to(f"{path}-2")), "a link"),
            (lambda path: os.chown(path, 1000, 0), "owner 1000"),
            (lambda path: (path.unlink(), path.mkdir()), "not a regular file"),
        ],
    )
    @pytest.mark.parametrize("of", ["host", "witness"])
    def test_evidence_that_another_user_may_have_written_is_refused(
        self, tmp_path: Path, host: FakeHost, harm: Callable[[Path], Any], why: str, of: str
    ) -> None:
        job = small_job(tmp_path)._replace(boot_id="boot-0")
        place = plug_keeper.paths(str(tmp_path), "db1")
        tmp_path.chmod(0o700)
        self.forge(tmp_path, job, 0)
        Path(place.log).write_bytes(plug_witness.first_line(job))
        assert plug_host.verify(host, job, {0: 5, 1: 5}).lost == 0
        assert plug_keeper.read(place).job == job
        harm(tmp_path / job.name_of(1) if of == "host" else Path(place.log))
        with pytest.raises(Refused, match=rf"replaced \({why}\)"):
            plug_host.verify(host, job, {0: 5, 1: 5}) if of == "host" else plug_keeper.read(place)

    def test_a_file_that_somebody_replaced_is_not_read(self, tmp_path: Path, host: FakeHost) -> None:
        job = small_job(tmp_path)._replace(boot_id="boot-0")
        os.mkfifo(tmp_path / job.name_of(0))
        with pytest.raises(Refused, match="not a regular file"):
            plug_host.verify(host, job, {0: 1, 1: 1})


class TestDaemon:
    def test_its_first_word_comes_back(self) -> None:
        assert daemon.detach(lambda say: say("hello"), 5) == "hello"

    def test_a_failure_comes_back(self) -> None:
        def fail(_say: Any) -> None:
            raise ValueError("why")

        assert daemon.detach(fail, 5) == "failed: why"

    def test_silence_is_not_waited_for(self) -> None:
        assert daemon.detach(lambda _say: time.sleep(1), 0.1) == ""
