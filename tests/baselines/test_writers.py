"""Writers at the same time, and files of a registry that are not what they should be."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from orbax_bench_core.baselines import Registry, capture_run, load_baseline, promote_capture
from orbax_bench_core.errors import UserError
from orbax_bench_core.records import RunDirectory

WRITERS = 3
CAPTURES = 2
REPEATS = 6
ROOT = Path(__file__).parents[2]

# All writers wait for one file, so that they begin together.
WRITER = """
import sys, time
from pathlib import Path
from orbax_bench_core.baselines.capturing import capture_run
from orbax_bench_core.baselines.capturing import promote_capture as promote
from orbax_bench_core.baselines.store import Registry
from orbax_bench_core.records.run_directory import RunDirectory

registry, name, start, *given = sys.argv[1:]
Registry(registry).exists()  # imports what the storage needs
print("ready", flush=True)
while not Path(start).exists():
    time.sleep(0.001)
for index, run in enumerate(given):
    revision, _, root = run.partition(":")
    captured = capture_run(RunDirectory(root), Registry(registry), revision=revision)
    promote(Registry(registry), captured.capture.id, note=f"{name} {index}")
"""


# A process of its own: how one reaches an emulator is settled once per process.
READER = """
import json, sys
from orbax_bench_core.baselines.store import Registry

registry = Registry(sys.argv[1])
captures = registry.captures()
wanted = ((one.reference, one.points[0].point_id) for one in captures)
print(json.dumps({
    "captures": [one.reference for one in captures],
    "records": [len(baseline.records) for baseline in registry.baselines(wanted)],
    "notes": [one.note for one in registry.promotions()],
    "promoted": [*registry.promotions()[-1].points.values()],
    "current": [*registry.current().values()],
}))
"""


@pytest.fixture
def write_together(tmp_path):
    """Has several processes capture runs and promote their captures, all at once.

    Each of them takes some of the runs. Returns what is in the registry afterwards.
    """

    def write(runs, registry):
        start = tmp_path / "start"
        command = [sys.executable, "-c", WRITER, registry]
        given = [f"same:{run.root}" for run in runs]
        writers = [
            subprocess.Popen(
                [*command, str(name), str(start), *given[name::WRITERS]],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            )
            for name in range(WRITERS)
        ]
        for writer in writers:
            assert writer.stdout.readline() == "ready\n", writer.communicate()
        start.touch()
        for writer in writers:
            _, errors = writer.communicate(timeout=120)
            assert writer.returncode == 0, errors
        reader = subprocess.run(
            [sys.executable, "-c", READER, registry], capture_output=True, check=True, cwd=ROOT
        )
        return json.loads(reader.stdout)

    return write


def nothing_is_lost(found):
    """Says that every capture is there in full, and every promotion."""
    assert len(found["captures"]) == WRITERS * CAPTURES
    assert set(found["records"]) == {REPEATS}
    every = {f"{name} {index}" for name in range(WRITERS) for index in range(CAPTURES)}
    assert set(found["notes"]) == every
    assert len(found["notes"]) == len(every)
    assert found["current"] == found["promoted"]
    return found["current"][0] in found["captures"]


@pytest.mark.slow
def test_local_writers_lose_nothing(tmp_path, write_together, make_separate_run):
    runs = [make_separate_run(day, repeats=REPEATS) for day in range(WRITERS * CAPTURES)]
    assert nothing_is_lost(write_together(runs, str(tmp_path / "registry")))


@pytest.mark.slow
def test_a_run_that_is_captured_several_times_at_once_is_one_capture(
    tmp_path, write_together, make_separate_run
):
    found = write_together([make_separate_run(0)] * WRITERS, str(tmp_path / "registry"))
    assert len(found["captures"]) == 1
    assert found["current"] == found["captures"]


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_no_half_capture(tmp_path, make_separate_run):
    run = make_separate_run(0)
    place = str(tmp_path / "registry")
    start = tmp_path / "start"
    start.touch()
    given = [f"r{number}:{run.root}" for number in range(1000)]
    command = [sys.executable, "-c", WRITER, place, "0", str(start), *given]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
        while len(list(Path(place).glob("r*/*.json"))) < 3:
            assert writer.poll() is None
        writer.kill()
    registry = Registry(place)
    captures = registry.captures()
    point_id = run.read_info().expansion.points[0].id
    assert len(registry.baselines((one.reference, point_id) for one in captures)) == len(captures)
    assert set(registry.current().values()) <= {one.reference for one in captures}


@pytest.mark.nightly
@pytest.mark.slow
def test_writers_on_an_object_store_lose_nothing(
    emulator, write_together, make_separate_run, monkeypatch
):
    for name, text in emulator.items():
        monkeypatch.setenv(name, text)
    runs = [make_separate_run(day, repeats=REPEATS) for day in range(WRITERS * CAPTURES)]
    assert nothing_is_lost(write_together(runs, "gs://bench-bucket/team/registry"))


RUN = Path(__file__).parents[1] / "data" / "run_directories" / "v3" / "plain"


@pytest.fixture
def registry(tmp_path):
    """A registry beside another one, whose promotion can be changed."""
    stored = Registry(str(tmp_path / "registry"))
    capture_run(RunDirectory(str(RUN)), stored, revision="v1.0")
    promote_capture(stored, "v1.0")
    shutil.copytree(tmp_path / "registry", tmp_path / "other")
    return tmp_path / "registry"


def promote(registry, reference, point=None):
    """Has the registry's promotion name another capture of a point."""
    (file,) = (registry / "promotions").iterdir()
    content = json.loads(file.read_text())
    names = [point or name for name in content["points"]]
    content["points"] = dict.fromkeys(names, reference)
    file.write_text(json.dumps(content))


@pytest.mark.parametrize(
    "reference",
    [
        "../other/v1.0",
        "../other/v1.0/20261124T160421Z-810c0d9c",
        "/etc/passwd",
        "v1.0/../../other/v1.0/20261124T160421Z-810c0d9c",
        "../20261124T160421Z-810c0d9c",
        "",
    ],
)
def test_a_promotion_cannot_lead_out_of_the_registry(registry, reference):
    promote(registry, reference)
    with pytest.raises(UserError, match="is no capture of this registry"):
        load_baseline(str(registry))


def test_nor_can_the_name_of_a_point(registry):
    with pytest.raises(UserError, match="is no capture of this registry"):
        Registry(str(registry)).baselines([("v1.0/20261124T160421Z-810c0d9c", "../../x")])


def test_a_pipe_in_its_place_is_not_waited_for(registry):
    file = next((registry / "v1.0").glob("*/*.json"))
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(UserError, match="Neither a file nor a folder"):
        load_baseline(str(registry))
