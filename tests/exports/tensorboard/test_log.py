"""The events of one TensorBoard run."""

import math

import pytest
from tensorboard.compat.proto import types_pb2

from orbax_bench_core.exports.tensorboard.event_file import Log, Scalar


@pytest.fixture
def read_back(tmp_path, read_events):
    def read(log):
        (tmp_path / "events.out.tfevents.1").write_bytes(log.to_bytes())
        return read_events(tmp_path)

    return read


def test_scalars_keep_their_steps(read_back):
    log = Log(1.0)
    log.scalars([Scalar("a/b", 0.25)], step=3)
    log.scalars([Scalar("a/b", 0.5)], step=4)
    assert read_back(log).scalars("a/b") == [(3, 0.25), (4, 0.5)]


def test_scalars_of_one_step_may_be_many(read_back):
    log = Log(1.0)
    log.scalars(Scalar(f"tag_{index}", float(index)) for index in range(3))
    assert read_back(log).tags("scalars") == {"tag_0", "tag_1", "tag_2"}


def test_the_description_is_shown_with_the_tag(read_back):
    log = Log(1.0)
    log.scalars([Scalar("a", 1.0, "how *long*")])
    metadata = read_back(log).reader.SummaryMetadata("a")
    assert metadata.summary_description == "how *long*"


def test_a_value_that_is_no_number_stays_one(read_back):
    log = Log(1.0)
    log.scalars([Scalar("a", math.nan)])
    assert math.isnan(read_back(log).value("a"))


def test_texts_keep_markdown_as_it_is(read_back):
    log = Log(1.0)
    log.text("card", "| a |\n| --- |\n| ü |", step=2)
    assert read_back(log).texts("card") == [(2, "| a |\n| --- |\n| ü |")]


def test_times_come_from_the_caller_alone(read_back):
    log = Log(5.0)
    log.scalars([Scalar("a", 1.0)])
    log.scalars([Scalar("a", 1.0)], step=1, wall_time=9.0)
    assert [event.wall_time for event in read_back(log).reader.Tensors("a")] == [5.0, 9.0]


def test_hparams_messages_are_found_by_their_plugin(read_back):
    log = Log(1.0)
    log.hparams("_hparams_/experiment", b"message")
    contents = read_back(log).reader.PluginTagToContent("hparams")
    assert contents == {"_hparams_/experiment": b"message"}


def test_scalars_are_32_bit_floats_for_the_default_loader_takes_no_others(read_back):
    log = Log(1.0)
    log.scalars([Scalar("a", 0.1)])
    [event] = read_back(log).reader.Tensors("a")
    assert event.tensor_proto.dtype == types_pb2.DT_FLOAT
