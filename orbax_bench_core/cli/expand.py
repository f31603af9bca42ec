"""`orbax-bench expand`: what a suite sweeps over."""

from __future__ import annotations

from typing import Annotated

import typer

from orbax_bench_core.cli.arguments import Override, SuiteFile


def expand(
    suite: SuiteFile,
    override: Override = None,
    json_lines: Annotated[
        bool, typer.Option("--json", help="Print each point in full, as one line of JSON.")
    ] = False,
) -> None:
    """List the sweep points of a suite without running anything."""
    from orbax_bench_core.config.load import load_suite
    from orbax_bench_core.sweep.isolate import expand as expand_suite

    loaded = load_suite(suite, override or ())
    expansion = expand_suite(loaded)
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
    arms = loaded.suite.arms
    if arms is not None:
        print(f"baseline: {arms.baseline}")
        print(f"candidate: {arms.candidate}")
    print(f"{len(expansion.points)} points{'' if arms is None else ', each in both arms'}")
