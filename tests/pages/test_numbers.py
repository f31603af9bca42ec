"""Numbers as text and on scales."""

import re
from pathlib import Path

import pytest

from orbax_bench_core.pages import Scale, num_bytes, seconds, share

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ("orbax_bench_core", "components", "pipelines", "airflow_pipelines", "website")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.0, "0 µs"),
        (1.5e-6, "1.5 µs"),
        (0.00099949, "999 µs"),
        (0.001, "1 ms"),
        (0.12345, "123 ms"),
        (0.9996, "1000 ms"),
        (1.0, "1 s"),
        (59.94, "59.9 s"),
        (599.7, "600 s"),
        (600.0, "10 min"),
        (90_000.0, "1500 min"),
        (-0.5, "-500 ms"),
    ],
)
def test_a_duration_has_a_unit_that_suits_it(value, written):
    assert seconds(value) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (1023 * 2**10, "1023 KiB"),
        (128 * 2**20, "128 MiB"),
        (2**30, "1 GiB"),
        (1.5 * 2**40, "1.5 TiB"),
        (5000 * 2**40, "5000 TiB"),
    ],
)
def test_a_size_is_written_in_binary_units(value, written):
    assert num_bytes(value) == written


@pytest.mark.parametrize(
    ("ratio", "figures", "sign", "written"),
    [
        (0.005, 3, "", "0.5 %"),
        (0.1234, 2, "", "12 %"),
        (0.0456, 3, "+", "+4.56 %"),
        (0.996, 2, "", "100 %"),
        (12, 3, "", "1200 %"),
        (12, 3, "+", "+1200 %"),
        (-0.2, 3, "+", "-20 %"),
    ],
)
def test_a_share_has_its_digits_and_no_exponent(ratio, figures, sign, written):
    assert share(ratio, figures, sign) == written


def test_percent_is_written_with_a_space_in_every_text():
    """In code by what `:.0%` would write without one, in pages by the text itself."""
    texts = [path for folder in SHIPPED for path in (ROOT / folder).rglob("*.py")]
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs/schema").glob("*")]
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for paths, pattern in ((texts, r"\{[^{}]*:[^{}]*%\}"), (pages, r"\d%(?!\w)"))
        for path in paths
        for match in re.finditer(pattern, path.read_text())
    ]
    assert found == []


def test_an_outlier_does_not_stretch_a_scale():
    scale = Scale.of([[1.0, 1.1, 1.2, 1.1, 1.0, 90.0], [2.0, 2.1, 2.0, 2.2]])
    assert 2.2 < scale.high < 2.5
    assert scale.place(90.0) == 100
