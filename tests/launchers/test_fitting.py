"""Points beside the hosts of the slices that they run on."""

from pathlib import Path

import pytest

from orbax_bench_core.cli.run import EXPERIMENTAL
from orbax_bench_core.config import parse_suite
from orbax_bench_core.errors import UserError
from orbax_bench_core.launchers import PLACES, named_processes, parse_slice, require_whole_slices

PAGES = Path(__file__).parents[2] / "docs" / "launch"
SUITE = """
suite_name: tiny
checkpoint_config: {spec: {a: {dtype: float32, shape: [8, 2]}}}
benchmarks: [{generator: save_restore, options: {}}]
"""


def refusal(processes, tpu, slices=1):
    with pytest.raises(UserError) as error:
        require_whole_slices(processes, parse_slice(tpu), slices)
    return str(error.value)


@pytest.mark.parametrize(
    ("processes", "tpu", "slices"),
    [([8], "v5e:4x8", 1), ([1], "v5e:2x4", 1), ([16, 16], "v5e:4x8", 2)],
)
def test_a_point_of_as_many_processes_as_there_are_hosts_fits(processes, tpu, slices):
    require_whole_slices(processes, parse_slice(tpu), slices)


def test_a_point_that_leaves_hosts_of_a_slice_idle_is_refused_with_the_numbers():
    assert refusal([3, 8, 2], "v5e:4x8") == (
        "1 x TPU v5e:4x8 has 8 hosts of 4 chips, and a point of execution.processes 2 and 3 does "
        "not use all of them; a slice is only used whole: set 8, or leave it out"
    )
    assert "2 x TPU v5e:4x8 has 16 hosts of 4 chips" in refusal([8], "v5e:4x8", 2)
    assert "1 x TPU v5e:2x4 has 1 host of 8 chips" in refusal([2], "v5e:2x4")


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ("", ()),
        ("execution: {warmups: 0}", ()),
        ("execution: {processes: 1}", (1,)),
        ("execution: {processes: [2, 4]}", (2, 4)),
        ("arms: {candidate: {processes: 3}}", (3,)),
    ],
)
def test_what_a_suite_names_itself_counts(more, named):
    assert named_processes(parse_suite(SUITE + more).suite) == named


@pytest.mark.parametrize("place", EXPERIMENTAL)
def test_the_page_of_a_place_that_no_launcher_has_met_says_so(place):
    page = (PAGES / f"{place}.md").read_text()
    assert f"\nExperimental: never run on a real {EXPERIMENTAL[place]}.\n" in page


@pytest.mark.parametrize("place", PLACES)
def test_the_page_of_a_place_explains_each_setting(place):
    pages = [place, "jobset"] if place == "pathways" else [place]
    text = "".join((PAGES / f"{page}.md").read_text() for page in pages if page != "processes")
    assert [key for key in PLACES[place].settings.model_fields if f"`{key}`" not in text] == []
