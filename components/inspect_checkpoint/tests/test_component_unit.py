"""The inspect-checkpoint component: its body on plain files."""

# ruff: noqa: D103

import pytest

pytest.importorskip("kfp")

from orbax_bench_components.inspect_checkpoint import inspect_checkpoint
from orbax_bench_components.testing import call
from orbax_bench_core.errors import UserError


def test_a_checkpoint_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        call(inspect_checkpoint, tmp_path / "made", checkpoint="/none")
