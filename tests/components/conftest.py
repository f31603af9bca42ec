"""Calling what a component does in this process, with artifacts that lie in a folder."""

import inspect

import pytest

pytest.importorskip("kfp")

from kfp.dsl.types.type_annotations import OutputAnnotation

from tests.support.figures import undrawn  # noqa: F401 - fixture


@pytest.fixture
def artifact(tmp_path):
    """Builds an artifact of a type whose file is to lie in a folder of its own."""
    folder = tmp_path / "artifacts"
    folder.mkdir(exist_ok=True)

    def make(kind, name):
        return kind(name=name, uri=str(folder / name), metadata={})

    return make


@pytest.fixture
def call(artifact):
    """Calls a component; returns its output artifacts by name, and what it returned as `Output`."""

    def run(component, **inputs):
        function = component.python_func
        outputs = {}
        for name, parameter in inspect.signature(function).parameters.items():
            if OutputAnnotation in getattr(parameter.annotation, "__metadata__", ()):
                outputs[name] = artifact(parameter.annotation.__origin__, name)
        result = function(**inputs, **outputs)
        return {**outputs, "Output": result}

    return run


@pytest.fixture(autouse=True)
def plain_pages(undrawn):
    """No test here looks at a figure."""
