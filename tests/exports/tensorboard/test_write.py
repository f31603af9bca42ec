"""The whole folder, read back the way TensorBoard's own backend reads it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.context import RequestContext
from tensorboard.plugins.base_plugin import TBContext
from tensorboard.plugins.hparams import api_pb2, list_session_groups
from tensorboard.plugins.hparams.backend_context import Context

from orbax_bench_core.inventory import FileCount, Inventory
from orbax_bench_core.measure import BYTES, TIME, Sample
from orbax_bench_core.records import PEER_FAILED, ErrorInfo, Run

from .conftest import write_tensorboard

GIB = 2**30
NAME = "use_ocdbt=False"


@pytest.fixture
def swept(make_point, make_record):
    """Two points of two repeats; the one with OCDBT takes half as long."""
    points = [
        make_point(options={"use_ocdbt": ocdbt, "level": level}, label=f"use_ocdbt={ocdbt}")
        for ocdbt, level in ((False, 3), (True, 7))
    ]
    return [
        make_record(point, repeat, times={"save": seconds + repeat}, sizes={"save": GIB})
        for point, seconds in zip(points, (4.0, 2.0), strict=True)
        for repeat in range(2)
    ]


def session_groups(folder, **column):
    """Rows of the HParams tab, from the code that serves them."""
    multiplexer = EventMultiplexer()
    multiplexer.AddRunsFromDirectory(str(folder))
    multiplexer.Reload()
    provider = MultiplexerDataProvider(multiplexer, str(folder))
    context = Context(TBContext(data_provider=provider, logdir=str(folder)))
    request = api_pb2.ListSessionGroupsRequest(
        start_index=0,
        slice_size=100,
        allowed_statuses=[api_pb2.STATUS_SUCCESS, api_pb2.STATUS_FAILURE],
        col_params=[api_pb2.ColParams(**column)] if column else [],
    )
    handler = list_session_groups.Handler(RequestContext(), context, "", request)
    return list(handler.run().session_groups)


def files(folder):
    return {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def test_defect_19_rows_have_the_names_of_points_not_hashes(write, swept):
    names = [group.name for group in session_groups(write(swept))]
    expected = [f"{r.point_name} {r.point_id[:6]}" for r in swept if r.repeat == 0]
    assert sorted(names) == sorted(expected)
    assert all(name.startswith("save_restore[use_ocdbt=") for name in names)


def test_the_same_records_give_the_same_files(make_run, swept):
    run = make_run(swept)
    write_tensorboard(Run(run))
    before = files(run.root)
    write_tensorboard(Run(run))
    assert files(run.root) == before


def test_another_repeat_replaces_files_and_duplicates_no_point(
    make_run, make_record, read_events, swept
):
    run = make_run(swept)
    write_tensorboard(Run(run))
    run.write_record(make_record(swept[0].point, 2, times={"save": 9.0}))
    write_tensorboard(Run(run))
    host = read_events(run.root / "tensorboard" / NAME / "host_0")
    assert host.scalars("save_0_basics/time_s") == [(0, 4.0), (1, 5.0), (2, 9.0)]


def test_files_of_a_host_that_is_gone_are_removed(make_run, swept):
    run = make_run(swept)
    write_tensorboard(Run(run))
    gone = run.root / "records" / swept[0].point_id
    gone.rmtree()
    write_tensorboard(Run(run))
    assert list((run.root / "tensorboard" / NAME).glob("*/*")) == []


@pytest.mark.parametrize(
    "name",
    [
        "plugins/profile/2026_01_02/vm.xplane.pb",
        "repeat_0/plugins/profile/2026_01_02/vm.xplane.pb",
        "events.out.tfevents.1.vm.profile-empty",
    ],
)
def test_profiler_traces_are_left_alone(make_run, swept, name):
    run = make_run(swept)
    trace = run.root / "tensorboard" / f"{swept[0].point.directory}__save" / name
    trace.parent.mkdir(parents=True)
    trace.write_bytes(b"trace")
    write_tensorboard(Run(run))
    assert trace.read_bytes() == b"trace"


@pytest.mark.slow
def test_neither_tensorflow_nor_a_summary_writer_is_loaded(make_run, swept):
    run = make_run(swept)
    program = (
        "import sys\n"
        "from orbax_bench_core.publishing.reporting import publish\n"
        "from orbax_bench_core.records.run_directory import RunDirectory\n"
        "print('before', 'tensorboard' in sys.modules)\n"
        "publish(RunDirectory(sys.argv[1]))\n"
        "unwanted = {'tensorflow', 'clu', 'tensorboardX', 'torch', 'jax'}\n"
        "print('after', 'tensorboard' in sys.modules, unwanted & set(sys.modules))\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", program, str(run.root)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "error"},
    )
    assert process.stdout.splitlines() == ["before False", "after True set()"]


def test_names_that_are_equal_or_too_long_have_the_id(write, make_point, make_record):
    labels = ("x", "x", "long" * 99)
    points = [make_point(options={"a": number}, label=label) for number, label in enumerate(labels)]
    folder = write([make_record(point, times={"save": 1.0}) for point in points])
    names = {path.name for path in folder.iterdir()} - {"__summary__"}
    assert len(names) == 3
    assert {f"x {points[0].id[:6]}", f"x {points[1].id[:6]}"} < names
    assert max(map(len, names)) < 150


MIB = 2**20
STORE = "6_tensorstore/tensorstore_kvstore_file_bytes_{}_value_diff"
# What an OCDBT save of 100 MiB measures: it reads a little too, to merge its databases.
OCDBT_SAVE = {
    TIME: (0.5, "s"),
    BYTES: (100 * MIB, "bytes"),
    STORE.format("written"): (99.5 * MIB, "bytes"),
    STORE.format("read"): (564.0, "bytes"),
    "0_basics/cpu_s": (0.25, "s"),
    "7_memory/host_peak_rss_diff_mb": (3.0, "MiB"),
}


@pytest.fixture
def card(written):
    """Returns a card of records."""

    def read(tag, records, **fields):
        [(_, text)] = written(records, **fields).texts(tag)
        return text

    return read


@pytest.fixture
def glance(card, make_record, make_point):
    """The rows of the card of `save`, where host `i` took `slower[i]` times what is given."""

    def render(values, slower=(1.0,), inventory=None):
        records = [
            make_record(
                make_point(processes=len(slower)),
                host=host,
                num_hosts=len(slower),
                inventory=inventory,
                samples=tuple(
                    Sample("save", 0, metric, value * (factor if metric == TIME else 1), unit)
                    for metric, (value, unit) in values.items()
                ),
            )
            for host, factor in enumerate(slower)
        ]
        lines = card("at_a_glance/save", records).splitlines()
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        return {line[0]: line[1:] for line in cells}

    return render


def test_the_run_summary_counts_repeats_that_passed_on_every_host(card, make_point, make_record):
    point = make_point(processes=2)
    records = [
        make_record(point, repeat, host=host, num_hosts=2)
        for repeat, host in ((0, 0), (0, 1), (1, 1))
    ]
    text = card("run_summary", records, num_repeats=3)
    assert "1 of 3 repeats passed" in text
    assert "| 1 | failed | 1 of 2 |" in text
    assert "no record from host 0" in text
    assert "| versions | jax 0.10.2 |" in text
    assert "commit c0ffee" in text


def test_the_run_summary_gives_the_cause_not_its_consequence(card, make_record, make_point):
    records = [
        make_record(
            make_point(processes=2),
            status="failed",
            error=ErrorInfo(type=kind, message="m"),
            host=host,
            num_hosts=2,
        )
        for host, kind in enumerate((PEER_FAILED, "ValueError"))
    ]
    text = card("run_summary", records)
    assert "ValueError: m" in text
    assert PEER_FAILED not in text


@pytest.mark.parametrize(("small", "warns"), [(5, True), (0, False)])
def test_the_inventory_shows_files_by_kind_and_warns_of_small_ones(card, make_record, small, warns):
    inventory = Inventory(
        total_bytes=100 * MIB + 5,
        file_count=12,
        largest_bytes=100 * MIB,
        kinds={
            "ocdbt_data": FileCount(files=10, num_bytes=100 * MIB),
            "ocdbt_manifest": FileCount(files=2, num_bytes=5),
        },
        data=FileCount(files=10, num_bytes=100 * MIB),
        small_data_files=small,
        largest_data_bytes=100 * MIB,
        smallest_data_bytes=10,
    )
    text = card("inventory", [make_record(inventory=inventory)])
    assert "| ocdbt_data | data | 10 | 100 MiB | 104857600 |" in text
    assert "| ocdbt_manifest | metadata | 2 | 5 B | 5 |" in text
    assert "| all |  | 12 | 100 MiB | 104857605 |" in text
    assert ("**Warning:** 5 of 10 data files (50 %)" in text) == warns


def test_defect_17_an_operation_shows_what_it_moved_wrote_and_read(glance):
    inventory = Inventory(
        total_bytes=100 * MIB + 7,
        file_count=10,
        largest_bytes=100 * MIB,
        data=FileCount(files=1, num_bytes=100 * MIB),
    )
    rows = glance(OCDBT_SAVE, inventory=inventory)
    assert rows["bytes of the operation"] == ["100 MiB (104857600 bytes)"]
    assert rows["written by TensorStore"] == ["99.5 MiB (104333312 bytes)"]
    assert rows["read by TensorStore"] == ["564 B (564 bytes)"]
    assert rows["on storage afterwards"] == [
        "100 MiB (104857607 bytes) in 10 files; data 100 MiB in 1"
    ]


def test_defect_17_several_hosts_are_shown_together_and_one_by_one(glance):
    rows = glance(OCDBT_SAVE, slower=(1.0, 4.0))
    assert rows["total time"] == ["2 s (median, n = 1, slowest of 2 hosts; 2 s – 2 s)"]
    assert rows["throughput"] == ["0.04883 GiB/s (all bytes / all seconds)"]
    assert rows["written by TensorStore"] == ["199 MiB (208666624 bytes)"]
    assert rows["peak memory gained"] == ["3 MiB"]  # each host has its own
    assert [rows["0"][0], rows["1"][0]] == ["500 ms", "2 s"]
    assert rows["1"][1] == "99.5 MiB"
