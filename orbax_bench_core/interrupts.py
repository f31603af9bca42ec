"""What ends a wait: signals, which no code on their way loses, and deadlines."""

import concurrent.futures
import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Final, NoReturn, TypeVar

Found = TypeVar("Found")

_USUAL: Final = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
"""Handlers of Python itself, unless somebody ignores a signal, as `nohup` does, or hears it."""

_told: list[int] = []
"""Signals that have told this process to end."""


class Terminated(KeyboardInterrupt):
    """This process is told to end.

    Its type is another one than Python's own: where a plain KeyboardInterrupt passes through code
    that was made from text, such as that of a dataclass, CPython ends the process by SIGINT in the
    end, whatever its exit code.
    """


@contextlib.contextmanager
def interrupted_when_told(clear: Callable[[], None] | None = None) -> Iterator[None]:
    """Has SIGTERM, for a machine that is taken away, and SIGHUP, for a terminal, act like Ctrl-C.

    Otherwise they would end the process where it stands, with its temporary files and without a
    word. Only the main thread can be told.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = {one: usual for one, usual in _USUAL.items() if signal.getsignal(one) == usual}
    _told.clear()
    for number in heard:
        signal.signal(number, _interrupt)
    try:
        yield
    except Exception as error:
        if _told:
            print(f"interrupted; what ran then ended with {error!r:.500}", file=sys.stderr)
        raise_if_told()
        raise
    finally:
        for number, usual in heard.items():
            signal.signal(number, usual)
        if _told and clear is not None:
            clear()
        _told.clear()


def _interrupt(number: int, _frame: object = None) -> NoReturn:
    """Handles a signal: interrupts what runs, and keeps in mind that it did."""
    _told.append(number)
    raise Terminated(signal.Signals(number).name)


def raise_if_told() -> None:
    """Interrupts once more what goes on although it was told to end.

    An interrupt is raised wherever Python is, and can be lost there: in a finalizer, in a callback
    of the garbage collector, in a library that makes an error of its own of whatever is raised.
    What lasts asks between its parts. What ends after an interrupt does not ask.
    """
    if _told:
        raise Terminated(signal.Signals(_told[0]).name)


class Late(Exception):
    """Something has not ended in time; it may go on, in a thread that nobody waits for."""


def in_time(ask: Callable[[], Found], seconds: float) -> Found:
    """Returns the value of a call, or raises its error, within a time.

    For what has no timeout of a socket: names without an address, servers that trickle.

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
