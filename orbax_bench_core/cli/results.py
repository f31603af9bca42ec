"""Results of a run on a terminal: what is shown of them, and the exit codes that they give."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console

from orbax_bench_core.cli.arguments import results_console
from orbax_bench_core.errors import UserError
from orbax_bench_core.exit_codes import Exit
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.steps import Outlets

if TYPE_CHECKING:
    from pydantic import BaseModel

    from orbax_bench_core.analysis.recovery import Recovery
    from orbax_bench_core.analysis.soak import Soak
    from orbax_bench_core.analysis.summary import RunSummary
    from orbax_bench_core.document import Document

_Found = TypeVar("_Found")


def unwritten(failure: OSError, verb: str, root: str) -> str:
    """Returns what to do when the results of a run cannot be written.

    Args:
        failure: Why, such as a disk that is full or read-only.
        verb: The command that writes them again.
        root: The run directory.
    """
    from orbax_bench_core.errors import command

    return (
        f"cannot write the results to {root}: {failure}\nEvery record is kept: make room, or make "
        f"it writable, then `{command(verb, root)}`"
    )


def run_exit_code(summary: RunSummary, console: Console) -> int:
    """Returns the exit code of a run that came to its end."""
    if not any(point.passed for point in summary.points):
        console.print("[red]Nothing was measured.[/]")
        return Exit.FAILED
    unmeasured = any(point.passed and not point.measured for point in summary.points)
    failed = unmeasured or any(point.failed for point in summary.points)
    return Exit.FAILED if failed or summary.left_out else Exit.OK


def show_answer(answer: BaseModel, document: Document, page: str, *, as_json: bool) -> None:
    """Prints an answer on standard output.

    Args:
        answer: What `as_json` prints, and nothing else.
        document: What people see.
        page: Where it is as a page.
        as_json: Whether it is for machines.
    """
    from orbax_bench_core.document import print_document

    if as_json:
        print(answer.model_dump_json(indent=2))
        return
    console = results_console()
    print_document(document, console)
    console.print(f"Page: {page}", markup=False, highlight=False, soft_wrap=True)


def published(
    directory: str, publish: Callable[[RunDirectory], _Found], *, otherwise: str
) -> _Found:
    """Returns what is found anew in the records of a run, whose pages are written again.

    Args:
        directory: The run directory.
        publish: Writes the pages.
        otherwise: What to do where it is none.

    Raises:
        UserError: It is no run directory, has no such measurement, or cannot be written.
    """
    run = RunDirectory(directory)
    if not run.exists():
        raise UserError(f"{directory} is no run directory. {otherwise}")
    try:
        found = publish(run)
    except OSError as failure:
        raise UserError(f"cannot write into {run.root}: {failure}") from None
    Outlets.of().renew_site(directory)
    return found


def soak_exit_code(soak: Soak) -> int:
    """Returns the exit code: 3 LEAK, 4 INCONCLUSIVE, 0 PASS; 1 when a repeat failed without one."""
    if soak.word == "LEAK":
        return Exit.REGRESSION
    if any(series.failed for series in soak.series):
        return Exit.FAILED
    return Exit.OK if soak.word == "PASS" else Exit.INCONCLUSIVE


def recovery_exit_code(recovery: Recovery, *, allow_inconclusive: bool) -> int:
    """Returns the exit code: with arms 3 REGRESSION, 4 INCONCLUSIVE; 1 for a drill not back."""
    from orbax_bench_core.analysis.recovery import lacking

    words = {pair.word for pair in recovery.verdicts}
    if "REGRESSION" in words:
        return Exit.REGRESSION
    if lacking(recovery):
        return Exit.FAILED
    inconclusive = "INCONCLUSIVE" in words and not allow_inconclusive
    return Exit.INCONCLUSIVE if inconclusive else Exit.OK
