"""Options with the Orbax of this environment; test_old_orbax has those of others."""

import pytest
from orbax.checkpoint import v1 as ocp

from orbax_bench_core.authoring import UnmetNeed
from orbax_bench_core.state import orbax_api
from orbax_bench_core.state.orbax_api import make_colocated_context, make_context


@pytest.fixture
def installed(monkeypatch):
    return lambda version: monkeypatch.setattr(orbax_api, "installed", lambda: version)


@pytest.mark.parametrize(
    ("option", "value", "read"),
    [
        ("use_ocdbt", False, lambda it: it.array.saving.use_ocdbt),
        ("use_zarr3", False, lambda it: it.array.saving.use_zarr3),
        ("use_compression", False, lambda it: it.array.saving.use_compression),
        ("use_replica_parallel", False, lambda it: it.array.saving.use_replica_parallel),
        (
            "enable_replica_parallel_separate_folder",
            True,
            lambda it: it.array.saving.enable_replica_parallel_separate_folder,
        ),
        ("chunk_byte_size", 99, lambda it: it.array.saving.storage_options.chunk_byte_size),
        ("use_load_and_broadcast", True, lambda it: it.array.loading.use_load_and_broadcast),
        ("write_concurrent_bytes", 99, lambda it: it.memory.write_concurrent_bytes),
        ("read_concurrent_bytes", 99, lambda it: it.memory.read_concurrent_bytes),
    ],
)
def test_an_option_arrives(option, value, read):
    assert read(ocp.Context()) != value
    assert read(make_context(**{option: value})) == value


def test_none_leaves_an_option_as_orbax_has_it():
    ours = make_context(write_concurrent_bytes=None, chunk_byte_size=None)
    assert ours.memory == ocp.Context().memory
    assert ours.array.saving.storage_options == ocp.Context().array.saving.storage_options


@pytest.mark.parametrize(
    ("option", "value", "since"),
    [
        ("use_compression", False, "0.11.26"),
        ("enable_replica_parallel_separate_folder", True, "0.11.27"),
        ("use_load_and_broadcast", True, "0.11.34"),
    ],
)
def test_an_option_that_is_lacking_is_refused(installed, option, value, since):
    installed("0.11.12")
    with pytest.raises(UnmetNeed, match=f"^{option}: {str(value).lower()} needs orbax-") as e:
        make_context(**{option: value})
    assert f">= {since}; this environment has 0.11.12, which always" in str(e.value)


@pytest.mark.parametrize("same", [{"use_compression": True}, {"use_load_and_broadcast": False}])
def test_what_is_lacking_need_not_be_told_what_it_does_anyway(installed, same):
    installed("0.11.25")
    assert not orbax_api.is_at_least("0.11.26")
    make_context(**same)


def test_colocated_python_has_a_first_release(installed):
    installed("0.11.31")
    with pytest.raises(UnmetNeed, match=r"load_with_colocated_python: true needs .* 0\.11\.32"):
        make_colocated_context()


@pytest.mark.parametrize(
    ("version", "later"),
    [
        *((version, True) for version in ("0.11.12", "0.11.12.dev3", "0.11.12rc1", "0.11.100")),
        ("1.0", True),
        *((version, False) for version in ("0.11.11", "0.9.20", "0.11")),
    ],
)
def test_this_release_and_a_later_one_are_recent_enough(installed, version, later):
    installed(version)
    assert orbax_api.is_at_least("0.11.12") is later


def test_what_is_lacking_is_said(installed):
    installed("0.11.12")
    assert orbax_api.lacks("a: 1", "0.12.0") == (
        "a: 1 needs orbax-checkpoint >= 0.12.0; this environment has 0.11.12"
    )
