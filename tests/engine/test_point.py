"""Measuring a whole run, or one point of it, without a command line."""

import json

import pytest

from orbax_bench_core import engine, experiments
from orbax_bench_core.config import parse_suite
from orbax_bench_core.engine.point import measure_batch
from orbax_bench_core.execute import Event, LocalHost, Progress, RunSettings, Session, Watcher
from tests.support.processes import ROOT
from tests.support.scripted import NAME

SETTINGS = RunSettings(host=LocalHost(module="tests.support.fake_worker"))
ARMS = {"candidate": {"options": {"save_s": 0.04}}}


class Told(Watcher):
    """Keeps what it is told of, and when it was entered and left."""

    def __init__(self):
        self.events: list[Event | str] = []

    def __enter__(self):
        self.events.append("entered")
        return self

    def __exit__(self, *_):
        self.events.append("left")

    def __call__(self, event):
        self.events.append(event)

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def suite(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def make(arms=None, **options):
        return json.dumps(
            {
                "suite_name": "scripted",
                "num_repeats": 2,
                "execution": {"retries": 0, "warmups": 0, "rounds_per_process": 2},
                "gate": {"looks": [10]},
                "benchmarks": [{"generator": NAME, "options": options}],
                **({} if arms is None else {"arms": arms}),
            }
        )

    return make


@pytest.fixture
def begin(tmp_path, suite):
    def make(arms=None, **options):
        return Session.begin(
            parse_suite(suite(arms, **options)),
            str(tmp_path / "out"),
            settings=SETTINGS,
            watch=Told(),
        )

    return make


def rejoin(session, **how):
    entry = session.entries[0].model_dump_json()
    return Session.rejoin(str(session.directory.root), entry, settings=SETTINGS, **how)


@pytest.mark.slow
def test_a_run_needs_no_command_line_and_prints_nothing(begin, capfd):
    session = begin(save_s=[0.02, 0.03])
    experiments.measure_points(session, limits=False, lock=False)
    ended = [event for event in session.watch.of(Progress) if event.repeat is not None]
    assert [event.repeat.status for event in ended] == ["passed"] * 4
    assert (session.watch.events[0], session.watch.events[-1]) == ("entered", "left")
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_a_step_measures_its_point_alone(begin):
    whole = begin(save_s=[0.02, 0.03])
    outcome = measure_batch(rejoin(whole), limits=False, lock=False)
    assert outcome.info == whole.info
    assert list(outcome.records) == [whole.entries[0].id]
    assert [record.repeat for record in outcome.records[whole.entries[0].id]] == [0, 1]
    assert whole.directory.read_point(whole.entries[1]).records == ()


@pytest.mark.slow
def test_a_point_that_fails_is_data_unless_the_step_is_strict(begin):
    session = rejoin(begin(act="raise"))
    outcome = measure_batch(session, limits=False, lock=False)
    [(point_id, records)] = outcome.records.items()
    assert {record.status for record in records} == {"failed"}
    assert outcome.failures == {
        point_id: f"{session.entries[0].name} {point_id}: raised on purpose"
    }
    with pytest.raises(engine.PointFailed, match="raised on purpose"):
        measure_batch(session, limits=False, strict=True, lock=False)


@pytest.mark.slow
def test_a_watcher_is_told_of_every_look_and_the_verdict_of_a_whole_run_is_kept(begin):
    session = begin(ARMS)
    verdicts = experiments.compare_arms(session, lock=False)
    assert verdicts.word == "REGRESSION"
    assert [event.verdict for event in session.watch.of(experiments.PairJudged)] == list(
        verdicts.points
    )
    assert (session.directory.root / "verdicts.json").exists()


@pytest.mark.slow
def test_the_log_of_a_step_says_what_each_look_found_and_leaves_the_verdict_to_others(
    suite, tmp_path, capfd
):
    out = tmp_path / "out"
    pair, _ = engine.plan_sweep(suite(ARMS, act=["behave", "lag"]), str(out)).value
    _, records = engine.run_batch([pair], str(out), settings=SETTINGS, lock=False)
    [line] = capfd.readouterr().out.splitlines()
    assert " after 5 blocks: ✗ REGRESSION: saves take " in line
    assert list(records) == [pair]
    assert {record.arm for record in records[pair]} == {"baseline", "candidate"}
    assert not (out / "verdicts.json").exists()


@pytest.mark.slow
def test_the_points_of_a_batch_share_a_worker_and_have_lines_for_the_log(suite, tmp_path, capfd):
    [batch] = engine.plan_sweep(suite(save_s=[0.02, 0.03]), str(tmp_path / "out")).value
    info, records = engine.run_batch(
        batch.split(), str(tmp_path / "out"), settings=SETTINGS, limits=False, lock=False
    )
    found = [record for each in records.values() for record in each]
    assert (info.suite_name, [record.status for record in found]) == ("scripted", ["passed"] * 4)
    assert len({record.worker for record in found}) == 1
    lines = capfd.readouterr().out.splitlines()
    assert [line.startswith("orbax-bench: Scripted[") for line in lines] == [True] * 4
    assert sorted(line.rpartition(" repeat ")[2] for line in lines) == [
        *["0: passed"] * 2,
        *["1: passed"] * 2,
    ]
