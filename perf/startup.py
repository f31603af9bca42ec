"""Start-up time of `orbax-bench --help`."""

from __future__ import annotations

from typing import Final

from perf.pairing import Figure, alternate
from perf.probe import Setting
from perf.process import our_command, run

TARGET_S: Final = 0.3
LEAST_ROUNDS: Final = 7


def figures(setting: Setting) -> list[Figure]:
    """Starts the command, whole processes, at least `LEAST_ROUNDS` times."""
    command = our_command("--help")
    runs = alternate(
        max(setting.rounds, LEAST_ROUNDS),
        lambda: run(command),
        None,
        say=lambda line: setting.say(f"help: {line}"),
    )
    seconds, _ = runs.values(lambda run: run.seconds)
    return [
        Figure(name="orbax-bench --help", unit="s", ours=seconds, target=TARGET_S, limits="value")
    ]
