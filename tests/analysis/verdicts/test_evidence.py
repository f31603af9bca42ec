"""What a verdict says beside the times: verification, and trouble with storage."""

import math

import numpy as np
import pytest

from orbax_bench_core.analysis.verdicts import headline, unpaired, verdicts_document, why
from orbax_bench_core.analysis.verdicts.evidence import storage_troubles
from orbax_bench_core.analysis.verdicts.paired import judge_point
from orbax_bench_core.config import GateConfig
from orbax_bench_core.pages import to_markdown
from orbax_bench_core.records import ErrorInfo, StoreTrouble, repeats_of
from orbax_bench_core.sweep import Pair
from tests.support.verdicts import build_report


def page_of(point):
    return to_markdown(verdicts_document(build_report(point), "out"))


def compare_unpaired(before, now, *more, **rules):
    """Compares records, of which the first are those of an earlier run."""
    earlier = [record.model_copy(update={"run_id": "earlier"}) for record in before]
    return unpaired.compare_unpaired(earlier, now, *more, **rules)


THROTTLED = StoreTrouble(operation="save", occurrence=0, kind="throttled", count=2)


@pytest.fixture
def pair(make_point):
    point = make_point()
    return Pair(baseline=point, candidate=point.replace(options={"use_ocdbt": False}))


@pytest.fixture
def judged(make_record, make_run, pair):
    """Judges ten blocks in which `troubled` says which repeats had trouble, by block and arm.

    With `fails` all attempts of the candidate fail with that error.
    """
    info = make_run([make_record(pair)], points=[pair]).read_info()

    def judge(troubled=lambda block, arm: False, verified=None, ratio=1.0, fails=None):
        rng = np.random.default_rng(3)
        verified = verified or {"baseline": "saved", "candidate": "saved"}
        records = []
        for block in range(10):
            arms = ["baseline", "candidate", "candidate", "baseline"][:: 1 if block % 2 else -1]
            for slot, arm in enumerate(arms):
                took = (ratio if arm == "candidate" else 1) * np.exp(0.02 * rng.standard_normal())
                failed = {"status": "failed", "error": fails, "samples": ()}
                records.append(
                    make_record(
                        pair,
                        4 * block + slot,
                        arm=arm,
                        block=block,
                        times={"save": float(took)},
                        **(failed if fails and arm == "candidate" else {}),
                        store_troubles=(THROTTLED,) if troubled(block, arm) else (),
                        state={"num_bytes": 1, "digest": {}, "verified": verified[arm]},
                    )
                )
        return judge_point(pair, repeats_of(records), info)

    return judge


def test_few_flagged_samples_stay_and_are_said(judged):
    found = judged(lambda block, arm: block == 3 and arm == "candidate")
    assert found.word == "PASS"
    (trouble,) = found.storage
    assert trouble.flagged == {"baseline": 0, "candidate": 2}
    assert trouble.counts == {"candidate": {"throttled": 4}}
    assert "2 of 20 samples of the candidate (throttled: 4)" in page_of(found)


@pytest.mark.parametrize("ratio", [1.0, 1.5])
def test_many_flagged_samples_alike_in_both_arms_give_no_verdict(judged, ratio):
    found = judged(lambda block, arm: block % 3 == 0, ratio=ratio)
    assert (found.word, found.endpoint) == ("INCONCLUSIVE", "storage")
    assert why(found.reason).startswith("save: 40 % of the samples met throttling")


REFUSED = (
    ErrorInfo(type="ValueError", message="UNAVAILABLE: [http_response_code='503']"),
    ErrorInfo(type="TooManyRequests", message="429 POST https://storage"),
    ErrorInfo(type="OSError", message="HTTP/1.1 503"),
)
OWN = (
    ErrorInfo(type="OSError", message="no space"),
    ErrorInfo(type="ValueError", message="the shape is (503, 429)"),
)


@pytest.mark.parametrize(
    ("error", "word", "endpoint"),
    [(error, "REGRESSION", "failures") for error in OWN]
    + [(error, "INCONCLUSIVE", "storage") for error in REFUSED],
)
def test_a_candidate_that_fails_has_regressed_unless_throttled_storage_refused_it(
    judged, error, word, endpoint
):
    found = judged(lambda block, arm: block % 3 == 0, fails=error)
    assert (found.word, found.endpoint) == (word, endpoint)
    assert why(found.reason).startswith("10 of 10 first attempts of the candidate failed")


def test_storage_that_is_quiet_is_no_excuse(judged):
    assert judged(fails=REFUSED[0]).word == "REGRESSION"


@pytest.mark.parametrize("throttled", ["baseline", "candidate"])
def test_an_arm_that_is_throttled_more_is_named_and_the_word_stands(judged, throttled):
    found = judged(lambda block, arm: arm == throttled, ratio=1.5)
    assert found.word == "REGRESSION"
    assert found.storage[0].more == throttled
    assert f"more often in the {throttled} (p = " in page_of(found)


def test_arms_that_are_not_verified_alike_are_said(judged):
    found = judged(verified={"baseline": "saved", "candidate": "itself"})
    assert found.verified == {"baseline": "saved", "candidate": "itself"}
    page = page_of(found)
    assert "What the candidate restored was not verified" in page
    assert "baseline verified against what was saved; candidate not verified" in page
    assert "not verified" not in page_of(judged())


def test_runs_that_were_made_apart_are_held_to_the_same(make_record, make_point):
    point = make_point()
    records = [
        make_record(point, repeat, times={"save": 1.0}, store_troubles=(THROTTLED,))
        for repeat in range(6)
    ]
    (found,) = compare_unpaired(records, records, GateConfig()).points
    assert (found.word, found.endpoint) == ("INCONCLUSIVE", "storage")
    assert found.storage[0].more is None


def test_the_label_of_a_life_holds_for_all_its_operations(make_record, pair):
    """Two flagged lives are no proof, although they are eight flagged operations."""
    records = [
        make_record(
            pair,
            16 * block + 4 * slot + operation,
            arm=arm,
            block=block,
            times={"save": 1.0},
            store_troubles=(THROTTLED,) if arm == "candidate" and slot < 2 and block < 2 else (),
        )
        for block in range(5)
        for slot, arm in enumerate(["candidate", "baseline", "candidate", "baseline"])
        for operation in range(4)
    ]
    repeats = list(repeats_of(records))
    arms = {
        arm: [repeat for repeat in repeats if repeat.series.arm == arm]
        for arm in ("baseline", "candidate")
    }
    (alone,) = storage_troubles(arms, per_life=4)
    assert alone.more is None
    assert alone.p_value == pytest.approx(0.25)


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
    assert headline(report).text.endswith("measured apart, so this is a warning")
    assert report.only_warns
    beyond = compare_unpaired(saves(1.0), saves(2.5), GATE, known)
    assert headline(beyond).text.endswith("measured apart, but runs of the same differ by less")
    assert not beyond.only_warns


def test_what_fails_does_not_pass(saves, make_record, make_point):
    known = {(make_point().id, "save"): QUIET}
    error = ErrorInfo(type="ValueError", message="no")
    now = [*saves(1.0), make_record(repeat=10, status="failed", error=error)]
    (point,) = compare_unpaired(saves(1.0), now, GATE, known).points
    assert (point.word, point.failed) == ("INCONCLUSIVE", True)
    assert why(point.reason) == "a repeat failed: ValueError: no"


def test_a_primary_operation_that_is_gone_does_not_pass(saves, make_record, make_point):
    known = {(make_point().id, "save"): QUIET}
    before = [make_record(repeat=repeat, times={"save": 1.0, "load": 1.0}) for repeat in range(3)]
    (point,) = compare_unpaired(before, saves(1.0), GATE, known).points
    assert (point.word, why(point.reason)) == ("INCONCLUSIVE", "only one side has measured load")


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
    assert (point.word, point.reason) == ("PASS", ())


def test_a_primary_operation_that_some_repeats_lack_does_not_pass(make_record, make_point):
    whole = {"save": 1.0, "load": 1.0}
    known = {(make_point().id, operation): QUIET for operation in whole}
    before = [make_record(repeat=i, times=whole) for i in range(3)]
    now = [make_record(repeat=i, times=whole if i else {"save": 1.0}) for i in range(3)]
    (point,) = compare_unpaired(before, now, GATE, known).points
    assert point.word == "INCONCLUSIVE"
    assert why(point.reason) == "load: the candidate lacks it in 1 of 3 repeats"
