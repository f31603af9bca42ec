"""Keys of samples."""

from __future__ import annotations

from orbax_bench_core.measure import Sample


def test_key_is_operation_and_metric() -> None:
    assert Sample("save", 0, "0_basics/time_s", 1.0, "s").key == "save_0_basics/time_s"


def test_key_of_a_later_occurrence_has_its_index() -> None:
    assert Sample("save", 1, "0_basics/time_s", 1.0, "s").key == "save[1]_0_basics/time_s"
