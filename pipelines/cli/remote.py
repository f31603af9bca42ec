"""What the commands share that talk to a service."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import typer

from orbax_bench_core.config import UserError
from orbax_bench_pipelines.target import Target


def require_service(target: Target) -> None:
    """Refuses a target that is no service.

    Args:
        target: What the command line was given.

    Raises:
        UserError: It runs on this machine.
    """
    if target not in (Target.KFP, Target.VERTEX):
        raise UserError(
            f"--target {target} runs on this machine and nothing is submitted; use `orbax-bench "
            "pipeline run`, or --target kfp or vertex"
        )


@contextlib.contextmanager
def refused_as_exit_code() -> Iterator[None]:
    """Shows a refusal as one line and ends with exit code 1."""
    from orbax_bench_pipelines.job import SubmissionFailed

    try:
        yield
    except SubmissionFailed as failure:
        print(f"error: {failure}", file=sys.stderr)
        raise typer.Exit(1) from None
