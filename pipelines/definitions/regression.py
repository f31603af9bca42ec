"""The regression pipeline: measure both arms, judge, store what passes, fail on a regression."""

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

    from orbax_bench_components.enforce_verdict import enforce_verdict
    from orbax_bench_components.publish_baseline import publish_baseline

    @dsl.pipeline(name="orbax-bench-regression")
    def regression(
        suite: str,
        output_directory: str,
        arms: str = "",
        fixture: str = "",
        baseline: str = "",
        registry: str = "",
        promote: bool = False,
        revision: str = "",
        force: bool = False,
        allow_inconclusive: bool = False,
        remove_repeated_dir: bool = True,
        lock: bool = True,
    ) -> None:
        """Says whether a candidate saves and loads slower than a baseline, and fails if it does.

        Each point is measured in both arms within one step, so on one machine.

        Args:
            suite: The suite file, word for word; with `arms`, unless they are given here or a
                stored baseline is compared with.
            output_directory: The run directory, local or gs://, reachable from every step.
            arms: An `arms` block, as YAML, for a suite that has none; `{}` compares it with itself.
            fixture: A suite file to generate the checkpoint from that load-only points read.
            baseline: A stored baseline to compare with in place of arms, which can only warn.
            registry: Where to capture a run that does not regress; empty for nowhere.
            promote: Whether what is captured becomes the baseline of its points.
            revision: What to file it under; by default the commit of the code under test, which an
                image without a repository does not know.
            force: Whether it is promoted even if its code had changes that no commit has.
            allow_inconclusive: Whether INCONCLUSIVE leaves the pipeline successful; never where an
                arm lacks an operation.
            remove_repeated_dir: Whether checkpoint data is deleted after each operation.
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
                arms=arms,
                remove_repeated_dir=remove_repeated_dir,
                measure_limits=False,
                lock=lock,
            )
            compared = judge(
                placement, output_directory=directory, samples=samples, baseline=baseline
            )
            verdict = compared.outputs["Output"]
            with (
                dsl.If(verdict != "REGRESSION", name="not-slower"),
                dsl.If(registry != "", name="has-registry"),
            ):
                published = publish_baseline(
                    output_directory=directory,
                    registry=registry,
                    promote=promote,
                    revision=revision,
                    force=force,
                    samples=samples,
                )
                placement.place(published).set_caching_options(False)
            enforced = enforce_verdict(
                verdict=verdict,
                allow_inconclusive=allow_inconclusive,
                verdicts=compared.outputs["verdicts"],
            )
            placement.place(enforced).set_caching_options(False)

        on_each_slice(placement, output_directory, on_slice)

    return regression


def conclude(finished: Finished, console: "Console") -> int:
    """Shows the verdicts of a run, and returns the exit code."""
    from orbax_bench_core.analysis.verdicts import read_verdicts, verdicts_document
    from orbax_bench_core.cli.measurement import EXIT_FAILED, comparison_exit_code
    from orbax_bench_core.config import UserError
    from orbax_bench_core.document import print_document
    from orbax_bench_core.records import RunDirectory

    try:
        verdicts = read_verdicts(RunDirectory(finished.directory))
    except UserError:
        return EXIT_FAILED  # the steps have said why there are none
    print_document(verdicts_document(verdicts), console)
    return comparison_exit_code(
        verdicts, allow_inconclusive=finished.arguments["allow_inconclusive"]
    )


REGRESSION = Pipeline(
    name="regression",
    summary="Compares a candidate with a baseline and fails on a regression.",
    parameters={
        "arms": "",
        "fixture": "",
        "baseline": "",
        "registry": "",
        "promote": False,
        "revision": "",
        "force": False,
        "allow_inconclusive": False,
        "remove_repeated_dir": True,
        "lock": True,
    },
    build=build,
    conclude=conclude,
    paths=("baseline", "registry"),
    takes_arms=True,
)
