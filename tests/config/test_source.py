"""YAML text: plain data, and the line of every key."""

import pytest

from orbax_bench_core.config.base import SuiteError
from orbax_bench_core.config.source import SuiteSource, dotted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        pytest.param("# only a comment\n", None, "the file is empty", id="comment"),
        pytest.param("a: 1\nb: [\n", 3, "the text ends within brackets", id="open list"),
        pytest.param("a:\n\tb: 1\n", 2, "a tab where YAML takes only spaces", id="tab"),
        pytest.param("a:\n- b: 1\n-\tc: 2\n", 3, "a tab where YAML takes", id="tab after a dash"),
        pytest.param(
            f"a:\n  b: 1\n\tc: 2\n#{'x' * 20_000}",
            3,
            "a tab where YAML takes only spaces",
            id="tab in a long text",
        ),
        pytest.param(
            "a:\n  b: 1\n c: 2\n",
            3,
            "indented by 1, and the lines of its block, from line 1 on, by 0",
            id="less indented",
        ),
        pytest.param("a: 1\n  b: 2\n", 2, "a second `key:` where one", id="more indented"),
        pytest.param("a: 1\n- b\n", 2, "`-` begins a line among others", id="item among keys"),
        pytest.param("a: 1\nb\nc: 1\n", 3, "line 2 has no colon", id="no colon"),
        pytest.param("a: 'b\nc: 1\n", 3, "the quotes that line 1 opens", id="open quotes"),
        pytest.param("a: {b: 1\nc: 2\n", 2, "the bracket that line 1 opens", id="open bracket"),
        pytest.param("a: 'x' y\n", 1, "put the whole value in quotes", id="text after quotes"),
        pytest.param("a: @b\n", 1, "a value cannot begin with '@'", id="character"),
        pytest.param('a: "\\d"\n', 1, "or take single quotes", id="escape"),
        pytest.param("a: 1\n---\nb: 1\n", 2, "without a `---`", id="two documents"),
        pytest.param("a: 1\nb: *c\n", 2, "undefined alias 'c'", id="unknown alias"),
        pytest.param("a: 1\n? [b]\n: 1\n", 2, "keys are plain text", id="list as key"),
        pytest.param("a: \x00", None, "special characters are not allowed", id="control character"),
        pytest.param("a: 2026-13-01", 1, "month must be in 1..12", id="no such date"),
    ],
)
def test_what_is_not_yaml_is_one_problem_at_its_line(text, line, message):
    with pytest.raises(SuiteError) as caught:
        SuiteSource(text, "s.yaml")
    (problem,) = caught.value.problems
    assert (problem.file, problem.line) == ("s.yaml", line)
    assert message in problem.message


@pytest.mark.parametrize(
    ("text", "line", "key", "first"),
    [
        pytest.param("a: 1\nb: 2\na: 3\n", 3, "a", 1, id="top level"),
        pytest.param("a:\n  b: 1\n  c: 2\n  b: 1\n", 4, "a.b", 2, id="nested"),
        pytest.param("- x: 1\n- y: 1\n  y: 2\n", 3, "[1].y", 2, id="in a list"),
        pytest.param("a: {b: 1, b: 2}\n", 1, "a.b", 1, id="on one line"),
    ],
)
def test_a_duplicate_key_names_both_lines(text, line, key, first):
    with pytest.raises(SuiteError) as caught:
        SuiteSource(text, "s.yaml")
    (problem,) = caught.value.problems
    assert (problem.line, problem.key) == (line, key)
    assert f"first given on line {first}; remove one" in problem.message


@pytest.mark.parametrize("kind", ["object/apply:os.mkdir", "object/new:os.mkdir"])
def test_a_python_tag_is_refused_and_nothing_is_executed(kind, tmp_path):
    with pytest.raises(SuiteError) as caught:
        SuiteSource(f"a: 1\nb: !!python/{kind} ['{tmp_path}/made']\n", "s.yaml")
    (problem,) = caught.value.problems
    assert problem.line == 2
    assert "remove the tag" in problem.message
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        pytest.param("a: 1\nb: &x\n- 1\n- *x\n", "b[1]", 2, id="list"),
        pytest.param("a: &x\n  b:\n    c: *x\n", "a.b.c", 3, id="mapping"),
    ],
)
def test_an_anchor_that_contains_itself_is_refused(text, key, line):
    with pytest.raises(SuiteError) as caught:
        SuiteSource(text, "s.yaml")
    (problem,) = caught.value.problems
    assert (problem.key, problem.message) == (key, "an anchor that contains itself")
    assert problem.line in (line, line + 1)


def test_an_anchor_used_twice_is_no_duplicate_and_no_circle():
    assert SuiteSource("a: &x {b: 1}\nc: *x\nd: [*x, *x]\n").data["d"] == [{"b": 1}, {"b": 1}]


MERGED = """\
base: &base
  left: 1
  right: 2
both:
  <<: *base
  right: 3
"""


def test_merge_keys_fill_in_what_is_not_given():
    assert SuiteSource(MERGED).data["both"] == {"left": 1, "right": 3}


@pytest.mark.parametrize(
    ("path", "line"),
    [
        pytest.param(("both", "right"), 6, id="an overridden key stands where it overrides"),
        pytest.param(("both", "left"), 2, id="a merged key stands where it is written"),
        pytest.param(("base", "left", "x"), 2, id="a missing key stands at its parent"),
        pytest.param(("nothing",), 1, id="a missing top-level key stands at the start"),
    ],
)
def test_a_path_has_the_line_of_its_key(path, line):
    assert SuiteSource(MERGED).line(path) == line


@pytest.mark.parametrize(
    ("path", "text"),
    [((), ""), (("a",), "a"), (("a", 0, "b", "c"), "a[0].b.c"), (("a", 1, 2), "a[1][2]")],
)
def test_a_path_is_written_with_dots_and_brackets(path, text):
    assert dotted(path) == text
