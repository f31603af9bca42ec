"""The lab of hosts itself: names, addresses, links, and that nothing of it is left."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.namespaces import Lab, why_not

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(bool(why_not()), reason=f"no network namespaces: {why_not()}"),
]
LISTEN = """
import socket
with socket.create_server(("0.0.0.0", 9000)) as server:
    print("listening", flush=True)
    while True:
        connection, _ = server.accept()
        with connection:
            while data := connection.recv(65536):
                pass
            connection.sendall(b"done")
"""
SEND = """
import socket, sys, time
began = time.monotonic()
with socket.create_connection(("ob1", 9000), timeout=float(sys.argv[1])) as connection:
    connection.sendall(bytes(int(sys.argv[2])))
    connection.shutdown(socket.SHUT_WR)
    assert connection.recv(10) == b"done"
print(time.monotonic() - began)
"""


@pytest.fixture
def lab():
    with Lab(2) as made:
        yield made


@pytest.fixture
def server(lab):
    """Has the second host receive what is sent to it."""
    words = [*lab.inside(1), sys.executable, "-c", LISTEN]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "listening\n"
        yield process
        process.kill()


def on(lab, host, *command, own=None):
    done = subprocess.run(
        [*lab.inside(host, own), *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def send(lab, *, size=1, within_s=60.0):
    return float(on(lab, 0, sys.executable, "-c", SEND, str(within_s), str(size)))


def left(prefix):
    return [*Path("/run/netns").glob(f"{prefix}-*"), *Path("/run").glob(f"{prefix}*")]


def test_hosts_have_names_and_addresses_of_their_own(lab, server):
    assert on(lab, 0, "hostname") == "ob0"
    assert lab.address(1) in on(lab, 0, "getent", "hosts", "ob1")
    send(lab)
    assert [process.pid for process in lab.processes(1)] == [server.pid]


def test_a_cable_is_cut_and_mended(lab, server):
    lab.cut(1)
    with pytest.raises(AssertionError, match=r"timed out|No route"):
        send(lab, within_s=1)
    lab.mend(1)
    send(lab)


def test_a_slow_cable_takes_as_long_as_its_speed_says(lab, server):
    lab.slow(0, kbit_per_s=256)
    assert send(lab, size=64_000, within_s=120) > 1.5  # at full speed, some milliseconds
    assert lab.sent_slowly(0) > 64_000
    lab.mend(0)
    send(lab, size=64_000)


def test_a_host_sees_a_folder_of_its_own_where_it_shall(lab, tmp_path):
    seen, real = tmp_path / "seen", tmp_path / "real"
    for folder in (seen, real):
        folder.mkdir()
        (folder / "which").write_text(folder.name)
    assert on(lab, 0, "cat", str(seen / "which"), own={seen: real}) == "real"
    assert on(lab, 1, "cat", str(seen / "which")) == "seen"


def test_a_lab_that_is_made_twice_is_new_and_one_that_is_taken_away_leaves_nothing(tmp_path):
    name = f"test{os.getpid()}"
    lab = Lab(2, name)
    lab.up()
    with subprocess.Popen([*lab.inside(0), "sleep", "60"]) as process:
        while not lab.processes(0):
            time.sleep(0.01)
        process.send_signal(signal.SIGSTOP)
        Lab(2, name).up()
        assert process.wait(timeout=60) == -signal.SIGKILL
    assert lab.processes() == []
    lab.down()
    lab.down()
    assert left(f"oblab-{name}") == []


def test_what_a_killed_owner_left_goes_with_the_next_lab():
    script = """
import subprocess, time
from tests.support.namespaces import Lab
lab = Lab(1)
lab.up()
subprocess.Popen([*lab.inside(0), "sleep", "600"])
while not lab.processes():
    time.sleep(.01)
print("up", flush=True)
time.sleep(600)
"""
    words = [sys.executable, "-c", script]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout.readline() == "up\n"
        owner.kill()
    prefix = f"oblab-{owner.pid}"
    assert left(prefix)
    with Lab(1):
        assert left(prefix) == []


def test_the_command_line_makes_a_lab_and_takes_it_away():
    name = f"cli{os.getpid()}"
    words = [sys.executable, "-m", "tests.support.namespaces", "--name", name]
    with contextlib.ExitStack() as stack:
        stack.callback(subprocess.run, [*words, "down"], check=False)
        subprocess.run([*words, "up", "1"], check=True)
        said = subprocess.run(
            [*words, "exec", "ob0", "hostname"], check=True, capture_output=True, text=True
        )
        assert said.stdout == "ob0\n"
    assert left(f"oblab-{name}") == []
