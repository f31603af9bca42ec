"""The sweep pipeline: measure every point of a suite, report, compare with what is stored."""

from typing import TYPE_CHECKING

from orbax_bench_pipelines.definitions.pipeline import (
    KEEP_DATA,
    LOCK,
    Finished,
    Parameter,
    Pipeline,
)
from orbax_bench_pipelines.definitions.steps import Steps

if TYPE_CHECKING:
    from rich.console import Console


def add(steps: Steps) -> None:
    """Adds a comparison, where there is a baseline, and fails where points are lacking.

    A comparison fails by a regression of more than runs that were measured apart differ by.
    """
    from kfp import dsl

    baseline = steps.given["baseline"]
    with dsl.If(baseline != "", name="has-baseline"):
        compared = steps.judge(baseline).outputs
        steps.enforce(verdict=compared["Output"], verdicts=compared["verdicts"])
    with dsl.Else(name="has-no-baseline"):
        steps.enforce()


def conclude(finished: Finished, console: "Console") -> int:
    """Shows a sweep, and its comparison with a baseline, and returns the exit code."""
    from orbax_bench_core.analysis.summary import notes_document, summarize, terminal_document
    from orbax_bench_core.analysis.verdicts import read_verdicts, verdicts_document
    from orbax_bench_core.document import print_document
    from orbax_bench_core.exit_codes import exit_code
    from orbax_bench_core.records import RunFile, load_run
    from orbax_bench_core.steps import limits_of

    run = load_run(finished.directory)
    summary, info = summarize(run.repeats()), run.info
    print_document(notes_document(info), console)
    extra = limits_of(run.directory, info, summary)
    print_document(terminal_document(info, summary, extra), console)
    found = [summary.outcome]
    if finished.arguments["baseline"] and (run.directory.root / RunFile.VERDICTS).exists():
        verdicts = read_verdicts(run)
        print_document(verdicts_document(verdicts), console)
        found.append(verdicts.outcome)
    return exit_code(*found)


SWEEP = Pipeline(
    name="sweep",
    summary="Measures every point of a suite and reports on all of them.",
    own=(
        Parameter(
            "baseline", "", "A stored baseline or a run directory to compare with; empty for none."
        ),
        KEEP_DATA,
        Parameter(
            "enable_hlo_dump", False, "Whether XLA writes its HLO protos into the run directory."
        ),
        Parameter(
            "measure_limits",
            True,
            "Whether to measure the limits of machine and storage, once per run.",
        ),
        LOCK,
    ),
    add=add,
    conclude=conclude,
    paths=("baseline",),
)
