"""One TensorBoard run: the events that one of its folders shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from orbax_bench_core.report.tensorboard.event_file import encode


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
        """Adds a message of the HParams plugin, which lies in the metadata of an empty tensor.

        Args:
            tag: One of the tags that the plugin looks for.
            content: An `HParamsPluginData` message on the wire.
        """
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
