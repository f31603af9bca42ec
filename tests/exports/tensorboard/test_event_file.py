"""Framing of events, against TensorBoard's own implementation."""

import io

import pytest
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.summary.writer.record_writer import RecordWriter

from orbax_bench_core.exports.tensorboard.event_file import encode


@pytest.mark.parametrize("size", [0, 1, 255, 10_000])
def test_records_are_those_of_tensorboards_own_writer(size):
    event = Event(wall_time=1.5, file_version="x" * size)
    expected = io.BytesIO()
    RecordWriter(expected).write(event.SerializeToString(deterministic=True))
    assert encode([event]) == expected.getvalue()


def test_tensorboard_reads_every_event_back(tmp_path):
    events = [Event(wall_time=0.5, file_version="brain.Event:2"), Event(wall_time=2.0, step=7)]
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(encode(events))
    assert [event.wall_time for event in EventFileLoader(str(path)).Load()] == [0.5, 2.0]


def test_no_events_are_an_empty_file():
    assert encode([]) == b""
