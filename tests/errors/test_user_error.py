"""Problems as people read them."""

import pytest

from orbax_bench_core.errors import Problem, did_you_mean


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("bad"), "bad"),
        (Problem("bad", file="s.yaml"), "s.yaml: bad"),
        (Problem("bad", key="a.b", file="s.yaml", line=3), "s.yaml:3: a.b: bad"),
        (Problem("bad", key="a.b"), "a.b: bad"),
    ],
)
def test_a_problem_names_file_line_and_key(problem, text):
    assert str(problem) == text


@pytest.mark.parametrize(
    ("given", "known", "hint"),
    [
        ("num_repeat", ["num_repeats", "seed"], "did you mean 'num_repeats'?"),
        ("zzz", ["b", "a"], "known: a, b"),
        (
            "zzz",
            [f"name_{number}" for number in range(31)],
            "the nearest of 31 names: name_9, name_8, name_7, name_6, name_5",
        ),
        ("zzz", [], "nothing is known here"),
    ],
)
def test_a_hint_names_the_nearest_or_all(given, known, hint):
    assert did_you_mean(given, known) == hint
