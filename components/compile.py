"""Files that are derived from each component: `component.yaml` and `README.md`.

python -m orbax_bench_components.compile
ORBAX_BENCH_IMAGE=HOST/PROJECT/NAME@sha256:DIGEST python -m orbax_bench_components.compile FOLDER

The second line writes `FOLDER/<name>/component.yaml` for others, in the image that it names.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from orbax_bench_components.image import IMAGE, RELEASED
from orbax_bench_components.readme import component_readme, index_readme

_OF_RUNS: Final = (
    "choose_folder",
    "plan_sweep",
    "generate_checkpoint",
    "run_sweep_point",
    "aggregate",
    "compare_baseline",
    "publish_baseline",
    "enforce_verdict",
    "finish",
)
"""Steps of a run in their order, which the index lists first; others follow by name."""


def _components() -> tuple[Any, ...]:
    folders = {path.parent.name for path in Path(__file__).parent.glob("*/component.py")}
    return tuple(
        getattr(import_module(f"orbax_bench_components.{name}"), name)
        for name in (*_OF_RUNS, *sorted(folders - {*_OF_RUNS}))
    )


COMPONENTS: Final = _components()
"""Every component: a folder each, which has its name."""


def derived_files() -> Iterator[tuple[Path, str]]:
    """Yields every derived file with the content that it should have."""
    for component in COMPONENTS:
        folder = Path(__file__).parent / component.name.replace("-", "_")
        named = compiled(component).replace(f"image: {IMAGE}\n", f"image: {RELEASED}\n")
        yield folder / "component.yaml", named
        yield folder / "README.md", component_readme(component)
    yield Path(__file__).parent / "README.md", index_readme(COMPONENTS)


def compiled(component: Any) -> str:
    """Returns a component or pipeline as the YAML that Kubeflow and Vertex AI read."""
    from kfp import compiler

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "compiled.yaml"
        compiler.Compiler().compile(component, str(path))
        return path.read_text()


_PULLED: Final = re.compile(
    r"[a-z0-9-]+(\.[a-z0-9-]+)+(:\d+)?/[a-z0-9._/-]+(:(?!latest$)\w[\w.-]*|(:\w[\w.-]*)?@sha256:[0-9a-f]{64})"
)


def write_for_others(folder: Path) -> None:
    """Writes every component for people who have nothing but its YAML.

    Raises:
        SystemExit: The image is one that only this machine has, or one that may change.
    """
    if not _PULLED.fullmatch(IMAGE):
        said = (
            f"error: ORBAX_BENCH_IMAGE: {IMAGE!r} is no image that others can pull; give "
            "HOST/PROJECT/NAME@sha256:DIGEST, or the tag of a release, HOST/PROJECT/NAME:0.1.0"
        )
        sys.exit(said)
    for component in COMPONENTS:
        path = folder / component.name.replace("-", "_") / "component.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(compiled(component))


if __name__ == "__main__":
    if sys.argv[1:]:
        write_for_others(Path(sys.argv[1]))
    else:
        for derived, content in derived_files():
            derived.write_text(content)
