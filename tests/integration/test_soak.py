"""Soaks with the real worker."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from perf.process import SIMULATED

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "soak.md").read_text()


@pytest.mark.nightly
def test_the_commands_of_the_page_end_in_pass(tmp_path):
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines():
        words = shlex.split(line.replace("/tmp/", f"{tmp_path}/"), comments=True)
        done = subprocess.run(
            [sys.executable, "-m", "orbax_bench_core.cli", *words[1:], "--json"],
            cwd=ROOT,
            env={name: value for name, value in os.environ.items() if name not in SIMULATED},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    (series,) = json.loads(done.stdout)["series"]
    found = {growth["level"]: growth for growth in series["growths"]}
    assert {"rss", "open_files", "threads", "time", "files_left"} <= found.keys()
    assert 0 < found["rss"]["whole"]["per_save"] < 0.05
    assert series["lives"] == [200]
