"""Chaos: some of each disturbance, and what its checks find."""

import functools
import signal

import pytest

from perf.chaos import checks, disturbances, kills
from perf.chaos.place import NotHeld, Place
from perf.chaos.results import doubled
from perf.chaos.scenarios import SCENARIOS
from perf.chaos.trial import trial

_FEW = functools.partial(kills.disturb, in_a_row=2)


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """What the trials here share."""
    return tmp_path_factory.mktemp("chaos")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("of", "disturb"),
    [
        pytest.param("run", _FEW, id="run-kills"),
        pytest.param("capture", _FEW, id="capture-kills"),
        pytest.param("report", disturbances.BY_NAME["errors"], id="report-errors"),
        pytest.param("run", disturbances.BY_NAME["renamed"], id="run-renamed"),
        pytest.param("capture", disturbances.BY_NAME["twice"], id="capture-twice"),
        pytest.param("prune", disturbances.BY_NAME["nights"], id="prune-nights"),
        *(
            pytest.param(of, disturb, id=f"{of}-{name}", marks=pytest.mark.extended)
            for of, name, disturb in (
                ("ab", "kills", _FEW),
                ("real", "kills", _FEW),
                ("run", "freezes", disturbances.BY_NAME["freezes"]),
                ("run", "gone", disturbances.BY_NAME["gone"]),
                ("run", "clock", disturbances.BY_NAME["clock"]),
            )
        ),
    ],
)
def test_run_again_a_command_leaves_what_an_undisturbed_one_does(state, request, of, disturb):
    assert trial(state, of, disturb, seed=request.node.callspec.id)


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path / "trial", SCENARIOS["run"], tmp_path / "wheels")
    yield made
    made.end()


def test_what_is_left_is_found(place):
    checks.check_clean(place)
    (place.results / ".a.tmp").write_text("")
    with pytest.raises(NotHeld, match=r"1 files are left: place/\.a\.tmp"):
        checks.check_clean(place)
    checks.check_clean(place, before={place.results / ".a.tmp"})


def test_what_is_there_twice_is_found():
    row = ["p", 0, False, 0, None, None, None, "passed", "save", 0, "time", 1.0, "s"]
    assert not doubled({"out/samples": [row, [*row[:9], 1, *row[10:]]]})
    assert doubled({"out/samples": [row, [*row[:11], 2.0, "s"]]})


def test_a_process_that_outlives_its_command_is_found(place, monkeypatch):
    monkeypatch.setattr(checks, "GONE_S", 0.1)
    (command,) = place.begin()
    with pytest.raises(NotHeld, match="left after"):
        checks.check_gone(place)
    command.signal(signal.SIGKILL, group=True)
    assert command.code(5) == -signal.SIGKILL
