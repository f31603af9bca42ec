"""Compiled pipelines, and the files that are derived from components and pipelines.

python -m orbax_bench_pipelines.compile

writes component files and the pages of `docs/pipelines` again, and the packages below `dist/`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orbax_bench_components import compile as components
from orbax_bench_pipelines.definitions import PIPELINES, Pipeline
from orbax_bench_pipelines.targets import Package, Placement, Settings, read_settings, settings_page

GKE_SETTINGS = Path(__file__).parent / "gke.settings.yaml"
"""Settings that our own packages for GKE are compiled with."""
_CHECKOUT = Path(__file__).parents[1]
_PAGES = _CHECKOUT / "docs" / "pipelines"


def compiled(pipeline: Pipeline, placement: Placement) -> str:
    """Returns a pipeline as the YAML that a service reads.

    For Kubeflow Pipelines a second document holds what concerns Kubernetes; Vertex AI reads one
    document only.
    """
    return components.compiled(pipeline.build(placement))


def packages() -> Iterator[tuple[str, str]]:
    """Yields the name and the content of every package that a release has."""
    settings = {
        Package.GKE: read_settings(str(GKE_SETTINGS), {}),
        Package.VERTEX: Settings(),
    }
    for pipeline in PIPELINES:
        for package, given in settings.items():
            text = compiled(pipeline, Placement(package.target, given))
            yield f"{pipeline.name}-{package}.yaml", text


def derived_files() -> Iterator[tuple[Path, str]]:
    """Yields every committed file that is derived, with the content it should have."""
    yield from components.derived_files()
    for pipeline in PIPELINES:
        yield _PAGES / f"{pipeline.name}.md", pipeline_page(pipeline)
    settings = _PAGES / "settings.md"
    yield settings, settings_page(settings.read_text())


def write_packages(folder: Path) -> None:
    """Writes every package into a folder, which is made when it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in packages():
        (folder / name).write_text(content)


def pipeline_page(pipeline: Pipeline) -> str:
    """Returns a pipeline's page: what it does, its steps as a chart, parameters, how to run it."""
    lines = [f"# {pipeline.name}", "", pipeline.summary, ""]
    if pipeline.details:
        lines += [pipeline.details, ""]
    spec = pipeline.build(Placement()).pipeline_spec
    lines += ["```mermaid", "flowchart LR", *_steps(spec, spec.root.dag, "  "), "```", ""]
    lines += ["| parameter | default | meaning |", "|---|---|---|"]
    for each in pipeline.signature:
        default = f"`{each.default!r}`" if each.name in pipeline.parameters else "required"
        lines.append(f"| `{each.name}` | {default} | {each.meaning} |")
    flag = "" if pipeline.name == "sweep" else f" --pipeline {pipeline.name}"
    lines += [
        "",
        "On this machine, without a cluster or Docker:",
        "",
        "```sh",
        f"orbax-bench pipeline run SUITE.yaml{flag} --output-directory DIR",
        "```",
        "",
        "[Pipelines](../pipelines.md) has the other targets, how to set these, and how to compile",
        "a package for a service.",
        "",
    ]
    return "\n".join(lines)


def _steps(spec: Any, dag: Any, indent: str) -> Iterator[str]:
    """Yields the lines of a Mermaid chart: loops and conditions as boxes around their steps."""
    for name, task in sorted(dag.tasks.items()):
        inner = spec.components[task.component_ref.name].dag
        if inner.tasks:
            loop = task.HasField("parameter_iterator")
            branches = task.task_info.name.startswith("condition-branches")
            condition = "one of" if branches else f"if {task.task_info.name}"
            title = "for each point" if loop else condition
            title = "the run" if name.startswith("exit-handler") else title
            yield f'{indent}subgraph {name}["{title}"]'
            yield from _steps(spec, inner, f"{indent}  ")
            yield f"{indent}end"
        else:
            yield f"{indent}{name}"
        for earlier in sorted(task.dependent_tasks):
            arrow = "-- succeeded or failed -->" if task.trigger_policy.strategy > 1 else "-->"
            yield f"{indent}{earlier} {arrow} {name}"


if __name__ == "__main__":
    for derived, content in derived_files():
        derived.write_text(content)
    write_packages(_CHECKOUT / "dist" / "pipelines")
