"""What an artifact says of itself."""

import pytest

from orbax_bench_core.results.lineage import artifact_metadata
from orbax_bench_core.results.provenance import PACKAGES, package_version


def test_an_artifact_of_a_run_names_the_run(make_run, make_record):
    info = make_run([make_record()]).read_info()
    metadata = artifact_metadata("samples", info, point_ids=["a", "b"])
    assert metadata["orbax_bench_type"] == "samples"
    assert metadata["run_id"] == info.run_id
    assert metadata["config_hash"] == info.suite_identity
    assert metadata["point_ids"] == "a,b"


@pytest.mark.parametrize("key", ["run_id", "config_hash", "point_ids", "image"])
def test_what_is_not_known_is_the_word_unknown(monkeypatch, key):
    monkeypatch.delenv("ORBAX_BENCH_IMAGE", raising=False)
    assert artifact_metadata("checkpoint", None)[key] == "unknown"


def test_every_value_is_text():
    assert {type(value) for value in artifact_metadata("records", None).values()} == {str}


@pytest.mark.parametrize("package", PACKAGES)
def test_an_artifact_names_the_versions_it_was_made_with(package):
    metadata = artifact_metadata("records", None)
    assert metadata[f"version_{package}"] == package_version(package)
