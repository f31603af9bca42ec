import mmap

import numpy as np
import pytest

from orbax_bench_core.errors import UserError


def test_pieces_are_equal_in_size_and_make_up_the_bytes(workload):
    assert [piece.nbytes for piece in workload.pieces] == [1 << 20] * 4
    assert workload.num_bytes == 4 << 20


def test_pieces_differ(workload):
    assert not np.array_equal(workload.pieces[0], workload.pieces[1])


def test_pieces_are_whole_pages(tmp_path, make):
    made = make(tmp_path, parallelism=3)
    assert {piece.nbytes % mmap.PAGESIZE for piece in made.pieces} == {0}


@pytest.mark.parametrize("dtype", ["bfloat16", "int8", "complex128"])
def test_any_dtype_fills_the_bytes(tmp_path, make, dtype):
    made = make(tmp_path, dtype=dtype)
    assert (made.pieces[0].dtype.name, made.num_bytes) == (dtype, 4 << 20)


def test_buffers_are_memory_of_their_own(workload):
    for piece, buffer in zip(workload.pieces, workload.buffers, strict=True):
        assert not np.shares_memory(piece, buffer)


def test_less_than_a_page_each_is_refused_with_what_would_do(tmp_path, make):
    with pytest.raises(UserError, match=f"at least {1000 * mmap.PAGESIZE} bytes"):
        make(tmp_path, parallelism=1000, num_bytes=1 << 20)
