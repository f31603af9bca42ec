"""Metadata of an artifact."""

import json
import types
from pathlib import Path

import pytest

from orbax_bench_core.lineage import artifacts
from orbax_bench_core.provenance import package_version

SUITE = "suite_name: s\nbenchmarks:\n- generator: save_restore\n  options: {}\n"
PINNED = "place/orbax-bench@sha256:" + "ab" * 32


def test_an_artifact_of_a_run_names_the_run(make_run, make_record):
    run = make_run([make_record()])
    info, metadata = run.read_info(), artifacts.artifact_metadata("samples", run)
    assert metadata["orbax_bench_type"] == "samples"
    assert (metadata["run_id"], metadata["run_directory"]) == (info.run_id, str(run.root))
    assert (metadata["suite"], metadata["config_hash"]) == (info.suite_name, info.suite_identity)


def test_what_is_not_known_is_the_word_unknown(monkeypatch):
    monkeypatch.delenv("ORBAX_BENCH_IMAGE", raising=False)
    metadata = artifacts.artifact_metadata("checkpoint")
    known = ("run_id", "run_directory", "suite", "config_hash", "path", "digest", "image")
    assert {metadata[key] for key in known} == {"unknown"}


def test_every_value_is_text_and_all_of_it_is_small(make_run, make_record):
    run = make_run([make_record()])
    metadata = artifacts.artifact_metadata("records", run, digest="sha256:1", path="gs://b/o")
    assert {type(value) for value in metadata.values()} == {str}
    for package in ("orbax-bench", "jax", "orbax-checkpoint"):
        assert metadata[f"version_{package}"] == package_version(package)
    assert len(json.dumps(metadata)) < 1000


@pytest.mark.parametrize(
    ("image", "digest"),
    [(PINNED, PINNED.partition("@")[2]), ("orbax-bench:0.1.0", "unknown"), ("", "unknown")],
)
def test_an_image_is_known_by_its_digest_alone(monkeypatch, image, digest):
    monkeypatch.setenv("ORBAX_BENCH_IMAGE", image)
    metadata = artifacts.artifact_metadata("records")
    named = image if digest != "unknown" else "unknown"
    assert metadata["image"] == named


def test_metrics_of_many_points_fit_into_what_a_step_is_given():
    values = [(f"save_restore[chunk_mb={n}] {n:012x} save s", float(n)) for n in range(10_000)]
    kept = artifacts.bounded_metrics(values)
    assert len(json.dumps(kept)) < 40_000
    assert next(iter(kept)) == values[0][0]
    assert kept["not shown"] == 10_000 - (len(kept) - 1)
    assert artifacts.bounded_metrics([("a s", 1.0), ("b s", 2.0)]) == {"a s": 1.0, "b s": 2.0}


def test_the_artifact_of_a_file_that_was_never_published_has_no_digest(make_run, make_record):
    run = make_run([make_record()])
    metadata = artifacts.output_metadata(run, "samples.parquet", "samples")
    assert metadata["digest"] == "unknown"
    assert metadata["path"] == str(run.root / "samples.parquet")


def test_a_checkpoint_has_a_digest_that_leaves_its_arrays_unread(tmp_path):
    (tmp_path / "_METADATA").write_text("{}")
    suite = f"checkpoint_config: {{path: {tmp_path}}}\n{SUITE}"
    made = artifacts.checkpoint_metadata(str(tmp_path), suite)
    assert made["digest"].startswith("sha256:")
    assert (made["path"], made["suite"]) == (str(tmp_path), "s")


def test_a_suite_that_loads_nothing_has_no_checkpoint():
    metadata = artifacts.checkpoint_metadata(None, SUITE)
    assert (metadata["path"], metadata["digest"]) == ("none", "unknown")


@pytest.fixture
def artifact(tmp_path):
    return types.SimpleNamespace(uri="root/a", path=str(tmp_path / "a"), metadata={})


@pytest.mark.parametrize("place", ["gs://bucket/checkpoint", "/mnt/checkpoint"])
def test_an_artifact_points_at_the_place_or_is_a_text_file_where_kubeflow_would_copy_or_refuse_it(
    artifact, monkeypatch, place
):
    monkeypatch.setenv("KFP_POD_NAME", "pod-1")
    artifacts.point_at(artifact, place)
    assert artifact.uri == "root/a"
    assert Path(artifact.path).read_text() == place
    assert artifact.metadata == {"path": place}
    monkeypatch.delenv("KFP_POD_NAME")
    artifacts.point_at(artifact, place)
    assert (artifact.uri, artifact.metadata) == (place, {"path": place})
