"""Cards of a point, as TensorBoard's reader finds them."""

import pytest

from orbax_bench_core.config import MeshConfig
from orbax_bench_core.inventory import FileCount, Inventory
from orbax_bench_core.measure import BYTES, TIME, Sample
from orbax_bench_core.records import PEER_FAILED, ErrorInfo

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


def test_the_configuration_shows_point_options_and_mesh(card, make_record, make_point):
    mesh = MeshConfig(mesh_axes=("fsdp",), ici_parallelism={"fsdp": 8})
    point = make_point(options={"use_ocdbt": True, "limit": None, "bar": "x|y"}, mesh=mesh)
    text = card("configuration", [make_record(point)])
    assert f"| id | {point.id} |" in text
    for row in ("| use_ocdbt | true |", "| limit | null |", "| mesh | fsdp8 |"):
        assert row in text
    assert '| bar | "x\\|y" |' in text  # a bar does not end a cell
    assert '"ici_parallelism"' in text


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


def test_a_point_that_only_failed_has_its_cards_too(written, make_record):
    record = make_record(status="failed", error=ErrorInfo(type="ValueError", message="no"))
    assert written([record]).tags("text") == {"configuration", "run_summary"}


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
    assert ("**Warning:** 5 of 10 data files (50%)" in text) == warns


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


def test_what_was_not_measured_is_no_row_or_a_dash(glance):
    rows = glance({TIME: (0.5, "s")})
    assert set(rows) & {"read by TensorStore", "CPU time"} == set()
    assert (rows["throughput"], rows["bytes of the operation"]) == (["–"], ["–"])
