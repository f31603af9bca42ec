"""`orbax-bench init`: what it writes is valid, conforms to the schema and runs as it is."""

import dataclasses
import io
import json
import re
import shutil
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import yaml
from safetensors.numpy import save_file

from orbax_bench_core.cli import machine
from orbax_bench_core.config import load_suite
from orbax_bench_core.plan import StorageOptions
from orbax_bench_core.sweep import expand
from tests.support.shown import next_command

NAME = "orbax-bench.schema.json"
CPU = {"platform": "cpu", "count": 1, "kind": "cpu"}


@pytest.fixture
def devices(monkeypatch):
    """Says what devices there are."""

    def have(found):
        monkeypatch.setattr(machine, "probe_devices", lambda: found)

    have(CPU)
    return have


@pytest.fixture
def init(devices, orbax_bench, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: orbax_bench("init", *arguments)


@pytest.fixture
def answer(monkeypatch):
    """Answers the questions of a command, on a terminal."""

    def give(*lines):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        monkeypatch.setattr(sys, "stdin", Terminal("".join(f"{line}\n" for line in lines)))

    return give


def check(file="suite.yaml"):
    """Loads a suite that was written, by the loader and by the schema that it names."""
    text = Path(file).read_text()
    first, _, _ = text.partition("\n")
    assert first == f"# yaml-language-server: $schema={NAME}"
    schema = jsonschema.Draft202012Validator(json.loads(Path(NAME).read_text()))
    schema.validate(yaml.safe_load(text))
    return load_suite(file)


@pytest.mark.parametrize("preset", ["llama-8b", "gpt2"])
def test_a_preset_is_scaled_for_a_first_run(init, preset):
    done = init("--preset", preset)
    assert (done.code, done.err) == (0, "")
    assert "suite.yaml: 4 points x 5 repeats" in done.out
    assert next_command(done.out) == ["run", "suite.yaml", "-o", "results"]
    loaded = check()
    points = expand(loaded).points
    assert len(points) == 4
    assert all(2**20 < point.checkpoint.num_bytes <= 64 * 2**20 for point in points)
    assert points[0].mesh.label == "fsdp4"


def test_a_comparison_has_arms_and_names_its_command(init):
    done = init("--synthetic", "--for", "compare")
    assert "suite.yaml: 1 point, in both arms\nNext: orbax-bench ab suite.yaml" in done.out
    assert str(check().suite.arms.candidate) == "use_compression=false"
    assert {"margin", "tolerance"} <= yaml.safe_load(Path("suite.yaml").read_text())["gate"].keys()


def test_the_command_that_is_named_runs_from_a_folder_with_a_space(init, tmp_path):
    (tmp_path / "my suites").mkdir()
    done = init("--synthetic", "-o", "my suites/suite.yaml")
    assert "\nNext: orbax-bench run 'my suites/suite.yaml' -o results" in done.out


def test_the_first_point_is_the_defaults_of_orbax_and_says_so(init):
    init("--synthetic")
    from orbax.checkpoint import v1 as ocp

    options = expand(check()).points[0].options
    defaults = dataclasses.asdict(StorageOptions())
    own = {name: value for name, value in defaults.items() if name in options}
    assert {"use_ocdbt", "use_compression", "use_replica_parallel"} <= own.keys()
    assert {name: options[name] for name in own} == own
    assert options["use_zarr3"] == ocp.Context().array.saving.use_zarr3
    assert "The first point is Orbax's own defaults" in Path("suite.yaml").read_text()


def test_a_model_in_the_safetensors_format_is_loaded_by_the_benchmark_for_it(init, tmp_path):
    (tmp_path / "model").mkdir()
    save_file({"w": np.ones((4, 2), np.float32)}, tmp_path / "model" / "model.safetensors")
    init("--checkpoint", "model")
    points = expand(check()).points
    assert {point.benchmark for point in points} == {"safetensors_load"}
    assert {point.options["checkpoint_path"] for point in points} == {str(tmp_path / "model")}
    done = init("--checkpoint", "model", "--for", "compare", "--force")
    assert (done.code, "give --for options" in done.err) == (2, True)


def test_a_mesh_has_all_accelerators(init, devices):
    devices({"platform": "tpu", "count": 8, "kind": "TPU v5e"})
    init("--synthetic")
    assert check().suite.mesh_configs[0].num_devices == 8
    assert "# Devices: this machine has 8" in Path("suite.yaml").read_text()


def test_every_comment_stands_apart_and_no_line_is_too_long(init):
    init("--preset", "mixtral-8x7b")
    assert max(map(len, Path("suite.yaml").read_text().splitlines())) <= 100


def test_nothing_is_overwritten_without_force(init):
    Path("suite.yaml").write_text("mine")
    done = init("--synthetic")
    assert done.code == 2
    assert done.err.endswith("suite.yaml exists; --force replaces it, -o names another file\n")
    assert Path("suite.yaml").read_text() == "mine"
    assert not Path(NAME).exists()
    assert init("--synthetic", "--force").code == 0
    assert check()


def test_another_file_of_that_name_is_kept_too(init):
    Path(NAME).write_text("{}")
    done = init("--synthetic")
    assert (done.code, Path("suite.yaml").exists()) == (2, False)
    assert "is not a schema of suites; --force replaces it, --no-schema writes none" in done.err
    assert init("--synthetic", "--no-schema").code == 0
    assert "$schema" not in Path("suite.yaml").read_text()
    assert Path(NAME).read_text() == "{}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "say what to save: --preset llama-8b, --nnx module:factory"),
        (("--preset", "llama-9b"), "there is no preset 'llama-9b'; did you mean 'llama-8b'?"),
        (("--preset", "gpt2", "--nnx", "a:b"), "--preset and --nnx are two things to save"),
        (("--synthetic", "--nnx", "a:b"), "--synthetic and another flag are two things"),
        (("--synthetic", "--scale", "0.1"), "--scale is that of a preset"),
        (("--preset", "gpt2", "--scale", "2"), "--scale: more than 0 and at most 1, got 2"),
        (("--synthetic", "--mesh", "8"), "expected a mesh such as data=16,fsdp=16"),
        (("--synthetic", "-o", "http://b/s.yaml"), "a suite is written to a local file"),
        (("--synthetic", "-o", "no/s.yaml"), "there is no folder"),
        (("--synthetic", "-o", "."), "is a folder; name a file in it"),
        (("--checkpoint", "/nowhere"), "'/nowhere' does not exist"),
    ],
)
def test_what_cannot_be_is_one_message(init, tmp_path, arguments, message):
    done = init(*arguments)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert message in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_is_asked(init, answer):
    answer("prest", "preset", "gpt2", "compare")
    done = init()
    assert done.code == 0
    assert "What is saved and loaded?" in done.out
    assert "'prest' is not one of them." in done.out
    suite = check().suite
    assert (suite.checkpoint_configs[0].model, suite.arms is None) == ("gpt2", False)


@pytest.mark.nightly
def test_a_model_of_ones_own_runs_as_it_was_written(init, orbax_bench, tmp_path, monkeypatch):
    pytest.importorskip("flax")
    from tests.state import nnx_models

    shutil.copy(nnx_models.__file__, tmp_path / "my_models.py")
    done = init("--nnx", "my_models:Many")
    assert done.code == 0, done.err
    suite = check().suite
    assert suite.mesh_configs[0].mesh_axes == ("fsdp", "elsewhere")
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    ran = orbax_bench(
        *("run", "suite.yaml", "-o", "results", "--no-limits", "--no-lock"),
        *("--override", "num_repeats=1", "--override", "execution.warmups=0"),
    )
    assert ran.code == 0, ran.out + ran.err
    assert re.search("(BEST|TIE|UNDECIDED): ", ran.out), ran.out
    assert re.search("^Next: orbax-bench ", ran.out, re.MULTILINE), ran.out


@pytest.mark.nightly
def test_a_model_that_only_the_current_folder_has_is_refused_elsewhere(init, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "my_models.py").write_text("def make(rngs): ...\n")
    done = init("--nnx", "my_models:make", "-o", "elsewhere/suite.yaml")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "No module named 'my_models'" in done.err
