"""The page cache: pages that are dropped, and the share that is resident before a load."""

import os

import pytest
from etils import epath

from orbax_bench_core.config import Conditions
from orbax_bench_core.worker import page_cache
from orbax_bench_core.worker.page_cache import PageCacheConditioner

SIZE = 4 << 20


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "inner").mkdir()
    for name in ("a", "inner/b"):
        (tmp_path / name).write_bytes(os.urandom(SIZE))
    (tmp_path / "empty").write_bytes(b"")
    return tmp_path


def test_dropped_pages_are_gone_even_when_they_were_dirty_and_nothing_is_lost(folder):
    before = (folder / "a").read_bytes()
    page_cache.drop(folder)
    assert page_cache.resident_share(folder) == 0.0
    assert (folder / "a").read_bytes() == before
    assert page_cache.resident_share(folder) == 0.5  # of the pages, as of the files


@pytest.fixture
def checkpoint(tmp_path):
    (tmp_path / "data").write_bytes(os.urandom(1 << 20))
    return epath.Path(tmp_path)


@pytest.fixture
def samples():
    return []


def conditioner(samples, **conditions):
    return PageCacheConditioner(Conditions(**conditions), samples.extend, lambda: None)


@pytest.mark.parametrize(("cache", "share"), [("cold", 0.0), ("warm", 1.0)])
def test_a_load_meets_the_cache_that_was_asked_for(checkpoint, samples, cache, share):
    conditioner(samples, cache=cache).prepare_load("load", checkpoint)
    [sample] = samples
    assert (sample.operation, sample.metric) == ("load", "6_io/resident_share_before")
    assert (sample.value, sample.unit) == (share, "ratio")


def test_the_share_of_each_of_several_loads_is_kept(checkpoint, samples):
    loads = conditioner(samples, cache="cold")
    loads.prepare_load("load", checkpoint)
    loads.prepare_load("load", checkpoint)
    assert [sample.occurrence for sample in samples] == [0, 1]


def test_a_remote_checkpoint_has_no_pages_here(samples):
    conditioner(samples, cache="cold").prepare_load("load", epath.Path("gs://bucket/checkpoint"))
    assert samples == []


def test_durable_is_as_the_conditions_say(samples):
    assert conditioner(samples, durable=True).durable
    assert not conditioner(samples).durable
