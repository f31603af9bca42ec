"""Promotions that lead out of the registry, and other files that are not what they should be."""

import json
import os
import shutil
from pathlib import Path

import pytest

from orbax_bench_core.baselines import (
    Registry,
    capture_run,
    load_baseline,
    promote_capture,
)
from orbax_bench_core.errors import UserError
from orbax_bench_core.records import RunDirectory

RUN = Path(__file__).parents[1] / "data" / "run_directories" / "v3" / "plain"


@pytest.fixture
def registry(tmp_path):
    """A registry beside another one, whose promotion can be changed."""
    stored = Registry(str(tmp_path / "registry"))
    capture_run(RunDirectory(str(RUN)), stored, revision="v1.0")
    promote_capture(stored, "v1.0")
    shutil.copytree(tmp_path / "registry", tmp_path / "other")
    return tmp_path / "registry"


def promote(registry, reference, point=None):
    """Has the registry's promotion name another capture of a point."""
    (file,) = (registry / "promotions").iterdir()
    content = json.loads(file.read_text())
    names = [point or name for name in content["points"]]
    content["points"] = dict.fromkeys(names, reference)
    file.write_text(json.dumps(content))


@pytest.mark.parametrize(
    "reference",
    [
        "../other/v1.0",
        "../other/v1.0/20261124T160421Z-810c0d9c",
        "/etc/passwd",
        "v1.0/../../other/v1.0/20261124T160421Z-810c0d9c",
        "../20261124T160421Z-810c0d9c",
        "",
    ],
)
def test_a_promotion_cannot_lead_out_of_the_registry(registry, reference):
    promote(registry, reference)
    with pytest.raises(UserError, match="is no capture of this registry"):
        load_baseline(str(registry))


def test_nor_can_the_name_of_a_point(registry):
    with pytest.raises(UserError, match="is no capture of this registry"):
        Registry(str(registry)).baselines([("v1.0/20261124T160421Z-810c0d9c", "../../x")])


def test_a_pipe_in_its_place_is_not_waited_for(registry):
    file = next((registry / "v1.0").glob("*/*.json"))
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(UserError, match="Neither a file nor a folder"):
        load_baseline(str(registry))
