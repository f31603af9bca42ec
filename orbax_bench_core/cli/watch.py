"""`orbax-bench watch`: which suites have not reported, for a machine that measures nothing."""

import datetime
import re
from typing import Annotated, Final

import typer

from orbax_bench_core.cli.arguments import Notify
from orbax_bench_core.cli.results import results_console
from orbax_bench_core.exit_codes import exit_code

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_LONGEST: Final = datetime.timedelta(days=36_525)


def watch(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR...", help="Folders of run directories, up to two levels deep; or gs://."
        ),
    ],
    within: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Time within which each suite has begun a run that reported: 26h for every "
            "night, 8d for every week.",
        ),
    ] = "26h",
    suite: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=TIME]",
            help="A suite that is expected, also before its first run, and its own time; "
            "repeatable.",
        ),
    ] = None,
    stalled: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="A run hangs if it gives no sign of life, or ends no repeat, for this long.",
        ),
    ] = "1h",
    forget: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="A suite without --suite is expected for this long after a run."
        ),
    ] = "30d",
    notify: Notify = None,
) -> None:
    """Say which suites have not reported in time, for whatever reason.

    A lost machine, a scheduler that starts nothing and a run that hangs send no message. Run this
    by cron on another machine that can read the folder:

    0 9 * * *  ORBAX_BENCH_NOTIFY=$(cat ~/.webhook) orbax-bench watch gs://bucket/nightly

    The webhook is told once when a suite goes silent, and again by its next run that passes.

    Exit codes: 0 every suite has reported or is being measured; 1 one has not, or something could
    not be read; 2 the input is wrong.
    """
    from orbax_bench_core.cli.terminal import print_plain
    from orbax_bench_core.exports.watch import Limits
    from orbax_bench_core.exports.watch import watch as look
    from orbax_bench_core.steps import Notifiers

    limits = Limits(
        within=parse_time(within, "--within"),
        own=dict(_own(each, within) for each in suite or ()),
        stalled=parse_time(stalled, "--stalled"),
        forget=parse_time(forget, "--forget"),
    )
    notifiers = Notifiers.of(notify)
    found = look(places, limits, datetime.datetime.now(datetime.UTC))
    console = results_console()
    for each in found.suites:
        print_plain(console, f"{'ok' if each.well else 'NOT OK'}  {each.suite}: {each.said}")
        if not each.well:
            directory = each.directory or f"{places[0].rstrip('/')}/none"
            notifiers.silent(each.suite, directory, each.said)
    if not found.suites and not found.unread:
        print_plain(console, f"NOT OK  no run of any suite below {', '.join(places)}")
    if found.forgotten:
        print_plain(console, f"no longer expected: {', '.join(found.forgotten)}")
    for line in found.unread:
        print_plain(console, f"cannot be read: {line}")
    well = bool(found.suites) and all(each.well for each in found.suites) and not found.unread
    raise typer.Exit(exit_code(incomplete=not well))


def _own(given: str, within: str) -> tuple[str, datetime.timedelta]:
    name, _, time = given.rpartition("=")
    if not name or not _is_time(time):
        name, time = given, within
    return name, parse_time(time, "--suite")


def _is_time(text: str) -> bool:
    return re.fullmatch(r"\d{1,6}[smhdw]", text) is not None


def parse_time(text: str, flag: str) -> datetime.timedelta:
    """Returns a time such as 90m, 26h, 8d or 12w."""
    from orbax_bench_core.errors import Problem, UserError, shown

    if _is_time(text):
        found = datetime.timedelta(**{_UNITS[text[-1]]: int(text[:-1])})
        if datetime.timedelta(0) < found <= _LONGEST:
            return found
    said = f"expected a time such as 90m, 26h, 8d or 12w, at most a century, got {shown(text)}"
    raise UserError(Problem(said, key=flag))
