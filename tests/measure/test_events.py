"""From events to metrics and back; docs/metrics.md holds the names that dashboards expect."""

import pytest

from orbax_bench_core.measure import event_table, events


def test_rates_and_ratios_are_never_summed():
    summed = {metric.unit for metric in event_table.METRICS if metric.aggregate == "sum"}

    assert summed == {"s", "GiB", "bytes", "count"}


@pytest.mark.parametrize(
    "event",
    [
        "/jax/orbax/write/start_time",
        "/jax/orbax/write/blocking_end_time",
        "/jax/orbax/write/async/start_time",
        "/jax/orbax/write/async/blocking_end_time",
    ],
)
def test_defect_22_moments_are_no_metrics(event):
    assert not events.is_metric("scalar", event)


def test_events_of_others_are_no_metrics():
    assert not events.is_metric("duration", "/grain/read/duration_secs")


@pytest.mark.parametrize(
    ("kind", "event", "name", "unit", "aggregate"),
    [
        ("duration", "/jax/orbax/a/b_secs", "9_other/orbax_a_b_secs", "s", "sum"),
        ("scalar", "/jax/orbax/a/gbytes", "9_other/orbax_a_gbytes", "GiB", "sum"),
        (
            "scalar",
            "/jax/orbax/a/gbytes_per_sec",
            "9_other/orbax_a_gbytes_per_sec",
            "GiB/s",
            "last",
        ),
        (
            "duration",
            "/jax/checkpoint/read/bytes_per_sec",
            "9_other/checkpoint_read_bytes_per_sec",
            "bytes/s",
            "last",
        ),
        ("scalar", "/jax/orbax/a/enabled", "9_other/orbax_a_enabled", "", "last"),
        ("scalar", "/jax/orbax/a/step_count", "9_other/orbax_a_step_count", "count", "sum"),
        ("occurrence", "/jax/checkpoint/a", "9_other/checkpoint_a", "count", "sum"),
    ],
)
def test_unknown_events_surface_under_other(kind, event, name, unit, aggregate):
    metric = events.metric_of(kind, event)

    assert (metric.name, metric.unit, metric.aggregate) == (name, unit, aggregate)


@pytest.mark.parametrize("name", ["9_other/", "3_load_breakdown/no_such_s_max", "time_s"])
def test_names_that_no_event_gives_do_not_resolve(name):
    assert events.resolve(name) is None
