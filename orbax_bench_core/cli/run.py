"""Commands that run a suite: `run` here or on the hosts of a cluster, `launch` starts these."""

import dataclasses
import itertools
import sys
from typing import Annotated, Final, Literal

import typer

from orbax_bench_core.cli import arguments
from orbax_bench_core.cli.hosts import measure_suite
from orbax_bench_core.exit_codes import Exit


@arguments.takes_flags(without=("keep_data", "junit", "as_json"))
def run(
    suite: arguments.SuiteFile,
    output_directory: arguments.OutputDirectory,
    enable_hlo_dump: Annotated[
        bool,
        arguments.both_spellings("--enable-hlo-dump", help="Write XLA HLO protos to hlo_dump/."),
    ] = False,
    keep_data: Annotated[
        bool,
        typer.Option(
            "--keep-data/--remove-repeated-dir",
            "--keep_data/--remove_repeated_dir",
            help=arguments.KEEP_DATA,
        ),
    ] = False,
    baseline_path: Annotated[
        str | None,
        arguments.both_spellings(
            "--baseline-path", help="Compare with this stored baseline or run directory."
        ),
    ] = None,
    baseline_capture_path: Annotated[
        str | None,
        arguments.both_spellings(
            "--baseline-capture-path", help="Store this run as a baseline here, one file per point."
        ),
    ] = None,
    metrics: arguments.Metrics = "changed",
    no_limits: Annotated[
        bool,
        typer.Option(
            "--no-limits",
            help="Do not measure the limits of this machine and storage; otherwise each "
            "operation is shown as a share of them.",
        ),
    ] = False,
    new_limits: Annotated[
        bool,
        typer.Option(
            "--new-limits",
            help="Measure the limits again, even if an earlier run's are kept and a short "
            "check agrees with them.",
        ),
    ] = False,
    *,
    flags: arguments.MeasureFlags,
) -> None:
    """Run a suite and show what it found.

    Killing it loses no finished repeat: the same command continues from there.

    On several hosts, start the same command on each with JAX_COORDINATOR_ADDRESS,
    JAX_NUM_PROCESSES and JAX_PROCESS_ID, or by a launcher that sets its own variables: process 0
    runs the suite on all of them.

    Exit codes: 0 every repeat passed, 1 some failed, 2 the suite is invalid, 130 interrupted.
    """
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.experiments import Sweep

    if no_limits and new_limits:
        raise UserError("--no-limits measures no limits and --new-limits does: give one of them")
    if metrics == "all":  # more than a screen, and asked for
        flags = dataclasses.replace(flags, details=True)
    measure_suite(
        suite,
        output_directory,
        flags,
        Sweep(
            limits=not no_limits,
            compare=baseline_path,
            capture=baseline_capture_path,
            metrics=metrics,
        ),
        keep_data=keep_data,
        hlo_dump=enable_hlo_dump,
        new_limits=new_limits,
    )


EXPERIMENTAL: Final = {
    "vertex": "Vertex AI custom job",
    "xpk": "XPK cluster",
    "tpu-vm": "TPU VM",
    "pathways": "Pathways cluster",
}
"""Places whose launchers were never run on a real one, and what that is."""


Measures = Literal["run", "ab", "async-study", "bisect", "calibrate", "recovery", "soak"]
"""Commands that measure on several hosts."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlaceFlags:
    """How many hosts a place starts, and in what."""

    hosts: Annotated[
        int | None, typer.Option(min=1, help="How many hosts; a TPU slice implies it.")
    ] = None
    tpu: Annotated[
        str | None,
        typer.Option(metavar="TYPE:TOPOLOGY", help="The TPU slice to run on, such as v5e:4x8."),
    ] = None
    slices: Annotated[int, typer.Option(min=1, help="How many such slices.")] = 1
    image: Annotated[
        str | None, typer.Option(help="Container image by digest, where hosts are containers.")
    ] = None


@arguments.takes_flags()
def launch(
    suite: arguments.SuiteFile,
    output_directory: Annotated[
        str,
        arguments.output_option(
            "The run directory, which every host must reach: gs:// or a shared folder."
        ),
    ],
    on: Annotated[
        str,
        typer.Option(
            metavar="PLACE",
            help="Where the hosts are: processes of this machine, ray, jobset, "
            f"{', '.join(EXPERIMENTAL)}. The last {len(EXPERIMENTAL)} are experimental: never run "
            "on a real one.",
        ),
    ],
    *,
    place: PlaceFlags,
    name: Annotated[
        str | None, typer.Option(help="Name of the job; by default that of the suite.")
    ] = None,
    command: Annotated[Measures, typer.Option(help="What every host runs.")] = "run",
    override: arguments.Override = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of the place, such as queue=tpus; repeatable. An unknown key gives "
            "a list of all keys.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print everything that would be done, and do nothing.")
    ] = False,
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- FLAGS]", help="Flags of the command, after two dashes."),
    ] = None,
) -> None:
    """Start a run on every host of a place, and follow it.

    A launcher only starts the same command N times; process 0 runs the suite on all hosts. The same
    line again continues a stopped run.

    Exit codes: those of the command, 2 if the place refuses the request, 130 interrupted.
    """
    from orbax_bench_core.cli.command_table import CommandTable
    from orbax_bench_core.config import load_suite
    from orbax_bench_core.launchers import make_launcher, named_processes, place_named, suite_name

    place_named(on)
    loaded = load_suite(suite, override or ())
    words = _words(command, suite, output_directory, override or [], more or [])
    launcher = make_launcher(
        on,
        settings or (),
        named_processes(loaded.suite),
        **dataclasses.asdict(place),
        name=suite_name(suite, output_directory) if name is None else name,
        command=words,
        output_directory=output_directory,
    )
    # Every host would refuse what its command does not take, minutes later.
    CommandTable()[command].make_context(f"orbax-bench {command}", list(words[2:]))
    if dry_run:
        print(launcher.shown())
        return
    try:
        sys.exit(launcher.start())
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)


def _words(
    command: Measures, suite: str, directory: str, override: list[str], more: list[str]
) -> tuple[str, ...]:
    """Returns the command that every host runs, in which no secret may stand."""
    from orbax_bench_core.errors import UserError

    given = [after for word, after in itertools.pairwise([*more, ""]) if word == "--notify"]
    given += [word.partition("=")[2] for word in more if word.startswith("--notify=")]
    if not all(address.startswith("@") for address in given):
        raise UserError(
            "--notify: its address is a secret, and the place shows and keeps the command of "
            "every host: set ORBAX_BENCH_NOTIFY where process 0 runs, or give --notify @FILE"
        )
    overrides = [word for each in override for word in ("--override", each)]
    named = ("--suite", suite) if command == "calibrate" else (suite,)
    return ("orbax-bench", command, *named, "-o", directory, *overrides, *more)
