"""The command that asks what a flag leaves open."""

import datetime

import pytest

from orbax_bench_core.analysis.history.model import PastRun
from orbax_bench_core.analysis.history.words import question
from orbax_bench_core.config import EnvironmentConfig


def run(name, value=1.0, **ran):
    return PastRun(
        run_id=name,
        place=name,
        began_at=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        value=value,
        low=value,
        high=value,
        n=5,
        ran={version.replace("_", "-"): number for version, number in ran.items()},
    )


def environment(*requirements):
    return EnvironmentConfig(name="nightly", requirements=requirements)


def asked(before, after, was=None, now=None, suite="suite.yaml"):
    return question(before, after, (was, now), suite)


BEFORE, AFTER = run("a", 1.0), run("b", 1.2)


def test_releases_of_one_package_are_searched():
    was = environment("orbax-checkpoint==0.12.7", "jax==0.10.2")
    now = environment("orbax-checkpoint==0.12.9", "jax==0.10.2")
    assert asked(BEFORE, AFTER, was, now) == (
        "orbax-bench bisect suite.yaml -o asked/a_b --package orbax-checkpoint --good 0.12.7 "
        "--bad 0.12.9 --with jax==0.10.2"
    )


def test_versions_of_the_records_do_where_there_is_no_environment():
    before = run("a", 1.0, orbax_checkpoint="0.12.7", jax="0.10.2", commit="abc")
    after = run("b", 1.2, orbax_checkpoint="0.12.8", jax="0.10.2", commit="def")
    assert "--package orbax-checkpoint --good 0.12.7 --bad 0.12.8" in asked(before, after)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (("orbax-checkpoint==0.12.8",), ("orbax-checkpoint==0.12.7",)),
        (("orbax-checkpoint==0.12.7", "jax==0.10.1"), ("orbax-checkpoint==0.12.8", "jax==0.10.2")),
        (("/wheels/a-1.whl",), ("/wheels/a-2.whl",)),
        (("a @ git+https://host/a@0123abc",), ("a @ git+https://host/a@4567def",)),
    ],
)
def test_any_other_two_sides_are_compared(was, now):
    command = asked(BEFORE, AFTER, environment(*was), environment(*now))
    assert command.startswith("orbax-bench ab suite.yaml -o asked/a_b --override 'environments=[")
    assert all(requirement in command for requirement in (*was, *now))


def test_an_older_release_that_is_faster_is_compared():
    was, now = environment("a==1"), environment("a==2")
    assert " ab " in asked(run("a", 1.2), run("b", 1.0), was, now)


@pytest.mark.parametrize("environment", [None, EnvironmentConfig(name="x", interpreter="/py")])
def test_without_anything_to_install_there_is_no_command(environment):
    assert asked(BEFORE, AFTER, environment, environment) == ""


def test_nothing_differs_so_there_is_nothing_to_compare():
    was = environment("a==1")
    assert asked(BEFORE, AFTER, was, was) == ""
