"""Every reason that the code gives has words, and these show all of its values."""

import ast
import inspect
import json
import string
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import orbax_bench_core
from orbax_bench_core.analysis.verdicts import (
    VerdictReport,
    read_verdicts_file,
    remarks,
    why,
    write_verdicts,
)
from orbax_bench_core.analysis.verdicts.reasons import WORDS
from orbax_bench_core.reasons import ReasonCode, because
from orbax_bench_core.records import RunDirectory

TYPE = "ReasonCode"
CODES = get_args(ReasonCode)
CODE = Path(orbax_bench_core.__file__).parent
VERSION_2 = Path(__file__).parents[2] / "data" / "verdicts" / "version_2.json"


def given() -> Iterator[tuple[str, set[str]]]:
    """Yields each code that a call of `because` gives, with the names of its values."""
    for file in CODE.rglob("*.py"):
        text = file.read_text()
        if "because(" not in text:
            continue
        for call in ast.walk(ast.parse(text)):
            if not (isinstance(call, ast.Call) and ast.unparse(call.func) == "because"):
                continue
            names = {keyword.arg for keyword in call.keywords if keyword.arg != "operation"}
            yield ast.literal_eval(call.args[0]), names


GIVEN = list(given())


def taken(words) -> tuple[set[str], set[str]]:
    """Returns the names that words show, and those of them that they cannot do without."""
    if isinstance(words, str):
        names = {name for _, name, _, _ in string.Formatter().parse(words) if name}
        return names, names
    of = inspect.signature(words).parameters.values()
    return {each.name for each in of}, {each.name for each in of if each.default is each.empty}


def test_every_code_is_given_and_has_words():
    assert {code for code, _ in GIVEN} | {"told"} == set(CODES)
    assert list(WORDS) == list(CODES)


@pytest.mark.parametrize(("code", "names"), GIVEN)
def test_words_take_all_values_of_a_reason(code, names):
    shown, needed = taken(WORDS[code])
    assert needed <= names <= shown


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
