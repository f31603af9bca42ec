"""A study with everything that a report must show."""

import pytest

from orbax_bench_core.analysis.async_study.parameters import ParameterCounter
from orbax_bench_core.analysis.async_study.study import async_study
from orbax_bench_core.config import CheckpointConfig
from orbax_bench_core.records import Run
from tests.support.async_runs import make_pair, make_saves, make_sizes  # noqa: F401

NASTY = "kind=<script>alert(1)</script>|[red]&amp;"


@pytest.fixture
def study_of():
    """Returns the study of a run directory."""
    return lambda run: async_study(Run(run), ParameterCounter())


@pytest.fixture
def study(once, make_sizes, study_of):
    """Four sizes on lines, measured six times."""
    return once("a study of four sizes", lambda: study_of(make_sizes()))


@pytest.fixture
def eventful(once, make_pair, make_saves, make_run, study_of):
    """A series in bytes, one of a single size under a nasty name, and a point without partner."""

    def make():
        params = {"dtype": "bfloat16", "shape": [10**6]}
        nasty = CheckpointConfig(spec={"params": params}, name=NASTY)
        unknown = [CheckpointConfig(path=f"/{name}") for name in ("small", "middle", "large")]
        records = [
            *make_pair(10**6, checkpoint=nasty, factors=(1.0, 1.1, 1.2)),
            *make_saves(10**7, True, [(1.0, 2.0)], label=NASTY),
        ]
        for elements, checkpoint in zip((10**6, 10**7, 10**8), unknown, strict=True):
            records += make_pair(elements, checkpoint=checkpoint, options={"use_zarr3": True})
        return study_of(make_run(records))

    return once("an eventful study", make)
