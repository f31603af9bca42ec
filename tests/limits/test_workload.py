import mmap

import pytest

from orbax_bench_core.errors import UserError


@pytest.mark.parametrize("dtype", ["bfloat16", "int8", "complex128"])
def test_any_dtype_fills_the_bytes(tmp_path, make, dtype):
    made = make(tmp_path, dtype=dtype)
    assert (made.pieces[0].dtype.name, made.num_bytes) == (dtype, 4 << 20)


def test_less_than_a_page_each_is_refused_with_what_would_do(tmp_path, make):
    with pytest.raises(UserError, match=f"at least {1000 * mmap.PAGESIZE} bytes"):
        make(tmp_path, parallelism=1000, num_bytes=1 << 20)
