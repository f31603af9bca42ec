"""Deadlines where no timeout of a socket helps: names without an address, servers that trickle."""

import concurrent.futures
import threading
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


class Late(Exception):
    """Something has not ended in time; it may go on, in a thread that nobody waits for."""


def in_time(ask: Callable[[], Found], seconds: float) -> Found:
    """Returns what something returns, or raises what it raises, within a time.

    Raises:
        Late: It has not ended by then.
    """
    answer: concurrent.futures.Future[Found] = concurrent.futures.Future()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:  # noqa: BLE001 - raised for the one who waits
            answer.set_exception(error)

    # A pool would wait for its threads when the command ends.
    threading.Thread(target=run, daemon=True).start()
    if not concurrent.futures.wait([answer], timeout=seconds).done:
        raise Late
    return answer.result()
