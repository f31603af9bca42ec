"""A disk that fills up stops a run without losing what is there."""

import subprocess

import pytest

from tests.support.disks import small_disk

pytestmark = pytest.mark.nightly

SUITE = """
suite_name: full disk
num_repeats: 3
execution: {retries: 0, warmups: 0, keep_data: true}
checkpoint_config: {spec: {w: {dtype: float32, shape: [1024, 1024]}}}
benchmarks: [{generator: save_restore, options: {use_compression: false}}]
"""


def test_what_finished_is_kept_and_the_rest_can_be_made_later(suite_run, tmp_path):
    run = suite_run(SUITE)
    with small_disk(tmp_path / "disk", "6m") as place:
        run.directory = place / "out"
        code, output = run.run()
        assert code == 1
        assert "Traceback" not in output
        assert "No space left" in output
        before = {name: data for name, data in run.record_bytes().items() if b'"passed"' in data}
        assert len(before) == 1

        subprocess.run(["mount", "-o", "remount,size=64m", str(place)], check=True)
        assert run.run()[0] == 0
        after = run.record_bytes()
        assert len(after) == 3
        assert {name: after[name] for name in before} == before
