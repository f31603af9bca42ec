"""The README of a component, made from its docstring and its interface."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import docstring_parser

from orbax_bench_components.image import RELEASED


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


_INDEX: Final = """\
# Components

Steps of a benchmark as components of Kubeflow Pipelines 2.17. Each folder has the component for
Python, its compiled `component.yaml`, its interface in `README.md`, and tests.

| component | |
|---|---|
{rows}

## Their image

All run in one image, which has what they import, so that nothing is installed at run time. Build
and push it, and compile them in it, by digest:

```sh
python images/build.py cpu --tag HOST/PROJECT/orbax-bench:0.1.0 --push
ORBAX_BENCH_IMAGE=HOST/PROJECT/orbax-bench:0.1.0 \\
  python -m orbax_bench_components.compile dist/components
```

The first line prints the digest of what it has pushed; `HOST/PROJECT/orbax-bench@sha256:DIGEST` in
its place cannot be replaced by anybody. `dist/components/NAME/component.yaml` can be loaded without
any other file. An image that only this machine has, or `latest`, is refused there.

The `component.yaml` files next to the sources name `{released}`,
where kubeflow/pipelines-components publishes the images of its components. It is not published yet:
take the files of `dist/components`, or set an image on each task (`task.set_container_image(...)`).
Pipelines of ours take it as the setting `image`. Without that, their steps and `component.py` name
`orbax-bench:0.1.0`, the tag that `python images/build.py` gives on this machine, for the local
runners; for Vertex AI that is refused, for a cluster it is a warning.

## Rules that they follow

Those of the validators of kubeflow/pipelines-components, as of 23 July 2026, are a test,
`tests/components/test_upstream_rules.py`. Their scripts were run on 26 November 2026 over a copy in
which the components lie in a category, with a file OWNERS ([a template](OWNERS.template)) and
`ORBAX_BENCH_IMAGE` set to an image of their registry:

- **Metadata** and their age, base images, compile check, yamllint of `metadata.yaml` (a test too),
  and markdownlint pass.
- **Import guard**: `component.py` passes. Tests next to it need `orbax_bench_core` and
  `orbax_bench_components` in their `import_exceptions.yaml`.
- **Ruff**: their rules pass; their `make format` takes lines of 120 characters and orders imports.
- **READMEs and entries of the package** are written there, by `make readme` and `make
  sync-packages`.
- **`component.yaml`** stays here: their `.gitignore` (line 265) names it, and no folder there has
  one, so that yamllint, which would refuse the indentation that kfp writes, never reads one.
"""


def index_readme(components: Iterable[Any]) -> str:
    """Returns the README of all components: what there is, and how their image is made."""
    rows = []
    for component in components:
        name = component.name.replace("-", "_")
        docs = docstring_parser.parse(component.python_func.__doc__ or "")
        rows.append(f"| [{component.name}]({name}/README.md) | {docs.short_description} |")
    return _INDEX.replace("{rows}", "\n".join(rows)).replace("{released}", RELEASED)
