"""Refusals: what the system refuses, as errors that the user can correct."""

import errno
import socket
from typing import Final, NamedTuple

from orbax_bench_core.errors.user_error import UserError
from orbax_bench_core.files import as_system_error

_UNWRITABLE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_PASSING: Final = (
    *(errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ECONNRESET, errno.ECONNABORTED),
    *(errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTUNREACH),
)
"""What a file system of a network, or an object store, answers that is not well for a moment."""
_REMEDIES: Final = {
    **dict.fromkeys(_UNWRITABLE, "make room, or name a place that can be written"),
    errno.EISDIR: "a folder is in the place of a file; move it away",
    errno.ENOTDIR: "a file is in the place of a folder; move it away, or name another place",
    errno.EACCES: "ask for the right to it, or name another place",
}


class Refusal(NamedTuple):
    """An error that the user can correct."""

    error: UserError  # what to tell
    passing: bool  # whether the same may go well once there is room again, or the store is well


def may_pass(error: BaseException) -> bool:
    """Returns whether a store was not well: the same may go well in a minute, with nothing changed.

    So it is with an error that was made of what the system refused, and with a name that does not
    resolve: records of a service appear after its pods have started.
    """
    beneath: BaseException | None = error
    while beneath is not None and not isinstance(beneath, OSError):
        beneath = as_system_error(beneath) or beneath.__cause__ or beneath.__context__
    return beneath is not None and (
        beneath.errno in _PASSING or isinstance(beneath, TimeoutError | socket.gaierror)
    )


def remedy_of(error: OSError) -> str:
    """Returns the advice about an error of the system; empty if there is none."""
    return _REMEDIES.get(error.errno or 0, "")


def refusal_of(error: BaseException) -> Refusal | None:
    """Returns an error as one that the user can correct; None for a mistake of the program.

    What the system refuses, such as a file or a connection, has a number, which an error of ours
    has not.
    """
    error = as_system_error(error) or error
    if isinstance(error, MemoryError):
        return Refusal(UserError("out of memory: free some, or take a smaller suite"), True)
    if isinstance(error, UserError):
        # Room can be made: the same command may do better then.
        beneath = error.__context__
        number = beneath.errno if isinstance(beneath, OSError) else None
        passing = error.passing or number in _UNWRITABLE or may_pass(error)
        if number in (*_UNWRITABLE, errno.EACCES) and _REMEDIES[number] not in str(error):
            error = UserError(f"{error}; {_REMEDIES[number]}")
        return Refusal(error, passing)
    if not isinstance(error, OSError) or error.errno is None:
        return None
    if error.errno in _UNWRITABLE:
        return Refusal(UserError(f"cannot write: {error}; {remedy_of(error)}"), True)
    place = type(error).__name__ if error.filename is None else str(error.filename)
    said = f"{place}: {error.strerror or error}"
    return Refusal(UserError("; ".join(filter(None, [said, remedy_of(error)]))), may_pass(error))
