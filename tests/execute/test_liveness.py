"""The judge of a worker's signs, on series that are known in advance."""

import itertools

import pytest

from orbax_bench_core.execute.liveness import PATIENCE, Liveness, Patience, Pulse, Signs


def judge(looks, patience=PATIENCE):
    pulse = Pulse(patience)
    for at, signs in looks:
        pulse.observe(at, signs)
    return pulse.judgement()


def series(*parts, step=1.0):
    """One look a second; each part is a state with its number of looks, and how ticks go on."""
    at, ticks, found = itertools.count(), 100, []
    for state, looks, per_look in parts:
        for _ in range(looks):
            ticks += per_look
            found.append((next(at) * step, Signs(state=state, ticks=ticks)))
    return found


@pytest.mark.parametrize(
    ("parts", "liveness"),
    [
        ([("R", 1, 0)], Liveness.ALIVE),
        ([("S", 5, 1)], Liveness.ALIVE),
        ([("S", 3, 1), ("S", 9, 0)], Liveness.ALIVE),
        # A worker that waits for a frozen peer sleeps just as one that hangs.
        ([("S", 3, 1), ("S", 20, 0)], Liveness.UNKNOWN),
        ([("S", 20, 0)], Liveness.UNKNOWN),
        ([("S", 3, 1), ("T", 2, 0)], Liveness.FROZEN),
        ([("S", 3, 1), ("t", 2, 0)], Liveness.FROZEN),
        ([("S", 3, 1), ("T", 1, 0)], Liveness.UNKNOWN),
        ([("T", 9, 0), ("S", 1, 1)], Liveness.ALIVE),
        # Single steps in a debugger: it has run between the looks.
        ([("t", 9, 1)], Liveness.UNKNOWN),
        ([("D", 11, 0)], Liveness.STALLED),
        ([("D", 9, 0)], Liveness.UNKNOWN),
        # Storage that is slow and answers: it uses the CPU now and then.
        ([("D", 30, 1)], Liveness.ALIVE),
        ([("D", 8, 0), ("S", 1, 0), ("D", 8, 0)], Liveness.UNKNOWN),
        ([("S", 1, 0), ("Z", 1, 0)], Liveness.DEAD),
        ([], Liveness.UNKNOWN),
    ],
)
def test_signs_over_time_are_judged(parts, liveness):
    assert judge(series(*parts)).liveness is liveness


@pytest.mark.parametrize(
    ("signs", "said"),
    [
        (Signs(exit_code=-9), "was killed by SIGKILL"),
        (Signs(exit_code=3), "ended with exit code 3"),
        (Signs(exit_code=-40), "was killed by signal 40"),
        (Signs(state="S", ended=True), "has ended"),
    ],
)
def test_one_look_tells_who_is_dead(signs, said):
    judgement = judge([(0.0, signs)])
    assert (judgement.liveness, judgement.said) == (Liveness.DEAD, said)


def test_signs_that_cannot_be_read_tell_nothing():
    judgement = judge([(float(at), Signs(pid=1)) for at in range(60)])
    assert judgement.liveness is Liveness.UNKNOWN
    assert judgement.said == "shows no signs that can be read"


def test_time_in_which_nobody_looked_does_not_count():
    """Whoever looks may itself have been suspended, perhaps with all of the machine."""
    looks = [(0.0, Signs(state="S", ticks=1)), (1.0, Signs(state="T", ticks=1))]
    assert judge([*looks, (3600.0, Signs(state="T", ticks=1))]).liveness is Liveness.UNKNOWN
    again = [(3600.0, Signs(state="T", ticks=1)), (3601.0, Signs(state="T", ticks=1))]
    judgement = judge([*looks, *again])
    assert (judgement.liveness, judgement.lasting_s) == (Liveness.FROZEN, 1.0)


def test_a_single_look_never_freezes_whatever_the_patience():
    assert judge([(0.0, Signs(state="T"))], Patience(confirm_s=0)).liveness is Liveness.UNKNOWN


def test_a_container_that_is_paused_is_frozen_where_the_kernel_says_so():
    signs = Signs(state="S", ticks=1, wchan="do_freezer_trap")
    judgement = judge([(0.0, signs), (1.0, signs)])
    assert judgement.liveness is Liveness.FROZEN
    assert "freezer of its control group (state S in do_freezer_trap)" in judgement.said


def test_uninterruptible_sleep_names_the_function_of_the_kernel():
    signs = Signs(state="D", ticks=1, wchan="nfs_wait_bit_killable")
    judgement = judge([(float(at), signs) for at in range(13)])
    assert judgement.said == (
        "has been in uninterruptible sleep (state D in nfs_wait_bit_killable) "
        "without using the CPU for 12 s"
    )
