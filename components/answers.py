"""Components that answer a question, each made from the signature and the docstring of its step.

They are lightweight components as any other: Kubeflow fills in no default of a container component.
"""

from __future__ import annotations

import inspect
import linecache
import textwrap
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import docstring_parser
from kfp import dsl

from orbax_bench_components.image import IMAGE
from orbax_bench_core.steps import pipeline

_FILES: Final = {"answer": "Dataset", "summary": "Markdown", "report": "HTML"}
_SAMPLES: Final = {"samples": "Dataset"}
_MEANINGS: Final = {
    "pipeline_run": "Id of the pipeline's run, `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: an input "
    "that differs per run keeps a service from using its cache.",
    "answer": "All numbers, as JSON.",
    "summary": "What people read, as Markdown.",
    "report": "The same with figures, as a page that needs no other file.",
    "rate": "Number of A/A tests, how many said REGRESSION, and the share.",
    "passport": "The noise passport, which `orbax-bench ab --passport` takes.",
    "study": "All results, as JSON.",
    "saved": "Share of the blocked time that each size saves, from 0 to 1.",
    "samples": "What aggregate wrote; it orders this step after that one.",
    "generated": "What generate-checkpoint made; it orders this step after that one.",
}
"""Meanings of what is no parameter of a step, or is a file that an engine places."""
_SUCCEEDS: Final = (
    "The step succeeds whatever it finds, because an engine keeps artifacts only of steps that "
    "succeed; pass its result to enforce-verdict, which then fails."
)
_TYPES: Final = {str: "str", int: "int", float: "float", bool: "bool", Sequence[str]: "List[str]"}


def _component(
    step: Callable[..., pipeline.Outputs[Any]],
    outputs: Mapping[str, str] = _FILES,
    *,
    after: Mapping[str, str] | None = None,
    more: str = "",
) -> Any:
    """Returns the component of a step.

    Args:
        step: The step.
        outputs: Its output artifacts, and their kinds.
        after: Artifacts of steps that come before it, and their kinds.
        more: A paragraph for people.
    """
    signature = inspect.signature(step, eval_str=True)
    inputs = {
        name: f"{name}: {_TYPES[each.annotation]}"
        + ("" if each.default is each.empty else f" = {each.default!r}")
        for name, each in signature.parameters.items()
        if name not in (*outputs, "file")
    }
    parameters = {
        "pipeline_run": "pipeline_run: str",
        **{name: text for name, text in inputs.items() if "=" not in text},
        **{name: f"{name}: dsl.Output[dsl.{kind}]" for name, kind in outputs.items()},
        **{name: text for name, text in inputs.items() if "=" in text},
        **{name: f"{name}: dsl.Input[dsl.{kind}] = None" for name, kind in (after or {}).items()},
    }
    [value] = typing.get_args(signature.return_annotation)
    returned = {list[str]: "List[str]", type(None): "None"}.get(value, "str")
    docs = docstring_parser.parse(step.__doc__ or "")
    meanings = {each.arg_name: each.description or "" for each in docs.params} | _MEANINGS
    arguments = [f"    {name}: {' '.join(meanings[name].split())}" for name in parameters]
    paragraphs = [docs.short_description, docs.long_description, more]
    paragraphs.append("\n".join(["Args:", *arguments]))
    if docs.returns is not None and value is not type(None):
        paragraphs.append(f"Returns:\n    {docs.returns.description}")
    said = textwrap.indent("\n\n".join(each for each in paragraphs if each), "    ")
    return _made(
        step.__name__,
        f"def {step.__name__}({', '.join(parameters.values())}) -> {returned}:\n"
        f'    """{said.strip()}\n    """\n'
        "    from orbax_bench_core.steps.pipeline import as_component\n\n"
        f'    return as_component("{step.__name__}", locals())\n',
    )


def _made(name: str, source: str) -> Any:
    """Returns the component of a function, whose source kfp looks up and compiles in."""
    file = f"<component {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    made: dict[str, Any] = {"dsl": dsl, "List": typing.List}  # noqa: UP006 - kfp reads this spelling
    exec(compile(source, file, "exec", dont_inherit=True), made)  # noqa: S102 - text that is made above
    return dsl.component(made[name], base_image=IMAGE, install_kfp_package=False)


best = _component(pipeline.best, after=_SAMPLES)
calibrate = _component(
    pipeline.calibrate,
    {"passport": "Dataset", "report": "Markdown", "rate": "Metrics"},
    after=_SAMPLES,
)
study_async = _component(
    pipeline.study_async,
    {"study": "Dataset", "summary": "Markdown", "report": "HTML", "saved": "Metrics"},
    after=_SAMPLES,
)
inspect_checkpoint = _component(
    pipeline.inspect_checkpoint, after={"generated": "Artifact"}, more=_SUCCEEDS
)
plan_save = _component(pipeline.plan_save, more=_SUCCEEDS)
soak = _component(pipeline.soak, more=_SUCCEEDS)
recovery = _component(pipeline.recovery, more=_SUCCEEDS)
