"""`orbax-bench async-study`: blocked time saved by background saves, by the size of the model."""

from __future__ import annotations

from typing import Annotated

import typer

from orbax_bench_core.cli.arguments import results_console


def async_study(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="A run directory.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show what saving in the background saves, by the size of the model.

    It pairs the points of a run that differ only in `async_enabled`, and shows for each size how
    long training is blocked, how long the whole save takes, and the share of the blocked time that
    is saved, beside what the Orbax documentation says of 300M, 8B and 340B parameters. It writes
    async_study.html, async_study.md and async_study.json into the run directory.

    A suite for it sweeps `async_enabled: [false, true]` over checkpoints of several sizes;
    examples/async_study.yaml is one.

    orbax-bench run examples/async_study.yaml -o /tmp/async --remove-repeated-dir

    orbax-bench async-study /tmp/async
    """
    from orbax_bench_core.analysis.async_study import study_document
    from orbax_bench_core.config import UserError
    from orbax_bench_core.document import print_document
    from orbax_bench_core.records import RunDirectory
    from orbax_bench_core.steps import PAGE, publish_async_study

    run = RunDirectory(directory)
    try:
        study = publish_async_study(run)
    except OSError as failure:
        raise UserError(f"cannot write into {run.root}: {failure}") from None
    if as_json:
        print(study.model_dump_json(indent=2))
        return
    console = results_console()
    print_document(study_document(study), console)
    console.print(f"Page: {run.root / PAGE}", markup=False, highlight=False, soft_wrap=True)
