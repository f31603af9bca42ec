"""Comparisons of two arms, from the command to its exit code."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.golden.support import orbax_bench
from tests.support.fake_cli import fake_bench
from tests.support.processes import FAKE_CLI, start_cli
from tests.support.scripted import NAME as SCRIPTED

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
SUITE = """\
suite_name: steady
execution: {{retries: {retries}, warmups: 0, timeout_s: {timeout_s}}}
gate: {gate}
benchmarks:
- generator: {generator}
  options: {options}
arms: {arms}
"""
SLOWER_SAVE = "{candidate: {options: {save_s: 0.06}}}"


class Comparison:
    """One run directory and the command that fills it, with fake workers unless told otherwise."""

    def __init__(
        self,
        folder,
        arms,
        options="{}",
        *,
        real=False,
        gate="{looks: [10, 20]}",
        retries=0,
        timeout_s=60,
        more="",
    ):
        self.real = real
        self.suite = folder / "suite.yaml"
        generator = "steady.Steady" if real else SCRIPTED
        written = {"arms": arms, "generator": generator, "options": options, "gate": gate}
        self.suite.write_text(SUITE.format(**written, retries=retries, timeout_s=timeout_s) + more)
        self.directory = folder / "out"
        self.places = [self.suite, "-o", self.directory, "--no-lock"]

    def run(self, *flags, command="ab"):
        places = [self.directory] if command == "compare" else self.places
        call = orbax_bench if self.real else fake_bench
        done = call(command, *places, *flags)
        return done.code, done.out + done.err

    @property
    def verdicts(self):
        return json.loads((self.directory / "verdicts.json").read_text())

    def words(self):
        (point,) = self.verdicts["points"]
        return {one["operation"]: one["verdict"]["word"] for one in point["operations"]}

    def records(self):
        root = self.directory / "records"
        return {str(p.relative_to(root)): p.read_bytes() for p in root.glob("*/repeat_*/*.json")}


@pytest.fixture
def comparison(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ["PYTHONPATH"]]))
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *given, **options: Comparison(tmp_path, *given, **options)


def test_a_suite_beside_itself_passes(comparison):
    run = comparison("{}")
    code, output = run.run()
    assert code == 0, output
    assert run.words() == {"save": "PASS", "load": "PASS"}
    assert "PASS" in output
    assert len(run.records()) in (20, 40)  # it stops at a look
    for page in ("verdicts.html", "verdicts.md", "report.html", "samples.parquet"):
        assert (run.directory / page).exists()


def test_a_slower_operation_is_a_regression_of_that_operation(comparison):
    run = comparison(SLOWER_SAVE, real=True)
    code, output = run.run()
    assert code == 3, output
    assert run.words()["save"] == "REGRESSION"
    assert run.words()["load"] != "REGRESSION"
    # What is stored gives the same verdict again.
    code, output = run.run(command="compare")
    assert code == 3, output
    assert "REGRESSION" in output


@pytest.mark.nightly
def test_a_candidate_that_fails_from_some_time_on_is_a_regression_by_its_failures(comparison):
    run = comparison("{candidate: {options: {fails_from: 6}}}")
    code, output = run.run()
    assert code == 3, output
    (point,) = run.verdicts["points"]
    assert (point["word"], point["endpoint"]) == ("REGRESSION", "failures")
    assert point["attempts"]["baseline"]["failed"] == 0
    failed = point["attempts"]["candidate"]
    # The sixth operation is in block 1, where either arm may have been last.
    assert failed["block"] in (1, 2)
    assert failed["example"].startswith("OSError: the storage is gone")
    assert "the storage is gone" in output
    assert "Traceback" not in output


@pytest.mark.nightly
@pytest.mark.parametrize("primary", ["[save, lod]", "[lod]"])
def test_a_primary_operation_that_no_point_has_is_no_pass_and_ends_at_the_first_look(
    comparison, primary
):
    run = comparison("{}", gate=f"{{looks: [4, 20, 60], primary: {primary}}}")
    code, output = run.run("--allow-inconclusive")
    assert code == 4, output
    assert "`gate.primary` names lod, which no arm of any point has measured" in output
    assert "did you mean 'load'?" in output
    assert len(run.records()) == 8
    assert "same command again" not in output
    assert run.run("--allow-inconclusive", command="compare")[0] == 4
    before = run.records()
    assert run.run()[0] == 4
    assert run.records() == before


def test_an_operation_that_the_candidate_lacks_is_no_pass_and_is_named(comparison):
    run = comparison("{candidate: {options: {lacks: load}}}")
    code, output = run.run()
    assert code == 4, output
    (point,) = run.verdicts["points"]
    assert (point["word"], point["endpoint"]) == ("INCONCLUSIVE", "missing")
    (reason,) = point["reason"]
    lacks = {"arm": "candidate", "lacking": 10, "repeats": 10, "first_block": 0}
    assert reason == {"code": "lacks", "operation": "load", "values": lacks}
    assert run.words()["save"] == "PASS"


@pytest.mark.nightly
def test_equal_environments_have_lives_and_pass(comparison):
    environments = f"environments: [{{name: same, interpreter: {sys.executable}}}]\n"
    run = comparison(
        "{candidate: {environment: same}}",
        real=True,
        gate="{margin: 0.5, looks: [16]}",
        more=environments,
    )
    code, output = run.run()
    assert code in (0, 4), output
    (point,) = run.verdicts["points"]
    assert (point["design"]["workers"], point["design"]["operations_per_life"]) == ("lives", 2)
    blocks = point["blocks"]
    assert blocks in (4, 7)  # the last look is at stalls, which a busy machine may have
    records = [json.loads(text) for text in run.records().values()]
    lives = {(record["block"], record["life"]): record["worker"] for record in records}
    assert len(lives) == len(set(lives.values())) == 4 * blocks
    assert len(records) == 8 * blocks
    assert f"{2 * blocks} lives per side" in (run.directory / "verdicts.md").read_text()


@pytest.mark.nightly
def test_a_run_that_was_stopped_goes_on_where_it_was(comparison):
    run = comparison(SLOWER_SAVE, "{lasts_s: 0.1}")
    process = start_cli("ab", *run.places, cli=FAKE_CLI)
    deadline = time.monotonic() + 120
    while len(run.records()) < 6 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    before = run.records()
    assert 6 <= len(before) < 20
    assert run.run()[0] == 3
    after = run.records()
    assert len(after) in (20, 40)
    assert {name: after[name] for name in before} == before
