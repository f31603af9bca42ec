"""Commands that study one thing: `async-study`, `calibrate`, `recovery` and `soak`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from orbax_bench_core.cli.arguments import MeasureFlags, output_option, takes_flags
from orbax_bench_core.cli.hosts import measure_by, measure_suite
from orbax_bench_core.cli.terminal import print_plain, results_console, show
from orbax_bench_core.exit_codes import exit_code

if TYPE_CHECKING:
    from orbax_bench_core.cli.measurement import Measuring
    from orbax_bench_core.config import LoadedSuite


@takes_flags(without=("local_directory", "notify", "junit", "verbose", "log_format"))
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
        output_option(
            "Where a suite is measured; on several hosts all of them must reach it.", "DIR"
        ),
    ] = None,
    *,
    flags: MeasureFlags,
) -> None:
    """Show what saving in the background saves, by model size.

    It pairs the points of a run that differ only in `async_enabled`, and shows for each size how
    long training is blocked, how long the whole save takes, and the share of the blocked time that
    is saved, next to the Orbax documentation's figures for 300M, 8B and 340B parameters. It writes
    async_study.html, async_study.md and async_study.json into the run directory.

    A suite for it sweeps `async_enabled: [false, true]` over checkpoints of several sizes;
    examples/async_study.yaml is one. It is measured as by `orbax-bench run`, on all hosts if a
    launcher starts this on several, and its checkpoints are deleted:

    orbax-bench async-study examples/async_study.yaml -o /tmp/async

    orbax-bench async-study /tmp/async
    """
    from orbax_bench_core.errors import command
    from orbax_bench_core.experiments import Study, study

    if output_directory is None:
        from orbax_bench_core.cli.measurement import conclude_again

        example = command("async-study", place, "-o", "DIR")
        otherwise = f"To measure a suite, say where: `{example}`"
        conclude_again(study, place, flags, otherwise=otherwise)
    measure_suite(place, output_directory, flags, Study(), tells=False)


@takes_flags(without=("junit", "log_format"))
def recovery(
    place: Annotated[
        str,
        typer.Argument(
            metavar="SUITE|DIR",
            help="A suite to drill or, without --output-directory, the run directory of drills to "
            "show again.",
        ),
    ],
    output_directory: Annotated[
        str | None,
        output_option("The run directory; the same command continues its run.", "DIR"),
    ] = None,
    add_notice: Annotated[
        float,
        typer.Option(
            metavar="S",
            min=0.0,
            help="Seconds until your platform notices a failure, beyond what is measured here.",
        ),
    ] = 0.0,
    add_start: Annotated[
        float,
        typer.Option(
            metavar="S",
            min=0.0,
            help="Seconds to replace a node, to wait for a scheduler and to start accelerators.",
        ),
    ] = 0.0,
    allow_inconclusive: Annotated[
        bool,
        typer.Option("--allow-inconclusive", help="With arms: exit with 0 for INCONCLUSIVE too."),
    ] = False,
    *,
    flags: MeasureFlags,
) -> None:
    """Kill a training job repeatedly, and show how fast it is back.

    Every repeat trains in fresh processes and saves at an interval, is killed with SIGKILL at a
    random step, and continues in new processes from the last committed save. It shows the time to
    notice, to start, to restore and to the first step, the steps lost, the saves left uncommitted,
    and how many drills came back with the state of a job that was never killed. A suite with arms
    ends in a verdict on the whole recovery. It writes recovery.html, recovery.md and recovery.json
    into the run directory, next to the report of the run.

    The suite has the benchmark training_job. Give what one machine cannot show, in seconds:

    orbax-bench recovery examples/recovery.yaml -o /tmp/recovery

    orbax-bench recovery /tmp/recovery --add-notice 30 --add-start 180

    Exit codes: 0 every drill came back, 1 some did not, 2 the suite is invalid, 130 interrupted;
    with arms 0 PASS, 3 REGRESSION, 4 INCONCLUSIVE.
    """
    from orbax_bench_core.errors import check_amounts, command
    from orbax_bench_core.experiments import Drills

    check_amounts(**{"--add-notice": add_notice, "--add-start": add_start})
    drills = Drills(added={"notice": add_notice, "start": add_start})
    if output_directory is None:
        from orbax_bench_core.cli.measurement import conclude_again

        conclude_again(
            drills.conclude,
            place,
            flags,
            otherwise=f"To drill a suite, say where: `{command('recovery', place, '-o', 'DIR')}`",
            allow_inconclusive=allow_inconclusive,
        )
    measure_suite(place, output_directory, flags, drills, allow_inconclusive=allow_inconclusive)


@takes_flags(without=("junit", "log_format"))
def soak(
    place: Annotated[
        str,
        typer.Argument(
            metavar="SUITE|DIR",
            help="A suite to soak or, without --saves and --hours, the run directory of a soak to "
            "judge again.",
        ),
    ],
    saves: Annotated[
        int | None, typer.Option(metavar="N", help="End after so many saves of one process.")
    ] = None,
    hours: Annotated[
        float | None, typer.Option(metavar="T", help="End after so many hours of one process.")
    ] = None,
    limit: Annotated[
        float,
        typer.Option(
            metavar="MIB", min=0.0, help="Memory that a process may keep of each save, in MiB."
        ),
    ] = 0.1,
    output_directory: Annotated[
        str | None,
        output_option(
            "The run directory, local or gs://; the same command continues its run.", "DIR"
        ),
    ] = None,
    *,
    flags: MeasureFlags,
) -> None:
    """Save hundreds of times in a process, and show what it keeps.

    It repeats a suite until one process has made N saves, or has measured for T hours, and reads
    the memory of the process, of its device and of its control group, its file descriptors and its
    threads after each. The growth per save comes with its 95 % interval: LEAK if it is above
    --limit, PASS if it is below, for all saves and for the second half of them alone; INCONCLUSIVE
    otherwise, with the number of saves that would decide. It writes soak.html, soak.md and
    soak.json into the run directory, next to the report of the run.

    A stopped soak loses no finished repeat, but its process is gone: the same command continues
    with a new one, and judges the longest.

    orbax-bench soak examples/soak.yaml --saves 200 -o /tmp/soak

    orbax-bench soak /tmp/soak --limit 0.01

    Exit codes: 0 PASS, 3 LEAK, 4 INCONCLUSIVE, 1 a repeat failed, 2 the suite is invalid, 130
    interrupted.
    """
    from orbax_bench_core.errors import UserError, check_amounts, command
    from orbax_bench_core.experiments import SoakGoal, Soaking, answered

    check_amounts(**{"--limit": limit})
    if saves is None and hours is None and output_directory is None:
        from orbax_bench_core.answers import SOAK
        from orbax_bench_core.cli.measurement import conclude_again

        example = command("soak", place, "--saves", 200, "-o", "DIR")
        otherwise = f"To soak a suite, say for how long and where: `{example}`"
        again = partial(answered, answer=SOAK, limit_mib=limit)
        conclude_again(again, place, flags, otherwise=otherwise)
    goal = SoakGoal(saves=saves, hours=hours)
    if output_directory is None:
        raise UserError("a soak is measured in a run directory: give --output-directory DIR")
    soaking = Soaking(goal=goal, limit_mib=limit)
    measure_suite(place, output_directory, flags, soaking, give_up=False)


@takes_flags(without=("local_directory", "override", "notify", "junit", "verbose", "log_format"))
def calibrate(
    places: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DIR...",
            help="Run directories, directories that hold some, or patterns such as 'aa/*'; local "
            "or gs://.",
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            metavar="SUITE",
            help="Measure this suite against itself first, into --output-directory.",
        ),
    ] = None,
    output_directory: Annotated[str | None, output_option("Where --suite measures.", "DIR")] = None,
    minutes: Annotated[
        float, typer.Option(min=0.0, help="Approximate time that --suite may take.")
    ] = 10.0,
    save: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write the noise passport. `ab` takes it by --passport, or finds it at "
            "~/.cache/orbax-bench/passport.json.",
        ),
    ] = None,
    *,
    flags: MeasureFlags,
) -> None:
    """Measure this machine's noise and its false-alarm rate.

    It counts how often the gate said REGRESSION of runs with equal arms (`orbax-bench ab --aa`),
    which is allowed in 2.5 % of them. From all runs it makes the noise passport, with 95 %
    intervals: how much operations of one kind of storage and size vary, which predicts how long a
    comparison will take; how much worker processes differ; and how much the ratio of two options
    varies between workers. A table of power shows how likely each verdict is at this noise, by the
    true slow-down, under the rules of these runs. With a suite it measures first, with a tolerance
    of zero, and says which bounds that gave.

    orbax-bench calibrate --suite suite.yaml -o aa --minutes 10

    orbax-bench ab suite.yaml --output-directory aa/monday --aa

    orbax-bench calibrate aa --save ~/.cache/orbax-bench/passport.json

    Exit codes: 0; 1 files were left out, because their content does not match their path.
    """
    from orbax_bench_core.errors import UserError

    given = list(places or ())
    if (suite is None) != (output_directory is None):
        raise UserError("--suite and --output-directory go together: what to measure, and where to")
    if suite is None or output_directory is None:
        if not given:
            raise UserError("nothing to read: give run directories, or measure some with --suite")
        raise typer.Exit(_read(given, save, flags))

    def measure(loaded: LoadedSuite, directory: str, how: Measuring) -> int:
        from orbax_bench_core.cli.series import make_runs

        again = ["calibrate", *given, "--suite", suite, "--minutes", f"{minutes:g}"]
        again += [] if save is None else ["--save", save]
        stopped = make_runs(loaded, directory, minutes, how, again)
        return stopped or _read([*given, directory], save, flags)

    measure_by(measure, suite, output_directory, flags, tells=False, stderr=True)


def _read(places: Sequence[str], save: str | None, flags: MeasureFlags) -> int:
    """Shows what runs say of the gate and of the noise, and returns the exit code."""
    from orbax_bench_core.analysis import noise as passports
    from orbax_bench_core.analysis.noise import calibration_document, calibration_of

    found = calibration_of(places)
    code = exit_code(incomplete=bool(found.left_out))
    if save is not None:
        passports.save(found.passport, save)
    if flags.as_json:
        plain = {
            "tests": [test.model_dump(mode="json") for test in found.tests],
            "passport": found.passport.model_dump(mode="json"),
            "power": found.power,
            "left_out": found.left_out,
        }
        print(json.dumps(plain, indent=2))
        return code
    console = results_console()
    document = calibration_document(found, places, saved=save is not None)
    show(document, console, details=flags.details)
    if save is not None:
        print_plain(console, f"Passport: {save}")
    return code
