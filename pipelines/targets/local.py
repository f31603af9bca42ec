"""Local target: a pipeline on this machine, each step a process of the current environment."""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import re
import shlex
import signal
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import psutil

from orbax_bench_core.execute import refuse_several_hosts
from orbax_bench_core.files import scratch_folder
from orbax_bench_core.provenance import IMAGE
from orbax_bench_core.steps import ENDED, SAID
from orbax_bench_pipelines.targets.kill_with_parent import leashed

_REVISION = "ORBAX_BENCH_REVISION"
"""Set in every image of ours, and nowhere else."""
_OWN_ERROR = re.compile(r"\s*orbax_bench_\w+(\.\w+)+: (?P<message>.+)")
"""The last line of a traceback that ends with an exception of ours."""


_GRACE_S = 5.0
"""Seconds that a step has to end when it was told to."""
_LOOK_S = 0.1
_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_COLOURS = re.compile(r"\x1b\[\d+m")


class PipelineFailed(Exception):
    """A step of a pipeline failed."""


def run_locally(
    pipeline: Callable[..., Any],
    arguments: dict[str, Any],
    *,
    log: IO[str],
    say: Callable[[str], None],
    at_a_time: int | None = None,
) -> Any:
    """Runs a pipeline in processes of the current environment.

    Args:
        pipeline: A `@dsl.pipeline` function over lightweight components.
        arguments: Its parameters.
        log: Where everything goes that kfp and the steps print.
        say: Called with each line that a step has for people.
        at_a_time: How many steps of a loop may run at once; None leaves that to kfp.

    Returns:
        What kfp makes of the pipeline, with its outputs.

    Raises:
        PipelineFailed: A step failed; the log says why.
    """
    from kfp import local

    with (
        steps_at_a_time(at_a_time),
        scratch_folder("orbax-bench-pipeline") as root,
        _quick_steps(),
        _steps_on_leash(),
        without_image(),
        shell_safe_python(root),
        _temporary_in(root / "tmp"),
    ):
        runner = local.SubprocessRunner(use_venv=False)
        with _steps_ended():
            return run_with(runner, str(root), pipeline, arguments, log, say)


def run_with(
    runner: Any,
    pipeline_root: str,
    pipeline: Callable[..., Any],
    arguments: dict[str, Any],
    log: IO[str],
    say: Callable[[str], None],
) -> Any:
    """Runs a pipeline through one of kfp's local runners.

    Args:
        runner: A `kfp.local` runner.
        pipeline_root: Folder for what the steps hand to each other.
        pipeline: A `@dsl.pipeline` function over lightweight components.
        arguments: Its parameters.
        log: Where everything goes that kfp and the steps print.
        say: Called with each line that a step has for people.

    Returns:
        What kfp makes of the pipeline, with its outputs.

    Raises:
        PipelineFailed: A step failed; the log says why.
        UserError: A launcher has started this on several hosts.
    """
    from kfp import local

    refuse_several_hosts("a pipeline on this machine")
    printed = _Tee(log, say)
    # By default it makes one among the temporary files, which stays when this process is killed.
    workspace = Path(pipeline_root, "workspace")
    workspace.mkdir(exist_ok=True)
    local.init(runner=runner, pipeline_root=pipeline_root, workspace_root=str(workspace))
    with (
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        _print_restored(),
    ):
        try:
            return pipeline(**arguments)
        except RuntimeError as error:
            reason = f": {printed.error}" if printed.error else ""
            raise PipelineFailed(f"{_COLOURS.sub('', str(error))}{reason}") from None


@contextlib.contextmanager
def _steps_ended() -> Iterator[None]:
    """Ends the steps that run when this process is told to end: by SIGINT, SIGTERM or SIGHUP.

    kfp waits for them, and for those of a loop that have not begun, before it lets an interrupt
    through.
    """
    ours, over = set(psutil.Process().children(recursive=True)), threading.Event()

    def end(number: int, frame: types.FrameType | None) -> None:
        threading.Thread(target=_end_steps, args=(ours, over), daemon=True).start()
        if callable(usual := before[signal.Signals(number)]):
            usual(number, frame)  # which keeps in mind that it was told
        raise KeyboardInterrupt

    heard = [told for told in _ENDS if signal.getsignal(told) is not signal.SIG_IGN]
    before = {told: signal.signal(told, end) for told in heard}
    try:
        yield
    finally:
        over.set()
        for told, handler in before.items():
            signal.signal(told, handler)


def _end_steps(others: set[psutil.Process], over: threading.Event) -> None:
    """Ends what this process has started, and what is started meanwhile, until nothing is left."""
    told: dict[psutil.Process, float] = {}
    while not over.wait(_LOOK_S):
        for step in set(psutil.Process().children(recursive=True)) - others:
            late = time.monotonic() - told.setdefault(step, time.monotonic()) > _GRACE_S
            with contextlib.suppress(psutil.NoSuchProcess):
                (step.kill if late else step.terminate)()


@contextlib.contextmanager
def shell_safe_python(folder: Path) -> Iterator[None]:
    """Gives the interpreter a path that kfp can paste into a shell command.

    kfp puts `sys.executable` unquoted into `sh -c`, which fails in a folder with a space in its
    name. A link would not do: an interpreter finds its environment by the path it was started by.
    A script in `folder` stands for it meanwhile.
    """
    real = sys.executable
    if shlex.quote(real) == real:
        yield
        return
    stand_in = folder / "python"
    stand_in.write_text(f'#!/bin/sh\nexec {shlex.quote(real)} "$@"\n')
    stand_in.chmod(0o755)
    sys.executable = str(stand_in)
    try:
        yield
    finally:
        sys.executable = real


@contextlib.contextmanager
def steps_at_a_time(count: int | None) -> Iterator[None]:
    """Lets so many steps of a loop run at once: kfp's local runners stop at two, whatever is asked.

    Args:
        count: How many; None or 0 leaves it to kfp.
    """
    from kfp.local.orchestrator import enhanced_dag_orchestrator

    executor = enhanced_dag_orchestrator.ParallelExecutor
    real = executor.__init__

    def begin(self: Any, max_workers: int | None = None) -> None:
        real(self, max_workers)
        self.conservative_max = self.max_workers = count

    if count:
        executor.__init__ = begin
    try:
        yield
    finally:
        executor.__init__ = real


@contextlib.contextmanager
def without_image() -> Iterator[None]:
    """Keeps from steps the image that components are to name elsewhere, which is not what runs.

    In an image of ours the variable is what the container was told of itself, and stays.
    """
    told = None if _REVISION in os.environ else os.environ.pop(IMAGE, None)
    try:
        yield
    finally:
        if told is not None:
            os.environ[IMAGE] = told


@contextlib.contextmanager
def _quick_steps() -> Iterator[None]:
    """Has steps import only the part of kfp that runs them: 0.06 s rather than 1.5 s."""
    os.environ["_KFP_RUNTIME"] = "true"
    try:
        yield
    finally:
        del os.environ["_KFP_RUNTIME"]


@contextlib.contextmanager
def _temporary_in(folder: Path) -> Iterator[None]:
    """Has kfp and the steps put there what is temporary, of which kfp does not delete all."""
    folder.mkdir()
    here, told = tempfile.tempdir, os.environ.get("TMPDIR")
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = here
        if told is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = told


@contextlib.contextmanager
def _steps_on_leash() -> Iterator[None]:
    """Has steps end with this process, also when that is killed and can tell them nothing."""
    from kfp.local import subprocess_task_handler

    real = subprocess_task_handler.run_local_subprocess

    def run(full_command: list[str], **given: Any) -> int:
        return int(real(leashed(full_command), **given))

    subprocess_task_handler.run_local_subprocess = run
    try:
        yield
    finally:
        subprocess_task_handler.run_local_subprocess = real


@contextlib.contextmanager
def _print_restored() -> Iterator[None]:
    """Puts `print` back: kfp replaces it in several threads at once, and may leave a stand-in."""
    real = builtins.print
    try:
        yield
    finally:
        builtins.print = real


class _Tee(io.TextIOBase):
    """Writes everything to a log, and hands on the lines that are meant for people.

    Attributes:
        error: The messages of exceptions of ours that steps ended with; empty for none.
    """

    def __init__(self, log: IO[str], say: Callable[[str], None]) -> None:
        super().__init__()
        self.error = ""
        self._log = log
        self._say = say
        self._partial = ""

    def write(self, text: str) -> int:
        self._log.write(text)
        *lines, self._partial = (self._partial + text).split("\n")
        for line in lines:
            _, mark, said = line.partition(SAID)
            raised = _OWN_ERROR.match(line)
            if raised or ENDED in line:
                # What a later step lacks follows from what went wrong before.
                message = raised["message"] if raised else line.partition(ENDED)[2]
                self.error = "; ".join(filter(None, [self.error, message]))
            elif mark:
                self._say(said)
        return len(text)
