from __future__ import annotations

import pytest

from orbax_bench_core.state.tree import StateError, named_leaves


def test_paths_join_keys_and_indices_with_dots() -> None:
    assert named_leaves({"params": {"w": 1, "layers": [2, 3]}}) == [
        ("params.layers.0", 2),
        ("params.layers.1", 3),
        ("params.w", 1),
    ]


def test_equal_paths_are_refused() -> None:
    with pytest.raises(StateError, match=r"two leaves are called 'a\.b'"):
        named_leaves({"a.b": 1, "a": {"b": 2}})
