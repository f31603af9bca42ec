"""A suite on its way to hosts that share nothing but the run directory."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from orbax_bench_core.cli.hosts import load_for_hosts
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import unshipped
from orbax_bench_core.launchers import Launch
from orbax_bench_core.launchers.shipping import shipment
from orbax_bench_core.sweep import expand
from tests.support.damage import DAMAGE

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def folder(tmp_path):
    home = tmp_path / "suites"
    for path in ("bench.py", "models/small.json", "env/jax.py", "out/run/a"):
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(path)
    (home / "tiny.yaml").write_text("{generator: bench.B, a: models/small.json, b: data.bin}")
    return home


def launch(folder, suite="tiny.yaml"):
    out = str(folder / "out")
    path = suite if "://" in suite else str(folder / suite)
    return Launch(name="ob", command=("orbax-bench", "run", path, "-o", out), output_directory=out)


def test_hosts_find_the_suite_and_what_lies_beside_it(folder):
    sent = shipment(launch(folder))
    assert not (folder / "out" / "suite").exists()
    sent.send()
    there = sent.command[2]
    assert there == f"{folder}/out/suite/tiny.yaml"
    copy = (folder / "x").parent / unshipped(there)
    assert copy.read_bytes() == (folder / "tiny.yaml").read_bytes()
    assert "bench.py, models/small.json, tiny.yaml (" in sent.said
    beside = {path.relative_to(copy.parent).as_posix() for path in copy.parent.rglob("*.*")}
    assert beside == {"tiny.yaml", "bench.py", "models/small.json"}


def test_equal_files_are_equal_shipments(folder):
    assert shipment(launch(folder)).digest == shipment(launch(folder)).digest
    before = shipment(launch(folder)).digest
    (folder / "bench.py").write_text("other")
    assert shipment(launch(folder)).digest != before


def test_a_suite_in_a_bucket_or_in_the_image_is_not_sent(folder):
    sent = shipment(launch(folder, "gs://bucket/tiny.yaml"))
    assert (sent.target, sent.command[2]) == ("", "gs://bucket/tiny.yaml")
    sent = shipment(launch(folder), in_image="/suites/tiny.yaml")
    assert (sent.target, sent.command[2]) == ("", "/suites/tiny.yaml")


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_suite_whose_copy_is_damaged_is_one_message(folder, damage):
    sent = shipment(launch(folder))
    sent.send()
    archive = folder / "out" / "suite" / ".orbax-bench-suite.zip"
    archive.unlink()
    DAMAGE[damage](archive)
    with pytest.raises(UserError, match=r"cannot read .*zip: .*; launch the run again"):
        unshipped(sent.command[2])


def test_a_run_directory_that_cannot_be_written_is_one_message(folder):
    sent = shipment(launch(folder))
    (folder / "out" / "suite").write_text("in the way")
    with pytest.raises(UserError, match="cannot write the suite to"):
        sent.send()


OWN = """
suite_name: own
checkpoint_config: {spec: {a: {dtype: float32, shape: [8]}}}
benchmarks: [{generator: save_restore_benchmark.SaveRestoreBenchmark, options: {}}]
"""


@pytest.mark.slow
def test_a_class_beside_the_suite_is_found_on_a_host(tmp_path):
    folder = tmp_path / "suites"
    folder.mkdir()
    (folder / "own.yaml").write_text(OWN)
    shutil.copy(EXAMPLES / "save_restore_benchmark.py", folder)
    sent = shipment(launch(folder, "own.yaml"))
    sent.send()
    for file in folder.glob("*.*"):
        file.unlink()
    loaded = load_for_hosts(sent.command[2], (), None)
    assert len(expand(loaded).points) == 1


@pytest.mark.slow
def test_a_suite_travels_through_a_bucket(folder, emulator):
    """In a process of its own, whose client takes the emulator for Cloud Storage."""
    script = f"""
import sys
from orbax_bench_core.execute import unshipped
from orbax_bench_core.launchers import Launch
from orbax_bench_core.launchers.shipping import shipment
command = ("orbax-bench", "run", {str(folder / "tiny.yaml")!r}, "-o", "gs://bench-bucket/r")
sent = shipment(Launch(name="ob", command=command, output_directory="gs://bench-bucket/r"))
sent.send()
print(sent.command[2], unshipped(sent.command[2]))
print(open(unshipped(sent.command[2])).read())
"""
    environment = emulator | {
        "GOOGLE_CLOUD_PROJECT": "p",
        "GOOGLE_AUTH_TOKEN_FOR_TESTING": "abc",
    }
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    there, copy, *words = done.stdout.split()
    assert there == "gs://bench-bucket/r/suite/tiny.yaml"
    assert copy.endswith("/tiny.yaml")
    assert "://" not in copy
    assert " ".join(words) == (folder / "tiny.yaml").read_text()
