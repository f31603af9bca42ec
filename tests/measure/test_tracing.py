"""Profiler traces of blocks."""

import threading
from pathlib import Path

import jax
import pytest

from orbax_bench_core.measure import Metrics
from orbax_bench_core.measure.profiling import tracing


@pytest.fixture
def calls(monkeypatch):
    """What the profiler was asked to do, in order; it does it."""
    log = []
    start = jax.profiler.start_trace
    stop = jax.profiler.stop_trace

    def start_trace(path):
        start(path)
        log.append(f"start {Path(path).name}")

    def stop_trace():
        stop()
        log.append("stop")

    monkeypatch.setattr(jax.profiler, "start_trace", start_trace)
    monkeypatch.setattr(jax.profiler, "stop_trace", stop_trace)
    return log


@pytest.fixture
def under(tmp_path):
    """A directory per operation."""
    return lambda operation: str(tmp_path / operation)


def test_defect_27_the_trace_of_a_block_that_raises_is_written(tmp_path, under):
    with (
        pytest.raises(OSError, match="inside"),
        tracing(under),
        Metrics().measure("op", ["time"]),
    ):
        raise OSError("inside")

    assert list(tmp_path.glob("op/plugins/profile/*/*.xplane.pb"))


def test_inner_blocks_share_the_session_of_the_outermost(calls, under, tmp_path):
    metrics = Metrics()

    with tracing(under), metrics.measure("outer", ["time"]):
        for _ in range(2):
            with metrics.measure("inner", ["time"]), metrics.measure("innermost", ["time"]):
                pass

    assert calls == ["start outer", "stop"]
    outer, inner, innermost = (
        [path.read_bytes() for path in tmp_path.glob(f"{name}/plugins/profile/*/*.xplane.pb")]
        for name in ("outer", "inner", "innermost")
    )
    assert len(outer) == 1
    assert outer == inner == innermost
    assert all(name in outer[0] for name in (b"outer", b"inner", b"innermost"))


@pytest.mark.parametrize(("wanted", "traced"), [("outer", ["outer"]), ("inner", [])])
def test_of_nested_blocks_only_an_outermost_one_that_is_wanted_is_traced(
    under, tmp_path, wanted, traced
):
    metrics = Metrics()

    with (
        tracing(lambda name: under(name) if name == wanted else None),
        metrics.measure("outer", ["time"]),
        metrics.measure("inner", ["time"]),
    ):
        pass

    assert [path.name for path in tmp_path.iterdir()] == traced


def test_the_trace_surrounds_the_collectors(calls, under, add_scripted):
    add_scripted("noting", lambda: calls.append("collect"), lambda: calls.append("collected"))

    with tracing(under), Metrics().measure("op", ["noting"]):
        pass

    assert calls == ["start op", "collect", "collected", "stop"]


def test_one_trace_runs_at_a_time(calls, under):
    metrics = Metrics()

    def work():
        with metrics.measure("beside", ["time"]):
            pass

    with tracing(under), metrics.measure("first", ["time"]):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    assert calls == ["start first", "stop"]


def test_the_profiler_is_outside_the_clock(under, monkeypatch, pause):
    monkeypatch.setattr(jax.profiler, "start_trace", lambda _: pause())
    monkeypatch.setattr(jax.profiler, "stop_trace", pause)
    metrics = Metrics()

    with tracing(under), metrics.measure("op", ["time"]):
        pass

    assert metrics.results["op_0_basics/time_s"][0] == 0


def test_a_trace_that_somebody_else_started_is_left_alone(calls, under, tmp_path):
    jax.profiler.start_trace(str(tmp_path / "theirs"))

    with tracing(under), Metrics().measure("op", ["time"]):
        pass
    jax.profiler.stop_trace()

    assert calls == ["start theirs", "stop"]


def test_a_trace_that_cannot_be_written_does_not_prevent_the_next(tmp_path):
    (tmp_path / "first").write_text("not a directory")
    metrics = Metrics()

    with tracing(lambda name: str(tmp_path / name / "trace")):
        for name in ("first", "second"):
            with metrics.measure(name, ["time"]):
                pass

    assert list(tmp_path.glob("second/trace/plugins/profile/*/*.xplane.pb"))


def test_a_failing_choice_of_directory_leaves_the_block_untraced(calls):
    def fail(_):
        raise OSError("read-only")

    with tracing(fail), Metrics().measure("op", ["time"]):
        pass

    assert calls == []
