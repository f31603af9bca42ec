"""The README of a pipeline, made from its docstring, its parameters and its steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import docstring_parser

from orbax_bench_pipelines.placement import Placement
from orbax_bench_pipelines.registry import Pipeline


def pipeline_readme(pipeline: Pipeline) -> str:
    """Returns a pipeline's README: what it does, its steps as a chart, parameters, how to run it.

    Args:
        pipeline: The pipeline.
    """
    built = pipeline.build(Placement())
    docs = docstring_parser.parse(built.pipeline_func.__doc__ or "")
    lines = [f"# {pipeline.name}", "", docs.short_description or "", ""]
    if docs.long_description:
        lines += [docs.long_description, ""]
    lines += ["```mermaid", "flowchart LR", *_chart(built.pipeline_spec), "```", ""]
    lines += ["| parameter | default | meaning |", "|---|---|---|"]
    for parameter in docs.params:
        name = parameter.arg_name
        default = f"`{pipeline.parameters[name]!r}`" if name in pipeline.parameters else "required"
        lines.append(
            f"| `{name}` | {default} | {' '.join((parameter.description or '').split())} |"
        )
    flag = "" if pipeline.name == "sweep" else f" --pipeline {pipeline.name}"
    lines += [
        "",
        "On this machine, without a cluster or Docker:",
        "",
        "```sh",
        f"orbax-bench pipeline run SUITE.yaml{flag} --output-directory DIR",
        "```",
        "",
        "[docs/pipelines.md](../../docs/pipelines.md) has the other targets and how to set these.",
        "`gke.yaml` and `vertex.yaml` beside this file are compiled packages.",
        "",
    ]
    return "\n".join(lines)


def _chart(spec: Any) -> Iterator[str]:
    """Yields the lines of a Mermaid chart: loops and conditions as boxes around their steps."""
    yield from _steps(spec, spec.root.dag, "  ")


def _steps(spec: Any, dag: Any, indent: str) -> Iterator[str]:
    for name, task in sorted(dag.tasks.items()):
        inner = spec.components[task.component_ref.name].dag
        if inner.tasks:
            loop = task.HasField("parameter_iterator")
            title = "for each point" if loop else f"if {task.task_info.name}"
            yield f'{indent}subgraph {name}["{title}"]'
            yield from _steps(spec, inner, f"{indent}  ")
            yield f"{indent}end"
        else:
            yield f"{indent}{name}"
        for earlier in sorted(task.dependent_tasks):
            yield f"{indent}{earlier} --> {name}"
