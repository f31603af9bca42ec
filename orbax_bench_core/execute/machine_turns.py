"""Turns on a machine: runs of one place, in containers too, measure on it one after the other."""

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from orbax_bench_core.execute.command_line import command_line
from orbax_bench_core.files import AnyPath
from orbax_bench_core.leases import turn

SHARED_FOLDER: Final = ".orbax-bench"
"""Folder beside runs, for what those of one place have in common."""


@contextlib.contextmanager
def turns_on(
    machines: Iterable[str], run: AnyPath, waiting: Callable[[str], None]
) -> Iterator[None]:
    """Waits until no other run or step of one place measures on these machines, and keeps it so.

    Args:
        machines: Names of the machines; a host measures on one, a cluster on several.
        run: The run directory, next to which the leases lie.
        waiting: Takes lines that say who is waited for.

    Raises:
        OSError: A lease can be written neither next to the run directory nor into it.
    """
    # Containers of one machine do not see each other's lock files, but the storage of their runs.
    # Each has a lease per machine beside the run directory, or in it where nothing may be written
    # beside it or another storage is mounted there, which other containers do not share.

    def said(line: str) -> None:
        waiting(
            f"{line}: it measures on this machine; --no-lock measures at the same time, and each "
            "disturbs the other"
        )

    with contextlib.ExitStack() as held:
        # All runs take machines in one order: otherwise two could wait for each other for ever.
        places = _places(run)
        for machine in sorted(set(machines)):
            owner = re.sub(r"[^\w-]", "_", machine) or "machine"
            for place in places:
                try:
                    held.enter_context(
                        turn(place / SHARED_FOLDER, owner, command=command_line(), say=said)
                    )
                    break
                except OSError:
                    if place == places[-1]:
                        raise
        yield


def _places(run: AnyPath) -> tuple[AnyPath, ...]:
    """Returns where leases of a machine may lie, the place that most runs share first."""
    if "://" in os.fspath(run):
        return (run.parent, run)
    run = run.resolve()
    is_shared = Path(run.parent).stat().st_dev == Path(run).stat().st_dev
    return (run.parent, run) if is_shared and os.access(run.parent, os.W_OK) else (run,)
