"""A disk that fills up stops a run without losing what is there."""

import subprocess

import pytest

pytestmark = pytest.mark.nightly

SUITE = """
suite_name: full disk
num_repeats: 3
execution: {retries: 0, warmups: 0, keep_data: true}
checkpoint_config: {spec: {w: {dtype: float32, shape: [1024, 1024]}}}
benchmarks: [{generator: save_restore, options: {use_compression: false}}]
"""


@pytest.fixture
def small_disk(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(place)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"needs the right to mount a small disk: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_what_finished_is_kept_and_the_rest_can_be_made_later(suite_run, small_disk):
    run = suite_run(SUITE)
    run.directory = small_disk / "out"
    code, output = run.run()
    assert code == 1
    assert "Traceback" not in output
    assert "No space left" in output
    before = {name: data for name, data in run.record_bytes().items() if b'"passed"' in data}
    assert len(before) == 1

    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    assert run.run()[0] == 0
    after = run.record_bytes()
    assert len(after) == 3
    assert {name: after[name] for name in before} == before
