from __future__ import annotations

import pytest

from perf.delegated import data_sides
from perf.process import ProbeFailed

OURS = "1 GiB of bfloat16, median of 1\n  ours         1.23 s      1073 MiB more\n"
BOTH = f"{OURS}  upstream    27.13 s      5120 MiB more\n  time        0.045 of upstream's\n"


def test_both_sides_are_read() -> None:
    assert data_sides(BOTH) == {"ours": (1.23, 1073.0), "upstream": (27.13, 5120.0)}


def test_ours_alone_is_read() -> None:
    assert data_sides(OURS) == {"ours": (1.23, 1073.0)}


def test_output_without_figures_is_an_error() -> None:
    with pytest.raises(ProbeFailed, match="printed no figures: 'Killed'"):
        data_sides("Killed")
