"""What the process of a point was made with, as that process shows it."""

import pytest

from orbax_bench_core.sweep import allocator_settings, host_memory_of, placement
from orbax_bench_core.worker import Ready


@pytest.mark.parametrize("word", ["reused", "fresh", "default"])
@pytest.mark.parametrize("given", ["", "glibc.malloc.trim_threshold=1"])
def test_the_setting_wins_over_what_the_command_was_started_with(word, given):
    environment = {"GLIBC_TUNABLES": given, **allocator_settings(word, given)}
    assert host_memory_of(environment) == word
    assert environment["GLIBC_TUNABLES"].startswith(given)


def test_a_worker_that_is_not_as_asked_names_both(make_point):
    ready = Ready(
        platform="cpu",
        device_count=1,
        fixed=False,
        provenance={},
        processes=1,
        host_memory="fresh",
        x64=True,
    )
    asked = placement(make_point())
    assert ready.differences(asked) == (
        "the point needs host_memory=reused, and its worker has host_memory=fresh"
    )
    assert ready.differences(asked._replace(host_memory="fresh")) == ""
    assert "num_devices=8" in ready.differences(asked._replace(num_devices=8))
