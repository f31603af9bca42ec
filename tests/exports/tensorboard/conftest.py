"""Reading TensorBoard's files back with TensorBoard's own reader."""

from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray

from orbax_bench_core.exports.tensorboard.write import EventFiles, run_names
from orbax_bench_core.records import Run, Series


class Events:
    """One TensorBoard run, read back."""

    def __init__(self, folder):
        # A size of 0 keeps every event, where the default samples them.
        self.reader = EventAccumulator(str(folder), size_guidance={"tensors": 0}).Reload()

    def tags(self, plugin):
        try:
            return set(self.reader.PluginTagToContent(plugin))
        except KeyError:
            return set()

    def scalars(self, tag):
        return [(e.step, float(make_ndarray(e.tensor_proto))) for e in self.reader.Tensors(tag)]

    def value(self, tag):
        [(step, value)] = self.scalars(tag)
        assert step == 0
        return value

    def texts(self, tag):
        events = self.reader.Tensors(tag)
        return [(e.step, make_ndarray(e.tensor_proto).item().decode()) for e in events]


def write_tensorboard(run):
    files = EventFiles(run)
    for point in run.points():
        files.add(point.by_arm)
    files.end()
    return files


def name_of(record, records):
    """Returns the name of what a record is of, among TensorBoard's runs."""
    every = {record.point_id: Series.of_record(record) for record in records}
    return run_names(list(every.values()))[record.point_id]


@pytest.fixture
def write(make_run):
    """Writes the `tensorboard` folder of a run that holds `records`, and returns that folder."""

    def make(records, **fields):
        run = make_run(records, **fields)
        write_tensorboard(Run(run))
        return Path(run.root) / "tensorboard"

    return make


@pytest.fixture
def written(write):
    """Writes a run and reads back one of its TensorBoard runs, of the first point if not told."""

    def make(records, name="__summary__", **fields):
        return Events(write(records, **fields) / name_of(records[0], records) / name)

    return make


@pytest.fixture
def read_events():
    return Events
