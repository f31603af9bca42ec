"""The calibrate component: its body on plain files."""

# ruff: noqa: D103

import pytest

pytest.importorskip("kfp")

from orbax_bench_components.calibrate import calibrate
from orbax_bench_components.testing import call
from orbax_bench_core.errors import UserError


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        call(calibrate, tmp_path / "made", runs=[str(tmp_path / "none")])
