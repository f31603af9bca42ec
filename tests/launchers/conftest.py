"""Launches of a suite of one line."""

import pytest

from orbax_bench_core.launchers import make_launcher

IMAGE = f"registry.example/bench@sha256:{'a1' * 32}"


@pytest.fixture
def make(tmp_path):
    """Returns the launcher of a place, with what a launch of it differs in."""
    suite = tmp_path / "tiny suite.yaml"
    suite.write_text("suite_name: tiny\n")

    def make(place, *settings, directory="gs://bucket/run", more=(), **launch):
        command = ("orbax-bench", "run", str(suite), "-o", directory, *more)
        usual = {"name": "ob-tiny", "image": IMAGE, "command": command}
        return make_launcher(
            place, settings, (), **{**usual, "output_directory": directory, **launch}
        )

    return make
