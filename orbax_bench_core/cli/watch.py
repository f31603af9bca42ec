"""Commands for many nights: `night` measures one, `watch` misses some, `prune` removes old ones."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from orbax_bench_core.cli.arguments import FoldersOfRuns, Notify, SuiteFile
from orbax_bench_core.cli.terminal import show
from orbax_bench_core.exit_codes import MEANINGS, RETRIED, Exit, exit_code
from orbax_bench_core.python_command import python_command

if TYPE_CHECKING:
    from orbax_bench_core.publishing import Notifiers

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_LONGEST: Final = datetime.timedelta(days=36_525)


def watch(
    places: FoldersOfRuns,
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
    """Say which suites have not reported in time.

    A lost machine, a scheduler that starts nothing and a run that hangs send no message. Run this
    by cron on another machine that can read the folder:

    0 9 * * *  ORBAX_BENCH_NOTIFY=$(cat ~/.webhook) orbax-bench watch gs://bucket/nightly

    The webhook is told once when a suite goes silent, and again by its next run that passes.

    Exit codes: 0 every suite has reported or is being measured; 1 one has not, or something could
    not be read; 2 the input is wrong.
    """
    from orbax_bench_core.exports.watch import Limits
    from orbax_bench_core.exports.watch import watch as look
    from orbax_bench_core.publishing import Notifiers

    limits = Limits(
        within=parse_time(within, "--within"),
        own=dict(_own(each, within) for each in suite or ()),
        stalled=parse_time(stalled, "--stalled"),
        forget=parse_time(forget, "--forget"),
    )
    notifiers = Notifiers.of(notify)
    found = look(places, limits, datetime.datetime.now(datetime.UTC))
    for each in found.suites:
        show(f"{'ok' if each.well else 'NOT OK'}  {each.suite}: {each.said}")
        if not each.well:
            directory = each.directory or f"{places[0].rstrip('/')}/none"
            notifiers.failed(each.suite, directory, each.said, renews=False)
    if not found.suites and not found.unread:
        show(f"NOT OK  no run of any suite below {', '.join(places)}")
    if found.forgotten:
        show(f"no longer expected: {', '.join(found.forgotten)}")
    for line in found.unread:
        show(f"cannot be read: {line}")
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


def prune(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR...",
            help="Folders of run directories, up to two levels deep, folders of "
            "ORBAX_BENCH_NOTIFY_STATE, and registries of baselines; local or gs://.",
        ),
    ],
    keep: Annotated[
        str, typer.Option(metavar="AGE", help="Keep all that is younger: 90d, 12w or 36h.")
    ] = "90d",
    keep_last: Annotated[
        int, typer.Option(min=1, help="Keep this many of the newest of each suite, however old.")
    ] = 30,
    spared: Annotated[
        list[str] | None,
        typer.Option(
            "--except",
            metavar="DIR",
            help="Keep this run directory or capture, or all below this folder; repeatable.",
        ),
    ] = None,
    delete: Annotated[
        bool, typer.Option("--delete", help="Remove what is listed; without it nothing is removed.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Remove old runs and captures, or list what would be removed.

    A run, or a capture of a registry, is removed if it is older than --keep and not among the
    newest --keep-last of its suite. With a suite's last run go its last notified state and what was
    accepted of it. Never removed are runs that a process is measuring, runs that hold another run,
    a lease or a capture, captures that are the baseline of a point or were before the last
    promotion, and whatever a remaining run was compared with: name the registry and the folders of
    the runs that use it in one call. If a file that would say so cannot be read, what it may
    protect stays.

    Of a run directory only files that orbax-bench writes are removed, by name. Any other file or
    link in it stays with its folder, and is listed. Nothing is removed through a link.

    orbax-bench prune nightly baselines

    orbax-bench prune nightly baselines --keep 52w --keep-last 60 --delete

    Exit codes: 0; 1 something could not be read or removed, which is named and stays; 2 a DIR has
    no runs or captures.
    """
    from orbax_bench_core.errors import one_line
    from orbax_bench_core.pages import num_bytes
    from orbax_bench_core.pruning import Pruning

    found = Pruning.of(
        places, keep=parse_time(keep, "--keep"), keep_last=keep_last, spared=spared or ()
    )
    outcomes = list(found.remove()) if delete else [(each, "") for each in found.old]
    gone = [each for each, why in outcomes if not why]
    failed = [(each, why) for each, why in outcomes if why]
    if as_json:
        said = {
            "deleted": delete,
            "old": [each.fields for each in gone],
            "failed": [{**each.fields, "why": why} for each, why in failed],
            "in_use": [each.fields for each in found.in_use],
            "recent": found.recent,
            "unread": list(found.unread),
        }
        print(json.dumps(said, indent=2))
    else:
        size = num_bytes(sum(each.size or 0 for each in gone))
        more = "" if delete or not gone else "; nothing is removed without --delete"
        lines = [f"{'removed' if delete else 'old'} {each}" for each in gone]
        for line in (*lines, *(f"in use {each}: {each.why}" for each in found.in_use)):
            show(line)
        done = f"{len(gone)} {'' if delete else 'would be '}removed, {size}"
        show(f"{done}; {found.recent} recent{more}")
    lines = [f"{each.place} stays: {why}" for each, why in failed]
    for line in (*lines, *(f"{line}; it stays" for line in found.unread)):
        print(f"error: {one_line(line)}", file=sys.stderr)
    raise typer.Exit(exit_code(incomplete=bool(failed or found.unread)))


_SELF: Final = tuple(python_command("-m", "orbax_bench_core.cli"))
_GRACE_S: Final = 60.0
"""Seconds in which a command that is told to end keeps what it has measured."""
_CUT: Final = "an earlier attempt was interrupted"
_OVER: Final = -signal.SIGALRM
"""Code of a command that took longer than it may."""


def night(
    suite: SuiteFile,
    below: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            help="Folder of the nights, local or gs://; each gets a folder in it.",
        ),
    ],
    folder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name of the folder of this night, such as that of the job which starts it: an "
            "existing one is continued. By default it is the time.",
        ),
    ] = None,
    command: Annotated[Literal["ab", "run"], typer.Option(help="What measures.")] = "ab",
    flags: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- FLAG...]", help="Flags of that command."),
    ] = None,
    tries: Annotated[int, typer.Option(min=1, help="How often it is tried in total.")] = 3,
    wait: Annotated[
        str, typer.Option(metavar="TIME", help="Time until the next try; twice as long each time.")
    ] = "1m",
    limit: Annotated[
        str, typer.Option(metavar="TIME", help="A night that takes longer hangs, and is killed.")
    ] = "8h",
    notify: Notify = None,
) -> None:
    """Measure a suite for one night, and always say how it ended.

    The command runs in its own process. If it fails, runs out of memory or is killed, it is retried
    and continues where it stopped; after a mistake (2), a REGRESSION (3) and INCONCLUSIVE (4) it is
    not. At the end the report is written from the finished repeats, and the webhook is told once,
    also if the suite cannot be read, or the command does not start or hangs. A night with --folder
    that is interrupted tells nothing: the next attempt does, and `watch` if there is none.

    0 3 * * *  ORBAX_BENCH_NOTIFY=$(cat ~/.webhook) orbax-bench night suite.yaml --below ~/nightly

    Exit codes: those of the command; 1 if it was killed or hung.
    """
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.execute import refuse_several_hosts
    from orbax_bench_core.publishing import Notifiers
    from orbax_bench_core.records import RunDirectory

    refuse_several_hosts("`orbax-bench night`")
    notifiers = Notifiers.of(notify)
    waited, most = parse_time(wait, "--wait"), parse_time(limit, "--limit")
    if folder is not None and not re.fullmatch(r"\w[\w.-]*", folder):
        raise UserError(f"--folder takes a name of letters, digits and -_., got {folder!r}")
    name = folder or f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H%M%S}Z-{os.getpid()}"
    directory = f"{below.rstrip('/')}/{name}"
    RunDirectory(below)  # refuses what is no place
    words = [command, suite, "-o", directory, *(flags or ())]
    end = time.monotonic() + most.total_seconds()
    reasons = [_CUT] if folder is not None and _is_left(directory) else []
    code = int(Exit.INTERRUPTED)
    try:
        for left in range(tries - 1, -1, -1):
            code = _run(words, end - time.monotonic(), notifiers)
            if not left or (code not in RETRIED and (code >= 0 or code == _OVER)):
                break
            reasons.append(_said(code))
            pause = min(waited.total_seconds(), max(0.0, end - time.monotonic()))
            print(f"{command} {reasons[-1]}; it is tried again in {pause:g} s", file=sys.stderr)
            time.sleep(pause)
            waited *= 2
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED  # also between two tries
        raise
    finally:
        if folder is not None and code == Exit.INTERRUPTED:
            _leave(directory)
        else:
            _tell(notifiers, suite, directory, command, code, reasons)
    killed = code < 0
    raise typer.Exit(Exit.FAILED if killed else code)


def _run(words: list[str], most_s: float, notifiers: Notifiers) -> int:
    """Returns how a command ended; it tells nobody by itself."""
    variables = dict(os.environ)
    notifiers.hidden(variables)
    with subprocess.Popen([*_SELF, *words], env=variables, start_new_session=True) as process:
        try:
            return process.wait(max(1.0, most_s))
        except subprocess.TimeoutExpired:
            _end(process)
            return _OVER
        except BaseException:
            _end(process)
            raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a command and all that it has started: kindly, and after a while not."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _is_left(directory: str) -> bool:
    """Returns whether an attempt at a night ended before it could say how."""
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.records import RunDirectory

    with contextlib.suppress(OSError, ImportError, UserError):
        return RunDirectory(directory).read_info().status == "running"
    return False


def _leave(directory: str) -> None:
    """Leaves a night to its next attempt, which tells how it ended; without one, `watch` tells."""
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.records import RunDirectory

    said = "the same --folder goes on; until then the webhook is not told"
    print(f"interrupted: {said}", file=sys.stderr)
    with contextlib.suppress(OSError, ImportError, UserError):
        RunDirectory(directory).set_status("running")  # what was interrupted has noted its end


def _said(code: int) -> str:
    if code == _OVER:
        return "took longer than --limit and was ended: it hung"
    if code == -signal.SIGKILL:
        return "was killed, often because memory ran out"
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    known = code in set(Exit)
    return f"ended with {code}: {MEANINGS[Exit(code)][0]}" if known else f"ended with {code}"


def _tell(
    notifiers: Notifiers,
    suite: str,
    directory: str,
    command: str,
    code: int,
    reasons: list[str],
) -> None:
    """Writes what the run lacks of its report, and tells its state, also of nothing."""
    from orbax_bench_core import engine
    from orbax_bench_core.cli.hosts import name_in
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.files import read_at_most
    from orbax_bench_core.publishing import note_retried

    good = code in (Exit.OK, Exit.REGRESSION, Exit.INCONCLUSIVE)
    again = f" (try {len(reasons) + 1})" if reasons else ""
    status = "SUCCEEDED" if good else f"{command} {_said(code)}{again}"
    with notifiers.once():
        try:
            if reasons:
                note_retried(command, directory, reasons, succeeded=good)
            try:
                text = read_at_most(suite).decode()
            except (OSError, ImportError, ValueError, UserError) as unreadable:
                notifiers.failed(None, directory, f"{suite}: {unreadable}")
                return
            engine.finish(directory, suite=text, status=status, notifiers=notifiers, in_log=False)
        except Exception as failure:  # noqa: BLE001 - a night says how it ended whatever happens
            notifiers.failed(name_in(suite), directory, f"{status}; {failure}")
            print(f"warning: the report cannot be written: {failure}", file=sys.stderr)
