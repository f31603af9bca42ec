"""Another try of a step of a pipeline, after trouble that passes by itself."""

import errno
import functools
import inspect
import os
import time
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from orbax_bench_core.engine.point import SAID
from orbax_bench_core.errors import may_pass, presentable
from orbax_bench_core.execute import detect_cluster
from orbax_bench_core.experiments import NoRoom
from orbax_bench_core.publishing import Notifiers, note_retried

Given = ParamSpec("Given")
Returned = TypeVar("Returned")

WAITS_S: Final = (10.0, 30.0, 90.0)
"""Seconds until each further try. Clients of Cloud Storage have tried each request for as long."""

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
"""Of a store that others fill and empty too."""


def tried_again(step: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Lets a step be tried again after passing trouble, never after a mistake or a finding.

    That is a store that is not well or full, a name that does not resolve, and want of memory. The
    same step goes on from what is recorded, and the run directory keeps what was tried again, for
    the report. Where it runs on several hosts, all of them start again, which their launcher sees
    to.
    """
    parameters = inspect.signature(step)

    @functools.wraps(step)
    def until_well(*args: Given.args, **given: Given.kwargs) -> Returned:
        reasons: list[str] = []
        succeeded = False
        try:
            with Notifiers.once():
                for wait_s in (*WAITS_S, None):
                    try:
                        found = step(*args, **given)
                    except Exception as error:
                        if reasons and isinstance(error, NoRoom):
                            error.passing = True  # there was room when the step began
                        why = _passing(error)
                        if not why or wait_s is None or detect_cluster(os.environ) is not None:
                            raise
                        reasons.append(presentable(str(error)))
                        said = f"{reasons[-1]}: {why}; the step is tried again in {wait_s:g} s"
                    else:
                        succeeded = True
                        return found
                    print(f"{SAID}{said}", flush=True)
                    time.sleep(wait_s)
            raise AssertionError("the last try returns or raises")
        finally:
            place = parameters.bind_partial(*args, **given).arguments.get("output_directory")
            if reasons and place:
                name = step.__name__.replace("_", "-")
                note_retried(name, str(place), reasons, succeeded=succeeded)

    return until_well


def _passing(error: BaseException) -> str:
    """Returns why the same may go well in a while; empty for what would fail again."""
    if may_pass(error):
        return "the store may be well again"
    if isinstance(error, NoRoom) and error.passing:
        return "there may be room again"
    beneath: BaseException | None = error
    while beneath is not None:
        if isinstance(beneath, MemoryError):
            return "there may be memory again"
        if isinstance(beneath, OSError) and beneath.errno in _FULL:
            return "there may be room again"
        beneath = beneath.__cause__ or beneath.__context__
    return ""
