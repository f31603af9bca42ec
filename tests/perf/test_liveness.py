"""A trial of who is blamed: what it reads from a run, and one of real workers."""

import json

import pytest

from perf.liveness import _complaint, trial

RETRY = "↻ save_restore repeat 3 is tried again: Frozen: host 1 has been stopped"


def run_of(folder, *attempts):
    """A run directory with one repeat that each host has tried so."""
    for host, types in enumerate(attempts):
        record = {"host": host, "attempts": [{"error": {"type": kind}} for kind in types]}
        path = folder / "records" / "point" / "repeat_3" / f"host_{host}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record))
    return folder


@pytest.mark.parametrize(
    ("attempts", "output", "code", "complaint"),
    [
        ([["PeerFailed"], ["Frozen"]], RETRY, 0, ""),
        ([["WorkerDied"], ["PeerFailed"]], RETRY, 0, "attempts are"),
        ([[], []], RETRY, 0, "attempts are {}"),
        ([["PeerFailed"], ["Frozen"]], RETRY, 1, "exit code 1"),
        ([["PeerFailed"], ["Frozen"]], "", 0, "no line told of the retry"),
    ],
)
def test_a_trial_says_what_was_wrong(tmp_path, attempts, output, code, complaint):
    found = _complaint(run_of(tmp_path, *attempts), output, code, "Frozen", 1)
    assert complaint in found
    assert bool(found) is bool(complaint)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "number", [0, *(pytest.param(number, marks=pytest.mark.extended) for number in (1, 2)), 3]
)
def test_the_host_that_was_struck_is_named(number):
    assert trial(number) == ""
