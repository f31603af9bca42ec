"""Commands and code of the pages on planning and inspecting, run as written."""

import doctest
import re
import shlex
from pathlib import Path

import jax
import numpy as np
import pytest
import typer.testing
from etils import epath
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from orbax_bench_core.cli.main import app
from orbax_bench_core.state import make_context, orbax_api

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Returns what the pages call /tmp/, with the checkpoint that they look at."""
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("data", "fsdp"))

    def array(shape, *spec):
        values = np.random.default_rng(0).standard_normal(shape).astype("float32")
        return jax.device_put(values, NamedSharding(mesh, PartitionSpec(*spec)))

    params = {
        "w": array((512, 512), "fsdp", None),
        "v": array((64, 128), None, "fsdp"),
        "b": array((512,)),
    }
    with make_context(use_replica_parallel=False):
        orbax_api.save(epath.Path(tmp_path / "demo/5"), {"params": params, "step": 7})
    monkeypatch.chdir(ROOT)
    return tmp_path


def text_of(page, place):
    return (ROOT / "docs" / page).read_text().replace("/tmp/", f"{place}/")


@pytest.mark.parametrize(("page", "number"), [("planning.md", 7), ("inspect.md", 2)])
def test_the_commands_of_a_page_run(page, number, place):
    blocks = re.findall(r"```sh\n(.*?)```", text_of(page, place), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert len(lines) == number
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "orbax-bench"
        result = typer.testing.CliRunner().invoke(app, words)
        assert result.exit_code == 0, (line, result.exception, result.output)
    assert page != "inspect.md" or "Loads" in (place / "demo/page.html").read_text()


def test_the_code_of_the_page_on_inspecting_runs(place):
    text = text_of("inspect.md", place)
    found = doctest.DocTestParser().get_doctest(text, {}, "inspect", "inspect.md", 0)
    assert found.examples
    assert doctest.DocTestRunner().run(found).failed == 0
