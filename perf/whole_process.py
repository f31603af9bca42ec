"""Time and peak memory of one of our commands, in a whole process each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from perf.pairing import Figure, alternate
from perf.probe import Setting
from perf.process import Finished, ProbeFailed, our_command, run


class Bounds(NamedTuple):
    """Most that a command may take.

    Attributes:
        seconds: Of wall time.
        megabytes: Of resident memory, at its peak.
    """

    seconds: float
    megabytes: float


def command_figures(
    setting: Setting,
    name: str,
    *words: str,
    bounds: Bounds,
    is_right: Callable[[str], bool],
) -> list[Figure]:
    """Runs a command of `orbax-bench` some times, and returns its time and its peak memory.

    Args:
        setting: How often, and whom to tell.
        name: What people call it.
        words: The command and its flags.
        bounds: Its targets.
        is_right: Whether what it printed is what it should print.

    Raises:
        ProbeFailed: It failed, or printed something else.
    """
    command = our_command(*words)

    def finished() -> Finished:
        done = run(command, keep_output=True)
        if not is_right(done.output):
            raise ProbeFailed(f"{name} says {done.output[-200:]!r}")
        return done

    runs = alternate(
        setting.rounds, finished, None, say=lambda line: setting.say(f"{words[0]}: {line}")
    )
    seconds, _ = runs.values(lambda done: done.seconds)
    megabytes, _ = runs.values(lambda done: done.peak_bytes / 1e6)
    return [
        Figure(
            name=f"{name}: time",
            unit="s",
            ours=seconds,
            target=bounds.seconds,
            limits="value",
        ),
        Figure(
            name=f"{name}: peak memory",
            unit="MB",
            ours=megabytes,
            target=bounds.megabytes,
            limits="value",
        ),
    ]
