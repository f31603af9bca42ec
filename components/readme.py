"""The README of a component, made from its docstring and its interface."""

from __future__ import annotations

from typing import Any

import docstring_parser


def component_readme(component: Any) -> str:
    """Returns a component's README: what it does, inputs, outputs and an example."""
    docs = docstring_parser.parse(component.python_func.__doc__ or "")
    meaning = {
        parameter.arg_name: " ".join((parameter.description or "").split())
        for parameter in docs.params
    }
    if docs.returns is not None:
        meaning["Output"] = " ".join((docs.returns.description or "").split())
    spec = component.component_spec
    name = spec.name.replace("-", "_")
    lines = [f"# {spec.name}", "", docs.short_description or "", ""]
    if docs.long_description:
        lines += [docs.long_description, ""]
    lines += ["## Inputs", "", "| name | type | default | meaning |", "|---|---|---|---|"]
    for key, given in (spec.inputs or {}).items():
        default = "required" if not given.optional else f"`{given.default!r}`"
        lines.append(f"| `{key}` | {given.type} | {default} | {meaning[key]} |")
    lines += ["", "## Outputs", "", "| name | type | meaning |", "|---|---|---|"]
    lines += [f"| `{k}` | {v.type} | {meaning[k]} |" for k, v in (spec.outputs or {}).items()]
    required = [key for key, given in (spec.inputs or {}).items() if not given.optional]
    arguments = ", ".join(f"{key}=..." for key in required)
    lines += [
        "",
        "## Use",
        "",
        "```python",
        f"from orbax_bench_components.{name} import {name}",
        "",
        f"task = {name}({arguments})",
        "```",
        "",
        "or, without this package, from the compiled component:",
        "",
        "```python",
        "from kfp import components",
        "",
        f'{name} = components.load_component_from_file("components/{name}/component.yaml")',
        "```",
        "",
    ]
    return "\n".join(lines)
