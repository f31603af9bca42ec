"""Room for the files of a measurement, the data that fills it, and what is left behind."""

import mmap

import pytest
from etils import epath

from orbax_bench_core.errors import UserError
from orbax_bench_core.limits.reasons import SENTENCES
from orbax_bench_core.limits.scratch import (
    ensure_written,
    existing_directory,
    fitting_bytes,
    folder,
    make_cold,
    scratch,
)
from orbax_bench_core.reasons import because, in_words
from orbax_bench_core.worker import page_cache

MIB = 1 << 20


def test_half_of_the_free_disk_and_an_eighth_of_the_free_memory_may_be_used():
    found, why = fitting_bytes(100 * MIB, free_disk=40 * MIB, free_memory=800 * MIB)
    assert found == 20 * MIB
    assert in_words(SENTENCES, *why) == (
        "100 MiB was asked for, but only half of the 40 MiB of free disk may be used"
    )
    found, why = fitting_bytes(100 * MIB, free_disk=None, free_memory=80 * MIB)
    assert found == 10 * MIB
    assert why == because("little_room", asked=100 * MIB, place="memory", free=80 * MIB)
    with pytest.raises(UserError, match="no space: only half of the 1 MiB of free disk"):
        fitting_bytes(100 * MIB, free_disk=MIB, free_memory=800 * MIB)


def test_the_folder_goes_with_all_that_is_in_it_also_after_a_failure(tmp_path):
    with pytest.raises(ZeroDivisionError), scratch(epath.Path(tmp_path)) as folder:
        (folder / "deep").mkdir()
        (folder / "deep" / "file").write_text("data")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("{folder}/missing", "does not exist; give an existing directory"),
        ("{folder}/file", "is a file; give"),
    ],
)
def test_only_a_directory_will_do(tmp_path, place, problem):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=problem):
        existing_directory(place.format(folder=tmp_path))


def test_cold_files_have_no_page_in_memory(workload):
    ensure_written(workload)
    assert page_cache.resident_share(folder(workload)) == 1.0
    make_cold(folder(workload))
    assert page_cache.resident_share(folder(workload)) == 0.0


def test_less_than_a_page_each_is_refused_with_what_would_do(tmp_path, make):
    with pytest.raises(UserError, match=f"at least {1000 * mmap.PAGESIZE} bytes"):
        make(tmp_path, parallelism=1000, num_bytes=1 << 20)
