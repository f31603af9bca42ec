"""Pairs: what each arm measures, and that a pair is a point like no other."""

import collections

import pytest

from orbax_bench_core.config import SuiteError
from orbax_bench_core.sweep.pair import arrangement

ENVIRONMENTS = (
    "environments:\n- {name: old, requirements: [a==1]}\n- {name: new, requirements: [a==2]}\n"
)


def test_arms_choose_environments_which_are_then_not_swept(expand):
    extra = ENVIRONMENTS + "arms: {baseline: {environment: old}, candidate: {environment: new}}\n"
    (point,) = expand(("save_restore", "{}"), extra=extra).points
    assert point.arm("baseline").environment.name == "old"
    assert point.arm("candidate").environment.name == "new"


def test_without_arms_environments_are_swept(expand):
    points = expand(("save_restore", "{}"), extra=ENVIRONMENTS).points
    assert [point.label for point in points] == ["environment=old", "environment=new"]
    assert len({point.id for point in points}) == 2


def test_an_arm_may_have_another_mesh_processes_and_benchmark(expand):
    extra = (
        "arms: {candidate: {processes: 2, generator: train_interference, "
        "mesh_config: {mesh_axes: [x], ici_parallelism: {x: 2}}}}\n"
    )
    (point,) = expand(("save_restore", "{}"), extra=extra).points
    candidate = point.arm("candidate")
    assert (candidate.processes, candidate.num_devices) == (2, 2)
    assert candidate.benchmark == "train_interference"
    assert point.arm("baseline").benchmark == "save_restore"


def test_swapping_the_arms_makes_another_pair(expand):
    one, other = (
        expand(
            ("save_restore", "{}"), extra=f"arms: {{{arm}: {{options: {{use_ocdbt: false}}}}}}\n"
        )
        for arm in ("baseline", "candidate")
    )
    assert one.points[0].id != other.points[0].id


def test_arms_that_make_two_points_one_leave_one(expand):
    extra = (
        "arms: {baseline: {options: {use_ocdbt: true}}, candidate: {options: {use_ocdbt: false}}}\n"
    )
    found = expand(("save_restore", "{use_ocdbt: [true, false]}"), extra=extra)
    assert len(found.points) == 1


@pytest.mark.parametrize(
    ("arm", "key", "message"),
    [
        (
            "{options: {use_ocdb: 1}}",
            "arms.candidate.options.use_ocdb",
            "did you mean 'use_ocdbt'?",
        ),
        ("{options: {use_ocdbt: 1}}", "arms.candidate.options.use_ocdbt", "expected true or false"),
        ("{options: {use_ocdbt: [true]}}", "arms.candidate.options.use_ocdbt", "one value"),
        ("{generator: save_restor}", "arms.candidate.generator", "did you mean 'save_restore'?"),
        ("{generator: json.JSONDecoder}", "arms.candidate.generator", "not a subclass"),
        (
            "{options: {enable_replica_parallel_separate_folder: true}}",
            "arms.candidate.options",
            "is_valid",
        ),
    ],
)
def test_a_mistake_in_an_arm_is_named(expand, arm, key, message):
    with pytest.raises(SuiteError) as caught:
        expand(("save_restore", "{}"), extra=f"arms: {{candidate: {arm}}}\n")
    (problem,) = caught.value.problems
    assert problem.key == key
    assert message in problem.message


PYTORCH = "arms: {baseline: {generator: pytorch_dcp, options: {save_thread_count: 2}}}\n"


def test_an_arm_of_another_benchmark_takes_of_the_suites_options_what_it_has(expand):
    options = "{async_enabled: false, use_compression: false}"
    (point,) = expand(("save_restore", options), extra=PYTORCH).points
    baseline, candidate = point.arm("baseline"), point.arm("candidate")
    assert baseline.given_options == {"async_enabled": False, "save_thread_count": 2}
    assert candidate.given_options == {"async_enabled": False, "use_compression": False}


def test_a_pair_of_two_benchmarks_has_both_names_and_the_options_that_vary_in_either(expand):
    options = "{async_enabled: [true, false], use_compression: [true, false]}"
    names = [point.name for point in expand(("save_restore", options), extra=PYTORCH).points]
    assert names[1:3] == [
        "pytorch_dcp vs save_restore[async_enabled=true,use_compression=false]",
        "pytorch_dcp vs save_restore[async_enabled=false,use_compression=true]",
    ]


def test_an_option_that_no_benchmark_of_an_arm_has_is_refused(expand):
    arms = PYTORCH.replace("save_thread_count", "use_compression")
    with pytest.raises(SuiteError, match=r"use_compression.*unknown option"):
        expand(("save_restore", "{}"), extra=arms)


def test_every_order_has_the_same_chance():
    counts = collections.Counter(arrangement("run", "point", block) for block in range(6000))
    assert len(counts) == 6
    assert all(880 < count < 1120 for count in counts.values())  # 4 standard deviations


def test_runs_and_points_have_orders_of_their_own():
    orders = {
        tuple(arrangement(run, point, block) for block in range(20))
        for run in ("a", "b")
        for point in ("p", "q")
    }
    assert len(orders) == 4
