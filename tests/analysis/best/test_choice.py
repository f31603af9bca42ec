"""The recommendation: what is chosen, what is not, and what is said of it."""

import re

import numpy as np
import pytest
import yaml

from orbax_bench_core.analysis.best import FactorialLayout, analyse, best
from orbax_bench_core.config import CheckpointConfig, parse_suite
from orbax_bench_core.errors import UserError
from orbax_bench_core.measure import RESIDENT_SHARE, Sample
from orbax_bench_core.reasons import because
from orbax_bench_core.records import ErrorInfo, Run, RunDirectory, State, StoreTrouble
from orbax_bench_core.sweep import expand

TWO = {"use_ocdbt": (True, False), "use_compression": (True, False)}
ERROR = ErrorInfo(type="ValueError", message="no space")


def case_of(folder, **asked):
    (case,) = best(folder, **asked).cases
    return case


def chosen(folder, **asked):
    case = case_of(folder, **asked)
    point = next(p for p in case.points if p.point_id == case.recommendation.point_id)
    return point.options


def faster_without(options):
    return 1.0 + 0.3 * options["use_ocdbt"] + options["use_compression"]


def test_bytes_decide_among_ties(sweep, stored):
    folder = sweep(
        TWO,
        lambda _: 1.0,
        cv=0.001,
        of=lambda o, _: {"inventory": stored(100 + 50 * (not o["use_compression"]))},
    )
    assert chosen(folder)["use_compression"] is True


def test_files_decide_where_bytes_are_equal(sweep, stored):
    folder = sweep(
        TWO,
        lambda _: 1.0,
        cv=0.001,
        of=lambda o, _: {"inventory": stored(100, 9 if o["use_ocdbt"] else 3)},
    )
    assert chosen(folder)["use_ocdbt"] is False


def test_where_all_is_equal_orbax_s_defaults_stay(sweep):
    assert chosen(sweep(TWO, lambda _: 1.0, cv=0.001)) == {
        "use_ocdbt": True,
        "use_compression": True,
    }


def test_a_point_that_failed_once_is_not_recommended_and_named(sweep):
    def of(options, number):
        fails = not any(options[name] for name in TWO) and number == 2
        return {"status": "failed", "error": ERROR, "times": {}} if fails else {}

    case = case_of(sweep(TWO, faster_without, of=of))
    (left,) = case.left_out
    assert (left.why, left.count, left.total) == ("failed", 1, 6)
    assert left.error == "ValueError: no space"
    assert left.point_id not in [place.point_id for place in case.ranking.places]
    assert case.recommendation.point_id != left.point_id


def test_a_point_of_few_rounds_is_not_recommended_for_its_luck(sweep):
    def of(options, number):
        return None if not any(options[name] for name in TWO) and number else {}

    case = case_of(sweep(TWO, faster_without, of=of))
    assert [(left.why, left.count, left.total) for left in case.left_out] == [("few rounds", 1, 6)]


def test_a_bound_on_memory_leaves_points_out(sweep):
    def of(options, _):
        return {"peak_mb": 300.0 if not options["use_ocdbt"] else 100.0}

    folder = sweep(TWO, faster_without, of=of)
    assert chosen(folder, peak_memory=200 * 2**20)["use_ocdbt"] is True
    case = case_of(folder, peak_memory=200 * 2**20)
    assert {(left.why, left.memory_bytes) for left in case.left_out} == {("memory", 300 * 2**20)}
    assert [remark.kind for remark in case.remarks] == ["memory reused"]


def throttled(options, number, *, points=1, slow=1.0):
    hit = not options["use_ocdbt"] and number < points
    trouble = StoreTrouble(operation="save", occurrence=0, kind="throttled", count=3)
    return {"store_troubles": (trouble,)} if hit else {}


def test_throttled_repeats_count_and_are_named(sweep):
    case = case_of(
        sweep({"use_ocdbt": (True, False)}, lambda o: 1.0 + o["use_ocdbt"], of=throttled)
    )
    (remark,) = case.remarks
    assert (remark.kind, remark.repeats, len(remark.points)) == ("flagged", 1, 1)
    assert (remark.flags, remark.without) == (because("storage_trouble", name="save"), "same")


def test_a_choice_that_hangs_on_flagged_repeats_is_not_to_be_trusted(sweep):
    # Only the flagged rounds of use_ocdbt=true are slow.
    def of(options, number):
        if not options["use_ocdbt"] or number >= 6:
            return {}
        trouble = StoreTrouble(operation="save", occurrence=0, kind="throttled", count=3)
        return {"store_troubles": (trouble,), "times": {"save": 50.0}}

    folder = sweep({"use_ocdbt": (True, False)}, lambda o: 2.0 - o["use_ocdbt"], rounds=10, of=of)
    (remark,) = case_of(folder).remarks
    assert (remark.without, remark.ahead != "") == ("behind", True)


def test_a_load_that_was_not_cold_is_flagged(sweep, make_record):
    from orbax_bench_core.config import Conditions

    folder = sweep(
        {"use_ocdbt": (True, False)}, lambda _: 1.0, rounds=2, conditions=Conditions(cache="cold")
    )
    run = RunDirectory(folder)
    record = next(Run(run).records())
    warm = Sample("load", 0, RESIDENT_SHARE.name, 0.9, "ratio")
    changed = record.model_copy(update={"samples": (*record.samples, warm)})
    path = next((run.root / "records" / record.point_id).glob("repeat_*")) / "host_0.json"
    path.write_text(changed.model_dump_json())
    (remark,) = case_of(folder).remarks
    assert remark.flags == because("cached")


def test_what_was_not_verified_is_named(sweep):
    def of(_, __):
        return {"state": State(num_bytes=8, digest={}, verified="none")}

    case = case_of(sweep(TWO, faster_without, of=of))
    (remark,) = case.remarks
    assert (remark.kind, remark.verified, len(remark.points)) == ("not verified", "none", 4)
    assert case.recommendation.verified == "none"


def test_it_is_set_beside_orbax_s_defaults(sweep):
    options = {**TWO, "use_zarr3": (True, False)}
    found = case_of(sweep(options, faster_without)).recommendation
    ratio, low, high = found.against_defaults
    assert low < ratio < high < 0.6
    assert [(each.option, each.default) for each in found.differences] == [
        ("use_ocdbt", True),
        ("use_compression", True),
    ]


def test_without_orbax_s_defaults_in_the_sweep_the_gain_is_unknown(sweep):
    options = {"use_ocdbt": (True, False), "use_compression": (False,)}
    found = case_of(sweep(options, lambda o: 1.0 + o["use_ocdbt"])).recommendation
    assert (found.against_defaults, found.default_point) == (None, None)


def test_the_entry_of_a_suite_is_that_very_point(sweep):
    suite = "suite_name: s\nbenchmarks:\n- generator: save_restore\n  options:\n"
    text = suite + "    use_ocdbt: [true, false]\n    chunk_byte_size: [null, 65536]\n"
    points = expand(parse_suite(text, "")).plain
    assert len(points) == 4
    from orbax_bench_core.analysis.best.orbax_code import as_suite

    for point in points:
        again = "suite_name: again\n" + as_suite(point)
        assert [each.id for each in expand(parse_suite(again, "")).plain] == [point.id]


def test_the_code_sets_what_is_not_as_orbax_has_it(sweep):
    found = case_of(sweep(TWO, faster_without)).recommendation
    assert "context.array.saving.use_compression = False" in found.code
    assert not {"use_zarr3", "use_replica_parallel"} & set(re.findall(r"\w+", found.code))
    compile(found.code, "code", "exec")
    assert yaml.safe_load(found.suite)["benchmarks"][0]["options"]["use_ocdbt"] is False


def test_the_front_has_what_no_other_beats(sweep, stored):
    folder = sweep(
        TWO,
        faster_without,
        cv=0.001,
        of=lambda o, _: {"inventory": stored(50 if o["use_compression"] else 100)},
    )
    case = case_of(folder)
    assert case.front_of == ("save", "load", "bytes")
    options = {p.point_id: p.options for p in case.points}
    kept = [options[id_]["use_compression"] for id_ in case.front]
    assert set(kept) == {True, False}
    assert {options[id_]["use_ocdbt"] for id_ in case.front} == {False} or len(kept) > 2


def test_few_noisy_rounds_say_how_many_are_missing(sweep):
    found = case_of(sweep(TWO, lambda _: 1.0, rounds=3, cv=0.3)).recommendation
    assert found.confidence.risk > 0.05
    assert found.confidence.missing > 10


def test_points_that_were_measured_one_after_the_other_have_no_ties(sweep):
    folder = sweep(TWO, faster_without)
    run = RunDirectory(folder)
    info = run.read_info()
    execution = info.execution.model_copy(update={"order": "sequential"})
    run.write_info(info.model_copy(update={"execution": execution}))
    case = case_of(folder)
    assert {place.tied for place in case.ranking.places} == {None}
    assert case.recommendation.confidence.risk is None


def test_points_of_another_checkpoint_are_a_case_of_their_own(sweep):
    arrays = [{"w": {"dtype": "float32", "shape": [size]}} for size in (8, 16)]
    checkpoints = [CheckpointConfig(spec=spec) for spec in arrays]
    cases = best(sweep(TWO, faster_without, checkpoints=checkpoints)).cases
    assert [len(case.points) for case in cases] == [4, 4]


def test_a_run_without_two_points_of_the_same_work_is_refused(sweep):
    folder = sweep({"use_ocdbt": (True,)}, lambda _: 1.0)
    with pytest.raises(UserError, match="nothing to choose from"):
        best(folder)


def test_the_answer_is_to_be_had_as_frames(sweep):
    found = best(sweep(TWO, faster_without))
    ranking = found.ranking()
    assert list(ranking[ranking.goal == "save"]["option.use_ocdbt"])[:2] == [False, True]
    assert len(found.effects()) == 3
    assert set(found.front().columns) >= {"point", "save", "load"}


THREE = {**TWO, "use_zarr3": (True, False)}


def effects_of(folder):
    (case,) = best(folder).cases
    return case.effects


def holds(contrast, truth):
    return contrast.low < truth < contrast.high


def test_effects_are_factors_against_what_orbax_does(sweep):
    folder = sweep(
        TWO, lambda o: (1.0 if o["use_ocdbt"] else 0.8) * (2 - (not o["use_compression"]))
    )
    ocdbt, compression = effects_of(folder).main
    assert (ocdbt.values, ocdbt.against) == ((False,), (True,))
    assert holds(ocdbt, 0.8)
    assert holds(compression, 0.5)
    assert ocdbt.matters


@pytest.mark.parametrize(
    ("fields", "against"), [({}, "auto"), ({"benchmark": "my.module.Mine"}, None)]
)
def test_an_option_that_some_entries_do_not_give_has_the_default_there(sweep, fields, against):
    options = {"atomicity": (..., "commit_file"), "use_ocdbt": (True, False)}
    folder = sweep(options, lambda o: 1.0 if "atomicity" in o else 2.0, **fields)
    (effect,) = [each for each in effects_of(folder).main if each.options == ("atomicity",)]
    assert (effect.values, effect.against) == (("commit_file",), (against,))
    assert holds(effect, 0.5)


def test_a_pair_says_how_one_effect_changes_with_the_other(sweep):
    def seconds(o):
        return 1.5 if not o["use_ocdbt"] and not o["use_compression"] else 1.0

    (pair,) = effects_of(sweep(TWO, seconds)).interactions
    assert pair.options == ("use_ocdbt", "use_compression")
    assert holds(pair, 1.5)
    assert pair.matters


def test_without_all_combinations_there_are_main_effects_and_a_reason(sweep):
    folder = sweep(
        THREE, lambda o: 2.0 - o["use_ocdbt"], only=lambda o: o["use_ocdbt"] or o["use_zarr3"]
    )
    found = effects_of(folder)
    assert found.interactions == ()
    assert holds(found.main[0], 2.0)
    assert not found.has_pairs


def test_options_that_vary_together_cannot_be_told_apart(sweep):
    folder = sweep(TWO, lambda _: 1.0, only=lambda o: o["use_ocdbt"] == o["use_compression"])
    found = effects_of(folder)
    assert found.main == ()
    assert found.confounded == ("use_ocdbt", "use_compression")


def test_what_never_varies_has_no_effect():
    layout = FactorialLayout(levels={"a": (0, 1)}, rows=((0,), (1,)))
    (contrast,) = analyse(layout, np.zeros((3, 2))).effects
    assert contrast.ratio == pytest.approx(1.0)
    assert not contrast.matters
