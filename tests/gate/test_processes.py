"""Arms that share several worker processes, and operations that depend on the one before them."""

import math

import numpy as np
import pytest

from orbax_bench_core.analysis.verdicts import why
from orbax_bench_core.config import GateConfig
from orbax_bench_core.gate import judge, random_labels
from orbax_bench_core.gate.blocks import read_blocks
from orbax_bench_core.gate.processes import PRIOR, Spread

GATE = GateConfig(primary=("save",))
PER_PROCESS = 2


def comparison(seed, *, ratio=1.0, apart=0.0, after=1.0, noise=0.05, blocks=50):
    """Times and labels: an option that differs by `apart` from one process to the next."""
    rng = np.random.default_rng(seed)
    labels = random_labels(blocks, rng)
    option = np.repeat(apart * rng.standard_normal(blocks // PER_PROCESS), PER_PROCESS)
    before = np.concatenate([[False], labels.ravel()[:-1]])
    before[:: 4 * PER_PROCESS] = False
    logs = noise * rng.standard_normal(labels.shape) + labels * (math.log(ratio) + option[:, None])
    return np.exp(logs + math.log(after) * before.reshape(labels.shape)), labels


def judged(times, labels, per_process=PER_PROCESS, gate=GATE):
    return judge({"save": times}, labels, gate, blocks_per_process=per_process)


def test_an_option_that_differs_between_processes_is_no_regression_nor_faster():
    """Its interval covers what the next process does, and is wider than that of one process."""
    several = [judged(*comparison(seed, apart=0.07)) for seed in range(60)]
    assert [found.decision.word for found in several].count("REGRESSION") == 0
    saves = [found.operations["save"] for found in several]
    assert sum(each.low <= 1 <= each.high for each in saves) >= 56
    assert sum(each.faster for each in saves) == 0
    alone = [judged(*comparison(seed, apart=0.07), per_process=None) for seed in range(15)]
    widths = [
        [save.high / save.low for save in each]
        for each in ([found.operations["save"] for found in alone], saves)
    ]
    assert np.median(widths[1]) > np.median(widths[0])


def test_one_process_leaves_what_was_known_and_several_correct_it():
    times, labels = comparison(1, apart=0.3, noise=0.01, blocks=4)
    blocks = read_blocks(times, labels, per_process=PER_PROCESS)
    known = 8 / (2 * PRIOR**4)
    assert Spread.of(blocks.first(PER_PROCESS), 0.0) == (1, PRIOR**2, pytest.approx(known))
    seen = Spread.of(blocks, 0.0)
    assert (seen.processes, seen.variance > PRIOR**2, seen.precision > known) == (2, True, True)
    assert Spread.of(read_blocks(times, labels), 0.0) == (1, 0.0, math.inf)


def test_a_candidate_that_is_called_faster_is_so_in_the_next_process_too():
    found = [judged(*comparison(seed, ratio=0.8, apart=0.04)) for seed in range(30)]
    faster = [each.operations["save"] for each in found if each.operations["save"].faster]
    assert len(faster) >= 24
    assert all(each.high < 1 for each in faster)


@pytest.mark.parametrize(("apart", "least"), [(0.04, 27), (0.07, 21)])
def test_a_slow_down_of_a_fifth_is_found_all_the_same(apart, least):
    found = [judged(*comparison(seed, ratio=1.2, apart=apart)).decision.word for seed in range(30)]
    assert found.count("REGRESSION") >= least


@pytest.mark.parametrize(("after", "ratio"), [(0.7, 1.2), (1.5, 1.0)])
def test_no_word_where_the_next_operation_pays(after, ratio):
    for seed in range(10):
        found = judged(*comparison(seed, ratio=ratio, after=after))
        assert (found.decision.word, found.decision.settled) == ("INCONCLUSIVE", True)
        assert "as long after one of the candidate" in why(found.decision.reason)
        assert "lives: always" in why(found.decision.reason)


def test_a_pass_stands_that_a_small_after_effect_cannot_change():
    found = judged(*comparison(1, after=1.005, noise=0.001)).decision
    assert (found.word, found.settled, found.reason) == ("PASS", True, ())
    early = judged(*comparison(1, after=1.005, noise=0.001, blocks=6)).decision
    assert "as long after" not in why(early.reason)
    assert early.next_look == 20


def test_an_after_effect_of_seconds_that_nobody_minds_is_none():
    gate = GATE.model_copy(update={"min_effect_s": 5.0})
    assert judged(*comparison(1, after=1.5), gate=gate).decision.word == "PASS"


def test_what_is_open_for_its_noise_alone_needs_no_lives():
    found = judged(*comparison(1, noise=0.4, blocks=6))
    assert (found.decision.word, found.carries_over) == ("INCONCLUSIVE", False)


def test_a_suspicion_says_nothing_while_there_are_looks_to_come():
    found = judged(*comparison(8, ratio=1.3, after=1.1, blocks=6)).decision
    assert (found.word, found.settled) == ("INCONCLUSIVE", False)
    assert "as long after" not in why(found.reason)


def test_a_certain_after_effect_ends_a_comparison_before_its_times_are_settled():
    found = [judged(*comparison(seed, after=1.5, blocks=10)) for seed in range(20)]
    assert all("as long after one of the candidate" in why(each.decision.reason) for each in found)
    assert sum(each.decision.settled for each in found) >= 18


def test_a_pass_excludes_a_large_after_effect_also_where_noise_hides_it():
    found = [judged(*comparison(seed, after=1.5, noise=0.4, blocks=30)) for seed in range(40)]
    assert "PASS" not in [each.decision.word for each in found]


@pytest.mark.parametrize(("own", "after", "noise"), [(1.08, 1.15 / 1.08, 0.1), (1.0, 1.15, 0.2)])
def test_a_pass_is_of_what_a_job_pays(own, after, noise):
    found = [
        judged(*comparison(seed, ratio=own, after=after, noise=noise, blocks=30))
        for seed in range(40)
    ]
    assert [each.decision.word for each in found].count("PASS") <= 4
    lives = [each for each in found if each.decision.settled and each.carries_over]
    assert len(lives) >= 20
    assert all("what a job pays" in why(each.decision.reason) for each in lives)
    covered = [each.operations["save"].high >= 1.15 for each in found]
    assert covered.count(False) <= 4


def test_arms_that_only_alternate_do_not_tell_an_after_effect_from_their_own():
    labels = np.tile([True, False, True, False], (5, 1))
    times = np.exp(0.01 * np.random.default_rng(1).standard_normal(labels.shape))
    gate = GATE.model_copy(update={"max_stalls": None, "max_failures": None})
    found = judged(times, labels, gate=gate)
    assert (found.decision.word, found.decision.settled) == ("INCONCLUSIVE", False)
    assert found.operations["save"].high > 10


@pytest.mark.parametrize(("after", "ratio"), [(0.9, 1.6), (1.5, 5.0)])
def test_a_regression_stands_that_the_next_operation_cannot_make_good(after, ratio):
    found = [judged(*comparison(s, ratio=ratio, after=after, noise=0.02)) for s in range(10)]
    assert sum(each.decision.word == "REGRESSION" for each in found) >= 8


def test_identical_operations_hardly_ever_seem_to_pay_for_each_other():
    reasons = [why(judged(*comparison(seed)).decision.reason) for seed in range(40)]
    assert sum("as long after" in reason for reason in reasons) <= 2


@pytest.mark.parametrize("lives", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_a_large_effect_in_three_primary_operations_is_decided_at_the_first_look(lives, fails):
    rng = np.random.default_rng(1)
    labels = random_labels(4 if lives else 5, rng)
    shape = (*labels.shape, 2) if lives else labels.shape
    slow = labels[..., None] if lives else labels
    times = np.exp(0.05 * rng.standard_normal(shape)) * np.where(slow, math.inf if fails else 3, 1)
    three = dict.fromkeys(("save_blocking", "save", "load"), times)
    found = judge(
        three, labels, GateConfig(), blocks_per_process=None if lives else PER_PROCESS
    ).decision
    assert (found.word, found.endpoint) == ("REGRESSION", "failures" if fails else "time")
