"""Local target: a pipeline on this machine, each step a process of the current environment."""

import builtins
import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

from orbax_bench_core.engine import ENDED, SAID
from orbax_bench_core.errors import redacted
from orbax_bench_core.execute import refuse_several_hosts
from orbax_bench_core.exit_codes import CODES
from orbax_bench_core.files import scratch_folder
from orbax_bench_core.provenance import IMAGE
from orbax_bench_core.python_command import python_command

_REVISION = "ORBAX_BENCH_REVISION"
"""Set in every image of ours, and nowhere else."""
_OWN_ERROR = re.compile(r"\s*orbax_bench_\w+(\.\w+)+: (?P<message>.+)")
"""The last line of a traceback that ends with an exception of ours."""
_GRACE_S = 5.0
"""Seconds that a step has to end when it was told to."""
_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_PROGRAM = "ephemeral_component.py"
"""What kfp's command of a step calls the file of its code, which is the word after that."""
_KILLED_WITH_OWNER = (
    "import ctypes, os, sys\n"
    "ctypes.CDLL(None).prctl(1, 9)\n"  # PR_SET_PDEATHSIG, SIGKILL
    "os.getppid() == int(sys.argv[1]) and os.execv(sys.argv[2], sys.argv[2:])\n"
)
"""Runs a command that the kernel kills with the process that started it; Linux alone can."""


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
        own_processes(root),
    ):
        runner = local.SubprocessRunner(use_venv=False)
        return run_with(runner, str(root), pipeline, arguments, log, say)


def run_with(
    runner: Any,
    pipeline_root: str,
    pipeline: Callable[..., Any],
    arguments: dict[str, Any],
    log: IO[str],
    say: Callable[[str], None],
) -> Any:
    """Runs a pipeline through one of kfp's local runners."""
    from kfp import local

    refuse_several_hosts("a pipeline on this machine")
    printed = _Tee(log, say)
    # By default it makes one among the temporary files, which stays when this process is killed.
    workspace = Path(pipeline_root, "workspace")
    workspace.mkdir(exist_ok=True)
    local.init(runner=runner, pipeline_root=pipeline_root, workspace_root=str(workspace))
    real = builtins.print
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            return pipeline(**arguments)
        except RuntimeError as error:
            said = (str(error).removesuffix("."), printed.error)
            raise PipelineFailed(_COLOURS.sub("", ": ".join(filter(None, said)))) from None
        finally:
            # kfp replaces it in several threads at once, and may leave a stand-in.
            builtins.print = real


@contextlib.contextmanager
def own_processes(folder: Path) -> Iterator[None]:
    """Has kfp start steps by `_Steps`, and ends them when this process is told to end.

    kfp waits for steps, and for those of a loop that have not begun, before it lets an interrupt
    through.
    """
    from kfp.local import subprocess_task_handler

    steps, real = _Steps(folder), subprocess_task_handler.run_local_subprocess

    def end(number: int, frame: types.FrameType | None) -> None:
        threading.Thread(target=steps.end, daemon=True).start()
        if callable(usual := before[signal.Signals(number)]):
            usual(number, frame)  # which keeps in mind that it was told
        raise KeyboardInterrupt

    heard = [told for told in _ENDS if signal.getsignal(told) is not signal.SIG_IGN]
    before = {told: signal.signal(told, end) for told in heard}
    subprocess_task_handler.run_local_subprocess = steps.run
    try:
        yield
    finally:
        subprocess_task_handler.run_local_subprocess = real
        for told, handler in before.items():
            signal.signal(told, handler)


class _Steps:
    """Steps of a pipeline as processes of this environment, none of which outlives this one.

    kfp pastes the path of the interpreter into a shell command, which fails in a folder with a
    space in its name, leaves the files of that shell, and ends nothing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: set[subprocess.Popen[str]] = set()
        self._over = False
        self._lock = threading.Lock()

    def run(self, full_command: list[str], env_vars: Mapping[str, str] | None = None) -> int:
        """Runs a step in place of kfp's `run_local_subprocess`, and returns its exit code."""
        at = next(index for index, word in enumerate(full_command) if _PROGRAM in word)
        code, *arguments = full_command[at + 1 :]
        program = Path(tempfile.mkdtemp(prefix="step-", dir=self._folder)) / _PROGRAM
        program.write_text(code)
        executor = ("-m", "kfp.dsl.executor_main", "--component_module_path", str(program))
        command = python_command(*executor, *arguments)
        if sys.platform == "linux":
            tied = (sys.executable, "-I", "-c", _KILLED_WITH_OWNER, str(os.getpid()))
            command = [*tied, *command]
        with self._lock:
            if self._over:
                return 1
            step = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=step_environment(os.environ, self._folder) | dict(env_vars or {}),
            )
            self._running.add(step)
        with step:
            assert step.stdout is not None
            for line in step.stdout:
                print(line, end="")
        self._running.discard(step)
        return step.returncode

    def end(self) -> None:
        """Ends the steps that run, and lets no other one begin."""
        with self._lock:
            self._over, running = True, [*self._running]
        for step in running:
            step.terminate()
        late = time.monotonic() + _GRACE_S
        for step in running:
            try:
                step.wait(max(0.0, late - time.monotonic()))
            except subprocess.TimeoutExpired:
                step.kill()


def step_environment(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Returns the variables of a step.

    The image that components are to name elsewhere is not what runs here; in an image of ours the
    variable is what the container was told of itself. A step imports only the part of kfp that runs
    it: 0.06 s rather than 1.5 s.
    """
    given = {**environment, "_KFP_RUNTIME": "true", "TMPDIR": str(folder)}
    if _REVISION not in environment:
        given.pop(IMAGE, None)
    return given


@contextlib.contextmanager
def steps_at_a_time(count: int | None) -> Iterator[None]:
    """Lets so many steps of a loop run at once; kfp's local runners stop at two."""
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


_TOLD_AT_THE_END: Final = frozenset(CODES) - {"FAILED"}
"""States with which the last step prints the answer, which the command shows after it as well."""


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
        self._log.write(redacted(text))
        *lines, self._partial = (self._partial + text).split("\n")
        for line in lines:
            _, mark, said = line.partition(SAID)
            raised = _OWN_ERROR.match(line)
            if raised or ENDED in line:
                # What a later step lacks follows from what went wrong before.
                message = raised["message"] if raised else line.partition(ENDED)[2]
                self.error = "; ".join(filter(None, [self.error, message]))
            elif mark and said.partition(":")[0] not in _TOLD_AT_THE_END:
                self._say(said)
        return len(text)
