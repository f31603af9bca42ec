"""The search for a slow release, from local wheels to the answer."""

import json
import zipfile
from pathlib import Path

import pytest

from tests.support.processes import run_cli

pytestmark = pytest.mark.nightly

HERE = Path(__file__).parent
SUITE = """\
suite_name: releases of planted
execution: {warmups: 0, retries: 0}
benchmarks: [{generator: released.Released, options: {}}]
"""
RELEASES = {"1.0": 0.02, "1.1": 0.02, "1.2": 0.02, "1.3": 0.06, "1.10": 0.06}


@pytest.fixture
def wheels(tmp_path):
    """A folder with a wheel per release, of which 1.3 is the first slow one."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for version, seconds in RELEASES.items():
        info = f"planted-{version}.dist-info"
        files = {
            "planted.py": f"SECONDS = {seconds}\n",
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: planted\nVersion: {version}\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
        with zipfile.ZipFile(folder / f"planted-{version}-py3-none-any.whl", "w") as wheel:
            for name, text in files.items():
                wheel.writestr(name, text)
    return folder


@pytest.mark.extended
def test_the_first_slow_release_is_found(wheels, tmp_path):
    suite = tmp_path / "suite.yaml"
    suite.write_text(SUITE)
    done = run_cli(
        *("bisect", suite, "-o", tmp_path / "out", "--no-lock", "--wheels", wheels),
        *("--only-wheels", "--package", "planted", "--good", "1.0", "--bad", "1.10"),
        PYTHONPATH=str(HERE),
        COLUMNS="160",
    )
    assert done.returncode == 3, done.stdout + done.stderr
    answer = json.loads((tmp_path / "out" / "bisect.json").read_text())
    assert (answer["last_good"], answer["first_bad"]) == ("1.2", "1.3")
    assert answer["operations"] == ["load"]
    assert answer["steps"][0]["release"] == "1.10"
    assert len(answer["steps"]) <= 5
    assert (tmp_path / "out" / "bisect.html").exists()
    assert "planted 1.3 is the first release in which load regressed" in done.stdout
