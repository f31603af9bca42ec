"""Starts a program so that what it saves is recorded: same process, exit code and signals."""

import argparse
import os
import re
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


class CannotLaunch(Exception):
    """A program cannot be started, or not so that it is recorded; the message says why."""


def launch(directory: str, command: Sequence[str], openmetrics: str | None = None) -> NoReturn:
    """Replaces this process by a program.

    Raises:
        CannotLaunch: It cannot be started, or is a Python that would record nothing, or there is
            a file where the recording would go.
    """
    if os.path.isfile(directory):
        raise CannotLaunch(f"{directory!r} is a file: give a directory for the recording")
    if option := _isolating(command):
        raise CannotLaunch(
            f"{command[0]!r} with {option} reads no variable of the environment, so that nothing "
            "would be recorded: leave -I and -E out, or call orbax_bench_core.record in the program"
        )
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(  # noqa: S606 - the job takes the place of this process
            command[0], list(command), environment(directory, openmetrics, os.environ)
        )
    except OSError as error:
        raise CannotLaunch(
            f"{command[0]!r} cannot be started: {error.strerror}; give the command as a shell "
            "takes it, such as python train.py"
        ) from None


def _isolating(command: Sequence[str]) -> str:
    """Returns the option with which a Python reads no environment; empty without one."""
    if not os.path.basename(command[0]).startswith("python"):
        return ""
    words = iter(command[1:])
    for word in words:
        # Letters up to one that takes an argument, which is the rest of the word or the next one.
        letters = re.match(r"-([^-cmWX]*)([cmWX]?)(.*)", word)
        if letters is None or word == "-":
            break
        if {"E", "I"} & set(letters[1]):
            return word
        if letters[2] in ("c", "m"):
            break
        if letters[2] and not letters[3]:
            next(words, None)
    return ""


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
    except CannotLaunch as error:
        parser.error(str(error))
