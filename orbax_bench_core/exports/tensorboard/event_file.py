"""Event file format of TensorBoard: messages, each framed by its length and checksums.

A large sweep has millions of scalars that differ in their value alone. What a message of one says
before and after its value is made once by tag, by protobuf itself.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from orbax_bench_core.errors import redacted

if TYPE_CHECKING:
    import numpy as np

_POLYNOMIAL = 0x82F63B78  # CRC-32C (Castagnoli), bits reversed
_MASK_DELTA = 0xA282EAD8


_MARKER = struct.unpack("<f", b"\xa5\x5a\xc3\x3c")[0]
"""A value whose bytes no text has, for they are not UTF-8."""
_VALUE_BYTES = 4
_TIME, _STEP = b"\x09", b"\x10"
"""Begin the fields `wall_time` and `step` of an `Event`: numbers 1 and 2."""
_SUMMARY = b"\x2a"
"""Begins the field `summary` of an `Event`: number 5, with a length."""
_VALUE, _TENSOR, _STRING = b"\x0a", b"\x42", b"\x42"
"""Begin a `value` of a `Summary`, its `tensor` and a `string_val` of that: 1, 8 and 8, likewise."""


def encode(events: Iterable[bytes]) -> bytes:
    """Returns `Event` messages as the content of one event file; the first states the version.

    TensorBoard's own writers name the file after the time and the process, and reach gs:// only
    with TensorFlow. With the content at hand, a rewrite replaces the same file, on any storage.
    """
    return b"".join(map(_record, events))


def _record(data: bytes) -> bytes:
    # TFRecord: length, masked CRC of the length, data, masked CRC of the data; little-endian.
    return b"".join((_length(len(data)), data, _masked_crc(data)))


@functools.lru_cache(maxsize=4096)  # nearly all scalars of a run lie in messages of a few lengths
def _length(number: int) -> bytes:
    length = struct.pack("<Q", number)
    return length + _masked_crc(length)


def _masked_crc(data: bytes) -> bytes:
    # Masked, because the CRC of data that contains CRCs is weak. TensorBoard has this in Python
    # too, but five times slower and behind imports that take longer than writing a whole run.
    crc = _crc()(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF)


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


class Tags:
    """Scalar tags of one step, each once, whose values are filled into one message.

    Attributes:
        names: The tags.
    """

    def __init__(self, described: Iterable[tuple[str, str]]) -> None:
        """Takes each tag with what it says, in Markdown; empty for none."""
        self._described = tuple(described)
        self.names = frozenset(tag for tag, _ in self._described)

    @classmethod
    def of(cls, described: Iterable[tuple[str, str]]) -> Tags | None:
        """Returns tags, each with what it says; None where one occurs twice."""
        described = tuple(described)
        found = cls(described)
        return found if len(found.names) == len(described) else None

    def message(self, values: np.ndarray, *, first: bool) -> bytes:
        """Returns a summary of `packed` values of the tags; the first says what the tags say."""
        template, places = self._first if first else self._later
        filled = template.copy()
        filled[places] = values.reshape(-1)
        return filled.tobytes()

    @functools.cached_property
    def _first(self) -> tuple[np.ndarray, np.ndarray]:
        return _template(_described_scalar(*each) for each in self._described)

    @functools.cached_property
    def _later(self) -> tuple[np.ndarray, np.ndarray]:
        return _template(_scalar(tag) for tag, _ in self._described)


def packed(values: np.ndarray) -> np.ndarray:
    """Returns the four bytes of each value, on an axis of their own after the others."""
    import numpy as np

    with np.errstate(over="ignore"):  # beyond 32 bits is infinite
        return values.astype("<f4").view(np.uint8).reshape(*values.shape, _VALUE_BYTES)


def _template(around: Iterable[tuple[bytes, bytes]]) -> tuple[np.ndarray, np.ndarray]:
    """Returns a summary with zeros for its values, and where the four bytes of each lie."""
    import numpy as np

    text, places = bytearray(), list[int]()
    for before, after in around:
        text += before
        places += range(len(text), len(text) + _VALUE_BYTES)
        text += bytes(_VALUE_BYTES) + after
    return np.frombuffer(bytes(text), np.uint8), np.array(places, np.intp)


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
        self._rows: set[Tags] = set()
        first = self._event(wall_time=wall_time, file_version="brain.Event:2")
        self._events = [_message(first)]

    def scalars(
        self, values: Iterable[Scalar], *, step: int = 0, wall_time: float | None = None
    ) -> None:
        """Adds scalars of one step.

        Args:
            values: The scalars.
            step: Step on TensorBoard's axis: the index of the repeat.
            wall_time: Seconds since the epoch; that of the run when absent.
        """
        parts: list[bytes] = []
        for tag, value, description in values:
            if tag in self._known:  # TensorBoard keeps what the first value of a tag says
                before, after = _scalar(tag)
            else:
                self._known.add(tag)
                before, after = _described_scalar(tag, description)
            parts += (before, _float_bytes(value), after)
        self._add(b"".join(parts), step, wall_time)

    def row(
        self, tags: Tags, values: np.ndarray, *, step: int = 0, wall_time: float | None = None
    ) -> None:
        """Adds scalars of one step under tags that `takes` accepts.

        Args:
            tags: The tags.
            values: One per tag, as `packed` gives them.
            step: Step on TensorBoard's axis.
            wall_time: Seconds since the epoch; that of the run when absent.
        """
        first = tags not in self._rows
        if first:
            self._rows.add(tags)
            self._known |= tags.names
        self._add(tags.message(values, first=first), step, wall_time)

    def takes(self, tags: Tags) -> bool:
        """Returns whether `row` takes these tags: all of them are new, or none is."""
        return tags in self._rows or self._known.isdisjoint(tags.names)

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
        before, tensor, after = _text(tag, described=tag not in self._known)
        self._known.add(tag)
        tensor += _field(_STRING, redacted(markdown).encode())
        value = b"".join((before, _field(_TENSOR, tensor), after))
        self._add(_field(_VALUE, value), step, wall_time)

    def hparams(self, tag: str, content: bytes) -> None:
        """Adds a message of the HParams plugin, which lies in the metadata of an empty tensor."""
        from tensorboard.compat.proto import summary_pb2, types_pb2

        summary = summary_pb2.Summary()
        value = summary.value.add(tag=tag)
        value.tensor.dtype = types_pb2.DT_FLOAT
        value.tensor.tensor_shape.dim.add(size=0)
        value.metadata.plugin_data.plugin_name = "hparams"
        value.metadata.plugin_data.content = content
        self._add(_message(summary), 0, None)

    def to_bytes(self) -> bytes:
        """Returns the content of the event file."""
        return encode(self._events)

    def _add(self, summary: bytes, step: int, wall_time: float | None) -> None:
        time = self._wall_time if wall_time is None else wall_time
        head = _head(time, step)
        self._events.append(head + _field(_SUMMARY, summary))


def _head(wall_time: float, step: int) -> bytes:
    """Returns the fields `wall_time` and `step` of an `Event`: a double, and a varint unless 0."""
    time = struct.pack("<d", wall_time)
    return b"".join((_TIME, time, _STEP + _varint(step) if step else b""))


@functools.lru_cache(maxsize=65_536)
def _scalar(tag: str) -> tuple[bytes, bytes]:
    """Returns what a summary with one scalar says before the four bytes of its value, and after."""
    return _around_value(_scalar_message(tag))


@functools.lru_cache(maxsize=65_536)
def _described_scalar(tag: str, description: str) -> tuple[bytes, bytes]:
    """Returns the same of the first value of a tag, with its description in Markdown."""
    from tensorboard.plugins.scalar import plugin_data_pb2

    summary = _scalar_message(tag)
    metadata = summary.value[0].metadata
    metadata.plugin_data.plugin_name = "scalars"
    metadata.plugin_data.content = plugin_data_pb2.ScalarPluginData().SerializeToString()
    metadata.summary_description = description
    return _around_value(summary)


def _scalar_message(tag: str) -> Any:
    from tensorboard.compat.proto import summary_pb2, types_pb2

    summary = summary_pb2.Summary()
    value = summary.value.add(tag=tag)
    # TensorBoard's default loader leaves out scalars of any other type without a word.
    value.tensor.dtype = types_pb2.DT_FLOAT
    value.tensor.tensor_shape.SetInParent()
    value.tensor.float_val.append(_MARKER)
    return summary


@functools.lru_cache(maxsize=256)
def _text(tag: str, *, described: bool) -> tuple[bytes, bytes, bytes]:
    """Returns what a value with a text says before its tensor, there before the text, and after.

    Args:
        tag: Its tag.
        described: Whether it says that this is text, as the first value of a tag does.
    """
    from tensorboard.compat.proto import summary_pb2, tensor_pb2, types_pb2
    from tensorboard.plugins.text import plugin_data_pb2

    tensor = tensor_pb2.TensorProto(dtype=types_pb2.DT_STRING)
    tensor.tensor_shape.SetInParent()
    after = summary_pb2.Summary.Value()
    if described:
        after.metadata.plugin_data.plugin_name = "text"
        after.metadata.plugin_data.content = plugin_data_pb2.TextPluginData().SerializeToString()
    return _message(summary_pb2.Summary.Value(tag=tag)), _message(tensor), _message(after)


def _around_value(summary: Any) -> tuple[bytes, bytes]:
    before, after = _message(summary).split(_float_bytes(_MARKER))
    return before, after


def _message(message: Any) -> bytes:
    """Returns a message on the wire, its fields in the order of their numbers."""
    return bytes(message.SerializeToString(deterministic=True))


def _float_bytes(value: float) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:  # beyond 32 bits
        return struct.pack("<f", math.copysign(math.inf, value))


def _field(begin: bytes, data: bytes) -> bytes:
    """Returns a field that has a length."""
    return b"".join((begin, _varint(len(data)), data))


@functools.lru_cache(maxsize=4096)
def _varint(number: int) -> bytes:
    """Returns a number as protobuf writes lengths: seven bits a byte, the lowest first."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*found, number))
