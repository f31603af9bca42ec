"""`orbax-bench report`."""

import errno

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
    assert outcome.err == (
        f"error: {tmp_path} is not a run directory: it has no run.json; give one that "
        "`orbax-bench run` has made\n"
    )


def test_a_disk_that_is_full_is_a_message_and_not_a_traceback(orbax_bench, run, monkeypatch):
    def write(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("orbax_bench_core.steps.reporting.write_atomically", write)
    outcome = orbax_bench("report", run.root)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == (
        f"error: cannot write the results to {run.root}: [Errno 28] No space left on device\n"
        "Every record is kept: make room, or make it writable, then "
        f"`orbax-bench report {run.root}`\n"
    )


def test_an_empty_path_is_refused(orbax_bench, write_suite):
    for command in (("report", ""), ("run", write_suite(), "-o", "")):
        outcome = orbax_bench(*command)
        assert outcome.code == 2
        assert outcome.err == (
            "error: the path is empty; name a directory, `.` for the one that this runs in\n"
        )
