"""Another try of a step whose store was not well, for which no service starts a container again."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from orbax_bench_core.errors import may_pass, presentable
from orbax_bench_core.execute import detect_cluster
from orbax_bench_core.steps.point import SAID

Given = ParamSpec("Given")
Returned = TypeVar("Returned")

WAITS_S: Final = (10.0, 30.0, 90.0)
"""Seconds until each further try. Clients of Cloud Storage have tried each request for as long."""


def tried_again(step: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Has a step be tried again that a store has ended, and nothing that was given or found.

    The same step goes on from what is recorded. Where it runs on several hosts, all of them start
    again, which their launcher sees to.
    """

    @functools.wraps(step)
    def until_well(*args: Given.args, **given: Given.kwargs) -> Returned:
        for wait_s in WAITS_S:
            try:
                return step(*args, **given)
            except Exception as error:
                if not may_pass(error) or detect_cluster(os.environ) is not None:
                    raise
                said = f"{presentable(str(error))}: the store may be well again"
            print(f"{SAID}{said}; the step is tried again in {wait_s:g} s", flush=True)
            time.sleep(wait_s)
        return step(*args, **given)

    return until_well
