"""The manifest of a run directory."""

from orbax_bench_core.analysis.best import LEVEL, Search, Stage, parse_goal
from orbax_bench_core.lineage import trace
from orbax_bench_core.lineage.manifest import SAMPLES, ManifestWriter, read_manifest
from orbax_bench_core.lineage.verify import Verifier
from orbax_bench_core.records import RunFile
from orbax_bench_core.steps import publish


def test_a_record_that_is_written_while_tables_are_made_is_a_change(make_run, make_record):
    record = make_record()
    run = make_run([record])
    writer = ManifestWriter(run)
    run.write_record(make_record(record.point, 1))
    for each in run.records():
        writer.add(each)
    writer.note_report()
    assert Verifier(run).chain("records").status == "changed"


def test_only_files_that_are_there_are_noted(make_run, make_record):
    run = make_run([make_record()])
    (run.root / SAMPLES).write_text("rows")
    ManifestWriter(run).note_report()
    made = read_manifest(run).made
    assert list(made) == ["records", SAMPLES]
    assert made[SAMPLES].inputs == {"records": made["records"].digest}


def searched(run, run_id):
    """Writes what a search of a run dropped, and publishes its report."""
    stages = (Stage(after=3, dropped=(), failed=("0" * 12,)),)
    found = Search(run_id=run_id, goal=parse_goal("save"), level=LEVEL, stages=stages)
    (run.root / RunFile.SEARCH).write_text(found.model_dump_json())
    publish(run)
    return {link.name: link.status for link in trace(str(run.root / "report.md")).all_links()}


def test_what_a_search_dropped_is_in_the_lineage_of_the_report(make_run, make_record):
    run = make_run([make_record(times={"save": 0.5})])
    assert searched(run, "run")[RunFile.SEARCH] == "unchanged"
    assert trace(str(run.root / RunFile.SEARCH)).made_from[0].what == "records"
    (run.root / RunFile.SEARCH).write_text("{}")
    chain = trace(str(run.root / "report.md"))
    assert {link.name: link.status for link in chain.all_links()}[RunFile.SEARCH] == "changed"


def test_the_search_of_another_run_in_the_same_folder_is_not(make_run, make_record):
    run = make_run([make_record(times={"save": 0.5})])
    assert RunFile.SEARCH not in searched(run, "another")
