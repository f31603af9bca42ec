"""Components compile, load, and are what their derived files say."""

import datetime
import re

import pytest
import yaml

pytest.importorskip("kfp")

from orbax_bench_components import compile as compiling
from orbax_bench_pipelines import compile as pipeline_compiling


@pytest.mark.parametrize(
    ("path", "content"),
    [
        pytest.param(path, content, id="/".join(path.parts[-2:]))
        for path, content in pipeline_compiling.derived_files()
    ],
)
def test_derived_files_are_current(path, content):
    assert path.read_text() == content, "stale: run `make compile`"


every = pytest.mark.parametrize(
    "component", compiling.COMPONENTS, ids=lambda component: component.name
)


def folder_of(component):
    return compiling.Path(compiling.__file__).parent / component.name.replace("-", "_")


@every
def test_a_component_has_what_pipelines_components_wants_beside_it(component):
    folder = folder_of(component)
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert there >= {"__init__.py", "component.py", "component.yaml", "metadata.yaml", "README.md"}
    assert "tests/test_component_unit.py" in there


@every
def test_the_metadata_is_as_pipelines_components_validates_it(component):
    metadata = yaml.safe_load((folder_of(component) / "metadata.yaml").read_text())
    assert metadata["name"].replace("_", "-") == component.name
    optional = {"tags", "ci", "links"}
    required = [field for field in metadata if field not in optional]
    assert required == ["name", "stability", "dependencies", "lastVerified"]
    assert metadata["stability"] in ("experimental", "alpha", "beta", "stable")
    services = metadata["dependencies"]
    assert services.keys() == {"kubeflow", "external_services"}
    assert "Pipelines" in [each["name"] for each in services["kubeflow"]]
    for each in (*services["kubeflow"], *services["external_services"]):
        assert re.fullmatch(r"(==|>=|<=)?\d+\.\d+\.\d+", each["version"]), each
    verified = metadata["lastVerified"]
    # It is refused there once it is a year old: run the component again, and write the date.
    assert abs(datetime.datetime.now(datetime.UTC) - verified) < datetime.timedelta(days=365)
    assert isinstance(metadata["links"], dict)


@every
def test_nothing_is_installed_at_run_time(component):
    container = component.component_spec.implementation.container
    assert not any("pip install" in part for part in container.command)
