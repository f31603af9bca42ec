"""`orbax-bench async-study`: blocked time saved by background saves, by the size of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orbax_bench_core.cli.arguments import Devices, NoLock, Override, Quiet, refuse_override
from orbax_bench_core.cli.hosts import (
    ClusterFlags,
    HostWait,
    NoCluster,
    PortRangeOption,
    measure_suite,
)

if TYPE_CHECKING:
    from orbax_bench_core.cli.output import Output
    from orbax_bench_core.config import LoadedSuite
    from orbax_bench_core.execute import RunSettings


def async_study(
    place: Annotated[
        str,
        typer.Argument(
            metavar="DIR|SUITE",
            help="A run directory or, with --output-directory, a suite to measure first.",
        ),
    ],
    output_directory: Annotated[
        str | None,
        typer.Option(
            "--output-directory",
            "--output_directory",
            "-o",
            metavar="DIR",
            help="Where a suite is measured; on several hosts all of them must reach it.",
        ),
    ] = None,
    override: Override = None,
    devices: Devices = None,
    no_lock: NoLock = False,
    no_cluster: NoCluster = False,
    host_wait: HostWait = 120,
    port_range: PortRangeOption = None,
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show what saving in the background saves, by the size of the model.

    It pairs the points of a run that differ only in `async_enabled`, and shows for each size how
    long training is blocked, how long the whole save takes, and the share of the blocked time that
    is saved, beside what the Orbax documentation says of 300M, 8B and 340B parameters. It writes
    async_study.html, async_study.md and async_study.json into the run directory.

    A suite for it sweeps `async_enabled: [false, true]` over checkpoints of several sizes;
    examples/async_study.yaml is one. It is measured as `orbax-bench run` does, on all hosts where a
    launcher starts this on several, and its checkpoints are deleted:

    orbax-bench async-study examples/async_study.yaml -o /tmp/async

    orbax-bench async-study /tmp/async
    """
    from orbax_bench_core.execute import RunSettings

    if output_directory is None:
        refuse_override(override)
        _study(place, as_json=as_json)
        return
    directory = output_directory

    def measure(loaded: LoadedSuite, settings: RunSettings) -> int:
        from orbax_bench_core.cli.output import Output

        output = Output.beside(as_json=as_json, quiet=quiet)
        code = _measure(loaded, directory, settings, lock=not no_lock, output=output)
        if code == 0:
            _study(directory, as_json=as_json)
        return code

    measure_suite(
        place,
        override or (),
        directory,
        flags=ClusterFlags(no_cluster=no_cluster, host_wait=host_wait, port_range=port_range),
        settings=RunSettings(remove_repeated_dir=True, devices=devices, give_up=True),
        measure=measure,
    )


def _measure(
    loaded: LoadedSuite, directory: str, settings: RunSettings, *, lock: bool, output: Output
) -> int:
    """Measures a suite that makes a study, and returns the exit code of the run."""
    from orbax_bench_core.analysis.async_study import check_points
    from orbax_bench_core.cli.sweep_run import Baselines, SweepRun, without_arms
    from orbax_bench_core.sweep import expand

    check_points(expand(without_arms(loaded)).plain, loaded)
    measurement = SweepRun(loaded, directory, settings=settings, output=output, lock=lock)
    return measurement.run(limits=False, baselines=Baselines())


def _study(directory: str, *, as_json: bool) -> None:
    """Studies a run, writes the pages, and shows what they say."""
    from orbax_bench_core.analysis.async_study import study_document
    from orbax_bench_core.cli.results import show_answer
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.records import RunDirectory
    from orbax_bench_core.steps import publish, publish_async_study

    run = RunDirectory(directory)
    try:
        study = publish_async_study(run)
        publish(run)  # the report links to the study
    except OSError as failure:
        raise UserError(f"cannot write into {run.root}: {failure}") from None
    show_answer(study, study_document(study), f"{run.root}/async_study.html", as_json=as_json)
