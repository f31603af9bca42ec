"""`orbax-bench prepare`: models into place, shardings into a file."""

import json
import os
import stat
import sys
import tempfile

import jax.numpy as jnp
import pytest
import typer
from etils import epath
from orbax.checkpoint._src.testing.benchmarks.safetensors import prepare as upstream
from typer.testing import CliRunner

from orbax_bench_core.benchmarks.support.safetensors import write_arrays
from orbax_bench_core.cli.prepare import prepare
from orbax_bench_core.errors import UserError
from orbax_bench_core.steps import prepare as preparing


@pytest.fixture
def model(tmp_path):
    tree = {
        "even": jnp.ones((16, 8), "bfloat16"),
        "odd": jnp.ones((5, 3), "int32"),
        "vector": jnp.ones(8),
        "scalar": jnp.ones(()),
    }
    write_arrays(epath.Path(tmp_path) / "a model", tree)
    return tmp_path / "a model"


@pytest.fixture
def gcloud(tmp_path, monkeypatch):
    """A stand-in for the command of Google's cloud, which cannot run here; it notes its words."""

    def install(code=0):
        folder = tmp_path / "bin"
        folder.mkdir()
        said = tmp_path / "said.json"
        script = folder / "gcloud"
        script.write_text(
            f"#!/bin/sh\nexec '{sys.executable}' -c 'import json, sys; "
            f'json.dump(sys.argv[1:], open("{said}", "w")); sys.exit({code})\' "$@"\n'
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(folder) + os.pathsep + os.environ["PATH"])
        return said

    return install


@pytest.fixture
def invoke():
    app = typer.Typer()
    app.command()(prepare)
    return lambda *arguments: CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture
def refused(invoke):
    """What is said of a command that is refused, which is one line."""

    def said(*arguments):
        result = invoke(*arguments)
        assert isinstance(result.exception, UserError), result
        (problem,) = result.exception.problems
        assert "\n" not in str(problem)
        return str(problem)

    return said


@pytest.mark.parametrize("strategy", ["fsdp", "tp_inner"])
def test_the_sharding_file_is_that_of_orbaxs_own_tool(invoke, model, tmp_path, strategy):
    out = tmp_path / "new" / "shardings.json"
    given = ["--local-dir", model, "--sharding-out", out, "--axis-size", 4]
    result = invoke(*given, "--strategy", strategy)
    assert result.exit_code == 0, result
    assert f"sharding file: {out}" in result.stdout
    assert json.loads(out.read_text()) == upstream.build_config(epath.Path(model), 4, strategy)


def test_the_spelling_of_orbaxs_own_tool_is_known(invoke, model, tmp_path):
    given = ["--local_dir", model, "--sharding_out", tmp_path / "s.json", "--axis_size", 4]
    assert invoke(*given).exit_code == 0


def test_a_sharding_file_is_not_overwritten_unasked(invoke, refused, model, tmp_path):
    out = tmp_path / "s.json"
    out.write_text("mine")
    given = ["--local-dir", model, "--sharding-out", out, "--axis-size", 4]
    assert "is there already; give another, or --overwrite" in refused(*given)
    assert out.read_text() == "mine"
    assert invoke(*given, "--overwrite").exit_code == 0
    assert "even" in json.loads(out.read_text())


def test_a_directory_is_no_sharding_file(refused, model, tmp_path):
    given = ["--local-dir", model, "--sharding-out", tmp_path, "--axis-size", 4]
    assert "is a directory" in refused(*given, "--overwrite")


def test_gcs_mirrors_with_gcloud(invoke, model, gcloud):
    said = gcloud()
    assert invoke("--local-dir", model, "--gcs", "gs://bucket/model").exit_code == 0
    expected = ["storage", "rsync", str(model), "gs://bucket/model", "--recursive"]
    assert json.loads(said.read_text()) == expected


def test_a_mirror_that_failed_is_said(refused, model, gcloud):
    gcloud(code=7)
    assert "ended with code 7" in refused("--local-dir", model, "--gcs", "gs://bucket/model")


def test_gcs_takes_a_bucket(refused, model):
    assert "takes a gs:// directory" in refused("--local-dir", model, "--gcs", "elsewhere")


def test_without_gcloud_and_gcsfs_both_are_named(refused, model, monkeypatch, tmp_path):
    def without_gcsfs(*_):  # how a process reaches buckets is settled once, by any earlier test
        raise ImportError("No module named 'gcsfs'")

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("orbax_bench_core.steps.prepare.copy", without_gcsfs)
    said = refused("--local-dir", model, "--gcs", "gs://bucket/model")
    assert "needs the gcloud command, or gcsfs" in said


def test_a_copy_goes_on_where_it_was_cut_short(model, tmp_path):
    (model / "more.safetensors").write_bytes(b"x" * 10)
    (model / "notes.txt").write_text("stays here")
    target = tmp_path / "bucket"
    target.mkdir()
    (target / "more.safetensors").write_bytes(b"y" * 10)  # complete, as far as its size tells
    (target / "model.safetensors").write_bytes(b"cut")
    preparing.copy(epath.Path(model), epath.Path(target))
    assert sorted(path.name for path in target.iterdir()) == [
        "model.safetensors",
        "more.safetensors",
    ]
    assert (target / "more.safetensors").read_bytes() == b"y" * 10
    whole = (model / "model.safetensors").read_bytes()
    assert (target / "model.safetensors").read_bytes() == whole


def test_a_copy_shows_its_progress(model, tmp_path, capsys):
    preparing.copy(epath.Path(model), epath.Path(tmp_path) / "there")
    assert "mirroring" in capsys.readouterr().err


def test_a_wrong_directory_is_said_in_one_line(refused, tmp_path):
    given = ["--sharding-out", tmp_path / "s.json", "--axis-size", 8]
    assert "holds no .safetensors files" in refused("--local-dir", tmp_path, *given)


def test_repo_needs_its_extra(refused, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)  # as if it were not installed
    given = ["--sharding-out", tmp_path / "s.json", "--axis-size", 8]
    assert "pip install 'orbax-bench[hub]'" in refused("--repo", "organization/model", *given)


class Hub:
    """The hub's package, whose servers a test cannot reach."""

    def __init__(self, model, error=None):
        self.model, self.error, self.asked = model, error, None

    def snapshot_download(self, **asked):
        self.asked = asked
        if self.error is not None:
            raise self.error
        return str(self.model)


def test_repo_is_downloaded_to_the_directory_that_is_given(invoke, monkeypatch, model, tmp_path):
    hub = Hub(model)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    result = invoke("--repo", "organization/model", "--download-dir", tmp_path / "got")
    assert result.exit_code == 0, result
    assert hub.asked["repo_id"] == "organization/model"
    assert hub.asked["local_dir"] == str(tmp_path / "got")
    assert hub.asked["allow_patterns"] == ["*.safetensors", "*.safetensors.index.json"]
    assert f"model: {model}, 4 arrays" in result.stdout


def test_a_repo_that_cannot_be_had_is_said_in_one_line(refused, monkeypatch, model, tmp_path):
    hub = Hub(model, OSError("404 Client Error\n\nRepository Not Found"))
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert refused("--repo", "no/such") == "--repo no/such: 404 Client Error"
    assert not list(tmp_path.glob("no--such-*"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give --repo or --local-dir, one of them"),
        (["--local-dir", "x"], "there is nothing to do"),
        (["--local-dir", "x", "--sharding-out", "y"], "needs --axis-size"),
        (["--local-dir", "x", "--repo", "y", "--gcs", "gs://z"], "one of them"),
    ],
)
def test_what_makes_no_sense_is_said(refused, arguments, said):
    assert said in refused(*arguments)


def test_no_devices_are_a_usage_error(invoke):
    result = invoke("--local-dir", "x", "--sharding-out", "y", "--axis-size", 0)
    assert result.exit_code == 2
    assert "axis-size" in result.output.replace("_", "-")
