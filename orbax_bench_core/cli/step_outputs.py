"""Inputs and outputs of step commands: a suite's text in, JSON on the last line out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from orbax_bench_core.steps.pipeline import Outputs

RunDirectory = Annotated[
    str,
    typer.Option(
        "--output-directory",
        "--output_directory",
        "-o",
        help="The run directory, local or gs://, which all steps share.",
    ),
]
ResultFile = Annotated[
    str | None,
    typer.Option(
        "--result", metavar="FILE", help="Write what the step returns here as well, as JSON."
    ),
]
OutputsFile = Annotated[
    str | None,
    typer.Option(
        "--outputs",
        metavar="FILE",
        help="Write where each output lies, its digest and its inputs here, as JSON.",
    ),
]


def text_of(path: str) -> str:
    """Returns the text of a file.

    Raises:
        UserError: It cannot be read.
    """
    from orbax_bench_core.errors import Problem, UserError
    from orbax_bench_core.files import read_at_most

    try:
        return read_at_most(path).decode()
    except FileNotFoundError:
        raise UserError(Problem("there is no such file", file=path)) from None
    except (OSError, ImportError, ValueError) as error:
        raise UserError(Problem(f"cannot read it: {error}", file=path)) from None


def give(found: Outputs[Any], result: str | None, outputs: str | None) -> None:
    """Writes and prints what a step returns; JSON on one line, which engines read."""
    from etils import epath

    if outputs is not None:
        listed = {
            name: {"place": output.place, "metadata": dict(output.metadata)}
            for name, output in found.named.items()
        }
        epath.Path(outputs).write_text(_json(listed))
    if result is not None:
        epath.Path(result).write_text(_json(found.value))
    print(_json(found.value), flush=True)


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True)
