from __future__ import annotations

import json
from pathlib import Path

import pytest

from perf.process import ProbeFailed
from perf.tour import Tour, our_operations_s, upstream_operations_s

TIME = "0_basics/time_s"


def write_record(directory: Path, repeat: str, samples: list[tuple[str, str, float]]) -> None:
    folder = directory / "records" / "0123456789ab" / repeat
    folder.mkdir(parents=True)
    keys = ("operation", "metric", "value")
    record = {"samples": [dict(zip(keys, sample, strict=True)) for sample in samples]}
    (folder / "host_0.json").write_text(json.dumps(record))


def test_outside_is_what_the_operations_leave() -> None:
    assert Tour(wall_s=10.0, cpu_s=3.0, operations_s=4.0).outside_s == 6.0


def test_saves_and_loads_of_warm_ups_and_repeats_are_added_up(tmp_path: Path) -> None:
    write_record(tmp_path, "warmup_0", [("save", TIME, 1.0), ("load", TIME, 2.0)])
    write_record(tmp_path, "repeat_0", [("save", TIME, 4.0), ("load", TIME, 8.0)])
    assert our_operations_s(tmp_path) == 15.0


def test_operations_inside_a_save_are_not_added_again(tmp_path: Path) -> None:
    write_record(tmp_path, "repeat_0", [("save_blocking", TIME, 1.0), ("save", TIME, 2.0)])
    assert our_operations_s(tmp_path) == 2.0


def test_other_metrics_are_not_added(tmp_path: Path) -> None:
    write_record(tmp_path, "repeat_0", [("save", TIME, 2.0), ("save", "7_memory/x", 100.0)])
    assert our_operations_s(tmp_path) == 2.0


def test_a_run_without_operations_is_no_run(tmp_path: Path) -> None:
    write_record(tmp_path, "repeat_0", [])
    with pytest.raises(ProbeFailed, match="says nothing of the time of save or load"):
        our_operations_s(tmp_path)


def test_upstream_means_count_once_per_repeat(tmp_path: Path) -> None:
    for name, repeats, save, load in (("A_1", 3, 1.0, 2.0), ("A_2", 2, 10.0, 20.0)):
        for index in range(repeats):
            (tmp_path / name / f"repeat_{index}").mkdir(parents=True)
        folder = tmp_path / "tensorboard" / name / "host_0"
        folder.mkdir(parents=True)
        keys = [f"save::{TIME}", "save::9_other/x", f"load::{TIME}"]
        means = {"keys": keys, "means": [save, 1000.0, load]}
        (folder / "_per_host_means.json").write_text(json.dumps(means))
    assert upstream_operations_s(tmp_path) == 3 * 3.0 + 2 * 30.0


def test_an_upstream_run_without_means_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(ProbeFailed, match="says nothing"):
        upstream_operations_s(tmp_path)
