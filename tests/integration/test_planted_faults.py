"""Comparisons with planted faults, from the command, and from the pipeline, to the exit code.

What nobody looked at never passes: each fault is certain, and so is each outcome.
"""

import json
import sys
from pathlib import Path

import pytest

from tests.support.processes import run_cli

pytestmark = pytest.mark.nightly

HERE = Path(__file__).parent
SUITE = """\
suite_name: planted
execution: {{retries: {retries}, warmups: 0, timeout_s: {timeout_s}, processes: {processes}}}
gate: {{looks: [10, 20, 40], seed: 7, margin: {margin}, primary: [save, load]}}
{environments}
{mesh}
benchmarks: [{{generator: faulty.Planted, options: {{}}}}]
arms: {arms}
"""
TWO_ENVIRONMENTS = f"""\
environments:
- {{name: before, interpreter: {sys.executable}}}
- {{name: after, interpreter: {sys.executable}}}
"""
MESH = "mesh_config: {{mesh_axes: [x], ici_parallelism: {{x: {processes}}}}}"
FAULTY = "{{candidate: {{options: {{fault: {fault}}}}}}}"


class Planted:
    """One suite with a fault, and a directory in which it is compared."""

    def __init__(
        self, folder, fault="", *, arms=None, environments="", retries=1, timeout_s=30, processes=1
    ):
        self.folder, self.directory = folder, folder / "out"
        self.suite = folder / "suite.yaml"
        self.fields = {
            "arms": arms or FAULTY.format(fault=fault),
            "environments": environments,
            "retries": retries,
            "timeout_s": timeout_s,
            "processes": processes,
            "mesh": "" if processes == 1 else MESH.format(processes=processes),
        }
        self.write()

    def write(self, margin=0.3):
        self.suite.write_text(SUITE.format(**self.fields, margin=margin))

    def command(self, command, *arguments):
        done = run_cli(command, *arguments, PYTHONPATH=str(HERE), COLUMNS="200")
        return done.returncode, done.stdout + done.stderr

    def compare(self, by):
        """Compares the arms by the command `ab`, or by the pipeline."""
        if by == "pipeline":
            return self.command(
                *("pipeline", "run", self.suite, "--pipeline", "regression"),
                *("-o", self.directory),
            )
        return self.command("ab", self.suite, "-o", self.directory, "--no-lock")

    @property
    def point(self):
        (point,) = json.loads((self.directory / "verdicts.json").read_text())["points"]
        return point

    @property
    def records(self):
        return sorted((self.directory / "records").glob("*/repeat_*/host_0.json"))


@pytest.fixture
def planted(tmp_path):
    return lambda *given, **options: Planted(tmp_path, *given, **options)


both_ways = pytest.mark.parametrize(
    "by", [pytest.param("command", marks=pytest.mark.extended), "pipeline"]
)
by_pipeline_where_there_is_time = pytest.mark.parametrize(
    "by", ["command", pytest.param("pipeline", marks=pytest.mark.extended)]
)


@by_pipeline_where_there_is_time
@pytest.mark.parametrize("fault", [pytest.param("hang", marks=pytest.mark.extended), "fail"])
def test_attempts_that_hang_or_fail_are_a_regression_although_retries_pass(planted, fault, by):
    run = planted(fault, timeout_s=6 if fault == "hang" else 30)
    code, output = run.compare(by)
    assert code == 3, output
    assert run.point["word"] == "REGRESSION"
    attempts = run.point["attempts"]
    assert attempts["candidate"]["failed"] >= 0.25 * attempts["candidate"]["count"]
    assert attempts["baseline"]["failed"] == 0
    assert "REGRESSION: attempts fail: " in " ".join(output.split())


@both_ways
def test_saves_that_stall_are_a_regression(planted, by):
    run = planted("stall")
    code, output = run.compare(by)
    assert code == 3, output
    save = next(each for each in run.point["operations"] if each["operation"] == "save")
    assert save["verdict"]["stalls"]["candidate"] > save["verdict"]["stalls"]["baseline"]


@by_pipeline_where_there_is_time
def test_an_offset_of_a_process_is_no_regression(planted, by):
    arms = (
        "{aa: true, baseline: {environment: before, options: {fault: offset}}, "
        "candidate: {environment: after, options: {fault: offset}}}"
    )
    run = planted(arms=arms, environments=TWO_ENVIRONMENTS)
    code, output = run.compare(by)
    assert code == 0, output
    assert run.point["word"] == "PASS"
    workers = {json.loads(file.read_text())["worker"] for file in run.records}
    assert len(workers) == 2 * run.point["blocks"] * 2


@by_pipeline_where_there_is_time
def test_edited_rules_and_a_copied_record_are_refused(planted, by):
    run = planted("stall")
    assert run.compare(by)[0] == 3
    before = run.point["word"]
    run.write(margin=0.9)
    code, output = run.compare(by)
    assert code != 0
    assert "margin" in output
    assert "--rule" in output
    code, output = run.command("compare", run.directory, "--rule", "margin=0.9")
    assert code == 4, output
    assert "exploratory: rules changed after the data" in output
    assert run.point["word"] == before

    # A copy of a record is named and left out.
    copy = run.records[0].parent.with_name("repeat_999") / "host_0.json"
    copy.parent.mkdir()
    copy.write_bytes(run.records[0].read_bytes())
    for command in ("report", "compare"):
        code, output = run.command(command, run.directory)
        assert code != 0
        assert "repeat_999" in output


DATA = """\
suite_name: data
num_repeats: 1
execution: {warmups: 0, retries: 0}
checkpoint_config: {spec: {w: {dtype: float32, shape: [64, 32]}}}
benchmarks:
"""
OPTIONS = "use_ocdbt: false, use_zarr3: false, use_compression: false"
SAVE = f"- {{generator: save_restore, options: {{{OPTIONS}}}}}"
LOAD = "- {{generator: orbax_load, options: {{checkpoint_path: {path}, {more}}}}}"


def test_a_flipped_byte_is_never_verified(planted, tmp_path):
    """A read-only benchmark compares with what was recorded of the same data before."""
    run = planted()

    def measure(name, benchmark):
        (tmp_path / f"{name}.yaml").write_text(DATA + benchmark)
        file, out = tmp_path / f"{name}.yaml", tmp_path / name
        return run.command("run", file, "-o", out, "--no-lock", "--keep-data")

    assert measure("made", SAVE)[0] == 0
    (chunks,) = (tmp_path / "made").glob("save_restore_*/repeat_0/**/w")
    given = {"path": chunks.parents[1]}
    assert (
        measure("first", LOAD.format(**given, more=f"capture_digests_path: {given['path']}"))[0]
        == 0
    )
    chunk = sorted(chunks.glob("[0-9]*"))[0]
    content = bytearray(chunk.read_bytes())
    content[5] ^= 1
    chunk.write_bytes(bytes(content))
    code, output = measure("second", LOAD.format(**given, more=""))
    assert code == 1, output
    assert "w: different" in output
    (record,) = (tmp_path / "second" / "records").glob("*/repeat_0/host_0.json")
    assert json.loads(record.read_text())["state"]["verified"] == "none"
