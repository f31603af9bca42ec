"""Contents of a run directory: every file that commands leave in one is on the list of names."""

from pathlib import Path

import pytest

from orbax_bench_core.contents import Contents, is_ours
from orbax_bench_core.files import place, temporary_name
from orbax_bench_core.records import RunFile
from tests.golden.support import orbax_bench
from tests.support.fake_cli import fake_bench
from tests.support.processes import ROOT

REAL = """
suite_name: real
num_repeats: 1
execution: {retries: 0, warmups: 1}
checkpoint_config: {spec: {w: {dtype: float32, shape: [8, 4]}}}
benchmarks: [{generator: save_restore, options: {enable_trace: true, use_ocdbt: [true, false]}}]
"""
ARMS = """
suite_name: scripted
execution: {warmups: 1, retries: 1}
gate: {seed: 1, looks: [10]}
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks: [{generator: tests.support.scripted.Scripted, options: {save_s: 0.01}}]
arms: {candidate: {options: {load_s: 0.021}}}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "words", "suite"),
    [
        (orbax_bench, "run {suite} -o {out} --keep-data --enable-hlo-dump", REAL),
        (fake_bench, "ab {suite} -o {out} --no-lock", ARMS),
    ],
    ids=["run", "ab"],
)
def test_every_file_that_a_command_leaves_is_on_the_list(tmp_path, command, words, suite):
    (tmp_path / "suite.yaml").write_text(suite)
    out = tmp_path / "out"
    given = {"suite": tmp_path / "suite.yaml", "out": out}
    done = command(*(word.format(**given) for word in words.split()))
    assert (out / "run.json").exists(), done.err
    check_list(out)


def check_list(out):
    """Checks a run directory; the tests of `soak`, `recovery` and `pipeline run` check theirs."""
    found = Contents.of(place(str(out)))
    others = [path for path in found.others if not path.startswith("happened_")]  # of fake workers
    assert (others, len(found.ours) > 10) == ([], True)
    every = [path for path in out.rglob("*") if path.is_file()]
    assert len(every) == len(found.ours) + len(found.others)
    assert found.num_bytes == sum((out / path).stat().st_size for path in found.ours)


def test_what_readers_rely_on_is_on_the_list():
    data = ROOT / "tests" / "golden" / "data" / "tables"
    lines = (line for file in data.glob("*_files.txt") for line in file.read_text().splitlines())
    wrong = [line for line in (*lines, *RunFile) if not is_ours(line)]
    assert wrong == []
    page = (ROOT / "docs" / "run-directory.md").read_text()
    words = [word for line in page.splitlines() if line.startswith("DIR/") for word in line.split()]
    named = [word.removeprefix("DIR/") for word in words if word.startswith("DIR/")]
    plain = [name for name in named if "<" not in name and not name.endswith("/")]
    assert len(plain) > 15
    assert [name for name in plain if not is_ours(name)] == []


@pytest.mark.parametrize(
    "name",
    [
        *("notes.txt", "records/notes.json", "records/0123456789ab/repeat_0/host_0.txt"),
        *("logs/train.log", "verdicts/plot.svg", "sub/run.json", "sub/report.md", "photos/1.png"),
        *("save_restore/repeat_0/file", "batches/mine.json", "repeat_0/file", "tensorboard/mine"),
        "records/0123456789ab/repeat_00/host_0.json",
    ],
)
def test_other_names_are_not(name):
    assert not is_ours(name)


def test_a_file_that_a_killed_writer_left_is_one_of_ours():
    assert is_ours(temporary_name("run.json"))
    assert is_ours(f"records/0123456789ab/repeat_0/{temporary_name('host_0.json')}")
    assert not is_ours(temporary_name("notes.txt"))
    assert not is_ours(str(Path("sub") / temporary_name("run.json")))
