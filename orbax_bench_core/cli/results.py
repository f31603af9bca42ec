"""Results of a run on a terminal: what is shown of them, and the exit codes that they give."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from orbax_bench_core.cli.arguments import results_console
from orbax_bench_core.errors import UserError
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.steps import Notifiers

if TYPE_CHECKING:
    from pydantic import BaseModel

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
    """Returns what is found again in the records of a run, whose pages are written again.

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
    Notifiers.of().renew_site(directory)
    return found
