"""Events of one of TensorBoard's runs, made of TensorBoard's own messages.

TensorBoard's `RecordWriter` writes the same bytes, but computes checksums in Python, 0.17 s per MB,
and importing it takes a third of a second.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import google_crc32c
from tensorboard.compat.proto import types_pb2
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

from orbax_bench_core.errors import redacted

Scalar = tuple[str, float, str]
"""Tag, value, and what the tag means, in Markdown; empty for nothing."""


class Log:
    """Collects the events of one run, as the content of one file.

    Every time comes from the records, so that writing them again gives the same bytes.
    """

    def __init__(self, wall_time: float) -> None:
        """Begins a run; the time, in seconds since the epoch, is that of all without their own."""
        self._wall_time = wall_time
        self._described: set[str] = set()
        self._data = bytearray()
        self._add(Event(wall_time=wall_time, file_version="brain.Event:2"))

    def scalars(
        self, values: Iterable[Scalar], *, step: int = 0, wall_time: float | None = None
    ) -> None:
        """Adds scalars of one step; TensorBoard keeps 32 bits of each, about seven digits."""
        event = Event(wall_time=wall_time or self._wall_time, step=step)
        for tag, number, said in values:
            value = self._value(event, tag, "scalars", said)
            # TensorBoard's default loader leaves out scalars of any other type without a word.
            value.tensor.dtype = types_pb2.DT_FLOAT
            value.tensor.float_val.append(number)
        self._add(event)

    def text(
        self, tag: str, markdown: str, *, step: int = 0, wall_time: float | None = None
    ) -> None:
        """Adds a Markdown text."""
        event = Event(wall_time=wall_time or self._wall_time, step=step)
        value = self._value(event, tag, "text")
        value.tensor.dtype = types_pb2.DT_STRING
        value.tensor.string_val.append(redacted(markdown).encode())
        self._add(event)

    def hparams(self, **message: Any) -> None:
        """Adds a message of the HParams tab, which lies in the metadata of an empty tensor."""
        ((kind, _),) = message.items()
        event = Event(wall_time=self._wall_time)
        value = self._value(event, f"_hparams_/{kind}", "hparams")
        value.tensor.dtype = types_pb2.DT_FLOAT
        value.tensor.tensor_shape.dim.add(size=0)
        content = HParamsPluginData(**message).SerializeToString(deterministic=True)
        value.metadata.plugin_data.content = content
        self._add(event)

    def to_bytes(self) -> bytes:
        """Returns the content of the event file."""
        return bytes(self._data)

    def _value(self, event: Any, tag: str, plugin: str, said: str = "") -> Any:
        value = event.summary.value.add(tag=tag)
        value.tensor.tensor_shape.SetInParent()
        if tag not in self._described:  # TensorBoard keeps what the first value of a tag says
            self._described.add(tag)
            value.metadata.plugin_data.plugin_name = plugin
            value.metadata.summary_description = said
        return value

    def _add(self, event: Any) -> None:
        data = event.SerializeToString(deterministic=True)
        length = struct.pack("<Q", len(data))
        self._data += length + _masked_crc(length) + data + _masked_crc(data)


def _masked_crc(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)
