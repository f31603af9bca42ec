"""Captures, promotions and records of schema version 1: read as this version."""

import json
from pathlib import Path

from orbax_bench_core import load_run
from orbax_bench_core.baselines import Registry, load_baseline

DATA = Path(__file__).parents[1] / "data"
REGISTRY = DATA / "registries" / "v1"


def test_a_registry_is_read():
    captures = Registry(str(REGISTRY)).captures()
    assert [capture.revision for capture in captures] == ["v1.0", "v1.1"]


def test_its_records_are_measured_ones():
    assert {record.status for record in load_baseline(str(REGISTRY))} == {"passed"}


def test_what_was_verified_is_not_known_to_be_verified_against_what():
    folder = DATA / "run_directories" / "v1" / "plain"
    said = json.loads(next(folder.rglob("repeat_*/host_0.json")).read_text())
    assert said["state"]["verified"] is True
    found = {record.state.verified for record in load_run(str(folder)).records()}
    assert found == {"unknown"}
