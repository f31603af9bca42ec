"""A run beside a stored baseline: a warning, or that it cannot tell."""

import math

import pytest

from orbax_bench_core.analysis.verdicts.unpaired import compare_unpaired
from orbax_bench_core.config import GateConfig
from orbax_bench_core.records import ErrorInfo

GATE = GateConfig()
QUIET = (0.01, -0.02, 0.02, -0.01, 0.0)
"""Past log ratios one more of which would seldom be above 7 %: that is below the margin."""


@pytest.fixture
def saves(make_record):
    """Returns the records of ten repeats whose saves take about so many seconds."""

    def make(seconds, point=None, **fields):
        return [
            make_record(point, repeat, times={"save": seconds * (1 + repeat / 1000)}, **fields)
            for repeat in range(10)
        ]

    return make


@pytest.fixture
def judge(saves, make_point):
    """Returns the verdict on saves that take `ratio` times as long as they did."""

    def make(ratio, past):
        known = {(make_point().id, "save"): past}
        report = compare_unpaired(saves(1.0), saves(ratio), GATE, known)
        return report.points[0].operations[0].verdict

    return make


@pytest.mark.parametrize(
    ("ratio", "word"), [(0.7, "PASS"), (1.0, "PASS"), (1.14, "INCONCLUSIVE"), (1.16, "REGRESSION")]
)
def test_with_a_quiet_past_the_margin_is_the_threshold(judge, ratio, word):
    assert judge(ratio, QUIET).word == word


@pytest.mark.parametrize(("ratio", "word"), [(1.16, "INCONCLUSIVE"), (2.0, "REGRESSION")])
def test_with_a_noisy_past_what_one_more_would_seldom_exceed_is_the_threshold(judge, ratio, word):
    noisy = tuple(5 * value for value in QUIET)
    verdict = judge(ratio, noisy)
    assert verdict.word == word
    assert verdict.detectable == pytest.approx(math.expm1(0.3245), rel=1e-3)


def test_without_a_past_only_more_than_2x_is_told(judge):
    verdict = judge(1.5, ())
    assert (verdict.word, verdict.ratio) == ("INCONCLUSIVE", pytest.approx(1.5))
    assert "no past runs say how far two runs differ" in verdict.reason
    assert judge(3.0, ()).word == "REGRESSION"


def test_it_says_that_it_is_unpaired_and_no_proof(saves, make_point):
    known = {(make_point().id, "save"): QUIET}
    report = compare_unpaired(saves(1.0), saves(2.0), GATE, known, baseline="v1")
    (point,) = report.points
    assert (report.word, report.baseline, point.mode, point.blocks) == (
        "REGRESSION",
        "v1",
        "unpaired",
        0,
    )
    assert point.operations[0].advice.startswith("Only a warning")
    assert report.only_warns
    beyond = compare_unpaired(saves(1.0), saves(2.5), GATE, known)
    assert beyond.points[0].operations[0].advice.startswith("Look at what differs between the runs")
    assert not beyond.only_warns


def test_another_machine_is_no_baseline(saves, make_point, make_record):
    known = {(make_point().id, "save"): QUIET}
    elsewhere = {**make_record().provenance, "host": {"cpu": "Xeon", "cpu_count": 2}}
    report = compare_unpaired(saves(1.0, provenance=elsewhere), saves(2.0), GATE, known)
    assert report.word == "INCONCLUSIVE"
    assert report.points[0].reason == "measured in other surroundings: CPU: EPYC, was Xeon"
    assert report.points[0].operations[0].verdict.ratio == pytest.approx(2.0)


def test_points_are_matched_by_id_and_the_others_listed_with_what_differs(saves, make_point):
    before, now = make_point(options={"use_ocdbt": True}), make_point(options={"use_ocdbt": False})
    report = compare_unpaired(saves(1.0, before), saves(1.0, now), GATE)
    assert report.points == ()
    assert report.word == "INCONCLUSIVE"
    assert [(one.side, one.differs) for one in report.unmatched] == [
        ("baseline", ("options.use_ocdbt: true, was false",)),
        ("candidate", ("options.use_ocdbt: false, was true",)),
    ]


def test_what_fails_does_not_pass(saves, make_record, make_point):
    known = {(make_point().id, "save"): QUIET}
    error = ErrorInfo(type="ValueError", message="no")
    now = [*saves(1.0), make_record(repeat=10, status="failed", error=error)]
    (point,) = compare_unpaired(saves(1.0), now, GATE, known).points
    assert (point.word, point.failed) == ("INCONCLUSIVE", True)
    assert point.reason == "a repeat failed: ValueError: no"


def test_a_primary_operation_that_is_gone_does_not_pass(saves, make_record, make_point):
    known = {(make_point().id, "save"): QUIET}
    before = [make_record(repeat=repeat, times={"save": 1.0, "load": 1.0}) for repeat in range(3)]
    (point,) = compare_unpaired(before, saves(1.0), GATE, known).points
    assert (point.word, point.reason) == ("INCONCLUSIVE", "only one side has measured load")


def test_an_operation_that_is_not_primary_decides_nothing(make_record, make_point):
    sides = [
        [make_record(repeat=i, times={"save": 1.0, "zz": took}) for i in range(3)]
        for took in (1.0, 9.0)
    ]
    known = {(make_point().id, name): QUIET for name in ("save", "zz")}
    report = compare_unpaired(*sides, GATE, known)
    found = {one.operation: (one.primary, one.verdict.word) for one in report.points[0].operations}
    assert found == {"save": (True, "PASS"), "zz": (False, "REGRESSION")}
    assert report.word == "PASS"


def test_two_runs_with_nothing_in_them_have_no_verdict():
    assert compare_unpaired([], [], GATE).word == "INCONCLUSIVE"


@pytest.mark.parametrize("times", [("save", "zz"), ("a", "b", "c", "d")])
def test_an_operation_that_is_gone_and_not_primary_decides_nothing(make_record, make_point, times):
    before = [make_record(repeat=i, times=dict.fromkeys(times, 1.0)) for i in range(3)]
    now = [make_record(repeat=i, times=dict.fromkeys(times[:-1], 1.0)) for i in range(3)]
    known = {(make_point().id, operation): QUIET for operation in times}
    (point,) = compare_unpaired(before, now, GATE, known).points
    assert (point.word, point.reason) == ("PASS", "")


def test_a_primary_operation_that_some_repeats_lack_does_not_pass(make_record, make_point):
    whole = {"save": 1.0, "load": 1.0}
    known = {(make_point().id, operation): QUIET for operation in whole}
    before = [make_record(repeat=i, times=whole) for i in range(3)]
    now = [make_record(repeat=i, times=whole if i else {"save": 1.0}) for i in range(3)]
    (point,) = compare_unpaired(before, now, GATE, known).points
    assert point.word == "INCONCLUSIVE"
    assert point.reason == "load: the candidate lacks it in 1 of 3 repeats"
