"""Every row of the table of overrides, with the suites that Orbax publishes."""

import importlib.util
import json
import re
from pathlib import Path

import jax
import numpy as np
import orbax.checkpoint
import pytest
from orbax.checkpoint import v1 as ocp
from safetensors.numpy import save_file

from orbax_bench_core.config import load_suite
from tests.support.processes import run_cli

PAGE = Path(__file__).parents[2] / "docs" / "overrides.md"
CONFIGS = Path(orbax.checkpoint.__file__).parent / "_src" / "testing" / "benchmarks" / "configs"
ROWS = [
    [re.findall("`([^`]+)`", cell) for cell in line.strip("|").split(" | ")]
    for line in PAGE.read_text().partition("| suites | overrides |")[2].splitlines()
    if line.startswith("| `")
]
REFUSED = {
    "snapshotter": "snapshotter needs 2 slices of devices, as on Pathways; there is 1 here",
    "pytorch_save_restore/*": "pytorch_dcp needs PyTorch 2.7 or later: pip install",
}
"""Rows that say what else they need, and why their suites cannot run without it."""


def suites_of(name):
    folder, own = CONFIGS.parent, f"{CONFIGS.name}/{name}_benchmark.yaml"
    patterns = (own, f"configs/evaluations/{name}.yaml", f"{name}.yaml")
    found = next(files for pattern in patterns if (files := sorted(folder.glob(pattern))))
    return [file for file in found if file.suffix == ".yaml"]


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Returns what the page calls $K, $M and $S; the latter by mesh and source."""
    folder = tmp_path_factory.mktemp("given")
    tree = {"w": np.arange(512, dtype=np.float32).reshape(64, 8), "b": np.ones(8, np.float32)}
    ocp.save(folder / "K", jax.tree.map(jax.numpy.asarray, tree))
    (folder / "M").mkdir()
    save_file(tree, folder / "M" / "model.safetensors")
    for source in "KM":
        for mesh in ("fsdp=4", "model=4"):
            done = run_cli("sharding", folder / source, "--mesh", mesh)
            assert done.returncode == 0, done.stderr
            (folder / f"S-{source}-{mesh}").write_text(done.stdout)
    return folder


def overrides_of(spans, folder):
    mesh = next((span for span in spans if re.fullmatch(r"\w+=4", span)), "")
    source = "M" if any("$M" in span for span in spans) else "K"
    texts = [span for span in spans if "=" in span and span != mesh]
    for name, place in {"$K": "K", "$M": "M", "$S": f"S-{source}-{mesh}"}.items():
        texts = [text.replace(name, str(folder / place)) for text in texts]
    return texts


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=[names[0] for names, _ in ROWS])
def test_no_suite_refuses_its_overrides(given, row):
    names, spans = row
    for name in names:
        for file in suites_of(name):
            load_suite(str(file), tuple(overrides_of(spans, given)))


@pytest.mark.nightly
@pytest.mark.parametrize(
    "row", [row for row in ROWS if row[0][0] not in REFUSED], ids=lambda row: row[0][0]
)
def test_the_first_suite_of_each_name_runs(given, tmp_path, row):
    names, spans = row
    for number, name in enumerate(names):
        done, records = run_of(name, overrides_of(spans, given), tmp_path / str(number))
        statuses = {record["status"] for record in records}
        assert "passed" in statuses, done.stdout + done.stderr
        assert "failed" not in statuses, done.stdout + done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize(
    "row", [row for row in ROWS if row[0][0] in REFUSED], ids=lambda row: row[0][0]
)
def test_a_suite_that_cannot_run_here_says_what_it_needs(given, tmp_path, row):
    [name], spans = row
    if name.startswith("pytorch") and importlib.util.find_spec("torch"):
        pytest.skip("PyTorch is here")
    done, records = run_of(name, overrides_of(spans, given), tmp_path / "out")
    assert done.returncode == 1, done.stdout + done.stderr
    assert {record["error"]["type"] for record in records} == {"UnmetNeed"}
    assert all(record["error"]["message"].startswith(REFUSED[name]) for record in records)
    assert REFUSED[name] in done.stdout + done.stderr


def run_of(name, texts, out):
    """Runs the first suite of a name once, with overrides, and returns its records."""
    words = [word for text in [*texts, "num_repeats=1"] for word in ("--override", text)]
    done = run_cli("run", suites_of(name)[0], "-o", out, "--no-limits", *words)
    return done, [json.loads(file.read_text()) for file in out.rglob("host_0.json")]
