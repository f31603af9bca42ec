"""`v0_cancel` and `v1_cancel`: what is cancelled leaves no checkpoint."""

import errno

import jax
import pytest

from orbax_bench_core.authoring import UnmetNeed, VerificationError
from orbax_bench_core.benchmarks import cancel
from orbax_bench_core.benchmarks.cancel import CancelOptions, V0Cancel, V1Cancel
from orbax_bench_core.measure import Metrics

LARGE = {"array": {"dtype": "float32", "shape": [2048, 1024], "sharding": ["model"]}}


def committed(outcome):
    return sorted(
        path.name for path in (outcome.folder / "steps").iterdir() if path.name.isdecimal()
    )


# TensorStore calls a future of the cancelled save back when Orbax has closed its event loop.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
def test_v0_what_was_cancelled_is_not_there(run):
    outcome = run(V0Cancel, spec=LARGE, cancel_delay_secs=0)
    cancelled = "left no checkpoint" in outcome.metrics.notes["cancel"][0]
    assert committed(outcome) == (["2"] if cancelled else ["1"])
    assert ("restore" in outcome.operations) is not cancelled
    assert outcome.operations >= {"save_blocking", "cancel", "wait_after_cancel"}
    assert outcome.verified


@pytest.mark.slow
def test_v0_cancel_delay_secs_may_be_too_long(run):
    outcome = run(V0Cancel, cancel_delay_secs=1.5)
    assert outcome.operations >= {"cancel_too_late", "restore"}
    assert outcome.metrics.notes["cancel"] == ["the save was faster"]
    assert outcome.verified


# What was cancelled tells a loop of Orbax's that may be closed by then.
@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
def test_v1_what_was_cancelled_is_not_there(run):
    outcome = run(V1Cancel, spec=LARGE, cancel_delay_secs=0)
    assert outcome.blocks.count("save_blocking") == 2
    assert outcome.operations >= {"cancel", "save_background", "load"}
    assert committed(outcome) == ["2"]
    assert outcome.verified


@pytest.mark.slow
def test_v1_what_was_finished_is_deleted(run):
    outcome = run(V1Cancel, cancel_delay_secs=1.5)
    assert "cancel_too_late" in outcome.operations
    assert committed(outcome) == ["2"]


class Reluctant:
    """Cancels at the third try; Orbax's own does so when its save is still writing."""

    def __init__(self, number):
        self.tries = 0
        self.number = number

    def cancel(self, step):
        self.tries += 1
        if self.tries < 3:
            raise OSError(self.number, "Directory not empty", "state.tmp")


def test_v1_a_folder_that_fills_again_is_deleted_again():
    metrics, checkpointer = Metrics(), Reluctant(errno.ENOTEMPTY)
    cancel._cancel(metrics, checkpointer)
    assert checkpointer.tries == 3
    assert "at try 3" in metrics.notes["cancel"][0]


def test_v1_another_error_is_no_reason_to_try_again():
    with pytest.raises(OSError, match="Directory not empty"):
        cancel._cancel(Metrics(), Reluctant(errno.EACCES))


@pytest.mark.slow
def test_v1_a_step_that_is_still_there_is_found(run, monkeypatch):
    monkeypatch.setattr(cancel, "_cancel", lambda metrics, checkpointer: checkpointer.wait())
    with pytest.raises(VerificationError, match=r"only step 2 should be there; there is \[1, 2\]"):
        run(V1Cancel)


@pytest.mark.parametrize("benchmark", [V0Cancel, V1Cancel])
def test_several_processes_cannot_cancel(run, monkeypatch, benchmark):
    mesh = {"w": {"dtype": "float32", "shape": [8]}}
    monkeypatch.setattr(cancel.needs, "require_tree", lambda context, _: context.pytree)
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(UnmetNeed, match="perform_cancellation: true needs a single process"):
        run(benchmark, spec=mesh)


def test_a_delay_is_not_negative():
    with pytest.raises(ValueError, match="cancel_delay_secs must be 0 or more"):
        CancelOptions(cancel_delay_secs=-1)
