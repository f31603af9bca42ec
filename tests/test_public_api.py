"""The names of the top-level package."""

import ast
import pathlib
import subprocess
import sys

import pytest

import orbax_bench_core
from orbax_bench_core import execute
from orbax_bench_core.errors import UserError
from tests.support.fake_worker import MODULE

SUITE = """\
suite_name: a suite
num_repeats: 2
execution: {warmups: 0}
benchmarks:
- generator: tests.support.scripted.Scripted
  options: {save_s: [0.02, 0.04]}
checkpoint_config: {spec: {w: {dtype: float32, shape: [4]}}}
"""


@pytest.fixture
def suite(tmp_path):
    file = tmp_path / "suite.yaml"
    file.write_text(SUITE)
    return str(file)


@pytest.fixture
def settings():
    return execute.RunSettings(host=execute.LocalHost(module=MODULE))


def test_every_public_name_is_loaded_when_it_is_used():
    for name in orbax_bench_core.__all__:
        assert getattr(orbax_bench_core, name) is not None


def test_what_type_checkers_see_is_what_is_loaded():
    tree = ast.parse(pathlib.Path(orbax_bench_core.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    rooms = {name: f"orbax_bench_core.{room}" for name, room in orbax_bench_core._ROOMS.items()}
    assert seen == rooms
    assert {*rooms, "__version__"} == {*orbax_bench_core.__all__}


def test_an_unknown_name_lists_the_public_ones():
    with pytest.raises(
        AttributeError, match="its public names: Best, Pair, Recorder, Recovery, Repeat, Run"
    ):
        _ = orbax_bench_core.Runs


@pytest.mark.slow
def test_the_package_itself_is_light():
    code = (
        "import sys, orbax_bench_core; orbax_bench_core.UserError; print(*{'jax', 'orbax', "
        "'pandas', 'pyarrow', 'rich', 'kfp'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.slow
def test_a_run_gives_frames_with_a_column_per_option(suite, settings, tmp_path):
    out = str(tmp_path / "out")
    run = orbax_bench_core.run(suite, out, limits=False, settings=settings)
    saves = run.times().query("operation == 'save'")
    medians = saves.groupby("option.save_s")["seconds"].median()
    assert medians.to_dict() == pytest.approx({0.02: 0.02, 0.04: 0.04}, rel=0.05)
    again = orbax_bench_core.load_run(out)
    assert again.samples().equals(run.samples())
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.slow
def test_a_comparison_gives_verdicts(suite, settings, tmp_path):
    run = orbax_bench_core.ab(
        suite,
        str(tmp_path / "out"),
        arms={},
        overrides=["gate.looks=[4]"],
        settings=settings,
    )
    verdicts = orbax_bench_core.read_verdicts(run)
    assert len(verdicts.points) == 2
    assert {series.arm for series in run.series()} == {"baseline", "candidate"}


def test_a_suite_without_arms_is_no_comparison(suite, tmp_path):
    with pytest.raises(UserError, match="nothing to compare"):
        orbax_bench_core.ab(suite, str(tmp_path / "out"))


def test_a_suite_with_arms_is_no_run(suite, tmp_path):
    with pathlib.Path(suite).open("a") as file:
        file.write("arms: {}\n")
    with pytest.raises(UserError, match="`orbax-bench ab` runs it"):
        orbax_bench_core.run(suite, str(tmp_path / "out"))
    with pytest.raises(UserError, match="arms of its own"):
        orbax_bench_core.ab(suite, str(tmp_path / "out"), arms={})


def test_a_run_without_verdicts_says_what_to_do(make_run, make_record):
    run = make_run([make_record()])
    with pytest.raises(UserError, match="orbax-bench compare"):
        orbax_bench_core.read_verdicts(run)
