from __future__ import annotations

import pytest

from orbax_bench_core.state.tree import StateError, named_leaves


def test_equal_paths_are_refused() -> None:
    with pytest.raises(StateError, match=r"two leaves are called 'a\.b'"):
        named_leaves({"a.b": 1, "a": {"b": 2}})
