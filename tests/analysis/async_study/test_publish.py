"""The files of a study."""

import pytest

from orbax_bench_core.analysis.async_study.model import AsyncStudy
from orbax_bench_core.errors import UserError
from orbax_bench_core.lineage import read_manifest
from orbax_bench_core.steps import publish_async_study

FILES = ["async_study.html", "async_study.json", "async_study.md"]


@pytest.mark.slow
def test_three_files_are_written_and_what_they_were_made_from(make_sizes):
    run = make_sizes()
    before = {path.name for path in run.root.iterdir()}
    publish_async_study(run)
    assert sorted({path.name for path in run.root.iterdir()} - before) == [*FILES, "lineage.json"]
    made = read_manifest(run).made
    assert made["async_study.json"].inputs == {"records": made["records"].digest}
    assert made["async_study.html"].inputs == {"async_study.json": made["async_study.json"].digest}


@pytest.mark.slow
def test_the_json_is_the_study(make_sizes):
    run = make_sizes()
    study = publish_async_study(run)
    assert AsyncStudy.model_validate_json((run.root / "async_study.json").read_text()) == study


@pytest.mark.slow
def test_the_same_records_give_the_same_files(make_sizes):
    run = make_sizes()
    publish_async_study(run)
    before = [(run.root / name).read_bytes() for name in FILES]
    publish_async_study(run)
    assert [(run.root / name).read_bytes() for name in FILES] == before


def test_nothing_is_written_of_a_run_that_has_no_study(make_run, make_record):
    run = make_run([make_record(times={"save": 1.0})])
    with pytest.raises(UserError, match="no point has the option `async_enabled`"):
        publish_async_study(run)
    assert not list(run.root.glob("async_study.*"))
