"""Studies of two systems: an answer in words and numbers, and no verdict on a release."""

import io

import pytest
from rich.console import Console

from orbax_bench_core.analysis.verdicts import headline, verdicts_document, write_verdicts
from orbax_bench_core.document import print_document, to_html, to_markdown
from orbax_bench_core.exit_codes import exit_code
from orbax_bench_core.exports.ci import junit_xml
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.steps.pipeline import enforce_verdict
from orbax_bench_core.sweep import BUILTINS, system_of

SYSTEMS = {"baseline": "PyTorch DCP", "candidate": "Orbax"}


@pytest.fixture
def study(make_report, make_verdicts, make_operation):
    saves = make_operation("save", "REGRESSION", 2.1, width=0.13)
    loads = make_operation("load", "INCONCLUSIVE", 1.04, width=0.2)
    return make_report(make_verdicts("save_restore", saves, loads, systems=SYSTEMS))


def test_the_headline_is_a_sentence_beside_what_was_published(study):
    said = headline(study)
    assert said.startswith(
        "Orbax saves in 2.1x the time of PyTorch DCP [1.8–2.4]; Orbax loads in 1x the time of "
        "PyTorch DCP [0.85–1.3]. Published"
    )
    assert "up to 3.5 times and loads up to 2 times as fast as PyTorch" in said


def test_no_output_calls_it_a_regression(study):
    file = io.StringIO()
    print_document(verdicts_document(study), Console(file=file, width=120))
    document = verdicts_document(study)
    for text in (file.getvalue(), to_markdown(document), junit_xml(study).decode()):
        assert "REGRESSION" not in text.partition("The rules that were applied")[0]
    assert "COMPARED" in file.getvalue()
    assert "slower" in file.getvalue()
    assert "not told apart" in file.getvalue()
    assert "<title>COMPARED" in to_html(document)


def test_it_ends_well_and_a_pipeline_goes_on(study, tmp_path):
    assert exit_code(study.outcome) == 0
    write_verdicts(RunDirectory(str(tmp_path)), study)
    enforce_verdict("REGRESSION", verdicts=str(tmp_path / "verdicts.json"))


def test_an_arm_that_failed_is_no_answer(make_report, make_verdicts):
    failed = make_verdicts("p", word="INCONCLUSIVE", failed=True, reason="x", systems=SYSTEMS)
    assert exit_code(make_report(failed).outcome) != 0


def test_a_benchmark_names_what_it_saves_with():
    names = {name: system_of(name) for name in BUILTINS}
    assert names["pytorch_dcp"] == "PyTorch DCP"
    assert names["save_restore"] == names["pytree_checkpoint"] == "Orbax"
    assert system_of("my_module.Mine") == ""
