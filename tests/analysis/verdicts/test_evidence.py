"""What a verdict says beside the times: verification, and trouble with storage."""

import numpy as np
import pytest

from orbax_bench_core.analysis.verdicts.evidence import evidence_remarks as remarks
from orbax_bench_core.analysis.verdicts.evidence import storage_troubles
from orbax_bench_core.analysis.verdicts.paired import judge_point
from orbax_bench_core.analysis.verdicts.unpaired import compare_unpaired
from orbax_bench_core.config import GateConfig
from orbax_bench_core.records import ErrorInfo, StoreTrouble, repeats_of
from orbax_bench_core.sweep import Pair

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
    assert any("2 of 20 samples of the candidate (throttled: 4)" in one for one in remarks(found))


@pytest.mark.parametrize("ratio", [1.0, 1.5])
def test_many_flagged_samples_alike_in_both_arms_give_no_verdict(judged, ratio):
    found = judged(lambda block, arm: block % 3 == 0, ratio=ratio)
    assert (found.word, found.endpoint) == ("INCONCLUSIVE", "storage")
    assert found.reason.startswith("storage: 40% of the samples of save met throttling")


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
    assert found.reason.startswith("10 of 10 first attempts of the candidate failed")


def test_storage_that_is_quiet_is_no_excuse(judged):
    assert judged(fails=REFUSED[0]).word == "REGRESSION"


@pytest.mark.parametrize("throttled", ["baseline", "candidate"])
def test_an_arm_that_is_throttled_more_is_named_and_the_word_stands(judged, throttled):
    found = judged(lambda block, arm: arm == throttled, ratio=1.5)
    assert found.word == "REGRESSION"
    assert found.storage[0].more == throttled
    assert any(f"the {throttled} is throttled more (p = " in one for one in remarks(found))


def test_arms_that_are_not_verified_alike_are_said(judged):
    found = judged(verified={"baseline": "saved", "candidate": "itself"})
    assert found.verified == {"baseline": "saved", "candidate": "itself"}
    remark, *_ = remarks(found)
    assert remark.startswith(
        "the baseline is verified against what was saved; the candidate is not"
    )


def test_what_nobody_compared_is_said(judged):
    said = remarks(judged(verified={"baseline": "none", "candidate": "none"}))
    assert "both arms: not verified: nothing was compared" in said


def test_what_was_saved_needs_no_word(judged):
    assert not any("verified" in remark for remark in remarks(judged()))


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
