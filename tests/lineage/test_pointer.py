"""Artifacts that point at what lies elsewhere."""

import types
from pathlib import Path

import pytest

from orbax_bench_core.lineage.artifacts import point_at


@pytest.fixture
def artifact(tmp_path):
    return types.SimpleNamespace(uri="root/a", path=str(tmp_path / "a"), metadata={})


@pytest.mark.parametrize("place", ["gs://bucket/checkpoint", "/mnt/checkpoint"])
def test_an_artifact_points_at_the_place_or_is_a_text_file_where_kubeflow_would_copy_or_refuse_it(
    artifact, monkeypatch, place
):
    monkeypatch.setenv("KFP_POD_NAME", "pod-1")
    point_at(artifact, place)
    assert artifact.uri == "root/a"
    assert Path(artifact.path).read_text() == place
    assert artifact.metadata == {"path": place}
    monkeypatch.delenv("KFP_POD_NAME")
    point_at(artifact, place)
    assert (artifact.uri, artifact.metadata) == (place, {"path": place})
