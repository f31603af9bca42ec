"""Comparing what is on storage: two runs, a run and a baseline, or the arms of one run."""

from __future__ import annotations

from orbax_bench_core.compare import baseline as baselines
from orbax_bench_core.compare.judge import judge_run
from orbax_bench_core.compare.registry.around import registry_around
from orbax_bench_core.compare.registry.past import past_log_ratios
from orbax_bench_core.compare.unpaired import NO_PAST, compare_unpaired
from orbax_bench_core.compare.verdict import VerdictReport
from orbax_bench_core.config.errors import SuiteError
from orbax_bench_core.config.gate import GateConfig
from orbax_bench_core.records.run_directory import RunDirectory


def compare_stored(baseline: str, candidate: str | None) -> VerdictReport:
    """Compares a candidate with a baseline, paired when they are the arms of one run.

    The rules are those of the candidate's suite, or the defaults where only samples are left of it.

    Args:
        baseline: A run directory or a stored baseline.
        candidate: A run directory or a stored baseline; None takes the arms of the first.

    Raises:
        SuiteError: Something cannot be read, or there is nothing to compare.
    """
    run = RunDirectory(candidate or baseline)
    same = candidate is None or str(RunDirectory(baseline).root) == str(run.root)
    if same:
        if not (run.exists() and run.read_info().paired):
            raise SuiteError(
                f"{run.root} holds no paired run, so there are no arms to compare; give two paths, "
                "or measure both arms in one place with `orbax-bench ab`"
            )
        return judge_run(run)
    assert candidate is not None
    before, now = baselines.load(baseline), baselines.load(candidate)
    registry = registry_around(baseline)
    return compare_unpaired(
        before,
        now,
        run.read_info().gate if run.exists() else GateConfig(),
        NO_PAST if registry is None else past_log_ratios(registry, now),
        baseline=baseline,
        candidate=candidate,
    )
