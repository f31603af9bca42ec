"""Components compile, load, and are what their derived files say."""

import pytest
import yaml

pytest.importorskip("kfp")

from kfp import components as kfp_components

from orbax_bench_components import compile as compiling
from orbax_bench_pipelines import compile as pipeline_compiling

NAMES = {component.name for component in compiling.COMPONENTS}


@pytest.mark.parametrize(
    ("path", "content"),
    [
        pytest.param(path, content, id="/".join(path.parts[-2:]))
        for path, content in pipeline_compiling.derived_files()
    ],
)
def test_derived_files_are_current(path, content):
    assert path.read_text() == content, "stale: run `make compile`"


@pytest.mark.parametrize("component", compiling.COMPONENTS, ids=lambda component: component.name)
def test_the_compiled_component_loads(component):
    folder = component.name.replace("-", "_")
    file = compiling.Path(compiling.__file__).parent / folder / "component.yaml"
    loaded = kfp_components.load_component_from_file(str(file))
    assert loaded.name == component.name
    assert set(loaded.component_spec.inputs) == set(component.component_spec.inputs)


@pytest.mark.parametrize("component", compiling.COMPONENTS, ids=lambda component: component.name)
def test_the_metadata_names_its_component(component):
    folder = compiling.Path(compiling.__file__).parent / component.name.replace("-", "_")
    metadata = yaml.safe_load((folder / "metadata.yaml").read_text())
    assert metadata["name"].replace("_", "-") == component.name


@pytest.mark.parametrize("component", compiling.COMPONENTS, ids=lambda component: component.name)
def test_nothing_is_installed_at_run_time(component):
    container = component.component_spec.implementation.container
    assert not any("pip install" in part for part in container.command)
