"""Event file format of TensorBoard: messages, each framed by its length and checksums."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

_POLYNOMIAL = 0x82F63B78  # CRC-32C (Castagnoli), bits reversed
_MASK_DELTA = 0xA282EAD8


class Message(Protocol):
    """A protocol buffer."""

    def SerializeToString(self, *, deterministic: bool) -> bytes:  # noqa: N802 - protobuf's name
        """The message on the wire."""
        ...


def encode(events: Iterable[Message]) -> bytes:
    """Returns `Event` messages as the content of one event file; the first states the version.

    TensorBoard's own writers name the file after the time and the process, and reach gs:// only
    with TensorFlow. With the content at hand, a rewrite replaces the same file, on any storage.
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
    crc = _crc()(data)
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


@functools.cache
def _crc() -> Callable[[bytes], int]:
    """Returns what computes a CRC-32C: Google's, which comes with what reaches gs://, or ours."""
    try:
        from google_crc32c import implementation, value
    except ImportError:
        return _slow_crc
    known: Callable[[bytes], int] = value
    return known if implementation == "c" else _slow_crc


def _slow_crc(data: bytes) -> int:
    table, crc = _table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


@functools.cache
def _table() -> tuple[int, ...]:
    return tuple(_crc_of_byte(byte) for byte in range(256))


def _crc_of_byte(crc: int) -> int:
    for _ in range(8):
        crc = (crc >> 1) ^ (_POLYNOMIAL if crc & 1 else 0)
    return crc


class Scalar(NamedTuple):
    """One value of one scalar tag.

    Attributes:
        tag: The tag; TensorBoard groups by what stands before the first slash.
        value: The value, of which TensorBoard keeps 32 bits: about seven digits.
        description: What the tag says, in Markdown; empty for none.
    """

    tag: str
    value: float
    description: str = ""


class Log:
    """Collects the events of one TensorBoard run."""

    def __init__(self, wall_time: float) -> None:
        """Begins a run.

        Args:
            wall_time: Time of all that has no time of its own, in seconds since the epoch. It comes
                from the records, so that writing them again gives the same bytes.
        """
        from tensorboard.compat.proto import event_pb2

        self._event = event_pb2.Event
        self._wall_time = wall_time
        self._known: set[str] = set()
        self._events = [self._event(wall_time=wall_time, file_version="brain.Event:2")]

    def scalars(
        self, values: Iterable[Scalar], *, step: int = 0, wall_time: float | None = None
    ) -> None:
        """Adds scalars of one step.

        Args:
            values: The scalars.
            step: Step on TensorBoard's axis: the index of the repeat.
            wall_time: Seconds since the epoch; that of the run when absent.
        """
        from tensorboard.compat.proto import summary_pb2, types_pb2
        from tensorboard.plugins.scalar import plugin_data_pb2

        content = plugin_data_pb2.ScalarPluginData().SerializeToString()
        summary = summary_pb2.Summary()
        for scalar in values:
            value = summary.value.add(tag=scalar.tag)
            # TensorBoard's default loader leaves out scalars of any other type without a word.
            value.tensor.dtype = types_pb2.DT_FLOAT
            value.tensor.tensor_shape.SetInParent()
            value.tensor.float_val.append(scalar.value)
            self._describe(value, "scalars", content, scalar.description)
        self._add(summary, step, wall_time)

    def text(
        self, tag: str, markdown: str, *, step: int = 0, wall_time: float | None = None
    ) -> None:
        """Adds a Markdown text.

        Args:
            tag: The tag.
            markdown: The text.
            step: Step on TensorBoard's axis.
            wall_time: Seconds since the epoch; that of the run when absent.
        """
        from tensorboard.compat.proto import summary_pb2, types_pb2
        from tensorboard.plugins.text import plugin_data_pb2

        summary = summary_pb2.Summary()
        value = summary.value.add(tag=tag)
        value.tensor.dtype = types_pb2.DT_STRING
        value.tensor.tensor_shape.SetInParent()
        value.tensor.string_val.append(markdown.encode())
        content = plugin_data_pb2.TextPluginData().SerializeToString()
        self._describe(value, "text", content, "")
        self._add(summary, step, wall_time)

    def hparams(self, tag: str, content: bytes) -> None:
        """Adds a message of the HParams plugin, which lies in the metadata of an empty tensor."""
        from tensorboard.compat.proto import summary_pb2, types_pb2

        summary = summary_pb2.Summary()
        value = summary.value.add(tag=tag)
        value.tensor.dtype = types_pb2.DT_FLOAT
        value.tensor.tensor_shape.dim.add(size=0)
        self._describe(value, "hparams", content, "")
        self._add(summary, 0, None)

    def to_bytes(self) -> bytes:
        """Returns the content of the event file."""
        return encode(self._events)

    def _describe(self, value: Any, plugin: str, content: bytes, description: str) -> None:
        if value.tag in self._known:
            return  # TensorBoard keeps what the first value of a tag says
        self._known.add(value.tag)
        value.metadata.plugin_data.plugin_name = plugin
        value.metadata.plugin_data.content = content
        value.metadata.summary_description = description

    def _add(self, summary: Any, step: int, wall_time: float | None) -> None:
        time = self._wall_time if wall_time is None else wall_time
        self._events.append(self._event(wall_time=time, step=step, summary=summary))
