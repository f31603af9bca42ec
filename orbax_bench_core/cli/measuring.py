"""What surrounds every measurement that the command line makes."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator

from orbax_bench_core.execute.group import CannotRecord
from orbax_bench_core.execute.isolation import measuring_lock

_EXIT_FAILED = 1
_EXIT_INTERRUPTED = 130


class Interrupted(Exception):
    """A measurement was stopped before its end; all that it has finished is kept.

    Attributes:
        code: Exit code of the command.
    """

    def __init__(self, why: str, code: int) -> None:
        super().__init__(why)
        self.code = code


@contextlib.contextmanager
def measuring(say: Callable[[str], None], *, lock: bool) -> Iterator[None]:
    """Holds the machine's measuring lock, and turns whatever stops a measurement into one error.

    Args:
        say: Takes a line for people.
        lock: Whether to wait until nothing else of ours measures on this machine.

    Raises:
        Interrupted: Somebody stopped it, or a result could not be written.
    """
    # Whoever ends this process in an orderly way, its workers end with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with measuring_lock(say) if lock else contextlib.nullcontext():
            yield
    except KeyboardInterrupt:
        raise Interrupted("interrupted", _EXIT_INTERRUPTED) from None
    except CannotRecord as failure:
        raise Interrupted(f"stopped: {failure}", _EXIT_FAILED) from None
