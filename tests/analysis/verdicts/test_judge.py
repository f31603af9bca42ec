"""From the records of a paired run to its verdicts: what is judged, and what is not."""

import numpy as np
import pytest

from orbax_bench_core.analysis.verdicts import headline, verdicts_document, why
from orbax_bench_core.analysis.verdicts.paired import (
    evidence_of,
    judge_point,
    needs_more,
    report,
    version_differences,
)
from orbax_bench_core.config import GateConfig
from orbax_bench_core.measure import RESIDENT_SHARE, Sample
from orbax_bench_core.pages import to_markdown
from orbax_bench_core.records import ErrorInfo, RunInfo, repeats_of
from orbax_bench_core.sweep import Expansion, Pair


@pytest.fixture
def pair(make_point):
    point = make_point()
    return Pair(baseline=point, candidate=point.replace(options={"use_ocdbt": False}))


@pytest.fixture
def paired_records(make_record, pair):
    """Records of blocks with 5 % noise, in which operations have the ratios that are given."""

    def make(blocks=10, point=pair, **ratios):
        rng = np.random.default_rng(7)
        orders = ["BBCC", "BCBC", "BCCB", "CBBC", "CBCB", "CCBB"]
        records = []
        for block in range(blocks):
            for slot, letter in enumerate(orders[rng.integers(6)]):
                noise = {name: float(np.exp(0.05 * rng.standard_normal())) for name in ratios}
                times = {
                    name: noise[name] * (ratio if letter == "C" else 1.0)
                    for name, ratio in ratios.items()
                }
                records.append(
                    make_record(
                        point,
                        4 * block + slot,
                        arm="candidate" if letter == "C" else "baseline",
                        block=block,
                        times=times,
                    )
                )
        return records

    return make


@pytest.fixture
def info(make_run, make_record, pair) -> RunInfo:
    return make_run([make_record(pair)], points=[pair]).read_info()


def test_an_operation_that_is_not_primary_decides_nothing(paired_records, pair, info):
    found = judge_point(pair, repeats_of(paired_records(save=1.0, save_background=1.4)), info)
    assert found.word == "PASS"
    by_name = {one.operation: one for one in found.operations}
    assert not by_name["save_background"].primary
    assert by_name["save_background"].false_discovery is not None
    assert by_name["save"].false_discovery is None


@pytest.mark.parametrize(("minutes", "blocks", "limit"), [(0.1, 5, None), (30.0, 20, 0.1)])
def test_a_pass_says_which_stalls_and_failures_it_had_no_time_to_look_for(
    paired_records, pair, info, minutes, blocks, limit
):
    info = info.model_copy(update={"gate": GateConfig(limit_minutes=minutes)})
    found = report(info, [evidence_of(pair, repeats_of(paired_records(blocks, save=1.0)), info)])
    (point,) = found.points
    assert (found.word, point.failures.limit) == ("PASS", limit)
    assert point.operations[0].verdict.stalls.limit == limit
    said = to_markdown(verdicts_document(found, "out"))
    assert ("`gate.limit_minutes` (0.1)" in said) == (limit is None)


def test_primary_operations_come_first(paired_records, pair, info):
    found = judge_point(pair, repeats_of(paired_records(prepare=1.0, load=1.0, save=1.0)), info)
    assert [one.operation for one in found.operations] == ["save", "load", "prepare"]


def test_a_verdict_says_what_the_cache_of_its_loads_was(paired_records, pair, info):
    warm = Sample("load", 0, RESIDENT_SHARE.name, 1.0, "ratio")
    records = [
        record.model_copy(update={"samples": (*record.samples, warm)})
        for record in paired_records(save=1.0, load=1.0)
    ]
    found = judge_point(pair, repeats_of(records), info)
    assert {one.operation: one.cache for one in found.operations} == {"save": "", "load": "warm"}
    (load,) = (one for one in found.operations if one.operation == "load")
    assert load.cache == "warm"
    page = to_markdown(
        verdicts_document(report(info, [evidence_of(pair, repeats_of(records), info)]), "out")
    )
    assert "| load (warm) |" in page
    assert "`--override execution.cache=cold`" in page


GONE = {"status": "failed", "error": ErrorInfo(type="OSError", message="gone"), "samples": ()}


def failing(arm, records):
    return [record.model_copy(update=GONE) if record.arm == arm else record for record in records]


def test_an_arm_that_fails_more_often_is_judged_by_that(paired_records, pair, info):
    records = failing("candidate", paired_records(save=1.0))
    found = judge_point(pair, repeats_of(records), info)
    assert (found.word, found.endpoint, found.failed) == ("REGRESSION", "failures", False)
    assert (found.attempts["candidate"].failed, found.attempts["candidate"].count) == (20, 20)
    assert not needs_more(found)


def test_a_baseline_that_always_fails_leaves_nothing_to_judge(paired_records, pair, info):
    records = failing("baseline", paired_records(blocks=5, save=1.0))
    found = judge_point(pair, repeats_of(records), info)
    assert (found.word, found.failed) == ("INCONCLUSIVE", True)
    assert (
        why(found.reason) == "every first attempt of the baseline failed, in block 0: OSError: gone"
    )
    assert not needs_more(found)


def test_a_regression_that_was_shown_before_an_arm_failed_stands(paired_records, pair, info):
    records = paired_records(save=1.4)
    records[-1] = records[-1].model_copy(update=GONE)
    assert judge_point(pair, repeats_of(records), info).word == "REGRESSION"


def test_nothing_measured_gives_no_verdict(pair, info):
    found = judge_point(pair, repeats_of([]), info)
    assert (found.word, why(found.reason)) == ("INCONCLUSIVE", "no block is complete")


def test_operations_of_a_class_of_ones_own_decide(paired_records, pair, info):
    found = judge_point(pair, repeats_of(paired_records(prepare=1.0)), info)
    assert (found.word, found.operations[0].primary) == ("PASS", True)


def test_no_operation_that_was_named_gives_no_verdict_and_says_what_to_do(
    paired_records, make_run, pair
):
    records = paired_records(prepare=1.0)
    info = make_run(records, points=[pair]).read_info()
    named = info.model_copy(update={"gate": GateConfig(primary=("upload",))})
    found = judge_point(pair, repeats_of(records), named)
    assert found.word == "INCONCLUSIVE"
    assert "measured: prepare; name others under `gate.primary`" in why(found.reason)


def test_a_whole_suite_can_be_one_family(paired_records, make_run, pair):
    records = paired_records(save=1.18)
    points = [
        Pair(
            baseline=pair.baseline.replace(label=str(i), processes=i + 1), candidate=pair.candidate
        )
        for i in range(200)
    ]
    run = make_run(records, points=[pair, *points])
    alone = judge_point(pair, repeats_of(records), run.read_info())
    shared = run.read_info().model_copy(update={"gate": GateConfig(family="suite")})
    assert alone.word == "REGRESSION"
    assert judge_point(pair, repeats_of(records), shared).word != "REGRESSION"


def test_the_same_records_give_the_same_verdict(paired_records, pair, info):
    records = paired_records(save=1.1)
    assert judge_point(pair, repeats_of(records), info) == judge_point(
        pair, repeats_of(records[::-1]), info
    )


def test_an_operation_that_one_repeat_lacks_is_named_with_its_arm(paired_records, pair, info):
    records = paired_records(save=1.0, load=1.0)
    index = next(i for i, record in enumerate(records) if record.arm == "candidate")
    kept = tuple(sample for sample in records[index].samples if sample.operation != "load")
    records[index] = records[index].model_copy(update={"samples": kept})
    found = judge_point(pair, repeats_of(records), info)
    assert (found.word, found.endpoint) == ("INCONCLUSIVE", "missing")
    assert why(found.reason).startswith(
        "load: the candidate lacks it in 1 of 20 repeats, first in block"
    )


def test_failed_attempts_keep_their_places(paired_records, pair, info):
    records = paired_records(save=1.0)
    places = [i for i, record in enumerate(records) if record.arm == "candidate"]
    for place in (places[0], places[3]):
        records[place] = records[place].model_copy(update=GONE)
    found = judge_point(pair, repeats_of(records), info)
    assert found.failed_at == {"baseline": (), "candidate": (0, 3)}
    assert len(found.operations[0].times["candidate"]) == 18


LOD = "`gate.primary` names lod, which no arm of any point has measured"


@pytest.fixture
def named(info):
    """A run whose rules name an operation that does not exist, beside one that does."""
    gate = info.gate.model_copy(update={"primary": ("save", "lod")})
    return info.model_copy(update={"gate": gate})


def test_a_named_operation_that_no_point_has_measured_is_no_pass(paired_records, pair, named):
    point = evidence_of(pair, repeats_of(paired_records(save=1.0, load=1.0)), named)
    assert point.verdict().word == "PASS"
    found = report(named, [point])
    assert (found.word, found.lacks_operations) == ("INCONCLUSIVE", True)
    (judged,) = found.points
    assert (judged.word, judged.endpoint) == ("INCONCLUSIVE", "missing")
    assert why(judged.reason).startswith(f"{LOD} (did you mean 'load'?; measured: load, save)")
    assert "correct the name" in why(judged.reason)
    assert LOD in headline(found).text


def test_a_regression_stands_beside_a_name_that_was_mistaken(paired_records, pair, named):
    found = report(named, [evidence_of(pair, repeats_of(paired_records(save=2.0)), named)])
    assert found.word == "REGRESSION"
    assert any(why((note,)).startswith(LOD) for note in found.notes)


def test_what_another_point_may_still_measure_is_not_missing_yet(
    paired_records, pair, named, make_point
):
    other = make_point(options={"a": 1}, candidate=make_point(options={"a": 2}))
    both = named.model_copy(update={"expansion": Expansion(points=(pair, other))})
    point = evidence_of(pair, repeats_of(paired_records(save=1.0)), both)
    assert report(both, [point]).points[0].word == "PASS"


def test_default_operations_that_a_benchmark_does_not_have_are_no_note(paired_records, pair, info):
    point = evidence_of(pair, repeats_of(paired_records(save=1.0)), info)
    assert not any(note.code == "unknown_primary" for note in report(info, [point]).notes)


def test_an_arm_that_failed_every_time_was_not_measured(make_verdicts):
    attempts = {"baseline": {"count": 10}, "candidate": {"count": 10, "failed": 10}}
    assert make_verdicts("p", attempts=attempts).unmeasured
    attempts["candidate"]["failed"] = 9
    assert not make_verdicts("p", attempts=attempts).unmeasured


def record(make_record, arm, **versions):
    return make_record(arm=arm, provenance={"versions": versions})


def test_what_differs_is_named_and_what_is_equal_is_not(make_record):
    records = [
        record(make_record, "baseline", jax="0.9.0", numpy="2.0"),
        record(make_record, "candidate", jax="0.10.2", numpy="2.0"),
    ]
    assert (
        why(version_differences(records)) == "jax: 0.9.0 in the baseline, 0.10.2 in the candidate"
    )


def test_one_arm_alone_differs_from_nothing(make_record):
    assert version_differences([record(make_record, "baseline", jax="0.9.0")]) == ()


def test_an_arm_that_changed_on_the_way_shows_both(make_record):
    records = [
        record(make_record, "baseline", jax="1"),
        record(make_record, "baseline", jax="2"),
        record(make_record, "candidate", jax="2"),
    ]
    assert why(version_differences(records)) == "jax: 1 and 2 in the baseline, 2 in the candidate"
