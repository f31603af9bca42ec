"""What `orbax-bench limits` tells."""

from orbax_bench_core.limits import PROBES, limits_document
from tests.support.limits import made_up
from tests.support.shown import assert_tells, terminal

UNSHOWN = ("requested_bytes", "duration_s", "available_memory_bytes", "free_disk_bytes")


def test_speeds_of_files_and_of_tensorstore_are_told():
    seconds = {name: (place + 1) / 10 for place, name in enumerate(PROBES)}
    found = made_up(seconds, capped_by="only 4 GiB of memory are free")
    assert_tells(found, limits_document, unless=(*UNSHOWN, "page_bytes"))
    assert limits_document(found).headline.said == (
        "/disk: files are written at 10 GiB/s and read cold at 5 GiB/s, arrays of TensorStore "
        "written at 1.25 GiB/s and read cold at 1.11 GiB/s."
    )
    assert "only 4 GiB of memory are free" in terminal(limits_document(found))
