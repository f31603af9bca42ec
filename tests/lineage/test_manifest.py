"""The manifest of a run directory."""

from orbax_bench_core.lineage.manifest import SAMPLES, ManifestWriter, read_manifest
from orbax_bench_core.lineage.verify import Verifier


def test_a_record_that_is_written_while_tables_are_made_is_a_change(make_run, make_record):
    record = make_record()
    run = make_run([record])
    writer = ManifestWriter(run)
    run.write_record(make_record(record.point, 1))
    assert len(list(writer.watch(run.records()))) == 2
    writer.note_report()
    assert Verifier(run).chain("records").status == "changed"


def test_only_files_that_are_there_are_noted(make_run, make_record):
    run = make_run([make_record()])
    (run.root / SAMPLES).write_text("rows")
    ManifestWriter(run).note_report()
    made = read_manifest(run).made
    assert list(made) == ["records", SAMPLES]
    assert made[SAMPLES].inputs == {"records": made["records"].digest}
