"""Digests that outlive a run."""

import pytest

from orbax_bench_core.benchmarks.support import load_options
from orbax_bench_core.state import StateError


def test_defect_24_a_missing_reference_does_not_pass(tmp_path):
    with pytest.raises(StateError, match=r"holds no digests\.json"):
        load_options.captured(str(tmp_path / "nothing"))
