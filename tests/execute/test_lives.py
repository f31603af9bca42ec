"""Blocks of which each slot has a worker of its own."""

import collections
import dataclasses
import json
import os
import signal

import pytest

from orbax_bench_core.analysis.verdicts import read_verdicts
from orbax_bench_core.config import BLOCK_SIZE, parse_suite
from orbax_bench_core.execute import RunSettings, Session, run_pairs
from orbax_bench_core.records import Heartbeat, PairedTimes, RunDirectory
from tests.support.fake_cli import fake_bench
from tests.support.launches import Launches, starts
from tests.support.processes import FAKE_CLI, ROOT, start_cli, wait_until
from tests.support.scripted import NAME

pytestmark = pytest.mark.slow

SEED = 11


def suite_of(candidate=None, *, options=None, gate=None, execution=None):
    """A comparison with lives, of which both arms behave unless they are told otherwise."""
    return {
        "suite_name": "lives",
        "num_repeats": 1,
        "execution": {"retries": 0, "warmups": 0, "timeout_s": 120, **(execution or {})},
        "gate": {"lives": "always", "seed": SEED, **(gate or {})},
        "benchmarks": [{"generator": NAME, "options": options or {}}],
        "arms": {"candidate": {"options": candidate}} if candidate else {},
    }


class Compared:
    """One pair, measured for some blocks."""

    def __init__(self, folder, suite, **settings):
        self.events = []
        self.session = Session.begin(
            parse_suite(json.dumps(suite)),
            str(folder / "out"),
            settings=RunSettings(host=Launches(self.events), **settings),
            watch=self.events.append,
        )
        (self.pair,) = self.session.pairs
        self.info = self.session.info
        self.design = self.info.designs[self.pair.id]

    def run(self, operations=4):
        """Goes on until each arm has so many operations."""
        gate = self.info.gate.model_copy(update={"looks": (operations,)})
        info = self.info.model_copy(update={"gate": gate})
        run_pairs(dataclasses.replace(self.session, info=info), lambda pair, starts: None)
        return self

    @property
    def repeats(self):
        """The measured repeats by index."""
        found = self.session.directory.read_point(self.pair).repeats
        return {repeat.index: repeat for repeat in found if not repeat.warmup}

    @property
    def times(self):
        return PairedTimes.of(self.session.directory.read_point(self.pair).repeats)

    def workers(self):
        """Workers of each life, by block and slot."""
        found = collections.defaultdict(set)
        for repeat in self.repeats.values():
            for record in repeat.records.values():
                made = {attempt.worker for attempt in record.attempts} | {record.worker}
                found[repeat.block, repeat.life] |= made
        return dict(found)

    def slots(self, arm, block=0):
        return [slot for slot, its in enumerate(self.info.order(self.pair, block)) if its == arm]


@pytest.fixture
def compare(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def make(*arguments, take_turns=False, **fields):
        return Compared(tmp_path, suite_of(*arguments, **fields), take_turns=take_turns)

    return make


@pytest.fixture(scope="module")
def paths():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        yield


@pytest.fixture(scope="module")
def block(tmp_path_factory, paths):
    """The repeats of one block of arms that behave, and the same comparison gone on for another."""
    compared = Compared(tmp_path_factory.mktemp("behaved"), suite_of()).run()
    before = {index: repeat.records for index, repeat in compared.repeats.items()}
    return before, compared.run(8)


@pytest.fixture(scope="module")
def behaved(block):
    """Two blocks of arms that behave."""
    return block[1]


@pytest.fixture(scope="module")
def failed(tmp_path_factory, paths):
    """One block whose candidate fails first, measured by the same command again."""
    script = {"act": "raise", "act_at": "0 2", "first_attempts": True}
    return Compared(tmp_path_factory.mktemp("failed"), suite_of(script)).run().run()


def records_of(out):
    run = RunDirectory(str(out))
    if not (out / "run.json").exists():
        return []
    (pair,) = run.read_info().expansion.pairs
    return run.read_point(pair).records


def interrupted(file, out, when):
    """Begins a comparison, and interrupts it once something holds."""
    process = start_cli("ab", file, "-o", out, "--no-lock", cli=FAKE_CLI)
    wait_until(when)
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130


def order_of_measurement(compared):
    """Slots and operations of the first block, by the time at which they began."""
    begun = sorted(
        (record.started_at, index)
        for index, repeat in compared.repeats.items()
        for record in repeat.records.values()
        if repeat.block == 0
    )
    return [compared.design.place(index)[1:] for _, index in begun]


def test_each_slot_of_a_block_has_a_worker_of_its_own(behaved):
    workers = behaved.workers()
    assert set(workers) == {(block, slot) for block in range(2) for slot in range(4)}
    assert all(len(made) == 1 for made in workers.values())
    assert len(set.union(*workers.values())) == 8
    assert behaved.times.lives
    assert behaved.times.times["save"].shape == (2, 4, 2)


def test_lives_that_are_alive_at_once_take_turns_in_rounds_to_and_fro(behaved):
    assert order_of_measurement(behaved) == [
        *[(slot, 0) for slot in (0, 1, 2, 3)],
        *[(slot, 1) for slot in (3, 2, 1, 0)],
    ]


def test_lives_that_cannot_be_alive_at_once_follow_each_other(compare):
    compared = compare(take_turns=True).run()
    assert order_of_measurement(compared) == [
        (slot, operation) for slot in range(4) for operation in range(2)
    ]
    assert len(set.union(*compared.workers().values())) == 4


def test_arms_that_can_share_workers_share_a_new_one_every_two_blocks(compare, monkeypatch):
    monkeypatch.setattr("orbax_bench_core.execute.pool.free_memory_bytes", lambda: 64 << 30)
    compared = compare(gate={"lives": "auto"}).run(10)
    by_block = collections.defaultdict(set)
    for (block, _), made in compared.workers().items():
        by_block[block] |= made
    assert all(len(made) == 1 for made in by_block.values())
    names = [made.pop() for _, made in sorted(by_block.items())]
    assert (names[0], names[2]) == (names[1], names[3])
    assert len(set(names)) == 3
    assert starts(compared.events) == [1, 2]


def test_each_life_begins_with_a_warm_up_even_where_a_suite_has_none(behaved):
    records = behaved.session.directory.read_point(behaved.pair).records
    warmups = [record for record in records if record.warmup]
    assert len(warmups) == 8
    assert {record.worker for record in warmups} == set.union(*behaved.workers().values())


def test_the_arms_have_the_order_of_the_seed(behaved):
    for block in range(2):
        arms = [behaved.repeats[8 * block + 2 * slot].series.arm for slot in range(4)]
        assert tuple(arms) == behaved.info.order(behaved.pair, block)


def test_a_first_attempt_that_fails_is_data_and_a_new_life_goes_on(failed):
    times, slots = failed.times, failed.slots("candidate")
    assert times.failed[0].tolist() == [[slot in slots, False] for slot in range(4)]
    assert [times.attempts[arm].failed for arm in ("baseline", "candidate")] == [0, 2]
    assert times.attempts["candidate"].count == 4
    assert all(len(failed.workers()[0, slot]) == 1 + (slot in slots) for slot in range(4))
    assert times.continued == 0


def test_a_retry_is_kept_and_its_time_counts_nowhere(compare):
    script = {"act": "raise", "act_at": "0 2", "first_attempts": True}
    compared = compare(script, execution={"retries": 1}).run()
    times, (slot, _) = compared.times, compared.slots("candidate")
    retried = compared.repeats[2 * slot]
    assert (retried.status, retried.first_attempt) == ("passed", "failed")
    assert times.times["save"][0, slot].tolist()[0] == float("inf")
    # The failure, its retry and what follows have a process each.
    assert len(compared.workers()[0, slot]) == 3
    (attempt,) = retried.attempts
    assert attempt.worker and attempt.duration_s is not None


def test_an_operation_that_one_arm_lacks_stays_and_is_missing(compare):
    compared = compare({"lacks": "load", "lacks_at": "0 2"}).run()
    slots = compared.slots("candidate")
    missing = [
        [value != value for value in life] for life in compared.times.times["load"][0].tolist()
    ]
    assert missing == [[slot in slots, False] for slot in range(4)]


def test_nothing_passing_in_the_first_block_ends_the_pair(compare):
    compared = compare({"save_s": 0.03}, options={"act": "raise"}).run(8)
    assert compared.times.stopped
    assert [each.code for each in compared.times.problem] == ["nothing_passed"]
    assert len(compared.times.labels) == 1


def test_a_need_that_is_not_met_ends_the_pair_at_once_and_is_no_failure(compare):
    compared = compare({"act": "need"}).run(8)
    assert compared.times.stopped
    assert compared.times.attempts["candidate"].count == 0
    (lack,) = compared.times.problem
    assert (lack.code, lack.values["said"].partition(":")[0]) == ("arm_impossible", "UnmetNeed")


def test_what_was_measured_is_not_measured_again(block):
    before, compared = block
    assert len(before) == 8
    assert {index: compared.repeats[index].records for index in before} == before
    compared.events.clear()
    compared.run(8)
    assert all(event.reused for event in compared.events)


def test_a_failure_is_not_tried_again_by_the_same_command(failed):
    assert [repeat.attempts for repeat in failed.repeats.values()] == [()] * 8


@pytest.mark.nightly
def test_a_life_that_was_interrupted_goes_on_in_a_new_worker_and_is_counted(tmp_path):
    file = tmp_path / "suite.yaml"
    file.write_text(json.dumps(suite_of(options={"lasts_s": 0.3}, gate={"operations_per_life": 2})))
    out = tmp_path / "out"
    interrupted(file, out, lambda: len(list(out.glob("records/*/repeat_*/host_0.json"))) >= 5)
    run = RunDirectory(str(out))
    (pair,) = run.read_info().expansion.pairs
    kept = {record.repeat: record for record in run.read_point(pair).records if not record.warmup}
    assert all(record.status == "passed" for record in kept.values())
    done = fake_bench("ab", file, "-o", out, "--no-lock")
    assert done.code == 0, done.out + done.err
    times = PairedTimes.of(run.read_point(pair).repeats)
    assert times.continued == 4 - sum(index % 2 for index in kept if index < 8)
    assert "continued in a new process" in (out / "verdicts.md").read_text()
    after = {record.repeat: record for record in run.read_point(pair).records if not record.warmup}
    assert {index: after[index] for index in kept} == kept


def test_arms_get_lives_once_an_operation_pays_for_the_one_before_it(tmp_path):
    suite = suite_of({"burden": 1.5}, options={"burden": 1.0}, gate={"lives": "auto"})
    suite["execution"]["warmups"] = 1
    file, out = tmp_path / "suite.yaml", tmp_path / "out"
    file.write_text(json.dumps(suite))
    interrupted(file, out, lambda: any(record.life is not None for record in records_of(out)))
    (beat,) = Heartbeat.all_of(RunDirectory(str(out)))
    done = fake_bench("ab", file, "-o", out, "--no-lock")
    assert done.code == 3, done.out + done.err
    assert "before them both sides shared workers" in (out / "verdicts.md").read_text()
    (point,) = read_verdicts(RunDirectory(str(out))).points
    (save,) = [found for found in point.operations if found.operation == "save"]
    assert (save.verdict.word, point.design.workers) == ("REGRESSION", "lives")
    assert save.verdict.low < 1.5 < save.verdict.high
    assert point.blocks == 4
    before = BLOCK_SIZE * point.design.after
    measured = [record for record in records_of(out) if not record.warmup]
    assert len(measured) == before + BLOCK_SIZE * 2 * point.blocks
    gate = RunDirectory(str(out)).read_info().gate
    assert beat.repeats == before + 2 * point.design.last_look(gate)
    assert any(record.life is None for record in measured)
