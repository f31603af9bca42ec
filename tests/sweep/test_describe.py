"""Descriptions of options, for people."""

import pytest

from orbax_bench_core.sweep.catalog import BUILTINS
from orbax_bench_core.sweep.classes import load_class
from orbax_bench_core.sweep.options import describe_options


@pytest.fixture
def described(write_benchmark):
    path = write_benchmark(
        '''
        """Options.

        Attributes:
            size: How large,
                in bytes.
        """

        size: int | list[int | None] | None = None
        name: str
        '''
    )
    return {option.name: option for option in describe_options(load_class(path))}


def test_own_options_come_before_those_of_every_benchmark(described):
    assert list(described) == ["size", "name", "enable_trace", "trace_every_repeat"]


def test_a_meaning_is_one_line_of_the_docstring(described):
    assert described["size"].meaning == "How large, in bytes."


def test_inherited_options_keep_the_meaning_of_their_class(described):
    assert described["enable_trace"].meaning.startswith("Whether to capture a profiler trace")


@pytest.mark.parametrize(
    ("name", "type_", "default"),
    [("size", "int or null", None), ("name", "str", None), ("enable_trace", "bool", False)],
)
def test_type_and_default_are_those_of_the_field(described, name, type_, default):
    assert (described[name].type, described[name].default) == (type_, default)


@pytest.mark.parametrize("path", BUILTINS.values())
def test_every_option_of_a_built_in_has_a_meaning(path):
    assert [o.name for o in describe_options(load_class(path)) if not o.meaning] == []
