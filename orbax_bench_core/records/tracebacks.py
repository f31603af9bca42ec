"""Tracebacks of repeats: the author's line that failed, and the text without the harness."""

import re
from pathlib import PurePath
from typing import Final

_BEGINS: Final = "Traceback (most recent call last):"
_FRAME: Final = re.compile(r'^[ |+]*File "(?P<file>[^"]+)", line (?P<line>\d+), in ')
# What a benchmark is run by. The built-in benchmarks are someone's code like any other's.
_HARNESS: Final = re.compile(
    r"orbax_bench_core/(?:authoring|config|execute|files|interface|inventory|leases|measure|provenance|records|state|sweep|testing"
    r"|worker)(?:/[\w/]+)?\.py$|^<frozen |/contextlib\.py$"
)


def author_place(traceback: str) -> str:
    """Returns the author's line that failed, as `my_bench.py:17`; empty if none is known.

    The first frame outside the harness is the author's; the line is the deepest one in a file of
    the same folder, since what a library was doing when it failed is not where the author looks.
    """
    found = _frames(traceback)
    own = [frame for frame in found if not _HARNESS.search(frame["file"])]
    if not own:
        return ""
    frame = [frame for frame in own if _folder(frame) == _folder(own[0])][-1]
    return f"{PurePath(frame['file']).name}:{frame['line']}"


def raised_by_author(traceback: str) -> bool:
    """Says whether the author's own line or the harness raised an exception, and no library."""
    found = _frames(traceback)
    own = [frame for frame in found if not _HARNESS.search(frame["file"])]
    return bool(found) and (not own or _folder(found[-1]) == _folder(own[0]))


def _frames(traceback: str) -> list[re.Match[str]]:
    """Returns the frames of the last exception of a traceback; none of other text."""
    if not traceback.lstrip(" +|").startswith(("Traceback", "Exception Group Traceback")):
        return []
    last = traceback.rpartition(_BEGINS)[2]
    return [match for line in last.splitlines() if (match := _FRAME.match(line))]


def _folder(frame: re.Match[str]) -> PurePath:
    return PurePath(frame["file"]).parent


def without_harness(traceback: str) -> str:
    """Returns a traceback without the frames of the harness, which tell an author nothing.

    A frame goes with the lines of source below it. Where every frame is the harness's, all stay.
    """
    kept: list[str] = []
    hidden = seen = False
    for line in traceback.splitlines(keepends=True):
        frame = _FRAME.match(line)
        if frame:
            hidden = _HARNESS.search(frame["file"]) is not None
            seen = seen or not hidden
        elif hidden and not line.startswith(("    ", "  |     ")):
            hidden = False
        if not hidden:
            kept.append(line)
    return "".join(kept) if seen else traceback
