"""Writes the compiled pipelines, and everything derived from the components that they use.

python -m orbax_bench_pipelines.compile
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from orbax_bench_components import compile as components
from orbax_bench_pipelines.sweep import sweep

PIPELINES = {"sweep": sweep}


def derived_files() -> Iterator[tuple[Path, str]]:
    """Yields every derived file of components and pipelines with the content it should have."""
    yield from components.derived_files()
    for name, pipeline in PIPELINES.items():
        yield Path(__file__).parent / name / "pipeline.yaml", components.compiled(pipeline)


if __name__ == "__main__":
    for derived, content in derived_files():
        derived.write_text(content)
