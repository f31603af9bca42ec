import os

import pytest

from orbax_bench_core.worker import page_cache

SIZE = 4 << 20


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "inner").mkdir()
    for name in ("a", "inner/b"):
        (tmp_path / name).write_bytes(os.urandom(SIZE))
    (tmp_path / "empty").write_bytes(b"")
    return tmp_path


def test_dropped_pages_are_gone_even_when_they_were_dirty(folder):
    page_cache.drop(folder)
    assert page_cache.resident_share(folder) == 0.0


def test_half_of_the_files_is_half_of_the_pages(folder):
    page_cache.drop(folder)
    (folder / "a").read_bytes()
    assert page_cache.resident_share(folder) == 0.5


def test_nothing_of_the_content_is_lost(folder):
    before = (folder / "inner" / "b").read_bytes()
    page_cache.make_durable(folder)
    page_cache.drop(folder)
    assert (folder / "inner" / "b").read_bytes() == before
