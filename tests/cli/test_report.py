"""`orbax-bench report`."""

import errno
import json

import pytest

from orbax_bench_core.measure import TIME, Sample
from orbax_bench_core.records import ErrorInfo
from tests.support.paired_runs import make_paired_run  # noqa: F401 - fixture


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


def test_a_comparison_that_nobody_judged_is_judged(orbax_bench, make_paired_run):
    run = make_paired_run(0, 1.5)
    said = orbax_bench("report", run.root, "--details").out
    assert "verdicts.html" in said
    assert "REGRESSION" in (run.root / "verdicts.md").read_text()
    (run.root / "verdicts.json").write_text("as it is")
    orbax_bench("report", run.root)
    assert (run.root / "verdicts.json").read_text() == "as it is"


def test_memory_and_io_of_an_operation_are_told_with_details_and_in_markdown(
    orbax_bench, make_run, make_record, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "80")
    samples = (
        Sample("save_background", 0, TIME, 1.0, "s"),
        Sample("save_background", 0, "7_memory/host_peak_rss_mb", 128.0, "MiB"),
        Sample("save_background", 0, "6_io/disk_read_bytes", 4096.0, "bytes"),
        Sample("save_background", 0, "6_io/disk_write_bytes", 2.0**27, "bytes"),
        Sample("load", 0, TIME, 1.0, "s"),
        Sample("load", 0, "6_io/disk_read_bytes", 0.0, "bytes"),
    )
    run = make_run([make_record(samples=samples)])
    said = orbax_bench("report", run.root, "--details").out.partition("\nMemory, I/O")[2]
    rows = [line.split() for line in said.splitlines()[2:5]]
    assert rows == [
        ["operation", "memory", "I/O"],
        ["save,", "background", "128", "MiB", "128", "MiB", "w"],
        ["load", "(unknown)", "–", "0", "B"],
    ]
    page = (run.root / "report.md").read_text()
    assert "| operation | memory | I/O |" in page
    assert "| 128 MiB | 128 MiB w |" in page
    assert "Memory: the peak of the process during the operation" in said
    assert "Memory: the peak of the process during the operation" in page


def test_a_disk_that_is_full_is_a_message_and_not_a_traceback(orbax_bench, run, monkeypatch):
    def write(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("orbax_bench_core.files.write_atomically", write)
    outcome = orbax_bench("report", run.root)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == (
        f"error: cannot write the results to {run.root}: [Errno 28] No space left on device\n"
        "Every record is kept: make room, or make it writable, then "
        f"`orbax-bench report {run.root}`\n"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"num_hosts": 1,', '"num_hosts": 1000000000,'),
        ('"duration_s": 1.0', '"duration_s": "NaN"'),
        ('"repeat": 0', '"repeat": 10000000000'),
        ('"value": 0.5', '"value": 1e308'),
    ],
)
def test_a_record_of_impossible_numbers_is_left_out_and_named(
    orbax_bench, make_run, make_record, before, after
):
    run = make_run([make_record(times={"save": 0.5}), make_record(repeat=1, times={"save": 0.5})])
    (path, *_) = run.root.glob("records/*/repeat_0/host_0.json")
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))
    outcome = orbax_bench("report", run.root)
    assert outcome.code == 1
    assert "repeat_0/host_0.json: torn: not readable" in outcome.out + outcome.err


@pytest.mark.parametrize("value", ['"NaN"', '"-Infinity"', "1e100", "-1e-320"])
def test_a_metric_of_any_value_is_reported(orbax_bench, make_run, make_record, value):
    records = [
        make_record(repeat=repeat, times={"save": 0.5}, sizes={"save": 7.5}) for repeat in (0, 1)
    ]
    run = make_run(records, num_repeats=2)
    for path in run.root.glob("records/*/*/host_0.json"):
        path.write_text(path.read_text().replace('"value": 7.5', f'"value": {value}'))
    for command in (("report",), ("history",)):
        assert orbax_bench(*command, run.root).code == 0


def test_an_error_of_several_lines_is_no_markup_and_no_order(orbax_bench, make_run, make_record):
    planted = "lost\n\n![x](https://h/x.png) [y](https://h/y)\n::error::planted\n<img src=x>"
    error = ErrorInfo(type="E", message=planted, traceback=f"Traceback\n{planted}")
    run = make_run([make_record(status="failed", error=error)])
    outcome = orbax_bench("report", run.root)
    lines = (outcome.out + outcome.err).splitlines()
    assert not [line for line in lines if line.lstrip().startswith("::")]
    page = (run.root / "report.md").read_text()
    prose = "".join(page.split("```")[::2])
    assert "error::planted" in prose
    assert "](https" not in prose.replace("\\]", "").partition("<details><summary>")[0]
    assert not [line for line in prose.splitlines() if line.startswith(("![", "::", "<img"))]


def test_a_run_of_a_newer_release_is_called_newer(orbax_bench, make_run, make_record):
    run = make_run([make_record()])
    info = json.loads((run.root / "run.json").read_text()) | {"hosts": 3}
    (run.root / "run.json").write_text(json.dumps(info))
    done = orbax_bench("report", run.root)
    assert done.code == 2
    assert (
        "written by a newer orbax-bench (this one knows no hosts): upgrade orbax-bench\n"
        in done.err
    )
