"""The state of a run: the same on the morning page, to a webhook, as an exit code, to an engine."""

import json

import pytest

from orbax_bench_core import engine
from orbax_bench_core.exit_codes import CODES
from orbax_bench_core.exports.site import gather
from orbax_bench_core.measure import RSS, TIME, Sample
from orbax_bench_core.publishing import Notifiers
from tests.support.paired_runs import make_paired_run  # noqa: F401 - fixture
from tests.support.webhook import webhook  # noqa: F401 - fixture


@pytest.fixture
def leaking(make_run, make_record):
    """Makes the run of one process that keeps `kept` MiB of each of its 200 saves."""

    def make(kept):
        samples = [
            Sample("save", save, metric, value, unit)
            for save in range(200)
            for metric, value, unit in (
                (RSS.name, 300 + kept * save, RSS.unit),
                (TIME, 0.1, "s"),
            )
        ]
        return make_run([make_record(samples=tuple(samples), worker="host:1:1")])

    return make


@pytest.mark.parametrize(
    ("command", "changed", "word", "state"),
    [
        ("compare", 1.0, "PASS", "PASS"),
        ("compare", 2.0, "REGRESSION", "REGRESSION"),
        ("soak", 0.0, "PASS", "PASS"),
        ("soak", 1.0, "LEAK", "REGRESSION"),
    ],
)
def test_every_medium_tells_one_state(
    orbax_bench, make_paired_run, leaking, webhook, tmp_path, command, changed, word, state
):
    run = make_paired_run(0, changed) if command == "compare" else leaking(changed)
    place = str(run.root)
    engine.aggregate(place)
    if command == "compare":
        engine.compare_baseline(place)
    assert orbax_bench(command, place).code == CODES[state]
    told = engine.finish(place, notifiers=Notifiers.of(webhook.url, environment={}))
    assert told.value == state
    assert webhook.states == [state]
    (night,) = gather([str(tmp_path)], most=1).nights
    assert (night.state, night.found.outcome.state) == (word, state)
    reasons = json.loads(told.named["ending"].metadata["reasons"])
    assert any(night.found.answer in reason for reason in reasons)
