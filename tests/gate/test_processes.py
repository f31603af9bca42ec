"""Arms that share several worker processes, and operations that depend on the one before them."""

import math

import numpy as np
import pytest

from orbax_bench_core.analysis.verdicts import why
from orbax_bench_core.config import GateConfig
from orbax_bench_core.gate import judge, random_labels
from orbax_bench_core.gate.blocks import read_blocks
from orbax_bench_core.gate.carry_over import CarryOver
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


def of_two(seed, save, load, blocks):
    """A point of two primary operations in the same order of the arms."""
    times, labels = comparison(seed, blocks=blocks, **save)
    both = {"save": times, "load": comparison(seed, blocks=blocks, **load)[0]}
    gate = GateConfig(primary=("save", "load"))
    return judge(both, labels, gate, blocks_per_process=PER_PROCESS)


def job(seed, blocks, **how):
    """Test of what a job pays, by the noise within the processes alone."""
    found = read_blocks(*comparison(seed, blocks=max(2, blocks), **how), per_process=PER_PROCESS)
    return CarryOver.of(found.first(blocks), 0.0).job(Spread(1, 0.0, math.inf))


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


@pytest.mark.parametrize(("blocks", "freedom"), [(1, 1), (2, 3), (6, 13), (10, 23)])
def test_what_a_job_pays_is_as_sure_as_the_operations_that_tell(blocks, freedom):
    # Of 4 in a block each but the first of a process, less a mean for each block and two factors.
    found = job(1, blocks)
    assert found.freedom == freedom
    assert (found.error > 1) == (blocks == 1)  # of which nothing is known


def test_the_error_of_what_a_job_pays_is_that_of_its_estimate_and_knows_both_factors():
    found = [job(seed, 6) for seed in range(1000)]
    errors = np.mean([each.error**2 for each in found])
    assert errors == pytest.approx(np.var([each.centre for each in found]), rel=0.08)
    assert job(1, 10, ratio=1.2, after=1.1).error == pytest.approx(job(1, 10).error)


def test_where_processes_differ_more_blocks_are_needed():
    times, labels = comparison(1, ratio=1.1, apart=0.07, noise=0.1, blocks=10)
    alone, several = (judged(times, labels, each).operations["save"] for each in (None, 2))
    assert alone.more_blocks < several.more_blocks


PAID_BY_THE_NEXT = {"ratio": 1.2, "after": 0.7}


@pytest.mark.parametrize(("other", "word"), [(1.0, "INCONCLUSIVE"), (3.0, "REGRESSION")])
def test_one_operation_whose_regression_stands_is_enough_and_one_that_passes_is_not(other, word):
    for seed in range(3):
        found = of_two(seed, PAID_BY_THE_NEXT, {"ratio": other}, 50).decision
        assert found.word == word
        assert why(found.reason).startswith("save: an operation takes 0.7") == (other == 1.0)


def test_primary_operations_share_the_level_of_an_after_effect():
    certain, other = comparison(46, after=1.12, blocks=10), {"noise": 0.01}
    assert judged(*certain).decision.settled
    assert not of_two(46, {"after": 1.12}, other, 10).decision.settled
    suspected = {"after": 1.12, "noise": 0.3}
    assert "as long after" in why(judged(*comparison(1, blocks=30, **suspected)).decision.reason)
    assert "as long after" not in why(of_two(1, suspected, other, 30).decision.reason)


def test_the_most_certain_of_two_after_effects_ends_it_and_is_named():
    found = of_two(3, {"after": 1.15}, {"after": 1.6}, 6).decision
    assert (found.settled, found.reason[0].operation) == (True, "load")


def test_what_only_the_job_leaves_open_waits_for_the_next_look():
    found = [judged(*comparison(seed, after=1.15, noise=0.2, blocks=20)) for seed in range(20)]
    waiting = [each for each in found if not each.decision.settled]
    assert len(waiting) >= 10
    assert not any(each.carries_over for each in waiting)


@pytest.mark.parametrize(("until", "next_look"), [(99, None), (100, 100), (167, 100), (168, 100)])
def test_it_goes_on_up_to_the_look_that_is_granted(until, next_look):
    times, labels = comparison(3, ratio=1.12, noise=0.2, blocks=30)
    found = judge({"save": times}, labels, GATE, until=until).decision
    assert (found.word, found.next_look) == ("INCONCLUSIVE", next_look)
