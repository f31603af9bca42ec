"""Orbax's lines of a log, which absl prints with whatever stands before them, by process and start.

`CheckpointManager` adds the statistics of each step, and MaxText tells its steps.
"""

from __future__ import annotations

import ast
import contextlib
import datetime
import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pydantic

from orbax_bench_core.analysis.recording import Line
from orbax_bench_core.recorder import FORMAT, METADATA_WAIT

_GIB: Final = {"Bytes": 2**-30, "KiB": 2**-20, "MiB": 2**-10, "GiB": 1, "TiB": 2**10, "PiB": 2**20}
_COMMIT: Final = "/jax/checkpoint/write/async/commit_duration_sec"
_ABSL: Final = re.compile(r"[IWEF](\d\d)(\d\d) (\d\d):(\d\d):(\d\d\.\d+)")
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)?")
_OF_ORBAX: Final = re.compile(r"\[process=(\d{1,5})\]((?:\s?\[[^\]]*\])*) ?(.*)")
_STATISTICS: Final = re.compile(r"\{'step': .*'event_type': .*\}")
_STEP: Final = re.compile(r"completed step: (\d+), seconds: (\d+\.\d+)")
_RAISED: Final = re.compile(
    r"(?:\d{4}-\S+ )?((?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Timeout))\b:? ?(.*)"
)
_PATTERNS: Final = tuple(
    (re.compile(pattern), name)
    for pattern, name in {
        r"CheckpointManager created,.* root_directory=(\S*?):? ": "_created",
        r"Saving checkpoint at step (\d+)": "_saving",
        r"Started (save|load) checkpoint @ (.+)\.$": "_started",
        r"Finished blocking save in (\d+\.\d+) seconds.* @ (.+)\.$": "_blocked",
        r"Finished (save|load).* in (\d+\.\d+) seconds @ (.+)$": "_finished",
        r"\d+ Handler Commit operations completed. Time taken: (\d+\.\d+)s": "_wrote",
        r"Wrote \d+ array_metadata": "_metadata",
        r"(?:Raw )?(\S+/worker)/io/(requested|raw) throughput: .*\(total gbytes: (\d+(?:\.\d+)?) "
        r"(\w+)\) \(time elapsed: (\d+(?:\.\d+)?(?:e-\d+)?) s\) \(per-host\)$": "_transferred",
        r"Background save thread done. Time taken: (\d+\.\d+)s": "_done",
        r"Failed to run .* directory: (.+)$": "_failed",
        r"Save Finalize thread .* failed": "_told",
    }.items()
)
"""Messages of Orbax, and the methods of `OrbaxLog` that take them."""
_OLDER: Final = tuple(
    (re.compile(pattern), now)
    for pattern, now in {
        r"Started async saving checkpoint to (.+)\.$": r"[async] Started save checkpoint @ \1.",
        r"Started saving checkpoint to (.+)\.$": r"[sync] Started save checkpoint @ \1.",
        r"Finished blocking save(?: in |\. Time taken: )(\d+\.\d+).* Continuing .* to (.+)\.$": (
            r"[process=0] Finished blocking save in \1 seconds. Continuing save @ \2."
        ),
        r"Finished async.* (?:in|Time taken:) (\d+\.\d+).*(?: to |directory=)(.+)$": (
            r"[process=0] Finished save in \1 seconds @ \2"
        ),
        r"Finished synchronous save in (\d+\.\d+) seconds to (.+)$": (
            r"[process=0] Finished save in \1 seconds @ \2"
        ),
        r"Restoring checkpoint from (.+)\.$": r"[process=0] Started load checkpoint @ \1.",
        r"Finished restoring checkpoint in (\S+) seconds from (.+)\.$": (
            r"[process=0] Finished load in \1 seconds @ \2"
        ),
    }.items()
)
"""Messages of releases before 0.11.36, and those of today; only the primary host has the others."""
INCOMPLETE: Final = (ValueError, SyntaxError, TypeError, LookupError)
"""What is raised for statistics that lack something."""


class Start:
    """What a log says of one start of a process."""

    def __init__(self, host: int) -> None:
        """Knows nothing of it yet."""
        self.host = host
        self.operations: list[dict[str, Any]] = []
        self.going: list[dict[str, Any]] = []  # those that had not ended when the last one began
        self.others: list[dict[str, Any]] = []  # lines of steps and failures
        self.roots: set[str] = set()  # directories of its managers
        self.step: int | None = None  # of the save that begins next
        self.ended: list[dict[str, Any]] = []  # saves whose thread will say so as well
        self.first = self.last = 0.0

    def open(self, path: str = "", what: str = "save") -> dict[str, Any] | None:
        """Returns the first save or load that has not ended, or that on a path."""
        going = (one for one in self.going if (one["state"], one["what"]) == ("open", what))
        return next((one for one in going if path in ("", one["path"])), None)


class OrbaxLog:
    """The lines of a log, by process."""

    def __init__(self, written: float) -> None:
        """Takes the seconds since the epoch of its end: absl does not say the year."""
        self._written = datetime.datetime.fromtimestamp(written, datetime.UTC)
        self._by_process: dict[int, list[Start]] = {}
        self._failing: dict[str, Any] | None = None  # the failure whose traceback follows

    @property
    def has_operations(self) -> bool:
        """Whether any save or load is in it."""
        return any(one.operations for starts in self._by_process.values() for one in starts)

    def take(self, moment: str, line: str) -> None:
        """Takes the next line.

        Args:
            moment: When it was written, as the log of a service has it next to the line; empty if
                the line itself has the time.
            line: One line, without its end.
        """
        for older, now in _OLDER:
            line = older.sub(now, line)
        if (said := _OF_ORBAX.search(line)) is not None:
            t = self._time(moment or line[: said.start()])
            host = int(said[1])
            start = self._by_process.setdefault(host, [Start(host)])[-1]
            start.first, start.last = start.first or t, t or start.last
            self._failing = None
            for pattern, name in _PATTERNS:
                if (found := pattern.match(said[3])) is not None:
                    getattr(self, name)(start, t, said[2], *found.groups())
                    return
        elif self._failing is not None and (raised := _RAISED.match(line)) is not None:
            self._failing |= {"error": raised[1], "message": raised[2][:500]}
        elif (step := _STEP.search(line)) is not None and self._by_process:
            self._stepped(self._time(moment or line[: step.start()]), int(step[1]), float(step[2]))
        elif (given := _STATISTICS.search(line)) is not None:
            try:
                said_at = self._time(moment or line[: given.start()])
                self._statistics(said_at, ast.literal_eval(given[0]))
            except INCOMPLETE:
                return

    def starts(self) -> list[dict[int, list[Line]]]:
        """Returns the lines of each start, by process."""
        hosts = max(self._by_process, default=0) + 1
        found: list[dict[int, list[Line]]] = []
        for host, starts in sorted(self._by_process.items()):
            for number, start in enumerate(starts):
                found += [{}] if number == len(found) else []
                found[number][host] = list(lines_of(start, host, hosts))
        return found

    def notes(self) -> Iterator[str]:
        """Yields how far the times of saves are known."""
        every = itertools.chain.from_iterable(self._by_process.values())
        saves = [one for start in every for one in start.operations if one["what"] == "save"]
        if rest := sum("told" not in one and one["background"] for one in saves):
            yield (
                f"saves without the statistics of a CheckpointManager: {rest}. What they block is "
                "what Orbax calls their blocking part, to 10 ms"
            )

    def _time(self, before: str) -> float:
        """Returns the seconds since the epoch that stand before a message; 0 if none do."""
        iso, absl = _ISO.search(before), _ABSL.search(before)
        try:
            if iso is not None:
                moment = datetime.datetime.fromisoformat(iso[0].replace(",", "."))
                return (
                    moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
                ).timestamp()
            if absl is None:
                return 0.0
            month, day, hour, minute = map(int, absl.groups()[:4])
            begin = self._written.replace(
                month=month, day=day, hour=hour, minute=minute, second=0, microsecond=0
            )
            if begin - self._written > datetime.timedelta(days=2):
                begin = begin.replace(year=begin.year - 1)
        except ValueError:
            return 0.0
        return begin.timestamp() + float(absl[5])

    def _created(self, start: Start, t: float, _: str, root: str) -> None:
        if root in start.roots:  # the same manager again: the job has begun again
            start = Start(start.host)
            start.first = start.last = t
            self._by_process[start.host].append(start)
        start.roots.add(root)

    def _saving(self, start: Start, _: float, __: str, step: str) -> None:
        start.step = int(step)

    def _started(self, start: Start, t: float, tags: str, what: str, path: str) -> None:
        if what == "load" and start.open(path, what):
            return  # told twice
        one = {"id": len(start.operations), "what": what, "path": path, "t": t, "state": "open"}
        one |= {"background": "[async]" in tags, "events": {}}
        one |= {"step": start.step} if what == "save" else {}
        start.step = None
        start.operations.append(one)
        start.going = [*(each for each in start.going if each["state"] == "open"), one]

    def _blocked(self, start: Start, t: float, _: str, took: str, path: str) -> None:
        one = start.open(path)
        if one is not None and one["background"] and "told" not in one:
            one |= {"call_s": float(took), "returned": t}

    def _finished(self, start: Start, t: float, _: str, what: str, took: str, path: str) -> None:
        if (one := start.open(path, what)) is None:
            return
        one |= {"state": "committed", "total_s": float(took), "ended": t}
        if one["background"]:
            start.ended.append(one)
        else:
            one.setdefault("call_s", float(took))

    def _wrote(self, start: Start, t: float, _: str, took: str) -> None:
        if t:  # without times nothing tells how much of it is waiting
            self._event(start, _COMMIT, float(took))

    def _metadata(self, start: Start, t: float, _: object) -> None:
        if (one := start.open()) is not None:
            one["metadata"] = t

    def _transferred(
        self, start: Start, t: float, _: str, of: str, kind: str, size: str, unit: str, s: str
    ) -> None:
        self._event(start, f"{of}/io/{kind}/gbytes", float(size) * _GIB.get(unit, 0.0))
        one = start.open()
        if kind != "requested" or one is None or "/write/" not in of or not t:
            return
        self._event(start, f"{of}/total_duration_secs", float(s))
        # Until its metadata were written, this host may have waited for the primary one.
        held = one.get("metadata", t) - (t - float(s))
        self._event(start, METADATA_WAIT, min(max(0.0, held), float(s)))

    def _event(self, start: Start, name: str, value: float) -> None:
        if (one := start.open()) is not None:
            count, total, *_ = one["events"].get(name, (0, 0.0))
            one["events"][name] = (count + 1, total + value, value, "")

    def _done(self, start: Start, t: float, _: str, took: str) -> None:
        """Ends a save, which hosts other than the primary one say only so."""
        one = start.ended.pop(0) if start.ended else start.open()
        if one is not None and one["background"]:
            one |= {"state": "committed", "ended": t, "thread_s": float(took)}

    def _failed(self, start: Start, t: float, _: str, path: str) -> None:
        one = start.open(path)
        if one is not None:
            one |= {"state": "failed", "ended": t}
            said = {"id": one["id"], "what": "save", "step": one["step"]}
            self._failing = {"line": "failed", "where": "background", "t": t, **said}
            start.others.append(self._failing)

    def _told(self, start: Start, t: float, _: object) -> None:
        failed = [line for line in start.others if line["line"] == "failed"]
        if failed:
            start.others.append({**failed[-1], "line": "surfaced", "where": "", "t": t})

    def _stepped(self, t: float, number: int, seconds: float) -> None:
        start = self._by_process[min(self._by_process)][-1]
        known = [line for line in start.others[-1:] if line["line"] == "steps"]
        if t and not (known and known[0]["n"] >= number):  # every host may print it
            step = {"line": "steps", "n": number, "t": t - seconds, "s": [seconds]}
            start.others.append(step)
            start.first, start.last = start.first or t - seconds, t

    def _statistics(self, t: float, given: Mapping[str, Any]) -> None:
        """Adds the statistics of a step to the first process whose operation lacks them."""
        what = "save" if given["event_type"] == "save" else "load"
        known = keys_of(given)
        for starts in self._by_process.values():
            same = (
                one
                for one in reversed(starts[-1].operations)
                if one["what"] == what and one.get("step") in (None, given["step"])
            )
            one = next(same, None)
            if one is not None and "told" not in one:
                one |= known | {"t": one["t"] or known["t"], "told": True, "returned": t}
                return


def keys_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keys of a line that the statistics of a step tell."""
    if given["event_type"] != "save":
        t, took = given["checkpoint_manager_start_time"], given["checkpoint_manager_duration_secs"]
        return {"t": float(t), "call_s": float(took)}
    # A wait that the job asked for itself is booked on its next save.
    within = given["checkpointer_blocking_start_time"] - given["wait_for_prev_start_time"]
    waited = min(float(given["wait_for_prev_duration_secs"]), max(0.0, float(within)))
    of = "checkpoint_manager_blocking"
    t, took = given[f"{of}_start_time"], given[f"{of}_duration_secs"]
    return {"t": float(t), "call_s": float(took), "waited_s": waited, "step": given["step"]}


def lines_of(start: Start, host: int, hosts: int) -> Iterator[Line]:
    """Yields the lines of a recording of one process."""
    rows = [{"line": "life", "format": FORMAT, "t": start.first, "host": host, "hosts": hosts}]
    saves = [one for one in start.operations if one["what"] == "save"]
    for one in start.operations:
        rows.append({"line": "begin", **one, "state": "open"})
        if one["state"] != "open":
            rows.append({"line": "end", **one, "total_s": _total_of(one)})
        elif one["what"] == "save" and saves[-1]["id"] > one["id"]:
            # Orbax begins no save before the one before it has ended.
            after = next(save for save in saves if save["id"] > one["id"])
            rows.append({**one, "line": "failed", "t": after["t"], "where": "background"})
    for row in (*rows, *start.others, {"line": "alive", "t": start.last}):
        with contextlib.suppress(pydantic.ValidationError):  # what can be no save or step
            yield Line.model_validate(row)


def _total_of(one: Mapping[str, Any]) -> float | None:
    """Returns the seconds from the begin of a call to the end of its background part.

    What Orbax says itself leaves out the wait for the save before, depending on the release.
    """
    call_s = one.get("call_s")
    if call_s is None or not one["background"]:
        return one.get("total_s")
    if one.get("returned") and one.get("ended"):
        return float(call_s + max(0.0, one["ended"] - one["returned"]))
    return call_s + one["thread_s"] if "thread_s" in one else one.get("total_s")
