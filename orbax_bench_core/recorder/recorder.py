"""The recorder of a process: hooks that only append, and a thread that writes."""

import atexit
import collections
import contextlib
import dataclasses
import importlib
import os
import statistics
import sys
import threading
import time
from typing import Any, Final, Self

from orbax_bench_core.recorder import processes
from orbax_bench_core.recorder.guard import Guard, log
from orbax_bench_core.recorder.hooks import SAID, Hooks, hooks_of_a_job
from orbax_bench_core.recorder.launcher import DIRECTORY, OPENMETRICS
from orbax_bench_core.recorder.lines import FORMAT, LinesFile
from orbax_bench_core.recorder.operations import Frame, Operation, Tracker, rss
from orbax_bench_core.recorder.stalls import FEWEST, stall_limit
from orbax_bench_core.recorder.summary import Summary

_MOST_STEPS: Final = 200_000
_KEPT: Final = 100
"""Operations that tell what is usual."""
_FLUSH_S: Final = 2.0
_SAMPLE_S: Final = 0.05
_IDLE_S: Final = 0.5
_ALIVE_S: Final = 10.0
"""Seconds between two lines of a process in which nothing happens."""
_REMOTE: Final = 6.0
"""How many times that it takes where each write replaces a whole part."""
_AGAIN_S: Final = 60.0
"""Seconds after a write that failed until the next one."""
_PAUSE_S: Final = 600.0
"""Least seconds between two warnings of stalls."""
_CLOSE_S: Final = 5.0
_STALLS: Final = (
    "orbax-bench: %s has taken %.3g s so far, usually it takes %.3g s (%d more like it since the "
    "last line). Recording: %s"
)
_FAILED: Final = (
    "orbax-bench: the save of step %s failed in the background (%s: %s); Orbax raises it in the "
    "next save or wait. Recording: %s"
)


class Recorder:
    """Records the saves, loads and steps of this process. Made by `record`."""

    def __init__(
        self, directory: str | os.PathLike[str], *, openmetrics: str | None = None
    ) -> None:
        """Sets the hooks.

        Args:
            directory: Where the recording goes, local or `gs://`; the same for all hosts.
            openmetrics: A directory of a node exporter's textfile collector; each host keeps
                `orbax_<host>.prom` there up to date.
        """
        text = os.fspath(directory)
        self.directory = text if "://" in text else os.path.abspath(text)
        self._openmetrics = openmetrics
        self._guard, self._tracker, self._totals = Guard(), Tracker(), Summary()
        self._hooks = Hooks(
            hooks_of_a_job(self._tracker, self._tick), self._guard, self._tracker.event
        )
        self._users, self._pid = 1, os.getpid()
        self._began, self._epoch = time.perf_counter(), time.time()
        self._rank, self._last = sys.maxsize, (0, 0.0)  # source of the steps, and the last one
        self._steps: collections.deque[tuple[int, float, float]] = collections.deque(
            maxlen=_MOST_STEPS
        )
        # Seconds of the last operations, by kind and part.
        self._usual: collections.defaultdict[tuple[str, str], collections.deque[float]] = (
            collections.defaultdict(lambda: collections.deque(maxlen=_KEPT))
        )
        self._silent_until, self._withheld = 0.0, 0  # of warnings of stalls
        self._file: LinesFile | None = None
        self._host = 0
        self._rarely = _REMOTE if "://" in self.directory else 1.0
        self._write_at = self._alive_at = 0.0
        self._failing = False  # whether the last write did not succeed
        self._has_metrics = True  # whether the last figures were written
        self._wake, self._closing = threading.Event(), threading.Event()
        self._tracker.wake = self._wake.set
        self._thread = threading.Thread(target=self._run, name="orbax-bench-recorder", daemon=True)
        self._guard.call("start", self._start)

    def _start(self) -> None:
        self._hooks.set()
        os.register_at_fork(after_in_child=self._switch_off)
        atexit.register(self._finish)
        register = getattr(threading, "_register_atexit", None)
        if "://" in self.directory and register is not None:
            # Clients of object stores need executors, which have ended when `atexit` comes; what
            # is registered after theirs is called before.
            importlib.import_module("concurrent.futures.thread")
            register(self._finish_with_saves)
        self._thread.start()

    def _switch_off(self) -> None:
        self._guard.off = True

    # What a job calls.

    def __enter__(self) -> Self:
        """Returns the recorder."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the recording."""
        self.close()

    def step(self, number: int | None = None) -> None:
        """Says that a step of training begins; without a number it is the next one."""
        self._guard.call("step", self._tick, number, SAID)

    def summary(self) -> Summary:
        """Returns the figures of this process so far."""
        seconds = time.perf_counter() - self._began
        return dataclasses.replace(self._totals, seconds=seconds, errors=self._guard.errors)

    def close(self) -> None:
        """Ends the recording, unless somebody else in this process still records."""
        self._users -= 1
        if self._users <= 0:
            self._finish()

    def shared(self) -> Self:
        """Returns this recorder to one more user, who closes it as well."""
        self._users += 1
        return self

    @property
    def is_closed(self) -> bool:
        """Whether nothing more is recorded."""
        return self._closing.is_set() or self._pid != os.getpid()

    def _finish_with_saves(self) -> None:
        """Ends the recording after the saves that go on, for which Python waits as well."""
        until = time.monotonic() + _CLOSE_S * self._rarely
        while time.monotonic() < until and not self.is_closed:
            if all(one.ended is not None for one in self._tracker.open):
                break
            time.sleep(_SAMPLE_S)
        self._finish()

    def _finish(self) -> None:
        if self.is_closed:
            return
        self._closing.set()
        self._wake.set()
        with contextlib.suppress(Exception):
            self._thread.join(_CLOSE_S * self._rarely)
            self._hooks.remove()
            atexit.unregister(self._finish)
        self._guard.off = True

    # Steps.

    def _tick(self, number: Any, rank: int) -> None:
        """Takes the begin of a step from the best source that the job has."""
        if rank > self._rank:
            return
        now = time.perf_counter()
        last, since = self._last
        number = last + 1 if number is None else int(number)
        if rank < self._rank:
            self._rank, since = rank, 0.0
        elif number == last and since:
            return
        self._last = (number, now)
        if since and number == last + 1:  # of several steps none is known
            self._steps.append((last, since, now - since))

    # The thread that writes.

    def _run(self) -> None:
        while not self._closing.is_set():
            self._wake.wait(_SAMPLE_S if self._tracker.open else _IDLE_S)
            self._wake.clear()
            if self._guard.off:
                if self._file is not None:
                    with contextlib.suppress(Exception):
                        self._file.write(self._guard.lines)  # why the recording ends
                return
            self._guard.call("writer", self._work, False)
        self._guard.call("writer", self._work, True)

    def _work(self, last: bool) -> None:
        now = time.perf_counter()
        going = [one for one in self._tracker.open if one.ended is None]
        if going:
            resident, device = rss(), None
            if self._file is not None:
                device = processes.device_bytes(sys.modules["jax"])
            for operation in going:
                _sample(operation.rss, resident)
                _sample(operation.device, device)
        for frame in list(self._tracker.frames):
            part = ("save", "background") if frame.what == "wait" else (frame.what, "call")
            self._warn(frame, now - frame.begun, part, f"a {frame.what}")
        for one in going:
            if one.blocked is not None:
                which = f"the background part of a {one.what}"
                self._warn(one, now - one.blocked, (one.what, "background"), which)
        for one in self._tracker.finished(now, last=last):
            if one.ended is not None:
                self._totals.add(one)
                call = one.call_s or 0.0
                self._usual[one.what, "call"].append(call)
                self._usual[one.what, "background"].append(max(0.0, one.ended - one.begun - call))
            self._tracker.lines.append(one.line())
        has_news = bool(self._tracker.lines) and self._rarely == 1 and not self._failing
        if last or has_news or now >= self._write_at:
            try:
                self._write(now, last)
                self._failing = False
            except Exception as error:  # noqa: BLE001 - clients of object stores have their own
                if not self._failing:
                    log.warning("orbax-bench cannot record to %s yet: %r", self.directory, error)
                    self._guard.note("write", error)
                self._failing, self._write_at = True, now + _AGAIN_S

    def _warn(
        self, of: Frame | Operation, seconds: float, part: tuple[str, str], which: str
    ) -> None:
        """Notes a call or a background part that takes far longer than usual, and says so."""
        others = self._usual[part]
        if of.warned or len(others) < FEWEST or seconds < stall_limit(others):
            return
        usual = statistics.median(others)
        of.warned = True
        which += "" if of.step is None else f" of step {of.step}"
        said = {"what": which, "step": of.step, "seconds": seconds, "usual_s": usual}
        self._tracker.lines.append({"line": "stall", "t": time.time(), **said})
        if time.monotonic() < self._silent_until:
            self._withheld += 1
            return
        self._silent_until = time.monotonic() + _PAUSE_S
        log.warning(_STALLS, which, seconds, usual, self._withheld, self.directory)
        self._withheld = 0

    def _write(self, now: float, last: bool) -> None:
        """Writes what there is; raises OSError."""
        self._write_at = now + _FLUSH_S * self._rarely
        if self._file is None and not self._open():
            return
        assert self._file is not None
        lines: list[dict[str, Any]] = []
        for queue in (self._guard.lines, self._tracker.lines):
            while queue:
                lines.append(queue.popleft())
        lines += self._step_lines()
        if now >= self._alive_at:
            lines.append({"line": "alive", "t": time.time(), "rss": rss()})
            self._alive_at = now + _ALIVE_S * self._rarely
        if last:
            lines.append({"line": "close", "t": time.time(), "errors": self._guard.errors})
        for line in lines:
            if line["line"] == "failed" and line["where"] == "background":
                log.warning(_FAILED, line["step"], line["error"], line["message"], self.directory)
        if lines:
            self._file.write(lines)
        if self._openmetrics is not None:
            file = os.path.join(self._openmetrics, f"orbax_{self._host}.prom")
            try:
                self.summary().write(file)
                self._has_metrics = True
            except OSError as error:
                if self._has_metrics:
                    log.warning("orbax-bench cannot write %s yet: %r", file, error)
                    self._guard.note("openmetrics", error)
                self._has_metrics = False

    def _open(self) -> bool:
        """Begins the file, once the job has done something that is recorded."""
        jax, has_saved = sys.modules.get("jax"), self._tracker.begun > 0
        has_begun = has_saved or bool(self._steps)
        if jax is None or not has_begun or not processes.may_ask_jax(has_saved):
            return False
        if processes.is_helper(self.directory):
            self._guard.off = True
            return False
        life = {"line": "life", "format": FORMAT, "t": self._epoch, **processes.described(jax)}
        self._host = life["host"]
        self._file = LinesFile(self.directory, self._host)
        self._file.write([life | {"lacking": sorted(set(self._hooks.lacking))}])
        return True

    def _step_lines(self) -> list[dict[str, Any]]:
        """Returns the steps so far, runs of consecutive ones in a line each."""
        found: list[dict[str, Any]] = []
        while self._steps:
            number, begun, seconds = self._steps.popleft()
            self._totals.steps += 1
            self._totals.step_s.append(seconds)
            run = found[-1] if found else None
            if run is None or run["n"] + len(run["s"]) != number:
                t = round(self._epoch + begun - self._began, 6)
                run = {"line": "steps", "n": number, "t": t, "s": []}
                found.append(run)
            run["s"].append(round(seconds, 6))
        return found


def _sample(levels: list[int], now: int | None) -> None:
    """Keeps the first, the highest and the last level."""
    if now is None:
        return
    if not levels:
        levels += [now, now, now]
    levels[1:] = [max(levels[1], now), now]


_active: Recorder | None = None


def record(directory: str | os.PathLike[str], *, openmetrics: str | None = None) -> Recorder:
    """Begins to record the saves, loads and steps of this process, until it is closed or ends.

    `with record(DIR): ...` ends with the block. Where this process is recorded already, or was
    started by `orbax-bench record`, that recording goes on, in its own place. It never raises, and
    never slows a job down by more than a millisecond a save.

    Args:
        directory: Where the recording goes, local or `gs://`; the same for all hosts of a job.
        openmetrics: A directory of a node exporter's textfile collector; each host keeps
            `orbax_<host>.prom` there up to date.
    """
    global _active  # noqa: PLW0603 - a process has one recorder
    if _active is None or _active.is_closed:
        # The launcher's begins with the import of Orbax, which may come later.
        _active = Recorder(
            os.environ.get(DIRECTORY) or directory,
            openmetrics=os.environ.get(OPENMETRICS) or openmetrics,
        )
        return _active
    return _active.shared()
