"""Verdicts for people: one headline everywhere, few lines, every number, what helps."""

import math

import pytest
import typer

from orbax_bench_core.analysis import verdicts
from orbax_bench_core.cli.main import app
from orbax_bench_core.config import GateConfig
from orbax_bench_core.exit_codes import Exit, exit_code
from orbax_bench_core.exports.ci import junit_xml
from orbax_bench_core.gate import FailureVerdict, SeriesHealth, StallVerdict
from orbax_bench_core.pages import to_html, to_markdown
from orbax_bench_core.records import FirstAttempts
from orbax_bench_core.sweep import PairDesign
from tests.support.shown import assert_tells, next_command, terminal
from tests.support.verdicts import NASTY


def document_of(report):
    return verdicts.verdicts_document(report, "out")


def said(report):
    return verdicts.headline(report).said


def stalls(candidate=0, baseline=0, operations=20, bound=0.14, word="PASS", **fields):
    given = {
        "p_value": 0.9,
        "threshold": 1.5,
        "look": 0,
        "limit": 0.1,
        "mean_ratio": 1.02,
        **fields,
    }
    counts = {"candidate": candidate, "baseline": baseline, "operations": operations}
    return StallVerdict(word=word, bound=bound, **counts, **given)


def attempts(candidate=0, baseline=0, count=20, word="PASS", **first):
    """Fields of a point of which so many first attempts of each side failed."""
    failed = {"baseline": baseline, "candidate": candidate}
    first = first or {"block": 2, "example": "OSError"}
    return {
        "failures": FailureVerdict(
            word=word, **failed, attempts=count, p_value=0.9, bound=0.21, limit=0.1, look=0
        ),
        "attempts": {
            arm: FirstAttempts(count=count, failed=found, **(first if found else {}))
            for arm, found in failed.items()
        },
        "failed_at": {arm: tuple(range(found)) for arm, found in failed.items() if found},
    }


@pytest.fixture
def judged(make_operation):
    """Makes an operation with everything that a verdict on it has."""

    def make(operation, *args, **fields):
        verdict = {
            "p_regression": 0.004,
            "p_pass": 0.7,
            "detectable": 0.21,
            "detectable_80": 0.18,
            "stalls": stalls(),
            **fields.pop("verdict", {}),
        }
        health = {
            arm: SeriesHealth(
                n=20, median=1.5, spread=0.07, sigma=0.06, drift_p=drift_p, drift=0.29, outliers=0.1
            )
            for arm, drift_p in (("baseline", 0.002), ("candidate", 0.4))
        }
        return make_operation(operation, *args, verdict=verdict, health=health, **fields)

    return make


@pytest.fixture
def metrics():
    numbers = {"baseline": 3e6, "candidate": 4e6, "delta": 1 / 3, "apart": 0.8}
    what = {"operation": "save", "metric": "1_x/bytes", "unit": "bytes", "better": "lower"}
    return ({**what, **numbers, "repeats": {"baseline": 20, "candidate": 19}},)


def shapes(judged, make_verdicts, make_report, metrics):
    """Yields a report of each shape that a comparison can have, by name."""

    def point(*operations, name="save_restore[use_ocdbt=true]", **fields):
        given = {**attempts(), "design": PairDesign(blocks_per_process=2), **fields}
        return make_verdicts(name, *operations, **given)

    slow = judged("save_blocking", "REGRESSION", 1.26)
    fine, open_ = judged("load", ratio=1.04), judged("save", "INCONCLUSIVE", 1.1, width=0.06)
    cpu = judged("save:cpu", "REGRESSION", 1.4, primary=False, false_discovery=0.04)
    yield "regression", make_report(point(slow, fine, cpu, metrics=metrics, continued=2))
    yield (
        "pass",
        make_report(
            point(fine, judged("save", ratio=0.9), design=PairDesign(workers="shared")),
            gate=GateConfig(metrics={"load": {"margin": 0.3}}, min_effect_s=0.002),
        ),
    )
    more = open_.model_copy(
        update={"verdict": open_.verdict.model_copy(update={"more_blocks": 14, "settled": True})}
    )
    lives = PairDesign(workers="lives", operations_per_life=3, after=4)
    yield "more", make_report(point(more, fine, settled=True, design=lives), suite_file="s.yaml")
    yield "unfinished", make_report(point(open_, next_look=40), suite_file="s.yaml")
    stalling = {"stalls": stalls(6, 1, word="REGRESSION"), "endpoint": "stalls"}
    by_stalls = judged("save", "REGRESSION", 1.0, verdict=stalling)
    yield "stalls", make_report(point(by_stalls, endpoint="stalls"))
    failing = attempts(8, 1, word="REGRESSION")
    yield "failures", make_report(point(fine, word="REGRESSION", endpoint="failures", **failing))
    apart = judged("save", "REGRESSION", 1.4, blocks=0, verdict={"beyond_runs": True})
    yield "apart", make_report(make_verdicts("p", apart, mode="unpaired"))
    trouble = {
        "operation": "save",
        "flagged": {"baseline": 3, "candidate": 9},
        "repeats": {"baseline": 20, "candidate": 20},
        "counts": {"candidate": {"throttled": 18}},
        "p_value": 0.002,
        "more": "candidate",
    }
    alone = PairDesign(workers="one_per_arm", left_open=0.04)
    yield "storage", make_report(point(slow, storage=(trouble,), design=alone), not_alone=12)
    quick = judged("save_blocking", ratio=0.2, verdict={"faster": True})
    yield "faster", make_report(point(quick, fine))
    five = [point(judged("save", ratio=1 + n / 99), fine, name=f"s[a={n}]") for n in range(5)]
    yield "several", make_report(*five)


def test_every_shape_is_told(judged, make_verdicts, make_report, metrics):
    for name, report in shapes(judged, make_verdicts, make_report, metrics):
        unless = ["looks", "operations_per_life"]  # of which others would not be valid
        unless += ["times", "block_log_ratios"] if name == "several" else []
        if name not in ("regression", "more", "storage"):  # which have every number together
            unless += report.model_dump()
        assert_tells(report, document_of, unless=unless)


def test_a_headline_has_the_change_in_ms_and_what_is_unaffected(
    judged, make_verdicts, make_report, metrics
):
    found = {
        name: said(report) for name, report in shapes(judged, make_verdicts, make_report, metrics)
    }
    assert found["regression"] == (
        "✗ REGRESSION: blocking saves take 26 % longer (+21 to +31 %), 1.52 → 1.87 s; loads are "
        "not slower by 15 % or more"
    )
    assert found["more"] == (
        "? INCONCLUSIVE: loads are not slower by 15 % or more; saves may be slower, by up to 17 %: "
        "+10 % (+4 to +17 %), 1.5 → 1.66 s"
    )
    assert found["several"].startswith(
        "✓ PASS: saves and loads are not slower by 15 % or more in 5 points; closest to that: "
        "saves of a=4"
    )
    assert found["faster"] == (
        "✓ PASS: blocking saves are faster: -80 % (-81 to -79 %), 1.5 s → 300 ms; loads are not "
        "slower by 15 % or more: +4 % (+0 to +8 %), 1.51 → 1.56 s"
    )
    assert found["stalls"] == (
        "✗ REGRESSION: saves stall: 6 of 20 operations stalled, 1 of the baseline"
    )
    assert found["failures"] == "✗ REGRESSION: attempts fail: 8 of 20 failed, 1 of the baseline"
    assert "measured apart" in found["apart"]
    assert "12 repeats not alone" in found["storage"]


def test_medians_that_went_the_other_way_are_not_told_next_to_the_change(
    make_operation, make_verdicts, make_report
):
    times = {"baseline": (0.3, 0.3), "candidate": (0.2, 0.2)}
    report = make_report(make_verdicts("p", make_operation("save", "PASS", 1.04, times=times)))
    assert "saves are not slower by 15 % or more: +4 % (" in said(report)
    assert "→" not in said(report)
    assert "medians of all can go the other way" in " ".join(terminal(document_of(report)).split())
    times = {"baseline": (0.3, 0.3), "candidate": (0.299, 0.299)}
    report = make_report(make_verdicts("p", make_operation("save", "PASS", 1.01, times=times)))
    assert "300 → 299 ms" in said(report)
    assert "the other way" not in terminal(document_of(report))


def test_the_worst_regression_is_told_and_a_proof_before_a_warning(
    make_operation, make_verdicts, make_report
):
    report = make_report(
        make_verdicts("u[a=1]", make_operation("save", "REGRESSION", 3.0), mode="unpaired"),
        make_verdicts("u[a=2]", make_operation("save", "REGRESSION", 1.2)),
        make_verdicts("u[a=3]", make_operation("load", "REGRESSION", 1.4), make_operation("save")),
        make_verdicts("u[a=4]"),
    )
    assert said(report).startswith("✗ REGRESSION: in a=3 loads take 40 % longer")
    assert "3 of 4 points regressed" in said(report)


def test_one_of_several_points_has_a_verb_of_its_own(judged, make_verdicts, make_report):
    report = make_report(make_verdicts("a", judged("save", "INCONCLUSIVE")), make_verdicts("b"))
    assert said(report).endswith("; 1 of 2 points has no verdict")


def test_what_nobody_looked_at_is_said(make_verdicts, make_report):
    report = make_report(make_verdicts("p"))
    assert "stalls and failures were not looked at" in said(report)
    assert "Stalls and failures were not looked at." in terminal(document_of(report))


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"word": "INCONCLUSIVE"}, "? INCONCLUSIVE: no point is in both, so nothing was compared"),
        (
            {"exploratory": "margin 15 % -> 30 %"},
            "? INCONCLUSIVE: rules changed after the data (margin 15 % -> 30 %); no point is in",
        ),
    ],
)
def test_nothing_that_was_compared_is_no_pass(make_report, fields, found):
    unmatched = (verdicts.Unmatched(side="baseline", point="gone 12", differs=("a: 1 | 4",)),)
    report = make_report(unmatched=unmatched, **{"word": "INCONCLUSIVE", **fields})
    assert said(report).replace(", exploratory", "").startswith(found)
    assert "only in the baseline: gone 12; the nearest differs in a: 1 | 4" in terminal(
        document_of(report)
    )


def test_the_first_failure_is_told_with_its_block(make_report, make_verdicts):
    earlier = {"example": "block 2: OSError"}  # of files that have both in one text
    now, before = (
        to_markdown(document_of(make_report(make_verdicts("p", **attempts(3, 1, **first)))))
        for first in ({}, earlier)
    )
    assert now == before
    assert "first in block 2: OSError" in now


def test_an_exploration_is_stamped_wherever_its_word_stands(make_verdicts, make_report):
    report = make_report(make_verdicts("p", exploratory=True), exploratory="margin 15 % -> 30 %")
    assert said(report).startswith("✓ PASS, exploratory: rules changed after the data")
    assert "prove nothing" in to_markdown(document_of(report))


def test_what_lies_in_names_and_reasons_of_others_is_text(eventful):
    document = document_of(eventful)
    page, shown = to_html(document), terminal(document, details=True)
    assert "<script" not in page
    assert "<b>bold" not in page
    for fact in (
        "ValueError: a|b <b>bold</b> [red]",
        "jax is 0.10.1 | [old] in the baseline",
        "options.a: 1 | 4",
        "taking turns cost 12 s",
        "candidate: drifts by +15 % from start to end",
        "false discovery rate 4 %",
        NASTY.partition(" `")[0],
    ):
        assert fact in " ".join(shown.split()).replace("`", ""), fact


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.0])
def test_values_that_are_no_numbers_are_shown_all_the_same(
    make_operation, make_verdicts, make_report, value
):
    odd = make_operation(
        verdict={"ratio": 1.1, "low": value, "high": value},
        times={"baseline": (1.0, value), "candidate": (value,)},
        block_log_ratios=(value, 0.1),
    )
    nothing = make_operation("load", verdict={"ratio": value, "low": None, "high": None})
    report = make_report(make_verdicts("p", odd, nothing))
    assert "</html>" in to_html(document_of(report))
    assert "load" in terminal(document_of(report), details=True)


@pytest.mark.parametrize("shape", ["regression", "unfinished", "failures", "apart", "pass"])
def test_the_next_command_is_one_that_the_program_takes(
    judged, make_verdicts, make_report, metrics, shape
):
    report = dict(shapes(judged, make_verdicts, make_report, metrics))[shape]
    words = next_command(terminal(document_of(report)))
    name, *given = words
    typer.main.get_command(app).get_command(None, name).make_context(name, given)


def test_where_more_would_tell_the_comparison_goes_on(
    judged, make_verdicts, make_report, metrics, make_operation
):
    report = dict(shapes(judged, make_verdicts, make_report, metrics))["more"]
    assert verdicts.following(report, "out").text == "orbax-bench ab s.yaml -o out --more"
    assert "idle" in verdicts.following(report, "out").caption  # as it was not
    settled = {"settled": True, "time_word": "INCONCLUSIVE"}
    hopeless = make_operation("save", "INCONCLUSIVE", 1.1, verdict=settled)
    report = make_report(make_verdicts("p", hopeless, settled=True), suite_file="s.yaml")
    assert verdicts.following(report, "out").text.startswith("orbax-bench calibrate")
    assert "More operations would probably not tell" in verdicts.following(report, "out").caption


SYSTEMS = {"baseline": "PyTorch DCP", "candidate": "Orbax"}


@pytest.fixture
def study(make_report, make_verdicts, make_operation):
    saves = make_operation("save", "REGRESSION", 2.1, width=0.13)
    loads = make_operation("load", "INCONCLUSIVE", 1.04, width=0.2)
    return make_report(make_verdicts("save_restore", saves, loads, systems=SYSTEMS))


def test_a_study_of_two_systems_says_in_what_time_and_judges_nothing(study):
    assert said(study) == (
        "COMPARED: Orbax saves in 2.1x the time of PyTorch DCP (1.8 to 2.4x); Orbax loads in 1x "
        "the time of PyTorch DCP (0.85 to 1.3x)"
    )
    document = document_of(study)
    page = to_markdown(document)
    for text in (terminal(document), page.partition("How to read")[0], junit_xml(study).decode()):
        assert "REGRESSION" not in text
    assert "not told apart" in page
    assert "up to 3.5 times and loads up to 2 times as fast as PyTorch" in page


def test_an_arm_that_failed_is_no_answer(make_report, make_verdicts):
    failed = make_verdicts("p", word="INCONCLUSIVE", failed=True, reason="x", systems=SYSTEMS)
    assert exit_code(make_report(failed).outcome) != 0


def test_a_system_that_failed_every_time_was_not_compared(make_report, make_verdicts):
    made = {"baseline": FirstAttempts(count=8), "candidate": FirstAttempts(count=8, failed=8)}
    point = make_verdicts("p", word="REGRESSION", attempts=made, systems=SYSTEMS)
    assert exit_code(make_report(point).outcome) == Exit.FAILED


@pytest.mark.parametrize(
    ("others", "nearest"),
    [
        ([("a", "PASS", 1.1), ("b", "PASS", 1.2)], "b"),
        ([("a", "REGRESSION", 1.1), ("b", "PASS", 1.2)], "a"),
        ([("a", "INCONCLUSIVE", 1.0), ("b", "PASS", 1.2)], "a"),
        ([("a", "INCONCLUSIVE", 1.3), ("b", "INCONCLUSIVE", None)], "b"),
        ([("a", "INCONCLUSIVE", 1.3), ("b", "INCONCLUSIVE", math.nan)], "b"),
    ],
)
def test_the_nearest_to_trouble(make_operation, make_verdicts, others, nearest):
    found = verdicts.nearest_to_trouble(
        make_verdicts("p", *(make_operation(*other) for other in others))
    )
    assert found is not None
    assert found.operation == nearest


def test_a_point_that_was_never_tried_says_nothing_of_failures(judged, make_report, make_verdicts):
    lost = make_verdicts("lost", judged("save"), **attempts(count=0))
    tried = make_verdicts("tried", judged("save"), **attempts())
    assert lost.failures is not None
    never = lost.model_copy(update={"failures": lost.failures.model_copy(update={"bound": 1.0})})
    shown = to_markdown(document_of(make_report(tried, never)))
    assert "Failures: none in 20 attempts per side; up to 21 % may be unseen" in shown
