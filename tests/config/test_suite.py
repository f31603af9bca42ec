"""Identity of suites that may share a run directory, and arms and environments in them."""

import pytest

from orbax_bench_core.config.load import parse_suite

BASE = """\
suite_name: s
num_repeats: 2
mesh_configs: [{mesh_axes: [a], ici_parallelism: {a: 8}}]
checkpoint_config: {spec: {w: {dtype: int8, shape: [8]}, b: int}}
benchmarks:
- {generator: g, options: {x: 1, y: 2}}
"""


def identity(text):
    return parse_suite(text).suite.identity


def changed(old, new):
    assert BASE.count(old) == 1
    return BASE.replace(old, new)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(changed("repeats: 2", "repeats: 5"), id="repeats"),
        pytest.param(BASE + "execution: {retries: 3, warmups: 0, seed: 1}\n", id="how it is run"),
        pytest.param(BASE + "baseline_path: /b.json\n", id="baseline"),
        pytest.param(changed("configs: [{mesh", "config: {mesh").replace("8}}]", "8}}"), id="key"),
        pytest.param(changed("x: 1, y: 2", "y: 2, x: 1"), id="order of options"),
    ],
)
def test_what_is_not_measured_leaves_the_identity(text):
    assert identity(text) == identity(BASE)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(changed("suite_name: s", "suite_name: t"), id="name"),
        pytest.param(changed("generator: g", "generator: h"), id="generator"),
        pytest.param(changed("x: 1", "x: true"), id="type of an option"),
        pytest.param(changed("a: 8", "a: 4"), id="mesh"),
        pytest.param(changed("shape: [8]", "shape: [9]"), id="shape"),
        pytest.param(
            changed("w: {dtype: int8, shape: [8]}, b: int", "b: int, w: {dtype: int8, shape: [8]}"),
            id="order of leaves",
        ),
        pytest.param(BASE + "execution: {processes: 2}\n", id="processes"),
        pytest.param(BASE + "execution: {cache: cold}\n", id="cache"),
        pytest.param(BASE + "execution: {durable: true}\n", id="durable"),
    ],
)
def test_what_is_measured_changes_the_identity(text):
    assert identity(text) != identity(BASE)


ENVIRONMENTS = "environments:\n- {name: old, requirements: [a==1]}\n"


@pytest.mark.parametrize(
    ("extra", "key", "message"),
    [
        ("arms: {basline: {}}\n", "arms.basline", "did you mean 'baseline'?"),
        (
            ENVIRONMENTS + "arms: {baseline: {environment: odl}}\n",
            "arms.baseline.environment",
            "did you mean 'old'?",
        ),
        ("environments:\n- {name: a}\n", "environments[0]", "either requirements or an interp"),
        (
            "environments:\n- {name: a, interpreter: p}\n- {name: a, interpreter: q}\n",
            "environments",
            "each name may be used once",
        ),
    ],
)
def test_a_mistake_is_named(only_problem, extra, key, message):
    problem = only_problem(extra)
    assert problem.key == key
    assert message in problem.message


def test_arms_and_environments_are_part_of_what_a_suite_is(accept):
    suites = [
        accept(""),
        accept("arms: {}\n"),
        accept("arms: {candidate: {options: {a: 1}}}\n"),
        accept(ENVIRONMENTS),
    ]
    assert len({suite.identity for suite in suites}) == len(suites)


def test_how_it_is_judged_is_not_part_of_what_a_suite_is(accept):
    assert accept("gate: {alpha: 0.05}\n").identity == accept("").identity
