"""Mistakes in a comparison that are found before anything is measured."""

import pytest

pytest.importorskip("kfp")

from orbax_bench_core.config import parse_suite
from orbax_bench_core.errors import UserError
from orbax_bench_core.sweep import expand
from orbax_bench_pipelines.definitions import PIPELINES, find_pipeline
from orbax_bench_pipelines.preparing import check_baseline, compared

SUITE = """\
suite_name: small
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks: [{generator: save_restore, options: {}}]
"""
ARMS = "arms: {candidate: {options: {use_ocdbt: false}}}\n"
TAKERS = [each.name for each in PIPELINES if each.takes_arms]


def problem(pipeline, text, **parameters):
    with pytest.raises(UserError) as caught:
        compared(find_pipeline(pipeline), parse_suite(text, "suite.yaml"), parameters)
    return str(caught.value)


def test_arms_that_are_given_are_those_of_the_suite():
    given = {"arms": "{candidate: {options: {use_ocdbt: false}}}"}
    suite = compared(find_pipeline("regression"), parse_suite(SUITE), given).suite
    assert suite.arms.candidate.options == {"use_ocdbt": False}


def test_a_suite_for_a_stored_baseline_needs_no_arms():
    loaded = parse_suite(SUITE)
    assert compared(find_pipeline("regression"), loaded, {"baseline": "b"}) is loaded


@pytest.mark.parametrize("pipeline", ["sweep", "calibration"])
def test_a_pipeline_that_takes_no_arms_names_those_that_do(pipeline):
    assert f"use --pipeline {' or '.join(TAKERS)}" in problem(pipeline, SUITE + ARMS)


@pytest.mark.parametrize("pipeline", TAKERS)
def test_nothing_to_compare_says_what_to_give(pipeline):
    said = problem(pipeline, SUITE)
    assert said.startswith(f"suite.yaml:1: the pipeline {pipeline} has nothing to compare")
    assert "`arms` block" in said


def test_arms_and_a_baseline_exclude_each_other():
    assert problem("regression", SUITE + ARMS, baseline="b").startswith("baseline: ")


def test_arms_given_twice_are_refused():
    said = problem("regression", SUITE + ARMS, arms="{}")
    assert said == "suite.yaml:4: arms: given in the file as well as on the command line"


@pytest.fixture
def stored(make_run, make_record):
    """A run directory with one passed repeat."""
    [point] = expand(parse_suite(SUITE)).points
    return str(make_run([make_record(point=point)]).root)


def test_a_baseline_with_a_point_of_the_suite_is_taken(stored):
    check_baseline(stored, expand(parse_suite(SUITE)).points)


def test_a_baseline_of_other_points_says_in_what_they_differ(stored):
    other = expand(parse_suite(SUITE.replace("options: {}", "options: {use_ocdbt: false}")))
    with pytest.raises(UserError, match=r"none of the 1 points .* options.use_ocdbt: false, was"):
        check_baseline(stored, other.points)


def test_a_baseline_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UserError, match="none does not exist"):
        check_baseline(str(tmp_path / "none"), expand(parse_suite(SUITE)).points)


def test_a_registry_without_any_says_how_to_make_one(tmp_path):
    with pytest.raises(UserError, match="orbax-bench baseline capture"):
        check_baseline(str(tmp_path), expand(parse_suite(SUITE)).points)
