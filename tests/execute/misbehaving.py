"""A benchmark that does on request what benchmarks do by accident."""

import dataclasses
import os
import signal
import time

import jax
from jax.experimental import multihost_utils

from orbax_bench_core import authoring
from orbax_bench_core.measure import Metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class MisbehavingOptions(authoring.BenchmarkOptions):
    act: str | list[str] = "behave"
    only_once: bool = False
    on_host: int | None = None


@authoring.benchmark_options(MisbehavingOptions)
class Misbehaving(authoring.BenchmarksGenerator):
    def test_fn(self, context):
        metrics = Metrics()
        metrics.notes["process"] = [str(os.getpid())]
        if context.options.act == "need":
            raise authoring.UnmetNeed("this needs a machine of another kind")
        if context.options.act == "claim":
            context.trace_path("before")
            with metrics.measure("before"):
                pass
        with metrics.measure("before"):
            time.sleep(0.01)
        self._await_all(context)
        options = context.options
        # The point's folder outlives a repeat, which lets a mishap happen once.
        mark = context.path.parent / "happened"
        here = options.on_host is None or options.on_host == jax.process_index()
        happened = options.only_once and mark.exists()
        if context.repeat_index is not None and here and not happened:
            mark.write_text("")
            with metrics.measure("mishap"):
                self._act(options.act, context)
        if jax.process_count() > 1:
            with metrics.measure("together"):
                multihost_utils.sync_global_devices("together")
        return None if options.act == "return_none" else authoring.TestResult(metrics=metrics)

    def _await_all(self, context):
        """Goes on once every host has measured something, without a collective of JAX."""
        folder = context.path / "measured"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(jax.process_index())).write_text("")
        deadline = time.monotonic() + 60
        while len(list(folder.iterdir())) < jax.process_count():
            assert time.monotonic() < deadline, "a host never came"
            time.sleep(0.01)

    def _act(self, act, context):
        if act == "raise":
            raise ValueError("raised on purpose")
        if act == "need_late":
            raise authoring.UnmetNeed("this needed something after all")
        if act == "exit":
            raise SystemExit(7)
        if act == "fill":
            assert b"x" * 2**31
        if act == "generator_exit":
            raise GeneratorExit
        if act == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if act == "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        if act == "freeze":
            os.kill(os.getpid(), signal.SIGSTOP)
        if act == "hang":
            time.sleep(600)
        if act == "corrupt":
            context.verify(jax.tree.map(lambda leaf: leaf + 1, context.pytree))
        if act == "delete":
            context.pytree["w"].delete()
