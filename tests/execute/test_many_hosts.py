"""Many hosts at once: what takes seconds on each is asked of all before any is waited for."""

import contextlib
import dataclasses
import queue
import socket
import threading

import pytest

from orbax_bench_core.execute import Cluster, LocalHost
from orbax_bench_core.execute.group import WorkerGroup
from orbax_bench_core.execute.hosts import ClusterHosts, Contact
from orbax_bench_core.execute.hosts.wire import Wire, prove_as_agent
from orbax_bench_core.execute.liveness import Signs
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.worker import Ready, WorkerSetup
from tests.support.processes import free_address

pytestmark = pytest.mark.slow

SIZE = 64
TOKEN = "t" * 32
READY = Ready(
    platform="cpu",
    device_count=SIZE,
    fixed=True,
    provenance={},
    worker="w",
    processes=SIZE,
    host_memory="reused",
    x64=True,
    interpreter="",
    interpreter_asked="",
)


class OwnWorker:
    """The worker of host 0, which is ready at once."""

    def __init__(self, inbox):
        inbox.put((0, READY.model_dump_json().encode()))

    def signs(self):
        return Signs()

    def dismiss(self):
        pass

    def stop(self):
        pass


@dataclasses.dataclass(frozen=True, kw_only=True)
class OwnHost(LocalHost):
    """Host 0 without processes."""

    def launch(self, setups, *, inbox, **_):
        return [OwnWorker(inbox) for _ in setups]


class PatientAgent:
    """An agent that does what it is asked to once all agents have been asked for the same."""

    def __init__(self, rank, port, together, asked):
        self._rank = rank
        self._port = port
        self._together = together
        self._asked = asked

    def run(self):
        wire = Wire(socket.create_connection(("127.0.0.1", self._port)), 20.0)
        with contextlib.closing(wire), contextlib.suppress(OSError):
            prove_as_agent(wire, TOKEN, self._rank, 20.0)
            place = wire.receive()["place"]
            wire.send(
                {
                    "name": "fake",
                    "machine": "m",
                    "size": SIZE,
                    "provenance": {},
                    "equal": {},
                    "place": place,
                    "root": "/run",
                    "suite": "",
                }
            )
            wire.receive()  # welcome
            while (message := wire.receive())["op"] != "bye":
                self._answer(wire, message)

    def _answer(self, wire, message):
        if message["op"] not in ("launch", "stop"):
            return
        try:
            self._together.wait()
            self._asked.put(message["op"])
        except threading.BrokenBarrierError:
            self._asked.put("one after the other")
        worker = message["worker"]
        if message["op"] == "launch":
            wire.send({"event": "line", "worker": worker, "line": READY.model_dump_json() + "\n"})
        else:
            wire.send({"event": "answer", "question": message["question"], "answer": None})


def test_all_workers_are_started_before_any_is_awaited_and_all_are_stopped_at_once(
    tmp_path,
):
    port = int(free_address().rpartition(":")[2])
    hosts = ClusterHosts(
        Cluster(found="test", rank=0, size=SIZE, head="127.0.0.1", port=port),
        RunDirectory(str(tmp_path / "run")),
        equal={},
        own=OwnHost(),
        say=lambda line: None,
        contact=Contact(lost_s=20.0, join_s=20.0),
    )
    together = threading.Barrier(SIZE - 1, timeout=60)
    asked = queue.SimpleQueue()
    setups = [
        WorkerSetup(
            root=str(tmp_path / "run"),
            x64=False,
            num_devices=1,
            process_id=index,
            num_processes=SIZE,
        )
        for index in range(SIZE)
    ]
    with hosts.listening(TOKEN):
        agents = [
            threading.Thread(target=PatientAgent(rank, port, together, asked).run)
            for rank in range(1, SIZE)
        ]
        for agent in agents:
            agent.start()
        hosts.await_all()
        group = WorkerGroup(
            hosts,
            setups,
            environment={},
            python="",
            logs=[tmp_path / "log"] * SIZE,
            timeout_s=60,
        )
        group.await_ready()
        assert [asked.get(timeout=60) for _ in setups[1:]] == ["launch"] * (SIZE - 1)
        group.stop()
        assert [asked.get(timeout=60) for _ in setups[1:]] == ["stop"] * (SIZE - 1)
    for agent in agents:
        agent.join(60)
        assert not agent.is_alive()
