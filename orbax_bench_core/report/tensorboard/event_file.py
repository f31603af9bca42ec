"""The format of TensorBoard's event files: messages, each framed by its length and checksums."""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable
from typing import Protocol

_POLYNOMIAL = 0x82F63B78  # CRC-32C (Castagnoli), bits reversed
_MASK_DELTA = 0xA282EAD8


class Message(Protocol):
    """A protocol buffer."""

    def SerializeToString(self, *, deterministic: bool) -> bytes:  # noqa: N802 - protobuf's name
        """The message on the wire."""
        ...


def encode(events: Iterable[Message]) -> bytes:
    """Returns `Event` messages as the content of one event file.

    TensorBoard's own writers name the file after the time and the process, and reach gs:// only
    with TensorFlow. With the content at hand, a rewrite replaces the same file, on any storage.

    Args:
        events: The events in order; the first one states the version of the format.
    """
    return b"".join(map(_record, events))


def _record(event: Message) -> bytes:
    # TFRecord: length, masked CRC of the length, data, masked CRC of the data; little-endian.
    data = event.SerializeToString(deterministic=True)
    length = struct.pack("<Q", len(data))
    return b"".join(
        (length, struct.pack("<I", _masked_crc(length)), data, struct.pack("<I", _masked_crc(data)))
    )


def _masked_crc(data: bytes) -> int:
    # Masked, because the CRC of data that contains CRCs is weak. TensorBoard has this in Python
    # too, but five times slower and behind imports that take longer than writing a whole run.
    table, crc = _table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


@functools.cache
def _table() -> tuple[int, ...]:
    return tuple(_crc_of_byte(byte) for byte in range(256))


def _crc_of_byte(crc: int) -> int:
    for _ in range(8):
        crc = (crc >> 1) ^ (_POLYNOMIAL if crc & 1 else 0)
    return crc
