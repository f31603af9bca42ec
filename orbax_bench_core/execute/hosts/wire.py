"""Authenticated connection between process 0 and the agent of a host.

Whoever can speak on this connection can run commands, so each side proves that it knows the token,
and each frame after that carries a code made from a key of this one connection and a counter:
nobody can add, change, repeat or reorder one. Nothing is encrypted.
"""

import contextlib
import dataclasses
import hmac
import json
import re
import secrets
import socket
import struct
import threading
import time
from collections.abc import Mapping
from typing import Any, Final, NoReturn

Message = dict[str, Any]

_LENGTH = struct.Struct(">I")
_COUNTER = struct.Struct(">Q")
_CODE_BYTES = 32
"""Bytes of an HMAC with SHA-256."""
_MOST_BYTES = 64 * 2**20
_MOST_BYTES_BEFORE_PROOF = 4096
"""Bytes of a message of a side that has not proved that it knows the token: anyone may send it."""
_MOST_DEPTH = 256
"""Brackets in each other: a suite may have 100, and a message wraps it in a few."""
_MOST_DEPTH_BEFORE_PROOF = 4
_BRACKET_OR_STRING: Final = re.compile(rb'[][{}]|"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_CHUNK = 2**16
_KNOWS_NONE: Final = (
    "it has no token: its run directory is not the folder in which process 0 has written one, or "
    "process 0 was given ORBAX_BENCH_TOKEN and this host was not"
)


_WRONG_TOKEN: Final = "wrong token"  # noqa: S105 - what is said of one
_UNPROVED: Final = (_KNOWS_NONE, _WRONG_TOKEN)
"""All that is repeated of a side that has not proved that it knows the token."""
_MOST_TEXT: Final = 1024
_MOST_RANK: Final = 2**31


@dataclasses.dataclass(frozen=True, kw_only=True)
class ContactTimes:
    """Times of a connection, in seconds."""

    beat_s: float = 1.0  # between two signs of life of each side
    # silence after which the other side is lost. A network that is cut for 4 seconds is silent for
    # 6 to 7, because TCP sends again at growing intervals.
    lost_s: float = 8.0
    prove_s: float = 5.0  # what a newcomer may take to prove that it knows the token
    join_s: float = 600.0  # how long all hosts may take to join: images and queues differ by host
    retry_s: float = 20.0  # how long an agent tries again that was refused for what may pass


CONTACT: Final = ContactTimes()


class Refused(Exception):
    """One side does not accept the other."""

    def __init__(self, reason: str, *, again: bool = False) -> None:
        super().__init__(reason)
        self.again = again  # whether that may pass, so that another try makes sense


class Wire:
    """Frames of JSON over a socket; any thread may send, one receives."""

    def __init__(self, connection: socket.socket, lost_s: float) -> None:
        """Takes a connected socket; `lost_s` seconds of silence end it."""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connection
        self._lost_s = lost_s
        self._sending = threading.Lock()
        self._keys: tuple[bytes, bytes] | None = None
        self._sent = self._received = 0
        peer, own = connection.getpeername(), connection.getsockname()
        self.peer, self.address = (str(each[0]).removeprefix("::ffff:") for each in (peer, own))

    def secure(self, *, sends: bytes, receives: bytes) -> None:
        """Has every frame from here on authenticated, each direction with its own key.

        Args:
            sends: Key of what this side sends.
            receives: Key of what the other side sends.
        """
        self._keys = (sends, receives)

    def send(self, message: Mapping[str, Any]) -> None:
        """Sends one message.

        Raises:
            OSError: Contact is lost, or the other side has taken nothing for too long.
        """
        payload = json.dumps(message).encode()
        with self._sending:
            code = b""
            if self._keys is not None:
                code = _code(self._keys[0], self._sent, payload)
                self._sent += 1
            # One that only sends meets the silence of the other side here.
            self._socket.settimeout(self._lost_s)
            self._socket.sendall(_LENGTH.pack(len(payload)) + code + payload)

    def receive(self, within_s: float | None = None) -> Message:
        """Returns the next message.

        Args:
            within_s: Seconds to wait; None for as long as the other side gives signs of life.

        Raises:
            ConnectionError: The other side is gone or silent, or sends what it cannot have sent.
        """
        deadline = None if within_s is None else time.monotonic() + within_s
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size, deadline))
        most, deepest = _MOST_BYTES, _MOST_DEPTH
        if self._keys is None:
            most, deepest = _MOST_BYTES_BEFORE_PROOF, _MOST_DEPTH_BEFORE_PROOF
        if length > most:
            raise ConnectionError(f"a frame of {length} bytes, more than {most}")
        code = b"" if self._keys is None else self._read(_CODE_BYTES, deadline)
        payload = self._read(length, deadline)
        if self._keys is not None:
            if not hmac.compare_digest(code, _code(self._keys[1], self._received, payload)):
                raise ConnectionError("a frame that the other side has not sent")
            self._received += 1
        return _message(payload, deepest)

    def close(self) -> None:
        """Ends the connection; a second call does nothing."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _read(self, size: int, deadline: float | None) -> bytes:
        read = bytearray()
        while len(read) < size:
            left = self._lost_s if deadline is None else deadline - time.monotonic()
            self._socket.settimeout(max(left, 1e-3))
            try:
                got = self._socket.recv(min(_CHUNK, size - len(read)))
            except TimeoutError:
                silent = f"was silent for {left:.0f} s"
                why = silent if deadline is None else "said nothing in time"
                raise TimeoutError(why) from None
            if not got:
                raise ConnectionError("closed the connection")
            read += got
        return bytes(read)


def _message(payload: bytes, deepest: int) -> Message:
    """Returns the message of a frame, whatever the other side has put into it."""
    depth = 0
    if payload.count(b"[") + payload.count(b"{") > deepest:  # of most frames that says all
        for found in _BRACKET_OR_STRING.finditer(payload):
            depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(found[0], 0)
            if depth > deepest:
                raise ConnectionError(f"a frame of more than {deepest} brackets in each other")
    try:
        message = json.loads(payload)
    except (ValueError, MemoryError):  # also numbers of no end
        raise ConnectionError("a frame that is no JSON") from None
    if not isinstance(message, dict):
        raise ConnectionError("a frame that is no message")
    return message


def prove_as_agent(wire: Wire, token: str | None, rank: int, within_s: float) -> None:
    """Proves to process 0 that this is an agent of the run, and has process 0 prove the same.

    Raises:
        Refused: One side does not know the token, or process 0 says why this host may not join.
        ConnectionError: The other side is gone or silent.
    """
    # An agent that has no token asks all the same: that process 0 is there, and its token is not,
    # is what people need to know on both sides.
    theirs, mine = _text(wire.receive(within_s), "nonce"), secrets.token_hex(32)
    proof = None if token is None else _proof(token, "agent", rank, theirs, mine)
    wire.send({"host": rank, "nonce": mine, "proof": proof})
    answer = wire.receive(within_s)
    if "refused" in answer or token is None:
        # Nobody has proved anything yet: the peer can neither end this agent nor have its
        # words printed.
        said = str(answer.get("refused"))
        known = next((why for why in _UNPROVED if said == why), "for a reason of its own")
        raise Refused(known, again=True)
    expected = _proof(token, "head", rank, theirs, mine)
    if not hmac.compare_digest(str(answer.get("proof")), expected):
        raise Refused("what answers there does not know the token of this run", again=True)
    to_head, to_agent = _session_keys(token, rank, theirs, mine)
    wire.secure(sends=to_head, receives=to_agent)


def prove_as_head(wire: Wire, token: str, size: int, within_s: float) -> int:
    """Has a newcomer prove that it is an agent of the run, and proves the same to it.

    Returns:
        Index of its host.

    Raises:
        Refused: It does not know the token, or is no host of this run.
        ConnectionError: The other side is gone or silent.
    """
    mine = secrets.token_hex(32)
    wire.send({"nonce": mine})
    answer = wire.receive(within_s)
    rank, theirs = answer.get("host"), _text(answer, "nonce")
    if type(rank) is not int or not -_MOST_RANK < rank < _MOST_RANK:
        refuse(wire, "it does not say which host it is")
    if answer.get("proof", "") is None:
        refuse(wire, _KNOWS_NONE, again=True)
    expected = _proof(token, "agent", rank, mine, theirs)
    if not hmac.compare_digest(str(answer.get("proof")), expected):
        refuse(wire, _WRONG_TOKEN, again=True)
    wire.send({"proof": _proof(token, "head", rank, mine, theirs)})
    to_head, to_agent = _session_keys(token, rank, mine, theirs)
    wire.secure(sends=to_agent, receives=to_head)
    if not 0 < rank < size:
        refuse(wire, f"it says that it is host {rank}; process 0 waits for hosts 1 to {size - 1}")
    return rank


def _text(message: Message, name: str) -> str:
    found = message.get(name)
    if not isinstance(found, str) or len(found) > _MOST_TEXT:
        raise ConnectionError(f"a message without {name}")
    return found


def refuse(wire: Wire, reason: str, *, again: bool = False) -> NoReturn:
    """Tells the other side why it is not accepted."""
    with contextlib.suppress(OSError):
        wire.send({"refused": reason, "again": again})
    raise Refused(reason, again=again)


def _session_keys(token: str, *parts: object) -> tuple[bytes, bytes]:
    """Returns the keys of one connection: of what agents send, and of what process 0 sends."""
    to_head, to_agent = (_mac(token, name, *parts) for name in ("to head", "to agent"))
    return to_head, to_agent


def _proof(token: str, *parts: object) -> str:
    return _mac(token, *parts).hex()


def _mac(token: str, *parts: object) -> bytes:
    return hmac.digest(token.encode(), json.dumps(parts).encode(), "sha256")


def _code(key: bytes, counter: int, payload: bytes) -> bytes:
    return hmac.digest(key, _COUNTER.pack(counter) + payload, "sha256")
