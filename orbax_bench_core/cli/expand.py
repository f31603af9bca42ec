"""`orbax-bench expand`: what a suite sweeps over."""

from __future__ import annotations

from typing import Annotated

import typer

from orbax_bench_core.cli.arguments import SuiteFile


def expand(
    suite: SuiteFile,
    json_lines: Annotated[
        bool, typer.Option("--json", help="Print each point in full, as one line of JSON.")
    ] = False,
) -> None:
    """List the sweep points of a suite without running anything."""
    from orbax_bench_core.config.load import load_suite
    from orbax_bench_core.sweep.isolate import expand as expand_suite

    expansion = expand_suite(load_suite(suite))
    if json_lines:
        for point in expansion.points:
            print(f'{{"id":"{point.id}",{point.to_json()[1:]}')
        return
    for point in expansion.points:
        print(f"{point.id}  {point.name}")
    for skip in expansion.skipped:
        print(f"skipped: {skip.point.name}: {skip.reason}")
    for note in expansion.notes:
        print(f"note: {note}")
    print(f"{len(expansion.points)} points")
