"""Digests that outlive a run."""

import jax.numpy as jnp
import pytest

from orbax_bench_core.authoring import VerificationError
from orbax_bench_core.benchmarks.support import load_options
from orbax_bench_core.state import StateError, check_digest, digest

TREE = {"w": jnp.arange(6.0)}


def test_what_was_captured_is_found_again(tmp_path):
    load_options.capture(str(tmp_path / "new"), digest(TREE))
    check_digest(TREE, load_options.captured(str(tmp_path / "new")))


def test_another_value_is_found(tmp_path):
    load_options.capture(str(tmp_path), digest(TREE))
    with pytest.raises(VerificationError, match="w: different"):
        check_digest({"w": TREE["w"].at[3].set(0)}, load_options.captured(str(tmp_path)))


def test_defect_24_a_missing_reference_does_not_pass(tmp_path):
    with pytest.raises(StateError, match=r"holds no digests\.json"):
        load_options.captured(str(tmp_path / "nothing"))
