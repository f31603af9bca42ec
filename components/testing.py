"""Tests of components: the call of a body in this process, and the compiled interface.

made = call(aggregate, tmp_path, output_directory="results")
made["Output"], made["samples"].path
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any


def call(component: Any, folder: Path, **inputs: Any) -> dict[str, Any]:
    """Calls the body of a component, as an executor of Kubeflow would.

    Args:
        component: What `dsl.component` made.
        folder: Where outputs are to lie; it is made when it is missing.
        **inputs: The inputs of the component; those that a service fills in, the id of the run and
            how its steps ended, have values already.

    Returns:
        What it returned as `Output`, its output artifacts by name, and by name the path of each
        output that is a file.
    """
    from kfp import dsl
    from kfp.dsl.types.type_annotations import OutputAnnotation

    folder.mkdir(parents=True, exist_ok=True)
    body, outputs = component.python_func, {}
    for name, parameter in inspect.signature(body).parameters.items():
        kind = parameter.annotation
        if OutputAnnotation in getattr(kind, "__metadata__", ()):
            place = str(folder / name)
            outputs[name] = kind.__origin__(name=name, uri=place, metadata={})
        elif isinstance(kind, dsl.OutputPath):
            outputs[name] = str(folder / name)
        elif name == "pipeline_run":
            inputs.setdefault(name, "run-of-a-test")
        elif kind is dsl.PipelineTaskFinalStatus:
            inputs.setdefault(name, kind("SUCCEEDED", "job", "run", None, None))
    return {**outputs, "Output": body(**inputs, **outputs)}


def has_interface(component: Any, file: Path) -> bool:
    """Returns whether a compiled component has the name, inputs and outputs of this one."""
    from kfp import components

    compiled = components.load_component_from_file(str(file)).component_spec
    own = component.component_spec
    return (
        compiled.name == own.name
        and compiled.inputs.keys() == own.inputs.keys()
        and (compiled.outputs or {}).keys() == (own.outputs or {}).keys()
    )
