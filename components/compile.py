"""Files that are derived from each component: `component.yaml` and `README.md`.

python -m orbax_bench_components.compile
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orbax_bench_components.aggregate import aggregate
from orbax_bench_components.answers import (
    best,
    calibrate,
    inspect_checkpoint,
    plan_save,
    recovery,
    soak,
    study_async,
)
from orbax_bench_components.compare_baseline import compare_baseline
from orbax_bench_components.enforce_verdict import enforce_verdict
from orbax_bench_components.finish import finish
from orbax_bench_components.generate_checkpoint import generate_checkpoint
from orbax_bench_components.plan_sweep import plan_sweep
from orbax_bench_components.publish_baseline import publish_baseline
from orbax_bench_components.readme import component_readme
from orbax_bench_components.run_sweep_point import run_sweep_point

COMPONENTS = (
    plan_sweep,
    generate_checkpoint,
    run_sweep_point,
    aggregate,
    compare_baseline,
    publish_baseline,
    enforce_verdict,
    finish,
    calibrate,
    study_async,
    best,
    inspect_checkpoint,
    plan_save,
    soak,
    recovery,
)


def derived_files() -> Iterator[tuple[Path, str]]:
    """Yields every derived file with the content that it should have."""
    for component in COMPONENTS:
        folder = Path(__file__).parent / component.name.replace("-", "_")
        yield folder / "component.yaml", compiled(component)
        yield folder / "README.md", component_readme(component)


def compiled(component: Any) -> str:
    """Returns a component or pipeline as the YAML that Kubeflow and Vertex AI read."""
    from kfp import compiler

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "compiled.yaml"
        compiler.Compiler().compile(component, str(path))
        return path.read_text()


if __name__ == "__main__":
    for derived, content in derived_files():
        derived.write_text(content)
