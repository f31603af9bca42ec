"""Interrupts of a command: signals that end it in an orderly way."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Final

_USUAL: Final = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
"""Handlers of Python itself, unless somebody ignores a signal, as `nohup` does, or hears it."""


class Told(KeyboardInterrupt):
    """This process is told to end.

    Its type is another one than Python's own: where a plain KeyboardInterrupt passes through code
    that was made from text, such as that of a dataclass, CPython ends the process by SIGINT in the
    end, whatever its exit code.
    """


@contextlib.contextmanager
def interrupted_when_told() -> Iterator[None]:
    """Has SIGTERM, for a machine that is taken away, and SIGHUP, for a terminal, act like Ctrl-C.

    Otherwise they would end the process where it stands, with its temporary files and without a
    word. Only the main thread can be told.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = {one: usual for one, usual in _USUAL.items() if signal.getsignal(one) == usual}
    told = False

    def tell(number: int, _frame: object) -> None:
        nonlocal told
        told = True
        raise Told(signal.Signals(number).name)

    for number in heard:
        signal.signal(number, tell)
    try:
        yield
    finally:
        for number, usual in heard.items():
            signal.signal(number, usual)
        if told:
            from orbax_bench_core.files import clear_own

            clear_own()
