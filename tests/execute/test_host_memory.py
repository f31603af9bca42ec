from orbax_bench_core.execute.isolation import allocator_settings


def test_reused_keeps_every_block_in_the_heap():
    assert "mmap_threshold=4294967295" in allocator_settings("reused")["GLIBC_TUNABLES"]


def test_fresh_gives_every_block_back():
    assert "trim_threshold=0" in allocator_settings("fresh")["GLIBC_TUNABLES"]


def test_default_sets_nothing():
    assert allocator_settings("default") == {}
