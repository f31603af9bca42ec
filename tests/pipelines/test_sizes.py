"""What does not reach the steps of a service is refused before it is sent, with the numbers."""

import pytest

pytest.importorskip("kfp")

from orbax_bench_core.errors import UserError
from orbax_bench_pipelines.preparing import check_inputs, checked_steps
from orbax_bench_pipelines.targets import Target


@pytest.fixture
def points(make_point):
    """Makes points that differ by an option; most of them only as far as their ids go."""
    return lambda number: [make_point(options={"n": each}) for each in range(number)]


@pytest.mark.parametrize("target", [Target.KFP, Target.VERTEX])
def test_more_steps_than_a_loop_has_are_refused(points, target):
    with pytest.raises(UserError) as refused:
        checked_steps(points(302), 1, 1, target)
    said = (
        "302 points with 1 in each step are 302 steps of one loop, and a pipeline has 300 at most"
    )
    assert said in str(refused.value)
    assert "give 2 or more" in str(refused.value)
    assert checked_steps(points(302), 1, 2, target) == 151
    assert checked_steps(points(302), 1, 0, target) < 300
    with pytest.raises(UserError, match="302 steps of 2 loops"):
        checked_steps(points(151), 1, 1, target, loops=2)


def test_a_list_of_points_that_no_service_keeps_is_refused(points):
    with pytest.raises(
        UserError, match=r"ids of 77000 points have 10\d+ bytes, .* 1000000 at most"
    ):
        checked_steps(points(1) * 77_000, 1, 1000, Target.KFP)


def test_what_a_step_is_given_fits_into_one_argument():
    check_inputs({"suite": "x" * 110_000, "fixture": ""}, Target.KFP)
    with pytest.raises(UserError) as refused:
        check_inputs(
            {"suite": "x" * 60_000, "fixture": "\n" * 30_000, "promote": False}, Target.KFP
        )
    assert "120028 bytes as JSON (suite 60002, fixture 60002)" in str(refused.value)
    assert "at most 114688 do: split the suite" in str(refused.value)


def test_a_template_of_argo_in_a_suite_is_refused_with_its_line():
    text = "suite_name: x\n# made by {{workflow.name}}\n"
    with pytest.raises(UserError, match=r"suite, line 2: \{\{ begins a template of Argo"):
        check_inputs({"suite": text}, Target.KFP)
    check_inputs({"suite": text}, Target.VERTEX)
