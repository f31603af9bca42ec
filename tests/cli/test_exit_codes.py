"""Exit codes: one table for every command, and which of several codes a command ends with."""

import re
from pathlib import Path

import pytest

from orbax_bench_core.analysis.summary import summarize
from orbax_bench_core.engine import NotPassed, enforce_verdict, publish_baseline
from orbax_bench_core.errors import UserError
from orbax_bench_core.exit_codes import MEANINGS, RETRIED, Exit, exit_code, worst
from orbax_bench_core.records import ErrorInfo, repeats_of
from tests.support.verdicts import build_operation, build_point, build_report


@pytest.mark.parametrize(
    ("codes", "found"),
    [([], 0), ([0, 4], 4), ([4, 1], 1), ([1, 3, 4], 3), ([3, 2], 2), ([0, 0], 0)],
)
def test_a_regression_goes_before_a_failure(codes, found):
    assert worst(codes) == found


PASSES = build_point("passes")
REGRESSES = build_point("regresses", build_operation("save", "REGRESSION", 1.3))
OPEN = build_point("open", build_operation("save", "INCONCLUSIVE", 1.1))
FAILS = build_point("fails", build_operation("save", "INCONCLUSIVE", None), failed=True)
LACKS = build_point("lacks", build_operation("save", "INCONCLUSIVE", None), endpoint="missing")


@pytest.mark.parametrize(
    ("report", "code", "tolerant"),
    [
        (build_report(PASSES), 0, 0),
        (build_report(PASSES, REGRESSES), 3, 3),
        (build_report(PASSES, OPEN), 4, 0),
        (build_report(LACKS), 4, 4),
        (build_report(OPEN, FAILS), 1, 1),
        (build_report(REGRESSES, FAILS), 3, 3),
        (build_report(PASSES, left_out=("x",)), 1, 1),
        (build_report(word="INCONCLUSIVE"), 1, 1),
        (build_report(REGRESSES, exploratory="other rules"), 4, 4),
        (build_report(REGRESSES, FAILS, exploratory="other rules"), 1, 1),
    ],
    ids=[
        "pass",
        "regression",
        "inconclusive",
        "an operation is missing",
        "an arm failed",
        "a regression and a failure",
        "a file was left out",
        "every point was skipped",
        "exploratory",
        "exploratory, and an arm failed",
    ],
)
def test_a_comparison_and_the_step_that_enforces_it_have_one_code(report, code, tolerant, tmp_path):
    place = tmp_path / "verdicts.json"
    place.write_text(report.model_dump_json())
    for allowed, expected in ((False, code), (True, tolerant)):
        assert exit_code(report.outcome, allow_inconclusive=allowed) == expected
        assert enforced(report, place, allow_inconclusive=allowed) == expected


def enforced(report, place, **more):
    try:
        enforce_verdict(report.word, verdicts=str(place), **more)
    except NotPassed as refused:
        return refused.code
    return Exit.OK


def test_a_word_that_is_none_or_not_that_of_the_file_is_refused(tmp_path):
    place = tmp_path / "verdicts.json"
    place.write_text(build_report(REGRESSES).model_dump_json())
    with pytest.raises(UserError, match=r"says REGRESSION, and the verdict given is PASS"):
        enforce_verdict("PASS", verdicts=str(place))
    with pytest.raises(UserError, match=r"not a verdict: 'FINE'; it is one of .*LEAK"):
        enforce_verdict("FINE")
    with pytest.raises(NotPassed, match=r"^LEAK$") as refused:
        enforce_verdict("LEAK")
    assert refused.value.code == Exit.REGRESSION


APART = {"mode": "unpaired"}
SLOWER_APART = build_point("apart", build_operation("save", "REGRESSION", 1.3), **APART)
BEYOND = build_operation("save", "REGRESSION", 5.8, verdict={"beyond_runs": True})
BEYOND_APART = build_point("far apart", BEYOND, **APART)
OPEN_APART = build_point("apart", build_operation("save", "INCONCLUSIVE", 1.1), **APART)


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (build_report(SLOWER_APART), 0),
        (build_report(OPEN_APART), 0),
        (build_report(BEYOND_APART, OPEN_APART), 3),
        (build_report(BEYOND_APART, exploratory="other rules"), 4),
        (build_report(SLOWER_APART, left_out=("x",)), 1),
        (build_report(SLOWER_APART, exploratory="other rules"), 4),
        (build_report(SLOWER_APART, REGRESSES), 3),
        (build_report(word="INCONCLUSIVE"), 1),
    ],
)
def test_what_was_measured_apart_only_warns(report, code, tmp_path):
    assert exit_code(report.outcome) == code
    place = tmp_path / "verdicts.json"
    place.write_text(report.model_dump_json())
    assert enforced(report, place) == code
    if report.only_warns and not code:
        with pytest.raises(NotPassed, match=r"^a step left nothing$") as refused:
            enforce_verdict(report.word, verdicts=str(place), lacking=["a step left nothing"])
        assert refused.value.code == Exit.FAILED
    # Whoever enforces the word alone has decided that it counts.
    with pytest.raises(NotPassed):
        enforce_verdict(report.word)


@pytest.mark.parametrize(
    ("verdict", "tolerant", "captured"),
    [
        ("REGRESSION", True, False),
        ("INCONCLUSIVE", False, False),
        ("INCONCLUSIVE", True, True),
        ("PASS", False, True),
        ("", False, True),
    ],
)
def test_a_run_that_looks_slower_is_not_captured(
    make_record, make_run, tmp_path, verdict, tolerant, captured
):
    run = make_run([make_record()])
    found = publish_baseline(
        str(run.root), str(tmp_path / "r"), verdict=verdict, allow_inconclusive=tolerant
    )
    assert bool(found.value) == captured == (tmp_path / "r").exists()
    assert found.named["baseline"].metadata.get("not_captured", "") == ("" if captured else verdict)


def test_a_word_that_no_comparison_returns_is_a_mistake_for_a_capture(
    orbax_bench, make_record, make_run, tmp_path
):
    run = make_run([make_record()])
    words = ("step", "publish-baseline", tmp_path / "r", "-o", run.root, "--verdict", "LEAK")
    done = orbax_bench(*words)
    assert done.code == Exit.INVALID
    allowed = "it is one of REGRESSION, PASS, INCONCLUSIVE"
    assert f"not a verdict: 'LEAK'; {allowed}" in done.err
    assert not (tmp_path / "r").exists()


def test_the_guide_has_this_table_and_no_other_page_has_one():
    docs = Path(__file__).parents[2] / "docs"
    rows = re.findall(r"^\| (\d+) \| (.*) \| (.*) \|$", (docs / "ci.md").read_text(), re.MULTILINE)
    assert rows == [(str(int(code)), *words) for code, words in MEANINGS.items()]
    assert set(MEANINGS) == set(Exit)
    rival = re.compile(r"^\| 75 \|", re.MULTILINE)
    assert [page for page in docs.rglob("*.md") if rival.search(page.read_text())] == [
        docs / "ci.md"
    ]


def test_what_is_tried_again_is_what_the_table_says():
    said = {code for code, (_, advice) in MEANINGS.items() if advice.startswith("retry")}
    assert said == set(RETRIED)


def test_no_command_has_a_number_of_its_own():
    root = Path(__file__).parents[2]
    number = re.compile(
        r"(typer\.Exit|sys\.exit)\([^)\[]*\b\d\b|^_?EXIT_\w+[^=\n]*= *\d", re.MULTILINE
    )
    folders = ("cli", "execute", "launchers", "state", "steps")
    places = [root / "orbax_bench_core" / folder for folder in folders]
    places += [root / "pipelines", root / "airflow_pipelines", root / "components"]
    files = [file for place in places for file in place.rglob("*.py")]
    assert len(files) > 100
    assert [str(file) for file in files if number.search(file.read_text())] == []


ERROR = ErrorInfo(type="ValueError", message="no")


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        (["passed", "passed"], 0),
        (["passed", "skipped"], 0),
        (["passed", "failed"], 1),
        (["failed"], 1),
        (["skipped"], 1),
        ([], 1),
    ],
)
def test_the_exit_code_says_whether_anything_failed_or_nothing_was_measured(
    make_record, make_point, statuses, code
):
    records = [
        make_record(
            make_point(options={"a": i}),
            status=one,
            times={"save": 1.0},
            error=None if one == "passed" else ERROR,
        )
        for i, one in enumerate(statuses)
    ]
    assert exit_code(summarize(repeats_of(records)).outcome) == code


def test_repeats_that_passed_without_a_sample_are_no_success(make_record):
    summary = summarize(repeats_of([make_record()]))
    assert exit_code(summary.outcome) == 1
    assert "without one sample" in (summary.points[0].flag or "")
