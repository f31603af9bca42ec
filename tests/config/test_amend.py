"""Adding keys to the text of a suite."""

import pytest
import yaml

from orbax_bench_core.config.base import SuiteError
from orbax_bench_core.config.override import with_keys


@pytest.mark.parametrize("text", ["a: 1\n", "a: 1", "{a: 1}", "a: 1\n...\n", "---\na: 1 # c\n"])
def test_any_form_of_mapping_takes_keys(text):
    assert yaml.safe_load(with_keys(text, {"b": {"c": [True, None]}})) == {
        "a": 1,
        "b": {"c": [True, None]},
    }


def test_a_key_that_is_there_is_not_overridden():
    with pytest.raises(SuiteError, match=r"f.yaml:2: b: given in the file as well"):
        with_keys("a: 1\nb: 2\n", {"b": 3}, "f.yaml")


def test_a_list_takes_no_keys():
    with pytest.raises(SuiteError, match="a suite is a mapping"):
        with_keys("- a\n", {"b": 1})
