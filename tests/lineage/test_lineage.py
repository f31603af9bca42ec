"""Metadata of an artifact."""

import json

import pytest

from orbax_bench_core.lineage.artifacts import (
    LISTED,
    artifact_metadata,
    bounded_metrics,
    checkpoint_metadata,
    output_metadata,
    records_metadata,
)
from orbax_bench_core.records import PACKAGES, package_version

SUITE = "suite_name: s\nbenchmarks:\n- generator: save_restore\n  options: {}\n"
PINNED = "place/orbax-bench@sha256:" + "ab" * 32


def test_an_artifact_of_a_run_names_the_run(make_run, make_record):
    run = make_run([make_record()])
    info, metadata = run.read_info(), artifact_metadata("samples", run, point_ids=["a", "b"])
    assert metadata["orbax_bench_type"] == "samples"
    assert (metadata["run_id"], metadata["run_directory"]) == (info.run_id, str(run.root))
    assert metadata["config_hash"] == info.suite_identity
    assert metadata["point_ids"] == "a,b"
    assert metadata["point_count"] == "2"


@pytest.mark.parametrize(
    "key",
    [
        *("run_id", "run_directory", "config_hash", "point_ids", "point_count"),
        *("point_ids_digest", "digest", "inputs", "image", "image_digest"),
    ],
)
def test_what_is_not_known_is_the_word_unknown(monkeypatch, key):
    monkeypatch.delenv("ORBAX_BENCH_IMAGE", raising=False)
    assert artifact_metadata("checkpoint")[key] == "unknown"


def test_every_value_is_text(make_run, make_record):
    run = make_run([make_record()])
    metadata = artifact_metadata("records", run, point_ids=["a"], inputs={"config": "sha256:1"})
    assert {type(value) for value in metadata.values()} == {str}


@pytest.mark.parametrize("package", PACKAGES)
def test_an_artifact_names_the_versions_it_was_made_with(package):
    metadata = artifact_metadata("records")
    assert metadata[f"version_{package}"] == package_version(package)


@pytest.mark.parametrize(
    ("image", "digest"),
    [(PINNED, PINNED.partition("@")[2]), ("orbax-bench:0.1.0", "unknown"), ("", "unknown")],
)
def test_the_digest_of_an_image_is_that_of_its_reference(monkeypatch, image, digest):
    monkeypatch.setenv("ORBAX_BENCH_IMAGE", image)
    metadata = artifact_metadata("records")
    named = image if digest != "unknown" else "unknown"
    assert (metadata["image"], metadata["image_digest"]) == (named, digest)


def test_many_points_are_told_by_number_and_digest():
    ids = [f"{index:012x}" for index in range(10_000)]
    metadata = artifact_metadata("samples", point_ids=ids)
    assert metadata["point_count"] == "10000"
    assert len(json.dumps(metadata)) < 2000
    again = artifact_metadata("samples", point_ids=ids[::-1])
    assert again["point_ids_digest"] == metadata["point_ids_digest"]
    fewer = artifact_metadata("samples", point_ids=ids[1:])
    assert fewer["point_ids_digest"] != metadata["point_ids_digest"]


def test_many_inputs_are_told_by_number_and_digest():
    inputs = {f"run {index}": "sha256:0" for index in range(LISTED + 1)}
    [[name, digest]] = json.loads(artifact_metadata("rate", inputs=inputs)["inputs"]).items()
    assert name == f"{LISTED + 1} inputs"
    assert digest.startswith("sha256:")


def test_metrics_of_many_points_fit_into_what_an_artifact_may_hold():
    values = [(f"save_restore[chunk_mb={n}] {n:012x} save s", float(n)) for n in range(10_000)]
    kept = bounded_metrics(values)
    assert len(json.dumps(kept)) < 150_000
    assert next(iter(kept)) == values[0][0]
    assert kept["not shown"] == 10_000 - (len(kept) - 1)


def test_metrics_of_few_points_are_all_there():
    assert bounded_metrics([("a s", 1.0), ("b s", 2.0)]) == {"a s": 1.0, "b s": 2.0}


def test_the_artifact_of_a_file_that_was_never_published_has_no_digest(make_run, make_record):
    run = make_run([make_record()])
    metadata = output_metadata(run, "samples.parquet", "samples")
    assert metadata["digest"] == metadata["inputs"] == "unknown"
    assert metadata["run_directory"] == str(run.root)


def test_records_name_their_point_and_suite(make_run, make_record, tmp_path):
    record = make_record()
    run = make_run([record])
    (tmp_path / "records").write_text("{}\n")
    metadata = records_metadata(
        str(run.root), record.point.model_dump_json(), str(tmp_path / "records")
    )
    assert metadata["point_ids"] == record.point_id
    assert set(json.loads(metadata["inputs"])) == {"config", "point", "records"}


def test_records_name_the_checkpoint_that_was_loaded(make_run, make_record, make_point, tmp_path):
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "_METADATA").write_text("{}")
    path = str(tmp_path / "checkpoint")
    record = make_record(make_point(checkpoint={"path": path}))
    run = make_run([record])
    (tmp_path / "records").write_text("{}\n")
    metadata = records_metadata(
        str(run.root), record.point.model_dump_json(), str(tmp_path / "records")
    )
    suite = f"checkpoint_config: {{path: {path}}}\n{SUITE}"
    made = checkpoint_metadata(path, suite, "")
    assert json.loads(metadata["inputs"])[f"checkpoint:{path}"] == made["digest"]


def test_a_suite_that_loads_nothing_has_no_checkpoint():
    metadata = checkpoint_metadata(None, SUITE, "")
    assert (metadata["path"], metadata["digest"]) == ("none", "unknown")
