"""A benchmark with faults planted at fixed slots, so that the outcome of a comparison is known."""

import dataclasses
import os
import signal
import time
from typing import Literal

import jax
from jax.experimental import multihost_utils

from orbax_bench_core import authoring
from orbax_bench_core.measure import Metrics

Fault = Literal["", "hang", "fail", "stall", "missing", "offset", "freeze"]

PLANTED = (2, 5, 8)
"""Those of every ten first attempts that have the fault."""

SECONDS = 0.03


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlantedOptions(authoring.BenchmarkOptions):
    """The fault of one arm.

    Attributes:
        fault: A hang, failure or stall in 30 % of first attempts; `load` missing in one repeat; or
            an offset of 8 % that every other process has, and keeps. With `freeze`, host 1 of
            several stops in 30 % of first attempts, and the others wait for it.
    """

    fault: Fault = ""


@authoring.benchmark_options(PlantedOptions)
class Planted(authoring.BenchmarksGenerator):
    """Sleeps in `save` and in `load`."""

    def test_fn(self, context: authoring.TestContext) -> authoring.TestResult:
        fault, metrics = context.options.fault, Metrics()
        seconds = SECONDS
        if fault == "offset":
            seconds *= 1.08 if self._place(context, "processes", str(os.getpid())) % 2 else 1.0
        planted = False
        if fault == "freeze" and jax.process_index() != 1:
            fault = ""
        if fault and context.repeat_index is not None:
            known = (context.output_dir / "planted" / f"{fault}_{context.repeat_index}").exists()
            number = self._place(context, fault, str(context.repeat_index))
            planted = not known and number % 10 in PLANTED
        if planted and fault == "hang":
            time.sleep(600)
        if planted and fault == "fail":
            raise OSError("the storage is gone")
        if planted and fault == "freeze":
            os.kill(os.getpid(), signal.SIGSTOP)
        with metrics.measure("save", ["time"]):
            time.sleep(seconds * (4 if planted and fault == "stall" else 1))
        if not (planted and fault == "missing"):
            with metrics.measure("load", ["time"]):
                time.sleep(seconds)
        if jax.process_count() > 1:
            multihost_utils.sync_global_devices("both are done")
        return authoring.TestResult(metrics=metrics)

    def _place(self, context: authoring.TestContext, kind: str, name: str) -> int:
        """Returns how many others of a kind came before this one, which leaves its mark."""
        folder = context.output_dir / "planted"
        folder.mkdir(parents=True, exist_ok=True)
        mark = folder / f"{kind}_{name}"
        if not mark.exists():
            mark.write_text(str(len(list(folder.glob(f"{kind}_*")))))
        return int(mark.read_text())
