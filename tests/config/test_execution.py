"""The `execution` block."""

import pytest

from orbax_bench_core.config import SuiteError, parse_suite
from orbax_bench_core.config.execution import ExecutionConfig


@pytest.mark.parametrize(
    ("given", "key", "message"),
    [
        ("{warmups: -1}", "warmups", "expected greater than or equal to 0, got -1"),
        ("{verify: on}", "verify", "expected 'digest' or 'off', got true"),
        ("{timeout_s: .nan}", "timeout_s", "expected less than or equal to 31536000, got nan"),
        ("{processes: []}", "processes", "an empty list leaves nothing to run"),
        ("{cache: hot}", "cache[0]", "expected 'warm' or 'cold', got 'hot'"),
        ("{cache: []}", "cache", "an empty list leaves nothing to run"),
        ("{host_memory: new}", "host_memory[0]", "expected 'reused', 'fresh' or 'default'"),
        ("", "", "expected a mapping, got null"),
    ],
)
def test_a_bad_key_is_named_at_its_line(only_problem, given, key, message):
    problem = only_problem(f"execution: {given}\n")
    assert (problem.line, problem.key) == (4, f"execution.{key}" if key else "execution")
    assert message in problem.message


def test_defaults_may_be_written_out(accept):
    text = "execution: {processes: 1, cache: warm, durable: false, warmups: 1, verify: digest}\n"
    assert accept(text).execution == ExecutionConfig()


@pytest.mark.parametrize("given", ["jax=>3", "jax 0.9", "=1", "jax=0.9"])
def test_what_pip_could_not_install_is_no_requirement(given):
    with pytest.raises(SuiteError, match="is not a requirement; write name==version") as error:
        parse_suite(
            "suite_name: s\nbenchmarks: [{generator: save_restore, options: {}}]\n"
            f"environments: [{{name: old, requirements: ['{given}']}}]\n"
        )
    assert error.value.problems[0].line == 3
    assert f"old: {given!r}" in str(error.value)


REQUIREMENTS = [
    "jax==0.10.2",
    "jax>=0.9,<0.11",
    "orbax-checkpoint[gcs]==0.12.8",
    "jax @ ./wheels/jax.whl",
    "./a.whl",
    "here.tar.gz",
    "https://h/a.whl",
    "git+https://h/r",
    "jax ; python_version > '3'",
]


@pytest.mark.parametrize("given", REQUIREMENTS)
def test_what_pip_takes_is_a_requirement(given):
    suite = parse_suite(
        "suite_name: s\nbenchmarks: [{generator: save_restore, options: {}}]\n"
        f'environments: [{{name: old, requirements: ["{given}"]}}]\n'
    ).suite
    assert suite.environments[0].requirements == (given,)
