"""The card of one operation."""

import pytest

from orbax_bench_core.exports.tensorboard.cards import glance_card
from orbax_bench_core.exports.tensorboard.operations import collect, operations
from orbax_bench_core.inventory import FileCount, Inventory
from orbax_bench_core.measure import BYTES, TIME, Sample
from tests.support.repeats import repeat_over

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
def card(make_record, make_point):
    """The rows of the card of `save`, where host `i` took `slower[i]` times what is given."""

    def render(values, slower=(1.0,), inventory=None):
        records = {
            host: make_record(
                make_point(processes=len(slower)),
                host=host,
                num_hosts=len(slower),
                samples=tuple(
                    Sample("save", 0, metric, value * (factor if metric == TIME else 1), unit)
                    for metric, (value, unit) in values.items()
                ),
            )
            for host, factor in enumerate(slower)
        }
        repeat = repeat_over(records, len(slower))
        [operation] = operations(collect([repeat]))
        lines = glance_card(operation, inventory).splitlines()
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        return {line[0]: line[1:] for line in cells}

    return render


def test_defect_17_a_save_shows_what_it_moved_and_wrote(card):
    rows = card(OCDBT_SAVE)
    assert rows["bytes of the operation"] == ["100 MiB (104857600 bytes)"]
    assert rows["written by TensorStore"] == ["99.5 MiB (104333312 bytes)"]


def test_defect_17_the_little_that_a_save_reads_is_called_that(card):
    assert card(OCDBT_SAVE)["read by TensorStore"] == ["564 B (564 bytes)"]


def test_defect_17_throughput_and_time_are_of_the_slowest_host(card):
    rows = card(OCDBT_SAVE, slower=(1.0, 4.0))
    assert rows["total time"] == ["2 s (median, n = 1, slowest of 2 hosts; 2 s – 2 s)"]
    assert rows["throughput"] == ["0.04883 GiB/s (all bytes / all seconds)"]


def test_bytes_of_hosts_add_up(card):
    rows = card(OCDBT_SAVE, slower=(1.0, 1.0))
    assert rows["written by TensorStore"] == ["199 MiB (208666624 bytes)"]


def test_memory_of_hosts_does_not_add_up(card):
    assert card(OCDBT_SAVE, slower=(1.0, 1.0))["peak memory gained"] == ["3 MiB"]


def test_several_hosts_are_shown_one_by_one(card):
    rows = card(OCDBT_SAVE, slower=(1.0, 4.0))
    assert [rows["0"][0], rows["1"][0]] == ["500 ms", "2 s"]
    assert rows["1"][1] == "99.5 MiB"


def test_what_was_not_measured_is_no_row(card):
    assert set(card({TIME: (0.5, "s")})) & {"read by TensorStore", "CPU time"} == set()


def test_without_bytes_there_is_no_throughput(card):
    rows = card({TIME: (0.5, "s")})
    assert (rows["throughput"], rows["bytes of the operation"]) == (["–"], ["–"])


def test_what_is_on_storage_is_told_as_data_and_all(card):
    inventory = Inventory(
        total_bytes=100 * MIB + 7,
        file_count=10,
        largest_bytes=100 * MIB,
        data=FileCount(files=1, num_bytes=100 * MIB),
    )
    rows = card(OCDBT_SAVE, inventory=inventory)
    assert rows["on storage afterwards"] == [
        "100 MiB (104857607 bytes) in 10 files; data 100 MiB in 1"
    ]
