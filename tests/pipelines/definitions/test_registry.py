import pytest

pytest.importorskip("kfp")

from orbax_bench_core.errors import UserError
from orbax_bench_pipelines.definitions import PIPELINES, find_pipeline
from orbax_bench_pipelines.targets import Placement


@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda pipeline: pipeline.name)
def test_the_parameters_are_those_of_the_pipeline(pipeline):
    inputs = pipeline.build(Placement()).component_spec.inputs
    defaults = {name: given.default for name, given in inputs.items() if given.optional}
    assert defaults == pipeline.parameters
    assert inputs.keys() - defaults.keys() == {"suite", "output_directory"}


def test_an_unknown_pipeline_suggests_the_nearest():
    with pytest.raises(UserError, match="unknown pipeline 'swep'; did you mean 'sweep'"):
        find_pipeline("swep")
