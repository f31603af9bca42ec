"""Context of one repeat."""

import pytest
from etils import epath

from orbax_bench_core.authoring import BenchmarkOptions, TestContext, VerificationError


def context(**fields):
    return TestContext(pytree=None, path=epath.Path("/data"), options=BenchmarkOptions(), **fields)


def test_restored_values_go_to_the_verifier():
    seen = []
    checked = context(verifier=lambda *values: seen.append(values))
    checked.verify({"a": 1})
    checked.verify({"a": 1}, {"a": 2})
    assert seen == [({"a": 1}, None), ({"a": 1}, {"a": 2})]


def test_what_the_verifier_finds_reaches_the_author():
    def differ(restored, expected):
        raise VerificationError("leaf a differs")

    with pytest.raises(VerificationError, match="leaf a differs"):
        context(verifier=differ).verify({})


def test_a_tree_that_is_given_as_both_sides_is_compared_only_with_itself():
    said = []
    tree = {"a": 1}
    checked = TestContext(
        pytree=tree,
        path=epath.Path("/data"),
        options=BenchmarkOptions(),
        verifier=lambda *_: None,
        on_verified=said.append,
    )
    checked.verify(tree)
    checked.verify({"a": 1})
    checked.verify(tree, tree)
    checked.verify(tree, {"a": 1})
    assert said == ["itself", "saved", "itself", "reference"]


def test_nothing_is_verified_when_verification_is_off():
    assert context().verify(object()) is None


def test_a_trace_goes_where_the_tracer_says():
    assert context(tracer=epath.Path("/traces").joinpath).trace_path("load") == epath.Path(
        "/traces/load"
    )
