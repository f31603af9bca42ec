"""Framing of events, against TensorBoard's own implementation."""

import io
import math

import numpy
import pytest
from tensorboard.backend.event_processing.event_file_loader import (
    EventFileLoader,
    RawEventFileLoader,
)
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.summary.writer.record_writer import RecordWriter

from orbax_bench_core.exports.tensorboard.event_file import Log, Scalar, Tags, encode, packed


@pytest.mark.parametrize("size", [0, 1, 255, 10_000])
def test_records_are_those_of_tensorboards_own_writer(size):
    event = Event(wall_time=1.5, file_version="x" * size)
    data, expected = event.SerializeToString(deterministic=True), io.BytesIO()
    RecordWriter(expected).write(data)
    assert encode([data]) == expected.getvalue()


def test_tensorboard_reads_every_event_back(tmp_path):
    events = [Event(wall_time=0.5, file_version="brain.Event:2"), Event(wall_time=2.0, step=7)]
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(encode([event.SerializeToString() for event in events]))
    assert [event.wall_time for event in EventFileLoader(str(path)).Load()] == [0.5, 2.0]


@pytest.mark.parametrize("value", [0.1, -math.inf, math.nan, 1e300, 0.023846933618187904])
@pytest.mark.parametrize("tags", [["a"], ["a", "b" * 300, "ü"]])
def test_scalars_are_written_as_protobuf_writes_them(tmp_path, value, tags):
    path = tmp_path / "events.out.tfevents.1"
    log = Log(1.5)
    for step in range(3):  # only the first value of a tag is described
        log.scalars([Scalar(tag, value, f"what {tag} is") for tag in tags], step=step)
    path.write_bytes(log.to_bytes())
    read = [Event.FromString(data) for data in RawEventFileLoader(str(path)).Load()]
    assert encode([each.SerializeToString(deterministic=True) for each in read]) == log.to_bytes()
    for step, event in enumerate(read[1:]):
        assert (event.step, [each.tag for each in event.summary.value]) == (step, tags)
        for each in event.summary.value:
            (found,) = each.tensor.float_val
            expected = math.inf if value > 1e38 else numpy.float32(value)
            assert found == expected or math.isnan(value)
            said = f"what {each.tag} is" if step == 0 else ""
            assert each.metadata.summary_description == said


def test_no_events_are_an_empty_file():
    assert encode([]) == b""


def test_a_row_is_what_its_scalars_are_one_by_one():
    described, values = [("a/b", "what"), ("c", "")], numpy.array([[1.5, 1e300], [math.nan, -0.0]])
    one_by_one, rows = Log(1.0), Log(1.0)
    tags = Tags.of(described)
    for step, found in enumerate(values):
        each = zip(described, found.tolist(), strict=True)
        one_by_one.scalars((Scalar(tag, value, said) for (tag, said), value in each), step=step)
        rows.row(tags, packed(found), step=step)
    assert rows.to_bytes() == one_by_one.to_bytes()


def test_a_row_takes_tags_that_are_all_new_or_all_its_own():
    log, tags = Log(1.0), Tags.of([("a", ""), ("b", "")])
    assert log.takes(tags)
    log.scalars([Scalar("b", 1.0)])
    assert not log.takes(tags)
    assert Tags.of([("a", ""), ("a", "")]) is None
