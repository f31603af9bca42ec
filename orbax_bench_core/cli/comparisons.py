"""Commands that compare two sides or releases: `ab`, `bisect` and `upgrade`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orbax_bench_core.cli import arguments
from orbax_bench_core.cli.hosts import measure_by, measure_suite

if TYPE_CHECKING:
    from orbax_bench_core.cli.measurement import Measuring
    from orbax_bench_core.config import LoadedSuite


@arguments.takes_flags(without=("as_json",))
def ab(
    suite: arguments.SuiteFile,
    output_directory: arguments.OutputDirectory,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            "--baseline",
            "-b",
            metavar="KEY=VALUE",
            help="What is different in the baseline: an option of the benchmark, or "
            "environment=, generator=, processes=. For a suite without `arms`; repeatable.",
        ),
    ] = None,
    candidate: Annotated[
        list[str] | None,
        typer.Option(
            "--candidate",
            "-c",
            metavar="KEY=VALUE",
            help="What is different in the candidate, in the same way.",
        ),
    ] = None,
    same: Annotated[
        bool,
        typer.Option(
            "--aa",
            help="Compare the suite with itself, or arms of it that measure the same, in several "
            "worker processes per arm, which must not give REGRESSION: a check of the machine, and "
            "input for `orbax-bench calibrate`. Without it, arms that measure the same are "
            "refused, unless the suite says `arms: {}`.",
        ),
    ] = False,
    allow_inconclusive: arguments.AllowInconclusive = False,
    take_turns: Annotated[
        bool,
        typer.Option(
            "--take-turns",
            help="Run the workers of one arm at a time, to save memory. TPUs always do this.",
        ),
    ] = False,
    more: arguments.More = None,
    passport: arguments.PassportFile = None,
    *,
    flags: arguments.MeasureFlags,
) -> None:
    """Compare two arms of a suite and give a verdict.

    It is REGRESSION, PASS or INCONCLUSIVE.

    Both arms run here in small blocks of random order, so that a machine that drifts or stalls
    slows both. It tests the times after 10, 20, 40 and 60 operations per arm, and ends when the
    answer is clear; a PASS takes 40 if these take no more than `gate.limit_minutes`. Arms that
    cannot share a worker get a new one for each slot of a block, and the first test after 16
    operations. The arms come from the suite's `arms` block or from the command line:

    orbax-bench ab suite.yaml -o results --candidate use_ocdbt=false

    Exit codes: 0 PASS, 1 nothing could be compared, 2 the suite is invalid, 3 REGRESSION,
    4 INCONCLUSIVE, 130 interrupted. The same command finishes what was interrupted, and with --more
    it goes on where the verdict is INCONCLUSIVE.
    """
    from orbax_bench_core.analysis import noise as passports
    from orbax_bench_core.cli.arm_flags import FlaggedComparison

    known = passports.find(passport)
    measure_suite(
        suite,
        output_directory,
        flags,
        FlaggedComparison(
            arms=(baseline or [], candidate or []), same=same, passport=known, more=more
        ),
        allow_inconclusive=allow_inconclusive,
        take_turns=take_turns,
        process_noise=known and passports.processes_of(known),
    )


@arguments.takes_flags(
    without=("local_directory", "override", "notify", "junit", "verbose", "log_format", "as_json")
)
def bisect(
    suite: arguments.SuiteFile,
    output_directory: arguments.OutputDirectory,
    package: Annotated[
        str, typer.Option(metavar="NAME", help="The package whose releases are searched.")
    ],
    good: Annotated[str, typer.Option(metavar="VERSION", help="A release that is fast.")],
    bad: Annotated[str, typer.Option(metavar="VERSION", help="A later release that is slow.")],
    wheels: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Folder of wheels of the package that no index has, such as nightly builds; "
            "if both have a version, the wheel is taken.",
        ),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="REQUIREMENT",
            help="What else to install in every environment, such as jax==0.10.2; repeatable.",
        ),
    ] = None,
    only_wheels: Annotated[
        bool, typer.Option("--only-wheels", help="Search only the folder of wheels.")
    ] = False,
    passport: arguments.PassportFile = None,
    *,
    flags: arguments.MeasureFlags,
) -> None:
    """Find the release that made something slower.

    Each release is compared with the good one in blocks of random order, as `orbax-bench ab` does,
    in its own environment. The bad one comes first: if it has not regressed there is nothing to
    find. Then the search halves the range until two neighbours are left, which are compared with
    each other before one is named. If verdicts leave several releases open, the answer is a range.

    orbax-bench bisect suite.yaml -o out --package orbax-checkpoint --good 0.11.32 --bad 0.12.8

    If the suite has arms, both sides are its candidate: its options and benchmark, and the rest of
    its environment. bisect.html shows the ratio by release and every step.

    Exit codes: 3 a release or a range with a REGRESSION was found, 0 the ends do not differ, 4 no
    clear verdict on them, 1 they could not be measured, 2 the suite or a release is invalid. The
    same command continues where it was stopped.
    """
    from orbax_bench_core.analysis import noise as passports

    known = passports.find(passport)

    def measure(loaded: LoadedSuite, directory: str, how: Measuring) -> int:
        from orbax_bench_core.cli.series import BisectRun
        from orbax_bench_core.experiments.releases import find_releases, kept_requirements

        releases = find_releases(
            package,
            good,
            bad,
            wheels=None if wheels is None else Path(wheels),
            also=kept_requirements(loaded, package, also or ()),
            only_wheels=only_wheels,
        )
        again = ["bisect", suite, "--package", package, "--good", good, "--bad", bad]
        again += [] if wheels is None else ["--wheels", wheels]
        again += [word for each in also or () for word in ("--with", each)]
        again += ["--only-wheels"] if only_wheels else []
        return BisectRun(
            loaded, directory, package, releases, again=again, passport=known, how=how
        ).run()

    measure_by(measure, suite, output_directory, flags, tells=False)


@arguments.takes_flags(without=("local_directory", "as_json", "details"))
def upgrade(
    old: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="VERSION", help="The release in use; by default the installed one."
        ),
    ] = None,
    new: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="VERSION", help="The release to judge; by default the newest one."
        ),
    ] = None,
    output_directory: Annotated[
        str | None,
        arguments.output_option("The run directory; by default upgrade-FROM-TO in this folder."),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="What to measure; by default saves and loads of 12 MiB of arrays."
        ),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="REQUIREMENT",
            help="What else both environments have, such as jax==0.10.2; repeatable.",
        ),
    ] = None,
    allow_inconclusive: arguments.AllowInconclusive = False,
    more: arguments.More = None,
    passport: arguments.PassportFile = None,
    *,
    flags: arguments.MeasureFlags,
) -> None:
    """Give a verdict on a release of Orbax, against another one.

    Each release has its own environment, which uv makes once and which is kept. All other packages,
    JAX too, are as installed here. The releases are compared as `orbax-bench ab` compares arms:
    REGRESSION, PASS or INCONCLUSIVE. Before it begins it says how long that takes.

    orbax-bench upgrade --from 0.11.32 --to 0.12.8

    Exit codes: 0 PASS, 1 nothing could be compared, 2 there is no such release or the suite is
    invalid, 3 REGRESSION, 4 INCONCLUSIVE, 130 interrupted. The same command finishes what was
    interrupted, and with --more it goes on where the verdict is INCONCLUSIVE.
    """
    from orbax_bench_core.analysis import noise as passports
    from orbax_bench_core.experiments.releases import Upgrading
    from orbax_bench_core.suite_files import UPGRADE_SUITE

    known = passports.find(passport)
    measure_suite(
        suite or str(UPGRADE_SUITE),
        output_directory,
        flags,
        Upgrading(
            old=old, new=new, also=also or (), own=suite is not None, passport=known, more=more
        ),
        allow_inconclusive=allow_inconclusive,
        process_noise=known and passports.processes_of(known),
    )
