"""A morning page in a bucket, of runs in it, by commands as people give them."""

import gzip
import json
import subprocess
import sys

import pytest

from tests.support.scripted import NAME

SUITE = f"""
suite_name: remote nights
execution: {{warmups: 0}}
num_repeats: 2
benchmarks: [{{generator: {NAME}, options: {{}}}}]
"""


@pytest.mark.nightly
def test_a_page_in_a_bucket_is_written_anew_by_every_run_in_it(emulator, tmp_path):
    suite = tmp_path / "suite.yaml"
    suite.write_text(SUITE)
    environment = emulator | {"GOOGLE_CLOUD_PROJECT": "p", "COLUMNS": "80"}

    def bench(*words):
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.fake_cli", *words],
            capture_output=True,
            text=True,
            env=environment,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def night(number):
        place = f"gs://bench-bucket/nights/{number}"
        bench("run", str(suite), "-o", place, "--no-lock", "--no-limits", "--quiet")

    nights = tmp_path / "storage" / ".cloudstorage" / "bench-bucket" / "nights"
    night(1)
    said = bench("site", "gs://bench-bucket/nights")
    assert "complete remote nights: 1 run" in said
    assert "Page: gs://bench-bucket/nights/index.html" in said
    assert 'href="1/report.html"' in (nights / "index.html").read_text()
    night(2)
    assert 'href="2/report.html"' in (nights / "index.html").read_text()
    cards = json.loads(gzip.decompress((nights / "site-cards.json.gz").read_bytes()))
    assert len(cards["runs"]) == 2
