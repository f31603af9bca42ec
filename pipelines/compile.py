"""Compiled pipelines, and everything derived from the components that they use.

python -m orbax_bench_pipelines.compile
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from orbax_bench_components import compile as components
from orbax_bench_pipelines.placement import Placement
from orbax_bench_pipelines.readme import pipeline_readme
from orbax_bench_pipelines.registry import PIPELINES, Pipeline
from orbax_bench_pipelines.settings import Settings, read_settings
from orbax_bench_pipelines.target import Package

_FOLDER = Path(__file__).parent
GKE_SETTINGS = _FOLDER / "gke.settings.yaml"
"""What the committed packages for GKE are compiled with."""


def compiled(pipeline: Pipeline, placement: Placement) -> str:
    """Returns a pipeline as the YAML that a service reads.

    For Kubeflow Pipelines a second document holds what concerns Kubernetes; Vertex AI reads one
    document only.

    Args:
        pipeline: The pipeline.
        placement: Where its steps run.
    """
    return components.compiled(pipeline.build(placement))


def derived_files() -> Iterator[tuple[Path, str]]:
    """Yields every derived file of components and pipelines with the content it should have."""
    yield from components.derived_files()
    settings = {
        Package.GKE: read_settings(str(GKE_SETTINGS), {}),
        Package.VERTEX: Settings(),
    }
    for pipeline in PIPELINES:
        yield _FOLDER / pipeline.module / "README.md", pipeline_readme(pipeline)
        for package, given in settings.items():
            placement = Placement(package.target, given)
            path = _FOLDER / pipeline.module / f"{package}.yaml"
            yield path, compiled(pipeline, placement)


if __name__ == "__main__":
    for derived, content in derived_files():
        derived.write_text(content)
