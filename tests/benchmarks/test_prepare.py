"""`prepare`: models into place, shardings into a file."""

import json
import os
import stat
import sys

import jax.numpy as jnp
import pytest
from etils import epath
from orbax.checkpoint._src.testing.benchmarks.safetensors import prepare as upstream

from orbax_bench_core.benchmarks import prepare
from orbax_bench_core.benchmarks.safetensors_files import write_arrays


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


@pytest.mark.parametrize("strategy", ["fsdp", "tp_inner"])
def test_the_sharding_file_is_that_of_orbaxs_own_tool(model, tmp_path, strategy):
    out = tmp_path / "new" / "shardings.json"
    given = ["--local-dir", str(model), "--sharding-out", str(out), "--axis-size", "4"]
    assert prepare.main([*given, "--strategy", strategy]) == 0
    expected = upstream.build_config(epath.Path(model), 4, strategy)
    assert json.loads(out.read_text()) == expected


def test_gcs_mirrors_with_gcloud(model, gcloud):
    said = gcloud()
    assert prepare.main(["--local-dir", str(model), "--gcs", "gs://bucket/model"]) == 0
    expected = ["storage", "rsync", str(model), "gs://bucket/model", "--recursive"]
    assert json.loads(said.read_text()) == expected


def test_a_mirror_that_failed_is_said(model, gcloud, capsys):
    gcloud(code=7)
    assert prepare.main(["--local-dir", str(model), "--gcs", "gs://bucket/model"]) == 2
    assert "ended with code 7" in capsys.readouterr().err


def test_gcs_takes_a_bucket(model, capsys):
    assert prepare.main(["--local-dir", str(model), "--gcs", "elsewhere"]) == 2
    assert "takes a gs:// directory" in capsys.readouterr().err


def test_without_gcloud_it_is_named(model, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert prepare.main(["--local-dir", str(model), "--gcs", "gs://bucket/model"]) == 2
    assert "needs the gcloud command" in capsys.readouterr().err


def test_a_wrong_directory_is_said_in_one_line(tmp_path, capsys):
    given = ["--sharding-out", str(tmp_path / "s.json"), "--axis-size", "8"]
    assert prepare.main(["--local-dir", str(tmp_path), *given]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "holds no .safetensors files" in line


def test_repo_needs_its_extra(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)  # as if it were not installed
    given = ["--sharding-out", str(tmp_path / "s.json"), "--axis-size", "8"]
    assert prepare.main(["--repo", "organization/model", *given]) == 2
    assert "pip install 'orbax-bench[hub]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "one of the arguments --repo --local-dir"),
        (["--local-dir", "x"], "there is nothing to do"),
        (["--local-dir", "x", "--sharding-out", "y"], "needs --axis-size"),
        (["--local-dir", "x", "--sharding-out", "y", "--axis-size", "0"], "must be 1 or more"),
        (["--local-dir", "x", "--repo", "y", "--gcs", "gs://z"], "not allowed with"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(arguments, said, capsys):
    with pytest.raises(SystemExit) as ended:
        prepare.main(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
