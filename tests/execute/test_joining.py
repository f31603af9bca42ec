"""Joining of hosts, and frames that nobody else can make; both sides are threads here."""

import contextlib
import dataclasses
import fcntl
import json
import os
import queue
import resource
import socket
import stat
import threading
import time
import zipfile
from pathlib import Path

import pytest
from etils import epath

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import Cluster, LocalHost
from orbax_bench_core.execute.hosts import (
    Agent,
    ClusterHosts,
    ClusterRun,
    ContactTimes,
    given_token,
    host_server,
    join_files,
)
from orbax_bench_core.execute.hosts.join_files import JoinFiles
from orbax_bench_core.execute.hosts.wire import Wire
from orbax_bench_core.execute.lock import measuring_lock
from orbax_bench_core.records import RunDirectory
from tests.support.damage import DAMAGE
from tests.support.processes import free_address

TOKEN = "t" * 32
EQUAL = {"Python": "3.11.7", "jax": "0.10.2"}
QUICK = ContactTimes(beat_s=0.02, lost_s=60.0, prove_s=60.0, join_s=60.0, retry_s=0.05)


class Gathering:
    """Process 0 that listens, and agents that try to join it."""

    def __init__(self, folder, size=2, suite="", contact=QUICK):
        self.port = int(free_address().rpartition(":")[2])
        self.size = size
        self.folder = folder
        self.said = queue.SimpleQueue()
        self.directory = RunDirectory(str(folder / "run"))
        self.contact = contact
        self.hosts = self.process_0(suite=suite, lock=folder / "lock")

    def process_0(self, lock, *, suite="", **cluster):
        run = ClusterRun(
            cluster=dataclasses.replace(self.cluster(0), **cluster),
            directory=self.directory,
            equal=EQUAL,
            say=self.said.put,
            suite=suite,
            contact=self.contact,
        )
        return ClusterHosts(run, own=LocalHost(lock_file=lock))

    def cluster(self, rank):
        return Cluster(found="test", rank=rank, size=self.size, head="127.0.0.1", port=self.port)

    def agent(
        self,
        rank=1,
        *,
        size=2,
        directory=None,
        equal=EQUAL,
        token=None,
        lock="lock",
        say=print,
        contact=QUICK,
    ):
        run = ClusterRun(
            cluster=dataclasses.replace(self.cluster(rank), size=size),
            directory=directory or self.directory,
            equal=equal,
            say=say,
            suite="suite.yaml",
            contact=contact,
        )
        return Agent(run, token=token, local=LocalHost(lock_file=self.folder / lock))

    def hears(self, *words):
        """Waits until process 0 says something with these words, and returns it."""
        line = ""
        while not all(word in line for word in words):
            line = self.said.get(timeout=60)
        return line


@pytest.fixture
def gathering(tmp_path):
    return Gathering(tmp_path)


@contextlib.contextmanager
def joined(agent):
    """Runs an agent in a thread; yields its exit code once it has one."""
    codes = []
    thread = threading.Thread(target=lambda: codes.append(agent.run()))
    thread.start()
    yield codes
    thread.join(60)
    assert not thread.is_alive()


def test_an_agent_finds_the_token_and_ends_with_the_exit_code_of_the_run(gathering):
    with joined(gathering.agent()) as codes, gathering.hosts.listening(None):
        gathering.hosts.await_all()
        gathering.hosts.code = 3
    assert codes == [3]


def test_the_token_is_for_this_user_alone_and_goes_with_the_run(gathering):
    folder = gathering.directory.root / "cluster"
    with gathering.hosts.listening(None):
        mode = Path(folder / "token").stat().st_mode
        assert stat.S_IMODE(mode) == 0o600
        assert len((folder / "token").read_text()) == 64
    assert not folder.exists()
    with gathering.hosts.listening(TOKEN):
        assert not (folder / "token").exists()


def test_the_copy_of_the_suite_is_for_this_user_alone_is_told_and_outlives_no_next_run(tmp_path):
    suite = tmp_path / "suites" / "suite.yaml"
    suite.parent.mkdir()
    suite.write_text("generator: bench.Bench")
    for name in ("bench.py", "id_rsa"):
        suite.with_name(name).write_text("")
    gathering = Gathering(tmp_path, suite=str(suite))
    copy = Path(gathering.directory.root / "cluster" / "suite.zip")
    copy.parent.mkdir(parents=True)
    copy.write_bytes(b"of a process 0 that was killed")
    copy.chmod(0o644)
    with gathering.hosts.listening(TOKEN):
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        assert zipfile.ZipFile(copy).namelist() == ["bench.py", "suite.yaml"]
        gathering.hears("for the other hosts: bench.py, suite.yaml (0.")
    assert not copy.exists()


def test_a_token_that_can_be_guessed_is_refused_and_none_is_inherited():
    for token, bits in (("short", 30), ("1" * 38, 126), ("f" * 31, 124)):
        said = f"has {len(token)} characters, which are {bits} bits at most"
        with pytest.raises(UserError, match=said):
            given_token({"ORBAX_BENCH_TOKEN": token})
    for token in ("1" * 39, "f" * 32, "Zz-_" * 6):
        assert given_token({"ORBAX_BENCH_TOKEN": token}) == token
    environment = {"ORBAX_BENCH_TOKEN": TOKEN, "PATH": "/bin"}
    assert given_token(environment) == TOKEN
    assert environment == {"PATH": "/bin"}
    assert given_token(environment) is None


def refusal(gathering, **given):
    """Returns why an agent cannot join."""
    with gathering.hosts.listening(TOKEN), pytest.raises(UserError) as caught:
        gathering.agent(**{"token": TOKEN, **given}).run()
    return str(caught.value)


def test_a_host_that_sees_no_token_while_process_0_is_there_is_told_why(gathering, tmp_path):
    elsewhere = RunDirectory(str(tmp_path / "elsewhere"))
    with gathering.hosts.listening(None), pytest.raises(UserError) as caught:
        gathering.agent(directory=elsewhere).run()
    assert "it has no token: its run directory is not the folder" in str(caught.value)
    gathering.hears("refused an agent from 127.0.0.1: it has no token")


def test_one_that_is_refused_again_and_again_is_told_of_once(gathering):
    assert "wrong token" in refusal(gathering, token="w" * 32)
    gathering.hears("wrong token")
    with pytest.raises(queue.Empty):
        gathering.said.get(timeout=0.01)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"equal": {"Python": "3.11.7", "jax": "0.5.0"}},
            "has jax 0.5.0 where process 0 has 0.10.2",
        ),
        ({"rank": 7}, "it says that it is host 7; process 0 waits for hosts 1 to 1"),
        ({"size": 3}, "was told that there are 3 hosts, and process 0 that there are 2"),
    ],
    ids=["versions", "rank", "number of hosts"],
)
def test_an_agent_that_does_not_fit_is_refused_and_both_sides_say_why(gathering, given, said):
    assert said in refusal(gathering, **given)
    gathering.hears("refused an agent from 127.0.0.1", said)


@pytest.mark.slow
def test_a_process_0_that_does_not_answer_is_one_message(gathering):
    quick = dataclasses.replace(QUICK, join_s=0.5)
    agent = gathering.agent(token=TOKEN, contact=quick)
    with pytest.raises(UserError) as caught:
        agent.run()
    address = gathering.cluster(1).address
    assert f") cannot join process 0 at {address}: [Errno 111] Connection" in str(caught.value)
    assert "(after " in str(caught.value)


@pytest.mark.slow
def test_a_second_agent_of_one_rank_is_refused(gathering):
    with joined(gathering.agent(token=TOKEN)), gathering.hosts.listening(TOKEN):
        gathering.hosts.await_all()
        with pytest.raises(UserError, match="another agent is host 1 already"):
            gathering.agent(token=TOKEN).run()


@pytest.mark.slow
def test_a_silent_connection_is_closed_and_harms_nobody(tmp_path):
    gathering = Gathering(tmp_path, contact=dataclasses.replace(QUICK, prove_s=2.0))
    with (
        joined(gathering.agent(token=TOKEN)),
        gathering.hosts.listening(TOKEN),
        socket.create_connection(("127.0.0.1", gathering.port)) as silent,
    ):
        gathering.hosts.await_all()
        gathering.hears("refused", "said nothing in time")
        while silent.recv(100):
            pass


@pytest.mark.slow
def test_an_impostor_that_does_not_know_the_token_gets_no_agent(gathering):
    with socket.create_server(("127.0.0.1", gathering.port)) as server:

        def pretend():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        wire = Wire(connection, 2.0)
                        wire.send({"nonce": "n"})
                        wire.receive()
                        wire.send({"proof": "p"})

        impostor = threading.Thread(target=pretend)
        impostor.start()
        with pytest.raises(UserError, match="does not know the token of this run"):
            gathering.agent(token=TOKEN).run()
        server.shutdown(socket.SHUT_RDWR)
        impostor.join(60)


def is_free(lock_file):
    with lock_file.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_hosts_of_one_machine_share_its_measuring_lock(gathering, tmp_path):
    with joined(gathering.agent(token=TOKEN)), gathering.hosts.listening(TOKEN):
        gathering.hosts.await_all()
        for _ in range(2):
            with gathering.hosts.alone(gathering.said.put):
                assert not is_free(tmp_path / "lock")
            assert is_free(tmp_path / "lock")


@pytest.mark.slow
def test_a_module_runs_on_every_host_in_the_run_directory_as_that_host_sees_it(
    gathering, tmp_path, monkeypatch
):
    (tmp_path / "echo.py").write_text("import sys; print(sys.argv[1])")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    seen = tmp_path / "mounted"
    seen.symlink_to(tmp_path / "run")
    there = RunDirectory(str(seen))
    agent = gathering.agent(token=TOKEN, directory=there)
    with joined(agent), gathering.hosts.listening(TOKEN):
        gathering.hosts.await_all()
        root = str(gathering.directory.root)
        outputs = gathering.hosts.run_module("echo", f"{root}/x", variables={}, timeout_s=60)
        said = [(output.host, output.code, output.out) for output in outputs]
    assert said == [(0, 0, f"{root}/x\n"), (1, 0, f"{seen}/x\n")]


def test_each_machine_is_locked_and_who_waits_is_named(gathering, tmp_path):
    entered, leave = threading.Event(), threading.Event()

    def measure():
        with gathering.hosts.alone(gathering.said.put):
            entered.set()
            leave.wait(60)

    agent = gathering.agent(token=TOKEN, lock="other")
    with joined(agent), gathering.hosts.listening(TOKEN):
        gathering.hosts.await_all()
        with measuring_lock(print, lock_file=tmp_path / "other"):
            measuring = threading.Thread(target=measure)
            measuring.start()
            gathering.hears("host 1 (", "waiting: process", "is measuring on this machine")
            assert not entered.is_set()
        assert entered.wait(60)
        assert not is_free(tmp_path / "other")
        assert not is_free(tmp_path / "lock")
        leave.set()
        measuring.join(60)
        assert is_free(tmp_path / "other")


def name_resolves_to(monkeypatch, *addresses):
    """Has every name be these addresses."""

    def resolve(name, port, **_):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


def named(gathering):
    return gathering.process_0(gathering.folder / "lock", head="node1")


def test_a_name_that_is_this_machine_to_itself_alone_is_said(gathering, monkeypatch):
    name_resolves_to(monkeypatch, "127.0.1.1")
    with named(gathering).listening(TOKEN):
        gathering.hears("node1 is 127.0.1.1 on this host", "ORBAX_BENCH_HEAD_HOST")


@pytest.fixture
def wires():
    """Makes both ends of a connection whose frames are authenticated, and its sockets."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    one, other = Wire(near, 2.0), Wire(far, 2.0)
    one.secure(sends=b"a", receives=b"b")
    other.secure(sends=b"b", receives=b"a")
    yield one, other, near, far
    one.close()
    other.close()


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: 2 * frame,
        lambda frame: frame.replace(b"launch", b"LAUNCH"),
        lambda frame: frame[:4] + bytes(32) + frame[36:],
    ],
    ids=["replayed", "changed", "made up"],
)
def test_a_frame_that_the_other_side_has_not_sent_ends_the_connection(wires, change):
    one, other, near, far = wires
    one.send({"op": "launch"})
    frame = far.recv(1000)
    near.sendall(change(frame))
    with pytest.raises(ConnectionError, match="has not sent"):
        for _ in range(2):
            assert other.receive() == {"op": "launch"}
    far.sendall(frame)
    with pytest.raises(ConnectionError, match="has not sent"):
        one.receive()


@pytest.mark.parametrize("kind", ["pipe", "zeros", "device", "folder"])
def test_files_for_joining_that_are_damaged_are_as_if_not_there(tmp_path, kind):
    place = tmp_path / "cluster" / "token"
    place.parent.mkdir()
    DAMAGE[kind](place)
    assert JoinFiles(epath.Path(tmp_path)).token() is None


def test_a_copy_of_the_suite_that_has_no_end_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(join_files, "_SHOWS_S", 0.0)
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster" / "suite.zip").symlink_to("/dev/zero")
    with pytest.raises(OSError, match="Neither a file nor a folder"):
        JoinFiles(epath.Path(tmp_path)).suite_archive(2**20)


@pytest.mark.parametrize("name", ["cluster", "cluster/place", "cluster/token", "cluster/suite.zip"])
def test_what_hosts_share_is_written_through_no_link(tmp_path, name):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "place").write_text("precious")
    link = tmp_path / "run" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "outside" / ("place" if "/" in name else ""))
    files = JoinFiles(epath.Path(tmp_path / "run"))
    with (
        pytest.raises(UserError, match="A link, through which nothing is written"),
        files.offered(None, b"archive"),
    ):
        pass
    assert [path.read_text() for path in (tmp_path / "outside").iterdir()] == ["precious"]


@pytest.mark.parametrize("deepest", [4, 256])
@pytest.mark.parametrize("opened", [b"[", b'{"a":', b'["\\\\",['])
def test_a_frame_of_more_brackets_than_any_has_is_not_parsed(wires, monkeypatch, deepest, opened):
    monkeypatch.setattr(json, "loads", None)
    one, other, near, _ = wires
    payload = opened * (deepest + 1)
    if deepest == 4:
        other = Wire(other._socket, 2.0)  # nobody has proved anything on it
        near.sendall(framed(payload))
    else:
        monkeypatch.setattr(json, "dumps", lambda _: payload.decode())
        one.send({})
    with pytest.raises(ConnectionError, match=f"more than {deepest} brackets in each other"):
        other.receive()


def test_process_0_that_is_out_of_file_descriptors_takes_agents_later(gathering):
    with gathering.hosts.listening(TOKEN), socket.socket() as newcomer:
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        lowest = os.dup(0)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, before[1]))
        try:
            with pytest.raises(OSError, match="Too many open files"):
                os.dup(0)
            newcomer.connect(("127.0.0.1", gathering.port))
            time.sleep(1)  # meanwhile it cannot accept
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        assert "nonce" in Wire(newcomer, 60.0).receive(within_s=60)


def framed(text):
    return len(text).to_bytes(4, "big") + text


ANSWERS = (
    *(b"[]", b"{}", b"[" * 4000, b'{"a":' * 800, b'{"host": 1e400, "nonce": 1}'),
    *(b'{"nonce": "\xff"}', b'{"host": 1, "nonce": "n", "proof": "\xc3\xa9"}'),
    b'{"host": "\\n::error::", "nonce": "n"}',
)


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\n\r\n", *map(framed, ANSWERS)])
def test_whatever_a_newcomer_says_closes_its_own_connection(gathering, said):
    with joined(gathering.agent(token=TOKEN)), gathering.hosts.listening(TOKEN):
        with socket.create_connection(("127.0.0.1", gathering.port)) as stranger:
            stranger.settimeout(60)
            stranger.sendall(said)
            with contextlib.suppress(ConnectionResetError):
                while stranger.recv(4096):
                    pass
        line = gathering.hears("refused an agent from 127.0.0.1")
        assert "error" not in line
        gathering.hosts.await_all()


def test_frames_that_differ_in_their_length_are_told_of_once(gathering):
    """500 of them wrote 35 kB of log."""
    with gathering.hosts.listening(TOKEN):
        for length in range(2**20, 2**20 + 50):
            with socket.create_connection(("127.0.0.1", gathering.port)) as stranger:
                stranger.sendall(length.to_bytes(4, "big"))
                with contextlib.suppress(ConnectionResetError):
                    while stranger.recv(4096):
                        pass
        line = gathering.hears("refused an agent from 127.0.0.1")
        assert str(2**20) in line.replace(",", "")
        with pytest.raises(queue.Empty):
            gathering.said.get(timeout=0.5)


def test_silent_clients_of_one_address_keep_nobody_of_another_out(gathering):
    with gathering.hosts.listening(TOKEN), contextlib.ExitStack() as stack:
        for _ in range(80):
            stack.enter_context(socket.create_connection(("127.0.0.1", gathering.port)))
        with socket.create_connection(
            ("127.0.0.1", gathering.port), source_address=("127.0.0.2", 0)
        ) as other:
            wire = Wire(other, 60.0)
            assert "nonce" in wire.receive(within_s=60)


@pytest.mark.parametrize(
    "answer", [b'{"refused": "\\n::error::planted", "again": false}', b"[" * 4000, b"{}"]
)
def test_an_agent_believes_nobody_who_has_proved_nothing(gathering, answer):
    """An impostor answers first; then the real process 0 comes."""
    said = []
    with socket.create_server(("127.0.0.1", gathering.port)) as server:
        agent = joined(gathering.agent(token=TOKEN, say=said.append))
        codes = agent.__enter__()
        connection, _ = server.accept()
        with connection:
            connection.sendall(framed(b'{"nonce": "n"}') + framed(answer))
            connection.recv(4096)
    with gathering.hosts.listening(TOKEN):
        gathering.hosts.await_all()
        gathering.hosts.code = 0
    agent.__exit__(None, None, None)
    assert codes == [0]
    assert "planted" not in "".join(said)


def unresolved(monkeypatch, *, times):
    """Has a name be unknown so many times, as that of a pod is that has just started."""
    ask, left = socket.getaddrinfo, [times]

    def answer(host, *more, **options):
        if host == "node1":
            if left[0]:
                left[0] -= 1
                number = socket.EAI_AGAIN if left[0] % 2 else socket.EAI_NONAME
                raise socket.gaierror(number, "not known")
            host = "127.0.0.1"
        return ask(host, *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", answer)


def test_names_that_do_not_resolve_yet_are_waited_for_and_process_0_needs_none(
    gathering, monkeypatch
):
    unresolved(monkeypatch, times=4)
    process_0, lines = named(gathering), queue.SimpleQueue()
    agent = gathering.agent(token=TOKEN, say=lines.put)
    agent._cluster = dataclasses.replace(gathering.cluster(1), head="node1")
    with process_0.listening(TOKEN):
        gathering.hears("node1 has no address yet", "listening at all")
        with joined(agent) as codes:
            process_0.await_all()
            assert process_0.free_address().startswith("127.0.0.1:"), "workers resolve no name"
            process_0.code = 0
            process_0._server.hosts[1].dismiss(0)
    assert codes == [0]
    assert "not known" in lines.get(timeout=60)


def test_an_address_of_the_pod_before_this_one_is_waited_for(gathering, monkeypatch):
    resolve = socket.getaddrinfo
    answers = ["192.0.2.1", "127.0.0.1"]
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda _, *more, **kw: resolve(answers.pop(0), *more, **kw)
    )
    monkeypatch.setattr(host_server, "_PAUSE_S", 0.01)
    with named(gathering).listening(TOKEN):
        assert answers == []
