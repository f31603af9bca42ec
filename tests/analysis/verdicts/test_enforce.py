"""Enforcement of verdicts."""

import pytest

from orbax_bench_core.analysis.verdicts.model import NotPassed, enforce
from orbax_bench_core.errors import UserError


@pytest.mark.parametrize(
    ("verdict", "allowed"),
    [("PASS", False), ("PASS", True), ("INCONCLUSIVE", True)],
)
def test_good_enough(verdict, allowed):
    enforce(verdict, None, allow_inconclusive=allowed)


@pytest.mark.parametrize(("verdict", "allowed"), [("REGRESSION", True), ("INCONCLUSIVE", False)])
def test_not_good_enough(verdict, allowed):
    with pytest.raises(NotPassed, match=verdict):
        enforce(verdict, None, allow_inconclusive=allowed)


def test_a_word_that_is_no_verdict_is_refused():
    with pytest.raises(UserError, match="not a verdict: 'FINE'"):
        enforce("FINE", None, allow_inconclusive=True)


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        ("time", "p: save 1.01x, load 1.01x"),
        ("failures", "p: 8 of 20 first attempts of the candidate failed"),
        ("stalls", "p: 8 of 20 first attempts of the candidate failed"),
    ],
)
def test_the_message_names_what_decided(
    make_operation, make_verdicts, make_report, tmp_path, endpoint, said
):
    operations = [make_operation(name, "REGRESSION") for name in ("save", "load")]
    reason = "" if endpoint == "time" else "8 of 20 first attempts of the candidate failed"
    report = make_report(make_verdicts("p", *operations, endpoint=endpoint, reason=reason))
    path = tmp_path / "verdicts.json"
    path.write_text(report.model_dump_json())
    with pytest.raises(NotPassed, match=said):
        enforce("REGRESSION", str(path), allow_inconclusive=True)


def test_an_arm_that_lacks_an_operation_is_never_good_enough(
    make_operation, make_verdicts, make_report, tmp_path
):
    operation = make_operation("save", "INCONCLUSIVE")
    report = make_report(make_verdicts("p", operation, endpoint="missing", reason="no load"))
    path = tmp_path / "verdicts.json"
    path.write_text(report.model_dump_json())
    with pytest.raises(NotPassed, match="no load"):
        enforce("INCONCLUSIVE", str(path), allow_inconclusive=True)


def test_an_arm_that_failed_every_time_was_not_measured(make_verdicts):
    attempts = {"baseline": {"count": 10}, "candidate": {"count": 10, "failed": 10}}
    assert make_verdicts("p", attempts=attempts).unmeasured
    attempts["candidate"]["failed"] = 9
    assert not make_verdicts("p", attempts=attempts).unmeasured
