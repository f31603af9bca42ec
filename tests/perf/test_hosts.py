"""The command that makes one trial of one fault of hosts."""

import pytest

from perf import hosts
from tests.support.host_faults import NotHeld
from tests.support.namespaces import why_not


@pytest.fixture
def run(monkeypatch, capsys):
    """Makes a trial by the command; returns its exit code and its last line."""

    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["perf.hosts", *arguments])
        code = hosts.main()
        return code, capsys.readouterr().out.splitlines()[-1]

    return call


class NoLab:
    """Stands for a lab where there can be none."""

    def __init__(self, size):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def test_what_cannot_be_tried_does_not_count_as_held(run, monkeypatch):
    monkeypatch.setattr(hosts, "why_not", lambda: "not permitted")
    assert run("--fault", "frozen") == (2, "not tried: not permitted")


def test_what_does_not_hold_fails_and_is_the_last_line(run, monkeypatch):
    def strike(fault, lab, folder, *, number, real):
        raise NotHeld(f"what host 1 said\n{fault} {number} {real}")

    monkeypatch.setattr(hosts, "why_not", lambda: "")
    monkeypatch.setattr(hosts, "Lab", NoLab)
    monkeypatch.setattr(hosts, "strike", strike)
    assert run("--fault", "frozen", "--trial", "3", "--real") == (1, "frozen 3 True")


@pytest.mark.nightly
@pytest.mark.skipif(bool(why_not()), reason=f"no network namespaces: {why_not()}")
def test_a_fault_is_tried_with_workers_that_follow_a_script(run):
    code, said = run("--fault", "worker_killed")
    assert code == 0, said
