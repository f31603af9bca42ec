"""Running a benchmark for a test."""

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.testing import run_benchmark

SPEC = {"spec": {"w": {"dtype": "float32", "shape": [16], "sharding": ["x"]}}}
MESH = {"mesh_axes": ["x"], "ici_parallelism": {"x": 8}}
ROUND_TRIP = """
with metrics.measure("save"):
    ocp.save(context.path / "ckpt", context.pytree)
with metrics.measure("load"):
    restored = ocp.load(context.path / "ckpt", context.pytree)
context.verify(restored)
"""
MEASURED = "with metrics.measure('save'): pass"
SPOILED = f"{MEASURED}\ncontext.verify(jax.tree.map(lambda leaf: leaf + 1, context.pytree))"


@pytest.fixture
def run(tmp_path):
    def call(benchmark, **given):
        return run_benchmark(benchmark, str(tmp_path / "run"), **given)

    return call


@pytest.mark.slow
def test_a_repeat_is_measured_and_verified(run, write_benchmark):
    (outcome,) = run(write_benchmark(ROUND_TRIP), checkpoint=SPEC, mesh=MESH)
    outcome.assert_verified()
    outcome.assert_measured("save", "load")
    assert outcome.operations == ["save", "load"]


@pytest.mark.slow
def test_options_and_repeats_give_an_outcome_each(run, write_benchmark):
    path = write_benchmark("metrics.record('work', '0_basics/time_s', context.options.factor)")
    outcomes = run(path, options={"factor": [2, 3]}, repeats=2)
    assert [outcome.value("work", "0_basics/time_s") for outcome in outcomes] == [2, 2, 3, 3]


@pytest.mark.slow
def test_a_failure_is_an_outcome_with_what_was_measured_before(run, write_benchmark):
    (outcome,) = run(
        write_benchmark("with metrics.measure('first'): pass\nraise RuntimeError('no')")
    )
    assert outcome.operations == ["first"]
    with pytest.raises(AssertionError, match="RuntimeError: no"):
        outcome.assert_passed()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (MEASURED, "passed", r"verified nothing; call context\.verify"),
        (SPOILED, "failed", "VerificationError"),
    ],
)
def test_what_was_not_verified_or_differs_is_told(run, write_benchmark, body, status, said):
    (outcome,) = run(write_benchmark(body), checkpoint=SPEC, mesh=MESH)
    assert outcome.record.status == status
    with pytest.raises(AssertionError, match=said):
        outcome.assert_verified()


def test_an_operation_that_was_not_measured_is_named(run, write_benchmark):
    (outcome,) = run(write_benchmark(MEASURED))
    with pytest.raises(AssertionError, match=r"of 'load'; operations: \['save'\]"):
        outcome.assert_measured("load")


def test_a_mesh_without_its_devices_is_no_pass(run, write_benchmark):
    mesh = {"mesh_axes": ["x"], "ici_parallelism": {"x": 16}}
    (outcome,) = run(write_benchmark("pass"), mesh=mesh)
    with pytest.raises(AssertionError, match=r"skipped: .*needs 16 devices; 8 are here"):
        outcome.assert_passed()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"options": {"facto": 1}}, "unknown option; did you mean 'factor'"),
        ({"checkpoint": {"modle": "gpt2"}}, "unknown key; did you mean 'model'"),
        (
            {"checkpoint": {"spec": {"w": {"dtype": "int8", "shape": [6], "sharding": ["x"]}}}},
            "sharding` needs a mesh",
        ),
    ],
)
def test_what_a_suite_refuses_is_refused(run, write_benchmark, given, message):
    with pytest.raises(UserError, match=message):
        run(write_benchmark("pass"), **given)


def test_a_benchmark_that_measures_nothing_is_told_so(run, write_benchmark):
    path = write_benchmark("pass")
    (outcome,) = run(path)
    with pytest.raises(AssertionError, match=rf"{path}\.test_fn measured nothing: wrap the op"):
        outcome.assert_passed()
