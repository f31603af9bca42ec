"""`orbax-bench report`."""

import pytest


@pytest.fixture
def run(make_run, make_record):
    return make_run([make_record(times={"save": 0.5})])


@pytest.mark.parametrize("name", ["samples.parquet", "summary.csv", "report.md", "report.html"])
def test_an_output_that_is_gone_is_made_again(orbax_bench, run, name):
    orbax_bench("report", run.root)
    before = (run.root / name).read_bytes()
    (run.root / name).unlink()
    orbax_bench("report", run.root)
    assert (run.root / name).read_bytes() == before


def test_the_results_are_shown(orbax_bench, run):
    outcome = orbax_bench("report", run.root)
    assert outcome.code == 0
    assert "save_restore[use_ocdbt=true]" in outcome.out
    assert "500 ms" in outcome.out


def test_what_is_no_run_directory_is_refused(orbax_bench, tmp_path):
    outcome = orbax_bench("report", tmp_path)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == f"error: {tmp_path} is not a run directory: it has no run.json\n"
