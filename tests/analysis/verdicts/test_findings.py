"""Reasons of a verdict in words, and what a PASS leaves open."""

import io
import json

import pytest
from rich.console import Console

from orbax_bench_core.analysis import verdicts
from orbax_bench_core.analysis.verdicts.words import finding
from orbax_bench_core.config import GateConfig
from orbax_bench_core.document import print_document, to_html, to_markdown
from orbax_bench_core.exit_codes import Exit, exit_code
from orbax_bench_core.exports.ci import junit_xml
from orbax_bench_core.gate import FailureVerdict, StallVerdict
from orbax_bench_core.records import FirstAttempts, RunDirectory
from orbax_bench_core.steps.pipeline import enforce_verdict
from orbax_bench_core.sweep import BUILTINS, system_of


def stalls(candidate=0, baseline=0, operations=16, bound=0.17, word="PASS", **fields):
    given = {"p_value": 1.0, "threshold": 1.5, "look": 0, **fields}
    counts = {"candidate": candidate, "baseline": baseline, "operations": operations}
    return StallVerdict(word=word, bound=bound, **counts, **given)


def failures(candidate=0, baseline=0, count=16, bound=0.17, word="PASS"):
    """Fields of a point of which so many first attempts of each arm failed."""
    failed = {"baseline": baseline, "candidate": candidate}
    return {
        "failures": FailureVerdict(
            word=word,
            candidate=candidate,
            baseline=baseline,
            attempts=count,
            p_value=1.0,
            bound=bound,
            look=0,
        ),
        "attempts": {
            arm: FirstAttempts(
                count=count, failed=found, example="block 2: OSError: no space" if found else ""
            )
            for arm, found in failed.items()
        },
    }


@pytest.fixture
def stalling(make_operation):
    """An operation of which 6 of 60 stalled."""
    found = stalls(6, 0, 60, 0.2, "REGRESSION", mean_ratio=1.28)
    verdict = {"stalls": found, "endpoint": "stalls", "time_word": "PASS"}
    reason = "6 of 60 operations of the candidate stalled, and 0 of the baseline"
    return make_operation("save", "REGRESSION", 1.0, reason=reason, verdict=verdict)


def test_a_pass_with_stalls_in_both_arms_counts_them(make_operation):
    found = stalls(2, 3, 20, 0.31, mean_ratio=0.97)
    assert finding(make_operation(verdict={"stalls": found})) == (
        "PASS for the typical time; 2 of 20 operations stalled, and 3 of the baseline, mean time "
        "of what passed 0.97x: stalls of up to 31 % of operations cannot be excluded."
    )


def test_a_regression_by_stalls_says_so(stalling):
    assert finding(stalling) == (
        "REGRESSION by stalls: the candidate stalls in 6 of 60 operations, the baseline in none "
        "(more than 1.5 times the median, mean time of what passed 1.28x)."
    )


def test_a_limit_on_stalls_that_is_not_shown_is_told(make_operation):
    reason = (
        "stalls beyond those of the baseline in up to 26 % of operations cannot be excluded, and "
        "max_stalls is 10 %"
    )
    verdict = {"stalls": stalls(bound=0.26, word="INCONCLUSIVE"), "endpoint": "stalls"}
    found = make_operation("save", "INCONCLUSIVE", 1.0, reason=reason, verdict=verdict)
    assert finding(found) == f"INCONCLUSIVE by stalls: {reason}."


@pytest.fixture
def passed(make_operation, make_verdicts, make_report):
    operation = make_operation(verdict={"stalls": stalls()})
    return make_report(make_verdicts("p", operation, **failures(bound=0.21)))


def views(report):
    """What a report says in every view, whatever was wrapped."""
    document, found = verdicts.verdicts_document(report), {}
    for width in (80, 140):
        file = io.StringIO()
        print_document(document, Console(file=file, width=width, force_terminal=True))
        found[width] = file.getvalue()
    pages = {"markdown": to_markdown(document, figures=None), "html": to_html(document)}
    return {name: " ".join(text.split()) for name, text in (found | pages).items()}


def test_a_headline_names_the_largest_share(make_operation, make_verdicts, make_report):
    few = make_operation(verdict={"stalls": stalls(operations=10, bound=0.26)})
    many = make_operation(verdict={"stalls": stalls(operations=60, bound=0.049)})
    report = make_report(make_verdicts("p", many), make_verdicts("q", few))
    assert "Stalls of up to 26 % of operations cannot be excluded." in verdicts.headline(report)


def test_every_view_tells_of_nothing_to_compare_and_of_a_point_without_operations(
    make_verdicts, make_report, undrawn
):
    for name, text in views(make_report(word="INCONCLUSIVE")).items():
        assert "nothing was compared" in text, name
    point = make_verdicts("p").model_copy(update={"operations": (), "reason": "nothing ran"})
    for name, text in views(make_report(point)).items():
        assert "nothing ran" in text, name


def test_a_file_of_version_1_was_not_looked_at(passed, undrawn):
    content = json.loads(passed.model_dump_json())
    new = ("failures", "attempts", "failed_at", "design", "settled", "endpoint", "verified")
    (point,) = content["points"]
    for name in new:
        point.pop(name, None)
    for operation in point["operations"]:
        for name in ("stalls", "endpoint", "time_word", "lives", "faster", "detectable_80"):
            operation["verdict"].pop(name)
    found = verdicts.VerdictReport.model_validate_json(json.dumps(content))
    assert "Stalls and failed attempts were not looked at." in verdicts.headline(found)
    for name, text in views(found).items():
        assert "stalls were not looked at" in text, name
        assert "failed attempts were not looked at" in text, name


@pytest.mark.parametrize(
    ("fields", "decided"),
    [
        ({"endpoint": "failures", "word": "REGRESSION"}, "decided by failed attempts"),
        ({"endpoint": "stalls", "word": "INCONCLUSIVE"}, "decided by stalls"),
        ({"endpoint": "missing", "word": "INCONCLUSIVE"}, "decided by a missing operation"),
        ({"endpoint": "time", "word": "REGRESSION"}, "decided by the typical time"),
    ],
)
def test_every_view_names_what_decided(make_verdicts, make_report, undrawn, fields, decided):
    report = make_report(make_verdicts("p", reason="because", **fields))
    for name, text in views(report).items():
        assert decided in text, name


def test_a_headline_tells_a_regression_by_failures(make_verdicts, make_report):
    reason = "8 of 20 first attempts of the candidate failed, and 0 of the baseline"
    point = make_verdicts("p", reason=reason, endpoint="failures", word="REGRESSION")
    said = verdicts.headline(make_report(point, word="REGRESSION"))
    assert said == f"Attempts fail in p: {reason}."


def test_a_headline_tells_a_regression_by_stalls(stalling, make_verdicts, make_report):
    report = make_report(make_verdicts("p", stalling, endpoint="stalls"))
    assert verdicts.headline(report) == (
        "save stalls in p: 6 of 60 operations of the candidate stalled, and 0 of the baseline."
    )


def test_a_missing_operation_is_named_with_its_arm_and_repeats(
    make_operation, make_verdicts, make_report, undrawn
):
    reason = "the candidate lacks it in 3 of 20 repeats, first in block 2"
    load = make_operation(
        "load", "INCONCLUSIVE", None, reason=reason, verdict={"endpoint": "missing"}
    )
    point = make_verdicts("p", load, reason=f"load: {reason}", endpoint="missing")
    report = make_report(point)
    assert f"load: {reason}." in verdicts.headline(report)
    for name, text in views(report).items():
        assert reason in text, name


def test_nothing_breaks_at_80_columns(stalling, make_operation, make_verdicts, make_report):
    name = "save_restore[" + ",".join(f"option{index}=true" for index in range(9)) + "]"
    report = make_report(
        make_verdicts(name, stalling, endpoint="stalls", **failures(12, 0, 60, 0.3)),
        make_verdicts("p", make_operation("load", verdict={"stalls": stalls()}), **failures()),
    )
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=True, color_system=None)
    print_document(verdicts.verdicts_document(report), console)
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    headings = [line for line in lines if line[:1] in "✗✓"]
    assert headings[0].startswith("✗ REGRESSION save_restore[option0=true")
    rows = [line for line in lines if line.startswith(("  save", "  load"))]
    assert [row.split()[-2:] for row in rows] == [["REGRESSION:", "stalls"], ["✓", "PASS"]]


def test_the_rules_name_floor_stalls_and_lives(make_verdicts, make_report, undrawn):
    gate = GateConfig(min_effect_s=0.002, max_stalls=0.1, metrics={"load": {"min_effect_s": 0.05}})
    for name, text in list(views(make_report(make_verdicts("p"), gate=gate)).items())[2:]:
        assert "A slow-down below 2 ms does not count here" in text, name
        assert "PASS has to exclude stalls beyond those of the baseline in more than" in text, name
        assert "For load: at least 50 ms." in text, name
        assert "With lives, looks at 16, 24, 40, 60." in text, name


@pytest.mark.parametrize("own", [True, False])
def test_the_rules_say_what_decides_of_a_class_of_its_own(make_verdicts, make_report, own):
    gate = GateConfig(primary=("upload",)) if own else GateConfig()
    document = to_markdown(
        verdicts.verdicts_document(make_report(make_verdicts("p"), gate=gate)), figures=None
    )
    assert ("the first 3 that it measures" in document) != own


SYSTEMS = {"baseline": "PyTorch DCP", "candidate": "Orbax"}


@pytest.fixture
def study(make_report, make_verdicts, make_operation):
    saves = make_operation("save", "REGRESSION", 2.1, width=0.13)
    loads = make_operation("load", "INCONCLUSIVE", 1.04, width=0.2)
    return make_report(make_verdicts("save_restore", saves, loads, systems=SYSTEMS))


def test_the_headline_is_a_sentence_beside_what_was_published(study):
    said = verdicts.headline(study)
    assert said.startswith(
        "Orbax saves in 2.1x the time of PyTorch DCP [1.8–2.4]; Orbax loads in 1x the time of "
        "PyTorch DCP [0.85–1.3]. Published"
    )
    assert "up to 3.5 times and loads up to 2 times as fast as PyTorch" in said


def test_no_output_calls_it_a_regression(study):
    file = io.StringIO()
    print_document(verdicts.verdicts_document(study), Console(file=file, width=120))
    document = verdicts.verdicts_document(study)
    for text in (file.getvalue(), to_markdown(document), junit_xml(study).decode()):
        assert "REGRESSION" not in text.partition("The rules that were applied")[0]
    assert "COMPARED" in file.getvalue()
    assert "slower" in file.getvalue()
    assert "not told apart" in file.getvalue()
    assert "<title>COMPARED" in to_html(document)


def test_it_ends_well_and_a_pipeline_goes_on(study, tmp_path):
    assert exit_code(study.outcome) == 0
    verdicts.write_verdicts(RunDirectory(str(tmp_path)), study)
    enforce_verdict("REGRESSION", verdicts=str(tmp_path / "verdicts.json"))


def test_an_arm_that_failed_is_no_answer(make_report, make_verdicts):
    failed = make_verdicts("p", word="INCONCLUSIVE", failed=True, reason="x", systems=SYSTEMS)
    assert exit_code(make_report(failed).outcome) != 0


def test_a_system_that_failed_every_time_was_not_compared(make_report, make_verdicts):
    attempts = {"baseline": FirstAttempts(count=8), "candidate": FirstAttempts(count=8, failed=8)}
    point = make_verdicts("p", word="REGRESSION", attempts=attempts, systems=SYSTEMS)
    assert exit_code(make_report(point).outcome) == Exit.FAILED


def test_a_benchmark_names_what_it_saves_with():
    names = {name: system_of(name) for name in BUILTINS}
    assert names["pytorch_dcp"] == "PyTorch DCP"
    assert names["save_restore"] == names["pytree_checkpoint"] == "Orbax"
    assert system_of("my_module.Mine") == ""
