"""Folders of past runs: nights of a comparison, a sweep, and what cannot be read."""

import shutil
from pathlib import Path

import pytest

from orbax_bench_core.analysis.verdicts import compare_stored, write_verdicts
from tests.support.paired_runs import (  # noqa: F401 - fixtures
    make_nightly,
    make_paired_run,
    make_separate_run,
)

NASTY = "<script>alert(1)</script>"


@pytest.fixture
def nights(once, tmp_path_factory, make_nightly, make_separate_run, make_point):
    """A folder of 20 nights, slower from the thirteenth on, two other runs and a torn one.

    Nobody changes it.
    """

    def make():
        pair = make_point(label=NASTY, candidate=make_point(label=NASTY))
        ratios, versions = [1.0] * 12 + [1.5] * 8, ["0.12.7"] * 12 + ["0.12.8"] * 8
        runs = make_nightly(ratios, versions, pair=pair, blocks=3)
        for run in runs[-2:]:
            write_verdicts(run, compare_stored(str(run.root), None))
            (run.root / "verdicts.html").write_text("verdicts")
        for day in (20, 21):
            other = make_separate_run(day, folder=f"other {day}")
            info = other.read_info()
            other.write_info(info.model_copy(update={"suite_name": "a sweep"}))
            (other.root / "report.html").write_text("report")
            runs.append(other)
        folder = tmp_path_factory.mktemp("site") / "nights"
        for run in runs:
            shutil.copytree(run.root, folder / run.root.name)
        (folder / "torn").mkdir()
        (folder / "torn" / "run.json").write_text("{")
        return folder

    return once("nights of a site", make)


@pytest.fixture
def copied(nights, tmp_path):
    """The same folder, to be written to."""
    return Path(shutil.copytree(nights, tmp_path / "copied"))
