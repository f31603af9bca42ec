"""Jobs from what they leave: a recording, a log with Orbax's lines, or one of their goodput.

What a log does not say stays unknown.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from orbax_bench_core.analysis.recording import Line, Recording, read_recording, recording_of
from orbax_bench_core.errors import UserError, command
from orbax_bench_core.files import place
from orbax_bench_core.plan.goodput import JobLog, log_entries, log_of, log_text
from orbax_bench_core.recordings.orbax_log import INCOMPLETE, OrbaxLog, Start, keys_of, lines_of

_RECENT_S: Final = 60.0
"""A log that was written so few seconds ago is that of a job that still runs."""
_MESSAGES: Final = ("textPayload", "message", "msg", "log")
"""Keys of an entry of JSON whose text is a line of a log."""
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
"""What a terminal takes as a colour."""
_MOMENTS: Final = ("timestamp", "time", "receiveTimestamp")

_NOTHING: Final = (
    "has no line of Orbax about a save or load, such as `[process=0] [async] Started save "
    "checkpoint @ ...`, and no step of ml-goodput-measurement. absl prints the former after "
    f"`logging.set_verbosity(logging.INFO)`; `{command('record', '-o', 'DIR')} -- python train.py` "
    "needs no log"
)


def read_job(path: str, *, now: float | None = None) -> Recording:
    """Reads a recorded job from its directory, or what a log says of a job from a file.

    Args:
        path: The directory of a recording or the file of a log, local or `gs://`; the latter also
            compressed by gzip.
        now: Seconds since the epoch; by default those of this clock.

    Raises:
        UserError: It is neither.
    """
    file = place(path)
    if not file.is_file():
        return read_recording(path, now=now)
    now = time.time() if now is None else now
    written = float(file.stat().mtime or 0.0)
    text = log_text(path, errors="replace")
    since = -math.inf if now - written < _RECENT_S else math.inf
    if text.lstrip()[:1] in ("{", "[") and '"step_start_time"' in text:
        entries = list(log_entries(text, path))
        told = log_of(entries, file=path)
        starts = _of_goodput(told, entries)
        return recording_of(path, starts, notes=told.notes, kind="goodput", since=since)
    log = OrbaxLog(written or now)
    for moment, line in _lines(text):
        log.take(moment, _COLOUR.sub("", line))
    if not log.has_operations:
        raise UserError(f"{path} {_NOTHING}")
    return recording_of(path, log.starts(), notes=log.notes(), kind="log", since=since)


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Yields the lines of a log, each with the moment that an entry of JSON around it has."""
    entries: Iterable[Any] = ()
    if text.lstrip()[:1] == "[" and '"timestamp"' in text:
        try:
            entries = json.loads(text)  # as `gcloud logging read --format=json` prints it
        except (ValueError, RecursionError):
            entries = ()
    found: list[tuple[str, str]] = []
    for line in entries or text.splitlines():
        entry = line
        if isinstance(line, str) and line.lstrip()[:1] == "{":
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                entry = line
        if not isinstance(entry, dict):
            found.append(("", str(entry)))
            continue
        inner = entry.get("jsonPayload")
        inner = inner if isinstance(inner, dict) else entry
        moment = next((str(entry[key]) for key in _MOMENTS if key in entry), "")
        said = next((str(of[key]) for of in (inner, entry) for key in _MESSAGES if key in of), "")
        said = repr(_in_order(inner)) if "event_type" in inner and not said else said
        found += [(moment, each) for each in said.splitlines()]
    if found and found[0][0] > found[-1][0]:
        found.reverse()  # Cloud Logging gives the newest first
    yield from found


def _in_order(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"step": entry.get("step"), "event_type": entry["event_type"], **entry}


def _of_goodput(log: JobLog, entries: Iterable[Mapping[str, Any]]) -> list[dict[int, list[Line]]]:
    """Returns the starts of a job from a log of ml-goodput-measurement.

    Where Orbax has logged the statistics of its saves there, these are the saves, and else stalls.
    """
    told = []
    for entry in entries:
        if entry.get("event_type") == "save":
            with contextlib.suppress(*INCOMPLETE):
                told.append({**entry, **keys_of(entry)})
    saves = [
        {
            **{key: one[key] for key in ("t", "call_s", "waited_s", "step")},
            "path": f"{one.get('directory')}/{one['step']}",
            "background": not one.get("synchronous"),
            "state": "committed" if one.get("synchronous") else "unknown",
        }
        for one in told
    ] or [
        {"t": t, "call_s": end - t, "background": False, "state": "unknown"}
        for t, end in log.stall_spans
    ]
    found: list[dict[int, list[Line]]] = []
    ends = [life[0][1] for life in log.lives[1:]]
    for life, until in zip(log.lives, [*ends, math.inf], strict=True):
        start = Start(0)
        start.first, start.last = life[0][1], life[-1][1]
        start.others = [
            {"line": "steps", "n": number, "t": t, "s": [after - t]}
            for (number, t), (_, after) in itertools.pairwise(life)
        ]
        start.operations = [
            {"id": number, "what": "save", **save}
            for number, save in enumerate(sorted(saves, key=lambda save: save["t"]))
            if (save["t"] < until) and (save["t"] >= start.first or not found)
        ]
        found.append({0: list(lines_of(start, 0, 1))})
    return found
