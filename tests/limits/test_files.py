from pathlib import Path

import numpy as np
import pytest

from orbax_bench_core.limits import scratch
from orbax_bench_core.worker import page_cache


def test_what_is_written_is_read(tmp_path, workload):
    piece, buffer = workload.pieces[0], np.zeros_like(workload.pieces[0])
    scratch.write(tmp_path / "a", piece)
    scratch.read(tmp_path / "a", buffer)
    np.testing.assert_array_equal(buffer, piece)


def test_a_short_file_is_an_error(tmp_path, workload):
    (tmp_path / "a").write_bytes(bytes(100))
    with pytest.raises(OSError, match="less than were written"):
        scratch.read(tmp_path / "a", workload.buffers[0])


def test_files_that_are_there_are_not_written_again(workload):
    scratch.ensure_written(workload)
    scratch.paths(workload)[0].write_bytes(b"kept")
    scratch.ensure_written(workload)
    assert scratch.paths(workload)[0].read_bytes() == b"kept"


def test_cold_files_have_no_page_in_memory(workload):
    scratch.ensure_written(workload)
    assert page_cache.resident_share(scratch.folder(workload)) == 1.0
    scratch.make_cold(scratch.folder(workload))
    assert page_cache.resident_share(scratch.folder(workload)) == 0.0


def test_pages_that_stay_are_an_error(memory_disk: Path):
    (memory_disk / "a").write_bytes(bytes(1 << 16))
    with pytest.raises(scratch.StaysResident, match="100% of the pages stay in memory"):
        scratch.make_cold(memory_disk)
