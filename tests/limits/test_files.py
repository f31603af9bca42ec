import pytest

from orbax_bench_core.limits import scratch
from orbax_bench_core.worker import page_cache


def test_a_short_file_is_an_error(tmp_path, workload):
    (tmp_path / "a").write_bytes(bytes(100))
    with pytest.raises(OSError, match="less than were written"):
        scratch.read(tmp_path / "a", workload.buffers[0])


def test_cold_files_have_no_page_in_memory(workload):
    scratch.ensure_written(workload)
    assert page_cache.resident_share(scratch.folder(workload)) == 1.0
    scratch.make_cold(scratch.folder(workload))
    assert page_cache.resident_share(scratch.folder(workload)) == 0.0
