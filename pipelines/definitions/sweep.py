"""The sweep pipeline: plan, make what is loaded, measure each point, put together, compare."""

from typing import TYPE_CHECKING, Any

from orbax_bench_pipelines.definitions.common import (
    Finished,
    Pipeline,
    judge,
    make_checkpoint,
    measure_points,
    on_each_slice,
)
from orbax_bench_pipelines.targets import Placement, SliceShape

if TYPE_CHECKING:
    from rich.console import Console


def build(placement: Placement) -> Any:
    """Returns the pipeline, placed."""
    from kfp import dsl

    @dsl.pipeline(name="orbax-bench-sweep")
    def sweep(
        suite: str,
        output_directory: str,
        fixture: str = "",
        baseline: str = "",
        remove_repeated_dir: bool = False,
        enable_hlo_dump: bool = False,
        measure_limits: bool = True,
        lock: bool = True,
    ) -> None:
        """Measures every sweep point of a suite and reports on all of them.

        Args:
            suite: The suite file, word for word.
            output_directory: The run directory, local or gs://, reachable from every step.
            fixture: A suite file to generate the checkpoint from that load-only points read.
            baseline: A stored baseline or a run directory to compare with; empty for none.
            remove_repeated_dir: Whether checkpoint data is deleted after each repeat.
            enable_hlo_dump: Whether XLA writes its HLO protos into the run directory.
            measure_limits: Whether to measure what machine and storage can do, once per run.
            lock: Whether a step waits until nothing else of ours measures on its machine.
        """
        checkpoint = make_checkpoint(placement, suite=suite, fixture=fixture)

        def on_slice(shape: SliceShape | None, directory: Any) -> None:
            samples = measure_points(
                placement,
                shape,
                suite=suite,
                output_directory=directory,
                checkpoint=checkpoint,
                remove_repeated_dir=remove_repeated_dir,
                enable_hlo_dump=enable_hlo_dump,
                measure_limits=measure_limits,
                lock=lock,
            )
            with dsl.If(baseline != "", name="has-baseline"):
                judge(placement, output_directory=directory, samples=samples, baseline=baseline)

        on_each_slice(placement, output_directory, on_slice)

    return sweep


def conclude(finished: Finished, console: "Console") -> int:
    """Shows the summary of a sweep, and its comparison with a baseline, and returns the exit code.

    A comparison with what was measured apart can only warn, so that it is no part of the code.
    """
    from orbax_bench_core.analysis.summary import notes_document, summarize, summary_document
    from orbax_bench_core.analysis.verdicts import read_verdicts, verdicts_document
    from orbax_bench_core.cli.measurement import EXIT_FAILED, run_exit_code
    from orbax_bench_core.document import print_document
    from orbax_bench_core.records import load_run
    from orbax_bench_core.steps import limits_of

    if finished.failure is not None:
        return EXIT_FAILED
    run = load_run(finished.directory)
    summary, info = summarize(run.repeats()), run.info
    print_document(notes_document(info), console)
    extra = limits_of(run.directory, info, summary)
    print_document(summary_document(info, summary, extra=extra), console)
    if finished.arguments["baseline"]:
        print_document(verdicts_document(read_verdicts(run)), console)
    return run_exit_code(summary, console)


SWEEP = Pipeline(
    name="sweep",
    summary="Measures every point of a suite, each in a step of its own.",
    parameters={
        "fixture": "",
        "baseline": "",
        "remove_repeated_dir": False,
        "enable_hlo_dump": False,
        "measure_limits": True,
        "lock": True,
    },
    build=build,
    conclude=conclude,
    paths=("baseline",),
)
