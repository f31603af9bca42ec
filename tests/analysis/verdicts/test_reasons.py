"""Sentences of verdicts: none in the gate, those of earlier files, and operations by name."""

import ast
import json
from pathlib import Path

import orbax_bench_core
from orbax_bench_core.analysis.verdicts import (
    VerdictReport,
    read_verdicts_file,
    remarks,
    why,
    write_verdicts,
)
from orbax_bench_core.reasons import because
from orbax_bench_core.records import RunDirectory

CODE = Path(orbax_bench_core.__file__).parent
VERSION_2 = Path(__file__).parents[2] / "data" / "verdicts" / "version_2.json"


def test_the_gate_has_no_sentence_but_those_of_errors():
    said = []
    for file in (CODE / "gate").glob("*.py"):
        nodes = list(ast.walk(ast.parse(file.read_text())))
        not_told = [node for node in nodes if isinstance(node, ast.Raise | ast.Expr)]
        known = {id(inner) for node in not_told for inner in ast.walk(node)}
        texts = [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in known]
        said += [text.value for text in texts if " " in str(text.value)]
    assert said == []


def test_reasons_of_one_operation_follow_its_name():
    lacks = [because("lacks", "load", arm=arm, lacking=1, repeats=4) for arm in ("old", "new")]
    assert why(lacks[0] + lacks[1] + because("no_block")) == (
        "load: the old lacks it in 1 of 4 repeats; the new lacks it in 1 of 4 repeats; "
        "no block is complete"
    )


def test_verdicts_of_version_2_say_what_they_said_and_are_written_anew(tmp_path):
    found = read_verdicts_file(str(VERSION_2))
    operations = [each for point in found.points for each in point.operations]
    assert why(operations[0].verdict.reason).startswith("1.25x, 10 of 10 slower than all 10 of the")
    assert all(each.code == "told" for each in operations[0].verdict.reason)
    assert found.points[0].reason == ()
    assert remarks(found) == ["code under test: c0ffee in both arms"]
    write_verdicts(RunDirectory(str(tmp_path)), found)
    assert read_verdicts_file(str(tmp_path / "verdicts.json")) == found


def test_rules_that_had_changed_in_version_2_are_named_without_the_sentence_about_them():
    said = "exploratory: rules changed after the data (margin 15 % -> 30 %)"
    content = {**json.loads(VERSION_2.read_text()), "exploratory": said}
    assert VerdictReport.model_validate(content).exploratory == "margin 15 % -> 30 %"
