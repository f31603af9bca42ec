"""The command that makes one trial of one fault of hosts."""

import pytest

from perf import hosts
from tests.support.namespaces import why_not


@pytest.fixture
def run(monkeypatch, capsys):
    """Makes a trial by the command; returns its exit code and its last line."""

    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["perf.hosts", *arguments])
        code = hosts.main()
        return code, capsys.readouterr().out.splitlines()[-1]

    return call


def test_what_cannot_be_tried_does_not_count_as_held(run, monkeypatch):
    monkeypatch.setattr(hosts, "why_not", lambda: "not permitted")
    assert run("--fault", "frozen") == (2, "not tried: not permitted")


@pytest.mark.nightly
@pytest.mark.skipif(bool(why_not()), reason=f"no network namespaces: {why_not()}")
def test_a_fault_is_tried_with_workers_that_follow_a_script(run):
    code, said = run("--fault", "worker_killed")
    assert code == 0, said
