"""`orbax-bench best`."""

import json
import shutil

import pytest

from orbax_bench_core.records import ErrorInfo
from tests.support.shown import next_command


@pytest.fixture
def sweep(make_run, make_point, make_record):
    """A run of two points of four rounds; the second is faster."""
    points = [make_point(options={"use_ocdbt": value}, label=str(value)) for value in (True, False)]
    records = [
        make_record(
            point,
            number,
            times={"save": (2.0 - place) * (1 + number / 100), "load": 1.0 + number / 100},
            worker=f"host:{number}:0",
        )
        for number in range(4)
        for place, point in enumerate(points)
    ]
    return str(make_run(records, points=points, num_repeats=4).root)


def test_it_ends_with_the_answer_and_a_command_that_is_accepted(orbax_bench, sweep):
    done = orbax_bench("best", sweep)
    assert (done.code, done.err) == (0, "")
    assert "\n✓ BEST: use_ocdbt=false for saves, 1.02 s, " in done.out
    assert orbax_bench(*next_command(done.out)).code == 0
    assert len(done.out.splitlines()) <= 20


def test_a_setting_whose_repeats_failed_is_named_next_to_the_choice(
    orbax_bench, make_run, make_point, make_record
):
    """The fastest of three: it was left out of the answer without a word."""
    sizes = (1, 2, 3)
    points = [make_point(options={"size": size}, label=str(size)) for size in sizes]
    records = [
        make_record(
            point,
            number,
            times={"save": size * (1 + number / 100)},
            worker=f"host:{number}:0",
            **({"status": "failed", "error": lost} if size == 1 and number else {}),
        )
        for lost in [ErrorInfo(type="OSError", message="quota exceeded")]
        for number in range(4)
        for size, point in zip(sizes, points, strict=True)
    ]
    done = orbax_bench("best", make_run(records, points=points, num_repeats=4).root)
    assert done.code == 0
    assert "; 1 setting cannot be chosen: size=1: 3 of 4 repeats did not pass" in " ".join(
        done.out.split()
    )


def test_json_has_everything(orbax_bench, sweep):
    found = json.loads(orbax_bench("best", sweep, "--goal", "save=2,load=1", "--json").out)
    (case,) = found["cases"]
    assert found["goal"]["weights"] == {"save": 2 / 3, "load": 1 / 3}
    assert case["recommendation"]["suite"].startswith("benchmarks:")


def test_a_bound_that_nothing_is_known_to_keep_recommends_nothing(orbax_bench, sweep):
    done = orbax_bench("best", sweep, "--peak-memory", "1GiB")
    assert done.code == 1
    assert "NONE: no point can be recommended for saves: " in done.out
    assert "its peak memory is unknown" in done.out
    assert next_command(done.out) == [
        "best",
        str(sweep),
    ]  # no repeat failed; the bound is in the way


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--goal", "lod"), "no repeat has measured 'lod'"),
        (("--goal", "save=-1"), "weights above 0"),
        (("--goal", "load=2,save:cpu=1"), "save:cpu is a CPU time, by which `best` ranks nothing"),
        (("--peak-memory", "much"), "--peak-memory: 'much' is not a size"),
        (("--peak-memory", "9" * 400), "is not a size; give a number with KiB"),
    ],
)
def test_mistakes_are_one_message(orbax_bench, sweep, arguments, said):
    done = orbax_bench("best", sweep, *arguments)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err


def test_a_run_that_has_measured_nothing_is_told_as_such(orbax_bench, sweep):
    shutil.rmtree(f"{sweep}/records")
    done = orbax_bench("best", sweep)
    assert (done.code, done.err) == (
        2,
        f"error: {sweep} has no repeat that was measured yet; run its suite into it first\n",
    )
