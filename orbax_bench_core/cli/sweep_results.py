"""Results of a sweep on a terminal: its tables, verdicts against a baseline, and a new baseline."""

from __future__ import annotations

from rich.console import Console

from orbax_bench_core.analysis.summary import (
    RunSummary,
    metrics_document,
    summarize,
    terminal_document,
)
from orbax_bench_core.analysis.verdicts import (
    MetricsShown,
    VerdictReport,
    compare_stored,
    verdicts_document,
)
from orbax_bench_core.baselines import capture_into
from orbax_bench_core.document import print_document
from orbax_bench_core.execute import Say, Session
from orbax_bench_core.records import Run, RunDirectory
from orbax_bench_core.steps import answer_of, limits_of, publish, publish_verdicts


def show(
    session: Session,
    console: Console,
    *,
    baseline: str | None,
    metrics: MetricsShown = "changed",
) -> tuple[RunSummary, VerdictReport | None]:
    """Writes the reports of a sweep, and prints its tables and what a comparison found.

    Args:
        session: What was measured.
        console: Where to print.
        baseline: Path of a stored baseline or run directory to compare with; None compares with
            nothing, and gives no verdicts.
        metrics: Metrics of that comparison to print; without one, `all` prints those of the sweep.

    Raises:
        OSError: The run directory cannot be written.
    """
    directory = session.directory
    summary = publish(directory)
    extra = limits_of(directory, session.info, summary)
    answer = answer_of(directory)
    print_document(terminal_document(session.info, summary, extra, answer), console)
    if baseline is None:
        if metrics == "all":  # of which `summary` keeps what reports show
            print_document(metrics_document(summarize(Run(directory).repeats())), console)
        return summary, None
    verdicts = compare_stored(baseline, str(directory.root))
    publish_verdicts(directory, verdicts)
    print_document(verdicts_document(verdicts, metrics), console)
    return summary, verdicts


def capture(directory: RunDirectory, path: str, say: Say) -> None:
    """Stores a run as a baseline, and says where, and which of its points it could not take.

    Raises:
        OSError: The folder cannot be written.
    """
    folder, left_out = capture_into(directory, path)
    say(f"Baseline: {folder}")
    for name, reason in left_out.items():
        say(f"not captured: {name}: {reason}")
