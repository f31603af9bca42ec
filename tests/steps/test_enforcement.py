"""What a pipeline says of a verdict that is not good enough."""

import pytest

from orbax_bench_core.steps.pipeline import NotPassed, enforce_verdict
from tests.support.verdicts import make_operation, make_report, make_verdicts  # noqa: F401 - fixtures


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
        enforce_verdict("REGRESSION", verdicts=str(path), allow_inconclusive=True)


def test_an_arm_that_lacks_an_operation_is_never_good_enough(
    make_operation, make_verdicts, make_report, tmp_path
):
    operation = make_operation("save", "INCONCLUSIVE")
    report = make_report(make_verdicts("p", operation, endpoint="missing", reason="no load"))
    path = tmp_path / "verdicts.json"
    path.write_text(report.model_dump_json())
    with pytest.raises(NotPassed, match="no load"):
        enforce_verdict("INCONCLUSIVE", verdicts=str(path), allow_inconclusive=True)
