"""Cards about one sweep point."""

import pytest

from orbax_bench_core.config import MeshConfig
from orbax_bench_core.exports.tensorboard.cards import (
    configuration_card,
    inventory_card,
    run_summary_card,
    table,
)
from orbax_bench_core.inventory import FileCount, Inventory
from orbax_bench_core.records import PEER_FAILED, ErrorInfo
from tests.support.repeats import repeat_over, series_of

MIB = 2**20


@pytest.fixture
def info(make_run):
    return make_run([], num_repeats=3).read_info()


def test_a_bar_does_not_end_a_cell():
    assert table(("a",), [("x|y",)]).splitlines()[-1] == "| x\\|y |"


def test_the_configuration_shows_every_option(make_point, info):
    point = make_point(options={"use_ocdbt": True, "limit": None})
    card = configuration_card(series_of(point), info)
    assert "| use_ocdbt | true |" in card
    assert "| limit | null |" in card


def test_the_configuration_shows_the_mesh(make_point, info):
    mesh = MeshConfig(mesh_axes=("fsdp",), ici_parallelism={"fsdp": 8})
    card = configuration_card(series_of(make_point(mesh=mesh)), info)
    assert "| mesh | fsdp8 |" in card
    assert '"ici_parallelism"' in card


def test_the_configuration_names_the_point_and_its_id(make_point, info):
    point = make_point()
    assert f"| point | {point.name} |\n| id | {point.id} |" in configuration_card(
        series_of(point), info
    )


def test_the_run_summary_counts_repeats_that_passed_on_every_host(make_point, make_record, info):
    point = make_point(processes=2)
    hosts = {host: make_record(point, host=host, num_hosts=2) for host in range(2)}
    other = hosts[1].model_copy(update={"repeat": 1})
    repeats = [repeat_over(hosts, 2), repeat_over({1: other}, 2)]
    card = run_summary_card(series_of(point), info, repeats)
    assert "1 of 3 repeats passed" in card
    assert "| 1 | failed | 1 of 2 |" in card
    assert "no record from host 0" in card


def test_the_run_summary_gives_the_cause_not_its_consequence(make_record, info):
    errors = [ErrorInfo(type=kind, message="m") for kind in (PEER_FAILED, "ValueError")]
    records = {
        host: make_record(status="failed", error=error, host=host)
        for host, error in enumerate(errors)
    }
    repeat = repeat_over(records, 2)
    card = run_summary_card(series_of(records[0].point), info, [repeat])
    assert "ValueError: m" in card
    assert PEER_FAILED not in card


def test_the_run_summary_says_what_ran_on_what(make_record, info):
    record = make_record()
    card = run_summary_card(series_of(record.point), info, [repeat_over({0: record}, 1)])
    assert "| versions | jax 0.10.2 |" in card
    assert "commit c0ffee" in card


def test_the_inventory_shows_files_by_kind_and_role():
    card = inventory_card(
        Inventory(
            total_bytes=MIB + 5,
            file_count=3,
            largest_bytes=MIB,
            kinds={
                "ocdbt_data": FileCount(files=1, num_bytes=MIB),
                "ocdbt_manifest": FileCount(files=2, num_bytes=5),
            },
        )
    )
    assert "| ocdbt_data | data | 1 | 1 MiB | 1048576 |" in card
    assert "| ocdbt_manifest | metadata | 2 | 5 B | 5 |" in card
    assert "| all |  | 3 | 1 MiB | 1048581 |" in card


def inventory_of(num_bytes, files, small):
    return Inventory(
        total_bytes=num_bytes,
        file_count=files,
        largest_bytes=num_bytes,
        data=FileCount(files=files, num_bytes=num_bytes),
        small_data_files=small,
        largest_data_bytes=num_bytes,
        smallest_data_bytes=10,
    )


def test_the_inventory_warns_of_small_data_files():
    assert "**Warning:** 5 of 10 data files (50%)" in inventory_card(inventory_of(100 * MIB, 10, 5))


def test_the_inventory_does_not_warn_without_reason():
    assert "Warning" not in inventory_card(inventory_of(100 * MIB, 10, 0))
