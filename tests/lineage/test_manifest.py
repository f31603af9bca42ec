"""The manifest of a run directory."""

import json
import os
from pathlib import Path

import pytest

from orbax_bench_core.lineage import check, digests
from orbax_bench_core.lineage.manifest import SAMPLES, TENSORBOARD, ManifestWriter, read_manifest
from orbax_bench_core.provenance import UNKNOWN
from orbax_bench_core.records import Run, RunFile


def test_a_record_that_is_written_while_tables_are_made_is_a_change(make_run, make_record):
    record = make_record()
    run = make_run([record])
    writer = ManifestWriter(run)
    run.write_record(make_record(record.point, 1))
    for each in Run(run).records():
        writer.add(each)
    writer.note_report()
    assert check(run, "records")[0].status == "changed"


def test_only_files_that_are_there_are_noted(make_run, make_record):
    run = make_run([make_record()])
    (run.root / SAMPLES).write_text("rows")
    ManifestWriter(run).note_report()
    made = read_manifest(run).made
    assert list(made) == ["records", SAMPLES]
    assert made[SAMPLES].inputs == {"records": made["records"].digest}


def test_a_file_larger_than_any_is_not_read_for_its_digest(make_run, make_record):
    run = make_run([make_record()])
    with Path(run.root / RunFile.LIMITS).open("wb") as file:
        file.truncate(2**40)
    ManifestWriter(run).note_report()
    assert read_manifest(run).made[RunFile.LIMITS].digest == UNKNOWN
    assert check(run, RunFile.LIMITS)[0].digest == ""


def test_a_name_that_is_no_text_counts_for_a_digest(make_run, make_record):
    run = make_run([make_record()])
    folder = run.root / TENSORBOARD
    folder.mkdir()
    found = set()
    for name in (b"caf\xe9", b"caf\xe8"):
        (folder / os.fsdecode(name)).write_text("")
        ManifestWriter(run).note_report()
        found.add(read_manifest(run).made[TENSORBOARD].digest)
    assert len(found - {UNKNOWN}) == 2


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname"])
def test_nothing_outside_of_a_run_directory_is_read_for_it(make_run, make_record, tmp_path, name):
    run = make_run([make_record()])
    (run.root.parent / "secret").write_text("secret")
    ManifestWriter(run).note_report()
    made = {"digest": "sha256:1", "inputs": {}, "versions": {}, "image": "unknown"}
    content = json.loads((run.root / "lineage.json").read_text())
    content["made"][name] = made
    (run.root / "lineage.json").write_text(json.dumps(content))
    assert check(run, name)[0].digest == ""


def planted(run, **inputs):
    """Has the manifest of a run say that things were made from others."""
    ManifestWriter(run).note_report()
    content = json.loads((run.root / "lineage.json").read_text())
    for name, of in inputs.items():
        entry = content["made"].setdefault(name, {"digest": "sha256:1", "image": "unknown"})
        entry["inputs"] = dict.fromkeys(of, "sha256:1")
    (run.root / "lineage.json").write_text(json.dumps(content))


@pytest.mark.parametrize(
    "inputs",
    [
        {"records": ("records",)},
        {"a0": ("records",), "records": ("a0",)},
        {"a0": ("b0",), "b0": ("a0",)},
        {f"a{level}": (f"a{level + 1}",) for level in range(2000)},
    ],
    ids=["records", "records of a file", "each other", "chain"],
)
def test_a_manifest_that_leads_nowhere_is_checked_all_the_same(make_run, make_record, inputs):
    run = make_run([make_record()])
    planted(run, **inputs)
    found = check(run)
    assert len({each.name for each in found}) == len(found)
    assert not {each.what for each in check(run, next(iter(inputs)))}.isdisjoint({"a0", "records"})


def test_a_walk_below_what_is_no_checkpoint_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(digests, "_MOST_FILES", 10)
    for index in range(11):
        (tmp_path / f"{index}").touch()
    assert digests.checkpoint_digest(str(tmp_path)) == UNKNOWN
    assert digests.bytes_digest(str(tmp_path)) == UNKNOWN


def test_what_the_kernel_makes_as_one_reads_is_not_waited_for():
    assert digests.file_digest("/proc/version") == digests.content_digest(b"")
