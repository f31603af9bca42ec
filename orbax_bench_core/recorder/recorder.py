"""The recorder of a process: hooks that only append, and a thread that writes."""

import atexit
import collections
import contextlib
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Self

from orbax_bench_core.recorder.hooks import SAID, Hooks
from orbax_bench_core.recorder.lines import FORMAT, LinesFile
from orbax_bench_core.recorder.operations import Frame, Operation, Tracker, rss
from orbax_bench_core.recorder.stalls import Band, Limiter
from orbax_bench_core.recorder.summary import Summary, Totals

_log: Final = logging.getLogger("orbax_bench.recorder")
_MOST_ERRORS: Final = 20
_MOST_STEPS: Final = 200_000
_FLUSH_S: Final = 2.0
_REMOTE_FLUSH_S: Final = 15.0
_SAMPLE_S: Final = 0.05
_IDLE_S: Final = 0.5
_ALIVE_S: Final = 10.0
"""Seconds between two lines of a process in which nothing happens; a minute where each is a write
of a whole part."""
_REMOTE_ALIVE_S: Final = 60.0
_AGAIN_S: Final = 60.0
"""Seconds after a write that failed until the next one."""
_CLOSE_S: Final = 5.0


class Guard:
    """Calls functions of the recorder so that no exception of theirs reaches the job."""

    def __init__(self) -> None:
        """Is on."""
        self.off = False
        self.errors = 0
        self.trouble: collections.deque[dict[str, Any]] = collections.deque(maxlen=_MOST_ERRORS)

    def call(self, where: str, function: Callable[..., Any], *args: Any) -> Any:
        """Returns a result, or None after an exception, or once there were too many of them."""
        if self.off:
            return None
        try:
            return function(*args)
        except Exception as error:  # noqa: BLE001 - the job is not to see any
            self.note(where, error)
            return None

    def note(self, where: str, error: Exception) -> None:
        """Counts an exception; after twenty the recorder switches itself off, and says so once."""
        self.errors += 1
        line = {"line": "trouble", "t": time.time(), "where": where, "error": repr(error)[:300]}
        self.trouble.append(line)
        if self.errors == _MOST_ERRORS:
            self.off = True
            _log.warning(
                "orbax-bench records this job no longer, after %d errors; the job goes on. The "
                "last one, in %s: %r",
                _MOST_ERRORS,
                where,
                error,
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
        self._guard = Guard()
        self._tracker = Tracker()
        self._hooks = Hooks(self._tracker, self._tick, self._guard)
        self._users = 1
        self._began, self._epoch = time.perf_counter(), time.time()
        self._rank, self._last = sys.maxsize, (0, 0.0)
        self._steps: collections.deque[tuple[int, float, float]] = collections.deque(
            maxlen=_MOST_STEPS
        )
        self._totals = Totals()
        self._bands: dict[tuple[str, str], Band] = {}
        self._limiter = Limiter()
        self._file: LinesFile | None = None
        self._host: int | None = None
        self._write_at = 0.0
        self._failing = False  # whether the last write did not succeed
        self._is_remote = "://" in self.directory
        self._alive_at = self._began
        self._wake = threading.Event()
        self._tracker.wake = self._wake.set
        self._closing = threading.Event()
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name="orbax-bench-recorder", daemon=True)
        self._guard.call("start", self._start)

    def _start(self) -> None:
        self._hooks.set()
        os.register_at_fork(after_in_child=self._switch_off)
        atexit.register(self._finish)
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
        """Returns what this process has spent on checkpoints so far."""
        return self._totals.summary(time.perf_counter() - self._began, self._guard.errors)

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

    def _finish(self) -> None:
        if self.is_closed:
            return
        self._closing.set()
        self._wake.set()
        with contextlib.suppress(Exception):
            self._thread.join(_CLOSE_S)
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
        if since:
            self._steps.append((last, since, now - since))

    # The thread that writes.

    def _run(self) -> None:
        while not self._closing.is_set():
            self._wake.wait(_SAMPLE_S if self._tracker.open else _IDLE_S)
            self._wake.clear()
            if self._guard.off:
                return
            self._guard.call("writer", self._work, False)
        self._guard.call("writer", self._work, True)

    def _work(self, last: bool) -> None:
        now = time.perf_counter()
        going = [one for one in list(self._tracker.open) if one.ended is None]
        if going:
            resident, device = rss(), self._device_bytes()
            for operation in going:
                _sample(operation.rss, resident)
                _sample(operation.device, device)
        self._warn_of_stalls(now, going)
        done = self._tracker.finished(now, last=last)
        for operation in done:
            if operation.ended is not None:
                self._totals.add(operation)
                self._learn(operation)
            self._tracker.lines.append(operation.line())
        has_news = bool(self._tracker.lines) and not self._is_remote and not self._failing
        if last or has_news or now >= self._write_at:
            self._write(now, last)

    def _learn(self, operation: Operation) -> None:
        total = (operation.ended or 0.0) - operation.begun
        call = operation.call_s or 0.0
        self._band(operation.what, "call").add(call)
        self._band(operation.what, "background").add(max(0.0, total - call))

    def _band(self, what: str, part: str) -> Band:
        return self._bands.setdefault((what, part), Band())

    def _warn_of_stalls(self, now: float, going: list[Operation]) -> None:
        for frame in list(self._tracker.frames):
            kind = "save" if frame.what == "wait" else frame.what
            band = self._band(kind, "background" if frame.what == "wait" else "call")
            self._warn(frame, now - frame.begun, band, _named(frame))
        for operation in going:
            if operation.blocked is not None:
                band = self._band(operation.what, "background")
                which = f"the background part of the {_named(operation)}"
                self._warn(operation, now - operation.blocked, band, which)

    def _warn(self, of: Frame | Operation, seconds: float, band: Band, which: str) -> None:
        limit = band.limit
        if of.warned or limit is None or seconds < limit:
            return
        of.warned = True
        step = "" if of.step is None else f" of step {of.step}"
        line = {"line": "stall", "t": time.time(), "what": which, "step": of.step}
        self._tracker.lines.append(line | {"s": round(seconds, 3), "usual_s": round(band.usual, 3)})
        if self._limiter.allows(time.monotonic()):
            more = (
                f"; {self._limiter.withheld} more like it since the last line"
                if self._limiter.withheld
                else ""
            )
            self._limiter.withheld = 0
            _log.warning(
                "orbax-bench: %s%s has taken %.3g s so far, usually it is %.3g s%s. Recording: %s",
                which,
                step,
                seconds,
                band.usual,
                more,
                self.directory,
            )

    def _write(self, now: float, last: bool) -> None:
        try:
            if self._file is None and not self._open():
                return
        except OSError as error:
            self._fails(now, error)
            return
        assert self._file is not None
        lines: list[dict[str, Any]] = []
        for queue in (self._guard.trouble, self._tracker.lines):
            while queue:
                lines.append(queue.popleft())
        lines += self._step_lines()
        if now >= self._alive_at:
            lines.append({"line": "alive", "t": time.time(), "rss": rss()})
            self._alive_at = now + (_REMOTE_ALIVE_S if self._is_remote else _ALIVE_S)
        if last:
            lines.append({"line": "close", "t": time.time(), "errors": self._guard.errors})
        self._write_at = now + (_REMOTE_FLUSH_S if self._is_remote else _FLUSH_S)
        if not lines:
            return
        self._warn_of_failures(lines)
        try:
            self._file.write(lines)
            self._failing = False
        except OSError as error:
            self._fails(now, error)
        if self._openmetrics is not None:
            file = os.path.join(self._openmetrics, f"orbax_{self._host}.prom")
            self._guard.call("openmetrics", self.summary().write, file)

    def _fails(self, now: float, error: OSError) -> None:
        """Notes that nothing could be written, and waits a minute."""
        if not self._failing:
            _log.warning("orbax-bench cannot record to %s yet: %s", self.directory, error)
        self._failing = True
        self._write_at = now + _AGAIN_S
        self._guard.note("write", error)

    def _warn_of_failures(self, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            if line["line"] == "failed" and line["where"] == "background":
                _log.warning(
                    "orbax-bench: the save of step %s failed in the background (%s: %s); Orbax "
                    "raises it in the next save or wait. Recording: %s",
                    line["step"],
                    line["error"],
                    line["message"],
                    self.directory,
                )

    def _step_lines(self) -> list[dict[str, Any]]:
        """Returns the steps so far, runs of consecutive ones in a line each."""
        found: list[dict[str, Any]] = []
        while self._steps:
            number, begun, seconds = self._steps.popleft()
            self._totals.add_step(seconds)
            run = found[-1] if found else None
            if run is None or run["n"] + len(run["s"]) != number:
                t = round(self._epoch + begun - self._began, 6)
                run = {"line": "steps", "n": number, "t": t, "rank": self._rank, "s": []}
                found.append(run)
            run["s"].append(round(seconds, 6))
        return found

    def _open(self) -> bool:
        """Begins the file, once the job has done something that is recorded."""
        jax = sys.modules.get("jax")
        has_begun = self._tracker.begun > 0 or bool(self._tracker.lines)
        if jax is None or not (has_begun or self._steps) or not _may_ask(has_begun):
            return False
        if _is_child() or _parent_records(self.directory):
            self._guard.off = True  # a data loader or a helper: it leaves nothing
            return False
        self._host = int(jax.process_index())
        self._file = LinesFile(self.directory, self._host)
        self._file.write([self._life(jax)])
        return True

    def _life(self, jax: Any) -> dict[str, Any]:
        orbax = sys.modules.get("orbax.checkpoint")
        return {
            "line": "life",
            "format": FORMAT,
            "t": self._epoch,
            "host": self._host,
            "hosts": int(jax.process_count()),
            "pid": self._pid,
            "node": socket.gethostname(),
            "python": sys.version.split()[0],
            "jax": jax.__version__,
            "orbax": getattr(orbax, "__version__", ""),
            "devices": jax.device_count(),
            "device_kind": jax.local_devices()[0].device_kind,
            "lacking": sorted(set(self._hooks.lacking)),
        }

    def _device_bytes(self) -> int | None:
        """Returns the bytes in use on the devices of this process; None if they do not say."""
        jax = sys.modules.get("jax")
        if jax is None or self._host is None:
            return None
        found = [device.memory_stats() for device in jax.local_devices()]
        if not all(found):
            return None
        return sum(int(stats.get("bytes_in_use", 0)) for stats in found)


def _named(of: Frame | Operation) -> str:
    return {"wait": "a wait for a save", "save": "save", "load": "load"}[of.what]


def _sample(levels: list[int], now: int | None) -> None:
    """Keeps the first, the highest and the last level."""
    if now is None:
        return
    if not levels:
        levels += [now, now, now]
    levels[1:] = [max(levels[1], now), now]


def _may_ask(has_begun: bool) -> bool:
    """Whether JAX says the index of this process without starting a backend."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    initialized = getattr(bridge, "backends_are_initialized", None)
    return has_begun if initialized is None else bool(initialized())


def _is_child() -> bool:
    """Whether this process was started by `multiprocessing`."""
    module = sys.modules.get("multiprocessing.process")
    return module is not None and module.parent_process() is not None


def _parent_records(directory: str) -> bool:
    """Whether a process above this one has a file of its own in the recording."""
    if "://" in directory or not os.path.isdir(directory):
        return False
    names = [name for _, _, files in os.walk(directory) for name in files]
    pid = os.getppid()
    while pid > 1:
        if any(name.endswith(f"-{pid}.jsonl") for name in names):
            return True
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return False
    return False


_active: Recorder | None = None


def record(directory: str | os.PathLike[str], *, openmetrics: str | None = None) -> Recorder:
    """Begins to record the saves, loads and steps of this process, until it is closed or ends.

    `with record(DIR): ...` ends with the block. Where this process is recorded already, such as by
    `orbax-bench record`, that recording goes on. It never raises, and never slows a job down by
    more than a millisecond a save.

    Args:
        directory: Where the recording goes, local or `gs://`; the same for all hosts of a job.
        openmetrics: A directory of a node exporter's textfile collector; each host keeps
            `orbax_<host>.prom` there up to date.
    """
    global _active  # noqa: PLW0603 - a process has one recorder
    if _active is None or _active.is_closed:
        _active = Recorder(directory, openmetrics=openmetrics)
        return _active
    return _active.shared()
