"""`orbax-bench night`: one night of a suite for cron and CI, which always says how it ended."""

from __future__ import annotations

import contextlib
import datetime
import enum
import os
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from orbax_bench_core.cli.arguments import Notify, SuiteFile
from orbax_bench_core.cli.watch import parse_time
from orbax_bench_core.exit_codes import MEANINGS, RETRIED, Exit

if TYPE_CHECKING:
    from orbax_bench_core.steps import Notifiers

_SELF: Final = (sys.executable, "-m", "orbax_bench_core.cli")
_GRACE_S: Final = 60.0
"""Seconds in which a command that is told to end keeps what it has measured."""
_CUT: Final = "an earlier attempt was interrupted"
_OVER: Final = -signal.SIGALRM
"""Code of a command that took longer than it may."""


class Measured(enum.StrEnum):
    """Command that measures a night."""

    AB = "ab"
    RUN = "run"


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
    command: Annotated[Measured, typer.Option(help="What measures.")] = Measured.AB,
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
    from orbax_bench_core.steps import Notifiers

    notifiers = Notifiers.of(notify)
    waited, most = parse_time(wait, "--wait"), parse_time(limit, "--limit")
    if folder is not None and not re.fullmatch(r"\w[\w.-]*", folder):
        raise UserError(f"--folder takes a name of letters, digits and -_., got {folder!r}")
    began = datetime.datetime.now(datetime.UTC)
    name = folder or f"{began:%Y-%m-%dT%H%M%S}Z-{os.getpid()}"
    directory = f"{below.rstrip('/')}/{name}"
    words = [command.value, suite, "-o", directory, *(flags or ())]
    end = time.monotonic() + most.total_seconds()
    reasons = [_CUT] if folder is not None and _is_left(directory) else []
    code = int(Exit.INTERRUPTED)
    try:
        for left in range(tries - 1, -1, -1):
            code = _run(words, end - time.monotonic(), notifiers)
            if code not in RETRIED and (code >= 0 or code == _OVER):
                break
            if not left:
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
            _tell(notifiers, suite, directory, words[0], code, reasons)
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
    from orbax_bench_core.cli.hosts import name_in
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.files import read_at_most
    from orbax_bench_core.steps import pipeline

    good = code in (Exit.OK, Exit.REGRESSION, Exit.INCONCLUSIVE)
    again = f" (try {len(reasons) + 1})" if reasons else ""
    status = "SUCCEEDED" if good else f"{command} {_said(code)}{again}"
    try:
        if reasons:
            pipeline.note_retried(command, directory, reasons, succeeded=good)
        try:
            text = read_at_most(suite).decode()
        except (OSError, ImportError, ValueError, UserError) as unreadable:
            notifiers.failed(None, directory, f"{suite}: {unreadable}")
            return
        pipeline.finish(directory, suite=text, status=status, notifiers=notifiers)
    except Exception as failure:  # noqa: BLE001 - a night says how it ended whatever happens
        notifiers.failed(name_in(suite), directory, f"{status}; {failure}")
        print(f"warning: the report cannot be written: {failure}", file=sys.stderr)
