"""Starts a program so that what it saves is recorded: same process, exit code and signals."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

DIRECTORY: Final = "ORBAX_BENCH_RECORD"
"""Variable of the environment with the directory of the recording."""
OPENMETRICS: Final = "ORBAX_BENCH_RECORD_OPENMETRICS"


def boot_path() -> str:
    """Returns the folder whose `sitecustomize` attaches the recorder, for `PYTHONPATH`."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "boot")


def environment(
    directory: str, openmetrics: str | None, before: Mapping[str, str]
) -> dict[str, str]:
    """Returns the environment of a program that is recorded.

    Args:
        directory: Folder of the recording, local or in a bucket.
        openmetrics: Folder for figures as OpenMetrics; None for none.
        before: The variables that the program would have.
    """
    place = directory if "://" in directory else os.path.abspath(directory)
    path = [boot_path(), *filter(None, [before.get("PYTHONPATH")])]
    given = {} if openmetrics is None else {OPENMETRICS: os.path.abspath(openmetrics)}
    return {**before, DIRECTORY: place, "PYTHONPATH": os.pathsep.join(path), **given}


def launch(directory: str, command: Sequence[str], openmetrics: str | None = None) -> NoReturn:
    """Replaces this process by a program.

    Raises:
        OSError: It cannot be started.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvpe(  # noqa: S606 - the job takes the place of this process
        command[0], list(command), environment(directory, openmetrics, os.environ)
    )


def run_launcher(arguments: Sequence[str]) -> None:
    """Reads the words after `orbax-bench record`, for where our other dependencies are missing."""
    parser = argparse.ArgumentParser(prog="orbax-bench record", allow_abbrev=False)
    parser.add_argument("-o", "--output-directory", metavar="DIR", required=True)
    parser.add_argument("--openmetrics", metavar="DIR")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    given = parser.parse_args(arguments)
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    if not command:
        parser.error("give the command that trains after --")
    try:
        launch(given.output_directory, command, given.openmetrics)
    except OSError as error:
        parser.error(f"{command[0]!r} cannot be started: {error.strerror}")
