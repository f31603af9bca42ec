"""Step recovery: how fast a training job is back after a kill."""

from __future__ import annotations

from orbax_bench_core.analysis.recovery import lacking
from orbax_bench_core.config import parse_suite, with_overrides
from orbax_bench_core.errors import check_amounts
from orbax_bench_core.execute import DEFAULTS, RunSettings, Say, silent
from orbax_bench_core.records import RunDirectory, RunFile
from orbax_bench_core.steps.experiments import perform
from orbax_bench_core.steps.pipeline.again import tried_again
from orbax_bench_core.steps.pipeline.outputs import Outputs, conclusion
from orbax_bench_core.steps.recovering import Drills


@tried_again
def recovery(
    suite: str,
    output_directory: str,
    *,
    add_notice: float = 0.0,
    add_start: float = 0.0,
    file: str = "",
    settings: RunSettings = DEFAULTS,
    say: Say = silent,
    lock: bool = True,
) -> Outputs[list[str]]:
    """Kills a training job again and again, and measures how fast it is back.

    A suite with arms is judged on the whole recovery: compare-baseline returns its verdict.

    Args:
        suite: The suite file, word for word, with the benchmark `training_job`.
        output_directory: The run directory; the same step goes on with what it holds.
        add_notice: Seconds until the platform notices a failure, beyond what is measured here.
        add_start: Seconds to replace a node, to wait for a scheduler and to start accelerators.
        file: Where the suite lies, with the classes that it names beside it; empty for nowhere.
        settings: How to measure, beside what the suite says.
        say: Takes lines for people.
        lock: Whether to wait until nothing else of ours measures on this machine.

    Returns:
        The value names the series of which drills did not come back, a line each; `answer`,
        `summary` and `report` are files of the run directory.

    Raises:
        UserError: The suite cannot be drilled, or the directory cannot be used.
        CannotRecord: A record could not be written.
    """
    check_amounts(add_notice=add_notice, add_start=add_start)

    found = perform(
        Drills(added={"notice": add_notice, "start": add_start}),
        lambda overrides: parse_suite(with_overrides(suite, overrides, file), file),
        output_directory,
        settings=settings,
        say=say,
        lock=lock,
    )
    named = conclusion(RunDirectory(output_directory), RunFile.RECOVERY)
    return Outputs(value=lacking(found.answer), named=named)
