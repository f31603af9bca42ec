"""Body of a Kubeflow component: a step whose mistakes and findings end the container."""

import inspect
import os
import types
from collections.abc import Mapping
from typing import Any, Final

from orbax_bench_core.engine.judging import NotPassed
from orbax_bench_core.engine.point import ENDED, PointFailed
from orbax_bench_core.errors import UserError, presentable, refusal_of
from orbax_bench_core.execute import CannotRecord, HostsMissing
from orbax_bench_core.exit_codes import Exit
from orbax_bench_core.files import clear_own
from orbax_bench_core.interrupts import Terminated, interrupted_when_told
from orbax_bench_core.owners import closed_to_others

_IN_CONTAINER: Final = "_KFP_RUNTIME"
"""Set by Kubeflow Pipelines for the process that calls a component, on every engine."""
FAILURES: Final = (PointFailed, CannotRecord, HostsMissing)
"""What fails a step, and is no mistake of what was given."""


class ErrorsAsMessages:
    """Context of the body of a component, which ends with a message rather than a traceback.

    In a container mistakes of the user, and findings of the step, are printed, and the process
    ends with the exit code that the command `orbax-bench step` has. Whoever calls the body in
    another process gets the exception, a `UserError` for what the system refuses.

    A step that is told to end, as one is whose machine is taken away, ends in an orderly way: its
    workers first, and none of its temporary files stays.
    """

    def __init__(self) -> None:
        self._interrupts = interrupted_when_told(clear_own)
        self._modes = closed_to_others()

    def __enter__(self) -> None:
        """Has SIGTERM and SIGHUP interrupt the body, whose files others cannot write."""
        self._modes.__enter__()
        self._interrupts.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> None:
        self._modes.__exit__(None, None, None)
        try:
            self._interrupts.__exit__(kind, error, traceback)
        except Terminated as told:
            if _IN_CONTAINER not in os.environ:
                raise
            error = told
        if error is None:
            return
        refused = refusal_of(error)
        if _IN_CONTAINER not in os.environ:
            if refused is not None and refused.error is not error:
                raise refused.error from error
            return
        if refused is not None:
            _end(refused.error, Exit.FAILED if refused.passing else Exit.INVALID)
        if isinstance(error, Terminated):
            _end(UserError(f"told to end by {error}; what is done is kept"), Exit.INTERRUPTED)
        if isinstance(error, NotPassed):
            _end(error, error.code)
        if isinstance(error, FAILURES):
            _end(error, Exit.FAILED)


def _end(error: Exception, code: int) -> None:
    for line in error.said if isinstance(error, UserError) else [presentable(str(error))]:
        print(f"{ENDED}{line}", flush=True)
    raise SystemExit(int(code)) from None


def as_component(name: str, given: Mapping[str, Any], **more: Any) -> Any:
    """Runs a step as the body of its component, and returns what the component returns.

    Args:
        name: The step.
        given: The inputs of the component and its artifacts, by name: the step takes those that it
            has a parameter for, of an artifact its path.
        **more: What the step takes in place of these.
    """
    from orbax_bench_core import engine

    with ErrorsAsMessages():
        step = getattr(engine, name)
        known = inspect.signature(step).parameters
        taken = {key: getattr(each, "path", each) for key, each in given.items() if key in known}
        return step(**{**taken, **more}).into(**given)
