"""Captures, promotions and records of schema version 1: read as this version."""

import json
import shutil
from pathlib import Path

import pytest

from orbax_bench_core import load_run
from orbax_bench_core.analysis.verdicts import compare_stored
from orbax_bench_core.baselines import (
    Registry,
    capture_run,
    find_capture,
    find_runs,
    load_baseline,
    promote_capture,
)
from orbax_bench_core.errors import UserError
from orbax_bench_core.lineage import trace
from orbax_bench_core.records import RunDirectory

DATA = Path(__file__).parents[1] / "data"
REGISTRY = DATA / "registries" / "v1"
RUNS = DATA / "run_directories" / "v1"


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


@pytest.fixture
def registry(tmp_path):
    """The registry of version 1, which nothing may change."""
    return shutil.copytree(REGISTRY, tmp_path / "registry")


def test_its_captures_have_no_revision_and_keep_their_label():
    captures = Registry(str(REGISTRY)).captures()
    assert {capture.code.revision for capture in captures} == {"unknown"}
    assert find_capture(captures, "v1.0").revision == "v1.0"


@pytest.mark.parametrize("name", ["unknown", "nothing"])
def test_a_name_that_none_has_is_refused(name):
    with pytest.raises(UserError, match=f"no capture is called '{name}'"):
        find_capture(Registry(str(REGISTRY)).captures(), name)


def test_one_is_promoted_without_force(registry):
    done = promote_capture(Registry(str(registry)), "v1.1")
    assert set(done.promotion.points.values()) == {find_capture_of(registry, "v1.1")}


def find_capture_of(registry, name):
    return find_capture(Registry(str(registry)).captures(), name).reference


def test_a_run_is_compared_with_one_and_both_revisions_are_unknown():
    report = compare_stored(str(REGISTRY / "v1.0"), str(RUNS / "plain"))
    assert report.revisions == {"baseline": "unknown", "candidate": "unknown"}
    assert report.notes == ("code under test: unknown in both arms",)
    assert all(point.metrics for point in report.points)


@pytest.mark.parametrize("run", ["plain", "paired"])
def test_a_run_is_captured_under_unknown(registry, run):
    captured = capture_run(RunDirectory(str(RUNS / run)), Registry(str(registry)))
    assert captured.revision == "unknown"
    assert "did not note it" in captured.capture.code.reason


def test_a_capture_has_its_lineage():
    capture = find_capture(Registry(str(REGISTRY)).captures(), "v1.0")
    assert not trace(str(REGISTRY / capture.reference)).broken


@pytest.mark.parametrize("run", ["plain", "paired"])
def test_a_runs_files_are_what_they_were(run):
    status = {link.name: link.status for link in trace(str(RUNS / run)).all_links()}
    assert status["records"] == "unchanged"


def test_a_history_takes_a_run_and_its_capture_once():
    found = find_runs([str(REGISTRY), str(RUNS)])
    assert len(found) == 2  # the captures are of these runs
