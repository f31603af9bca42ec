"""Repeats that were not alone on their machine: every headline that rests on them says so."""

import datetime
import shutil

import pytest

from orbax_bench_core.sweep import Pair

NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
SAID = "not alone: others were measured on the same machine meanwhile, so do not trust"
APART = [(0, True), (100, False)]


@pytest.fixture
def fields():
    """Returns when and where one of two neighbours measured its repeat."""

    def of(neighbour, number, apart_s):
        at = datetime.timedelta(seconds=1000 * number + neighbour * apart_s)
        where = {"worker": f"a:{neighbour}:1", "provenance": {"host": {"name": "a"}}}
        return {"started_at": NOON + at, **where}

    return of


@pytest.mark.parametrize(("apart_s", "beside"), APART)
def test_a_sweep_says_so_in_its_choice_and_above_its_times(
    orbax_bench, make_run, make_point, make_record, fields, apart_s, beside
):
    points = [make_point(options={"use_ocdbt": value}, label=str(value)) for value in (True, False)]
    records = [
        make_record(point, number, times={"save": 2.0 - place}, **fields(place, number, apart_s))
        for number in range(2)
        for place, point in enumerate(points)
    ]
    run = make_run(records, points=points, num_repeats=2)
    best = orbax_bench("best", run.root).out.rstrip()
    assert (f"(4 repeats were {SAID} this choice)" in " ".join(best.split())) == beside
    report = orbax_bench("report", run.root)
    assert report.code == 0, report.err
    files = [(run.root / name).read_text() for name in ("report.md", "report.html")]
    for text in (report.out, *files):
        said = " ".join(text.split())
        assert (f"(4 repeats were {SAID} this choice)" in said) == beside
        assert (f"4 repeats were {SAID} comparisons of these times" in said) == beside


@pytest.mark.parametrize(("apart_s", "beside"), APART)
def test_a_verdict_says_so_beside_its_word(
    orbax_bench, make_run, make_point, make_record, fields, apart_s, beside
):
    points = [make_point(options={"number": number}) for number in range(2)]
    pairs = [Pair(baseline=point, candidate=point) for point in points]
    records = [
        make_record(
            pair, index, times={"save": 1.0}, arm=arm, block=0, **fields(place, index, apart_s)
        )
        for place, pair in enumerate(pairs)
        for index, arm in enumerate(("baseline", "candidate"))
    ]
    run = make_run(records)
    said = " ".join(orbax_bench("compare", run.root).out.split())
    assert (f"4 repeats were {SAID} the verdict." in said) == beside
    assert ("; 4 repeats not alone on the machine" in said) == beside
    assert ("4 repeats of 4 arms were not alone" in said) == beside


@pytest.mark.parametrize(("apart_s", "beside"), APART)
def test_a_comparison_of_two_runs_says_so_as_well(
    orbax_bench, make_run, make_point, make_record, fields, tmp_path, apart_s, beside
):
    points = [make_point(options={"number": number}) for number in range(2)]
    records = [
        make_record(point, times={"save": 1.0}, **fields(place, 0, apart_s))
        for place, point in enumerate(points)
    ]
    run = make_run(records, points=points)
    shutil.copytree(run.root, tmp_path / "before")
    compared = orbax_bench("compare", tmp_path / "before", run.root)
    assert (f"4 repeats were {SAID} the verdict." in " ".join(compared.out.split())) == beside
