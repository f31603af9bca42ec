"""Every reason that the code gives has words in its answer's table, which show all its values."""

import ast
import importlib
import inspect
import string
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import orbax_bench_core
from orbax_bench_core.reasons import ReasonCode

CODES = get_args(ReasonCode)
CODE = Path(orbax_bench_core.__file__).parent
TABLES = {
    file.parent.name: importlib.import_module(
        ".".join(file.relative_to(CODE.parent).with_suffix("").parts)
    ).SENTENCES
    for file in CODE.glob("**/reasons.py")
    if file.parent != CODE
}


def given() -> Iterator[tuple[str, str, set[str]]]:
    """Yields each code that a call of `because` gives: its answer, and the names of its values."""
    for file in CODE.rglob("*.py"):
        text = file.read_text()
        if "because(" not in text:
            continue
        # What is found below the answers is found for verdicts.
        answer = next((part for part in file.relative_to(CODE).parts if part in TABLES), "verdicts")
        for call in ast.walk(ast.parse(text)):
            if not (isinstance(call, ast.Call) and ast.unparse(call.func) == "because"):
                continue
            names = {keyword.arg for keyword in call.keywords if keyword.arg != "operation"}
            yield answer, ast.literal_eval(call.args[0]), names


GIVEN = list(given())


def taken(words) -> tuple[set[str], set[str]]:
    """Returns the names that words show, and those of them that they cannot do without."""
    if isinstance(words, str):
        names = {name for _, name, _, _ in string.Formatter().parse(words) if name}
        return names, names
    of = inspect.signature(words).parameters.values()
    return {each.name for each in of}, {each.name for each in of if each.default is each.empty}


@pytest.mark.parametrize("answer", TABLES)
def test_every_code_is_given_and_has_words(answer):
    codes = [code for code in CODES if code in TABLES[answer]]
    assert {code for of, code, _ in GIVEN if of == answer} == set(codes)
    assert list(TABLES[answer]) == codes


def test_every_code_is_that_of_one_answer():
    of_answers = [code for words in TABLES.values() for code in words]
    assert sorted([*of_answers, "told"]) == sorted(CODES)


@pytest.mark.parametrize(("answer", "code", "names"), GIVEN)
def test_words_take_all_values_of_a_reason(answer, code, names):
    shown, needed = taken(TABLES[answer][code])
    assert needed <= names <= shown
