"""Verdicts in the terminal."""

import io
import re

import pytest
from rich.console import Console

from orbax_bench_core.analysis.verdicts.view import verdicts_document
from orbax_bench_core.document import print_document

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def shown(report, *, width=80, terminal=False):
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=terminal, color_system="standard")
    print_document(verdicts_document(report), console)
    return file.getvalue()


def plain(report, **options):
    return COLOUR.sub("", shown(report, **options))


def flat(report, **options):
    """What is shown, whatever was wrapped."""
    return " ".join(plain(report, **options).split())


@pytest.mark.parametrize(
    "look",
    [{"width": 80}, {"width": 80, "terminal": True}, {"width": 200, "terminal": True}],
    ids=["log", "narrow", "wide"],
)
@pytest.mark.parametrize(
    "fact",
    [
        "✗ (REGRESSION)",
        "candidate: drifts by +15 % from start to end",
        "taking turns cost 12 s",
        "failed: candidate failed: ValueError: a|b <b>bold</b> [red]",
        "no load in the candidate",
        "jax is 0.10.1 | [old] in the baseline",
        "only in the baseline: gone[x] 1234",
        "options.a: 1 | 4",
        "only in the candidate: new <b> 5678",
        "(False discovery rate: 4 %.)",
    ],
)
def test_it_shows(eventful, look, fact):
    assert fact in flat(eventful, **look)


def test_the_worst_point_comes_first_and_the_verdict_last(eventful):
    lines = plain(eventful).splitlines()
    assert lines[0].startswith("✗ REGRESSION save_restore[kind=<script>")
    assert lines[-1].startswith("✗ REGRESSION: save takes [1.163–1.259] times as long")


def test_the_columns_of_all_points_line_up(eventful):
    row = re.compile(r"  \S+ +(\[.*\] +[\d.]+x|– +–) ")
    rows = [line for line in plain(eventful).splitlines() if row.match(line)]
    assert len(rows) == 6
    assert len({line.index("[") for line in rows if "[" in line}) == 1


@pytest.mark.parametrize("width", [80, 109, 110, 140])
def test_nothing_is_wider_than_the_terminal(eventful, width):
    assert max(map(len, plain(eventful, width=width, terminal=True).splitlines())) <= width


@pytest.mark.parametrize(
    ("word", "colour"), [("REGRESSION", "1;31"), ("PASS", "32"), ("INCONCLUSIVE", "33")]
)
def test_a_verdict_has_its_colour_beside_its_mark_and_word(
    make_operation, make_verdicts, make_report, word, colour
):
    report = make_report(make_verdicts("p", make_operation("save", word)))
    marked = f"\x1b\\[{colour}m[✗✓?] {word}\x1b"
    assert re.search(marked, shown(report, terminal=True))


def test_of_many_points_those_that_pass_have_one_line_each(
    make_operation, make_verdicts, make_report
):
    passing = [
        make_verdicts(
            f"p[{i}]", make_operation("save", ratio=1.0), make_operation("load", ratio=1.02)
        )
        for i in range(200)
    ]
    regressed = make_verdicts("bad", make_operation("save", "REGRESSION", 1.3))
    text = plain(make_report(*passing, regressed))
    assert "200 points pass" in text
    assert len(re.findall(r"^  ✓ PASS load +\[.*\] +1\.020x +p\[\d+\]", text, re.M)) == 200
    assert "advice on save" in text
    assert len(text.splitlines()) < 220


def test_a_pass_on_one_line_counts_its_flags(make_operation, make_verdicts, make_report):
    flagged = make_operation(flags={"baseline": ("slow",), "candidate": ("odd",)})
    points = [make_verdicts(f"p{i}", flagged) for i in range(9)]
    assert plain(make_report(*points)).count("! 2 flags") == 9
