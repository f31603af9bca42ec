"""Folders of past runs: nights of a comparison, a sweep, and what cannot be read."""

import datetime
import shutil
import zlib
from pathlib import Path

import pytest

from orbax_bench_core.analysis.verdicts import compare_stored, write_verdicts
from tests.support.paired_runs import (  # noqa: F401 - fixtures
    make_nightly,
    make_paired_run,
    make_separate_run,
    orbax,
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
def make_suite(make_paired_run, make_point):
    """Writes nights of a suite below a folder, one a day, the last `ago` hours ago.

    Each takes the ratio that is given; those of the last `judged` nights have verdicts.
    """

    def make(folder, name, ratios, *, ago=4, judged=4, blocks=10, version=None, **fields):
        point = make_point(options={"of": name}, label=name)
        pair = make_point(options={"of": name}, label=name, candidate=point)
        runs = []
        first = zlib.crc32(name.encode()) % 9000  # no two suites have a run of the same id
        for at, ratio in enumerate(ratios):
            night = f"{name} {at:02}".replace(" ", "-")
            ran = None if version is None else orbax(version(ratio))
            run = make_paired_run(
                first + at,
                ratio,
                pair=pair,
                blocks=blocks,
                folder=folder / night,
                provenance=ran,
                **fields,
            )
            age = datetime.timedelta(days=len(ratios) - 1 - at, hours=ago)
            begun = datetime.datetime.now(datetime.UTC) - age
            changed = {"suite_name": name, "created_at": begun}
            run.write_info(run.read_info().model_copy(update=changed))
            if len(ratios) - at <= judged:
                write_verdicts(run, compare_stored(str(run.root), None))
                (run.root / "verdicts.html").write_text("verdicts")
            runs.append(run)
        return runs

    return make


@pytest.fixture
def copied(nights, tmp_path):
    """The same folder, to be written to."""
    return Path(shutil.copytree(nights, tmp_path / "copied"))
