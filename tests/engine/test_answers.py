"""Steps of a pipeline that answer a question: what each returns, and the files that it writes."""

import json
from pathlib import Path

import pytest

from orbax_bench_core import engine
from orbax_bench_core.errors import UserError
from orbax_bench_core.lineage import file_digest, trace
from tests.support.async_runs import make_pair, make_saves, make_sizes  # noqa: F401

SUITE = """
suite_name: s
checkpoint_config: {spec: {a: {dtype: float32, shape: [8]}}}
benchmarks: [{generator: save_restore, options: {}}]
"""


@pytest.fixture
def files(tmp_path):
    return {name: str(tmp_path / "out" / name) for name in ("answer", "summary", "report")}


@pytest.fixture
def sweep(make_run, make_point, make_record):
    """A run of two points of four rounds, of which the second is faster; and its id."""
    points = [make_point(options={"use_ocdbt": value}, label=str(value)) for value in (True, False)]
    records = [
        make_record(point, number, times={"save": (2.0 - place) * (1 + number / 100)})
        for number in range(4)
        for place, point in enumerate(points)
    ]
    return str(make_run(records, points=points, num_repeats=4).root), points[1].id


def test_best_returns_the_point_that_it_recommends(sweep, files):
    run, fastest = sweep
    found = engine.best(run, **files)
    assert found.value == [fastest]
    (case,) = json.loads(Path(files["answer"]).read_text())["cases"]
    assert case["recommendation"]["point_id"] == fastest
    output = found.named["answer"]
    assert output.metadata["digest"] == file_digest(files["answer"])
    assert output.metadata["run_directory"] == run


def test_best_returns_nothing_where_nothing_is_known_to_keep_a_bound(sweep):
    assert engine.best(sweep[0], peak_memory_bytes=1).value == [""]


def test_a_plan_returns_what_will_fail(files):
    spec = {"use_ocdbt": False, "save_concurrent_gb": 1e-6}
    found = engine.plan_save("llama-8b@0.01", options=json.dumps(spec), **files)
    assert len(found.value) == 1
    (plan,) = json.loads(Path(files["answer"]).read_text())
    assert plan["failures"] == found.value
    assert "Plan" in Path(files["summary"]).read_text()
    assert not engine.plan_save("llama-8b@0.01").value


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("{ocdbt: true}", "no such option of a save: ocdbt; there are chunk_byte_size"),
        ("{use_ocdbt: maybe}", "use_ocdbt: expected true or false, got 'maybe'"),
        ("[1]", "is no mapping"),
        ("{", "cannot be read"),
    ],
)
def test_options_of_a_plan_that_are_wrong_are_told(options, said):
    with pytest.raises(UserError, match=said):
        engine.plan_save("llama-8b@0.01", options=options)


def test_a_file_that_cannot_be_written_is_a_message():
    with pytest.raises(UserError, match="answer: cannot write /proc/none/answer"):
        engine.plan_save("llama-8b@0.01", answer="/proc/none/answer")


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (lambda out: engine.soak(SUITE, out), "give --saves N or --hours T"),
        (lambda out: engine.soak(SUITE, out, saves=10), "gives no verdict"),
        (lambda out: engine.recovery(SUITE, out, add_start=-1.0), "0 or more"),
        (lambda out: engine.recovery(SUITE, out), "take the benchmark training_job"),
    ],
)
def test_what_cannot_be_measured_is_told_before(step, said, tmp_path):
    with pytest.raises(UserError, match=said):
        step(str(tmp_path / "run"))
    assert not list((tmp_path / "run").glob("records/*"))


pytestmark = pytest.mark.slow


def test_the_report_links_to_a_study_that_was_written_after_it(make_sizes):
    run = make_sizes()
    engine.aggregate(str(run.root))
    assert "async_study.html" not in (run.root / "report.html").read_text()
    for _ in range(2):  # a step that was told to end is started again
        engine.study_async(str(run.root))
        assert (run.root / "report.html").read_text().count('href="async_study.html"') == 1


def test_what_the_study_was_made_from_stays_as_it_was_reported(make_sizes):
    run = make_sizes()
    reported = engine.aggregate(str(run.root)).named
    study = engine.study_async(str(run.root)).named["study"].metadata["digest"]
    after = engine.aggregate(str(run.root)).named
    for name in ("samples", "tensorboard"):
        assert after[name].metadata["digest"] == reported[name].metadata["digest"]
    found = trace(str(run.root / "async_study.json"))
    assert (found[0].status, found[0].digest) == ("unchanged", study)
    assert [each.status for each in found if each.depth == 1] == ["unchanged"]
