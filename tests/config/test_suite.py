"""Identity of suites that may share a run directory."""

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
